"""The five tabs, and what keys do: the bindings, the page of keys, and the command palette.

A tab is built when it first comes to the front, and filled when the report has changed since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input, TabbedContent, TabPane

from envcheck.report import Options
from envcheck.tui.screens.overview import OverviewTab
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.sessions import Client

if TYPE_CHECKING:
    from envcheck.model.checks import Report
    from envcheck.tui.screens.facts import FactsTab
    from envcheck.tui.screens.gpus import GpusTab
    from envcheck.tui.screens.speed import Speed
    from envcheck.tui.screens.whatif import WhatIf
    from envcheck.tui.worker.telemetry import Telemetry


TABS = ("overview", "gpus", "performance", "matrix", "facts")
_FOCUS = dict(zip(TABS, ("#findings", "#gpus-table", "#speed-page", "#whatif-grid", "#facts-tree"), strict=True))


class LazyPane(TabPane):
    """Blank until it is built."""

    def render(self) -> str:
        return ""


class Tabs(TabbedContent):
    """Knows which tabs are built, and which show an older report."""

    def __init__(
        self,
        options: Options,
        client: Client,
        paint: Callable[[], Paint],
        telemetry: Callable[[], Telemetry] | None = None,
    ) -> None:
        super().__init__(id="tabs")
        self._page_options, self._client, self._paint, self._telemetry = options, client, paint, telemetry
        self.overview = OverviewTab(options)
        # The others are None until they are built.
        self.gpus: GpusTab | None = None
        self.speed: Speed | None = None
        self.what_if: WhatIf | None = None
        self.facts: FactsTab | None = None
        self._report: Report | None = None
        self._may_watch = False
        self._built, self._stale = {"overview"}, set(TABS)
        self._field = ""  # to focus once its tab is built

    def compose_panes(self) -> ComposeResult:
        """The panes; only the first has its content."""
        with LazyPane("1 Overview", id="overview"):
            yield self.overview
        yield LazyPane("2 GPUs", id="gpus")
        yield LazyPane("3 Performance", id="performance")
        yield LazyPane("4 Matrix", id="matrix")
        yield LazyPane("5 Facts", id="facts")

    def on_mount(self) -> None:
        self.query_one("ContentTabs").can_focus = False

    @property
    def current(self) -> str:
        return self.active or TABS[0]

    def show(self, report: Report, *, may_watch: bool) -> None:
        """Show another report; tabs behind follow when they come to the front. ``may_watch``: whether to read NVML."""
        self._report, self._may_watch = report, may_watch
        self._stale = set(TABS)
        self._fill()
        if not isinstance(self.screen.focused, Input):
            self.focus_current()

    def repaint(self) -> None:
        """Use the colours of the current theme."""
        self._stale |= {"overview", "gpus", "performance"}
        self._fill()
        for screen in (self.what_if, self.facts):
            if screen is not None:
                screen.repaint(self._paint())

    def go_to(self, tab: str, field: str = "") -> None:
        """Bring a tab to the front and focus ``field``, or its main widget."""
        self._field = field
        self.active = tab
        if tab in self._built:
            self._settle_focus()  # before the tabs are drawn, so that the focus does not draw them again
            self.call_after_refresh(self._settle_focus)

    def focus_current(self) -> None:
        """Let keys go to the tab in front."""
        wanted = self._field or _FOCUS[self.current]
        if self.active_pane is not None and self.active_pane.display:  # hidden widgets cannot take the focus
            self._field = ""
            for widget in self.query(wanted):
                self.screen.set_focus(widget)  # at once: callers read the focus next

    def _settle_focus(self) -> None:
        """Focus the requested field, else the tab in front, unless an input of it has the focus already."""
        focused = self.screen.focused
        if self._field or not isinstance(focused, Input) or self.active_pane not in focused.ancestors:
            self.focus_current()

    async def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        """Build, fill and focus the tab that came to the front."""
        event.stop()
        tab = event.pane.id or ""
        if tab not in self._built:
            with self.app.batch_update():
                await self._build(tab)
                self.screen.refresh(layout=True)  # before the first drawing, else its widgets learn no size
            self._built.add(tab)
        if self.gpus is not None:
            self.gpus.follow(wanted=tab == "gpus" and self._may_watch)
        self._fill()
        self.call_after_refresh(self._settle_focus)

    def _on_tab_pane_focused(self, event: TabPane.Focused) -> None:
        """Ignore that an input of the tab that goes behind has the focus for a moment: the tab must not come back."""
        event.stop()
        event.prevent_default()

    async def _build(self, tab: str) -> None:
        pane, paint = self.query_one(f"#{tab}", LazyPane), self._paint()
        if tab == "gpus":
            from envcheck.tui.screens.gpus import GpusTab
            from envcheck.tui.worker.telemetry import Telemetry

            await pane.mount(gpus := GpusTab((self._telemetry or Telemetry)(), paint))
            self.gpus = gpus
        elif tab == "performance":
            from envcheck.tui.screens.speed import Speed

            await pane.mount(speed := Speed(paint))
            self.speed = speed
        elif tab == "matrix":
            from envcheck.tui.screens.whatif import WhatIf

            await pane.mount(what_if := WhatIf(self._page_options, paint, self._client))
            self.what_if = what_if
        else:
            from envcheck.tui.screens.facts import FactsTab

            await pane.mount(facts := FactsTab(paint))
            self.facts = facts

    def _fill(self) -> None:
        """Show the current report in the tab in front."""
        report, tab, paint = self._report, self.current, self._paint()
        if report is None or tab not in self._stale or tab not in self._built:
            return
        self._stale.discard(tab)
        if tab == "overview":
            self.overview.show(report, paint, final=True)
        elif self.gpus is not None and tab == "gpus":
            self.gpus.follow(wanted=self._may_watch)
            self.gpus.show(report, paint)
        elif self.speed is not None and tab == "performance":
            self.speed.show(report, paint)
        elif self.what_if is not None and tab == "matrix":
            self.what_if.show(report)
        elif self.facts is not None:
            self.facts.show(report)


KEY_BINDINGS = [
    Binding("q", "quit", "quit"),
    Binding("question_mark", "keys", "keys"),
    *(Binding(str(number), f"tab('{name}')", name, show=False) for number, name in enumerate(TABS, 1)),
    Binding("j", "move(1)", "down", show=False),
    Binding("k", "move(-1)", "up", show=False),
    Binding("c", "copy", "copy fix", show=False, tooltip="Copy the fix: the command of the selected finding"),
    Binding("d", "deep", "deep", tooltip="Test frameworks: import each framework and run it on the GPU"),
    Binding("b", "bench(False)", "bench", tooltip="Measure: the main figures"),
    Binding("B", "bench(True)", "bench all", show=False, tooltip="Measure everything: takes some minutes"),
    Binding("r", "again", "re-run", tooltip="Run all checks again: run all probes"),
    Binding("x", "cancel", "cancel", show=False, tooltip="Cancel: cancel the running task"),
    Binding("ctrl+c", "cancel", "cancel", show=False, system=True),
    Binding("e", "export", "export", show=False, tooltip="Export: JSON, Markdown, HTML, a picture"),
    Binding("l", "links", "links", show=False, tooltip="Links: how the GPUs are joined"),
    Binding("p", "environments", "environments", show=False, tooltip="Environments: check another environment"),
    Binding("o", "open", "open", show=False, tooltip="Open a saved report"),
    Binding("equals_sign", "compare", "compare", show=False, tooltip="Compare with a saved report"),
    Binding("f", "filter", "filter", show=False, tooltip="Filter: list the findings of one layer"),
    Binding("F", "fleet", "fleet", show=False, tooltip="Fleet: open a fleet report"),
    Binding("t", "toggle_theme", "dark or light", show=False, tooltip="Dark or light"),
    Binding("slash", "search", "search", show=False, tooltip="Search: search the facts"),
    Binding("escape", "leave_field", "leave the field", show=False),
]
"""A tooltip is also the title of the command in the palette, and what it does."""

KEYS = """\
Everywhere
  1 to 5       overview, GPUs, performance, matrix, facts
  j k  arrows  down and up             enter  open
  r            run all checks again; in the facts one probe
  d            deep: import each framework and run it on the GPU
  b  B         measure the main figures; measure everything
  x            cancel the running task
  p            list environments to check another one
  t            dark or light           ctrl+p  all commands
  ?  q         these keys; quit
Overview
  c            copy the fix command
  f            list the findings of one layer
GPUs
  l            how the GPUs are joined; enter: one GPU
Matrix, facts
  /            edit the question; search the facts
  i            matrix: what to install here
Files
  e            export: JSON, Markdown, HTML, a picture ...
  o  =         open a saved report; compare with a saved report
  F            open a fleet report, and from it the report of a node

envcheck changes nothing on this machine.
It shows fixes and never runs them."""
