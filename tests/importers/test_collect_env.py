"""torch's collect_env: a recorded report, and constructed ones for what one machine cannot show."""

import re
from collections.abc import Callable

from envcheck.importers import read_text
from envcheck.model.snapshot import Gpu, Library, Listing, Platform, Snapshot, Toolkit, Variables
from tests.every import cases, every
from tests.importers.pasting import environment_in, recorded, told, torch_in
from tests.known import Expected, known

H200 = recorded("h200_collect_env.txt")
OLD = recorded("constructed_first_collect_env.txt")
NEW_VLLM = recorded("constructed_vllm_collect_env.txt")
SOURCE = "pasted text"


def judged_facts(snapshot: Snapshot) -> tuple[object, ...]:
    """What rules see of a report, without the lines' numbers."""
    return (snapshot.platform, snapshot.driver, snapshot.gpus, snapshot.toolkits, snapshot.environments)


# --- a real report ------------------------------------------------------------------------------------------------
@cases("expected",
    {"platform": Platform(
        source=SOURCE, os="linux", distribution="ubuntu", distribution_version="24.04",
        distribution_title="Ubuntu 24.04.3 LTS", kernel_release="6.18.44-fc-v657-gpu", machine="x86_64",
        libc="glibc 2.39", cpu_model="Intel(R) Xeon(R) Processor", cpus=16, numa_nodes=1, virtualization="kvm")},
    {"driver.release": "580.159.04", "variables": None,  # CUDA_MODULE_LOADING was not set
     "gpus": Listing(items=(Gpu(source=SOURCE, label="pasted-0", index=0, name="NVIDIA H200"),), complete=True),
     "toolkits": Listing(items=(Toolkit(source=SOURCE, path="unknown folder", version="13.0.88", on_path=True),),
                         complete=False)},
    {"environment.key": SOURCE, "environment.why": SOURCE, "environment.judged": True, "environment.python": "3.12.3",
     "environment.distributions_complete": False, "torch.version": "2.11.0+cu130", "torch.cuda": "13.0",
     "torch.cpu_only": False, "torch.hip": None, "torch.gpu_available": True, "torch.cudnn": None},
    {"observed_errors.line": (1,), "disagreements": ()},
    ids=["platform", "machine", "environment", "a warning of Python"],
)  # fmt: skip
def test_a_recorded_report(expected: Expected) -> None:
    assert told(H200, expected) == expected


def test_the_packages_of_a_recorded_report() -> None:
    versions = {package.name: package.version for package in environment_in(H200).distributions or ()}
    assert len(versions) == 30
    assert (versions["nvidia-cudnn-cu13"], versions["torch-geometric"]) == ("9.19.0.56", "2.8.0.post1")
    assert "RuntimeWarning" in read_text(H200).observed_errors[0].text


def test_the_cudnn_it_lists_is_the_systems_and_never_the_frameworks() -> None:
    libraries = known(read_text(H200).libraries)
    assert len(libraries.items) == 8
    path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.14.0"
    assert libraries.items[0] == Library(source=SOURCE, path=path, family="cudnn", on_disk="9.14.0")
    assert torch_in(H200).cudnn is None


# --- the same report, as people paste it --------------------------------------------------------------------------
def bold_keys(text: str) -> str:
    return re.sub(r"^([A-Z][\w ]{3,40}):", r"**\1:**", text, flags=re.MULTILINE)


def without_colons(text: str) -> str:
    keys = "PyTorch version|Is CUDA available|Nvidia driver version|CUDA runtime version|Python platform"
    return re.sub(rf"^({keys}): ", r"\1 ", text, flags=re.MULTILINE)


def prefixed_by_ray(text: str) -> str:
    start = "\x1b[36m(RayTrainWorker pid=8711, ip=10.0.0.7)\x1b[0m "
    return "".join(f"{start}{line}" for line in text.splitlines(keepends=True))


PASTED_AS: dict[str, Callable[[str], str]] = {
    "quoted": lambda text: re.sub("^", "> ", text, flags=re.MULTILINE),
    "quoted twice": lambda text: re.sub("^", "> > ", text, flags=re.MULTILINE),
    "indented": lambda text: re.sub("^", "    ", text, flags=re.MULTILINE),
    "bold keys": bold_keys,
    "full-width colons": lambda text: text.replace(": ", "\uff1a"),
    "trailing blanks": lambda text: text.replace("\n", "   \n"),
    "Windows line ends": lambda text: text.replace("\n", "\r\n"),
    "a blank line between all": lambda text: text.replace("\n", "\n\n"),
    "no-break spaces": lambda text: text.replace(": ", ":\u00a0"),
    "without some colons": without_colons,
    "Ray's prefixes": prefixed_by_ray,
    "padded keys": lambda text: re.sub(r"^([A-Z][\w ]{3,40}):", r"\1          :", text, flags=re.MULTILINE),
    "Os": lambda text: text.replace("\nOS: ", "\nOs: "),
    "UTF-16 taken for UTF-8": lambda text: text.encode("utf-16").decode("utf-8", "replace"),
    "after wget": lambda text: (
        "$ wget https://example.org/collect_env.py\nSaving to: 'collect_env.py'\n100%[===>]\n" + text
    ),
    "without its first lines": lambda text: text.partition("Collecting environment information...\n")[2],
    "in a code block": lambda text: f"```text\n{text}\n```\n",
    "twice": lambda text: f"{text}\n{text}",
}


@every(PASTED_AS)
def test_the_report_is_read_however_it_is_pasted(way: str) -> None:
    assert judged_facts(read_text(PASTED_AS[way](H200))) == judged_facts(read_text(H200))


# --- constructed reports: other times, other systems --------------------------------------------------------------
def built(version: str, cuda: str, rocm: str = "N/A", more: str = "") -> str:
    return f"PyTorch version: {version}\nCUDA used to build PyTorch: {cuda}\nROCM used to build PyTorch: {rocm}\n{more}"


@cases("about, text, expected",
    ("a report of the first layout", OLD,
     {"gpus.items.name": ("TITAN Xp", "TITAN Xp"), "platform.distribution_version": "16.04",
      "driver.release": "410.79", "torch.version": "1.0.1.post2", "torch.cuda": "10.0.130",
      "torch.gpu_available": True, "environment.python": "3.6", "libraries.items.on_disk": ("7.4.2",)}),
    ("vLLM's layout with headers and padded keys", NEW_VLLM,
     {"gpus.items.index": (0, 1), "platform.machine": "aarch64", "driver.release": "580.126.09", "torch.cuda": "13.0",
      "variables": Variables(source=SOURCE, values={
          "CUDA_MODULE_LOADING": "LAZY", "NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0,1",
          "LD_LIBRARY_PATH": "/usr/local/cuda/lib64", "VLLM_API_KEY": "***"})}),
    ("without torch its fields are unknown and the package list decides",
     ("PyTorch version: N/A\nIs debug build: N/A\nCUDA used to build PyTorch: N/A\nROCM used to build PyTorch: N/A\n"
     "Is CUDA available: N/A\nGPU models and configuration: GPU 0: NVIDIA L4\nNvidia driver version: 535.86.10\n"
     "[pip3] torch==2.5.1+cu124\n"),
     {"torch.version": "2.5.1+cu124", "torch.cuda": None, "torch.cpu_only": None, "torch.gpu_available": None}),
    ("what could not be collected is unknown and not absent",
     ("PyTorch version: 2.4.0+cu121\nCUDA used to build PyTorch: 12.1\nIs CUDA available: True\n"
     "CUDA runtime version: Could not collect\nGPU models and configuration: Could not collect\n"
     "Nvidia driver version: Could not collect\ncuDNN version: Could not collect\nLibc version: N/A\n"),
     dict.fromkeys(("driver", "gpus", "toolkits", "libraries", "platform"))),
    # it stands where nvidia-smi and nvcc both failed, which says why of neither
    ("no CUDA is unknown, too",
     ("PyTorch version: 1.4.0\nCUDA used to build PyTorch: 10.1\nIs CUDA available: No\n"
     "CUDA runtime version: No CUDA\nGPU models and configuration: No CUDA\nNvidia driver version: No CUDA\n"),
     {"driver": None, "gpus": None, "toolkits": None, "torch.gpu_available": False}),
    ("a ROCm build names no GPU of NVIDIA",
     built("2.4.0+rocm6.1", "N/A", "6.1.40091-a8dbc0c19",
           "GPU models and configuration: AMD Instinct MI300X (gfx942:sramecc+:xnack-)\n"),
     {"gpus": None, "torch.hip": "6.1.40091"}),
    ("a GPU named without a list says nothing of others",
     "Is CUDA available: True\nGPU models and configuration: NVIDIA Tegra X1\nPyTorch version: 1.4.0\n",
     {"gpu.name": "NVIDIA Tegra X1", "gpus.complete": False}),
    ("a version of the driver for each GPU",
     "Nvidia driver version: 535.104.12\n535.104.12\n535.104.12\ncuDNN version: Could not collect\n",
     {"driver.release": "535.104.12"}),
    ("Windows and its number of the driver",
     ("PyTorch version: 2.2.2\nCUDA used to build PyTorch: Could not collect\nOS: Microsoft Windows 11 Education\n"
     "Python platform: Windows-10-10.0.22631-SP0\nNvidia driver version: 551.86\nLibc version: N/A\n"
     "cuDNN version: C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4\\bin\\cudnn_ops_train64_8.dll\n"),
     {"platform.os": "windows", "driver.release": "551.86", "libraries.items.on_disk": (None,)}),
    ("WSL is told by its kernel",
     ("Is CUDA available: True\nOS: Ubuntu 22.04.2 LTS (x86_64)\n"
     "Python platform: Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35\n"),
     {"platform.os": "linux", "platform.wsl": True, "platform.libc": None}),
    ("pip's and conda's torch may differ, and the imported one decides",
     ("PyTorch version: 2.1.0+cu118\nCUDA used to build PyTorch: 11.8\nIs CUDA available: True\n"
     "[pip3] torch==2.1.0+cu118\n[conda] pytorch   1.13.1   py3.10_cpu_0   pytorch\n"),
     {"torch.version": "2.1.0+cu118", "torch.cuda": "11.8", "torch.cpu_only": False,
      "environment.distributions.name": ("torch", "pytorch"),
      "environment.distributions.channel": ("pip", "conda")}),
)  # fmt: skip
def test_what_a_report_says(about: str, text: str, expected: Expected) -> None:
    assert told(text, expected) == expected


@every(
    (built("2.1.0+cpu", "Could not collect"), True), (built("2.7.0+cpu.cxx11.abi", "None"), True),
    (built("1.4.0", "None"), True), (built("2.2.2", "Could not collect"), True), (built("2.2.2", "12.1"), False),
    (built("2.4.0+rocm6.1", "N/A", "6.1.40091-a8dbc0c19"), False), (built("N/A", "N/A"), None),
    (built("2.8.0+xpu", "Could not collect", more="Is XPU available: True\n"), None),
    (built("2.8.0", "Could not collect", more="Is XPU available: True\n"), None),
    (built("2.6.0", "None", more="OS: macOS 15.3 (arm64)\n"), None), (built("2.6.0+gitabc", "N/A"), None),
)  # fmt: skip
def test_a_build_is_cpu_only_where_the_text_leaves_no_doubt(text: str, *, cpu_only: bool | None) -> None:
    snapshot = read_text(text + "Is CUDA available: False\n")
    assert torch_in(text + "Is CUDA available: False\n").cpu_only is cpu_only
    assert snapshot.driver is None


def test_mig_devices_stand_below_their_gpu() -> None:
    text = (
        "GPU models and configuration:\nGPU 0: NVIDIA A100-SXM4-80GB\n  MIG 3g.40gb     Device  0:\n"
        "  MIG 1g.10gb     Device  1:\nGPU 1: NVIDIA A100-SXM4-80GB\n\nNvidia driver version: 535.54.03\n"
    )
    first, second = known(read_text(text).gpus).items
    assert first.mig is not None
    assert [instance.name for instance in first.mig.instances or ()] == ["3g.40gb", "1g.10gb"]
    assert second.mig is None, "whether the other is in MIG mode is not said"


@every(
    ("Debian GNU/Linux 12 (bookworm) (x86_64)", "linux", "debian", "12"),
    ("CentOS Linux 7 (Core) (x86_64)", "linux", "centos", "7"),
    ("Red Hat Enterprise Linux 8.8 (Ootpa) (x86_64)", "linux", "rhel", "8.8"),
    ("Rocky Linux 9.3 (Blue Onyx) (x86_64)", "linux", "rocky", "9.3"),
    ("Amazon Linux 2 (x86_64)", "linux", "amzn", "2"),
    ("TencentOS Linux 3.1 (Core) (x86_64)", "linux", "tencentos", "3.1"),
    ("Arch Linux (x86_64)", "linux", "arch", None), ("Some New Linux 1 (x86_64)", "linux", None, None),
    ("Microsoft Windows 10 Pro (10.0.19045 64-bit)", "windows", None, None),
    ("macOS 13.2 (arm64)", "macos", None, None), ("Mac OSX 10.13.6", "macos", None, None),
)  # fmt: skip
def test_the_system_by_its_title(title: str, os: str, distribution: str | None, version: str | None) -> None:
    platform = read_text(f"Is CUDA available: True\nOS: {title}\n").platform or Platform()
    assert (platform.os, platform.distribution, platform.distribution_version) == (os, distribution, version)
