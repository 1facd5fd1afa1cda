"""What Textual draws itself, without characters outside ASCII: for ``--ascii``."""

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
    """Choose how scroll bars are drawn, for all of them: Textual keeps that on the class."""
    ScrollBar.renderer = _AsciiBars if ascii_only else ScrollBarRender


def draw_tree(tree: Tree[object], *, ascii_only: bool) -> None:
    """The same for the guides and signs of a tree."""
    if ascii_only:
        tree.show_guides = False
        tree.ICON_NODE = "+ "
        tree.ICON_NODE_EXPANDED = "- "


# Textual's widgets, drawn anew only where there is something else to see: keys wait for whatever is drawn.


class Front(Screen[object]):
    """The screen below all windows. Who gets or loses the focus draws itself; Textual's draws everything then."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)


class Listing(OptionList):
    """Coming to the front again is told as another size, upon which Textual's lays out every row anew."""

    _had: Size | None = None

    def on_resize(self, event: Resize) -> None:
        if event.size == self._had:
            event.prevent_default()
        self._had = event.size


class Live(Static):
    """Text that is put on the screen again and again while something is under way.

    Drawn anew only for another text, and laid out anew, with all beside it, only for more or fewer lines.
    """

    _words = Text()

    def put(self, words: Text) -> None:
        """Show ``words``, whose lines are cut and not folded, or whose height does not depend on them."""
        if words == self._words:
            return
        lines, self._words = self._words.plain.count("\n"), words
        self.update(words, layout=words.plain.count("\n") != lines)


class KeyLine(Footer):
    """The keys, made anew only when there are others: a window over the screen, say, leaves them as they are."""

    _shown: tuple[ActiveBinding, ...] = ()

    def bindings_changed(self, screen: Screen[object]) -> None:
        """The screen tells of its keys whenever another widget gets the focus."""
        shown = tuple(active for active in screen.active_bindings.values() if active.binding.show)
        if screen.app.app_focus and shown != self._shown:
            self._shown = shown
            super().bindings_changed(screen)
