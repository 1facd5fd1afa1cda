"""One run of a probe in a child, and the resulting row."""

from __future__ import annotations

import time
from typing import Literal, NamedTuple

import msgspec

from envcheck.collect import deaths
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.protocol import Done
from envcheck.model.snapshot import ProbeRun, Snapshot
from envcheck.text.clean import clean_block, one_line

RunStatus = Literal["ok", "absent", "failed", "crashed", "timed-out", "skipped"]


class Verdict(NamedTuple):
    """How a probe ended."""

    status: RunStatus
    detail: str
    cut_short: bool = False
    """Whether all probes had to end, for no reason of its own."""


START_GRACE = 15.0
"""Seconds that an interpreter may take to start, for example from a busy network file system."""
PROGRESS_LIMIT = 120


class About(msgspec.Struct, frozen=True):
    """The subject of a probe that runs once for each environment, framework or GPU."""

    environment: str | None = None
    """Key of the environment that it runs in."""
    framework: str | None = None
    """Name of the framework that it tries."""
    gpu: str | None = None
    """UUID of the GPU that it measures."""


WHOLE = About()
"""The subject of a probe that runs once."""


class Attempt(msgspec.Struct):
    """A probe under way."""

    spec: ProbeSpec
    allowed: float
    """Its time limit in seconds."""
    about: About = WHOLE
    started: float = msgspec.field(default_factory=time.monotonic)
    seconds: float | None = None
    """Seconds taken, as the child measured them."""
    facts: list[Snapshot] = []
    progress: str = ""
    problems: list[str] = []
    """Errors in the messages that it sent."""

    begun: bool = False
    """Whether the child reported its beginning; before that, the time to start is added."""

    @property
    def limit(self) -> float:
        """Seconds after which it is terminated."""
        return self.allowed if self.begun else self.allowed + START_GRACE

    def begin(self) -> None:
        """Start the clock at the first call."""
        if not self.begun:
            self.begun, self.started = True, time.monotonic()

    def ended_by_itself(self, done: Done, printed: str, remark: str) -> ProbeRun:
        """The row for a probe that reported how it ended."""
        status: RunStatus = "failed" if self.problems else done.status
        words = "; ".join([*self._complaints(), *filter(None, [done.detail])])
        noise = "\n".join(filter(None, [printed, clean_block(done.trace).strip("\n")]))
        return self._run(Verdict(status, words), noise, remark)

    def was_cut_off(self, verdict: Verdict, printed: str, remark: str) -> ProbeRun:
        """The row for a probe that ended without a report."""
        words = "; ".join([deaths.doing(verdict.detail, self.progress), *self._complaints()])
        return self._run(verdict._replace(detail=words), printed, remark)

    def _complaints(self) -> list[str]:
        further = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        return [f"it sent {self.problems[0]}{further}"] if self.problems else []

    def _run(self, verdict: Verdict, noise: str, remark: str) -> ProbeRun:
        taken = time.monotonic() - self.started if self.seconds is None else self.seconds
        detail = "; ".join(filter(None, [verdict.detail, remark]))
        return row(self.spec, verdict._replace(detail=detail), self.about, seconds=round(taken, 4), noise=noise)


def row(spec: ProbeSpec, verdict: Verdict, about: About = WHOLE, *, seconds: float = 0.0, noise: str = "") -> ProbeRun:
    """The row of a report for the probe ``spec``."""
    return ProbeRun(
        name=spec.name,
        title=spec.title,
        status=verdict.status,
        seconds=seconds,
        detail=one_line(verdict.detail),
        cut_short=verdict.cut_short,
        noise=noise,
        fills=spec.fills,
        environment=about.environment,
        framework=about.framework,
        gpu=about.gpu,
    )
