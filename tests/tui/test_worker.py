"""Worker processes: what they send, how they end, what happens when one dies."""

import asyncio
import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from envcheck.errors import EnvcheckError, UsageError
from envcheck.model.checks import Report
from envcheck.model.events import Judged, OnEvent, ProbeFinished, ProbesPlanned
from envcheck.model.snapshot import ProbeRun, Snapshot
from envcheck.pipeline.request import Request
from envcheck.report import Options
from envcheck.tui.worker.examination import examine
from envcheck.tui.worker.process import Failed, InterimReport, Message, ShouldStop, WorkerProcess, decode, encode
from envcheck.tui.worker.sessions import Client, examine_in_worker
from tests.installed import INSTALLED
from tests.known import known
from tests.tui.showing import SHOWN


@pytest.fixture(autouse=True)
def compiled_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes are the same envcheck with the rows as a wheel brings them."""
    monkeypatch.setattr("envcheck.__file__", str(INSTALLED / "envcheck" / "__init__.py"))


def messages_of(request: Request) -> list[Message]:
    heard: list[Message] = []
    examine_in_worker(request, {}, heard.append, lambda: False)
    return heard


def test_an_examination_tells_the_events_of_the_command_line_and_ends_with_the_report() -> None:
    heard = messages_of(Request(probes=("platform",)))
    assert isinstance(heard[0], ProbesPlanned)
    (finished,) = (told for told in heard if isinstance(told, ProbeFinished))
    (judged,) = (told for told in heard if isinstance(told, Judged))
    assert known(judged.report.snapshot).platform == known(finished.facts.platform)


def test_the_end_is_judged_only_when_judging_on_the_way_is_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that decode the matrix for the first time at once end the process."""
    on_the_way, may_end = threading.Event(), threading.Event()
    order: list[str] = []

    def judge(*_arguments: Any, **_more: Any) -> Report:
        last = threading.current_thread() is threading.main_thread()
        order.append("last" if last else "on the way")
        if not last:
            on_the_way.set()
            may_end.wait(30)
            order.append("through")
        return SHOWN["h200"]()

    def gather(_request: Request, tell: OnEvent, _should_stop: ShouldStop) -> Snapshot:
        tell(ProbeFinished(ProbeRun(name="platform", status="ok"), Snapshot()))
        assert on_the_way.wait(30)
        threading.Timer(0.3, may_end.set).start()
        return Snapshot()

    monkeypatch.setattr("envcheck.pipeline.session.judge", judge)
    examine(Request(), {}, lambda _told: None, lambda: False, gather)
    assert order == ["on the way", "through", "last"]


def test_a_request_that_cannot_be_carried_out_is_told_by_the_process() -> None:
    first = messages_of(Request(only=("no-such-rule",)))[0]
    assert isinstance(first, Failed)
    assert "no-such-rule" in first.problem


def test_variables_that_are_no_text_cross_the_pipe() -> None:
    heard = messages_of(Request(probes=("platform",), variables={"ODD": os.fsdecode(b"\xff")}))
    assert any(isinstance(told, Judged) for told in heard)


def test_what_is_told_is_the_same_on_the_other_side() -> None:
    report = SHOWN["h200"]()
    for told in (InterimReport(report), Judged(report), Failed("why")):
        assert decode(encode(told)) == told


def test_a_process_whose_application_is_gone_ends_by_itself() -> None:
    worker = WorkerProcess("envcheck.tui.worker.questions")
    worker.link.close()
    assert worker.ended() == "exit status 0"


def test_a_module_that_breaks_is_told_by_how_it_ended() -> None:
    with closing(WorkerProcess("envcheck.no_such_module")) as worker:
        with pytest.raises(EOFError):
            worker.link.receive()
        assert worker.ended() == "exit status 1"


def test_questions_are_answered_and_a_process_that_died_is_replaced() -> None:
    client = Client()

    async def ask() -> None:
        stated = ("gpu==H100", "driver==580.65.06", "torch==2.6.0+cu126")
        assert (await client.ask("fits", stated, (), Options()))[0][0].text == "COMPATIBLE"
        assert "What it checks" in (await client.ask("rule_pages", ["driver-too-old"]))["driver-too-old"]
        with pytest.raises(UsageError, match="torch"):
            await client.ask("fits", ("torch",), (), Options())
        os.kill(known(client._worker)._process.pid, signal.SIGKILL)
        with pytest.raises(EnvcheckError, match="signal 9"):
            await client.ask("rule_pages", [])
        await client.ask("rule_pages", [])

    asyncio.run(ask())
    client.end()
    with pytest.raises(EnvcheckError, match="closing"):
        client.answer("rule_pages", (["gpu-lost"],))


def test_closing_ends_a_question_in_the_middle() -> None:
    client = Client()
    assert client.answer("rule_pages", (["gpu-lost"],))
    worker = client._worker
    assert worker is not None
    client.end()
    assert worker.ended() in ("signal 15", "exit status 0")
    assert not Path(f"/proc/{worker._process.pid}").exists()


def test_an_examination_ends_its_probes_when_the_application_hangs_up(tmp_path: Path) -> None:
    started = time.monotonic()
    heard: list[Message] = []
    examine_in_worker(Request(cwd=str(tmp_path)), {}, heard.append, lambda: bool(heard))
    assert "Judged" in [type(each).__name__ for each in heard]
    assert time.monotonic() - started < 60
