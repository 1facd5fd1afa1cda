"""Sessions while they run, what is drawn once, and what comes after them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.pilot import Pilot
from textual.widgets import OptionList, Tree

from envcheck.collect.plan import BenchRequest
from envcheck.errors import UsageError
from envcheck.model.events import OnEvent, ProbeFinished
from envcheck.model.snapshot import Measurement, ProbeRun, Snapshot
from envcheck.pipeline.request import Request
from envcheck.report.progress import ProbeProgress
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.worker.examination import examine
from envcheck.tui.worker.sessions import Session, kept_facts
from tests.known import known
from tests.tui.showing import LARGE, Replay, on, recorded, settled, show, shows, until, words

H200 = recorded("h200")


@on(hold=True)
async def test_the_screen_fills_while_probes_run(app: EnvcheckApp, pilot: Pilot[Any], machine: Replay) -> None:
    await shows(pilot, "Driver")
    on_the_way = words(app)
    assert "Examining this machine" in on_the_way
    assert "1 of 2 probes" in on_the_way
    assert "nvml" in on_the_way
    assert "GPU 1 of 1" in on_the_way
    assert "checking" in on_the_way
    assert "PASS" not in on_the_way
    machine.go_on.set()
    await shows(pilot, "PASS")
    assert "checking" not in words(app)
    assert "H200" in words(app)


@on(hold=True)
async def test_keys_work_while_probes_run(app: EnvcheckApp, pilot: Pilot[Any], machine: Replay) -> None:
    await until(pilot, lambda: machine.requests)
    for key, expected in (
        ("5", "search: a name"),
        ("4", "gpu"),
        ("3", "figures"),
        ("2", "GPUs"),
        ("question_mark", "esc closes"),
    ):
        await shows(pilot, expected, key)
        assert app.report is None
    await pilot.press("escape", "1")
    machine.go_on.set()
    await shows(pilot, "PASS")


@on(hold=True)
async def test_one_session_at_a_time(app: EnvcheckApp, pilot: Pilot[Any], machine: Replay) -> None:
    await until(pilot, lambda: machine.requests)
    await pilot.press("d")
    await settled(pilot)
    assert "(x cancels)" in words(app)
    assert len(machine.requests) == 1
    machine.go_on.set()


@on(hold=True)
async def test_x_cancels_and_what_came_in_is_shown_where_there_was_nothing(
    app: EnvcheckApp, pilot: Pilot[Any], machine: Replay
) -> None:
    await until(pilot, lambda: machine.requests)
    await shows(pilot, "Cancelled", "x")
    assert machine.was_stopped
    assert known(app.report).verdict != "pass"


@on(hold=True)
async def test_q_stops_the_session_before_it_leaves(app: EnvcheckApp, pilot: Pilot[Any], machine: Replay) -> None:
    await until(pilot, lambda: machine.requests)
    await pilot.press("q")
    await until(pilot, lambda: machine.was_stopped)
    assert machine.was_stopped


@on(size=LARGE)
async def test_deep_and_bench_run_only_when_asked_for_and_keep_what_the_other_told(
    app: EnvcheckApp, pilot: Pilot[Any], machine: Replay
) -> None:
    await until(pilot, lambda: app.report)
    for key, runs in (("d", 2), ("b", 3), ("r", 4)):
        await until(pilot, lambda: app.sessions.current is None)
        await pilot.press(key)
        await until(pilot, lambda runs=runs: len(machine.requests) == runs)  # type: ignore[misc]
    await until(pilot, lambda: app.sessions.current is None)
    first, deep, bench, again = machine.requests
    assert (first.deep, first.bench) == (again.deep, again.bench) == (False, None)
    assert deep.deep
    assert deep.bench is None
    assert bench.bench == BenchRequest()
    assert not bench.deep


@on()
async def test_r_on_a_probe_in_the_facts_runs_that_probe_alone(
    app: EnvcheckApp, pilot: Pilot[Any], machine: Replay
) -> None:
    await until(pilot, lambda: app.report)
    await pilot.press("5")
    await until(pilot, lambda: app.query("#facts-tree"))
    tree = app.query_one("#facts-tree", Tree)
    probes = tree.root.children[-1]
    probes.expand()
    await settled(pilot)
    tree.move_cursor(probes.children[0])
    await settled(pilot)
    name = known(app.tabs.facts).probe
    assert name
    await pilot.press("r")
    await until(pilot, lambda: len(machine.requests) == 2)
    await until(pilot, lambda: app.sessions.current is None)
    assert machine.requests[1].probes == (name,)


def test_a_request_that_cannot_be_carried_out_is_told() -> None:
    def refuse(_request: Request, _on_event: OnEvent, _stop: object) -> Snapshot:
        raise UsageError("there is no [red]such thing\x1b[0m")

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await shows(pilot, "there is no [red]such thing\\x1b[0m")

    show(None, steps, gather=refuse, size=LARGE)


def test_a_session_that_breaks_leaves_the_screen_and_what_was_wrong_until_another_one_ends() -> None:
    machine, broken = Replay(H200), [True]

    def breaks(request: Request, on_event: OnEvent, stop: Callable[[], bool]) -> Snapshot:
        if broken.pop():
            raise ZeroDivisionError("by nothing")
        return machine(request, on_event, stop)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await shows(pilot, "NO VERDICT")
        told = "envcheck failed: ZeroDivisionError: by nothing"
        await until(pilot, lambda: words(app).count(told) == 2)  # for a while it is a toast too, mounted a moment later
        assert "press r to try again" in words(app)
        assert "Examining" not in words(app)
        assert "by nothing" in app.problem
        broken.append(False)
        await shows(pilot, "PASS", "r")
        assert "NO VERDICT" not in words(app)
        assert not app.problem

    show(None, steps, gather=breaks, size=LARGE)


def finished(session: Session) -> Session:
    session.start()
    session.join(10)
    return session


def test_figures_of_an_earlier_session_are_kept_and_their_rows_too() -> None:
    measured = Snapshot(
        measurements=(Measurement(name="gemm", value=1.0, unit="FLOP/s"),),
        runs=(ProbeRun(name="bench.gemm", status="ok"),),
    )

    def bench(_request: Request, on_event: OnEvent, _stop: object) -> Snapshot:
        on_event(ProbeFinished(measured.runs[0], measured))
        return measured

    def plain(_request: Request, _on_event: OnEvent, _stop: object) -> Snapshot:
        return Snapshot(runs=(ProbeRun(name="bench.gemm", status="skipped"),))

    first = finished(Session(Request, "Measuring", examine=partial(examine, gather=bench)))
    later = finished(
        Session(Request, "Trying", examine=partial(examine, gather=plain), facts=first.facts, keep=("bench",))
    )
    assert later.report is not None
    assert [found.name for found in later.report.measurements] == ["gemm"]
    assert [run.status for run in later.report.probes if run.name == "bench.gemm"] == ["ok"]
    assert not kept_facts(first.facts, ("deep",))


def test_work_counts_what_ended_and_what_runs() -> None:
    now = [0.0]
    progress = ProbeProgress(clock=lambda: now[0])
    machine = Replay(H200, hold=True)
    assert progress.summary() == "starting  0.0 s"
    now[0] = 1.26
    machine(Request(), progress.add, lambda: True)
    assert progress.summary() == "1 of 2 probes  1.3 s  nvml (GPU 1 of 1)"
    now[0] = 3.26
    assert round(progress.running[0].seconds, 6) == 2.0


class Grows(Replay):
    """Tells of the driver only when it is let go on: the most pressing finding comes last."""

    def __call__(self, request: Request, on_event: OnEvent, should_stop: Callable[[], bool]) -> Snapshot:
        known = self.snapshot
        early = Snapshot(platform=known.platform, gpus=known.gpus, environments=known.environments)
        on_event(ProbeFinished(ProbeRun(name="kernel", status="ok"), early))
        self.go_on.wait(20)
        return self.snapshot


def cursor_before_and_after(*keys: str) -> tuple[list[tuple[int | None, str]], str | None]:
    """Where the cursor is once ``keys`` were pressed on the way, and at the end; and the most pressing finding."""
    machine = Grows(recorded("constructed/driver-too-old"), hold=True)
    places: list[tuple[int | None, str]] = []

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        listing = app.query_one("#findings", OptionList)

        def keep() -> None:
            selected = app.tabs.overview.selected
            places.append((listing.highlighted, selected.id if selected else "passed checks"))

        await until(pilot, lambda: listing.option_count)
        await pilot.press(*keys)
        await settled(pilot)
        keep()
        machine.go_on.set()
        await until(pilot, lambda: app.report)
        await settled(pilot, 0.2)
        keep()

    report = show(None, steps, gather=machine, size=LARGE).report
    return places, known(report).primary_check


def test_the_cursor_rests_on_the_most_pressing_finding() -> None:
    (before, after), primary = cursor_before_and_after()
    assert before == (0, "passed checks")
    assert after == (0, primary)


def test_the_cursor_stays_on_the_finding_that_the_user_went_to() -> None:
    (before, after), primary = cursor_before_and_after("enter", "j", "j")
    assert before[0] == 2
    assert after[1] == before[1] != primary


# --- Keys wait for nothing that need not be done: what is drawn once, and what comes after them ---------------------
def counted(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[object]:
    """Grows with each call."""
    calls: list[object] = []
    real: Callable[..., Any] = getattr(kind, name)

    def noted(self: object, *arguments: Any, **named: Any) -> Any:
        calls.append(self)
        return real(self, *arguments, **named)

    monkeypatch.setattr(kind, name, noted)
    return calls


@on("h200", size=LARGE)
async def test_the_list_keeps_its_rows_when_it_comes_to_the_front_again(
    app: EnvcheckApp, pilot: Pilot[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await pilot.press("2", "1")
    await settled(pilot, 0.3)
    laid_out = counted(monkeypatch, OptionList, "_clear_caches")
    await shows(pilot, "findings", "2", "1")
    await settled(pilot, 0.3)
    assert not laid_out
    await pilot.resize_terminal(100, 30)
    await until(pilot, lambda: laid_out)


@on("h200", size=LARGE)
async def test_another_place_is_drawn_at_most_twice(
    app: EnvcheckApp, pilot: Pilot[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of both places once, and once more what is told of its size or of the focus afterwards."""
    await pilot.press("2", "1")
    await settled(pilot, 0.5)
    drawn = counted(monkeypatch, Compositor, "render_update")
    await pilot.press("2")
    await settled(pilot, 0.5)
    assert known(app.focused).id == "gpus-table"
    assert 1 <= len(drawn) <= 2


@on("h200")
async def test_a_place_is_told_its_size_when_it_is_built(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("4")
    await until(pilot, lambda: app.query("#whatif-answer.-below"))


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
        await shows(pilot, "checking")
        await pilot.press("2")
        await settled(pilot, 0.5)
        shown = counted(monkeypatch, type(app.tabs.overview), "show_progress")
        await settled(pilot, 0.8)
        assert not shown
        await pilot.press("1")
        await until(pilot, lambda: shown)
        machine.go_on.set()
        await shows(pilot, "PASS")

    show(None, steps, gather=machine)
