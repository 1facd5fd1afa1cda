"""The application: four places over one report, sessions beside it, keys."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.command import CommandPalette
from textual.events import Event, Key, Resize
from textual.screen import Screen
from textual.widgets import OptionList

from envcheck.errors import EnvcheckError
from envcheck.pipeline.warm_up import WarmUp
from envcheck.report import Options
from envcheck.report.page.essentials import made_at
from envcheck.report.page.pen import Pen
from envcheck.tui import keys
from envcheck.tui.screens.overview import Overview
from envcheck.tui.tabs import Tabs
from envcheck.tui.widgets.base import Front, KeyLine, Live, draw_scrollbars
from envcheck.tui.widgets.paint import THEMES, Paint, first_theme
from envcheck.tui.windows import Windows
from envcheck.tui.worker import requests
from envcheck.tui.worker.client import Desk, ProcessAside, Put
from envcheck.tui.worker.runner import Runner
from envcheck.tui.worker.sessions import Examine, Session, examine_aside

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.pipeline.request import Request
    from envcheck.tui.widgets.telemetry import Telemetry

_TICK = 0.1
_SHOWN, _BEHIND = 2, 10
"""Ticks after which news is shown, and on a screen behind a window, where all of both is drawn anew with it."""
_KEYS_FIRST, _LATEST = 0.15, 5
"""Seconds after a key in which its answer is drawn and no news, and ticks after which news is shown all the same."""
_LATER = (
    "screens.speed",
    "widgets.telemetry",
    "widgets.figures",
    "screens.whatif",
    "screens.facts",
    "widgets.choices",
    "widgets.detail",
)
"""Modules of this package that only other places and windows need; imported when there is something to read."""
_FIRST_SCREEN = 0.05
"""Seconds in which the first screen is drawn before probes take the processors."""
_TIGHT = 30
"""Rows below which blank ones between the parts are left out."""


class EnvcheckApp(App["Report"]):
    """The whole of it; its return value is the last report."""

    CSS_PATH = "envcheck.tcss"
    TITLE = "envcheck"
    BINDINGS: ClassVar[list[BindingType]] = keys.BINDINGS

    def __init__(
        self,
        request: Request,
        options: Options,
        *,
        saved: Report | None = None,
        examine: Examine = examine_aside,
        put: Put | None = None,
        telemetry: Callable[[], Telemetry] | None = None,
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        """``saved``: a report to look at, where nothing is to be examined. ``examine``, ``put`` and ``telemetry`` stand
        in tests for the processes beside the application and for the machine.
        """
        super().__init__()
        self._aside = ProcessAside()
        self.desk = Desk(put or self._aside)
        self.runner = Runner(request, examine)
        self.windows = Windows(self, options)
        self.report: Report | None = saved
        self.problem = ""
        """Why there is no report; empty while there may still be one."""
        self._later = WarmUp(*(partial(import_module, f"envcheck.tui.{name}") for name in _LATER))
        self._binding = WarmUp(partial(import_module, "pynvml"))  # of NVML; its import takes longer than a key may
        self._saved = saved is not None
        self._page_options = options
        self._ticks, self._pressed = 0, 0.0
        self._top = Live("envcheck", id="top")
        self.tabs = Tabs(options, self.desk, lambda: self.paint, telemetry)
        """What lies under all windows."""
        for theme in THEMES:
            self.register_theme(theme)
        if "TEXTUAL_ANIMATIONS" not in variables:
            self.animation_level = "none"  # each frame costs a key some time, and a slow line more
        if "TEXTUAL_THEME" not in variables:
            self.theme = first_theme(variables)
        self.set_class(options.ascii, "-ascii")
        draw_scrollbars(ascii_only=options.ascii)

    def get_default_screen(self) -> Front:
        return Front(id="_default")

    def compose(self) -> ComposeResult:
        yield self._top
        with self.tabs:
            yield from self.tabs.compose_places()
        footer = KeyLine()
        footer.compact = True
        yield footer

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda _theme: self.tabs.repaint())
        self._heed_signals()
        if self.report is not None:
            self.call_after_refresh(self.show, self.report)
        else:
            self.set_timer(_FIRST_SCREEN, lambda: self.runner.begin("Examining this machine", requests.plain))
        self.set_interval(_TICK, self._tick)

    def _heed_signals(self) -> None:
        """A polite kill must end the children too."""
        loop = asyncio.get_running_loop()
        with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread
            loop.add_signal_handler(signal.SIGTERM, lambda: self.run_worker(self.action_quit(), exit_on_error=False))

    @property
    def paint(self) -> Paint:
        """Colours for the theme as it is now."""
        return Paint(dark=self.current_theme.dark, ascii_only=self._page_options.ascii)

    @property
    def home(self) -> str:
        """The user's home folder, to be shown as ``~``."""
        return self._page_options.home

    def tell(self, words: str, *, severity: str = "information") -> None:
        """A word at the edge of the screen, cleaned and never read as markup."""
        told = Pen(self._page_options).text(words)
        self.notify(told, severity=severity, timeout=8, markup=False)  # type: ignore[arg-type]

    def show(self, report: Report) -> None:
        """Show a report in place of the present one."""
        self.report, self.problem = report, ""
        may_watch = not self._saved and requests.nvml_answered(report)
        self.tabs.show(report, may_watch=may_watch)
        self._say()
        self._learn_rules()
        self._later.start()
        if may_watch:
            self._binding.start()
        gc.freeze()  # else each search for garbage goes through all of it: some 50 ms in which no key is answered

    @work(exclusive=True, group="rules", exit_on_error=False)
    async def _learn_rules(self) -> None:
        """What the rules say of themselves stands in the details."""
        with suppress(EnvcheckError):  # the details are whole without it
            self.tabs.overview.learn(await self.desk.rule_pages(), self.paint)

    # Sessions

    def _begin(self, doing: str, wish: requests.Wish, keep: Iterable[str] | None = ()) -> None:
        """Start a session, keeping what probes of these kinds told (None: all probes)."""
        if self._saved:
            self.tell("this is a saved report: nothing is examined")
        elif self._is_free():
            self.runner.begin(doing, wish, keep)

    def _is_free(self) -> bool:
        session = self.runner.session
        if session is not None:
            self.tell(f"{session.doing.lower()} is still under way (x cancels)")
        return session is None

    def _tick(self) -> None:
        """Look in on the session, and say what is under way, or what the report is about."""
        if not self._screen_stack or not self._top.is_attached:
            return  # the screen is being taken down
        ended = self.runner.take_ended()
        if ended is not None:
            self._take(ended)
        self._ticks += 1
        if not self._is_time_to_show():
            return
        self._ticks = 0
        if self.runner.session is not None:
            self._follow(self.runner.session)
        self._say()
        speed = self.tabs.speed
        if speed is not None and self.tabs.place == "performance":
            speed.show_now(self.paint)

    def _is_time_to_show(self) -> bool:
        if len(self.screen_stack) > 1:
            return self._ticks >= _BEHIND
        answering = time.monotonic() - self._pressed < _KEYS_FIRST
        return self._ticks >= (_LATEST if answering else _SHOWN)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key):
            self._pressed = time.monotonic()
        await super().on_event(event)

    def _take(self, ended: Session) -> None:
        """Show what a session found, unless it was broken off and there is something better to see."""
        if self.tabs.speed is not None:
            self.tabs.speed.quiet()
        if ended.problem or ended.report is None:
            self.tell(ended.problem, severity="error")
            if self.report is None:
                self.problem = ended.problem
                self.tabs.overview.show_problem(ended.problem, self.paint)
            return
        if ended.stopped:
            self.tell("cancelled")
            if self.report is not None and not ended.report.measurements:
                return
        self.runner.keep(ended)
        self.show(ended.report)

    def _follow(self, session: Session) -> None:
        """Show what is under way, and the first report as it grows."""
        speed = self.tabs.speed
        if self.report is None and self.tabs.place == "overview":
            news = session.news()
            if news is not None:
                self.tabs.overview.show(news, self.paint, final=False)
            self.tabs.overview.show_work(session.doing, session.work, self.paint)
        if session.measures and speed is not None:
            speed.say(session, self.report, self.paint)

    def _say(self) -> None:
        session, report = self.runner.session, self.report
        if session is not None:
            words = f"{session.doing}: {session.work.words()}"
        else:
            told = [report.host or "", made_at(report), f"{report.duration_s:.1f} s"] if report else []
            words = "  ".join(part for part in told if part)
        self._top.put(Text.assemble(("envcheck  ", "bold"), Pen(self._page_options).text(words)))

    # What the places ask for

    def on_resize(self, event: Resize) -> None:
        """Lay out anew what depends on the height."""
        for widget in (*self.screen_stack, self.tabs.overview):
            widget.set_class(event.size.height < _TIGHT, "-tight")

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_list.is_attached:  # it is told late when the application ends at once
            self.tabs.overview.show_detail(self.paint)

    def on_overview_chosen(self, event: Overview.Chosen) -> None:
        if self.report is not None:
            from envcheck.tui.screens.pages import finding_lines

            report, finding, told = self.report, event.finding, self.tabs.overview.documentation(event.finding)
            self.windows.page(finding.rule, lambda pen: finding_lines(finding, report, pen, told))

    def on_speed_wanted(self) -> None:
        self.action_bench(full=False)

    # Keys

    def action_tab(self, name: str) -> None:
        self.tabs.go_to(name)

    def action_move(self, lines: int) -> None:
        focused = self.focused
        action = getattr(focused, "action_cursor_down" if lines > 0 else "action_cursor_up", None)
        if action is not None:
            action()
        elif focused is not None:
            focused.scroll_relative(y=lines, animate=False)

    def action_keys(self) -> None:
        self.windows.keys()

    def action_copy(self) -> None:
        """Copy the command; it is shown too, for terminals that do not let programs copy."""
        from envcheck.tui.widgets.choices import command_of

        check = self.tabs.overview.selected
        command = command_of(check) if check is not None else ""
        if not command:
            self.tell("there is no command that mends this")
            return
        self.copy_to_clipboard(command)
        self.windows.command(command)

    def action_again(self) -> None:
        probe = self.tabs.facts.probe if self.tabs.facts and self.tabs.place == "facts" else None
        if probe is None:
            self._begin("Examining again", requests.plain)
        else:
            self._begin(f"Running probe {probe}", partial(requests.probe_alone, probe=probe), None)

    def action_deep(self) -> None:
        self._begin("Trying frameworks", requests.deep, ("bench",))

    @work(exclusive=True, group="bench", exit_on_error=False)
    async def action_bench(self, full: bool) -> None:  # noqa: FBT001
        from envcheck.collect.bench_plan import Bench

        bench, speed = Bench(full=full), self.tabs.speed
        try:
            if speed is not None:
                bench = speed.wanted(full=full)
                await self.desk.named(bench.only)
        except EnvcheckError as error:
            self.tell(str(error), severity="warning")
            return
        self.tabs.go_to("performance")
        self._begin("Measuring", partial(requests.measuring, bench=bench), ("deep",))

    def action_cancel(self) -> None:
        if self.runner.session is None:
            self.tell("nothing is under way; q leaves")
        self.runner.stop()

    def action_gpus(self) -> None:
        self.windows.gpus(self.report)

    def action_environments(self) -> None:
        def judge(environment: str | None) -> None:
            if self._saved or self._is_free():
                self.runner.request = requests.judging(self.runner.request, environment)
                self._begin("Examining again", requests.plain)

        self.windows.environments(self.report, judge)

    def action_export(self) -> None:
        if self.report is None:
            self.tell("there is no report yet")
        else:
            self.windows.export()

    def action_open(self) -> None:
        def show(report: Report) -> None:
            self._saved = True
            self.show(report)

        if self._is_free():
            self.windows.open(show)

    def action_compare(self) -> None:
        self.windows.compare(self.report)

    def action_look(self) -> None:
        self.theme = THEMES[self.current_theme.dark].name

    def action_search(self) -> None:
        """To the field of the matrix, where that is in front; else to the one that searches the facts."""
        if self.tabs.place == "matrix":
            self.tabs.go_to("matrix", "#ask-package")
        else:
            self.tabs.go_to("facts", "#facts-search")

    def action_leave_field(self) -> None:
        self.tabs.focus_place()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: what the keys do, in words, and what Textual offers."""
        for title, told, action in keys.COMMANDS:
            yield SystemCommand(title, told, partial(self.run_action, action))
        yield from (command for command in super().get_system_commands(screen) if command.title != "Screenshot")

    def action_command_palette(self) -> None:
        if not CommandPalette.is_open(self):  # type: ignore[arg-type]
            self.push_screen(CommandPalette(placeholder="search for a command", id="--command-palette"))

    async def action_quit(self) -> None:
        """Leave, once the children of a session have ended."""
        self._aside.end()
        await self.runner.leave()
        self.exit(self.report)

    def end_session(self) -> None:
        """Whatever ended the application: end the processes beside it too."""
        self._aside.end()
        self.runner.end()
