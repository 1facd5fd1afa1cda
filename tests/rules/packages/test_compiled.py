"""Compiled code of packages that are no frameworks: what runs on the GPU, and what belongs to another PyTorch."""

from typing import Any

from envcheck.model.snapshot import Extension, Framework, Gpu, Listing, ObservedError, Snapshot
from tests.every import cases
from tests.rules.engine.test_rules_offered import offered
from tests.rules.machines import (
    VENV,
    bad,
    but,
    cause,
    check_of,
    checks_of,
    geforce,
    h200,
    machine,
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
        source=f"elf {SITE}/mykernels/_C.so",
        name="mykernels",
        path=f"{SITE}/mykernels",
        binaries=(f"{SITE}/mykernels/_C.so",),
        gpu_code=code or None,
        unresolved=(),
    )
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


CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    (CODE, "code for an older generation alone", on(mine("sm_80")), ("warn",)),
    (CODE, "code for this generation", on(mine("sm_90")), ("pass",)),
    (CODE, "no GPU code", on(mine()), ()),
    (CODE, "not looked for", with_venv(machine(), having(torch())), ()),
    (TORCH, "a symbol that is gone", on(mine("sm_90", unresolved=(RENAMED,))), ("fail",)),
]


@cases("rule, case, snapshot, expected", *CASES)
def test_rules(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    del case
    assert statuses(rule, snapshot) == expected


NO_KERNEL = ObservedError(
    source="pasted text", text="RuntimeError: CUDA error: no kernel image is available for execution on the device"
)


def test_an_error_of_a_program_is_explained_by_the_extension_without_code() -> None:
    snapshot = but(on(mine("sm_80")), observed_errors=(NO_KERNEL,))
    told = check_of("gpu-code-missing", snapshot)
    check = check_of(CODE, snapshot)
    assert (told.status, told.explained_by) == ("fail", check.id)
    assert (check.status, check.decided_by) == ("fail", "framework-ran")
    assert cause(snapshot) == CODE


def test_an_extension_does_not_explain_what_pytorch_itself_lacks() -> None:
    old = torch("2.8.0+cu128", "12.8", gpu_code=("sm_70",))
    snapshot = but(on(mine("sm_80"), pytorch=old), observed_errors=(NO_KERNEL,))
    assert cause(snapshot) == "gpu-code-missing"


def test_code_for_an_older_generation_alone() -> None:
    check = check_of(CODE, on(mine("sm_80")))
    assert (check.status, check.title) == ("warn", "mykernels has no code that runs on GPU 0 (NVIDIA H200)")
    assert check.message == "mykernels: it holds GPU code for sm_80, none of which runs on sm_90."
    assert [each.value for each in check.evidence] == ["sm_80", f"{SITE}/mykernels/_C.so", "9.0"]
    (fix,) = check.fixes
    assert fix.text == "Build mykernels again from its source with TORCH_CUDA_ARCH_LIST=9.0 in the environment"


def test_a_wheel_is_built_again_with_its_variable() -> None:
    pytorch = torch("2.8.0+cu128", "12.8", gpu_code=("sm_120",))
    check = check_of(CODE, on(wheel("sm_80", "sm_90a"), gpu=RTX5090, pytorch=pytorch))
    assert check.title.startswith("spam-kernels 1.2 has no code")
    assert check.fixes[0].command == (
        "env", "TORCH_CUDA_ARCH_LIST=12.0a", f"{VENV}/bin/python", "-m", "pip", "install", "--force-reinstall",
        "--no-deps", "spam-kernels==1.2", "--no-build-isolation", "--no-cache-dir", "--no-binary", "spam-kernels",
    )  # fmt: skip


def test_a_package_without_pytorch_names_both_settings() -> None:
    check = check_of(CODE, on(wheel("sm_70", "sm_80", unresolved=None)))
    (fix,) = check.fixes
    assert "CMAKE_CUDA_ARCHITECTURES=90" in fix.text
    assert "TORCH_CUDA_ARCH_LIST=9.0" in fix.text


def test_the_cuda_of_pytorch_may_not_compile_for_the_gpu() -> None:
    check = check_of(CODE, on(mine("sm_90"), gpu=RTX5090, pytorch=torch("2.8.0+cu128", "12.4", gpu_code=("sm_120",))))
    assert "CUDA 12.8 is the first that compiles for it" in check.fixes[0].text


@cases("code",
    ("sm_90",), ("sm_80", "sm_90"), ("sm_90a",), ("sm_80", "compute_80"), ("sm_80", "compute_90"),
)  # fmt: skip
def test_code_that_runs(code: tuple[str, ...]) -> None:
    ptx = {target: "8.0" for target in code if target.startswith("compute")}
    check = check_of(CODE, on(mine(*code, ptx=ptx)))
    assert (check.status, check.evidence[0].value) == ("pass", " ".join(code))


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


def test_plain_code_for_a_newer_gpu_alone() -> None:
    assert statuses(CODE, on(mine("sm_90"), gpu=A100)) == ("warn",)


@cases("isa, status", ("8.4", "pass"), ("8.8", "warn"), ("99.9", None))
def test_ptx_that_the_driver_reads_or_not(isa: str, status: str | None) -> None:
    """The driver of CUDA 12.4 reads PTX 8.4; of an ISA that nobody knows nothing is said."""
    snapshot = on(mine("sm_80", "compute_80", ptx={"compute_80": isa}))
    assert statuses(CODE, snapshot) == ((status,) if status else ())
    if status == "warn":
        assert "cannot read the PTX of CUDA 12.9" in check_of(CODE, snapshot).message


def test_gpus_of_two_kinds() -> None:
    snapshot = on(mine("sm_90"))
    both = but(snapshot, gpus=Listing(items=(h200(0), but(A100, index=1, uuid="GPU-2")), complete=True))
    check = check_of(CODE, both)
    assert (check.status, "A100" in check.title, "(1 of 2 GPUs)" in check.message) == ("warn", True, True)


@cases("setting, status", ({}, "note"), ({"TORCH_CUDA_ARCH_LIST": "8.0"}, "warn"))
def test_the_cache_of_pytorch(setting: dict[str, str], status: str) -> None:
    """It is compiled again for the GPU that is there, unless a variable names others."""
    folder = "/home/ada/.cache/torch_extensions/py312_cu128/fused"
    check = check_of(CODE, on(mine("sm_80", cache="py312_cu128", path=folder), variables=variables(**setting)))
    assert (check.status, check.fixes[0].command) == (status, ("rm", "-r", "--", folder))


def test_pytorch_without_code_is_told_alone() -> None:
    pytorch = torch("2.8.0+cu128", "12.8", gpu_code=("sm_80",))
    assert checks_of(CODE, on(mine("sm_80"), pytorch=pytorch)) == ()
    assert statuses("gpu-code-missing", on(mine("sm_80"), pytorch=pytorch)) == ("fail",)


def test_the_question_does_not_arise() -> None:
    assert checks_of(CODE, but(on(mine("sm_80")), gpus=Listing(complete=True))) == ()
    unknown = but(h200(), name="NVIDIA X", pci_device_id="0xffff10de", compute_capability=None)
    assert checks_of(CODE, on(mine("sm_80"), gpu=unknown)) == ()


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
def test_symbols_of_an_unknown_extension() -> None:
    check = check_of(TORCH, on(mine("sm_90", unresolved=(RENAMED, "PyList_New"))))
    assert (check.status, check.title) == ("fail", "mykernels was built for another PyTorch than 2.8.0+cu128")
    assert (check.evidence[0].value, check.evidence[1].value) == (RENAMED, f"{SITE}/mykernels/_C.so")
    assert check.fixes[0].text.startswith("Build mykernels again")
    assert check.fixes[0].command == ()


def test_symbols_of_a_package_that_has_metadata() -> None:
    check = check_of(TORCH, on(wheel("sm_90", unresolved=(RENAMED,))))
    assert check.status == "fail"
    assert "spam-kernels==1.2" in check.fixes[0].command


@cases("symbols, built",
    ((RENAMED,), "torch 2.1 to 2.2"), ((RENAMED, OLD_ABI), "torch 2.1 to 2.2"), ((OLD_ABI,), "torch 2.6 or older"),
    (("_ZN3c104cuda9SetDeviceEa", OLD_ABI), "torch 2.3 to 2.6"),
    (("_ZN3c104cuda19CUDAErrorLogCaptureC1Ev",), "torch 2.13 or newer"),
    ((RENAMED, "_ZN3c104cuda19CUDAErrorLogCaptureC1Ev"), "another release, or another kind of build"),
    (("_ZN2at9somethingEv",), "another release, or another kind of build"),
)  # fmt: skip
def test_for_which_pytorch_by_the_symbols(symbols: tuple[str, ...], built: str) -> None:
    assert built in check_of(TORCH, on(mine("sm_90", unresolved=symbols))).message


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


def test_a_package_that_does_without_its_libraries() -> None:
    torchao = wheel("sm_90a", name="torchao", version="0.18.0", unresolved=("torch_list_push_back",))
    assert statuses(TORCH, on(torchao)) == ("warn",)


def test_an_extension_whose_symbols_are_all_there() -> None:
    assert bad(on(mine("sm_90"), wheel("sm_90"))) == []
