"""Starts sessions, one at a time, and keeps what probes told from one to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from envcheck.tui.worker.sessions import Examine, Session

if TYPE_CHECKING:
    from envcheck.pipeline.request import Request
    from envcheck.tui.worker.parts import Parts
    from envcheck.tui.worker.requests import Wish

_PATIENCE = 5.0
"""Seconds that leaving waits for children to end."""
_GLANCE = 0.05


class Runner:
    """``request`` is what every session examines; each may ask for more."""

    def __init__(self, request: Request, examine: Examine) -> None:
        self.request = request
        self.session: Session | None = None
        self._examine = examine
        self._parts: Parts = {}

    def begin(self, doing: str, wish: Wish, keep: Iterable[str] | None = ()) -> None:
        """Start a session that examines what ``wish`` makes of the request, for which it may take its time.

        ``keep``: kinds of probes whose facts of the last session stay (None: all).
        """
        asked = self.request
        self.session = Session(lambda: wish(asked), doing, examine=self._examine, parts=self._parts, keep=keep)
        self.session.start()

    def take_ended(self) -> Session | None:
        """The session, if it has ended, which is then no longer under way."""
        session = self.session
        if session is None or not session.over:
            return None
        self.session = None
        return session

    def keep(self, session: Session) -> None:
        """Let the next session build on what this one found."""
        self._parts = session.parts

    def stop(self) -> None:
        """Ask what is under way to end."""
        if self.session is not None:
            self.session.stop()

    async def leave(self) -> None:
        """End what is under way and wait until its children have ended."""
        self.stop()
        for _ in range(round(_PATIENCE / _GLANCE)):
            if self.session is None or self.session.over:
                return
            await asyncio.sleep(_GLANCE)

    def end(self) -> None:
        """The same, whatever ended the application."""
        if self.session is not None:
            self.session.stop()
            self.session.join(_PATIENCE)
