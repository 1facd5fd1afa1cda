"""Textual's widgets, redrawn only where something changed (keys wait for drawing), and in ASCII for ``--ascii``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.style import Style
from rich.text import Text
from textual.binding import ActiveBinding
from textual.events import Click, Resize
from textual.geometry import Size
from textual.reactive import Reactive
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.widget import Widget
from textual.widgets import OptionList, Static, Tree


class _AsciiBars(ScrollBarRender):
    VERTICAL_BARS = [" "] * 8
    HORIZONTAL_BARS = [" "] * 8


def draw_scrollbars(*, ascii_only: bool) -> None:
    """Choose the renderer of all scroll bars: Textual keeps it on the class."""
    ScrollBar.renderer = _AsciiBars if ascii_only else ScrollBarRender


def draw_tree(tree: Tree[object], *, ascii_only: bool) -> None:
    """Choose the guides and icons of a tree."""
    if ascii_only:
        tree.show_guides = False
        tree.ICON_NODE = "+ "
        tree.ICON_NODE_EXPANDED = "- "


class MainScreen(Screen[object]):
    """The screen below all windows. Textual's redraws all of itself when the focus changes; here the widgets do."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)


class FindingList(OptionList):
    """Textual's lays out every row again for a resize event without a change, which comes with each change of tabs."""

    _last_size: Size | None = None

    def on_resize(self, event: Resize) -> None:
        if event.size == self._last_size:
            event.prevent_default()
        self._last_size = event.size


class StatusText(Static):
    """Text that is updated often: redrawn only when it differs, and with a new layout only when its height does."""

    _text = Text()

    def show(self, text: Text) -> None:
        """Show ``text``, whose lines are never folded, or in a widget of fixed height."""
        if text == self._text:
            return
        lines, self._text = self._text.plain.count("\n"), text
        self.update(text, layout=text.plain.count("\n") != lines)


class KeyFooter(StatusText):
    """The keys of what has the focus. Textual's footer makes a widget of each, anew at every change of tabs."""

    _shown: tuple[ActiveBinding, ...] = ()
    _places: Sequence[tuple[int, int, str]] = ()  # First and last column of each key, and its action

    def __init__(self, is_of_use: Callable[[str], bool]) -> None:
        """``is_of_use``: whether an action has anything to act on now."""
        super().__init__("")
        self._is_of_use = is_of_use

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self.show_keys)
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._draw())

    def show_keys(self, screen: Screen[object]) -> None:
        """Called whenever the focus moves; a window over the screen leaves the keys as they are."""
        bound = (active for active in screen.active_bindings.values() if active.binding.show)
        shown = tuple(active for active in bound if self._is_of_use(active.binding.action))
        if self.app.app_focus and screen is self.screen and shown != self._shown:
            self._shown = shown
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        key_style = Style(color=self.app.theme_variables["footer-key-foreground"], bold=True)
        keys = [(self.app.get_key_display(active.binding), active.binding) for active in self._shown]
        entries = [(f"{key} {binding.description}", len(key), binding.action) for key, binding in keys]
        entries.append(("^p palette", 2, "command_palette"))
        apart = 2 if sum(len(words) + 2 for words, _, _ in entries) < self.app.size.width else 1
        text, places = Text(" "), list[tuple[int, int, str]]()
        for words, key_columns, action in entries:
            places.append((len(text), len(text) + len(words), action))
            text.append(words[:key_columns], key_style).append(words[key_columns:] + " " * apart)
        self._places = places
        self.show(text)

    async def on_click(self, event: Click) -> None:
        """What the key under the pointer does."""
        for start, end, action in self._places:
            if start <= event.x < end:
                await self.app.run_action(action)
