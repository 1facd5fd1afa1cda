"""Where the screens put questions that take long; one is answered after the other, and none that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from envcheck.errors import EnvcheckError

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.report import Options
    from envcheck.report.page.pen import Line
    from envcheck.tui.worker.grid import Cell, Grid
    from envcheck.tui.worker.process import Aside

Put: TypeAlias = Callable[[str, tuple[Any, ...]], Any]
"""Puts a question of ``aside/questions.py``, by its name, and waits for the answer."""


class ProcessAside:
    """Answers in a process beside the application, started with the first question."""

    def __init__(self) -> None:
        self._aside: Aside | None = None
        self._ended = False

    def __call__(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """The answer; raise EnvcheckError when there is none."""
        from envcheck.tui.worker.process import Aside

        if self._ended:
            raise EnvcheckError("the application is leaving")
        try:
            self._aside = self._aside or Aside("envcheck.tui.worker.questions")
            with suppress(BrokenPipeError):  # it has ended, which reading tells
                self._aside.link.send((name, arguments))
            return self._aside.link.receive()
        except OSError as error:
            raise EnvcheckError(f"no process can be started: {error}") from None
        except EOFError:
            raise EnvcheckError(f"what answers questions ended early ({self._lose()})") from None

    def _lose(self) -> str:
        """Let go of a process that has ended: the next question gets another. Returns how it ended."""
        lost, self._aside = self._aside, None
        if lost is None:
            return ""
        lost.link.close()
        return lost.ended()

    def end(self) -> None:
        """End the process."""
        self._ended = True
        if self._aside is not None:
            self._aside.end()


class Desk:
    """Asked from the screen's own thread, which goes on meanwhile; all raise EnvcheckError."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._one = ThreadPoolExecutor(1, "envcheck desk")

    async def suggested(self, overlays: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """What can be asked about, by the name of the field."""
        return await self._ask("suggested", overlays)  # type: ignore[no-any-return]

    async def known_of(self, report: Report) -> Mapping[str, str]:
        """The machine of a report, as the fields of the question take it."""
        return await self._ask("known_of", _json(report))  # type: ignore[no-any-return]

    async def fits(self, stated: Sequence[str], overlays: Sequence[str], options: Options) -> Sequence[Line]:
        """Whether components fit."""
        return await self._ask("fits", stated, overlays, options)  # type: ignore[no-any-return]

    async def grid(self, package: str, overlays: Sequence[str]) -> Grid | None:
        """The releases of ``package`` and their builds."""
        return await self._ask("grid", package, overlays)  # type: ignore[no-any-return]

    async def row(self, stated: Sequence[str], fixed: Sequence[str], overlays: Sequence[str]) -> Sequence[Cell]:
        """Which of a row of builds fit."""
        return await self._ask("row", stated, fixed, overlays)  # type: ignore[no-any-return]

    async def rule_pages(self) -> Mapping[str, str]:
        """What each rule says of itself, by its name."""
        return await self._ask("rule_pages")  # type: ignore[no-any-return]

    async def compared(self, name: str, report: Report, options: Options) -> str:
        """What is otherwise than in the saved report ``name``."""
        return await self._ask("compared", name, _json(report), options)  # type: ignore[no-any-return]

    async def rendered(self, report: Report, form: str, homes: Sequence[str]) -> str:
        """A report in a format, redacted; ``private``: as JSON, and not redacted."""
        return await self._ask("rendered", _json(report), form, homes)  # type: ignore[no-any-return]

    async def redacted(self, report: Report, homes: Sequence[str]) -> Report:
        """A report under pseudonyms."""
        import msgspec

        from envcheck.checks import Report

        return msgspec.json.decode(await self._ask("redacted", _json(report), homes), type=Report)

    async def named(self, quantities: Sequence[str]) -> None:
        """Raise UsageError for a quantity that is not measured."""
        await self._ask("named", quantities)

    async def _ask(self, name: str, *arguments: Any) -> Any:
        answer = await asyncio.get_running_loop().run_in_executor(self._one, self._put, name, arguments)
        if isinstance(answer, EnvcheckError):
            raise answer
        return answer


def _json(report: Report) -> bytes:
    from envcheck.text.encode import encode

    return encode(report).encode()
