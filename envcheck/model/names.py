"""What the facts of a Snapshot are called where people read of them: ``driver.cuda_init`` is CUDA initialization."""

from __future__ import annotations

_NAMES = {
    "driver.cuda_devices": "the list of CUDA devices",
    "driver.cuda_init": "CUDA initialization",
    "driver.installed": "the driver installation",
    "driver.libraries": "the driver libraries",
    "driver.nvml": "NVML",
    "driver.release": "the driver version",
    "environment.frameworks": "the list of frameworks",
    "environment.frameworks.complete": "the list of frameworks",
    "environment.python": "the Python version",
    "environment.trial": "the test of the libraries",
    "environments": "the Python environments",
    "framework.cpu_only": "the kind of build (CPU or GPU)",
    "framework.cuda": "the CUDA version of the framework",
    "framework.gpu_code": "the GPU code in the framework",
    "framework.trial": "the test of the framework",
    "framework.version": "the framework version",
    "gpu.compute_capability": "the compute capability",
    "gpu.ecc.volatile_uncorrected": "the number of uncorrected ECC errors",
    "gpu.memory.free": "free GPU memory",
    "gpu.memory.total": "the size of the GPU memory",
    "gpu.mig": "MIG mode",
    "gpu.mig.instances": "the MIG instances",
    "gpu.nvlinks": "the NVLinks",
    "gpu.pcie.width": "the PCIe link width",
    "gpu.pcie.width_max": "the maximum PCIe link width",
    "gpu.persistence_mode": "persistence mode",
    "gpu.recovery_action": "the GPU recovery action",
    "gpu.row_remap.failed": "failed row remapping",
    "gpu.row_remap.pending": "pending row remapping",
    "gpu.throttle.reasons": "the throttle reasons",
    "dcgm.incidents": "what DCGM found",
    "gpus": "the list of GPUs",
    "gpus.complete": "the list of GPUs",
    "kernel.device_nodes": "the GPU device nodes",
    "kernel.log.messages": "the messages of the kernel log",
    "kernel.log.readable": "access to the kernel log",
    "kernel.nouveau_loaded": "the state of the nouveau module",
    "kernel.nvidia.built": "the build of the NVIDIA kernel module",
    "kernel.nvidia.loaded": "the state of the NVIDIA kernel module",
    "kernel.secure_boot": "Secure Boot",
    "platform.container_host.toolkit": "the NVIDIA Container Toolkit on the host",
    "platform.shared_memory": "the size of shared memory",
}
_SPELLED = (
    "BAR1", "CDI", "CPU", "CPUs", "CUDA", "cuDNN", "DCGM", "ECC", "GPU", "GPUs", "GSP", "HIP", "IOMMU", "JetPack",
    "MIG", "MPS", "NCCL", "NUMA", "NVIDIA", "NVLinks", "NVLS", "NVML", "NVSwitches", "OS", "PCI", "PCIe", "PTX", "PyPI",
    "Python", "SM", "Tegra", "TensorRT", "TPU", "UID", "UUID", "UVM", "VBIOS", "Windows", "WSL", "Xid",
)  # fmt: skip
_WORDS = {word.lower(): word for word in _SPELLED} | {"smi": "nvidia-smi", "init": "initialization"}


def fact_name(path: str) -> str:
    """``path`` in words; one without a name of its own is read out: ``gpu.power.limit`` is ``GPU power limit``."""
    if path in _NAMES or not all(part.isidentifier() for part in path.split(".")):
        return _NAMES.get(path, path)
    return in_words(path)


def in_words(path: str) -> str:
    """A path of field names, read out: ``GPU power limit``."""
    return " ".join(_WORDS.get(word, word) for word in path.replace(".", " ").replace("_", " ").split())


def fact_title(path: str) -> str:
    """The name of the fact without its article, as a title."""
    name = fact_name(path).removeprefix("the ")
    return name[:1].upper() + name[1:]


def not_checked(path: str) -> str:
    """``CUDA initialization was not checked``."""
    title = fact_title(path)
    return f"{title} {'were' if title.endswith('s') and ' of ' not in title else 'was'} not checked"
