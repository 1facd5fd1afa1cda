"""Error lines: each pattern with lines in the shape of public reports, and lines that name nothing."""

from __future__ import annotations

import re
import time

import pytest

from envcheck.compat.error_lines import LONGEST, error_lines, has_needed, named_beside, named_by, needed_by
from envcheck.compat.load import load_matrix
from envcheck.importers.error_lines import is_error, read
from envcheck.importers.kit.paste import Paste
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.snapshot import Framework, ObservedError, Platform, Snapshot
from tests.every import every
from tests.rules.machines import (
    but,
    cause,
    check_of,
    checks_of,
    driver,
    error,
    judge,
    kernel,
    machine,
    open_fails,
    torch,
    venv,
    with_venv,
    without_gpu,
)
from tests.rules.messages import (
    lines_asked,
    lines_libraries,
    lines_machines,
    lines_noticed,
    lines_packages,
    lines_platforms,
    lines_printed,
    lines_programs,
    lines_refused,
    lines_reported,
    lines_sources,
    lines_statements,
    lines_systems,
    lines_told,
    lines_written,
)

CORE: dict[str, list[str]] = {
    "fabric-manager-not-running": [
        "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY",
        "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        "CUDA initialization fails with 802",
        "Cuda failure 802 'system not yet initialized'",
        "fabric manager NVIDIA GPU driver interface version 535.183.01 don't match with driver version.",
    ],
    "forward-compat-unsupported": [
        "Error 804: forward compatibility was attempted on non supported HW",
        "CUDA error: CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "cudaGetDeviceCount returned error 804",
        "CUDA Driver UNAVAILABLE (cuInit(0) returned 804)",
    ],
    "driver-library-mismatch": [
        "Failed to initialize NVML: Driver/library version mismatch",
        "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "CUDA initialization: system has unsupported display driver / cuda driver combination",
        "CUDA initialization failure with error: 803",
        "NVRM: API mismatch: the client has the version 550.107.02, but",
        "kernel version 470.86.0 does not match DSO version 470.103.1 -- cannot find working devices",
    ],
    "gpu-unsupported-by-driver": [
        "NVRM:  information.  The 595.71.05 NVIDIA driver will ignore",
        "NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please",
        "NVRM: Open nvidia.ko is only ready for use on Data Center GPUs.",
        "NVRM: installed in this system is not supported by open",
        "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
    ],
    "secure-boot-blocks-module": [
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        "Loading of unsigned module is rejected",
        "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
    ],
    "nouveau-loaded": [
        "NVRM: GPU 0000:01:00.0 is already bound to NovaCore.",
        "ERROR: The Nouveau kernel driver is currently in use by your system.",
    ],
    "kernel-module-missing": [
        "modprobe: FATAL: Module nvidia not found.",
        "modprobe: FATAL: Module nvidia-current-uvm not found in directory /lib/modules/6.1.0-18-amd64",
        "==> ERROR: module not found: 'nvidia_uvm'",
        "Error! Bad return status for module build on kernel: 6.14.4-arch1-2 (x86_64)",
        "Error! Your kernel headers for kernel 5.15.0-84-generic cannot be found.",
        "modprobe: ERROR: could not insert 'nvidia': Exec format error",
        "nvidia_uvm: disagrees about version of symbol module_layout",
    ],
    "driver-not-loaded": [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "ERROR: NVIDIA driver is not loaded",
        "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
    ],
    "gpu-firmware-timeout": [
        "NVRM: Xid (PCI:0000:2b:00): 119, pid=1, name=python, Timeout after 45s of waiting for RPC response from GPU0",
        "NVRM: Timeout waiting for RPC from GSP!",
    ],
    "gpu-lost": [
        "NVRM: Xid (PCI:0000:2b:00): 79, pid=1, name=python",
        "NVRM: fallen off the bus and is not responding to commands.",
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system",
    ],
    "gpu-needs-reset": [
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU requires reset",
        "NVRM: Xid (PCI:0000:02:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
    ],
    "mig-without-instances": [
        "error building device map: invalid MIG configuration: device 0 has an invalid MIG configuration",
        "|  No MIG devices found                                                       |",
    ],
    "gpu-init-failed": [
        "NVRM: GPU 0000:04:00.0: RmInitAdapter failed! (0x63:0x0:1905)",
        "No devices were found",
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
    ],
    "container-lost-gpu": ["Failed to initialize NVML: Unknown Error"],
    "container-without-gpu": [
        "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.",
        "   Use the NVIDIA Container Toolkit to start this container with GPU support; see",
    ],
    "driver-not-installed": [
        "AssertionError: Found no NVIDIA driver on your system",
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        "Could not load dynamic library 'libcuda.so.1'; dlerror",
        "load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory",
    ],
    "driver-too-old": [
        "CUDA initialization: The NVIDIA driver on your system is too old (found version 12040).",
        "CUDA failed with error CUDA driver version is insufficient for CUDA runtime version",
        "CUDAError InsufficientDriver",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver",
        "Error: unsupported CUDA version: 7.5 < 6.5",
        "CUDA error: the provided PTX was compiled with an unsupported toolchain",
        "cudaErrorUnsupportedPtxVersion",
        "ptxas application ptx input, line 9; fatal   : Unsupported .version 8.1; current version is '8.0'",
        "E cuda_asm_compiler.cc:57] cuLinkAddData fails. This is usually caused by stale driver version.",
        "skipped: PTX version mismatch / unsupported driver version",
        "       version 440.33.01 was detected and compatibility mode is UNAVAILABLE.",
        "CUDA initialization failure with error: 35",
        "cudaGetDeviceCount returned 35",
        "CUDA error 222: the JIT refuses the program",
    ],
    "driver-older-than-toolkit": [
        "The NVIDIA driver's CUDA version is 12.4 which is older than the PTX compiler version 12.5.82.",
        "WARNING: CUDA Minor Version Compatibility mode ENABLED.",
    ],
    "gpu-code-missing": [
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "NVIDIA H100 PCIe with CUDA capability sm_90 is not compatible with the current PyTorch installation.",
        "    Minimum and Maximum cuda capability supported by this version of PyTorch is",
        "    PyTorch no longer supports this GPU because it is too old.",
        "Ignoring visible gpu device with Cuda compute capability 3.0. The minimum required Cuda capability is 3.5.",
        "CUDA failure 209",
        "[TRT] [E] 1: Unsupported SM: 0x601",
        "[E] [TRT] caskUtils.cpp (80) - Assertion Error in nvinfer1::rt::task::trtSmToCask: 0 (Unsupported SM.)",
        "[E] Error[9]: Error Code 9: API Usage Error (Target GPU SM 120 is not supported by this TensorRT release.)",
    ],
    "cpu-only-build": [
        "AssertionError: Torch not compiled with CUDA enabled",
        'NOT_FOUND: Could not find registered platform with name: "cuda".',
        "GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.",
        "Unable to initialize backend 'cuda': module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig'",
        'msg="Dynamic LLM libraries" runners=[cpu]',
        'msg="Dynamic LLM libraries [cpu_avx cpu_avx2 cpu]"',
        'msg="Dynamic LLM libraries" runners="[cpu cpu_avx cpu_avx2]"',
        "warning: not compiled with GPU offload support, --gpu-layers option will be ignored",
        "ValueError: This CTranslate2 package was not compiled with CUDA support",
        "RuntimeError: Not compiled with GPU support",
        "(-216:No CUDA support) The library is compiled without CUDA support in function 'throw_no_cuda'",
        "lightgbm.basic.LightGBMError: GPU Tree Learner was not enabled in this build.",
        "Cannot use CUDAPlace in CPU only version, Please recompile or reinstall Paddle with CUDA support.",
        "DGLError: Device API cuda is not enabled. Please install the cuda version of dgl.",
        "src/storage/storage.cc:119: Compile with USE_CUDA=1 to enable GPU usage",
        "The installed version of bitsandbytes was compiled without GPU support.",
        "    PyTorch 2.1.2+cu121 with CUDA 1201 (you have 2.1.0+cpu)",
    ],
    "no-gpu-visible": [
        "-> no CUDA-capable device is detected",
        "RuntimeError: No CUDA GPUs are available",
        "cudaGetDeviceCount returned 100",
    ],
    "power-throttled": [
        "            HW Power Brake Slowdown                        : Active",
        "clocks_throttle_reasons.sw_power_cap: Active in 161 of 162 samples",
    ],
    "thermal-throttled": ["        SW Thermal Slowdown         : Active"],
}

FAMILIES = (
    CORE,
    lines_platforms.EXAMPLES,
    lines_libraries.EXAMPLES,
    lines_machines.EXAMPLES,
    lines_noticed.EXAMPLES,
    lines_packages.EXAMPLES,
    lines_printed.EXAMPLES,
    lines_programs.EXAMPLES,
    lines_refused.EXAMPLES,
    lines_reported.EXAMPLES,
    lines_systems.EXAMPLES,
    lines_sources.EXAMPLES,
    lines_statements.EXAMPLES,
    lines_told.EXAMPLES,
    lines_written.EXAMPLES,
    lines_asked.EXAMPLES,
)
"""Further families have their lines in files of their own (``lines_*.py``)."""


EXAMPLES: dict[str, list[str]] = {
    problem: [line for family in FAMILIES for line in family.get(problem, ())]
    for problem in dict.fromkeys(name for family in FAMILIES for name in family)
}
PAIRS = [(problem, line) for problem, lines in EXAMPLES.items() for line in lines]


@every(PAIRS)
def test_what_a_pattern_needs_is_in_each_line_that_it_matches(problem: str, line: str) -> None:
    """The quick test leaves out no pattern that would have matched."""
    for each in error_lines():
        if each.problem == problem and each.is_in(line):
            assert has_needed(needed_by(each.pattern), line.lower())


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"CUDA .*error", [{"cuda "}, {"error"}]),
        (r"(?:libcuda|nvcc)\b.* (?:gone|not found)?x", [{"libcuda", "nvcc"}]),
        (r"a+(?:nvidia){1,3}(?!driver)", [{"nvidia"}]),
        (r"(?:gpu|\d+)", []),
        (r"a\(b\)\.so|a\(b\)\[c]", [{"a(b).so", "a(b)[c]"}]),
        (r"(?P<one>gone) to (?P=one)", [{"gone"}, {" to "}]),
        (r"(?<!no )driver(?= is)[^)|(]?ok{0,2}|rest", [{"driver", "rest"}]),
        (r"x{2}y(?:zero){0,1}(?:one)+?", [{"one"}]),
    ],
)
def test_the_words_that_a_pattern_needs(pattern: str, words: list[set[str]]) -> None:
    assert list(map(set, needed_by(pattern))) == words


@every(
    [
        "cuda " * 380,
        " " * 1_900,
        "flash_attn" + "_a" * 900,
        "No module named " + "a." * 900,
        "undefined symbol: " + "_ZN2at" * 300,
        "requires NCCL 2" + "1" * 900 + " requires " + "1." * 400,
        "Error: requires SM " * 95,
        "version requires GPU torch cannot load missing could not find CUDA error nvidia " * 23,
    ]
)
def test_a_line_takes_milliseconds_whatever_stands_in_it(piece: str) -> None:
    lines = [f"RuntimeError: {number} error {piece}{number}" for number in range(40)]
    named_by(lines[0])
    started = time.process_time()
    for line in lines:
        named_by(line)
    assert time.process_time() - started < 2.0


@every(PAIRS)
def test_a_line_names_its_problem(problem: str, line: str) -> None:
    assert problem in [found.problem for found in (named_by(line), named_beside(line, (line,))) if found]


def test_every_pattern_has_an_example() -> None:
    lines = [line for _, line in PAIRS]
    idle = [
        line.pattern
        for line in error_lines()
        if not any(
            line.is_in(text) and line in (named_by(text), named_beside(text, (text,)), named_beside(text, lines))
            for text in lines
        )
    ]
    assert idle == []


@every(PAIRS)
def test_a_line_that_names_a_problem_is_kept_as_an_error_line(problem: str, line: str) -> None:
    assert [error.text for error in read(Paste.of(line)).observed_errors] == [line.strip()]


REQUESTS = [
    "libcuda reported version is: 384.130.0",
    "print(torch.cuda.is_available())",
    "conda install pytorch pytorch-cuda=12.1 -c pytorch -c nvidia",
    "pip install torch --index-url https://download.pytorch.org/whl/cu126",
    "tf.config.list_physical_devices('GPU')",
    "./llama-cli -m model.gguf -ngl 35",
    "export XLA_FLAGS=--xla_gpu_cuda_data_dir=/opt/cuda-12.4",
    "torch 2.7.1+cpu, cuda available: False, device count: 0",
    "the loss is nan from the first step on",
    "I was getting bad outputs with it",
    "it takes very long to start",
]
"""Lines that name no problem, and are kept: some ask for CUDA."""


def test_each_word_of_a_failure_is_in_an_example() -> None:
    lines = [*(line for _, line in PAIRS), *REQUESTS]
    lower = [line.lower() for line in lines]
    idle = [
        pattern
        for row in load_matrix().failures
        if row.where != "harmless"
        for pattern in row.patterns
        for found in [re.compile(rf"\b(?:{pattern})" if row.where == "word" else pattern)]
        if not any(map(found.search, lower if row.where in ("word", "anywhere") else lines))
    ]
    assert idle == []
    assert all(map(is_error, REQUESTS))


HARMLESS = [
    "Job for nvidia-fabricmanager.service failed because the control process exited with error code.",
    "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
    "NCCL WARN Failed to open libibverbs.so[.1]",
    "Unable to register cuDNN factory: Attempting to register factory when one has already been registered",
    "successful NUMA node read from SysFS had negative value (-1)",
    "ARM64 does not support NUMA - returning NUMA node zero",
    "[TRT] [W] TensorRT was linked against cuDNN 8.9.0 but loaded cuDNN 8.7.0",
    "10 Memcpy nodes are added to the graph (including unable to run CUDA graph).",
    "common.cuh:112: ggml was not compiled with any CUDA arch <= 750",
    "        HW Thermal Slowdown         : Not Active",
    "clocks_event_reasons.sw_power_cap: Not Active",
    "<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>",
    "warning: one possible reason is that llama.cpp was compiled without GPU support",
    "No GPU found or the library is compiled without CUDA support",
    "PyTorch was not compiled with CUDA support (or no GPU is available).",
    "Open MPI was not compiled with CUDA support",
    'msg="Dynamic LLM libraries [cpu cpu_avx cpu_avx2 cuda_v11 rocm_v6.1]"',
    'msg="Dynamic LLM libraries" runners="[cuda_v12_avx rocm_avx cpu cpu_avx]"',
    "Unable to initialize backend 'rocm': module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig'",
    "TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12.0.",
    "  [[System has unsupported display driver / cuda driver combination (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)]]",
    "[[Forward compatibility was attempted on non supported HW (CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE)]]",
    "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
    "No MIG devices found, running the tests on whole GPUs",
    "the search in cuda-samples returned 100 files",
    "module verification failed: signature and/or required key missing - tainting kernel",
    "        SW Power Cap                : Active",
    "            HW Power Brake Slowdown : Not Active",
    "Failed to create job 802 of the queue",
    "No running processes found",
    "CUDA lazy loading is not enabled",
    "Distributed package doesn't have NCCL built in",
    "Successfully installed nvidia-dkms-550",
    "ImportError: libxla_extension.so: cannot open shared object file: No such file or directory",
    "modprobe: ERROR: could not insert 'vboxdrv': Required key not available",
    "bugfix: Exception raised when CUDA not available for a CUDA-versioned torch",
    "WARNING: FlashAttention 3 requires Hopper, falling back to FlashAttention 2",
    "ERROR_HANDLING  Expose error handling support capability",
    "NotImplementedError: FP8 block scaling not yet implemented for Blackwell.",
    "INFO: This build supports SM80, SM90 and SM100.",
    "The `trtllm` attention backend is Blackwell-only. On other architectures the default is used.",
    "GPU 0: Fabric State is Completed",
    "Recovery action: 0 (NONE)",
    "MIG is disabled",
    "",
]


@every(HARMLESS)
def test_a_harmless_line_names_nothing(line: str) -> None:
    assert named_by(line) is None


@every(
    [
        'I no longer get "CUDA error: no kernel image is available for execution on the device" since the update.',
        "We do not see the out of memory error any more",
    ]
)
def test_what_is_said_to_be_over_is_no_failure(line: str) -> None:
    assert not is_error(line)
    assert read(Paste.of(line)).observed_errors == ()


@every(["nvidia-smi no longer shows the GPU after the update", "With --ipc=host the error disappeared: NCCL failure"])
def test_what_ended_the_work_or_the_error_is_told(line: str) -> None:
    assert is_error(line)


def test_a_line_without_end_costs_no_time() -> None:
    for text in (
        "Xid (" * 200_000,
        "libcuda.so.1 " + "a " * 500_000,
        "Dynamic LLM libraries" + " runners" * 200_000,
        "Dynamic LLM libraries [" + "cpu" * 1000,
        "Dynamic LLM libraries " + "[cpu, " * 1000,
        "cuda error " * 1000,
        "or " * 1000 + "not compiled with ",
        "HW Power Brake" + " " * 1900,
    ):
        assert named_by(text) is None
    assert named_by(" " * LONGEST + "GPU is lost") is None


@every(EXAMPLES)
def test_a_met_line_becomes_the_finding_of_its_rule(problem: str) -> None:
    found = check_of(problem, error(EXAMPLES[problem][0], line=7))
    rule = find_rule(problem)
    assert rule is not None
    assert found.id == f"{problem}@machine"
    assert found.status == {
        "cupy-multiple-packages": "warn",
        "driver-older-than-toolkit": "note",
        "framework-leaves-speed": "note",
        "gpu-memory-exhausted": "note",
        "jetpack-mismatch": "warn",
        "nvidia-wheel-conflict": "warn",
        "pcie-link-degraded": "warn",
        "persistence-mode-off": "note",
        "power-throttled": "warn",
        "requirement-broken": "warn",
        "row-remap-pending": "warn",
        "thermal-throttled": "warn",
        "wsl-libcuda-shadowed": "warn",
    }.get(problem, "fail")
    assert found.title == rule.title
    assert found.decided_by in ("driver-answered", "framework-ran")
    assert found.evidence[0].value == EXAMPLES[problem][0].strip()[:160]
    assert found.evidence[0].source == "pasted text, line 7"
    assert found.sources == rule.sources


@every(
    sorted(
        set(EXAMPLES)
        - {
            "cupy-multiple-packages",
            "driver-older-than-toolkit",
            "framework-leaves-speed",
            "gpu-memory-exhausted",
            "jetpack-mismatch",
            "nvidia-wheel-conflict",
            "pcie-link-degraded",
            "persistence-mode-off",
            "power-throttled",
            "requirement-broken",
            "row-remap-pending",
            "thermal-throttled",
            "wsl-libcuda-shadowed",
        }
    )
)
def test_the_cause_of_a_met_line_is_its_rule(problem: str) -> None:
    snapshot = error(EXAMPLES[problem][0])
    assert cause(snapshot) == problem
    assert open_fails(snapshot) == [problem]


def lines(*texts: str) -> Snapshot:
    return Snapshot(observed_errors=tuple(ObservedError(source="pasted text", text=text) for text in texts))


def test_the_most_exact_line_is_the_cause() -> None:
    both = lines(EXAMPLES["driver-not-loaded"][0], EXAMPLES["secure-boot-blocks-module"][0])
    assert cause(both) == "secure-boot-blocks-module"
    assert (
        cause(lines(EXAMPLES["gpu-init-failed"][0], EXAMPLES["gpu-unsupported-by-driver"][0]))
        == "gpu-unsupported-by-driver"
    )


@every(
    [
        (
            "ModuleNotFoundError: No module named 'torch'",
            "Getting requirements to build wheel did not run successfully.",
        ),
        ("error: Microsoft Visual C++ 14.0 or greater is required.", "error: building the CUDA extension failed"),
        ("State : In Progress", "Active: failed (Result: exit-code) since Tue"),
        (
            'msg="skipping CUDA device: compute capability not in compiled architectures" name="GeForce GTX 1060"',
            'msg="inference compute" id=0 library=cpu compute="" name=cpu',
        ),
        ("RuntimeError: Network is unreachable", "ncclSystemError: System call (socket, malloc, munmap, etc) failed."),
        ("CUDA error: invalid device ordinal", "CUDA_VISIBLE_DEVICES=MIG-5a1b2c3d-0000-1111-2222-333344445555"),
        (
            "DLL load failed while importing onnxruntime_pybind11_state: The specified module could not be found.",
            "pip install onnxruntime",
        ),
        ("the model does not use my GPU at all", "CMAKE_ARGS=-DGGML_CUDA=on pip install llama-cpp-python"),
        ("Ultralytics 8.3.1 Python-3.11.4 torch-2.4.1+cpu CPU (Intel Core i7)", "it cannot use the GPU"),
    ]
)
def test_a_line_that_needs_another_beside_it_says_nothing_alone(line: str, beside: str) -> None:
    named = named_beside(line, (line, beside))
    assert named is not None
    assert cause(lines(line)) != named.problem
    assert cause(lines(line, beside)) == cause(lines(beside, line)) == named.problem


@every(
    [
        'Error: DriverError(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed")',
        "TVMError: cuModuleLoadData(&(module_[device_id]), data_.c_str()) failed with error: CUDA_ERROR_INVALID_PTX",
        "Error: CUDA: cuModuleLoadData failed: CUDA_ERROR_INVALID_PTX",
        "cuLaunchKernel(kernel, grid) failed with CUDA_ERROR_INVALID_HANDLE",
    ]
)
def test_the_refused_code_of_another_program_is_not_that_of_tensorflow(line: str) -> None:
    assert cause(lines(line)) != "gpu-code-missing"


@every(
    [
        ("warning: not compiled with GPU offload support, --gpu-layers option will be ignored", "llama.cpp"),
        ("OpenCV(4.8.0) error: (-216:No CUDA support) The library is compiled without CUDA support", "opencv"),
        ("Target GPU SM 120 is not supported by this TensorRT release", "tensorrt"),
        (
            "tf_gpu_runtime_wrappers.cc:40] 'cuModuleLoadData(&module, data)' failed with 'CUDA_ERROR_INVALID_PTX'",
            "TensorFlow",
        ),
        ("Specified provider 'CUDAExecutionProvider' is not in available provider names", "onnxruntime-gpu"),
        ("[LightGBM] [Fatal] GPU Tree Learner was not enabled in this build.", "lightgbm"),
        ("AssertionError: Torch not compiled with CUDA enabled", "torch"),
    ]
)
def test_the_fix_of_a_build_is_that_of_the_program_that_prints_the_line(line: str, name: str) -> None:
    told = fixes_of(lines(line))
    assert name in told
    assert ("torch==" in told) is (name == "torch")


def fixes_of(snapshot: Snapshot) -> str:
    (check,) = [check for check in judge(snapshot) if check.status == "fail"]
    return " ".join(word for fix in check.fixes for word in (fix.text, *fix.command))


@every(
    [
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "a release of PyTorch"),
        ("cudaErrorNoKernelImageForDevice: no kernel image is available for execution on the device", "the program"),
        ("what():  CUDA driver version is insufficient for CUDA runtime version", "a build of the program"),
        ("provided PTX was compiled with an unsupported toolchain", "a build of the program"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update", "driver >= 550"),
    ]
)
def test_no_build_is_named_where_neither_gpu_nor_driver_is_known(line: str, told: str) -> None:
    fixes = fixes_of(lines(line))
    assert told in fixes
    assert "torch==" not in fixes


def test_a_known_driver_tells_which_cuda_the_program_may_be_built_for() -> None:
    told = lines("what():  CUDA driver version is insufficient for CUDA runtime version")
    assert "for CUDA 11.4 or older, which the driver runs" in fixes_of(but(told, driver=driver("470.57.02")))


def test_lines_of_one_problem_make_one_finding() -> None:
    found = check_of("gpu-lost", lines(*EXAMPLES["gpu-lost"], EXAMPLES["gpu-lost"][0]))
    assert len(found.evidence) == len(EXAMPLES["gpu-lost"])


def test_a_line_confirms_what_was_inferred_on_its_own_subject() -> None:
    old = with_venv(machine(), venv(torch("2.0.1+cu117", "11.7", gpu_code=("sm_80",))))
    inferred = check_of("gpu-code-missing", old)
    met = check_of("gpu-code-missing", but(old, observed_errors=error(EXAMPLES["gpu-code-missing"][0]).observed_errors))
    assert (inferred.decided_by, met.decided_by) == ("declared", "framework-ran")
    assert met.id == inferred.id
    assert met.fixes == inferred.fixes
    assert met.evidence[0].what == "error line"


def test_a_line_outranks_an_inferred_pass() -> None:
    snapshot = but(machine(), observed_errors=error(EXAMPLES["gpu-code-missing"][0]).observed_errors)
    (found,) = checks_of("gpu-code-missing", snapshot)
    assert (found.id, found.status) == ("gpu-code-missing@machine", "fail")


def test_a_line_outside_the_scope_is_not_heeded() -> None:
    assert not [
        each for each in judge(error(EXAMPLES["driver-too-old"][0]), frozenset({"node"})) if each.status == "fail"
    ]


INSIDE_WSL = Platform(source="pasted text", os="linux", wsl=True)


@pytest.mark.parametrize("problem", ["no-gpu-visible", "driver-not-loaded"])
def test_inside_wsl_a_line_that_has_other_causes_proves_nothing(problem: str) -> None:
    line = error(EXAMPLES[problem][0], line=3)
    found = check_of(problem, but(line, platform=INSIDE_WSL))
    assert (found.status, found.id) == ("note", f"{problem}@machine")
    assert "inside WSL" in found.title
    assert found.sources
    assert found.evidence[0].source == "pasted text, line 3"
    assert cause(but(line, platform=INSIDE_WSL)) in (None, "wsl-libcuda-shadowed")
    assert cause(but(line, platform=but(INSIDE_WSL, wsl=None))) == problem


def test_inside_wsl_an_exact_line_proves_its_problem() -> None:
    both = lines(EXAMPLES["no-gpu-visible"][0], EXAMPLES["driver-library-mismatch"][0])
    assert cause(but(both, platform=INSIDE_WSL)) == "driver-library-mismatch"
    assert check_of("no-gpu-visible", but(both, platform=INSIDE_WSL)).status == "note"


def test_a_line_in_the_kernel_log_is_no_error_line() -> None:
    """The log may be older than the present state: the rules that read it look at both."""
    assert "driver-library-mismatch@machine" not in [
        each.id for each in judge(machine(kernel=kernel())) if each.status == "fail"
    ]


def test_no_finding_without_a_gpu_is_made_of_a_note() -> None:
    snapshot = but(without_gpu(), observed_errors=error(EXAMPLES["driver-older-than-toolkit"][0]).observed_errors)
    assert cause(snapshot) == "no-nvidia-gpu"


def test_every_rule_whose_line_was_met_offers_a_way_out() -> None:
    without = {
        rule.name
        for rule in all_rules()
        if rule.name in EXAMPLES and not check_of(rule.name, error(EXAMPLES[rule.name][0])).fixes
    }
    assert without == {
        "driver-older-than-toolkit",
        "framework-leaves-speed",
        "gpu-memory-exhausted",
        "persistence-mode-off",
    }


def test_a_line_about_a_framework_that_is_known_gets_the_build_that_fits() -> None:
    pasted = but(
        machine(driver=driver("570.86.10", cuda=None)),
        observed_errors=error(EXAMPLES["cpu-only-build"][0]).observed_errors,
    )
    unknown = with_venv(pasted, venv(Framework(name="torch", version="2.5.1")))
    found = check_of("cpu-only-build", unknown)
    assert any("--index-url" in fix.command for fix in found.fixes)
