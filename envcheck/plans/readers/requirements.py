"""Requirements files of pip: requirements, ``-r``, ``-c``, index options, continuation lines, markers and hashes."""

from __future__ import annotations

import getopt
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import NamedTuple

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envcheck.compat.package_needs import applies
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.model.snapshot import Planned
from envcheck.plans.requirement import (
    LONGEST,
    PackageIndexes,
    entry,
    marker_of,
    of_wheel,
    open_part,
    perhaps,
    planned,
    unread,
)
from envcheck.plans.sheet import Sheet, UnreadError

NAME = "requirements"
FILES = re.compile(r".*\.(?:txt|in|pip)", re.IGNORECASE)

Find = Callable[[str], "str | None"]
"""From a path in a command to that of a file, seen from the file that has the command."""

_PROJECTS = ("pyproject.toml", "setup.py", "setup.cfg")
"""Files that say what a project requires; the first one names the others."""
_FOLDER = re.compile(r"(?:file:)?(?P<path>[^\[\]$:?#]{1,400}?)/?(?:\[(?P<extras>[A-Za-z0-9._, -]{1,400})\])?")

_OWN = re.compile(r"\.{1,2}(?:/\.\.){0,8}/?")  # The folder of the file, or one around it
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_LONGEST_OPTIONS = 100_000  # Behind a requirement stand the hashes of all its files
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]{1,200}\}")  # What pip replaces by a variable of the environment
_ANY_VARIABLE = re.compile(r"\$\{?\w{1,200}\}?")
INSTALLING = ("include", "file", "project")  # What options do that install something by themselves
_A_FILE = re.compile(
    r"(?:[a-z+]{2,12}://|\.{0,2}/|[A-Za-z]:\\)|\.(?:\[.*\])?$"
    r"|.*\.(?:whl|zip|t(?:ar\.)?(?:gz|bz2?|xz|lz|lzma)|tar|txt)(?:[?#].*)?$",
    re.IGNORECASE,
)

_AT_ADDRESS = re.compile(r"[A-Za-z0-9][\w.-]{0,200}\s*(?:\[[^\]]{0,400}\]\s*)?@\s*[a-z+]{2,12}://")
"""``NAME @ ADDRESS``, which is a requirement whatever the address ends with."""
_ALONE = frozenset({"--no-deps", "--no-dependencies", "--nodeps"})
"""With these, requirements are neither installed nor looked at."""
SHARES_BUILDS = "--no-build-isolation"
_UPGRADES = frozenset({"-U", "--upgrade", "--force-reinstall", "-I", "--ignore-installed"})
_NEWEST = "the command installs the newest release that it accepts"


@cache
def options_of(matrix: Matrix, *of: str, value: bool = True) -> dict[str, str]:
    """What options of pip and uv, or variables, do: those with a value, or those without."""
    return {name: row.does for row in matrix.options if row.of in of and row.value is value for name in row.names}


def read(sheet: Sheet) -> list[Planned]:
    """What ``pip install -r FILE`` would install."""
    found = of_lines(sheet, numbered(sheet))
    return [msgspec.structs.replace(each, together=sheet.file, isolated=True) for each in sheet.bounded(found)]


def of_lines(sheet: Sheet, lines: Iterable[tuple[int, str]]) -> Iterator[Planned]:
    """What a requirements file of these lines, each with its number, would install."""
    return _of_file(_File(sheet, lines), PackageIndexes())


class _File(NamedTuple):
    """Lines of requirements or, where it ``constrains``, of constraints."""

    sheet: Sheet
    lines: Iterable[tuple[int, str]]
    constrains: bool = False


def numbered(sheet: Sheet) -> Iterator[tuple[int, str]]:
    """The lines of a file as pip divides it: also at form feeds."""
    return enumerate(sheet.text.splitlines(), start=1)


def _of_file(file: _File, index: PackageIndexes) -> Iterator[Planned]:
    """What a file installs; pip reads the index options of all files that it includes before it resolves."""
    for part, number, found in file.sheet.bounded(_lines(file, index)):
        items = part.sheet.bounded(entry(part.sheet, number, found))
        part.sheet.constraints.extend(each for each in items if part.constrains and each.name)
        yield from (each for each in items if not part.constrains or not each.name)


def _lines(file: _File, index: PackageIndexes) -> Iterator[tuple[_File, int, Iterator[Planned]]]:
    """What each line of a file installs, and of those that it includes."""
    sheet = file.sheet
    for number, text in _logical(file.lines):
        try:
            asked, options = _parsed(text, sheet.matrix)
        except UnreadError as error:
            yield file, number, iter([open_part(sheet, number, error)])
            continue
        if asked:
            yield file, number, _requirement(sheet, asked, number, index)
        for meaning, value in [each for each in options if not index.take(*each)]:
            if _VARIABLE.search(value):
                yield file, number, iter([_by_variable(sheet, "", number)])
            elif meaning == "file":
                yield file, number, _of_place(sheet, value, number, None)
            else:
                included = sheet.beside(value.removeprefix("file:"), number)
                constrains = file.constrains or meaning == "constrain"
                yield from _lines(_File(included, numbered(included), constrains), index)


def _logical(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines without comments, joined as pip does where they end in a backslash, each with the number of its
    first.
    """
    start, parts = 0, list[str]()
    for number, line in chain(lines, [(0, "")]):
        start = start if parts else number
        comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not comment:
            parts.append(line.strip("\\"))
            continue
        text = _COMMENT.sub("", "".join((*parts, " " if comment else "", line))).strip()
        parts = []
        if text:
            yield start, text


def _parsed(text: str, matrix: Matrix) -> tuple[str, list[tuple[str, str]]]:
    """The requirement of a line, or what its options do and their values, as pip divides them; raise UnreadError for
    what pip refuses, and for a part that it leaves out.
    """
    words = text.split(" ")
    start = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    asked, rest = " ".join(words[:start]).strip(), " ".join(words[start:])
    if not rest:
        return asked, []
    if len(rest) > _LONGEST_OPTIONS:
        raise UnreadError("its options are too long")
    valued, plain = options_of(matrix, "file"), options_of(matrix, "file", value=False)
    of_one = {name: row.holds for row in matrix.options if row.of == "requirement" for name in row.names}
    short = "".join(f"{name[1]}:" for name in valued if len(name) == 2)
    long = [f"{name[2:]}=" for name in (*valued, *of_one) if name.startswith("--")] + [name[2:] for name in plain]
    try:
        given, left = getopt.gnu_getopt(shlex.split(rest), short, long)
    except getopt.GetoptError:
        problem = "requirements files have no such option, or its value is missing; see pip's documentation"
        raise UnreadError(problem) from None
    except ValueError:
        raise UnreadError("a quotation mark is not closed") from None
    options = [(valued.get(name) or plain.get(name, ""), value) for name, value in given]
    places = [meaning for meaning, _ in options if meaning in ("include", "constrain", "file")]
    wrong = any(name not in of_one or of_one[name] not in value if asked else name in of_one for name, value in given)
    if (left and (asked or left[0] != ";")) or wrong or len(places) > 1:  # pip reads no marker of an option
        raise UnreadError("pip leaves out a part of this line; write one requirement or option on each line")
    return asked, [each for each in options if each[0]]


def _requirement(sheet: Sheet, text: str, number: int, index: PackageIndexes) -> Iterator[Planned]:
    if _is_a_file(text):
        # A semicolon may be part of an address; the marker's has a blank behind it.
        asked, _, marker = text.partition("; " if "://" in text else ";")
        applied = applies(marker_of(marker), sheet.markers) if marker else True
        if applied is not False:
            places = _of_place(sheet, asked.strip(), number, None)
            yield from (each if applied else perhaps(each) for each in places)
        return
    if _VARIABLE.search(text):
        yield _by_variable(sheet, text, number)
        return
    found = planned(sheet, text, number, build=index.build(sheet))
    if found is not None:
        yield index.opened(sheet, found)


def _by_variable(sheet: Sheet, text: str, line: int) -> Planned:
    """What a variable without a known value names: a release, or anything."""
    try:
        name = Requirement(_ANY_VARIABLE.sub("1", text[:LONGEST])).name
    except (InvalidRequirement, RecursionError):
        name = ""
    if not name or not re.match(rf"\s*{re.escape(name)}(?!\$)", text):  # the variable is a part of the name
        return unread(sheet, "a variable", line, "a variable that the file does not set names what is installed")
    name = canonicalize_name(name)
    return unread(sheet, name, line, "a variable that the file does not set names the release", name=name)


def of_arguments(sheet: Sheet, words: list[str], line: int, index: PackageIndexes, find: Find) -> Iterator[Planned]:
    """What ``pip install WORDS`` would install; ``index`` is where variables have it look.

    ``find`` gives the path, seen from the file, of what the command finds at a path; None where that is not known.
    """
    together = None if _ALONE & set(words) else f"{sheet.file}:{line}"
    isolated = not any(word.startswith(SHARES_BUILDS) for word in words)
    for each in _of_words(sheet, words, line, index, find):
        yield msgspec.structs.replace(each, together=together, isolated=isolated)


def _of_words(sheet: Sheet, words: list[str], line: int, index: PackageIndexes, find: Find) -> Iterator[Planned]:
    asked, options = sorted_words(words, sheet.matrix)
    upgrades = not _UPGRADES.isdisjoint(words)
    extras = tuple(given for meaning, given in options if meaning == "project")
    includes = [each for each in options if not index.take(*each) and each[0] != "project"]
    for meaning, given in includes:
        if meaning == "file":
            yield from _of_place(sheet, given, line, find)
        else:
            yield from _included(sheet, meaning, given, line, index, find, extras)
    for word in asked:
        if _is_a_file(word):
            yield from _of_place(sheet, word, line, find)
        elif "$" in word:
            yield _by_variable(sheet, word, line)
        else:
            for found in entry(sheet, line, _requirement(sheet, word, line, index)):
                newest = upgrades and found.version is None and found.problem is None
                yield msgspec.structs.replace(found, problem=_NEWEST) if newest else found


def sorted_words(words: list[str], matrix: Matrix) -> tuple[list[str], list[tuple[str, str]]]:
    """What is asked for by name, and the options that matter here: what each does, and its value."""
    asked: list[str] = []
    options: list[tuple[str, str]] = []
    rest, known, plain = iter(words), options_of(matrix, "file", "command"), options_of(matrix, "file", value=False)
    for word in rest:
        if not word.startswith("-"):
            asked.append(word)
            continue
        name, separator, value = word.partition("=")
        if not word.startswith("--"):  # -rrequirements.txt, -qr requirements.txt
            place = next((place for place in range(1, len(word)) if f"-{word[place]}" in known), 0)
            name, value = f"-{word[place]}", word[place + 1 :]
            separator = value
        meaning = known.get(name)
        if name in plain:
            options.append((plain[name], ""))
        elif meaning is not None:
            given = value if separator else next(rest, "")
            options.append((meaning, given))
    return asked, [each for each in options if each[0]]


def _included(
    sheet: Sheet, meaning: str, path: str, line: int, index: PackageIndexes, find: Find, extras: tuple[str, ...]
) -> Iterator[Planned]:
    place = find(path)
    if place is None:
        name = path.rpartition("/")[2]
        if name not in sheet.others:
            problem = "the file that it installs from was not found; name it with a further --plan"
            yield unread(sheet, f"-r {name}", line, problem)
        return
    if place.endswith(_PROJECTS[0]):
        yield from _of_project(sheet, place, line, extras)
        return
    included = sheet.beside(place, line)
    yield from _of_file(_File(included, numbered(included), meaning == "constrain"), index)


def _is_a_file(text: str) -> bool:
    """Whether pip takes the text for a path or an address: a folder in another one needs no dot before it."""
    first = text.partition(";")[0]
    if _AT_ADDRESS.match(first):
        return False
    return _A_FILE.match(text) is not None or ("/" in first and "@" not in first and not _ANY_VARIABLE.search(first))


def _of_place(sheet: Sheet, text: str, line: int, find: Find | None) -> Iterator[Planned]:
    """What installing a file or folder, such as ``./package[cuda]``, or an address would install; without ``find``,
    as a requirements file names it.
    """
    named = _FOLDER.fullmatch(text)
    folder = named["path"] if named else ""
    paths = [f"{folder}/{name}" for name in _PROJECTS] if named else []
    place = next(filter(None, map(find, paths) if find else filter(sheet.has_beside, paths)), None)
    if named and place is not None:
        yield from _of_project(sheet, place, line, tuple((named["extras"] or "").split(",")))
    elif find is None and _OWN.fullmatch(text):
        # The project whose requirements these are, which was not copied with them.
        yield unread(sheet, text, line, "")
    else:
        yield of_wheel(sheet, text, line)


def _of_project(sheet: Sheet, place: str, line: int, extras: tuple[str, ...]) -> Iterator[Planned]:
    """What a project requires by its pyproject.toml, or by what it has in place of one."""
    from envcheck.plans.readers import pyproject, setup_py  # noqa: PLC0415 - they follow the files that they name

    reader = pyproject if place.endswith(_PROJECTS[0]) else setup_py
    wanted = tuple(filter(None, map(str.strip, extras)))
    try:
        yield from reader.read(replace(sheet.beside(place, line), extras=wanted, groups=False))
    except UsageError as error:
        yield unread(sheet, "a project", line, f"what it installs cannot be read ({error})")
