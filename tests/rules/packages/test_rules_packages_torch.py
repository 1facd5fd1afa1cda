"""Packages that are built for one PyTorch, beside another one: found on machines and in lists."""

from typing import Any

from envcheck.model.snapshot import Environment, Snapshot
from tests.every import cases, every
from tests.rules.machines import VENV, bad, but, check_of, checks_of, framework, judge, machine, said, torch
from tests.rules.packages.packages_here import NOT_IMPORTED, RAN, SITE, beside_torch, dist, extension, having, on

FAMILY = "torch-family-mismatch"
EXTENSION = "extension-built-for-other-torch"
BINARY = "extension-binary-missing"

VISION = extension("torchvision", "0.20.1+cu124", requires=("numpy", "torch (==2.5.1)"), built_for={"torch": "2.5.1"})
OLD_VISION = extension("torchvision", "0.19.1+cu124", requires=("torch (==2.4.1)",), built_for={"torch": "2.4.1"})
SYMBOL = "_ZN3c104cuda9SetDeviceEi"
OTHER_ABI = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
NO_CUDA_12 = "it has libraries for CUDA 11.7, 11.8, and none for 12.4, which it would load"
FLASH = extension(
    "flash-attn", "2.7.4.post1+cu12torch2.5cxx11abiFALSE", built_for={"torch": "2.5"}, requires=("torch",)
)


def listed(*packages: tuple[str, str], torch_version: str = "2.5.1") -> Any:
    """A text that lists PyTorch and these packages."""
    return on(having(torch(torch_version), distributions=tuple(dist(*package) for package in packages)))


PINNING = torch(requires=('triton==3.1.0; platform_system == "Linux"',))
NEWER_TRITON = framework("triton", "3.3.0")
STABLE = extension("xformers", "0.0.35", built_for={"torch": "2.10.0+cu128"}, requires=("torch>=2.10",))
OLDER = extension("xformers", "0.0.27", built_for={"torch": "2.4.0+cu121"}, requires=("torch==2.4.0",))
CU124 = "https://download.pytorch.org/whl/cu124"


def ids(snapshot: Any, rule: str) -> dict[str, str]:
    return {check.subject.key.rpartition(":")[2]: check.status for check in judge(snapshot) if check.rule == rule}


@cases("case, rule, snapshot, found",
    ("another last number is a remark", FAMILY, beside_torch(VISION, version="2.5.0+cu124"), {"torchvision": "note"}),
    ("without PyTorch the question does not arise", FAMILY, on(having(VISION)), {}),
    ("an extension that finds all its symbols fits", EXTENSION, beside_torch(FLASH), {"flash-attn": "pass"}),
    ("symbols that are not PyTorch's are no sign of another PyTorch", EXTENSION,
     beside_torch(but(FLASH, unresolved=("cublasLtMatmul",))), {"flash-attn": "pass"}),
    ("an extension of something else is left alone", EXTENSION,
     beside_torch(extension("numba-cuda", "0.30.4", extends="numba", unresolved=None)), {}),
    ("an extension with its parts", BINARY, beside_torch(FLASH), {"flash-attn": "pass"}),
    ("xFormers goes on without", BINARY,
     beside_torch(extension("xformers", "0.0.28.post3", binaries=(), unresolved=None)), {"xformers": "warn"}),
    ("what is Python alone needs no parts", BINARY, beside_torch(extension("deepspeed", "0.16.2", binaries=())), {}),
    ("of a release that nobody knows nothing is said", FAMILY,
     beside_torch(but(VISION, version="99.1", requires=(), built_for={}, unresolved=None)), {"torchvision": "pass"}),
    ("nor in a list", FAMILY, listed(("torchvision", "99.1")), {}),
    ("Triton as PyTorch pins it", FAMILY, on(having(PINNING, but(NEWER_TRITON, version="3.1.0"))), {"triton": "pass"}),
    ("a range that is met outranks what it was built with", EXTENSION, beside_torch(STABLE, version="2.11.0+cu130"),
     {"xformers": "pass"}),
    ("a range that is not met", EXTENSION, beside_torch(STABLE, version="2.9.1+cu128"), {"xformers": "warn"}),
    ("nobody looked for parts", BINARY, beside_torch(but(FLASH, binaries=None)), {}),
    ("nobody knows where it lies", BINARY, beside_torch(but(FLASH, path=None)), {}),
    ("it ran without its parts", BINARY, beside_torch(but(FLASH, binaries=(), trial=RAN)), {}),
    ("torchvision of this release", FAMILY, beside_torch(VISION), {"torchvision": "pass"}),
)  # fmt: skip
def test_of_which_package_what_is_said(case: str, rule: str, snapshot: Snapshot, found: dict[str, str]) -> None:
    assert ids(snapshot, rule) == found, case


@every(
    (("flash-attn", "2.5.5+cu118torch2.2cxx11abitrue"), "fail"), (("pyg-lib", "0.4.0+pt26cu124"), "fail"),
    (("pyg-lib", "0.4.0+pt25cu124"), None), (("xformers", "0.0.27"), "fail"), (("xformers", "0.0.28.post3"), None),
    (("vllm", "0.6.3.post1"), "fail"), (("sglang", "0.4.6.post1"), "warn"), (("torchmetrics", "1.0.0"), None),
    (("torch-scatter", "2.1.2"), None),
)  # fmt: skip
def test_a_label_or_a_known_release_in_a_list(package: tuple[str, str], status: str | None) -> None:
    assert ids(listed(package), EXTENSION).get("torch") == status


def test_other_environments_are_not_judged() -> None:
    other: Environment = but(having(torch(), OLD_VISION), key="/other", judged=False)
    found = machine()
    assert found.environments is not None
    assert checks_of(FAMILY, but(found, environments__items=(*found.environments.items, other))) == ()


@cases("about, rule, there, expected",
    ("torchvision for another major of CUDA, which it refuses itself", FAMILY, beside_torch(but(VISION, cuda="11.8")),
     {"status": "fail", "message": "…built for CUDA 11.8…"}),
    ("torchvision of another release misses symbols", FAMILY,
     beside_torch(but(OLD_VISION, unresolved=(SYMBOL, "PyList_New"))),
     {"status": "fail", "title": "torchvision 0.19.1+cu124 belongs to another PyTorch than 2.5.1+cu124",
      "evidence": [SYMBOL, f"{SITE}/torchvision/_C.so"],
      "fix": f"{VENV}/bin/python -m pip install --no-deps torchvision==0.20.1+cu124 --index-url {CU124}"}),
    ("torchvision of another release, not looked at", FAMILY, beside_torch(but(OLD_VISION, unresolved=None)),
     {"status": "fail"}),
    ("torchvision of another release finds its symbols", FAMILY, beside_torch(OLD_VISION), {"status": "warn"}),
    ("torchvision of another release cannot be imported", FAMILY, beside_torch(but(OLD_VISION, trial=NOT_IMPORTED)),
     {"status": "fail"}),
    ("torchvision of another release ran", FAMILY, beside_torch(but(OLD_VISION, trial=RAN)), {"status": "note"}),
    ("Triton is held against what PyTorch pins", FAMILY, on(having(PINNING, NEWER_TRITON)),
     {"status": "warn", "subject.key": f"{VENV}:triton", "fix": {"triton==3.1.0"}}),
    ("a list of packages is enough", FAMILY, listed(("torchvision", "0.23.0"), ("torchaudio", "2.8.0")),
     {"status": "fail", "subject.key": f"{VENV}:torch", "fix": {"torchvision==0.20.1"}, "sources": ...}),
    ("the other ABI", EXTENSION, beside_torch(but(FLASH, unresolved=(OTHER_ABI,))),
     {"status": "fail", "message": "…_GLIBCXX_USE_CXX11_ABI…"}),
    ("a PyTorch without CUDA beside an extension for CUDA", EXTENSION,
     on(having(torch("2.5.1+cpu", None), but(FLASH, unresolved=(SYMBOL,)))),
     {"status": "fail", "message": "…built for CUDA, but this PyTorch for the CPU only…", "fix": {f"{CU124}"}}),
    ("torchvision for CUDA beside the same release without", FAMILY,
     on(having(torch("2.5.1+cpu", None), but(VISION, unresolved=(SYMBOL,)))), {"fix": {"torch==2.5.1+cu124", CU124}}),
    ("torchtext, which ended with torch 2.3", FAMILY, listed(("torchtext", "0.18.0"), torch_version="2.8.0"),
     {"status": "fail", "fix": {"torchtext==0.18.0", "torch==2.3.*"}}),
    ("the label of a build for another torch", EXTENSION,
     beside_torch(but(FLASH, built_for={"torch": "2.4"}, unresolved=None)),
     {"status": "fail", "message": "…was built for torch 2.4…"}),
    ("a compiled package before one without compiled parts", EXTENSION,
     listed(("sglang", "0.4.6.post1"), ("vllm", "0.6.3.post1")),
     {"status": "fail", "title": "vllm 0.6.3.post1 was built for…"}),
    ("an extension that misses symbols", EXTENSION,
     beside_torch(but(FLASH, unresolved=(SYMBOL,)), version="2.6.0+cu124"),
     {"status": "fail", "subject.key": f"{VENV}:flash-attn",
      "fix": {"--no-build-isolation", "flash-attn==2.7.4.post1"}}),
    ("a range of releases for this PyTorch", EXTENSION, listed(("torchcodec", "0.10.0"), torch_version="2.8.0"),
     {"fix": {"torchcodec>=0.6,<0.8"}}),
    ("several in one finding", EXTENSION, listed(("xformers", "0.0.27"), ("vllm", "0.6.3.post1")),
     {"title": "…(and 1 more)", "fixes": ("…", "… vllm==0.6.3.post1 torch==2.4.0")}),
    ("xFormers from the index of this CUDA where one build has no label", EXTENSION, beside_torch(OLDER),
     {"fix": f"… xformers==0.0.29 --index-url {CU124}"}),
    ("Flash Attention without its part", BINARY, beside_torch(but(FLASH, binaries=(), unresolved=None)),
     {"status": "fail", "title": "flash-attn 2.7.4.post1+cu12…", "fix": {"--no-build-isolation"}}),
    ("bitsandbytes without a library for this CUDA", BINARY,
     beside_torch(extension("bitsandbytes", "0.41.3", binaries=None, unresolved=None, problem=NO_CUDA_12)),
     {"status": "fail", "message": f"…{NO_CUDA_12}…"}),
)  # fmt: skip
def test_what_rules_say(about: str, rule: str, there: Snapshot, expected: dict[str, Any]) -> None:
    assert said(rule, there, expected) == expected


def test_a_package_without_compiled_parts_is_not_said_to_be_built() -> None:
    check = check_of(EXTENSION, listed(("sglang", "0.4.6.post1")))
    assert "requires another PyTorch" in check.title
    assert not any("--no-build-isolation" in fix.command for fix in check.fixes)


def test_it_accounts_for_the_import_that_fails() -> None:
    broken = beside_torch(but(FLASH, unresolved=(SYMBOL,), trial=NOT_IMPORTED))
    assert [each.explained_by for each in checks_of("framework-import-fails", broken) if each.status == "fail"] == [
        f"{EXTENSION}@{VENV}:flash-attn"
    ]


@cases("there", beside_torch(VISION), listed(("torchvision", "0.20.1"), ("torchaudio", "2.5.1"), ("triton", "3.1.0")))
def test_what_fits_is_no_finding(there: Snapshot) -> None:
    assert bad(there) == []
