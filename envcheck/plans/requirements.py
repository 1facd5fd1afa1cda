"""Requirements files of pip: requirements, ``-r``, ``-c``, index options, continuation lines, markers and hashes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from envcheck.plans.kit.index import Index
from envcheck.plans.kit.requirement import LONGEST, of_wheel, planned, unread
from envcheck.plans.kit.sheet import Sheet
from envcheck.snapshot import Planned

NAME = "requirements"

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
_PLAIN = ("--no-index", "--pre", "--prefer-binary", "--require-hashes")
_A_FILE = re.compile(r"(?:[a-z+]{2,12}://|\.{0,2}/|[A-Za-z]:\\)|.*\.(?:whl|zip|tar\.gz)(?:[?#].*)?$|\.(?:\[.*\])?$")


def recognise(name: str) -> bool:
    return name.lower().endswith((".txt", ".in", ".pip"))


def read(sheet: Sheet) -> list[Planned]:
    """What ``pip install -r FILE`` would install."""
    return sheet.bounded(_read(sheet, Index()))


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
            yield of_wheel(sheet, value, number)


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
        yield of_wheel(sheet, bare.partition(" ;")[0].strip(), number)
        return
    found = planned(sheet, bare, number, build=index.build(sheet))
    if found is not None:
        yield found


def of_arguments(sheet: Sheet, words: list[str], line: int, index: Index | None = None) -> Iterator[Planned]:
    """What ``pip install WORDS`` would install, in the file's folder; ``index`` is where variables have it look."""
    index, asked, rest = index or Index(), list[str](), iter(words)
    includes: list[tuple[str, str]] = []
    for word in rest:
        name, separator, value = word.partition("=")
        if not word.startswith("-"):
            asked.append(word)
            continue
        meaning = _VALUED.get(name) or _OF_COMMANDS.get(name, "")
        takes_one = name in _VALUED or name in _OF_COMMANDS
        given = value if separator else next(rest, "") if takes_one else ""
        if not index.take(meaning, given) and meaning:
            includes.append((meaning, given))
    for meaning, given in includes:
        yield from _included(sheet, meaning, given, line, index)
    for word in asked:
        if _A_FILE.match(word):
            yield of_wheel(sheet, word, line)
        elif "$" in word:
            yield unread(sheet, "a variable", line, "a variable that the file does not set names what is installed")
        else:
            yield from _requirement(sheet, word, line, index)


_OF_COMMANDS = {
    "--torch-backend": "backend",
    "--python": "",
    "-p": "",
    "-t": "",
    "--target": "",
    "--prefix": "",
    "--root": "",
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
    "--extra": "",
    "--group": "",
    "--platform": "",
    "--python-version": "",
}
"""Further options of ``pip install`` and ``uv pip install`` that take a value."""


def _included(sheet: Sheet, meaning: str, path: str, line: int, index: Index) -> Iterator[Planned]:
    if meaning == "file":
        yield of_wheel(sheet, path, line)
        return
    name = path.rpartition("/")[2]
    for place in dict.fromkeys((path.lstrip("/"), name)):
        if not sheet.has_beside(place):
            continue  # another step of the build may put it there
        found = sheet.bounded(_read(sheet.beside(place, line), index))
        if meaning == "constrain":
            sheet.constraints.extend(found)
        else:
            yield from found
        return
    yield unread(
        sheet, f"-r {name}", line, "the file that it installs from was not found; name it with a further --plan"
    )
