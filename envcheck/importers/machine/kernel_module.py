"""Facts about the kernel and its modules: ``/proc/driver/nvidia/version``, which TensorFlow prints too, ``lsmod``,
``mokutil --sb-state``, ``dkms status`` and ``uname``.

Of DKMS only the modules that are installed count, and whether there is one for the running kernel only where the text
says which kernel runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, each_line
from envcheck.snapshot import Kernel, KernelModule, Platform, Snapshot
from envcheck.snapshot.merge import merge
from envcheck.versions import Flavour

NAME = "kernel modules"
RANK = Rank.OUTPUT

_VERSION = re.compile(
    r"NVRM(?: version)?: (?:loading )?NVIDIA UNIX (Open )?[^\n]{0,60}?\b([0-9]{2,4}(?:\.[0-9]{1,4}){1,2})\b"
)
_SAID = re.compile(
    r"\bkernel modules?(?: version)?(?: is(?: at)?)?[ :=]{1,3}"
    r"(?P<version>[3-9][0-9]{2}\.[0-9]{2,3}(?:\.[0-9]{2})?)(?![\w.])",
    re.IGNORECASE,
)
_OF_TENSORFLOW = re.compile(r"\bkernel reported version is: ([0-9]{3})\.([0-9]{1,3})(?:\.([0-9]{1,2}))?(?![\w.])")
"""TensorFlow shows the numbers without leading zeros: ``460.91.3``."""
_LSMOD = re.compile(r"(nouveau|nova_core|nvidia)\s{1,40}[0-9]{4,10}\s{1,40}[0-9]{1,4}(?:\s|$)")
_NOUVEAU = re.compile(
    r"\bdriver(?: in use)?: nouveau\b|\bconfiguration:.{0,80}\bdriver=nouveau\b"
    r"|\bnouveau (?:(?:kernel )?(?:driver|module) )?(?:(?:is|gets) )?(?:still |now |currently |already )?"
    r"(?:loaded|in use|active|running|being used|used)\b(?! (?:by default|to|as a fallback))"
    r"|\b(?:is|are|still) (?:using|running|on|bound to|driven by) (?:the )?nouveau\b",
    re.IGNORECASE,
)
"""A sentence that says which driver holds the GPU."""
_UNDECIDED = re.compile(
    r"\b(?:if|whether|when|unless|before|not|never|no|without|ensure|sure|check|verify|was|neither|nor|longer)\b|n't\b|\?",
    re.IGNORECASE,
)
_SECURE_BOOT = re.compile(
    r"\bSecure ?Boot(?: (?:state|status))?:? (?:is )?(?:currently |still )?"
    r"(?P<state>enabled|disabled|on|off)\b(?! (?:it|the|in))",
    re.IGNORECASE,
)
_DKMS = re.compile(
    r"nvidia(?:-open|-srv|-current|-current-open)?[/,] ?(?P<release>[0-9]{3}(?:\.[0-9]{1,4}){1,2})(?:-\w{1,20})?, "
    r"(?P<kernel>[0-9]\S{2,80}), \w{3,12}: (?P<state>installed|built|added)"
)
_BUILT_FOR = re.compile(
    r"\bkmod-nvidia(?:-open)?-(?P<kmod>[0-9]{1,2}\.[0-9]{1,3}\.[0-9]{1,3}-\S{1,60}?\.(?:x86_64|aarch64))-[0-9]{3}\."
    r"|\blinux-(?:modules|objects|signatures)-nvidia-[0-9]{3}(?:-(?:open|server)){0,2}"
    r"-(?P<ubuntu>[0-9]{1,2}\.[0-9]{1,3}\.[0-9]{1,3}-[0-9]{1,4}-[a-z]{3,12})\b"
    r"|\b(?:nvidia|kmod|kmp|dkms|module)[^\n]{0,60}? built for (?:kernel )?"
    r"(?P<kernel>[0-9]{1,2}\.[0-9]{1,3}\.[0-9]\S{0,80}?)(?=[,;)]?(?:\s|$))",
    re.IGNORECASE,
)
_ADDED = re.compile(
    r"(?:^|\bdkms status:? ?)nvidia(?:-open|-srv|-current|-current-open)?"
    r"[/,] ?[0-9]{3}(?:\.[0-9]{1,4}){1,2}(?:-\w{1,20})?: added\b"
)
"""Known to DKMS, and built for no kernel."""
_RUNNING = re.compile(
    r"Linux version (?P<booted>[0-9]\S{2,80})"
    r"|\bkernel (?P<kernel>[0-9]{1,2}\.[0-9]{1,3}\.[0-9]\S{0,80}) (?:is )?(?:now )?running\b"
    r"|\b(?:x?uname|kernel"
    r"|linux):?[^0-9\n]{0,20} (?P<machine>[0-9]{1,2}\.[0-9]{1,3}\.[0-9]\S{0,60})(?: arch:)? (?:x86_64|aarch64)\b"
    r"|\buname -r\b[^0-9\n]{0,12}(?P<uname>[0-9]{1,2}\.[0-9]{1,3}\.[0-9]\S{0,80}?)(?=[,;)]?(?:\s|$))"
    r"|\bkernel (?:up(?:grad|dat)\w+|is|was up(?:grad|dat)ed)(?: now)?(?: to)? "
    r"(?P<updated>[0-9]{1,2}\.[0-9]{1,3}\.[0-9]\S{0,80}?)"
    r"(?=[,;:.)]?(?:\s|$))"
    r"|\b(?:running|booted|current) kernel(?: is|:)? "
    r"(?P<current>[0-9]{1,2}\.[0-9]{1,3}\.[0-9]\S{0,80}?)(?=[,;]?(?:\s|$))",
    re.IGNORECASE,
)
_UNAME = re.compile(
    r"Linux [\w.-]{1,80} ([0-9]{1,2}\.[0-9]{1,3}\S{0,80}) #\S"
    r"|(?:kernel(?: release| version)?|uname -r) ?[:=] ?(?:Linux )?([0-9]{1,2}\.[0-9]{1,3}\.[0-9]\S{0,80})$"
    r"|(?:Linux )?([0-9]{1,2}\.[0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?-\S{0,40}(?:generic|amd64|azure|aws|gcp|oem"
    r"|lowlatency|el[789]\S{0,20}|fc[0-9]{2}\S{0,20}|arch\S{0,10}|default|tegra|pve|zen\S{0,10}|lts|realtime|WSL2))$",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"(?P<loaded>/sys/module/nvidia/version\b)|\bmodinfo\b.{0,40}\bnvidia\b|filename:.{1,200}/nvidia\.ko"
)
_ANSWER = re.compile(r"(?:version:\s{1,20})?([0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2,3})?)$")
_MODULE_FILE = re.compile(r"/lib/modules/([0-9][\w.+~-]{2,80})/[\w./+-]{0,200}\bnvidia\.ko(?:\.\w{2,4})?$")
_FOLDER = re.compile(
    r"(?:^|\bls (?:-\S{1,6} ){0,3}[\"']?)/(?:usr/)?lib/modules/"
    r"(?P<kernel>[0-9][\w.+~-]{2,80})(?:/[\w./+*-]{0,100})?[\"']?:?"
    r"(?: ?\| ?grep \S{1,40}(?: \S{1,40})?)?$"
)
"""A folder of one kernel's modules whose content stands below."""
_NAMED_FILE = re.compile(r"(?<![\w./-])nvidia(?:-current)?\.ko(?:\.\w{2,4})?(?![\w.])")
_COMMAND = re.compile(r"(?:[\w@.:~\[\] /-]{0,80}[$#] ?|\[root@[^\]]{1,60}\]# ?)(?=\S)")
"""A shell's prompt with a command behind it."""
_LISTS_LOADED = re.compile(r"\blsmod ?\| ?e?grep (?:-\S{1,4} )?[\"']?nvidia[\"']?$")
_LISTS_BUILT = re.compile(r"\b(?:ls|find) .{0,40}/lib/modules/\$(?:\(uname -r\)|\{?\(?uname)")
_LONGEST_LINE = 500


def read(paste: Paste) -> Snapshot:
    found = each_line(paste, _read_line)
    for shown in filter(None, (_asked(paste), _listed(paste))):
        found = merge((found, Snapshot(kernel=Kernel(source=SOURCE, nvidia=shown))))
    running = found.platform.kernel_release if found.platform else None
    built = tuple(_built(paste))
    if built:
        others = tuple(dict.fromkeys(kernel for kernel in built if kernel != running))
        module = KernelModule(source=SOURCE, built=None if running is None else running in built, built_for=others)
    elif any(_ADDED.search(line.strip()) for line in paste.statements if "added" in line):
        module = KernelModule(source=SOURCE, built=False)
    else:
        return found
    return merge((found, Snapshot(kernel=Kernel(source=SOURCE, nvidia=module))))


def _asked(paste: Paste) -> KernelModule | None:
    """The module, from what ``cat /sys/module/nvidia/version`` or ``modinfo nvidia`` printed."""
    for line, below in pairwise(paste.lines):
        asked, answer = _ASKED.search(line[:_LONGEST_LINE]), _ANSWER.match(below.strip())
        if asked and answer:
            return KernelModule(source=SOURCE, loaded=True if asked["loaded"] else None, version=answer[1])
    return None


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
            if _LISTS_LOADED.search(command) and not printed:
                loaded = False
            command, printed = text[prompt.end() :], False
        elif text:
            printed = True
            if "nvidia.ko" in text and _LISTS_BUILT.search(command):
                built = True
    return None if loaded is built is None else KernelModule(source=SOURCE, loaded=loaded, built=built)


def _built(paste: Paste) -> Iterator[str]:
    """The kernels that DKMS has installed NVIDIA's module for, or that have its file."""
    yield from _of_folders(paste)
    for line in paste.statements:
        text = line.strip()[:_LONGEST_LINE]
        if "nvidia.ko" in text and (file := _MODULE_FILE.search(text)):
            yield file[1]
        elif ("nvidia" in text or "built for" in text) and (said := _BUILT_FOR.search(text)):
            yield next(filter(None, said.groups()))
        elif "installed" in text and (found := _DKMS.search(text)) and found["state"] == "installed":
            yield found["kernel"]


def _of_folders(paste: Paste) -> Iterator[str]:
    """The kernels in whose listed folder the module lies."""
    if "/lib/modules/" not in paste.text:
        return
    kernel = None
    for line in paste.lines:
        text = line.strip()[:_LONGEST_LINE]
        if folder := _FOLDER.search(text):
            kernel = folder["kernel"]
        elif not text or _COMMAND.match(text):
            kernel = None
        elif kernel and _NAMED_FILE.search(text):
            yield kernel


def _read_line(line: str) -> Snapshot | None:
    text = line.strip()[:_LONGEST_LINE]
    if module := _with_version(text):
        return Snapshot(kernel=Kernel(source=SOURCE, nvidia=module))
    if found := _LSMOD.match(text):
        if found[1] == "nvidia":
            return Snapshot(kernel=Kernel(source=SOURCE, nvidia=KernelModule(source=SOURCE, loaded=True)))
        nouveau = found[1] == "nouveau"
        loaded = Kernel(source=SOURCE, nouveau_loaded=nouveau or None, nova_loaded=None if nouveau else True)
        return Snapshot(kernel=loaded)
    if "ouveau" in text and (found := _NOUVEAU.search(text)) and not _UNDECIDED.search(_sentence(text, found)):
        return Snapshot(kernel=Kernel(source=SOURCE, nouveau_loaded=True))
    if found := _SECURE_BOOT.search(text):
        return Snapshot(kernel=Kernel(source=SOURCE, secure_boot=found["state"].lower() in ("enabled", "on")))
    if (found := _UNAME.match(text)) or (found := _RUNNING.search(text)):
        release = next(filter(None, found.groups()))
        wsl = True if "microsoft" in release.lower() else None
        return Snapshot(platform=Platform(source=SOURCE, os="linux", kernel_release=release, wsl=wsl))
    return None


def _with_version(text: str) -> KernelModule | None:
    """The module with its version, as the driver, TensorFlow or a sentence tells it."""
    if found := _VERSION.search(text):
        flavour: Flavour = "open" if found[1] else "proprietary"
        return KernelModule(source=SOURCE, loaded=True, version=found[2], flavour=flavour)
    if found := _OF_TENSORFLOW.search(text):
        release = ".".join((found[1], *(part.zfill(2) for part in found.groups()[1:] if part)))
        return KernelModule(source=SOURCE, loaded=True, version=release)
    said = _SAID.search(text) if "module" in text else None
    return KernelModule(source=SOURCE, version=said["version"]) if said else None


def _sentence(text: str, found: re.Match[str]) -> str:
    """The part of a sentence in which something stands."""
    begins = max(text.rfind(mark, 0, found.start()) for mark in (". ", "; ", ", "))
    ends = min((at for mark in (".", ";", ",") if (at := text.find(mark, found.end())) >= 0), default=len(text))
    return text[begins + 1 : ends + 1]
