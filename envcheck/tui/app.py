"""The application: five tabs over one report, sessions in the background, keys."""

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

from msgspec.structs import replace
from rich.text import Text
from textual import work
from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.command import CommandPalette
from textual.events import Event, Key, Resize
from textual.screen import Screen
from textual.widgets import OptionList, Static

from envcheck.errors import EnvcheckError
from envcheck.pipeline.warm_up import WarmUp
from envcheck.report import Options
from envcheck.report.page.pen import Pen, StyledSpan
from envcheck.report.page.plain import made_at
from envcheck.tui.tabs import KEY_BINDINGS, Tabs
from envcheck.tui.widgets.base import KeyFooter, MainScreen, StatusText, draw_scrollbars
from envcheck.tui.widgets.paint import THEMES, first_theme
from envcheck.tui.windows import TextWindow, WindowedApp
from envcheck.tui.worker.sessions import Answer, Client, Examine, Session, Sessions, examine_in_worker, probe_alone

if TYPE_CHECKING:
    from textual.widgets import DataTable

    from envcheck.fleet.record import Fleet
    from envcheck.model.checks import Report
    from envcheck.pipeline.request import Request
    from envcheck.tui.worker.telemetry import Telemetry

_REDRAW, _REDRAW_BEHIND = 2, 10
"""Ticks between updates, and below a window, where Textual redraws the screen and the window for each."""
_KEYS_FIRST, _REDRAW_AT_LATEST = 0.15, 5
"""Seconds without updates after a key, so that its answer is drawn first, and ticks until one comes anyway."""
_WARM_UP = ("screens.gpus", "screens.speed", "screens.whatif", "screens.facts", "widgets.choices")
"""Modules that only other tabs and windows need; a thread imports them once there is a report to read."""
_FIRST_SCREEN = 0.05  # Seconds for drawing the first screen before probes use the processors
_LEAST = (60, 16)  # Columns and rows below which nothing but that is shown
_TIGHT = 30  # Rows of the terminal below which blank rows are left out


class EnvcheckApp(WindowedApp):
    """The application; its return value is the last report."""

    CSS_PATH = "envcheck.tcss"
    TITLE = "envcheck"
    BINDINGS: ClassVar[list[BindingType]] = [*KEY_BINDINGS]

    def __init__(
        self,
        request: Request,
        options: Options,
        *,
        saved: Report | None = None,
        fleet: Fleet | None = None,
        examine: Examine = examine_in_worker,
        answer: Answer | None = None,
        telemetry: Callable[[], Telemetry] | None = None,
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        """``saved``: a report to show instead of examining this machine; ``fleet``: a fleet to choose one from.
        ``examine``, ``answer`` and ``telemetry`` replace the worker processes and the machine in tests.
        """
        super().__init__(options, Client(answer))
        self.sessions = Sessions(request, examine)
        self.report, self.fleet = saved, fleet
        self.problem = ""  # Why there is no report; empty while there may still be one
        self._modules = WarmUp(*(partial(import_module, f"envcheck.tui.{name}") for name in _WARM_UP))
        self._nvml = WarmUp(partial(import_module, "pynvml"))  # its import takes longer than a key may
        self._is_saved = saved is not None or fleet is not None
        self._ticks, self._last_key = 0, 0.0
        self._top = StatusText("envcheck", id="top")
        self.tabs = Tabs(options, self.client, lambda: self.paint, telemetry)
        for theme in THEMES:
            self.register_theme(theme)
        if "TEXTUAL_ANIMATIONS" not in variables:
            self.animation_level = "none"  # every frame delays keys, more so on a slow line
        if "TEXTUAL_THEME" not in variables:
            self.theme = first_theme(variables)
        self.set_class(options.ascii, "-ascii")
        draw_scrollbars(ascii_only=options.ascii)

    def get_default_screen(self) -> MainScreen:
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        yield self._top
        yield Static("Too small: envcheck needs 60 x 16", id="too-small")
        with self.tabs:
            yield from self.tabs.compose_panes()
        yield KeyFooter(self._is_of_use)

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda _theme: self.tabs.repaint())
        with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread
            # SIGTERM must end the children too.
            asyncio.get_running_loop().add_signal_handler(
                signal.SIGTERM, lambda: self.run_worker(self.action_quit(), exit_on_error=False)
            )
        if self.fleet is not None:
            self.call_after_refresh(self.show_fleet, self.fleet)
        elif self.report is not None:
            self.call_after_refresh(self.show, self.report)
        else:
            self.set_timer(_FIRST_SCREEN, lambda: self.sessions.begin("Examining this machine"))
        self.set_interval(0.1, self._tick)

    def show(self, report: Report) -> None:
        self.report, self.problem = report, ""
        driver = report.snapshot.driver if report.snapshot else None
        nvml = driver.nvml if driver else None
        # Only where NVML has answered before: elsewhere it may hang or create device nodes.
        may_watch = not self._is_saved and nvml is not None and nvml.code == 0
        self.tabs.show(report, may_watch=may_watch)
        self._show_top()
        self._load_rule_pages(report)
        self._modules.start()
        if may_watch:
            self._nvml.start()
        gc.set_threshold(100_000)  # what makes few cycles in one check makes many in hours
        gc.freeze()  # else every collection visits the whole report: some 50 ms in which no key is answered

    @work(exclusive=True, group="rules", exit_on_error=False)
    async def _load_rule_pages(self, report: Report) -> None:
        """Add what rules say about themselves to the details."""
        names = [*{check.rule for check in report.checks}]
        with suppress(EnvcheckError):  # the details are complete without it
            self.tabs.overview.set_rule_pages(await self.client.ask("rule_pages", names), self.paint)

    def _begin(
        self, activity: str, change: Callable[[Request], Request] | None = None, keep: Iterable[str] | None = ()
    ) -> None:
        """Start a session; it keeps the facts of probes of these kinds (None: all probes)."""
        if self._is_saved:
            self.tell("Saved report: live checks are unavailable")
        elif self._is_idle():
            self.sessions.begin(activity, change, keep)

    def _is_idle(self) -> bool:
        session = self.sessions.current
        if session is not None:
            self.tell(f"{session.activity} is still running (x cancels)")
        return session is None

    def _tick(self) -> None:
        """Take the result of a session that ended; update what shows progress when it is time."""
        if not self._screen_stack or not self._top.is_attached:
            return  # the screen is being taken down
        ended = self.sessions.take_ended()
        if ended is not None:
            self._finish(ended)
            self._show_top()
        self._ticks += 1
        if not self._is_time_to_redraw():
            return
        self._ticks = 0
        if (session := self.sessions.current) is not None:
            if self.report is None and self.tabs.current == "overview":  # the first report as it grows
                interim = session.take_interim()
                if interim is not None:
                    self.tabs.overview.show(interim, self.paint, final=False)
                self.tabs.overview.show_progress(session.activity, session.progress, self.paint)
            if session.measures and self.tabs.speed is not None:
                self.tabs.speed.show_progress(session, self.report, self.paint)
            self._show_top()
        if self.tabs.gpus is not None and self.tabs.current == "gpus" and len(self.screen_stack) == 1:
            self.tabs.gpus.show_now()  # behind a window, each change would draw both anew

    def _is_time_to_redraw(self) -> bool:
        if len(self.screen_stack) > 1:
            return self._ticks >= _REDRAW_BEHIND
        answering = time.monotonic() - self._last_key < _KEYS_FIRST
        return self._ticks >= (_REDRAW_AT_LATEST if answering else _REDRAW)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key):
            self._last_key = time.monotonic()
        await super().on_event(event)

    def _finish(self, ended: Session) -> None:
        """Show what a session found, unless it was cancelled and there is a better report."""
        if self.tabs.speed is not None:
            self.tabs.speed.hide_progress()
        if ended.problem or ended.report is None:
            self.tell(ended.problem, severity="error")
            if self.report is None:
                self.problem = ended.problem
                self.tabs.overview.show_problem(ended.problem, self.paint)
            return
        if ended.stopping.is_set():
            self.tell("Cancelled")
            if self.report is not None and not ended.report.measurements:
                return
        self.sessions.facts = ended.facts
        self.show(ended.report)

    def _show_top(self) -> None:
        session, report = self.sessions.current, self.report
        if session is not None:
            words = f"{session.activity}: {session.progress.summary()}"
        else:
            parts = [report.host or "", made_at(report), f"{report.duration_s:.1f} s"] if report else []
            words = "  ".join(filter(None, parts))
        self._top.show(Text.assemble(("envcheck  ", "bold"), Pen(self._page_options).text(words)))

    def on_resize(self, event: Resize) -> None:
        for widget in (*self.screen_stack, self.tabs.overview):
            widget.set_class(event.size.height < _TIGHT, "-tight")
            widget.set_class(event.size.width < _LEAST[0] or event.size.height < _LEAST[1], "-small")

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_list.is_attached:  # the message comes late when the application closes at once
            self.tabs.overview.show_detail(self.paint)
            self.screen.refresh_bindings()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open a window with all details of a finding."""
        report, finding = self.report, self.tabs.overview.finding_at(event.option_index)
        if report is not None and finding is not None:
            from envcheck.tui.screens.pages import finding_lines

            documentation = self.tabs.overview.documentation(finding)
            self.open_page(finding.rule, lambda pen: finding_lines(finding, report, pen, documentation))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open a GPU with its last minute, as it goes on, and its checks."""
        from envcheck.tui.screens.gpus import history_lines, number_of
        from envcheck.tui.widgets.choices import gpu_lines

        report, screen = self.report, self.tabs.gpus
        if report is None or screen is None:
            return
        number = event.cursor_row
        gpu = report.gpus[number]

        def gpu_page(columns: int) -> Text:
            pen = Pen(self._page_options._replace(width=columns))
            now = history_lines(gpu, screen.trace(gpu), columns, 2, self.paint)
            return Text("\n\n").join([now, self.paint.lines(gpu_lines(report, number, pen), columns)])

        self.push_screen(TextWindow(f"GPU {number_of(gpu, number)}", gpu_page, live=screen.trace(gpu) is not None))

    def action_links(self) -> None:
        from envcheck.tui.screens.gpus import LINK_LEGEND, link_lines

        report = self.report
        if report is None or not report.gpus:
            self.tell("No GPU is known")
        else:
            legend = (StyledSpan(LINK_LEGEND, "dim"),)
            self.open_page("links between GPUs", lambda _pen: [*link_lines(report), (), legend])

    def action_tab(self, name: str) -> None:
        self.tabs.go_to(name)

    def action_filter(self) -> None:
        """Choose the layer whose findings are listed."""
        from envcheck.model.checks import LAYERS
        from envcheck.tui.screens.pages import count_text

        checks = self.report.checks if self.report else ()
        of_layers = {layer: [check for check in checks if check.layer == layer] for layer in LAYERS}
        layers = [layer for layer, found in of_layers.items() if count_text(found)]
        rows = [f"{'all':<11}{count_text(checks)}", *(f"{name:<11}{count_text(of_layers[name])}" for name in layers)]
        self.tabs.go_to("overview")
        self.open_list(
            "findings of a layer",
            [self.paint.text(row) for row in rows],
            lambda row: self.tabs.overview.show_layer(layers[row - 1] if row else None),
        )

    def action_move(self, lines: int) -> None:
        focused = self.focused
        action = getattr(focused, "action_cursor_down" if lines > 0 else "action_cursor_up", None)
        if action is not None:
            action()
        elif focused is not None:
            focused.scroll_relative(y=lines, animate=False)

    def _is_of_use(self, action: str) -> bool:
        """Whether a key of the footer has anything to act on; one that has not says so when it is pressed."""
        if action == "app.copy":
            check = self.tabs.overview.selected
            return check is not None and any(fix.command for fix in check.fixes)
        return action != "app.filter" or self.report is None or len({check.layer for check in self.report.checks}) > 1

    def action_copy(self) -> None:
        """Copy the fix command, and show it for terminals that do not let programs copy."""
        from envcheck.tui.widgets.choices import command_of

        check = self.tabs.overview.selected
        command = command_of(check) if check is not None else ""
        if not command:
            self.tell("No automatic fix for this finding")
            return
        self.copy_to_clipboard(command)
        title = "copied; if your terminal blocks copying, select it here"
        self.push_screen(TextWindow(title, lambda _columns: Text(command)))

    def action_again(self) -> None:
        probe = self.tabs.facts.probe if self.tabs.facts and self.tabs.current == "facts" else None
        if probe is None:
            self._begin("Examining again")
        else:
            self._begin(f"Running probe {probe}", partial(probe_alone, probe=probe), None)

    def action_deep(self) -> None:
        self._begin("Testing frameworks", lambda request: replace(request, deep=True), ("bench",))

    def action_bench(self, full: bool) -> None:  # noqa: FBT001
        from envcheck.collect.plan import BenchRequest
        from envcheck.tui.screens.speed import nothing_to_measure

        bench, speed = BenchRequest(full=full), self.tabs.speed
        try:
            if speed is not None:
                bench = speed.requested(full=full)
        except EnvcheckError as error:
            self.tell(str(error), severity="warning")
            return
        self.tabs.go_to("performance")
        if self.report is not None and not self._is_saved and (why := nothing_to_measure(self.report)):
            self.tell(why, severity="warning")
            return
        self._begin("Measuring", lambda request: replace(request, bench=bench), ("deep",))

    def action_cancel(self) -> None:
        if self.sessions.current is None:
            self.tell("No task is running; q quits")
        self.sessions.stop()

    def action_environments(self) -> None:
        """List the environments; the last row stands for a scan for more."""
        from envcheck.tui.widgets.choices import environment_rows

        found, rows = environment_rows(self.report, self.paint) if self.report else ((), ())

        def check(number: int) -> None:
            if self._is_saved or self._is_idle():
                chosen = {"python": (found[number],)} if number < len(found) else {"all_envs": True}
                self.sessions.request = replace(self.sessions.request, **chosen)
                self._begin("Examining again")

        more = self.paint.text("scan for environments", "dim")
        self.open_list("environments; enter checks one", [*rows, more], check)

    def action_open(self) -> None:
        if self._is_idle():
            self.open_saved("open a saved report", self._show_saved)

    async def _show_saved(self, name: str) -> None:
        from envcheck.tui.widgets.choices import read_saved

        report = await asyncio.to_thread(read_saved, name)
        self.remember(name)
        self._is_saved = True
        self.show(report)

    def action_fleet(self) -> None:
        """Show the fleet that is open, else ask for one; from it, open the report of a node."""
        if not self._is_idle():
            return
        if self.fleet is not None:
            self.show_fleet(self.fleet)
            return
        from envcheck.tui.screens.fleet import read_fleet

        async def read(name: str) -> Callable[[], object]:
            return partial(self.show_fleet, await asyncio.to_thread(read_fleet, name))

        self.open_saved("open a fleet report", read, "path of a report that envcheck fleet --format jsonl wrote")

    def show_fleet(self, fleet: Fleet) -> None:
        from envcheck.tui.screens.fleet import FleetPage

        self.fleet = fleet

        async def read(name: str) -> None:
            try:
                await self._show_saved(name)
            except EnvcheckError as error:
                self.tell(f"{name}: {error}", severity="error")

        def chosen(name: str | None) -> None:
            if name is not None:
                self.run_worker(read(name), exit_on_error=False)

        self.push_screen(FleetPage(fleet, self.paint, self._page_options), chosen)

    def action_toggle_theme(self) -> None:
        self.theme = THEMES[self.current_theme.dark].name

    def action_search(self) -> None:
        """Focus the package field in the matrix; elsewhere go to the search field of the facts."""
        if self.tabs.current == "matrix":
            self.tabs.go_to("matrix", "#ask-package")
        else:
            self.tabs.go_to("facts", "#facts-search")

    def action_leave_field(self) -> None:
        self.tabs.focus_current()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: what the keys do, and what Textual offers."""
        for binding in KEY_BINDINGS:
            if binding.tooltip:
                title, _, words = binding.tooltip.partition(": ")
                key = self.get_key_display(binding)
                yield SystemCommand(title, f"{words} ({key})".lstrip(), partial(self.run_action, binding.action))
        yield from (command for command in super().get_system_commands(screen) if command.title != "Screenshot")

    def action_command_palette(self) -> None:
        if not CommandPalette.is_open(self):  # type: ignore[arg-type]
            self.push_screen(CommandPalette(placeholder="search for a command", id="--command-palette"))

    async def action_quit(self) -> None:
        """Exit when the children of a session have ended."""
        self.client.end()
        await self.sessions.close()
        self.exit(self.report)

    def end_session(self) -> None:
        """End all worker processes, however the application ended."""
        self.client.end()
        self.sessions.end()
