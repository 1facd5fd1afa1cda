"""The fleet screen: what stands out in a fleet, and its nodes, the worst first; enter opens a node's report."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from envcheck.fleet import record
from envcheck.fleet.pages.text import page_lines
from envcheck.fleet.record import Fleet, Node
from envcheck.report import Options
from envcheck.report.page.pen import WORDS, Pen, StyledSpan
from envcheck.rules.facts.machine import plural
from envcheck.tui.widgets.choices import content_of
from envcheck.tui.widgets.paint import Paint

_ORDER = ("fail", "unknown", "warn", "pass")
_MOST = 500  # Rows of the list; the search finds the others


def read_fleet(name: str) -> Fleet:
    """The fleet report in a file; raise UsageError when it cannot be read."""
    return record.placed(record.read(content_of(name, record.MOST_BYTES + 1)), name)


class FleetPage(ModalScreen[str | None]):
    """A fleet; returns the file with the report of the chosen node, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "close"),
        Binding("q", "dismiss(None)", "close", show=False),
        Binding("slash", "search", "search"),
        Binding("s", "summary", "summary"),
        Binding("j", "app.move(1)", "down", show=False),
        Binding("k", "app.move(-1)", "up", show=False),
    ]

    def __init__(self, fleet: Fleet, paint: Paint, options: Options) -> None:
        super().__init__()
        self._paint, self._options = paint, options
        self._fleet = fleet
        self._ordered = sorted(
            fleet.nodes, key=lambda node: (_ORDER.index(node.verdict), -node.slow, -node.differences, node.name)
        )
        self._shown: list[Node] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="fleet", classes="window") as window:
            window.border_title = "Fleet"
            window.border_subtitle = "enter opens a node, s summary, / search, esc closes"
            yield Static(self._lines(quiet=True), id="fleet-head")
            yield Input(placeholder="find a node, a verdict or a reason", id="fleet-search", compact=True)
            yield OptionList(id="fleet-nodes")
            with VerticalScroll(id="fleet-summary") as summary:
                summary.display = False
                yield Static(self._lines(quiet=False), id="fleet-text")

    def on_mount(self) -> None:
        self._fill("")
        self.query_one("#fleet-nodes").focus()

    def _lines(self, *, quiet: bool) -> Text:
        width = min(92, self.app.size.width * 9 // 10 - 6)
        options = Options(width=width, ascii=self._options.ascii, home=self._options.home, quiet=quiet)
        return self._paint.lines(page_lines(self._fleet, Pen(options), options))

    def _fill(self, wanted: str) -> None:
        """The nodes whose row holds every word of ``wanted``."""
        words = wanted.lower().split()
        found = [node for node in self._ordered if all(word in _line(node).lower() for word in words)]
        self._shown = found[:_MOST]
        rows = []
        for node in self._shown:
            word = "none" if node.problem else WORDS[node.verdict]
            rows.append(Option(self._paint.line((StyledSpan(f"{word:<5} ", node.verdict), StyledSpan(_line(node))))))
        if len(found) > _MOST:
            rows.append(Option(Text(f"{len(found) - _MOST:,} more: search for them"), disabled=True))
        listed = self.query_one("#fleet-nodes", OptionList)
        listed.clear_options()
        listed.add_options(rows)
        listed.highlighted = 0 if self._shown else None

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._fill(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one("#fleet-nodes").focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        node = self._shown[event.option_index]
        if node.path and not node.problem:
            self.dismiss(node.path)
        else:
            self.notify(node.problem or "The report of this node was not kept (--save DIR keeps it)", markup=False)

    def action_leave(self) -> None:
        """From the search or the summary back to the nodes, from there back to the report."""
        nodes = self.query_one("#fleet-nodes")
        if self.query_one("#fleet-summary").display:
            self.action_summary()
        elif self.focused is not nodes:
            nodes.focus()
        else:
            self.dismiss(None)

    def action_search(self) -> None:
        self.query_one("#fleet-search").focus()

    def action_summary(self) -> None:
        """Show what stands out in place of the nodes, or the nodes again."""
        summary, nodes = self.query_one("#fleet-summary"), self.query_one("#fleet-nodes")
        summary.display = not summary.display
        nodes.display = not summary.display
        (summary if summary.display else nodes).focus()


def _line(node: Node) -> str:
    counted = ((node.differences, "difference"), (node.slow, "slow figure"))
    counts = ", ".join(plural(count, what) for count, what in counted if count)
    return "  ".join(filter(None, (node.name, counts, node.problem or node.headline)))
