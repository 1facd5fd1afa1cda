"""GPUs in containers: missing, lost, hindered by libraries in the image, or not offered by the host."""

from __future__ import annotations

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import ContainerHost, DriverLibrary, Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, if_known, note, passed, rule
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.variables import setting_evidence
from envcheck.rules.fixes import driver as fixes
from envcheck.rules.fixes.driver import family, install_command
from envcheck.rules.messages.observed import NOT_LOADABLE, call_evidence, refusals, tells_of
from envcheck.text.lazy import lazy_pattern

_NVML_UNKNOWN = 999


def _could_have_gpus(_subject: Snapshot, facts: Facts) -> bool:
    """Whether this is a container with GPUs as /dev/nvidiaN, on a machine that may have some."""
    return facts.in_container and facts.uses_linux_driver and facts.may_have_gpus


def _asked_for_none(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The finding in a text whose command asks for no GPU, and whose program finds none."""
    if not facts.platform.started_without_gpu:
        return None
    # What programs say in a container without a GPU.
    if not facts.finds_no_gpu and not tells_of(facts, "driver-not-installed", "no-gpu-visible"):
        return None
    return failure(
        message="The command that starts it asks for none.",
        evidence=(evidence_of("container", facts.platform, "container_evidence"),),
    )


@rule(
    layer="container",
    needs=("kernel.device_nodes",),
    arises=_could_have_gpus,
    proof=_asked_for_none,
    remedy=fixes.give_gpu_to_container,
)
def container_without_gpu(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The container was started without a GPU."""
    nodes, driver = facts.gpu_nodes or (), facts.driver
    container = evidence_of("container", facts.platform, "container")
    # Libcuda is missing and cannot be loaded, while other driver libraries exist.
    real = [library for library in items_in(driver.libraries) if library.kind == "driver"]
    refused = driver.cuda_init is not None and driver.cuda_init.code == NOT_LOADABLE
    if nodes and refused and real and not any("libcuda.so" in library.path for library in real):
        return _without_cuda(container, real[0], facts)
    if facts.cuda_answers or (nodes and driver.installed is not False):
        return passed(f"The container has {plural(len(nodes), 'GPU')}", container)
    asked, text = facts.variable("NVIDIA_VISIBLE_DEVICES"), "The GPU's device nodes exist, but the libraries do not."
    return failure(
        title="The container has no driver libraries" if nodes else "",
        message=text if nodes else "It has no device node of a GPU.",
        evidence=(
            container,
            Evidence("GPU device nodes", str(len(nodes)), "/dev"),
            Evidence("NVIDIA_VISIBLE_DEVICES", asked, "environment") if asked is not None else None,
            if_known("driver libraries", driver, "installed"),
        ),
    )


_CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"


def _without_cuda(container: Evidence, there: DriverLibrary, facts: Facts) -> Outcome:
    started, asked = facts.driver.cuda_init, facts.variable(_CAPABILITIES)
    text = "Start the container with the driver capabilities for CUDA: "
    ways = {
        "kubernetes": "set NVIDIA_DRIVER_CAPABILITIES=compute,utility in the container's env",
        "apptainer": "--nv, with NVIDIA_DRIVER_CAPABILITIES=compute,utility where --nvccli is used",
    }
    other = "-e NVIDIA_DRIVER_CAPABILITIES=compute,utility (or ENV in the image)"
    return failure(
        title="The container has the driver's utilities, but not CUDA",
        message="Device nodes and other driver libraries exist, but libcuda does not.",
        evidence=(
            container,
            setting_evidence(_CAPABILITIES, asked) if asked is not None else None,
            call_evidence(started) if started else None,
            Evidence("present", there.path, there.source),
        ),
        decided_by="driver-answered",
        fixes=(Fix(text + ways.get(container.value, other)),),
    )


@rule(layer="container", decided_by="driver-answered", needs=("driver.nvml",), arises=_could_have_gpus)
def container_lost_gpu(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The container lost access to its GPU."""
    nvml, nodes = facts.driver.nvml, facts.gpu_nodes
    if nvml is None or nvml.code != _NVML_UNKNOWN or not nodes or facts.cuda_answers:
        return None
    return failure(
        message="The device nodes exist, but cannot be opened: the container's device rules are gone.",
        evidence=(call_evidence(nvml), Evidence("device nodes", ", ".join(node.path for node in nodes), "/dev")),
    )


_INSTALL_PAGE = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"


def _runs_containers(_subject: Snapshot, facts: Facts) -> bool:
    """Whether this is a host with a driver and a container engine."""
    host = facts.platform.container_host
    return bool(not facts.in_container and host and host.engines and (facts.driver.installed or facts.on_tegra))


_CDI = lazy_pattern(r"\bCDI\b|nvidia\.com/gpu=")
_SPECIFY = Fix(
    "Write a CDI specification of the GPUs",
    command=("sudo", "nvidia-ctk", "cdi", "generate", "--output=/etc/cdi/nvidia.yaml"),
    who="root",
)


def _install_and_connect(facts: Facts) -> tuple[Fix, ...]:
    host = facts.platform.container_host
    if host and host.toolkit:
        return _connect(host)
    # The packages are in NVIDIA's repository; the page explains how to add it.
    text = f"Install the NVIDIA Container Toolkit on the host, from NVIDIA's repository: {_INSTALL_PAGE}"
    install = Fix(text, command=install_command(facts, "nvidia-container-toolkit"), who="root")
    if host is None and any(_CDI.search(error.text) for error in facts.snapshot.observed_errors):
        return (_SPECIFY, install)
    return (install, *_connect(host or ContainerHost()))


@rule(
    layer="container", needs=("platform.container_host.toolkit",), arises=_runs_containers, remedy=_install_and_connect
)
def container_toolkit_missing(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The NVIDIA Container Toolkit is missing: containers get no GPU."""
    host = facts.platform.container_host or ContainerHost()
    evidence = [evidence_of("container engines", host, "engines"), evidence_of("toolkit", host, "toolkit")]
    dockers = [path for path in host.engines or () if path.endswith("/docker")]
    hook = any(path.endswith(("-runtime-hook", "/nvidia-container-toolkit")) for path in host.toolkit or ())
    fixes: tuple[Fix, ...] = (_NO_SNAP,)
    if not host.toolkit and not host.cdi:
        title, text = "The NVIDIA Container Toolkit is not installed", "Containers started here get no GPU."
        fixes = _install_and_connect(facts)
    elif dockers and all(path.startswith("/snap/") for path in dockers):
        title = "Docker is installed as a snap, which cannot use the host's toolkit"
        text = "The snap cannot see the host's toolkit or its hook: `docker run --gpus` fails."
    elif facts.on_tegra and host.mounts_missing:
        title = "The mount lists of the container runtime name missing files"
        text = "Containers start without the missing files, and without an error."
        evidence.append(evidence_of("missing", host, "mounts_missing"))
        fixes = (Fix("Reinstall this L4T release's packages nvidia-l4t-core and nvidia-container", who="root"),)
    elif facts.on_tegra and host.mount_lists == ():
        title, text = "The container runtime has no mount lists", "Containers started here get no L4T libraries."
        evidence.append(evidence_of("mount lists", host, "mount_lists"))
        fixes = (Fix("Install their package", ("sudo", "apt-get", "install", "nvidia-container"), "root"),)
    elif not (hook or host.cdi or any("nvidia" in name for name in host.runtimes or ())):
        title = "No container engine uses the NVIDIA Container Toolkit"
        text = "The toolkit is installed, but no hook, Docker runtime or CDI specification uses it."
        fixes = _connect(host)
    else:
        return passed("The NVIDIA Container Toolkit is installed and connected", *evidence)
    return note(title=title, message=text, evidence=tuple(evidence), fixes=fixes)


_NO_SNAP = Fix(
    "Remove the snap, and install Docker from Docker's or the distribution's packages",
    command=("sudo", "snap", "remove", "docker"),
    who="root",
    risk="removes its containers, images and volumes (a snapshot of them is kept for a month)",
)


def _connect(host: ContainerHost) -> tuple[Fix, ...]:
    if host.engines and not any(path.endswith("/docker") for path in host.engines or ()):
        return (_SPECIFY,)
    risk = "restarting Docker stops running containers (unless live-restore is on)"
    configure = ("sudo", "nvidia-ctk", "runtime", "configure", "--runtime=docker")
    return (
        Fix("Register the runtime with Docker", command=configure, who="root"),
        Fix("Then restart Docker", command=("sudo", "systemctl", "restart", "docker"), who="root", risk=risk),
    )


_OWNER = {"ubuntu": ("dpkg", "-S"), "debian": ("dpkg", "-S"), "fedora": ("rpm", "-qf"), "suse": ("rpm", "-qf")}
"""The command that names the package of a file."""

_SHOWN = 5


@rule(
    layer="container",
    needs=("driver.libraries",),
    arises=lambda _subject, facts: facts.in_container and facts.uses_linux_driver and facts.module.version is not None,
    remedy=lambda facts: _remove(_mismatched(facts), facts),
)
def driver_libraries_in_image(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The container image contains driver libraries that do not match the host."""
    others, module, listing = _mismatched(facts), facts.module.version, facts.driver.libraries
    if not others:
        unsure = _mismatched(facts, mounted=None)
        return passed("Driver libraries match the host") if listing and listing.complete and not unsure else None
    # The listing is in the loader's order: the first file of a name is the one that it finds.
    in_order = {library.soname: library for library in reversed(items_in(listing)) if library.found_as}
    first = [library for library in others if library.soname and in_order.get(library.soname) == library]
    versions = dict.fromkeys(library.version for library in others if library.version)
    works = facts.nvml_answers and facts.cuda_answers
    failed = refusals("driver-library-mismatch", facts)
    return Outcome(
        status="fail" if first and not works else "note",
        title=f"The image contains driver libraries of version {', '.join(versions)}",
        message=f"The host's kernel module is {module}. "
        + ("The loader finds them before the host's." if first else "The loader finds the host's first."),
        evidence=(
            Evidence("kernel module", module or "", "file /proc/driver/nvidia/version"),
            *(
                Evidence(each.soname or "library", f"{each.path} (in the image)", each.source)
                for each in (first or others)[:_SHOWN]
            ),
            *failed,
        ),
        decided_by="driver-answered" if failed or works else "inferred",
        fixes=_remove(first or others, facts),
    )


def _mismatched(facts: Facts, *, mounted: bool | None = False) -> list[DriverLibrary]:
    """The driver libraries of another version than the host's module that the image has (``mounted`` None: or may)."""
    real = (each for each in items_in(facts.driver.libraries) if each.kind == "driver" and each.mounted is mounted)
    return [each for each in real if each.version not in (None, facts.module.version)]


def _remove(libraries: list[DriverLibrary], facts: Facts) -> tuple[Fix, ...]:
    owner = _OWNER.get(family(facts))
    find = (Fix("Find its package", command=(*owner, libraries[0].path)),) if owner and libraries else ()
    text = "Remove the driver packages or files from the image and rebuild it: the host's are mounted at start"
    return (*find, Fix(text))
