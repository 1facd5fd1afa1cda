"""Names that try to speak to the terminal or to the renderer show as text, on every screen."""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from envcheck.tui.app import EnvcheckApp
from tests.report import examples
from tests.rules.machines import but, h200, machine
from tests.tui.showing import LARGE, SMALL, judged, settled, show, take, words
from tests.tui.test_performance import copied

MARKUP = "[red]a[/red][@click=app.quit]b[/][/nothing]"
HOSTILE = f"{MARKUP}\x1b]0;owned\x07\x1b[2Jevil\u202egnp.exe"


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_nothing_foreign_reaches_the_terminal(size: tuple[int, int]) -> None:
    seen: list[str] = []

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        keys = (
            "enter",
            "escape",
            "c",
            "escape",
            "g",
            "enter",
            "escape",
            "p",
            "escape",
            "2",
            "3",
            "4",
            "right",
            "slash",
        )
        for key in keys:
            await pilot.press(key)
            await settled(pilot, 0.1)
            seen.append(words(app))

    show(examples.hostile(length=500), steps, size=size)
    for screen in seen:
        odd = {c for c in screen if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
        assert not odd, odd
        assert len(screen.splitlines()) == size[1]


def test_markup_in_names_shows_as_it_is() -> None:
    report = judged(machine())
    first = msgspec.structs.replace(report.checks[0], title=MARKUP, rule=MARKUP, status="fail", message=MARKUP)
    report = msgspec.structs.replace(report, checks=(first, *report.checks[1:]), host=MARKUP)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        assert words(app).count(MARKUP) >= 2  # the host, and the row of the finding
        await pilot.press("enter")
        await settled(pilot)
        assert MARKUP in words(app)
        app.tell(MARKUP)
        await settled(pilot, 0.2)

    show(report, steps, size=LARGE)


def test_long_and_right_to_left_names_take_one_row() -> None:
    report = judged(machine())
    odd = "\u05e9\u05dc\u05d5\u05dd" * 2_500
    first = msgspec.structs.replace(report.checks[0], title=odd, status="fail")
    report = msgspec.structs.replace(report, checks=(first, *report.checks[1:]))

    async def steps(app: EnvcheckApp, _pilot: Pilot[Any]) -> None:
        rows = [line for line in words(app).splitlines() if line.startswith(" ✗ FAIL ")]
        assert len(rows) == 1
        assert rows[0].endswith("…")

    show(report, steps)


@pytest.mark.parametrize("name", [HOSTILE, "x" * 10_000])
def test_a_hostile_gpu_and_folder_are_text_on_every_page(name: str) -> None:
    found = machine(h200(name=name))
    assert found.environments is not None
    folder = f"/srv/{name}/.venv"
    venvs = tuple(but(one, key=folder, prefix=folder) for one in found.environments.items)
    hostile = but(found, environments__items=venvs, measurements=(copied(h200(), 0.9, variant=name),))
    seen: list[str] = []
    keys = ["enter", "escape", "g", "enter", "escape", "p", "escape", "2", "3", "4"]
    show(judged(hostile), take(*keys, wait=0.2)(seen))
    for screen in seen:
        odd = {c for c in screen if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
        assert not odd, odd
        lines = screen.splitlines()
        assert len(lines) == SMALL[1]
        assert max(map(len, lines)) <= SMALL[0]
    if name == HOSTILE:
        shown = dict(zip(["", *keys], seen, strict=True))
        assert all("[red]a[/red]" in shown[key] for key in ("g", "2", "4"))
