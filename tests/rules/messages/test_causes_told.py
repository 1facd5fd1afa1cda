"""Causes that follow from fragments of output and from what people say of their machine, in many forms of each kind."""

# ruff: noqa: E501, RUF001  lines as programs print them and people write them

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.accuracy import judge
from envcheck.rules.engine.cause import primary
from tests.every import every

DATA = Path(__file__).parent / "data"


def told(name: str) -> list[Any]:
    """The cases of a file, a line each: a text, or its cause and the text."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


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
        ("no-nvidia-gpu", "用mac M2运行，报错：AssertionError: Torch not compiled with CUDA enabled"),
        ("no-nvidia-gpu", "AssertionError: Torch not compiled with CUDA enabled (MacOS Ventura)"),
        ("no-nvidia-gpu", 'MacBook Pro 16" 2019: AssertionError: Torch not compiled with CUDA enabled'),
        ("no-nvidia-gpu", "The amd graphics card I use prints: Torch not compiled with CUDA enabled"),
        ("no-nvidia-gpu", "AMD Rx 6600\nAssertionError: Torch not compiled with CUDA enabled"),
        (
            "no-nvidia-gpu",
            "Apple Silicon, Ventura\n/private/var/folders/x/T/pip-install/flash-attn/setup.py:78: UserWarning: flash_attn was requested, but nvcc was not found.",
        ),
        ("no-nvidia-gpu", "I'm using AMD hardware.\nError: No CUDA driver found"),
        ("toolkit-missing", "UserWarning: flash_attn was requested, but nvcc was not found."),
        (
            "cpu-only-build",
            "On my Mac it runs on the CPU. On the Linux server: AssertionError: Torch not compiled with CUDA enabled",
        ),
        (
            "cpu-only-build",
            "AssertionError: Torch not compiled with CUDA enabled. The code supports Windows and macOS.",
        ),
        (
            "driver-too-old",
            "OS X Yosemite 10.10.5\ncuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime version",
        ),
    ]
)
def test_the_maker_of_the_gpu(cause: str, text: str) -> None:
    """Machines without a GPU of NVIDIA, and texts that name such a machine beside another one."""
    assert cause_in(text) == cause


def test_an_error_of_cdi_asks_for_a_specification() -> None:
    _, checks = judge("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=0")
    found = primary(checks)
    assert found
    assert found.rule == "container-toolkit-missing"
    assert found.fixes[0].command[:4] == ("sudo", "nvidia-ctk", "cdi", "generate")


def test_a_quoted_error_goes_before_what_is_inferred_of_the_machine_and_does_not_explain_it() -> None:
    machine = (
        "PyTorch version: 1.5.0\nIs debug build: No\nCUDA used to build PyTorch: 10.2\n\nOS: CentOS Linux 7 (Core)\n"
        "Is CUDA available: No\nCUDA runtime version: No CUDA\nGPU models and configuration: No CUDA\n"
        "Nvidia driver version: No CUDA\n"
    )
    assert cause_in(machine) == "driver-not-installed"
    assert (
        cause_in(f"libm.so.6: version `GLIBC_2.23' not found (required by libtorch.so)\n{machine}") == "glibc-too-old"
    )
    assert cause_in(f"RuntimeError: No CUDA GPUs are available\n{machine}") == "driver-not-installed"


def test_words_that_stand_in_a_sentence_without_spaces_are_read() -> None:
    assert cause_in("运行时提示No CUDA capable GPU detected的错误") == "no-gpu-visible"
    assert cause_in("我的显卡为什么没用上") is None


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


@every(told("reports"))
def test_a_report_in_a_few_lines(cause: str, text: str) -> None:
    """One or several of most problems, as their first lines are reported."""
    assert cause_in(text) == cause


@every(told("working"))
def test_a_text_about_a_machine_that_works(text: str) -> None:
    assert alarms(text) == []


_FELL_BACK = (
    "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu."
)


@every(
    [
        ("RuntimeError: Unable to load cuSPARSE. Is it installed?", "cuda-library-missing"),
        ("RuntimeError: Unable to load cuDNN. Is it installed?", "cudnn-missing"),
        (
            "operation cusparseGetProperty(MAJOR_VERSION, &major) failed: The cuSPARSE library was not found.",
            "library-not-found",
        ),
        ("jaxlib/cuda/versions_helpers.cc:98: operation cuInit(0) failed: CUDA_ERROR_UNKNOWN", "gpu-init-failed"),
        ("the program is slow", "cpu-only-build"),
    ]
)
def test_why_jax_falls_back(line: str, expected: str) -> None:
    assert cause_in(f"{line}\n{_FELL_BACK}") == expected


_FAILED = "NCCL Check failed: ncclGroupEnd() : unhandled system error"


@every(
    [
        (
            f"n1:1:1 [0] NCCL INFO Call to connect returned Connection timed out, retrying\n{_FAILED}",
            "nodes-not-connected",
        ),
        (f"NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>\n{_FAILED}", "nodes-not-connected"),
        (
            f"NCCL INFO NET/Socket : Using\n[0]bond0:192.168.1.161<0>\n[1]br-05ab815fa14e:172.19.0.1<0>\n{_FAILED}",
            "nodes-not-connected",
        ),
        (f"NCCL INFO NET/Socket : Using [0]bond0:192.168.1.161<0>\n{_FAILED}", "collective-fails"),
        (
            f"NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\nNo space left on device: /dev/shm/nccl-1\n{_FAILED}",
            "shared-memory-too-small",
        ),
        ("NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>\nNCCL INFO Init COMPLETE", None),
    ]
)
def test_why_a_collective_fails(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


def _copies(without: float, direct: float, way: str = "Unidirectional") -> str:
    head = "   D\\D     0      1 "
    return "\n".join(
        f"{way} P2P={switch} Bandwidth{writes} Matrix (GB/s)\n{head}\n     0 673.20  {figure:.2f} \n     1  {figure:.2f} 673.20 "
        for switch, writes, figure in (("Disabled", "", without), ("Enabled", " (P2P Writes)", direct))
    )


@every(
    [
        (_copies(13.15, 2.6), "peer-access-blocked"),
        (f"{_copies(13.15, 12.1)}\n{_copies(18.0, 3.1, 'Bidirectional')}", "peer-access-blocked"),
        (_copies(13.15, 24.5), None),
        (_copies(13.15, 13.1), None),
        (_copies(13.15, 2.6).partition("Unidirectional P2P=Enabled")[0], None),
    ]
)
def test_copies_between_gpus_with_and_without_peer_access(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected
