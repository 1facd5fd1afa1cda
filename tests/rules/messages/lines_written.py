"""Lines of array libraries, simulation programs, training tools and build tools, in the words of their sources, by problem."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "cpu-only-build": [
        "OSError: (PreconditionNotMet) CUDAPlace is not supported when not compiled with CUDA",
        "Cannot use GPU because you have installed CPU version PaddlePaddle.",
        "RuntimeError: Paddle is not compiled with CUDA. Cannot visit device count.",
        "ValueError: Paddle can't use CUDA device since it's not compiled with CUDA",
        "GPUPlace is not supported. Please re-compile with WITH_GPU option.",
        "Please use PaddlePaddle with GPU version.",
        "To use Paddle-TensorRT, please compile with TENSORRT first.",
        "RuntimeError: This build of HOOMD does not include GPU support.",
        "ValueError: Requested gpu_ids [0] but the llama.cpp build has no GPU backend (CPU-only build)",
        "RuntimeError: CUDA execution provider is either not enabled or not available.",
    ],
    "cuda-library-too-old": [
        "numba.cuda.cudadrv.error.CudaSupportError: runtime missing function: cudaRuntimeGetVersion.",
    ],
    "cudnn-too-old": [
        "NotImplementedError: Compute capability 10.3 requires cuDNN version >= 9.11.",
        "For cuDNN version below 9.5.0, paged caches are not supported",
        "DETERMINISTIC mode is not supported in cudnn version < 9.11.0",
    ],
    "driver-not-installed": [
        "Error: No valid CUDA driver found",
        "RuntimeError: Could not load the CUDA driver library",
        "[h264_nvenc @ 0x55d0] Cannot load nvcuda.dll",
        "[AVHWDeviceContext @ 0x55d0] Could not dynamically load CUDA",
    ],
    "driver-too-old": [
        "RuntimeError: The driver version is insufficient for this query",
        "RMM failure: cudaMallocAsync not supported with this CUDA driver/runtime version",
        "numba.cuda.cudadrv.driver.CudaDriverError: Driver missing function: cuMemAllocAsync",
        "error: Current Driver Version does not support this NvEncodeAPI version, please upgrade driver",
        "RuntimeError: CUDA driver symbol not found: cuMulticastCreate",
        "[hevc_nvenc @ 0x55d0] OpenEncodeSessionEx failed: invalid version (15): (no details)",
    ],
    "extension-binary-missing": [
        "RuntimeError: gsplat CUDA extension is not available (not built or failed to load). Cannot access 'rasterize'.",
        "RuntimeError: Inference CUDA backend is not available. Ensure CUDA toolkit is installed and the extension compiled.",
        "RuntimeError: selective_scan_cuda is not installed. To use Mamba-1, reinstall with:",
        "AssertionError: causal_conv1d_cuda is not available. Please install causal-conv1d.",
        "ImportError: Failed to load `kernels-community/deep-gemm` — check that a build matches the current torch/CUDA.",
        "ImportError: Failed to load the sonic-moe kernel — check that `kernels-community/sonic-moe` has a build matching the current torch/CUDA.",
        "ImportError: Pre-compiled binaries for lightning.gpu are not available. To manually compile from source, follow the instructions",
        "ImportError: Could not find module '_scatter_cpu' in /venv/lib/python3.11/site-packages/torch_scatter",
    ],
    "extension-built-for-other-torch": [
        "ImportError: Unsloth: You have torch = 2.1.0 but xformers = 0.0.27. Please install xformers < 0.0.24 for torch = 2.1.0.",
    ],
    "gpu-code-missing": [
        "Kokkos::Cuda::initialize ERROR: running kernels compiled for compute capability 9.0 on device with compute capability 8.0 is not supported by CUDA!",
        "Kokkos::Cuda::initialize ERROR: likely mismatch of architecture",
        "WARNING: The gmx binary does not include support for the CUDA architecture of the GPU ID #0 (compute capability 12.0).",
        "Error: The active GPU (12.0) is not supported by the Libtorch build. Please recompile GROMACS",
        "The installed llama.cpp build only has GPU code for sm_75 and newer, but GPU 0 is sm_61",
        "WARNING: The installed llama.cpp build has no kernels for any GPU on this host (GTX 1080), so inference runs elsewhere",
        "numba.cuda.cudadrv.nvrtc.CCSupportError: GPU compute capability 3.5 is not supported(requires >=5.0)",
    ],
    "gpu-feature-unsupported": [
        "ValueError: bf16 mixed precision requires PyTorch >= 1.10 and a supported device.",
        "ImportError: GPU with CUDA capability 7 0 is not supported",
        "ValueError: Query, key, and value must be on a CUDA device with compute capability >= 8.0.",
        "AssertionError: SM89 kernel is not available. Make sure you GPUs with compute capability 8.9.",
        "Too old compute capability major version to run gqa_attn_splitk_wmma (use_tensor_cores=True)",
        "This example requires a GPU of NVIDIA's Blackwell Architecture (compute capability 100a) and CUDA 12.8 or greater.",
        "RuntimeError: The device GTX 680 with compute capability 3.0 does not support HOOMD-blue.",
        "ValueError: CUDA device is an unsupported version: (5, 2)",
        "Engine hardware compatibility cannot be enabled as GPU arch < 80.",
        "[h264_nvenc @ 0x55d0] OpenEncodeSessionEx failed: unsupported device (2): (no details)",
    ],
    "gpu-hidden": [
        "RuntimeError: No device of GPU-5a1b2c3d is found. Target device may not be visible in this process.",
        "RuntimeError: device 3 is not visible (CUDA_VISIBLE_DEVICES=0,1)",
    ],
    "host-compiler-unsupported": [
        "CMake Error: FBGEMM_GPU requires GCC 11.4 or higher.",
        "CMake Error: Insufficient gcc version (4.8)",
    ],
    "jit-compiler-missing": [
        "RuntimeError: Link time optimization requires nvJitLink.",
        "RuntimeError: LTO requires nvjitlink, which is not available or not sufficiently recent (>=12.3)",
        "DynamicLibNotFoundError: nvvm not found and CUDA_HOME/CUDA_PATH is set",
    ],
    "library-not-found": [
        "UserWarning: Unsloth: CUDA is not linked properly.",
    ],
    "no-gpu-visible": [
        "There is no device supporting CUDA",
        "Exception: No compatible CUDA device is available",
        "RuntimeError: No supported GPUs are present on this system.",
        "ValueError: No supported CUDA-capable device found",
        'CMake Error: CUDA_ARCHITECTURES is set to "native", but no NVIDIA GPU was detected.',
        "ValueError: You are attempting to use Flash Attention 2 with a model not initialized on GPU and with no GPU available.",
        "ValueError: FlashAttention2 is not available on CPU. Please make sure torch can access a CUDA device.",
        "RuntimeError: None of the available devices `available_devices = None` are supported by the bitsandbytes version you have installed",
        "NotImplementedError: Unsloth cannot find any torch accelerator? You need a GPU.",
        "[FFI] Failed to detected Nvidia GPU(s) on the system",
        "RuntimeError: No target compute capabilities. Set TORCH_CUDA_ARCH_LIST or build on a machine with GPUs.",
    ],
    "peer-access-blocked": [
        "NotImplementedError: Using RTX 4000 series doesn't support faster communication broadband via P2P or IB.",
        "We've detected an older driver with an RTX 4000 series GPU. These drivers have issues with P2P.",
    ],
    "python-unsupported": [
        "Installation of xformers is not supported in this version of Python.",
    ],
    "requirement-broken": [
        "ValueError: FSDP2-based Context parallelism is only available in PyTorch 2.6 and later versions. Please upgrade your PyTorch version.",
        "ValueError: QAT is not supported on torch version < 2.6.0",
        "NotImplementedError: Low memory initialization requires torch >= 1.9.0. Please either update your PyTorch version",
        "RuntimeError: In order to use TorchAO pre-quantized model, you need to have torch>=2.5.0. However, the current version is 2.4.1.",
        "RuntimeError: B300 (sm_103) requires Triton 3.6.x, but found 3.5.1.",
    ],
    "tensorrt-engine-mismatch": [
        "ERROR ❌ TensorRT model exported with a different version than expected",
    ],
    "tensorrt-missing": [
        "CMake Error: Cannot find TensorRT headers",
    ],
    "toolkit-missing": [
        "RuntimeError: Failed to find CUDA headers. Please install CUDA toolkit headers",
        "NVCCException: Failed to run `nvcc` command. Check PATH environment variable: nvcc",
        "RuntimeError: Cannot find CUDA_HOME. CUDA must be available to build the package.",
        "ImportError: DeepGEMM's JIT needs a CUDA toolkit ≥ 12.3, but none was found. Set `CUDA_HOME` to a CUDA toolkit.",
        "ImportError: DeepGEMM's JIT compiles with nvcc, but none was found in `/usr/local/cuda/bin`.",
        "CMake Error: nvcc is required for a CUDA build, please set CUDAToolkit_ROOT appropriately",
        "RuntimeError: nvdisasm has not been found. You may need to install the CUDA toolkit",
        "RuntimeError: CUDA is not found.",
        "CMake Error: Couldn't find CUDA library root.",
        "Failed to detect CUDA nvcc include information: #$ PATH=",
        '# error "The CMAKE_CUDA_COMPILER is set to an invalid CUDA compiler"',
    ],
    "toolkit-too-old": [
        "Dependency CUDA: The current nvcc version 11.4 does not satisfy the specified CUDA Toolkit version requirements ['>=12.0'].",
        "CMake Error: libcudf requires CUDA Toolkit 12.2+ to compile (nvcc 11.8 provided)",
        "RuntimeError: CUDA 12.4 or higher is required for compute capability 8.9.",
        "ImportError: DeepGEMM on SM100 needs a CUDA ≥ 12.9 toolkit, but nvcc 12.4 in `/usr/local/cuda` is too old.",
        "UserWarning: CUDA Toolkit 10.2 is unsupported by Numba - 11.0 is the minimum required version.",
        "RuntimeError: mamba_ssm is only supported on CUDA 11.6 and above.",
        "CUDA version is too old: 11010",
        "CMake Error: SM100a+ kernels require cuda >= 12.8",
    ],
    "variable-stops-framework": [
        "numba.cuda.cudadrv.error.CudaSupportError: CUDA is disabled due to setting NUMBA_DISABLE_CUDA=1 in the environment, or because CUDA is unsupported on 32-bit systems.",
    ],
}
