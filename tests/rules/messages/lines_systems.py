"""Lines of compilers, schedulers, package managers, kernel logs and further programs, by problem."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "peer-access-blocked": ["[1478401.486981] DMAR: [DMA Write] Request device [02:00.0] fault addr cd139000 (nvidia)"],
    "cudnn-major-mismatch": [
        "These bindings are for CUDNN 5.x (5005 <= cudnn.version > 6000) , while the loaded CuDNN is version: 7004"
    ],
    "libstdcxx-too-old": ["When I import torch, I get an error about not finding GLIBCXX_3.4.30 ."],
    "container-without-gpu": ["--gpus capabilities=utility shows CUDA Version: N/A"],
    "package-shadowed": [
        "I installed torch on windows 10. My torch.py: import torch;",
        '  File "/home/u/project/inspect.py", line 10, in <module>',
    ],
    "library-shadowed": [
        "Error: '/opt/conda/lib/python3.6/site-packages/onnxruntime/capi/onnxruntime_pybind11_state.so: undefined symbol: mkldnn_sgemm'",
        "RuntimeError: cuDNN version mismatch: PyTorch was compiled against 7102 but linked against 7605",
    ],
    "windows-gpu-unsupported": [
        "C:\\venv: CUDA Setup failed despite GPU being available. Please run the following command to get more information:"
    ],
    "glibc-too-old": ["Ubuntu 20.04 does not come with the glibc version that the wheel needs"],
    "stub-library-loaded": ["AttributeError: /usr/local/cuda-12.1/lib64/stubs/libcuda.so: undefined symbol: _undef"],
    "video-libraries-missing": ["[h264_cuvid @ 0x3a46360] Failed loading nvcuvid."],
    "python-unsupported": [
        "pip install tensorflow fails: (from versions: none)",
        "pip only offers (from versions: 2.2.0, 2.2.1) where requirements.txt says torch==1.13.1",
    ],
    "toolkit-differs-from-build": ["setup.py says CUDA version (11.8) against (11.7) and stops"],
    "torch-family-mismatch": [
        "RuntimeError: Failed to register operator torchvision::_new_empty_tensor_op. The symbolic name must match the format Domain::Name",
        '    @torch.library.register_fake("torchvision::nms")',
    ],
    "mig-enumeration": [
        "CUDA_VISIBLE_DEVICES=MIG-feee0c61: torch.cuda.device_count() returns 0 though the instance works",
        "RuntimeError: CUDA error: invalid device ordinal (MIG-GPU-0a1b2c3d/7/0)",
    ],
    "toolkit-too-old": [
        "/venv/flashinfer/include/vec_dtypes.cuh:24:10: fatal error: cuda_fp8.h: No such file or directory"
    ],
    "jetson-libraries-not-mounted": [
        "It is not mounting properly the /usr/local/cuda/lib64 into my jetson container",
        "docker does not mount the CUDA folder (l4t): it is not mounted from CUDA",
        "error while loading shared libraries: /usr/lib/aarch64-linux-gnu/libnvinfer.so.8 file too short",
    ],
    "damaged-distribution": ["zipfile.BadZipFile: Bad CRC-32 for file 'nvidia/cublas/lib/libcublasLt.so.12'"],
    "mig-without-instances": [
        "panic: At least one device with migEnabled=true was not configured correctly: No MIG devices associated with /dev/nvidia2: GPU-0f1e2d3c"
    ],
    "jax-plugin-mismatch": [
        "TypeError: register_custom_type_id(): incompatible function arguments. The following argument types are supported:"
    ],
    "nodes-not-connected": [
        "socketStartConnect: Connect to 10.1.2.3<41511> failed : No route to host",
        "node1:2211:2240 [0] misc/socket.cc:488 WARN socketStartConnect: Connect to 10.0.0.2<43817> failed : No route to host",
        "gpu03:771:802 [1] include/socket.h:360 WARN Call to connect failed : Connection refused",
    ],
    "cudnn-missing": [
        "module 'cupy.cuda' has no attribute 'cudnn'",
        "Uncaught exception detected: Unable to open library: libnvinfer_plugin.so.8 due to libcudnn.so.8",
        "I tensorflow/stream_executor/cuda/cuda_dnn.cc:1062] Unable to load cuDNN DSO.",
        "there is no libcudnn in /usr/include",
        "Unable to find Cudnn in the runtime image",
        "ImportError: libcudnn.so.7",
        "RuntimeError: Unimplemented: DNN library is not found.",
    ],
    "no-nvidia-gpu": [
        "I have no cuda, I do not have GPUs in that machine",
        "CL_PLATFORM_NOT_FOUND_KHR: there are no GPUs in this machine",
        "I am not using an NVIDIA GPU, what can I do?",
        "There is no CUDA GPU in the machine",
        "NVRM: No NVIDIA graphics adapter found!",
    ],
    "build-does-not-see-torch": [
        "pip install git+https://github.com/x/y tells me there is no torch",
        "help: This error likely indicates that `flash-attn@2.7.4` depends on `torch`, but doesn't declare it as a build dependency.",
        "ModuleNotFoundError: No module named 'torch'",
    ],
    "container-cgroups-refused": [
        "nvidia-container-cli: container error: cgroup subsystem devices not found: unknown",
        "nvidia-container-cli: mount error: failed to add device rules: unable to find any existing device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted: unknown",
        "nvidia-container-cli: mount error: open failed: /sys/fs/cgroup/devices/user.slice/devices.allow: permission denied",
    ],
    "container-toolkit-missing": [
        "docker: Error response from daemon: could not select device driver with capabilities: [[gpu]].",
        'an error from the daemon about device driver "nvidia"',
        'failed to get sandbox runtime: no runtime for \\\\"nvidia\\\\" is configured',
        'Error: unrecognized runtime "nvidia": no such runtime',
        "[ERROR] Command not found: nvidia-container-cli, see https://github.com/NVIDIA/libnvidia-container",
        "If this is a GPU node, did you set the docker default runtime to `nvidia`?",
    ],
    "cpu-lacks-instructions": [
        "F tensorflow/core/platform/cpu_feature_guard.cc:37] The TensorFlow library was compiled to use AVX instructions, but these aren't available on your machine.",
        "error: this CPU does not support AVX2",
    ],
    "cpu-only-build": [
        "module 'warpctc_pytorch' has no attribute 'gpu_ctc'",
        'RuntimeError: Simulation device "GPU" is not supported on this system',
        "FaceDetector error: CUDAExecutionProvider is not avaiable in onnxruntime",
        "One of our users made me aware that this XGBoost has no CUDA support.",
        "PyTorch built with CUDA:         False",
        "After pip install llama-cpp-python it does not use the GPU",
        "pip install llama-cpp-python: the GPU is not used",
        "pip install llama-cpp-python, and it is only using the CPU",
        "Ultralytics 8.3.1 Python-3.11.4 torch-2.4.1+cpu, but I cannot use the GPU",
        "cv2.error: OpenCV(4.8.0) setUpNet DNN module was not built with CUDA backend; switching to CPU",
        "ValueError: Specified provider 'TensorrtExecutionProvider' is not in available provider names",
        "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'",
    ],
    "cuda-library-missing": [
        "ImportError: libcustatevec.so.1",
        "ImportError: libcustatevec.so.1: cannot open shared object file: No such file or directory",
        '"from pytorch3d import _C" is expecting libcudart.so.10.1 instead of libcudart.so.10.2',
        "ImportError: libcublas.so.9.1",
        "WARNING:jax._src.xla_bridge:CUDA backend failed to initialize: Unable to load CUDA. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)",
        "UserWarning: WARNING: No libcudart.so found! Install CUDA or the cudatoolkit package (anaconda)!",
        "CUDA_SETUP: WARNING! libcudart.so not found in any environmental path",
        "WARNING:jax._src.xla_bridge:Unable to initialize backend 'cuda': INTERNAL: cuSPARSE library not found",
        "CUDA SETUP: Problem: The main issue seems to be that the main CUDA runtime library was not detected.",
    ],
    "cuda-library-too-old": ["undefined symbol: cudaGraphInstantiateWithFlags"],
    "cudnn-too-old": [
        "Loaded runtime CuDNN library: 7.1.4 but the source was compiled with: 7.6.4.",
        "The installed Paddle is compiled with CUDNN 8.2, but CUDNN version in your machine is 8.1, which may cause serious incompatible bug.",
        "WARNING: device: 0. The installed Paddle is compiled with CUDNN 8.9, but CUDNN version in your machine is 8.4, which may cause serious incompatible bug. Please recompile or reinstall Paddle with compatible CUDNN version.",
    ],
    "driver-library-mismatch": [
        "Failed to initialize NVML: Driver / library version mismatch",
        "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.",
        'time=2024-05-01 level=INFO msg="nvml vram init failure: 18"',
    ],
    "driver-not-installed": [
        "Can't open shared object file libcuda.so.1",
        'Ubuntu18.04 running on WSL2: "libcuda.so.1" does not exist.',
        "nvidia-container-cli: initialization error: cannot open shared object file: no such file or directory: unknown.",
        "Failed to initialize NVML: could not load NVML library.",
        "LibMambaUnsatisfiableError: Encountered problems while solving: - nothing provides __cuda needed by tensorflow-2.14.0-cuda118py311",
    ],
    "driver-not-loaded": [
        "failed to initialize NVML: ERROR_DRIVER_NOT_LOADED",
        "nvidia-container-cli: mount error: stat failed: /dev/nvidia-uvm: no such file or directory: unknown.",
    ],
    "driver-packages-conflict": [
        "The following packages have unmet dependencies: nvidia-driver-535 : Depends: libnvidia-compute-535 (= 535.54.03-0ubuntu1) but it is not going to be installed",
        " - nothing provides dkms >= 3.1.8 needed by kmod-nvidia-latest-dkms-3:550.54.15-1.el9.x86_64",
        "  - package nvidia-driver-3:550.54.15 is filtered out by modular filtering",
    ],
    "driver-too-old": [
        "gpu_burn-drv.cpp 239 the provided PTX was complied with an unsupported toolchain",
        "Failed to load CUDA kernel from 'kernel_compute_75.ptx' (Unsupported PTX version)",
        "[h264_nvenc @ 0x5581] The minimum required Nvidia driver for nvenc is 520.56.06 or newer",
        "WARNING: NVIDIA Insufficient driver!",
        "when i run my program, the msg is that my Nvidia version is too old.",
        "numba.cuda.cudadrv.driver.LinkerError: [222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "pynvml.NVMLError_FunctionNotFound: Function Not Found",
        "CUDA driver version is insufficient",
    ],
    "extension-binary-missing": [
        "AttributeError: /opt/conda/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cpu.so: undefined symbol: cget_col_row_stats",
        "The problem is the failure to get the _C variable (from groundingdino import _C).",
        "RuntimeError: Not compiled with GPU support (maskrcnn_benchmark)",
        "ImportError: /opt/venv/lib/python3.10/site-packages/tensorrt/tensorrt.so: cannot open shared object file: No such file or directory",
        "ModuleNotFoundError: No module named 'awq_ext'",
        "NameError: name '_C' is not defined",
        "WARNING - CUDA extension not installed.",
        "ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!",
    ],
    "extension-built-for-other-torch": [
        "ImportError: libtorch_cuda_cu.so: cannot open shared object file: No such file or directory"
    ],
    "forward-compat-unsupported": [
        "CudaSupportError: Error at driver init: Call to cuInit results in UNKNOWN_CUDA_ERROR (804)"
    ],
    "gpu-code-missing": [
        "RTX 5070ti with CUDA capability sm_120 not compatible with the current PyTorch Instalation",
        "Mismatched GPU Architecture: The installed PaddlePaddle package was compiled for 80 86, but your current GPU is 120.",
        "numba.cuda.cudadrv.error.CudaSupportError: GPU compute capability 2.1 is not supported (requires >=3.5)",
    ],
    "gpu-feature-unsupported": [
        "[error] CUDA-Enabled GPU detected, but the compute capabilities is not enough.",
        "CUDA backend for DNN module requires CC 5.3 or higher. Please remove unsupported architectures from CUDA_ARCH_BIN option.",
        "CUSPARSE_STATUS_ARCH_MISMATCH",
        "NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs: requires device with capability > (8, 0) but your GPU has capability (7, 5) (too old)",
        "AssertionError: fp8e4nv not supported in this architecture",
        "AssertionError: Device compute capability 8.9 or higher required for FP8 execution.",
        "RuntimeError: FlashInfer requires GPUs with sm75 or higher",
    ],
    "gpu-hidden": [
        "But your machine only has: [0]",
        "torch.cuda.DeferredCudaCallError: CUDA call failed lazily at initialization with error: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED",
        "THCudaCheck FAIL file=torch/csrc/cuda/Module.cpp line=37 error=10 : invalid device ordinal",
    ],
    "gpu-init-failed": [
        "[-1 ]call to cuInit results in UNKNOWN_CUDA_ERROR:",
        "common_gpu.cc:55] Found an unknown error - this may be due to an incorrectly set up environment",
        "NVRM: RmInitAdapter: Cannot initialize GSP firmware RM",
        "NVRM: None of the NVIDIA devices were initialized.",
        "NVRM: Can't find an IRQ for your NVIDIA card!",
        "nvidia 0000:01:00.0: Direct firmware load for nvidia/535.104.05/gsp_ga10x.bin failed with error -2",
        "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "Failed to initialize NVML: GPU access blocked by the operating system",
        "cuInit failed: CUDA_ERROR_NOT_INITIALIZED",
        "CUDA error: OS call failed or operation not supported on this OS",
        "CUDA error: the MPS server has reached the maximum number of client processes",
        "nvidia-container-cli: initialization error: cuda error: unknown error: unknown",
        "nvidia-container-cli: initialization error: WSL environment detected but no adapters were found: unknown",
        "nvidia-container-cli: initialization error: driver rpc error: timed out: unknown",
        "NVRM: No NVIDIA devices probed.",
        "nvidia: probe of 0000:01:00.0 failed with error -1",
        "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
        "RuntimeError: cuda runtime error (30) : unknown error at /pytorch/aten/src/THC/THCGeneral.cpp:51",
    ],
    "gpu-lost": [
        "nvidia 0000:02:00.0: pcieport: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
        "[12.3] nvidia 0000:81:00.0: [ 5] Surprise Down Error    (First)",
        "XidCriticalError: Xid=79 on Device=GPU-8a56a4bc, the device will go unhealthy.",
        "Unable to determine the device handle for GPU0: 0000:1A:00.0: Unknown Error",
    ],
    "gpu-memory-exhausted": [
        "after kill -9 the gpu memory is still occupied",
        "I kill them, but this does not deallocate memory on the GPU",
        "no such process, but it still holds GPU memory",
        "cudaMalloc failed: out of memory",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[8,512] on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        "cufft error: CUFFT_ALLOC_FAILED",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        "Not enough memory. Please try to increase --mem-fraction-static.",
    ],
    "gpu-unsupported-by-driver": ["NVRM: installed in this system is not supported by"],
    "host-compiler-unsupported": [
        "nvcc fatal   : The version ('70000') of the host compiler ('clang') is not supported",
        "gcc versions later than 13 are not supported!",
        "nvcc fatal : Host compiler targets unsupported OS.",
        "error: #error -- unsupported GNU version! gcc versions later than 11 are not supported!",
        "RuntimeError: The current installed version of g++ (13.2.0) is greater than the maximum required version by CUDA 11.8.",
        "nvcc fatal   : Cannot find compiler 'cl.exe' in PATH",
        'error: Microsoft Visual C++ 14.0 or greater is required. Get it with "Microsoft C++ Build Tools"',
        "UserWarning: Error checking compiler version for cl: [WinError 2] The system cannot find the file specified",
    ],
    "jit-compiler-missing": [
        "(cuda) <class 'numba.cuda.cudadrv.error.NvrtcSupportError'>: NVRTC cannot be loaded",
        "ERROR: failed to open nvvm",
        "CUDA_ERROR_JIT_COMPILER_NOT_FOUND: PTX JIT compiler library not found",
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: RuntimeError: Cannot find a working triton installation.",
    ],
    "jit-compiler-too-old": [
        "UNIMPLEMENTED: /usr/local/cuda/bin/ptxas ptxas too old. Falling back to the driver to compile."
    ],
    "kernel-module-missing": [
        "The NVIDIA script says that the dkms build command does not work",
        "nvidia: The GCC used for the compiling the kernel, 11.1.1, is different from the current GCC version 11.2.1.",
        "modprobe: FATAL: nvidia_drm not found in directory /lib/modules/6.9.1-zen1",
        "After the reboot the dkms module is completely gone (nvidia/560.35.03).",
        "dpkg: error processing package nvidia-dkms-550 (--configure):",
        "gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'",
        "ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol '__rcu_read_lock'",
        "ERROR: Failed to run `/usr/sbin/dkms build -m nvidia -v 470.57.02 -k 5.11.0-27-generic`",
        "insmod: ERROR: could not insert module nvidia.ko: Unknown symbol in module",
        'ERROR: An error occurred while performing the step: "Building kernel modules". See /var/log/nvidia-installer.log for details.',
        "ERROR: Unable to load the kernel module 'nvidia.ko'.  This happens most frequently when this kernel module was built against the wrong or improperly configured kernel sources",
        "ERROR: The nvidia kernel module was not created.",
    ],
    "library-lacks-symbols": ["ImportError: /opt/conda/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent"],
    "library-not-found": [
        "/usr/bin/ld: cannot find -lnvinfer",
        "/usr/bin/ld: cannot find -lnvinfer_plugin",
        "ImportError: DLL load failed: The operating system cannot run %1. from torch._C import *",
        "Failed to create TensorrtExecutionProvider. Please reference the requirements to ensure all dependencies are met.",
        "[onnxruntime]Cannot load onnxruntime_providers_cuda.dll",
        'LoadLibrary failed with error 126 "The specified module could not be found." when trying to load "C:\\\\py\\\\onnxruntime\\\\capi\\\\onnxruntime_providers_tensorrt.dll"',
        "/usr/bin/ld: cannot find -lcuda: No such file or directory",
    ],
    "library-of-other-architecture": [
        "tried: '/usr/local/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cpu.so' (not a mach-o file)",
        "OSError: /x/lib.so: wrong ELF class: ELFCLASS32",
        "OSError: [WinError 193] %1 is not a valid Win32 application",
        "ImportError: /x/lib.so: cannot open shared object file: incompatible architecture",
    ],
    "locked-memory-too-small": ["NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"],
    "nccl-no-interface": ["NCCL WARN NET/Socket : No usable listening interface found"],
    "no-gpu-visible": [
        "                But your machine only has: []",
        "❌ No GPUs detected",
        'level=INFO msg="Unable to load cudart CUDA management library /tmp/ollama1/runners/cuda_v11/libcudart.so.11.0: your nvidia driver is too old or missing"',
        "ValueError: Your setup ... RuntimeError: No GPU found. A GPU is needed for quantization.",
        "RuntimeError: Torch is not able to use GPU; add --skip-torch-cuda-test to COMMANDLINE_ARGS variable to disable this check",
    ],
    "nouveau-loaded": [
        "dmesg shows many errors about nouveau (nvidia-driver-daemonset)",
        "kernel: nouveau 0000:01:00.0: DRM: VRAM: 2048 MiB (nvidia-driver is installed)",
        "NVRM: Try unloading the conflicting kernel module (and/or",
    ],
    "numpy-abi-mismatch": [
        "ModuleNotFoundError: No module named 'numpy.core._multiarray_umath'",
        "RuntimeWarning: numpy.dtype size   changed, may indicate binary incompatibility. Expected 96, got 88",
        "ImportError: numpy.core.umath failed to import",
    ],
    "openmp-loaded-twice": [
        "I found there are two libiomp5md.dll in the environment",
        "OMP: Error #15: Initializing libiomp5md.dll, but found libiomp5md.dll already initialized.",
    ],
    "ranks-share-gpu": [
        '"rank 1 and rank 0 both on CUDA device a4000" from NCCL INFO',
        "local_rank() always returns 0 on one node",
        "torch.distributed.DistBackendError: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
        "NCCL WARN Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this",
    ],
    "requirement-broken": [
        "ImportError: cannot import name 'EMMPlugin' from 'numba.cuda'",
        "Disabling PyTorch because PyTorch >= 2.1 is required but found 2.0.1",
        "RuntimeError: flashinfer-cubin version (0.4.0) does not match flashinfer version (0.4.1).",
    ],
    "scheduler-lacks-gpu": [
        "slurmd: fatal: gres.conf duplicate records for gpu",
        "error: _node_config_validate: gres/gpu: invalid GRES core specification (0-15) on node gpu1",
        "Reason=gres/gpu count reported lower than configured (7 < 8) [slurm@2025-01-02T03:04:05]",
        "error: Waiting for gres.conf file /dev/nvidia0",
        "slurmd: fatal: We were configured to autodetect nvml functionality, but we weren't able to find that lib when Slurm was configured.",
    ],
    "secure-boot-blocks-module": [
        "modprobe: ERROR: could not insert 'vboxdrv': Key was rejected by service (vboxdrv, nvidia)",
        "with Secure Boot enabled: modprobe: ERROR: could not insert 'nvidia': Operation not permitted",
        "the nvidia kernel modules are rejected at boot although they are signed",
        "ERROR: The kernel module failed to load, because it was not signed by a key that is trusted by the kernel.",
    ],
    "shared-memory-too-small": [
        "Please consider reduce `num_workers` or increase shared_memory in system.",
        "Bus error (core dumped) in the docker container",
        "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-bAHJbf (size 9637888)",
    ],
    "static-tls-exhausted": [
        "ImportError: /lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block"
    ],
    "system-library-missing": [
        "ImportError: libbz2.so.1.0: cannot open shared object file: No such file or directory",
        "./dede: error while loading shared libraries: libcurlpp.so.1: cannot open shared object file: No such file or directory",
        "ImportError: Error loading shared library ld-linux-x86-64.so.2: No such file or directory (needed by /usr/lib/python3.5/site-packages/torch/_C.so)",
        "ImportError: Error relocating /usr/lib/python3.5/site-packages/torch/lib/libcudnn.so.6: __strtod_internal: symbol not found",
        "pip install onnxruntime, then: ImportError: DLL load failed while importing onnxruntime_pybind11_state: The specified module could not be found.",
        r'OSError: [WinError 126] The specified module could not be found. Error loading "D:\ai\venv\Lib\site-packages\torch\lib\fbgemm.dll" or one of its dependencies.',
        "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
        "./llama-server: error while loading shared libraries: libgomp.so.1: cannot open shared object file: No such file or directory",
    ],
    "tensorrt-engine-mismatch": [
        "[TRT] [E] Error Code 1: Serialization (Serialization assertion plan->header.magicTag == rt::kPLAN_MAGIC_TAG failed.Trying to load an engine created with incompatible serialization version. Check that the engine was not created using safety runtime, same OS was used and version compatibility parameters were set accordingly.)"
    ],
    "tensorrt-missing": ["ModuleNotFoundError: No module named 'tensorrt'"],
    "toolkit-missing": [
        "SGlang fails to start without nvcc/cuda-toolkit",
        '  raise_if_cuda_home_none("flash_attn")',
        "If you're installing within a container from the hub, only images whose names contain 'devel' will provide nvcc.",
        '-- Could NOT find CUDA (missing: CUDA_NVCC_EXECUTABLE CUDA_INCLUDE_DIRS) (found version "11.0")',
        'CuPy: catastrophic error: cannot open source file "cuda_fp16.h"',
        "UserWarning: CUDA path could not be detected. Set CUDA_PATH environment variable if CuPy fails to load.",
    ],
}
