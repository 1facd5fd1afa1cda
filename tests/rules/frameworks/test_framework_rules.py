"""Environments of many frameworks: which decide, which only warn, and CPU builds where a text wants CUDA."""

from typing import Any

from envcheck.model.checks import Check, Status
from envcheck.model.snapshot import Distribution, Driver, Environment, Framework, Listing, ObservedError, Snapshot
from tests.every import cases, every
from tests.rules.machines import (
    VENV,
    agreed,
    but,
    check_of,
    checks_of,
    driver,
    framework,
    geforce,
    gpus,
    h200,
    judge,
    kernel,
    machine,
    said,
    torch,
    variables,
    venv,
    with_venv,
    without_gpu,
)

T4 = geforce("Tesla T4", "7.5", "10de:1eb8")
OLD_CODE = ("sm_50", "sm_60", "sm_70", "sm_75")


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


@every(("8.6.1", "12.0", "fail"), ("8.6.1", "8.9", None), ("10.3.0", "6.1", "fail"), ("10.8.0", "12.0", None))
def test_documents_decide_where_the_gpu_code_is_not_known(
    version: str, capability: str, expected: Status | None
) -> None:
    found = geforce("NVIDIA GPU", capability, "10de:0001")
    snapshot = on("580.95.05", framework("tensorrt", version, cpu_only=False), found=found)
    told = [check for check in checks_of("gpu-code-missing", snapshot) if check.subject.key.endswith(":tensorrt")]
    assert [check.status for check in told] == ([expected] if expected else [])
    assert all("compute capability" in check.message for check in told)


PIP = f"{VENV}/bin/python -m pip"
NO_CODE = on("550.54.14", torch(gpu_code=OLD_CODE), but(FLASH, gpu_code=OLD_CODE))
OLDER_GPU = on("550.54.14", CUDA_TORCH, FLASH, found=T4)
LOST = (*(venv(ONNX, CUDA_TORCH).distributions or ()), Distribution(name="onnxruntime-gpu", version="1.31.1"))
CU124 = "https://download.pytorch.org/whl/cu124"
JAX_PAGE = "https://docs.jax.dev/en/latest/installation.html"


@cases("rule, name, what, there, expected",
    ("cpu-only-build", "onnxruntime", "a GPU package that lost its files is a warning beside anything",
     on("550.54.14", ONNX, CUDA_TORCH, distributions=LOST), {"status": "warn"}),
    ("cpu-only-build", "onnxruntime", "what is missing", on("550.54.14", ONNX),
     {"title": "ONNX Runtime cannot use the GPU: CPU-only build",
      "message": "onnxruntime 1.31.1 has no CUDA provider, only: CPU."}),
    ("cpu-only-build", "jax", "what is missing", on("550.54.14", JAX),
     {"message": "jax 0.12.0 has no CUDA plug-in here."}),
    ("cpu-only-build", "onnxruntime", "one package is removed before the other is installed", on("595.10", ONNX),
     {"fixes": (f"{PIP} uninstall --yes onnxruntime", f"{PIP} install onnxruntime-gpu[cuda,cudnn]")}),
    ("cpu-only-build", "onnxruntime", "an older driver gets a release that it runs", on("550.54.14", ONNX),
     {"fixes": ("…", "…onnxruntime-gpu[cuda,cudnn]==1.26.0")}),
    ("cpu-only-build", "jax", "the newest plug-in for a new driver", on("595.10", JAX),
     {"fixes": (f"{PIP} install jax[cuda13]==0.12.0",)}),
    ("cpu-only-build", "jax", "the newest plug-in for an older driver", on("550.54.14", JAX),
     {"fixes": (f"{PIP} install jax[cuda12]==0.12.0",)}),
    ("cpu-only-build", "jax", "by uv, for a new driver", on("595.10", JAX, manager="uv"),
     {"fixes": (f"uv pip install --python {VENV} jax[cuda13]==0.12.0",)}),
    ("cpu-only-build", "jax", "by uv, for an older driver", on("550.54.14", JAX, manager="uv"),
     {"fixes": (f"uv pip install --python {VENV} jax[cuda12]==0.12.0",)}),
    ("cpu-only-build", "jax", "a page where metadata names no plug-in", on("550.54.14", but(JAX, requires=())),
     {"fixes": (f"Install a build of JAX for CUDA: {JAX_PAGE}",)}),
    ("cpu-only-build", "tensorflow-cpu", "it is replaced", on("550.54.14", TF_CPU),
     {"fixes": ("…tensorflow-cpu", f"{PIP} install tensorflow[and-cuda]==2.21.0")}),
    ("cpu-only-build", "llama-cpp-python", "it is compiled anew", on("550.54.14", LLAMA),
     {"fixes": ("env CMAKE_ARGS=-DGGML_CUDA=on … llama-cpp-python==0.3.36",)}),
    ("cpu-only-build", "torchvision", "from the index of PyTorch's CUDA", on("550.54.14", VISION_CPU, CUDA_TORCH),
     {"fixes": (f"{PIP} install --force-reinstall --no-deps torchvision==0.20.1 --index-url {CU124}",)}),
    ("cpu-only-build", "jax", "where pip may not install, an environment is made first",
     on("550.54.14", JAX, externally_managed=True, executable="/usr/bin/python3"),
     {"fixes": ("/usr/bin/python3 -m venv .venv", ".venv/bin/python -m pip install jax[cuda12]==0.12.0")}),
    *(("cpu-only-build", "jax", f"no hostile version reaches a command: {version}",
       on("550.54.14", but(JAX, version=version)), {"fixes": (f"{PIP} install jax[cuda12]",)})
      for version in ("0.12.0; rm -rf ~", "$(x)", "0.12.0 --pre", "")),
    ("gpu-code-missing", "torch", "on an older GPU", OLDER_GPU, {"status": "pass"}),
    ("gpu-code-missing", "flash-attn", "it needs a newer GPU than PyTorch does", OLDER_GPU,
     {"status": "warn", "fixes": ("…compute capability 7.5…",)}),
    ("gpu-code-missing", "torch", "no code", NO_CODE, {"status": "fail"}),
    ("gpu-code-missing", "flash-attn", "an extension of a PyTorch without code has nothing to add", NO_CODE, None),
)  # fmt: skip
def test_what_rules_say(rule: str, name: str, what: str, there: Snapshot, expected: dict[str, Any] | None) -> None:
    check = about(rule, name, there)
    assert (check and agreed(check, expected or {})) == expected


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


NO_CUDART = "ImportError: libcudart.so.12: cannot open shared object file"


def text_of(*errors: str, **changes: object) -> Snapshot:
    """What a text tells that lists no GPUs: torch's CPU build, and lines of errors."""
    found = with_venv(Snapshot(), venv(CPU_BUILD, source="pasted text"))
    lines = tuple(ObservedError(source="pasted text", text=text, line=9) for text in errors)
    return but(found, observed_errors=lines, **changes)


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


@cases("sign, there, expected",
    *((sign, there, {"status": "fail", "confidence": "medium", "decided_by": "declared", "evidence": {value}})
      for sign, there, value in (
        ("a driver", text_of(driver=Driver(source="pasted text", release="535.54.03")), "535.54.03"),
        ("what a driver speaks", text_of(driver=Driver(source="pasted text", cuda="12.2")), "12.2"),
        ("a choice of GPUs", text_of(variables=variables(CUDA_VISIBLE_DEVICES="0,1")), "0,1"),
        ("CUDA's libraries", text_of(environments=with_package("nvidia-nccl-cu12", "2.27.5")), "2.27.5"),
        ("conda's toolkit", text_of(environments=with_package("cudatoolkit", "11.3.1")), "11.3.1"),
        ("an error", text_of(NO_CUDART), NO_CUDART),
        ("a question", text_of(">>> torch.cuda.is_available()"), ">>> torch.cuda.is_available()"))),
    ("a GPU was looked for in vain", text_of("CUDA error: boom", gpus=gpus(complete=True)), {"status": "note"}),
    ("a GPU that is listed needs no sign", with_venv(machine(), venv(CPU_BUILD)),
     {"confidence": "high", "what": ("torch: version", "CPU only", "environment")}),
)  # fmt: skip
def test_a_cpu_build_that_is_asked_for_gpus(sign: str, there: Snapshot, expected: dict[str, Any]) -> None:
    assert said("cpu-only-build", there, expected) == expected
