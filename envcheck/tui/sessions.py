"""A session as the screen sees it: what is under way, the report so far, its end. The screen looks in now and then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, TypeAlias

from envcheck.tui.parts import Key, Parts, kept_of, key_of
from envcheck.tui.work import Work

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.request import Request
    from envcheck.snapshot import Snapshot
    from envcheck.tui.aside.examination import Gather, ShouldStop, Tell
    from envcheck.tui.aside.told import Told

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
    from envcheck.tui.aside.process import Aside
    from envcheck.tui.aside.told import Broken, decode

    try:
        aside = Aside("envcheck.tui.aside.examination", request, kept, *([gather] if gather else []))
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
        from envcheck.tui.aside.told import Broken, SoFar

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
