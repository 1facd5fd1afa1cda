"""The windows over the screen: a page of text, a list to choose from, a line to fill in, and what opens them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from envcheck.errors import EnvcheckError
from envcheck.model.checks import Report
from envcheck.report import Options
from envcheck.report.page.pen import Line, Pen, StyledSpan
from envcheck.text.clean import clean
from envcheck.tui.tabs import KEYS
from envcheck.tui.widgets.base import StatusText
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.sessions import Client

WIDEST = 100
_FRAME = 6


class TextWindow(ModalScreen[None]):
    """A text, laid out for each width."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "close"),
        Binding("j", "app.move(1)", "down", show=False),
        Binding("k", "app.move(-1)", "up", show=False),
        Binding("space", "app.move(10)", "down", show=False),
        Binding("c", "copy", "copy", show=False),
    ]

    def __init__(self, title: str, text: Callable[[int], Text], *, live: bool = False, command: str = "") -> None:
        """``text`` returns the text for a number of columns; ``live``: it is asked every second. The key c copies
        ``command``, or else the fix of the selected finding.
        """
        super().__init__()
        self._title, self._text, self._live, self._columns = title, text, live, 0
        self._command = command

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page", classes="window") as page:
            page.border_title = Text(self._title).markup
            page.border_subtitle = "c copies · esc closes" if self._command else "esc closes"
            yield StatusText(id="page-text")

    def on_mount(self) -> None:
        if self._live:
            self.set_interval(1.0, self._show)

    async def action_copy(self) -> None:
        if not self._command:
            await self.run_action("app.copy")
            return
        self.app.copy_to_clipboard(self._command)
        self.notify(f"copied: {self._command}", markup=False)

    def on_resize(self) -> None:
        if self._columns != self._room:
            self._show()

    def _show(self) -> None:
        self._columns = self._room
        self.query_one("#page-text", StatusText).show(self._text(self._columns))

    @property
    def _room(self) -> int:
        return min(WIDEST, self.app.size.width * 9 // 10) - _FRAME


class ChooseWindow(ModalScreen[int | None]):
    """A list; returns the number of the chosen row, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "close"),
        Binding("j", "app.move(1)", "down", show=False),
        Binding("k", "app.move(-1)", "up", show=False),
    ]

    def __init__(self, title: str, rows: Sequence[Text]) -> None:
        super().__init__()
        self._title, self._rows = title, rows

    def compose(self) -> ComposeResult:
        with Vertical(id="choose", classes="window") as window:
            window.border_title = Text(self._title).markup
            window.border_subtitle = "enter chooses, esc closes"
            yield OptionList(*(Option(row) for row in self._rows), id="choices")

    def on_mount(self) -> None:
        self.query_one("#choices").focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_index)


Use: TypeAlias = Callable[[str], Awaitable[Callable[[], object] | None]]
"""Takes the path of a file; returns what to do once the window that asked for it is closed."""


class _Paths(Suggester):
    """Completes a path by the first entry of its folder that begins so."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        return await asyncio.to_thread(_completed, value)


def _completed(path: str) -> str | None:
    folder, slash, start = path.rpartition("/")
    with suppress(OSError):
        entries = sorted(os.scandir(Path((folder + slash) or ".").expanduser()), key=lambda entry: entry.name)
        found = (each for each in entries if start and each.name.startswith(start) and each.name != start)
        if entry := next(found, None):
            return f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}"
    return None


class AskWindow(ModalScreen[None]):
    """A path to fill in, with completion, and recent files to choose from; it closes once the path was of use."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close")]

    def __init__(self, title: str, placeholder: str, use: Use, recent: Sequence[str]) -> None:
        """``use`` may raise EnvcheckError: it is shown, and what was typed stays."""
        super().__init__()
        self._title, self._placeholder, self._use, self._recent = title, placeholder, use, recent

    def compose(self) -> ComposeResult:
        with Vertical(id="ask", classes="window") as window:
            window.border_title = Text(self._title).markup
            window.border_subtitle = "right completes, tab: recent files, enter continues, esc closes"
            yield Input(placeholder=self._placeholder, id="answer", compact=True, suggester=_Paths())
            yield Static("", id="ask-problem", markup=False)
            if self._recent:
                yield OptionList(*(Option(Text(name)) for name in self._recent), id="choices")

    def on_mount(self) -> None:
        self.query_one("#answer").focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self._try(event.value.strip())

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._try(self._recent[event.option_index])

    @work(exclusive=True, exit_on_error=False)
    async def _try(self, name: str) -> None:
        try:
            afterwards = await self._use(name)
        except EnvcheckError as error:
            self.query_one("#ask-problem", Static).update(Text(clean(str(error), ascii_only=False)))
        else:
            self.dismiss(None)
            if afterwards is not None:
                self.app.call_later(afterwards)


_TITLE, _KEY = 60, 15  # Columns of a window's title, and before what a key does
_MOST_RECENT = 8
_DRAWN = 3  # Times that the screen is drawn before a picture is taken: a new layout may lead to another


class WindowedApp(App["Report"]):
    """Opens windows, each over the report as it was when the window was opened."""

    def __init__(self, options: Options, client: Client) -> None:
        super().__init__()
        self.client = client
        self.report: Report | None = None
        self._page_options = options
        self._opened: list[str] = []

    def show(self, report: Report) -> None:
        """Show a report in place of the current one."""
        raise NotImplementedError

    @property
    def paint(self) -> Paint:
        return Paint(dark=self.current_theme.dark, ascii_only=self._page_options.ascii)

    def tell(self, words: str, *, severity: str = "information") -> None:
        """A notification, cleaned and never read as markup."""
        cleaned = Pen(self._page_options).text(words)
        self.notify(cleaned, severity=severity, timeout=8, markup=False)  # type: ignore[arg-type]

    def open_page(self, title: str, lines: Callable[[Pen], Sequence[Line]]) -> None:
        def laid_out(columns: int) -> Text:
            return self.paint.lines(lines(Pen(self._page_options._replace(width=columns))), columns)

        self.push_screen(TextWindow(Pen(self._page_options).clip(title, _TITLE), laid_out))

    def open_list(self, title: str, rows: Sequence[Text], choose: Callable[[int], object]) -> None:
        """Open a list; ``choose`` is called with the number of the chosen row."""

        def chosen(number: int | None) -> None:
            if number is not None:
                choose(number)

        self.push_screen(ChooseWindow(title, rows), chosen)

    def open_saved(self, title: str, use: Use, wanted: str = "path of a report that --format json wrote") -> None:
        """Ask for the path of a saved report; ``use`` may raise EnvcheckError."""
        written = sorted(Path().glob("*.json"), key=lambda path: -path.stat().st_mtime)[:_MOST_RECENT]
        recent = list(dict.fromkeys((*self._opened, *map(str, written))))[:_MOST_RECENT]
        self.push_screen(AskWindow(title, wanted, use, recent))

    def remember(self, name: str) -> None:
        """Offer a file first when the next one is asked for."""
        self._opened = [name, *(each for each in self._opened if each != name)]

    def action_keys(self) -> None:
        parts = ((row[:_KEY], row[_KEY:]) if row.startswith(" ") else ("", row) for row in KEYS.splitlines())
        lines = [(StyledSpan(key, "command"), StyledSpan(action, "" if key else "title")) for key, action in parts]
        self.open_page("keys", lambda _pen: lines)

    def action_compare(self) -> None:
        report = self.report
        if report is None:
            self.tell("There is no report yet")
            return

        async def compare(name: str) -> Callable[[], object]:
            plain = self._page_options._replace(color=False)  # the page has its own colours
            lines = (await self.client.ask("compared", name, report, plain)).splitlines()
            self.remember(name)
            window = TextWindow("differences", lambda _columns: Text("\n").join(map(self.paint.text, lines)))
            return partial(self.push_screen, window)

        self.open_saved("compare with an earlier report", compare)

    def action_export(self) -> None:
        from envcheck.tui.widgets.choices import choices, export

        report, formats = self.report, choices()
        if report is None:
            self.tell("There is no report yet")
            return

        async def write(number: int) -> None:
            form, home = list(formats)[number], self._page_options.home
            try:
                path = await export(report, form, self.client, home, self._picture_of)
            except EnvcheckError as error:
                self.tell(str(error), severity="error")
            else:
                self.tell(f"Written: {path}")

        rows = [self.paint.text(f"{name:<{_KEY}} {shows}") for name, shows in formats.items()]
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
