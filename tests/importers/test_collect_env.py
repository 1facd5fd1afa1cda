"""torch's collect_env: a recorded report, and constructed ones for what one machine cannot show."""

from __future__ import annotations

import re
from collections.abc import Callable

from envcheck.importers import read_text
from envcheck.model.snapshot import Gpu, Library, Listing, Platform, Snapshot, Toolkit, Variables
from tests.every import every
from tests.importers.pasting import environment_in, gpus_in, recorded, release_in, torch_in

H200 = recorded("h200_collect_env.txt")


def judged_facts(snapshot: Snapshot) -> tuple[object, ...]:
    """What rules see of a report, without the lines' numbers."""
    return (snapshot.platform, snapshot.driver, snapshot.gpus, snapshot.toolkits, snapshot.environments)


# --- a real report ------------------------------------------------------------------------------------------------


def test_the_platform_of_a_recorded_report() -> None:
    assert read_text(H200).platform == Platform(
        source="pasted text",
        os="linux",
        distribution="ubuntu",
        distribution_version="24.04",
        distribution_title="Ubuntu 24.04.3 LTS",
        kernel_release="6.18.44-fc-v657-gpu",
        machine="x86_64",
        libc="glibc 2.39",
        cpu_model="Intel(R) Xeon(R) Processor",
        cpus=16,
        numa_nodes=1,
        virtualization="kvm",
    )


def test_the_machine_of_a_recorded_report() -> None:
    snapshot = read_text(H200)
    assert release_in(H200) == "580.159.04"
    gpu = Gpu(source="pasted text", label="pasted-0", index=0, name="NVIDIA H200")
    assert snapshot.gpus == Listing(items=(gpu,), complete=True)
    nvcc = Toolkit(source="pasted text", path="unknown folder", version="13.0.88", on_path=True)
    assert snapshot.toolkits == Listing(items=(nvcc,), complete=False)
    assert snapshot.variables is None, "CUDA_MODULE_LOADING was not set"


def test_the_environment_of_a_recorded_report() -> None:
    found = environment_in(H200)
    assert (found.key, found.why, found.judged, found.python) == ("pasted text", "pasted text", True, "3.12.3")
    assert not found.distributions_complete
    versions = {package.name: package.version for package in found.distributions or ()}
    assert len(versions) == 30
    assert (versions["nvidia-cudnn-cu13"], versions["torch-geometric"]) == ("9.19.0.56", "2.8.0.post1")
    torch = torch_in(H200)
    assert (torch.version, torch.cuda, torch.cpu_only, torch.hip) == ("2.11.0+cu130", "13.0", False, None)
    assert torch.gpu_available is True


def test_the_cudnn_it_lists_is_the_systems_and_never_the_frameworks() -> None:
    libraries = read_text(H200).libraries
    assert libraries is not None
    assert len(libraries.items) == 8
    assert libraries.items[0] == Library(
        source="pasted text", path="/usr/lib/x86_64-linux-gnu/libcudnn.so.9.14.0", family="cudnn", on_disk="9.14.0"
    )
    assert torch_in(H200).cudnn is None


def test_a_recorded_report_holds_one_warning_of_python_and_no_disagreement() -> None:
    snapshot = read_text(H200)
    assert [(error.line, "RuntimeWarning" in error.text) for error in snapshot.observed_errors] == [(1, True)]
    assert snapshot.disagreements == ()


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

OLD = recorded("constructed_first_collect_env.txt")


def test_a_report_of_the_first_layout() -> None:
    snapshot = read_text(OLD)
    assert [gpu.name for gpu in gpus_in(OLD)] == ["TITAN Xp", "TITAN Xp"]
    assert (snapshot.platform or Platform()).distribution_version == "16.04"
    assert release_in(OLD) == "410.79"
    torch = torch_in(OLD)
    assert (torch.version, torch.cuda, torch.gpu_available) == ("1.0.1.post2", "10.0.130", True)
    assert environment_in(OLD).python == "3.6"
    assert snapshot.libraries is not None
    assert [library.on_disk for library in snapshot.libraries.items] == ["7.4.2"]


NEW_VLLM = recorded("constructed_vllm_collect_env.txt")


def test_vllms_layout_with_headers_and_padded_keys() -> None:
    snapshot = read_text(NEW_VLLM)
    assert [gpu.index for gpu in gpus_in(NEW_VLLM)] == [0, 1]
    assert (snapshot.platform or Platform()).machine == "aarch64"
    assert release_in(NEW_VLLM) == "580.126.09"
    assert torch_in(NEW_VLLM).cuda == "13.0"
    assert snapshot.variables == Variables(
        source="pasted text",
        values={
            "CUDA_MODULE_LOADING": "LAZY",
            "NVIDIA_VISIBLE_DEVICES": "all",
            "CUDA_VISIBLE_DEVICES": "0,1",
            "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
            "VLLM_API_KEY": "***",
        },
    )


def test_without_torch_its_fields_are_unknown_and_the_package_list_decides() -> None:
    text = (
        "PyTorch version: N/A\nIs debug build: N/A\nCUDA used to build PyTorch: N/A\nROCM used to build PyTorch: N/A\n"
        "Is CUDA available: N/A\nGPU models and configuration: GPU 0: NVIDIA L4\nNvidia driver version: 535.86.10\n"
        "[pip3] torch==2.5.1+cu124\n"
    )
    torch = torch_in(text)
    assert (torch.version, torch.cuda, torch.cpu_only, torch.gpu_available) == ("2.5.1+cu124", None, None, None)


def test_what_could_not_be_collected_is_unknown_and_not_absent() -> None:
    text = (
        "PyTorch version: 2.4.0+cu121\nCUDA used to build PyTorch: 12.1\nIs CUDA available: True\n"
        "CUDA runtime version: Could not collect\nGPU models and configuration: Could not collect\n"
        "Nvidia driver version: Could not collect\ncuDNN version: Could not collect\nLibc version: N/A\n"
    )
    snapshot = read_text(text)
    assert (snapshot.driver, snapshot.gpus, snapshot.toolkits, snapshot.libraries, snapshot.platform) == (None,) * 5


def test_no_cuda_is_unknown_too() -> None:
    """It stands where nvidia-smi and nvcc both failed, which says why of neither."""
    text = (
        "PyTorch version: 1.4.0\nCUDA used to build PyTorch: 10.1\nIs CUDA available: No\n"
        "CUDA runtime version: No CUDA\nGPU models and configuration: No CUDA\nNvidia driver version: No CUDA\n"
    )
    snapshot = read_text(text)
    assert (snapshot.driver, snapshot.gpus, snapshot.toolkits) == (None, None, None)
    assert torch_in(text).gpu_available is False


def built(version: str, cuda: str, rocm: str = "N/A", more: str = "") -> str:
    return f"PyTorch version: {version}\nCUDA used to build PyTorch: {cuda}\nROCM used to build PyTorch: {rocm}\n{more}"


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


def test_a_rocm_build_names_no_nvidia_gpu() -> None:
    text = built("2.4.0+rocm6.1", "N/A", "6.1.40091-a8dbc0c19") + (
        "GPU models and configuration: AMD Instinct MI300X (gfx942:sramecc+:xnack-)\n"
    )
    assert read_text(text).gpus is None
    assert torch_in(text).hip == "6.1.40091"


def test_a_gpu_named_without_a_list_says_nothing_of_others() -> None:
    text = "Is CUDA available: True\nGPU models and configuration: NVIDIA Tegra X1\nPyTorch version: 1.4.0\n"
    gpus = read_text(text).gpus
    assert gpus is not None
    assert (gpus.items[0].name, gpus.complete) == ("NVIDIA Tegra X1", False)


def test_mig_devices_stand_below_their_gpu() -> None:
    text = (
        "GPU models and configuration:\nGPU 0: NVIDIA A100-SXM4-80GB\n  MIG 3g.40gb     Device  0:\n"
        "  MIG 1g.10gb     Device  1:\nGPU 1: NVIDIA A100-SXM4-80GB\n\nNvidia driver version: 535.54.03\n"
    )
    first, second = gpus_in(text)
    assert first.mig is not None
    assert [instance.name for instance in first.mig.instances or ()] == ["3g.40gb", "1g.10gb"]
    assert second.mig is None, "whether the other is in MIG mode is not said"


def test_a_driver_version_for_each_gpu() -> None:
    text = "Nvidia driver version: 535.104.12\n535.104.12\n535.104.12\ncuDNN version: Could not collect\n"
    assert release_in(text) == "535.104.12"


def test_windows_and_its_driver_number() -> None:
    text = (
        "PyTorch version: 2.2.2\nCUDA used to build PyTorch: Could not collect\nOS: Microsoft Windows 11 Education\n"
        "Python platform: Windows-10-10.0.22631-SP0\nNvidia driver version: 551.86\nLibc version: N/A\n"
        "cuDNN version: C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4\\bin\\cudnn_ops_train64_8.dll\n"
    )
    snapshot = read_text(text)
    assert (snapshot.platform or Platform()).os == "windows"
    assert release_in(text) == "551.86"
    assert snapshot.libraries is not None
    assert snapshot.libraries.items[0].on_disk is None


def test_wsl_is_told_by_its_kernel() -> None:
    text = (
        "Is CUDA available: True\nOS: Ubuntu 22.04.2 LTS (x86_64)\n"
        "Python platform: Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35\n"
    )
    platform = read_text(text).platform or Platform()
    assert (platform.os, platform.wsl, platform.libc) == ("linux", True, None)


@every(
    ("Debian GNU/Linux 12 (bookworm) (x86_64)", "linux", "debian", "12"),
    ("CentOS Linux 7 (Core) (x86_64)", "linux", "centos", "7"),
    ("Red Hat Enterprise Linux 8.8 (Ootpa) (x86_64)", "linux", "rhel", "8.8"),
    ("Rocky Linux 9.3 (Blue Onyx) (x86_64)", "linux", "rocky", "9.3"),
    ("Amazon Linux 2 (x86_64)", "linux", "amzn", "2"),
    ("TencentOS Linux 3.1 (Core) (x86_64)", "linux", "tencentos", "3.1"),
    ("Arch Linux (x86_64)", "linux", "arch", None),
    ("Some New Linux 1 (x86_64)", "linux", None, None),
    ("Microsoft Windows 10 Pro (10.0.19045 64-bit)", "windows", None, None),
    ("macOS 13.2 (arm64)", "macos", None, None),
    ("Mac OSX 10.13.6", "macos", None, None),
)
def test_the_system_by_its_title(title: str, os: str, distribution: str | None, version: str | None) -> None:
    platform = read_text(f"Is CUDA available: True\nOS: {title}\n").platform or Platform()
    assert (platform.os, platform.distribution, platform.distribution_version) == (os, distribution, version)


def test_pips_and_condas_torch_may_differ_and_the_imported_one_decides() -> None:
    text = (
        "PyTorch version: 2.1.0+cu118\nCUDA used to build PyTorch: 11.8\nIs CUDA available: True\n"
        "[pip3] torch==2.1.0+cu118\n[conda] pytorch   1.13.1   py3.10_cpu_0   pytorch\n"
    )
    torch = torch_in(text)
    assert (torch.version, torch.cuda, torch.cpu_only) == ("2.1.0+cu118", "11.8", False)
    assert {(package.name, package.channel) for package in environment_in(text).distributions or ()} == {
        ("torch", "pip"),
        ("pytorch", "conda"),
    }
