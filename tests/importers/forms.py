"""One set of facts in the forms in which people paste it, and other facts without an error line, with what follows.

Every text was constructed after the output of the program or in words of its own.
"""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

FORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "comfy": (
        (
            "Total VRAM 32607 MB, total RAM 65293 MB\n"
            "pytorch version: 2.5.1+cu124\n"
            "Set vram state to: NORMAL_VRAM\n"
            "Device: cuda:0 NVIDIA GeForce RTX 5090 : cudaMallocAsync\n"
            "Using pytorch attention"
        ),
        ("gpu-code-missing",),
    ),
    "a1111": (
        (
            "Python 3.10.6 (tags/v3.10.6:9c7b4bd, Aug  1 2022, 21:53:49) [MSC v.1932 64 bit (AMD64)]\n"
            "Version: v1.10.1\n"
            "Launching Web UI with arguments: --xformers\n"
            "torch: 2.5.1+cu124 | xformers: 0.0.28.post3\n"
            "Device: NVIDIA GeForce RTX 5090"
        ),
        ("gpu-code-missing",),
    ),
    "a1111-footer": (
        (
            "version: v1.10.1  \u2022  python: 3.10.11  \u2022  torch: 2.5.1+cu124  \u2022  xformers: 0.0.28.post3  \u2022  gradio: 3.41.2\n"
            "GPU: NVIDIA GeForce RTX 5090"
        ),
        ("gpu-code-missing",),
    ),
    "repl": (
        (
            ">>> import torch\n"
            ">>> torch.__version__\n"
            "'2.5.1+cu124'\n"
            ">>> torch.cuda.get_device_name(0)\n"
            "'NVIDIA GeForce RTX 5090'"
        ),
        ("gpu-code-missing",),
    ),
    "repl-ipython": (
        (
            "In [1]: import torch\n"
            "In [2]: torch.__version__\n"
            "Out[2]: '2.5.1+cu124'\n"
            "In [3]: torch.cuda.get_device_capability()\n"
            "Out[3]: (12, 0)"
        ),
        ("gpu-code-missing",),
    ),
    "repl-arch": (
        (
            ">>> print(torch.cuda.get_arch_list())\n"
            "['sm_50', 'sm_60', 'sm_70', 'sm_75', 'sm_80', 'sm_86', 'sm_90']\n"
            ">>> torch.cuda.get_device_capability(0)\n"
            "(12, 0)"
        ),
        ("gpu-code-missing",),
    ),
    "repl-c": (
        (
            '$ python -c "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.get_device_name(0))"\n'
            "2.5.1+cu124 12.4 NVIDIA GeForce RTX 5090"
        ),
        ("gpu-code-missing",),
    ),
    "pip-success": (
        (
            "Successfully installed MarkupSafe-2.1.5 filelock-3.13.1 nvidia-cublas-cu12-12.4.5.8 torch-2.5.1+cu124 torchvision-0.20.1+cu124 triton-3.1.0\n"
            "GPU 0: NVIDIA GeForce RTX 5090 (UUID: GPU-11111111-2222-3333-4444-555555555555)"
        ),
        ("gpu-code-missing",),
    ),
    "pip-url": (
        (
            "Downloading https://download.pytorch.org/whl/cu124/torch-2.5.1%2Bcu124-cp312-cp312-linux_x86_64.whl (908.2 MB)\n"
            "Installing collected packages: torch\n"
            "my card is a 5090 RTX (NVIDIA GeForce RTX 5090)"
        ),
        ("gpu-code-missing",),
    ),
    "uv": (
        (
            "Resolved 24 packages in 1.2s\n"
            "Installed 24 packages in 350ms\n"
            " + sympy==1.13.1\n"
            " + torch==2.5.1+cu124\n"
            " + triton==3.1.0\n"
            "\n"
            "RTX 5090, Ubuntu 24.04"
        ),
        ("gpu-code-missing",),
    ),
    "poetry": (
        "  - Installing triton (3.1.0)\n  \u2022 Installing torch (2.5.1+cu124)\nGPU: RTX 5090",
        ("gpu-code-missing",),
    ),
    "sentence": (
        "I have an RTX 5090 and PyTorch 2.5.1 with CUDA 12.4, and generation does not work.",
        ("gpu-code-missing",),
    ),
    "sentence2": (
        "Running torch 2.5.1+cu124 on my new RTX5090 under Ubuntu 24.04 gives nothing but errors.",
        ("gpu-code-missing",),
    ),
    "sentence3": ("My setup: GeForce RTX 5090 (32GB), driver 572.16, torch==2.5.1+cu124.", ("gpu-code-missing",)),
    "yaml": (
        "environment:\n  gpu: NVIDIA GeForce RTX 5090\n  torch: 2.5.1+cu124\n  python: 3.11",
        ("gpu-code-missing",),
    ),
    "json": (
        '{"Platform": "Windows-10", "Python": "3.10.11", "torch": "2.5.1+cu124", "device": {"name": "NVIDIA GeForce RTX 5090"}}',
        ("gpu-code-missing",),
    ),
    "json2": (
        (
            "{\n"
            '  "python_version": "3.12.3",\n'
            '  "pytorch_version": "2.5.1+cu124",\n'
            '  "devices": [{"name": "cuda:0 NVIDIA GeForce RTX 5090 : cudaMallocAsync", "type": "cuda"}]\n'
            "}"
        ),
        ("gpu-code-missing",),
    ),
    "mdtable": (
        "| Component | Version |\n|---|---|\n| GPU | RTX 5090 |\n| PyTorch | 2.5.1+cu124 |\n| Driver | 572.16 |",
        ("gpu-code-missing",),
    ),
    "mdbold": ("- **GPU**: RTX 5090\n- **PyTorch**: `2.5.1+cu124`\n- **OS**: Windows 11", ("gpu-code-missing",)),
    "smi-csv": (
        (
            "$ nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv\n"
            "name, driver_version, compute_cap\n"
            "NVIDIA GeForce RTX 5090, 570.86.16, 12.0\n"
            "$ pip show torch\n"
            "Name: torch\n"
            "Version: 2.5.1+cu124"
        ),
        ("gpu-code-missing",),
    ),
    "smi-csv-noheader": (
        (
            "$ nvidia-smi --query-gpu=gpu_name,driver_version --format=csv,noheader\n"
            "NVIDIA GeForce RTX 5090, 570.86.16\n"
            "torch                    2.5.1+cu124"
        ),
        ("gpu-code-missing",),
    ),
    "lspci": (
        (
            "01:00.0 VGA compatible controller: NVIDIA Corporation GB202 [GeForce RTX 5090] (rev a1)\n"
            "\tKernel driver in use: nvidia\n"
            "\tKernel modules: nvidiafb, nouveau, nvidia_drm, nvidia\n"
            "torch==2.5.1+cu124"
        ),
        ("gpu-code-missing",),
    ),
    "ultralytics": (
        "Ultralytics 8.3.40 \ud83d\ude80 Python-3.11.9 torch-2.5.1+cu124 CUDA:0 (NVIDIA GeForce RTX 5090, 32607MiB)",
        ("gpu-code-missing",),
    ),
    "yolov5": (
        "YOLOv5 \ud83d\ude80 v7.0-389-ge62a31b6 Python-3.11.9 torch-2.5.1+cu124 CUDA:0 (NVIDIA GeForce RTX 5090, 32607MiB)",
        ("gpu-code-missing",),
    ),
    "lightning": (
        (
            "GPU available: True (cuda), used: True\n"
            "You are using a CUDA device ('NVIDIA GeForce RTX 5090') that has Tensor Cores.\n"
            "* CUDA:\n"
            "\t- GPU:\n"
            "\t\t- NVIDIA GeForce RTX 5090\n"
            "\t- available:         True\n"
            "\t- version:           12.4\n"
            "* Packages:\n"
            "\t- torch:             2.5.1"
        ),
        ("gpu-code-missing",),
    ),
    "detectron2": (
        (
            "----------------------  ---------------------------------------------------------------\n"
            "sys.platform            linux\n"
            "Python                  3.10.12 (main, Nov 20 2023, 15:14:05) [GCC 11.4.0]\n"
            "PyTorch                 2.5.1+cu124 @/usr/local/lib/python3.10/dist-packages/torch\n"
            "PyTorch debug build     False\n"
            "GPU available           Yes\n"
            "GPU 0                   NVIDIA GeForce RTX 5090 (arch=12.0)"
        ),
        ("gpu-code-missing",),
    ),
    "mmcv": (
        "{'sys.platform': 'linux', 'Python': '3.10.12', 'CUDA available': True, 'GPU 0': 'NVIDIA GeForce RTX 5090', 'PyTorch': '2.5.1+cu124', 'NVCC': 'Cuda compilation tools, release 12.4, V12.4.131'}",
        ("gpu-code-missing",),
    ),
    "dockerfile": (
        (
            "FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\n"
            "RUN pip install diffusers\n"
            "# host: RTX 5090, driver 570.86.16"
        ),
        ("gpu-code-missing",),
    ),
    "dockerfile-run": (
        (
            "FROM nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04\n"
            "RUN pip install torch==2.5.1 --index-url https://download.pytorch.org/whl/cu124\n"
            "\n"
            "host GPU: RTX 5090"
        ),
        ("gpu-code-missing",),
    ),
    "req-index": (
        (
            "--extra-index-url https://download.pytorch.org/whl/cu124\n"
            "torch==2.5.1\n"
            "torchvision==0.20.1\n"
            "# runs on RTX 5090"
        ),
        ("gpu-code-missing",),
    ),
    "env-yml": (
        (
            "name: x\n"
            "dependencies:\n"
            "  - python=3.11\n"
            "  - pytorch=2.5.1=py3.11_cuda12.4_cudnn9.1.0_0\n"
            "  - pytorch-cuda=12.4\n"
            "\n"
            "Machine has an RTX 5090"
        ),
        ("gpu-code-missing",),
    ),
    "conda-unaligned": (
        "pytorch 2.5.1 py3.11_cuda12.4_cudnn9.1.0_0 pytorch\npytorch-cuda 12.4 hc786d27_7 pytorch\nGPU RTX 5090",
        ("gpu-code-missing",),
    ),
    "vllm-log": (
        (
            "INFO 02-01 10:00:00 [__init__.py:207] Automatically detected platform cuda.\n"
            "INFO 02-01 10:00:01 Initializing a V1 LLM engine (v0.7.2) with config: device_config=cuda\n"
            "NVIDIA GeForce RTX 5090, torch 2.5.1 cu124"
        ),
        ("gpu-code-missing",),
    ),
    "k8s": (
        (
            "Name: node-1\n"
            "Labels: nvidia.com/gpu.product=NVIDIA-GeForce-RTX-5090\n"
            "        nvidia.com/cuda.driver-version.full=570.86.16\n"
            "image: pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
        ),
        ("gpu-code-missing",),
    ),
    "accelerate": (
        (
            "- `Accelerate` version: 1.2.1\n"
            "- PyTorch version (GPU?): 2.5.1+cu124 (True)\n"
            "- GPU type: NVIDIA GeForce RTX 5090"
        ),
        ("gpu-code-missing",),
    ),
    "hf-diffusers": (
        "- PyTorch version (GPU?): 2.5.1+cu124 (True)\n- Accelerator: NVIDIA GeForce RTX 5090, 32607 MiB",
        ("gpu-code-missing",),
    ),
    "dxdiag": (
        "Card name: NVIDIA GeForce RTX 5090\nDriver Version: 32.0.15.7216\ntorch 2.5.1+cu124",
        ("gpu-code-missing",),
    ),
    "sglang": (
        (
            "Python: 3.10.12\n"
            "CUDA available: True\n"
            "GPU 0: NVIDIA GeForce RTX 5090\n"
            "GPU 0 Compute Capability: 12.0\n"
            "CUDA_HOME: /usr/local/cuda\n"
            "NVCC: Cuda compilation tools, release 12.4, V12.4.131\n"
            "CUDA Driver Version: 570.86.16\n"
            "PyTorch: 2.5.1+cu124"
        ),
        ("gpu-code-missing",),
    ),
    "torchrun-table": ("torch            2.5.1+cu124\nGPU              NVIDIA GeForce RTX 5090", ("gpu-code-missing",)),
    "equals": ("gpu=RTX 5090 torch=2.5.1+cu124 os=linux", ("gpu-code-missing",)),
    "whl-name": ("pip install torch-2.5.1+cu124-cp311-cp311-win_amd64.whl\nNVIDIA RTX 5090", ("gpu-code-missing",)),
    "dkms": (
        "$ uname -r\n6.8.0-49-generic\n$ dkms status\nnvidia/550.127.05, 6.8.0-48-generic, x86_64: installed",
        ("kernel-module-missing",),
    ),
    "dkms-old": (
        (
            "nvidia, 470.82.00, 5.4.0-90-generic, x86_64: installed\n"
            "Linux box 5.4.0-91-generic #102-Ubuntu SMP x86_64 GNU/Linux"
        ),
        ("kernel-module-missing",),
    ),
    "collect-nodriver": (
        (
            "PyTorch version: 2.5.1+cu124\n"
            "Is debug build: False\n"
            "CUDA used to build PyTorch: 12.4\n"
            "ROCM used to build PyTorch: N/A\n"
            "OS: Ubuntu 22.04.4 LTS (x86_64)\n"
            "Python version: 3.10.12\n"
            "Is CUDA available: False\n"
            "CUDA runtime version: Could not collect\n"
            "GPU models and configuration: Could not collect\n"
            "Nvidia driver version: Could not collect"
        ),
        ("driver-not-installed", "container-without-gpu", "no-gpu-visible", "driver-not-loaded"),
    ),
    "nvcc-list": (
        (
            "$ nvcc --list-gpu-code\n"
            "sm_50\n"
            "sm_52\n"
            "sm_60\n"
            "sm_70\n"
            "sm_75\n"
            "sm_80\n"
            "sm_86\n"
            "sm_89\n"
            "sm_90\n"
            "$ nvidia-smi -L\n"
            "GPU 0: NVIDIA GeForce RTX 5090 (UUID: GPU-11111111-2222-3333-4444-555555555555)"
        ),
        ("toolkit-lacks-gpu",),
    ),
    "l4t": (
        (
            "cat /etc/nv_tegra_release\n"
            "# R36 (release), REVISION: 3.0, GCID: 36191598, BOARD: generic, EABI: aarch64, DATE: Mon May 6 17:34:21 UTC 2024\n"
            "docker run --runtime nvidia -it nvcr.io/nvidia/l4t-pytorch:r35.2.1-pth2.0-py3"
        ),
        ("jetpack-mismatch",),
    ),
    "nouveau-lspci": (
        (
            "01:00.0 VGA compatible controller: NVIDIA Corporation GA104 [GeForce RTX 3070] (rev a1)\n"
            "\tKernel driver in use: nouveau\n"
            "\tKernel modules: nvidiafb, nouveau"
        ),
        ("nouveau-loaded",),
    ),
    "lspci-finds-none": (
        (
            "ann@host:~$ lspci | grep -i nvidia\n"
            "ann@host:~$ nvidia-smi\n"
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
        ),
        ("no-nvidia-gpu",),
    ),
    "arch-in-a-sentence": (
        "My card is a GTX 970. `torch.cuda.get_arch_list()` returns `['sm_75', 'sm_80', 'sm_86', 'sm_90', 'sm_120']`.",
        ("gpu-code-missing",),
    ),
    "arch-and-device-query": (
        "deviceQuery says compute capability 5.2 and torch.cuda.get_arch_list() gives ['sm_75', 'sm_80', 'sm_120']",
        ("gpu-code-missing",),
    ),
    "stated-and-asked": ("torch 2.3.0+cpu\nI have an RTX 3060, why is training so slow?", ("cpu-only-build",)),
    "asked-of-mine": ("Why is my RTX 4070 not used? torch 2.3.0+cpu", ("cpu-only-build",)),
    "asked-of-another": ("Would it run faster on an RTX 5090? torch 2.5.1+cu124", ("none",)),
    "other-maker-in-a-sentence": (
        "I have an AMD Radeon RX 7900 XTX and installed torch 2.4.0+cu121. torch.cuda.is_available() is False.",
        ("no-nvidia-gpu",),
    ),
    "mig-asked-alone": (
        (
            "$ nvidia-smi -L\n"
            "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-2222-3333-4444-555555555555)\n"
            "$ nvidia-smi --query-gpu=mig.mode.current --format=csv\n"
            "mig.mode.current\n"
            "Enabled\n"
            ">>> torch.cuda.is_available()\n"
            "False"
        ),
        ("mig-without-instances",),
    ),
    "slurm-shell": ("$ srun -p gpu --pty bash\n$ nvidia-smi\nNo devices were found", ("no-gpu-visible",)),
    "module-and-list": (
        (">>> onnxruntime.__version__\n'1.20.1'\npip list: onnxruntime 1.20.1, onnxruntime-gpu 1.20.1"),
        ("onnxruntime-cpu-and-gpu",),
    ),
    "nouveau-lshw": (
        (
            "  *-display\n"
            "       product: TU116 [GeForce GTX 1660 SUPER]\n"
            "       vendor: NVIDIA Corporation\n"
            "       configuration: driver=nouveau latency=0"
        ),
        ("nouveau-loaded",),
    ),
    "open-module-on-pascal": (
        "GPU: GTX 1080 Ti. I installed nvidia-driver-560-open on Debian 12. nvidia-smi prints No devices were found",
        ("gpu-unsupported-by-driver",),
    ),
    "proprietary-module-on-blackwell": (
        "RTX 5080, Ubuntu 24.04\n$ sudo apt install nvidia-driver-570\n$ nvidia-smi\nNo devices were found",
        ("gpu-unsupported-by-driver",),
    ),
    "open-module-on-blackwell": ("RTX 5090 with nvidia-driver-570-open", ("none",)),
    "two-modules-tried": ("I tried nvidia-driver-570 and nvidia-driver-570-open with my RTX 5090", ("none",)),
    "cudnn-of-dpkg": (
        (
            "$ dpkg -l | grep cudnn\n"
            "ii  libcudnn8       8.9.7.29-1+cuda12.2   amd64\n"
            "$ nvcc --version\n"
            "Cuda compilation tools, release 12.4, V12.4.131\n"
            "$ pip show onnxruntime-gpu\n"
            "Name: onnxruntime-gpu\n"
            "Version: 1.20.1\n"
            ">>> ort.InferenceSession(model).get_providers()\n"
            "['CPUExecutionProvider']"
        ),
        ("cudnn-major-mismatch",),
    ),
    "cudnn-of-rpm": (
        "libcudnn8-8.9.7.29-1.cuda12.2.x86_64\nCUDA 12.4\nonnxruntime-gpu 1.20.1",
        ("cudnn-major-mismatch",),
    ),
    "cpu-sentence": (
        "A local run reports torch 2.7.0+cpu, torch.version.cuda None, torch.cuda.is_available False.",
        ("cpu-only-build",),
    ),
    "cpu-repl": (">>> torch.__version__\n'2.5.1+cpu'\n>>> torch.cuda.is_available()\nFalse", ("cpu-only-build",)),
    "cpu-repl2": (">>> print(torch.version.cuda)\nNone\n>>> torch.cuda.is_available()\nFalse", ("cpu-only-build",)),
    "ver-cuda-none": (
        "torch.__version__: 2.3.1, torch.version.cuda: None, cuda available: False. RTX 3060",
        ("cpu-only-build",),
    ),
    "tf-list": (
        (
            ">>> tf.__version__\n"
            "'2.15.0'\n"
            ">>> tf.test.is_built_with_cuda()\n"
            "False\n"
            ">>> tf.config.list_physical_devices('GPU')\n"
            "[]"
        ),
        ("cpu-only-build",),
    ),
    "tfwin": (
        "Windows 11, Python 3.10, tensorflow 2.15.0, RTX 3060\n>>> tf.config.list_physical_devices('GPU')\n[]",
        ("windows-gpu-unsupported",),
    ),
    "driver-old": ("torch 2.5.1+cu124, driver 470.82.01, RTX 3090", ("driver-too-old",)),
    "driver-old2": ("I use PyTorch 2.1.0 (CUDA 12.1) on a Tesla T4 with NVIDIA driver 470.57.02.", ("driver-too-old",)),
    "driver-old-mdtable": ("| driver | 450.80.02 |\n| torch | 2.0.1+cu117 |\n| GPU | Tesla V100 |", ("none",)),
    "family": ("torch 2.4.0\ntorchvision 0.18.1", ("torch-family-mismatch",)),
    "family-sentence": (
        "I upgraded to torch 2.4.0 but still have torchvision 0.18.1 and torchaudio 2.3.1 installed",
        ("torch-family-mismatch",),
    ),
    "ort-both": ("Successfully installed onnxruntime-1.17.0 onnxruntime-gpu-1.17.0", ("onnxruntime-cpu-and-gpu",)),
    "cudnn-tf": ("tensorflow 2.3.1, CUDA 10.1, cuDNN 8.0", ("cudnn-major-mismatch",)),
    "cuda-tf": ("tensorflow-gpu 2.4.0 with CUDA 10.1 and cuDNN 7.6", ("cuda-major-mismatch", "cudnn-major-mismatch")),
    "numpy": ("numpy 2.0.1, torch 2.2.0", ("numpy-abi-mismatch",)),
    "ollama": (
        (
            'time=2024 level=INFO source=gpu.go:221 msg="looking for compatible GPUs"\n'
            'time=2024 level=INFO source=gpu.go:386 msg="no compatible GPUs were discovered"'
        ),
        ("no-gpu-visible", "driver-not-installed", "driver-not-loaded", "container-without-gpu"),
    ),
    "llamacpp-blas0": (
        (
            "system_info: n_threads = 8 / 16 | AVX = 1 | AVX2 = 1 | F16C = 1 | BLAS = 0 | SSE3 = 1 |\n"
            "llama-cpp-python 0.2.20, n_gpu_layers=35, RTX 3090"
        ),
        ("cpu-only-build",),
    ),
    "llamacpp-layers": (
        "llm = LlamaCpp(n_gpu_layers=25, n_ctx=1024)\nAVX = 1 | AVX2 = 1 | FMA = 1 | BLAS = 0 | SSE3 = 1 |",
        ("cpu-only-build",),
    ),
    "llamacpp-cpu": (
        "llm = LlamaCpp(n_gpu_layers=0, n_ctx=1024)\nAVX = 1 | AVX2 = 1 | FMA = 1 | BLAS = 0 | SSE3 = 1 |",
        ("none",),
    ),
    "llamacpp-off0": (
        (
            "ggml_cuda_init: found 1 CUDA devices:\n"
            "  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes\n"
            "load_tensors: offloaded 0/33 layers to GPU"
        ),
        ("none",),
    ),
    "k8s-insufficient": (
        (
            "Events:\n"
            "  Warning  FailedScheduling  0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available"
        ),
        ("scheduler-lacks-gpu", "container-toolkit-missing"),
    ),
    "winerr126": (
        'OSError: [WinError 126] The specified module could not be found. Error loading "C:\\\\Python\\\\lib\\\\site-packages\\\\torch\\\\lib\\\\c10_cuda.dll" or one of its dependencies.',
        ("library-not-found", "cuda-library-missing"),
    ),
    "tf-template": (
        (
            "- **OS Platform and Distribution (e.g., Linux Ubuntu 16.04)**: Windows 11\n"
            "- **TensorFlow version (use command below)**: v2.13.0-rc2-7-g1cb1a030a62 2.13.0\n"
            "- **GPU model and memory**: RTX 3060"
        ),
        ("windows-gpu-unsupported",),
    ),
    "tf-pair": (
        "- TensorFlow version: 2.6.0\n- CUDA/cuDNN version: 10.1 / 7.6\n- OS: Ubuntu 20.04",
        ("cuda-major-mismatch", "cudnn-major-mismatch"),
    ),
    "tf-one-number": (
        (
            "- TensorFlow version (use command below): 2.1.0\n- CUDA/cuDNN version: 10.2.89\n"
            "`[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]`"
        ),
        ("cuda-major-mismatch",),
    ),
    "module-files": (
        (
            "$ uname -a\nLinux 5.15.0-116-generic\n$ find /lib/modules/ -name 'nvidia*.ko'\n"
            "/lib/modules/5.15.0-88-generic/updates/dkms/nvidia.ko\n"
            "/lib/modules/5.15.0-88-generic/updates/dkms/nvidia-uvm.ko"
        ),
        ("kernel-module-missing",),
    ),
    "vllm-other-cuda": (
        "Name: vllm\nVersion: 0.21.0\n---\nName: torch\nVersion: 2.11.0+cu126",
        ("cuda-major-mismatch",),
    ),
    "jax-tagged": ("jax 0.4.23\njaxlib==0.4.23+cuda12.cudnn89\ndriver 535.104.05, A100", ("none",)),
    "vllm-tagged": ("vllm==0.21.0+cu129\ntorch==2.11.0+cu128", ("none",)),
    "full-stop": ("PyTorch 2.5.1 (CUDA 12.4). NVIDIA GeForce RTX 5090. It hung.", ("gpu-code-missing",)),
    "torch-cuda": ("GPU: RTX 3090\nPyTorch: 2.1.0\nPyTorch CUDA: 12.1\nDriver: 470.57.02", ("driver-too-old",)),
    "smi-says": ("nvidia-smi says 470.199.02 and I installed torch 2.3.0+cu121 on my 3090", ("driver-too-old",)),
    "pinned-by-vllm": ("vllm 0.6.3 on an RTX 5090 with driver 570.86.16", ("gpu-code-missing",)),
    "pinned-by-torchvision": ("torchvision 0.20.1+cu124\nRTX 5090", ("gpu-code-missing",)),
    "pins-differ": ("torchvision 0.20.1\nvllm 0.6.3\nRTX 4090", ("none",)),
    "cupy-driver": ("cupy-cuda12x 13.6.0, driver 450.80.02, RTX 2080 Ti", ("driver-too-old",)),
    "cupy-driver-ok": ("cupy-cuda12x 13.6.0, driver 525.60.13, RTX 2080 Ti", ("none",)),
    "ort-cudnn": ("onnxruntime-gpu 1.20.1 with CUDA 12.4 and cuDNN 8.9", ("cudnn-major-mismatch",)),
    "ort-other-build": ("onnxruntime-gpu 1.20.1 with CUDA 11.8 and cuDNN 8.9", ("none",)),
    "ort-build-of-feed": ("onnxruntime-gpu 1.18.1\ncuda 12.1\ncudnn 8.9", ("cudnn-major-mismatch",)),
    "ort-no-build": ("onnxruntime-gpu 1.16.0, CUDA 12.2, cuDNN 8.9", ("cuda-major-mismatch",)),
    "ctranslate2-cudnn": ("ctranslate2 4.5.0, CUDA 12.4, cuDNN 8.9.7", ("cudnn-major-mismatch",)),
    "torch-backend": ("uv pip install torch==2.9.1 --torch-backend=cu130\nGPU: GTX 1080 Ti", ("gpu-code-missing",)),
    "pytorch-cuda": (
        "conda install pytorch==2.5.1 pytorch-cuda=12.4 -c pytorch -c nvidia\ndriver 470.256.02, RTX 3090",
        ("driver-too-old",),
    ),
    "systeminfo": (
        "Host Name:                 BOX\nOS Name:                   Microsoft Windows 11 Pro\ntensorflow 2.15.0, RTX 3060",
        ("windows-gpu-unsupported",),
    ),
    "on-windows": ("I'm on Windows 10 and use tensorflow 2.12.0 with an RTX 3060.", ("windows-gpu-unsupported",)),
    "on-windows-wsl": ("I am running Windows 11 with WSL2, tensorflow 2.15.0, RTX 4060", ("none",)),
    "trtexec": (
        (
            "&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=a.onnx\n"
            "[02/03/2025-10:00:00] [I] TensorRT version: 8.6.1\n"
            "[02/03/2025-10:00:00] [I] Selected Device: NVIDIA GeForce RTX 5090\n"
            "[02/03/2025-10:00:00] [I] Compute Capability: 12.0"
        ),
        ("gpu-code-missing",),
    ),
    "tensorrt-old-gpu": ("TensorRT 10.3.0 on a GTX 1080 Ti", ("gpu-code-missing",)),
    "tensorrt-fits": ("TensorRT 10.8.0 on an RTX 5090, driver 570.86.16", ("none",)),
    "nightly": ("torch 2.7.0.dev20250110+cu124, RTX 5090, driver 570.124.06", ("gpu-code-missing",)),
    "nightly-fits": ("torch 2.10.0.dev20250910+cu128, RTX 5090, driver 580.65.06", ("none",)),
    "nvidias-own-build": (
        "PyTorch version: 2.6.0a0+df5bbc09191.nv24.12\nCUDA used to build PyTorch: 12.6\nRTX 5090, driver 570.86.16",
        ("none",),
    ),
    "build-with-a-tag-of-its-own": ("torch 2.6.0+cu128.nv, RTX 5070 Ti, driver 572.83", ("none",)),
    "name-of-something-else": (
        "name: torch\nchannels:\n  - conda-forge\nservices:\n  web:\n    ports: 80\nversion: 2.5.1\nGPU: RTX 5090",
        ("none",),
    ),
    "torch-on-a-jetson": ("Orin NX with torch 2.3.0", ("none",)),
    "lock-file-index": (
        (
            '[[package]]\nname = "torch"\nversion = "2.9.1"\n'
            'source = { registry = "https://download.pytorch.org/whl/cu130" }\n\n2x A100, driver 550.90.07'
        ),
        ("driver-too-old",),
    ),
    "jax-info": (
        "jax:    0.4.35\njaxlib: 0.4.35\njax.devices (1 total, 1 local): [CpuDevice(id=0)]\nGPU: RTX 3090",
        ("cpu-only-build",),
    ),
    "jax-with-plugin": (
        "pip install jax[cuda12]==0.4.35\n>>> jax.devices()\n[CpuDevice(id=0)]\nGPU: RTX 3090",
        ("none",),
    ),
    "llamacpp-archs": (
        (
            "ggml_cuda_init: found 1 CUDA devices:\n  Device 0: Tesla M40, compute capability 5.2, VMM: yes\n"
            "system_info: n_threads = 8 | CUDA : ARCHS = 600,610,700,750,800,860 | F16 = 1 |"
        ),
        ("gpu-code-missing",),
    ),
    "llamacpp-ptx": (
        (
            "  Device 0: NVIDIA GeForce RTX 4070, compute capability 8.9, VMM: yes\n"
            "system_info: n_threads = 8 | CUDA : ARCHS = 500,610,700,750,800 | USE_GRAPHS = 1 |"
        ),
        ("none",),
    ),
    "cupy-config": (
        (
            "CuPy Version                 : 14.0.1\nCUDA Build Version           : 13000\n"
            "CUDA Driver Version          : 12020\nDevice 0 Name                : NVIDIA A30"
        ),
        ("driver-too-old",),
    ),
    "cupy-config-of-one-major": (
        (
            "CuPy Version                 : 14.0.1\nCUDA Build Version           : 12090\n"
            "CUDA Driver Version          : 12020\nDevice 0 Name                : NVIDIA A30"
        ),
        ("none",),
    ),
    "device-query": (
        (
            'Device 0: "NVIDIA GeForce RTX 3090"\n'
            "  CUDA Driver Version / Runtime Version          11.4 / 11.4\ntorch 2.5.1+cu124"
        ),
        ("driver-too-old",),
    ),
    "tf-windows-toolkit": (
        (
            "OS: Windows 10\nTensorFlow version: 2.14.0\nCUDA/cuDNN version: 11.2 / 8.1\n"
            ">>> tf.config.list_physical_devices('GPU')\n[]"
        ),
        ("windows-gpu-unsupported",),
    ),
    "ort-project-and-package": ("onnxruntime-gpu==1.20.1\nONNX Runtime version: 1.20.1", ("none",)),
    "ort-module-and-package": ("onnxruntime-gpu==1.20.1\n>>> onnxruntime.__version__\n'1.20.1'", ("none",)),
    "ort-module-of-another": (
        "onnxruntime-gpu==1.20.1\n>>> onnxruntime.__version__\n'1.18.0'",
        ("onnxruntime-cpu-and-gpu",),
    ),
    "ort-both-in-a-tree": (
        "app v0.1.0\n├── onnxruntime v1.18.0\n└── onnxruntime-gpu v1.18.0",
        ("onnxruntime-cpu-and-gpu",),
    ),
    "cupy-project-and-package": ("CuPy version 13.3.0\ncupy-cuda12x 13.3.0", ("none",)),
    "healthy1": ("torch 2.5.1+cu124, driver 550.54.15, RTX 4090, Ubuntu 22.04", ("none",)),
    "healthy2": (
        "pytorch version: 2.7.0+cu128\nDevice: cuda:0 NVIDIA GeForce RTX 5090 : cudaMallocAsync\nDriver 572.83",
        ("none",),
    ),
    "healthy3": ("I upgraded from a GTX 1080 to an RTX 4090 and use torch 2.8.0+cu128", ("none",)),
    "healthy4": (
        "We support CUDA 11.8 and 12.4. Tested on A100 with PyTorch 2.5.1 with CUDA 12.4 and driver 535.104.05",
        ("none",),
    ),
    "healthy5": (
        "Does torch 2.5.1+cu124 support the RTX 5090? I am thinking about buying one. Currently RTX 3090.",
        ("none",),
    ),
    "healthy6": (
        "DeepSpeed: Installed CUDA version 12.4 does not match the version torch was compiled with 12.1 but since the APIs are compatible, accepting this combination",
        ("none",),
    ),
}
"""Name of the form → the text, and the rules that may be its primary cause (``none``: nothing is wrong)."""
