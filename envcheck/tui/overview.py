"""The first screen: the verdict with its cause and fix, the stack, and what was found."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from envcheck.checks import Check, Report
from envcheck.report import Options
from envcheck.report.findings import Outline
from envcheck.report.head import head_lines
from envcheck.report.pen import WORDS, Pen, Span, screen_rows
from envcheck.report.room import ROOMS
from envcheck.report.stack import stack_lines
from envcheck.report.tail import not_tried
from envcheck.report.verbose import check_lines
from envcheck.tui.paint import Paint

_LEAST_FOR_DETAILS = 110
"""Columns from which on the details stand beside the findings."""


class Overview(Vertical):
    """What the report says, most important first."""

    class Chosen(Message):
        """A finding was chosen by Enter or a click."""

        def __init__(self, check: Check) -> None:
            super().__init__()
            self.check = check

    def __init__(self, options: Options) -> None:
        super().__init__(id="overview-body")
        self._options = options
        self._checks: list[Check] = []
        self.report: Report | None = None

    def compose(self) -> ComposeResult:
        yield Static("Examining this machine …", id="verdict")
        yield Static("", id="stack")
        with Horizontal(id="found"):
            yield OptionList(id="findings", markup=False)
            with VerticalScroll(id="details", can_focus=False):
                yield Static("", id="detail-text")

    @property
    def selected(self) -> Check | None:
        """The finding under the cursor; the primary one when none is."""
        place = self.query_one("#findings", OptionList).highlighted
        if place is not None and place < len(self._checks):
            return self._checks[place]
        return self._checks[0] if self._checks else None

    def show(self, report: Report, paint: Paint, *, final: bool) -> None:
        """Show ``report``; one that is not ``final`` fills the stack alone."""
        self.report = report
        pen = self._pen(self.size.width or 80)
        outline = Outline(report)
        if final:
            self.query_one("#verdict", Static).update(paint.lines(self._head(outline, pen)))
        self.query_one("#stack", Static).update(paint.lines(stack_lines(report, pen, ROOMS[2])))
        self._fill(outline, pen, paint)
        self.show_detail(paint)

    def _head(self, outline: Outline, pen: Pen) -> list[tuple[Span, ...]]:
        """The verdict in the roomiest way that leaves half of the screen to the rest."""
        most = max(5, (self.size.height or 22) * 2 // 5)
        laid_out = [head_lines(outline, pen, room) for room in ROOMS]
        lines = next((lines for lines in laid_out if screen_rows(lines, pen.width) <= most), laid_out[-1])
        untried = not_tried(outline.report).replace("(--deep)", "(d)").replace("(--bench)", "(b)")
        return [*lines, (Span(untried, "dim"),)] if untried else lines

    def _fill(self, outline: Outline, pen: Pen, paint: Paint) -> None:
        listing = self.query_one("#findings", OptionList)
        before = listing.highlighted
        self._checks = _in_order(outline)
        listing.clear_options()
        listing.add_options(Option(_row(check, pen, paint)) for check in self._checks)
        listing.border_title = f"{len(self._checks)} checks"
        if self._checks:
            listing.highlighted = min(before or 0, len(self._checks) - 1)

    def show_detail(self, paint: Paint) -> None:
        """What is known of the finding under the cursor, where there is room for it."""
        details = self.query_one("#details")
        details.display = self.size.width >= _LEAST_FOR_DETAILS
        check = self.selected
        if details.display and check is not None and self.report is not None:
            width = max(40, self.size.width // 2 - 4)
            lines = check_lines(check, self.report, self._pen(width))
            self.query_one("#detail-text", Static).update(paint.lines(lines))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the details."""
        event.stop()
        self.post_message(self.Chosen(self._checks[event.option_index]))

    def _pen(self, width: int) -> Pen:
        return Pen(Options(width=width, ascii=self._options.ascii, home=self._options.home))


def _in_order(outline: Outline) -> list[Check]:
    """Findings, notes, open questions, then what passed; what was not looked at is left to the facts."""
    told: Iterable[Check] = (check for finding in (*outline.findings, *outline.notes) for check in finding.checks)
    first = list(dict.fromkeys(check.id for check in told))
    by_id = {check.id: check for check in outline.report.checks}
    rest = [check for check in outline.report.checks if check.id not in first and check.status != "skipped"]
    return [*(by_id[name] for name in first), *rest]


def _row(check: Check, pen: Pen, paint: Paint) -> Text:
    title = f"not judged: {check.title}" if check.status == "unknown" else check.title
    told = (Span(f"{WORDS[check.status]:<5}", check.status), Span(pen.text(title)), Span(f"  {check.rule}", "dim"))
    return paint.line(told)
