"""Texts that are put on the screen again and again while something is under way."""

from __future__ import annotations

from rich.text import Text
from textual.binding import ActiveBinding
from textual.screen import Screen
from textual.widgets import Footer, Static


class Live(Static):
    """Drawn anew only for another text, and laid out anew, with all beside it, only for more or fewer lines."""

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
