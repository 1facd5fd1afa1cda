"""The operating system as tools print it, and the size of ``/dev/shm``."""

from __future__ import annotations

import re
from typing import Literal

from envcheck.importers.importer import Rank, importer, joined
from envcheck.importers.paste import SOURCE, Paste
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import Platform, Snapshot
from envcheck.text.lazy import lazy_pattern

_TITLE_OF_WINDOWS = lazy_pattern(
    r"^(?:microsoft\s+|майкрософт\s+)?(?:windows(?![a-z_])|win ?(?:7|8|1[01])\b)", re.IGNORECASE
)
_MACOS = lazy_pattern(r"^(?:mac ?os ?x?|os x)\b", re.IGNORECASE)
_VERSION = lazy_pattern(r"(?:\b|(?<=[a-wyz]))([0-9]{1,4}(?:\.[0-9]{1,4}){0,2})\b")


def from_title(title: str) -> Platform | None:
    """Read ``Ubuntu 22.04.3 LTS (x86_64)`` or ``Microsoft Windows 11 Pro``; None for an unknown system."""
    title = re.split("[,;\uff0c\uff1b]", title.strip()[:200])[0].strip()
    machine = re.search(r"\((x86_64|amd64|aarch64|arm64|ppc64le|i[3-6]86)\)\s*$", title, re.IGNORECASE)
    named = title[: machine.start()].strip() if machine else title
    lowered = named.lower()
    distribution = next((row.name for row in load_matrix().distributions if lowered.startswith(row.titles)), None)
    os: Literal["linux", "windows", "macos"]
    if distribution or re.search(r"\bLinux\b", named, re.IGNORECASE):
        os = "linux"
    elif _TITLE_OF_WINDOWS.match(named):
        os = "windows"
    elif _MACOS.match(named):
        os = "macos"
    else:
        return None
    version = _VERSION.search(named) if distribution else None
    release = version[1] if version else None
    if release and distribution == "ubuntu":  # as in VERSION_ID of os-release: its titles add a point release
        release = ".".join(release.split(".")[:2])
    return Platform(
        source=SOURCE,
        os=os,
        distribution=distribution,
        distribution_version=release,
        distribution_title=named if os == "linux" and distribution else None,
        machine=machine[1].lower().replace("amd64", "x86_64") if machine else None,
    )


def from_python_platform(text: str) -> Platform | None:
    """Read ``Linux-5.15.0-84-generic-x86_64-with-glibc2.35``, the output of Python's ``platform.platform()``.

    Its C library is the one that the interpreter was linked with, not the system's, and is ignored.
    """
    text = text.strip()[:300]
    if _TITLE_OF_WINDOWS.match(text):
        return Platform(source=SOURCE, os="windows")
    if _MACOS.match(text) or text.startswith("Darwin"):
        return Platform(source=SOURCE, os="macos")
    if not text.startswith("Linux"):
        return None
    found = re.match(r"Linux-(\S+?)-(x86_64|aarch64|ppc64le|i[3-6]86|armv[0-9]l)(?:-|$)", text)
    kernel = found[1] if found else None
    return Platform(
        source=SOURCE,
        os="linux",
        kernel_release=kernel,
        machine=found[2] if found else None,
        wsl=True if kernel and re.search(r"microsoft|\bwsl", kernel, re.IGNORECASE) else None,
    )


_DF = lazy_pattern(r"(?:shm|tmpfs|none)\s{1,90}([0-9.]{1,12})([KMGT]?)i?B?\s.{0,80}?\s/dev/shm$", re.IGNORECASE)
_DEEPSPEED = lazy_pattern(r"shared memory \(/dev/shm\) size \.{2,} ([0-9.]{1,8}) ([KMGT])i?B", re.IGNORECASE)
_FACTORS = {"": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # Without a letter, df counts KiB


@importer("shared memory", Rank.OUTPUT)
def read_shared_memory(paste: Paste) -> Snapshot:
    """The size of ``/dev/shm``, from ``df`` and from DeepSpeed's report."""
    texts = (line.strip()[:300] for line in paste.statements)
    read = (found for text in texts if (found := _DF.match(text) or _DEEPSPEED.search(text)))
    sizes = (int(float(f[1]) * _FACTORS[f[2].upper()]) for f in read if f[1].count(".") < 2 and f[1] != ".")
    return joined(Snapshot(platform=Platform(source=SOURCE, os="linux", shared_memory=size)) for size in sizes)
