"""The place Fleet: its nodes, the search, the summary, and the report of a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from envcheck.fleet import saved
from envcheck.fleet.record import Fleet
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.screens.fleet import FleetPage, read_fleet
from tests.fleet.made import healthy
from tests.fleet.test_fleet import fleet_of, write
from tests.tui.showing import LARGE, SMALL, show, until, words


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    made = healthy(5)
    made[3]["snapshot"]["driver"]["release"] = "570.1"
    write(tmp_path, made)
    (tmp_path / "broken.json").write_text("{")
    return fleet_of(tmp_path)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_the_nodes_stand_in_order_with_the_worst_first(fleet: Fleet, size: tuple[int, int]) -> None:
    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await until(pilot, lambda: "node00003" in words(app))
        seen = words(app)
        assert seen.index("broken") < seen.index("node00003") < seen.index("node00000")
        assert "1 difference" in seen
        assert "1 node did not answer" in seen

    show(None, steps, size=size, fleet=fleet)


def test_search_summary_and_the_report_of_a_node(fleet: Fleet) -> None:
    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await pilot.press("s")
        await until(pilot, lambda: "570.1, not 580.159.04" in words(app))
        await pilot.press("escape", "slash", *"node00003")
        await until(pilot, lambda: "node00000" not in words(app))
        await pilot.press("enter", "enter")
        await until(pilot, lambda: app.report is not None and app.report.host == "node00003")
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, FleetPage))

    show(None, steps, size=LARGE, fleet=fleet)


def test_reports_are_found_beside_a_fleet_report_that_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, moved = tmp_path / "first", tmp_path / "moved"
    (first / "reports").mkdir(parents=True)
    write(first / "reports", healthy(4))
    monkeypatch.chdir(first)
    (first / "fleet.jsonl").write_text("".join(saved.write(fleet_of(Path("reports")))))
    monkeypatch.chdir(tmp_path)
    first.rename(moved)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await pilot.press("enter")
        await until(pilot, lambda: app.report is not None and app.report.host == "node00000")

    show(None, steps, size=LARGE, fleet=read_fleet(str(moved / "fleet.jsonl")))


def test_a_node_without_a_report_says_why(fleet: Fleet) -> None:
    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert isinstance(app.screen, FleetPage)
        assert app.report is None

    show(None, steps, size=LARGE, fleet=fleet)


def test_hostile_names_and_ascii(tmp_path: Path) -> None:
    made = healthy(4)
    made[0]["host"] = "\x1b[31mred [bold]x[/bold] \u202egpj"
    made[0]["headline"] = "[link=x]y"
    for number, report in enumerate(made):
        (tmp_path / f"{number}.json").write_text(json.dumps(report))

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await until(pilot, lambda: "red [bold]x[/bold]" in words(app))
        assert "\x1b" not in words(app)
        assert words(app).isascii()

    show(None, steps, size=LARGE, ascii_only=True, fleet=fleet_of(tmp_path))
