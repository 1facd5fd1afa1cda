"""The answer of ``envcheck matrix check`` and a page of ``matrix show``, for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from envcheck.compat.question import Answer, readable
from envcheck.knowledge.load import decides, is_from
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen, Style, StyledSpan
from envcheck.sources import Source
from envcheck.text.clean import clean

if TYPE_CHECKING:
    from envcheck.compat.lookup import Overview, Page

_INDENT = "  "
_COLUMN = 6  # Columns of the word before a reason

_WORDS: dict[FitVerdict, tuple[str, Style]] = {
    "compatible": ("ok", "pass"),
    "incompatible": ("NO", "fail"),
    "unknown": ("?", "unknown"),
}
_MOST_SOURCES = 2  # Sources shown for a reason, by address; JSON has all, with their titles


def render_answer(answer: Answer, options: Options, overlays: Sequence[str] = ()) -> str:
    """``answer`` as text, ending in a newline; it says which of the ``overlays`` of the matrix decided."""
    pen = Pen(options)
    return pen.show(answer_lines(answer, pen, overlays))


def answer_lines(answer: Answer, pen: Pen, overlays: Sequence[str] = (), *, cited: bool = True) -> list[Line]:
    """The same as lines; ``cited``: with the sources of each reason."""
    lines: list[Line] = [(StyledSpan(answer.verdict.upper(), _WORDS[answer.verdict][1]),)]
    margin = _INDENT + " " * _COLUMN
    for reason in answer.reasons:
        word, style = _WORDS[reason.verdict]
        lines += [(), *pen.hang((StyledSpan(_INDENT), StyledSpan(f"{word:<{_COLUMN}}", style)), reason.message)]
        for source in reason.sources[:_MOST_SOURCES] if cited else ():
            origin = "".join(f", from {place}" for place in overlays if is_from(source, place))
            text = f"{clean(source.address)}  (read {clean(source.read)}{clean(origin)})"
            lines.append((StyledSpan(margin), StyledSpan(text, "dim")))
        left = len(reason.sources) - _MOST_SOURCES if cited else 0
        lines += [(StyledSpan(margin), StyledSpan(f"and {left} more sources (--json)", "dim"))] if left > 0 else []
    if answer.suggestions:
        lines += [(), (StyledSpan("What would fit:", "title"),)]
        lines += [line for text in answer.suggestions for line in pen.hang(_INDENT, text)]
    if answer.assumed:
        assumed = ", ".join(f"{name}: {value}" for name, value in answer.assumed.items())
        lines += [(), *pen.hang("", f"Assumed: {assumed}")]
    return [*lines, *_overlay_lines(overlays, [source for reason in answer.reasons for source in reason.sources])]


def _overlay_lines(overlays: Sequence[str], cited: Sequence[Source]) -> Iterator[Line]:
    """The overlay folders of the matrix, below a blank line, and whether what is shown rests on them."""
    yield from [()] if overlays else ()
    for place in overlays:
        role = "cited above" if decides(cited, place) else "not cited here"
        yield (StyledSpan(f"Matrix overlay: {clean(place)} ({role})"),)


_FACT_COLUMN = 26  # Columns of the name of a fact

_TITLES = {
    "default_cuda": "CUDA of PyPI's wheel", "default_cuda_aarch64": "… for aarch64", "cudnn": "cuDNN, pinned",
    "nccl": "NCCL, pinned", "triton": "Triton, pinned", "cuda": "CUDA", "jetpack": "JetPack",
    "driver_linux": "minimum driver, Linux",
    "driver_windows": "minimum driver, Windows", "disputed_linux": "… by another document",
    "disputed_windows": "… by another document", "ptx": "PTX ISA", "pairs": "built for this release", "sms": "SMs",
    "peaks": "dense peaks", "first_cuda": "first CUDA", "last_cuda": "last CUDA", "os": "OS", "ended": "end of life",
    "device_ids": "PCI devices",
}  # fmt: skip
"""Names of facts where the field's own would not do."""

_SPECIFIERS = frozenset({"versions", "needs", "pairs", "host_compilers"})
"""Facts that are specifiers, or tables of them by component."""

_EMPTY = {"default_cuda_aarch64": "a CPU build", "default_cuda": "a CPU build", "cuda": "none, a CPU build"}

_UNITS: dict[str, tuple[float, str]] = {
    "memory": (2**30, "GiB"),
    "bandwidth": (1e9, "GB/s"),
    "clock": (1e6, "MHz"),
    "power": (1, "W"),
}
"""By the last word of a fact's name."""

_FLOPS = (1e12, "T/s")


def render_page(page: Page, options: Options, overlays: Sequence[str] = ()) -> str:
    """``page`` as text, ending in a newline; it says which of the ``overlays`` of the matrix it rests on."""
    pen = Pen(options)
    lines: list[Line] = [(StyledSpan(page.component, "title"),)]
    if page.known:
        lines += pen.hang(_INDENT, ", ".join(page.known))
    if page.missing:
        lines += pen.hang(_INDENT, page.missing)
    for facts in page.facts:
        lines += [(), *(line for name, value in facts.items() for line in _fact(pen, name, value))]
    if page.sources:
        lines += [(), (StyledSpan("Sources", "title"),)]
    for source in page.sources:
        # An address is never cut.
        address: Line = (StyledSpan(_INDENT * 2), StyledSpan(clean(source.address), "dim"))
        lines += [*pen.hang(_INDENT, f"{source.title}, read {source.read}"), address]
    return pen.show([*lines, *_overlay_lines(overlays, page.sources)])


def render_overview(found: Overview, options: Options, overlays: Sequence[str] = ()) -> str:
    """The components of the matrix as a table, ending in a newline."""
    pen = Pen(options)
    width = max([len(each.name) for each in found.components], default=0)
    lines: list[Line] = [(StyledSpan(f"{len(found.components)} components: rows, newest source", "title"),)]
    lines += [
        (StyledSpan(_INDENT), StyledSpan(clean(f"{each.name:<{width}}  {each.rows:>4}  {each.read}")))
        for each in found.components
    ]
    return pen.show([*lines, *_overlay_lines(overlays, ())])


def _fact(pen: Pen, name: str, value: Any) -> Iterator[Line]:
    title = _TITLES.get(name) or name.replace("_", " ")
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        yield StyledSpan(_INDENT), StyledSpan(title)
        for item in value:
            # A record on one line: its values without their names, which say themselves what they are.
            values = (_text(key, inner) for key, inner in item.items() if inner not in ("", []))
            yield from pen.hang(_INDENT * 2, "  ".join(values))
        return
    yield from pen.hang(f"{_INDENT}{title:<{_FACT_COLUMN - 1}} ", _text(name, value))


def _text(name: str, value: Any) -> str:
    if name in _SPECIFIERS:
        table = value if isinstance(value, Mapping) else {"": value}
        return "; ".join(readable(key, spec).strip() for key, spec in table.items())
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_text(f'{name} {key}', inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        items = [str(item) for item in value]
        return (", " if any(" " in item for item in items) else " ").join(items)
    if isinstance(value, bool):
        return "yes" if value else "no"
    measure = _FLOPS if name.startswith("peaks ") else _UNITS.get(re.split("[_ ]", name)[-1])
    if isinstance(value, int | float) and measure:
        return f"{value / measure[0]:.4g} {measure[1]}"
    return str(value) if value != "" else _EMPTY.get(name, "none")
