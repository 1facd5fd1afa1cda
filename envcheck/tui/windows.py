"""What opens over the screen, and what follows from what is chosen there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from envcheck.errors import EnvcheckError
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen
from envcheck.tui.keys import KEYS
from envcheck.tui.widgets.detail import Ask, Choose, Page

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.tui.app import EnvcheckApp

_TITLE = 60
"""Columns of a window's title."""
_SAVED = "path of a report that --format json wrote"


class Windows:
    """Opens windows over an application; each shows the report as it was when it was opened."""

    def __init__(self, app: EnvcheckApp, options: Options) -> None:
        self._app, self._options = app, options

    def keys(self) -> None:
        """All keys."""
        self._app.push_screen(Page("keys", lambda _columns: Text(KEYS)))

    def command(self, command: str) -> None:
        """A command alone, to be selected where the terminal lets no program copy."""
        title = "copied; where the terminal does not allow it, select it here"
        self._app.push_screen(Page(title, lambda _columns: Text(command)))

    def page(self, title: str, lines: Callable[[Pen], Sequence[Line]]) -> None:
        """A page of lines, laid out by a pen of its width."""

        def laid_out(columns: int) -> Text:
            pen = Pen(Options(width=columns, ascii=self._options.ascii, home=self._options.home))
            return self._app.paint.lines(lines(pen))

        self._app.push_screen(Page(Pen(self._options).clip(title, _TITLE), laid_out))

    def gpus(self, report: Report | None) -> None:
        """The GPUs, and what is known of the one that is chosen."""
        from envcheck.tui.widgets.choices import gpu_lines, gpu_rows

        if report is None or not (rows := gpu_rows(report, self._app.paint)):
            self._app.tell("no GPU is known")
            return

        def chosen(number: int | None) -> None:
            if number is not None:
                self.page(f"GPU {number}", lambda pen: gpu_lines(report, number, pen))

        self._app.push_screen(Choose("GPUs", rows), chosen)

    def environments(self, report: Report | None, judge: Callable[[str | None], None]) -> None:
        """The environments; ``judge`` is given the key of the chosen one, or None: all known places."""
        from envcheck.tui.widgets.choices import environment_rows

        keys, rows = environment_rows(report, self._app.paint) if report else ((), ())

        def chosen(number: int | None) -> None:
            if number is not None:
                judge(keys[number] if number < len(keys) else None)

        further = self._app.paint.text("look for environments in all known places", "dim")
        self._app.push_screen(Choose("environments; enter judges one", [*rows, further]), chosen)

    def export(self) -> None:
        """The formats that can be written."""
        from envcheck.tui.export import choices, export

        told = choices()

        def chosen(number: int | None) -> None:
            if number is not None:
                self._app.run_worker(export(self._app, list(told)[number]), exit_on_error=False)

        rows = [self._app.paint.text(f"{name:<10} {shows}") for name, shows in told.items()]
        self._app.push_screen(Choose("export into the working folder", rows), chosen)

    def open(self, show: Callable[[Report], None]) -> None:
        """Ask for a saved report."""
        from envcheck.tui.widgets.choices import read_saved

        async def read(name: str) -> None:
            show(await asyncio.to_thread(read_saved, name))

        self._ask("open a saved report", read)

    def compare(self, report: Report | None) -> None:
        """Ask for a saved report, and show what is otherwise in this one."""
        if report is None:
            self._app.tell("there is no report yet")
            return

        async def compare(name: str) -> None:
            plain = msgspec.structs.replace(self._options, color=False)  # the page has its own colours
            text = await self._app.desk.compared(name, report, plain)
            paint = self._app.paint
            lines = text.splitlines()
            await self._app.push_screen(Page("compared", lambda _: Text("\n").join(map(paint.text, lines))))

        self._ask("compare with an earlier report", compare)

    def _ask(self, title: str, use: Callable[[str], object]) -> None:
        async def used(name: str) -> None:
            try:
                await use(name)  # type: ignore[misc]
            except EnvcheckError as error:
                self._app.tell(str(error), severity="error")

        def named(name: str | None) -> None:
            if name is not None:
                self._app.run_worker(used(name), exit_on_error=False)

        self._app.push_screen(Ask(title, _SAVED), named)
