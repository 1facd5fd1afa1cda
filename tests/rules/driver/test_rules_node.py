"""The rules about GPUs, kernel module and driver, each with what it finds, passes, does not ask and cannot know."""

from typing import Any

from envcheck.model.snapshot import ApiResult, DeviceNode, Gpu, KernelLog, KernelMessage, Platform, ProbeRun, Snapshot
from tests.every import cases, every, tabled
from tests.rules.machines import (
    DOCKER,
    NO_DEVICE,
    NO_DRIVER,
    UBUNTU,
    answered,
    but,
    check_of,
    driver,
    eight,
    geforce,
    gpus,
    h200,
    judge,
    kernel,
    library,
    log,
    machine,
    nodes,
    not_loaded,
    on_the_bus,
    said,
    statuses,
    unloaded,
    variables,
    without_driver,
    without_gpu,
    xid,
)

WSL = Platform(source="procfs", os="linux", container="none", wsl=True)
JETSON = Platform(source="file /etc/nv_tegra_release", os="linux", container="none", wsl=False, tegra_release="36.4.0")
GTX_1080 = geforce("NVIDIA GeForce GTX 1080", "6.1", "10de:1b80")
RTX_5090 = geforce("NVIDIA GeForce RTX 5090", "12.0", "10de:2b85")


def running(gpu: Gpu, release: str, flavour: str = "open") -> Snapshot:
    """A GPU that the loaded driver does not list, being of the wrong age for it."""
    found = but(on_the_bus(gpu), name=gpu.name)
    return but(
        machine(found, kernel=kernel(0, release=release, nvidia__flavour=flavour)),
        driver=driver(release, cuda_init=NO_DEVICE, cuda_devices=0),
    )


HOST = but(UBUNTU, container="none")
NOT_IN_CUDA = h200(1, cuda_ordinal=None)


def unlisted(**changes: Any) -> Snapshot:
    """A host with a GPU that the kernel module holds and no library lists."""
    lost = but(on_the_bus(h200(1), "nvidia"), **changes)
    return machine(h200(), lost, platform=HOST, kernel=kernel(2), driver=driver(cuda_devices=1))


def hidden_from_cuda(**changes: Any) -> Snapshot:
    """A host with a GPU that NVML lists and CUDA does not."""
    return machine(h200(), but(NOT_IN_CUDA, **changes), platform=HOST, driver=driver(cuda_devices=1))


CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("no-nvidia-gpu", "none", without_gpu(), ("fail",)),
    ("no-nvidia-gpu", "one", machine(), ("pass",)),
    ("no-nvidia-gpu", "on the bus alone", without_driver(), ("pass",)),
    ("no-nvidia-gpu", "kept for a guest", without_gpu(gpus=gpus(on_the_bus(h200(), "vfio-pci"))), ("fail",)),
    ("no-nvidia-gpu", "not seen, not everywhere looked", without_gpu(gpus=gpus(complete=False)), ("unknown",)),
    ("no-nvidia-gpu", "nobody looked", Snapshot(), ("skipped",)),
    ("no-nvidia-gpu", "a Jetson whose CUDA answers",
     machine(platform=JETSON, gpus=gpus(complete=False), driver=driver(cuda_devices=1)), ("pass",)),
    ("no-nvidia-gpu", "a Jetson that nobody asked", machine(platform=JETSON, gpus=gpus(complete=False), driver=None),
     ("unknown",)),
    ("gpu-unsupported-by-driver", "dropped", running(GTX_1080, "595.58.03", "proprietary"), ("fail",)),
    ("gpu-unsupported-by-driver", "too new", running(RTX_5090, "550.54.14"), ("fail",)),
    ("gpu-unsupported-by-driver", "wrong flavour", running(RTX_5090, "580.65.06", "proprietary"), ("fail",)),
    ("gpu-unsupported-by-driver", "right flavour", running(RTX_5090, "580.65.06", "open"), ("pass",)),
    ("gpu-unsupported-by-driver", "the driver lists it", machine(GTX_1080, driver=driver("999.10")), ("pass",)),
    ("gpu-unsupported-by-driver", "no driver", without_driver(), ()),
    ("gpu-unsupported-by-driver", "capability not known",
     machine(h200(name="NVIDIA Something", compute_capability=None, pci_device_id=None)), ("skipped",)),
    ("driver-not-installed", "missing", without_driver(), ("fail",)),
    ("driver-not-installed", "there", machine(), ("pass",)),
    ("driver-not-installed", "in an odd place, but CUDA starts", machine(driver=driver(installed=False)), ("pass",)),
    ("driver-not-installed", "no GPU", without_gpu(), ()),
    ("driver-not-installed", "in a container", machine(platform=DOCKER, driver=NO_DRIVER), ()),
    ("driver-not-installed", "nobody looked", machine(driver=None), ("skipped",)),
    ("driver-not-loaded", "not loaded", not_loaded(), ("fail",)),
    ("driver-not-loaded", "loaded", machine(), ("pass",)),
    ("driver-not-loaded", "no driver to load", without_driver(), ()),
    ("driver-not-loaded", "WSL has none", machine(platform=WSL, kernel=unloaded()), ()),
    ("driver-not-loaded", "a Jetson has another", machine(platform=JETSON, kernel=unloaded()), ()),
    ("driver-not-loaded", "not known", machine(kernel=kernel(nvidia__loaded=None)), ("skipped",)),
    ("kernel-module-missing", "not built", not_loaded(kernel=unloaded(nvidia__built=False)), ("fail",)),
    ("kernel-module-missing", "built", not_loaded(), ("pass",)),
    ("kernel-module-missing", "loaded from elsewhere", machine(kernel=kernel(nvidia__built=False)), ()),
    ("kernel-module-missing", "a container", not_loaded(platform=DOCKER, kernel=unloaded(nvidia__built=False)), ()),
    ("kernel-module-missing", "not known", not_loaded(kernel=unloaded(nvidia__built=None)), ("skipped",)),
    ("nouveau-loaded", "holds it",
     not_loaded(kernel=unloaded(nouveau_loaded=True), gpus=gpus(on_the_bus(h200(), "nouveau"))), ("fail",)),
    ("nouveau-loaded", "nova holds it",
     not_loaded(kernel=unloaded(nova_loaded=True), gpus=gpus(on_the_bus(h200(), "nova-core"))), ("fail",)),
    ("nouveau-loaded", "loaded for nothing",
     not_loaded(kernel=unloaded(nouveau_loaded=True), gpus=gpus(on_the_bus(h200(), "nvidia"))), ("pass",)),
    ("nouveau-loaded", "an old display card beside",
     machine(h200(), on_the_bus(GTX_1080, "nouveau"), kernel=kernel(nouveau_loaded=True)), ("note",)),
    ("nouveau-loaded", "beside NVIDIA's, bound to nothing", machine(kernel=kernel(nouveau_loaded=True)), ()),
    ("nouveau-loaded", "no driver yet", without_driver(), ()),
    ("nouveau-loaded", "not known", not_loaded(kernel=unloaded(nouveau_loaded=None)), ("skipped",)),
    ("secure-boot-blocks-module", "likely", not_loaded(kernel=unloaded(secure_boot=True)), ("fail",)),
    ("secure-boot-blocks-module", "off", not_loaded(), ("pass",)),
    ("secure-boot-blocks-module", "on, and loaded", machine(kernel=kernel(secure_boot=True)), ()),
    ("secure-boot-blocks-module", "another hindrance",
     not_loaded(kernel=unloaded(secure_boot=True, nouveau_loaded=True)), ()),
    ("secure-boot-blocks-module", "forbidden by a file",
     not_loaded(kernel=unloaded(secure_boot=True, nvidia__blacklisted_by="/etc/modprobe.d/x.conf")), ()),
    ("secure-boot-blocks-module", "not known", not_loaded(kernel=unloaded(secure_boot=None)), ("skipped",)),
    ("driver-library-mismatch", "NVML says so", machine(driver=driver(nvml=answered("nvmlInit", 18))), ("fail",)),
    ("driver-library-mismatch", "CUDA says so", machine(driver=driver(cuda_init=answered("cuInit", 803))), ("fail",)),
    ("driver-library-mismatch", "the files say so, nobody asked",
     machine(driver=driver("550.107.02", nvml=None, cuda_init=None)), ("fail",)),
    ("driver-library-mismatch", "another copy lies about, the driver answers",
     machine(driver=driver(libraries__items=(library("libcuda.so.1", "535.104.05"),))), ("pass",)),
    ("driver-library-mismatch", "one release", machine(), ("pass",)),
    ("driver-library-mismatch", "nothing known", Snapshot(), ()),
    ("forward-compat-unsupported", "804", machine(driver=driver(cuda_init=answered("cuInit", 804))), ("fail",)),
    ("forward-compat-unsupported", "any other answer", machine(), ()),
    ("gpu-init-failed", "ok", machine(), ("pass",)),
    ("gpu-init-failed", "999", machine(driver=driver(cuda_init=answered("cuInit", 999))), ("fail",)),
    ("gpu-init-failed", "the count fails", machine(driver=driver(cuda_device_count=answered("cuDeviceGetCount", 802))),
     ("fail",)),
    ("gpu-init-failed", "NVML alone is no proof", machine(driver=driver(cuda_init=None)), ("skipped",)),
    ("gpu-init-failed", "no NVML, but CUDA", machine(h200(index=None), driver=driver(nvml=answered("nvmlInit", -1))),
     ("pass",)),
    ("gpu-init-failed", "no GPU to start", without_gpu(), ()),
    ("gpu-init-failed", "no GPU, and an answer that has another reason",
     without_gpu(driver=driver(cuda_init=answered("cuInit", 803))), ("fail",)),
    ("gpu-init-failed", "a GPU that the driver holds and does not list",
     machine(h200(), but(on_the_bus(h200(1), "nvidia"), minor=1), kernel=kernel(2)), ("fail",)),
    ("gpu-init-failed", "a GPU without device node in a container",
     machine(h200(), but(on_the_bus(h200(1), "nvidia"), minor=1), platform=DOCKER, kernel=kernel(1)), ("pass",)),
    *(
        ("gpu-init-failed", f"an unlisted GPU: {name}", snapshot, (status,))
        for name, snapshot, status in (
            ("of unknown number, on a host", unlisted(), "fail"),
            ("whose number has no node", but(unlisted(minor=1), kernel=kernel(1)), "pass"),
            ("in a container", but(unlisted(), platform=DOCKER), "pass"),
            ("that CUDA lacks in a container", but(hidden_from_cuda(), platform=DOCKER), "pass"),
            ("where nobody looked for a container", but(unlisted(), platform__container=None), "pass"),
            ("in a batch job", but(unlisted(), variables=variables(SLURM_JOB_ID="7")), "pass"),
            ("barred by permission", but(unlisted(), kernel__device_nodes=nodes(0, 1, openable=False)), "pass"),
            ("that the module is told to leave out", unlisted(excluded=True), "pass"),
            ("of another kernel driver", unlisted(kernel_driver="nouveau"), "pass"),
            ("of none", unlisted(kernel_driver=""), "pass"),
            ("that CUDA lacks", hidden_from_cuda(), "fail"),
            ("that CUDA and NVML count otherwise", machine(h200(), NOT_IN_CUDA, platform=HOST), "pass"),
            ("that a variable hides", but(hidden_from_cuda(), variables=variables(CUDA_VISIBLE_DEVICES="0")), "pass"),
            ("that MPS may hide", but(hidden_from_cuda(), variables=variables(CUDA_MPS_PIPE_DIRECTORY="/m")), "pass"),
            ("where variables were not read", but(hidden_from_cuda(), variables=None), "pass"),
            ("beside MIG", hidden_from_cuda(mig__enabled=True), "pass"),
            ("of a host of virtual GPUs", hidden_from_cuda(virtualization="host_vgpu"), "pass"),
            ("closed to programs", hidden_from_cuda(compute_mode="prohibited"), "pass"),
        )
    ),
    ("device-node-wrong", "an empty file",
     machine(driver=driver(cuda_init=NO_DEVICE),
       kernel__device_nodes=(DeviceNode(source="file /dev", path="/dev/nvidiactl", mode="-rw-r--r--"),)), ("fail",)),
    ("device-node-missing", "none, and CUDA starts", machine(kernel=kernel(0)), ()),
    ("device-node-missing", "none, and CUDA does not start",
     machine(driver=driver(cuda_init=NO_DEVICE), kernel=kernel(0)), ("fail",)),
    ("device-node-missing", "nobody looked", machine(driver=driver(cuda_init=NO_DEVICE), kernel__device_nodes=None),
     ("skipped",)),
    ("device-node-missing", "no module", not_loaded(), ()),
    ("gpu-init-failed", "a GPU kept for a guest",
     machine(h200(), but(on_the_bus(h200(1), "vfio-pci"), minor=1), kernel=kernel(2)), ("pass",)),
    ("gpu-lost", "NVML says so", machine(h200(errors=(answered("nvmlDeviceGetTemperature", 15),))), ("fail",)),
    ("gpu-lost", "Xid 79, and it is gone",
     machine(h200(0), kernel=kernel(log=log(xid(79, "GPU has fallen off the bus.", h200(3))))), ("fail",)),
    ("gpu-lost", "Xid 79, and it answers again",
     machine(kernel=kernel(log=log(xid(79, "GPU has fallen off the bus.", h200())))), ("warn",)),
    ("gpu-lost", "no line, no error", machine(), ("pass",)),
    ("gpu-lost", "fewer GPUs than slots is not loss", machine(h200(0), h200(2)), ("pass",)),
    ("gpu-lost", "nobody asked", machine(driver=None), ()),
    ("gpu-lost", "no GPU", without_gpu(), ()),
    ("gpu-firmware-timeout", "Xid 119, no answer",
     machine(kernel=kernel(log=log(xid(119, "Timeout waiting for RPC from GSP!", h200(5))))), ("fail",)),
    ("gpu-firmware-timeout", "Xid 120, and it answers", machine(kernel=kernel(log=log(xid(120, "GSP error", h200())))),
     ("warn",)),
    ("gpu-firmware-timeout", "other Xids", machine(kernel=kernel(log=log(xid(31, "MMU fault", h200())))), ("pass",)),
    ("gpu-firmware-timeout", "log not readable",
     machine(kernel=kernel(log=KernelLog(readable=False, why_not="no permission"))), ("skipped",)),
    ("gpu-firmware-timeout", "no GPU", without_gpu(), ()),
    ("gpu-needs-reset", "advice", machine(h200(recovery_action="gpu_reset")), ("fail",)),
    ("gpu-needs-reset", "an answer",
     machine(h200(recovery_action=None, errors=(answered("nvmlDeviceGetPowerUsage", 16),))), ("fail",)),
    ("gpu-needs-reset", "none", machine(), ("pass",)),
    ("gpu-needs-reset", "an older GPU", machine(GTX_1080), ()),
    ("gpu-needs-reset", "nobody asked", machine(h200(recovery_action=None)), ("skipped",)),
]  # fmt: skip


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected


def test_a_kernel_release_that_is_no_package_name_is_put_into_no_command() -> None:
    for release in ("6.8; rm -rf", "--yes", "x\x1b[31m", "a b"):
        platform = but(UBUNTU, kernel_release=release)
        found = check_of("kernel-module-missing", not_loaded(kernel=unloaded(nvidia__built=False), platform=platform))
        assert all(release not in word for fix in found.fixes for word in fix.command)


def test_a_forbidden_module_is_named_with_its_file() -> None:
    snapshot = not_loaded(kernel=unloaded(nvidia__blacklisted_by="/etc/modprobe.d/no-nvidia.conf"))
    found = check_of("driver-not-loaded", snapshot)
    assert "/etc/modprobe.d/no-nvidia.conf" in found.fixes[0].text
    assert ("loading blocked by", "/etc/modprobe.d/no-nvidia.conf") in [
        (each.what, each.value) for each in found.evidence
    ]


@tabled
def test_libraries_are_installed_in_the_release_of_the_loaded_module(
    distribution: str, commands: tuple[str, ...]
) -> None:
    like = {"ubuntu": ("debian",), "rocky": ("rhel", "fedora")}.get(distribution, ())
    platform = but(UBUNTU, distribution=distribution, distribution_like=like, machine="aarch64")
    snapshot = machine(
        on_the_bus(h200(), "nvidia"), platform=platform, driver=NO_DRIVER, kernel=kernel(1, release="535.261.03")
    )
    found = check_of("driver-not-installed", snapshot)
    assert found.title == "The driver's libraries are missing; its kernel module 535.261.03 is loaded"
    assert len(found.fixes) == len(commands)
    assert all(part in " ".join(fix.command) for part, fix in zip(commands, found.fixes, strict=True))


@cases("version", None, "", "550; reboot", "{release}", "550.54.14-evil")
def test_a_module_of_no_known_release_names_no_package(version: str | None) -> None:
    snapshot = machine(on_the_bus(h200(), "nvidia"), driver=NO_DRIVER, kernel=kernel(1, nvidia__version=version))
    found = check_of("driver-not-installed", snapshot)
    assert "kernel module" in found.title
    assert [fix.command for fix in found.fixes] == [("sudo", "ubuntu-drivers", "install")]


NUMBERS = {"nvidia": 195, "nvidiactl": 195, "nvidia-uvm": 508}


def with_nodes(start: ApiResult | None = None, **different: Any) -> Snapshot:
    """A machine whose device nodes are the driver's but for those that are named, ``_`` for ``-``."""
    numbers = {"nvidiactl": "195:255", "nvidia_uvm": "508:0", "nvidia0": "195:0", "nvidia_modeset": "195:254"}
    made = tuple(
        DeviceNode(
            source="file /dev",
            path=f"/dev/{name.replace('_', '-')}",
            minor=0 if name == "nvidia0" else None,
            **{"number": number, "mode": "crw-rw-rw-", "openable": True, **different.get(name, {})},
        )
        for name, number in numbers.items()
    )
    found = machine(kernel=kernel(device_nodes=made, device_numbers=NUMBERS))
    return but(found, driver=driver(cuda_init=start)) if start else found


UNKNOWN_ERROR, NONE_FOUND = answered("cuInit", 999), answered("cuInit", 100)


@cases(
    "snapshot, named",
    (with_nodes(UNKNOWN_ERROR, nvidia_uvm={"number": "240:0"}),
     "/dev/nvidia-uvm: device 240:0; the driver's has number 508:0"),
    (with_nodes(UNKNOWN_ERROR, nvidia_uvm={"number": "508:1"}),
     "/dev/nvidia-uvm: device 508:1; the driver's has number 508:0"),
    (with_nodes(NONE_FOUND, nvidia0={"number": "195:7"}), "/dev/nvidia0: device 195:7; the driver's has number 195:0"),
    (with_nodes(NONE_FOUND, nvidia0={"number": "1:3"}), "/dev/nvidia0: device 1:3; the driver's has number 195:0"),
    (with_nodes(NONE_FOUND, nvidiactl={"number": None, "mode": "-rw-r--r--"}),
     "/dev/nvidiactl: no character device (-rw-r--r--); the driver's has number 195:255"),
    (with_nodes(UNKNOWN_ERROR, nvidia_modeset={"number": "1:3"}), None),
    (with_nodes(UNKNOWN_ERROR, nvidia_uvm={"number": None}), None),
    (but(with_nodes(UNKNOWN_ERROR, nvidia_uvm={"number": "240:0"}), kernel__device_numbers=None), None),
    (with_nodes(UNKNOWN_ERROR), None),
    (with_nodes(nvidia_uvm={"number": "240:0"}), None),
    (with_nodes(answered("cuInit", 803), nvidia_uvm={"number": "240:0"}), None),
)  # fmt: skip
def test_a_node_that_is_not_the_drivers_device_is_named(snapshot: Snapshot, named: str | None) -> None:
    found = [check for check in judge(snapshot) if check.rule == "device-node-wrong" and check.status == "fail"]
    assert [f"{each.what}: {each.value}" for check in found for each in check.evidence[:1]] == [named] * bool(named)
    if named:
        commands = [fix.command for fix in found[0].fixes]
        assert commands == [("sudo", "rm", "-f", named.partition(":")[0]), ("sudo", "nvidia-modprobe", "-u", "-c=0")]
        assert check_of("gpu-init-failed", snapshot).explained_by == found[0].id


def test_a_container_gets_the_nodes_of_the_module_that_runs_when_it_is_started_anew() -> None:
    broken = with_nodes(UNKNOWN_ERROR, nvidia_uvm={"number": "240:0"})
    for container, told in (("docker", False), ("lxc", True)):
        found = check_of("device-node-wrong", but(broken, platform=but(DOCKER, container=container)))
        assert found.fixes[0].text.startswith("Restart the container")
        assert any("lxc.cgroup2" in fix.text for fix in found.fixes) is told
        assert not any("rm" in fix.command for fix in found.fixes)


def test_one_gpu_whose_node_leads_elsewhere_is_not_said_to_be_broken() -> None:
    made = tuple(
        DeviceNode(source="file /dev", path=path, minor=minor, number=number, mode="crw-rw-rw-", openable=True)
        for path, minor, number in (
            ("/dev/nvidiactl", None, "195:255"),
            ("/dev/nvidia-uvm", None, "508:0"),
            ("/dev/nvidia0", 0, "195:0"),
            ("/dev/nvidia1", 1, "195:0"),
        )
    )
    snapshot = but(unlisted(minor=1), kernel=kernel(2, device_nodes=made, device_numbers=NUMBERS))
    assert check_of("device-node-wrong", snapshot).status == "fail"
    assert check_of("gpu-init-failed", snapshot).status == "pass"


@tabled
@cases("platform", UBUNTU, DOCKER)
def test_missing_device_nodes_are_named(platform: Platform, there: tuple[str, ...], code: int, missing: str) -> None:
    made = tuple(DeviceNode(source="file /dev", path=path, openable=True) for path in there)
    snapshot = machine(
        platform=platform, driver=driver(cuda_init=answered("cuInit", code)), kernel=kernel(device_nodes=made)
    )
    named = [check for check in judge(snapshot) if check.rule == "device-node-missing"]
    if platform is DOCKER and "/dev/nvidia0" not in there:  # container-without-gpu tells it
        assert not named
        return
    assert [check.evidence[0].value for check in named] == [missing] * bool(missing)
    if not missing:
        return
    (found,) = named
    assert missing in found.title
    assert check_of("gpu-init-failed", snapshot).explained_by == found.id
    assert "sudo nvidia-modprobe -u -c=0" in [" ".join(fix.command) for fix in found.fixes]
    texts = " ".join(fix.text for fix in found.fixes)
    assert ("docker run --gpus all" in texts, f"--device {missing}" in texts) == (platform is DOCKER,) * 2


def test_one_dead_gpu_is_named_among_the_living() -> None:
    dead = but(on_the_bus(h200(3), "nvidia"), index=3, errors=(answered("nvmlDeviceGetHandleByIndex", 999, "UNKNOWN"),))
    snapshot = but(eight(), gpus=gpus(*(h200(n) for n in range(8) if n != 3), dead))
    found = check_of("gpu-init-failed", snapshot)
    assert (found.status, found.action) == ("fail", "reset")
    assert "GPU 3" in found.title
    assert "uncorrected-ecc" not in {each.rule for each in judge(snapshot) if each.subject.key == dead.key}


def test_nothing_more_is_asked_of_a_gpu_that_the_driver_does_not_list() -> None:
    assert {each.rule for each in judge(without_driver()) if each.subject.kind == "gpu"} <= {
        "gpu-unsupported-by-driver"
    }


@tabled
def test_the_recovery_that_the_driver_asks_for(advice: str, action: str) -> None:
    found = check_of("gpu-needs-reset", machine(h200(recovery_action=advice)))
    assert (found.status, found.action) == ("fail", action)
    assert (advice in found.fixes[0].text) == (action == "none")


@cases("path", "/dev/nvidia-uvm", "/dev/nvidiactl", "/dev/nvidia0")
def test_a_node_that_this_user_may_not_open_is_named(path: str) -> None:
    closed = tuple(but(node, openable=node.path != path) for node in nodes(0))
    started = answered("cuInit", 999, "CUDA_ERROR_UNKNOWN")
    found = check_of(
        "gpu-init-failed",
        machine(kernel=kernel(device_nodes=closed), driver=driver(cuda_init=started, cuda_devices=None)),
    )
    assert found.status == "fail"
    assert f"no permission to open {path}." in found.message
    assert "access" in found.fixes[0].text


def signed(text: str) -> Snapshot:
    """A module that Secure Boot does not let in, and what the kernel's log says of it."""
    return not_loaded(kernel=unloaded(secure_boot=True, log=log(KernelMessage(text=text))))


UNKNOWN = answered("cuInit", 999, "CUDA_ERROR_UNKNOWN")
NOT_STARTED = [f"NVRM: GPU 0000:1{number}:00.0: RmInitAdapter failed! (0x26:0x56:1474)" for number in (1, 2)]
COMPAT = ApiResult(call="cuInit", code=803, library="/usr/local/cuda/compat/libcuda.so.550.54.14")
TIMED_OUT = ProbeRun(name="cuda", status="timed-out", detail="no answer in 13 s", fills=("driver.cuda_init",))


@cases("rule, about, there, expected",
    ("no-nvidia-gpu", "the title", eight(), {"title": "8 x NVIDIA H200"}),
    ("gpu-init-failed", "the title", machine(), {"title": "550.54.14, supports up to CUDA 12.4; cuInit ok"}),
    ("driver-not-loaded", "the title", machine(), {"title": "Kernel module 550.54.14 loaded (open)"}),
    ("gpu-init-failed", "the title of a failure", machine(driver=driver(cuda_init=UNKNOWN)),
     {"title": "cuInit fails: 999 CUDA_ERROR_UNKNOWN"}),
    ("gpu-init-failed", "a module commonly lies behind it",
     machine(kernel=kernel(nvidia__uvm_loaded=False), driver__cuda_init=UNKNOWN),
     {"message": "…nvidia_uvm module is not loaded…"}),
    ("gpu-init-failed", "a device node commonly lies behind it",
     machine(kernel=kernel(device_nodes=nodes(0, openable=False)), driver__cuda_init=UNKNOWN),
     {"message": "…no permission to open /dev/nvidia0…"}),
    ("gpu-init-failed", "the kernel's log tells which did not start",
     but(unlisted(), kernel__log=log(*(KernelMessage(source="file /dev/kmsg", text=line) for line in NOT_STARTED))),
     {"title": "…0000:11:00.0…", "evidence": ("bound to nvidia, not listed", NOT_STARTED[0])}),
    ("gpu-init-failed", "what a crashed probe leaves open, and a cause explains",
     but(not_loaded(driver__cuda_init=None, driver__nvml=None), runs=(TIMED_OUT,)),
     {"status": "unknown", "explained_by": "driver-not-loaded@machine"}),
    ("secure-boot-blocks-module", "the log rejects the key",
     signed("Loading of module with unavailable key is rejected"), {"decided_by": "inferred", "confidence": "medium"}),
    ("secure-boot-blocks-module", "the log rejects the unsigned module",
     signed("Loading of unsigned module is rejected"), {"decided_by": "driver-answered", "confidence": "high"}),
    ("kernel-module-missing", "it was built for another kernel",
     not_loaded(kernel=unloaded(nvidia__built=False, nvidia__built_for=("6.8.0-40-generic",))),
     {"message": "…6.8.0-40-generic…", "fix": "sudo apt-get install linux-headers-6.8.0-45-generic"}),
    ("driver-library-mismatch", "a container's own package for forward compatibility",
     machine(platform=DOCKER, driver=driver(cuda_init=COMPAT)), {"text": "…compat…"}),
    ("gpu-init-failed", "in a container its filter is tried first",
     machine(platform=DOCKER, driver=driver(cuda_init=answered("cuInit", 304))), {"text": "…seccomp…"}),
    ("driver-library-mismatch", "in a container it is the image's fault",
     machine(platform=DOCKER, driver=driver(nvml=answered("nvmlInit", 18))), {"text": "…image…", "action": "none"}),
)  # fmt: skip
def test_what_rules_say(rule: str, about: str, there: Snapshot, expected: dict[str, Any]) -> None:
    assert said(rule, there, expected) == expected
