"""Other processes as the screen sees them: sessions, one at a time, with progress, the report so far and an end; and
a worker that answers questions which would delay a key.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from envcheck.errors import EnvcheckError
from envcheck.model.checks import Report
from envcheck.report.progress import ProbeProgress

if TYPE_CHECKING:
    from envcheck.model.snapshot import ProbeRun, Snapshot
    from envcheck.pipeline.request import Request
    from envcheck.tui.worker.process import Gather, Message, Send, ShouldStop, WorkerProcess

RunKey: TypeAlias = tuple[str, str | None, str | None]  # Probe, framework, GPU
ProbeFacts: TypeAlias = Mapping[RunKey, "Snapshot"]  # What each probe found, kept from one session to the next
Examine: TypeAlias = "Callable[[Request, ProbeFacts, Send, ShouldStop], None]"
"""Sends the messages of an examination: ``examine_in_worker``, or in tests one in the same process."""

_POLL = 0.1  # Seconds after which a request to stop is noticed
_SECONDS_TO_END = 5.0  # How long closing waits for children to end


def run_key(run: ProbeRun) -> RunKey:
    """What distinguishes a run from the others of its session."""
    return run.name, run.framework, run.gpu


def kept_facts(facts: ProbeFacts, kinds: Iterable[str] | None) -> ProbeFacts:
    """The facts of probes of these kinds; None: of all probes."""
    if not facts or kinds is None:
        return facts
    from envcheck.collect.catalog import all_probes

    wanted = frozenset(kinds)
    names = {spec.name for spec in all_probes() if spec.kind in wanted}
    return {key: found for key, found in facts.items() if key[0] in names}


def probe_alone(request: Request, probe: str) -> Request:
    """A request for one probe, of whatever kind."""
    from envcheck.collect.catalog import all_probes
    from envcheck.collect.plan import BenchRequest

    kind = next((spec.kind for spec in all_probes() if spec.name == probe), "file")
    bench = BenchRequest() if kind == "bench" else None
    return replace(request, probes=(probe,), deep=kind == "deep", verify=kind == "verify", bench=bench)


def examine_in_worker(
    request: Request, kept: ProbeFacts, send: Send, should_stop: ShouldStop, gather: Gather | None = None
) -> None:
    """Examine in another process, so that no key waits for the interpreter's lock; ``gather`` is for benchmarks."""
    from envcheck.tui.worker.process import Failed, WorkerProcess, decode

    try:
        worker = WorkerProcess("envcheck.tui.worker.examination", request, kept, *([gather] if gather else []))
    except OSError as error:
        send(Failed(f"cannot start a process: {error}"))
        return
    with closing(worker):
        try:
            while True:
                if should_stop():
                    worker.link.hang_up()
                if worker.link.is_readable(_POLL):
                    send(decode(worker.link.receive()))
        except EOFError:
            send(Failed(f"the examination ended early ({worker.ended()})"))


class Session(threading.Thread):
    """One session; when the thread has ended, ``report`` or ``problem`` is final."""

    def __init__(
        self,
        request: Callable[[], Request],
        activity: str,
        *,
        examine: Examine = examine_in_worker,
        facts: ProbeFacts | None = None,
        keep: Iterable[str] | None = (),
    ) -> None:
        """``request`` is called in the thread. Earlier ``facts`` of these kinds (None: all) are not gathered again."""
        super().__init__(name="envcheck session", daemon=True)
        self.activity = activity
        self.progress = ProbeProgress()
        self.facts: dict[RunKey, Snapshot] = {}
        self.report: Report | None = None
        self.problem = ""
        self.measures = False
        self._request, self._examine, self._earlier, self._keep = request, examine, facts or {}, keep
        self._interim: Report | None = None
        self.stopping = threading.Event()  # Asks it to end; every child is ended first, within a second or so

    def take_interim(self) -> Report | None:
        """The report so far, if it is newer than at the last call."""
        report, self._interim = self._interim, None
        return report

    def run(self) -> None:
        try:
            self.facts.update(kept_facts(self._earlier, self._keep))
            request = self._request()
            self.measures = request.bench is not None
            self._examine(request, dict(self.facts), self._on_message, self.stopping.is_set)
        except Exception as error:  # noqa: BLE001 - a session that fails must not take the screen down
            self.problem = f"envcheck failed: {type(error).__name__}: {error}"

    def _on_message(self, message: Message) -> None:
        from envcheck.model.events import Judged, ProbeFinished
        from envcheck.tui.worker.process import Failed, InterimReport

        if isinstance(message, InterimReport):
            self._interim = message.report
        elif isinstance(message, Judged):
            self.report = message.report
        elif isinstance(message, Failed):
            self.problem = self.problem or ("" if self.report else message.problem)
        else:
            self.progress.add(message)
            if isinstance(message, ProbeFinished):
                self.facts[run_key(message.run)] = message.facts


class Sessions:
    """Starts one session at a time. ``request`` is what each examines; a session may ask for more."""

    def __init__(self, request: Request, examine: Examine) -> None:
        self.request = request
        self.current: Session | None = None
        self.facts: ProbeFacts = {}  # What the next session builds on
        self._examine = examine

    def begin(
        self, activity: str, change: Callable[[Request], Request] | None = None, keep: Iterable[str] | None = ()
    ) -> None:
        """Start a session, which calls ``change`` on the request and keeps the facts of these kinds (None: of all)."""
        request = self.request
        wanted = (lambda: change(request)) if change else (lambda: request)
        self.current = Session(wanted, activity, examine=self._examine, facts=self.facts, keep=keep)
        self.current.start()

    def take_ended(self) -> Session | None:
        """The session, if it has ended; it is then no longer the current one."""
        session = self.current
        if session is None or session.is_alive():
            return None
        self.current = None
        return session

    def stop(self) -> None:
        if self.current is not None:
            self.current.stopping.set()

    async def close(self) -> None:
        """Stop the current session, and wait until its children have ended while the screen stays alive."""
        self.stop()
        for _ in range(round(_SECONDS_TO_END / _POLL)):
            if self.current is None or not self.current.is_alive():
                return
            await asyncio.sleep(_POLL)

    def end(self) -> None:
        """The same without a screen."""
        self.stop()
        if self.current is not None:
            self.current.join(_SECONDS_TO_END)


Answer: TypeAlias = Callable[[str, tuple[Any, ...]], Any]  # Calls a function of ``questions.py`` by name, and waits


class Client:
    """Keeps one worker process, which starts with the first question. Another one replaces it when it dies."""

    def __init__(self, answer: Answer | None = None) -> None:
        """``answer`` replaces the process in tests."""
        self._answer = answer or self.answer
        self._worker: WorkerProcess | None = None
        self._ended = False
        self._thread = ThreadPoolExecutor(1, "envcheck client")

    async def ask(self, question: str, *arguments: Any) -> Any:
        """What a function of ``questions.py`` returns; raise EnvcheckError. Reports are passed as JSON."""
        from envcheck.text.encode import encode

        passed = tuple(encode(each).encode() if isinstance(each, Report) else each for each in arguments)
        result = await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, question, passed)
        if isinstance(result, EnvcheckError):
            raise result
        return result

    def answer(self, question: str, arguments: tuple[Any, ...]) -> Any:
        """What the worker process returns, which may be an EnvcheckError; raise one when it cannot be reached."""
        from envcheck.tui.worker.process import WorkerProcess

        if self._ended:
            raise EnvcheckError("envcheck is closing")
        try:
            self._worker = worker = self._worker or WorkerProcess("envcheck.tui.worker.questions")
            with suppress(BrokenPipeError):  # the process has ended: reading says so
                worker.link.send((question, arguments))
            return worker.link.receive()
        except OSError as error:
            raise EnvcheckError(f"cannot start a process: {error}") from None
        except EOFError:
            self._worker = None
            worker.link.close()
            raise EnvcheckError(f"the worker process ended early ({worker.ended()})") from None

    def end(self) -> None:
        """End the worker process, also in the middle of a question."""
        self._ended = True
        if self._worker is not None:
            self._worker.end()
