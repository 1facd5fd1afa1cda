"""Requirements files of pip: requirements, ``-r``, ``-c``, index options, continuation lines, markers and hashes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
from packaging.utils import canonicalize_name

from envcheck.errors import UsageError
from envcheck.plans.kit.index import Index
from envcheck.plans.kit.requirement import LONGEST, of_wheel, planned, unread
from envcheck.plans.kit.sheet import Sheet
from envcheck.snapshot import Planned

NAME = "requirements"

Find = Callable[[str], "str | None"]
"""From a path in a command to that of a file, seen from the file that has the command."""

_PROJECT = "pyproject.toml"
_FOLDER = re.compile(r"(?:file:)?(?P<path>[^\[\]$:?#]{1,400}?)/?(?:\[(?P<extras>[A-Za-z0-9._, -]{1,400})\])?")

_COMMENT = re.compile(r"(?:^|\s)#.*$")
_OF_ONE = re.compile(r"\s--(?:hash|config-settings?|global-option|build-option)[= ].*$")
"""Options behind a requirement."""
_VALUED = {
    "-r": "include",
    "--requirement": "include",
    "-c": "constrain",
    "--constraint": "constrain",
    "-i": "index",
    "--index-url": "index",
    "--pypi-url": "index",
    "--extra-index-url": "extra",
    "-f": "links",
    "--find-links": "links",
    "-e": "file",
    "--editable": "file",
    "--no-binary": "",
    "--only-binary": "",
    "--trusted-host": "",
    "--use-feature": "",
}
_NAMED = re.compile(r"\s*(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,200}[A-Za-z0-9])?)\s*(?:\[[^\]]{0,400}\]\s*)?[=<>!~]")
"""A requirement's name before its bounds, which may hold a variable."""
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]{1,200}\}")
"""What pip replaces by a variable of the environment."""
_EXTRA = "extra of the project"
_PLAIN = ("--no-index", "--pre", "--prefer-binary", "--require-hashes")
_A_FILE = re.compile(r"(?:[a-z+]{2,12}://|\.{0,2}/|[A-Za-z]:\\)|.*\.(?:whl|zip|tar\.gz)(?:[?#].*)?$|\.(?:\[.*\])?$")

_ALONE = frozenset({"--no-deps", "--nodeps"})
"""With these, requirements are neither installed nor looked at."""
SHARES_BUILDS = "--no-build-isolation"
_UPGRADES = frozenset({"-U", "--upgrade", "--force-reinstall", "-I", "--ignore-installed"})
_NEWEST = "the command installs the newest release that it accepts"
_OF_COMMANDS = {
    "--torch-backend": "backend",
    "--python": "",
    "-p": "",
    "-t": "",
    "--target": "",
    "--prefix": "",
    "--root": "",
    "-w": "",
    "--wheel-dir": "",
    "--timeout": "",
    "--retries": "",
    "--default-timeout": "",
    "--cache-dir": "",
    "--proxy": "",
    "--upgrade-strategy": "",
    "--root-user-action": "",
    "--default-index": "index",
    "--index": "extra",
    "--index-strategy": "",
    "--progress-bar": "",
    "--link-mode": "",
    "--extra": _EXTRA,
    "--group": _EXTRA,
    "--platform": "",
    "--python-version": "",
}
"""Further options of ``pip install`` and ``uv pip install`` that take a value."""


def recognise(name: str) -> bool:
    return name.lower().endswith((".txt", ".in", ".pip"))


def read(sheet: Sheet) -> list[Planned]:
    """What ``pip install -r FILE`` would install."""
    found = sheet.bounded(_read(sheet, Index()))
    return [msgspec.structs.replace(each, together=sheet.file, isolated=True) for each in found]


def _read(sheet: Sheet, index: Index) -> Iterator[Planned]:
    lines = list(_logical(sheet))
    for number, text in lines:  # pip reads the index options of a whole file before it resolves
        if text.startswith("-"):
            index.take(*_option(sheet, number, text))
    for number, text in lines:
        if not text.startswith("-"):
            yield from _requirement(sheet, text, number, index)
            continue
        name, value = _option(sheet, number, text)
        if name == "include":
            yield from _read(sheet.beside(value, number), index)
        elif name == "constrain":
            sheet.constraints.extend(sheet.bounded(_read(sheet.beside(value, number), index)))
        elif name == "file":
            yield from _of_place(sheet, value, number, _beside(sheet))


def _logical(sheet: Sheet) -> Iterator[tuple[int, str]]:
    """The lines without comments, joined where they end in a backslash, each with the number of its first."""
    start, parts = 0, list[str]()
    for number, line in enumerate(sheet.text.split("\n"), start=1):
        text = _COMMENT.sub("", line[: LONGEST * 8])
        start = start if parts else number
        if text.endswith("\\") and not line.lstrip().startswith("#"):
            parts.append(text[:-1])
            continue
        joined = "".join((*parts, text)).strip()
        parts = []
        if joined:
            yield start, joined
    if joined := "".join(parts).strip():
        yield start, joined


def _option(sheet: Sheet, number: int, text: str) -> tuple[str, str]:
    """What an option line does and its value; the name is empty where it changes nothing that matters here."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise sheet.error(number, "a quotation mark is not closed") from None
    name, separator, value = words[0].partition("=")
    if name in _PLAIN:
        return "", ""
    short = next(
        (each for each in _VALUED if len(each) == 2 and name.startswith(each) and not name.startswith("--")), None
    )
    if short and name != short:
        name, value = short, words[0][2:]
        separator = "="
    if name not in _VALUED:
        raise sheet.error(number, "requirements files have no such option; see pip's documentation of the file format")
    value = value if separator else next(iter(words[1:]), "")
    if not value:
        raise sheet.error(number, f"{name} has no value")
    return _VALUED[name], value


def _requirement(sheet: Sheet, text: str, number: int, index: Index) -> Iterator[Planned]:
    bare = _OF_ONE.sub("", text).strip()
    if _A_FILE.match(bare):
        yield from _of_place(sheet, bare.partition(" ;")[0].strip(), number, _beside(sheet))
        return
    if _VARIABLE.search(bare):
        yield _by_variable(sheet, bare, number)
        return
    found = planned(sheet, bare, number, build=index.build(sheet))
    if found is not None:
        yield found


def _by_variable(sheet: Sheet, text: str, line: int) -> Planned:
    """What a variable without a known value names: a release, or anything."""
    named = _NAMED.match(text)
    if named is None:
        return unread(sheet, "a variable", line, "a variable that the file does not set names what is installed")
    name = canonicalize_name(named["name"])
    return unread(sheet, name, line, "a variable that the file does not set names the release", name=name)


def of_arguments(
    sheet: Sheet, words: list[str], line: int, index: Index | None = None, find: Find | None = None
) -> Iterator[Planned]:
    """What ``pip install WORDS`` would install; ``index`` is where variables have it look.

    ``find`` gives the path, seen from the file, of what the command finds at a path; None where that is not known. The
    default is the file's folder.
    """
    together = None if _ALONE & set(words) else f"{sheet.file}:{line}"
    isolated = not any(word.startswith(SHARES_BUILDS) for word in words)
    for each in _of_words(sheet, words, line, index or Index(), find or _beside(sheet)):
        yield msgspec.structs.replace(each, together=together, isolated=isolated)


def _of_words(sheet: Sheet, words: list[str], line: int, index: Index, find: Find) -> Iterator[Planned]:
    asked, options = _sorted_words(words)
    upgrades = not _UPGRADES.isdisjoint(words)
    extras = tuple(given for meaning, given in options if meaning == _EXTRA)
    includes = [each for each in options if not index.take(*each) and each[0] != _EXTRA]
    for meaning, given in includes:
        if meaning == "file":
            yield from _of_place(sheet, given, line, find)
        else:
            yield from _included(sheet, meaning, given, line, index, find, extras)
    for word in asked:
        if _A_FILE.match(word):
            yield from _of_place(sheet, word, line, find)
        elif "$" in word:
            yield _by_variable(sheet, word, line)
        else:
            for found in _requirement(sheet, word, line, index):
                newest = upgrades and found.version is None and found.problem is None
                yield msgspec.structs.replace(found, problem=_NEWEST) if newest else found


def _sorted_words(words: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """What is asked for by name, and the options that matter here: what each does, and its value."""
    asked: list[str] = []
    options: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            asked.append(word)
            continue
        name, separator, value = word.partition("=")
        short = name[:2] if name[:2] in _VALUED and not name.startswith("--") else ""
        if short and name != short:  # -rrequirements.txt
            name, separator, value = short, "=", word[2:]
        meaning = {**_VALUED, **_OF_COMMANDS}.get(name)
        if meaning is not None:
            given = value if separator else next(rest, "")
            options += [(meaning, given)] if meaning else []
    return asked, options


def _included(
    sheet: Sheet, meaning: str, path: str, line: int, index: Index, find: Find, extras: tuple[str, ...]
) -> Iterator[Planned]:
    place = find(path)
    if place is None:
        name = path.rpartition("/")[2]
        if name not in sheet.others:
            problem = "the file that it installs from was not found; name it with a further --plan"
            yield unread(sheet, f"-r {name}", line, problem)
        return
    if place.endswith(_PROJECT):
        yield from _of_project(sheet, place, line, extras)
        return
    found = sheet.bounded(_read(sheet.beside(place, line), index))
    if meaning == "constrain":
        sheet.constraints.extend(found)
    else:
        yield from found


def _beside(sheet: Sheet) -> Find:
    return lambda path: path if sheet.has_beside(path) else None


def _of_place(sheet: Sheet, text: str, line: int, find: Find) -> Iterator[Planned]:
    """What installing a file or folder, such as ``./package[cuda]``, or an address would install."""
    named = _FOLDER.fullmatch(text)
    place = find(f"{named['path']}/{_PROJECT}") if named else None
    if named is None or place is None:
        yield of_wheel(sheet, text, line)
    else:
        yield from _of_project(sheet, place, line, tuple((named["extras"] or "").split(",")))


def _of_project(sheet: Sheet, place: str, line: int, extras: tuple[str, ...]) -> Iterator[Planned]:
    """What the project of a pyproject.toml requires."""
    from envcheck.plans import pyproject  # noqa: PLC0415 - it follows the requirements files that it names

    wanted = tuple(filter(None, map(str.strip, extras)))
    try:
        yield from pyproject.read(replace(sheet.beside(place, line), extras=wanted))
    except UsageError as error:
        yield unread(sheet, "a project", line, f"what it installs cannot be read ({error})")
