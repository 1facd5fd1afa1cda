"""Causes that follow from fragments of output and from what people say of their machine, in many forms of each kind."""

# ruff: noqa: E501, RUF001  lines as programs print them and people write them

from __future__ import annotations

from benchmarks.accuracy import judge
from envcheck.rules.engine.cause import primary
from tests.every import every


def alarms(text: str) -> list[str]:
    _, checks = judge(text)
    return [f"{check.rule}: {check.status}" for check in checks if check.status in ("warn", "fail")]


def cause_in(text: str) -> str | None:
    _, checks = judge(text)
    found = primary(checks)
    return found.rule if found else None


@every(
    [
        (
            "mig-without-instances",
            "$ nvidia-smi --query-gpu=name,mig.mode.current --format=csv\nname, mig.mode.current\nNVIDIA A100-PCIE-40GB, Enabled\n$ nvidia-smi -L\nGPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-1234)\ntorch.cuda.is_available() = False",
        ),
        (
            "mig-without-instances",
            "MIG Mode: Enabled\nnvidia-smi mig -lgi\nNo GPU instances found: Not Found\nRuntimeError: No CUDA GPUs are available",
        ),
        (
            "mig-without-instances",
            'MIG M. Enabled on the H100. "No MIG devices found" at the bottom of nvidia-smi. torch.cuda.device_count() 0',
        ),
        (
            "mig-without-instances",
            "    MIG Mode\n        Current                           : Enabled\n        Pending                           : Enabled\n    MIG Devices: None\nCUDA_ERROR_NO_DEVICE",
        ),
        (
            "mig-permission",
            "nvidia-smi\nNVIDIA A100-SXM4-80GB  On | MIG M. Enabled\npynvml.NVMLError_NoPermission: Insufficient Permissions",
        ),
        (
            "mig-permission",
            "$ nvidia-smi -L\nGPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1b2c)\n  MIG 1g.10gb Device 0: (UUID: MIG-55aa)\nUnable to determine the device handle for gpu 0000:17:00.0: Insufficient Permissions",
        ),
        (
            "mig-enumeration",
            "A100 split in 7 x 1g.5gb. CUDA_VISIBLE_DEVICES=MIG-a,MIG-b,MIG-c: torch.cuda.device_count() returns 1",
        ),
    ]
)
def test_mode_without_instances(cause: str, text: str) -> None:
    """MIG mode in fragments, and programs that see no GPU."""
    assert cause_in(text) == cause


@every(
    [
        (
            "no-gpu-visible",
            "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --partition=gpu\n#SBATCH --nodes=1\n#SBATCH --cpus-per-task=8\n#SBATCH --mem=64G\nmodule load cuda/12.1\npython train.py\n\ntorch 2.3.1+cu121\ntorch.cuda.is_available() False",
        ),
        (
            "no-gpu-visible",
            '#SBATCH -p a100\n#SBATCH -n 1\n#SBATCH -t 02:00:00\nsrun python -c "import torch; print(torch.cuda.is_available())"\nFalse',
        ),
        (
            "no-gpu-visible",
            '$ srun -p gpu --pty bash\n$ python -c "import torch; print(torch.__version__, torch.cuda.is_available())"\n2.4.0+cu121 False\n$ echo $CUDA_VISIBLE_DEVICES\n\n$ nvidia-smi\nNo devices were found',
        ),
        (
            "no-gpu-visible",
            "job.sbatch:\n#SBATCH --partition=gpuq\n#SBATCH --ntasks=1\n#SBATCH --time=1:00:00\n\nRuntimeError: No CUDA GPUs are available",
        ),
        (
            "no-gpu-visible",
            "SLURM: inside of `srun --pty bash` torch.cuda.is_available() is False, on the login via ssh on the node it is True. I did not add --gres.",
        ),
    ]
)
def test_a_batch_job(cause: str, text: str) -> None:
    """A batch job of Slurm that asks for no GPU."""
    assert cause_in(text) == cause


@every(
    [
        (
            "driver-too-old",
            "I'm on driver 470 with a Tesla V100 and installed torch==2.1.2+cu121. is_available() is False.",
        ),
        (
            "driver-too-old",
            "Ubuntu 20.04, nvidia driver 450, GPU: RTX 2080 Ti, PyTorch 2.2.0+cu121: torch.cuda.is_available() returns False",
        ),
        ("driver-too-old", "nvidia-driver-470 installed, RTX 3060. torch 2.6.0+cu126 does not see the GPU"),
        (
            "driver-too-old",
            "My cluster has the 470 driver and I can't update it. torch 2.5.1+cu124 says CUDA is not available.",
        ),
    ]
)
def test_a_driver_by_its_branch(cause: str, text: str) -> None:
    """A driver of which only the branch is said."""
    assert cause_in(text) == cause


@every(
    [
        (
            "kernel-module-missing",
            "$ uname -r\n6.8.0-52-generic\n$ ls /lib/modules/6.8.0-51-generic/updates/dkms/\nnvidia-drm.ko.zst  nvidia.ko.zst  nvidia-modeset.ko.zst\n$ ls /lib/modules/6.8.0-52-generic/updates/dkms/\nls: cannot access '/lib/modules/6.8.0-52-generic/updates/dkms/': No such file or directory\n$ nvidia-smi\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ),
        (
            "kernel-module-missing",
            "$ uname -r\n5.14.0-503.el9.x86_64\n$ ls /lib/modules/5.14.0-427.el9.x86_64/extra/\nnvidia  nvidia.ko.xz\n$ nvidia-smi\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
        ),
        (
            "kernel-module-missing",
            "$ find /lib/modules -name 'nvidia.ko*'\n/lib/modules/6.5.0-44-generic/kernel/nvidia-535/nvidia.ko\n$ uname -r\n6.8.0-40-generic\n$ nvidia-smi\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
        ),
        (
            "driver-library-mismatch",
            "kernel module 525.85.12, libcuda.so.525.105.17. torch.cuda.is_available() returns False",
        ),
        (
            "kernel-module-missing",
            "Building module:\nmake.log: error: implicit declaration of function 'drm_gem_prime_handle_to_fd'\ndkms: nvidia 470.223.02 fails to build with linux 6.6",
        ),
        (
            "nouveau-loaded",
            'lspci -k says "Kernel driver in use: nouveau" although I installed nvidia-driver-550; torch does not find CUDA',
        ),
        (
            "secure-boot-blocks-module",
            "Ubuntu 22.04 after install of nvidia-driver-535: nvidia-smi can't communicate with the driver. I skipped the MOK enrolment at reboot. mokutil says SecureBoot enabled.",
        ),
        (
            "secure-boot-blocks-module",
            "nvidia-smi does not work with Secure Boot on; when I turn Secure Boot off in the BIOS it works.",
        ),
    ]
)
def test_the_kernel_module(cause: str, text: str) -> None:
    """What is built for which kernel, and what keeps it from loading."""
    assert cause_in(text) == cause


@every(
    [
        (
            "glibc-too-old",
            "Red Hat Enterprise Linux 7.9, glibc 2.17\n$ pip install vllm-0.8.5-cp38-abi3-manylinux1_x86_64.whl flash_attn-2.7.4-cp310-cp310-manylinux_2_28_x86_64.whl\nERROR: flash_attn-2.7.4-cp310-cp310-manylinux_2_28_x86_64.whl is not a supported wheel on this platform.",
        ),
        (
            "glibc-too-old",
            "getconf GNU_LIBC_VERSION\nglibc 2.17\nonnxruntime_gpu-1.20.1-cp310-cp310-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl is not a supported wheel on this platform",
        ),
        (
            "glibc-too-old",
            "Libc version: glibc-2.17\nuv pip install torch==2.8.0\n  × No solution found when resolving dependencies:\n  hint: torch (v2.8.0) only has wheels for the following platforms: `manylinux_2_28_x86_64`, `win_amd64`\n  hint: Wheels are available for `torch` (v2.8.0) on the following platforms: `manylinux_2_28_x86_64`",
        ),
        (
            "glibc-too-old",
            "Amazon Linux 2 (glibc 2.26), pip install torch 2.6 finds only old versions; wheel torch-2.6.0+cu126-cp311-cp311-manylinux_2_28_x86_64.whl is not a supported wheel on this platform",
        ),
        (
            "library-of-other-architecture",
            "mach-o file, but is an incompatible architecture (have 'x86_64', need 'arm64')",
        ),
        (
            "library-of-other-architecture",
            "ImportError: /usr/lib/python3/site-packages/torch/lib/libc10.so: cannot open shared object file\n$ uname -m\naarch64\n$ file libc10.so\nlibc10.so: ELF 64-bit LSB shared object, x86-64, version 1 (GNU/Linux)",
        ),
    ]
)
def test_the_c_library_and_the_processor(cause: str, text: str) -> None:
    """Wheels for another C library or processor."""
    assert cause_in(text) == cause


@every(
    [
        (
            "no-nvidia-gpu",
            "lspci | grep VGA\n00:02.0 VGA compatible controller: Intel Corporation UHD Graphics 620\nRuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
        ),
        ("no-nvidia-gpu", "AssertionError: Torch not compiled with CUDA enabled\nMacBook Pro with M1 Pro"),
        (
            "no-nvidia-gpu",
            "I have an AMD Radeon RX 7900 XTX on Windows 11 and ComfyUI says RuntimeError: Found no NVIDIA driver on your system.",
        ),
    ]
)
def test_the_maker_of_the_gpu(cause: str, text: str) -> None:
    """Machines without a GPU of NVIDIA."""
    assert cause_in(text) == cause


@every(
    [
        (
            "container-without-gpu",
            "In the devcontainer torch.cuda.is_available() is False, on the host it is True. devcontainer.json has no runArgs.",
        ),
        (
            "container-without-gpu",
            "apptainer exec pytorch.sif python -c 'import torch; print(torch.cuda.is_available())'\nFalse\n(without --nv)",
        ),
        (
            "container-without-gpu",
            "Frigate in an LXC on Proxmox, /dev/nvidia* are not passed into it: ls /dev/nvidia*: No such file or directory. On the host nvidia-smi shows the P4.",
        ),
        (
            "container-without-gpu",
            "apptainer shell --cleanenv tensorflow.sif\n>>> tf.config.list_physical_devices('GPU')\n[]\nOn the host nvidia-smi lists two V100.",
        ),
        (
            "container-lost-gpu",
            "After `systemctl daemon-reload` on the host all running GPU containers lose their GPUs",
        ),
        (
            "driver-libraries-in-image",
            "My Dockerfile has `RUN apt-get install -y nvidia-driver-535`. In the container nvidia-smi says: Failed to initialize NVML: Driver/library version mismatch. The host has 550.54 and works.",
        ),
    ]
)
def test_a_container(cause: str, text: str) -> None:
    """What a container was started with."""
    assert cause_in(text) == cause


@every(
    [
        (
            "toolkit-lacks-gpu",
            "CUDA 12.4 nvcc on an RTX 5080, building llama.cpp with -DCMAKE_CUDA_ARCHITECTURES=native fails",
        ),
        (
            "toolkit-differs-from-build",
            "nvcc --version: Cuda compilation tools, release 11.5, V11.5.119\ntorch 2.4.0+cu121\npip install flash-attn --no-build-isolation: error",
        ),
        (
            "toolkit-lacks-gpu",
            "CMake Error: Failed to detect CUDA architecture native. nvcc 11.5, RTX 4090\nbuilding whisper.cpp with cmake -DGGML_CUDA=1 fails",
        ),
        (
            "cuda-major-mismatch",
            "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\nnvcc -V shows release 12.1",
        ),
        (
            "cuda-major-mismatch",
            "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\nnvcc: 12.1",
        ),
        (
            "host-compiler-unsupported",
            'Arch, gcc 14.2. nvcc 12.1: /usr/include/c++/14.2.1/type_traits: error: identifier "__is_pointer" is undefined',
        ),
    ]
)
def test_a_build(cause: str, text: str) -> None:
    """Toolkits, compilers and builds that fail."""
    assert cause_in(text) == cause


@every(
    [
        (
            "cpu-only-build",
            "环境: Windows 10, RTX 3060, pip install torch torchvision, torch.cuda.is_available() 返回 False",
        ),
        ("cpu-only-build", "brew-installed / apt python3-torch on Debian 12 with RTX 4070: torch.version.cuda is None"),
        ("cpu-only-build", "Jetson Orin Nano, JetPack 6.0, `pip3 install torch` → torch.cuda.is_available() False"),
        ("cpu-only-build", "tensorflow 2.16.1 (pip install tensorflow-cpu), RTX 2060 not used"),
        (
            "cpu-only-build",
            "pip show torch | grep Version\nVersion: 2.3.1+cpu\nGPU is a GTX 1660 Super, torch.cuda.is_available() is False",
        ),
        (
            "cpu-only-build",
            ">>> import llama_cpp\n>>> llama_cpp.llama_supports_gpu_offload()\nFalse\nRTX 3060 12GB, n_gpu_layers=35",
        ),
        ("cpu-only-build", "after pip install some-package my torch was replaced by 2.4.0+cpu"),
    ]
)
def test_builds_for_the_cpu(cause: str, text: str) -> None:
    """Builds without CUDA, by what was installed or is said of them."""
    assert cause_in(text) == cause


@every(
    [
        (
            "onnxruntime-cpu-and-gpu",
            "insightface pulls in onnxruntime although onnxruntime-gpu is installed; after that CUDAExecutionProvider is not listed",
        ),
        (
            "onnxruntime-cpu-and-gpu",
            "pip uninstall onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu fixed that only CPUExecutionProvider was available",
        ),
        (
            "library-shadowed",
            "Unsetting LD_LIBRARY_PATH fixes the import error of torch (undefined symbol in libcublasLt.so.12)",
        ),
    ]
)
def test_two_packages_or_paths(cause: str, text: str) -> None:
    """Copies that stand in each other's way."""
    assert cause_in(text) == cause


@every(
    [
        (
            "pcie-link-degraded",
            "lspci -vv shows for both cards\n\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16\n\t\tLnkSta:\tSpeed 16GT/s, Width x4 (downgraded)\nThroughput between host and GPU is a quarter of what it was.",
        ),
        (
            "thermal-throttled",
            "The P40 in my desktop case without a fan: 90 C after two minutes, clocks fall to 500 MHz. HW Slowdown: Active",
        ),
        ("uncorrected-ecc", "nvidia-smi shows Volatile Uncorr. ECC 3 for GPU 2, jobs on this GPU abort"),
        (
            "peer-access-blocked",
            "DDP with nccl backend hangs forever on 2x RTX 4090; `NCCL_P2P_DISABLE=1` makes it run",
        ),
        (
            "peer-access-blocked",
            "multi GPU inference prints garbage on AMD EPYC with two A40, one GPU is fine. amd_iommu=off in grub solves it.",
        ),
        (
            "forward-compat-unsupported",
            "docker nvidia/cuda:12.4.1-devel on host driver 470.223.02 with a GeForce RTX 3090: forward compatibility was attempted on non supported HW",
        ),
    ]
)
def test_links_and_memory(cause: str, text: str) -> None:
    """What is said of links, heat and memory."""
    assert cause_in(text) == cause


@every(
    [
        (
            "build-does-not-see-torch",
            "pip install git+https://github.com/facebookresearch/detectron2.git\n    ModuleNotFoundError: No module named 'torch'\n    [end of output]\n  note: This error originates from a subprocess, and is likely not a problem with pip.\nerror: subprocess-exited-with-error\n× Getting requirements to build wheel did not run successfully.",
        ),
        (
            "build-does-not-see-torch",
            "uv sync: flash-attn: ModuleNotFoundError: No module named 'torch' ... hint: This error likely indicates that `flash-attn@2.6.3` depends on `torch`, but doesn't declare it as a build dependency.",
        ),
        (
            "container-cgroups-refused",
            "rootless docker: nvidia-container-cli: mount error: open failed: /sys/fs/cgroup/devices/user.slice/devices.allow: permission denied",
        ),
        (
            "container-ldconfig-fails",
            "Debian 11: docker: nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or directory: unknown.",
        ),
        (
            "container-lost-gpu",
            'k8s 1.24 with systemd cgroup: training pods lose the GPU after some minutes: "Failed to initialize NVML: Unknown Error". kubelet\'s cpu-manager static policy updates the containers.',
        ),
        (
            "container-toolkit-missing",
            "Fedora, podman-docker: docker run --gpus all ubuntu nvidia-smi → Error: unresolvable CDI devices nvidia.com/gpu=all",
        ),
        (
            "container-toolkit-missing",
            'k3s, device plugin pod: "E0 main.go: Failed to initialize NVML: could not load NVML library. If this is a GPU node, did you set the docker default runtime to `nvidia`?"',
        ),
        (
            "container-toolkit-missing",
            'containerd: failed to create containerd container: get apparmor... no runtime for "nvidia" is configured',
        ),
        (
            "container-toolkit-missing",
            "Synology / Unraid: docker: Error response from daemon: unknown or invalid runtime name: nvidia.",
        ),
        (
            "container-toolkit-missing",
            "rootless podman: Error: preparing container for attach: crun: error stat'ing file `/dev/nvidia-modeset`: No such file or directory: OCI runtime attempted to invoke a command that was not found",
        ),
        (
            "container-toolkit-missing",
            'ollama docker: docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]. ERRO[0000] error waiting for container',
        ),
        (
            "container-toolkit-missing",
            'Al iniciar el contenedor: docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]. Ubuntu 22.04',
        ),
        (
            "container-toolkit-missing",
            'Jetson? no, RHEL 9 with docker-ce: docker run --gpus all → Error response from daemon: could not select device driver "" with capabilities: [[gpu]]; rpm -qa | grep nvidia-container is empty',
        ),
        (
            "container-toolkit-missing",
            'nomad / docker: Failed to create container: could not select device driver "nvidia" with capabilities: [[gpu]]',
        ),
        (
            "container-toolkit-missing",
            'After installing Docker from snap: docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
        ),
        (
            "container-toolkit-missing",
            'docker info | grep -i runtime: Runtimes: io.containerd.runc.v2 runc. docker compose with runtime: nvidia → "unknown or invalid runtime name: nvidia"',
        ),
        (
            "container-toolkit-missing",
            'k8s: nvidia-device-plugin: "Incompatible platform detected", "If this is a GPU node, did you configure the NVIDIA Container Toolkit?"',
        ),
        (
            "container-toolkit-missing",
            'microk8s: Error: failed to create containerd task: exec: "nvidia-container-runtime": executable file not found in $PATH',
        ),
        (
            "container-without-gpu",
            "I use docker-compose v1 with version \"2.3\" and forgot the runtime. In the container: `ls /dev | grep nvidia` is empty, `tf.config.list_physical_devices('GPU')` is `[]`.",
        ),
        (
            "container-without-gpu",
            "Kubernetes: pod without resources.limits nvidia.com/gpu; in the pod: nvidia-smi: command not found, torch.cuda.is_available() False. The node has 4 A10 and works.",
        ),
        (
            "container-without-gpu",
            "GitHub Actions runner in docker, no GPU was passed to it: jax.devices() lists only CpuDevice and 'Unable to initialize backend cuda'",
        ),
        (
            "container-without-gpu",
            'open-webui:cuda container: "cuda" tag but started with `docker run -d -p 3000:8080 ghcr.io/open-webui/open-webui:cuda`\nRuntimeError: Found no NVIDIA driver on your system.',
        ),
        (
            "container-without-gpu",
            "My Dockerfile is FROM nvcr.io/nvidia/pytorch:24.01-py3; in VS Code dev container:\nWARNING: The NVIDIA Driver was not detected. GPU functionality will not be available.",
        ),
        (
            "container-without-gpu",
            "docker-compose.yml\n    deploy:\n      resources:\n        limits:\n          memory: 8G\ncontainer log: WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.",
        ),
        (
            "cpu-lacks-instructions",
            "Synology NAS with an old Atom: container exits with code 132 at once (frigate/tensorflow).",
        ),
        ("cpu-lacks-instructions", "import faiss → Illegal instruction (core dumped). lscpu has no avx2."),
        (
            "cpu-lacks-instructions",
            "Proxmox VM with CPU type kvm64: import torch works, faiss/numpy: Illegal instruction (core dumped); with CPU type host it runs.",
        ),
        (
            "cpu-only-build",
            "NixOS: python3Packages.torch from the binary cache, torch.version.cuda → None, GPU: RTX 2070 SUPER",
        ),
        (
            "cpu-only-build",
            'Whisper: "FP16 is not supported on CPU; using FP32 instead". torch 2.0.1+cpu; RTX 3050 laptop',
        ),
        (
            "cpu-only-build",
            "scoop/pip install faiss-cpu: AttributeError: module 'faiss' has no attribute 'StandardGpuResources'",
        ),
        (
            "cpu-only-build",
            "opencv-python from pip: cv2.cuda.getCudaEnabledDeviceCount() returns 0; cv2.getBuildInformation(): NVIDIA CUDA: NO",
        ),
        (
            "cpu-only-build",
            'text-generation-webui: llama.cpp: "warning: failed to mlock"? "not compiled with GPU offload support, --gpu-layers option will be ignored"',
        ),
        (
            "cpu-only-build",
            "Ultralytics YOLOv8.2.0 🚀 Python-3.11.5 torch-2.2.1+cpu CPU (Intel Core(TM) i7-12700H)\nValueError: Invalid CUDA 'device=0' requested. Use 'device=cpu' or pass valid CUDA device(s) if available\nNVIDIA RTX 3060 Laptop",
        ),
        (
            "cpu-only-build",
            "lightning: GPU available: False, used: False\ntorch==2.1.0+cpu\nMisconfigurationException: CUDAAccelerator can not run on your system",
        ),
        (
            "cpu-only-build",
            "easyocr: CUDA not available - defaulting to CPU. Note: This module is much faster with a GPU.\npip show torch → 2.0.1+cpu\nRTX 2060",
        ),
        (
            "cpu-only-build",
            "您好，我按照教程安装了 pytorch，但是 torch.cuda.is_available() 一直返回 False\nconda list 里面 pytorch 是 1.13.1 py3.9_cpu_0\n显卡 GTX 1650，驱动 531.79",
        ),
        (
            "cpu-only-build",
            "Successfully installed torch-2.3.1+cpu torchvision-0.18.1+cpu\nnvidia-smi shows an RTX 4060 Laptop GPU",
        ),
        (
            "cpu-only-build",
            "pip install torch (Windows, Python 3.12); print(torch.__version__) gives 2.4.0+cpu; GPU RTX 3070",
        ),
        ("cpu-only-build", "stable-baselines3: Using cpu device. torch 2.1.2+cpu. I have a GeForce RTX 3080"),
        (
            "cpu-only-build",
            'ComfyUI on Windows: "raise AssertionError("Torch not compiled with CUDA enabled")", pip list shows torch 2.3.0',
        ),
        (
            "cpu-only-build",
            "I: Lightning: GPU available: False, used: False; torch 1.13.1 from conda-forge (cpu_py39h...), 2x V100",
        ),
        (
            "cpu-only-build",
            "torch.backends.cudnn.enabled True but torch.cuda.is_available() False; torch.__config__.show() has no CUDA, USE_CUDA=0",
        ),
        (
            "cpu-only-build",
            'pip3 install torch torchvision torchaudio on Windows 10; "device: cpu"; torch.version.cuda None; GTX 1080',
        ),
        (
            "cpu-only-build",
            "spaCy: ValueError: [E...] GPU is not accessible. Was the library installed correctly? spacy.require_gpu()",
        ),
        (
            "cpu-only-build",
            "tensorflow==2.15.0 (pip, macOS arm64?) no: Linux; tf.test.is_built_with_cuda() → False; RTX A5000",
        ),
        (
            "cpu-only-build",
            "lightgbm.basic.LightGBMError: CUDA Tree Learner was not enabled in this build. Please recompile with CMake option -DUSE_CUDA=1",
        ),
        (
            "cpu-only-build",
            "ggml_backend_load_best: failed to find ggml_cuda? llama-server: warning: no usable GPU found, --gpu-layers option will be ignored",
        ),
        (
            "cuda-library-missing",
            "libcudart.so.12 missing: vllm in python:3.11-slim, pip install vllm --no-deps\nImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
        ),
        (
            "cuda-library-missing",
            "Tensorflow 2.9 in WSL: Could not load dynamic library 'libcublas.so.11'; dlerror: libcublas.so.11: cannot open shared object file; no CUDA toolkit installed",
        ),
        (
            "cuda-library-missing",
            "insightface / onnxruntime-gpu: Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open shared object file",
        ),
        (
            "cuda-library-missing",
            "RuntimeError: Failed to import transformers... libnvJitLink.so.12: cannot open shared object file: No such file or directory\ntorch 2.5.1+cu124",
        ),
        (
            "cuda-major-mismatch",
            "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\ntorch: 2.3.0+cu121",
        ),
        (
            "cuda-major-mismatch",
            "CuPy: cupy-cuda12x 12.2.0 on a machine with CUDA 11.8: RuntimeError: CuPy failed to load libnvrtc.so.12: OSError: libnvrtc.so.12: cannot open shared object file: No such file or directory\nCUDA 11.8 toolkit is in /usr/local/cuda-11.8",
        ),
        (
            "cuda-major-mismatch",
            'onnxruntime-gpu 1.22.0\nCUDA Toolkit 11.8\n[E:onnxruntime] LoadLibrary failed with error 126 "" when trying to load "onnxruntime_providers_cuda.dll"; Require cuDNN 9.* and CUDA 12.*',
        ),
        (
            "cudnn-major-mismatch",
            "whisperX 3.1.1\nCould not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open shared object file: No such file or directory\ntorch 2.5.1+cu124, nvidia-cudnn-cu12 9.1.0.70, ctranslate2 4.4.0",
        ),
        (
            "cudnn-missing",
            "onnxruntime::CudaCall CUDNN failure / Failed to load libcudnn.so.9: cannot open shared object file",
        ),
        (
            "cudnn-missing",
            "faster-whisper 1.1.0: Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}\nInvalid handle. Cannot load symbol cudnnCreateTensorDescriptor\nAborted (core dumped)",
        ),
        (
            "cudnn-missing",
            "Bei der Transkription mit faster-whisper: Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path! Windows 11, RTX 3060",
        ),
        (
            "cudnn-missing",
            "onnxruntime-gpu 1.20.1: Failed to load library libonnxruntime_providers_cuda.so with error: libcudnn.so.9: cannot open shared object file: No such file or directory",
        ),
        (
            "cudnn-mixed-copies",
            "libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn34layerNormFwd_execute_internal_implERKNS_7backend11VariantPackEP11CUstream_stRNS0_18LayerNormFwdParamsERKNS1_20NormForwardOperationEmb, version libcudnn_cnn_infer.so.8",
        ),
        (
            "cudnn-too-old",
            "tensorflow 2.17: Loaded runtime CuDNN library: 8.9.4 but source was compiled with: 8.9.6.  CuDNN library needs to have matching major version and equal or higher minor version.",
        ),
        (
            "driver-library-mismatch",
            "Hi, after `apt upgrade` my Plex container does not start anymore.\n\ndocker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown.",
        ),
        (
            "driver-library-mismatch",
            "kernel: NVRM: API mismatch: the client has the version 560.35.05, but\nkernel: NVRM: this kernel module has the version 560.35.03.  Please\nkernel: NVRM: make sure that this kernel module and all NVIDIA driver",
        ),
        (
            "driver-library-mismatch",
            "nvidia-smi: Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.86\ncat /sys/module/nvidia/version\n565.57.01",
        ),
        (
            "driver-library-mismatch",
            "CUDA error: system has unsupported display driver / cuda driver combination. This appeared after I installed cuda-drivers 555 while the machine was running 550, no reboot yet.",
        ),
        (
            "driver-not-installed",
            'Fresh Ubuntu Server 24.04, T4 in the slot. `ubuntu-drivers devices` recommends nvidia-driver-550-server but I have not installed any driver yet. ollama says: no nvidia driver detected / "no compatible GPUs were discovered"',
        ),
        (
            "driver-not-installed",
            "Bottlerocket node: Failed to initialize NVML: could not load NVML library\nnvidia-smi is not on the node",
        ),
        (
            "driver-not-installed",
            'Vast.ai/own box: `nvidia-smi` "command not found", `lspci -nnk -d 10de:` prints\n2b:00.0 VGA compatible controller [0300]: NVIDIA Corporation TU104 [GeForce RTX 2080] [10de:1e87] (rev a1)\n\tSubsystem: Gigabyte\n(no "Kernel driver in use" line)',
        ),
        (
            "driver-not-loaded",
            "Debian 12 VM with passed-through T4.\nroot@ml:~# nvidia-smi\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\nroot@ml:~# dpkg -l | grep nvidia-driver\nii  nvidia-driver  535.183.01-1~deb12u1",
        ),
        (
            "driver-not-loaded",
            "nixos-rebuild switch with hardware.nvidia.package = beta; after that: nvidia-smi: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. A reboot solved it.",
        ),
        (
            "driver-not-loaded",
            "NVIDIA GPU operator: nvidia-driver-daemonset: modprobe nvidia... ; validator: failed to validate the driver: nvidia-smi: couldn't communicate with the NVIDIA driver",
        ),
        (
            "driver-not-loaded",
            "カーネル更新後に nvidia-smi が動きません。NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ),
        (
            "driver-not-loaded",
            "journalctl: nvidia-persistenced: Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) exist, and that user 113 has read and write permissions for those files.",
        ),
        (
            "driver-packages-conflict",
            "dpkg: dependency problems prevent configuration of nvidia-driver-535: nvidia-driver-535 depends on libnvidia-gl-535 (= 535.161.07-0ubuntu0.22.04.1); however: Version of libnvidia-gl-535:amd64 on system is 535.161.08-0ubuntu1.",
        ),
        (
            "driver-packages-conflict",
            "apt install cuda: The following packages have unmet dependencies: cuda : Depends: cuda-12-4 (>= 12.4.1) but it is not installable / nvidia-kernel-common-550 conflicts",
        ),
        (
            "driver-too-old",
            "llama.cpp docker server-cuda: ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime version",
        ),
        (
            "driver-too-old",
            "CUDA error: the provided PTX was compiled with an unsupported toolchain. (nvcc 12.6, driver 535.183)",
        ),
        (
            "driver-too-old",
            "nvidia/cuda:12.8.1 image: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container",
        ),
        (
            "driver-too-old",
            "**System Info**\ntransformers version: 4.44.0\nPlatform: Linux-5.4.0-150-generic-x86_64-with-glibc2.31\nPython version: 3.10.12\nPyTorch version (GPU?): 2.4.0+cu121 (False)\nnvidia-smi: Driver Version: 450.203.03   CUDA Version: 11.0",
        ),
        (
            "driver-too-old",
            "/usr/local/lib/python3.8/dist-packages/torch/cuda/__init__.py:80: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 10020).",
        ),
        (
            "driver-too-old",
            "服务器驱动版本 418.67，安装 paddlepaddle-gpu 2.4.2.post117 后报错 CUDA driver version is insufficient for CUDA runtime version",
        ),
        (
            "driver-too-old",
            '$ nvidia-smi\n| NVIDIA-SMI 535.54.03              Driver Version: 535.54.03    CUDA Version: 12.2     |\n$ python -c "import torch; print(torch.__version__, torch.cuda.is_available())"\n2.10.0+cu130 False',
        ),
        (
            "driver-too-old",
            'jax 0.7 [cuda13]: jax.errors.JaxRuntimeError: ... CUDA driver version 12040 is older than required 13000? "CUDA driver version is insufficient for CUDA runtime version"',
        ),
        (
            "driver-too-old",
            "ComfyUI zluda? no: CUDA error: the provided PTX was compiled with an unsupported toolchain. RTX 3060, driver 516.94, torch 2.6.0+cu126",
        ),
        (
            "driver-too-old",
            "conda: __cuda 11.2 virtual package; torch 2.3 cu121: torch.cuda.is_available() False. nvidia-smi: 460.106.00",
        ),
        (
            "extension-binary-missing",
            '/site-packages/bitsandbytes/libbitsandbytes_cuda124.so not found: CUDA Setup failed despite CUDA being available; "Required library version not found: libbitsandbytes_cuda124.so"',
        ),
        (
            "extension-binary-missing",
            "ImportError: cannot import name 'flash_attn_2_cuda' / No module named 'flash_attn_2_cuda'",
        ),
        (
            "extension-built-for-other-torch",
            "ImportError: /home/u/.local/lib/python3.10/site-packages/torch_cluster/_rw_cuda.so: undefined symbol: _ZN2at4_ops5zeros4callEN3c108ArrayRefIlEE",
        ),
        (
            "extension-built-for-other-torch",
            "nvcc fine, torch 2.0.0. fused_dense_lib.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c104impl3cow11cow_deleterEPv",
        ),
        (
            "extension-built-for-other-torch",
            "ComfyUI-nunchaku: ImportError: DLL load failed while importing _C: The specified procedure could not be found.\ntorch 2.7.1+cu128, nunchaku-0.3.1+torch2.6-cp311",
        ),
        (
            "extension-built-for-other-torch",
            "sageattention: undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib",
        ),
        (
            "extension-built-for-other-torch",
            "Установил xformers 0.0.23 и torch 2.3.0+cu121: WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for: PyTorch 2.1.1+cu121 (you have 2.3.0+cu121)",
        ),
        (
            "extension-built-for-other-torch",
            "nunchaku: undefined symbol: _ZN3c106Symbol14fromQualStringERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        ),
        (
            "extension-built-for-other-torch",
            "ImportError: /opt/conda/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda14ExchangeDeviceEa",
        ),
        (
            "extension-built-for-other-torch",
            "torch 2.6 + torchao 0.7 + xformers 0.0.28: ImportError: .../xformers/_C.so: undefined symbol: _ZN3c10...",
        ),
        ("extension-built-for-other-torch", "vllm._C undefined symbol after `pip install torch --upgrade`"),
        (
            "fabric-manager-not-running",
            'AWS p4d with a custom AMI: torch.cuda.is_available() → False, "CUDA initialization: Unexpected error from cudaGetDeviceCount() ... Error 802"',
        ),
        (
            "fabric-manager-not-running",
            'nvidia-fabricmanager-550 installed with driver 550.127; journal: "fabric manager NVIDIA GPU driver interface version 550.127.05 don\'t match with driver version 550.54.15"',
        ),
        (
            "fabric-manager-not-running",
            'HGX B200: nvidia-smi topo fine, "CUDA_ERROR_SYSTEM_NOT_READY", systemctl: nvidia-fabricmanager.service could not be found',
        ),
        (
            "forward-compat-unsupported",
            'nvcr.io/nvidia/tensorrt:24.01-py3 on a GeForce 1080 Ti with driver 470: "Error 804: forward compatibility was attempted on non supported HW"',
        ),
        (
            "glibc-too-old",
            "pip install sglang on RHEL7: sgl_kernel .so: /lib64/libm.so.6: version `GLIBC_2.29' not found",
        ),
        ("glibc-too-old", "Amazon Linux 2: llama-cpp-python wheel: version `GLIBC_2.32' not found"),
        (
            "glibc-too-old",
            "Ubuntu 18.04: ImportError: /lib/x86_64-linux-gnu/libm.so.6: version `GLIBC_2.29' not found (required by open3d)",
        ),
        (
            "gpu-code-missing",
            'GTX 780 (Kepler), torch 1.13.1+cu117: "PyTorch no longer supports this GPU because it is too old. The minimum cuda capability supported by this library is 3.7."',
        ),
        (
            "gpu-code-missing",
            "RTX 5090 + onnxruntime-gpu 1.19: [E:onnxruntime] Non-zero status code ... CUDA error cudaErrorNoKernelImageForDevice:no kernel image is available for execution on the device",
        ),
        (
            "gpu-code-missing",
            "ctransformers / exllama on a Tesla M40 24GB (5.2): CUDA error 209 at ...: no kernel image is available for execution on the device",
        ),
        (
            "gpu-code-missing",
            'Fooocus: torch 2.1.0+cu121; NVIDIA GeForce RTX 5090 : native; "CUDA error: no kernel image is available for execution on the device"',
        ),
        (
            "gpu-code-missing",
            "InvokeAI 4.2, RTX 5070, pytorch 2.2.2+cu121. UserWarning: NVIDIA GeForce RTX 5070 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
        ),
        (
            "gpu-code-missing",
            "Tesla V100, torch 2.11.0+cu130 from pip: RuntimeError: CUDA error: no kernel image is available",
        ),
        (
            "gpu-code-missing",
            "我用的是5060ti 16G，torch版本2.3.1+cu118，一运行就报 CUDA error: no kernel image is available for execution on the device",
        ),
        (
            "gpu-code-missing",
            'RTX 5070 Ti / torch 2.6.0+cu124 (ComfyUI): "RuntimeError: CUDA error: no kernel image is available for execution on the device"',
        ),
        (
            "gpu-code-missing",
            'Tesla P100 on Kaggle with torch 2.8.0+cu126? "Tesla P100-PCIE-16GB with CUDA capability sm_60 is not compatible with the current PyTorch installation."',
        ),
        (
            "gpu-code-missing",
            "[ONNXRuntimeError] : CUDA error cudaErrorInvalidDeviceFunction:invalid device function; onnxruntime-gpu 1.12 built from source for sm_75, GPU GTX 1080",
        ),
        (
            "gpu-code-missing",
            'Kepler: Quadro K5000; "CUDA error: no kernel image is available for execution on the device", pytorch 1.10.2+cu113',
        ),
        ("gpu-error-logged", "kernel: NVRM: Xid (PCI:0000:17:00): 62, pid=..., name=..., 2140(3000) 00000000 00000000"),
        (
            "gpu-feature-unsupported",
            'NVIDIA Tesla P40: "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED" with bfloat16; torch.cuda.is_bf16_supported() is False',
        ),
        (
            "gpu-feature-unsupported",
            "vLLM + AWQ on V100: ValueError: The quantization method awq is not supported for the current GPU. Minimum capability: 75. Current capability: 70.",
        ),
        (
            "gpu-feature-unsupported",
            "flash_attention_2 on a Quadro RTX 8000: RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
        ),
        ("gpu-feature-unsupported", "SageAttention on 2080ti: AssertionError: Unsupported CUDA architecture: sm75"),
        ("gpu-hidden", "CUDA_VISIBLE_DEVICES=3 on a box with 2 GPUs\nRuntimeError: CUDA error: invalid device ordinal"),
        (
            "gpu-init-failed",
            "VFIO passthrough of an RTX 3060 to a VM: NVRM: RmInitAdapter failed! (0x26:0x56:1482), nvidia-smi: No devices were found",
        ),
        (
            "gpu-init-failed",
            "H100 in a confidential VM: nvidia-smi shows the GPU, CUDA: cuInit returned 3 (initialization error)",
        ),
        (
            "gpu-init-failed",
            'systemd service of ollama starts before nvidia is ready: "cuda driver library init failure: 999" after boot; restart of the service cures it',
        ),
        (
            "gpu-init-failed",
            "Three of four A100 work; the fourth: NVRM: GPU 0000:c3:00.0: RmInitAdapter failed! (0x31:0xffff:2541)",
        ),
        (
            "gpu-init-failed",
            "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment\nUbuntu 22.04, happens each time after the laptop was closed; sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm fixes it",
        ),
        ("gpu-init-failed", "cuInit(0) returned 999\nnvidia-smi works, RTX 2060 Mobile, driver 535.183.01"),
        (
            "gpu-init-failed",
            'ollama: level=WARN source=gpu.go msg="unable to initialize cuda driver library" error="cuda driver library init failure: 999" library=/usr/lib/x86_64-linux-gnu/libcuda.so.550.107.02',
        ),
        ("gpu-init-failed", "Failed to initialize CUDA: CUDA_ERROR_UNKNOWN (darktable/blender CUDA), after suspend"),
        (
            "gpu-init-failed",
            "torch._C._cuda_init() RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
        ),
        (
            "gpu-init-failed",
            "E0000 cuda_driver.cc:266] failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error\nI cuda_diagnostics.cc:158] retrieving CUDA diagnostic information for host\nkernel reported version is: 470.223.2",
        ),
        (
            "gpu-lost",
            "my second RTX 3090 vanishes during training: RuntimeError: CUDA error: unspecified launch failure ... nvidia-smi -> Unable to determine the device handle for GPU0000:65:00.0: Unknown Error",
        ),
        ("gpu-lost", 'GPU crash dump: Xid 79. `nvidia-smi`: "GPU is lost. Reboot the system to recover this GPU"'),
        (
            "gpu-lost",
            'Vast host: "nvidia-smi: Unable to determine the device handle for GPU 0000:0A:00.0: Unknown Error", dmesg has Xid 79 for it',
        ),
        (
            "gpu-needs-reset",
            'after a failed MIG reconfiguration: "In use by another client" / GPU 00000000:0F:00.0 requires reset',
        ),
        (
            "gpu-unsupported-by-driver",
            "kernel: NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2c02) installed in this system requires use of the NVIDIA open kernel modules.\nkernel: NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:897)",
        ),
        (
            "gpu-unsupported-by-driver",
            "Arch after the update to nvidia 590: GTX 1060 black screen; nvidia: probe of 0000:01:00.0 failed with error -1; NVRM: installed in this system is supported through the NVIDIA 580.xx Legacy drivers.",
        ),
        (
            "gpu-unsupported-by-driver",
            'K80 in Proxmox VM, nvidia-driver-535: dmesg says "NVRM: The NVIDIA Tesla K80 GPU installed in this system is supported through the NVIDIA 470.xx Legacy drivers"',
        ),
        (
            "gpu-unsupported-by-driver",
            "gpu-operator with open modules on a P100: NVRM: The NVIDIA GPU 0000:00:05.0 (PCI ID: 10de:15f8) installed in this system is not supported by open nvidia.ko because it does not include the required GPU System Processor (GSP).",
        ),
        (
            "gpu-unsupported-by-driver",
            "Titan V? no: GeForce GTX TITAN (Kepler) and driver 525: NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1005) installed in this system is not supported by the 525.125.06 NVIDIA driver release",
        ),
        ("host-compiler-unsupported", "nvcc fatal   : Cannot find compiler 'cl.exe' in PATH"),
        (
            "host-compiler-unsupported",
            "flash-attn on Windows: error: command 'cl.exe' failed: None; Microsoft Visual C++ 14.0 or greater is required",
        ),
        (
            "host-compiler-unsupported",
            "Building apex on Arch with gcc 14 and CUDA 12.3: error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!",
        ),
        (
            "host-compiler-unsupported",
            "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with ‘...’",
        ),
        (
            "jax-plugin-mismatch",
            "jax 0.4.36 / jaxlib 0.4.36 / jax-cuda12-plugin 0.4.35: AttributeError: module 'jaxlib.xla_extension' has no attribute ... ; \"JAX plugin jax_cuda12_plugin version 0.4.35 is installed, but it is not compatible with the installed jaxlib version 0.4.36, so it will not be used.\"",
        ),
        (
            "jetpack-mismatch",
            "dustynv/ollama:r36.3.0 on JetPack 5.1 (r35.4.1): docker: ... requirement error / error: libcublas.so.12",
        ),
        (
            "jetpack-mismatch",
            "Orin NX, JetPack 6.1; pip wheel torch-1.10.0-cp36-cp36m-linux_aarch64.whl is not supported / image l4t-ml:r32.7.1 fails: libcuda",
        ),
        (
            "jetson-libraries-not-mounted",
            "Jetson Nano, docker without --runtime nvidia: ImportError: libcurand.so.10: cannot open shared object file: No such file or directory (l4t-pytorch image)",
        ),
        ("jit-compiler-missing", "XlaRuntimeError: INTERNAL: libdevice not found at ./libdevice.10.bc"),
        ("jit-compiler-missing", "numba: NvvmSupportError: libNVVM cannot be found. Do `conda install cudatoolkit`"),
        (
            "jit-compiler-missing",
            "torch.compile on Windows: RuntimeError: Cannot find a working triton installation. Either the package is not installed or it is too old.",
        ),
        (
            "jit-compiler-missing",
            "RuntimeError: Could not find ptxas; TRITON_PTXAS_PATH? /usr/local/cuda/bin/ptxas does not exist",
        ),
        (
            "jit-compiler-too-old",
            "torch._inductor.exc.InductorError: ... ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name' (torch 2.6)",
        ),
        (
            "jit-compiler-too-old",
            "unsloth on RTX 5090 with triton 3.1.0: RuntimeError: PassManager::run failed / ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'",
        ),
        (
            "kernel-module-missing",
            "Void Linux: dkms install failed for nvidia 550.107 on linux6.10:\n/var/lib/dkms/nvidia/550.107.02/build/nvidia-drm/nvidia-drm-drv.c:201:12: error: initialization of ‘...’ from incompatible pointer type\nmake[2]: *** [scripts/Makefile.build:244: nvidia-drm/nvidia-drm-drv.o] Error 1",
        ),
        (
            "kernel-module-missing",
            "zen kernel 6.16, nvidia-open-dkms 575: ERROR: Missing 6.16.0-zen1-1-zen kernel modules tree for module nvidia/575.64.\n==> WARNING: `dkms install --no-depmod nvidia/575.64 -k 6.16.0-zen1-1-zen' exited 11",
        ),
        (
            "kernel-module-missing",
            "Loading driver: insmod: ERROR: could not insert module nvidia.ko: Invalid module format",
        ),
        (
            "kernel-module-missing",
            "Gentoo: `modprobe nvidia` → modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.6.30-gentoo. emerge @module-rebuild helped.",
        ),
        (
            "kernel-module-missing",
            "openSUSE: nvidia-driver-G06-kmp-default was built for 6.4.0-150600.21, uname -r is 6.4.0-150600.23.17-default; nvidia-smi: couldn't communicate with the driver",
        ),
        (
            "kernel-module-missing",
            "Kernel 6.12, Debian testing: DKMS make.log for nvidia-current-535.216.01 for kernel 6.12.3-amd64\nerror: ‘struct drm_driver’ has no member named ‘date’",
        ),
        (
            "kernel-module-missing",
            "nvidia-smi fails after dnf upgrade. `rpm -qa | grep kmod-nvidia` → kmod-nvidia-6.10.6-200.fc40.x86_64-560.35.03; `uname -r` → 6.10.9-200.fc40.x86_64",
        ),
        (
            "kernel-module-missing",
            "depmod / modprobe: `modinfo nvidia` → modinfo: ERROR: Module nvidia not found. (Ubuntu 22.04, HWE kernel 6.8.0-40, nvidia-driver-550-server)",
        ),
        (
            "kernel-module-missing",
            "Setting up nvidia-dkms-550 (550.120-0ubuntu0.22.04.1) ...\nError! Your kernel headers for kernel 6.8.0-49-generic cannot be found at /lib/modules/6.8.0-49-generic/build or /lib/modules/6.8.0-49-generic/source.",
        ),
        (
            "kernel-module-missing",
            "sudo nvidia-smi → couldn't communicate with the NVIDIA driver. ls /lib/modules/$(uname -r)/updates/dkms is empty; dkms status: nvidia/550.90.07: added",
        ),
        (
            "kernel-module-missing",
            "Azure NC VM after automatic kernel upgrade to 6.5.0-1025-azure: nvidia-smi fails; dkms status: nvidia, 535.161.08, 6.5.0-1021-azure, x86_64: installed",
        ),
        (
            "library-not-found",
            'TensorFlow 2.15.1 from pip with nvidia-* wheels: "Cannot dlopen some GPU libraries." The libs are in site-packages/nvidia/*/lib, after export LD_LIBRARY_PATH to these it works',
        ),
        (
            "library-not-found",
            'tensorflow 2.13 in conda: I installed cudatoolkit=11.8 and cudnn=8.6 by conda-forge, but TF prints "Cannot dlopen some GPU libraries". CONDA_PREFIX/lib has libcudart.so.11.0\nAfter export LD_LIBRARY_PATH=$CONDA_PREFIX/lib it finds the GPU.',
        ),
        (
            "library-not-found",
            '$ python -c "import cupy"\nImportError: libcublas.so.12: cannot open shared object file: No such file or directory\n$ locate libcublas.so.12\n/home/me/.local/lib/python3.10/site-packages/nvidia/cublas/lib/libcublas.so.12',
        ),
        (
            "library-not-found",
            "OSError: libcudart.so.12: cannot open shared object file: No such file or directory\n$ ls /opt/cuda/lib64 | grep cudart\nlibcudart.so.12\nlibcudart.so.12.6.77",
        ),
        (
            "library-not-found",
            "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file: No such file or directory; LD_LIBRARY_PATH: /usr/local/cuda/lib64\nsudo find / -name \"libcudnn.so.8*\"\n/usr/lib/cuda/lib64/libcudnn.so.8",
        ),
        (
            "library-of-other-architecture",
            "docker pull on an Apple M2: The requested image's platform (linux/amd64) does not match the detected host platform (linux/arm64/v8)",
        ),
        (
            "library-of-other-architecture",
            "Jetson TX2: pip install torch-1.8.0-cp36-cp36m-linux_x86_64.whl → torch-1.8.0-cp36-cp36m-linux_x86_64.whl is not a supported wheel on this platform. uname -m: aarch64",
        ),
        (
            "library-shadowed",
            "ImportError: /usr/local/cuda/lib64/libcublas.so.12: symbol cublasLtGetEnvironmentMode version libcublasLt.so.12 not defined in file libcublasLt.so.12 with link time reference",
        ),
        (
            "library-shadowed",
            "My .bashrc has LD_LIBRARY_PATH=/usr/local/cuda-11.2/lib64. With it `import torch` (2.0+cu117): libcudnn_cnn_infer... version mismatch; without LD_LIBRARY_PATH it works",
        ),
        (
            "libstdcxx-too-old",
            "anaconda + deepspeed JIT: ImportError: /opt/anaconda3/bin/../lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /root/.cache/torch_extensions/py310_cu118/fused_adam/fused_adam.so)",
        ),
        (
            "mig-enumeration",
            "A30 with 4 MIG devices, jax.devices() shows one CudaDevice only; NVIDIA_VISIBLE_DEVICES=all",
        ),
        (
            "mig-permission",
            'docker container, A100 in MIG mode: "Unable to list MIG instances: Insufficient Permissions" nvidia-smi mig -lgi',
        ),
        ("mig-permission", "nvidia-smi mig -cgi 9 -C: Insufficient Permissions (not root)"),
        (
            "mig-without-instances",
            'k8s mig strategy mixed: device plugin: "error getting plugins: unable to load resource managers to manage plugin devices: error building device map: error building GPU device map: ... device 0 has no MIG devices configured"',
        ),
        (
            "nccl-no-interface",
            "torchrun inside a k8s pod: gloo: [enforce fail at .../gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: eth1",
        ),
        ("nccl-version-mismatch", "ImportError: libtorch_cuda.so: undefined symbol: ncclGroupSimulateEnd"),
        (
            "no-gpu-visible",
            "docker run --gpus '\"device=1\"' and inside CUDA_VISIBLE_DEVICES=1: RuntimeError: No CUDA GPUs are available",
        ),
        ("no-gpu-visible", "I deploy the model on AWS Fargate. RuntimeError: No CUDA GPUs are available"),
        (
            "no-gpu-visible",
            "Hugging Face ZeroGPU space: RuntimeError: No CUDA GPUs are available at startup, since the model is moved to cuda outside of @spaces.GPU",
        ),
        (
            "no-gpu-visible",
            "train.py sets os.environ['CUDA_VISIBLE_DEVICES'] = '4,5' but the machine has only 2x 3090\nRuntimeError: No CUDA GPUs are available",
        ),
        (
            "no-gpu-visible",
            "H100, I turned MIG on with nvidia-smi -mig 1. Since then torch says no CUDA GPUs are available.",
        ),
        (
            "no-nvidia-gpu",
            "Google Colab, runtime type None (CPU). RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver",
        ),
        (
            "no-nvidia-gpu",
            "koboldcpp/comfyui on a laptop with Intel Iris Xe only. AssertionError: Torch not compiled with CUDA enabled",
        ),
        (
            "nodes-not-connected",
            "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by store->get('0'), but store->get('0') got error: Socket Timeout",
        ),
        (
            "nodes-not-connected",
            "deepspeed on 2 nodes: NCCL WARN NET/Socket : Connect to 10.0.0.12<44321> failed : No route to host",
        ),
        (
            "nouveau-loaded",
            "After the installation of CUDA on Debian the screen is black. `lsmod | grep nv` gives\nnouveau  2514944  1\nmxm_wmi 16384 1 nouveau\nand nvidia-smi is not able to find the driver.",
        ),
        (
            "nouveau-loaded",
            "$ lspci -nnk | grep -A3 VGA\n01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GP104 [GeForce GTX 1070] [10de:1b81]\n\tKernel driver in use: nouveau\nOllama runs on the CPU only.",
        ),
        (
            "numpy-abi-mismatch",
            "ValueError: numpy.ndarray size changed, may indicate binary incompatibility. Expected 96 from C header, got 80 from PyObject (cupy)",
        ),
        (
            "numpy-abi-mismatch",
            "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.1.3 as it may crash. (import cv2 / onnxruntime)",
        ),
        (
            "numpy-abi-mismatch",
            "spacy/thinc: ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject",
        ),
        (
            "nvidia-wheel-conflict",
            'pip check: torch 2.4.1 has requirement nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux", but you have nvidia-cudnn-cu12 9.5.0.50.',
        ),
        (
            "nvjitlink-mismatch",
            "/site-packages/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: symbol __nvJitLinkComplete_12_4, version libnvJitLink.so.12 not defined in file libnvJitLink.so.12 with link time reference",
        ),
        (
            "nvlink-down",
            "DGX-2: NCCL tests fail, dmesg: nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 12028, Non-fatal, Link 35 egress non-posted PRIV error; Xid 74 on GPU 5",
        ),
        (
            "onnxruntime-cpu-and-gpu",
            "after installing both onnxruntime 1.16.3 and onnxruntime-gpu 1.16.3: EP Error ... 'CUDAExecutionProvider' is not in available provider names. Available providers: 'AzureExecutionProvider, CPUExecutionProvider'",
        ),
        (
            "onnxruntime-cpu-and-gpu",
            "pip install insightface onnxruntime-gpu; pip list | grep onnx\nonnx 1.16.1\nonnxruntime 1.18.1\nonnxruntime-gpu 1.18.1\nUserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider names.",
        ),
        (
            "openmp-loaded-twice",
            "spyder: OMP: Error #15: Initializing libiomp5md.dll, but found libiomp5md.dll already initialized.",
        ),
        (
            "pcie-link-degraded",
            "bandwidthTest only 3 GB/s on the RTX 4090; nvidia-smi --query-gpu=pcie.link.width.current,pcie.link.width.max --format=csv\npcie.link.width.current, pcie.link.width.max\n1, 16",
        ),
        (
            "peer-access-blocked",
            'GROMACS/NCCL on dual A6000 w/o NVLink: hang with 100 % GPU load; BIOS: disable "ACS Control", then ok',
        ),
        (
            "peer-access-blocked",
            "vllm --tensor-parallel-size 4 on 4x L40S in a Proxmox VM: NCCL test hangs, all good with NCCL_P2P_DISABLE=1",
        ),
        (
            "power-throttled",
            "4x A100, one GPU slower than others: Clocks Throttle Reasons ... HW Power Brake Slowdown : Active",
        ),
        (
            "power-throttled",
            "RTX A6000 stuck at 300 MHz / 60 W; nvidia-smi -q -d PERFORMANCE: HW Power Brake Slowdown: Active",
        ),
        (
            "power-throttled",
            "H100 PCIe at 155 W: Enforced Power Limit 200 W, Clocks Event Reasons: SW Power Cap Active, HW Power Brake Slowdown Active",
        ),
        (
            "python-unsupported",
            "tensorflow-gpu==1.15 on python 3.9: ERROR: Could not find a version that satisfies the requirement tensorflow-gpu==1.15 (from versions: 2.5.0, 2.5.1)",
        ),
        (
            "python-unsupported",
            "xformers-0.0.20-cp310-cp310-win_amd64.whl is not a supported wheel on this platform. (Python 3.11)",
        ),
        (
            "python-unsupported",
            "pip install flash-attn / torch for python 3.14t: ERROR: No matching distribution found for torch",
        ),
        (
            "python-unsupported",
            "ERROR: Ignored the following versions that require a different python version: 0.55.2 Requires-Python <3.5\nERROR: Could not find a version that satisfies the requirement torch==1.9.0+cu111 (from versions: 2.0.0, 2.0.1, 2.1.0)\nPython 3.11",
        ),
        (
            "ranks-share-gpu",
            "RuntimeError: NCCL error: invalid usage. Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3b000  (SLURM --gpus-per-task=1)",
        ),
        (
            "ranks-share-gpu",
            "torchrun --nproc_per_node=2 with CUDA_VISIBLE_DEVICES=0: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 65000",
        ),
        (
            "scheduler-lacks-gpu",
            "sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification",
        ),
        (
            "scheduler-lacks-gpu",
            "kubectl get pods: Pending; Events: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu. GPU operator: driver daemonset CrashLoopBackOff",
        ),
        (
            "secure-boot-blocks-module",
            "Debian: nvidia-smi error; `sudo modprobe nvidia-current`: modprobe: ERROR: could not insert 'nvidia_current': Key was rejected by service",
        ),
        (
            "secure-boot-blocks-module",
            'After installing the driver with akmods on Fedora with Secure Boot the module is not loaded; kernel: "Loading of unsigned module is rejected"',
        ),
        (
            "secure-boot-blocks-module",
            "nvidia-driver-545 installed, `mokutil --list-new` waits for enrolment, Secure Boot state: enabled; nvidia-smi can't talk to the driver: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
        ),
        ("shared-memory-too-small", "kohya_ss in Docker: RuntimeError: unable to write to file </torch_36_2814_1>"),
        (
            "shared-memory-too-small",
            'k8s pod /dev/shm is 64M; "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."',
        ),
        (
            "shared-memory-too-small",
            "sglang tp 4 in docker: NCCL WARN Call to posix_fallocate failed : No space left on device; /dev/shm 64M",
        ),
        ("shared-memory-too-small", "RuntimeError: DataLoader worker (pid 22775) is killed by signal: Bus error."),
        (
            "shared-memory-too-small",
            'Kaggle/Docker: "It is possible that dataloader\'s workers are out of shared memory. Please try to raise your shared memory limit."',
        ),
        (
            "static-tls-exhausted",
            "RuntimeError/ImportError: /lib/x86_64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block (import cv2 after torch)",
        ),
        (
            "static-tls-exhausted",
            "Jetson Xavier, cv2 + torch: OSError: /home/x/torch/lib/libgomp-d22c30c5.so.1: cannot allocate memory in static TLS block",
        ),
        (
            "tensorrt-engine-mismatch",
            "trtexec --loadEngine: Error Code 6: API Usage Error (The engine plan file is not compatible with this version of TensorRT, expecting library version 10.0.1.6 got 8.6.1.6, please rebuild.)",
        ),
        (
            "tensorrt-engine-mismatch",
            'stable-diffusion TensorRT extension after update: "Engine deserialization failed", [TRT] [E] ICudaEngine::deserialize: version tag does not match',
        ),
        (
            "tensorrt-missing",
            "Could not load library libnvinfer_plugin.so.8; ModuleNotFoundError: No module named 'tensorrt'",
        ),
        ("tensorrt-missing", "torch2trt: ModuleNotFoundError: No module named 'tensorrt'"),
        (
            "thermal-throttled",
            "nvidia-smi -q -d PERFORMANCE\n        HW Thermal Slowdown               : Active\n        HW Power Brake Slowdown           : Not Active",
        ),
        (
            "toolkit-differs-from-build",
            "detectron2 sys info: CUDA_HOME /usr/local/cuda-10.1, PyTorch built with CUDA 10.2; RuntimeError: The detected CUDA version (10.1) mismatches the version that was used to compile PyTorch (10.2)",
        ),
        (
            "toolkit-differs-from-build",
            "编译 apex 失败: RuntimeError: Cuda extensions are being compiled with a version of Cuda that does not match the version used to compile Pytorch binaries. nvcc 12.2, torch 1.13.1+cu117",
        ),
        (
            "toolkit-lacks-gpu",
            "nvcc fatal   : Unsupported gpu architecture 'compute_86'   (CUDA 10.2, RTX 3090, building spconv)",
        ),
        ("toolkit-lacks-gpu", "NVIDIA GB10, CUDA 12.8: nvcc fatal : Unsupported gpu architecture 'compute_121'"),
        (
            "toolkit-lacks-gpu",
            "TORCH_CUDA_ARCH_LIST=12.0 with nvcc 12.4: nvcc fatal : Unsupported gpu architecture 'compute_120'",
        ),
        (
            "toolkit-lacks-gpu",
            "whisper.cpp: cmake -DGGML_CUDA=1: nvcc fatal   : Unsupported gpu architecture 'compute_120a'; CUDA 12.6",
        ),
        (
            "toolkit-lacks-gpu",
            "My RTX 5080 with CUDA toolkit 12.2; pip install flash-attn: nvcc fatal : Unsupported gpu architecture 'compute_120'",
        ),
        (
            "toolkit-lacks-gpu",
            "deepspeed ops with nvcc 11.7 on H200? L40S: nvcc fatal: Unsupported gpu architecture 'compute_89'",
        ),
        (
            "toolkit-missing",
            "bitsandbytes from source: CMake Error at /usr/share/cmake-3.22/Modules/CMakeDetermineCUDACompiler.cmake:174: Failed to find nvcc.",
        ),
        (
            "toolkit-missing",
            "colossalai: CUDA_HOME environment variable is not set; [extension] Compiling the JIT cpu_adam ... No CUDA runtime is found",
        ),
        (
            "torch-family-mismatch",
            "ImportError: cannot import name 'packaging' from 'pkg_resources'? no: RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA versions. PyTorch has CUDA Version=11.8 and torchvision has CUDA Version=11.7.",
        ),
        (
            "torch-family-mismatch",
            "whisperx: pyannote: torchaudio: AttributeError: module 'torchaudio' has no attribute 'AudioMetaData'\ntorch 2.8.0, torchaudio 2.9.0",
        ),
        (
            "torch-family-mismatch",
            "装了 torch 2.1.0+cu118 和 torchvision 0.15.2+cu118，报 RuntimeError: operator torchvision::nms does not exist",
        ),
        (
            "torch-family-mismatch",
            "pip install torch==2.4.0 overwrote 2.6.0; torchvision stays 0.21.0: RuntimeError: operator torchvision::nms does not exist",
        ),
        (
            "uncorrected-ecc",
            "A100: RuntimeError: CUDA error: an uncorrectable ECC error was encountered / Xid 95: Uncontained: LTC TAG",
        ),
        (
            "vgpu-unlicensed",
            "vGPU guest Ubuntu: `nvidia-gridd: Failed to acquire license from ... (Info: dls...) - Error: ...`",
        ),
        (
            "video-libraries-missing",
            "Frigate: [AVHWDeviceContext @ 0x55] Cannot load libnvcuvid.so.1 ; Failed loading nvcuvid.",
        ),
        (
            "video-libraries-missing",
            "obs in toolbox: Failed to open NVENC codec: libnvidia-encode.so.1: cannot open shared object file",
        ),
        (
            "video-libraries-missing",
            "decord/torchcodec GPU decode in docker: RuntimeError: Failed to dlopen libnvcuvid.so.1",
        ),
        (
            "windows-gpu-unsupported",
            "keras on windows: tf 2.11.0, cuda_11.8, cudnn 8.9, \"GPU not recognized\". physical devices: [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')], RTX 3050",
        ),
        (
            "wsl-libcuda-shadowed",
            "Ubuntu 20.04 on WSL2. /usr/lib/wsl/lib is missing in the loader path; nvidia-smi works but: Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file: No such file or directory",
        ),
        (
            "wsl-libcuda-shadowed",
            'WSL2, Ubuntu 22.04, "libcuda.so.1 is not a symbolic link"; I did `sudo apt install nvidia-utils-535 libnvidia-compute-535`. Now CUDA: no CUDA-capable device is detected',
        ),
        (
            "wsl-libcuda-shadowed",
            "WSL: `ls -l /usr/lib/x86_64-linux-gnu/libcuda.so*` shows libcuda.so.535.104.05; pytorch: CUDA unknown error",
        ),
    ]
)
def test_a_report_in_a_few_lines(cause: str, text: str) -> None:
    """One or several of most problems, as their first lines are reported."""
    assert cause_in(text) == cause


@every(
    [
        "Trained fine: torch 2.6.0+cu124 on an RTX 4090, driver 550.120, Ubuntu 22.04. After suspend and resume I just continue from the checkpoint.",
        "We run Slurm with #SBATCH --gres=gpu:4 and torch.cuda.is_available() is True.\n#SBATCH --partition=gpu\ntorch 2.3.1+cu121, A100",
        "docker run --rm -it --gpus all nvcr.io/nvidia/pytorch:24.05-py3\ntorch.cuda.is_available()\nTrue\nNVIDIA A100-SXM4-80GB, driver 550.54.15",
        "How do I convert my model to ONNX? I use onnxruntime-gpu 1.18.0 with torch 2.3.0+cu121 and everything runs on the GPU.",
        "AMD Ryzen 9 7950X, 64 GB RAM, RTX 4080, driver 551.86, Windows 11. torch 2.5.1+cu124\n>>> torch.cuda.is_available()\nTrue",
        "MacBook Pro M2 Max, torch 2.4.0, mps works. How can I speed up my training?",
        "Secure Boot is enabled and the signed driver works: \n+-----------------------------------------------------------------------------+\n| NVIDIA-SMI 535.183.01   Driver Version: 535.183.01   CUDA Version: 12.2     |\nSecureBoot enabled",
        "Feature request: please support MIG. We have A100 in MIG mode with 1g.5gb instances, it works well.",
        "nvidia-smi mig -lgi\n+-------------------------------------------------------+\n| GPU instances:                                        |\n| GPU   Name             Profile  Instance   Placement  |\n|   0  MIG 1g.5gb          19       13          6:1     |\nCUDA works in each of them.",
        "The docs say that driver 470 or newer is required. I have 550.90.07 and an L4, torch 2.4.1+cu121, all fine.",
        "Build log: cmake -DGGML_CUDA=ON; nvcc 12.4; RTX 4090; [100%] Built target llama-cli. Build succeeded.",
        "pip install flash-attn --no-build-isolation took 40 minutes but worked. torch 2.4.0+cu121, nvcc release 12.1, V12.1.105, A100",
        "glibc 2.35, Python 3.11, torch 2.5.1+cu124, RTX 3090. Question about the API.",
        "$ ls /lib/modules/6.8.0-51-generic/updates/dkms/\nnvidia-drm.ko.zst  nvidia.ko.zst\n$ uname -r\n6.8.0-51-generic\n| NVIDIA-SMI 550.120   Driver Version: 550.120   CUDA Version: 12.4 |",
        "vLLM sleep mode: after sleep(level=1) and wake_up() the memory is back. vllm 0.8.5, torch 2.6.0+cu124, H100 80GB HBM3",
        "The GPU sits at 84 C under load with 1900 MHz, is that fine? RTX 3080, torch 2.1.0+cu118",
        "PCIe runs at x8 on both slots because the board has x8/x8. 2x RTX 3090, driver 535.161, training works.",
        "torch 2.4.1+cu121 prints only the CPU time in my profiler table; the GPU is used (nvidia-smi shows 98 %). RTX A6000",
        "ctranslate2 4.5.0, cuDNN 9.1, faster-whisper 1.1.0, RTX 3060: transcription works on the GPU",
        'I set CUDA_VISIBLE_DEVICES="" on purpose for the CPU tests. torch 2.3.0+cu121',
        "nvidia-smi -q\n    MIG Mode\n        Current                           : Disabled\n        Pending                           : Disabled",
        "We use TensorFlow 2.10 on Windows 10 with RTX 3060, CUDA 11.2 and cuDNN 8.1. tf.config.list_physical_devices('GPU') -> [PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]",
        "TF 2.15 in WSL2 Ubuntu 22.04, RTX 4070, GPU is found.",
        "unset LD_LIBRARY_PATH before starting is in our README. torch 2.5.1+cu121 works on all nodes.",
        "IOMMU is enabled on our DGX H100, NCCL all_reduce bandwidth is 480 GB/s.",
        "Release notes: dropped support for Kepler GPUs; requires CUDA 11.8 or newer; fixed illegal instruction on old CPUs.",
        "jax 0.4.35 with jax-cuda12-plugin 0.4.35: jax.devices() -> [CudaDevice(id=0)]. A100",
        "[INFO] GPU available: True (cuda), used: True\ntorch 2.2.0+cu121\nNVIDIA H100",
        "Xid 43 was in the log last year after a kernel bug of ours (index out of range), since then nothing. torch 2.6, H100",
        "ollama 0.5.7 on RTX 4060 Ti: offloaded 33/33 layers to GPU. How can I change the context size?",
        "llama.cpp build 4500 (CUDA) main: n_gpu_layers = 99, ggml_cuda_init: found 1 CUDA devices: Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9",
        "apt install cuda-toolkit-12-4 in WSL, nvcc works, torch 2.4.0+cu124 finds the GPU.",
        "Kubernetes: Allocatable nvidia.com/gpu: 8, pods run, the device plugin log says \"Registered device plugin for 'nvidia.com/gpu' with Kubelet\".",
        "I removed nouveau from the initramfs long ago. lsmod shows nvidia 54 modules; driver 560.35.03, RTX 4070",
        "On a machine with an Intel UHD 770 and an RTX 4090 the monitor is on the iGPU. torch 2.7.0+cu128 finds the 4090.",
        "NVIDIA vGPU A40-8Q, License Status : Licensed (Expiry: 2025-6-1), torch 2.3 works",
        "Can I use driver 535 with torch 2.5.1+cu124? nvidia-smi says CUDA 12.2.",
        "pip list\ntorch 2.6.0\ntorchvision 0.21.0\ntorchaudio 2.6.0\nxformers 0.0.29.post3\ntriton 3.2.0\nnvidia-cudnn-cu12 9.1.0.70\nNVIDIA L40S",
        'Docs: "If you see NCCL hangs, set NCCL_P2P_DISABLE=1." Could you document NCCL_DEBUG too? torch 2.4.0+cu121, 4x L40S',
        'Changelog 1.4: drop Python 3.8, support CUDA 12.4, fix "exec format error" message on arm64, thermal throttling counters in the exporter.',
        "How do I monitor thermal throttling with dcgm-exporter? 8x H100, driver 550.90.07. Nothing is hot, just a question.",
        "We use vGPU profiles A40-8Q with a valid licence; how can I pass 2 vGPUs to one VM?",
        "The container runs with --gpus all; /dev/shm is 16G (--shm-size=16g). torch 2.3.1+cu121 DataLoader works with 16 workers.",
        "LD_LIBRARY_PATH is empty in our image and that is on purpose. torch 2.5.1+cu124 works, driver 550.54.15, A100",
        "My pull request adds sm_120 to TORCH_CUDA_ARCH_LIST. CI uses CUDA 12.8. All green.",
        "In our cluster (Slurm) jobs use #SBATCH --gpus-per-node=8 and srun; NCCL all_reduce 480 GB/s. How to use enroot?",
        "RTX 3090, driver 535.183.01, torch 2.4.1+cu121. The loss is not decreasing after epoch 3.",
        "Windows 11, RTX 4090, torch 2.5.1+cu124; training with LoRA takes 20 minutes per epoch, is this slow?",
        'GeForce RTX 4070, nvidia-smi: Driver Version: 560.94, CUDA Version: 12.6; ComfyUI 0.3: "Value not in list: ckpt_name"',
        "The laptop has an AMD Radeon 780M and an RTX 4060; torch uses the 4060 (cuda:0). How do I reserve the iGPU for display?",
        "ONNX Runtime 1.18 (onnxruntime-gpu) on A10: CUDAExecutionProvider works; TensorRT EP is 20 % faster. Any downside?",
        "We pin onnxruntime-gpu==1.17.1 in requirements.txt and exclude onnxruntime by an override; inference runs on CUDA.",
        "Jetson AGX Orin, JetPack 6.0, L4T 36.3; torch 2.3.0 from NVIDIA; torch.cuda.is_available() True. DLA question.",
        "uname -r: 6.8.0-48-generic; dkms status: nvidia/550.120, 6.8.0-48-generic, x86_64: installed; nvidia-smi works. I want to remove old kernels.",
        "Building flash-attn from source took 2 h on 64 cores but it built; nvcc 12.4, torch 2.5.1+cu124, gcc 11.4",
        "cmake -DGGML_CUDA=ON finished: -- CUDA Toolkit found, using CUDA architectures: 86;89. RTX 4090. llama-bench: 120 t/s",
        "TF 2.16 in docker tensorflow/tensorflow:2.16.1-gpu, L4: tf.config.list_physical_devices('GPU') → [PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]. How to limit memory?",
        "nvidia-smi -L\nGPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1b2c3d4e-0000-1111-2222-333344445555)\n  MIG 3g.40gb     Device  0: (UUID: MIG-aaaa)\nCUDA_VISIBLE_DEVICES=MIG-aaaa; torch.cuda.device_count() returns 1. How do I get memory statistics of the slice?",
        "Persistence mode is Off on my desktop, fine. Question: does it reduce idle power? RTX 2070",
        "Solved: I had forgotten --gpus all. Now torch.cuda.is_available() returns True in the container. Thanks!",
        "Is CUDA 12.8 required for RTX 5090? I have torch 2.7.0+cu128 and driver 572.83 and it runs.",
        "python 3.12, torch 2.6.0+cu124, numpy 2.1.3, all fine. Can I use numpy 2 with pandas?",
        "WSL2 with RTX 3080: nvidia-smi and torch work. I exported LD_LIBRARY_PATH=/usr/lib/wsl/lib years ago; still needed?",
        "xformers 0.0.28.post3 with torch 2.5.1+cu124: memory_efficient_attention works. Should I still use it over sdpa?",
        "Error: listen tcp 127.0.0.1:11434: bind: address already in use (ollama, RTX 3060, driver 550)",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (77x2048 and 768x320). Forge, RTX 3060 12GB, torch 2.3.1+cu121",
        "ERROR: CUDA out of memory while loading Flux dev in fp16 on a 3080 10GB.",
        "RuntimeError: The size of tensor a (64) must match the size of tensor b (32) at non-singleton dimension 1; GPU A100, torch 2.2",
        "ValueError: Please specify `target_modules` in `peft_config`; bitsandbytes 0.44.1, torch 2.5.1+cu124, L4",
        "NCCL WARN Cuda failure 'out of memory' when I start two jobs on one node. 2x A6000, torch 2.4.0+cu121",
        "RuntimeError: CUDA error: an illegal memory access was encountered; my custom kernel reads out of bounds. RTX 3090",
        "Segmentation fault in my own C++ code, gdb shows a null pointer in Foo::bar. CUDA 12.2, driver 535",
        "ModuleNotFoundError: No module named 'my_project'. torch 2.1.0+cu118, RTX 3070",
        "docker pull nvcr.io/nvidia/pytorch:24.05-py3: unauthorized: authentication required",
        "Kubernetes: pod Pending: 0/3 nodes are available: 3 Insufficient memory. The GPU nodes are fine.",
        "vLLM 0.8.5 on 2x A100: ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (60000).",
        "CUDA error: device-side assert triggered. torch 2.1.0+cu118, RTX 3090. Assertion `t >= 0 && t < n_classes` failed.",
        "torch.cuda.OutOfMemoryError when I raise the batch size to 64; with 32 it works. torch 2.3.1+cu121, RTX 4090, driver 550.90",
        "Loss is NaN with fp16 on a V100, fp32 is fine. torch 2.0.1+cu117",
        "HTTPError 401: Unauthorized for url huggingface.co/meta-llama; vllm 0.6.2, torch 2.4.0+cu121, L4 GPU",
        'ComfyUI: "Error(s) in loading state_dict for UNet", RTX 3080, torch 2.3.1+cu121, xformers 0.0.27',
        "WSL2, RTX 4080, torch 2.5.1+cu124: training works but the disk is slow (9p).",
        "Detected kernel version 5.4.0, which is below the recommended minimum of 5.5.0; this can cause the process to hang. accelerate, A100, torch 2.4.0+cu121",
        "FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated. yolov5, RTX 3090, torch 2.4.1+cu121",
        "WARNING:root:NaN or Inf found in input tensor. GPU: A6000; torch 2.0.1+cu118",
        "535.183.01 on H100, torch 2.7.0+cu128: all fine, is the driver too old? nvidia-smi says CUDA 12.2",
        "nvcc is 11.5 (apt), torch 2.4.0+cu121, everything works. Should I upgrade nvcc?",
        "Persistence-M: Off; P8 idle 9W. RTX 3060, driver 550.120",
        "In the same env: tensorflow-cpu 2.16 for a web service, torch 2.3.0+cu121 uses the GPU (RTX 4090).",
        "jax 0.4.30 (CPU) is only used for data loading; torch 2.4.0+cu121 trains on the A100 as expected.",
        "nvidia-smi\n| NVIDIA-SMI 550.54.15  Driver Version: 550.54.15  CUDA Version: 12.4 |\n|   0  NVIDIA A100-SXM4-80GB  On | 00000000:07:00.0 Off | 0 |\n| N/A 31C P0 62W / 400W | 0MiB / 81920MiB | 0% Default |\n|  Disabled |\nPlease support A100 in the docs.",
        "Failed to import 'tensorrt'; falling back to onnxruntime CUDAExecutionProvider. Works. onnxruntime-gpu 1.19.2, RTX A5000",
        "NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>\nNCCL INFO NET/IB : No device found.\nNCCL INFO NET/Socket : Using [0]eth0:10.0.0.4<0>\nNCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 - Init COMPLETE",
        "W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT\n2024 I tensorflow: Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9500 MB memory",
        'bitsandbytes 0.43: "WARNING: compiled without quantization and GPU support"? no: bin /x/libbitsandbytes_cuda121.so, CUDA SETUP: works. torch 2.2.1+cu121',
        "I asked for --gres=gpu:2; torch.cuda.device_count() is 2. Question: which backend?",
        "The Dockerfile has `RUN apt-get install -y cuda-toolkit-12-4`; docker run --gpus all works on host driver 550.",
        "vllm: WARNING 08-01 Casting torch.bfloat16 to torch.float16. Tesla T4; generation works",
        "Using a slow image processor as `use_fast` is unset. qwen2-vl, L4, torch 2.5.1+cu124",
        "Why is flash attention not faster than sdpa on my 3090? torch 2.5.1+cu121, flash-attn 2.7.0",
        "ValueError: Cannot use chat template functions because tokenizer.chat_template is not set. vllm 0.6.4, torch 2.5.1+cu124, A10G",
        "我想问下显存占用的问题, RTX 4090 24G, torch 2.2.0+cu121, 训练正常。",
        "torch._dynamo hit config.cache_size_limit (8); A100-SXM4-80GB, torch 2.4.0+cu121, CUDA available: True",
        "AttributeError: 'NoneType' object has no attribute 'shape' in my dataset. GPU: RTX 2080 Ti, driver 525.125.06, torch 1.13.1+cu117",
        "Found 0 NVIDIA RTX cards in stock, where can I buy a 4090?",
        "We trained 3 epochs on 8x A100 80GB (driver 535.129.03, torch 2.1.2+cu121); the checkpoint cannot be loaded: KeyError 'model.embed_tokens.weight'",
        "CUDA out of memory with batch 32 on T4 but fine with 16. TF 2.15, Colab GPU runtime",
        "docker run --gpus all vllm/vllm-openai:v0.8.5 --model Qwen/Qwen3-8B: RuntimeError: Engine core initialization failed. See root cause above. H100, driver 570.86. The model path was wrong.",
        "python -m torch.utils.collect_env\nPyTorch version: 2.4.0+cu121\nIs CUDA available: True\nCUDA runtime version: 11.5.119\nGPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB\nNvidia driver version: 535.183.06\nFeature request: support for FSDP2 with custom samplers",
    ]
)
def test_a_text_about_a_machine_that_works(text: str) -> None:
    assert alarms(text) == []
