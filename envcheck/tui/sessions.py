"""A session in threads of its own: what is under way, the report so far, its end. The screen looks in now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from envcheck.errors import EnvcheckError
from envcheck.tui.work import Work

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.events import Event, OnEvent
    from envcheck.session import Request
    from envcheck.snapshot import ProbeRun, Snapshot

Key: TypeAlias = tuple[str, str | None, str | None]
"""Probe, framework, GPU."""
Parts: TypeAlias = Mapping[Key, "Snapshot"]
Gather: TypeAlias = "Callable[[Request, OnEvent, Callable[[], bool]], Snapshot]"
"""Examines: ``session.gather_here``, or in tests something that replays a machine."""

_BETWEEN_JUDGEMENTS = 0.4
"""Seconds: what comes in close together is judged together."""


def gather_here(request: Request, on_event: OnEvent, should_stop: Callable[[], bool]) -> Snapshot:
    """Examine this machine."""
    from envcheck import session

    return session.gather_here(request, on_event, should_stop)


class Session:
    """One session; everything public may be asked from the thread of the screen."""

    def __init__(
        self, request: Request, doing: str, *, gather: Gather = gather_here, kept: Parts | None = None
    ) -> None:
        """``kept``: facts of an earlier session that this one does not gather anew."""
        self.request, self.doing = request, doing
        self.work = Work()
        self.parts: dict[Key, Snapshot] = dict(kept or {})
        self.report: Report | None = None
        self.problem = ""
        self._kept = frozenset(self.parts)
        self._gather = gather
        self._news: Report | None = None
        self._fresh = threading.Event()
        self._stop = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="envcheck session", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        threading.Thread(target=self._judge_on_the_way, name="envcheck judge", daemon=True).start()

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
            self.report = self._examine()
        except EnvcheckError as error:
            self.problem = str(error)
        except Exception as error:  # noqa: BLE001 - a session that broke must not take the screen along
            self.problem = f"envcheck broke: {type(error).__name__}: {error}"
        finally:
            self._over.set()
            self._fresh.set()

    def _examine(self) -> Report:
        from envcheck import session

        started = time.monotonic()
        gathered = self._gather(self.request, self._hear, self._stop.is_set)
        snapshot = _joined([gathered, *(self.parts[key] for key in self._kept)], self._kept)
        return session.judge(snapshot, self.request, started=started)

    def _hear(self, event: Event) -> None:
        from envcheck.events import ProbeFinished

        self.work.take(event)
        if isinstance(event, ProbeFinished):
            self.parts[key_of(event.run)] = event.facts
            self._fresh.set()

    def _judge_on_the_way(self) -> None:
        from envcheck import session

        while not self._over.wait(_BETWEEN_JUDGEMENTS):
            self._fresh.wait()
            self._fresh.clear()
            if self._over.is_set() or not self.parts:
                continue
            try:
                report = session.judge(_joined(list(self.parts.values()), frozenset()), self.request)
            except Exception:  # noqa: BLE001, S112 - what is wrong shows at the end, where it is told
                continue
            self._news = report


def key_of(run: ProbeRun) -> Key:
    """What tells a run from others of its session."""
    return run.name, run.framework, run.gpu


def kept_of(parts: Parts, kinds: Iterable[str]) -> Parts:
    """What probes of these kinds told."""
    from envcheck.collect.catalog import all_probes

    wanted = frozenset(kinds)
    names = {spec.name for spec in all_probes() if spec.kind in wanted}
    return {key: part for key, part in parts.items() if key[0] in names}


def _joined(parts: list[Snapshot], kept: frozenset[Key]) -> Snapshot:
    """All parts as one; a row that says that a probe was not asked for gives way to what it told before."""
    import msgspec

    from envcheck.merge import merge

    whole = merge(parts)
    told_before = {name for name, _, _ in kept}
    runs = tuple(run for run in whole.runs if not (run.status == "skipped" and run.name in told_before))
    return msgspec.structs.replace(whole, runs=runs)
