"""What Textual draws itself, without characters outside ASCII: for ``--ascii``."""

from __future__ import annotations

from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.widgets import Tree


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
