"""Names of nodes as Slurm and people write many of them: ``gpu[001-099,200]``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from envcheck.errors import UsageError
from envcheck.text.wrap import consecutive

MOST = 100_000  # Names of one list

_UNUSUAL = re.compile(r"[\[\],\s\"]")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})(\D*)", re.DOTALL)


def folded(names: Iterable[str]) -> list[str]:
    """``names`` in order, runs of numbered ones joined: ``gpu[001-003]``; quoted where they could be taken for such."""
    families: dict[tuple[str, str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names)):
        found = _NUMBERED.fullmatch(name)
        if _UNUSUAL.search(name) or not name:
            plain.append(f'"{name}"')
        elif found:
            padded = len(found[2]) if found[2].startswith("0") and found[2] != "0" else 0
            families.setdefault((found[1], found[3], padded), []).append(int(found[2]))
        else:
            plain.append(name)
    for (head, tail, padded), numbers in families.items():
        if padded:  # 200 after 001-099
            others = families.get((head, tail, 0), [])
            numbers += [number for number in others if len(str(number)) == padded]
            others[:] = [number for number in others if len(str(number)) != padded]
    for (head, tail, padded), numbers in families.items():
        runs = consecutive(sorted(numbers))
        parts = [f"{run[0]:0{padded}d}" + (f"-{run[-1]:0{padded}d}" if len(run) > 1 else "") for run in runs]
        listed = parts[0] if len(numbers) == 1 else f"[{','.join(parts)}]"
        plain += [f"{head}{listed}{tail}"] if numbers else []
    return sorted(plain)


_LISTED = re.compile(r"(?:[^\s,\[\]]|\[[^\[\]]*\])+")
_RANGE = re.compile(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?")


def unfolded(text: str) -> list[str]:
    """The names in ``text``, which are separated by commas or white space: ``gpu[001-099,200] r[1-4]n[01-16]``.

    Raises UsageError where brackets hold no numbers, or there are more than ``MOST`` names.
    """
    if left := _LISTED.sub("", text).replace(",", " ").split():
        raise UsageError(f"{left[0]!r} closes or opens no list of numbers, as gpu[001-128] has")
    names: dict[str, None] = {}
    for word in _LISTED.findall(text):
        parts = re.split(r"\[([^\[\]]*)\]", word)
        choices = [_numbers(part, word) if place % 2 else [part] for place, part in enumerate(parts)]
        for name in product(*choices):
            names["".join(name)] = None
            if len(names) > MOST:
                raise UsageError(f"more than {MOST:,} names")
    return [*names]


def _numbers(text: str, word: str) -> list[str]:
    found: list[str] = []
    for part in text.split(","):
        read = _RANGE.fullmatch(part)
        first, last = (int(read[1]), int(read[2] or read[1])) if read else (1, 0)
        if read is None or not first <= last < first + MOST:
            raise UsageError(f"{word}: write numbers in brackets, as in gpu[001-099,200]")
        found += [f"{number:0{len(read[1])}d}" for number in range(first, last + 1)]
    return found


def absent(wanted: Iterable[str], present: Iterable[str | None]) -> list[str]:
    """Those of ``wanted`` that none of ``present`` is called, with or without its domain and a user before it."""
    hosts = {host_of(name) for name in present if name}
    short = {host.partition(".")[0] for host in hosts}
    asked = ((name, host_of(name)) for name in dict.fromkeys(wanted))
    others = ((name, host) for name, host in asked if host not in hosts and host not in short)
    return [name for name, host in others if host.partition(".")[0] not in hosts]


def host_of(name: str) -> str:
    """What the host is called, without a user before it."""
    return name.rpartition("@")[2].lower()
