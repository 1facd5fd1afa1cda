"""The drawings of the HTML page: what they say, when they are left out, and that every colour can be read."""

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

import envcheck.report
from envcheck.report import Options, render
from envcheck.report.charts import heat_table, link_matrix, roofline
from envcheck.report.document import Tag, html
from tests.every import cases
from tests.golden.reports import GROUPS
from tests.known import known
from tests.test_machines import report_on

STYLE = (Path(envcheck.report.__file__).parent / "style.css").read_text(encoding="utf-8")
HOT = GROUPS["bench"]["h100x2-bench-hot"]


def texts(drawn: list[Tag]) -> list[str]:
    """The cells of the table, without their signs."""
    (card,) = drawn
    return [cell.text.rpartition(" ")[2] for cell in card.all("td")]


def test_links_are_a_grid_of_all_pairs() -> None:
    found = texts(list(link_matrix(report_on("h200x4"))))
    assert found.count("NV18") == 4 * 3
    assert found.count("\N{MIDDLE DOT}") == 4
    assert found.count("3") == 1


def test_a_link_has_the_rate_that_was_measured_and_one_that_is_not_known_says_so() -> None:
    report = report_on("h200x4")
    assert report.snapshot is not None
    assert report.snapshot.fabric is not None
    links = known(report.snapshot.fabric.links)
    slow = msgspec.structs.replace(links[0], nvlinks=0, path="system")
    not_known = msgspec.structs.replace(links[1], nvlinks=0, path=None)
    fabric = msgspec.structs.replace(report.snapshot.fabric, links=(slow, not_known, *links[2:]))
    changed = msgspec.structs.replace(report, snapshot=msgspec.structs.replace(report.snapshot, fabric=fabric))
    found = texts(list(link_matrix(changed)))
    assert found.count("SYS") == found.count("?") == 2
    switched = msgspec.structs.replace(report, snapshot=msgspec.structs.replace(report.snapshot, fabric=None))
    assert texts(list(link_matrix(switched))).count("NV18") == 4 * 3


def test_figures_side_by_side_mark_the_gpu_that_is_behind() -> None:
    report = HOT()
    (card,) = heat_table(report)
    rows = {row.elements[0].text: [html(cell) for cell in row.elements[1:]] for row in card.all("tr")}
    assert rows["figure"] == ['<th scope="col">GPU 0</th>', '<th scope="col">GPU 1</th>']
    (slow, other) = rows["FP32 matrix product 8192^3"]
    assert "-52%" in slow
    assert 'class="chip warn"' in slow
    assert "%" not in other
    assert 'class="chip pass"' in other
    assert {"fail", "warn", "pass"} == set(re.findall(r'class="chip (\w+)"', html(card)))


def test_a_roofline_has_the_roofs_and_a_dot_for_each_precision() -> None:
    (card,) = roofline(HOT())
    shapes = ET.fromstring(html(card))
    places = [(float(dot.get("cx") or 0), float(dot.get("cy") or 0)) for dot in shapes.iter("circle")]
    assert len(places) == 3
    assert sum(shape.get("class") == "roof" for shape in shapes.iter("path")) == 1 + 3
    words = next(shapes.iter("title")).text or ""
    assert "fp32 matrix product 40% of" in words


@cases("name", "h200", "h200-older-cudnn")
def test_without_figures_nothing_is_drawn(name: str) -> None:
    report = report_on(name)
    assert heat_table(report) == roofline(report) == link_matrix(report) == []
    assert "<svg" not in render(report, "html", Options())


def luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=("light", "dark"))
def test_every_text_can_be_read_on_its_ground(scheme: int) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[scheme]))
    statuses = ("pass", "warn", "fail", "unknown", "note", "skipped")
    pairs = [(status, f"{status}-bg") for status in statuses]
    pairs += itertools.product((*statuses, "ink", "soft"), ("card",))
    pairs += [("ink", f"{status}-bg") for status in statuses]  # layers of the stack
    assert {f"{text} on {ground}" for text, ground in pairs if contrast(colours[text], colours[ground]) < 4.5} == set()
