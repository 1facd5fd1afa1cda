"""What must stand on the screens, at any size and in any look; the whole pictures are in test_snapshots.py."""

from __future__ import annotations

import re
from typing import Any

import pytest
from textual.pilot import Pilot

from envcheck.text.clean import shell_line
from envcheck.tui.app import EnvcheckApp
from tests.tui.showing import LARGE, MACHINES, SHOWN, SMALL, at_rest, judged, recorded, show, take, words

BROKEN = sorted(path.stem for path in (MACHINES / "constructed").glob("*.json"))


@pytest.mark.parametrize("name", BROKEN)
def test_verdict_cause_and_fix_are_on_the_first_screen_without_a_key(name: str) -> None:
    report = judged(recorded(f"constructed/{name}"))
    seen: list[str] = []
    show(report, take()(seen))
    cause = report.check(report.primary_check)
    assert cause is not None
    assert "FAIL" in seen[0]
    assert cause.rule in seen[0] or cause.rule[:20] in seen[0]
    assert "fix" in seen[0] or not (cause.fixes or cause.action != "none")
    mends = [fix for fix in cause.fixes if fix.command]
    if mends:
        whole = re.sub(r"\s+", "", seen[0])
        assert any(re.sub(r"\s+", "", shell_line(fix.command)) in whole for fix in mends), seen[0]


@pytest.mark.parametrize("name", ["h200", "driver-too-old", "eight"])
def test_both_looks_say_the_same_words_in_other_colours(name: str) -> None:
    texts, pictures = [], []

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        for _ in range(2):
            texts.append(words(app))
            pictures.append(app.export_screenshot())
            await pilot.press("t")
            await at_rest(pilot, 0.5)

    show(SHOWN[name](), steps)
    assert texts[0] == texts[1]
    assert "#0d1117" in pictures[0]
    assert "#0d1117" not in pictures[1]


def test_no_colour_where_the_user_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    pictures: list[str] = []

    async def steps(app: EnvcheckApp, _pilot: Pilot[Any]) -> None:
        pictures.append(app.export_screenshot())

    show(SHOWN["driver-too-old"](), steps)
    drawn = re.sub(r"#ff5f57|#febc2e|#28c840|#c5c8c6|#292929", "", pictures[0])  # the frame around the picture
    colours = {colour.lower() for colour in re.findall(r"#[0-9a-fA-F]{6}\b", drawn)}
    assert colours
    assert all(colour[1:3] == colour[3:5] == colour[5:7] for colour in colours), colours


def test_ascii_alone_where_that_is_wanted() -> None:
    seen: list[str] = []
    keys = ("enter", "escape", "2", "3", "4", "question_mark", "escape", "g", "escape", "p", "escape", "e", "escape")
    show(SHOWN["h200"](), take(*keys, "ctrl+p", most=0.5)(seen), ascii_only=True, size=LARGE)
    for screen in seen:
        assert screen.isascii(), [character for character in screen if not character.isascii()]


@pytest.mark.parametrize("size", [(110, 40), (20, 5)])  # test_snapshots.py has 80 x 24 and 200 x 60
def test_every_size_can_be_shown(size: tuple[int, int]) -> None:
    seen: list[str] = []
    show(SHOWN["driver-too-old"](), take("2", "3", "4", "1")(seen), size=size)
    for screen in seen:
        lines = screen.splitlines()
        assert len(lines) == size[1]
        assert max(map(len, lines)) <= size[0]


def test_resizing_lays_out_anew() -> None:
    texts: list[str] = []
    fresh: dict[tuple[int, int], list[str]] = {SMALL: [], LARGE: []}

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        for size in (LARGE, SMALL, (200, 60), SMALL):
            await pilot.resize_terminal(*size)
            await at_rest(pilot, 0.5)
            texts.append(words(app))

    show(SHOWN["driver-too-old"](), steps)
    for size, seen in fresh.items():
        show(SHOWN["driver-too-old"](), take()(seen), size=size)
    assert texts[1] == texts[3] == fresh[SMALL][0]
    assert texts[0] == fresh[LARGE][0]
    assert len(texts[2].splitlines()) == 60


def test_a_finding_takes_one_row() -> None:
    report = judged(recorded("h200"))
    seen: list[str] = []
    show(report, take()(seen))
    shown = [line for line in seen[0].splitlines() if re.match(r" [✗!?i✓] (FAIL|WARN|open|note|ok) ", line)]
    assert len(shown) >= 8
