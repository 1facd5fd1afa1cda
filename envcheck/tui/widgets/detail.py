"""Windows over the screen: a page of text, a list to choose from, a line to fill in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

WIDEST = 100
_FRAME = 6


class Page(ModalScreen[None]):
    """A text, laid out for each width."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "close"),
        Binding("j,down", "scroll_page(1)", "down", show=False),
        Binding("k,up", "scroll_page(-1)", "up", show=False),
        Binding("pagedown,space", "scroll_page(10)", "down", show=False),
        Binding("pageup", "scroll_page(-10)", "up", show=False),
        Binding("c", "app.copy", "copy fix", show=False),
    ]

    def __init__(self, title: str, text: Callable[[int], Text]) -> None:
        """``text`` returns the text for a number of columns."""
        super().__init__()
        self._title, self._text = title, text
        self._columns = 0

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page", classes="window") as page:
            page.border_title = Text(self._title).markup
            page.border_subtitle = "esc closes"
            yield Static(self._laid_out(), id="page-text")

    def on_resize(self) -> None:
        if self._columns != self._room:
            self.query_one("#page-text", Static).update(self._laid_out())

    @property
    def _room(self) -> int:
        return min(WIDEST, self.app.size.width * 9 // 10) - _FRAME

    def _laid_out(self) -> Text:
        self._columns = self._room
        return self._text(self._columns)

    def action_scroll_page(self, lines: int) -> None:
        self.query_one("#page", VerticalScroll).scroll_relative(y=lines, animate=False)


class Choose(ModalScreen[int | None]):
    """A list; returns the number of the chosen row, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "close"),
        Binding("j", "move(1)", "down", show=False),
        Binding("k", "move(-1)", "up", show=False),
    ]

    def __init__(self, title: str, rows: Sequence[Text]) -> None:
        super().__init__()
        self._title, self._rows = title, rows

    def compose(self) -> ComposeResult:
        with Vertical(id="choose", classes="window") as window:
            window.border_title = Text(self._title).markup
            window.border_subtitle = "enter chooses, esc closes"
            yield OptionList(*(Option(row) for row in self._rows), id="choices")

    def on_mount(self) -> None:
        self.query_one("#choices").focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_index)

    def action_move(self, lines: int) -> None:
        choices = self.query_one("#choices", OptionList)
        (choices.action_cursor_down if lines > 0 else choices.action_cursor_up)()


class Ask(ModalScreen[str | None]):
    """A line to fill in; returns it, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close")]

    def __init__(self, title: str, placeholder: str) -> None:
        super().__init__()
        self._title, self._placeholder = title, placeholder

    def compose(self) -> ComposeResult:
        with Vertical(id="ask", classes="window") as window:
            window.border_title = Text(self._title).markup
            window.border_subtitle = "enter continues, esc closes"
            yield Input(placeholder=self._placeholder, id="answer", compact=True)

    def on_mount(self) -> None:
        self.query_one("#answer").focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)
