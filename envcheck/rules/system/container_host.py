"""Whether a host can give its GPUs to containers: NVIDIA's toolkit, and its connection to the engine."""

from __future__ import annotations

import re

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import ContainerHost, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.machine import in_container, on_tegra
from envcheck.rules.fixes.driver import installer

_INSTALL_PAGE = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"


def _runs_containers(_subject: Snapshot, facts: Facts) -> bool:
    """Whether this is a host with a driver and a container engine."""
    host = _host(facts)
    return bool(not in_container(facts) and host and host.engines and (facts.driver.installed or on_tegra(facts)))


def _host(facts: Facts) -> ContainerHost | None:
    return facts.snapshot.platform.container_host if facts.snapshot.platform else None


_CDI = re.compile(r"\bCDI\b|nvidia\.com/gpu=")
_SPECIFY = Fix(
    text="Write a CDI specification of the GPUs",
    command=("sudo", "nvidia-ctk", "cdi", "generate", "--output=/etc/cdi/nvidia.yaml"),
    who="root",
)


def _fixes(facts: Facts) -> tuple[Fix, ...]:
    host = _host(facts)
    if host is None and any(_CDI.search(error.text) for error in facts.snapshot.observed_errors):
        return (_SPECIFY, *_install(facts))
    if host and host.toolkit:
        return _connect(host)
    return (*_install(facts), *_connect(host or ContainerHost()))


@rule(
    layer="container",
    needs=("platform.container_host.toolkit",),
    arises=_runs_containers,
    remedy=_fixes,
    explains=("container-without-gpu", "driver-not-installed", "gpu-init-failed", "no-gpu-visible"),
)
def container_toolkit_missing(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The NVIDIA Container Toolkit is missing: containers get no GPU."""
    host = _host(facts) or ContainerHost()
    evidence = (evidence_of("container engines", host, "engines"), evidence_of("toolkit", host, "toolkit"))
    if not host.toolkit and not host.cdi:
        title, text = "The NVIDIA Container Toolkit is not installed", "Containers started here get no GPU."
        return _note(title, text, evidence, _fixes(facts))
    dockers = [path for path in host.engines or () if path.endswith("/docker")]
    if dockers and all(path.startswith("/snap/") for path in dockers):
        text = "The snap cannot see the host's toolkit or its hook: `docker run --gpus` fails."
        return _note("Docker is installed as a snap, which cannot use the host's toolkit", text, evidence, _NO_SNAP)
    if on_tegra(facts) and (host.mount_lists == () or host.mounts_missing):
        return _unmounted(host, evidence)
    hook = any(path.endswith(("-runtime-hook", "/nvidia-container-toolkit")) for path in host.toolkit or ())
    if not (hook or host.cdi or any("nvidia" in name for name in host.runtimes or ())):
        text = "The toolkit is installed, but no hook, Docker runtime or CDI specification uses it."
        return _note("No container engine uses the NVIDIA Container Toolkit", text, evidence, _connect(host))
    return passed("The NVIDIA Container Toolkit is installed and connected", *evidence)


def _note(title: str, text: str, evidence: tuple[Evidence, ...], fixes: tuple[Fix, ...]) -> Outcome:
    return Outcome(status="note", title=title, message=text, evidence=evidence, fixes=fixes)


_NO_SNAP = (
    Fix(
        text="Remove the snap, and install Docker from Docker's or the distribution's packages",
        command=("sudo", "snap", "remove", "docker"),
        who="root",
        risk="removes its containers, images and volumes (a snapshot of them is kept for a month)",
    ),
)


def _unmounted(host: ContainerHost, evidence: tuple[Evidence, ...]) -> Outcome:
    if host.mounts_missing:
        text = "Containers start without the missing files, and without an error."
        return _note(
            "The mount lists of the container runtime name missing files",
            text,
            (*evidence, evidence_of("missing", host, "mounts_missing")),
            (Fix(text="Reinstall this L4T release's packages nvidia-l4t-core and nvidia-container", who="root"),),
        )
    return _note(
        "The container runtime has no mount lists",
        "Containers started here get no L4T libraries.",
        (*evidence, evidence_of("mount lists", host, "mount_lists")),
        (Fix(text="Install their package", command=("sudo", "apt-get", "install", "nvidia-container"), who="root"),),
    )


def _install(facts: Facts) -> tuple[Fix, ...]:
    """The packages are in NVIDIA's repository; the page explains how to add it."""
    install = installer(facts)
    text = f"Install the NVIDIA Container Toolkit on the host, from NVIDIA's repository: {_INSTALL_PAGE}"
    command = ("sudo", *install, "nvidia-container-toolkit") if install else ()
    return (Fix(text=text, command=command, who="root"),)


def _connect(host: ContainerHost) -> tuple[Fix, ...]:
    docker = any(path.endswith("/docker") for path in host.engines or ())
    if host.engines and not docker:
        return (_SPECIFY,)
    risk = "restarting Docker stops running containers (unless live-restore is on)"
    return (
        Fix(
            text="Register the runtime with Docker",
            command=("sudo", "nvidia-ctk", "runtime", "configure", "--runtime=docker"),
            who="root",
        ),
        Fix(text="Then restart Docker", command=("sudo", "systemctl", "restart", "docker"), who="root", risk=risk),
    )
