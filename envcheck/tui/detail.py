"""One finding whole: evidence, explanation, fixes, sources; its command alone for copying; what its rule means."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from envcheck.checks import Check, Report
from envcheck.report.clean import clean
from envcheck.report.command import shell_line
from envcheck.report.pen import Pen, Span
from envcheck.report.verbose import check_lines
from envcheck.rules.catalog import find_rule
from envcheck.tui.paint import Paint


class Page(ModalScreen[None]):
    """A text over the screen, that any of the usual keys closes."""

    BINDINGS = [
        Binding("escape,q,enter", "dismiss", "close"),
        Binding("j,down", "scroll_page(1)", "down", show=False),
        Binding("k,up", "scroll_page(-1)", "up", show=False),
    ]

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page") as page:
            page.border_title = self._title
            page.border_subtitle = "esc closes"
            yield Static(self._text)

    def action_scroll_page(self, lines: int) -> None:
        self.query_one("#page", VerticalScroll).scroll_relative(y=lines, animate=False)


def finding_page(check: Check, report: Report, pen: Pen, paint: Paint) -> Page:
    """The details of a check, and below them what its rule says."""
    lines = [*check_lines(check, report, pen)]
    rule = find_rule(check.rule)
    if rule is not None:
        told = [(Span(pen.text(line) if line.strip() else "", "dim"),) for line in rule.documentation.splitlines()]
        lines += [(), (Span(f"envcheck rule {rule.name}", "title"),), *told]
    return Page(clean(check.rule, ascii_only=pen.ascii), paint.lines(lines))


def command_of(check: Check) -> str:
    """The command of its first fix that has one, as a shell line; empty when none has."""
    return next((shell_line(fix.command, ascii_only=False) for fix in check.fixes if fix.command), "")
