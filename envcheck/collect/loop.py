"""Wait for several children at once in one thread: read their messages, enforce deadlines, record their ends."""

from __future__ import annotations

import errno
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from envcheck.collect import cleanup
from envcheck.collect.attempt import Verdict, row
from envcheck.collect.job import Ended, Job, ProbeGroup, Setting

TICK = 0.05
"""Seconds between checks of the children and of the caller's wish to stop."""


class Loop:
    """Runs groups of probes, each group in a separate child."""

    def __init__(self, setting: Setting, deadline_s: float | None, should_stop: Callable[[], bool]) -> None:
        self._setting = setting
        self._deadline_s = deadline_s
        self._started = time.monotonic()
        self._should_stop = should_stop
        self._interrupted: Callable[[], bool] = lambda: False
        self._jobs: list[Job] = []
        self._ready: list[Job] = []
        """The jobs whose children wait for their turn."""

    def run(self, groups: Iterable[ProbeGroup], most: int | None = None) -> None:
        """Run the groups in parallel, at most ``most`` at a time, until all their probes have a result.

        Groups wait until they, and all groups before them, are ready.
        """
        waiting = deque(groups)
        while waiting or self._jobs:
            while waiting and (most is None or len(self._jobs) < most) and waiting[0].ready():
                self._start(waiting.popleft())
            if self._jobs:
                nearest = min(job.end_by for job in self._jobs) - time.monotonic()
                for key, _ in self._setting.selector.select(min(max(nearest, 0.0), TICK)):
                    key.data()
                self._end(self._due())

    def run_then(self, groups: Sequence[ProbeGroup], lasts: Sequence[ProbeGroup]) -> None:
        """Run the groups in parallel, then each of ``lasts`` alone; the children of these start at once and prepare."""
        longest = max((sum(map(self._setting.allowed, group.specs)) for group in groups), default=0.0)
        if groups and not self._halt():
            for last in lasts:
                with suppress(OSError):  # it is started again in its turn
                    self._ready.append(Job(msgspec.structs.replace(last, waits=longest), self._setting))
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

    def abort(self) -> None:
        """Terminate all running children without recording results."""
        jobs, self._jobs = [*self._jobs, *self._ready], []
        self._ready = []
        self._drop(jobs)

    def _drop(self, jobs: Sequence[Job]) -> None:
        cleanup.end_groups([job.pid for job in jobs])
        for job in jobs:
            job.drop()

    def _start(self, group: ProbeGroup) -> None:
        """Start a child for ``group``, or record why that failed."""
        halt = self._halt()
        if halt:
            self._settle(group, halt._replace(detail=f"not started: {halt.detail}"))
            return
        try:
            job = Job(group, self._setting)
        except OSError as error:
            hint = " (see ulimit -n)" if error.errno in (errno.EMFILE, errno.ENFILE) else ""
            reason = ": ".join(filter(None, (f"{error.strerror or error}{hint}", error.filename)))
            self._settle(group, Verdict("failed", f"could not be started: {reason}"))
            return
        self._jobs.append(job)
        job.proceed()

    def _settle(self, group: ProbeGroup, verdict: Verdict) -> None:
        for spec in group.specs:
            self._setting.finished(Ended(spec, row(spec, verdict, group.about)))

    def _due(self) -> dict[Job, Verdict | None]:
        """The jobs that have ended (None) or must be terminated (with the reason)."""
        halt, now = self._halt(), time.monotonic()
        due: dict[Job, Verdict | None] = {}
        for job in self._jobs:
            reason = halt or job.reason_to_end(now)
            if job.has_ended:
                job.handle_exit()
                due[job] = None
            elif reason:
                due[job] = reason
        return due

    def _end(self, reasons: Mapping[Job, Verdict | None]) -> None:
        """Close the jobs that are due; start the probes that one did not reach in new children."""
        if not reasons:
            return
        unkillable = cleanup.end_groups([job.pid for job in reasons])
        for job, reason in reasons.items():
            not_run = job.close(reason, killed=job.pid not in unkillable)
            self._jobs.remove(job)
            for group in not_run:
                self._start(group)

    def _halt(self) -> Verdict | None:
        """The reason to stop everything, or None."""
        if self._deadline_s is not None and time.monotonic() - self._started >= self._deadline_s:
            return Verdict("timed-out", f"--timeout {self._deadline_s:g} s was reached", cut_short=True)
        if self._interrupted():
            return Verdict("failed", "interrupted", cut_short=True)
        return Verdict("failed", "it was stopped on request", cut_short=True) if self._should_stop() else None
