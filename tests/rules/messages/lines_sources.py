"""Lines as the sources of the programs have them: frameworks, NCCL, container tools, compilers, drivers."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "container-ldconfig-fails": [
        "nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or directory: unknown",
        "nvidia-container-cli: ldcache error: process /sbin/ldconfig failed with error code: 1: unknown",
    ],
    "container-toolkit-too-old": [
        "failed call to cuInit: UNKNOWN ERROR (500)",
        "failed call to cuInit: CUDA_ERROR_NOT_FOUND: named symbol not found",
        "cuInit failed with error 500",
        "Error 500: named symbol not found",
        'level=INFO msg="cuda driver library init failure: 500"',
    ],
    "cpu-only-build": [
        "No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)",
        "RuntimeError: Unknown backend cuda. Available backends are ['cpu']",
        "RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms present are: cpu",
        "RuntimeError: Method 'cadam32bit_grad_fp32' not available in CPU-only version of bitsandbytes.",
        "AttributeError: module 'faiss' has no attribute 'StandardGpuResources'",
    ],
    "cuda-library-missing": [
        "The third-party dynamic library (libcublas.so) that Paddle depends on is not configured correctly.",
        "CUDA 12.x runtime libraries were not found in the LD_LIBRARY_PATH.",
        'Error loading "C:\\onnxruntime_providers_cuda.dll" which depends on "cublasLt64_12.dll" which is missing.',
    ],
    "cuda-library-too-old": [
        "cudf.errors.UnsupportedCUDAError: Detected CUDA Runtime version is 11.0. Please update your CUDA Runtime to 11.2 or above."
    ],
    "cudnn-missing": [
        'Error loading "onnxruntime_providers_cuda.dll" which depends on "cudnn64_9.dll" which is missing.',
        "Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor",
        "The third-party dynamic library (libcudnn.so) that Paddle depends on is not configured correctly.",
    ],
    "driver-library-mismatch": ["NVRM: The NVIDIA kernel module does not have the same version as the NVIDIA driver"],
    "driver-not-installed": [
        "RuntimeError: dlopen libcuda.so failed!. Please install GPU driver",
        'level=fatal msg="Failed to initialize NVML; err: NVML doesn\'t exist on this system"',
    ],
    "driver-not-loaded": [
        "failed to generate spec: lstat /run/nvidia/driver/dev/nvidiactl: no such file or directory",
        "modprobe: ERROR: could not insert 'nvidia': No such device",
    ],
    "driver-too-old": [
        "[h264_nvenc @ 0x55] Driver does not support the required nvenc API version. Required: 12.1 Found: 12.0",
        "[h264_nvenc @ 0x55] The minimum required Nvidia driver for nvenc is 530.41.03 or newer",
    ],
    "extension-binary-missing": [
        "AttributeError: '_OpNamespace' '_flash_attn_3' object has no attribute 'fwd'",
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
        "AttributeError: '_OpNamespace' '_moe_C' object has no attribute 'topk_softmax'",
        "RuntimeError: operator _C::paged_attention_v1 does not exist",
        "flashinfer_python is not installed, please install it",
        "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: the package flash_attn seems to be not installed.",
        "No compatible CUDA library found (tried: libbitsandbytes_cuda131.so). You may need to compile from source:",
        "AttributeError: 'NoneType' object has no attribute 'cget_managed_ptr'",
        "🚨 CUDA VERSION MISMATCH 🚨",
        "AssertionError: Could not find shared object file for Transformer Engine torch lib.",
        "Found empty `transformer-engine` meta package installed. Install `transformer-engine` with framework extensions via",
    ],
    "extension-built-for-other-torch": [
        "RuntimeError: Detected that PyTorch and torch_scatter were compiled with different CUDA versions. PyTorch has CUDA version 11.7 and torch_scatter has CUDA version 10.2. Please reinstall the torch_scatter that matches your PyTorch install."
    ],
    "gpu-feature-unsupported": [
        "cudf.errors.UnsupportedCUDAError: A GPU with NVIDIA Volta (Compute Capability 7.0) or newer architecture is required.",
        "RuntimeError: SGLang only supports sm75 and above.",
    ],
    "gpu-hidden": [
        "Error 101: invalid device ordinal",
        "nvidia-container-runtime-hook: error getting visible devices: insufficient privileges to read device list from NVIDIA_VISIBLE_DEVICES envvar",
        "MisconfigurationException: You requested gpu: [0, 1] But your machine only has: [0]",
    ],
    "gpu-init-failed": [
        "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuInit results in CUDA_ERROR_OUT_OF_MEMORY",
        "nvidia-container-cli: detection error: nvml error: unknown error: unknown",
        "RuntimeError: CUDA error: unknown error CUDA kernel errors might be asynchronously reported",
        "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:01:00.0)",
        "RuntimeError: CUDA error: unknown error",
    ],
    "gpu-needs-reset": [
        "Warning: MIG mode is in pending enable state for GPU 00000000:07:00.0:In use by another client"
    ],
    "host-compiler-unsupported": [
        "nvcc fatal   : Failed to preprocess host compiler properties.",
        "nvcc fatal : Host compiler targets unsupported OS.",
        "gcc: error trying to exec 'cc1plus': execvp: No such file or directory",
        "error: #error C++17 or later compatible compiler is required to use PyTorch",
    ],
    "imex-not-ready": [
        "NCCL WARN Cuda failure 'operation not permitted'",
        "NCCL WARN Cuda failure 800 'operation not permitted'",
        "NCCL WARN MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel configuration (/dev/nvidia-caps-imex-channels). Set NCCL_MNNVL_ENABLE=0 to ignore this issue.",
        "NCCL WARN MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration (/etc/nvidia-imex/...)",
    ],
    "jax-plugin-mismatch": [
        "AttributeError: module 'jaxlib.xla_client' has no attribute 'mlir_api_version'",
        "AttributeError: module 'jaxlib.xla_extension' has no attribute 'ArrayImpl'",
        "ImportError: cannot import name 'xla_client' from 'jaxlib' (unknown location)",
        "ImportError: cannot import name 'ifrt_programs' from 'jaxlib' (/venv/lib/python3.11/site-packages/jaxlib/__init__.py)",
        "ModuleNotFoundError: No module named 'jaxlib.mlir.dialects.mpmd'",
        "AttributeError: module 'jaxlib._jax' has no attribute 'Device'",
        "TypeError: xla_extension.ExecutableBuildOptions has no attribute 'exec_time_optimization_effort'",
        "AttributeError: 'jaxlib.xla_extension.Client' object has no attribute 'compile_and_load'",
    ],
    "jit-compiler-too-old": [
        "subprocess.CalledProcessError: Command '/triton/backends/nvidia/bin/ptxas -lineinfo -v --gpu-name=sm_120 /tmp/a.ptx -o /tmp/a.o' returned non-zero exit status 255.",
        "numba.cuda.cudadrv.error.NvvmSupportError: No supported GPU compute capabilities found. Please check your cudatoolkit version matches your CUDA version.",
        "No supported GPU compute capabilities found. Please check your cudatoolkit version matches your CUDA version.",
    ],
    "kernel-module-missing": [
        "make[2]: *** [scripts/Makefile.build:271: /var/lib/dkms/nvidia/470.57.02/build/nvidia/nv-mmap.o] Error 1",
        "Init:CrashLoopBackOff nvidia-driver-daemonset Could not resolve Linux kernel version",
        "Error! The dkms.conf for this module includes a BUILD_EXCLUSIVE directive which does not match this kernel/arch.",
        "Error!  Build of nvidia.ko failed for: 6.14.0-15-generic (x86_64)",
        "nvidia: version magic '5.15.0-91-generic SMP mod_unload modversions ' should be '5.15.0-92-generic SMP mod_unload modversions '",
        "nvidia: Unknown symbol drm_open (err -2)",
    ],
    "library-not-found": [
        "ImportError: DLL load failed: The specified module could not be found.",
        "UserWarning: Cannot load onnxruntime.capi. Error: 'DLL load failed: The specified module could not be found.'",
        "libcuda.so cannot found! Possible files are located at ['/usr/lib/x86_64-linux-gnu/libcuda.so.1'].Please create a symlink of libcuda.so to any of the files.",
        "nvrtc: error: failed to open libnvrtc-builtins.so.12.1. Make sure that libnvrtc-builtins.so.12.1 is installed correctly.",
    ],
    "mig-without-instances": [
        "error building device map: error building GPU device map: error building MIG device map: at least one device with migEnabled=true was not configured correctly: device 0 has no MIG devices configured"
    ],
    "no-gpu-visible": [
        "RuntimeError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
        "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: no supported devices found for platform CUDA",
        "RuntimeError: Unable to initialize backend 'gpu': FAILED_PRECONDITION: No visible GPU devices. (you may need to uninstall the failing plugin package, or set JAX_PLATFORMS=cpu to skip this backend.)",
        "RuntimeError: 0 active drivers ([]). There should only be one.",
        "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging",
        "RuntimeError: CUDA is required but not available for bitsandbytes. Please consider installing the multi-platform enabled version of bitsandbytes",
        "ValueError: FP16 Mixed precision training with AMP or APEX (`--fp16`) and FP16 half precision evaluation (`--fp16_full_eval`) can only be used on CUDA devices.",
        "lightning_fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!",
        "MisconfigurationException: CUDAAccelerator can not run on your system since the accelerator is not available.",
        "ValueError: Invalid CUDA 'device=0' requested. Use 'device=cpu' or pass valid CUDA device(s) if available, i.e. 'device=0' or 'device=0,1,2,3' for Multi-GPU.",
        "UserWarning: No NVIDIA GPU detected",
        "ValueError: fp16 mixed precision requires a GPU (not 'cpu').",
        "RuntimeError: This kernel requires an NVIDIA GPU but none was found.",
    ],
    "nodes-not-connected": [
        "server1:6601:6625 [0] include/socket.h:385 NCCL WARN Net : Connection closed by remote peer",
        "NCCL WARN NET/IB: Got completion from peer 10.0.0.2<33333> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129",
        "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<34567> with error 12, opcode 0, len 0, vendor err 129 (Recv)",
        "NCCL WARN NET/IB : mlx5_0:1 Got async event : port error",
        "NCCL WARN NET/IB : mlx5_0:1 async fatal event: device fatal",
        "NCCL WARN NET/Socket: connect to 172.17.0.1<43210> failed : Connection refused",
        "NCCL WARN socketPollConnect: connect to 10.0.0.1<50000> returned No route to host(113), exceeded error retry count after 34 attempts",
        "NCCL WARN socketStartConnect: Connect to 10.244.1.5<41234> failed : Software caused connection abort",
        "misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to fe80::1%eth0<36341> failed : Cannot assign requested address",
        "NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1",
        "NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
    ],
    "onnxruntime-cpu-and-gpu": [
        "AttributeError: module 'onnxruntime' has no attribute 'InferenceSession'",
        "AttributeError: module 'onnxruntime' has no attribute 'get_available_providers'",
    ],
    "requirement-broken": [
        "Exception: flashinfer_python is installed with version 0.2.3, which is less than the minimum required version 0.2.5. Please uninstall the old version and reinstall the latest version",
        "Exception: sgl-kernel is installed with version 0.1.0, which is less than the minimum required version 0.1.1.",
        "ImportError: Found an incompatible version of auto-gptq. Found version 0.4.1, but only versions above 0.4.99.0 are supported",
    ],
    "tensorrt-missing": ["FileNotFoundError: Could not find: nvinfer.dll. Is it on your PATH?"],
    "toolkit-lacks-gpu": ["CMake Error: Unknown CUDA Architecture Name 12.0 in CUDA_SELECT_NVCC_ARCH_FLAGS"],
    "toolkit-missing": [
        "CMake Error at CMakeLists.txt: CUDA Toolkit not found",
        "Compiler requires the CUDA toolkit.  Please set the CUDAToolkit_ROOT variable.",
    ],
    "toolkit-too-old": [
        "RuntimeError: FlashAttention is only supported on CUDA 11.7 and above.  Note: make sure nvcc has a supported version by running nvcc -V.",
        "FlashAttention-3 is only supported on CUDA 12.3 and above",
        "error: mamba requires CUDA 11.6 or newer, but the toolkit found is 11.5",
        'Could NOT find CUDA: Found unsuitable version "10.2", but required is at least "11.8" (found /usr/local/cuda)',
    ],
    "torch-family-mismatch": [
        "AttributeError: '_OpNamespace' 'torchvision' object has no attribute 'nms'",
        "RuntimeError: No such operator torchvision::nms",
        "torchvision::nms does not exist",
        "AttributeError: '_OpNamespace' 'torchaudio' object has no attribute 'forced_align'",
        "RuntimeError: operator torchaudio::forced_align does not exist",
    ],
    "vgpu-unlicensed": [
        "nvidia-gridd: Failed to acquire license from server",
        "nvidia-gridd[1234]: Failed to acquire/renew license from license server. (Info: api.cls.licensing.nvidia.com; Error: Unable to reach license server)",
        "vGPU Software Licensed Product ... License Status : Unlicensed (Unrestricted)",
        "            License Status                    : Unlicensed (Restricted)",
        "CUDA_ERROR_DEVICE_NOT_LICENSED",
        "cudaErrorDeviceNotLicensed: device doesn't have valid Grid license",
        "CUDA error: device doesn't have valid Grid license",
    ],
    "video-libraries-missing": [
        "nvidia.dali RuntimeError: Failed to load libnvcuvid.so, needed by the VideoReader operator. If you are running in a Docker container, please refer to https://github.com/NVIDIA/nvidia-docker/wiki/Usage",
        "[h264_cuvid @ 0x55] Cannot load libnvcuvid.so.1",
        "[h264_nvenc @ 0x55] Cannot load libnvidia-encode.so.1",
    ],
    "container-cgroups-refused": [
        "nvidia-container-cli: mount error: failed to add device rules: unable to generate new device filter program from existing programs: load program: invalid argument"
    ],
    "python-unsupported": [
        "ERROR: Could not find a version that satisfies the requirement torch===1.4.0 (from versions: 0.1.2, 0.1.2.post1, 0.1.2.post2)",
        "ERROR: Could not find a version that satisfies the requirement torch==1.10.2+cu113 (from versions: 1.11.0, 1.12.0, 2.4.1)",
    ],
}
