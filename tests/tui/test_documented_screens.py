"""The pictures in ``docs/screens`` show the application as it is: their words are those that it draws now.

``ENVCHECK_WRITE_SCREENS=1 pytest tests/tui/test_documented_screens.py`` draws them again.
"""

import html
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from envcheck.model.checks import Report
from envcheck.model.snapshot import Memory
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.screens.whatif import BuildTable
from envcheck.tui.widgets.choices import without_fonts
from tests.rules.machines import GIB, driver, geforce, kernel, machine
from tests.tui import test_snapshots
from tests.tui.showing import at_rest, judged, recorded, show, until, words

pytestmark = test_snapshots.pytestmark

SCREENS = Path(__file__).parents[2] / "docs" / "screens"
_CELL = 12.2  # Width of a character in the picture
_TEXT = re.compile(r'<text class="[^"]*-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')


def without_code() -> Report:
    """Constructed: a new GPU with a PyTorch that was built before it."""
    memory = Memory(total=32 * GIB, used=0, free=32 * GIB)
    gpu = geforce("NVIDIA GeForce RTX 5090", "12.0", "0x2b85", persistence_mode=True, memory=memory)
    return judged(machine(gpu, driver=driver("570.86.10"), kernel=kernel(1, "570.86.10")))


PICTURES: dict[str, tuple[Callable[[], Report], str, tuple[int, int]]] = {
    "overview": (without_code, "1", (120, 32)),
    "performance": (lambda: judged(recorded("h100-tried-and-measured")), "3", (120, 34)),
    "gpus": (test_snapshots.measured, "2", (120, 33)),
    "matrix": (without_code, "4", (130, 32)),
}


def text_of(picture: str) -> list[str]:
    """The rows of characters in an SVG of Rich's."""
    rows: dict[float, str] = {}
    for x, y, text in _TEXT.findall(picture):
        row = rows.get(float(y), "")
        rows[float(y)] = row.ljust(round(float(x) / _CELL)) + html.unescape(text).replace("\xa0", " ")
    return [row.rstrip() for _, row in sorted(rows.items()) if row.strip()]


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_shows_what_is_drawn_now(name: str) -> None:
    report, tab, size = PICTURES[name]
    drawn: list[str] = []

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press(tab)
        if tab == "4":
            await until(
                pilot, lambda: all(map(test_snapshots.is_whole, app.query(BuildTable))) and app.query(BuildTable), 60
            )
        await at_rest(pilot, 3)
        drawn.extend((words(app), without_fonts(app.export_screenshot())))

    show(report(), steps, size=size)
    place = SCREENS / f"{name}.svg"
    if os.environ.get("ENVCHECK_WRITE_SCREENS"):
        place.write_text(drawn[1], encoding="utf-8")
    shown = [row.rstrip() for row in drawn[0].splitlines() if row.strip()]
    assert text_of(place.read_text(encoding="utf-8")) == shown, "draw it again: see the head of this file"
