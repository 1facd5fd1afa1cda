"""Lines about CUDA's libraries in the shape of public reports, by the problem that each names on its own."""

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "stub-library-loaded": [
        "You are running using the stub version of nvrtc",
        "cudaErrorStubLibrary: CUDA driver is a stub library",
        "WARNING: The following libraries are stubs: /usr/local/cuda/lib64/stubs/libcuda.so",
        "cuInit failed with error code 34",
    ],
    "nvjitlink-mismatch": [
        "ImportError: libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12",
        "libcusolver.so.11: symbol __nvJitLinkComplete_12_4 version libnvJitLink.so.12 not defined in file, link error",
        "ImportError: /opt/cuda/lib64/libnvJitLink.so.12: version `libnvJitLink.so.13' not found",
    ],
    "cudnn-mixed-copies": [
        "RuntimeError: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
        "symbol lookup error: cudnnX, version libcudnn_ops.so.9 not defined in file libcudnn_ops.so.9",
        "ImportError: /usr/lib/libcudnn_cnn_infer.so.8: undefined symbol: _ZN5cudnn3opsE",
        "Could not load symbol cudnnGetLibConfig. Error: libcudnn_graph.so.9 : undefined symbol: cudnnGetLibConfig",
    ],
    "library-shadowed": [
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 3, 2) but found (8, 0, 3)",
        "ImportError: libcublas.so.11: symbol cublasLtX, version libcublasLt.so.11 not defined in file libcublasLt.so",
    ],
    "cudnn-too-old": [
        "cuda_dnn.cc:427] Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.6.0.",
        "RuntimeError: Found cuDNN version 90100, but JAX was built against version 90800, which is newer.",
        "Error: cuDNN version 8.2.4 is too old for this operation",
        "RuntimeError: this build requires at least cuDNN 9.3 or newer",
        "error: the CuDNN library needs to have matching major version and equal or higher minor version",
    ],
    "cuda-library-too-old": [
        "Found cuSOLVER version 11002, but JAX was built against version 11401, which is newer",
        "error: CUDA runtime version 11.2 is older than the version this was built with",
        "ImportError: /usr/local/cuda/lib64/libcublas.so.11: version `libcublas.so.11' not found",
        "undefined symbol: cublasLtGetStatusString, version libcublasLt.so.11",
    ],
    "nccl-version-mismatch": [
        "ImportError: libtorch_cuda.so: undefined symbol: ncclCommRegister",
        "NCCL WARN Mismatched NCCL version detected : rank 3 has 2.18.1",
        "python: symbol lookup error: libtorch_cuda.so: cannot resolve ncclMemFree",
    ],
    "nccl-no-interface": [
        "include/socket.h:344 WARN Socket creation failed : Address family not supported by protocol",
        "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)",
        "bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        "RuntimeError: no socket interface found for eth9",
        "error: NCCL_SOCKET_IFNAME=ib7: no such interface",
    ],
    "tensorrt-engine-mismatch": [
        "6: The engine plan file is not compatible with this version of TensorRT, please rebuild.",
        "Version tag does not match. Note: Current Version: 0, Serialized Engine Version: 43",
        "error: expecting library version 8.0.0 got 8.0.1, please rebuild.",
        "Error: the engine was built with a different version of TensorRT",
    ],
    "tensorrt-mixed-versions": [
        "error: TensorRT was compiled against 10.0.1 but linked 8.6.1",
        "ImportError: libnvinfer_plugin.so.10: undefined symbol: _ZN8nvinfer1E",
        "WARNING: built with TensorRT-10.0 but loaded library TensorRT 8.6",
    ],
    "jit-compiler-too-old": [
        "RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)",
        "asm_compiler.cc:231] Falling back to the CUDA driver for PTX compilation; ptxas does not support CC 8.9",
        "*** WARNING *** You are using ptxas 9.2.148, which is older than 11.1.",
        "ptxas tinycuda.ptx, line 9; fatal   : Unsupported .version 8.5; current version is '7.5'",
        "ptxas line 6; error   : PTX .version 7.4 does not support .target sm_89",
        "ptxas fatal   : Value 'sm_103a' is not defined for option 'gpu-name'",
        "ptxas fatal: SM version specified by .target is higher than default SM version assumed",
        "'sm_120' is not a recognized processor for this target (ignoring processor)",
        "libNVVM Error: -arch=compute_120 is an unsupported option",
        "error: ptxas version 11.4 is too old",
    ],
    "jit-compiler-missing": [
        "nvptx_compiler.cc:129] Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice.",
        "NvvmSupportError: libNVVM cannot be found. Do `conda install cudatoolkit`:",
        "RuntimeError: Cannot find ptxas",
        'cuda.pathfinder.DynamicLibNotFoundError: Failure finding "libnvvm.so": No such file: libnvvm.so',
        "sh: 1: ptxas: not found",
        "Couldn't find a suitable version of ptxas. The following locations were considered:",
        "XlaRuntimeError: UNAVAILABLE: No PTX compilation provider is available. Neither ptxas/nvlink nor nvjtlink is",
        "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
        "/tmp/tmpqkz3/main.c:5:10: fatal error: Python.h: No such file or directory",
    ],
    "toolkit-lacks-gpu": [
        "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
        "ValueError: Unknown CUDA arch (12.0) or GPU not supported",
    ],
    "toolkit-differs-from-build": [
        "The detected CUDA version (10.1) mismatches the version that was used to compile PyTorch (12.1).",
        "Exception: Installed CUDA version 11.2 does not match the version torch was compiled with 11.7",
        "extensions are being compiled with a version of Cuda that does not match the version used to compile Pytorch",
        "error: nvcc version 11.5 does not match the one torch was built with",
    ],
    "toolkit-missing": [
        "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        "/bin/sh: 1: nvcc: not found",
        "error: No CUDA toolset found.",
        "RuntimeError: Could not find nvcc, please set CUDAToolkit_ROOT",
        "warnings.warn: nvcc was not found.  Are you sure your environment has nvcc available?",
        "CMake Error: No CMAKE_CUDA_COMPILER could be found.",
    ],
    "cudnn-missing": [
        "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory",
        "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}",
        "RuntimeError: (PreconditionNotMet) Cannot load cudnn shared library.",
        "error: cuDNN is not installed",
        "ImportError: Make sure that libcudnn_cnn_infer.so.8 is in your library path!",
    ],
    "tensorrt-missing": [
        "libonnxruntime_providers_tensorrt.so with error: libnvinfer.so.10: cannot open shared object file",
        "EP Error: Please install TensorRT libraries as mentioned in the GPU requirements page",
    ],
    "nccl-missing": [
        "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory",
        "Unable to find libnccl.so.2",
        "Failed to load NCCL library from the system",
    ],
    "cuda-library-missing": [
        "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",
        "RuntimeError: Library libcublas.so.12 is not found or cannot be loaded",
        "Could not load dynamic library 'cudart64_110.dll'; dlerror: cudart64_110.dll not found",
        "Could not find cufft64_10.dll",
        "dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: not found",
    ],
    "library-not-found": [
        "operation cusparseGetProperty(MAJOR_VERSION, &major) failed: The cuSPARSE library was not found.",
        "RuntimeError: The cuBLAS library was not found.",
        "gpu_device.cc:1850] Cannot dlopen some GPU libraries.",
        'LoadLibrary failed with error 126 "" when trying to load "capi/onnxruntime_providers_cuda.dll"',
        "Failed to create CUDAExecutionProvider. Please reference the GPU requirements page.",
        "EP Error: Require cuDNN 9.* and CUDA 12.*, and the latest MSVC runtime",
    ],
}

HARMLESS = [
    "cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN",
    "misc/ibvwrap.cu:61 NCCL WARN Failed to open libibverbs.so[.1]",
    "NET/Plugin : No plugin found (libnccl-net.so)",
    "[TRT] [W] TensorRT was linked against cuDNN 8.9.0 but loaded cuDNN 8.7.0",
    "[W] [TRT] TensorRT was linked against cuBLAS/cuBLAS LT 11.6.1 but loaded cuBLAS/cuBLAS LT 11.4.2",
    "tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT",
    "dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared",
    "ImportError: libfoo.so.1: cannot open shared object file: No such file or directory",
    "cuDNN version: Could not collect",
]
