"""Textual's widgets, redrawn only where something changed (keys wait for drawing), and in ASCII for ``--ascii``."""

from __future__ import annotations

from rich.text import Text
from textual.binding import ActiveBinding
from textual.events import Resize
from textual.geometry import Size
from textual.reactive import Reactive
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.widget import Widget
from textual.widgets import Footer, OptionList, Static, Tree


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


class KeyFooter(Footer):
    """The keys, rebuilt only when they differ: most windows leave them as they are."""

    _shown: tuple[ActiveBinding, ...] = ()

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Called whenever the focus moves."""
        shown = tuple(active for active in screen.active_bindings.values() if active.binding.show)
        if screen.app.app_focus and shown != self._shown:
            self._shown = shown
            super().bindings_changed(screen)
