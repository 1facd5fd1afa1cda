"""Everything known, as a tree that can be searched: each value with where it was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static, Tree
from textual.widgets.tree import TreeNode

from envcheck.checks import Report
from envcheck.report.clean import clean

_MOST_FOUND = 500
_OPEN_AT_FIRST = ("driver", "gpus", "platform")
_BOOKKEEPING = ("source", "read")
_LONGEST = 200


class Facts(Vertical):
    """The Snapshot of a report."""

    def __init__(self) -> None:
        super().__init__(id="facts-body")
        self._facts: Any = {}

    def compose(self) -> ComposeResult:
        yield Input(placeholder="search: a name or a value", id="facts-search")
        tree: Tree[None] = Tree("facts", id="facts-tree")
        tree.show_root = False
        tree.guide_depth = 2
        yield tree
        yield Static("", id="facts-count")

    def show(self, report: Report) -> None:
        """Fill the tree anew."""
        plain = msgspec.to_builtins(report.snapshot) if report.snapshot else {}
        self._facts = {**plain, "probes": msgspec.to_builtins(report.probes)}
        self._fill(self.query_one("#facts-search", Input).value)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._fill(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one("#facts-tree").focus()

    def _fill(self, wanted: str) -> None:
        tree: Tree[None] = self.query_one("#facts-tree", Tree)
        tree.clear()
        if not wanted.strip():
            _grow(tree.root, self._facts, "")
            for node in tree.root.children:
                if str(node.label).startswith(_OPEN_AT_FIRST):
                    node.expand()
            self.query_one("#facts-count", Static).update("")
            return
        found = 0
        for path, value, source in _leaves(self._facts, "", ""):
            if wanted.lower() in path.lower() or wanted.lower() in str(value).lower():
                tree.root.add_leaf(_leaf(path, value, source))
                found += 1
                if found == _MOST_FOUND:
                    break
        more = " (the first)" if found == _MOST_FOUND else ""
        self.query_one("#facts-count", Static).update(f"{found} found{more}")


def _grow(node: TreeNode[None], value: Any, source: str) -> None:
    """Add what ``value`` holds; a record's source stands behind its plain values."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in _BOOKKEEPING:
                _add(node, key, item, _source_of(value, key, source))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _add(node, _name_of(item, number), item, source)


def _source_of(record: dict[str, Any], key: str, source: str) -> str:
    """Where a field of a record was read, or else the record itself, or what it lies in."""
    read = record.get("read") or {}
    return str(read.get(key) or record.get("source") or source)


def _add(node: TreeNode[None], key: str, item: Any, source: str) -> None:
    if isinstance(item, dict | list) and item:
        if isinstance(item, dict) and set(item) == {"items", "complete"}:
            remark = "" if item["complete"] else " (not complete)"
            _grow(node.add(_text(f"{key}: {len(item['items'])}{remark}")), item["items"], source)
        elif isinstance(item, list) and not any(isinstance(each, dict | list) for each in item):
            node.add_leaf(_leaf(key, ", ".join(map(str, item)), source))
        else:
            _grow(node.add(_text(key)), item, source)
    else:
        node.add_leaf(_leaf(key, item, source))


def _name_of(item: Any, number: int) -> str:
    """A record by what people call it."""
    if isinstance(item, dict):
        for key in ("name", "key", "path", "pci_bus_id", "call", "text"):
            if item.get(key):
                return f"{item[key]} {item.get('version', '')}".strip()
    return str(number)


def _leaves(value: Any, path: str, source: str) -> Iterator[tuple[str, Any, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in _BOOKKEEPING:
                yield from _leaves(item, f"{path}.{key}" if path else key, _source_of(value, key, source))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{_name_of(item, number)}]", source)
    else:
        yield path, value, source


def _leaf(key: str, value: Any, source: str) -> Text:
    text = _text(f"{key}: ")
    text.append(clean(str(value)[:_LONGEST], ascii_only=False), "bold")
    if source:
        text.append(f"  {clean(source, ascii_only=False)}", "dim")
    return text


def _text(foreign: str) -> Text:
    return Text(clean(foreign[:_LONGEST], ascii_only=False), no_wrap=True)
