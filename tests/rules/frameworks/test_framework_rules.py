"""Environments of many frameworks: which decide, which only warn, and CPU builds where a text wants CUDA."""

from typing import Any

import pytest

from envcheck.model.checks import Check, Status
from envcheck.model.snapshot import Distribution, Driver, Environment, Framework, Listing, ObservedError, Snapshot
from tests.every import cases, every
from tests.known import known
from tests.rules.machines import (
    VENV,
    but,
    check_of,
    checks_of,
    driver,
    geforce,
    gpus,
    h200,
    judge,
    kernel,
    machine,
    torch,
    variables,
    venv,
    with_venv,
    without_gpu,
)

T4 = geforce("Tesla T4", "7.5", "10de:1eb8")
OLD_CODE = ("sm_50", "sm_60", "sm_70", "sm_75")


def framework(name: str, version: str = "1.0", **fields: Any) -> Framework:
    path = f"{VENV}/lib/python3.12/site-packages/{name.replace('-', '_')}"
    return Framework(source="wheel metadata", name=name, version=version, path=path, **fields)


ONNX = framework("onnxruntime", "1.31.1", cpu_only=True, providers=("CPU",))
ONNX_GPU = framework("onnxruntime-gpu", "1.31.1", cuda="13.0", cpu_only=False, gpu_code=("sm_75", "sm_80", "sm_90"))
JAX_LINES = (
    'jax-cuda12-plugin[with-cuda]<=0.12.0,>=0.12.0; extra == "cuda12"',
    'jax-cuda13-plugin[with-cuda]<=0.12.0,>=0.12.0; extra == "cuda13"',
)
JAX = framework("jax", "0.12.0", cpu_only=True, requires=JAX_LINES)
JAX_CUDA = framework("jax", "0.12.0", cpu_only=False, cuda="12")
PLUGIN = framework("jax-cuda12-plugin", "0.12.0", extends="jax", cuda="12", cpu_only=False, gpu_code=("sm_90",))
TF_CPU = framework("tensorflow-cpu", "2.21.0", cpu_only=True)
FLASH = framework("flash-attn", "2.8.3", extends="torch", cpu_only=False, gpu_code=("sm_80", "sm_90"))
VISION_CPU = framework("torchvision", "0.20.1+cpu", extends="torch", cpu_only=True)
LLAMA = framework("llama-cpp-python", "0.3.36", cpu_only=True)
TRITON = framework("triton", "3.1.0", cuda="12.4", cpu_only=False)
NUMBA = framework("numba", "0.68.1")
CUPY = framework("cupy-cuda12x", "13.3.0", cuda="12", cpu_only=False, gpu_code=OLD_CODE)
CUDA_TORCH = torch()


def on(release: str, *frameworks: Framework, found: Any = None, **changes: Any) -> Snapshot:
    """A machine with this driver, and an environment with these frameworks."""
    base = machine(*((found,) if found else ()), driver=driver(release, cuda=None), kernel=kernel(release=release))
    return with_venv(base, venv(*frameworks, **changes))


def about(rule: str, name: str, snapshot: Snapshot) -> Check | None:
    """The check of this rule on the framework of that name."""
    return next((check for check in checks_of(rule, snapshot) if check.subject.key.endswith(f":{name}")), None)


def status(rule: str, name: str, snapshot: Snapshot) -> Status | None:
    found = about(rule, name, snapshot)
    return found.status if found else None


# --- a build without CUDA -----------------------------------------------------------------------------------------
@every(
    ([torch("2.5.1+cpu", None)], "torch", "fail"), ([torch("2.5.1+cpu", None), JAX_CUDA], "torch", "fail"),
    ([ONNX], "onnxruntime", "warn"), ([ONNX, CUDA_TORCH], "onnxruntime", "note"),
    ([ONNX, torch("2.5.1+cpu", None)], "onnxruntime", "warn"), ([JAX], "jax", "warn"),
    ([JAX, CUDA_TORCH], "jax", "warn"), ([JAX_CUDA, PLUGIN], "jax", "pass"), ([TF_CPU], "tensorflow-cpu", "fail"),
    ([TF_CPU, CUDA_TORCH], "tensorflow-cpu", "warn"), ([LLAMA], "llama-cpp-python", "warn"),
    ([VISION_CPU, CUDA_TORCH], "torchvision", "warn"), ([VISION_CPU, torch("2.5.1+cpu", None)], "torchvision", None),
    ([NUMBA, CUDA_TORCH], "numba", None), ([framework("cupy", "13.3.0"), CUDA_TORCH], "cupy", "skipped"),
)  # fmt: skip
def test_how_much_a_build_without_cuda_matters(frameworks: list[Framework], name: str, expected: Status | None) -> None:
    assert status("cpu-only-build", name, on("550.54.14", *frameworks)) == expected


def test_a_gpu_package_that_lost_its_files_is_a_warning_beside_anything() -> None:
    lost = Distribution(source="wheel metadata", name="onnxruntime-gpu", version="1.31.1")
    distributions = (*(venv(ONNX, CUDA_TORCH).distributions or ()), lost)
    assert (
        status("cpu-only-build", "onnxruntime", on("550.54.14", ONNX, CUDA_TORCH, distributions=distributions))
        == "warn"
    )


def test_cpu_builds_of_frameworks_are_notes_where_there_is_no_gpu() -> None:
    found = checks_of("cpu-only-build", with_venv(without_gpu(), venv(ONNX, JAX, TF_CPU, LLAMA)))
    assert {check.status for check in found} == {"note"}
    assert not any("llama" in check.id for check in found)


def test_a_build_for_the_cpu_that_pythonpath_leads_to_is_taken_off_it() -> None:
    """Nothing that is installed in the environment comes before it."""
    lent = but(ONNX, path="/opt/lent/onnxruntime")
    for value, expected in (("/else:/opt/lent/", True), ("/opt/len", False), ("", False)):
        snapshot = but(on("550.54.14", lent), variables=variables(PYTHONPATH=value))
        (first, *_) = check_of("cpu-only-build", snapshot).fixes
        assert (first.command == ("env", "-u", "PYTHONPATH", "python")) is expected
        assert ("/opt/lent" in first.text) is expected


def test_the_message_names_what_is_missing() -> None:
    found = known(about("cpu-only-build", "onnxruntime", on("550.54.14", ONNX)))
    assert found.title == "ONNX Runtime cannot use the GPU: CPU-only build"
    assert found.message == "onnxruntime 1.31.1 has no CUDA provider, only: CPU."
    found = known(about("cpu-only-build", "jax", on("550.54.14", JAX)))
    assert found.message == "jax 0.12.0 has no CUDA plug-in here."


# --- what mends it ------------------------------------------------------------------------------------------------
def commands(name: str, release: str, *frameworks: Framework, **changes: Any) -> list[tuple[str, ...]]:
    found = known(about("cpu-only-build", name, on(release, *frameworks, **changes)))
    return [fix.command for fix in found.fixes]


PIP = (f"{VENV}/bin/python", "-m", "pip")


def test_onnxruntime_is_removed_before_onnxruntime_gpu_is_installed() -> None:
    removed, installed = commands("onnxruntime", "595.10", ONNX)
    assert removed == (*PIP, "uninstall", "--yes", "onnxruntime")
    assert installed == (*PIP, "install", "onnxruntime-gpu[cuda,cudnn]")


def test_an_older_driver_gets_a_release_that_it_runs() -> None:
    _, installed = commands("onnxruntime", "550.54.14", ONNX)
    assert installed[-1].startswith("onnxruntime-gpu[cuda,cudnn]>=")
    assert ",<" in installed[-1]


@cases("release, wanted", ("595.10", "jax[cuda13]==0.12.0"), ("550.54.14", "jax[cuda12]==0.12.0"))
def test_jax_gets_the_newest_plugin_that_the_driver_runs(release: str, wanted: str) -> None:
    assert commands("jax", release, JAX) == [(*PIP, "install", wanted)]
    (by_uv,) = commands("jax", release, JAX, manager="uv")
    assert by_uv == ("uv", "pip", "install", "--python", VENV, wanted)


def test_jax_whose_metadata_names_no_plugin_gets_a_page() -> None:
    (fix,) = check_of("cpu-only-build", on("550.54.14", but(JAX, requires=()))).fixes
    assert fix.command == ()
    assert fix.text == "Install a build of JAX for CUDA: https://docs.jax.dev/en/latest/installation.html"


def test_tensorflow_for_the_cpu_is_replaced() -> None:
    removed, installed = commands("tensorflow-cpu", "550.54.14", TF_CPU)
    assert removed[-1] == "tensorflow-cpu"
    assert installed == (*PIP, "install", "tensorflow[and-cuda]==2.21.0")


def test_llama_cpp_is_compiled_anew() -> None:
    (command,) = commands("llama-cpp-python", "550.54.14", LLAMA)
    assert command[:2] == ("env", "CMAKE_ARGS=-DGGML_CUDA=on")
    assert command[-2:] == ("llama-cpp-python==0.3.36", "--no-cache-dir")


def test_torchvision_comes_from_the_index_of_torchs_cuda() -> None:
    (command,) = commands("torchvision", "550.54.14", VISION_CPU, CUDA_TORCH)
    index = "https://download.pytorch.org/whl/cu124"
    assert command == (*PIP, "install", "--force-reinstall", "--no-deps", "torchvision==0.20.1", "--index-url", index)


def test_where_pip_may_not_install_an_environment_is_made_first() -> None:
    first, second = commands("jax", "550.54.14", JAX, externally_managed=True, executable="/usr/bin/python3")
    assert first == ("/usr/bin/python3", "-m", "venv", ".venv")
    assert second == (".venv/bin/python", "-m", "pip", "install", "jax[cuda12]==0.12.0")


@cases("version", "0.12.0; rm -rf ~", "$(x)", "0.12.0 --pre", "")
def test_no_hostile_version_reaches_a_command(version: str) -> None:
    assert commands("jax", "550.54.14", but(JAX, version=version)) == [(*PIP, "install", "jax[cuda12]")]


# --- code for the GPU ---------------------------------------------------------------------------------------------
@every(
    ([ONNX_GPU], "onnxruntime-gpu", "pass"), ([but(ONNX_GPU, gpu_code=OLD_CODE)], "onnxruntime-gpu", "fail"),
    ([but(ONNX_GPU, gpu_code=None)], "onnxruntime-gpu", "skipped"), ([CUPY], "cupy-cuda12x", "warn"),
    ([but(CUPY, gpu_code=None)], "cupy-cuda12x", None), ([JAX_CUDA, PLUGIN], "jax", None),
    ([JAX_CUDA, PLUGIN], "jax-cuda12-plugin", "pass"),
    ([JAX_CUDA, but(PLUGIN, gpu_code=OLD_CODE)], "jax-cuda12-plugin", "warn"),
    ([CUDA_TORCH, but(FLASH, gpu_code=OLD_CODE)], "flash-attn", "warn"),
    ([CUDA_TORCH, but(FLASH, gpu_code=None)], "flash-attn", None), ([CUDA_TORCH, TRITON], "triton", None),
)  # fmt: skip
def test_code_for_an_h200(frameworks: list[Framework], name: str, expected: Status | None) -> None:
    assert status("gpu-code-missing", name, on("595.10", *frameworks)) == expected


def test_flash_attention_needs_a_newer_gpu_than_torch_does() -> None:
    snapshot = on("550.54.14", CUDA_TORCH, FLASH, found=T4)
    assert (status("gpu-code-missing", "torch", snapshot), status("gpu-code-missing", "flash-attn", snapshot)) == (
        "pass",
        "warn",
    )
    found = known(about("gpu-code-missing", "flash-attn", snapshot))
    (fix,) = found.fixes
    assert "compute capability 7.5" in fix.text
    assert fix.command == ()


@every(("8.6.1", "12.0", "fail"), ("8.6.1", "8.9", None), ("10.3.0", "6.1", "fail"), ("10.8.0", "12.0", None))
def test_documents_decide_where_the_gpu_code_is_not_known(
    version: str, capability: str, expected: Status | None
) -> None:
    found = geforce("NVIDIA GPU", capability, "10de:0001")
    snapshot = on("580.95.05", framework("tensorrt", version, cpu_only=False), found=found)
    told = [check for check in checks_of("gpu-code-missing", snapshot) if check.subject.key.endswith(":tensorrt")]
    assert [check.status for check in told] == ([expected] if expected else [])
    assert all("compute capability" in check.message for check in told)


def test_an_extension_of_a_torch_without_code_has_nothing_to_add() -> None:
    snapshot = on("550.54.14", torch(gpu_code=OLD_CODE), but(FLASH, gpu_code=OLD_CODE))
    assert (status("gpu-code-missing", "torch", snapshot), status("gpu-code-missing", "flash-attn", snapshot)) == (
        "fail",
        None,
    )


def test_a_side_package_that_nobody_could_read_leaves_the_verdict_alone() -> None:
    unreadable = [but(FLASH, gpu_code=None), but(TRITON, cuda=None), NUMBA, framework("tensorrt", cpu_only=False)]
    snapshot = on("550.54.14", CUDA_TORCH, *unreadable)
    required = [check for check in judge(snapshot) if check.rule in ("driver-too-old", "gpu-code-missing")]
    assert {check.subject.key.rpartition(":")[2]: check.status for check in required} == {"torch": "pass"}


# --- the driver ---------------------------------------------------------------------------------------------------
@every(
    ([ONNX_GPU], "onnxruntime-gpu", "fail"), ([JAX_CUDA, PLUGIN], "jax", "pass"),
    ([JAX_CUDA, PLUGIN], "jax-cuda12-plugin", None), ([but(PLUGIN, cuda="13")], "jax-cuda12-plugin", "warn"),
    ([CUDA_TORCH, but(FLASH, cuda="13.0")], "flash-attn", None), ([TRITON], "triton", "pass"),
    ([but(TRITON, cuda="13.0")], "triton", "warn"), ([CUDA_TORCH, but(TRITON, cuda="13.0")], "triton", "note"),
    ([CUDA_TORCH, framework("vllm", "0.11.0"), but(TRITON, cuda="13.0")], "triton", "warn"), ([NUMBA], "numba", None),
    ([CUPY], "cupy-cuda12x", "pass"),
)  # fmt: skip
def test_a_driver_that_speaks_cuda_12_4(frameworks: list[Framework], name: str, expected: Status | None) -> None:
    assert status("driver-too-old", name, on("550.54.14", *frameworks)) == expected


def test_only_frameworks_of_their_own_are_told_to_be_newer_than_the_driver() -> None:
    snapshot = on("535.183.01", CUDA_TORCH, TRITON, but(FLASH, cuda="12.4"))
    keys = [check.subject.key.rpartition(":")[2] for check in checks_of("driver-older-than-toolkit", snapshot)]
    assert keys == ["torch"]


def environment_of_an_h200() -> Environment:
    """What one real environment holds: PyTorch, JAX and CuPy for CUDA 13, ONNX Runtime for the CPU."""
    code = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
    return venv(
        torch("2.11.0+cu130", "13.0", gpu_code=code),
        framework("triton", "3.6.0", cuda="12.8", cpu_only=False),
        framework("jax", "0.11.2", cuda="13", cpu_only=False),
        framework("jax-cuda13-plugin", "0.11.2", extends="jax", cuda="13", cpu_only=False, gpu_code=code),
        framework("onnxruntime", "1.30.0", cpu_only=True, providers=("CPU",)),
        framework("cupy-cuda13x", "14.2.0", cuda="13", cpu_only=False, gpu_code=(*code, "compute_120")),
        NUMBA,
        framework("numba-cuda", "0.30.4", extends="numba", cpu_only=False),
    )


def test_a_healthy_environment_of_many_frameworks() -> None:
    base = machine(h200(), driver=driver("580.159.04", cuda=None), kernel=kernel(release="580.159.04"))
    checks = [check for check in judge(with_venv(base, environment_of_an_h200())) if check.subject.kind == "framework"]
    telling = {(check.rule, check.subject.key.rpartition(":")[2]): check.status for check in checks}
    assert {key: value for key, value in telling.items() if value not in ("pass", "skipped")} == {
        ("cpu-only-build", "onnxruntime"): "note"
    }


# --- CPU builds in texts that list no GPUs: judged where the text wants CUDA ----------------------------------------
CPU_BUILD = torch("2.5.1+cpu", None)


def with_package(name: str, version: str, framework: Framework = CPU_BUILD) -> Listing[Environment]:
    """A pasted list of packages: torch, and another one."""
    other = Distribution(source="pasted text", name=name, version=version)
    return Listing(items=(venv(framework, source="pasted text", distributions=(other,)),))


def text_of(*errors: str, **changes: object) -> Snapshot:
    """What a text tells that lists no GPUs: torch's CPU build, and lines of errors."""
    found = with_venv(Snapshot(), venv(CPU_BUILD, source="pasted text"))
    lines = tuple(ObservedError(source="pasted text", text=text, line=9) for text in errors)
    return but(found, observed_errors=lines, **changes)


WANTED: list[tuple[str, Snapshot, str]] = [
    ("a driver", text_of(driver=Driver(source="pasted text", release="535.54.03")), "535.54.03"),
    ("what a driver speaks", text_of(driver=Driver(source="pasted text", cuda="12.2")), "12.2"),
    ("a choice of GPUs", text_of(variables=variables(CUDA_VISIBLE_DEVICES="0,1")), "0,1"),
    ("CUDA's libraries", text_of(environments=with_package("nvidia-nccl-cu12", "2.27.5")), "2.27.5"),
    ("conda's toolkit", text_of(environments=with_package("cudatoolkit", "11.3.1")), "11.3.1"),
    ("an error", text_of("ImportError: libcudart.so.12: cannot open shared object file"),
     "ImportError: libcudart.so.12: cannot open shared object file"),
    ("a question", text_of(">>> torch.cuda.is_available()"), ">>> torch.cuda.is_available()"),
]  # fmt: skip


@pytest.mark.parametrize(("sign", "snapshot", "value"), WANTED, ids=[each[0] for each in WANTED])
def test_a_cpu_build_in_a_text_that_wants_cuda(sign: str, snapshot: Snapshot, value: str) -> None:
    found = check_of("cpu-only-build", snapshot)
    assert (found.status, found.confidence, found.decided_by) == ("fail", "medium", "declared")
    assert value in [each.value for each in found.evidence]


@cases(
    "snapshot",
    text_of(),
    text_of("ValueError: too many values to unpack"),
    text_of("torch/cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated."),
    text_of("E0000 cuda_dnn.cc:8310] Unable to register cuDNN factory: one has already been registered"),
    text_of(variables=variables(CUDA_VISIBLE_DEVICES="")),
    text_of(environments=with_package("nvidia-ml-py", "13.590.48")),
    text_of("CUDA error: boom", environments=with_package("numpy", "2.0", torch("2.5.1+rocm6.2", None, hip="6.2"))),
)
def test_a_cpu_build_where_nothing_wants_cuda(snapshot: Snapshot) -> None:
    assert checks_of("cpu-only-build", snapshot) == ()


def test_a_cpu_build_where_a_gpu_was_looked_for_in_vain() -> None:
    (found,) = checks_of("cpu-only-build", text_of("CUDA error: boom", gpus=gpus(complete=True)))
    assert found.status == "note"


def test_a_gpu_that_is_listed_needs_no_sign() -> None:
    found = check_of("cpu-only-build", with_venv(machine(), venv(CPU_BUILD)))
    assert found.confidence == "high"
    assert [each.what for each in found.evidence] == ["torch: version", "CPU only", "environment"]
