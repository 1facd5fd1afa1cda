"""A page of ``envcheck matrix show`` for people: what the matrix knows of one component, and where that is from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from envcheck.compat.question.lookup import Page
from envcheck.compat.question.question import readable
from envcheck.report import Options
from envcheck.report.fit_text import overlay_lines
from envcheck.report.pen import Line, Pen, Span
from envcheck.sources import Source
from envcheck.text.clean import clean

_INDENT = "  "
_COLUMN = 26
"""Columns of the name of a fact."""

_TITLES = {
    "default_cuda": "CUDA of PyPI's wheel",
    "default_cuda_aarch64": "… for aarch64",
    "python_min": "Python from",
    "python_max": "Python to",
    "python_max_windows": "… on Windows",
    "python_max_aarch64": "… on aarch64",
    "python_also": "and Python",
    "cudnn": "cuDNN, pinned",
    "nccl": "NCCL, pinned",
    "triton": "Triton, pinned",
    "cuda": "CUDA",
    "driver_linux": "least driver, Linux",
    "driver_windows": "least driver, Windows",
    "disputed_linux": "… by another document",
    "disputed_windows": "… by another document",
    "ptx": "PTX ISA",
    "pairs": "made for this release",
    "sms": "SMs",
    "peaks": "dense peaks",
    "first_cuda": "first CUDA",
    "last_cuda": "last CUDA",
    "os": "OS",
    "ended": "end of life",
    "device_ids": "PCI devices",
}
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


def render(page: Page, options: Options, overlays: Sequence[str] = ()) -> str:
    """``page`` as text, ending in a newline; it says which of the ``overlays`` of the matrix it rests on."""
    pen = Pen(options)
    lines: list[Line] = [(Span(page.component, "title"),)]
    if page.known:
        lines += _indented(pen, ", ".join(page.known), _INDENT)
    for facts in page.facts:
        lines += [(), *(line for name, value in facts.items() for line in _fact(pen, name, value))]
    if page.sources:
        lines += [(), (Span("Sources", "title"),)]
    for source in page.sources:
        lines += [*_indented(pen, f"{source.title}, read {source.read}", _INDENT), _address(source)]
    if overlays:
        lines += [(), *overlay_lines(overlays, page.sources)]
    return pen.show(lines)


def _address(source: Source) -> Line:
    """An address is never cut."""
    return (Span(_INDENT * 2), Span(clean(source.address), "dim"))


def _fact(pen: Pen, name: str, value: Any) -> Iterator[Line]:
    title = _TITLES.get(name) or name.replace("_", " ")
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        yield Span(_INDENT), Span(title)
        for item in value:
            yield from _indented(pen, _inline(item), _INDENT * 2)
        return
    margin = len(_INDENT) + _COLUMN
    first, *rest = pen.fill(_text(name, value), pen.width - margin) or [""]
    yield Span(_INDENT), Span(f"{title:<{_COLUMN - 1}} "), Span(first)
    for line in rest:
        yield Span(" " * margin), Span(line)


def _inline(item: Mapping[str, Any]) -> str:
    """A record on one line: its values without their names, which say themselves what they are."""
    return "  ".join(_text(name, value) for name, value in item.items() if value not in ("", []))


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


def _indented(pen: Pen, text: str, margin: str) -> Iterator[Line]:
    for line in pen.fill(text, pen.width - len(margin)):
        yield Span(margin), Span(line)
