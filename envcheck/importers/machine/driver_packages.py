"""The driver's packages (``libnvidia-compute-550:amd64 550.107.02-0ubuntu1``) and files, as package managers list them.

They tell the release of the driver's libraries, which must be the kernel module's, and by their names whether that is
the open or the proprietary one. Where nvidia-smi printed its table, both fit, and a list may be of another day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Driver, DriverLibrary, Kernel, KernelModule, Listing, Snapshot
from envcheck.versions import Flavour

NAME = "driver packages"
RANK = Rank.OUTPUT

_PACKAGE = re.compile(
    r"(?<![\w-])(?:libnvidia-(?:compute|gl|common|decode|cfg1)|nvidia-(?:driver|utils|compute-utils|smi)|"
    r"libcuda1|libnvidia-ml1|"
    r"nvidia-driver-(?:libs|cuda-libs|cuda))(?:-[0-9]{3})?(?:-(?:server|open))?(?::\w{2,8})?[ \t`'\"-]{1,40}"
    r"\(?(?:[0-9.a-z~:+-]{5,60}, )?[`'\"]?(?:[0-9]:)?(?P<release>[3-9][0-9]{2}\.[0-9]{2,3}(?:\.[0-9]{2})?)"
    r"(?=[-~+ \t)`'\"]|\.\w{2,3}_|$)"
)
_FILE = re.compile(
    r"(?<![\w-])(?P<name>lib(?:cuda|nvidia-(?:ml|ptxjitcompiler|cfg|glcore))\.so)\.(?P<release>[3-9][0-9]{2}\.[0-9]{2,3}(?:\.[0-9]{2})?)"
    r"(?!\w|\.\w|-)"
)
"""A library of the driver by the name of its file, which ends with its release."""
_INSTALLED = re.compile(
    r"\b(?:apt|apt-get|dnf|yum|zypper|pacman)\b[^;&|\n]{0,60}? (?:install|in|-S)\b[^;&|\n]{0,120}?[ `'\"]"
    r"(?P<package>nvidia-(?:driver|utils|headless)(?:-[0-9]{3}(?:-(?:server|open))?)?|cuda-drivers(?:-[0-9]{3})?|cuda(?:-[0-9]{1,2}-[0-9])?|"
    r"libnvidia-compute-[0-9]{3})(?![\w-])"
)
_MODULE = re.compile(
    r"\b(?:ii|install(?:ed|ing|s)?|using|use|with|have|running|has|on|Setting up|-S)\s{1,4}(?:-y |the |to )?[`'\"]?"
    r"(?:[\w.:+=-]{2,60} ){0,3}?[`'\"]?"
    r"nvidia-(?:(?:driver|dkms|headless)-(?P<branch>[0-9]{3})(?:-server)?(?P<open>-open)?|(?P<named>open(?:-dkms|-kernel-dkms|-lts)?"
    r"|kernel-open-dkms))(?![\w-]|\.[a-z])"
)
"""A package that brings the kernel module. Ubuntu's without ``-open`` are proprietary; others name the open one."""
_TYPE = re.compile(
    r"\b(?:(?P<open>open(?:[ -]source)?)|proprietary|closed(?:[ -]source)?) (?:(?:NVIDIA|GPU) ){0,2}"
    r"kernel (?:modules?|drivers?)\b"
    r"|\bkernel modules?(?: type| flavou?r)?(?: ?[:=]| is| are) (?:the )?(?:(?P<named>open)|proprietary|closed)\b",
    re.IGNORECASE,
)
"""The type of the kernel module, as a sentence or a label tells it; of a driver alone people say that it is proprietary
to tell it from nouveau.
"""
_WSL = ("WSL", "wsl", "Wsl", "microsoft-standard")
_SEVERAL = re.compile(
    r"\b(?:also|then|both|tried|first|later|previously|switch\w*|downgrad\w+|instead|purg\w+|remov\w+|replac\w+)\b",
    re.IGNORECASE,
)
"""What a text says that tells of several installations."""
_NEGATED = re.compile(r"\b(?:not|never|without|instead of|no)\b|n't\b|\?", re.IGNORECASE)
_RELEASE = re.compile(r"\b[3-9][0-9]{2}\.[0-9]{2,3}\b")
_RUNS = re.compile(r"Driver Version: [0-9]{3}")
_LONGEST_LINE = 1_000
_BEFORE = 40
"""Characters before a command in which a "not" belongs to it."""


def read(paste: Paste) -> Snapshot:
    # The module counts where the text names packages, or else types of it, of one kind and branch only.
    found, module = _libraries(paste), _only(paste, "nvidia-", _MODULE) or _only(paste, "ernel ", _TYPE)
    if module is None:
        return found
    kernel = Kernel(source=SOURCE, nvidia=KernelModule(source=SOURCE, flavour=module.flavour))
    driver = Driver(source=SOURCE, release=module.branch) if module.branch and not _RELEASE.search(paste.text) else None
    return msgspec.structs.replace(found, kernel=kernel, driver=found.driver or driver)


def _libraries(paste: Paste) -> Snapshot:
    found = tuple(
        DriverLibrary(source=SOURCE, path=name, version=release, kind="driver")
        for name, release in _releases(paste).items()
    ) or tuple(DriverLibrary(source=SOURCE, path=name, kind="driver") for name in _installed_in_wsl(paste))
    return Snapshot(driver=Driver(source=SOURCE, libraries=Listing(items=found)) if found else None)


class _Module(NamedTuple):
    """The kernel module that an installed package brings."""

    flavour: Flavour
    branch: str | None


def _only(paste: Paste, sign: str, pattern: re.Pattern[str]) -> _Module | None:
    lines = [line[:_LONGEST_LINE] for line in paste.statements if sign in line]
    named = {
        _Module("open" if found["open"] or found["named"] else "proprietary", found.groupdict().get("branch"))
        for line in lines
        for found in pattern.finditer(line)
        if not _NEGATED.search(line[max(found.start() - _BEFORE, 0) : found.end()])
    }
    return named.pop() if len(named) == 1 and not any(map(_SEVERAL.search, lines)) else None


def _installed_in_wsl(paste: Paste) -> Iterator[str]:
    """The Linux driver's packages that a command of a text about WSL installs, where none belongs."""
    if not any(name in line for line in paste.statements for name in _WSL):
        return
    for line in paste.statements:
        text = line[:_LONGEST_LINE]
        if "nvidia-" not in text and "cuda" not in text:
            continue
        for found in _INSTALLED.finditer(text):
            if not _NEGATED.search(text[max(found.start() - _BEFORE, 0) : found.start()]):
                yield found["package"]


def _releases(paste: Paste) -> dict[str, str]:
    """The release of the libraries by package, where all packages have one release."""
    lines = [line for line in paste.statements if "nvidia-" in line or "libcuda" in line]
    if not lines or _RUNS.search(paste.text):
        return {}
    found = dict(_packages(lines))
    return found if len(set(found.values())) == 1 else {}


def _packages(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        for package in _PACKAGE.finditer(line[:_LONGEST_LINE]):
            yield package[0].split()[0].strip("`'\""), package["release"]
        for file in _FILE.finditer(line[:_LONGEST_LINE]):
            yield file["name"], file["release"]
