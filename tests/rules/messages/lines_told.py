"""Lines of programs, and sentences about a failure, by the problem that they name: messages in full, in the shape of reports."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "container-lost-gpu": [
        "Restart the pod and every thing goes well, and a few days later it is wrong again.",
        "After `systemctl daemon-reload` on the host all running GPU containers lose their GPUs",
    ],
    "container-toolkit-missing": [
        "crun: cannot stat `/dev/nvidia0`: No such file or directory: OCI runtime error",
        "failed to discover GPU vendor from CDI: no known GPU vendor found",
    ],
    "container-without-gpu": [
        "Frigate in an LXC on Proxmox, /dev/nvidia* are not passed into it: ls /dev/nvidia*: No such file or directory. On the host nvidia-smi shows the P4.",
        "In the devcontainer torch.cuda.is_available() is False, on the host it is True. devcontainer.json has no runArgs.",
        "On the host nvidia-smi lists the GPU, but inside the container it is not visible.",
        "The pod has no nvidia.com/gpu limit, so torch finds no CUDA.",
        "ls -l /dev | grep nvidia is empty",
        "No GPU was passed to the container.",
        "| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: N/A      |",
        "No devices found. Waiting indefinitely.",
    ],
    "cpu-lacks-instructions": [
        "[7741.12] traps: python[31337] trap invalid opcode ip:7f2 in libtorch_cpu.so",
        "CPU does not have AVX or AVX2, disabling GPU support.",
        "Fatal glibc error: CPU does not support x86-64-v2",
        "Fatal Python error: Illegal instruction",
        "With --noavx2 it starts",
        "tensorflow core dumps with Illegal instruction since 1.6",
    ],
    "cpu-only-build": [
        "torch.__config__.show() lists USE_CUDA=0, USE_CUDNN=0",
        "after pip install some-package my torch was replaced by 2.4.0+cpu",
        "Darknet: DARKNET was compiled without CUDA; set GPU=1 in the Makefile",
        "RuntimeError: (PreconditionNotMet) Cannot use GPU because you have installed CPU version PaddlePaddle.",
        "AttributeError: module 'cv2' has no attribute 'cuda_GpuMat'",
        "nms_impl: implementation for device cuda:0 not found.",
        "ValueError: Cannot use GPU, CuPy is not installed",
        "koboldcpp: Warning: CuBLAS library file not found. Non-BLAS library will be used.",
        "cv2.cuda.getCudaEnabledDeviceCount() returns 0",
        "common.cpp:66] Cannot use GPU in CPU-only Caffe: check mode.",
    ],
    "cuda-library-missing": [
        'DynamicLibraryNotFound: libcusparse; cuda.pathfinder: Failure finding "libcublas.so"',
        "On start it shows an error about libcublas.so.11.",
    ],
    "cudnn-major-mismatch": [
        "ImportError: /opt/cupy/cudnn.so: undefined symbol: cudnnGetConvolutionForwardAlgorithm",
        "RuntimeError: Mixed dnn version. The header is version 5110 while the library is version 6021.",
    ],
    "cudnn-missing": [
        "XlaRuntimeError: INTERNAL: RET_CHECK failure (external/xla/xla/service/gpu/gpu_compiler.cc:626) dnn != nullptr",
        "csrc/ops.cu:3:10: fatal error: cudnn_frontend.h: No such file or directory",
    ],
    "damaged-distribution": [
        "OSError: /opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so: file too short",
        "WARNING: Ignoring invalid distribution -orch (c:\\python\\lib\\site-packages)",
    ],
    "driver-libraries-in-image": [
        "My Dockerfile has `RUN apt-get install -y nvidia-driver-535`. In the container nvidia-smi says: Failed to initialize NVML: Driver/library version mismatch. The host has 550.54 and works.",
        "nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/9f3c/merged/usr/bin/nvidia-smi: file exists",
        "nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/ab12/merged/usr/lib/aarch64-linux-gnu/libcudnn_ops_infer_static_v8.a: file exists: unknown.",
    ],
    "driver-library-unusable": [
        "ImportError: /usr/lib/x86_64-linux-gnu/libcuda.so.1: file too short",
        "-rw-r--r-- 1 root root 0 Mar  3 10:11 /usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03",
        "In the image libnvidia-ml.so.1 is empty",
    ],
    "driver-not-installed": [
        "  └─ __cuda, which is missing on the system.",
        "warning  libmamba Could not find __cuda",
        "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object file: No such file or directory",
        "CUDA driver library could not be found (numba.cuda.cudadrv.error.CudaSupportError)",
        "nvidia-smi: there is no driver installed on this node",
        'Unable to dynamically load the "cuda" shared library - searched for library names: ["cuda", "nvcuda"].',
    ],
    "driver-not-loaded": [
        "NVIDIA: could not open the device file /dev/nvidiactl (No such file or directory).",
        "nvidia-persistenced failed to initialize. Check syslog for more details.",
        "NVIDIA kernel module missing. Falling back to nouveau.",
    ],
    "driver-packages-conflict": [
        " libcuda1-390 : Depends: nvidia-compute-390 but it is not installable",
        "trying to overwrite '/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1', which is also in package libnvidia-compute-525",
        "file /usr/lib64/libnvidia-ml.so from install of nvidia-driver-libs-560 conflicts with file from package x",
        "Error: Transaction test error: file /usr/lib64/libnvidia-ml.so.1 conflicts between attempted installs",
        "dpkg: dependency problems prevent configuration of nvidia-dkms-550:",
        " nvtop : Depends: libnvidia-compute-470 but it is not going to be installed",
    ],
    "driver-too-old": [
        "[Error] [omni.gpu_foundation_factory.plugin] The driver version 535.129 is below the minimum requirement 550.127",
        "WARNING: cuda driver 11.4 too old; ollama requires driver 531 or newer",
        "package cudatoolkit-11.8.0-h37601d7_10 has constraint __cuda >=11 conflicting with __cuda-10.1-0",
    ],
    "extension-binary-missing": [
        "FileNotFoundError: Cannot find DGL C++ graphbolt library at /venv/dgl/graphbolt/libgraphbolt_pytorch_2.4.0.so",
        "ModuleNotFoundError: No module named 'MultiScaleDeformableAttention'",
        "ImportError: cannot import name '_C' from 'detectron2' (/opt/detectron2/detectron2/__init__.py)",
    ],
    "fabric-manager-not-running": ["nvidia-fabricmanager.service: Failed with result 'exit-code'."],
    "gpu-code-missing": [
        "WARNING: Detected NVIDIA GeForce RTX 5090 GPU, which is not yet supported in this version of the container",
        "ggml_cuda_compute_forward: no kernel image is available",
    ],
    "gpu-feature-unsupported": [
        "FA4 is only supported on devices with compute capability 9 or 10",
        "AssertionError: Unsupported compute capability. Supported: 9.x, 10.x",
        "CUBLAS_STATUS_NOT_SUPPORTED when calling cublasGemmEx with bfloat16",
        "AssertionError: Unsupported CUDA architecture: sm75",
    ],
    "gpu-init-failed": [
        "Failed to initialize NVML: Insufficient Permissions",
        "nvidia-smi just says: No devices were found",
        "After suspend and resume the GPU is no longer used, ollama takes the CPU.",
        'msg="cuda driver library init failure: 3"',
        "my laptop wakes up from suspend, and PyTorch says CUDA unknown error until I do rmmod nvidia_uvm; modprobe nvidia_uvm",
        "WSL2 Ubuntu 22.04: after apt install nvidia-driver-535 in WSL nvidia-smi works on Windows but in Ubuntu: Failed to initialize NVML: N/A",
        "nvidia-smi: No devices were found; lspci lists the card",
    ],
    "gpu-needs-reset": [
        "NVMLError_ResetRequired",
        "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status",
    ],
    "gpu-unsupported-by-driver": [
        "The new driver no longer supports my GTX 1080.",
        "The kernel says that my cards are not supported",
        "NVRM: GPU 0000:01:00.0 is not supported by the open kernel modules because it does not include GSP",
        "Titan V? no: GeForce GTX TITAN (Kepler) and driver 525: NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1005) installed in this system is not supported by the 525.125.06 NVIDIA driver release",
        "The GPU 0000:01:00.0 installed in this system is not supported by the NVIDIA 535.54.03 driver release.",
    ],
    "host-compiler-unsupported": [
        '/usr/include/x86_64-linux-gnu/bits/mathcalls.h(79): error: exception specification is incompatible with that of previous function "cospi"',
        'Arch, gcc 14.2. nvcc 12.1: /usr/include/c++/14.2.1/type_traits: error: identifier "__is_pointer" is undefined',
        "/usr/include/c++/11/bits/std_function.h:530:146: error: parameter packs not expanded with",
    ],
    "imex-not-ready": [
        "Domain State: DOWN",
        "the IMEX channel /dev/nvidia-caps-imex-channels/channel0 is missing on this node",
        "cuMemCreate(&handle, size, &prop, 0) failed: operation not permitted",
        "nvidia-imex.service is not running on node 3",
    ],
    "imported-elsewhere": [
        "AttributeError: partially initialized module 'torch' has no attribute 'Tensor' (most likely due to a circular import)",
        "'/home/u/nn/torch.py'",
        "ModuleNotFoundError: No module named 'triton'",
    ],
    "jetson-libraries-not-mounted": [
        "/usr/lib/aarch64-linux-gnu/libcublas.so: file not recognized: File truncated",
        "ldconfig: File /usr/lib/aarch64-linux-gnu/tegra/libnvbufsurface.so is empty, not checked.",
        "The container was started without --runtime nvidia on a Jetson.",
    ],
    "kernel-module-missing": [
        "make[3]: *** [scripts/Makefile.build:243: /tmp/selfgz1/kernel/nv.o] Error 1",
        "/tmp/selfgz1/kernel/nv-linux.h:2261:23: error: too many arguments to function 'get_user_pages_remote'",
        "/var/lib/dkms/nvidia/550.54.14/build/nvidia/nv-acpi.c:84:19: error: initialization from incompatible pointer type",
        "dkms: nvidia 470.223.02 fails to build with linux 6.6",
        "akmods[1203]: Building and installing nvidia-kmod [FAILED]",
        "It fails to compile the nvidia sources with kernel 6.14.",
        "Void Linux: dkms install failed for nvidia 550.107 on linux6.10:",
        "insmod: ERROR: could not insert module nvidia.ko: Invalid module format",
    ],
    "library-not-found": [
        "ld: cannot find -lcudart",
        "After export LD_LIBRARY_PATH=/opt/nvidia/cudnn/lib it works.",
        "My LD_LIBRARY_PATH does not contain the folder of libcuda.so.",
    ],
    "library-of-other-architecture": [
        "exec /usr/local/bin/python: exec format error",
        "WARNING: The requested image's platform (linux/amd64) does not match the detected host platform (linux/arm64/v8)",
        "libc10.so: ELF 64-bit LSB shared object, x86-64, version 1 (GNU/Linux)",
        "libc10.so: ELF 64-bit LSB shared object, ARM aarch64, version 1 (GNU/Linux)",
        "/usr/bin/ld: third_party/libtorch/lib/libc10.so: error adding symbols: file in wrong format",
    ],
    "library-shadowed": [
        "Unsetting LD_LIBRARY_PATH fixes the import error of torch (undefined symbol in libcublasLt.so.12)",
        "/usr/local/bin/llama-cli: undefined symbol: ggml_backend_dev_by_type",
    ],
    "locked-memory-too-small": [
        "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.",
        "Infiniband in docker: NCCL WARN Call to ibv_reg_mr failed; ulimit -l is 64",
    ],
    "mig-enumeration": [
        "With two MIG slices exposed to the container PyTorch only sees one: torch.cuda.device_count() is 1",
        "With 7 MIG instances given to the pod, the server used only the device 0.",
    ],
    "mig-permission": ["pynvml.NVMLError_NoPermission: Insufficient Permissions"],
    "nccl-missing": ["csrc/comm.cpp:1:10: fatal error: nccl.h: No such file or directory"],
    "nccl-no-interface": [
        "gloo: RuntimeError: Unable to find address for: eth0; makeDeviceForInterface(): unsupported gloo device"
    ],
    "no-gpu-visible": [
        "jax.errors.JaxRuntimeError: FAILED_PRECONDITION: No visible GPU devices.",
        "GROMACS: Cannot run short-ranged nonbonded interactions on a GPU because no GPU is detected.",
        "separator - INFO - No hardware acceleration could be configured, running in CPU mode",
        "The card is in TCC mode, and nvidia-smi inside WSL2 does not see it.",
        "The job script lacks --gres=gpu:1.",
    ],
    "no-nvidia-gpu": [
        "kernel: NVRM: GPU 0000:05:00.0 is already bound to vfio-pci.",
        "On Colab the runtime type is None.",
    ],
    "nodes-not-connected": [
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 8/16 clients joined.",
        "socketPollConnect: Connect to 10.1.1.2 returned 113(No route to host) errno",
        "store->get('0') got error: Connection reset by peer",
    ],
    "nvidia-wheel-conflict": [
        "torch 2.5.1 requires nvidia-nccl-cu12==2.21.5, but you have nvidia-nccl-cu12 2.23.4",
        "pip list has both nvidia-cublas-cu11 and nvidia-cublas-cu12",
    ],
    "onnxruntime-cpu-and-gpu": [
        "We install onnxruntime-gpu first, and a dependency brings onnxruntime.",
        "rembg[gpu] installs onnxruntime and onnxruntime-gpu together; session.get_providers() is ['CPUExecutionProvider'] only",
    ],
    "openmp-loaded-twice": [
        "OMP: Hint This means that multiple copies of the OpenMP runtime have been linked into the program."
    ],
    "pcie-link-degraded": [
        "My GPU: PCIe runs at x4 instead of x16.",
        "LnkSta:\tSpeed 16GT/s, Width x4 (downgraded)",
        "nvidia-smi -q shows PCIe Generation Max: 4 Current: 4, Link Width Max: 16x Current: 4x. The RTX 3090 is slow in copying",
    ],
    "peer-access-blocked": [
        "DDP with nccl backend hangs forever on 2x RTX 4090; `NCCL_P2P_DISABLE=1` makes it run",
        "multi GPU inference prints garbage on AMD EPYC with two A40, one GPU is fine. amd_iommu=off in grub solves it.",
        "p2pBandwidthLatencyTest shows 0.5 GB/s between the two A6000; on bare metal we had 25 GB/s. In the VM IOMMU/ACS is enabled.",
        "DMAR: [DMA Write] Request device [3b:00.0] fault addr 38a0000000 [fault reason 05] PTE Write access is not set",
        "Training on two GPUs hangs at the first step, with one GPU it works.",
        "The job hangs with 2 GPUs, a single GPU runs fine.",
        "all_reduce_perf hangs on two A40 until iommu=pt is set",
    ],
    "python-unsupported": [
        "hint: Wheels are available for `torch` (v2.8.0) on the following platforms: `manylinux_2_28_x86_64`",
        "hint: torch (v2.1.0) has no wheels with a matching Python ABI tag",
        "Dynamo is not supported on Python 3.12+",
        "error: Distribution `torch==2.1.0 @ registry` can't be installed because it doesn't have a source distribution or wheel for the current platform",
        "ERROR: No matching distribution found for tensorflow",
        "ERROR: Package 'tilelang' requires a different Python: 3.8.18 not in '>=3.9'",
        "tensorflow-gpu==1.15 on python 3.9: ERROR: Could not find a version that satisfies the requirement tensorflow-gpu==1.15 (from versions: 2.5.0, 2.5.1)",
        "INCOMPATIBLE PYTHON VERSION",
        "No version 2.3.1 of torch was found.",
    ],
    "requirement-broken": [
        "AttributeError: module 'torch' has no attribute 'float8_e4m3fn'",
        "tensorflow 2.10: TypeError: Descriptors cannot not be created directly. protobuf 4.21",
        "ImportError: cannot import name 'builder' from 'google.protobuf.internal'",
        "ImportError: cannot import name 'TypeIs' from 'typing_extensions' (/usr/lib/python3/dist-packages/typing_extensions.py)",
    ],
    "power-throttled": ["System throttled due to over-current"],
    "scheduler-lacks-gpu": [
        "ValueError: Total available GPUs 0 is less than total desired GPUs 8",
        "ray: The current node timeout... No available node types can fulfill resource request {'GPU': 1.0}",
        "ValueError: World size (4) is larger than the number of available GPUs (2) in this node.",
    ],
    "secure-boot-blocks-module": [
        "Once I turned off Secure Boot the driver loads.",
        "nvidia-smi does not work with Secure Boot on; when I turn Secure Boot off in the BIOS it works.",
        "Secure Boot is enabled on this laptop.",
    ],
    "static-tls-exhausted": ["ImportError: dlopen: cannot load any more object with static TLS"],
    "system-library-missing": [
        "Microsoft Visual C++ Redistributable is not installed, this may lead to the DLL load failure."
    ],
    "tensorrt-engine-mismatch": [
        "magicTagRead == kMAGIC_TAG failed. Magic tag does not match",
        "TensorRT 8.6.1 in the container, engine built with 8.5.2 on the workstation: Serialization Error in verifyHeader",
    ],
    "tensorrt-missing": ["polygraphy: [!] Module: tensorrt is required but could not be imported"],
    "thermal-throttled": [
        "The second GPU overheats after ten minutes.",
        "The P40 in my desktop case without a fan: 90 C after two minutes, clocks fall to 500 MHz. HW Slowdown: Active",
        "The card keeps throttling although it is only at 76C (NVIDIA T1000)",
        "The P40 drops to 300 MHz at 91C, the fan is dead",
    ],
    "toolkit-missing": [
        "Failed to find CUDA. nvcc not found. CMAKE_CUDA_COMPILER-NOTFOUND",
        "fatal error: cusparse.h: No such file or directory",
    ],
    "toolkit-too-old": [
        "nvcc fatal   : Value 'c++20' is not defined for option 'std'",
        "CMake Error: CUDA version 11.1 is too old; vLLM requires CUDA >= 11.8",
    ],
    "torch-family-mismatch": ["AttributeError: module 'torch.library' has no attribute 'register_fake'"],
    "uncorrected-ecc": ["nvidia-smi shows Volatile Uncorr. ECC 3 for GPU 2, jobs on this GPU abort"],
    "variable-stops-framework": [
        "RuntimeError: Invalid TORCH_LOGS; Unrecognized CachingAllocator option: expandable_segment"
    ],
    "vgpu-unlicensed": [
        "nvidia-gridd[1543]: Valid GRID license not found. GPU features and performance will be fully degraded. To enable full functionality please configure licensing details.",
        "An unlicensed vGPU is slow.",
        "The vGPU runs without a licence since Monday.",
        "It becomes slow about 20 minutes after the start.",
        "nvidia-smi works on that node and shows a licensing issue",
    ],
    "video-libraries-missing": [
        "libnvidia-encode.so is present on the host but it is not injected into the container.",
        "cuvidCreateVideoParser(&parser, &parameters) returned error 999",
        "RuntimeError: Failed to load libnvcuvid: torchcodec",
        "RuntimeError: NVENC library file is not found. Please ensure NV driver is installed",
    ],
    "wsl-libcuda-shadowed": ["export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu in WSL, and the GPU is no longer found"],
    "collective-fails": ["RuntimeError: NCCL Error 2: unhandled system error"],
    "cuda-library-too-old": [
        "RuntimeError: cublas runtime error : the GPU program failed to execute at THCBlas.cu:249"
    ],
    "gpu-firmware-timeout": [
        "NVRM: GPU0 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 81275 heartbeat 1899 timeout 5200"
    ],
    "stub-library-loaded": ["/opt/cuda/targets/x86_64-linux/lib/stubs/libcuda.so"],
    "environment-broken": [
        "No Python at 'C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python310\\python.exe'",
        "did not find executable at 'C:\\Python311\\python.exe': The system cannot find the path specified.",
        'Fatal error in launcher: Unable to create process using \'"C:\\venv\\Scripts\\python.exe"  "C:\\venv\\Scripts\\pip.exe" list\'',
    ],
    "cuda-major-mismatch": [
        "2022-11-30 10:02:11.123456789 [W:onnxruntime:Default, onnxruntime_pybind_state.cc:578 CreateExecutionProviderInstance] Failed to create CUDAExecutionProvider."
    ],
    "persistence-mode-off": [
        "persistence mode is not enabled on GPU 00000000:0F:00.0 (nvidia-smi)",
        "nvidia-smi takes 20 seconds, is the persistence daemon missing?",
        "nvidia-container-cli: initialization error: driver rpc error: timed out",
    ],
    "framework-leaves-speed": [
        "You are using a CUDA device ('NVIDIA A100-SXM4-40GB') that has Tensor Cores. To properly utilize them, you should set `torch.set_float32_matmul_precision('medium' | 'high')`",
        "UserWarning: TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled.",
    ],
    "nouveau-loaded": ["lsmod lists nouveau and no nvidia"],
    "nvlink-down": ["NVLink of GPU 1 is down after the reboot (H100 SXM5)"],
    "row-remap-failed": ["Remapping Failure Occurred : Yes"],
    "row-remap-pending": ["nvidia-smi says Remapped Rows Pending: Yes for GPU 3"],
    "cudnn-too-old": [
        "Loaded runtime CuDNN library: 7003 (compatibility version 7000) but source was compiled with 7104 (compatibility version 7100)."
    ],
    "variable-leads-nowhere": ["FileNotFoundError: [Errno 2] No such file or directory: ':/usr/local/cuda/bin/nvcc'"],
}
