"""The container of this process, and a host's software for containers with GPUs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..common.lazy import lazy_pattern
from ..common.out import clean
from ..common.record import Found, record
from ..common.tree import Tree

# The container of this process, by evidence that exists only inside one.
#
# A host with containers also has Docker's folders, sockets and mounts. Only this process's control group, its root
# mount, and files that an engine adds to containers count.

_NAMES = frozenset({"docker", "podman", "kubernetes", "lxc", "apptainer", "systemd-nspawn"})

_CGROUP = "/proc/self/cgroup"
_MOUNTINFO = "/proc/self/mountinfo"

_CGROUPS = (
    (lazy_pattern(r"kubepods"), "kubernetes"), (lazy_pattern(r"docker[/-][0-9a-f]{64}"), "docker"),
    (lazy_pattern(r"libpod-[0-9a-f]{64}"), "podman"), (lazy_pattern(r"/lxc/|lxc\.payload"), "lxc"),
    (lazy_pattern(r"cri-containerd-[0-9a-f]{64}|crio-[0-9a-f]{64}"), "kubernetes"),
)  # fmt: skip

_MOUNTS = (
    (lazy_pattern(r"/kubelet/pods/"), "kubernetes"),
    (lazy_pattern(r"/docker/(?:containers|overlay2|rootfs|volumes)/"), "docker"),
    (lazy_pattern(r"/containers/storage/"), "podman"),
    (lazy_pattern(r"/io\.containerd\."), "other"),
    (lazy_pattern(r"/enroot/|pyxis"), "other"),
)
_ENGINE_MOUNT_POINTS = frozenset({"/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"})

_VARIABLES = (
    ("APPTAINER_CONTAINER", "apptainer"), ("SINGULARITY_CONTAINER", "apptainer"),
    ("KUBERNETES_SERVICE_HOST", "kubernetes"), ("CH_RUNNING", "other"), ("SHIFTER_RUNTIME", "other"),
)  # fmt: skip

_FILES = (
    ("/.singularity.d", "apptainer"), ("/run/secrets/kubernetes.io/serviceaccount", "kubernetes"),
    ("/var/run/secrets/kubernetes.io/serviceaccount", "kubernetes"), ("/dev/lxd/sock", "lxc"),
    ("/dev/incus/sock", "lxc"), ("/.flatpak-info", "other"),
)  # fmt: skip

_ENGINE_MARKS = (("/run/.containerenv", "podman"), ("/.dockerenv", "docker"))
"""Marker files of engines; they may also remain in an image that was booted as a machine."""

_INITIAL_NAMESPACES = {"cgroup": 4026531835, "pid": 4026531836, "uts": 4026531838, "ipc": 4026531839}
"""Numbers that the kernel gives to the namespaces it starts with (``include/linux/proc_ns.h``)."""


class Sign(NamedTuple):
    name: str
    source: str
    evidence: str


def container(tree: Tree) -> Sign | None:
    """The container and its evidence; ``none`` without evidence; None if /proc cannot be read."""
    signs = list(_signs(tree))
    if signs:
        return next((sign for sign in signs if sign.name != "other"), signs[0])
    if tree.read_text(_MOUNTINFO) is None and tree.read_text(_CGROUP) is None:
        return None
    left = next((path for path, _ in _ENGINE_MARKS if tree.lexists(path)), None)
    evidence = f"{left} is left from an image: the process is in the kernel's initial namespaces" if left else "no sign"
    return Sign("none", f"file {_MOUNTINFO}", evidence)


def _signs(tree: Tree) -> Iterator[Sign]:
    variables = tree.variables
    for variable, name in _VARIABLES:
        if variables.get(variable):
            yield Sign(name, "variables", variable)
    yield from _marks(tree, _FILES)
    cgroup = tree.read_text(_CGROUP, 65536) or ""
    for pattern, name in _CGROUPS:
        if pattern.search(cgroup):
            yield Sign(name, f"file {_CGROUP}", _CGROUP)
    for line in (tree.read_text(_MOUNTINFO) or "").splitlines():
        fields = line.split(" ")
        if len(fields) > 4 and fields[4] in _ENGINE_MOUNT_POINTS:
            found = (name for pattern, name in _MOUNTS if pattern.search(line))
            yield from (Sign(name, f"file {_MOUNTINFO}", f"the mount of {fields[4]}") for name in found)
    # The container name that its init got, by systemd's convention.
    path = "/run/systemd/container"
    yield from _named(tree.read_line(path) or "", f"file {path}", path)
    path = "/proc/1/environ"
    environment = (tree.read_text(path, 65536) or "").split("\0")
    value = next((item[len("container=") :] for item in environment if item.startswith("container=")), "")
    yield from _named(value, f"file {path}", path)
    # Every engine changes some of the namespaces that the kernel starts with.
    namespaces = ((f"{name}:[{number}]", f"/proc/self/ns/{name}") for name, number in _INITIAL_NAMESPACES.items())
    if not all(tree.link_target(path) == initial for initial, path in namespaces):
        yield from _marks(tree, _ENGINE_MARKS)
    yield from _named(variables.get("container", ""), "variables", "container")


def _marks(tree: Tree, marks: tuple[tuple[str, str], ...]) -> Iterator[Sign]:
    yield from (Sign(name, f"file {path}", path) for path, name in marks if tree.lexists(path))


def _named(value: str, source: str, evidence: str) -> Iterator[Sign]:
    if value and value != "wsl":
        name = "lxc" if value.startswith("lxc") else value
        yield Sign(name if name in _NAMES else "other", source, evidence)


_FOLDERS = ("/usr/bin", "/usr/local/bin", "/bin", "/snap/bin", "/opt/bin", "/run/current-system/sw/bin")
_TOOLKIT_FOLDERS = (*_FOLDERS, "/usr/local/nvidia/toolkit", "/usr/sbin")

_ENGINES = ("docker", "podman", "nerdctl", "crictl", "k3s")
_TOOLKIT = (
    "nvidia-ctk", "nvidia-container-runtime", "nvidia-container-runtime-hook", "nvidia-container-toolkit",
    "nvidia-container-cli",
)  # fmt: skip

_DAEMON_FILES = ("/etc/docker/daemon.json", "/var/snap/docker/current/config/daemon.json")
_CDI_KIND = lazy_pattern(r"^[ \t{]*[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?nvidia\.com/", re.MULTILINE)

_LISTS = "/etc/nvidia-container-runtime/host-files-for-container.d"
_ENTRY = lazy_pattern(r"^[ \t]*(?:lib|sym|dir|dev)[ \t]*,[ \t]*(/\S+)[ \t\r]*$", re.MULTILINE)

_MOST_FILES = 50


def container_host(tree: Tree, *, tegra: bool) -> dict[str, Any]:
    """The ``container_host`` of a system that is itself no container; ``tegra`` adds the mount lists of a Jetson."""
    names = [name for name in (tree.list_names(_LISTS) or [] if tegra else []) if name.endswith(".csv")]
    lists = [clean(f"{_LISTS}/{name}") for name in names[:_MOST_FILES]]
    # Entries that do not exist on this system; the runtime silently skips them.
    entries = [path for name in lists for path in _ENTRY.findall(tree.read_text(name) or "")]
    absent = (path for path in dict.fromkeys(entries[:5_000]) if "*" not in path and not tree.lexists(path))
    missing = [clean(path) for path in islice(absent, 20)]
    cdi: dict[str, str] = {}
    for folder in ("/etc/cdi", "/var/run/cdi", "/run/cdi"):
        for path in (f"{folder}/{name}" for name in (tree.list_names(folder) or [])[:_MOST_FILES]):
            real = tree.resolve(path) if path.endswith((".yaml", ".yml", ".json")) else None
            if real and real not in cdi and _CDI_KIND.search(tree.read_text(real, 65536) or ""):
                cdi[real] = clean(path)
    return record(
        engines=Found(_programs(tree, _FOLDERS, _ENGINES), "file"),
        toolkit=Found(_programs(tree, _TOOLKIT_FOLDERS, _TOOLKIT), "file"),
        runtimes=_runtimes(tree),
        cdi=Found(list(cdi.values()), "file"),
        mount_lists=Found(lists, f"file {_LISTS}") if tegra else None,
        mounts_missing=Found(missing, f"file {_LISTS}") if lists else None,
    )


def _programs(tree: Tree, folders: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    """The first path of each program; commands of a snap are links to one program and count by name."""
    found: dict[str, str] = {}
    for folder in folders:
        for name in names:
            path = f"{folder}/{name}"
            here = tree.is_file(path) or (folder == "/snap/bin" and tree.lexists(path))
            if here and name not in found:
                found[name] = path
    return list(found.values())


def _runtimes(tree: Tree) -> Found | None:
    """The runtimes in Docker's configuration; an empty list if it has none or does not exist."""
    for path in _DAEMON_FILES:
        if not tree.lexists(path):
            continue
        try:
            content = json.loads(tree.read_text(path, 65536) or "")
        except ValueError:
            return None
        runtimes = content.get("runtimes") if isinstance(content, dict) else None
        names = sorted(clean(name) for name in runtimes)[:_MOST_FILES] if isinstance(runtimes, dict) else []
        return Found(names, f"file {path}")
    return Found([], f"file {_DAEMON_FILES[0]}")
