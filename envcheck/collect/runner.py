"""Run groups of probes, each group in a child, and several children at once in one thread: start them, read what they
send, keep deadlines, record how each probe ended.

What is in a message, and what the end of a probe means, is for others: here is only what every run of probes has in
common. Standard library only and Python 3.8 or newer: the collector is this file, ``child.py`` and ``starting.py``.
"""

from __future__ import annotations

import errno
import math
import os
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from envcheck.collect import child

if TYPE_CHECKING:
    import selectors
    from collections.abc import Callable, Iterable, Sequence

    from envcheck.collect.catalog import ProbeSpec
    from envcheck.collect.child import Death
    from envcheck.collect.protocol import Done, Message
    from envcheck.collect.starting import Launch, Started

RunStatus = Literal["ok", "absent", "failed", "crashed", "timed-out", "skipped"]

START_GRACE = 15.0  # Seconds that an interpreter may take to start, for example from a busy network file system
EXIT_GRACE = 2.0  # Seconds for a child to exit after its last probe
ALARM_GRACE = 60.0  # Seconds after its last deadline at which a child ends itself, in case its parent is gone
TICK = 0.05  # Seconds between checks of the children and of the caller's wish to stop
GPUS_OF_A_LARGE_SERVER = 8
"""Number of GPUs assumed for deadlines if they could not be listed: a long deadline does less harm than a short one."""

Limit = Literal["", "open-files", "processes", "tasks"]
_IDS_OF_THE_HOST = ["0", "0", "4294967295"]  # Outside of user namespaces; there no number of processes binds root


def _limit_reached(number: int | None) -> tuple[Limit, str]:
    """The limit of which an error tells that starts a process, and where to look at it."""
    if number == errno.EMFILE:
        return "open-files", " (see ulimit -n)"
    if number != errno.EAGAIN:
        return "", ""
    with suppress(OSError), open("/proc/self/uid_map", encoding="ascii") as ids:  # noqa: PTH123 - imports are spared
        if os.geteuid() == 0 and ids.read().split() == _IDS_OF_THE_HOST:
            return "tasks", " (see pids.max of the control group)"
    return "processes", " (see ulimit -u)"


class WrongMessageError(Exception):
    """A child sent an unusable message; the text continues "it sent"."""


class Verdict(NamedTuple):
    """Why a probe did not end by itself, or was not started."""

    status: RunStatus
    detail: str
    cut_short: bool = False  # Whether all probes had to end, for no reason of its own
    limit: Limit = ""  # The limit of the operating system that kept it from being started


class About(NamedTuple):
    """The subject of a probe that runs once for each environment, framework or GPU."""

    environment: str | None = None  # Key of the environment that it runs in
    framework: str | None = None  # Name of the framework that it tries
    gpu: str | None = None  # UUID of the GPU that it measures


WHOLE = About()  # The subject of a probe that runs once


class Attempt:
    """A probe under way, and what it sent."""

    def __init__(self, spec: ProbeSpec, allowed: float, about: About = WHOLE) -> None:
        self.spec, self.allowed, self.about = spec, allowed, about
        self.started = time.monotonic()
        self.begun = False
        self.seconds: float | None = None  # Seconds taken, as the child measured them
        self.processor: float | None = None  # Seconds of processor time, likewise
        self.facts: list[Any] = []
        self.progress = ""
        self.problems: list[str] = []  # Errors in the messages that it sent
        self.done: Done | None = None

    @property
    def limit(self) -> float:
        """Seconds after which it is terminated; before the child reports its beginning, with the time to start."""
        return self.allowed if self.begun else self.allowed + START_GRACE


class Ended(NamedTuple):
    """A probe that ended, and what it printed."""

    attempt: Attempt
    verdict: Verdict | None  # None: ``attempt.done`` is how it ended
    noise: str = ""
    remark: str = ""  # The processes that it left
    telling: tuple[str, ...] = ()  # Printed lines that name a problem
    death: Death | None = None  # Who caused the process to end before the probe was done; None if the probe finished


def not_run(spec: ProbeSpec, verdict: Verdict, about: About = WHOLE) -> Ended:
    """The end of a probe that was not started."""
    attempt = Attempt(spec, 0.0, about)
    attempt.seconds = 0.0
    return Ended(attempt, verdict)


class ProbeGroup(NamedTuple):
    """Probes that one child runs in sequence."""

    specs: Sequence[ProbeSpec]
    launch: Launch
    about: About = WHOLE
    waits: float = 0.0  # Seconds that the child may wait for its turn, while it calls the probes' ``prepare``
    ready: Callable[[], bool] = lambda: True  # Whether its child may be started; that depends on other groups
    joins: Callable[[], bool] = lambda: False  # Whether a child that runs may run its probes, too; asked when ready


class Setting(NamedTuple):
    """The shared settings of all children of a run."""

    folder: str  # Where the probes are
    selector: selectors.BaseSelector
    older: frozenset[int]  # Processes that existed before the first child
    waiting: Callable[[ProbeGroup], Started | None]  # Gives a child that was started before, if one is for this group
    allowed: Callable[[ProbeSpec], float]  # The time limit of a probe in seconds
    decode: Callable[[bytes | None], Message]  # Reads a line, None for one that was too long; raises WrongMessageError
    started: Callable[[Attempt], None]
    heard: Callable[[Attempt, Message], None]  # Takes facts and progress from a message; raises WrongMessageError
    finished: Callable[[Ended], None]  # Called once for every probe
    planned: Callable[[Sequence[ProbeSpec]], None] = lambda _specs: None
    """Called with probes that are going to be tried or measured, one as often as it runs."""


def reading_groups(
    specs: Sequence[ProbeSpec],
    launch: Launch,
    ready: Callable[[], bool],
    joins: Callable[[str], bool] = lambda _: False,
) -> list[ProbeGroup]:
    """The probes that read: the files in two children, those of the machine with the early ones first, and those of
    the software in it, whose probes share what they read; each driver probe in a child of its own, once ``ready``.

    Where ``joins`` tells of one that there is no driver to ask, a child that runs takes it over: the loader says
    so at once, and to start a child would take many times as long.
    """
    drivers = [spec for spec in specs if spec.kind == "driver"]
    files = [spec for spec in specs if spec.kind != "driver"]
    files.sort(key=lambda spec: (spec.kind == "verify", not spec.early))
    machine = [spec for spec in files if spec.early or "node" in spec.scopes]
    software = [spec for spec in files if spec not in machine]
    together = [ProbeGroup(group, launch) for group in (machine, software) if group]
    return [*together, *(ProbeGroup([spec], launch, ready=ready, joins=partial(joins, spec.name)) for spec in drivers)]


class _Job:
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
        seconds = math.ceil(group.waits + sum(map(setting.allowed, group.specs)) + ALARM_GRACE)
        prepare = [spec.name for spec in group.specs] if group.waits else []
        first_line = group.launch.order(setting.folder, seconds, prepare)
        started = setting.waiting(group) or group.launch.start()
        self._child = child.Child(started, first_line, setting.selector, self._receive)
        self.pid = self._child.pid

    def take(self, group: ProbeGroup) -> bool:
        """Whether it takes the probes of ``group`` before its own: for the same child, if it is not at its end."""
        hashing = any(spec.kind == "verify" for spec in self._group.specs)
        if self._current is None or hashing or self._closing or self._group.launch != group.launch:
            return False
        self._waiting.extendleft(reversed(group.specs))
        self._known |= {spec.name for spec in group.specs}
        return True

    def proceed(self) -> None:
        """Let the child run the next probe, or exit if there is none."""
        if not self._waiting:
            self._child.close_order()
            self._exit_by = time.monotonic() + EXIT_GRACE
            return
        spec = self._waiting.popleft()
        self._current = Attempt(spec, self._setting.allowed(spec), self._group.about)
        self._child.run_probe(spec.name)
        self._setting.started(self._current)

    @property
    def is_through(self) -> bool:
        """Whether all its probes ended, and it has only to exit."""
        return self._current is None and not self._waiting and self._exit_by < math.inf

    @property
    def hashes(self) -> bool:
        """Whether all that is left to it is hashing files, which takes long and which no other probe waits for."""
        left = [*([self._current.spec] if self._current else ()), *self._waiting]
        return bool(left) and all(spec.kind == "verify" for spec in left)

    @property
    def end_by(self) -> float:
        """The time of the next check for a reason to terminate it."""
        return self._current.started + self._current.limit if self._current else self._exit_by

    def reason_to_end(self, now: float) -> Verdict | None:
        """The reason to terminate the child, or None."""
        if self._child.lines.total > child.TOTAL_LIMIT:
            return Verdict("failed", f"it sent more than {child.TOTAL_LIMIT >> 20} MiB")
        if now < self.end_by:
            return None
        limit = self._current.limit if self._current else EXIT_GRACE
        return Verdict("timed-out", f"timed out after {limit:g} s")

    def handle_exit(self) -> None:
        """Handle a child that exited: read its last messages, and look for processes that it left."""
        self._child.read_pipes()
        self._kill_leftovers(thorough=self._current is not None)

    def close(self, verdict: Verdict | None, *, killed: bool = True) -> list[ProbeGroup]:
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
            death = child.cause_of_end(returncode) if verdict is None else "outside"
            verdict = verdict or Verdict(*child.describe(returncode))
        else:
            self._child.abandon()
            self._left.append(f"process {self.pid}, which cannot be killed and was abandoned")
        if self._current and self._settled and not self._current.begun:
            self._waiting.appendleft(self._current.spec)  # it died of an earlier probe
        elif self._current and verdict:
            self._settle(self._current, verdict, death)
        left = tuple(self._waiting)
        together = [left] if left and self._group.about.gpu else [(spec,) for spec in left]
        return [ProbeGroup(specs, self._group.launch, self._group.about) for specs in together]

    def leave(self) -> None:
        """End the child, and do not wait for it."""
        child.kill_groups([self.pid])
        self._child.abandon()

    def drop(self) -> None:
        """Release a terminated child and the processes that it left."""
        self._closing = True
        child.kill_marked(self._child.token, spare=(self.pid,))
        if child.has_ended(self.pid):
            self._child.reap()
        else:
            self._child.abandon()

    def _receive(self, lines: list[bytes | None]) -> None:
        for line in lines:
            try:
                if line != b"":
                    self._take(self._setting.decode(line))
            except WrongMessageError as error:
                if self._current:
                    self._current.problems.append(str(error))

    def _take(self, message: Message) -> None:
        if message.probe not in self._known:
            raise WrongMessageError("a message in the name of another probe")
        attempt = self._current
        if attempt is None or attempt.spec.name != message.probe:
            return  # from a finished probe: one of its threads or forks still sends
        if message.begin and not attempt.begun:
            attempt.begun, attempt.started = True, time.monotonic()
        if message.seconds is not None:
            attempt.seconds = message.seconds
        self._setting.heard(attempt, message)
        if message.done:
            attempt.done = message.done
            self._kill_leftovers(thorough=False)
            self._settle(attempt, None)
            if not self._closing:
                self.proceed()

    def _settle(self, attempt: Attempt, verdict: Verdict | None, death: Death | None = None) -> None:
        self._current, self._settled = None, True
        noise, telling = self._child.noise.take(), self._child.noise.take_telling()
        left, self._left = sorted(self._left), []
        remark = ""
        if left:
            count = "a process" if len(left) == 1 else f"{len(left)} processes"
            remark = f"it left {count} behind: {', '.join(left[:3])}{', …' if len(left) > 3 else ''}"
        self._setting.finished(Ended(attempt, verdict, noise, remark, telling, death))

    def _kill_leftovers(self, *, thorough: bool) -> None:
        older = () if thorough else self._setting.older
        self._left += child.kill_marked(self._child.token, spare=(self.pid,), older=older)


class Loop:
    """Runs groups of probes, each group in a separate child."""

    def __init__(self, setting: Setting, deadline_s: float | None, should_stop: Callable[[], bool]) -> None:
        self._setting = setting
        self.finished, self.planned = setting.finished, setting.planned
        self._deadline_s = deadline_s
        self._started = time.monotonic()
        self._should_stop = should_stop
        self._interrupted: Callable[[], bool] = lambda: False
        self._jobs: list[_Job] = []
        self._ready: list[_Job] = []  # The jobs whose children wait for their turn

    def run(self, groups: Iterable[ProbeGroup], most: int | None = None, *, until_exit: bool = True) -> None:
        """Run the groups in parallel, at most ``most`` at a time, until all their probes have a result and, with
        ``until_exit``, their children have exited: the driver takes its time to let go of a process. Files are hashed
        beside what runs next, and beyond ``most``, until ``finish``.

        Groups wait until they, and all groups before them, are ready.
        """
        waiting = deque(groups)
        while waiting or self._count_in_front(until_exit=until_exit):
            while waiting and (most is None or self._count_in_front() < most) and waiting[0].ready():
                group = waiting.popleft()
                if not (group.joins() and any(job.take(group) for job in self._jobs)):
                    self._start(group)
            self._turn()

    def finish(self) -> None:
        """Wait for the files that are being hashed."""
        while not all(job.is_through for job in self._jobs):
            self._turn()

    def _count_in_front(self, *, until_exit: bool = True) -> int:
        return sum(not job.hashes and (until_exit or not job.is_through) for job in self._jobs)

    def _turn(self) -> None:
        """Wait for what the children send, a moment at most, and end those that are due."""
        if self._jobs:
            nearest = min(job.end_by for job in self._jobs) - time.monotonic()
            for key, _ in self._setting.selector.select(min(max(nearest, 0.0), TICK)):
                key.data()
        halt, now = self._halt(), time.monotonic()
        due: dict[_Job, Verdict | None] = {}  # those that have ended (None), or must be terminated for that reason
        for job in self._jobs:
            reason = halt or job.reason_to_end(now)
            if child.has_ended(job.pid):
                job.handle_exit()
                due[job] = None
            elif reason:
                due[job] = reason
        unkillable = child.end_groups([job.pid for job in due]) if due else frozenset()
        for job, reason in due.items():
            not_reached = job.close(reason, killed=job.pid not in unkillable)
            self._jobs.remove(job)
            for group in not_reached:  # those start in new children
                self._start(group)

    def run_then(self, groups: Sequence[ProbeGroup], lasts: Sequence[ProbeGroup]) -> None:
        """Run the groups in parallel, then each of ``lasts`` alone; the children of these start at once and prepare."""
        longest = max((sum(map(self._setting.allowed, group.specs)) for group in groups), default=0.0)
        if groups and not self._halt():
            for last in lasts:
                with suppress(OSError):  # it is started again in its turn
                    self._ready.append(_Job(last._replace(waits=longest), self._setting))
                longest += sum(map(self._setting.allowed, last.specs))
        self.run(groups)
        if len(self._ready) < len(lasts) or self._halt():
            ready, self._ready = self._ready, []
            self._drop(ready)
            self.run(lasts, most=1)
            return
        while self._ready:
            job = self._ready.pop(0)
            self._jobs.append(job)
            job.proceed()
            self.run(())

    def stop_when(self, interrupted: Callable[[], bool]) -> None:
        """From now on, end everything as soon as ``interrupted`` returns true, keeping the messages so far."""
        self._interrupted = interrupted

    def abort(self, *, hashing: bool = True) -> None:
        """Terminate all running children without recording results, those that are ``hashing`` too or not; those that
        have only to exit are not waited for.
        """
        kept = [] if hashing else [job for job in self._jobs if job.hashes]
        jobs = [*(job for job in self._jobs if job not in kept), *self._ready]
        self._jobs, self._ready = kept, []
        for job in jobs:
            if job.is_through:
                job.leave()
        self._drop([job for job in jobs if not job.is_through])

    def _drop(self, jobs: Sequence[_Job]) -> None:
        child.end_groups([job.pid for job in jobs])
        for job in jobs:
            job.drop()

    def _start(self, group: ProbeGroup) -> None:
        """Start a child for ``group``, or record why that failed."""
        halt = self._halt()
        if halt:
            verdict = halt._replace(detail=f"not started: {halt.detail}")
        else:
            try:
                job = _Job(group, self._setting)
            except OSError as error:
                limit, advice = _limit_reached(error.errno)
                reason = ": ".join(filter(None, (f"{error.strerror or error}{advice}", error.filename)))
                verdict = Verdict("failed", f"could not be started: {reason}", limit=limit)
            else:
                self._jobs.append(job)
                job.proceed()
                return
        for spec in group.specs:
            self.finished(not_run(spec, verdict, group.about))

    def _halt(self) -> Verdict | None:
        """The reason to stop everything, or None."""
        if self._deadline_s is not None and time.monotonic() - self._started >= self._deadline_s:
            return Verdict("timed-out", f"--timeout {self._deadline_s:g} s was reached", cut_short=True)
        if self._interrupted():
            return Verdict("failed", "interrupted", cut_short=True)
        return Verdict("failed", "it was stopped on request", cut_short=True) if self._should_stop() else None
