"""``docs/figures.md`` has every quantity, and its figures are those of the sources that it cites."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.knowledge.performance.quantities import QUANTITIES, BenchQuantity
from envcheck.knowledge.performance.spread import LEAST_TOLERATED, TOLERATED
from envcheck.model.snapshot import Measurement
from envcheck.rules.facts.measurements import quantity
from envcheck.rules.speed.siblings import USUAL, USUAL_TRANSFER
from tests.every import every

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "figures.md"
TEXT = PAGE.read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (?P<names>(?:`[a-z0-9-]+` ?)+)\| (?P<tells>[^|]+) \| (?P<normal>[^|]+) \|$", re.MULTILINE)
_VALUE = re.compile(r"(?<![\w.])\d[\d.,]*\d? (?:[PTGMk]?(?:FLOP/s|OP/s|B/s)|us|ms)(?![\w/])")
_CITED = re.compile(r"\[([\w-]+)\]")
ROWS = [(tuple(re.findall(r"`([^`]+)`", row["names"])), row["tells"], row["normal"]) for row in _ROW.finditer(TEXT)]
NORMAL = {name: (tells, normal) for names, tells, normal in ROWS for name in names}
LINKS = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", TEXT, re.MULTILINE))
RECORDED = ("two-h200", "h100")
RESULTS = ("libraries", "speed", "cudnn", "collectives", "frameworks")


def test_no_row_is_overlooked() -> None:
    assert len([line for line in TEXT.splitlines() if line.startswith("| `")]) == len(ROWS) > 40
    assert len(NORMAL) == sum(len(names) for names, _, _ in ROWS), "a quantity has two rows"


@every(QUANTITIES)
def test_every_quantity_has_its_row(declared: BenchQuantity) -> None:
    assert declared.name in NORMAL, f"docs/figures.md says nothing of {declared.name}"
    tells, normal = NORMAL[declared.name]
    assert tells.lower().startswith(declared.title.split(",")[0].split(" (")[0].lower())
    if not declared.needs and not declared.beside:
        assert ("`--full`" in tells or "with `--full`" in _section(declared.name).lower()) is not declared.quick
    assert _CITED.search(normal) or normal == "not measured yet"


def _section(name: str) -> str:
    return next(part for part in TEXT.split("\n## ") if f"| `{name}`" in part or f" `{name}`" in part)


@every([part for part in TEXT.split("\n## ") if "| quantity |" in part])
def test_every_section_says_how_and_what_to_do(section: str) -> None:
    for heading in ("**How.** ", "**When it is low.** "):
        assert f"\n\n{heading}" in section


@pytest.mark.parametrize("name", sorted({found for _, _, normal in ROWS for found in _CITED.findall(normal)}))
def test_what_is_cited_is_there(name: str) -> None:
    target = LINKS[name]
    if not target.startswith(("https://", "#")):
        assert (PAGE.parent / target).is_file()


@cache
def recorded(name: str) -> list[Measurement]:
    content: Any = msgspec.json.decode((PAGE.parent / LINKS[name]).read_bytes())
    return msgspec.convert(content.get("measurements") or content["snapshot"]["measurements"], list[Measurement])


def cited_values(normal: str, kinds: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each value with the source that stands behind it."""
    found = []
    for part in re.split(r"(?<=\]);? ?", normal):
        cited = _CITED.findall(part)
        if cited and cited[-1] in kinds:
            found += [(value, cited[-1]) for value in _VALUE.findall(part)]
    return found


@every(
    [(name, value, source) for name, (_, normal) in NORMAL.items() for value, source in cited_values(normal, RECORDED)]
)
def test_recorded_values_are_those_of_the_recording(case: tuple[str, str, str]) -> None:
    name, value, source = case
    assert value in {quantity(each.value, each.unit) for each in recorded(source) if each.name == name and each.value}


@every(
    [(name, value, source) for name, (_, normal) in NORMAL.items() for value, source in cited_values(normal, RESULTS)]
)
def test_values_of_results_stand_there(case: tuple[str, str, str]) -> None:
    _, value, source = case
    assert value in (PAGE.parent / LINKS[source]).read_text(encoding="utf-8")


def test_enough_values_are_checked() -> None:
    """The patterns above find them: a page that they cannot read would pass."""
    assert len([value for _, normal in NORMAL.values() for value in cited_values(normal, (*RECORDED, *RESULTS))]) > 60


def test_the_thresholds_are_those_of_the_code() -> None:
    text = " ".join(TEXT.split())
    assert f"slower by more than {USUAL:.0%}".replace("%", " %") in text
    assert f"or {USUAL_TRANSFER:.0%} for device memory".replace("%", " %") in text
    assert f"one or two runs, {TOLERATED:.0%} plus the noise".replace("%", " %") in text
    assert f"then {LEAST_TOLERATED:.0%},".replace("%", " %") in text
