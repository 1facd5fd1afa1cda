"""What was read is judged once while the driver is asked, and the report knows nothing of it."""

import sys
from collections.abc import Callable
from io import StringIO
from threading import Thread
from typing import Any

import pytest

from envcheck.model.checks import Report
from envcheck.model.events import OnEvent, ProbeFinished, ProbesPlanned, ProbeStarted
from envcheck.model.snapshot import Gpu, Kernel, Listing, ProbeRun, Snapshot
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.report.progress import progress
from tests.every import cases
from tests.known import known

FACTS = {
    "kernel": Snapshot(kernel=Kernel(source="made up", nouveau_loaded=False)),
    "nvml": Snapshot(),
    "pci": Snapshot(gpus=Listing(items=(Gpu(source="made up", pci_bus_id="0000:01:00.0"),))),
    "environments": Snapshot(),
}


@cases("order, rehearsed", (("kernel", "nvml"), 1), (("nvml", "kernel"), 0))
def test_it_is_judged_when_only_drivers_are_left(
    monkeypatch: pytest.MonkeyPatch, order: tuple[str, ...], rehearsed: int
) -> None:
    judged = watched(monkeypatch, order)
    shown: list[Report] = []
    report = session.check(Request(), show=shown.append)
    assert [early.snapshot for early in shown if early.snapshot != report.snapshot] == [FACTS["kernel"]] * rehearsed
    assert judged == [FACTS["kernel"]] * rehearsed + [Snapshot()]
    assert known(report.snapshot).kernel is None


@cases("order, cores, rehearsed", (("pci", "environments"), 16, 1), (("pci", "environments"), 2, 0),
    (("environments", "pci"), 16, 0), (("kernel", "environments"), 16, 0))  # fmt: skip
def test_with_cores_and_a_gpu_it_is_judged_before_its_environments(
    monkeypatch: pytest.MonkeyPatch, order: tuple[str, ...], cores: int, rehearsed: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: set(range(cores)))
    judged = watched(monkeypatch, order)
    session.check(Request())
    assert judged == [FACTS["pci"]] * rehearsed + [Snapshot()]


def test_a_user_who_may_start_no_more_threads_gets_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", start)
    monkeypatch.setenv("TERM", "xterm")
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    judged = watched(monkeypatch, ("kernel", "nvml"))
    interval = sys.getswitchinterval()
    with progress(terminal) as on_event:
        assert session.check(Request(), on_event).verdict == "unknown"
    assert judged == [Snapshot()]
    assert sys.getswitchinterval() == interval


def watched(monkeypatch: pytest.MonkeyPatch, order: tuple[str, ...]) -> list[Snapshot]:
    """What is judged from now on, where the probes end in this order."""
    judged: list[Snapshot] = []
    judge: Callable[..., Any] = session.judge

    def noted(snapshot: Snapshot, *others: Any, **named: Any) -> Any:
        judged.append(snapshot)
        return judge(snapshot, *others, **named)

    def gathered(_request: Request, on_event: OnEvent, _should_stop: Callable[[], bool]) -> Snapshot:
        on_event(ProbesPlanned(probes=tuple((name, name) for name in order)))
        for name in order:
            on_event(ProbeStarted(name, name))
            on_event(ProbeFinished(run=ProbeRun(name=name, status="ok"), facts=FACTS[name]))
        return Snapshot()

    monkeypatch.setattr(session, "judge", noted)
    monkeypatch.setattr(session, "gather_here", gathered)
    return judged
