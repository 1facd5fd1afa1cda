"""Sessions in the background: what they tell while they run, and the report so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from envcheck import session
from envcheck.checks import Report
from envcheck.events import Event, ProbeFinished, ProbesPlanned, ProbeStarted, Progress
from envcheck.merge import merge
from envcheck.session import Request
from envcheck.snapshot import Snapshot


@dataclass
class Work:
    """What is under way, for the line that says so."""

    planned: int = 0
    ended: int = 0
    running: dict[tuple[str, str | None, str | None], str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def take(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, ProbesPlanned):
            self.planned += len(event.probes)
        elif isinstance(event, ProbeStarted):
            self.running[event.name, event.framework, event.gpu] = ""
        elif isinstance(event, Progress):
            self.running[event.name, event.framework, event.gpu] = event.text
        elif isinstance(event, ProbeFinished):
            run = event.run
            self.ended += self.running.pop((run.name, run.framework, run.gpu), None) is not None

    def words(self) -> str:
        """``3 of 9 probes  1.2 s  nvml, cuda (GPU 2 of 8)``."""
        named = [
            f"{framework or name}{f' ({text})' if text else ''}" for (name, framework, _), text in self.running.items()
        ]
        counted = f"{self.ended} of {self.planned} probes" if self.planned else "starting"
        return f"{counted}  {time.monotonic() - self.started:.1f} s  {', '.join(named)}".rstrip()


class Live:
    """One session in threads of its own; ``changed`` is called from them, with the work and the report so far."""

    def __init__(self, request: Request, changed: Callable[[Work, Report | None, bool], None]) -> None:
        self._request = request
        self._changed = changed
        self._work = Work()
        self._parts: list[Snapshot] = []
        self._fresh = threading.Event()
        self._ended = threading.Event()

    def run(self) -> Report:
        """Examine and judge; meanwhile another thread judges what came in so far."""
        judge = threading.Thread(target=self._judge_on_the_way, daemon=True)
        judge.start()
        try:
            return session.check(self._request, self._hear)
        finally:
            self._ended.set()
            self._fresh.set()

    def _hear(self, event: Event) -> None:
        self._work.take(event)
        if isinstance(event, ProbeFinished):
            self._parts.append(event.facts)
            self._fresh.set()
        self._changed(self._work, None, False)

    def _judge_on_the_way(self) -> None:
        while True:
            self._fresh.wait()
            self._fresh.clear()
            if self._ended.is_set():
                return
            report = session.judge(merge(self._parts), self._request)
            if not self._ended.is_set():
                self._changed(self._work, report, False)
