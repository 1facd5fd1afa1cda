"""Lines of programs beside the frameworks, of container tools, of Kubernetes and of Windows' loader, by problem."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "container-toolkit-missing": [
        "E1015 factory.go:115] Incompatible strategy detected auto",
        "Detected non-NVML platform: could not load NVML library: libnvidia-ml.so.1: cannot open shared object file: No such file or directory",
    ],
    "scheduler-lacks-gpu": [
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "UnexpectedAdmissionError  Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected",
    ],
    "cpu-only-build": [
        "warning: no usable GPU found, --gpu-layers option will be ignored",
        "system_info: n_threads = 8 / 16 | AVX = 1 | AVX_VNNI = 0 | AVX2 = 1 | AVX512 = 0 | FMA = 1 | NEON = 0 | F16C = 1 | FP16_VA = 0 | WASM_SIMD = 0 | BLAS = 0 | SSE3 = 1 | VSX = 0 |",
        "UserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider names.Available providers: 'CPUExecutionProvider'",
        "ValueError: The device should not be 'gpu', since PaddlePaddle is not compiled with CUDA",
        "RuntimeError: Cannot initialize CUDA without ATen_cuda library. PyTorch splits its backend into two shared libraries",
        "UserWarning: The installed version of bitsandbytes was compiled without GPU support.",
        "system_info: n_threads = 32 / 64 | AVX = 1 | BLAS = 0 | SSE3 = 1 |",
    ],
    "cuda-library-missing": [
        "RuntimeError: Unable to load cuPTI. Is it installed?",
        "E external/xla/xla/stream_executor/cuda/cuda_dnn.cc Could not load cuSPARSE",
    ],
    "cudnn-mixed-copies": ["RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED"],
    "driver-not-installed": [
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly installed and present in your system.",
        "numba.cuda.cudadrv.error.CudaSupportError: Error at driver init: CUDA driver library cannot be found.",
        "INFO:    Could not find any nv files on this host!",
        "bash: nvidia-smi: command not found",
        "I tensorflow/tsl/cuda/cudart_stub.cc:28] Could not find cuda drivers on your machine, GPU will not be used.",
        "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'nvcuda.dll'; dlerror: nvcuda.dll not found",
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:271] failed call to cuInit: UNKNOWN ERROR (303)",
    ],
    "driver-not-loaded": [
        "pynvml.nvml.NVMLError_DriverNotLoaded: Driver Not Loaded",
        "kernel driver does not appear to be running on this host (myhost): /proc/driver/nvidia/version does not exist",
    ],
    "driver-too-old": [
        "nvidia-container-cli: requirement error: unsatisfied condition: driver>=525, please update your driver",
        "WARN CUDA Driver version found is 10020. Minimum requirement is 11000",
        "ImportError: /env/sgl_kernel/common_ops.abi3.so: undefined symbol: cuGreenCtxCreate",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 36: API call is not supported in the installed CUDA driver",
        "ImportError: /usr/lib/x86_64-linux-gnu/libcuda.so.1: undefined symbol: cuMemExportToShareableHandle",
        "undefined symbol: cuTensorMapEncodeTiled",
        "NVIDIA driver too old",
        "RuntimeError: Unexpected error from cudaGetDeviceCount() Error 36: the call is newer than the driver",
    ],
    "extension-binary-missing": [
        "RuntimeError: Could not find libbitsandbytes_cuda126.so in the package's folder",
        "RuntimeError: No compatible CUDA binary found at /venv/bitsandbytes/libbitsandbytes_cuda126.so",
    ],
    "extension-built-for-other-torch": [
        "ImportError: DLL load failed while importing flash_attn_2_cuda: The specified procedure could not be found."
    ],
    "fabric-manager-not-running": [
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 1048576 : CUDA error 401 'the operation cannot be performed in the present state'."
    ],
    "gpu-code-missing": [
        "W0824 gpu_resources.cc:96] The GPU architecture in your current machine is Pascal, which is not compatible with Paddle",
        "W0824 gpu_resources.cc:119] The GPU compute capability in your current machine is 120, which is not supported by Paddle",
        "gpu.go:138: CUDA GPU is too old. Falling back to CPU mode. Compute Capability detected: 5.2",
        "CUDA error: device kernel image is invalid",
        "ERROR: CUDA kernel mul_mat_q has no device code compatible with CUDA arch 520. ggml-cuda.cu was compiled for: 600,700",
    ],
    "gpu-error-logged": [
        "NVRM: Xid (PCI:0000:3b:00): 62, pid='<unknown>', name=<unknown>",
        "NVRM: Xid (PCI:0000:79:00): 109, pid=1, name=python, Ch 00000008, errorString CTX SWITCH TIMEOUT",
    ],
    "gpu-feature-unsupported": [
        "ValueError(\"type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')\")",
        "ValueError: Requested float16 compute type, but the target device or backend do not support efficient float16 computation.",
        "RuntimeError: CUDNN_STATUS_ARCH_MISMATCH",
        "RuntimeError: AWQ Gemm does not support for cuda arch < 7.5",
    ],
    "gpu-firmware-timeout": ["NVRM: GPU0 _kgspRpcRecvPoll: GSP RPC timed out"],
    "gpu-hidden": ["RuntimeError: CUDA error: invalid device ordinal", "AssertionError: Invalid device id"],
    "gpu-init-failed": [
        "Unable to determine the device handle for GPU 0000:02:00.0: Not Found",
        "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
        "CUDA error: MPS server is not ready to accept new MPS client requests",
        "pynvml.nvml.NVMLError_Unknown: Unknown Error",
        "ggml_cuda_init: failed to initialize CUDA: unknown error",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 999: unknown error",
    ],
    "gpu-lost": ["Unable to determine the device handle for GPU0000:01:00.0: Unknown Error"],
    "gpu-memory-exhausted": [
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    ],
    "gpu-unsupported-by-driver": [
        "WARNING: You do not appear to have an NVIDIA GPU supported by the 550.54.14 NVIDIA Linux graphics driver installed in this system."
    ],
    "jit-compiler-too-old": ["RuntimeError: CUDA error: NVRTC_ERROR_INVALID_OPTION"],
    "kernel-module-missing": [
        "ERROR: Unable to find the kernel source tree for the currently running kernel.",
        "Building DKMS module 'nvidia-535.104' for kernel-6.1.9_1... FAILED!",
    ],
    "library-not-found": [
        'OSError: [WinError 126] The specified module could not be found. Error loading "C:\\x\\torch\\lib\\c10_cuda.dll" or one of its dependencies.',
        "ImportError: DLL load failed while importing onnxruntime_pybind11_state",
    ],
    "mig-without-instances": ["0/1 nodes are available: 1 Insufficient nvidia.com/mig-1g.10gb."],
    "nccl-no-interface": ["NCCL WARN NET/IB : No IP interface found."],
    "nccl-version-mismatch": [
        "NCCL WARN NCCL library is too old. This application was compiled with NCCL version 2.28.3, but is running with NCCL"
    ],
    "no-gpu-visible": ['level=INFO source=gpu.go:386 msg="no compatible GPUs were discovered"'],
    "nvlink-down": [
        "CUDA error: uncorrectable NVLink error detected during the execution",
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Fatal, Link 46 egress non-posted PRIV error",
        "cuda error code 220",
    ],
    "python-unsupported": [
        "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)",
        "ERROR: torch-2.1.0-cp310-cp310-linux_x86_64.whl is not a supported wheel on this platform.",
    ],
    "toolkit-differs-from-build": [
        "Installed CUDA version 12.4 does not match the version torch was compiled with 12.1 but since the APIs are compatible, accepting this combination"
    ],
    "torch-family-mismatch": [
        "AttributeError: partially initialized module 'torchvision' has no attribute 'extension' (most likely due to a circular import)",
        "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.",
    ],
    "uncorrected-ecc": ["RuntimeError: CUDA error: uncorrectable ECC error encountered", "cuda error code 214"],
    "cudnn-too-old": ["Outdated cuDNN installation found."],
    "cuda-library-too-old": ["Outdated cuBLAS installation found."],
    "nouveau-loaded": [
        "NVRM: The NVIDIA probe routine was not called for 3 device(s).",
        "NVRM: nouveau, rivafb, nvidiafb or rivatv",
    ],
    "cudnn-missing": ["CUDA backend failed to initialize: Unable to load cuDNN. Is it installed?"],
    "requirement-broken": [
        "transformer-engine 1.0.0 requires flash-attn<=2.0.4,>=1.0.6, but you have flash-attn 2.3.6 which is incompatible."
    ],
}
