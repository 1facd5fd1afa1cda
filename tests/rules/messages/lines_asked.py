"""Lines of builds, loaders and containers in the shape of public questions, by the problem that they name."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "container-lost-gpu": [
        "after systemctl daemon-reload the container still runs, but its next job fails: no CUDA-capable device is detected"
    ],
    "container-toolkit-missing": [
        'failed to inject devices: failed to stat CDI host device "/dev/dri/renderD129": no such file or directory'
    ],
    "container-without-gpu": [
        'failed to create task: runc create failed: "nvidia-smi": executable file not found in $PATH: unknown',
        "k3s with nvidia as a second runtime: I had to add runtimeClassName: nvidia to the pod before torch saw the GPU",
    ],
    "cpu-only-build": [
        "Error: Dense stereo reconstuction requires CUDA here",
        "Skipping patch match stereo because CUDA is not available",
        "Cannot use GPU feature extraction without CUDA or OpenGL support",
        "import dlib; dlib.DLIB_USE_CUDA returns False",
        "CUDAExecutionProvider is asked for; onnxruntime.get_available_providers() -> ['AzureExecutionProvider', 'CPUExecutionProvider']",
        "### CUDA WAS NOT COMPILED IN! ###",
        "The MinkowskiEngine was compiled with CPU_ONLY flag.",
        "Neither TORCH CUDA nor MPS version not installed/working.",
        "- CUDA backend:  OFF",
        "pytorch and torchvision together result in the CPU version being installed",
        "that lead pytorch choose cpu version instead cuda version",
    ],
    "cuda-library-missing": [
        "import mxnet (mxnet-cu101): OSError: [WinError 126] The specified module could not be found",
        'OpenMMException: There is no registered Platform called "CUDA"',
        "GpuArrayException: Error loading library: 0",
        "System.DllNotFoundException: Unable to load DLL 'yolo_cpp_dll_gpu.dll'",
        "two message boxes about missing CUDA DLLs",
        'WARNING: CUDA runtime libraries not found. Try `pip install "gpt4all[cuda]"`',
        "\\\\?\\D:\\node_modules\\@tensorflow\\tfjs-node-gpu\\lib\\napi-v5\\tfjs_binding.node",
        "Library not loaded: @rpath/libcudart.8.0.dylib",
    ],
    "cuda-major-mismatch": [
        "Failed to load library libonnxruntime_providers_cuda.so: this ORT version does not support CUDA 13"
    ],
    "cudnn-missing": [
        "-- cuDNN V5.0 OR GREATER NOT FOUND. DLIB WILL NOT USE CUDA.",
        "the build did not find cuDNN",
        "RuntimeError: Could not load cudnn library. Check your cudnn installation",
        "cudnn (ADVANCED)",
        "-- cuDNN not found",
    ],
    "cudnn-mixed-copies": ["ERROR: bundled cuDNN mixes multiple builds in /backends/lib:"],
    "cudnn-too-old": [
        "cuDNN version is too old. Update to v5* or higher, was 4007.",
        "Use cuDNN 7.0.2 or higher for Volta.",
        "RuntimeError: cudnn RNN require cudnn v5 final or higher.",
        "cuDNN version >3 is required.",
    ],
    "damaged-distribution": [
        "AttributeError: type object 'cupy.core.core.broadcast' has no attribute '__reduce_cython__'"
    ],
    "driver-library-mismatch": [
        "cudaGetDeviceCount returned 803",
        "the kernel module already loaded stays at the old version until reboot",
    ],
    "driver-library-unusable": [
        "OSError: libcuda.so.1: cannot enable executable stack as shared object requires: Permission denied",
        "/usr/lib64/libcuda.so: undefined symbol: cuDriverGetVersion",
        'ERROR: InitError: could not load symbol "cuDriverGetVersion":',
    ],
    "driver-not-installed": [
        "The code execution cannot proceed because nvcuda.dll was not found.",
        'LoadLibrary "nvcuda.dll" Failed!',
        "ATTENTION! No OpenCL, HIP or CUDA compatible platform found.",
        "clGetPlatformIDs(): CL_PLATFORM_NOT_FOUND_KHR on the RTX 2060",
        "driver: No Nvidia driver found",
        "Unable to dlopen libcuda.so.1 : file not there",
        "WARNING: Could not find any NVIDIA libraries on this host!",
        "`nvidia-smi` failed. Ensure that you have CUDA installed and that `nvidia-smi` is in your PATH.: Os { code: 2, kind: NotFound }",
        "Error: No CUDA driver found",
    ],
    "driver-not-loaded": [
        'open("/dev/nvidiactl", O_RDWR) = -1 ENOENT (No such file or directory)',
        "WARNING: Could not find any NVIDIA devices on this host!",
        "can't find nvidia driver. Make sure it's installed and running.",
    ],
    "driver-too-old": [
        "Outdated NVIDIA CUDA driver version '8000' detected!",
        "RuntimeError: Error creating cudnn handle. This can be a sign of a too old driver.",
        "Driver does not support CUDA 11.8 API! Update your nVidia driver!",
        "RuntimeWarning: the version of your CUDA header does not match the version of your CUDA driver.",
        "ArrayFire was built with CUDA 12.2 which requires GPU driver version 525.60.13 or later",
        "CUDA error: ERROR: The CUDA driver version is older than the runtime version.",
        "GPU driver version not supported. Minimum required driver version is 452.39",
        "cudaGetDeviceCount returned 35",
        "Exception: The nvidia driver version installed with this OS does not give good results for reduction.",
        "运行时出现显卡驱动过低异常。",
    ],
    "extension-binary-missing": [
        "OSError: cannot load library 'librmm.so': librmm.so: cannot open shared object file: No such file or directory"
    ],
    "fabric-manager-not-running": ["cudaGetDeviceCount returned 802"],
    "gpu-code-missing": [
        "    requires device with capability <= (9, 0) but your GPU has capability (12, 0) (too new)",
        "CUDA binary kernel for this graphics card compute capability (12.0) not found.",
        "UserWarning: trying to compile for a compute capability higher than selected GPU",
        "Check failed: error == cudaSuccess (209 vs. 0)",
    ],
    "gpu-feature-unsupported": [
        "    requires device with capability > (8, 0) but your GPU has capability (7, 5) (too old)",
        "* Device #1: This hardware has outdated CUDA compute capability (3.5).",
        "CUDA backend requires compute capability 3.0 or up, but found 2.1.",
        "WARNING : at least one of your GPUs is not compatible with RELION (CUDA/HIP-capable for supported GPU targets)",
        "[NVIDIA VIDEO FX]: disabled, unsupported GPU",
    ],
    "gpu-hidden": [
        "F0827 18:30:32.719889 28360 relu_layer.cu:26] Check failed: error == cudaSuccess (10 vs. 0)  invalid device ordinal"
    ],
    "gpu-init-failed": [
        "Failed to initialize the NVIDIA main driver CUDA runtime library.",
        "Failed to initialize CUDA runtime (Unknown error)",
        "pygpu.gpuarray.GpuArrayException: b'cuInit: unknown error'",
        'openat(AT_FDCWD, "/dev/nvidia-uvm", O_RDWR|O_CLOEXEC) = -1 EIO (Input/output error)',
        "cupy.cuda.runtime.CUDARuntimeError: cudaErrorUnknown: unknown error",
        "Couldn't init CUDA: unknown error",
        "CUDA driver and/or runtime could not be initialized",
        "cudaGetDeviceCount returned 3",
        "Error: nvmlDeviceGetHandleByIndex(): Unknown Error",
        "Cannot get number of CUDA devices: operation not supported.",
        "[ERROR]: cudaErrorUnknown: unknown error",
    ],
    "gpu-lost": [
        "|   3  ERR!                           ERR!| 00000000:C1:00.0 ERR!|                 ERR! |",
        "|   0  Unknown Error                  Off | 00000000:65:00.0 Off |                  N/A |",
        "Error: nvmlDeviceGetHandleByIndex(): GPU is lost",
    ],
    "gpu-memory-exhausted": [
        "GpuArrayException: ('cublasCreate: (cublas) Library not initialized.', 11)",
        "GPU loading failed (out of VRAM?)",
        "cuda runtime error (2) : out of memory at /tmp/luarocks_cutorch/THCStorage.cu:44",
    ],
    "gpu-unsupported-by-driver": [
        "NVIDIA GPU 0: GeForce 9800 GT cannot be used for CUDA or OpenCL computation with CUDA driver 6.5 or later"
    ],
    "host-compiler-unsupported": [
        "*** CUDA was found but your compiler failed to compile a simple CUDA program so dlib isn't going to use CUDA.",
        '/usr/include/c++/15/type_traits(393): error: identifier "char8_t" is undefined',
        'C:\\VS\\VC\\Tools\\MSVC\\14.44.35207\\include\\cmath(24): error: identifier "_Is_nan" is undefined',
        "meson.build:1:0: ERROR: Compiler nvcc cannot compile programs.",
        "GCC 10 is not supported by the image's nvcc",
    ],
    "jit-compiler-too-old": ["the current platform does not support these layers due to mismatch of libnvrtc version."],
    "known-bad-release": [
        "ImportError: libctranslate2-d3638643.so.4.4.0: cannot enable executable stack as shared object requires: Invalid argument"
    ],
    "library-not-found": [
        "[ErrorCode:Fail] OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library"
    ],
    "nccl-missing": ["Multi-GPU execution not available - rebuild with USE_NCCL"],
    "no-gpu-visible": [
        "Check failed: num_cuda_devices > 0 (0 vs. 0)",
        "CheckCudaDevice: no device supporting CUDA.",
        "OpenMMException: The requested CUDA device could not be loaded",
        "Found no Cycles device of the specified type",
        "pygpu.gpuarray.GpuArrayException: No cuda device available",
        "No devices found/left.",
        "gpuDeviceInit() CUDA error: no devices supporting CUDA.",
        "### WE DID NOT GET A CUDA GPU!!! ###",
        "CUDA device requested but no devices found.",
        "RuntimeError: HiDream-O1-Image requires a CUDA-capable GPU",
        "CUDA: No CUDA-capable NVIDIA GPUs found",
        "No GPU found. Please use a GPU to train your neural network.",
        "cudaGetDeviceCount returned 38",
        "No CUDA capable GPU detected",
        "No Cuda GPU available Runtime Error",
        'I input "nvidia-smi" command in terminal and got "No devices were found"',
        "There is no GPU.",
        "The CUDA API is returning that there are no CUDA-capable devices present",
        "* CUDA disabled (no devices)",
        "  CUDA enabled but no NVIDIA GPU architecture currently enabled and",
    ],
    "no-nvidia-gpu": [
        "The notebook on Colab was connected to the CPU instead of the GPU runtime",
        "This server doesn't have a graphics card, CUDA is not wanted",
        "I don't have any NVIDIA graphics card",
        "dlopen(libcuda.dylib, 1): image not found",
    ],
    "nouveau-loaded": ["the laptop is running the nouveau driver and hashcat -I lists nothing"],
    "persistence-mode-off": [
        "nvidia-container-cli: initialization error: driver error: timed out, with persistence mode disabled"
    ],
    "requirement-broken": ["ModuleNotFoundError: No module named 'torchvision.transforms.functional_tensor'"],
    "scheduler-lacks-gpu": [
        "ValueError: Ray does not allocate any GPUs on the driver node. Consider adjusting the Ray placement group or running the driver on a GPU node.",
        "RuntimeError: You don't have enough GPUs available in a current node. Check `ray status`",
        "ValueError: Cannot provide a placement group of placement_group_specs=[{'GPU': 1.0}] within 1800 seconds.",
        "INFO ray_utils.py:212] Waiting for creating a placement group of specs for 30 seconds. specs=[{'GPU': 1.0}]",
    ],
    "secure-boot-blocks-module": ["modprobe: ERROR: could not insert 'gdrdrv': Required key not available"],
    "shared-memory-too-small": ["报错共享内存不足"],
    "stub-library-loaded": ["I added /usr/local/cuda/lib64/stubs to LD_LIBRARY_PATH, now cuInit fails"],
    "system-library-missing": [
        "DEBUG: Failed to initialize HAL: clGetPlatformIDs libOpenCL.so: cannot open shared object file: No such file or directory"
    ],
    "tensorrt-engine-mismatch": [
        "UNAVAILABLE: Internal: unable to load plan file to auto complete config: /models/net/1/model.plan",
        "Internal: unable to create TensorRT engine",
        "coreReadArchive.h(271) - Serialization Error in readExternal: 0 (Type mismatch)",
    ],
    "thermal-throttled": ["Temperature limit on GPU #1 reached, aborting...", "it quits since the GPU exceeds 90º C"],
    "toolkit-missing": [
        "OSError: The nvcc binary could not be located in your $PATH. Either add it to your path, or set $CUDAHOME",
        "error: command 'C:/CUDA/v11.8\\\\bin\\\\nvcc.exe' failed: None",
        "unable to execute '/opt/cuda/bin/nvcc': No such file or directory",
        "-- DID NOT FIND CUDA",
        "-- Disabling CUDA support (not found)",
        "ERROR (theano.sandbox.cuda): nvcc compiler not found on $PATH.",
        "-- CUDA is not detected by cmake. Building without it...",
        'links to target "CUDA::cudart" but the target was not found.',
        "FileNotFoundError: cuda installation not found in /usr/local/cuda or $CUDA_PATH",
        "        Neither CUDA nor HIP found",
    ],
    "variable-leads-nowhere": [
        "error: command '/usr/local/cuda:/usr/local/cuda-11.8/bin/nvcc' failed with exit status 1",
        "error: command 'C:\\CUDA\\v11.8;C:\\CUDA\\v12.1\\bin\\nvcc.exe' failed: None",
        "CUDA_HOME=/usr/local/cuda-11.8: unable to execute '/usr/local/cuda-11.8/bin/nvcc': No such file or directory",
        "OSError: The CUDA lib64 path could not be located in /usr/lib/cuda/lib64",
    ],
    "video-libraries-missing": [
        "Could not dynamically load libnvidia-encode.so.1. Please ensure Nvidia Graphics drivers are correctly installed!"
    ],
    "gpu-error-logged": [
        "|  0%   33C    P8              ERR! / 350W  |      1MiB / 24576MiB |      0%      Default |",
        "| ERR!  48C    P2             118W / 250W  |   8120MiB / 11264MiB |     97%      Default |",
    ],
    "nccl-version-mismatch": [
        "NCCL error in: ProcessGroupNCCL.cpp:1970, internal error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5 Last error: Message truncated : received 160 bytes instead of 64"
    ],
    "wrong-result": [
        "\tGPU 2: FAULTY",
        "34.2%  proc'd: 1520 (9210 Gflop/s) - 1511 (9180 Gflop/s)   errors: 0 - 12  (WARNING!)  temps: 61 C - 64 C",
        " Invalid value when checking the pattern at <0x7f11a2000000>",
        "# Out of bounds values : 3 FAILED",
    ],
}
