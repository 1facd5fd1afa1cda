"""torch's collect_env: a recorded report, and constructed ones for what one machine cannot show."""

import re
from collections.abc import Callable

from envcheck.importers import read_text
from envcheck.model.snapshot import Gpu, Library, Listing, Platform, Snapshot, Toolkit
from tests.every import cases, every
from tests.importers.pasting import environment_in, recorded, told, torch_in
from tests.known import Expected, known

H200 = recorded("h200_collect_env.txt")
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


def test_mig_devices_stand_below_their_gpu() -> None:
    text = (
        "GPU models and configuration:\nGPU 0: NVIDIA A100-SXM4-80GB\n  MIG 3g.40gb     Device  0:\n"
        "  MIG 1g.10gb     Device  1:\nGPU 1: NVIDIA A100-SXM4-80GB\n\nNvidia driver version: 535.54.03\n"
    )
    first, second = known(read_text(text).gpus).items
    assert first.mig is not None
    assert [instance.name for instance in first.mig.instances or ()] == ["3g.40gb", "1g.10gb"]
    assert second.mig is None, "whether the other is in MIG mode is not said"
