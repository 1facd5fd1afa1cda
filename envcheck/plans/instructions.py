"""The instructions of a Dockerfile, divided as BuildKit's parser does (directives, continued lines, here-documents),
and which files of the build context lie where in an image, as far as COPY, ADD, WORKDIR and bind mounts tell.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from envcheck.plans.sheet import Sheet

_LONGEST_LINE = 65_535  # Docker reads no longer one
_LONGEST = 100_000
_MOST = 2000
_DIRECTIVE = re.compile(r"#\s*(?P<name>[A-Za-z][A-Za-z0-9]*)\s*=\s*(?P<value>\S.*)")
_DIRECTIVES = frozenset({"check", "escape", "syntax"})
_CONTINUED = {escape: re.compile(rf"(?<!{re.escape(escape)}){re.escape(escape)}[ \t]*\Z") for escape in "\\`"}
_KEYWORD = re.compile(r"(?P<word>[^\t\v\f\r ]+)[\t\v\f\r ]*(?P<rest>.*)", re.DOTALL)
_FLAGS = re.compile(r"(?:--[A-Za-z][\w.-]{0,40}(?:=\S*)?\s+)+")
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*'|["'\\])+""", re.DOTALL)
_HEREDOC = re.compile(r"\d*<<(?P<chomp>-?)(?P<end>[^<]+)")
_WITH_HEREDOCS = frozenset({"ADD", "COPY", "RUN"})
_KNOWN = re.compile(
    "ADD|ARG|CMD|COPY|ENTRYPOINT|ENV|EXPOSE|FROM|HEALTHCHECK|LABEL|MAINTAINER|ONBUILD|RUN|SHELL|STOPSIGNAL|USER|VOLUME"
    "|WORKDIR"
)


class Instruction(NamedTuple):
    """An instruction with its continued lines joined."""

    line: int
    word: str  # In capitals: ``RUN``; empty for a line that is no instruction
    flags: str  # ``--mount=…`` and the like
    text: str  # What follows, with the here-documents behind it, as a shell is given them
    documents: tuple[str, ...] = ()  # The contents of the here-documents

    @property
    def listed(self) -> list[str] | None:
        """The words of a text that is a list in JSON, which no shell reads; None for any other."""
        return listed(self.text)


def instructions(sheet: Sheet) -> Iterator[Instruction]:
    """All instructions of a file, with their lines; raise UsageError for more than a build can have."""
    lines = iter(enumerate(sheet.text.split("\n"), start=1))
    escape, at_head, count = "\\", True, 0
    for start, line in lines:
        _check_length(sheet, start, line)
        bare = line.strip()
        if not bare or bare.startswith("#"):
            directive = _DIRECTIVE.fullmatch(bare) if at_head else None
            at_head = directive is not None and directive["name"].lower() in _DIRECTIVES
            if at_head and directive and directive["name"].lower() == "escape" and directive["value"] in _CONTINUED:
                escape = directive["value"]
            continue
        at_head = False
        text = _joined(sheet, start, line, lines, _CONTINUED[escape])
        count += 1
        if count > _MOST:
            raise sheet.error(start, f"more than {_MOST:,} instructions")
        yield _instruction(sheet, start, text.strip(), lines)


def _joined(sheet: Sheet, start: int, line: str, lines: Iterator[tuple[int, str]], mark: re.Pattern[str]) -> str:
    """The line with those that continue it; comments and empty lines between them do not end it."""
    parts, length = list[str](), 0
    more: tuple[int, str] | None = (start, line)
    while more is not None:
        _check_length(sheet, *more)
        bare = more[1].lstrip()
        if not parts or (bare and not bare.startswith("#")):
            part, continues = mark.subn("", more[1])
            parts.append(part)
            length += len(part)
            _check_size(sheet, start, length)
            if not continues:
                break
        more = next(lines, None)
    return "".join(parts)


def _instruction(sheet: Sheet, start: int, text: str, lines: Iterator[tuple[int, str]]) -> Instruction:
    found = _KEYWORD.fullmatch(text)
    word, rest = (found["word"].upper(), found["rest"]) if found else ("", text)
    if not _KNOWN.fullmatch(word):
        return Instruction(start, "", "", text)
    options = _FLAGS.match(rest)
    flags = options[0] if options else ""
    rest = rest[len(flags) :].strip()
    inner = rest.partition(" ")[0].upper() if word == "ONBUILD" else word
    documents = list[str]()
    if inner in _WITH_HEREDOCS and "<<" in rest and listed(rest) is None:
        for each in [heredoc for part in _WORD.findall(rest) if (heredoc := _HEREDOC.fullmatch(part))]:
            body, last = _document(sheet, start, lines, re.sub(r"[\"'\\]", "", each["end"]), chomp=bool(each["chomp"]))
            documents.append(body)
            rest += f"\n{body}{last}"
            _check_size(sheet, start, len(rest))
    return Instruction(start, word, flags, rest, tuple(documents))


def _document(sheet: Sheet, start: int, lines: Iterator[tuple[int, str]], end: str, *, chomp: bool) -> tuple[str, str]:
    """The lines of a here-document, and the one that ends it."""
    body, length = list[str](), 0
    for number, line in lines:
        if (line.lstrip("\t") if chomp else line) == end:
            return "".join(body), line
        _check_length(sheet, number, line)
        length += len(line) + 1
        _check_size(sheet, start, length)
        body.append(f"{line}\n")
    raise sheet.error(start, "no line ends the here-document that begins here")


def _check_length(sheet: Sheet, number: int, line: str) -> None:
    if len(line) > _LONGEST_LINE:
        raise sheet.error(number, f"a line of more than {_LONGEST_LINE:,} characters, which Docker does not read")


def _check_size(sheet: Sheet, start: int, length: int) -> None:
    if length > _LONGEST:
        raise sheet.error(start, f"an instruction of more than {_LONGEST:,} characters")


def listed(text: str) -> list[str] | None:
    """The words of a list of texts in JSON; None for any other text."""
    if not text.startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else None


_WILD = frozenset("*?[")


@dataclass
class Layout:
    """The folder that commands run in, and what was copied."""

    folder: str | None = "/"  # None: not known
    copies: list[tuple[str, str | None]] = field(default_factory=list)
    """Place in the image, and the path in the build context; None: it comes from elsewhere."""

    def copy(self) -> Layout:
        """The same, for further changes."""
        return replace(self, copies=[*self.copies])

    def enter(self, path: str) -> None:
        """Change the folder, as WORKDIR and ``cd`` do."""
        self.folder = self._absolute(path)

    def put(self, sources: list[str], target: str) -> None:
        """Note what is copied to ``target``."""
        place = self._absolute(target)
        if place is None:
            return
        for source in sources:
            elsewhere = "://" in source or source.startswith(("<<", "git@"))
            self.copies.append((place, None if elsewhere else posixpath.normpath(source.lstrip("/") or ".")))

    def cover(self, target: str) -> None:
        """Note that files which are not of the context are copied to ``target``."""
        if (place := self._absolute(target)) is not None:
            self.copies.append((place, None))

    def covers(self, path: str) -> bool:
        """Whether what lies at ``path`` was copied, from wherever."""
        place = self._absolute(path)
        return place is not None and any(_is_below(place, target) for target, _ in self.copies)

    def find(self, sheet: Sheet, path: str) -> str | None:
        """The file that lies at ``path`` in the image, seen from the sheet's folder; None: it is not in the context."""
        place = self._absolute(path)
        if place is None:
            return None
        for target, source in reversed(self.copies):
            if not _is_below(place, target):
                continue
            if source is None:
                return None
            for candidate in _candidates(source, posixpath.relpath(place, target)):
                for context in sheet.contexts:
                    if sheet.has_beside(there := posixpath.normpath(posixpath.join(context, candidate))):
                        return there
        return None

    def _absolute(self, path: str) -> str | None:
        if "$" in path or path.startswith("~") or (self.folder is None and not path.startswith("/")):
            return None
        return posixpath.normpath(posixpath.join(self.folder or "/", path))


def _is_below(place: str, target: str) -> bool:
    return place == target or place.startswith(target.rstrip("/") + "/")


def _candidates(source: str, rest: str) -> Iterator[str]:
    """Paths in the context of what lies ``rest`` below the target of a copied file or folder."""
    folder, name = posixpath.split(source)
    if rest == ".":
        yield source
        return
    if not _WILD & set(source):
        yield posixpath.join(source, rest)  # what a copied folder holds
    if fnmatch.fnmatchcase(rest.partition("/")[0], name):
        yield posixpath.join(folder, rest)  # a file in the folder that is the target
