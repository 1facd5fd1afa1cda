"""What the NVIDIA Container Toolkit mounts into a container, and the settings that keep it from that."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import never, rule

_CONFIG = "/etc/nvidia-container-runtime/config.toml"


_PATH_OF_LDCONFIG = (
    Fix(
        text=f'Set ldconfig in {_CONFIG} to the program of this host ("@/sbin/ldconfig.real" on Ubuntu, '
        '"@/sbin/ldconfig" elsewhere), and start the container again',
        who="root",
    ),
)


@rule(layer="container", scope="container", arises=never, remedy=_PATH_OF_LDCONFIG)
def container_ldconfig_fails() -> None:
    """The NVIDIA Container Toolkit cannot run the host's ldconfig in a container."""


_NEWER_TOOLKIT = (
    Fix(text="With Docker Desktop: update it, since it brings its own toolkit"),
    Fix(
        text="With Docker inside WSL: update the toolkit, and restart Docker",
        command=("sudo", "apt-get", "install", "--only-upgrade", "nvidia-container-toolkit"),
        who="root",
    ),
)


@rule(
    layer="container",
    scope="container",
    arises=never,
    remedy=_NEWER_TOOLKIT,
    explains=("gpu-init-failed", "no-gpu-visible", "wsl-libcuda-shadowed"),
)
def container_toolkit_too_old() -> None:
    """The container toolkit is older than the driver of Windows needs."""


_CAPABILITIES = (
    Fix(
        text="In a container: request the driver's video libraries when it starts",
        command=(
            "docker",
            "run",
            "--gpus",
            "all",
            "-e",
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility,video",
            "IMAGE",
        ),
    ),
    Fix(
        text="On a host: install the driver's package with them (on Ubuntu libnvidia-decode-NNN and "
        "libnvidia-encode-NNN, NNN as in nvidia-smi)",
        who="root",
    ),
)


@rule(layer="container", scope="container", arises=never, remedy=_CAPABILITIES)
def video_libraries_missing() -> None:
    """The driver's libraries for video are not here."""
