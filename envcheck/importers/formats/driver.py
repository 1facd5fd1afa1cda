"""The driver's parts on the system: the kernel and its modules (``/proc/driver/nvidia/version``, ``lsmod``,
``mokutil``, ``dkms status``, ``uname``), and the driver's packages and files as package managers list them.

Of DKMS only the modules that are installed count, and whether there is one for the running kernel only where the text
says which kernel runs. Packages tell the release of the driver's libraries, which must be the kernel module's, and by
their names whether that is the open or the proprietary one. Where nvidia-smi printed its table, both fit, and a list
may be of another day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from envcheck.importers.importer import Rank, importer
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.readings import read_lines
from envcheck.importers.wording import wording
from envcheck.model.merge import merge
from envcheck.model.snapshot import Driver, DriverLibrary, Kernel, KernelModule, Listing, Snapshot
from envcheck.model.versions import Flavour
from envcheck.text.lazy import lazy_pattern

_MODULE_FILE = lazy_pattern(r"/lib/modules/([0-9][\w.+~-]{2,80})/[\w./+-]{0,200}\bnvidia\.ko(?:\.\w{2,4})?$")
_COMMAND = lazy_pattern(r"(?:[\w@.:~\[\] /-]{0,80}[$#] ?|\[root@[^\]]{1,60}\]# ?)(?=\S)")
"""A shell's prompt with a command behind it."""
_LISTS_BUILT = lazy_pattern(r"\b(?:ls|find) .{0,40}/lib/modules/\$(?:\(uname -r\)|\{?\(?uname)")
_LONGEST_LINE = 500


@importer("kernel modules", Rank.OUTPUT)
def read_modules(paste: Paste) -> Snapshot:
    found = read_lines("kernel modules", paste)
    if shown := _listed(paste):
        found = merge((found, Snapshot(kernel=Kernel(source=SOURCE, nvidia=shown))))
    running = found.platform.kernel_release if found.platform else None
    built = tuple(_built(paste))
    if built:
        others = tuple(dict.fromkeys(kernel for kernel in built if kernel != running))
        module = KernelModule(source=SOURCE, built=None if running is None else running in built, built_for=others)
    elif any(wording("module-added-to-dkms").search(line.strip()) for line in paste.statements if "added" in line):
        module = KernelModule(source=SOURCE, built=False)
    else:
        return found
    return merge((found, Snapshot(kernel=Kernel(source=SOURCE, nvidia=module))))


def _listed(paste: Paste) -> KernelModule | None:
    """The module by what ``lsmod | grep nvidia`` leaves out, and ``ls /lib/modules/$(uname -r)/…`` shows.

    Nothing between the command and the next prompt is an answer; at the end of a text it may have been cut off.
    """
    if "lsmod" not in paste.text and "/lib/modules/$" not in paste.text:
        return None
    loaded = built = None
    command, printed = "", False
    for line in paste.lines:
        text = line.strip()[:_LONGEST_LINE]
        if prompt := _COMMAND.match(text):
            if re.search(r"\blsmod ?\| ?e?grep (?:-\S{1,4} )?[\"']?nvidia[\"']?$", command) and not printed:
                loaded = False
            command, printed = text[prompt.end() :], False
        elif text:
            printed = True
            if "nvidia.ko" in text and _LISTS_BUILT.search(command):
                built = True
    return None if loaded is built is None else KernelModule(source=SOURCE, loaded=loaded, built=built)


def _built(paste: Paste) -> Iterator[str]:
    """The kernels that DKMS has installed NVIDIA's module for, or that have its file."""
    kernel = None  # in whose listed folder the module lies
    for line in paste.lines if "/lib/modules/" in paste.text else ():
        text = line.strip()[:_LONGEST_LINE]
        if folder := wording("folder-of-modules").search(text):
            kernel = folder["kernel"]
        elif not text or _COMMAND.match(text):
            kernel = None
        elif kernel and re.search(r"(?<![\w./-])nvidia(?:-current)?\.ko(?:\.\w{2,4})?(?![\w.])", text):
            yield kernel
    for line in paste.statements:
        text = line.strip()[:_LONGEST_LINE]
        if "nvidia.ko" in text and (file := _MODULE_FILE.search(text)):
            yield file[1]
        elif ("nvidia" in text or "built for" in text) and (package := wording("module-built-for").search(text)):
            yield next(filter(None, package.groups()))
        elif "installed" in text and (dkms := wording("module-by-dkms").search(text)) and dkms["state"] == "installed":
            yield dkms["kernel"]


_NEGATED = lazy_pattern(r"\b(?:not|never|without|instead of|no)\b|n't\b|\?", re.IGNORECASE)
_RELEASE = lazy_pattern(r"\b[3-9][0-9]{2}\.[0-9]{2,3}\b")
_LONGEST_PACKAGE_LINE = 1_000
_BEFORE = 40  # Characters before a command in which a "not" belongs to it


@importer("driver packages", Rank.OUTPUT)
def read_packages(paste: Paste) -> Snapshot:
    """The driver's packages (``libnvidia-compute-550:amd64 550.107.02-0ubuntu1``) and files, by package managers."""
    # The module counts where the text names packages, or else types of it, of one kind and branch only.
    found = _libraries(paste)
    of_package = _only(paste, "nvidia-", wording("package-of-module"))
    module = of_package or _only(paste, "ernel ", wording("type-of-module"))
    if module is None:
        return found
    flavour, branch = module
    kernel = Kernel(source=SOURCE, nvidia=KernelModule(source=SOURCE, flavour=flavour))
    driver = Driver(source=SOURCE, release=branch) if branch and not _RELEASE.search(paste.text) else None
    return msgspec.structs.replace(found, kernel=kernel, driver=found.driver or driver)


def _libraries(paste: Paste) -> Snapshot:
    """The driver's libraries by package or file, where all have one release; else the packages of the Linux driver
    that a command of a text about WSL installs, where none belongs.
    """
    releases: dict[str, str] = {}
    named = [line[:_LONGEST_PACKAGE_LINE] for line in paste.statements if "nvidia-" in line or "libcuda" in line]
    for line in named if not re.search(r"Driver Version: [0-9]{3}", paste.text) else ():
        for package in wording("package-of-driver").finditer(line):
            releases[package[0].split()[0].strip("`'\"")] = package["release"]
        releases |= {file["name"]: file["release"] for file in wording("file-of-driver").finditer(line)}
    if len(set(releases.values())) == 1:
        found = [DriverLibrary(source=SOURCE, path=n, version=v, kind="driver") for n, v in releases.items()]
    else:
        of_wsl = any(name in line for line in paste.statements for name in ("WSL", "wsl", "Wsl", "microsoft-standard"))
        texts = (line[:_LONGEST_PACKAGE_LINE] for line in paste.statements) if of_wsl else ()
        found = [
            DriverLibrary(source=SOURCE, path=package["package"], kind="driver")
            for text in texts
            if "nvidia-" in text or "cuda" in text
            for package in wording("driver-installed").finditer(text)
            if not _NEGATED.search(text[max(package.start() - _BEFORE, 0) : package.start()])
        ]
    return Snapshot(driver=Driver(source=SOURCE, libraries=Listing(items=tuple(found))) if found else None)


def _only(paste: Paste, sign: str, pattern: re.Pattern[str]) -> tuple[Flavour, str | None] | None:
    """The type of the kernel module that lines tell, and the driver's branch; None where they tell several."""
    lines = [line[:_LONGEST_PACKAGE_LINE] for line in paste.statements if sign in line]
    named: set[tuple[Flavour, str | None]] = {
        ("open" if found["open"] or found["named"] else "proprietary", found.groupdict().get("branch"))
        for line in lines
        for found in pattern.finditer(line)
        if not _NEGATED.search(line[max(found.start() - _BEFORE, 0) : found.end()])
    }
    return named.pop() if len(named) == 1 and not any(map(wording("several-installations").search, lines)) else None
