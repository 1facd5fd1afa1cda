"""The four places: each is built when it is first looked at, and filled when it is looked at and there is news."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import Input, TabbedContent, TabPane

from envcheck.report import Options
from envcheck.tui.screens.overview import Overview
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.client import Desk

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.tui.screens.facts import Facts
    from envcheck.tui.screens.speed import Speed
    from envcheck.tui.screens.whatif import WhatIf
    from envcheck.tui.widgets.telemetry import Telemetry

TABS = ("overview", "performance", "matrix", "facts")
_FOCUS = {
    "overview": "#findings",
    "performance": "#speed-page",
    "matrix": "#whatif-grid",
    "facts": "#facts-tree",
}


class Place(TabPane):
    """Blank until it is built."""

    def render(self) -> str:
        return ""


class Tabs(TabbedContent):
    """Knows which places are built, and which show an older report."""

    def __init__(
        self,
        options: Options,
        desk: Desk,
        paint: Callable[[], Paint],
        telemetry: Callable[[], Telemetry] | None = None,
    ) -> None:
        super().__init__(id="tabs")
        self._page_options, self._desk, self._paint, self._telemetry = options, desk, paint, telemetry
        self.overview = Overview(options)
        # Of the others each is there once it is built.
        self.speed: Speed | None = None
        self.what_if: WhatIf | None = None
        self.facts: Facts | None = None
        self._report: Report | None = None
        self._may_watch = False
        self._built, self._stale = {"overview"}, set(TABS)
        self._field = ""  # that is to be focused when its place stands

    def compose_places(self) -> ComposeResult:
        """The panes; the first with its screen in it."""
        with Place("1 Overview", id="overview"):
            yield self.overview
        yield Place("2 Performance", id="performance")
        yield Place("3 Matrix", id="matrix")
        yield Place("4 Facts", id="facts")

    def on_mount(self) -> None:
        self.query_one("ContentTabs").can_focus = False

    @property
    def place(self) -> str:
        """What is in front."""
        return self.active or TABS[0]

    def show(self, report: Report, *, may_watch: bool) -> None:
        """Show another report, the places behind when they come to the front.

        ``may_watch``: whether NVML may be read for it.
        """
        self._report, self._may_watch = report, may_watch
        self._stale = set(TABS)
        self._fill()
        if not isinstance(self.screen.focused, Input):
            self.focus_place()

    def repaint(self) -> None:
        """Take the colours of another theme."""
        self._stale |= {"overview", "performance"}
        self._fill()
        for screen in (self.what_if, self.facts):
            if screen is not None:
                screen.repaint(self._paint())

    def go_to(self, place: str, field: str = "") -> None:
        """Bring a place to the front, and focus ``field`` of it or what it is mostly used by."""
        self._field = field
        self.active = place
        if place in self._built:
            self._settle_focus()  # now, so that both places are drawn once, and not again for who has the focus
            self.call_after_refresh(self._settle_focus)

    def focus_place(self) -> None:
        """Let keys go to the place in front."""
        wanted = self._field or _FOCUS[self.place]
        if self.active_pane is not None and self.active_pane.display:  # what is not shown yet takes no focus
            self._field = ""
            for widget in self.query(wanted):
                self.screen.set_focus(widget)  # at once: what is asked next looks at who has it

    def _settle_focus(self) -> None:
        """Focus what was asked for, else the place in front, unless a field of it takes the keys already."""
        focused = self.screen.focused
        if self._field or not isinstance(focused, Input) or self.active_pane not in focused.ancestors:
            self.focus_place()

    async def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        """Build, fill and focus what is now in front."""
        event.stop()
        place = event.pane.id or ""
        if place not in self._built:
            with self.app.batch_update():
                await self._build(place)
                self.screen.refresh(layout=True)  # before anything of it is drawn, or it is not told of its size
            self._built.add(place)
        if self.speed is not None:
            self.speed.watch_gpus(wanted=place == "performance" and self._may_watch)
        self._fill()
        self.call_after_refresh(self._settle_focus)

    def _on_tab_pane_focused(self, event: TabPane.Focused) -> None:
        """A field of a place that goes behind gets the focus for a moment: that does not bring the place back."""
        event.stop()
        event.prevent_default()

    async def _build(self, place: str) -> None:
        pane, paint = self.query_one(f"#{place}", Place), self._paint()
        if place == "performance":
            from envcheck.tui.screens.speed import Speed
            from envcheck.tui.widgets.telemetry import Telemetry

            speed = Speed((self._telemetry or Telemetry)(), paint)
            await pane.mount(speed)
            self.speed = speed
        elif place == "matrix":
            from envcheck.tui.screens.whatif import WhatIf

            what_if = WhatIf(self._page_options, paint, self._desk)
            await pane.mount(what_if)
            self.what_if = what_if
        else:
            from envcheck.tui.screens.facts import Facts

            facts = Facts(paint)
            await pane.mount(facts)
            self.facts = facts

    def _fill(self) -> None:
        """Bring the place in front up to date, if it is not."""
        report, place, paint = self._report, self.place, self._paint()
        if report is None or place not in self._stale or place not in self._built:
            return
        self._stale.discard(place)
        if place == "overview":
            self.overview.show(report, paint, final=True)
        elif self.speed is not None and place == "performance":
            self.speed.show(report, paint)
        elif self.what_if is not None and place == "matrix":
            self.what_if.show(report)
        elif self.facts is not None:
            self.facts.show(report)
