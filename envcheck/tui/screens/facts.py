"""The facts screen: every known value and its source, as a tree that can be searched."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static, Tree
from textual.widgets.tree import TreeNode

from envcheck.model.names import in_words
from envcheck.model.snapshot import Listing
from envcheck.text.clean import clean
from envcheck.tui.widgets.base import draw_tree
from envcheck.tui.widgets.paint import Paint

if TYPE_CHECKING:
    from envcheck.model.checks import Report

_MOST_FOUND = 500
_MOST_BELOW = 2000  # Most entries of a node that are shown
_EXPANDED_WHEN_TALL = ("platform", "kernel", "toolkits", "environments")
_TALL = 44  # Least rows of a terminal to expand more nodes at first
_UNITS = {"Memory": (1 << 30, "GiB"), "Clocks": (1e6, "MHz"), "Power": (1, "W"), "Temperature": (1, "°C")}
"""Of the records whose fields have one unit: what people read, and how much it is of the field's own."""
_BARE = ("bus_width",)  # Fields of them without it
_BYTES = ("memory", "memory_limit", "memory_before", "shared_memory", "shared_memory_free")
"""Fields of other records that hold bytes."""
_LONGEST, _ALIGNED = 200, 32  # Most characters of a value that are shown; widest column that is aligned


def _known(value: Any) -> Any:
    """``value`` as plain data without empty fields; whether a list is complete is always shown."""
    if isinstance(value, msgspec.Struct):
        told_always = isinstance(value, Listing)
        unit = _UNITS.get(type(value).__name__)
        return {
            name: _figure(found, *(unit or _UNITS["Memory"]))
            if type(found) in (int, float) and (name in _BYTES if unit is None else name not in _BARE)
            else _known(found)
            for name, field, default in _fields(type(value))
            if (found := getattr(value, field)) != default or told_always
        }
    return [_known(each) for each in value] if isinstance(value, tuple | list) else value


class _Figure(str):
    """A number with its unit, as people read it, and exactly."""

    __slots__ = ("exact",)
    exact: str


def _figure(value: float, size: float, unit: str) -> _Figure:
    figure = _Figure(f"{value / size:.1f}".removesuffix(".0") + f" {unit}")
    figure.exact = f"{value:.12g}"
    return figure


@cache
def _fields(record: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Key, name and default of each field; a default that no value equals where there is none."""
    return tuple(
        (field.encode_name, field.name, field.default_factory() if callable(field.default_factory) else field.default)
        for field in msgspec.structs.fields(record)
    )


class FactsTab(Vertical):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "app.search", "search"),
        Binding("o", "app.open", "open"),
        Binding("equals_sign", "app.compare", "compare"),
    ]

    def __init__(self, paint: Paint) -> None:
        super().__init__(id="facts-body")
        self._paint = paint
        self._facts: Any = {}

    def compose(self) -> ComposeResult:
        yield Input(placeholder="search: a name, a value or a source", id="facts-search", compact=True)
        tree: Tree[Any] = Tree("facts", id="facts-tree", classes="framed")
        tree.border_title = "facts and their sources"
        tree.show_root = False
        tree.guide_depth = 2
        draw_tree(tree, ascii_only=self._paint.ascii)
        yield tree
        yield Static("", id="facts-count")

    @property
    def probe(self) -> str | None:
        """The probe that the cursor is on or in, if any."""
        node = self.query_one("#facts-tree", Tree).cursor_node
        while node is not None and not (isinstance(node.data, _Inner) and node.data.probe):
            node = node.parent
        return node.data.probe if node is not None and isinstance(node.data, _Inner) else None

    def show(self, report: Report) -> None:
        plain = _known(report.snapshot) if report.snapshot else {}
        plain.pop("runs", None)
        self._facts = {**plain, "probes": _known(report.probes)}
        self._fill()

    def repaint(self, paint: Paint) -> None:
        self._paint = paint
        self._fill()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._fill()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one("#facts-tree").focus()

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Any]) -> None:
        """Add the children of a node when it is first expanded: a machine has ten thousand facts."""
        event.stop()
        inner = event.node.data
        if isinstance(inner, _Inner) and not event.node.children:
            self._fill_node(event.node, inner)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Any]) -> None:
        """Tell the exact value of a figure."""
        event.stop()
        if isinstance(event.node.data, _Figure):
            self.app.notify(f"exactly {event.node.data.exact}", markup=False)

    def _fill(self) -> None:
        tree: Tree[Any] = self.query_one("#facts-tree", Tree)
        tree.clear()
        words = self.query_one("#facts-search", Input).value.lower().split()
        if not words:
            self._fill_node(tree.root, _Inner(self._facts, ""))
            for node in tree.root.children:
                tall = self.app.size.height >= _TALL
                if str(node.label).lower().startswith(("driver", "gpus") + (_EXPANDED_WHEN_TALL if tall else ())):
                    node.expand()
            self.query_one("#facts-count", Static).update("")
            return
        leaves = _leaves(self._facts, "", "", "")
        matching = (leaf for leaf in leaves if all(word in " ".join(leaf).lower() for word in words))
        found = list(islice(matching, _MOST_FOUND))
        for path, _, value, source in found:
            tree.root.add_leaf(self._leaf(path, value, source), data=value)
        more = " (only the first are shown)" if len(found) == _MOST_FOUND else ""
        self.query_one("#facts-count", Static).update(Text(f"{len(found)} found{more}"))

    def _fill_node(self, node: TreeNode[Any], inner: _Inner) -> None:
        """Add what a value holds; the source of a record is shown behind its plain values."""
        entries = [(_in_words(key), item, source) for key, item, source in _entries(inner.value, inner.source)]
        plain = [(key, _shown(item)) for key, item, _ in entries[:_MOST_BELOW] if _is_plain(item)]
        keys, values = (
            min(_ALIGNED, max(map(len, column), default=0)) for column in list(zip(*plain, strict=True)) or [(), ()]
        )
        for key, item, source in entries[:_MOST_BELOW]:
            if _is_plain(item):
                node.add_leaf(self._leaf(key, item, source, keys, values), data=item)
            else:
                text, probe, value = self._text(key), None, _unlisted(item)
                if isinstance(value, list | tuple):
                    complete = value is item or item["complete"]
                    text.append(f": {len(value)}{'' if complete else ' (not complete)'}")
                elif "fills" in value and "status" in value:
                    probe = value.get("name")
                    text.append(f": {value['status']}", self._paint.colour("dim"))
                node.add(text, data=_Inner(value, source, probe))
        if len(entries) > _MOST_BELOW:
            node.add_leaf(Text(f"and {len(entries) - _MOST_BELOW} more: use the search"))

    def _leaf(self, key: str, value: Any, source: str, keys: int = 0, values: int = 0) -> Text:
        """``key  value  source``, in columns of at least ``keys`` and ``values`` characters."""
        text = self._text(key)
        text.append(" " * max(2, keys + 2 - text.cell_len))
        text.append_text(self._paint.text(_shown(value)[:_LONGEST], "title"))
        gap = " " * max(2, keys + values + 4 - text.cell_len)
        return text.append(gap).append_text(self._paint.text(source, "dim")) if source else text

    def _text(self, foreign: str) -> Text:
        return Text(clean(foreign[:_LONGEST], ascii_only=self._paint.ascii))


class _Inner(NamedTuple):
    """What a node holds; its children are added when it is expanded."""

    value: Any
    source: str
    probe: str | None = None


def _entries(value: Any, source: str) -> Iterator[tuple[str, Any, str]]:
    """Name, value and source of what a value holds: of a field's own, else its record's, else what that is part of."""
    if isinstance(value, dict):
        read = value.get("read") or {}
        for key, item in value.items():
            if key not in ("source", "read", "label"):
                yield str(key), item, str(read.get(key) or value.get("source") or source)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield _name(item, number) if isinstance(item, dict) else str(number), item, source


def _name(item: dict[str, Any], number: int) -> str:
    """What an item of a list is called: ``GPU 0 · H100 PCIe``, ``torch 2.5.1``."""
    if item.get("compute_capability") or item.get("pci_device_id") or item.get("label"):
        model = str(item.get("name", "")).removeprefix("NVIDIA ")
        return " · ".join(filter(None, (f"GPU {item.get('index', number)}", model)))
    name = next((item[key] for key in ("name", "key", "path", "pci_bus_id", "call", "text") if item.get(key)), "")
    return f"{name} {item.get('version') or ''}".strip() if name else str(number)


def _is_plain(item: Any) -> bool:
    """Whether a value is shown on one line: no record, and no list that holds any."""
    if isinstance(item, list | tuple):
        return not any(isinstance(each, dict | list | tuple) for each in item)
    return not (isinstance(item, dict) and item)


def _unlisted(item: Any) -> Any:
    return item["items"] if isinstance(item, dict) and set(item) == {"items", "complete"} else item


def _shown(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in ("", {}) else str(value)


def _in_words(key: str) -> str:
    """``GSP firmware``; names, paths and versions stay as they are."""
    return in_words(key) if key.isidentifier() and key.islower() else key


def _leaves(value: Any, path: str, raw: str, source: str) -> Iterator[tuple[str, str, Any, str]]:
    """Path in words, path by field names, value, source."""
    if _is_plain(value):
        yield path, raw, value if isinstance(value, _Figure) else _shown(value), source
        return
    for key, item, read in _entries(_unlisted(value), source):
        yield from _leaves(item, f"{path} · {_in_words(key)}".removeprefix(" · "), f"{raw}.{key}", read)
