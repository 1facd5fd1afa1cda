"""The overview: the verdict, the findings, details of one with its fix, and the stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from envcheck.report.page.pen import Line, Pen, StyledSpan, screen_rows
from envcheck.text.wrap import clip, width
from envcheck.tui.widgets.base import FindingList, StatusText
from envcheck.tui.widgets.paint import Paint

if TYPE_CHECKING:
    from envcheck.model.checks import Check, Layer, Report
    from envcheck.report import Options
    from envcheck.report.page.findings import Finding, Outline
    from envcheck.report.progress import ProbeProgress
    from envcheck.tui.screens.pages import RulePage

WIDE = 150  # Minimum width to show the details beside findings and stack
_ROOMY = 26  # Least rows of the overview for frames
_LEAST_LISTED = 3  # Rows that the list of findings keeps when details and stack need the others
_LEAST_DETAIL = 9  # Rows that the details keep where the stack is below them
_FRAME, _SIDES, _SCROLLBAR = 2, 4, 1  # Rows of a frame; columns of a frame and the margin within it
_MARGIN, _BADGE = 2, 2  # Columns around a part without a frame; columns that the verdict's badge is wider than its word
_PARTS = ("verdict", "findings", "details", "stack")


class OverviewTab(Vertical):
    """A report, most important first. Passed checks are one row of the list, which opens."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "app.copy", "copy fix"),
        Binding("f", "app.filter", "filter"),
        Binding("e", "app.export", "export"),
    ]

    def __init__(self, options: Options) -> None:
        super().__init__(id="overview-body")
        self._options = options
        self._findings: list[Finding] = []
        """What the rows stand for; the row of the passed checks stands behind those that are not passed."""
        self._fold: int | None = None  # the index of the row of the passed checks
        self._opened = False
        self.only: Layer | None = None  # The only layer whose findings are listed; None: all
        self._rows: list[Text] = []
        self._last: tuple[Paint, bool] | None = None
        self._laid_out_for: Size | None = None
        self._detail: object = None  # what the details were laid out from
        self._verdict_rows, self._stack_rows, self._detail_rows = 1, 0, 0
        self.report: Report | None = None
        self._outline: Outline | None = None
        self._rule_pages: Mapping[str, RulePage] = {}
        # The cursor stays on the finding that the user moved it to, else it is on the most urgent one.
        self._moved, self._own_row = False, 0

    def compose(self) -> ComposeResult:
        yield StatusText("Examining this machine", id="verdict")
        yield FindingList(id="findings")
        with VerticalScroll(id="details", can_focus=False):
            yield Static("", id="detail-text")
        yield StatusText("", id="stack")

    def on_mount(self) -> None:
        for name in _PARTS:
            self.query_one(f"#{name}").border_title = name

    @property
    def _place(self) -> int:
        return self.query_one("#findings", OptionList).highlighted or 0

    @property
    def selected(self) -> Check | None:
        """The check that stands for the finding under the cursor."""
        finding = self.finding_at(self._place)
        return finding.lead if finding is not None else None

    def finding_at(self, place: int) -> Finding | None:
        """The finding of a row; None on the row of the passed checks."""
        if self._fold is not None and place >= self._fold:
            place = place - 1 if place > self._fold else len(self._findings)
        return self._findings[place] if place < len(self._findings) else None

    def show_progress(self, activity: str, progress: ProbeProgress, paint: Paint) -> None:
        """Show what runs, where there is no verdict yet."""
        self.set_class(bool(self._frame), "-roomy")
        pen = self._pen(self._columns("verdict"))
        lines: list[Line] = [(StyledSpan(activity, "title"), StyledSpan(f"  {progress.counted()}", "dim"))]
        room = max(1, self.size.height // 2 - 3)
        running = [f"  running  {each.name:<16} {each.seconds:5.1f} s  {each.text}" for each in progress.running]
        more = [f"  and {len(running) - room} more"] if len(running) > room else []
        lines += [(StyledSpan(pen.clip(text, pen.width), "dim"),) for text in (*running[:room], *more)]
        self._show_verdict(paint.lines(lines), "unknown")
        self._place_parts()

    def show_problem(self, problem: str, paint: Paint) -> None:
        pen = self._pen(self._columns("verdict"))
        reason = [(StyledSpan(line),) for line in pen.fill(problem, pen.width)]
        again = (StyledSpan("press r to try again", "dim"),)
        self._show_verdict(paint.lines([(StyledSpan("NO VERDICT", "title"),), *reason, again]), "unknown")
        self._place_parts()

    def show(self, report: Report, paint: Paint, *, final: bool) -> None:
        """Show ``report``; one that is not ``final`` leaves the verdict open."""
        from envcheck.report.page.findings import Outline
        from envcheck.tui.screens import pages

        self.report, self._last, self._laid_out_for = report, (paint, final), self.size
        self.set_class(bool(self._frame), "-roomy")
        self._outline = outline = Outline(report)
        stack = pages.stack_lines(report, self._pen(self._columns("stack")), final=final)
        if final:
            head = pages.head(outline, self._pen(self._columns("verdict") - _BADGE), max(3, self.size.height // 3))
            self._show_verdict(paint.headed(head), report.verdict)
        self.query_one("#stack", StatusText).show(paint.lines(stack))
        self._stack_rows = len(stack)
        self._list(outline, paint, final=final)
        self._place_parts()
        self.show_detail(paint)

    def _list(self, outline: Outline, paint: Paint, *, final: bool) -> None:
        """Fill the list of findings; the cursor stays where the user moved it."""
        from envcheck.tui.screens import pages

        found = pages.in_order(outline, final=final, layer=self.only)
        listing = self.query_one("#findings", OptionList)
        listing.border_title = f"findings: {self.only}" if self.only else "findings"
        listing.border_subtitle = pages.count_text(check for one in found for check in one.checks)
        self._moved |= bool(self._rows) and listing.highlighted != self._own_row
        before = self.finding_at(self._place) if self._moved else None
        was_fold = self._moved and self._place == self._fold
        columns = self._columns("findings")
        pen = self._pen(columns)
        self._findings, self._fold = found, None
        rows = [finding_row(finding, columns, pen, paint) for finding in found]
        passed = [finding for finding in found if finding.status == "pass"]
        if passed:
            self._fold = len(found) - len(passed)
            count = sum(len(finding.checks) for finding in passed)
            text = f"{count} passed" + ("" if self._opened else "  (enter lists them)")
            folded = paint.line((StyledSpan(f"{'+' if paint.ascii else '✓'} ", "pass"), StyledSpan(text)))
            rows[self._fold :] = [folded, *(rows[self._fold :] if self._opened else ())]
        if rows != self._rows:
            self._rows = rows
            listing.clear_options()
            listing.add_options(map(Option, rows))
            if rows:
                same = before.lead.id if before else None
                again = [n for n in range(len(rows)) if (at := self.finding_at(n)) and at.lead.id == same]
                again += [self._fold] if was_fold and self._fold is not None else []
                self._moved, self._own_row = bool(again), next(iter(again), 0)
                listing.highlighted = self._own_row

    def show_layer(self, layer: Layer | None) -> None:
        """List the findings of one layer, or of all."""
        self.only, self._moved = layer, False
        self._show_again()

    def _show_verdict(self, text: Text, verdict: str) -> None:
        part = self.query_one("#verdict", StatusText)
        for each in ("pass", "warn", "fail", "unknown"):
            part.set_class(each == verdict, f"-{each}")
        part.show(text)
        columns, lines = self._columns("verdict"), text.split(allow_blank=True)
        self._verdict_rows = sum(max(1, -(-line.cell_len // columns)) for line in lines)

    def on_resize(self) -> None:
        """Lay out for another size. The event also comes, without a change, when the tab comes to the front."""
        if self._laid_out_for != self.size:
            self._show_again()

    def _show_again(self) -> None:
        if self.report is not None and self._last is not None:
            self.show(self.report, self._last[0], final=self._last[1])

    @property
    def _is_wide(self) -> bool:
        return self.size.width >= WIDE

    @property
    def _frame(self) -> int:
        """Rows that the frame of a part takes."""
        return _FRAME if self.size.height >= _ROOMY else 0

    def _columns(self, part: str) -> int:
        columns = self.size.width or 80
        if self._is_wide and part != "verdict":
            columns = columns // 2 if part == "details" else -(-columns // 2)
        bar = _SCROLLBAR if part in ("findings", "details") else 0
        return max(20, columns - (_SIDES if self._frame else _MARGIN) - bar)

    def _place_parts(self) -> None:
        """All below each other, on a wide terminal the details beside findings and stack, which is cut first."""
        height, wide, frame = self.size.height, self._is_wide, self._frame
        verdict = self._verdict_rows + frame
        left = height - verdict
        parts = {name: self.query_one(f"#{name}") for name in _PARTS}
        least = 0 if wide else _LEAST_DETAIL + frame
        stack = min(self._stack_rows + frame, max(0, left - least - _LEAST_LISTED - frame))
        findings = min(len(self._rows) + frame, max(_LEAST_LISTED + frame, left - stack - (not self._opened) * least))
        details = left if wide else max(0, left - findings - stack)
        parts["verdict"].styles.column_span = 2 if wide else 1
        parts["details"].styles.row_span = 2 if wide else 1
        parts["details"].display, parts["stack"].display = details > frame, stack > frame
        self._detail_rows = details - frame
        self.styles.grid_size_columns = 2 if wide else 1
        below = ["1fr"] if wide else ["1fr"] * (details > frame) + [str(stack)] * (stack > frame)
        self.styles.grid_rows = " ".join([str(verdict), str(findings), *below])

    def set_rule_pages(self, pages: Mapping[str, RulePage], paint: Paint) -> None:
        """Take the documentation of the rules, by name, into the details."""
        self._rule_pages = pages
        self.show_detail(paint)

    def documentation(self, finding: Finding) -> RulePage:
        """The documentation of a finding's rule; empty until it is loaded."""
        return self._rule_pages.get(finding.rule, {})

    def show_detail(self, paint: Paint) -> None:
        """Show what is under the cursor, where there is room for it."""
        if not self.query_one("#details").display or self._outline is None:
            return
        finding, columns, rows = self.finding_at(self._place), self._columns("details"), self._detail_rows
        documentation = self.documentation(finding) if finding else {}
        if (detail := (finding, documentation, columns, rows, paint.dark, self.report)) == self._detail:
            return  # the list also posts its cursor after every filling
        from envcheck.tui.screens import pages

        self._detail = detail
        pen = self._pen(columns)
        if finding is not None:
            row = self._rows[self._place].plain
            cut, named = row.endswith(pen.mark), row.endswith(pen.text(finding.rule))
            lines = pages.first_lines(finding, self._outline, pen, documentation, rows, title=cut, rule=not named)
        else:
            lines = pages.passed_lines(self._findings, pen, rows)
        if not self._frame and screen_rows(lines, columns) < rows:
            lines = [(), *lines]
        self.query_one("#detail-text", Static).update(paint.page(lines, columns))
        self.query_one("#details").scroll_home(animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open or close the passed checks; the application opens a finding."""
        if self.finding_at(event.option_index) is None:
            event.stop()
            self._opened, self._moved = not self._opened, True
            self._show_again()

    def _pen(self, columns: int) -> Pen:
        return Pen(self._options._replace(width=columns))


def finding_row(finding: Finding, columns: int, pen: Pen, paint: Paint) -> Text:
    """A finding in one row: mark, word, title, and at the right its layer and rule where there is room for them."""
    from envcheck.tui.screens.pages import status_mark, title_of

    word = f"{status_mark(finding.status, ascii_only=pen.ascii):<7}"
    title = pen.text(title_of(finding))
    rule, layer = pen.text(finding.rule), finding.lead.layer
    room = columns - len(word) - width(title) - 2
    end = next((end for end in (f"{layer}  {rule}", rule, "") if width(end) <= room), None)
    if end is None:
        return paint.line((StyledSpan(word, finding.status), StyledSpan(clip(title, columns - len(word), pen.mark))))
    gap = " " * (room + 2 - width(end))
    return paint.line((StyledSpan(word, finding.status), StyledSpan(title), StyledSpan(gap), StyledSpan(end, "dim")))
