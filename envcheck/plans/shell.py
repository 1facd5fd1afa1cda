"""The commands of a shell's text, as far as words tell: no shell is interpreted and nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w{1,80})(?::?-(?P<default>[^}$]{0,200}))?\}|(?P<bare>[A-Za-z_]\w{0,79}))")
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w{0,79})(?P<adds>\+?)=(?P<value>.*)", re.DOTALL)
_PIECE = re.compile(
    r"""(?P<blank>[ \t\r]+)
    | (?P<heredoc>\d*<<(?P<chomp>-?)[ \t]*(?P<end>(?:[\w.!%+-]|\\.|"[^"\n]*"|'[^'\n]*')+))
    | (?P<opens>[<>$]\(|`)
    | (?P<stream>\d*[<>]&(?:\d+|-)(?=[\s;&|()]|\Z))
    | (?P<redirects>(?:\d+(?=[<>])|&(?=>))?(?:<<<|>>|>\||<>|[<>])&?)
    | (?P<ends>\n|[;&|()]+)
    | '(?P<single>[^']*)' | \$'(?P<ansi>(?:[^'\\]|\\.)*)' | \$?"(?P<double>(?:[^"\\]|\\.)*)"
    | (?P<braced>\$\{[^}\n]*\}) | \\(?P<escaped>.|\Z) | (?P<bare>[^\s'"\\`$;&|()<>]+|\$)
    | (?P<other>\s)""",
    re.DOTALL | re.VERBOSE,
)
_OF_WORDS = frozenset({"single", "ansi", "double", "braced", "escaped", "bare", "opens", "other"})
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
_OPENS = re.compile(r"\$\(|`")
_ESCAPE = re.compile(r"\\([\"$`\\])|\\\n")
_INSIDE = re.compile(r"[()]|`|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_SHEBANG = re.compile(r"\s*#!(?P<program>[^\n]*)")
_NOWHERE = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
_BEFORE = frozenset(
    {"sudo", "exec", "env", "time", "nice", "command", "if", "then", "else", "elif", "do", "while", "until", "!", "{"}
)
"""Words in front of a command that leave it what it is."""
_ASSIGNS = frozenset({"export", "declare", "local", "readonly", "typeset"})
_BEGINS_CASES = frozenset({"if", "case"})
_END_CASES = (["fi"], ["esac"])
_SETS_LATER = frozenset({"for", "select", "read", "unset", "mapfile", "getopts"})
"""Words that give the variables named behind them values that no text tells."""
_SHELL = re.compile(r"(?:.*/)?(?:(?:ba|da|z|k|a)?sh|su|runuser)")
_SCRIPT = re.compile(r"-[A-Za-z]*c[A-Za-z]*|--command")
_SPLIT = re.compile(r"(?:-[A-Za-z]*S|--split-string)(?P<value>=?.*)", re.DOTALL)
_MOST_NESTED = 3
_LONGEST = 100_000


class Command(NamedTuple):
    """One command of a text."""

    words: list[str]  # Empty for a text that cannot be read
    variables: dict[str, str]  # Those whose values are known when it runs
    documents: tuple[str, ...] = ()  # Texts that it is given to read, which are no commands of a shell
    kept: bool = False  # Whether what a command of the text prints goes to a file or to another command


def filled(text: str, values: dict[str, str]) -> str:
    """The text with the variables whose values are known in place; unchanged where it would grow out of bounds."""
    parts, place, length = list[str](), 0, 0
    for found in _VARIABLE.finditer(text):
        known = values.get(found["braced"] or found["bare"])
        value = known or found["default"] or (found[0] if known is None else "")
        parts += [text[place : found.start()], value]
        place, length = found.end(), length + len(value)
        if length > _LONGEST:
            return text
    return "".join(parts) + text[place:]


def commands(text: str, values: dict[str, str], nested: int = 0) -> Iterator[Command]:
    """Each command without redirections. ``values`` are known variables; what the text assigns is added to them."""
    try:
        lines = _lines(text)
    except ValueError:
        yield Command([], values)
        return
    kept = any(line.kept for line in lines)
    depth = 0
    for line in lines:
        depth += sum(word in _BEGINS_CASES for word in line.words[:2]) - (line.words[:1] in _END_CASES)
        for inner in line.substituted:
            yield from commands(inner, values, nested + 1) if nested < _MOST_NESTED else [Command([inner], values)]
        yield from _command(replace(line, kept=kept), values, nested, sure=depth <= 0)


def of_words(words: list[str], values: dict[str, str]) -> Iterator[Command]:
    """The command of these words, or those of the script that it has a shell run."""
    yield from _of_line(_Line(words), values, 0)


@dataclass
class _Line:
    """A command as it is written."""

    words: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    substituted: list[str] = field(default_factory=list)  # Texts of commands whose output stands in it
    kept: bool = False


def _lines(text: str) -> list[_Line]:
    """The commands of a text; raise ValueError where a quotation or substitution does not end."""
    lines, waiting = [_Line()], list[tuple[re.Match[str], _Line]]()
    word: str | None = None
    place, led = 0, ""
    while place < len(text):
        found = _PIECE.match(text, place)
        if found is None:
            raise ValueError
        kind = found.lastgroup or ""
        if kind == "bare" and word is None and found[0].startswith("#"):
            place = len(text) if (end := text.find("\n", place)) < 0 else end
            continue
        place = found.end()
        if kind in _OF_WORDS:
            if found[0] != "\\\n":
                piece, place = _piece(found, lines[-1], text)
                word = (word or "") + piece
            continue
        _add(lines[-1], word, led)
        led = found[0] if kind == "redirects" else led if word is None and kind == "blank" else ""
        word = None
        if kind == "heredoc":
            waiting.append((found, lines[-1]))
        elif kind == "ends":
            lines[-1].kept |= _PIPE.search(found[0]) is not None
            lines.append(_Line())
            for begun, owner in waiting if "\n" in found[0] else ():
                body, place = _body(text, place, re.sub(r"[\"'\\]", "", begun["end"]), chomp=bool(begun["chomp"]))
                owner.documents.append(body)
            waiting = [] if "\n" in found[0] else waiting
    _add(lines[-1], word, led)
    return lines


def _add(line: _Line, word: str | None, redirection: str) -> None:
    """Add a word to a command, unless it is what a redirection leads to or from."""
    if word is None:
        return
    if redirection == "<<<":
        line.documents.append(word)
    elif redirection:
        line.kept |= word not in _NOWHERE
    else:
        line.words.append(word)


def _piece(found: re.Match[str], line: _Line, text: str) -> tuple[str, int]:
    """A part of a word without its quotation marks, and where the next one begins."""
    kind, place = found.lastgroup or "", found.end()
    if kind == "opens":
        end = _closing(text, place, "`" if found[0] == "`" else ")")
        line.substituted.append(text[place:end])
        return f"$({text[place:end]})", end + 1
    inner = found[kind]
    if kind == "double":
        line.substituted += _substituted(inner)
        inner = _ESCAPE.sub(r"\1", inner)
    elif kind == "ansi" and "\\" in inner:
        inner = f"${inner}"  # what its escapes stand for is not read
    return inner, place


def _substituted(text: str) -> Iterator[str]:
    """The commands whose output stands in a quoted text."""
    place = 0
    while found := _OPENS.search(text, place):
        try:
            place = _closing(text, found.end(), "`" if found[0] == "`" else ")") + 1
        except ValueError:
            yield text[found.end() :]
            return
        yield text[found.end() : place - 1]


def _closing(text: str, place: int, mark: str) -> int:
    """Where a substitution that begins at ``place`` ends; raise ValueError where it does not."""
    depth = 0
    for found in _INSIDE.finditer(text, place):
        if found[0] == mark and (mark == "`" or depth == 0):
            return found.start()
        depth += (found[0] == "(") - (found[0] == ")")
    raise ValueError


def _body(text: str, place: int, end: str, *, chomp: bool) -> tuple[str, int]:
    """A here-document that begins at ``place``, and where the text goes on."""
    lines = list[str]()
    while place < len(text):
        line, mark, _ = text[place : text.find("\n", place) + 1 or len(text)].partition("\n")
        place += len(line) + len(mark)
        if (line.lstrip("\t") if chomp else line) == end:
            break
        lines.append(line)
    return "\n".join(lines), place


def _command(line: _Line, values: dict[str, str], nested: int, *, sure: bool) -> Iterator[Command]:
    """The command behind its assignments; one that is not ``sure`` to run gives no variable a value that is known."""
    words, own = line.words, dict[str, str]()
    start = 0
    while start < len(words):
        word = words[start]
        assigned = _ASSIGNED.fullmatch(word)
        if assigned:
            own[assigned["name"]] = "$" if assigned["adds"] else filled(assigned["value"], {**values, **own})
        elif (word not in _BEFORE and not (start and word.startswith("-"))) or _SPLIT.fullmatch(word):
            break
        start += 1
    rest = words[start:]
    lasting = not rest and not line.documents
    if rest and rest[0] in _ASSIGNS:
        found = (_ASSIGNED.fullmatch(word) for word in rest[1:])
        own |= {each["name"]: filled(each["value"], {**values, **own}) for each in found if each}
        lasting = True
    elif rest and rest[0] in _SETS_LATER:
        own |= dict.fromkeys(rest[1:], "$")
        lasting = True
    known = {name: value for name, value in own.items() if "$" not in value}
    if lasting:
        for name in own:
            values.pop(name, None)
        values |= known if sure else {}
        return
    inside = {name: value for name, value in values.items() if name not in own} | known if own else values
    yield from _of_line(_Line(rest, line.documents, kept=line.kept), inside, nested)


def _of_line(line: _Line, values: dict[str, str], nested: int) -> Iterator[Command]:
    script = _script(line.words) if nested < _MOST_NESTED else None
    begins = (found["program"].split() for each in line.documents if (found := _SHEBANG.match(each)))
    programs = (*begins, *([line.words] if line.words else []))
    # A here-document is for a shell: its own, or one that the command starts.
    for_shell = all(any(map(_SHELL.fullmatch, words)) for words in programs)
    if line.documents and nested < _MOST_NESTED and for_shell:
        for document in line.documents:
            yield from commands(document, values, nested + 1)
        line = replace(line, documents=[])
    if script is not None:
        yield from commands(script, values, nested + 1)
        return
    full, length = list[str](), 0
    for word in line.words:
        text = filled(word, values) if length < _LONGEST else word
        # What an unquoted variable holds is words of its own.
        parts = [text] if text == word or (text and (" " in word or " " not in text)) else text.split()
        full += parts
        length += sum(map(len, parts))
    if full or line.documents:
        yield Command(full or [""], values, tuple(line.documents), line.kept)


def _script(words: list[str]) -> str | None:
    """The text that a command has a shell run."""
    for place, word in enumerate(words):
        rest = words[place + 1 :]
        if word == "eval":
            return " ".join(rest)
        if word.rpartition("/")[2] == "env" or (place == 0 and word.startswith("-")):
            options = rest if place or not word.startswith("-") else words
            for number, option in enumerate(options):
                if not option.startswith("-"):
                    break
                if found := _SPLIT.fullmatch(option):
                    return " ".join([found["value"].lstrip("="), *options[number + 1 :]])
        if _SHELL.fullmatch(word):
            found_at = next((number for number, each in enumerate(rest) if _SCRIPT.fullmatch(each)), None)
            if found_at is not None and found_at + 1 < len(rest):
                return rest[found_at + 1]
    return None
