"""A session in its own process: run the probes, judge on the way and at the end, and send all of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import msgspec

from envcheck.errors import EnvcheckError
from envcheck.model.events import Event, Judged, ProbeFinished
from envcheck.model.merge import merge
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.pipeline.timing import Timing
from envcheck.redact import mask_secrets
from envcheck.tui.worker.process import Failed, Gather, InterimReport, Message, Send, ShouldStop, WorkerLink, encode
from envcheck.tui.worker.sessions import ProbeFacts, run_key

_BETWEEN_JUDGEMENTS = 0.4  # Seconds, so that facts which arrive close together are judged together


def examine(
    request: Request, kept: ProbeFacts, send: Send, should_stop: ShouldStop, gather: Gather = session.gather_here
) -> None:
    """Examine this machine except for what is ``kept`` of an earlier session; the last message is Judged or Failed."""
    timing = Timing()
    try:
        interim = _InterimJudge(request, kept, send)
        try:
            gathered = gather(request, interim.on_event, should_stop)
        finally:
            interim.end()
        session.judge(_merged([gathered, *kept.values()], kept), request, send, timing=timing)
    except EnvcheckError as error:
        send(Failed(str(error)))
    except Exception as error:  # noqa: BLE001 - a session that fails must not take the screen down
        send(Failed(f"envcheck failed: {type(error).__name__}: {error}"))


def serve(link: WorkerLink, request: Request, kept: ProbeFacts, gather: Gather = session.gather_here) -> None:
    """Examine for the application at the other end, until it hangs up."""
    hung_up = threading.Event()

    def watch() -> None:
        try:
            link.receive()
        except EOFError:
            hung_up.set()

    def send(message: Message) -> None:
        # Mask secrets: bystanders see the screen, and so do readers of a picture of it.
        if isinstance(message, Judged | InterimReport):
            message = type(message)(mask_secrets(message.report))
        link.send(encode(message))

    threading.Thread(target=watch, daemon=True).start()
    examine(request, kept, send, hung_up.is_set, gather)


class _InterimJudge:
    """Judges in a thread, now and then, what the probes have found so far."""

    def __init__(self, request: Request, kept: ProbeFacts, send: Send) -> None:
        self._request, self._send = request, send
        self._facts = dict(kept)
        self._changed, self._ended = threading.Event(), threading.Event()
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="envcheck judge", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Send no more, and join the thread: a second thread must not meet half-initialized modules or decoders."""
        with self._sending:
            self._ended.set()
        self._changed.set()
        self._thread.join()

    def on_event(self, event: Event) -> None:
        self._send(event)
        if isinstance(event, ProbeFinished):
            self._facts = {**self._facts, run_key(event.run): event.facts}
            self._changed.set()

    def _run(self) -> None:
        while not self._ended.wait(_BETWEEN_JUDGEMENTS):
            self._changed.wait()
            self._changed.clear()
            if self._ended.is_set() or not self._facts:
                continue
            try:
                report = session.judge(_merged(self._facts.values(), {}), self._request)
            except Exception:  # noqa: BLE001, S112 - the last judgement meets the same error and reports it
                continue
            with self._sending:
                if not self._ended.is_set():
                    self._send(InterimReport(report))


def _merged(parts: Iterable[Snapshot], kept: ProbeFacts) -> Snapshot:
    """All parts as one, without "skipped" rows of probes whose earlier facts are ``kept``."""
    whole = merge(list(parts))
    names = {name for name, _, _ in kept}
    runs = tuple(run for run in whole.runs if not (run.status == "skipped" and run.name in names))
    return msgspec.structs.replace(whole, runs=runs)
