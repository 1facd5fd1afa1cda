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
    """The NVIDIA Container Toolkit cannot run the host's ldconfig in a container.

    What it checks
        Reads error lines of nvidia-container-cli: "ldcache error: open failed: /sbin/ldconfig.real",
        "ldcache error: process /sbin/ldconfig failed".

    Why it matters
        The toolkit runs the host's ldconfig over the container's files, so that programs find the
        driver libraries. Its configuration names the program: Ubuntu has it as /sbin/ldconfig.real,
        other systems as /sbin/ldconfig. With the wrong one, no container with a GPU starts.

    How to fix
        Correct `ldconfig` in /etc/nvidia-container-runtime/config.toml, or reinstall the toolkit's
        package for this distribution. If the program is right and still fails, the container's
        /etc/ld.so.conf.d or an old kernel stops it: try another image.

    Sources
        Which ldconfig the configuration names: https://github.com/NVIDIA/nvidia-docker/issues/587
        Reports: https://github.com/NVIDIA/nvidia-container-toolkit/issues/147
    """


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
    """The container toolkit is older than the driver of Windows needs.

    What it checks
        Reads error lines of CUDA's start: status 500, "named symbol not found".

    Why it matters
        Drivers of Windows from release 555 on have a library, libnvdxgdmal.so.1, that older toolkits
        do not mount. Then CUDA ends with 500 in every container inside WSL, while nvidia-smi still
        works.

    How to fix
        Update Docker Desktop, or nvidia-container-toolkit inside WSL. Outside containers the same
        status means that libcuda is not the one from Windows: see wsl-libcuda-shadowed.

    Sources
        NVIDIA Container Toolkit, error 500 with driver 555:
          https://github.com/NVIDIA/nvidia-container-toolkit/issues/520
    """


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
    """The driver's libraries for video are not here.

    What it checks
        Reads error lines of FFmpeg, DALI and others: "Cannot load libnvcuvid.so.1", "Cannot load
        libnvidia-encode.so.1".

    Why it matters
        The libraries that decode and encode video belong to the driver. A container gets those that
        NVIDIA_DRIVER_CAPABILITIES names, by default not these; servers' packages leave them out too.

    How to fix
        Add `video` to NVIDIA_DRIVER_CAPABILITIES, or install the driver's packages with these
        libraries, in the driver's own version.

    Sources
        NVIDIA Container Toolkit, driver capabilities:
          https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/
    """
