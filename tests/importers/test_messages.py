"""Facts in the messages of programs and in prose, constructed after those programs."""

from envcheck.importers import read_text
from envcheck.importers.prose.mentions import models
from envcheck.model.snapshot import Driver, Kernel, KernelModule, Platform
from tests.every import cases, every
from tests.importers.pasting import errors_in, gpus_in, release_in, told, torch_in, word
from tests.known import Expected, known

NO_CODE = """\
UserWarning:
NVIDIA H100 PCIe with CUDA capability sm_90 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_37 sm_70 sm_86 compute_86.
"""
MACHETE = "ValueError: Machete kernel requires compute capability >= 9.0. Detected capability: 8.6"


@cases("about, text, expected",
    ("PyTorch names a GPU, its capability and its own code", NO_CODE,
     {"gpu.name": "NVIDIA H100 PCIe", "gpu.compute_capability": "9.0",
      "torch.gpu_code": ("sm_37", "sm_70", "sm_86", "compute_86")}),
    ("a GPU named in a message is the listed one",
     "GPU 0: NVIDIA GeForce GTX 1650\nGPU 1: NVIDIA H100 PCIe\n" + NO_CODE,
     {"gpus.items.index": (0, 1), "gpus.items.name": ("NVIDIA GeForce GTX 1650", "NVIDIA H100 PCIe"),
      "gpus.items.compute_capability": (None, "9.0")}),
    ("a GPU that a complete list lacks is not added to it", "GPU 0: NVIDIA L4\nGPU: RTX 3090\n" + NO_CODE,
     {"gpus.items.name": ("NVIDIA L4",)}),
    ("what the driver speaks stands in the complaint about it",
     "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).",
     {"driver": Driver(source="pasted text", cuda="11.4")}),
    ("xFormers names what it meets after what it wants",
     "    PyTorch 2.1.2+cu121 with CUDA 1201 (you have 2.1.0+cpu)\n    Python  3.9.14 (you have 3.9.13)\n",
     {"torch.version": "2.1.0+cpu", "environment.python": "3.9.13", "disagreements": ()}),
    ("the build stands in the complaint about the toolkit",
     "The detected CUDA version (10.1) mismatches the version that was used to compile PyTorch (12.1). Please",
     {"torch.cuda": "12.1"}),
    ("the message adds the code to the torch of the report",
     "PyTorch version: 2.0.1+cu117\nCUDA used to build PyTorch: 11.7\n" + NO_CODE,
     {"torch.version": "2.0.1+cu117", "torch.cuda": "11.7",
      "torch.gpu_code": ("sm_37", "sm_70", "sm_86", "compute_86")}),
    ("an answer below its call", "import torch\nprint(torch.cuda.is_available())\n\nreturns False",
     {"torch.gpu_available": False}),
    ("an answer of R", "> library(torch)\n> cuda_is_available()\n[1] FALSE\n", {"torch.gpu_available": False}),
    ("a program is no answer",
     "def has_gpu():\n    print(torch.cuda.is_available())\n    return False\ntorch 2.4.0",
     {"torch.gpu_available": None}),
    ("what a tool printed goes before what people write",
     "NVIDIA driver 470.82\n| NVIDIA-SMI 535.104.12   Driver Version: 535.104.12   CUDA Version: 12.2 |\n",
     {"driver.release": "535.104.12", "disagreements": ()}),
    ("an error line after a report is read with it",
     "PyTorch version: 2.4.0+cu121\nCUDA used to build PyTorch: 12.1\n\nRuntimeError: CUDA error: boom\n",
     {"torch.cuda": "12.1", "observed_errors.text": ("RuntimeError: CUDA error: boom",),
      "runs.name": ("torch collect_env", "error lines")}),
    ("the list of code in the newer warning is read line by line",
     ("Found GPU1 Tesla V100-SXM2-32GB which is of compute capability (CC) 7.0.\n"
     "The following list shows the CCs this version of PyTorch was built for and the hardware CCs it supports:\n"
     "- 7.5 which supports hardware CC >=7.5,<8.0\n- 12.0 which supports hardware CC >=12.0,<13.0\n"),
     {"torch.gpu_code": ("sm_75", "sm_120"), "gpus.items.name": ("Tesla V100-SXM2-32GB",),
      "gpus.items.compute_capability": ("7.0",)}),
    ("a GPU is named beside its capability",
     ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. "
     "Your Tesla T4 GPU has compute capability 7.5."), {"gpu.name": "Tesla T4", "gpu.compute_capability": "7.5"}),
    ("the capability belongs to the only GPU that is named", f"NVIDIA GeForce RTX 3090\n{MACHETE}",
     {"gpu.name": "NVIDIA GeForce RTX 3090", "gpu.compute_capability": "8.6"}),
    *(("what is asked for is not what was found", line, {"gpus": None})
      for line in (
          "RuntimeError: This kernel requires a GPU that has compute capability 9.0",
          "NotImplementedError: DeepGEMM MegaMoE requires SM100 GPUs.",
          "step 90 requires grad only, got 75 samples of compute capability tests",
          "RuntimeError: fused MoE requires SM120, got 9000 tokens")),
)  # fmt: skip
def test_what_a_text_says(about: str, text: str, expected: Expected) -> None:
    assert told(text, expected) == expected


# --- the kernel's modules -----------------------------------------------------------------------------------------
@cases("text, kernel",
    ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024",
     Kernel(nvidia=KernelModule(loaded=True, version="550.90.07", flavour="proprietary"))),
    ("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build",
     Kernel(nvidia=KernelModule(loaded=True, version="570.158.01", flavour="open"))),
    ("nouveau              2306048  4", Kernel(nouveau_loaded=True)),
    ("nvidia              56717312  1 nvidia_modeset", Kernel(nvidia=KernelModule(loaded=True))),
    ("SecureBoot enabled", Kernel(secure_boot=True)),
)  # fmt: skip
def test_modules(text: str, kernel: Kernel) -> None:
    found = known(read_text(text).kernel)
    assert (found.nouveau_loaded, found.secure_boot) == (kernel.nouveau_loaded, kernel.secure_boot)
    wanted, met = kernel.nvidia or KernelModule(), found.nvidia or KernelModule()
    assert (met.loaded, met.version, met.flavour) == (wanted.loaded, wanted.version, wanted.flavour)


# --- prose --------------------------------------------------------------------------------------------------------
@cases("text, release",
    ("NVIDIA Driver Version: 510.60.02", "510.60.02"), ("Nvidia driver 465.19.01", "465.19.01"),
    ("- CUDA driver 570.133.20", "570.133.20"), ("Nvidia Win10 driver 465.89", "465.89"),
    ("nvidia-drivers-530.41.03", "530.41.03"),
)  # fmt: skip
def test_a_driver_in_prose(text: str, release: str) -> None:
    assert release_in(text) == release


@cases(
    "text, names", ("GPU: RTX 4090, GTX 1080 Ti", ["RTX 4090", "GTX 1080 Ti"]), ("NVIDIA GPU: Tesla T4", ["Tesla T4"]),
    ("GPU: NVIDIA A100-SXM4-40GB", ["NVIDIA A100-SXM4-40GB"]),
    ("* GPU: GTX 1080 (compute capability 6.1)", ["GTX 1080"]),
)  # fmt: skip
def test_gpus_in_prose(text: str, names: list[str]) -> None:
    listing = known(read_text(text).gpus)
    assert ([gpu.name for gpu in listing.items], listing.complete) == (names, False)


@cases("text, expected",
    ("Windows 11, Python 3.10.8", ("windows", None, None, None)),
    ("Ubuntu 18.04, CUDA 11.1", ("linux", "ubuntu", "18.04", None)),
    ("* OS:ubuntu 20.04", ("linux", "ubuntu", "20.04", None)), ("CentOS 7.6", ("linux", "centos", "7.6", None)),
    ("Windows 11 WSL2, CUDA 12.2", ("linux", None, None, True)),
    ("Linux version 5.4.91-microsoft-standard-WSL2", ("linux", None, None, True)),
)  # fmt: skip
def test_a_system_in_prose(text: str, expected: tuple[object, ...]) -> None:
    found = read_text(text).platform or Platform()
    assert (found.os, found.distribution, found.distribution_version, found.wsl) == expected


@cases("text, version, available",
    ("torch 2.7.0+cu128", "2.7.0+cu128", None), ("- PyTorch version (GPU?): 2.4.1+cu121 (True)", "2.4.1+cu121", True),
    ("- PyTorch version (GPU?): 2.4.1 (False)", "2.4.1", False), ("torch 2.4.1 (True)", "2.4.1", None),
    ("* PyTorch version:torch2.8.0+cu128", "2.8.0+cu128", None), ("PyTorch: 2.8.0+cu128", "2.8.0+cu128", None),
)  # fmt: skip
def test_torch_in_prose(text: str, version: str, *, available: bool | None) -> None:
    torch = torch_in(text)
    assert (torch.version, torch.gpu_available) == (version, available)


# --- error lines --------------------------------------------------------------------------------------------------
LINES = (
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
    "NVRM: Xid (PCI:0000:b3:00): 79, pid='<unknown>', GPU has fallen off the bus.",
    "Failed to initialize NVML: Driver/library version mismatch",
    "modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.15.0-84-generic",
    "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
    "Minimum and Maximum cuda capability supported by this version of PyTorch is",
    "Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.6.0.", "No devices were found",
    "cudaGetDeviceCount returned 100", 'level=INFO msg="Dynamic LLM libraries" runners=[cpu]',
    "        HW Thermal Slowdown         : Active",
    "docker: Error response from daemon: could not select device driver",
    "Cuda failure 802 'system not yet initialized'",
    "ptxas application ptx input, line 9; fatal   : Unsupported .version 8.1; current version is '8.0'",
    "NVRM:  information.  The 595.71.05 NVIDIA driver will ignore",
)  # fmt: skip


@every(LINES)
def test_lines_that_speak_of_a_failure(line: str) -> None:
    assert errors_in(read_text(f"before\n{line}\nafter\n")) == [line.strip()]
    assert read_text(f"before\n{line}\nafter\n").observed_errors[0].line == 2


@cases("line",
    "Clang version: Could not collect", "        HW Slowdown : Not Active", "[pip3] No relevant packages",
    "ECC Errors : 0",
)  # fmt: skip
def test_lines_that_do_not(line: str) -> None:
    assert read_text(f"{line}\nUbuntu 22.04\n").observed_errors == ()


def test_a_repeated_line_counts_once_and_their_number_is_bounded() -> None:
    assert len(read_text("RuntimeError: boom\n" * 50).observed_errors) == 1
    many = read_text("".join(f"RuntimeError: boom {number}\n" for number in range(5_000)))
    assert [error.text for error in many.observed_errors] == [f"RuntimeError: boom {n}" for n in (0, 1, 4998, 4999)]
    many = read_text("".join(f"RuntimeError: boom {word(number)}\n" for number in range(5_000)))
    assert [error.line for error in many.observed_errors] == [*range(1, 101), *range(4901, 5001)]
    assert all(len(error.text) <= 2_000 for error in read_text("error " * 9_000).observed_errors)


# --- What a program found, in lines in which it asks for more -------------------------------------------------------
@cases("line, capability",
    (MACHETE, "8.6"),
    ("RuntimeError: not supported for the current GPU. Min capability: 75. Current capability: 70.", "7.0"),
    ("CUDA backend requires compute capability 5.0 or up, but found 3.5. Your GPU is not supported.", "3.5"),
    ("NotImplementedError: fused MoE requires SM120 or SM121, got SM90.", "9.0"),
    ("RuntimeError: the kernel requires SM120/SM121, current device is SM100", "10.0"),
    ("Flash attention only supports gpu architectures in [sm80, sm121]. Attempting to run on a sm 7.5 gpu.", "7.5"),
    ("ValueError: sparse attention supports compute capability 9.0; this tensor is on a (8, 6) device.", "8.6"),
)  # fmt: skip
def test_the_capability_that_was_found_is_that_of_the_gpu(line: str, capability: str) -> None:
    (gpu,) = gpus_in(line)
    assert (gpu.name, gpu.compute_capability) == (None, capability)


@every(
    ("The minimum required CUDA driver version is 12.0, but the installed CUDA driver version is 11.4.", None, "11.4"),
    ("Warp requires CUDA driver 12.0 or higher, but the current driver only supports CUDA 11.4", None, "11.4"),
    ("the feature requires GPU driver version >= 570.158.01, but found 550.54.15", "550.54.15", None),
)
def test_the_driver_that_was_found(line: str, release: str | None, cuda: str | None) -> None:
    assert read_text(line).driver == Driver(source="pasted text", release=release, cuda=cuda)


@every(
    ("RuntimeError: AutoSP requires PyTorch >= 2.9, found 2.7.1.", "2.7.1"),
    ("ValueError: fp8 attention requires PyTorch >= 2.11.0. Detected 2.9.1+cu128.", "2.9.1+cu128"),
    ("RuntimeError: Torch version must be at least 2.5 to use symmetric memory. Current version: 2.4.0", "2.4.0"),
)
def test_the_torch_that_was_found(line: str, version: str) -> None:
    assert torch_in(line).version == version


@every(
    "a k8s cluster with GPU nodes, CUDA 12", "K8s 1.29, GPU Operator", "driver 510, CUDA 11.6 on the GPU node",
    "GPU: ION cannon", "nvidia 340 is too old for this card",
)  # fmt: skip
def test_what_looks_like_an_old_model_is_none(line: str) -> None:
    assert not list(models(line))


@every(
    ("We run on a Dell PowerEdge T550 with two H100", ["H100"]),
    ("I have a ThinkPad T500 laptop with an RTX 3060", ["RTX 3060"]),
    ("our server has an NVIDIA A10, not the Apple A10 chip", ["NVIDIA A10"]),
    ("NVIDIA T550 Laptop GPU in a ThinkPad P14s", ["NVIDIA T550 Laptop GPU"]),
    ("Dell H100 node, my GPU is a T550", ["H100", "T550"]),
)
def test_a_computer_is_no_gpu(line: str, named: list[str]) -> None:
    assert [name for _, name in models(line)] == named
