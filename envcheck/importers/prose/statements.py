"""What sentences and labels say of this machine: its system, GPUs of other makers, whether a framework finds a GPU.

In prose a system counts only if a line begins with it, a label for it, or a prompt. What PyTorch answered counts where
it stands in the same line as the question, in any words; what a line of code tests, and what somebody expects or asks,
is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from envcheck.importers.formats.operating_system import from_title
from envcheck.importers.importer import Rank, importer, joined, of_framework
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.readings import facts_in
from envcheck.importers.wording import wording
from envcheck.model.snapshot import Driver, Platform, Snapshot, Told
from envcheck.text.lazy import lazy_pattern

_BULLET = " \t-*•#>`|"
_LONGEST_NAME, _LONGEST_LIST = 300, 160

_PROSE = "system in prose"


@importer(_PROSE, Rank.PROSE)
def read_system(paste: Paste) -> Snapshot:
    """The system in prose: "Ubuntu 20.04", "OS: Windows 11", "WSL2 under Windows"; prompts of Windows and Docker."""
    return joined(map(_system, paste.statements))


def _system(line: str) -> Snapshot | None:
    text = line[:_LONGEST_NAME].strip(_BULLET)
    if not text:
        return None
    # In a list the system may stand anywhere: "tensorflow 2.10, Windows 10, CUDA 11.2".
    parts = re.split(r"[,;|\uff0c\uff1b。]| / |\. ", text)[1:] if len(text) <= _LONGEST_LIST else []
    for part in (each.strip(_BULLET) for each in (text, *parts)):
        # It begins with the system's name, or labels it; "Windows 11 WSL2" is Linux under Windows.
        found = wording("system-behind-label").match(part)
        platform = from_title(found[1]) if found and wording("name-of-system").match(found[1]) else None
        platform = platform or next((facts.platform for facts in facts_in(_PROSE, part)), None)
        if platform is None and (own := wording("own-system").search(part)):
            platform = from_title(own[1])
        if platform is not None and platform.wsl is None and re.search(r"\bWSL ?2?\b", part):
            platform = Platform(source=SOURCE, os="linux", wsl=True)
        if platform is not None:
            return Snapshot(platform=platform)
    return None


_SIGNS_OF_OTHERS = (
    "Radeon", "RX", "Rx", "rX", "rx", "Vega", "Instinct", "MI", "Intel", "intel", "Arc", "Apple", "Mac", "gfx", "AMD",
    "amd", "ATI", "MTT", "Ascend", "MLU", "MetaX",
)  # fmt: skip
"""One of these stands in each name of a GPU of another maker."""
_SIGNS_OF_MAC = ("mac", "os x", "osx", "apple", "/private/var/", "/opt/homebrew/", "/users/")
"""One of these, in lower case, stands in each name of a Mac."""
_NVIDIA = lazy_pattern(r"\b(?:GeForce|RTX|GTX|Quadro|Tesla|TITAN|Jetson|nvidia-smi)\b|\bNVIDIA [A-Z]{0,4}[0-9]")
_LONGEST_LINE, _LONGEST_TEXT = 600, 1 << 20


@importer("GPUs of other makers", Rank.PROSE)
def read_other_gpus(paste: Paste) -> Snapshot:
    """GPUs of other makers in any text: a machine that has these alone has no use for builds with CUDA. That a text
    names one says nothing about others; the rule that judges it asks whether the text shows an NVIDIA GPU.
    """
    if _NVIDIA.search(paste.text[:_LONGEST_TEXT]):
        return Snapshot()
    of_tpu = "TPU" in paste.text or "[tpu]" in paste.text
    if of_tpu and any(wording("tpu").search(line[:_LONGEST_LINE]) for line in paste.statements):
        return Snapshot(told=Told(source=SOURCE, on_tpu=True))
    lines = [line for line in paste.statements if any(map(line.__contains__, _SIGNS_OF_OTHERS))]
    if other := _named(lines, wording("gpu-of-other-maker"), wording("gpu-aside")):
        return Snapshot(told=Told(source=SOURCE, other_gpu=other))
    of_mac = any(map(paste.text.lower().__contains__, _SIGNS_OF_MAC))
    if not of_mac or wording("system-beside-mac").search(paste.text[:_LONGEST_TEXT]):
        return Snapshot()
    mac = _named(paste.statements, wording("mac"), wording("mac-aside"))
    return Snapshot(told=Told(source=SOURCE, other_gpu=f"a Mac ({mac})")) if mac else Snapshot()


def _named(lines: Iterable[str], pattern: re.Pattern[str], aside: re.Pattern[str]) -> str:
    """What the first line with one calls it, where it speaks of no other one; empty where none does."""
    for line in lines:
        found = pattern.search(line[:_LONGEST_LINE])
        if found and not aside.search(line[: found.start()]):
            return found[0].strip()
    return ""


_SPOKEN = {"pytorch": "torch", "tf": "tensorflow", "keras": "tensorflow"}
_CALL = lazy_pattern(r"(?:torch\.)?cuda[._](?:is_available|device_count)\(\)(?P<printed>\))?[`\"']{0,2}$")
_OF_TENSORFLOW = lazy_pattern(r"name: \"/device:(?P<kind>CPU|GPU|XLA_GPU):[0-9]")

_AVAILABILITY = "CUDA's availability"


@importer(_AVAILABILITY, Rank.PROSE)
def read_answers(paste: Paste) -> Snapshot:
    devices = {found["kind"] for line in paste.statements if (found := _OF_TENSORFLOW.search(line[:_LONGEST_LINE]))}
    listed = [of_framework("tensorflow", gpu_available="GPU" in devices)] if devices else []
    return joined((*map(_found_or_not, (*paste.statements, *_broken(paste))), *listed))


def _broken(paste: Paste) -> Iterator[str]:
    """Sentences that go on below a call that stands in a line of its own."""
    for line, below in pairwise(filter(str.strip, paste.lines)) if "cuda" in paste.text else ():
        text = line.strip()[-_LONGEST_LINE:]
        call = _CALL.search(text)
        if not call or not wording("answer-goes-on").match(below.strip()) or (call["printed"] and below[0].isspace()):
            continue
        asked = call[0].rstrip(")") + ")" if call["printed"] else text
        yield f"{asked} {below.strip().removeprefix('[1] ')[:_LONGEST_LINE]}"


def _found_or_not(line: str) -> Snapshot | None:
    text = line[:_LONGEST_LINE]
    if printed := next(facts_in(_AVAILABILITY, text), None):
        return printed
    sentence = wording("framework-finds-no-gpu").search(text)
    if sentence and not wording("hedged").search(text[: sentence.end()].rpartition(". ")[2]):
        name = next(found for found in sentence.groups() if found).lower()
        return of_framework(_SPOKEN.get(name, name), gpu_available=False)
    return _answer(text) if any(word in text for word in ("available", "AVAILABLE", "orch", "None")) else None


def _answer(text: str) -> Snapshot | None:
    """What PyTorch answered to a question in the same line; a question back is none."""
    asked = (
        wording("torch-without-cuda").search(text),
        wording("availability").search(text) or wording("availability-label").match(text),
        wording("device-count").search(text),
    )
    match = next(filter(None, asked), None)
    if match is None or wording("no-answer").search(text[: match.end()]) or text.rstrip().endswith("?"):
        return None
    if match is asked[0]:
        return of_framework("torch", cpu_only=True)
    answer = next(each for each in match.groups() if each)
    if match is asked[2] and int(answer):
        return Snapshot(driver=Driver(source=SOURCE, cuda_devices=int(answer)))
    return of_framework("torch", gpu_available=answer.lower() in ("true", "yes"))
