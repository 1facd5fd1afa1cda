"""The operating system, the processor and memory, and what the machine runs in."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from .common.out import Out
from .common.record import Found, record
from .common.system import kernel_release, wsl_mark
from .common.tree import Tree
from .machine.container import container, container_host
from .machine.hardware import (
    NODES,
    cpu_count,
    cpu_flags,
    cpu_model,
    image_tegra_release,
    is_tegra,
    numa_nodes,
    tegra_release,
    virtualization,
)
from .machine.limits import given

PROBE = {"title": "Operating system, container and processor", "seconds": 5.0, "fills": ["platform"]}

_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}

_LOADERS = (
    ("/lib64/ld-linux-x86-64.so.2", "x86_64"), ("/lib/ld-linux-aarch64.so.1", "aarch64"),
    ("/lib64/ld64.so.2", "ppc64le"), ("/lib/ld-musl-x86_64.so.1", "x86_64"), ("/lib/ld-musl-aarch64.so.1", "aarch64"),
)  # fmt: skip
"""Where the ABI of each architecture wants its program loader."""


def collect(tree: Tree, out: Out) -> None:
    inside = container(tree)
    boxed = inside is not None and inside.name != "none"
    tegra = is_tegra(tree, boxed=boxed)
    mark = wsl_mark(tree)
    release = kernel_release(tree)
    asked = "uname" if tree.at_real_root else "procfs"
    free = inside is not None and not boxed
    host = {"container_host": container_host(tree, tegra=bool(tegra and tegra.value))} if free else {}
    memory = re.search(r"^MemTotal:\s+(\d{1,15}) kB", tree.read_text("/proc/meminfo", 65536) or "", re.MULTILINE)
    nodes = numa_nodes(tree)
    machine: Found | None
    node: Found | None
    if tree.at_real_root and hasattr(os, "uname"):
        machine, node = Found(os.uname().machine, "uname"), Found(os.uname().nodename, "uname")
    else:
        arch = tree.read_line("/proc/sys/kernel/arch")
        loaders = (Found(name, f"file {path}") for path, name in _LOADERS if tree.resolve(path))
        machine = Found(arch, "file /proc/sys/kernel/arch") if arch else next(loaders, None)
        names = ((tree.read_line(path), path) for path in ("/proc/sys/kernel/hostname", "/etc/hostname"))
        node = next((Found(name, f"file {path}") for name, path in names if name), None)
    windows = getattr(sys, "getwindowsversion", None) if tree.at_real_root else None
    build = windows()[:3] if windows else ()
    facts = record(
        os=Found(_SYSTEMS.get(sys.platform) if tree.at_real_root else "linux", "process"),
        **_distribution(tree),
        kernel_release=Found(release, asked),
        machine=machine,
        libc=_libc(tree),
        cpu_model=cpu_model(tree),
        cpus=cpu_count(tree),
        memory=Found(int(memory.group(1)) * 1024, "file /proc/meminfo") if memory else None,
        numa_nodes=Found(len(nodes), f"file {NODES}") if nodes else None,
        **_shared_memory(tree),
        **given(tree),
        container=Found(inside.name, inside.source) if inside else None,
        container_evidence=Found(inside.evidence, inside.source) if inside else None,
        wsl=Found(mark is not None, f"file {mark}" if mark else asked) if release or mark else None,
        virtualization=virtualization(tree, cpu_flags(tree)),
        windows_build=Found(f"{build[0]}.{build[1]}.{build[2]}", "process") if build else None,
        tegra=tegra,
        tegra_release=tegra_release(tree, boxed=boxed),
        image_tegra_release=image_tegra_release(tree) if boxed else None,
        uid=Found(os.getuid(), "process") if tree.at_real_root and hasattr(os, "getuid") else None,
        host=node,
    )
    out.fact({"platform": {**host, **facts}})
    tree.report_unreadable(out)


def _distribution(tree: Tree) -> dict[str, Found]:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        real = tree.resolve(path)
        text = tree.read_text(real, 65536) if real else None
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


def _libc(tree: Tree) -> Found | None:
    if tree.at_real_root:
        try:
            libc = os.confstr("CS_GNU_LIBC_VERSION")
        except (ValueError, OSError, AttributeError):
            libc = None
        if libc:
            return Found(libc, "confstr")
    for pattern in ("/lib/*-linux-gnu*/libc.so.6", "/lib64/libc.so.6", "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6"):
        for path in tree.expand(pattern):
            data = tree.read_bytes(path, 8 * 1024 * 1024) or b""
            match = re.search(rb"GNU C Library [^\n\0]{0,80}release version (\d+\.\d+)", data)
            if match:
                return Found(f"glibc {match.group(1).decode()}", f"file {path}")
    musl = tree.expand("/lib/ld-musl-*")
    return Found("musl", f"file {musl[0]}") if musl else None


def _shared_memory(tree: Tree) -> dict[str, Found]:
    """Size of the file system mounted on /dev/shm; a folder that is no mount shares its size with something else."""
    mounts = re.findall(r"^\S+ /dev/shm \S+ (\S+)", tree.read_text("/proc/mounts") or "", re.MULTILINE)
    if not mounts:
        return {}
    if tree.at_real_root:
        try:
            size = os.statvfs("/dev/shm")  # noqa: S108 - its size is the fact, nothing is put there
        except OSError:
            return {}
        return {
            "shared_memory": Found(size.f_blocks * size.f_frsize, "statvfs"),
            "shared_memory_free": Found(size.f_bavail * size.f_frsize, "statvfs"),
        }
    match = re.search(r"(?:^|,)size=(\d{1,15})([kmg]?)(?:,|$)", mounts[-1])
    if not match:
        return {}
    factor = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}[match.group(2)]
    return {"shared_memory": Found(int(match.group(1)) * factor, "file /proc/mounts")}
