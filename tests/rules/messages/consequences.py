"""Pairs of lines: one names the cause, the other what only follows from it, as programs print both."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """A cause and its consequence."""

    cause: str
    """Name of the problem."""
    line: str
    consequence: str


PAIRS: dict[str, Pair] = {
    "bitsandbytes: no binary, then no GPU support": Pair(
        "extension-binary-missing",
        "RuntimeError: No compatible CUDA binary found at /venv/bitsandbytes/libbitsandbytes_cuda131.so",
        "The installed version of bitsandbytes was compiled without GPU support. 8-bit optimizers are unavailable.",
    ),
    "bitsandbytes: no binary, then None": Pair(
        "cuda-library-missing",
        "CUDA SETUP ERROR: Missing dependency: libcusparse.so.12",
        "AttributeError: 'NoneType' object has no attribute 'cget_managed_ptr'",
    ),
    "vLLM: library, then operator": Pair(
        "cuda-library-missing",
        "WARNING Failed to import from vllm._C with ImportError('libcudart.so.12: cannot open shared object file: No such file or directory')",
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
    ),
    "vLLM: CPU build, then device type": Pair(
        "cpu-only-build",
        "AssertionError: Torch not compiled with CUDA enabled",
        "RuntimeError: Failed to infer device type",
    ),
    "JAX: driver, then platform": Pair(
        "driver-too-old",
        "E cuda_driver.cc:266] failed call to cuInit: CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: no supported devices found for platform CUDA",
    ),
    "JAX: plugin, then backend": Pair(
        "jax-plugin-mismatch",
        "RuntimeError: jaxlib version 0.4.30 is newer than and incompatible with jax version 0.4.20. Please update your jax and/or jaxlib packages.",
        "RuntimeError: Unknown backend cuda. Available backends are ['cpu']",
    ),
    "JAX: cuDNN, then backend": Pair(
        "cudnn-missing",
        "RuntimeError: Unable to load cuDNN. Is it installed?",
        "RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms present are: cpu",
    ),
    "NCCL: shared memory, then peers": Pair(
        "shared-memory-too-small",
        "misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 33030532 bytes, error: No space left on device (28)",
        "misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.1<41234> failed : Connection refused",
    ),
    "NCCL: lost GPU, then peers": Pair(
        "gpu-lost",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
        "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<34567> with error 12, opcode 0, len 0, vendor err 129",
    ),
    "NCCL: same GPU, then peers": Pair(
        "ranks-share-gpu",
        "init.cc:746 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000",
        "NCCL WARN socketPollConnect: connect to 10.0.0.1<50000> returned Connection refused, exceeded error retry count after 34 attempts",
    ),
    "NCCL: warning, then system error": Pair(
        "nodes-not-connected",
        "NCCL WARN socketStartConnect: Connect to 172.17.0.1<41234> failed : No route to host",
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:275, unhandled system error, NCCL version 2.21.5",
    ),
    "NCCL: IMEX, then CUDA error": Pair(
        "imex-not-ready",
        "mnnvl.cc:74 NCCL WARN MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel configuration (/dev/nvidia-caps-imex-channels).",
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:275, unhandled cuda error, NCCL version 2.27.3",
    ),
    "container: ldconfig, then OCI": Pair(
        "container-ldconfig-fails",
        "nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or directory: unknown.",
        "docker: Error response from daemon: failed to create task for container: OCI runtime create failed",
    ),
    "container: no toolkit, then no GPU": Pair(
        "container-toolkit-missing",
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
        "RuntimeError: No CUDA GPUs are available",
    ),
    "Kubernetes: device plugin, then scheduler": Pair(
        "driver-not-loaded",
        "failed to initialize NVML: ERROR_DRIVER_NOT_LOADED",
        "0/5 nodes are available: 5 Insufficient nvidia.com/gpu.",
    ),
    "Kubernetes: no toolkit, then no devices": Pair(
        "container-toolkit-missing",
        "If this is a GPU node, did you configure the NVIDIA Container Toolkit?",
        "No devices found. Waiting indefinitely.",
    ),
    "kernel: no module, then nvidia-smi": Pair(
        "kernel-module-missing",
        "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-45-generic",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    ),
    "kernel: nouveau, then insmod": Pair(
        "nouveau-loaded",
        "NVRM: GPU 0000:01:00.0 is already bound to nouveau.",
        "modprobe: ERROR: could not insert 'nvidia': No such device",
    ),
    "driver mismatch, then CUDA": Pair(
        "driver-library-mismatch",
        "Failed to initialize NVML: Driver/library version mismatch",
        "RuntimeError: No CUDA GPUs are available",
    ),
    "MIG, then CUDA": Pair(
        "mig-without-instances",
        "|  No MIG devices found                                                       |",
        "RuntimeError: No CUDA GPUs are available",
    ),
    "fabric manager, then no GPU": Pair(
        "fabric-manager-not-running",
        "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        "RuntimeError: No CUDA GPUs are available",
    ),
    "torchvision, then transformers": Pair(
        "torch-family-mismatch",
        "RuntimeError: operator torchvision::nms does not exist",
        "ModuleNotFoundError: Could not import module 'PreTrainedModel'. Are this object's requirements defined correctly?",
    ),
    "ONNX Runtime: library, then provider": Pair(
        "cuda-library-missing",
        'Error loading "libonnxruntime_providers_cuda.so": libcublasLt.so.12: cannot open shared object file: No such file or directory',
        "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*.",
    ),
    "TensorFlow: cuDNN, then DNN": Pair(
        "cudnn-too-old",
        "Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.6.0.",
        "RuntimeError: Unimplemented: DNN library is not found.",
    ),
    "Triton: no compiler, then Inductor": Pair(
        "jit-compiler-missing",
        "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
    ),
    "pip: no torch in the build, then the wheel": Pair(
        "build-does-not-see-torch",
        "      ModuleNotFoundError: No module named 'torch'",
        "error: subprocess-exited-with-error Getting requirements to build wheel did not run successfully.",
    ),
    "nvcc: unknown GPU, then ninja": Pair(
        "toolkit-lacks-gpu",
        "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
        "RuntimeError: Error compiling objects for extension",
    ),
    "WSL: toolkit, then no GPU": Pair(
        "container-toolkit-too-old",
        "Unexpected error from cudaGetDeviceCount(). Error 500: named symbol not found",
        "RuntimeError: No CUDA GPUs are available",
    ),
    "vGPU: licence, then CUDA": Pair(
        "vgpu-unlicensed",
        "nvidia-gridd[1234]: Failed to acquire/renew license from license server.",
        "CUDA unknown error - this may be due to an incorrectly set up environment",
    ),
    "GPU reset, then busy": Pair(
        "gpu-needs-reset",
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU requires reset",
        "CUDA error: all CUDA-capable devices are busy or unavailable",
    ),
}
