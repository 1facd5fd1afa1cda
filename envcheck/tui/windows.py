"""The windows over the screen: keys, pages, lists, saved reports, export."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text
from textual.app import App

from envcheck.errors import EnvcheckError
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen
from envcheck.tui.keys import KEYS
from envcheck.tui.widgets.detail import Ask, Choose, Page
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.client import Client

if TYPE_CHECKING:
    from envcheck.checks import Report

_TITLE = 60
"""Columns of a window's title."""
_DRAWN = 3
"""Times that the screen is drawn before a picture is taken: a new layout may lead to another."""


class WindowedApp(App["Report"]):
    """Opens windows, each over the report as it was when the window was opened."""

    def __init__(self, options: Options, client: Client) -> None:
        super().__init__()
        self.client = client
        self.report: Report | None = None
        self._page_options = options

    def show(self, report: Report) -> None:
        """Show a report in place of the current one."""
        raise NotImplementedError

    @property
    def paint(self) -> Paint:
        """Colours of the current theme."""
        return Paint(dark=self.current_theme.dark, ascii_only=self._page_options.ascii)

    def tell(self, words: str, *, severity: str = "information") -> None:
        """A notification, cleaned and never read as markup."""
        cleaned = Pen(self._page_options).text(words)
        self.notify(cleaned, severity=severity, timeout=8, markup=False)  # type: ignore[arg-type]

    def open_text(self, title: str, text: str) -> None:
        """Open a page of plain text."""
        self.push_screen(Page(title, lambda _columns: Text(text)))

    def open_page(self, title: str, lines: Callable[[Pen], Sequence[Line]]) -> None:
        """Open a page of lines, laid out for its width."""

        def laid_out(columns: int) -> Text:
            pen = Pen(Options(width=columns, ascii=self._page_options.ascii, home=self._page_options.home))
            return self.paint.lines(lines(pen))

        self.push_screen(Page(Pen(self._page_options).clip(title, _TITLE), laid_out))

    def open_list(self, title: str, rows: Sequence[Text], choose: Callable[[int], object]) -> None:
        """Open a list; ``choose`` is called with the number of the chosen row."""

        def chosen(number: int | None) -> None:
            if number is not None:
                choose(number)

        self.push_screen(Choose(title, rows), chosen)

    def open_saved(
        self,
        title: str,
        use: Callable[[str], Awaitable[object]],
        wanted: str = "path of a report that --format json wrote",
    ) -> None:
        """Ask for the path of a saved report; ``use`` may raise EnvcheckError."""

        async def used(name: str) -> None:
            try:
                await use(name)
            except EnvcheckError as error:
                self.tell(str(error), severity="error")

        def entered(name: str | None) -> None:
            if name is not None:
                self.run_worker(used(name), exit_on_error=False)

        self.push_screen(Ask(title, wanted), entered)

    def action_keys(self) -> None:
        self.open_text("keys", KEYS)

    def action_gpus(self) -> None:
        from envcheck.tui.widgets.choices import gpu_lines, gpu_rows

        report = self.report
        if report is None or not (rows := gpu_rows(report, self.paint)):
            self.tell("No GPU is known")
            return
        self.open_list("GPUs", rows, lambda gpu: self.open_page(f"GPU {gpu}", lambda pen: gpu_lines(report, gpu, pen)))

    def action_compare(self) -> None:
        report = self.report
        if report is None:
            self.tell("There is no report yet")
            return

        async def compare(name: str) -> None:
            plain = msgspec.structs.replace(self._page_options, color=False)  # the page has its own colours
            lines = (await self.client.ask("compared", name, report, plain)).splitlines()
            self.push_screen(Page("differences", lambda _columns: Text("\n").join(map(self.paint.text, lines))))

        self.open_saved("compare with an earlier report", compare)

    def action_export(self) -> None:
        from envcheck.tui.export import choices, export

        report, formats = self.report, choices()
        if report is None:
            self.tell("There is no report yet")
            return

        async def write(number: int) -> None:
            try:
                path = await export(
                    report, list(formats)[number], self.client, self._page_options.home, self._picture_of
                )
            except EnvcheckError as error:
                self.tell(str(error), severity="error")
            else:
                self.tell(f"Written: {path}")

        rows = [self.paint.text(f"{name:<10} {shows}") for name, shows in formats.items()]
        self.open_list(
            "export to the working folder", rows, lambda number: self.run_worker(write(number), exit_on_error=False)
        )

    async def _picture_of(self, redacted: Report) -> str:
        """The screen as SVG, with ``redacted`` in place of the current report."""
        report = self.report
        self.show(redacted)
        try:
            for _ in range(_DRAWN):
                drawn = asyncio.Event()
                self.call_after_refresh(drawn.set)
                await drawn.wait()
            picture = self.export_screenshot()
        finally:
            shown = self.report
            if shown is redacted and report is not None:
                self.show(report)
        if shown is not redacted:
            raise EnvcheckError("A new report arrived while the picture was taken. Nothing was written; export again.")
        return picture
