"""Error lines and the problems they name: what programs, the kernel and container runtimes print.

Only lines that name their problem exactly are here: a line that several problems print decides nothing. The first
pattern that matches a line names its problem.
"""

from __future__ import annotations

import re

from envcheck.rules.error_line import ErrorLine, said, status
from envcheck.rules.error_lines_libraries import LIBRARIES
from envcheck.rules.error_lines_packages import PACKAGES
from envcheck.rules.error_lines_platforms import PLATFORMS

LONGEST = 2000
"""Characters of a line that are looked at: what is pasted is not to be trusted."""


_HEDGED = r".*\b(?:or (?:no|the|loading)|possibl[ey]|may|might|MPI|UCX)\b"
"""A line that only guesses at a build without CUDA, or speaks of a library for messages between hosts."""


ERROR_LINES: tuple[ErrorLine, ...] = (
    *PLATFORMS,
    *PACKAGES,
    *LIBRARIES,
    *said(
        "driver-answered",
        "fabric-manager-not-running",
        r"CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady",
        r"system not yet initialized",
        status(802),
        r"fabric manager .* interface version \S+ don't match with driver version",
    ),
    *said(
        "driver-answered",
        "forward-compat-unsupported",
        r"forward compatibility was attempted on non[- ]supported HW",
        r"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE|cudaErrorCompatNotSupportedOnDevice",
        status(804),
    ),
    *said(
        "driver-answered",
        "driver-library-mismatch",
        r"driver/library version mismatch",
        r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|cudaErrorSystemDriverMismatch",
        r"system has unsupported display driver / cuda driver combination",
        status(803),
        r"NVRM: API mismatch",
        r"kernel version \S+ does not match DSO version",
    ),
    *said(
        "driver-answered",
        "gpu-unsupported-by-driver",
        r"NVIDIA driver will ignore",
        r"supported through the NVIDIA \S+ Legacy drivers",
        r"Open nvidia\.ko is only ready for use on Data Center GPUs",
        r"not supported by (?:the )?open\b.*nvidia\.ko|NVRM: installed in this system is not supported by (?:the|open)",
        r"requires use of the NVIDIA open kernel modules",
    ),
    *said(
        "driver-answered",
        "secure-boot-blocks-module",
        r"(?:nvidia\S*|module)\b.*(?:Key was rejected by service|Required key not available)",
        r"Loading of (?:unsigned )?module is rejected",
        r"Lockdown: \S+ unsigned module loading is restricted",
    ),
    *said(
        "driver-answered",
        "nouveau-loaded",
        r"already bound to (?:nouveau|nova)",
        r"Nouveau kernel driver is currently in use",
    ),
    *said(
        "driver-answered",
        "kernel-module-missing",
        r"Module nvidia[-\w]* not found",
        r"module not found: '?nvidia",
        r"Bad return status for module build on kernel",
        r"kernel headers for kernel \S+ cannot be found",
        r"could not insert '?nvidia\S*:? (?:Exec format error|Invalid module format)",
        r"nvidia\S*: disagrees about version of symbol",
    ),
    *said(
        "driver-answered",
        "driver-not-loaded",
        r"couldn't communicate with the NVIDIA driver",
        r"NVIDIA driver is not loaded",
        r"NVML(?: error)?: Driver Not Loaded|NVML_ERROR_DRIVER_NOT_LOADED",
    ),
    *said(
        "driver-answered",
        "gpu-firmware-timeout",
        r"\bXid(?: ?\([^)]*\))?:? *1(?:19|20)\b",
        r"Timeout (?:after \S+ )?(?:of )?waiting for RPC (?:response )?from GSP",
    ),
    *said(
        "driver-answered",
        "gpu-lost",
        r"\bXid(?: ?\([^)]*\))?:? *79\b",
        r"fallen off the bus",
        r"NVML_ERROR_GPU_IS_LOST|\bGPU is lost\b",
    ),
    *said(
        "driver-answered",
        "gpu-needs-reset",
        r"NVML_ERROR_RESET_REQUIRED|\bGPU requires reset\b",
        r"GPU recovery action changed from .{1,60} to 0x[1-9a-f]",
    ),
    *said(
        "driver-answered",
        "gpu-init-failed",
        r"RmInitAdapter failed|rm_init_adapter failed",
        r"^\W*No devices were found\W*$",
        r"CUDA_ERROR_UNKNOWN|CUDA unknown error - this may be due to",
    ),
    *said(
        "driver-answered",
        "mig-without-instances",
        r"\|\s{1,4}No MIG devices found\s+\|",
        r"device \S+ has an invalid MIG configuration",
    ),
    *said("driver-answered", "container-lost-gpu", r"Failed to initialize NVML: Unknown Error"),
    *said(
        "framework-ran",
        "container-without-gpu",
        r"NVIDIA Driver was not detected.*GPU functionality will not be available",
        r"Use (?:the NVIDIA Container Toolkit|'nvidia-docker run') to start this container",
    ),
    *said(
        "framework-ran",
        "driver-not-installed",
        r"Found no NVIDIA driver on your system",
        r"\blibcuda\.so(?:\.1)?\b.*(?:cannot open shared object file|not found|dlerror)",
        r"libnvidia-ml\.so\.1: cannot open shared object file|NVML Shared Library Not Found",
    ),
    *said(
        "framework-ran",
        "driver-too-old",
        r"NVIDIA driver on your system is too old",
        r"CUDA driver version is insufficient for CUDA runtime version",
        r"(?:cudaError|CUDAError\W*)InsufficientDriver|CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
        r"unsatisfied condition: cuda *>=?",
        r"unsupported CUDA version: \S+ < \S+",
        r"provided PTX was compiled with an unsupported toolchain",
        r"cudaErrorUnsupportedPtxVersion|CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        r"ptxas application ptx input.*Unsupported \.version",
        r"cuLinkAddData fails\. This is usually caused by stale driver version",
        r"PTX version mismatch\W+unsupported driver",
        r"was detected and compatibility mode is UNAVAILABLE",
        status(35),
        status(222),
    ),
    *said(
        "framework-ran",
        "driver-older-than-toolkit",
        r"driver's CUDA version is \S+ which is older than the (?:ptxas|PTX compiler)",
        r"CUDA Minor Version Compatibility mode ENABLED",
        status="note",
    ),
    *said(
        "framework-ran",
        "gpu-code-missing",
        r"no kernel image is available for execution",
        r"cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU",
        r"is not compatible with the current PyTorch installation",
        r"Minimum and Maximum cuda capability supported by this version of PyTorch",
        r"PyTorch no longer supports this GPU because it is too old",
        r"The minimum required Cuda capability is",
        status(209),
    ),
    *said(
        "framework-ran",
        "cpu-only-build",
        r"Torch not compiled with CUDA enabled",
        r"Could not find registered platform with name: \"cuda\"",
        r"Unable to initialize backend 'cuda': module '\S+' has no attribute 'GpuAllocatorConfig'",
        r"CUDA-enabled jaxlib is not installed",
        r"Dynamic LLM libraries.*\[cpu\w*(?:[ ,]+cpu\w*)*\]",
        rf"^(?!{_HEDGED}).*\b(?:not compiled with|compiled without) (?:CUDA|GPU)(?: offload)? support",
        r"(?:GPU|CUDA) Tree Learner was not enabled in this build",
        r"reinstall Paddle with CUDA support",
        r"Device API (?:cuda|gpu) is not enabled\. Please install the cuda version of dgl",
        r"Compile with USE_CUDA=1 to enable GPU usage",
        r"\(you have [\d.]+\+cpu\)",
    ),
    *said(
        "framework-ran",
        "no-gpu-visible",
        r"no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice",
        r"No CUDA GPUs are available",
        status(100),
    ),
    *said(
        "driver-answered",
        "power-throttled",
        r"HW[ _]Power[ _]Brake(?:[ _]Slowdown)?\W{1,60}Active",
        r"\bsw_power_cap\W{1,60}Active",
        status="warn",
    ),
    *said("driver-answered", "thermal-throttled", r"[HS]W[ _]Thermal[ _]Slowdown\W{1,60}Active", status="warn"),
)

XIDS = {79: "gpu-lost", 119: "gpu-firmware-timeout", 120: "gpu-firmware-timeout"}
"""Problems by the number of the driver's event in the kernel log."""


_REMARK = re.compile(r"\s*\[\[")
"""How NVIDIA's images begin the line that says why they run without forward compatibility, which they can."""


def named_by(text: str) -> ErrorLine | None:
    """The problem that a line names."""
    shown = text[:LONGEST]
    if _REMARK.match(shown):
        return None
    return next((line for line in ERROR_LINES if line.is_in(shown)), None)
