"""The lines of the kernel log about NVIDIA GPUs, and the files and settings of NVIDIA's kernel module.

/dev/kmsg is read without blocking and without consuming messages; if that is forbidden, log files are read.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..common.lazy import lazy_pattern
from ..common.out import clean
from ..common.record import Found
from ..common.tree import Tree

if TYPE_CHECKING:
    from typing import TypeAlias

MAX_MESSAGES = 200  # Most messages; the last ones are kept, identical ones once

MAX_LENGTH = 500

_KMSG = "/dev/kmsg"
_KMSG_NUMBER = (1, 11)
_RECORD_SIZE = 16384  # Buffer for a record; the kernel refuses smaller ones than the record, and its own limit is lower

_MAX_SECONDS = 1.0
_TAIL = 4 * 1024 * 1024

_FILES = ("/var/log/dmesg", "/var/log/kern.log")

_RELEVANT = lazy_pattern(
    r"NVRM|\bS?Xid\b|\bnouveau\b|\bnova[-_]?core\b|NovaCore|\bnvgpu\b|\bnvidia(?:[-_]\w+)*(?: [0-9a-f:.]+)?: "
    r"|Loading of (?:unsigned )?module .*(?:rejected|unavailable)|unsigned module loading is restricted"
    r"|PKCS#7 signature"
)
_XID = lazy_pattern(r"\bXid \(([^)]*)\): (\d{1,6})(?!\d)")
_ADDRESS = lazy_pattern(r"\b([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?\b", re.IGNORECASE)
_STAMP = lazy_pattern(r"\[\s*(\d{1,12}\.\d{1,9})\](?:\[[^\]]*\])?\s*")

Line: TypeAlias = "tuple[float | None, str]"


def kernel_log(tree: Tree) -> dict[str, Any]:
    """The record of the log: its relevant messages, or why it could not be read."""
    why_not = "/dev/kmsg is not examined"
    if tree.at_real_root:
        lines, why_not = _read_kmsg()
        if lines is not None:
            return {"source": f"file {_KMSG}", "readable": True, "messages": messages(lines, f"file {_KMSG}")}
    read = [(path, text) for path in _FILES if (text := _read_tail(tree, path)) is not None]
    if not read:
        return {"source": f"file {_KMSG}", "readable": False, "why_not": why_not}
    source = f"file {read[-1][0]}"
    # The lines since the last start from all files; a line in several files counts once.
    lines = list(dict.fromkeys(line for _, text in read for line in parse_log(text)))
    return {"source": source, "readable": True, "messages": messages(lines, source)}


def messages(lines: Iterable[Line], source: str) -> list[dict[str, Any]]:
    """The relevant lines as records, in order."""
    found: dict[str, dict[str, Any]] = {}
    for seconds, text in lines:
        if not _RELEVANT.search(text):
            continue
        message: dict[str, Any] = {"source": source, "text": clean(text[:MAX_LENGTH])}
        xid = _XID.search(text)
        if xid:
            message["xid"] = int(xid.group(2))
        address = _ADDRESS.search(xid.group(1) if xid else text)
        if address:
            domain, bus, device, function = address.groups()
            message["pci_bus_id"] = f"{int(domain, 16):04x}:{bus}:{device}.{function or 0}".lower()
        if seconds is not None:
            message["seconds"] = seconds
        found.pop(text, None)
        found[text] = message
    return list(found.values())[-MAX_MESSAGES:]


def _read_kmsg() -> tuple[list[Line] | None, str]:
    try:
        about = os.stat(_KMSG)
    except OSError:
        return None, f"{_KMSG} is not there, as is usual in a container"
    number = (os.major(about.st_rdev), os.minor(about.st_rdev))
    if not stat.S_ISCHR(about.st_mode) or number != _KMSG_NUMBER:
        # Some containers replace it by the console or an empty file; reading the console would consume input.
        return None, f"{_KMSG} is not the kernel log here"
    try:
        device = os.open(_KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        return None, "needs root (kernel.dmesg_restrict)"
    except OSError as problem:
        return None, os.strerror(problem.errno or errno.EIO)
    lines: list[Line] = []
    until = time.monotonic() + _MAX_SECONDS
    try:
        for _ in range(200_000):
            try:
                record = os.read(device, _RECORD_SIZE)
            except BrokenPipeError:  # records were overwritten while reading; the next read continues after them
                continue
            except OSError:
                break
            if not record or time.monotonic() > until:
                break
            lines.append(parse_record(record.decode("utf-8", "replace")))
        return lines, ""
    finally:
        os.close(device)


def parse_record(record: str) -> Line:
    """Time since boot and text of a record of /dev/kmsg: ``priority,number,microseconds,flags;text``."""
    head, _, rest = record.partition(";")
    fields = head.split(",")
    seconds = int(fields[2]) / 1e6 if len(fields) > 2 and re.fullmatch("[0-9]{1,18}", fields[2]) else None
    return seconds, rest.partition("\n")[0]


def _read_tail(tree: Tree, path: str) -> str | None:
    place = tree.place(path)
    try:
        if not os.path.isfile(place):
            return None
        with open(place, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return None


def parse_log(text: str) -> list[Line]:
    """The lines of a log file since the last start that it records."""
    lines: list[Line] = []
    for line in text.splitlines():
        message = line.partition("kernel: ")[2] or line
        stamp = _STAMP.match(message) or _STAMP.match(line)
        own = stamp is not None and message.startswith("[")
        lines.append((float(stamp[1]) if stamp else None, message[stamp.end() :] if stamp and own else message))
    starts = [number for number, (_, message) in enumerate(lines) if re.match(r"Linux version \d", message)]
    return lines[starts[-1] :] if starts else lines


BASES = ("/lib/modules", "/run/booted-system/kernel-modules/lib/modules")  # Of kernel modules; the second is NixOS's

_MODULE_FILE = lazy_pattern(
    r"(?:nvidia(?:-(?:current|tesla|legacy|open|\d+(?:xx)?))*|nvgpu)\.ko(?:\.(?:xz|zst|gz|bz2))?"
)
"""nvidia.ko, Debian's nvidia-current.ko and nvidia-tesla-470.ko, Tegra's nvgpu.ko; not nvidia-uvm.ko or its like."""

_FOLDERS = ("updates", "extra", "weak-updates", "extramodules", "kernel/drivers/video", "kernel/drivers/gpu/nvgpu")
"""Folders that installers use, searched if modules.dep does not list the module (depmod was not run)."""

_CONFIGURATION = (
    "/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d",
)  # fmt: skip
"""Configuration folders in order of precedence: a file hides later ones of the same name."""

_NAME = r"nvidia(?:[-_]current(?:[-_]open)?)?"
_FORBIDS = lazy_pattern(
    rf"^[ \t]*(?:blacklist[ \t]+{_NAME}[ \t]*(?:#.*)?"
    rf"|alias[ \t]+{_NAME}[ \t]+off\b.*"
    rf"|install[ \t]+{_NAME}[ \t]+\S*/(?:false|true)\b.*)$",
    re.MULTILINE,
)


def module_folder(tree: Tree, release: str) -> str | None:
    """The folder of a kernel's modules, if it can be listed."""
    for base in BASES:
        names, certain = tree.folder_names(f"{base}/{release}")
        if names and certain:
            return f"{base}/{release}"
    return None


def find_module(tree: Tree, folder: str) -> str | None:
    """Path of NVIDIA's module file in the folder of a kernel's modules."""
    listed = tree.read_text(f"{folder}/modules.dep", 16 * 1024 * 1024) or ""
    for line in re.findall(r"^([^:\n]*\b(?:nvidia|nvgpu)[^:\n/]*\.ko[^:\n]*):", listed, re.MULTILINE):
        path = f"{folder}/{line}"
        if _MODULE_FILE.fullmatch(os.path.basename(path)) and tree.is_file(path):
            return path
    branded = [f"kernel/{name}" for name in tree.folder_names(f"{folder}/kernel")[0] if name.startswith("nvidia")]
    pending = [f"{folder}/{name}" for name in (*_FOLDERS, *branded)][::-1]
    for _ in range(400):
        if not pending:
            break
        place = pending.pop()
        for name in tree.folder_names(place)[0]:
            path = f"{place}/{name}"
            if _MODULE_FILE.fullmatch(name) and tree.is_file(path):
                return path
            if ".ko" not in name and tree.is_folder(path) and tree.link_target(path) is None:
                pending.append(path)
    return None


def other_kernels(tree: Tree, release: str | None) -> tuple[str, ...]:
    """Kernels other than the running one with a module file."""
    names = [name for name in tree.folder_names(BASES[0])[0] if name != release][-8:]
    return tuple(name for name in names if find_module(tree, f"{BASES[0]}/{name}"))


def forbidden_by(tree: Tree) -> Found | None:
    """The configuration file that prevents the module from being loaded automatically."""
    seen: set[str] = set()
    for folder in _CONFIGURATION:
        for name in tree.folder_names(folder)[0]:
            if not name.endswith(".conf") or name in seen:
                continue
            seen.add(name)
            real = tree.resolve(f"{folder}/{name}")
            if real and _FORBIDS.search(tree.read_text(real, 65536) or ""):
                return Found(f"{folder}/{name}", f"file {folder}/{name}")
    line = tree.read_line("/proc/cmdline") or ""
    lists = re.findall(r"(?:^|\s)(?:modprobe\.|module_)blacklist=(\S+)", line)
    named = any("nvidia" in names.split(",") for names in lists)
    return Found("/proc/cmdline", "file /proc/cmdline") if named else None
