"""The application: four tabs over one report, sessions in the background, keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import msgspec
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Input, OptionList, Static, TabbedContent, TabPane

from envcheck.checks import Report
from envcheck.collect.bench_plan import Bench
from envcheck.errors import EnvcheckError
from envcheck.output import write_whole
from envcheck.report import Options, render
from envcheck.report.pen import Pen
from envcheck.session import Request
from envcheck.tui.detail import Page, command_of, finding_page
from envcheck.tui.facts import Facts
from envcheck.tui.overview import Overview
from envcheck.tui.paint import Paint
from envcheck.tui.runs import Live, Work
from envcheck.tui.speed import Speed
from envcheck.tui.whatif import WhatIf

TABS = ("overview", "performance", "matrix", "facts")
_KEYS = """  1 2 3 4   overview, performance, matrix, facts
  j k, arrows   up and down        enter   details of a finding
  c   copy the command that mends it       r   examine again
  d   deep: import each framework and let it compute on the GPU
  b   measure the main figures             B   measure everything
  e   save the report as JSON              s   save a picture of the screen (SVG)
  /   search the facts                     q   leave

Nothing is changed on this machine: fixes are shown, never run."""

Start = Callable[[Request, Callable[[Work, Report | None, bool], None]], Report]
"""Runs a session; ``Live`` by default, something that replays a report in tests."""


def _live(request: Request, changed: Callable[[Work, Report | None, bool], None]) -> Report:
    return Live(request, changed).run()


class EnvcheckApp(App[Report]):
    """The whole of it; its return value is the last report."""

    CSS_PATH = "envcheck.tcss"
    TITLE = "envcheck"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("question_mark", "keys", "keys"),
        *(Binding(str(number), f"tab('{name}')", name, show=False) for number, name in enumerate(TABS, 1)),
        Binding("j", "move(1)", "down", show=False),
        Binding("k", "move(-1)", "up", show=False),
        Binding("c", "copy", "copy fix"),
        Binding("d", "deep", "deep"),
        Binding("b", "bench(False)", "bench"),
        Binding("B", "bench(True)", "bench all", show=False),
        Binding("r", "again", "re-run"),
        Binding("e", "export", "export"),
        Binding("s", "picture", "picture", show=False),
        Binding("slash", "search", "search"),
        Binding("escape", "leave_field", "leave the field", show=False),
    ]

    def __init__(
        self, request: Request, options: Options, *, start: Start = _live, saved: Report | None = None
    ) -> None:
        """``saved``: a report to look at, where nothing is to be examined at first."""
        super().__init__()
        self._request, self._page_options, self._start = request, options, start
        self._saved = saved
        self._busy = ""
        self._shown_at = 0.0
        self._state: Work | None = None
        self.report: Report | None = saved

    def compose(self) -> ComposeResult:
        yield Static("envcheck", id="top")
        with TabbedContent(id="tabs"):
            with TabPane("1 Overview", id="overview"):
                yield Overview(self._page_options)
            with TabPane("2 Performance", id="performance"):
                yield Speed(ascii_only=self._page_options.ascii)
            with TabPane("3 Matrix", id="matrix"):
                yield WhatIf(self._page_options)
            with TabPane("4 Facts", id="facts"):
                yield Facts()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one(TabbedContent).query_one("ContentTabs").can_focus = False
        self.set_interval(0.2, self._tick)
        if self._saved is not None:
            self.call_after_refresh(self._finished, self._saved)
        else:
            self._run(self._request, "examining")

    @property
    def paint(self) -> Paint:
        """Colours for the theme as it is now."""
        return Paint(dark=self.current_theme.dark, ascii_only=self._page_options.ascii)

    @work(thread=True, exclusive=True, group="session")
    def _run(self, request: Request, doing: str) -> None:
        """A session in a thread; the screen hears of it as it goes on."""
        self._busy = doing
        self._state = Work()
        try:
            report = self._start(request, self._changed)
        except EnvcheckError as error:
            self.call_from_thread(self._failed, str(error))
            return
        except Exception as error:  # noqa: BLE001 - a session that broke must not take the screen along
            self.call_from_thread(self._failed, f"envcheck broke: {type(error).__name__}: {error}")
            return
        self.call_from_thread(self._finished, report)

    def _changed(self, state: Work, report: Report | None, final: bool) -> None:  # noqa: FBT001
        """Called from the session's threads."""
        self._state = state
        if report is not None and not final:
            self.call_from_thread(self._on_the_way, report)

    def _on_the_way(self, report: Report) -> None:
        if self._busy and self.report is None:
            self.query_one(Overview).show(report, self.paint, final=False)

    def _finished(self, report: Report) -> None:
        self._busy, self.report = "", report
        self.query_one(Overview).show(report, self.paint, final=True)
        self.query_one(Speed).show(report, self.paint)
        self.query_one(Speed).say("")
        self.query_one(Facts).show(report)
        self.query_one(WhatIf).show(report)
        if not isinstance(self.focused, Input):
            self._focus_tab()
        self._tick()

    def _failed(self, words: str) -> None:
        self._busy = ""
        self.notify(words, severity="error", timeout=15, markup=False)

    def _tick(self) -> None:
        """The line at the top: what is under way, or what the report is about."""
        if self._busy and self._state is not None:
            words = f"{self._busy}: {self._state.words()}"
            if "measur" in self._busy:
                self.query_one(Speed).say(words)
        elif self.report is not None:
            report = self.report
            words = f"{report.host or ''}  {report.created}  {report.duration_s:.1f} s".strip()
        else:
            words = ""
        self.query_one("#top", Static).update(Text.assemble(("envcheck ", "bold"), Pen(self._page_options).text(words)))

    def _focus_tab(self) -> None:
        place = self.query_one(TabbedContent).active
        wanted = {
            "overview": "#findings",
            "performance": "#speed-page",
            "matrix": "#ask-package",
            "facts": "#facts-tree",
        }
        self.query_one(wanted[place]).focus()

    def on_resize(self) -> None:
        if self.report is not None and not self._busy:
            self.call_after_refresh(lambda: self.query_one(Overview).show(self.report, self.paint, final=True))

    def on_option_list_option_highlighted(self, _event: OptionList.OptionHighlighted) -> None:
        self.query_one(Overview).show_detail(self.paint)

    def on_overview_chosen(self, event: Overview.Chosen) -> None:
        if self.report is not None:
            self.push_screen(finding_page(event.check, self.report, Pen(self._page_options), self.paint))

    def action_tab(self, name: str) -> None:
        self.query_one(TabbedContent).active = name
        self.call_after_refresh(self._focus_tab)

    def action_move(self, lines: int) -> None:
        focused = self.focused
        action = getattr(focused, "action_cursor_down" if lines > 0 else "action_cursor_up", None)
        if action is not None:
            action()
        elif focused is not None:
            focused.scroll_relative(y=lines, animate=False)

    def action_keys(self) -> None:
        self.push_screen(Page("keys", Text(_KEYS)))

    def action_copy(self) -> None:
        """Copy the command; it is shown too, for terminals that do not let programs copy."""
        check = self.query_one(Overview).selected
        command = command_of(check) if check is not None else ""
        if not command:
            self.notify("there is no command that mends this", markup=False)
            return
        self.copy_to_clipboard(command)
        self.push_screen(Page("copied; if your terminal does not allow it, select it here", Text(command)))

    def action_again(self) -> None:
        self._start_run(self._request, "examining")

    def action_deep(self) -> None:
        self._start_run(msgspec.structs.replace(self._request, deep=True), "trying frameworks")

    def action_bench(self, full: bool) -> None:  # noqa: FBT001
        self.action_tab("performance")
        self._start_run(msgspec.structs.replace(self._request, bench=Bench(full=full)), "measuring")

    def _start_run(self, request: Request, doing: str) -> None:
        if self._busy:
            self.notify(f"{self._busy} is still under way", markup=False)
        elif self._saved is not None:
            self.notify("this is a saved report: nothing is examined", markup=False)
        else:
            self._run(request, doing)

    def action_export(self) -> None:
        self._write("json", "report.json", lambda report: render(report, "json"))

    def action_picture(self) -> None:
        self._write("SVG", "screen.svg", lambda _report: self.export_screenshot())

    def _write(self, kind: str, ending: str, made: Callable[[Report], str]) -> None:
        """Write into the working folder and say where."""
        if self.report is None:
            self.notify("there is no report yet", markup=False)
            return
        path = Path.cwd() / f"envcheck-{time.strftime('%Y%m%d-%H%M%S')}-{ending}"
        try:
            write_whole(path, made(self.report))
        except EnvcheckError as error:
            self.notify(str(error), severity="error", markup=False)
        else:
            self.notify(f"{kind} written to {path}", timeout=10, markup=False)

    def action_search(self) -> None:
        self.query_one(TabbedContent).active = "facts"
        self.call_after_refresh(lambda: self.query_one("#facts-search").focus())

    def action_leave_field(self) -> None:
        if isinstance(self.focused, Input):
            self.set_focus(None)
        else:
            self._focus_tab()

    async def action_quit(self) -> None:
        self.exit(self.report)
