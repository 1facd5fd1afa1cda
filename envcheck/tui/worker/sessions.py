"""What is under way in a session: how much has ended, what still runs, for how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from envcheck.tui.worker.parts import Key, Parts, kept_of, key_of

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.events import Event
    from envcheck.pipeline.request import Request
    from envcheck.snapshot import Snapshot
    from envcheck.tui.worker.examination import Gather, ShouldStop, Tell
    from envcheck.tui.worker.messages import Told


@dataclass(frozen=True)
class Running:
    """A probe that still runs."""

    name: str
    gpu: str | None
    """UUID, where it runs for one GPU."""
    text: str
    seconds: float


@dataclass
class _Begun:
    since: float
    text: str = ""


@dataclass
class Work:
    """Told of events by the session's thread, asked by the screen's."""

    clock: Callable[[], float] = time.monotonic
    planned: int = 0
    ended: int = 0
    _running: dict[tuple[str, str | None, str | None], _Begun] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def take(self, event: Event) -> None:
        """Take note of an event."""
        from envcheck.events import ProbeFinished, ProbesPlanned, ProbeStarted, Progress

        with self._lock:
            if isinstance(event, ProbesPlanned):
                self.planned += len(event.probes)
            elif isinstance(event, ProbeStarted):
                self._running[event.name, event.framework, event.gpu] = _Begun(self.clock())
            elif isinstance(event, Progress):
                begun = self._running.setdefault((event.name, event.framework, event.gpu), _Begun(self.clock()))
                begun.text = event.text
            elif isinstance(event, ProbeFinished):
                run = event.run
                self.ended += self._running.pop((run.name, run.framework, run.gpu), None) is not None

    @property
    def running(self) -> list[Running]:
        """What still runs, the longest first."""
        with self._lock:
            now = self.clock()
            return [
                Running(framework or name, gpu, begun.text, now - begun.since)
                for (name, framework, gpu), begun in self._running.items()
            ]

    @property
    def seconds(self) -> float:
        """Since it began."""
        return self.clock() - self.started

    def counted(self) -> str:
        """``3 of 9 probes  1.2 s``."""
        return f"{f'{self.ended} of {self.planned} probes' if self.planned else 'starting'}  {self.seconds:.1f} s"

    def words(self) -> str:
        """``3 of 9 probes  1.2 s  nvml, cuda (GPU 2 of 8)``."""
        named = [f"{probe.name} ({probe.text})" if probe.text else probe.name for probe in self.running]
        return f"{self.counted()}  {', '.join(named)}".rstrip()


# A session as the screen sees it: what is under way, the report so far, its end. The screen looks in now and then.


Examine: TypeAlias = "Callable[[Request, Parts, Tell, ShouldStop], None]"
"""Tells of an examination until its end: ``examine_aside``, or in tests one in the same process."""

_GLANCE = 0.1
"""Seconds after which a wish to stop is noticed."""


def examine_aside(
    request: Request, kept: Parts, tell: Tell, should_stop: ShouldStop, gather: Gather | None = None
) -> None:
    """Examine in a process of its own, so that no key waits for the interpreter's lock.

    ``gather`` stands in for the machine where that is timed.
    """
    from envcheck.tui.worker.messages import Broken, decode
    from envcheck.tui.worker.process import Aside

    try:
        aside = Aside("envcheck.tui.worker.examination", request, kept, *([gather] if gather else []))
    except OSError as error:
        tell(Broken(f"no process can be started: {error}"))
        return
    with closing(aside):
        try:
            while True:
                if should_stop():
                    aside.link.hang_up()
                if aside.link.has_news(_GLANCE):
                    tell(decode(aside.link.receive()))
        except EOFError:
            tell(Broken(f"the examination ended early ({aside.ended()})"))


class Session:
    """One session; everything public may be asked from the thread of the screen."""

    def __init__(
        self,
        request: Callable[[], Request],
        doing: str,
        *,
        examine: Examine = examine_aside,
        parts: Parts | None = None,
        keep: Iterable[str] | None = (),
    ) -> None:
        """``request`` is asked in the session's thread. ``parts``: facts of an earlier session, of which those of
        probes of the kinds ``keep`` (None: of all) are not gathered anew.
        """
        self.doing = doing
        self.work = Work()
        self.parts: dict[Key, Snapshot] = {}
        self.report: Report | None = None
        self.problem = ""
        self.measures = False
        self._request, self._examine, self._earlier, self._keep = request, examine, parts or {}, keep
        self._news: Report | None = None
        self._stop = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="envcheck session", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; every child is ended first, within a second or so."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait for its end."""
        self._thread.join(seconds)

    @property
    def stopped(self) -> bool:
        """Whether it was asked to end."""
        return self._stop.is_set()

    @property
    def over(self) -> bool:
        """Whether ``report`` or ``problem`` is final."""
        return self._over.is_set()

    def news(self) -> Report | None:
        """The report so far, if there is a newer one than at the last call."""
        report, self._news = self._news, None
        return report

    def _run(self) -> None:
        try:
            self.parts.update(kept_of(self._earlier, self._keep))
            request = self._request()
            self.measures = request.bench is not None
            self._examine(request, dict(self.parts), self._hear, self._stop.is_set)
        except Exception as error:  # noqa: BLE001 - a session that broke must not take the screen along
            self.problem = f"envcheck broke: {type(error).__name__}: {error}"
        finally:
            self._over.set()

    def _hear(self, told: Told) -> None:
        from envcheck.events import Judged, ProbeFinished
        from envcheck.tui.worker.messages import Broken, SoFar

        if isinstance(told, SoFar):
            self._news = told.report
        elif isinstance(told, Judged):
            self.report = told.report
        elif isinstance(told, Broken):
            self.problem = self.problem or ("" if self.report else told.problem)
        else:
            self.work.take(told)
            if isinstance(told, ProbeFinished):
                self.parts[key_of(told.run)] = told.facts
