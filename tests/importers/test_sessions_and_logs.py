"""Package lists, Python sessions, installers, ``lspci``, DKMS, container images and nvcc's output."""

from __future__ import annotations

import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.accuracy import SCOPES
from envcheck.enrich.complete import complete
from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.importers.paste import WHOLE, telling_places
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import Kernel, KernelModule, Listing, Snapshot
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.evaluate import evaluate
from tests.every import cases, every
from tests.importers.pasting import environment_in, errors_in, gpus_in, release_in, torch_in, word
from tests.thorough import examples


def packages_in(text: str) -> dict[str, str]:
    return {each.name: each.version for each in environment_in(text).distributions or ()}


# --- Python sessions ----------------------------------------------------------------------------------------------


def test_several_answers_in_a_line_are_told_apart() -> None:
    text = (
        'python -c "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"\n'
        "2.4.1+cu121 12.1 False\n"
    )
    torch = torch_in(text)
    assert (torch.version, torch.cuda, torch.gpu_available) == ("2.4.1+cu121", "12.1", False)


def test_the_capability_that_was_asked_belongs_to_the_only_gpu() -> None:
    text = (
        ">>> torch.cuda.get_device_name(0)\n'Some New GPU'\n>>> torch.cuda.get_device_capability(0)\n(12, 0)\n"
        ">>> torch.cuda.get_arch_list()\n['sm_80', 'sm_90']\n"
    )
    assert [(gpu.name, gpu.compute_capability) for gpu in gpus_in(text)] == [("Some New GPU", "12.0")]
    assert torch_in(text).gpu_code == ("sm_80", "sm_90")


def test_a_log_line_between_question_and_answer_is_no_answer() -> None:
    text = (
        ">>> tf.config.list_physical_devices('GPU')\n"
        "2024-01-01 10:00:00.1: W tensorflow/core/common_runtime/gpu/gpu_device.cc:2211] Skipping registering GPUs\n"
        "[]\n"
    )
    (tensorflow,) = environment_in(text).frameworks.items  # type: ignore[union-attr]
    assert (tensorflow.name, tensorflow.gpu_available) == ("tensorflow", False)


def test_an_empty_list_of_architectures_is_not_known_code() -> None:
    """``get_arch_list`` is empty where no GPU can be used."""
    try:
        found = read_text(">>> torch.cuda.get_arch_list()\n[]\n")
    except UsageError:
        return
    assert found.environments is None


# --- installers ---------------------------------------------------------------------------------------------------


def test_what_was_installed_last_counts_and_what_was_removed_is_gone() -> None:
    text = (
        "Successfully installed numpy-1.26.4 torch-2.6.0+cu124 triton-3.2.0\n"
        "Found existing installation: torch 2.6.0+cu124\nSuccessfully uninstalled torch-2.6.0+cu124\n"
        "Successfully installed torch-2.8.0+cu128\n - triton==3.2.0\n + triton==3.4.0\n"
    )
    assert packages_in(text) == {"numpy": "1.26.4", "torch": "2.8.0+cu128", "triton": "3.4.0"}


@every(
    ("https://x.org/torch-2.5.1%2Bcu124-cp312-cp312-linux_x86_64.whl", "torch", "2.5.1+cu124"),
    ("flash_attn-2.7.4-cp312-cp312-win_amd64.whl", "flash-attn", "2.7.4"),
    ("  - pytorch=2.5.1=py3.11_cuda12.4_cudnn9.1.0_0", "pytorch", "2.5.1"),
    ("RUN pip install 'xformers==0.0.28'", "xformers", "0.0.28"),
)
def test_the_package_in_a_line(line: str, name: str, version: str) -> None:
    assert packages_in(line)[name] == version


def test_the_index_of_a_command_names_the_build() -> None:
    torch = torch_in("pip install torch==2.5.1 --index-url https://download.pytorch.org/whl/cu118\n")
    assert (torch.version, torch.cuda) == ("2.5.1", "11.8")


def test_an_index_that_is_only_recommended_names_no_build() -> None:
    assert torch_in("torch 2.5.1\nplease see https://download.pytorch.org/whl/cu118 for other builds\n").cuda is None


# --- the machine --------------------------------------------------------------------------------------------------


def test_the_rows_of_a_query() -> None:
    text = (
        "$ nvidia-smi --query-gpu=index,name,driver_version,memory.total,mig.mode.current --format=csv,noheader\n"
        "0, NVIDIA H100 PCIe, 550.54.15, 81559 MiB, Disabled\n1, NVIDIA L4, 550.54.15, 23034 MiB, [N/A]\n"
    )
    found = [(gpu.index, gpu.name, gpu.memory.total if gpu.memory else None) for gpu in gpus_in(text)]
    assert found == [(0, "NVIDIA H100 PCIe", 81559 << 20), (1, "NVIDIA L4", 23034 << 20)]
    assert release_in(text) == "550.54.15"


def test_a_device_on_the_bus_and_its_driver() -> None:
    text = (
        "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA104 [GeForce RTX 3070] [10de:2484] (rev a1)\n"
        "\tKernel driver in use: nouveau\n"
        "02:00.0 3D controller [0302]: NVIDIA Corporation GA102GL [A40] [10de:2235]\n\tKernel driver in use: nvidia\n"
    )
    assert [(gpu.pci_bus_id, gpu.name, gpu.kernel_driver) for gpu in gpus_in(text)] == [
        ("0000:01:00.0", "GeForce RTX 3070", "nouveau"),
        ("0000:02:00.0", "A40", "nvidia"),
    ]


@cases("running, built, others", ("6.8.0-49-generic", False, ("6.8.0-48-generic",)), ("6.8.0-48-generic", True, ()))
def test_the_modules_that_dkms_installed(running: str, *, built: bool, others: tuple[str, ...]) -> None:
    text = f"{running}\nnvidia/550.127.05, 6.8.0-48-generic, x86_64: installed\n"
    module = (read_text(text).kernel or Kernel()).nvidia or KernelModule()
    assert (module.built, module.built_for) == (built, others)


def test_without_the_running_kernel_dkms_proves_nothing() -> None:
    module = (read_text("nvidia/550.127.05, 6.8.0-48-generic, x86_64: installed\n").kernel or Kernel()).nvidia
    assert module is not None
    assert module.built is None


def test_a_compilers_list_of_targets() -> None:
    text = "sm_70\nsm_75\nsm_80\nsm_90\n"
    (toolkit,) = (read_text(text).toolkits or Listing()).items
    assert toolkit.targets == ("sm_70", "sm_75", "sm_80", "sm_90")


def test_an_image_says_what_it_holds_and_two_say_nothing() -> None:
    one = "FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\n"
    assert (torch_in(one).version, torch_in(one).cuda) == ("2.5.1", "12.4")
    two = one + "GPU: RTX 4090\nimage: pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime\n"
    assert read_text(two).environments is None


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
    ("C:\\Users\\x>python train.py", "windows", None),
    ("(venv) PS D:\\work> python train.py", "windows", None),
    ('  File "C:\\Users\\x\\site-packages\\torch\\__init__.py", line 1', "windows", None),
    ("PS C:\\> wsl nvidia-smi", None, None),
    ("5.15.153.1-microsoft-standard-WSL2", "linux", True),
    ("6.8.0-49-generic", "linux", None),
)
def test_prompts_and_kernels_tell_the_system(line: str, system: str | None, wsl: bool | None) -> None:  # noqa: FBT001
    platform = read_text(f"{line}\ntorch 2.5.1").platform
    assert (platform.os if platform else None, platform.wsl if platform else None) == (system, wsl)


def test_cupy_tells_the_cuda_of_its_build_and_of_the_driver() -> None:
    text = (
        "CuPy Version                 : 13.3.0\nCUDA Build Version           : 12050\n"
        "CUDA Driver Version          : 12020\nDevice 0 Name                : NVIDIA A100-SXM4-40GB"
    )
    snapshot = read_text(text)
    assert snapshot.driver is not None
    assert snapshot.driver.cuda == "12.2"
    listing = environment_in(text).frameworks
    assert listing is not None
    assert [(each.name, each.cuda) for each in listing.items] == [("cupy", "12.5")]
    assert [gpu.name for gpu in gpus_in(text)] == ["NVIDIA A100-SXM4-40GB"]


def test_the_cuda_in_the_head_of_nvidia_smi_is_no_toolkit() -> None:
    head = "| NVIDIA-SMI 550.54.14              Driver Version: 550.54.14      CUDA Version: 12.4     |"
    assert read_text(head).libraries is None


def test_ollama_ps_tells_where_the_model_runs() -> None:
    head = "NAME            ID              SIZE      PROCESSOR          UNTIL\n"
    for where, on_gpu in (("100% CPU", False), ("100% GPU", True), ("25%/75% CPU/GPU", True)):
        listing = environment_in(
            f"{head}phi3:mini       4f2222927938    6.0 GB    {where}    4 minutes from now"
        ).frameworks
        assert listing is not None
        assert [(each.name, each.gpu_available) for each in listing.items] == [("ollama", on_gpu)]


def test_topo_tells_how_many_gpus_there_are() -> None:
    text = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV4\tPXB\t0-31\nGPU1\tNV4\t X \tSYS\t0-31\nNIC0\tPXB\tSYS\t X "
    assert [gpu.index for gpu in gpus_in(text)] == [0, 1]


# --- Package lists. Every text here was constructed -----------------------------------------------------------------


def packages(text: str) -> dict[str, str]:
    return {package.name: package.version for package in environment_in(text).distributions or ()}


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
    ("sglang 0.4.1\nsgl-kernel 0.0.2\nflashinfer-python 0.2.0\n",
     {"sglang": "0.4.1", "sgl-kernel": "0.0.2", "flashinfer-python": "0.2.0"}),
)  # fmt: skip
def test_lists_of_pip(text: str, found: dict[str, str]) -> None:
    assert packages(text) == found
    assert not environment_in(text).distributions_complete


@cases("text",
    "pip install torch>=2.5.1", "Windows 10", "step 3 4", "TORCH_CUDA_ARCH_LIST    8.0", "CUDA 12.2",
    "onnxruntime 1.9.0-gpu", "tensorrt-cu12-libs 10.3.0 does not work here",
)  # fmt: skip
def test_what_is_no_package(text: str) -> None:
    try:
        environments = read_text(f"{text}\n").environments
    except UsageError:
        return
    assert environments is None or all(env.distributions is None for env in environments.items)


def test_a_table_ends_where_its_rows_end() -> None:
    text = "Package Version\n------- -------\nsix     1.16.0\n\nstep 3\nGPU 80\ntorch 2.0.1\n"
    assert packages(text) == {"six": "1.16.0", "torch": "2.0.1"}


CONDA = """\
# Name                    Version                   Build  Channel
cpuonly                   2.0                               0    pytorch
cudatoolkit               10.1.243             h6bb024c_0
pytorch                   1.11.0              py3.8_cpu_0    pytorch
tensorflow-gpu            2.2.0                     <pip>
torchmetrics              1.0.0                    pypi_0    pypi
"""


def test_a_list_of_conda_and_its_channels() -> None:
    found = {
        package.name: (package.version, package.build, package.channel)
        for package in environment_in(CONDA).distributions or ()
    }
    assert found == {
        "cpuonly": ("2.0", "0", "conda"),
        "cudatoolkit": ("10.1.243", "h6bb024c_0", "conda"),
        "pytorch": ("1.11.0", "py3.8_cpu_0", "conda"),
        "tensorflow-gpu": ("2.2.0", None, "pip"),
        "torchmetrics": ("1.0.0", None, "pip"),
    }


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


def test_a_cpu_wheel_says_so_in_its_version() -> None:
    assert torch_in("torch==2.5.1+cpu\n").cpu_only is True
    assert torch_in("torch==2.5.1\n").cpu_only is None


def test_collect_envs_empty_lists_are_no_packages() -> None:
    text = "Is CUDA available: True\n[pip3] No relevant packages\n[conda] Could not collect\n"
    assert environment_in(text).distributions is None
