"""The rules about containers and about the GPUs that a program sees."""

from typing import Any

from envcheck.model.snapshot import ApiResult, MigInstance, Platform, Snapshot
from tests.every import cases, every
from tests.rules.machines import (
    DOCKER,
    NO_DEVICE,
    NO_DRIVER,
    answered,
    but,
    cause,
    check_of,
    container_without_gpu,
    driver,
    eight,
    gpus,
    h200,
    kernel,
    machine,
    nodes,
    not_loaded,
    on_the_bus,
    statuses,
    variables,
    without_gpu,
)

HIDDEN = driver(cuda_init=NO_DEVICE, cuda_devices=0)
LOST = driver(nvml=answered("nvmlInit", 999, "UNKNOWN"), cuda_init=NO_DEVICE, cuda_devices=0)
JETSON = Platform(os="linux", container="docker", tegra_release="36.4.0")
WSL = Platform(os="linux", container="docker", wsl=True)


def choosing(value: str, *, devices: int = 8, **more: str) -> Snapshot:
    """Eight GPUs, of which the variable chooses; CUDA enumerates so many."""
    return but(eight(), driver__cuda_devices=devices, variables=variables(CUDA_VISIBLE_DEVICES=value, **more))


CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("container-without-gpu", "nothing given", container_without_gpu(), ("fail",)),
    ("container-without-gpu", "nodes without libraries", machine(platform=DOCKER, driver=NO_DRIVER), ("fail",)),
    ("container-without-gpu", "libraries of the image, no node",
     machine(on_the_bus(h200(), "nvidia"), platform=DOCKER, kernel=kernel(0), driver=HIDDEN), ("fail",)),
    ("container-without-gpu", "given", machine(platform=DOCKER), ("pass",)),
    ("container-without-gpu", "no node is seen, but CUDA works", machine(platform=DOCKER, kernel=kernel(0)), ("pass",)),
    ("container-without-gpu", "no container", machine(), ()),
    ("container-without-gpu", "no GPU on the host", without_gpu(platform=DOCKER), ()),
    ("container-without-gpu", "WSL has other nodes", container_without_gpu(platform=WSL), ()),
    ("container-without-gpu", "a Jetson has other nodes", container_without_gpu(platform=JETSON), ()),
    ("container-without-gpu", "not known", container_without_gpu(kernel=kernel(0, device_nodes=None)), ("skipped",)),
    ("container-lost-gpu", "nodes, and an unknown error", machine(platform=DOCKER, driver=LOST), ("fail",)),
    ("container-lost-gpu", "no container", machine(driver=LOST), ()),
    ("container-lost-gpu", "no node", machine(platform=DOCKER, driver=LOST, kernel=kernel(0)), ()),
    ("container-lost-gpu", "NVML answers", machine(platform=DOCKER), ()),
    ("container-lost-gpu", "not known", machine(platform=DOCKER, driver=driver(nvml=None)), ("skipped",)),
    ("no-gpu-visible", "emptied", but(choosing("", devices=0), driver__cuda_init=NO_DEVICE), ("fail",)),
    ("no-gpu-visible", "minus one", choosing("-1", devices=0), ("fail",)),
    ("no-gpu-visible", "for no reason", machine(driver=HIDDEN), ("fail",)),
    ("no-gpu-visible", "some", choosing("2,3", devices=2), ("pass",)),
    ("no-gpu-visible", "the driver does not work", not_loaded(), ()),
    ("no-gpu-visible", "another failure", machine(driver=driver(cuda_init=answered("cuInit", 999), cuda_devices=None)),
     ()),
    ("no-gpu-visible", "no GPU", without_gpu(), ()),
    ("no-gpu-visible", "CUDA was not asked", machine(driver=driver(cuda_init=None, cuda_devices=None)), ("skipped",)),
    ("gpu-hidden", "2 of 8", choosing("4,5", devices=2), ("pass",)),
    ("gpu-hidden", "an index too high", choosing("0,8,1", devices=1), ("warn",)),
    ("gpu-hidden", "none is left", but(choosing("8", devices=0), driver__cuda_init=NO_DEVICE), ("fail",)),
    ("gpu-hidden", "a word", choosing("all", devices=0), ("fail",)),
    ("gpu-hidden", "an empty entry", choosing("0,,1", devices=1), ("warn",)),
    ("gpu-hidden", "the mark of an end", choosing("0,1,-1,2", devices=2), ("pass",)),
    ("gpu-hidden", "the beginning of a UUID", choosing("GPU-0e153503", devices=1), ("pass",)),
    ("gpu-hidden", "a UUID of another machine", choosing("GPU-ffffffff", devices=0), ("fail",)),
    ("gpu-hidden", "spaces", choosing("0, 1", devices=2), ("pass",)),
    ("gpu-hidden", "CUDA sees more than the list seems to leave", choosing("0,8,1", devices=3), ("pass",)),
    ("gpu-hidden", "hidden on purpose", choosing("", devices=0), ()),
    ("gpu-hidden", "variable not set", eight(), ()),
    ("gpu-hidden", "no NVML to compare with", but(choosing("0,8"), driver__nvml=None), ()),
    ("gpu-hidden", "the container got what was asked",
     but(eight(), variables=variables(NVIDIA_VISIBLE_DEVICES=str(h200(2).uuid))), ()),
    ("gpu-hidden", "the container did not get what was asked",
     but(eight(), variables=variables(NVIDIA_VISIBLE_DEVICES="GPU-ffffffff")), ("warn",)),
    ("gpu-hidden", "all", but(eight(), variables=variables(NVIDIA_VISIBLE_DEVICES="all")), ()),
    ("gpu-hidden", "void, as devices come by CDI", but(eight(), variables=variables(NVIDIA_VISIBLE_DEVICES="void")),
     ()),
]  # fmt: skip


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected


def mig(value: str, *instances: MigInstance, known: bool = True) -> Snapshot:
    gpu = h200(mig__enabled=True, mig__instances=instances if known else None)
    return but(machine(gpu), variables=variables(CUDA_VISIBLE_DEVICES=value))


@cases("snapshot, status",
    (mig("MIG-abc", MigInstance(uuid="MIG-abcdef")), "pass"), (mig("MIG-xyz", MigInstance(uuid="MIG-abcdef")), "fail"),
    (mig("MIG-xyz", known=False), "pass"), (mig("MIG-GPU-0e153500/1/0", MigInstance(uuid="MIG-abcdef")), "pass"),
)  # fmt: skip
def test_mig_devices_in_the_list(snapshot: Snapshot, status: str) -> None:
    assert check_of("gpu-hidden", but(snapshot, driver__cuda_devices=1 if status == "pass" else 0)).status == status


def test_how_many_are_visible() -> None:
    assert check_of("gpu-hidden", choosing("4,5", devices=2)).title == "2 of 8 GPUs visible"
    assert check_of("no-gpu-visible", choosing("4,5", devices=2)).title == "CUDA sees 2 devices"
    assert check_of("gpu-hidden", choosing("0,8,1", devices=1)).title.endswith("does not exist: 8")


@cases(
    "reason, snapshot",
    ("CUDA_VISIBLE_DEVICES is '-1'", choosing("-1", devices=0)),
    ("no permission to open /dev/nvidia0",
     machine(driver=HIDDEN, kernel=kernel(device_nodes=nodes(0, openable=False)))),
    ("compute mode of every GPU is prohibited", machine(h200(compute_mode="prohibited"), driver=HIDDEN)),
    ("enumerates no device", machine(driver=HIDDEN)),
)  # fmt: skip
def test_why_none_is_visible(reason: str, snapshot: Snapshot) -> None:
    found = check_of("no-gpu-visible", snapshot)
    assert reason in found.message
    assert found.fixes


@cases("runtime, words",
    ("docker", "docker run --gpus all"), ("kubernetes", "nvidia.com/gpu: 1"),
    ("podman", "--device nvidia.com/gpu=all"), ("apptainer", "--nv"), ("other", "docker run --gpus all"),
)  # fmt: skip
def test_the_fix_speaks_the_words_of_the_runtime(runtime: str, words: str) -> None:
    assert words in check_of("container-without-gpu", container_without_gpu(platform__container=runtime)).fixes[0].text


def test_what_the_container_asked_for_is_shown() -> None:
    found = check_of("container-without-gpu", container_without_gpu(variables=variables(NVIDIA_VISIBLE_DEVICES="void")))
    assert ("NVIDIA_VISIBLE_DEVICES", "void") in [(each.what, each.value) for each in found.evidence]


def test_gpus_of_other_containers_are_no_subjects() -> None:
    snapshot = but(eight(), platform=DOCKER, gpus=gpus(h200(0), on_the_bus(h200(1), "nvidia")), kernel=kernel(1))
    assert len(statuses("gpu-unsupported-by-driver", snapshot)) == 1


TWICE = "names the same GPU twice: "
MIXED = "mixes indices and UUIDs"


def refusing(value: str, **changes: Any) -> Snapshot:
    """Eight GPUs whose CUDA refuses the list, as the driver answers it."""
    refused = ApiResult(source="cuda", call="cuInit", code=101, name="CUDA_ERROR_INVALID_DEVICE")
    return but(choosing(value, devices=0, **changes), driver__cuda_init=refused, driver__cuda_devices=None)


@every(
    ("0,0", TWICE + "0"),
    ("3, 03", TWICE + "03"),
    (f"{h200(1).uuid},{str(h200(1).uuid)[:14]}", TWICE + str(h200(1).uuid)[:14]),
    (f"0,{h200(1).uuid}", MIXED),
    (f"{h200(1).uuid},0", MIXED),
    ("GPU-0e1535", "GPU-0e1535 matches several GPUs"),
    ("GPU-", "GPU- matches several GPUs"),
    ("MIG-GPU-0e153500-8466-b46e-c83c-8251dbfbcacd/1/0", "names a MIG device, but MIG is off"),
    ("MIG-22a6efe5-9c0a-5cfc-b2d3-7e4a80b3b4cf", "names a MIG device, but MIG is off"),
    ("1;2", "CUDA reads only the number in 1;2"),
    ("3,4", "CUDA refuses CUDA_VISIBLE_DEVICES=3,4"),
)
def test_a_list_that_cuda_refuses_comes_before_the_machine(value: str, title: str) -> None:
    machine = refusing(value)
    assert cause(machine) == "gpu-hidden"
    found = check_of("gpu-hidden", machine)
    assert found.title.endswith(title[-60:]), found.title
    assert "cuInit fails with 101" in found.message
    assert check_of("gpu-init-failed", machine).explained_by == found.id
    assert ("env", "-u", "CUDA_VISIBLE_DEVICES", "python") in [fix.command for fix in found.fixes]
    assert not [fix for fix in found.fixes if fix.who == "root"]


@every(
    "9", "all", "gpu-0e153500", " GPU-0e153500", "2147483648", "'0'", "GPU0", "cuda:0", "[0]", "99999999999999999999",
    ",0", "GPU-ffffffff", "x,0", "true",
)  # fmt: skip
def test_a_first_entry_that_selects_nothing_comes_before_the_machine(value: str) -> None:
    machine = but(choosing(value, devices=0), driver__cuda_init=NO_DEVICE)
    assert cause(machine) == "gpu-hidden"
    assert check_of("gpu-hidden", machine).status == "fail"
    assert check_of("no-gpu-visible", machine).explained_by


@cases("value", "-1", "-2", "-1,0", "none", "void", "", "NoDevFiles")
def test_a_list_that_hides_all_names_the_variable(value: str) -> None:
    machine = but(choosing(value, devices=0), driver__cuda_init=NO_DEVICE)
    assert cause(machine) == "no-gpu-visible"
    assert check_of("no-gpu-visible", machine).title == "CUDA_VISIBLE_DEVICES hides every GPU"


@every("0,", "0,,", "00", "0,1,", " 0 ", "0,0", "GPU-0e153500,", f"{h200(1).uuid}x", "GPU-0E153500")
def test_a_list_that_cuda_accepts_is_no_finding(value: str) -> None:
    seen = len([text for text in value.split(",") if text.strip()])
    assert check_of("gpu-hidden", choosing(value, devices=seen)).status == "pass"


def test_the_corrected_list_is_offered() -> None:
    assert check_of("gpu-hidden", refusing("2,2,1")).fixes[0].command == ("env", "CUDA_VISIBLE_DEVICES=2,1", "python")
    assert not [fix for fix in check_of("gpu-hidden", refusing("0,$(id),0")).fixes if "$" in " ".join(fix.command)]


def test_unsetting_the_list_of_a_batch_job_says_what_it_risks() -> None:
    inside = check_of("gpu-hidden", refusing("0,0", SLURM_JOB_GPUS="0")).fixes
    assert [fix.risk for fix in inside if fix.command[:2] == ("env", "-u")] != [""]
    outside = check_of("gpu-hidden", refusing("0,0")).fixes
    assert [fix.risk for fix in outside if fix.command[:2] == ("env", "-u")] == [""]


def test_a_wrong_list_is_found_where_nvml_does_not_answer() -> None:
    assert cause(but(refusing("1,1"), driver__nvml=None)) == "gpu-hidden"
