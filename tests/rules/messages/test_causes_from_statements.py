"""Causes that follow from facts alone, which people state, programs print, and commands ask for: no error line names them."""

# ruff: noqa: E501, RUF001  lines as programs print them, in other scripts too

from __future__ import annotations

from benchmarks.accuracy import judge
from envcheck.rules.engine.cause import primary
from tests.every import every


def alarms(*lines: str) -> list[str]:
    _, checks = judge("\n".join(lines))
    return [check.rule for check in checks if check.status in ("warn", "fail")]


def cause_in(*lines: str) -> str | None:
    _, checks = judge("\n".join(lines))
    found = primary(checks)
    return found.rule if found else None


@every(
    [
        "NVIDIA driver 470.199.02, Tesla T4. I installed the CUDA 12.2 toolkit",
        "Driver Version: 460.32.03\nCUDA: 12.4",
        "Driver: 450.80.02\nnvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.1, V12.1.105",
        "driver 465.19.01\nFROM nvidia/cuda:12.4.1-devel-ubuntu22.04",
        "nvidia driver 390.87\nCUDA 9.2\ncudf=0.2.0",
        "| NVIDIA-SMI 573.91   Driver Version: 573.91    CUDA Version: 12.8   |\nnvcc --list-gpu-arch\ncompute_75\ncompute_80\ncompute_110\ncompute_121",
    ]
)
def test_a_stated_cuda_that_no_driver_of_the_text_runs(text: str) -> None:
    assert cause_in(text) == "driver-too-old"


@every(
    [
        "driver 525.60.13, CUDA 12.4, RTX 3060",  # minor-version compatibility
        "driver 470.82.01\nCuda compilation tools, release 12.1, V12.1.105\ntorch==1.13.1+cu117",  # the build brings its own
        "driver 470.82.01, CUDA 12.1\n>>> torch.cuda.is_available()\nTrue",
        "driver 535.183.01, L40S\nFROM nvidia/cuda:13.0.0-base-ubuntu24.04",  # the image holds cuda-compat
        "Which driver does CUDA 12.4 need? I would move from 470.82.01.",
    ]
)
def test_a_stated_cuda_that_stops_nothing(text: str) -> None:
    assert alarms(text) == []


@every(
    [
        (("ctranslate2==4.5.0", "nvidia-cudnn-cu12==8.9.7.29"), "cudnn-major-mismatch"),
        (("ctranslate2==4.4.0", "nvidia-cudnn-cu12==9.1.0.70", "torch==2.4.1"), "cudnn-major-mismatch"),
        (("onnxruntime-gpu==1.20.1", "nvidia-cudnn-cu12==8.9.2.26"), "cudnn-major-mismatch"),
        (("ctranslate2==4.5.0", "nvidia-cudnn-cu12==9.1.0.70"), None),
        (("ctranslate2==4.7.0", "nvidia-cudnn-cu12==8.9.7.29"), None),  # it needs none
    ]
)
def test_the_cudnn_of_a_wheel_beside_a_release_that_loads_it(lines: tuple[str, ...], expected: str | None) -> None:
    assert cause_in(*lines) == expected


DETECTRON2 = "sys.platform            linux\ndetectron2              {} @/home/u/detectron2/detectron2"


@every(
    [
        (("CUDA compiler           CUDA 10.1", "PyTorch                 1.10.1+cu113"), "toolkit-differs-from-build"),
        (("Detectron2 CUDA Compiler       10.0", "PyTorch                        1.3.1"), "toolkit-differs-from-build"),
        (("CUDA compiler           CUDA 11.1", "PyTorch                 1.10.1+cu113"), None),
        (
            (
                "CUDA compiler           10.0",
                "detectron2 arch flags   sm_37",
                "PyTorch                 1.4.0",
                "GPU 0                   Tesla V100-SXM2-16GB",
            ),
            "gpu-code-missing",
        ),
        (
            (
                "detectron2 arch flags   6.1, 7.0",
                "PyTorch                 1.10.1+cu113",
                "GPU 0                   Tesla T4 (arch=7.5)",
            ),
            None,
        ),
    ]
)
def test_what_an_extension_says_of_its_compiler(lines: tuple[str, ...], expected: str | None) -> None:
    release = "0.1.3" if "1.4.0" in lines[-2] else "0.6"
    assert cause_in(DETECTRON2.format(release), *lines) == expected


def test_mmcv_says_of_its_compiler_too() -> None:
    assert cause_in("PyTorch: 1.8.1+cu111", "MMCV: 1.3.8", "MMCV CUDA Compiler: 10.2") == "toolkit-differs-from-build"
    assert cause_in("PyTorch: 1.8.1+cu111", "MMCV: 1.3.8", "MMCV CUDA Compiler: 11.1") is None


NOT_AVAILABLE = ">>> torch.cuda.is_available()\nFalse"


@every(
    [
        (("GH200 480GB", "torch==2.8.0", NOT_AVAILABLE), "cpu-only-build"),
        (("uname -m: aarch64", "GPU: RTX A6000", ">>> torch.__version__\n'2.3.1'", NOT_AVAILABLE), "cpu-only-build"),
        (("GH200 480GB", "torch==2.11.0", NOT_AVAILABLE), None),  # its wheel for this processor has CUDA
        (("GH200 480GB", "torch==2.8.0+cu129", NOT_AVAILABLE), None),
    ]
)
def test_wheels_for_arm_without_cuda(lines: tuple[str, ...], expected: str | None) -> None:
    assert cause_in(*lines) == expected


@every(
    [
        ("onnxruntime-linux-x64-gpu-1.16.3.tgz, CUDA 12.3 and cuDNN 8.9.7", "cuda-major-mismatch"),
        ("onnxruntime-win-x64-gpu-1.20.1.zip\ncuDNN 8.9.7\nCUDA 12.4\nCUDA provider fails", "cudnn-major-mismatch"),
        ("onnxruntime-linux-x64-gpu-1.16.3.tgz, CUDA 11.8 and cuDNN 8.9.7", None),
        ("onnxruntime-linux-x64-gpu-1.20.0.tgz, CUDA 12.3 and cuDNN 9.5", None),
    ]
)
def test_the_name_of_an_archive_tells_the_build(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        ("OS build 19042.1110, WSL2 with Ubuntu 20.04", "known-bad-release"),
        ("Microsoft Windows [Version 10.0.18363.1556]\nWSL2 Ubuntu 20.04", "known-bad-release"),
        ("Microsoft Windows [Version 10.0.19045.4291]\nWSL2 Ubuntu 20.04", None),
        ("Microsoft Windows [Version 10.0.22631.3447]\nWSL2 Ubuntu 22.04", None),
    ]
)
def test_a_windows_that_gives_no_gpu_to_wsl(text: str, expected: str | None) -> None:
    assert cause_in(text, NOT_AVAILABLE) == expected


@every(
    [
        (("JetPack 6.2 on Orin", "libcudnn.so.8"), "jetpack-mismatch"),
        (("Jetson AGX Orin, JetPack 6.1", "libnvinfer.so.8"), "jetpack-mismatch"),
        (("L4T 35.4.1", "libcudnn.so.9"), "jetpack-mismatch"),
        (("Xavier NX, JetPack 5.1.2", "libcublas.so.12"), "jetpack-mismatch"),
        (("Jetson Nano, JetPack 4.6.1", "libcudart.so.11.0"), "jetpack-mismatch"),
        (("Jetson, JetPack 5", "libnvinfer.so.10"), "jetpack-mismatch"),
        (("JetPack 6.0 on Orin", "libcudnn.so.8"), "cudnn-missing"),  # its own, not installed
        (("JetPack 6.2 on Orin", "libcublas.so.12"), "cuda-library-missing"),
    ]
)
def test_a_jetpack_and_the_library_that_is_not_there(given: tuple[str, str], expected: str) -> None:
    system, library = given
    line = f"ImportError: {library}: cannot open shared object file: No such file or directory"
    assert cause_in(system, line) == expected


ONE_GPU = "GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-5c1c2ab1-7f0e-9d3f-1b1c-22d1d0a0a9be)"


@every(
    [
        "export CUDA_VISIBLE_DEVICES=1",
        'os.environ["CUDA_VISIBLE_DEVICES"] = "1"',
        "      - CUDA_VISIBLE_DEVICES=4",
        "CUDA_VISIBLE_DEVICES: '3'",
        "ENV CUDA_VISIBLE_DEVICES=2",
        "$ echo $CUDA_VISIBLE_DEVICES\n2",
        "CUDA_VISIBLE_DEVICES=1 python train.py",
        'export CUDA_VISIBLE_DEVICES=""',
        'os.environ["CUDA_VISIBLE_DEVICES"] = "-1"',
        "CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 python train.py",
    ]
)
def test_a_variable_that_selects_no_gpu_that_is_there(setting: str) -> None:
    assert cause_in(ONE_GPU, setting, NOT_AVAILABLE) == "gpu-hidden"
    assert alarms(ONE_GPU, setting.replace("False", "True"), ">>> torch.cuda.is_available()\nTrue") == []


@every(
    [
        "print(onnxruntime.get_available_providers())\n['AzureExecutionProvider', 'CPUExecutionProvider']",
        "Available providers: ['AzureExecutionProvider', 'CPUExecutionProvider']",
        "onnxruntime 1.18.0, providers: ['CPUExecutionProvider']",
    ]
)
def test_the_providers_of_a_build_for_the_cpu(told: str) -> None:
    assert cause_in(told, "GPU: Tesla T4") == "cpu-only-build"
    with_cuda = told.replace("['", "['CUDAExecutionProvider', '").replace("onnxruntime 1", "onnxruntime-gpu 1")
    assert alarms(with_cuda, "GPU: Tesla T4") == []


@every(
    [
        "providers=['CPUExecutionProvider']",
        "session = ort.InferenceSession(path, providers=['CPUExecutionProvider'])",
        "EP Error when using ['CUDAExecutionProvider'], falling back to ['CPUExecutionProvider']",
    ]
)
def test_chosen_providers_tell_nothing_of_the_build(code: str) -> None:
    assert cause_in(code, "GPU: Tesla T4") != "cpu-only-build"


@every(
    [
        "torch.cuda.is_available(): False",
        "torch.cuda.is_available() returns False",
        "`torch.cuda.is_available()` -> False",
        "torch.cuda.is_available() == False",
        "but torch.cuda.is_available() still returns False",
        "and torch.cuda.is_available() keeps returning False after I installed it again",
        "print(torch.cuda.is_available())  # False",
        "when I run torch.cuda.is_available() I get False",
        "CUDA available: False",
        "Torch CUDA available: False",
        "import torch\nprint(torch.__version__)\nprint(torch.cuda.is_available())\n\n2.1.0\nFalse",
    ]
)
def test_how_people_say_that_pytorch_finds_no_gpu(text: str) -> None:
    snapshot, _ = judge(f"{text}\nRTX 3060")
    assert snapshot is not None
    environment = snapshot.judged_environment
    assert environment is not None
    assert environment.frameworks is not None
    assert [each.gpu_available for each in environment.frameworks.items] == [False]


@every(
    [
        "if torch.cuda.is_available() == False:",
        "assert torch.cuda.is_available() is True",
        "torch.cuda.is_available() should return True",
        "Would torch.cuda.is_available() return False then?",
    ]
)
def test_code_and_wishes_are_no_answers(text: str) -> None:
    snapshot, _ = judge(f"{text}\nRTX 3060, torch 2.1.0")
    assert snapshot is not None
    environment = snapshot.judged_environment
    assert environment is not None
    assert environment.frameworks is not None
    assert [each.gpu_available for each in environment.frameworks.items] == [None]


def test_a_prompt_prints_nothing_for_none() -> None:
    asked = (">>> torch.__version__", "'1.6.0'", ">>> torch.version.cuda", ">>> torch.cuda.is_available()", "False")
    assert cause_in("GTX 1080", *asked) == "cpu-only-build"
    built = (*asked[:3], "'10.2'", *asked[3:])
    assert cause_in("GTX 1080", *built) != "cpu-only-build"


def test_a_build_for_the_cpu_explains_that_no_gpu_is_seen() -> None:
    lightning = ("You requested GPUs: [0]", "But your machine only has: []")
    assert cause_in("torch-2.1.0+cpu", "torch==2.1.0+cpu", *lightning) == "cpu-only-build"
    assert cause_in("torch==2.1.0+cu121", *lightning) != "cpu-only-build"


@every(
    [
        ("conda install pytorch torchvision cudatoolkit=10.2 -c pytorch", "418.67", "driver-too-old"),
        ("mamba install pytorch pytorch-cuda=12.1 -c pytorch -c nvidia", "460.91.03", "driver-too-old"),
        ("conda install pytorch torchvision cudatoolkit=10.2 -c pytorch", "440.33.01", None),
    ]
)
def test_a_command_of_conda_without_a_release_tells_the_build(command: str, driver: str, expected: str | None) -> None:
    assert cause_in(command, f"Driver Version: {driver}") == expected


@every(
    [
        (("My GPU has compute capability 3.5.", "torch 2.1.0"), "gpu-code-missing"),
        (("card: compute capability: 5.0", "torch==2.8.0+cu129"), "gpu-code-missing"),
        (("It requires compute capability 7.0 or newer", "torch==2.8.0+cu129"), None),
        (("The version of torch is 2.0.1", "Can I use it on an RTX 5090?"), "gpu-code-missing"),
        (("I have an RTX 3090", "Would it be faster on an RTX 5090?", "torch==2.5.1+cu124"), None),
    ]
)
def test_which_gpu_is_spoken_of(lines: tuple[str, ...], expected: str | None) -> None:
    assert cause_in(*lines) == expected


def test_instances_that_one_process_does_not_see() -> None:
    gpu = ONE_GPU.replace("GeForce RTX 3090", "A100-SXM4-80GB")
    instances = [f"  MIG 3g.40gb     Device  {n}: (UUID: MIG-0e9f4b28-2b3e-5e3e-b0bb-2b3c8ad6f15{n})" for n in (0, 1)]
    assert cause_in(gpu, *instances, ">>> torch.cuda.device_count()", "1") == "mig-enumeration"
    assert alarms(gpu, instances[0], ">>> torch.cuda.device_count()", "1") == []


@every([("240.12 W", "power-throttled"), ("392.50 W", None)])
def test_a_power_cap_far_below_the_limit(draw: str, expected: str | None) -> None:
    section = ("    Clocks Event Reasons", "        SW Power Cap                      : Active")
    power = (
        f"    Power Draw                            : {draw}",
        "    Current Power Limit                   : 400.00 W",
    )
    assert cause_in(*section, *power) == expected


@every(
    [
        ("Windows 11", ">>> torch.__version__\n'2.3.0'", "cpu-only-build"),
        ("Microsoft Windows 10", "torch==2.3.0", "cpu-only-build"),
        ("Windows 11", "pip install torch torchvision", "cpu-only-build"),
        ("Ubuntu 22.04", "torch==2.3.0", None),
        ("Windows 11", "torch==2.3.0+cu121", None),
        ("Ubuntu 22.04 on WSL2 under Windows", "torch==2.3.0", None),
        ("Jetson AGX Orin, JetPack 5.1.2", "pip install torch", "cpu-only-build"),
        (
            "Jetson AGX Orin, JetPack 5.1.2",
            "pip install torch-2.1.0a0+41361538.nv23.06-cp38-cp38-linux_aarch64.whl",
            None,
        ),
        ("Ubuntu 22.04", "pip install torch", None),
    ]
)
def test_what_pypi_has_of_pytorch_for_a_system(system: str, installed: str, expected: str | None) -> None:
    assert cause_in(system, installed, "RTX 4070" if "Jetson" not in system else "", NOT_AVAILABLE) == expected


@every(
    [
        ("tensorflow-cpu 2.10.0", "tf.config.list_physical_devices('GPU') -> []", "cpu-only-build"),
        ("tensorflow-gpu 2.10.0", "tf.config.list_physical_devices('GPU') -> []", None),
    ]
)
def test_a_module_stands_for_the_one_package_of_its_project(package: str, asked: str, expected: str | None) -> None:
    assert cause_in(package, asked, "Ubuntu 20.04, GTX 1650") == expected


INSIDE = ">>> torch.version.cuda\n'12.1'\n>>> torch.cuda.is_available()\nFalse"


@every(
    [
        ("docker run -it --rm myimage bash", "container-without-gpu"),
        ("sudo podman run -v /data:/data myimage", "container-without-gpu"),
        ("docker run -it --rm --gpus all myimage bash", None),
        ("docker run --device nvidia.com/gpu=all myimage", None),
        ("docker run -it myimage\nservices:\n  app:\n    runtime: nvidia", None),
        ("sudo docker run -it --privileged myimage bash", "container-without-gpu"),
        ("inside docker, when I run the image without `--gpus all`", "container-without-gpu"),
        ("I forgot --nv: apptainer exec pytorch.sif python", "container-without-gpu"),
        ("it worked without --gpus, now with docker run --gpus all myimage", None),
        ("during the `docker build`; docker run --gpus all works", "container-without-gpu"),
    ]
)
def test_a_command_that_asks_for_no_gpu(command: str, expected: str | None) -> None:
    assert cause_in(command, INSIDE) == expected


def test_a_build_of_an_image_gets_no_gpu_from_options_of_docker_run() -> None:
    found = primary(
        judge("the step fails in the docker build\nRuntimeError: Found no NVIDIA driver on your system.")[1]
    )
    assert found
    assert found.rule == "container-without-gpu"
    assert "build" in found.fixes[0].text


def test_a_log_of_compose_is_from_a_container() -> None:
    said = "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU"
    assert cause_in(f"worker_1  | RuntimeError: {said}", SMI) == "container-without-gpu"
    assert cause_in(f"RuntimeError: {said}") == "driver-not-installed"


SMI = "| NVIDIA-SMI 546.33       Driver Version: 546.33       CUDA Version: 12.3     |"


@every(
    [
        ("torch 2.1.2+cu121", SMI, "wsl-libcuda-shadowed"),
        ("torch 2.1.2+cu121", SMI.replace("546.33", "471.11").replace("12.3", "11.4"), "driver-too-old"),
        ("torch 2.1.2+cpu", SMI, "cpu-only-build"),
    ]
)
def test_a_build_that_finds_no_gpu_inside_wsl(build: str, smi: str, expected: str) -> None:
    assert cause_in("Ubuntu 22.04 on WSL2", build, smi, NOT_AVAILABLE) == expected


@every(
    [
        ("nvidia driver 390", "CUDA 9.2", "driver-too-old"),
        ("NVIDIA driver version: 470", "torch==2.4.0+cu124", "driver-too-old"),
        ("R450 driver", "torch==2.4.0+cu124", "driver-too-old"),
        ("nvidia driver 450", "torch==1.12.1+cu113", None),  # its newest release runs it
        ("nvidia driver 550", "torch==2.4.0+cu124", None),
    ]
)
def test_a_branch_of_the_driver_stands_for_its_newest_release(driver: str, other: str, expected: str | None) -> None:
    assert cause_in(driver, other) == expected


@every(
    [
        ("LD_LIBRARY_PATH=/usr/local/cuda-11.7/lib64", "library-shadowed"),
        ("LD_LIBRARY_PATH=/opt/other/lib", "cuda-library-too-old"),
    ]
)
def test_a_variable_that_leads_to_a_library_that_lacks_a_symbol(variable: str, expected: str) -> None:
    line = "OSError: /usr/local/cuda-11.7/lib64/libcublas.so.11: undefined symbol: cublasLtGetStatusString, version libcublasLt.so.11"
    assert cause_in(line, variable) == expected


def test_the_project_that_tries_its_cuda_provider_is_the_package_that_has_one() -> None:
    tried = "Failed to create CUDAExecutionProvider. Please reference the GPU requirements page"
    assert cause_in("ONNX Runtime version: 1.16.0", "CUDA 12.2", "cuDNN 8.9", tried) == "cuda-major-mismatch"


@every(["Num GPUs Available:  0", "it prints Num GPUs: 0.", "tf.config.list_physical_devices('GPU') returns []"])
def test_tensorflow_beside_another_cuda(told: str) -> None:
    assert cause_in("TensorFlow 2.1.0", "CUDA 10.2", told) == "cuda-major-mismatch"
    assert cause_in("TensorFlow 2.1.0", "CUDA 10.1", told) != "cuda-major-mismatch"


def test_a_link_that_is_down_on_one_of_two_gpus() -> None:
    other = ONE_GPU.replace("GPU 0", "GPU 1").replace("9be)", "9bf)")
    links = ("\t Link 0: 25 GB/s", "\t Link 1: 25 GB/s")
    assert cause_in(ONE_GPU, links[0], "\t Link 1: <inactive>", other, *links) == "nvlink-down"
    assert alarms(ONE_GPU, *links, other, *links) == []


def test_a_backend_that_volta_lacks_counts_only_where_it_is_demanded() -> None:
    chosen = "INFO [cuda.py:234] Cannot use FlashAttention-2 backend for Volta and Turing GPUs."
    demanded = "ERROR [engine.py:158] AssertionError('Only FlashAttention backend is supported for now.')"
    assert cause_in(chosen, demanded) == "gpu-feature-unsupported"
    assert alarms(chosen, "Using XFormers backend.") == []


UNIT = "● nvidia-fabricmanager.service - NVIDIA fabric manager service\n   Loaded: loaded\n   Active: {}"


@every(
    [
        (UNIT.format("inactive (dead)"), "8x H100 SXM", "fabric-manager-not-running"),
        (UNIT.format("failed (Result: exit-code)"), "NVIDIA H100 80GB HBM3", "fabric-manager-not-running"),
        (UNIT.format("active (running) since Mon"), "8x H100 SXM", None),
        (UNIT.format("inactive (dead)"), "RTX 4090", None),
        ("nvidia-fabricmanager.service: fabric manager not started", "RTX 4090", None),
    ]
)
def test_a_fabric_manager_that_does_not_run(status: str, gpu: str, expected: str | None) -> None:
    assert cause_in(status, gpu, "torch 2.4.0+cu124", NOT_AVAILABLE) == expected
    assert alarms(status.replace("nvidia-fabricmanager.service:", ""), gpu, ">>> torch.cuda.is_available()\nTrue") == []


@every(
    [
        "I upgraded my rig with a 5090 and since then nothing works. pip freeze | grep torch: torch==2.5.1+cu124",
        "My card is a 5090.\nSuccessfully installed torch-2.5.1+cu124",
        "- `torch` version: 2.5.1+cu124\n- GPU type: NVIDIA GeForce RTX 5090",
        '{"torch": {"version": "2.5.1+cu124", "cuda": "12.4"}, "gpus": [{"name": "NVIDIA GeForce RTX 5090"}]}',
        'torch:\n  version: "2.5.1+cu124"\ngpu:\n  - name: NVIDIA GeForce RTX 5090',
        "GPU -> RTX 5090, torch -> 2.5.1+cu124",
        "pytorch/2.5.1 (CUDA 12.4), GeForce 5090",
        "In [2]: torch.__version__, torch.cuda.get_device_name(0)\nOut[2]: ('2.5.1+cu124', 'NVIDIA GeForce RTX 5090')",
        "INFO vLLM API server version 0.6.6.post1\n5090 32GB",
        "Conda env: pytorch 2.5.1 py3.11_cuda12.4_cudnn9.1.0_0 pytorch\nRTX 5090",
        "我用的是RTX 5090，PyTorch版本是2.5.1+cu124",
        "RTX 5090を使っています。PyTorchは2.5.1+cu124です。",
        "У меня RTX 5090 и torch 2.5.1+cu124",
    ]
)
def test_a_gpu_and_a_build_in_forms_that_people_use(text: str) -> None:
    assert cause_in(text) == "gpu-code-missing"


@every(
    [
        "CUDA Version: 11.4 (nvidia-smi), torch.version.cuda 12.1",
        "nvidia-smi shows CUDA Version 11.2, I installed torch 2.3.0+cu121",
        "CUDA (nvidia-smi): 11.4\ntorch==2.3.0+cu121",
        "the driver supports CUDA 11.4\ntorch==2.3.0+cu121",
        "tensorflow[and-cuda]==2.17.0 with NVIDIA driver 470.199.02",
        "driver R470, torch 2.6.0+cu126",
    ]
)
def test_a_driver_by_the_cuda_that_it_supports(text: str) -> None:
    assert cause_in(text) == "driver-too-old"


@every(
    [
        "conda list: pytorch 2.2.0 cpu_py311h, GPU: RTX A4000",
        "pytorch 2.0.1 cpu build (py3.10_cpu_0), Tesla T4",
        "torch 2.1.0 (CPU), RTX 3080",
        "paddlepaddle==2.6.1 on RTX 3060\n>>> paddle.is_compiled_with_cuda()\nFalse",
    ]
)
def test_a_build_for_the_cpu_by_what_stands_beside(text: str) -> None:
    assert cause_in(text) == "cpu-only-build"


def test_several_gpus_of_a_kind() -> None:
    assert cause_in("We have P100s in our cluster. torch 2.8.0+cu129") == "gpu-code-missing"
    assert cause_in("Two nodes with H100s", "torch 2.4.0+cu121") is None


@every(["Treiber 470.57.02", "显卡驱动版本：470.57.02", "Версия драйвера 470.57.02", "ドライバーは470.57.02です"])
def test_a_driver_in_other_languages(text: str) -> None:
    assert cause_in("RTX 3090", "torch==2.4.0+cu121", text) == "driver-too-old"


BUILT = "nvidia/550.107.02, 6.8.0-40-generic, x86_64: installed"


@every(
    [
        (f"kernel 6.8.0-45-generic is running; dkms only has {BUILT}", "kernel-module-missing"),
        (f"{BUILT}\nLinux version 6.8.0-45-generic (buildd@lcy02)", "kernel-module-missing"),
        (f"{BUILT}\nrunning kernel: 6.8.0-45-generic", "kernel-module-missing"),
        ("dkms status\nnvidia/545.29.06: added", "kernel-module-missing"),
        (f"{BUILT}\nLinux version 6.8.0-40-generic (buildd@lcy02)", None),
        (f"{BUILT}\nnvidia/545.29.06: added\nuname -r: 6.8.0-40-generic", None),
    ]
)
def test_a_module_and_the_kernel_that_runs(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        "nouveau is loaded instead of nvidia, nvidia-smi fails. RTX 3080",
        "The nouveau driver is in use on my RTX 3080, package nvidia-driver-535 is installed",
        "RTX 4070 is still using nouveau after installing akmod-nvidia",
        "GPU is bound to nouveau; nvidia-smi: couldn't communicate with the NVIDIA driver",
    ]
)
def test_nouveau_said_to_hold_the_gpu(text: str) -> None:
    assert cause_in(text) == "nouveau-loaded"


@every(
    [
        "nouveau is not loaded. RTX 2080, driver 535.183.01",
        "I made sure that nouveau is not in use. RTX 2080",
        "check whether nouveau is loaded on the RTX 2080, driver 550.54",
        "nouveau was in use before I installed driver 550.54 on the RTX 2080",
        "is nouveau loaded? RTX 2080",
    ]
)
def test_nouveau_that_holds_nothing(text: str) -> None:
    assert alarms(text) == []


@every(
    [
        "On WSL2 Ubuntu I ran sudo apt install nvidia-driver-535 and now torch.cuda.is_available() is False",
        "WSL2, Ubuntu 22.04. sudo apt install -y nvidia-utils-510\nFailed to initialize NVML: GPU access blocked by the operating system",
        "WSL2 Ubuntu: libnvidia-compute-535 535.183.01-0ubuntu0.22.04.1\nRuntimeError: No CUDA GPUs are available",
    ]
)
def test_a_linux_driver_installed_inside_wsl(text: str) -> None:
    assert cause_in(text) == "wsl-libcuda-shadowed"


@every(
    [
        ("WSL2: I did not apt install nvidia-driver-535. RTX 3060", None),
        ("WSL2, sudo apt install cuda-toolkit-12-4, RTX 4070, driver 551.86, torch.cuda.is_available() True", None),
        (
            "WSL2, sudo apt install nvidia-driver-535, torch 2.3.0+cpu, torch.cuda.is_available() False",
            "cpu-only-build",
        ),
        (
            "sudo apt install nvidia-driver-535\nFailed to initialize NVML: Driver/library version mismatch",
            "driver-library-mismatch",
        ),
    ]
)
def test_a_driver_installed_where_it_belongs_or_not_at_all(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


@every(
    [
        "CUDA_VISIBLE_DEVICES is -1, torch.cuda.is_available() False",
        "CUDA_VISIBLE_DEVICES=-1; torch.cuda.device_count() 0",
        "with CUDA_VISIBLE_DEVICES=-1 in my .bashrc torch.cuda.is_available() returns False",
        "CUDA_VISIBLE_DEVICES was set to 'NoDevFiles', and torch.cuda.device_count() is 0",
    ]
)
def test_a_sentence_about_a_variable_that_hides_every_gpu(text: str) -> None:
    assert cause_in(text) == "gpu-hidden"


@every(
    [
        "If CUDA_VISIBLE_DEVICES is -1, nothing is found. RTX 3090, driver 550.54",
        "RTX 3090, driver 550.54. Should CUDA_VISIBLE_DEVICES be -1?",
        "CUDA_VISIBLE_DEVICES=-1 python test.py passes; RTX 3090, torch 2.4.0+cu121, torch.cuda.is_available() True",
    ]
)
def test_a_sentence_about_a_variable_that_may_hide_gpus(text: str) -> None:
    assert alarms(text) == []


@every(
    [
        ("RTX 3090\npytorch-2.3.0-cpu_generic_py311h", "cpu-only-build"),
        ("RTX 3090\nconda gave pytorch-2.3.0-py3.10_cpu_0.tar.bz2.", "cpu-only-build"),
        ("RTX 3090\npytorch-2.3.0-cuda120_py310h3.conda, driver 550.54", None),
    ]
)
def test_the_name_of_condas_file(text: str, expected: str | None) -> None:
    assert cause_in(text) == expected


_CSV = "name, driver_version, temperature.gpu, clocks.sm [MHz], power.draw [W], power.limit [W], clocks_{kind}_reasons."


@every(["event", "throttle"])
def test_what_holds_the_clocks_down_in_a_table_of_chosen_fields(kind: str) -> None:
    head = _CSV.format(kind=kind)
    fields = f"{head}sw_thermal_slowdown, clocks_{kind}_reasons.sw_power_cap"
    row = "NVIDIA RTX A4000, 550.54.14, 92, 375 MHz, 86.20 W, 140.00 W, {}, Not Active"
    assert cause_in(f"{fields}\n{row.format('Active')}") == "thermal-throttled"
    assert cause_in(f"{fields}\n{row.format('Not Active')}") is None


_BUILT = "$ ls /lib/modules/$(uname -r)/extra/nvidia/\nnvidia-drm.ko.xz  nvidia.ko.xz\n"


@every(
    [
        (f"$ mokutil --sb-state\nSecureBoot enabled\n$ lsmod | grep nvidia\n{_BUILT}", "secure-boot-blocks-module"),
        (f"$ mokutil --sb-state\nSecureBoot enabled\n{_BUILT}$ lsmod | grep nvidia\nnvidia 62701568 2\n$ ", None),
        (f"$ mokutil --sb-state\nSecureBoot enabled\n{_BUILT}$ lsmod | grep nvidia\n", None),  # cut off, perhaps
        (f"$ mokutil --sb-state\nSecureBoot disabled\n$ lsmod | grep nvidia\n{_BUILT}", None),
    ]
)
def test_a_module_that_is_built_and_not_listed(text: str, expected: str | None) -> None:
    found = cause_in(f"GTX 1650 Ti, Fedora 38\n{text}")
    assert (found == "secure-boot-blocks-module") is (expected is not None)


@every(
    [
        ("nvcr.io/nvidia/tensorflow:20.03-tf2-py3", None),
        ("nvidia/cuda:10.2-cudnn7-runtime-ubuntu18.04", "cuda-major-mismatch"),
    ]
)
def test_the_cuda_of_an_image_fits_the_framework_that_was_built_in_it(image: str, expected: str | None) -> None:
    text = f"docker run --gpus all {image}\nTensorFlow Version 2.1.0\ntf.test.is_gpu_available() -> False"
    assert (cause_in(text) == "cuda-major-mismatch") is (expected is not None)


def test_the_jetpack_of_apts_package_and_the_release_of_an_image() -> None:
    package = "Package: nvidia-jetpack\nVersion: 5.0.1-b118\nArchitecture: arm64"
    assert cause_in(f"docker run --runtime nvidia nvcr.io/nvidia/l4t-base:r32.6.1\n{package}") == "jetpack-mismatch"
