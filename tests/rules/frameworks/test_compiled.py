"""Compiled code of packages that are no frameworks: what runs on the GPU, and what belongs to another PyTorch."""

from typing import Any

from envcheck.model.snapshot import Extension, Framework, Gpu, Listing, ObservedError, Snapshot
from tests.every import cases
from tests.rules.engine.test_rules_offered import offered
from tests.rules.machines import (
    VENV,
    bad,
    but,
    check_of,
    checks_of,
    geforce,
    h200,
    machine,
    said,
    statuses,
    torch,
    variables,
    with_venv,
)
from tests.rules.packages.packages_here import SITE, dist, extension, having

CODE, TORCH = "extension-code-missing", "extension-built-for-other-torch"
OLD_ABI, RENAMED = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", "_ZN3c104cuda9SetDeviceEi"
RTX5090 = geforce("NVIDIA GeForce RTX 5090", "12.0", "0x2b8510de")
A100 = but(h200(), name="NVIDIA A100-SXM4-80GB", compute_capability="8.0")


def mine(*code: str, **changes: Any) -> Extension:
    """A folder without metadata, with one library."""
    known = Extension(
        source=f"elf {SITE}/mykernels/_C.so", name="mykernels", path=f"{SITE}/mykernels",
        binaries=(f"{SITE}/mykernels/_C.so",), gpu_code=code or None, unresolved=(),
    )  # fmt: skip
    return but(known, **changes)


def wheel(*code: str, **changes: Any) -> Extension:
    """A package that pip installed."""
    known = {"name": "spam-kernels", "version": "1.2", "path": f"{SITE}/spam_kernels-1.2.dist-info"}
    return mine(*code, **{**known, **changes})


def on(*extensions: Extension, gpu: Gpu | None = None, pytorch: Framework | None = None, **changes: Any) -> Snapshot:
    listed = tuple(dist(each.name, each.version) for each in extensions if each.version)
    environment = having(pytorch or torch("2.8.0+cu128", "12.8"), distributions=listed)
    found = but(environment, extensions=Listing(items=extensions, complete=True))
    return with_venv(machine(gpu or h200(), **changes), found)


NO_KERNEL = ObservedError(
    source="pasted text", text="RuntimeError: CUDA error: no kernel image is available for execution on the device"
)


@cases("code, gpu",
    (("sm_90a",), A100), (("sm_90a", "sm_100f"), A100), (("sm_90a", "sm_100", "compute_120"), A100),
    (("compute_103a",), h200()), (("sm_90a",), RTX5090),
)  # fmt: skip
def test_code_for_certain_gpus_is_used_on_those_alone(code: tuple[str, ...], gpu: Gpu) -> None:
    """torchao and cuequivariance-ops do without it elsewhere; what is built on site is meant for this GPU."""
    pytorch = torch("2.8.0+cu128", "12.8", gpu_code=("sm_80", "sm_90", "sm_120"))
    assert statuses(CODE, on(wheel(*code, ptx={}), gpu=gpu, pytorch=pytorch)) == ("note",)
    assert statuses(CODE, on(mine(*code, ptx={}), gpu=gpu, pytorch=pytorch)) == ("warn",)
    files = mine(*code, ptx={}, binaries=(f"{SITE}/mykernels/one.cubin", f"{SITE}/mykernels/two.ptx"))
    assert checks_of(CODE, on(files, gpu=gpu, pytorch=pytorch)) == (), "as in flashinfer: loaded where they fit"


def test_a_list_that_is_not_whole_passes_nothing() -> None:
    (environment,) = on(mine("sm_90")).environments.items  # type: ignore[union-attr]
    for code, status in ("sm_90", "unknown"), ("sm_80", "warn"):
        some = but(environment, extensions=Listing(items=(mine(code),), complete=False))
        assert statuses(CODE, with_venv(machine(), some)) == (status,)


PAGE = "https://data.pyg.org/whl/torch-2.8.0+cu128.html"


def of_pyg(name: str, *lacking: str) -> Extension:
    return wheel("sm_90", name=name, version="2.1.2", path=f"{SITE}/{name}", unresolved=lacking)


@cases("extensions, command",
    ([of_pyg("torch-scatter", OLD_ABI)], f"torch-scatter==2.1.2 --find-links {PAGE}"),
    ([of_pyg("torch-scatter", OLD_ABI), of_pyg("torch-sparse", OLD_ABI)], f"torch-sparse==2.1.2 --find-links {PAGE}"),
    ([wheel("sm_80"), wheel("sm_80", name="eggs", version="1")], "TORCH_CUDA_ARCH_LIST=9.0 --no-binary eggs"),
    ids=["one", "two, step by step", "of other GPUs"],
)  # fmt: skip
def test_what_is_built_again_is_offered(extensions: list[Extension], command: str) -> None:
    """In the simulation, what it is built of anew is no longer what was read."""
    (check,) = (found for rule, found in offered(on(*extensions)).items() if rule in (CODE, TORCH))
    assert [fix.continues for fix in check.fixes] == [False, True][: len(extensions)]
    assert set(command.split()) <= set(check.fixes[-1].command)


# --- another PyTorch ------------------------------------------------------------------------------------------------


def test_where_the_wheels_for_this_pytorch_lie() -> None:
    scatter = wheel("sm_90", name="torch-scatter", version="2.1.2+pt25cu124", unresolved=(RENAMED,))
    (fix,) = check_of(TORCH, on(scatter)).fixes
    assert fix.command[-4:] == (
        "--no-deps", "torch-scatter==2.1.2", "--find-links", "https://data.pyg.org/whl/torch-2.8.0+cu128.html",
    )  # fmt: skip
    conv = wheel("sm_90", name="causal-conv1d", version="1.7.0", unresolved=(RENAMED,))
    for pytorch, abi in ("2.8.0+cu128", "cu12torch2.8cxx11abiTRUE"), ("2.5.1+cu124", "cu12torch2.5cxx11abiFALSE"):
        (fix,) = check_of(TORCH, on(conv, pytorch=torch(pytorch, "12.4"))).fixes
        assert f"causal_conv1d-1.7.0+{abi}-cp312-cp312-linux_x86_64.whl" in fix.text
        assert fix.command[-2:] == ("--no-binary", "causal-conv1d")


def test_the_packages_own_variable() -> None:
    natten = wheel("sm_80", name="natten", version="0.21.7")
    assert check_of(CODE, on(natten)).fixes[0].command[1] == "NATTEN_CUDA_ARCH=9.0"
    flash = extension("flash-attn", "2.8.3", gpu_code=("sm_80", "sm_90"))
    pytorch = torch("2.8.0+cu128", "12.8", gpu_code=("sm_120",))
    environment = having(pytorch, flash, distributions=(dist("flash-attn", "2.8.3"),))
    found = checks_of("gpu-code-missing", with_venv(machine(RTX5090), environment))
    (check,) = (each for each in found if each.status == "warn")
    assert check.fixes[-1].command[:3] == ("env", "FLASH_ATTENTION_FORCE_BUILD=TRUE", "FLASH_ATTN_CUDA_ARCHS=120")
    engine = wheel("sm_80", name="transformer-engine-torch", version="2.20.2")
    assert check_of(CODE, on(engine)).fixes[0].command[1] == "NVTE_CUDA_ARCHS=90"


def test_an_extension_whose_symbols_are_all_there() -> None:
    assert bad(on(mine("sm_90"), wheel("sm_90"))) == []


HAS_120 = torch("2.8.0+cu128", "12.8", gpu_code=("sm_120",))
OLD_TORCH, OLDER_TORCH = (torch("2.8.0+cu128", "12.8", gpu_code=(code,)) for code in ("sm_80", "sm_70"))
LOGS = "_ZN3c104cuda19CUDAErrorLogCaptureC1Ev"
UNKNOWN = but(h200(), name="NVIDIA X", pci_device_id="0xffff10de", compute_capability=None)
TWO_KINDS = Listing(items=(h200(0), but(A100, index=1, uuid="GPU-2")), complete=True)
CACHED = "/home/ada/.cache/torch_extensions/py312_cu128/fused"
AGAIN = (
    f"env TORCH_CUDA_ARCH_LIST=12.0a {VENV}/bin/python -m pip install --force-reinstall --no-deps spam-kernels==1.2 "
    "--no-build-isolation --no-cache-dir --no-binary spam-kernels"
)
TOLD = but(on(mine("sm_80")), observed_errors=(NO_KERNEL,))


def with_ptx(*code: str, isa: str = "8.0") -> Snapshot:
    return on(mine(*code, ptx={target: isa for target in code if target.startswith("compute")}))


def in_cache(**setting: str) -> Snapshot:
    """What PyTorch compiles again for the GPU that is there, unless a variable names others."""
    return on(mine("sm_80", cache="py312_cu128", path=CACHED), variables=variables(**setting))


@cases("rule, about, there, expected",
    (CODE, "for an older generation alone", on(mine("sm_80")),
     {"status": "warn", "title": "mykernels has no code that runs on GPU 0 (NVIDIA H200)",
      "message": "mykernels: it holds GPU code for sm_80, none of which runs on sm_90.",
      "evidence": ("sm_80", f"{SITE}/mykernels/_C.so", "9.0"),
      "fixes": ("Build mykernels again from its source with TORCH_CUDA_ARCH_LIST=9.0 in the environment",)}),
    (CODE, "for this generation", on(mine("sm_90")), ("pass",)),
    (CODE, "for a newer GPU alone", on(mine("sm_90"), gpu=A100), ("warn",)),
    (CODE, "none", on(mine()), ()),
    (CODE, "not looked for", with_venv(machine(), having(torch())), ()),
    *((CODE, f"that runs: {code}", with_ptx(*code.split()), {"status": "pass", "evidence": [code]})
      for code in ("sm_90", "sm_80 sm_90", "sm_90a", "sm_80 compute_80", "sm_80 compute_90")),
    # The driver of CUDA 12.4 reads PTX 8.4; of an ISA that nobody knows nothing is said
    (CODE, "PTX that the driver reads", with_ptx("sm_80", "compute_80", isa="8.4"), ("pass",)),
    (CODE, "PTX that it does not", with_ptx("sm_80", "compute_80", isa="8.8"),
     {"status": "warn", "message": "…cannot read the PTX of CUDA 12.9…"}),
    (CODE, "PTX that nobody knows", with_ptx("sm_80", "compute_80", isa="99.9"), ()),
    (CODE, "GPUs of two kinds", but(on(mine("sm_90")), gpus=TWO_KINDS),
     {"status": "warn", "title": "…A100…", "message": "…(1 of 2 GPUs)…"}),
    (CODE, "a wheel is built again with its variable", on(wheel("sm_80", "sm_90a"), gpu=RTX5090, pytorch=HAS_120),
     {"title": "spam-kernels 1.2 has no code…", "fix": AGAIN}),
    (CODE, "a package without PyTorch names both settings", on(wheel("sm_70", "sm_80", unresolved=None)),
     {"fixes": ("…CMAKE_CUDA_ARCHITECTURES=90…",), "text": "…TORCH_CUDA_ARCH_LIST=9.0…"}),
    (CODE, "the CUDA of PyTorch does not compile for the GPU",
     on(mine("sm_90"), gpu=RTX5090, pytorch=but(HAS_120, cuda="12.4")),
     {"text": "…CUDA 12.8 is the first that compiles for it…"}),
    (CODE, "PyTorch's cache", in_cache(), {"status": "note", "fix": f"rm -r -- {CACHED}"}),
    (CODE, "PyTorch's cache for other GPUs", in_cache(TORCH_CUDA_ARCH_LIST="8.0"),
     {"status": "warn", "fix": f"rm -r -- {CACHED}"}),
    (CODE, "PyTorch without code is told alone", on(mine("sm_80"), pytorch=OLD_TORCH), ()),
    ("gpu-code-missing", "PyTorch without code is told alone", on(mine("sm_80"), pytorch=OLD_TORCH), ("fail",)),
    (CODE, "no GPU", but(on(mine("sm_80")), gpus=Listing(complete=True)), ()),
    (CODE, "a GPU that nobody knows", on(mine("sm_80"), gpu=UNKNOWN), ()),
    ("gpu-code-missing", "a program's error is explained by the extension", TOLD,
     {"status": "fail", "explained_by": f"{CODE}@{VENV}"}),
    (CODE, "a program's error", TOLD, {"status": "fail", "decided_by": "framework-ran", "cause": CODE}),
    ("gpu-code-missing", "PyTorch itself lacks code",
     but(on(mine("sm_80"), pytorch=OLDER_TORCH), observed_errors=(NO_KERNEL,)), {"cause": "gpu-code-missing"}),
    (TORCH, "symbols of an unknown extension", on(mine("sm_90", unresolved=(RENAMED, "PyList_New"))),
     {"status": "fail", "title": "mykernels was built for another PyTorch than 2.8.0+cu128",
      "evidence": [RENAMED, f"{SITE}/mykernels/_C.so"], "fix": "Build mykernels again…"}),
    (TORCH, "symbols of a package that has metadata", on(wheel("sm_90", unresolved=(RENAMED,))),
     {"status": "fail", "fix": {"spam-kernels==1.2"}}),
    *((TORCH, f"for which PyTorch it was built: {symbols}", on(mine("sm_90", unresolved=symbols)),
       {"message": f"…{built}…"}) for symbols, built in (
        ((RENAMED,), "torch 2.1 to 2.2"), ((RENAMED, OLD_ABI), "torch 2.1 to 2.2"),
        ((OLD_ABI,), "torch 2.6 or older"), (("_ZN3c104cuda9SetDeviceEa", OLD_ABI), "torch 2.3 to 2.6"),
        ((LOGS,), "torch 2.13 or newer"), ((RENAMED, LOGS), "another release, or another kind of build"),
        (("_ZN2at9somethingEv",), "another release, or another kind of build"))),
    (TORCH, "a package that does without its libraries",
     on(wheel("sm_90a", name="torchao", version="0.18.0", unresolved=("torch_list_push_back",))), ("warn",)),
)  # fmt: skip
def test_what_rules_say(rule: str, about: str, there: Snapshot, expected: Any) -> None:
    assert said(rule, there, expected) == expected
