"""The files of a plan with other releases, images and indexes in their lines, as a diff."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from envcheck.errors import UsageError
from envcheck.model.snapshot import Planned
from envcheck.pipeline.planned.nearby import REQUIREMENTS
from envcheck.rules.fixes.frameworks import INDEX
from envcheck.text.lazy import lazy_pattern

_MOST_LINES = 40  # Lines of one RUN instruction or list in which an entry is looked for
_INDEX = lazy_pattern(r"download\.pytorch\.org/whl/(?P<old>(?:cu(?=[0-9$])|\$)[^\s\"'/\\]*|cpu\b)")
_VARIABLE = lazy_pattern(r"\$\{?([A-Za-z_][A-Za-z0-9_]{0,99})\}?")


def diff_of(
    changed: Sequence[tuple[Planned, str]], tag: str | None, torch: Planned | None
) -> tuple[str, tuple[str, ...]]:
    """The changes of the files, and the files that cannot be changed so. An entry of an image comes with another tag;
    ``tag`` is that of PyTorch's index, where it changes.
    """
    by_file = defaultdict[str, list[tuple[Planned, str]]](list)
    for each, version in changed:
        by_file[each.file].append((each, version))
    # A page of files for the release that goes, as PyG, DGL and OpenMMLab have them: the other may have none.
    gone = [(each.name, each.version.partition("+")[0]) for each, _ in changed if each.name == "torch" and each.version]
    page = re.compile("|".join(rf"https?://\S+/{name}-?{re.escape(old)}" for name, old in gone) or "(?!)")
    patch, by_hand = "", list[str]()
    for file, entries in by_file.items():
        try:
            before = Path(file).read_text(encoding="utf-8").splitlines(keepends=True)
        except (OSError, ValueError) as error:
            raise UsageError(f"--fix-plan: cannot read {file} again: {error}") from None
        after = [*before]
        done = all(_replaced(after, each, version) for each, version in entries)
        done = done and not any(map(page.search, after))
        if done and tag is not None and torch is not None and torch.file == file and tag != (torch.build or ""):
            places = [(n, found) for n, line in enumerate(after) for found in _INDEX.finditer(line)]
            for place, found in reversed(places):
                _write(after, place, found, tag)
            if not places and (done := file.endswith(REQUIREMENTS)):
                after.insert((torch.line or 1) - 1, f"--extra-index-url {INDEX}{tag}\n")
        if done:
            patch += "".join(difflib.unified_diff(before, after, f"a/{file.lstrip('/')}", f"b/{file.lstrip('/')}"))
        else:
            by_hand.append(file)
    return patch, tuple(by_hand)


def _replaced(lines: list[str], entry: Planned, version: str) -> bool:
    """Write another version where an entry stands; whether it was found there."""
    start = (entry.line or 1) - 1
    if entry.alternatives:
        old = "|".join(map(re.escape, entry.alternatives))
        pin = re.compile(rf"(?<![\w.-]){_name(entry)}(?P<old>\s*===?\s*(?:{old}))(?![\w.+])", re.IGNORECASE)
        found = [(place, one) for place, line in enumerate(lines) if (one := pin.search(line))]
        for place, one in found:
            _write(lines, place, one, f"=={version}")
        return len(found) >= len(entry.alternatives)
    for place in range(start, min(start + _MOST_LINES, len(lines))):
        for pattern, text in _forms(entry, version):
            if each := re.search(pattern, lines[place], re.IGNORECASE):
                _write(lines, place, each, text)
                return True
    return False


def _name(entry: Planned) -> str:
    return re.escape(entry.name).replace(r"\-", "[-_.]+")


def _forms(entry: Planned, version: str) -> Iterator[tuple[str, str]]:
    """How an entry may be written, and what to write in place of its old release."""
    name = rf"(?<![\w.-]){_name(entry)}"
    if entry.image:
        yield rf"\b{re.escape(entry.image.partition(':')[0])}:(?P<old>[^\s\"'@]+)(?=[\s\"']|$)", version
        return
    if entry.conda is not None:
        yield rf"{name}(?:\s*={{1,2}}\s*|\s+)(?P<old>[0-9][^\s\"'#,]*)", version
    if entry.file.endswith(".toml"):
        yield rf"{name}[\"']?\s*=\s*(?:\{{[^}}\n]*?\bversion\s*=\s*)?[\"'](?P<old>[^\"'\n]*)", f"=={version}"
    pin = f"{entry.name}=={version}"
    yield rf"(?P<old>(?:{_name(entry)}\s*@\s*)?https?://\S*/{_name(entry)}-[^/\s]+\.whl[^\s\"']*)", pin
    bound = r"\s*(?:===?|~=|!=|[<>]=?)\s*[^\s;\"'\\#)]+" if re.search("[=<>~!]", entry.asked) else r"(?![\w.\[=<>~!-])"
    yield rf"{name}(?:\s*\[[^\]\s]*\])?(?P<old>{bound})", f"=={version}"


def _write(lines: list[str], place: int, found: re.Match[str], text: str) -> None:
    """Write a text in place of the old one; where variables name it that are used here alone, where these are set."""
    old, line = _VARIABLE.split(found["old"].replace(" ", "")), lines[place]
    begin = next((n for n in range(place, 0, -1) if not lines[n - 1].rstrip().endswith("\\")), 0)
    end = next((n for n in range(place, len(lines)) if not lines[n].rstrip().endswith("\\")), place)
    values, setting = re.fullmatch("([^\\s+]+)".join(map(re.escape, old[::2])), text), list[list[int]]()
    for name in old[1::2]:
        sets = re.compile(rf"\s*(?:ARG|ENV)\s(?:.*\s)?{name}[= ]")
        setting.append([n for n in range(begin) if sets.match(lines[n])])
        setting[-1] += [-1 for n, each in enumerate(lines) if name in _VARIABLE.findall(each) and not begin <= n <= end]
    if values and setting and all(len(each) == 1 for each in setting):
        for (n,), name, value in zip(setting, old[1::2], values.groups(), strict=True):
            lines[n] = re.sub(rf"(\b{name}[= ][\"']?)[^\s\"']+", rf"\g<1>{value}", lines[n], count=1)
    else:
        lines[place] = f"{line[: found.start('old')]}{text}{line[found.end('old') :]}"
