"""What a session does, in a process of its own: gather, judge on the way and at the end, and tell all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from envcheck.errors import EnvcheckError
from envcheck.events import Event, Judged, OnEvent, ProbeFinished
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.redact import mask_secrets
from envcheck.snapshot import Snapshot
from envcheck.snapshot.merge import merge
from envcheck.tui.worker.messages import Broken, SoFar, Told, encode
from envcheck.tui.worker.parts import Parts, key_of
from envcheck.tui.worker.process import Link

Tell: TypeAlias = Callable[[Told], None]
ShouldStop: TypeAlias = Callable[[], bool]
Gather: TypeAlias = Callable[[Request, OnEvent, ShouldStop], Snapshot]
"""``session.gather_here``, or in tests something that replays a machine."""

_BETWEEN_JUDGEMENTS = 0.4
"""Seconds: what comes in close together is judged together."""


def examine(
    request: Request, kept: Parts, tell: Tell, should_stop: ShouldStop, gather: Gather = session.gather_here
) -> None:
    """Examine this machine; the last that is told is Judged or Broken.

    ``kept``: facts of an earlier session that this one does not gather anew.
    """
    started = time.monotonic()
    try:
        on_the_way = _OnTheWay(request, kept, tell)
        try:
            gathered = gather(request, on_the_way.hear, should_stop)
        finally:
            on_the_way.end()
        snapshot = _joined([gathered, *kept.values()], kept)
        session.judge(snapshot, request, tell, started=started)
    except EnvcheckError as error:
        tell(Broken(str(error)))
    except Exception as error:  # noqa: BLE001 - a session that broke must not take the screen along
        tell(Broken(f"envcheck broke: {type(error).__name__}: {error}"))


def serve(link: Link, request: Request, kept: Parts, gather: Gather = session.gather_here) -> None:
    """Examine for the application at the other end, until it hangs up."""
    hung_up = threading.Event()
    threading.Thread(target=_watch, args=(link, hung_up), daemon=True).start()
    examine(request, kept, lambda told: link.send(encode(_masked(told))), hung_up.is_set, gather)


def _masked(told: Told) -> Told:
    """The screen is seen by whoever looks over a shoulder, or at a picture of it."""
    if isinstance(told, Judged):
        return Judged(mask_secrets(told.report))
    return SoFar(mask_secrets(told.report)) if isinstance(told, SoFar) else told


def _watch(link: Link, hung_up: threading.Event) -> None:
    try:
        link.receive()
    except EOFError:
        hung_up.set()


class _OnTheWay:
    """Judges what came in so far, now and then, until its end."""

    def __init__(self, request: Request, kept: Parts, tell: Tell) -> None:
        self._request, self._tell = request, tell
        self._parts = dict(kept)
        self._fresh, self._over = threading.Event(), threading.Event()
        self._telling = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="envcheck judge", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Tell nothing any more, and be through with judging: what that imports and makes is not for two at once."""
        with self._telling:
            self._over.set()
        self._fresh.set()
        self._thread.join()

    def hear(self, event: Event) -> None:
        """Pass an event on."""
        self._tell(event)
        if isinstance(event, ProbeFinished):
            self._parts = {**self._parts, key_of(event.run): event.facts}
            self._fresh.set()

    def _run(self) -> None:
        while not self._over.wait(_BETWEEN_JUDGEMENTS):
            self._fresh.wait()
            self._fresh.clear()
            if self._over.is_set() or not self._parts:
                continue
            try:
                report = session.judge(_joined(list(self._parts.values()), {}), self._request)
            except Exception:  # noqa: BLE001, S112 - what is wrong shows at the end, where it is told
                continue
            with self._telling:
                if not self._over.is_set():
                    self._tell(SoFar(report))


def _joined(parts: Sequence[Snapshot], kept: Parts) -> Snapshot:
    """All parts as one; a row that says that a probe was not asked for gives way to what it told before."""
    whole = merge(parts)
    told_before = {name for name, _, _ in kept}
    runs = tuple(run for run in whole.runs if not (run.status == "skipped" and run.name in told_before))
    return msgspec.structs.replace(whole, runs=runs)
