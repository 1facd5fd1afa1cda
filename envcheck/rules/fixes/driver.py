"""Fixes for drivers, GPUs and containers, with the commands of the distribution that was found."""

from __future__ import annotations

from typing import Literal

from envcheck.model.checks import Fix
from envcheck.model.snapshot import Gpu
from envcheck.rules.api import Facts
from envcheck.rules.fixes.install import in_steps
from envcheck.text.lazy import lazy_pattern

DRIVER_PAGE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
DOWNLOAD_PAGE = "https://www.nvidia.com/drivers"

Family = Literal["ubuntu", "debian", "fedora", "suse", "other"]

_REBOOT_RISK = "ends everything that runs on this machine"
_RELEASE = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._+~-]{0,99}")
_NUMBERS = lazy_pattern(r"[0-9]{3}(?:\.[0-9]{1,4}){1,2}")  # A driver's release
_MACHINES = ("x86_64", "aarch64")
_BUS_ID = lazy_pattern(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

_INSTALLERS: dict[Family, str] = {"ubuntu": "apt-get", "debian": "apt-get", "fedora": "dnf", "suse": "zypper"}


def family(facts: Facts) -> Family:
    """The distribution's family, named after its package tools."""
    names = (facts.platform.distribution or "", *facts.platform.distribution_like)
    other: Family = "suse" if any("sles" in name for name in names) else "other"
    return next((known for known in _INSTALLERS if any(known in name for name in names)), other)


def install_command(facts: Facts, *packages: str) -> tuple[str, ...]:
    """The distribution's command that installs packages; empty where it is unknown."""
    manager = _INSTALLERS.get(family(facts))
    return ("sudo", manager, "install", *packages) if manager else ()


def install_libraries(facts: Facts) -> tuple[Fix, ...]:
    """Install the libraries of the release of the loaded kernel module; none where no module, or no release, is known.

    Any other release would not match the module, so a package that brings the distribution's newest is no fix.
    """
    release = (facts.module.version if facts.module.loaded else None) or ""
    if not _NUMBERS.fullmatch(release):
        return ()
    machine = facts.platform.machine if facts.platform.machine in _MACHINES else _MACHINES[0]
    words = {"release": release, "branch": release.partition(".")[0], "machine": machine}
    text = f"Install the driver's libraries of the loaded kernel module's release, {release}"
    installer = f"If no repository has release {release}: use NVIDIA's installer of that release ({DOWNLOAD_PAGE})"
    rows = {str(row.family): row for row in facts.matrix.driver_libraries}
    return tuple(
        Fix(task, command=tuple(part.format_map(words) for part in row.command), who="root")
        for task, row in ((text, rows.get(family(facts))), (installer, rows.get("any")))
        if row
    )


def update_driver(facts: Facts, wanted: str = "") -> tuple[Fix, ...]:
    """Update the driver; ``wanted`` is the required bound as a relation writes it."""
    return install_driver(facts, f"Update the NVIDIA driver{f' ({wanted})' if wanted else ''}", new=False)


def install_driver(facts: Facts, task: str = "Install the NVIDIA driver", *, new: bool = True) -> tuple[Fix, ...]:
    """Install the driver, or another one where none is ``new``."""
    if facts.driver_os in ("windows", "wsl"):
        inside = "; install no Linux driver inside WSL" if facts.driver_os == "wsl" else ""
        return (Fix(f"{task} in Windows, from {DOWNLOAD_PAGE}{inside}", who="root"),)
    if facts.in_container:
        return (Fix(f"{task} on the host of this container", who="cluster-admin", risk=_REBOOT_RISK),)
    risk = "needs a restart of the machine, which ends everything that runs on it"
    if family(facts) == "ubuntu":
        return (Fix(task, command=("sudo", "ubuntu-drivers", "install"), who="root", risk=risk),)
    if family(facts) == "debian" and new:
        text = f"{task} (from the non-free component)"
        return (Fix(text, command=install_command(facts, "nvidia-driver"), who="root", risk=risk),)
    return (Fix(f"{task}, as NVIDIA describes for this distribution: {DRIVER_PAGE}", who="root", risk=risk),)


REBOOT = (Fix("Restart the machine", who="root", risk=_REBOOT_RISK),)


def reset(gpu: Gpu | None) -> Fix:
    """Reset one GPU, by its PCI bus id where that is known."""
    return Fix(
        f"Stop what uses the GPU, then reset it: {' '.join(('nvidia-smi', '--gpu-reset', *smi_selector(gpu)))}",
        who="root",
        risk="ends every process on the GPU; GPUs that share NVLinks or an NVSwitch must be reset together",
    )


def smi_selector(gpu: Gpu | None) -> tuple[str, ...]:
    """The nvidia-smi option that selects this GPU by its PCI bus id, else by its index; none where neither is known."""
    bus_id = gpu.pci_bus_id if gpu else None
    if gpu and gpu.index is not None and not bus_id:
        return ("-i", str(gpu.index))
    return ("-i", bus_id) if bus_id and _BUS_ID.fullmatch(bus_id) else ()


COOLING = Fix("Check fans, air flow and room temperature", who="cluster-admin")
SUPPLY = Fix("Check the power supplies, their redundancy mode and the GPU's power cables", who="cluster-admin")


def restore_power_limit(gpu: Gpu, watts: float) -> Fix:
    command = ("sudo", "nvidia-smi", *smi_selector(gpu), "-pl", f"{watts:.0f}")
    risk = "more heat and power; the limit may have been lowered on purpose"
    return Fix("Restore the default power limit", command=command, who="root", risk=risk)


READ_KERNEL_LOG = Fix(
    "Look for the reason in the kernel log", command=("sudo", "dmesg", "--level=err,warn"), who="root"
)
"""It often has the reason for an error that the driver does not explain."""


def replace(gpu: Gpu | None) -> Fix:
    """Have one GPU replaced, by its serial number where that is known."""
    serial = f", serial number {gpu.serial}" if gpu and gpu.serial else ""
    return Fix(
        f"Take the GPU out of service and have it replaced{serial}",
        who="cluster-admin",
        risk="the machine must be drained and powered off",
    )


def load_module(facts: Facts) -> tuple[Fix, ...]:
    """Load the kernel module, or remove what blocks it."""
    if facts.in_container:
        return (Fix("Load the NVIDIA kernel module on the host of this container", who="cluster-admin"),)
    load = Fix(
        "Load the kernel module; the error says why it fails", command=("sudo", "modprobe", "nvidia"), who="root"
    )
    text = f"Remove the line that forbids the nvidia module from {facts.module.blacklisted_by}, and restart"
    return (*((Fix(text, who="root", risk=_REBOOT_RISK),) if facts.module.blacklisted_by else ()), load)


def make_device_nodes(facts: Facts, *, on_host: bool = False) -> Fix:
    """Load the modules and create their device nodes, here or on the host of this container."""
    minors = sorted({gpu.minor for gpu in facts.own_gpus if gpu.minor is not None} or {0})
    command = ("sudo", "nvidia-modprobe", "-u", *(f"-c={minor}" for minor in minors))
    if on_host:
        return Fix("If the host has no such node either, create it there first", command=command, who="cluster-admin")
    return Fix("Load the modules and create the device nodes", command=command, who="root")


def build_module(facts: Facts) -> tuple[Fix, ...]:
    """Build the kernel module for the running kernel."""
    release = facts.platform.kernel_release
    if family(facts) in ("ubuntu", "debian") and release and _RELEASE.fullmatch(release):
        headers = install_command(facts, f"linux-headers-{release}")
        install = Fix("Install the headers of the running kernel", command=headers, who="root")
        build = Fix("Build the module for it", command=("sudo", "dkms", "autoinstall"), who="root")
        return in_steps((install, build, *load_module(facts)))
    if family(facts) == "fedora":
        text = "Build the module for the running kernel (drivers packaged as akmod)"
        return in_steps((Fix(text, command=("sudo", "akmods", "--force"), who="root"), *load_module(facts)))
    text = "Build the module for the running kernel, or start a kernel for which it was built"
    return (Fix(f"{text}: {DRIVER_PAGE}", who="root"),)


_IN_BUILD = lazy_pattern(r"\bdocker[ -]build\b")


def give_gpu_to_container(facts: Facts) -> tuple[Fix, ...]:
    """Start the container with GPUs, with the options of the runtime that was found."""
    if _IN_BUILD.search(facts.platform.container_evidence or ""):
        move = Fix("Move what needs a GPU from the build of the image to the start of its containers")
        text = "Make nvidia the default runtime of Docker, whose classic builder then gives builds the GPUs"
        configure = ("sudo", "nvidia-ctk", "runtime", "configure", "--runtime=docker", "--set-as-default")
        return (move, Fix(text, command=configure, who="root"))
    texts = {
        "kubernetes": "Ask for GPUs in the pod's resources: limits: nvidia.com/gpu: 1",
        "podman": "Start the container with --device nvidia.com/gpu=all (NVIDIA Container Toolkit with CDI)",
        "apptainer": "Start the container with --nv",
        "lxc": "Give the container the GPU and the driver's libraries: nvidia.runtime=true and a gpu device",
    }
    docker = "Start the container with its GPUs: docker run --gpus all (needs the NVIDIA Container Toolkit on the host)"
    return (Fix(texts.get(facts.platform.container or "", docker)),)


def start_fabric_manager(facts: Facts) -> tuple[Fix, ...]:
    """Start the fabric manager, on the system that must run it."""
    fabric = facts.snapshot.fabric
    guest = facts.platform.virtualization not in (None, "", "none") and not (fabric and fabric.nvswitches)
    if facts.in_container or guest:
        where = "host of this container" if facts.in_container else "host (or service machine) of this guest"
        text = f"Have the NVIDIA fabric manager started on the {where}, in the driver's release"
        return (Fix(text, who="cluster-admin"),)
    release = facts.driver.release
    same = f" {release}" if release else " of the driver"
    text = f"Start the fabric manager; its release must be exactly the driver's ({release or 'see nvidia-smi'})"
    start = Fix(text, command=("sudo", "systemctl", "enable", "--now", "nvidia-fabricmanager"), who="root")
    missing = f"If it is missing or refuses to start, install the nvidia-fabricmanager package{same}"
    return (start, Fix(missing, who="root"))


DROP_COMPAT_LIBRARY = (
    Fix(
        "Take the forward-compatibility libcuda (in a folder named compat) off the loader's path, or use an image or a "
        "build for a CUDA version that the driver supports"
    ),
)
