"""The first screen: the verdict with its cause and fix, the stack, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from envcheck.report.pen import Line, Pen, Span
from envcheck.report.wrap import clip
from envcheck.tui.paint import Paint
from envcheck.tui.work import Work

if TYPE_CHECKING:
    from envcheck.checks import Check, Report
    from envcheck.report import Options
    from envcheck.report.findings import Finding

BESIDE, BELOW = 110, 36
"""Columns from which on the details stand beside the findings, and rows from which on they stand below them."""
_LEAST_LISTED = 4
"""Rows that the list of findings always keeps."""
_SCROLLBAR = 1


class Overview(Vertical):
    """What the report says, most important first."""

    class Chosen(Message):
        """A finding was chosen by Enter or a click."""

        def __init__(self, finding: Finding) -> None:
            super().__init__()
            self.finding = finding

    def __init__(self, options: Options) -> None:
        super().__init__(id="overview-body")
        self._options = options
        self._found: list[Finding] = []
        self._last: tuple[Paint, bool] | None = None
        self.report: Report | None = None

    def compose(self) -> ComposeResult:
        yield Static("Examining this machine", id="verdict")
        yield Static("", id="stack")
        with Horizontal(id="found"):
            yield OptionList(id="findings")
            with VerticalScroll(id="details", can_focus=False):
                yield Static("", id="detail-text")

    @property
    def selected(self) -> Check | None:
        """The finding under the cursor; the first when none is."""
        place = self.query_one("#findings", OptionList).highlighted
        if place is not None and place < len(self._found):
            return self._found[place].lead
        return self._found[0].lead if self._found else None

    def show_work(self, doing: str, work: Work, paint: Paint) -> None:
        """What is under way, where there is no verdict yet."""
        pen = self._pen()
        lines: list[Line] = [(Span(doing, "title"), Span(f"  {work.counted()}", "dim"))]
        room = max(1, self.size.height // 2 - 3)
        running = work.running
        for probe in running[:room]:
            told = f"  looking  {probe.name:<16} {probe.seconds:5.1f} s  {probe.text}"
            lines.append((Span(pen.clip(told, pen.width), "dim"),))
        if len(running) > room:
            lines.append((Span(f"  and {len(running) - room} more", "dim"),))
        self.query_one("#verdict", Static).update(paint.lines(lines))

    def show(self, report: Report, paint: Paint, *, final: bool) -> None:
        """Show ``report``; one that is not ``final`` leaves the verdict open."""
        from envcheck.report.findings import Outline
        from envcheck.tui import pages

        self.report, self._last = report, (paint, final)
        pen = self._pen()
        outline = Outline(report)
        stack = pages.stack(report, pen, final=final)
        if final:
            most = max(6, self.size.height - len(stack) - _LEAST_LISTED - self._blank_rows())
            self.query_one("#verdict", Static).update(paint.lines(pages.head(outline, pen, most)))
        self.query_one("#stack", Static).update(paint.lines(stack))
        self._place_details()
        self._fill(pages.in_order(outline, final=final), pen, paint)
        self.show_detail(paint)

    def on_resize(self) -> None:
        """Lay out anew for another width."""
        if self.report is not None and self._last is not None:
            paint, final = self._last
            self.show(self.report, paint, final=final)

    def _blank_rows(self) -> int:
        """Rows between the parts."""
        return 0 if self.has_class("-tight") else 2

    def _place_details(self) -> None:
        """Details beside the findings, below them, or only by Enter."""
        beside, below = self.size.width >= BESIDE, self.size.height >= BELOW
        self.query_one("#details").display = beside or below
        self.query_one("#found").set_class(not beside, "-below")

    def _fill(self, found: list[Finding], pen: Pen, paint: Paint) -> None:
        listing = self.query_one("#findings", OptionList)
        before = self.selected.id if self._found and self.selected else None
        self._found = found
        columns = self._list_columns()
        listing.clear_options()
        listing.add_options(Option(_row(finding, columns, pen, paint)) for finding in found)
        if found:
            again = (number for number, finding in enumerate(found) if finding.lead.id == before)
            listing.highlighted = next(again, 0)

    def _list_columns(self) -> int:
        width = self.size.width
        return max(20, (width // 2 if width >= BESIDE else width) - _SCROLLBAR)

    def show_detail(self, paint: Paint) -> None:
        """What is known of the finding under the cursor, where there is room for it."""
        check = self.selected
        if not self.query_one("#details").display or check is None or self.report is None:
            return
        from envcheck.report.verbose import check_lines

        width = self._list_columns() - 2 if self.size.width >= BESIDE else self.size.width - _SCROLLBAR
        lines = check_lines(check, self.report, self._pen(width))
        self.query_one("#detail-text", Static).update(paint.lines(lines))
        self.query_one("#details").scroll_home(animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the details."""
        event.stop()
        self.post_message(self.Chosen(self._found[event.option_index]))

    def _pen(self, width: int | None = None) -> Pen:
        from envcheck.report import Options

        columns = (self.size.width or 80) if width is None else width
        return Pen(Options(width=columns, ascii=self._options.ascii, home=self._options.home))


def _row(finding: Finding, columns: int, pen: Pen, paint: Paint) -> Text:
    """A finding in one row: its word, its title, and at the right its rule where there is room for it."""
    from envcheck.report.pen import WORDS
    from envcheck.report.wrap import width
    from envcheck.tui.pages import title_of

    word = f"{WORDS[finding.status]:<5}"
    title = pen.text(title_of(finding))
    rule = pen.text(finding.rule)
    room = columns - len(word)
    if width(title) + width(rule) + 2 > room:
        return paint.line((Span(word, finding.status), Span(clip(title, room, pen.mark))))
    gap = " " * (room - width(title) - width(rule))
    return paint.line((Span(word, finding.status), Span(title), Span(gap), Span(rule, "dim")))
