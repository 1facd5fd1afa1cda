"""The measured figures as bars: how much of its ceiling each reached, and where healthy GPUs lie."""

from __future__ import annotations

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.performance.expected import Expectation, expectation
from envcheck.model.checks import Check, Report, Status
from envcheck.model.snapshot import Gpu, Measurement
from envcheck.report.markup.html import Markup, chip, tag
from envcheck.report.page.subject import gpu_name
from envcheck.rules.facts.measurements import (
    LOOSE,
    checks_of_figures,
    figures_of,
    measurement_key,
    measurement_name,
    measurement_name_among,
    percent,
    processor_figures,
    quantity,
    reason_without_value,
    speedup,
    spread,
)

_FULL = 105.0
"""Percent of the ceiling at the right end of a bar: a little more than what can be."""
_LEGEND = (
    "A bar is the share of the ceiling that was reached; the lighter part is the range of healthy GPUs of the same "
    "model; the mark is the ceiling. Figures without a bar have no known ceiling or range: use a baseline for them."
)
_AMONG = "The lowest and the highest figure of the GPUs of one model, and how far they are apart."
_WORDS: dict[Status, tuple[str, str]] = {"warn": ("!", "LOW"), "fail": ("✕", "TOO LOW")}


def figures(report: Report) -> list[Markup]:
    """A card for each GPU that was measured; empty where none was."""
    known = report.gpus
    checks = checks_of_figures(report.checks)
    cards = [card for gpu in known if (card := _card(gpu, report, known, checks))]
    uuids = {gpu.uuid for gpu in known}
    strays = [measured for measured in report.measurements if measured.gpu and measured.gpu not in uuids]
    if strays:
        rows = [_plain(measured, known, "its GPU is not listed") for measured in strays]
        cards.append(tag("div", tag("h3", "Not on a listed GPU"), tag("div", *rows, class_="plain"), class_="card"))
    processor = processor_figures(report.measurements)
    if processor:
        model = report.snapshot.platform.cpu_model if report.snapshot and report.snapshot.platform else None
        rows = [_with_speedup(measured, report) for measured in processor]
        cards.append(
            tag("div", tag("h3", f"CPU: {model or 'unknown model'}"), tag("div", *rows, class_="plain"), class_="card")
        )
    cards += _across_gpus(report)
    return [*cards, tag("p", _LEGEND, class_="legend")] if cards else []


def _across_gpus(report: Report) -> list[Markup]:
    """How far GPUs of a model lie apart; the GPU that is slower than the others is marked."""
    rows = []
    for found in report.across_gpus:
        ends = f"{quantity(found.low, found.unit)} to {quantity(found.high, found.unit)}"
        slow = [gpu for gpu in found.gpus if gpu.straggles and gpu.slower is not None]
        marks = [chip("warn", "!", f"GPU {gpu.gpu} {gpu.slower:.0%} SLOWER") for gpu in slow]
        left = "".join(f", GPU {gpu.gpu} not compared" for gpu in found.gpus if gpu.why_not)
        share = tag("span", f" {found.difference:.1%} apart{left} ", *marks, class_="share")
        rows.append(tag("div", tag("span", found.title), tag("span", ends, share, class_="value")))
    title, about = tag("h3", "Across GPUs"), tag("p", _AMONG, class_="meta")
    return [tag("div", title, about, tag("div", *rows, class_="plain"), class_="card")] if rows else []


def _with_speedup(measured: Measurement, report: Report) -> Markup:
    """A figure of the processor, with how many times as fast a GPU did the same."""
    if measured.value is None:
        return _plain(measured, (), "")
    faster = speedup(measured, report.measurements)
    told = f" (the GPU: {faster:.3g} times as fast)" if faster else ""
    value = tag("span", quantity(measured.value, measured.unit), class_="value")
    share = tag("span", told, class_="share")
    name = tag("span", measurement_name(measured, below_heading=True), title=measured.detail)
    return tag("div", name, tag("span", value, share, *_wrong(measured)))


def _card(gpu: Gpu, report: Report, known: tuple[Gpu, ...], checks: dict[tuple[str, str], Check]) -> Markup | None:
    measured = figures_of(gpu, report.measurements)
    if not measured:
        return None
    expected = {id(found): expectation(load_matrix(), gpu, found) for found in measured}
    bars = [
        _figure(found, known, band, checks.get((gpu.key, measurement_key(found))))
        for found in measured
        if not isinstance(band := expected[id(found)], str)
    ]
    plain = [_plain(found, known, why) for found in measured if isinstance(why := expected[id(found)], str)]
    number = f"GPU {gpu.index}: " if gpu.index is not None else ""
    parts = [tag("h3", f"{number}{gpu_name(gpu)}"), tag("p", _conditions(measured), class_="meta")]
    parts += [tag("div", *bars, class_="figures")] if bars else []
    parts += [tag("div", *plain, class_="plain")] if plain else []
    return tag("div", *parts, class_="card")


def _called(measured: Measurement, known: tuple[Gpu, ...]) -> str:
    """Cards have no headings for libraries."""
    return measurement_name_among(measured, known) if measured.peer else measurement_name(measured)


def _conditions(measured: list[Measurement]) -> str:
    found = next((figure.conditions for figure in measured if figure.conditions), None)
    if found is None:
        return ""
    runs = [figure.conditions for figure in measured if figure.conditions]
    hottest = [run.temperature.high for run in runs if run.temperature]
    return ", ".join(
        filter(
            None,
            (
                f"power limit {found.power_limit:.0f} W" if found.power_limit else "",
                {True: "ECC on", False: "ECC off", None: ""}[found.ecc],
                f"at most {max(hottest):.0f} °C" if hottest else "",
            ),
        )
    )


def _plain(measured: Measurement, known: tuple[Gpu, ...], why: str) -> Markup:
    """A figure that nothing is known to hold against, or that could not be taken."""
    name = tag("span", _called(measured, known), title=why)
    if measured.value is None:
        told = f"not measured: {measured.missing}" if measured.missing else reason_without_value(measured)
        return tag("div", name, tag("span", told, class_="share"))
    value = tag("span", quantity(measured.value, measured.unit), class_="value")
    return tag("div", name, tag("span", value, tag("span", _spread_text(measured), class_="share"), *_wrong(measured)))


def _figure(measured: Measurement, known: tuple[Gpu, ...], found: Expectation, check: Check | None) -> Markup:
    """The report's own check decides; the bar only shows."""
    wrong = _wrong(measured)
    status: Status = check.status if check else "skipped"
    words = {"pass": " ✓", "skipped": ", not judged", "unknown": ", not judged"}.get(status, "")
    told = [f"{percent(found.share)}{_spread_text(measured)}{words} ", *wrong]
    told += [chip(status, *_WORDS[status])] if status in _WORDS and not wrong else []
    return tag(
        "div",
        tag("span", _called(measured, known)),
        tag("span", quantity(measured.value or 0.0, measured.unit), class_="value"),
        _bar(found, "fail" if wrong else status),
        tag("span", *told, class_="share", title=check.message if check and status != "pass" else ""),
        class_="figure",
    )


def _wrong(measured: Measurement) -> list[Markup]:
    right = measured.verification is None or measured.verification.right
    return [] if right else [chip("fail", "✕", "WRONG RESULT")]


def _spread_text(measured: Measurement) -> str:
    loose = spread(measured.samples)
    return f", spread {loose:.0%}" if loose > LOOSE else ""


def _bar(found: Expectation, status: Status) -> Markup:
    """Drawn 105 units wide: one for each percent of the ceiling."""
    reached = min(max(found.share * 100, 0.0), _FULL)
    low, high = min(found.low * 100, _FULL), min(found.high * 100, _FULL)
    words = f"{percent(found.share)} of {found.basis}; healthy GPUs reach {percent(found.low)} to {percent(found.high)}"
    return tag(
        "svg",
        tag("title", words),
        _box("all", 0, _FULL, 3, 9),
        _box("band", low, high, 0, 15),
        _box("got", 0, reached, 3, 9),
        _box("edge", 99.6, 100.4, 0, 15),
        class_=f"bar {status}",
        viewBox=f"0 0 {_FULL:g} 15",
        preserveAspectRatio="none",
        role="img",
    )


def _box(kind: str, left: float, right: float, top: float, height: float) -> Markup:
    return tag(
        "rect", class_=kind, x=f"{left:.2f}", y=f"{top:g}", width=f"{max(right - left, 0):.2f}", height=f"{height:g}"
    )
