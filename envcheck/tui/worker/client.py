"""Asks a worker process what would delay a key; it answers one question after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from envcheck.errors import EnvcheckError
from envcheck.model.checks import Report

if TYPE_CHECKING:
    from envcheck.tui.worker.process import WorkerProcess

Answer: TypeAlias = Callable[[str, tuple[Any, ...]], Any]
"""Calls a function of ``questions.py`` by its name and waits for the result."""


class Client:
    """Keeps one worker process, which starts with the first question. Another one replaces it when it dies."""

    def __init__(self, answer: Answer | None = None) -> None:
        """``answer`` replaces the process in tests."""
        self._answer = answer or self.answer
        self._worker: WorkerProcess | None = None
        self._ended = False
        self._thread = ThreadPoolExecutor(1, "envcheck client")

    async def ask(self, question: str, *arguments: Any) -> Any:
        """What a function of ``questions.py`` returns; raise EnvcheckError. Reports are passed as JSON."""
        from envcheck.text.encode import encode

        passed = tuple(encode(each).encode() if isinstance(each, Report) else each for each in arguments)
        result = await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, question, passed)
        if isinstance(result, EnvcheckError):
            raise result
        return result

    def answer(self, question: str, arguments: tuple[Any, ...]) -> Any:
        """What the worker process returns, which may be an EnvcheckError; raise one when it cannot be reached."""
        from envcheck.tui.worker.process import WorkerProcess

        if self._ended:
            raise EnvcheckError("envcheck is closing")
        try:
            self._worker = self._worker or WorkerProcess("envcheck.tui.worker.questions")
            with suppress(BrokenPipeError):  # the process has ended: reading says so
                self._worker.link.send((question, arguments))
            return self._worker.link.receive()
        except OSError as error:
            raise EnvcheckError(f"cannot start a process: {error}") from None
        except EOFError:
            lost, self._worker = self._worker, None
            how = ""
            if lost is not None:
                lost.link.close()
                how = f" ({lost.ended()})"
            raise EnvcheckError(f"the worker process ended early{how}") from None

    def end(self) -> None:
        """End the worker process, also in the middle of a question."""
        self._ended = True
        if self._worker is not None:
            self._worker.end()
