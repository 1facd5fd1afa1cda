"""Lines as a program printed them and as sentences state them, out of the layouts around them.

A collector writes each line as JSON or puts a time before it; a program prints another's output as one quoted string; a
web page escapes characters; a terminal draws a box and breaks a line at its width. Issue forms have a heading and the
answer below it, tables have the names in the first row, and JSON has a record of a name and a version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from envcheck.text.lazy import lazy_pattern

BREAK = "\v"  # Stands where a line of the text holds the end of a line that a program printed

_DOCKER = lazy_pattern(r'^\{"log": ?"[^\n]*$', re.MULTILINE)  # A line of the file that Docker's ``json-file`` writes
_LINE_ENDS = 2  # Fewest ends of lines by which a line is taken for another program's output in one string
_LONGEST_SPREAD = 1 << 21  # Most characters of a text whose strings are spread into lines, which may be a million
_STRING = lazy_pattern(r"(?<![\w\\])[bru]?([\"'])((?:(?!\1)[^\\]|\\.)*)\1")
_ESCAPES = ((r"\n", BREAK), (r"\r", ""), (r"\t", "\t"), (r"\"", '"'), (r"\'", "'"), (r"\/", "/"))
_CODE = lazy_pattern(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_BACKSLASH = "\0"  # Stands for an escaped backslash while the other escapes are undone
_NO_ESCAPE = lazy_pattern(r"(?<!\\)(?:\\\\){0,20}\\[^nrtbfux0\"'\\/]|(?<![A-Za-z])[A-Za-z]:\\[^\\]")
"""A backslash that escapes nothing, as in a Windows path: in a quoted string it stands twice."""

_ENTITY = lazy_pattern(r"&(?:lt|gt|amp|quot|apos|nbsp|#39|#34|#x27|#x22);")

_COMPOSE = lazy_pattern(r"^[A-Za-z][\w.-]{1,60}[_-][0-9]{1,3} {1,20}\| ", re.MULTILINE)
"""What ``docker compose`` puts before each line of a container's log."""
_RAY = lazy_pattern(r"^[ \t]{0,8}\([^()\n]{0,80}\bpid=[0-9]{1,10}[^()\n]{0,80}\)[ \t]?", re.MULTILINE)
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6,9}Z"
_BEFORE = lazy_pattern(
    rf"^(?:{_TIME} (?:std(?:out|err) [FP] )?(?:##\[(?:error|warning|debug)\])?|##\[(?:error|warning|debug)\]|"
    r"#[0-9]{1,4} [0-9]{1,5}\.[0-9]{1,3} |\[rank[0-9]{1,5}\]: ?|\[[0-9]{1,5}(?:,[0-9]{1,5})?\]<std(?:out|err)>: ?)",
    re.MULTILINE,
)
"""What CI services, ``kubectl logs``, ``docker build``, PyTorch's ranks and ``mpirun`` put before a line."""
_SIGNS_BEFORE = ("Z ", "#", "[rank", "]<std")
"""One of these stands in each of them."""
_DAY = r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}"
_HOUR = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
_LEVEL = r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\]?"
_BEFORE_MOST = tuple(
    lazy_pattern(f"^{pattern}", re.MULTILINE)
    for pattern in (
        (
            rf"\[?{_DAY}[ T]{_HOUR}(?:[.,][0-9]{{1,9}})?(?:Z|[+-][0-9:]{{4,5}})?\]?"
            rf"(?: ?[-|:]? {{0,3}}{_LEVEL})?(?: {{0,4}}[-|:](?: [\w.:<>]{{1,80}} [-|:] )? ?| )"
        ),
        rf"[A-Z][a-z]{{2}} [ 0-9][0-9] {_HOUR} \S{{1,80}} [\w.@/-]{{1,60}}\[[0-9]{{1,8}}\]: ?",
        r"[ \t]{0,6}[0-9]{1,5}[:|][ \t]",
        r"[A-Za-z][\w.-]{1,60} {1,20}\| ",
        r"[ \t]{0,4}[-*•] (?=\S)",
    )
)
"""What logs, the journal, editors, ``docker compose`` and lists put before a line, taken off where most lines have it:
before a single line it may tell something.
"""
_FEWEST = 3
_SAMPLE = 1 << 16  # Characters by which it is judged what stands before most lines

_BOX = lazy_pattern(r"^[ \t]{0,8}[│┃║╭╰┌└├╞┏┗╔╚][^\n]*[│┃║╮╯┐┘┤╡┓┛╗╝][ \t]*$", re.MULTILINE)
"""A row of a box, or its border; a tree, as conda draws it, has no right side."""
_SIDES, _SIDES_OF_SMI = "│┃║", 4
_BORDERS = "╭╰┌└├╞┏┗╔╚╮╯┐┘┤╡┓┛╗╝─━═ \t"

_NARROWEST_LINE, _WIDEST_LINE = 60, 250  # Characters of a line at which terminals break
_MOST_BROKEN = 10  # Most lines that are one line broken by a terminal
_ALIKE = 4  # Characters in which the first words of lines of a log agree
_TABLE = ("|", "+")  # How lines of a table begin, which are as long as each other without being broken


def spread(text: str) -> str:
    """The lines that a text holds as strings, with the characters that its escapes stand for. ``BREAK`` stands for the
    end of a line that is none in ``text``, so that lines keep their numbers.
    """
    # Each pattern needs one of its characters; looking for that first spares most texts the search.
    if '{"log":' in text:
        text = _DOCKER.sub(_logged, text)
    if len(text) <= _LONGEST_SPREAD and text.count(r"\n") >= _LINE_ENDS:
        text = "\n".join(map(_printed, text.split("\n")))
    if "&" in text and "<?xml" not in text:
        import html  # noqa: PLC0415  few texts come from a web page, and it brings the names of 2,000 characters

        text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    return re.sub(r"<br ?/?>", BREAK, text, flags=re.IGNORECASE) if "<br" in text else text


def bare(text: str) -> str:
    """The lines of a text without what collectors, quoting and boxes put around them."""
    text = _unquoted(text)
    if " | " in text:
        text = _COMPOSE.sub("", text)
    if any(map(text.__contains__, _SIGNS_BEFORE)):
        text = _BEFORE.sub("", text)
    for pattern in _BEFORE_MOST:
        lines = sum(1 for line in text[:_SAMPLE].split("\n") if line.strip())
        matches = sum(1 for _ in pattern.finditer(text[:_SAMPLE]))
        if matches >= _FEWEST and matches > lines * 2 // 3:
            text = pattern.sub("", text)
    if "`" in text:
        text = re.sub(r"^`([^`\n]{1,2000})`$", r"\1", text, flags=re.MULTILINE)
    if any(map(text.__contains__, "│┃║")):
        text = _BOX.sub(_in_box, text)
    text = _unquoted(text)  # within a list or a box
    return _RAY.sub("", text) if "pid=" in text else text


def of_compose(text: str) -> str:
    """What ``docker compose`` wrote before a line of a container's log; empty where there is none."""
    found = _COMPOSE.search(text)
    return found[0].strip() if found else ""


class Broken(NamedTuple):
    """A line that a terminal seems to have broken at its width."""

    first: int  # The place of its first part
    after: int  # The place after its last part
    wholes: tuple[str, str]  # The line where it was broken within words, and where between them


def rejoined(lines: Sequence[str]) -> Iterator[Broken]:
    """The lines that seem to be broken, from each place that may be the first; blank lines stand between paragraphs."""
    first = 0
    while first < len(lines):
        stop = next((place for place in range(first, len(lines)) if not lines[place].strip()), len(lines))
        yield from _rejoined(lines, first, stop)
        first = stop + 1


def _rejoined(lines: Sequence[str], first: int, stop: int) -> Iterator[Broken]:
    """The broken lines of one paragraph, whose longest line tells the width."""
    width = max(map(len, lines[first:stop]), default=0)
    if not _NARROWEST_LINE <= width <= _WIDEST_LINE:
        return
    for place in range(first, stop):
        after = place + 1
        while after < min(stop, place + _MOST_BROKEN):
            line, below = lines[after - 1], lines[after]
            begin, word = line.split(maxsplit=1)[0], below.split(maxsplit=1)[0]
            # Lines of a log begin alike, those of a table with its side.
            alike = line.startswith(_TABLE) or below.startswith(_TABLE) or begin[:_ALIKE] == word[:_ALIKE]
            if alike or len(line) + 1 + len(word) <= width:
                break  # the word would have had room
            after += 1
        if after > place + 1:
            parts = lines[place:after]
            within = "".join(part if len(part) == width else f"{part} " for part in parts)
            yield Broken(place, after, (within.rstrip(), " ".join(map(str.strip, parts))))


def _logged(line: re.Match[str]) -> str:
    """What a line of Docker's file holds of the log."""
    value = line[0][len('{"log":') :].lstrip().removeprefix('"')
    end = re.search(r'(?:\\n)?", ?"stream": ?"std(?:out|err)"', value)
    return _unescaped(value[: end.start()]) if end else line[0]


def _unquoted(text: str) -> str:
    return re.sub(r"^[ \t]{0,8}(?:>(?!>)[ \t]?){1,8}", "", text, flags=re.MULTILINE) if ">" in text else text


def _in_box(line: re.Match[str]) -> str:
    """What stands in a box, of one of its rows or in a border; nvitop's table is nvidia-smi's with other lines."""
    row = line[0].strip()
    if row.count("│") == _SIDES_OF_SMI:
        return row.replace("│", "|")
    return row.strip(_SIDES).strip() if row[0] in _SIDES else row.strip(_BORDERS)


def _printed(line: str) -> str:
    """The lines that a line holds as quoted strings; any other line as it is."""
    if line.count(r"\n") < _LINE_ENDS or _NO_ESCAPE.search(line):
        return line
    spread = _STRING.sub(lambda found: f"{BREAK}{_unescaped(found[2])}{BREAK}" if r"\n" in found[2] else found[0], line)
    return _unescaped(spread) if BREAK not in spread else spread


def _unescaped(text: str) -> str:
    """``text`` without the escapes of JSON's and Python's strings."""
    text = text.replace(r"\\", _BACKSLASH)
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    if r"\u" in text or r"\x" in text:
        text = _CODE.sub(lambda found: chr(int(found[1] or found[2], 16)), text)
    return text.replace(_BACKSLASH, "\\")


_VALUE = lazy_pattern(
    r"[`\"']?(?:[A-Za-z]{2,14}[ =:-]{1,2})?v?[0-9]{1,4}\.[0-9][\w.+-]{0,40}[`\"']?(?:\s?[/,(| ].{0,60})?$"
)
_BETWEEN = lazy_pattern(r"\s{0,20}(?:`{3}\w{0,12}|[-=]{3,40}|<!--.{0,200}-->)?$")
_FEW_LINES = 3  # Most empty lines and fences between a heading and its answer

_CSV = lazy_pattern(r"[^,]{1,60}(?:,[^,]{1,60}){1,20}$")
_VERSION = lazy_pattern(r"[0-9]\.[0-9]")
_LONGEST_ROW, _MOST_ROWS, _WIDEST = 600, 40, 20

_OUTER = lazy_pattern(r"\s{0,12}(?:- )?[\"']?(?P<name>[A-Za-z][\w -]{1,30})[\"']?: ?\{?$")
_INNER = lazy_pattern(
    r"\s{1,16}[\"']?version[\"']?: {0,4}[\"']?(?P<version>v?[0-9][\w.+-]{0,60})[\"']?,?$", re.IGNORECASE
)
_NESTED = lazy_pattern(
    r"[\"'](?P<name>[A-Za-z][\w -]{1,30})[\"']\s{0,4}:\s{0,4}\{[^{}]{0,200}?[\"']version[\"']\s{0,4}:\s{0,4}"
    r"[\"'](?P<version>v?[0-9][\w.+-]{0,60})[\"']"
)
_RECORD = lazy_pattern(r"\{[^{}]{1,800}\}")
_FIELD = lazy_pattern(r"[\"'](name|package|version)[\"']\s{0,4}:\s{0,4}[\"']([\w.+-]{1,80})[\"']", re.IGNORECASE)
_LONGEST_TEXT, _MOST_RECORDS = 1 << 20, 2_000


def spread_statements(lines: Sequence[str]) -> Iterator[str]:
    """The statements of headings with answers, and of tables with the names in a row of their own."""
    for place, line in enumerate(lines):
        yield from _nested(line, lines[place + 1 : place + 1 + _FEW_LINES])
        below = lines[place + 1] if place + 1 < len(lines) else ""
        if element := re.match(r"<([a-z_]{3,40})>([^<>]{1,100})</\1>$", line.strip()):
            yield f"{element[1].replace('_', ' ')}: {element[2]}"
        if _CSV.match(line) and _CSV.match(below) and not _VERSION.search(line):
            yield from _joined(line.split(","), below.split(","))
        elif place and re.match(r"\|?(?: {0,4}:?-{2,60}:? {0,4}\|){1,20} {0,4}(?::?-{2,60}:?)?$", line.strip()):
            for row in takewhile(lambda text: "|" in text, lines[place + 1 : place + 1 + _MOST_ROWS]):
                yield from _joined(_cells(lines[place - 1]), _cells(row))
        elif heading := _heading(line):
            # The version in the first line below that has words.
            near = lines[place + 1 : place + 2 + _FEW_LINES]
            answer = next((text.strip() for text in near if not _BETWEEN.match(text)), "")
            if _VALUE.match(answer):
                yield f"{heading}: {answer}"


def _nested(line: str, below: Sequence[str]) -> Iterator[str]:
    """The versions of YAML's and JSON's objects that are named by their key."""
    if "ersion" in line:
        yield from (f"{nested['name']} version: {nested['version']}" for nested in _NESTED.finditer(line))
    outer = _OUTER.match(line) if line.endswith((":", "{")) else None
    inner = next((found for each in below if (found := _INNER.match(each))), None) if outer else None
    if outer and inner:
        yield f"{outer['name']} version: {inner['version']}"


def records(text: str) -> Iterator[tuple[str, str]]:
    """The names and versions of JSON objects that have both, as ``pip list --format=json`` prints them."""
    if '"' not in text and "'" not in text:
        return
    found = _RECORD.finditer(text[:_LONGEST_TEXT])
    for record, _ in zip(found, range(_MOST_RECORDS), strict=False):
        fields = {key.lower(): value for key, value in _FIELD.findall(record[0])}
        name = fields.get("name") or fields.get("package")
        if name and "version" in fields:
            yield name, fields["version"]


def _heading(line: str) -> str:
    """The words of a heading, or of a line that is a label alone; empty for any other line."""
    text = line.strip()
    found = re.match(r"#{1,6} {0,3}(\S.{0,100})$", text)
    words = found[1] if found else text if re.match(r"[A-Za-z][\w ,./()&'-]{1,60}[:?]?$", text) else ""
    return words.rstrip(" :?") if not _VERSION.search(words) else ""


def _joined(names: Sequence[str], values: Sequence[str]) -> Iterator[str]:
    if len(names) == len(values) and 1 < len(names) <= _WIDEST:
        yield from (f"{name.strip()}: {value.strip()}" for name, value in zip(names, values, strict=True))


def _cells(row: str) -> list[str]:
    return row[:_LONGEST_ROW].strip().strip("|").split("|")
