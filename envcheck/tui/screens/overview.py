"""The overview: the verdict with its cause and fix, the stack, the findings, and details of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from envcheck.report.page.pen import Line, Pen, StyledSpan
from envcheck.text.wrap import clip
from envcheck.tui.widgets.base import FindingList, StatusText
from envcheck.tui.widgets.paint import Paint

if TYPE_CHECKING:
    from envcheck.model.checks import Check, Report
    from envcheck.report import Options
    from envcheck.report.page.findings import Finding
    from envcheck.report.progress import ProbeProgress
    from envcheck.tui.screens.pages import RulePage

WIDE, BESIDE = 150, 110
"""Least columns to show the stack beside the verdict, and the details beside the findings."""
BELOW = 36
"""Least rows to show the details below the findings where they are not beside them."""
_ROOMY, _TALL = 26, 44
"""Least rows of the overview for frames, and for a second line of each layer."""
_LEAST_LISTED = 4
"""Rows that the list of findings always keeps."""
_FRAME, _SIDES, _SCROLLBAR = 2, 4, 1
"""Rows of a frame; columns of a frame and the margin within it."""
_MARGIN, _BADGE = 2, 2
"""Columns around a part without a frame; columns that the verdict's badge is wider than its word."""
_VERDICTS = ("pass", "warn", "fail", "unknown")


class OverviewTab(Vertical):
    """A report, most important first."""

    class Selected(Message):
        """Enter or a click on a finding."""

        def __init__(self, finding: Finding) -> None:
            super().__init__()
            self.finding = finding

    def __init__(self, options: Options) -> None:
        super().__init__(id="overview-body")
        self._options = options
        self._findings: list[Finding] = []
        self._rows: list[Text] = []
        self._last: tuple[Paint, bool] | None = None
        self._laid_out_for: Size | None = None
        self._detail: object = None  # what the details were laid out from
        self._verdict_rows, self._stack_rows = 1, 0
        self.report: Report | None = None
        self._rule_pages: Mapping[str, RulePage] = {}
        # The cursor stays on the finding that the user moved it to, else it is on the most urgent one.
        self._moved, self._own_row = False, 0

    def compose(self) -> ComposeResult:
        yield StatusText("Examining this machine", id="verdict")
        yield StatusText("", id="stack")
        yield FindingList(id="findings")
        with VerticalScroll(id="details", can_focus=False):
            yield Static("", id="detail-text")

    def on_mount(self) -> None:
        for name in ("verdict", "stack", "findings", "details"):
            self.query_one(f"#{name}").border_title = name

    @property
    def selected(self) -> Check | None:
        """The finding under the cursor, else the first."""
        finding = self._finding
        return finding.lead if finding is not None else None

    @property
    def _finding(self) -> Finding | None:
        place = self.query_one("#findings", OptionList).highlighted
        if place is not None and place < len(self._findings):
            return self._findings[place]
        return self._findings[0] if self._findings else None

    def show_progress(self, activity: str, progress: ProbeProgress, paint: Paint) -> None:
        """Show what runs, where there is no verdict yet."""
        self.set_class(bool(self._frame), "-roomy")
        pen = self._pen(self._columns("verdict"))
        lines: list[Line] = [(StyledSpan(activity, "title"), StyledSpan(f"  {progress.counted()}", "dim"))]
        room = max(1, self.size.height // 2 - 3)
        running = progress.running
        for probe in running[:room]:
            text = f"  running  {probe.name:<16} {probe.seconds:5.1f} s  {probe.text}"
            lines.append((StyledSpan(pen.clip(text, pen.width), "dim"),))
        if len(running) > room:
            lines.append((StyledSpan(f"  and {len(running) - room} more", "dim"),))
        self._show_verdict(paint.lines(lines), "unknown")

    def show_problem(self, problem: str, paint: Paint) -> None:
        """Show why there is no verdict."""
        pen = self._pen(self._columns("verdict"))
        reason = [(StyledSpan(line),) for line in pen.fill(problem, pen.width)]
        lines: list[Line] = [
            (StyledSpan("NO VERDICT", "title"),),
            *reason,
            (StyledSpan("press r to try again", "dim"),),
        ]
        self._show_verdict(paint.lines(lines), "unknown")
        self._place_parts()

    def show(self, report: Report, paint: Paint, *, final: bool) -> None:
        """Show ``report``; one that is not ``final`` leaves the verdict open."""
        from envcheck.report.page.findings import Outline
        from envcheck.tui.screens import pages
        from envcheck.tui.widgets.stack import stack_lines

        self.report, self._last, self._laid_out_for = report, (paint, final), self.size
        self.set_class(bool(self._frame), "-roomy")
        outline = Outline(report)
        stack = stack_lines(report, self._pen(self._columns("stack")), final=final, roomy=self.size.height >= _TALL)
        if final:
            beside = 0 if self._wide else len(stack) + self._frame
            most = max(6, self.size.height - beside - self._frame - _LEAST_LISTED - self._frame)
            head = pages.head(outline, self._pen(self._columns("verdict") - _BADGE), most)
            self._show_verdict(paint.headed(head), report.verdict)
        self.query_one("#stack", StatusText).show(paint.lines(stack))
        self._stack_rows = len(stack)
        self._place_parts()
        found = pages.in_order(outline, final=final)
        listing = self.query_one("#findings", OptionList)
        listing.border_subtitle = pages.count_text(check for one in found for check in one.checks)
        self._moved |= bool(self._findings) and listing.highlighted != self._own_row
        before = self.selected.id if self._moved and self.selected else None
        self._findings, columns = found, self._columns("findings")
        rows = [_row(finding, columns, self._pen(columns), paint) for finding in found]
        if rows != self._rows:
            self._rows = rows
            listing.clear_options()
            listing.add_options(map(Option, rows))
            if found:
                again = [number for number, finding in enumerate(found) if finding.lead.id == before]
                self._moved, self._own_row = bool(again), next(iter(again), 0)
                listing.highlighted = self._own_row
        self.show_detail(paint)

    def _show_verdict(self, text: Text, verdict: str) -> None:
        part = self.query_one("#verdict", StatusText)
        for each in _VERDICTS:
            part.set_class(each == verdict, f"-{each}")
        part.show(text)
        columns, lines = self._columns("verdict"), text.split(allow_blank=True)
        self._verdict_rows = sum(max(1, -(-line.cell_len // columns)) for line in lines)

    def on_resize(self) -> None:
        """Lay out for another size. The event also comes, without a change, when the tab comes to the front."""
        if self.report is not None and self._last is not None and self._laid_out_for != self.size:
            paint, final = self._last
            self.show(self.report, paint, final=final)

    @property
    def _wide(self) -> bool:
        return self.size.width >= WIDE

    @property
    def _frame(self) -> int:
        """Rows that the frame of a part takes."""
        return _FRAME if self.size.height >= _ROOMY else 0

    def _columns(self, part: str) -> int:
        """Columns within a part."""
        width = self.size.width or 80
        halved = self._wide if part in ("verdict", "stack") else width >= BESIDE
        right = part in ("stack", "details")
        whole = (width // 2 if right else -(-width // 2)) if halved else width
        bar = 0 if part in ("verdict", "stack") else _SCROLLBAR
        return max(20, whole - (_SIDES if self._frame else _MARGIN) - bar)

    def _place_parts(self) -> None:
        """On a wide terminal verdict and stack are side by side, and what is below the shorter one gets the rest of its
        rows; findings and details likewise. Else all are one below the other, the details only where rows are left.
        """
        width, height = self.size
        beside = width >= BESIDE
        verdict, stack = self._verdict_rows + self._frame, self._stack_rows + self._frame
        apart = stack - verdict if self._wide else 0
        parts = {name: self.query_one(f"#{name}") for name in ("verdict", "stack", "findings", "details")}
        parts["details"].display = beside or height >= BELOW
        for name in ("verdict", "stack"):
            parts[name].styles.column_span = 2 if beside and not self._wide else 1
        parts["stack"].styles.row_span = parts["findings"].styles.row_span = 2 if apart > 0 else 1
        self.styles.grid_size_columns = 2 if beside else 1
        if apart > 0:
            self.styles.grid_rows = f"{verdict} {apart} 1fr"
        elif self._wide:
            self.styles.grid_rows = f"{verdict} 1fr"
        else:
            self.styles.grid_rows = f"{verdict} {stack} 1fr{'' if beside else ' 1fr'}"

    def set_rule_pages(self, pages: Mapping[str, RulePage], paint: Paint) -> None:
        """Take the documentation of the rules, by name, into the details."""
        self._rule_pages = pages
        self.show_detail(paint)

    def documentation(self, finding: Finding) -> RulePage:
        """The documentation of a finding's rule; empty until it is loaded."""
        return self._rule_pages.get(finding.rule, {})

    def show_detail(self, paint: Paint) -> None:
        """Show the finding under the cursor, where there is room for it."""
        finding = self._finding
        if not self.query_one("#details").display or finding is None or self.report is None:
            return
        columns, documentation = self._columns("details") - _BADGE, self.documentation(finding)
        if (detail := (finding, documentation, columns, paint.dark)) == self._detail:
            return  # the list also posts its cursor after every filling
        from envcheck.tui.screens.pages import first_lines

        self._detail = detail
        lines = first_lines(finding, self.report, self._pen(columns), documentation)
        self.query_one("#detail-text", Static).update(paint.headed(lines))
        self.query_one("#details").scroll_home(animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Post the finding for a window with all its details."""
        event.stop()
        self.post_message(self.Selected(self._findings[event.option_index]))

    def _pen(self, columns: int) -> Pen:
        from envcheck.report import Options

        return Pen(Options(width=columns, ascii=self._options.ascii, home=self._options.home))


def _row(finding: Finding, columns: int, pen: Pen, paint: Paint) -> Text:
    """A finding in one row: mark, word, title, and at the right its rule where there is room for it."""
    from envcheck.text.wrap import width
    from envcheck.tui.screens.pages import title_of
    from envcheck.tui.widgets.stack import status_mark

    word = f"{status_mark(finding.status, ascii_only=pen.ascii):<7}"
    title = pen.text(title_of(finding))
    rule = pen.text(finding.rule)
    room = columns - len(word)
    if width(title) + width(rule) + 2 > room:
        return paint.line((StyledSpan(word, finding.status), StyledSpan(clip(title, room, pen.mark))))
    gap = " " * (room - width(title) - width(rule))
    return paint.line((StyledSpan(word, finding.status), StyledSpan(title), StyledSpan(gap), StyledSpan(rule, "dim")))
