"""Keys wait for nothing that need not be done: what is drawn once, and what comes after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.pilot import Pilot
from textual.widgets import OptionList

from envcheck.tui.app import EnvcheckApp
from tests.tui.showing import LARGE, SHOWN, Replay, recorded, settled, show, until, words


def counted(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[object]:
    """Grows with each call."""
    calls: list[object] = []
    real: Callable[..., Any] = getattr(kind, name)

    def noted(self: object, *arguments: Any, **named: Any) -> Any:
        calls.append(self)
        return real(self, *arguments, **named)

    monkeypatch.setattr(kind, name, noted)
    return calls


def test_the_list_keeps_its_rows_when_it_comes_to_the_front_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press("2", "1")
        await settled(pilot, 0.3)
        laid_out = counted(monkeypatch, OptionList, "_clear_caches")
        await pilot.press("2", "1")
        await until(pilot, lambda: "findings" in words(app))
        await settled(pilot, 0.3)
        assert not laid_out
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: laid_out)

    show(SHOWN["h200"](), steps, size=LARGE)


def test_another_place_is_drawn_at_most_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of both places once, and once more what is told of its size or of the focus afterwards."""

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press("2", "1")
        await settled(pilot, 0.5)
        drawn = counted(monkeypatch, Compositor, "render_update")
        await pilot.press("2")
        await settled(pilot, 0.5)
        assert app.focused is not None
        assert app.focused.id == "speed-page"
        assert 1 <= len(drawn) <= 2

    show(SHOWN["h200"](), steps, size=LARGE)


def test_a_place_is_told_its_size_when_it_is_built() -> None:
    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press("3")
        await until(pilot, lambda: app.query("#whatif-answer.-below"))

    show(SHOWN["h200"](), steps)


def test_news_waits_for_the_answer_to_a_key_and_not_for_ever() -> None:
    app = EnvcheckApp.__new__(EnvcheckApp)  # nothing of it runs
    app._screen_stacks, app._current_mode = {"one": [object()]}, "one"  # type: ignore[list-item]
    app._last_key = float("inf")
    due = []
    for ticks in range(1, 7):
        app._ticks = ticks
        due.append(app._is_time_to_redraw())
    assert due == [False, False, False, False, True, True]
    app._last_key, app._ticks = float("-inf"), 2
    assert app._is_time_to_redraw()
    app._screen_stacks["one"].append(object())  # type: ignore[arg-type]
    assert not app._is_time_to_redraw()


def test_nothing_is_laid_out_in_a_place_that_lies_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Replay(recorded("h200"), hold=True)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: "checking" in words(app))
        await pilot.press("2")
        await settled(pilot, 0.5)
        shown = counted(monkeypatch, type(app.tabs.overview), "show_progress")
        await settled(pilot, 0.8)
        assert not shown
        await pilot.press("1")
        await until(pilot, lambda: shown)
        machine.go_on.set()
        await until(pilot, lambda: "PASS" in words(app))

    show(None, steps, gather=machine)
