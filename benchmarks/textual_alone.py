"""An application of Textual's with next to nothing in it: two places and a page over them, by the keys of envcheck."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Static, TabbedContent, TabPane


class Page(ModalScreen[None]):
    """As many lines as envcheck's page of keys."""

    CSS = "Page { align: center middle; } #page { width: 90%; max-width: 100; height: auto; border: round red; }"
    BINDINGS: ClassVar[list[BindingType]] = [("enter", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page") as page:
            page.border_subtitle = "esc closes"
            yield Static("a key and what it does\n" * 24)


class Alone(App[None]):
    """The places hold words alone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("question_mark", "keys", "keys"),
        ("1", "place('first')", "one"),
        ("3", "place('second')", "two"),
        ("q", "quit", "quit"),
    ]

    def compose(self) -> ComposeResult:
        with TabbedContent():
            with TabPane("Overview", id="first"):
                yield Static("findings " * 400)
            with TabPane("Performance", id="second"):
                yield Static("figures " * 400)
        yield Footer()

    def action_keys(self) -> None:
        self.push_screen(Page())

    def action_place(self, name: str) -> None:
        self.query_one(TabbedContent).active = name


if __name__ == "__main__":
    Alone().run()
