"""What is under way in a session: how much has ended, what still runs, for how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envcheck.events import Event


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
