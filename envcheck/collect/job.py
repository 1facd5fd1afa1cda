"""One child and the probes that it runs in sequence."""

from __future__ import annotations

import math
import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from envcheck.collect import cleanup, deaths, prestart
from envcheck.collect.attempt import PROGRESS_LIMIT, WHOLE, About, Attempt, Verdict
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.child import AS_A_USERS_PROGRAM, Child, Launch
from envcheck.collect.deaths import Death
from envcheck.collect.protocol import TOTAL_LIMIT, Message, WrongMessageError, decode, decode_fact
from envcheck.collect.request import order
from envcheck.model.events import OnEvent, ProbeStarted, Progress
from envcheck.model.snapshot import ProbeRun, Snapshot
from envcheck.text.clean import one_line

EXIT_GRACE = 2.0
"""Seconds for a child to exit after its last probe."""
ALARM_GRACE = 60.0
"""Seconds after its last deadline at which a child ends itself, in case its parent is gone."""


class Ended(msgspec.Struct, frozen=True):
    """The result of a probe, and what it printed."""

    spec: ProbeSpec
    run: ProbeRun
    facts: Sequence[Snapshot] = ()
    telling: tuple[str, ...] = ()
    """Printed lines that name a problem."""
    death: Death | None = None
    """Who caused the process to end before the probe was done; None if the probe finished."""


class ProbeGroup(msgspec.Struct, frozen=True):
    """Probes that one child runs in sequence."""

    specs: Sequence[ProbeSpec]
    launch: Launch
    about: About = WHOLE
    waits: float = 0.0
    """Seconds that the child may wait for its turn, while it calls the probes' ``prepare``."""
    ready: Callable[[], bool] = lambda: True
    """Whether its child may be started; that depends on other groups."""


class Setting(msgspec.Struct, frozen=True):
    """The shared settings of all jobs of a run."""

    folder: str
    selector: selectors.BaseSelector
    older: frozenset[int]
    """Processes that existed before the first child."""
    allowed: Callable[[ProbeSpec], float]
    """The time limit of a probe in seconds."""
    on_event: OnEvent
    finished: Callable[[Ended], None]
    """Called once for every probe."""


class Job:
    """A running child and the probes that it was started for."""

    def __init__(self, group: ProbeGroup, setting: Setting) -> None:
        """Start the child; raise OSError if that fails."""
        self._setting = setting
        self._group = group
        self._known = frozenset(spec.name for spec in group.specs)
        self._waiting = deque(group.specs)
        self._current: Attempt | None = None
        self._exit_by = math.inf
        self._settled = False
        self._closing = False
        self._left: list[str] = []
        launch = group.launch
        first_line = order(
            launch.request,
            setting.folder,
            launch.path,
            math.ceil(group.waits + sum(map(setting.allowed, group.specs)) + ALARM_GRACE),
            [spec.name for spec in group.specs] if group.waits else [],
            trial=launch.flags == AS_A_USERS_PROGRAM,
        )
        waiting = prestart.take(setting.folder, group.specs[0].name, launch.request) if launch.is_plain else None
        self._child = Child(waiting or launch.start(), first_line, setting.selector, self._receive)
        self.pid = self._child.pid

    def proceed(self) -> None:
        """Let the child run the next probe, or exit if there is none."""
        if not self._waiting:
            self._child.close_order()
            self._exit_by = time.monotonic() + EXIT_GRACE
            return
        spec = self._waiting.popleft()
        about = self._group.about
        self._current = Attempt(spec, self._setting.allowed(spec), about)
        self._child.run_probe(spec.name)
        self._setting.on_event(ProbeStarted(spec.name, spec.title, about.framework, about.gpu))

    @property
    def has_ended(self) -> bool:
        return self._child.has_ended

    @property
    def end_by(self) -> float:
        """The time of the next check for a reason to terminate it."""
        return self._current.started + self._current.limit if self._current else self._exit_by

    def reason_to_end(self, now: float) -> Verdict | None:
        """The reason to terminate the child, or None."""
        if self._child.sent_too_much:
            return Verdict("failed", f"it sent more than {TOTAL_LIMIT >> 20} MiB")
        if now < self.end_by:
            return None
        limit = self._current.limit if self._current else EXIT_GRACE
        return Verdict("timed-out", f"timed out after {limit:g} s")

    def handle_exit(self) -> None:
        """Handle a child that exited: read its last messages, and look for processes that it left."""
        self._child.read_pipes()
        self._kill_leftovers(thorough=self._current is not None)

    def close(self, verdict: Verdict | None, *, killed: bool = True) -> tuple[ProbeGroup, ...]:
        """Record the remaining results after the child exited, or was terminated for the reason ``verdict``.

        ``killed`` is False for a child that could not be killed. Returns the probes that the child did not start, each
        as a separate group, those that measure a GPU as one: two at once would share its speed.
        """
        self._closing = verdict is not None
        self._kill_leftovers(thorough=self._current is not None)
        self._child.read_pipes()
        death: Death = "outside"
        if killed:
            returncode = self._child.reap()
            death = deaths.whose(returncode) if verdict is None else "outside"
            verdict = verdict or Verdict(*deaths.describe(returncode))
        else:
            self._child.abandon()
            self._left.append(f"process {self.pid}, which cannot be killed and was abandoned")
        if self._current and self._settled and not self._current.begun:
            self._waiting.appendleft(self._current.spec)  # it died of an earlier probe
        elif self._current and verdict:
            self._settle(self._current.was_cut_off(verdict, self._child.noise.take(), self._remark()), death)
        left = tuple(self._waiting)
        together = (left,) if left and self._group.about.gpu else ((spec,) for spec in left)
        return tuple(ProbeGroup(specs, self._group.launch, self._group.about) for specs in together)

    def drop(self) -> None:
        """Release a terminated child and the processes that it left."""
        self._closing = True
        cleanup.kill_marked(self._child.token, spare=(self.pid,))
        if self._child.has_ended:
            self._child.reap()
        else:
            self._child.abandon()

    def _receive(self, lines: list[bytes | None]) -> None:
        for line in lines:
            try:
                if line != b"":
                    self._take(decode(line))
            except WrongMessageError as error:
                if self._current:
                    self._current.problems.append(str(error))

    def _take(self, message: Message) -> None:
        if message.probe not in self._known:
            raise WrongMessageError("a message in the name of another probe")
        attempt = self._current
        if attempt is None or attempt.spec.name != message.probe:
            return  # from a finished probe: one of its threads or forks still sends
        if message.begin:
            attempt.begin()
        if message.seconds is not None:
            attempt.seconds = message.seconds
        if message.progress is not None:
            attempt.progress = one_line(message.progress, PROGRESS_LIMIT)
            framework = attempt.about.framework
            self._setting.on_event(Progress(message.probe, attempt.progress, framework, self._group.about.gpu))
        if message.fact:
            attempt.facts.append(decode_fact(message.fact))
        if message.done:
            self._kill_leftovers(thorough=False)
            self._settle(attempt.ended_by_itself(message.done, self._child.noise.take(), self._remark()))
            if not self._closing:
                self.proceed()

    def _settle(self, run: ProbeRun, death: Death | None = None) -> None:
        attempt, self._current, self._settled = self._current, None, True
        if attempt:
            telling = self._child.noise.take_telling()
            self._setting.finished(Ended(attempt.spec, run, attempt.facts, telling, death))

    def _kill_leftovers(self, *, thorough: bool) -> None:
        older = () if thorough else self._setting.older
        self._left += cleanup.kill_marked(self._child.token, spare=(self.pid,), older=older)

    def _remark(self) -> str:
        """The processes that the probe left, as text."""
        left, self._left = sorted(self._left), []
        if not left:
            return ""
        count = "a process" if len(left) == 1 else f"{len(left)} processes"
        return f"it left {count} behind: {', '.join(left[:3])}{', …' if len(left) > 3 else ''}"
