"""The operating system, the processor and memory, and what the machine runs in."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from .kit.links import expand, resolve
from .kit.reading import Out, Request, list_names, read_bytes, read_line, read_text, tell_unreadable
from .kit.record import Found, record
from .kit.system import at_real_root, kernel_release, wsl_mark
from .machine import processor
from .machine.container import container, container_host
from .machine.tegra import image_tegra_release, is_tegra, tegra_release
from .machine.virtualization import virtualization

PROBE = {
    "title": "Operating system, container and processor",
    "kind": "file",
    "early": False,
    "seconds": 5.0,
    "uses": "files",
    "scopes": ["node", "container", "env"],
    "fills": ["platform"],
}

_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}

_LOADERS = (
    ("/lib64/ld-linux-x86-64.so.2", "x86_64"),
    ("/lib/ld-linux-aarch64.so.1", "aarch64"),
    ("/lib64/ld64.so.2", "ppc64le"),
    ("/lib/ld-musl-x86_64.so.1", "x86_64"),
    ("/lib/ld-musl-aarch64.so.1", "aarch64"),
)
"""Where the ABI of each architecture wants its program loader."""

_LIBC_LIMIT = 8 * 1024 * 1024


def collect(request: Request, out: Out) -> None:
    """Send the ``platform`` section."""
    inside = container(request)
    boxed = inside is not None and inside.name != "none"
    tegra = is_tegra(request, boxed=boxed)
    mark = wsl_mark(request)
    release = kernel_release(request)
    asked = "uname" if at_real_root(request) else "procfs"
    free = inside is not None and not boxed
    host = {"container_host": container_host(request, tegra=bool(tegra and tegra.value))} if free else {}
    out.fact(
        {
            "platform": host
            | record(
                os=Found(_SYSTEMS.get(sys.platform) if at_real_root(request) else "linux", "process"),
                **_distribution(request),
                kernel_release=Found(release, asked),
                machine=_machine(request),
                libc=_libc(request),
                cpu_model=processor.model(request),
                cpus=processor.count(request),
                memory=_memory(request),
                numa_nodes=_numa_nodes(request),
                **_shared_memory(request),
                container=Found(inside.name, inside.source) if inside else None,
                container_evidence=Found(inside.evidence, inside.source) if inside else None,
                wsl=Found(mark is not None, f"file {mark}" if mark else asked) if release or mark else None,
                virtualization=virtualization(request, processor.flags(request)),
                windows_build=_windows_build(request),
                tegra=tegra,
                tegra_release=tegra_release(request, boxed=boxed),
                image_tegra_release=image_tegra_release(request) if boxed else None,
                uid=Found(os.getuid(), "process") if at_real_root(request) and hasattr(os, "getuid") else None,
                host=_host(request),
            )
        }
    )
    tell_unreadable(request, out)


def _distribution(request: Request) -> dict[str, Found]:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        real = resolve(request, path)
        text = read_text(request, real, 65536) if real else None
        if text:
            break
    else:
        return {}
    found = {key: value.strip("\"'") for key, value in re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE)}
    fields: dict[str, Any] = {
        "distribution": found.get("ID"),
        "distribution_like": found.get("ID_LIKE", "").split() or None,
        "distribution_version": found.get("VERSION_ID"),
        "distribution_title": found.get("PRETTY_NAME"),
    }
    return {name: Found(value, f"file {path}") for name, value in fields.items()}


def _machine(request: Request) -> Found | None:
    if at_real_root(request) and hasattr(os, "uname"):
        return Found(os.uname().machine, "uname")
    told = read_line(request, "/proc/sys/kernel/arch")
    if told:
        return Found(told, "file /proc/sys/kernel/arch")
    return next((Found(name, f"file {path}") for path, name in _LOADERS if resolve(request, path)), None)


def _libc(request: Request) -> Found | None:
    if at_real_root(request):
        try:
            told = os.confstr("CS_GNU_LIBC_VERSION")
        except (ValueError, OSError, AttributeError):
            told = None
        if told:
            return Found(told, "confstr")
    return _libc_on_disk(request)


def _libc_on_disk(request: Request) -> Found | None:
    for pattern in ("/lib/*-linux-gnu*/libc.so.6", "/lib64/libc.so.6", "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6"):
        for path in expand(request, pattern):
            data = read_bytes(request, resolve(request, path) or path, _LIBC_LIMIT) or b""
            match = re.search(rb"GNU C Library [^\n\0]{0,80}release version (\d+\.\d+)", data)
            if match:
                return Found(f"glibc {match.group(1).decode()}", f"file {path}")
    musl = expand(request, "/lib/ld-musl-*")
    return Found("musl", f"file {musl[0]}") if musl else None


def _memory(request: Request) -> Found | None:
    match = re.search(r"^MemTotal:\s+(\d+) kB", read_text(request, "/proc/meminfo", 65536) or "", re.MULTILINE)
    return Found(int(match.group(1)) * 1024, "file /proc/meminfo") if match else None


def _numa_nodes(request: Request) -> Found | None:
    nodes = [name for name in list_names(request, "/sys/devices/system/node") or () if re.fullmatch(r"node\d+", name)]
    return Found(len(nodes), "file /sys/devices/system/node") if nodes else None


def _shared_memory(request: Request) -> dict[str, Found]:
    """Size of the file system mounted on /dev/shm; a folder that is no mount shares its size with something else."""
    mounts = re.findall(r"^\S+ /dev/shm \S+ (\S+)", read_text(request, "/proc/mounts") or "", re.MULTILINE)
    if not mounts:
        return {}
    if at_real_root(request):
        try:
            size = os.statvfs("/dev/shm")  # noqa: S108 - its size is the fact, nothing is put there
        except OSError:
            return {}
        return {
            "shared_memory": Found(size.f_blocks * size.f_frsize, "statvfs"),
            "shared_memory_free": Found(size.f_bavail * size.f_frsize, "statvfs"),
        }
    match = re.search(r"(?:^|,)size=(\d+)([kmg]?)(?:,|$)", mounts[-1])
    if not match:
        return {}
    factor = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}[match.group(2)]
    return {"shared_memory": Found(int(match.group(1)) * factor, "file /proc/mounts")}


def _windows_build(request: Request) -> Found | None:
    ask = getattr(sys, "getwindowsversion", None)
    if ask is None or not at_real_root(request):
        return None
    told = ask()
    return Found(f"{told.major}.{told.minor}.{told.build}", "process")


def _host(request: Request) -> Found | None:
    if at_real_root(request) and hasattr(os, "uname"):
        return Found(os.uname().nodename, "uname")
    for path in ("/proc/sys/kernel/hostname", "/etc/hostname"):
        name = read_line(request, path)
        if name:
            return Found(name, f"file {path}")
    return None
