"""Package lists, Python sessions, installers, ``lspci``, DKMS, container images and nvcc's output."""

import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.accuracy import SCOPES
from envcheck.enrich.complete import complete
from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.importers.paste import WHOLE, telling_places
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import Kernel, KernelModule, Snapshot
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.evaluate import evaluate
from tests.every import cases, every
from tests.importers.pasting import environment_in, errors_in, gpus_in, told, torch_in, word
from tests.known import Expected
from tests.thorough import examples


def packages_in(text: str) -> dict[str, str]:
    return {each.name: each.version for each in environment_in(text).distributions or ()}


# --- Python sessions, installers, the machine -----------------------------------------------------------------------
@cases("about, text, expected",
    ("several answers in a line are told apart",
     ('python -c "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"\n'
     "2.4.1+cu121 12.1 False\n"), {"torch.version": "2.4.1+cu121", "torch.cuda": "12.1", "torch.gpu_available": False}),
    ("the capability that was asked belongs to the only GPU",
     (">>> torch.cuda.get_device_name(0)\n'Some New GPU'\n>>> torch.cuda.get_device_capability(0)\n(12, 0)\n"
     ">>> torch.cuda.get_arch_list()\n['sm_80', 'sm_90']\n"),
     {"gpus.items.name": ("Some New GPU",), "gpus.items.compute_capability": ("12.0",),
      "torch.gpu_code": ("sm_80", "sm_90")}),
    ("a log line between question and answer is no answer",
     (">>> tf.config.list_physical_devices('GPU')\n"
     "2024-01-01 10:00:00.1: W tensorflow/core/common_runtime/gpu/gpu_device.cc:2211] Skipping registering GPUs\n"
     "[]\n"), {"environment.frameworks.items.name": ("tensorflow",),
              "environment.frameworks.items.gpu_available": (False,)}),
    ("what was installed last counts and what was removed is gone",
     ("Successfully installed numpy-1.26.4 torch-2.6.0+cu124 triton-3.2.0\n"
     "Found existing installation: torch 2.6.0+cu124\nSuccessfully uninstalled torch-2.6.0+cu124\n"
     "Successfully installed torch-2.8.0+cu128\n - triton==3.2.0\n + triton==3.4.0\n"),
     {"environment.distributions.name": ("triton", "numpy", "torch"),
      "environment.distributions.version": ("3.4.0", "1.26.4", "2.8.0+cu128")}),
    ("the index of a command names the build",
     "pip install torch==2.5.1 --index-url https://download.pytorch.org/whl/cu118\n",
     {"torch.version": "2.5.1", "torch.cuda": "11.8"}),
    ("an index that is only recommended names no build",
     "torch 2.5.1\nplease see https://download.pytorch.org/whl/cu118 for other builds\n", {"torch.cuda": None}),
    ("the rows of a query",
     ("$ nvidia-smi --query-gpu=index,name,driver_version,memory.total,mig.mode.current --format=csv,noheader\n"
     "0, NVIDIA H100 PCIe, 550.54.15, 81559 MiB, Disabled\n1, NVIDIA L4, 550.54.15, 23034 MiB, [N/A]\n"),
     {"gpus.items.index": (0, 1), "gpus.items.name": ("NVIDIA H100 PCIe", "NVIDIA L4"),
      "gpus.items.memory.total": (81559 << 20, 23034 << 20), "driver.release": "550.54.15"}),
    ("the link and the use of a query",
     ("name, pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%], pstate\n"
     "NVIDIA GeForce RTX 3090, 2, 4, 98 %, P2\n"),
     {"gpus.items.pcie.generation": (2,), "gpus.items.pcie.generation_max": (4,), "gpus.items.utilisation": (0.98,),
      "gpus.items.performance_state": ("P2",)}),
    ("a device on the bus and its driver",
     ("01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA104 [GeForce RTX 3070] [10de:2484] (rev a1)\n"
     "\tKernel driver in use: nouveau\n"
     "02:00.0 3D controller [0302]: NVIDIA Corporation GA102GL [A40] [10de:2235]\n\tKernel driver in use: nvidia\n"),
     {"gpus.items.pci_bus_id": ("0000:01:00.0", "0000:02:00.0"), "gpus.items.name": ("GeForce RTX 3070", "A40"),
      "gpus.items.kernel_driver": ("nouveau", "nvidia")}),
    ("without the running kernel DKMS proves nothing", "nvidia/550.127.05, 6.8.0-48-generic, x86_64: installed\n",
     {"kernel.nvidia.built": None}),
    ("a compiler's list of targets", "sm_70\nsm_75\nsm_80\nsm_90\n",
     {"toolkits.items.targets": (("sm_70", "sm_75", "sm_80", "sm_90"),)}),
    ("an image says what it holds", "FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\n",
     {"torch.version": "2.5.1", "torch.cuda": "12.4"}),
    ("two images say nothing",
     ("FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\nGPU: RTX 4090\n"
     "image: pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime\n"), {"environments": None}),
    ("CuPy tells the CUDA of its build and of the driver",
     ("CuPy Version                 : 13.3.0\nCUDA Build Version           : 12050\n"
     "CUDA Driver Version          : 12020\nDevice 0 Name                : NVIDIA A100-SXM4-40GB"),
     {"driver.cuda": "12.2", "environment.frameworks.items.name": ("cupy",),
      "environment.frameworks.items.cuda": ("12.5",), "gpus.items.name": ("NVIDIA A100-SXM4-40GB",)}),
    ("the CUDA in the head of nvidia-smi is no toolkit",
     "| NVIDIA-SMI 550.54.14              Driver Version: 550.54.14      CUDA Version: 12.4     |",
     {"libraries": None}),
    *((f"ollama ps tells where the model runs: {where}",
       ("NAME            ID              SIZE      PROCESSOR          UNTIL\n"
       f"phi3:mini       4f2222927938    6.0 GB    {where}    4 minutes from now"),
       {"environment.frameworks.items.name": ("ollama",), "environment.frameworks.items.gpu_available": (on_gpu,)})
      for where, on_gpu in (("100% CPU", False), ("100% GPU", True), ("25%/75% CPU/GPU", True))),
    ("topo tells how many GPUs there are",
     "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV4\tPXB\t0-31\nGPU1\tNV4\t X \tSYS\t0-31\nNIC0\tPXB\tSYS\t X ",
     {"gpus.items.index": (0, 1)}),
    ("a table ends where its rows end",
     "Package Version\n------- -------\nsix     1.16.0\n\nstep 3\nGPU 80\ntorch 2.0.1\n",
     {"environment.distributions.name": ("six", "torch"), "environment.distributions.version": ("1.16.0", "2.0.1")}),
    ("a CPU wheel says so in its version", "torch==2.5.1+cpu\n", {"torch.cpu_only": True}),
    ("others do not say it", "torch==2.5.1\n", {"torch.cpu_only": None}),
    ("collect_env's empty lists are no packages",
     "Is CUDA available: True\n[pip3] No relevant packages\n[conda] Could not collect\n",
     {"environment.distributions": None}),
)  # fmt: skip
def test_what_a_text_says(about: str, text: str, expected: Expected) -> None:
    assert told(text, expected) == expected


def test_an_empty_list_of_architectures_is_not_known_code() -> None:
    """``get_arch_list`` is empty where no GPU can be used."""
    try:
        found = read_text(">>> torch.cuda.get_arch_list()\n[]\n")
    except UsageError:
        return
    assert found.environments is None


@every(
    ("https://x.org/torch-2.5.1%2Bcu124-cp312-cp312-linux_x86_64.whl", "torch", "2.5.1+cu124"),
    ("flash_attn-2.7.4-cp312-cp312-win_amd64.whl", "flash-attn", "2.7.4"),
    ("  - pytorch=2.5.1=py3.11_cuda12.4_cudnn9.1.0_0", "pytorch", "2.5.1"),
    ("RUN pip install 'xformers==0.0.28'", "xformers", "0.0.28"),
)
def test_the_package_in_a_line(line: str, name: str, version: str) -> None:
    assert packages_in(line)[name] == version


@cases("running, built, others", ("6.8.0-49-generic", False, ("6.8.0-48-generic",)), ("6.8.0-48-generic", True, ()))
def test_the_modules_that_dkms_installed(running: str, *, built: bool, others: tuple[str, ...]) -> None:
    text = f"{running}\nnvidia/550.127.05, 6.8.0-48-generic, x86_64: installed\n"
    module = (read_text(text).kernel or Kernel()).nvidia or KernelModule()
    assert (module.built, module.built_for) == (built, others)


# --- long texts ---------------------------------------------------------------------------------------------------
def test_of_a_long_text_what_tells_something_is_read() -> None:
    filling = "".join(f"{word(n)} went by\n" for n in range(30_000))
    text = f"torch 2.5.1+cu124\n{filling}GPU 0: NVIDIA L4\nRuntimeError: CUDA error: boom\n{filling}the end\n"
    snapshot = read_text(text)
    assert [gpu.name for gpu in gpus_in(text)] == ["NVIDIA L4"]
    assert errors_in(snapshot) == ["RuntimeError: CUDA error: boom"]
    assert snapshot.observed_errors[0].line == 30_003
    assert not [run for run in snapshot.runs if run.name == "pasted text"]


def test_telling_lines_that_are_left_out_are_counted() -> None:
    lines = [f"error of {word(n)}" for n in range(WHOLE + 3_000)]
    places, omitted = telling_places(lines)
    assert len(places) + omitted == len(lines)
    assert omitted > 0
    told = [run.detail for run in read_text("\n".join(lines)).runs if run.name == "pasted text"]
    assert any("lines in the middle were not read" in detail for detail in told)


@every("{0} torch error {0} gpu", "torch 2.1.{1} with RTX {1} {0}", "INFO step {1}: gpu {1}", "{0}=={1}.0", "{0}")
def test_twenty_thousand_lines_are_read_soon(form: str) -> None:
    text = "\n".join(form.format(word(n), n) for n in range(20_000))
    started = time.process_time()
    try:
        found = read_text(text)
    except UsageError:
        found = Snapshot()
    assert isinstance(found, Snapshot)
    assert time.process_time() - started < SOON


SOON = 2.0
"""Seconds of processor time, five times what it takes on two cores."""
# --- any text -----------------------------------------------------------------------------------------------------
PIECES = (
    "torch", "2.5.1+cu124", "==", " ", ":", "|", "\n", "\t", "- ", ">>> ", "In [1]: ", "torch.__version__",
    "RTX 5090", "A10", "driver", "550.54.15", "CUDA", "12.4", "cuDNN 8",
    "nvidia-smi --query-gpu=name,driver_version", "name, driver_version", "NVIDIA L4, 550.1",
    "Successfully installed", "torch-2.5.1", ".whl", "sm_90", "FROM ", "pytorch/pytorch:2.5.1-cuda12.4",
    "Xid 79", "Kernel driver in use: ", "01:00.0 VGA compatible controller: NVIDIA Corporation",
    "nvidia/550.1, 6.8.0, x86_64: ", "installed", "print(", "torch.cuda.is_available()", ")", "True", "[", "]",
    "{", '"', "'", "(", ",", "from ", "requires ", "?", "RuntimeError: ",
    "During handling of the above exception", "9" * 30, ".", "%2B", "compute capability 8.6", "\u0000",
    "\ud83d\ude80",
)  # fmt: skip


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_text_raises_anything_but_a_refusal(text: str) -> None:
    try:
        found = read_text(text)
    except UsageError:
        return
    evaluate(complete(found, load_matrix()), load_matrix(), all_rules(), SCOPES)


@every(
    ("C:\\Users\\x>python train.py", "windows", None), ("(venv) PS D:\\work> python train.py", "windows", None),
    ('  File "C:\\Users\\x\\site-packages\\torch\\__init__.py", line 1', "windows", None),
    ("PS C:\\> wsl nvidia-smi", None, None), ("5.15.153.1-microsoft-standard-WSL2", "linux", True),
    ("6.8.0-49-generic", "linux", None),
)  # fmt: skip
def test_prompts_and_kernels_tell_the_system(line: str, system: str | None, wsl: bool | None) -> None:  # noqa: FBT001
    platform = read_text(f"{line}\ntorch 2.5.1").platform
    assert (platform.os if platform else None, platform.wsl if platform else None) == (system, wsl)


# --- Package lists. Every text here was constructed -----------------------------------------------------------------
@every(
    ("torch==2.5.1+cu124\nflash_attn==2.5.7\n", {"torch": "2.5.1+cu124", "flash-attn": "2.5.7"}),
    ("transformers== 4.42.4\n", {"transformers": "4.42.4"}),
    ("- torch==2.5.1  # pinned\n", {"torch": "2.5.1"}),
    ("Package    Version\n---------- -------\nsix        1.16.0\nPillow     8.0.0\n",
     {"six": "1.16.0", "pillow": "8.0.0"}),
    ("torch                     2.4.1\n", {"torch": "2.4.1"}),
    ("PyTorch                        1.3.1\n", {"torch": "1.3.1"}),
    ("Name: torch\nVersion: 2.11.0+cu126\nSummary: Tensors\n", {"torch": "2.11.0+cu126"}),
    ("Requirement already satisfied: torch>=1.8 in ./lib (from timm) (2.1.0)\n", {"torch": "2.1.0"}),
    ("ERROR: torchvision 0.15.0+cu117 requires torch==2.0.0, but you have torch 1.13.1 which is incompatible.\n",
     {"torchvision": "0.15.0+cu117", "torch": "1.13.1"}),
    ("onnxruntime 1.11.0 (java)\n", {"onnxruntime": "1.11.0"}),
    ("tensorrt-cu12-bindings 10.0.1\ntensorrt_cu12_libs 10.3.0\n",
     {"tensorrt-cu12-bindings": "10.0.1", "tensorrt-cu12-libs": "10.3.0"}),
    ("1. mmcv 2.1.0\n2. mmdet: 3.3.0\ndgl version: 2.1.0+cu121\nunsloth=2025.4.1\n",
     {"mmcv": "2.1.0", "mmdet": "3.3.0", "dgl": "2.1.0+cu121", "unsloth": "2025.4.1"}),
    ("Windows 11, faster-whisper 0.9.0, peft 0.12.0\n", {"faster-whisper": "0.9.0", "peft": "0.12.0"}),
    ("sglang 0.4.1\nsgl-kernel 0.0.2\nflashinfer-python 0.2.0\n",
     {"sglang": "0.4.1", "sgl-kernel": "0.0.2", "flashinfer-python": "0.2.0"}),
)  # fmt: skip
def test_lists_of_pip(text: str, found: dict[str, str]) -> None:
    assert packages_in(text) == found
    assert not environment_in(text).distributions_complete


@cases("text",
    "pip install torch>=2.5.1", "Windows 10", "step 3 4", "TORCH_CUDA_ARCH_LIST    8.0", "CUDA 12.2",
    "onnxruntime 1.9.0-gpu", "tensorrt-cu12-libs 10.3.0 does not work here", "since I have mmcv 2.1.0, it fails",
    "torch: 2.2.1", "1. pytorch 2.2.1",
)  # fmt: skip
def test_what_is_no_package(text: str) -> None:
    try:
        environments = read_text(f"{text}\n").environments
    except UsageError:
        return
    assert environments is None or all(env.distributions is None for env in environments.items)


CONDA = """\
# Name                    Version                   Build  Channel
cpuonly                   2.0                               0    pytorch
cudatoolkit               10.1.243             h6bb024c_0
pytorch                   1.11.0              py3.8_cpu_0    pytorch
tensorflow-gpu            2.2.0                     <pip>
torchmetrics              1.0.0                    pypi_0    pypi
"""


def test_a_list_of_conda_and_its_channels() -> None:
    packages = environment_in(CONDA).distributions or ()
    assert [(package.name, package.version, package.build, package.channel) for package in packages] == [
        ("cpuonly", "2.0", "0", "conda"), ("cudatoolkit", "10.1.243", "h6bb024c_0", "conda"),
        ("pytorch", "1.11.0", "py3.8_cpu_0", "conda"), ("tensorflow-gpu", "2.2.0", None, "pip"),
        ("torchmetrics", "1.0.0", None, "pip"),
    ]  # fmt: skip


@cases("build, cuda, cudnn, cpu_only",
    ("py3.8_cpu_0", None, None, True), ("cpu_generic_py311_h8ca351a_0", None, None, True),
    ("py3.9_cuda11.3_cudnn8.2.0_0", "11.3", "8.2.0", False),
    ("py3.6_cuda10.0.130_cudnn7.4.2_2", "10.0", "7.4.2", False),
    ("cuda126_mkl_py312_h30b5a27_300", "12.6", None, False), ("cuda112py39h3bb1f2c_0", "11.2", None, False),
    ("h1234567_0", None, None, None),
)  # fmt: skip
def test_condas_build_string_tells_how_torch_was_built(
    build: str, cuda: str | None, cudnn: str | None, *, cpu_only: bool | None
) -> None:
    torch = torch_in(f"[conda] pytorch   2.1.0   {build}   conda-forge\n")
    assert (torch.version, torch.cuda, torch.cudnn, torch.cpu_only) == ("2.1.0", cuda, cudnn, cpu_only)
