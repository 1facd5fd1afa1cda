"""Packages that are built for one PyTorch, beside another one: found on machines and in lists."""

from typing import Any

from envcheck.model.snapshot import Environment, Framework, Snapshot
from tests.every import cases, every
from tests.rules.machines import VENV, bad, but, check_of, checks_of, judge, machine, torch
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
)  # fmt: skip
def test_of_which_package_what_is_said(case: str, rule: str, snapshot: Snapshot, found: dict[str, str]) -> None:
    assert ids(snapshot, rule) == found, case


@cases("case, rule, snapshot, words",
    ("torchvision for another major of CUDA, which it refuses itself", FAMILY, beside_torch(but(VISION, cuda="11.8")),
     "built for CUDA 11.8"),
    ("the other ABI", EXTENSION, beside_torch(but(FLASH, unresolved=(OTHER_ABI,))), "_GLIBCXX_USE_CXX11_ABI"),
    ("a PyTorch without CUDA beside an extension for CUDA", EXTENSION,
     on(having(torch("2.5.1+cpu", None), but(FLASH, unresolved=(SYMBOL,)))),
     "built for CUDA, but this PyTorch for the CPU only"),
    ("the label of a build for another torch", EXTENSION,
     beside_torch(but(FLASH, built_for={"torch": "2.4"}, unresolved=None)), "was built for torch 2.4"),
    ("a compiled package before one without compiled parts", EXTENSION,
     listed(("sglang", "0.4.6.post1"), ("vllm", "0.6.3.post1")), "vllm 0.6.3.post1 was built for"),
    ("bitsandbytes without a library for this CUDA", BINARY, beside_torch(
        extension("bitsandbytes", "0.41.3", binaries=None, unresolved=None, problem=NO_CUDA_12)), NO_CUDA_12),
)  # fmt: skip
def test_a_failure_says_why(case: str, rule: str, snapshot: Snapshot, words: str) -> None:
    check = check_of(rule, snapshot)
    assert check.status == "fail", case
    assert words in check.message or check.title.startswith(words)


# --- the family ---------------------------------------------------------------------------------------------------
def test_torchvision_of_this_release_fits() -> None:
    snapshot = beside_torch(VISION)
    assert ids(snapshot, FAMILY) == {"torchvision": "pass"}
    assert bad(snapshot) == []


def test_torchvision_of_another_release_that_misses_symbols() -> None:
    check = check_of(FAMILY, beside_torch(but(OLD_VISION, unresolved=(SYMBOL, "PyList_New"))))
    assert (check.status, check.title) == (
        "fail",
        "torchvision 0.19.1+cu124 belongs to another PyTorch than 2.5.1+cu124",
    )
    assert (check.evidence[0].value, check.evidence[1].value) == (SYMBOL, f"{SITE}/torchvision/_C.so")
    assert check.fixes[0].command == (
        f"{VENV}/bin/python", "-m", "pip", "install", "--no-deps", "torchvision==0.20.1+cu124",
        "--index-url", "https://download.pytorch.org/whl/cu124",
    )  # fmt: skip


@cases("changes, status",
    ({"unresolved": None}, "fail"), ({}, "warn"), ({"trial": NOT_IMPORTED}, "fail"), ({"trial": RAN}, "note"),
)  # fmt: skip
def test_how_much_another_release_matters(changes: dict[str, Any], status: str) -> None:
    assert check_of(FAMILY, beside_torch(but(OLD_VISION, **changes))).status == status


def test_of_a_release_that_nobody_knows_nothing_is_said() -> None:
    unknown = but(VISION, version="99.1", requires=(), built_for={}, unresolved=None)
    assert ids(beside_torch(unknown), FAMILY) == {"torchvision": "pass"}
    assert ids(listed(("torchvision", "99.1")), FAMILY) == {}


def test_triton_is_held_against_what_pytorch_pins() -> None:
    pinning = torch(requires=('triton==3.1.0; platform_system == "Linux"',))
    triton = Framework(source="wheel metadata", name="triton", version="3.3.0", path=f"{SITE}/triton")
    check = check_of(FAMILY, on(having(pinning, triton)))
    assert (check.status, check.subject.key) == ("warn", f"{VENV}:triton")
    assert "triton==3.1.0" in check.fixes[0].command
    assert ids(on(having(pinning, but(triton, version="3.1.0"))), FAMILY) == {"triton": "pass"}


def test_a_list_of_packages_is_enough() -> None:
    check = check_of(FAMILY, listed(("torchvision", "0.23.0"), ("torchaudio", "2.8.0")))
    assert (check.status, check.subject.key) == ("fail", f"{VENV}:torch")
    assert "torchvision==0.20.1" in check.fixes[0].command
    assert [source.address for source in check.sources]


def test_a_list_that_fits() -> None:
    assert bad(listed(("torchvision", "0.20.1"), ("torchaudio", "2.5.1"), ("triton", "3.1.0"))) == []


# --- extensions ---------------------------------------------------------------------------------------------------
def test_an_extension_that_misses_symbols() -> None:
    check = check_of(EXTENSION, beside_torch(but(FLASH, unresolved=(SYMBOL,)), version="2.6.0+cu124"))
    assert (check.status, check.subject.key) == ("fail", f"{VENV}:flash-attn")
    assert "--no-build-isolation" in check.fixes[0].command
    assert "flash-attn==2.7.4.post1" in check.fixes[0].command


def test_a_range_that_is_met_outranks_what_it_was_built_with() -> None:
    stable = extension("xformers", "0.0.35", built_for={"torch": "2.10.0+cu128"}, requires=("torch>=2.10",))
    assert ids(beside_torch(stable, version="2.11.0+cu130"), EXTENSION) == {"xformers": "pass"}
    assert ids(beside_torch(stable, version="2.9.1+cu128"), EXTENSION) == {"xformers": "warn"}


@every(
    (("flash-attn", "2.5.5+cu118torch2.2cxx11abitrue"), "fail"), (("pyg-lib", "0.4.0+pt26cu124"), "fail"),
    (("pyg-lib", "0.4.0+pt25cu124"), None), (("xformers", "0.0.27"), "fail"), (("xformers", "0.0.28.post3"), None),
    (("vllm", "0.6.3.post1"), "fail"), (("sglang", "0.4.6.post1"), "warn"), (("torchmetrics", "1.0.0"), None),
    (("torch-scatter", "2.1.2"), None),
)  # fmt: skip
def test_a_label_or_a_known_release_in_a_list(package: tuple[str, str], status: str | None) -> None:
    assert ids(listed(package), EXTENSION).get("torch") == status


def test_a_package_without_compiled_parts_is_not_said_to_be_built() -> None:
    check = check_of(EXTENSION, listed(("sglang", "0.4.6.post1")))
    assert "requires another PyTorch" in check.title
    assert not any("--no-build-isolation" in (fix.command or ()) for fix in check.fixes)


def test_several_are_told_in_one_finding() -> None:
    check = check_of(EXTENSION, listed(("xformers", "0.0.27"), ("vllm", "0.6.3.post1")))
    assert check.title.endswith("(and 1 more)")
    assert [fix.command[-1] for fix in check.fixes if "vllm" in fix.text] == ["torch==2.4.0"]


def test_xformers_comes_from_the_index_of_this_cuda_where_one_build_has_no_label() -> None:
    older = extension("xformers", "0.0.27", built_for={"torch": "2.4.0+cu121"}, requires=("torch==2.4.0",))
    command = check_of(EXTENSION, beside_torch(older)).fixes[0].command
    assert command[-2:] == ("--index-url", "https://download.pytorch.org/whl/cu124")
    assert [word for word in command if word.startswith("xformers") and "+" not in word]


def test_it_accounts_for_the_import_that_fails() -> None:
    broken = but(FLASH, unresolved=(SYMBOL,), trial=NOT_IMPORTED)
    (failed,) = [
        check
        for check in judge(beside_torch(broken))
        if check.rule == "framework-import-fails" and check.subject.key.endswith("flash-attn")
    ]
    assert failed.explained_by == f"{EXTENSION}@{VENV}:flash-attn"


# --- compiled parts -----------------------------------------------------------------------------------------------
def test_flash_attn_without_its_part() -> None:
    check = check_of(BINARY, beside_torch(but(FLASH, binaries=(), unresolved=None)))
    assert (check.status, check.title.startswith("flash-attn 2.7.4.post1+cu12")) == ("fail", True)
    assert "--no-build-isolation" in check.fixes[0].command


@cases("changes", {"binaries": None}, {"path": None}, {"binaries": (), "trial": RAN})
def test_where_nobody_looked_or_it_ran_nothing_is_said(changes: dict[str, Any]) -> None:
    assert ids(beside_torch(but(FLASH, **changes)), BINARY) == {}


def test_other_environments_are_not_judged() -> None:
    other: Environment = but(having(torch(), OLD_VISION), key="/other", judged=False)
    found = machine()
    assert found.environments is not None
    assert checks_of(FAMILY, but(found, environments__items=(*found.environments.items, other))) == ()
