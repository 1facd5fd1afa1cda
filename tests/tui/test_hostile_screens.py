"""Names that try to speak to the terminal or to the renderer show as text, on every screen."""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec
from textual.pilot import Pilot

from envcheck.tui.app import EnvcheckApp
from tests.report import examples
from tests.rules.machines import but, h200, machine
from tests.tui.showing import LARGE, SMALL, judged, settled, show, take, words
from tests.tui.test_performance import copied

MARKUP = "[red]a[/red][@click=app.quit]b[/][/nothing]"
HOSTILE = f"{MARKUP}\x1b]0;owned\x07\x1b[2Jevil\u202egnp.exe"


def test_nothing_foreign_reaches_the_terminal() -> None:
    opened = ["enter", "escape", "c", "escape", "g", "enter", "escape", "p", "escape"]
    keys = [*opened, "2", "3", "4", "right", "slash", "escape"]
    seen: dict[tuple[int, int], list[str]] = {LARGE: [], SMALL: []}

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await take(*keys, most=0.4)(seen[LARGE])(app, pilot)
        await pilot.resize_terminal(*SMALL)
        await take("1", "enter", "escape", "2", "3", "4", most=0.4)(seen[SMALL])(app, pilot)

    show(examples.hostile(length=500), steps, size=LARGE)
    for size, screens in seen.items():
        for screen in screens:
            assert not odd(screen), odd(screen)
            assert len(screen.splitlines()) == size[1]


def odd(screen: str) -> set[str]:
    """The characters that a terminal obeys or hides."""
    return {c for c in screen if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


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
    first = msgspec.structs.replace(report.checks[0], title=("\u05e9\u05dc\u05d5\u05dd" * 2_500), status="fail")
    report = msgspec.structs.replace(report, checks=(first, *report.checks[1:]))

    async def steps(app: EnvcheckApp, _pilot: Pilot[Any]) -> None:
        rows = [line for line in words(app).splitlines() if line.startswith(" ✗ FAIL ")]
        assert len(rows) == 1
        assert rows[0].endswith("…")

    show(report, steps)


def test_a_hostile_gpu_and_folder_are_text_on_every_page() -> None:
    names = (HOSTILE, "x" * 10_000)
    gpus = [h200(number, name=name) for number, name in enumerate(names)]
    found = machine(*gpus)
    assert found.environments is not None
    (environment,) = found.environments.items
    venvs = tuple(but(environment, key=f"/srv/{name}/.venv", prefix=f"/srv/{name}/.venv") for name in names)
    figures = tuple(copied(gpu, 0.9, variant=gpu.name) for gpu in gpus)
    hostile = but(found, environments__items=venvs, measurements=figures)
    seen: list[str] = []
    keys = ["enter", "escape", "g", "enter", "escape", "g", "j", "enter", "escape", "p", "j", "escape", "2", "3", "4"]
    show(judged(hostile), take(*keys, most=0.4)(seen))
    for screen in seen:
        assert not odd(screen), odd(screen)
        lines = screen.splitlines()
        assert len(lines) == SMALL[1]
        assert max(map(len, lines)) <= SMALL[0]
    shown = dict(zip(["", *keys], seen, strict=True))
    for key in ("g", "2", "4"):
        assert "[red]a[/red]" in shown[key], key
    assert "xxxxxxxxxx" in shown["g"]
