"""Pasted text, bounded and cleaned of what terminals, quoting and log collectors add.

All importers read through this module, so that no control character, terminal escape or lone surrogate reaches a
record, and the size of a text is bounded. Each importer looks at each line: of a long log, which repeats few shapes of
lines with other numbers, only the ends and what speaks of GPUs or of a failure between them are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice

import msgspec

from envcheck.importers.layouts import BREAK, Broken, bare, of_compose, rejoined, spread, spread_statements
from envcheck.importers.prose.languages import in_english
from envcheck.importers.prose.mentions import LineMentions, may_mention, mentions_in
from envcheck.model.snapshot import PASTED, ProbeRun
from envcheck.text.lazy import lazy_pattern

SOURCE = PASTED

TEXT_LIMIT = 8 * 1024 * 1024  # Most characters that are read of a text
LINE_COUNT_LIMIT = 100_000
LINE_LIMIT = 4_000  # Most characters that are read of a line (an XML document is read whole)

_ESCAPES = lazy_pattern(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|[@-_])|\x9b[0-?]{0,64}[@-~]"
)
_CELLS = lazy_pattern(r"</t[dh]>[ \t]{0,8}<t[dh](?: [^<>\n]{0,200})?>", re.IGNORECASE)
_TAGS = lazy_pattern(
    r"</?(?:table|tbody|thead|tr|t[dh]|br|li|ul|p|b|i|em|font|span|strong|code|pre|details|summary|kbd|sub|h[1-6])"
    r"(?: [^<>\n]{0,200})?/?>",
    re.IGNORECASE,
)
"""What Markdown admits of HTML."""

_REMOVED = (
    *range(0x09), *range(0x0C, 0x20), *range(0x7F, 0xA0), 0xAD, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
    *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xD800, 0xE000), *range(0xE0000, 0xE0080),
)  # fmt: skip
"""Control, invisible and bidirectional characters, and surrogates, which JSON cannot represent."""

_SPACES = {0xA0: " ", 0x2007: " ", 0x202F: " ", 0x3000: " "}
_SIGNS = {0xFF1A: ":", 0xFE55: ":", 0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}
"""Colons of East Asian writing, and the quotation marks that editors put for straight ones."""
_TABLE: dict[int, str | None] = {**dict.fromkeys(_REMOVED), **_SPACES, **_SIGNS}
_PLAIN = bytes(code for code in range(0x80) if code not in _TABLE)


class Paste(msgspec.Struct, frozen=True, dict=True):
    text: str
    lines: tuple[str, ...]
    """The lines of ``text``, each cut at ``LINE_LIMIT``, with system messages in English; line 1 is the first."""
    unread: str  # What was left out, as a sentence; empty if all was read
    numbers: tuple[int, ...]  # The number of each of ``lines`` in the whole text, from 1
    as_written: Mapping[str, str]  # Lines that are in another language, by what stands for them in ``lines``
    of_compose: str = ""  # What ``docker compose`` wrote before a line of a container's log; empty where there is none

    def number(self, place: int) -> int:
        """The number of a line in the whole text, from 1; ``place`` is its index in ``lines``."""
        return self.numbers[place]

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """The lines, each once: a repeated line states nothing new."""
        return tuple(dict.fromkeys(self.lines))

    @cached_property
    def lowered(self) -> str:
        """The lines in lower case, in which to look for a word before each line is looked at."""
        return "\n".join(self.lines).lower()

    @cached_property
    def rejoined(self) -> tuple[Broken, ...]:
        """The lines that a terminal seems to have broken."""
        return tuple(rejoined(self.lines))

    @cached_property
    def mentions(self) -> tuple[LineMentions, ...]:
        """What the first of the statements that may mention a component, a version or a GPU do mention."""
        spread = dict.fromkeys(spread_statements(self.lines))
        lines = (line for line in (*self.statements, *spread) if may_mention(line))
        return tuple(mentions_in(line, self.lowered) for line in islice(lines, 2_000))

    @classmethod
    def of(cls, text: str) -> Paste:
        """Clean ``text`` and limit it, at both ends: logs begin with versions and end with the error."""
        unread: list[str] = []
        first, last, missing = text, "", 0
        if len(text) > TEXT_LIMIT:
            # In whole lines, where there are any.
            half = TEXT_LIMIT // 2
            stop = text.rfind("\n", 0, half)
            stop = stop if stop >= 0 else half
            start = text.find("\n", len(text) - half) + 1 or len(text) - half
            first, last, missing = text[:stop], text[start:], max(text.count("\n", stop, start) - 1, 0)
            unread = [f"only the first and the last {TEXT_LIMIT // 2 // 1024 // 1024} MiB were read"]
        whole = _clean(first).split("\n")
        before = len(whole)
        whole += _clean(last).split("\n") if last else []
        if len(whole) > LINE_COUNT_LIMIT:
            half = LINE_COUNT_LIMIT // 2
            missing += len(whole) - 2 * half
            before, whole = half, whole[:half] + whole[-half:]
            unread = [f"only the first and the last {half} lines were read"]
        numbers = [*range(1, before + 1), *range(before + missing + 1, len(whole) + missing + 1)]
        lines = whole
        if any(BREAK in line for line in whole):
            numbers = [
                number for number, line in zip(numbers, whole, strict=True) for _ in range(line.count(BREAK) + 1)
            ]
            lines = "\n".join(whole).replace(BREAK, "\n").split("\n")
        cut = [line[:LINE_LIMIT].rstrip() for line in lines]
        long = [number for number, line in zip(numbers, lines, strict=True) if len(line.rstrip()) > LINE_LIMIT]
        if long:
            more = f" and of {len(long) - 1} more" if len(long) > 1 else ""
            unread.append(f"only the first {LINE_LIMIT} characters of line {long[0]}{more} were read")
        places, omitted = telling_places(cut)
        if omitted:
            unread.append(f"{omitted:,} lines in the middle were not read")
        chosen = [cut[place] for place in places]
        english = in_english(chosen)
        return cls(
            "\n".join(lines),
            tuple(english.get(place, line) for place, line in enumerate(chosen)),
            " and ".join(unread),
            tuple(numbers[place] for place in places),
            {text: chosen[place] for place, text in reversed(english.items())},  # of several the first
            of_compose(first),
        )


def left_out_run(detail: str) -> ProbeRun:
    """The row about the omitted part of the text, which a rule reports as an open question."""
    return ProbeRun(name=SOURCE, title="Pasted text", status="ok", detail=detail)


def printable(text: str) -> str:
    """``text`` without control and invisible characters, with runs of blanks folded."""
    return " ".join(text.translate(_TABLE).split())


def _clean(text: str) -> str:
    # Each pattern needs one of its characters; looking for that first spares most texts the search.
    text = spread(text.replace("\r\n", "\n").replace("\r", "\n"))
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    odd = text.encode("ascii").translate(None, _PLAIN).decode("ascii") if text.isascii() else text
    if not _TABLE.keys().isdisjoint(map(ord, set(odd))):
        text = text.translate(_TABLE)
    if "</" in text:
        text = _TAGS.sub("", _CELLS.sub(" | ", text))
    if "**" in text:
        text = re.sub(r"(?<!\*)\*\*(?!\*)([^*\n]{1,200})\*\*(?!\*)", r"\1", text)
    return bare(text)


WHOLE = 3_000  # Most lines of a text that is read without a choice
WHOLE_LENGTH = 1 << 19  # Most characters of a text that is read without a choice
_END = 500
_MIDDLE = 400
_LENGTH = WHOLE_LENGTH // 4  # Most characters that are read of each end, and of each half of what lies between them
_ALIKE = 3  # Lines that are kept of those that differ in numbers only

_WORDS = (
    "error", "fail", "cuda", "nvidia", "gpu", "torch", "tensor", "driver", "xid", "nvrm", "symbol", "cannot",
    "could", "unable", "not ", "no such", "exception", "warn", ".so", "version", "==", "memory", "nccl",
    "cudnn", "signal", "mig", "segmentation", "denied", "mismatch", "unsupported", "too old", "incompatible",
    "hang", "stuck", "deadlock", "assert", "abort", "crash", "throttl", "slowdown", "fallen", "lost", "numpy",
    "jax", "onnx", "triton", "python", "kernel", "rtx", "gtx", "geforce", "tesla", "sm_", "capability",
    "installed", "l4t", "jetpack", "windows", "ubuntu", "wsl", "vllm", "blas", "shm", "docker", "insufficient",
    "timeout", "timed out", "jetson", " orin", "agx ", "dgx",
)  # fmt: skip
"""In lower case: every line that an importer reads by itself contains one of these."""

_DIGITS_ALIKE = bytes.maketrans(b"0123456789", b"##########")


def telling_places(lines: Sequence[str]) -> tuple[Sequence[int], int]:
    """The places of the lines to read, in order, and how many of those that tell something were left out."""
    if len(lines) <= WHOLE and sum(map(len, lines)) <= WHOLE_LENGTH:
        return range(len(lines)), 0
    start = _within(map(len, lines), _END)
    stop = max(len(lines) - _within(map(len, reversed(lines)), _END), start)
    alike: dict[str, int] = {}
    chosen: list[int] = []
    # The words and the digits are ASCII, and one other character in a text makes each search in it ten times slower.
    encoded = "\n".join(lines[start:stop]).lower().encode("ascii", "replace")
    lowered = encoded.decode("ascii")
    # The lines with one mark for each number; of the whole text at once, and of bytes, which is faster.
    shapes = encoded.translate(_DIGITS_ALIKE).decode("ascii")
    while "##" in shapes:
        shapes = shapes.replace("##", "#")
    for place, (line, shape) in enumerate(zip(lowered.split("\n"), shapes.split("\n"), strict=True), start):
        count = alike.get(shape)
        if count is None:
            count = 0 if any(map(line.__contains__, _WORDS)) else _ALIKE
        alike[shape] = count + 1
        if count < _ALIKE and place < stop:
            chosen.append(place)
    first = _within((len(lines[place]) for place in chosen), _MIDDLE // 2)
    rest = chosen[first:]
    last = _within((len(lines[place]) for place in reversed(rest)), _MIDDLE // 2)
    kept = chosen[:first] + rest[len(rest) - last :]
    return (*range(start), *kept, *range(stop, len(lines))), len(chosen) - len(kept)


def _within(lengths: Iterable[int], most: int) -> int:
    """How many of the first lines stay within the limits; at least one, if there is one."""
    sums = enumerate(accumulate(lengths), 1)
    return max((count for count, length in sums if count == 1 or (count <= most and length <= _LENGTH)), default=0)
