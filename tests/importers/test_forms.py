"""What follows from a text is the same in every form that people paste; what a text only asks causes nothing."""

from __future__ import annotations

from benchmarks.accuracy import judge
from envcheck.compat.load import load_matrix
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import framework_importance
from tests.every import every
from tests.importers.forms import FORMS
from tests.importers.layouts import CASES, LAYOUTS


@every(sorted(FORMS))
def test_the_cause_that_follows_from_a_form(name: str) -> None:
    text, wanted = FORMS[name]
    snapshot, checks = judge(text)
    weights = framework_importance(snapshot, load_matrix()) if snapshot else {}
    for importance in ({}, weights):
        cause = primary(checks, importance)
        assert (cause.rule if cause else "none") in wanted


@every((layout, case) for layout in LAYOUTS for case in CASES)
def test_the_cause_is_the_same_in_every_layout(layout: str, case: str) -> None:
    facts, wanted = CASES[case]
    _, checks = judge(LAYOUTS[layout](facts))
    cause = primary(checks)
    assert (cause.rule if cause else "none") == wanted


MODELS = {
    "8.9": ("4090 laptop", "4090RTX", "GeForce 4090", "4090 24GB", "RTX 6000 Ada", "A6000 Ada", "RTX 4080S"),
    "12.0": ("5090 32GB", "rtx5070ti", "RTX 6000 Pro Blackwell", "RTX PRO 6000", "RTX 5080 Founders Edition"),
    "12.1": ("DGX Spark", "GB10"),
    "11.0": ("Jetson AGX Thor",),
    "9.0": ("H100 NVL", "H100 PCIe", "H20", "GH200"),
    "8.7": ("Jetson Orin Nano", "Orin NX 16GB", "Jetson AGX Orin"),
    "8.6": ("A10", "A40", "RTX A5000", "RTX 3070 Mobile / Max-Q", "3060 Ti"),
    "7.5": ("T4", "Quadro RTX 3000 Mobile"),
    "6.1": ("P40", "GTX1080ti", "Titan X (Pascal)", "MX150"),
    "5.0": ("GeForce 940MX",),
    "3.7": ("K80",),
}
"""Compute capability → models as people write them."""


@every(
    (form, said, capability)
    for form in ("GPU: {}", "I have a {} and linux")
    for capability, names in MODELS.items()
    for said in names
)
def test_a_gpu_under_the_names_that_people_give_it(form: str, said: str, capability: str) -> None:
    snapshot, _ = judge(form.format(said))
    assert snapshot is not None
    assert snapshot.gpus is not None
    assert [gpu.compute_capability for gpu in snapshot.gpus.items] == [capability]


QUIET = (
    "Does torch 2.5.1 support the RTX 5090?",
    "If you use an RTX 5090 with torch 2.5.1+cu124 it fails.",
    "It was tested on RTX 5090 and torch 2.5.1.",
    "My colleague has an RTX 5090 and torch 2.5.1+cu124.",
    "flash-attn requires torch 2.5.1 and an RTX 5090 or newer",
    "I replaced my GTX 1080 by an RTX 4090, torch 2.8.0+cu128",
    "torch 2.4.0 before, torch 2.8.0 now, torchvision 0.23.0",
)


@every(QUIET)
def test_what_is_no_fact_about_this_machine_causes_nothing(text: str) -> None:
    _, checks = judge(text)
    assert primary(checks) is None


DOCUMENTATION = (
    "Requires a GPU with compute capability 7.0 or higher.",
    "This project requires an NVIDIA GPU with compute capability >= 8.0",
    "Requirements: Linux, Python 3.10+, CUDA 12.1+, PyTorch 2.4+",
    "FlashAttention-2 supports Ampere, Ada and Hopper GPUs; Turing is not supported yet.",
    "FP8 requires Hopper or Ada GPUs.",
    "bfloat16 is only supported on Ampere GPUs or newer.",
    "bf16 requires Ampere or newer",
    "You need an NVIDIA driver 525.60.13 or newer for CUDA 12.",
    "CUDA 12 requires driver version >= 525.60.13",
    "TensorFlow requires CUDA 11.2 and cuDNN 8.1",
    "TensorFlow >2.10 does not support GPU on native Windows.",
    "The minimum driver version is 450.80.02.",
    "Python 3.12 is not supported.",
    "PyTorch 2.x does not support Python 3.7.",
    "We recommend using the docker image with --gpus all.",
    'If you get "CUDA out of memory", reduce the batch size.',
    'If you see "no kernel image is available for execution on the device", set TORCH_CUDA_ARCH_LIST and rebuild.',
    "Note: if nvidia-smi is not found, install the driver first.",
    'In case of "ImportError: libcudnn.so.8: cannot open shared object file", install cuDNN 8.',
    "Make sure that CUDA_HOME is set and nvcc is in your PATH.",
    "Make sure the NVIDIA driver is installed and nvidia-smi works.",
    "Do not install the CPU-only version of PyTorch.",
    "The CPU version of torch will not work.",
    "Windows users: install Visual Studio 2019, newer versions are not supported by CUDA 11.",
    "Known issues: torch.compile is not supported on Windows.",
    "triton is not available on Windows",
    "xformers is optional and not required.",
    "bitsandbytes is not supported on macOS.",
    "Secure Boot must be disabled, otherwise the nvidia module cannot be loaded.",
    "The nouveau driver must be blacklisted.",
    "MIG is not supported on this instance type.",
    "Docker needs the NVIDIA Container Toolkit to be installed.",
    'You must install nvidia-container-toolkit, otherwise docker fails with "could not select device driver".',
    "WSL2: do not install a Linux driver inside WSL.",
    "- [ ] I have checked that CUDA is available (torch.cuda.is_available() returns True)",
    "- [x] I have read the FAQ: CUDA out of memory, no kernel image, driver too old",
    "If torch.cuda.is_available() returns False, reinstall torch.",
    'Error: "Torch not compiled with CUDA enabled" -> see FAQ #3',
    'FAQ: What does "undefined symbol" mean? It means that flash-attn was built for another torch.',
    "Supported GPUs: RTX 30xx and newer. GTX 10xx and older are not supported.",
    "Pascal GPUs are not supported since version 2.0",
    "CUDA 13 drops support for Maxwell, Pascal and Volta.",
    "This template requires at least 24 GB VRAM",
    "numpy must be < 2",
    "numpy 2 is not supported yet",
    "protobuf>=4 is incompatible",
    "glibc 2.28 or newer is required",
    "set NCCL_P2P_DISABLE=1 if training hangs on multiple GPUs",
    "Set --shm-size=8g or --ipc=host when you run the container.",
    "NVLink is not required.",
    "The driver must be at least as new as the CUDA toolkit.",
    "TensorRT engines are not portable across GPUs and versions.",
    "Engine files must be rebuilt when TensorRT is updated.",
    "ONNX Runtime 1.19 needs cuDNN 9.",
    "onnxruntime and onnxruntime-gpu must not be installed together.",
    "JetPack 6 requires L4T 36",
    "Blackwell GPUs (RTX 50 series) require CUDA 12.8 and PyTorch 2.7 or newer",
    "RTX 50xx needs the nightly build of PyTorch",
)
"""Sentences as documentation, forms for issues and answers to questions have them."""
CODE = (
    'print("CUDA out of memory, falling back to CPU")',
    '    if "out of memory" in str(e):',
    "logger.error('Torch not compiled with CUDA enabled')",
    'sys.exit("CUDA driver version is insufficient for CUDA runtime version")',
)
"""Lines of a program that would say so."""


@every((*DOCUMENTATION, *CODE))
def test_what_documentation_and_programs_would_say_causes_nothing(text: str) -> None:
    _, checks = judge(f"$ python train.py\n{text}\nThe GPU is an A100.")
    assert [check.rule for check in checks if check.status in ("fail", "warn")] == []
