"""One child and the probes that it runs one after the other."""

from __future__ import annotations

import math
import selectors
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envcheck.collect import cleanup, deaths, visible
from envcheck.collect.attempt import PROGRESS_LIMIT, Attempt, Verdict
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.child import Child
from envcheck.collect.protocol import TOTAL_LIMIT, Done, Message, WrongMessageError, decode, decode_fact
from envcheck.events import OnEvent, ProbeStarted, Progress
from envcheck.snapshot import ProbeRun, Snapshot

EXIT_GRACE = 2.0
"""Seconds that a child may take to exit after its last probe was done."""
ALARM_GRACE = 30.0
"""Seconds after its last deadline at which a child ends itself, should nobody be left to end it."""


@dataclass(frozen=True)
class Setting:
    """What all jobs of a run have in common."""

    interpreter: str
    folder: str
    request: Mapping[str, Any]
    path: Sequence[str]
    selector: selectors.BaseSelector
    older: frozenset[int]
    """Processes that were there before the first child."""
    allowed: Callable[[ProbeSpec], float]
    """Seconds that a probe is given."""
    on_event: OnEvent
    finished: Callable[[ProbeSpec, ProbeRun, Sequence[Snapshot]], None]
    """Called once for every probe that a job began."""


class Job:
    """A child under way and the probes that it was started for."""

    def __init__(self, specs: Sequence[ProbeSpec], setting: Setting) -> None:
        """Start the child; raise OSError when that cannot be done."""
        self._setting = setting
        self._known = frozenset(spec.name for spec in specs)
        self._waiting = deque(specs)
        self._current: Attempt | None = None
        self._exit_by = math.inf
        self._closing = False
        seconds = sum(map(setting.allowed, specs))
        order = {
            "request": setting.request,
            "folder": setting.folder,
            "probes": [spec.name for spec in specs],
            "path": setting.path,
            "alarm": math.ceil(seconds + ALARM_GRACE),
        }
        self._child = Child(setting.interpreter, order, setting.selector, self._receive)
        self.pid = self._child.pid

    def begin(self) -> None:
        """Count the first probe as begun: until the child says otherwise, what happens to it happens to that probe."""
        self._begin(self._waiting[0].name)

    @property
    def has_ended(self) -> bool:
        return self._child.has_ended

    @property
    def end_by(self) -> float:
        """When to look again for a reason to end it."""
        return self._current.end_by if self._current else self._exit_by

    def reason_to_end(self, now: float) -> Verdict | None:
        """Why the child must not go on, if so."""
        if self._child.sent_too_much:
            return "failed", f"it sent more than {TOTAL_LIMIT >> 20} MiB"
        if now < self.end_by:
            return None
        allowed = self._current.allowed if self._current else EXIT_GRACE
        return "timed-out", f"timed out after {allowed:g} s"

    def close(self, verdict: Verdict | None, *, killed: bool = True) -> tuple[ProbeSpec, ...]:
        """Settle what is left after the child ended, or was ended for the reason ``verdict``.

        ``killed`` is False for a child that could not be killed. Returns the probes that the child did not come to.
        """
        self._closing = verdict is not None
        remark = self._kill_leftovers(thorough=self._current is not None)
        if killed:
            returncode = self._child.finish()
            verdict = verdict or deaths.describe(returncode)
        else:
            self._child.abandon()
            remark = f"its process {self.pid} cannot be killed and was abandoned"
        if self._current and verdict:
            self._settle(self._current.was_cut_off(verdict, self._child.noise.of_running(), remark))
        return tuple(self._waiting)

    def drop(self) -> None:
        """Let go of a child that was ended, and of what it left."""
        self._closing = True
        cleanup.kill_marked(self._child.token, spare=(self.pid,))
        if self._child.has_ended:
            self._child.reap()
        else:
            self._child.abandon()

    def _receive(self, lines: list[bytes | None]) -> None:
        for line in lines:
            try:
                self._take(decode(line))
            except WrongMessageError as error:
                if self._current:
                    self._current.problems.append(str(error))

    def _take(self, message: Message) -> None:
        if message.probe not in self._known:
            raise WrongMessageError("a message in the name of another probe")
        if message.begin:
            self._begin(message.probe)
        attempt = self._current
        if attempt is None or attempt.spec.name != message.probe:
            return  # of a probe that is settled: a thread or a fork of it goes on talking
        if message.seconds is not None:
            attempt.seconds = message.seconds
        if message.progress is not None:
            attempt.progress = visible.one_line(message.progress, PROGRESS_LIMIT)
            self._setting.on_event(Progress(name=message.probe, text=attempt.progress))
        if message.fact:
            attempt.facts.append(decode_fact(message.fact))
        if message.done:
            self._take_done(attempt, message.done)

    def _take_done(self, attempt: Attempt, done: Done) -> None:
        remark = self._kill_leftovers(thorough=False)
        self._settle(attempt.ended_by_itself(done, self._child.noise.of_finished(), remark))

    def _begin(self, name: str) -> None:
        if self._current and self._current.spec.name == name:
            self._current.started = time.monotonic()
            return
        if self._closing or not any(spec.name == name for spec in self._waiting):
            return
        if self._current:
            unsaid: Verdict = ("failed", "it did not say how it ended")
            self._settle(self._current.was_cut_off(unsaid, self._child.noise.of_finished(), ""))
        spec = self._waiting.popleft()
        self._current = Attempt(spec, self._setting.allowed(spec))
        self._setting.on_event(ProbeStarted(name=spec.name, title=spec.title))

    def _settle(self, run: ProbeRun) -> None:
        attempt, self._current = self._current, None
        self._exit_by = time.monotonic() + EXIT_GRACE
        if attempt:
            self._setting.finished(attempt.spec, run, attempt.facts)

    def _kill_leftovers(self, *, thorough: bool) -> str:
        older = () if thorough else self._setting.older
        return _about(cleanup.kill_marked(self._child.token, spare=(self.pid,), older=older))


def _about(killed: tuple[str, ...]) -> str:
    if not killed:
        return ""
    count = "a process" if len(killed) == 1 else f"{len(killed)} processes"
    names = ", ".join(sorted(killed)[:3]) + (", …" if len(killed) > 3 else "")
    return f"it left {count} behind that envcheck ended: {names}"
