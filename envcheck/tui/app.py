"""The application: four tabs over one report, sessions in the background, keys."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static, TabbedContent, TabPane

from envcheck.errors import EnvcheckError
from envcheck.report import Options
from envcheck.report.pen import Pen
from envcheck.tui.detail import Ask, Choose, Page
from envcheck.tui.overview import Overview
from envcheck.tui.paint import THEMES, Paint, first_theme
from envcheck.tui.plain import draw_scrollbars
from envcheck.tui.sessions import Gather, Parts, Session, gather_here

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.session import Request
    from envcheck.tui.facts import Facts
    from envcheck.tui.speed import Speed
    from envcheck.tui.telemetry import Telemetry
    from envcheck.tui.whatif import WhatIf

TABS = ("overview", "performance", "matrix", "facts")
_FOCUS = {
    "overview": "#findings",
    "performance": "#speed-page",
    "matrix": "#whatif-grid",
    "facts": "#facts-tree",
}
_TICK = 0.1
_FIRST_SCREEN = 0.05
"""Seconds in which the first screen is drawn before probes take the processors."""
_PATIENCE = 5.0
"""Seconds that leaving waits for children to end."""
_TITLE = 60
"""Columns of a window's title."""
_TIGHT = 30
"""Rows below which blank ones between the parts are left out."""
KEYS = """\
1 2 3 4      overview, performance, matrix, facts
j k  arrows  up and down            enter  all about a finding
c            copy the command that mends it
r            examine again; in the facts, on a probe: that probe alone
d            deep: import each framework and let it compute on the GPU
b  B         measure the main figures; measure everything
x            cancel what is under way
g  p         the GPUs; the environments, and judge another one
e            export: JSON, Markdown, HTML, a picture ...
o  =         open a saved report; compare with a saved report
/            search the facts; in the matrix: ask something else
t            dark or light          ctrl+p  all commands
q            leave

Nothing is changed on this machine: fixes are shown, never run."""


class EnvcheckApp(App["Report"]):
    """The whole of it; its return value is the last report."""

    CSS_PATH = "envcheck.tcss"
    TITLE = "envcheck"
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
        Binding("x", "cancel", "cancel", show=False),
        Binding("ctrl+c", "cancel", "cancel", show=False, system=True),
        Binding("e", "export", "export"),
        Binding("g", "gpus", "GPUs", show=False),
        Binding("p", "environments", "environments", show=False),
        Binding("o", "open", "open", show=False),
        Binding("equals_sign", "compare", "compare", show=False),
        Binding("t", "look", "dark or light", show=False),
        Binding("slash", "search", "search"),
        Binding("escape", "leave_field", "leave the field", show=False),
    ]

    def __init__(
        self,
        request: Request,
        options: Options,
        *,
        gather: Gather = gather_here,
        saved: Report | None = None,
        telemetry: Callable[[], Telemetry] | None = None,
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        """``saved``: a report to look at, where nothing is to be examined. ``gather`` and ``telemetry`` stand in tests
        for the machine.
        """
        super().__init__()
        self._request, self._page_options, self._gather, self._telemetry = request, options, gather, telemetry
        self._saved = saved is not None
        self._session: Session | None = None
        self._parts: Parts = {}
        self._field = ""  # that is to be focused when its screen stands
        self._to_show = set(TABS)
        self.report: Report | None = saved
        for theme in THEMES:
            self.register_theme(theme)
        if "TEXTUAL_THEME" not in variables:
            self.theme = first_theme(variables)
        self.set_class(options.ascii, "-ascii")
        draw_scrollbars(ascii_only=options.ascii)

    def compose(self) -> ComposeResult:
        yield Static("envcheck", id="top")
        with TabbedContent(id="tabs"):
            with TabPane("1 Overview", id="overview"):
                yield Overview(self._page_options)
            yield TabPane("2 Performance", id="performance")
            yield TabPane("3 Matrix", id="matrix")
            yield TabPane("4 Facts", id="facts")
        footer = Footer()
        footer.compact = True
        yield footer

    def on_mount(self) -> None:
        self.query_one(TabbedContent).query_one("ContentTabs").can_focus = False
        self.theme_changed_signal.subscribe(self, self._repaint)
        self._heed_signals()
        if self.report is not None:
            self.call_after_refresh(self._show_all)
        else:
            self.set_timer(_FIRST_SCREEN, lambda: self._run(self._request, "Examining this machine", {}))
        self.set_interval(_TICK, self._tick)

    def _heed_signals(self) -> None:
        """A terminal that goes away, or a polite kill, must end the children too."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread
                loop.add_signal_handler(number, lambda: self.run_worker(self.action_quit(), exit_on_error=False))

    @property
    def paint(self) -> Paint:
        """Colours for the theme as it is now."""
        return Paint(dark=self.current_theme.dark, ascii_only=self._page_options.ascii)

    @property
    def overview(self) -> Overview:
        """The first screen, also while something lies over it."""
        return self.screen_stack[0].query_one(Overview)

    @property
    def home(self) -> str:
        """The user's home folder, to be shown as ``~``."""
        return self._page_options.home

    # Sessions

    def _run(self, request: Request, doing: str, kept: Parts) -> None:
        self._session = Session(request, doing, gather=self._gather, kept=kept)
        self._session.start()

    def _begin(self, request: Callable[[Request], Request], doing: str, kinds: Iterable[str] | None = ()) -> None:
        """Start a session, keeping what probes of these ``kinds`` told (None: all probes)."""
        if self._saved:
            self.tell("this is a saved report: nothing is examined")
        elif self._session is not None:
            self.tell(f"{self._session.doing.lower()} is still under way (x cancels)")
        else:
            from envcheck.tui.sessions import kept_of

            kept = self._parts if kinds is None else kept_of(self._parts, kinds)
            self._run(request(self._request), doing, kept)

    def _tick(self) -> None:
        """Look in on the session, and say what is under way, or what the report is about."""
        if not self._screen_stack or not self.screen_stack[0].query("#top"):
            return  # the screen is being taken down
        session = self._session
        if session is not None:
            news = session.news()
            if session.over:
                self._ended(session)
            elif news is not None and self.report is None:
                self.overview.show(news, self.paint, final=False)
        self._say()

    def _ended(self, session: Session) -> None:
        self._session = None
        if self._is_there("performance"):
            self._speed.quiet()
        if session.problem or session.report is None:
            self.tell(session.problem, severity="error")
            return
        if session.stopped:
            self.tell("cancelled")
            if self.report is not None and not session.report.measurements:
                return
        self._parts, self.report = session.parts, session.report
        self._show_all()

    def _say(self) -> None:
        session, pen = self._session, Pen(self._page_options)
        if session is None:
            report = self.report
            told = [report.host or "", report.created, f"{report.duration_s:.1f} s"] if report else []
            words = "  ".join(part for part in told if part)
        else:
            words = f"{session.doing}: {session.work.words()}"
            if self.report is None:
                self.overview.show_work(session.doing, session.work, self.paint)
            if session.request.bench is not None and self._is_there("performance"):
                self._speed.say(session, self.report, self.paint)
        top = self.screen_stack[0].query_one("#top", Static)
        top.update(Text.assemble(("envcheck  ", "bold"), pen.text(words)))
        if self._is_there("performance") and self._place == "performance":
            self._speed.show_now(self.paint)

    # What is shown

    def _show_all(self) -> None:
        self._to_show = set(TABS)
        self._show(self._place)
        if not isinstance(self.focused, Input) and len(self.screen_stack) == 1:
            self._focus_tab()

    def _show(self, place: str) -> None:
        """Bring a screen up to date, if it is not."""
        if self.report is None or place not in self._to_show or not self._is_there(place):
            return
        self._to_show.discard(place)
        if place == "overview":
            self.overview.show(self.report, self.paint, final=True)
        elif place == "performance":
            self._speed.show(self.report, self.paint)
        elif place == "matrix":
            self._what_if.show(self.report)
        else:
            self._facts.show(self.report)

    def _repaint(self, _theme: object) -> None:
        self._to_show |= {"overview", "performance"}
        self._show(self._place)
        if self._is_there("matrix"):
            self._what_if.repaint(self.paint)
        if self._is_there("facts"):
            self._facts.repaint(self.paint)

    async def _make(self, place: str) -> None:
        """Build a screen when it is first looked at: the first one is to stand as soon as can be."""
        pane = self.screen_stack[0].query_one(f"#{place}", TabPane)
        if place == "performance":
            from envcheck.tui.speed import Speed
            from envcheck.tui.telemetry import Telemetry

            await pane.mount(Speed((self._telemetry or Telemetry)(), self.paint))
        elif place == "matrix":
            from envcheck.tui.whatif import WhatIf

            await pane.mount(WhatIf(self._page_options, self.paint))
        else:
            from envcheck.tui.facts import Facts

            await pane.mount(Facts(self.paint))

    async def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        """Build, fill and focus what is now in front."""
        place = event.pane.id or ""
        if not self._is_there(place):
            await self._make(place)
        if self._is_there("performance"):
            self._speed.watch_gpus(wanted=place == "performance" and self._may_watch())
        self._show(place)
        if not isinstance(self.focused, Input) or not self.focused.is_on_screen:
            self.call_after_refresh(self._focus_tab)

    def _may_watch(self) -> bool:
        """Whether NVML answered here before: it is not tried where it hangs or would create device nodes."""
        driver = self.report.snapshot.driver if self.report and self.report.snapshot else None
        return not self._saved and driver is not None and driver.nvml is not None and driver.nvml.code == 0

    def _is_there(self, place: str) -> bool:
        return bool(self.screen_stack[0].query_one(f"#{place}", TabPane).children)

    @property
    def _place(self) -> str:
        return self.screen_stack[0].query_one(TabbedContent).active or TABS[0]

    @property
    def _speed(self) -> Speed:
        from envcheck.tui.speed import Speed

        return self.screen_stack[0].query_one(Speed)

    @property
    def _what_if(self) -> WhatIf:
        from envcheck.tui.whatif import WhatIf

        return self.screen_stack[0].query_one(WhatIf)

    @property
    def _facts(self) -> Facts:
        from envcheck.tui.facts import Facts

        return self.screen_stack[0].query_one(Facts)

    def _focus_tab(self) -> None:
        wanted, self._field = self._field or _FOCUS[self._place], ""
        for widget in self.screen_stack[0].query(wanted):
            widget.focus()

    def on_resize(self, event: Resize) -> None:
        """Lay out anew what depends on the width."""
        for widget in (*self.screen_stack, self.overview):
            widget.set_class(event.size.height < _TIGHT, "-tight")

    def on_option_list_option_highlighted(self, _event: OptionList.OptionHighlighted) -> None:
        self.overview.show_detail(self.paint)

    def on_overview_chosen(self, event: Overview.Chosen) -> None:
        if self.report is not None:
            from envcheck.tui.pages import finding_lines

            report, finding = self.report, event.finding
            self._page(finding.rule, lambda pen: finding_lines(finding, report, pen))

    def on_speed_wanted(self) -> None:
        self.action_bench(full=False)

    def _page(self, title: str, lines: Callable[[Pen], object]) -> None:
        """Open a page of lines."""

        def laid_out(columns: int) -> Text:
            options = Options(width=columns, ascii=self._page_options.ascii, home=self._page_options.home)
            return self.paint.lines(lines(Pen(options)))  # type: ignore[arg-type]

        self.push_screen(Page(Pen(self._page_options).clip(title, _TITLE), laid_out))

    def tell(self, words: str, *, severity: str = "information") -> None:
        """A word at the edge of the screen, cleaned and never read as markup."""
        told = Pen(self._page_options).text(words)
        self.notify(told, severity=severity, timeout=8, markup=False)  # type: ignore[arg-type]

    # Keys

    def action_tab(self, name: str) -> None:
        self.query_one(TabbedContent).active = name
        if self._is_there(name):
            self.call_after_refresh(self._focus_tab)

    def action_move(self, lines: int) -> None:
        focused = self.focused
        action = getattr(focused, "action_cursor_down" if lines > 0 else "action_cursor_up", None)
        if action is not None:
            action()
        elif focused is not None:
            focused.scroll_relative(y=lines, animate=False)

    def action_keys(self) -> None:
        self.push_screen(Page("keys", lambda _columns: Text(KEYS)))

    def action_copy(self) -> None:
        """Copy the command; it is shown too, for terminals that do not let programs copy."""
        from envcheck.tui.choices import command_of

        check = self.overview.selected
        command = command_of(check) if check is not None else ""
        if not command:
            self.tell("there is no command that mends this")
            return
        self.copy_to_clipboard(command)
        self.push_screen(Page("copied; where the terminal does not allow it, select it here", lambda _: Text(command)))

    def action_again(self) -> None:
        probe = self._facts.probe if self._place == "facts" else None
        if probe is None:
            self._begin(lambda request: request, "Examining again")
        else:
            self._begin(lambda request: _probe_alone(request, probe), f"Running probe {probe}", None)

    def action_deep(self) -> None:
        import msgspec

        self._begin(lambda request: msgspec.structs.replace(request, deep=True), "Trying frameworks", ("bench",))

    def action_bench(self, full: bool) -> None:  # noqa: FBT001
        import msgspec

        from envcheck.collect.bench_plan import Bench

        bench = Bench(full=full)
        if self._is_there("performance"):
            try:
                bench = self._speed.wanted(full=full)
            except EnvcheckError as error:
                self.tell(str(error), severity="warning")
                return
        self.action_tab("performance")
        self._begin(lambda request: msgspec.structs.replace(request, bench=bench), "Measuring", ("deep",))

    def action_cancel(self) -> None:
        if self._session is None:
            self.tell("nothing is under way; q leaves")
        else:
            self._session.stop()

    def action_gpus(self) -> None:
        from envcheck.tui.choices import gpu_lines, gpu_rows

        report = self.report
        if report is None or not (rows := gpu_rows(report, self.paint)):
            self.tell("no GPU is known")
            return

        def chosen(number: int | None) -> None:
            if number is not None:
                self._page(f"GPU {number}", lambda pen: gpu_lines(report, number, pen))

        self.push_screen(Choose("GPUs", rows), chosen)

    def action_environments(self) -> None:
        import msgspec

        from envcheck.tui.choices import environment_rows

        keys, rows = environment_rows(self.report, self.paint) if self.report else ((), ())

        def chosen(number: int | None) -> None:
            if number is None:
                return
            if number == len(keys):
                self._request = msgspec.structs.replace(self._request, all_envs=True)
            else:
                self._request = msgspec.structs.replace(self._request, python=(keys[number],))
            self._begin(lambda request: request, "Examining again")

        further = self.paint.text("look for environments in all known places", "dim")
        self.push_screen(Choose("environments; enter judges one", [*rows, further]), chosen)

    def action_export(self) -> None:
        from envcheck.tui.export import CHOICES, export

        if self.report is None:
            self.tell("there is no report yet")
            return

        def chosen(number: int | None) -> None:
            if number is not None:
                self.run_worker(export(self, list(CHOICES)[number]), exit_on_error=False)

        rows = [self.paint.text(f"{name:<10} {told}") for name, told in CHOICES.items()]
        self.push_screen(Choose("export into the working folder", rows), chosen)

    async def show_report(self, report: Report) -> None:
        """Show another report in place of the present one until the next refresh (for a picture of it)."""
        self.report = report
        self._show_all()
        await asyncio.sleep(_TICK)

    def action_open(self) -> None:
        from envcheck.tui.choices import read_saved

        def named(name: str | None) -> None:
            if name is None:
                return
            try:
                self.report = read_saved(name)
            except EnvcheckError as error:
                self.tell(str(error), severity="error")
                return
            self._saved = True
            self._show_all()

        if self._session is not None:
            self.tell(f"{self._session.doing.lower()} is still under way (x cancels)")
            return
        self.push_screen(Ask("open a saved report", "path of a report that --format json wrote"), named)

    def action_compare(self) -> None:
        from envcheck.tui.choices import compared

        def named(name: str | None) -> None:
            if name is None or self.report is None:
                return
            try:
                text = compared(name, self.report, self._page_options)
            except EnvcheckError as error:
                self.tell(str(error), severity="error")
                return
            paint = self.paint
            lines = text.splitlines()
            self.push_screen(Page("compared", lambda _: Text("\n").join([paint.text(line) for line in lines])))

        self.push_screen(Ask("compare with an earlier report", "path of a report that --format json wrote"), named)

    def action_look(self) -> None:
        self.theme = THEMES[self.current_theme.dark].name

    def action_search(self) -> None:
        """To the field of the matrix, where that is in front; else to the one that searches the facts."""
        if self._place == "matrix":
            self._field = "#ask-package"
            self._focus_tab()
        else:
            self._field = "#facts-search"
            self.action_tab("facts")

    def action_leave_field(self) -> None:
        self._focus_tab()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: what the keys do, in words, and what Textual offers."""
        yield SystemCommand("Examine again", "Run all probes (r)", self.action_again)
        yield SystemCommand("Try frameworks", "Import each and let it compute on the GPU (d)", self.action_deep)
        yield SystemCommand("Measure", "The main figures (b)", lambda: self.action_bench(full=False))
        yield SystemCommand("Measure everything", "Some minutes (B)", lambda: self.action_bench(full=True))
        yield SystemCommand("Cancel", "End what is under way (x)", self.action_cancel)
        yield SystemCommand("Export", "JSON, Markdown, HTML, a picture (e)", self.action_export)
        yield SystemCommand("Open a saved report", "(o)", self.action_open)
        yield SystemCommand("Compare with a saved report", "(=)", self.action_compare)
        yield SystemCommand("GPUs", "One by one (g)", self.action_gpus)
        yield SystemCommand("Environments", "Judge another one (p)", self.action_environments)
        yield from (command for command in super().get_system_commands(screen) if command.title != "Screenshot")

    def action_command_palette(self) -> None:
        if not CommandPalette.is_open(self):  # type: ignore[arg-type]
            self.push_screen(CommandPalette(placeholder="search for a command", id="--command-palette"))

    async def action_quit(self) -> None:
        """Leave, once the children of a session have ended."""
        session = self._session
        if session is not None:
            session.stop()
            for _ in range(round(_PATIENCE / _TICK)):
                if session.over:
                    break
                await asyncio.sleep(_TICK)
        self.exit(self.report)

    def end_session(self) -> None:
        """Whatever ended the application: end the children too."""
        if self._session is not None:
            self._session.stop()
            self._session.join(_PATIENCE)


def _probe_alone(request: Request, probe: str) -> Request:
    """A request for one probe, of whatever kind."""
    import msgspec

    from envcheck.collect.bench_plan import Bench
    from envcheck.collect.catalog import all_probes

    kind = next((spec.kind for spec in all_probes() if spec.name == probe), "file")
    bench = Bench() if kind == "bench" else None
    return msgspec.structs.replace(request, probes=(probe,), deep=kind == "deep", bench=bench)
