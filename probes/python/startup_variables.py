"""Environment variables that code sets at every start of an interpreter: its text is read, nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..kit.tree import Tree
from ..kit.variable_names import matters

_MOST = 20
_SHOWN = 200
_LIMIT = 64 << 10
_SPAN = 600
"""Characters after ``update(`` that are read."""

_NAME = r"['\"]([A-Za-z_]\w{0,80})['\"]"
_VALUE = r"\s{0,8}(?:['\"]([^'\"\n]{0,200})['\"]\s{0,8}(?=[;,)}#\n]|$))?"
_ASSIGNED = re.compile(
    rf"\benviron\s{{0,8}}\[\s{{0,8}}{_NAME}\s{{0,8}}\]\s{{0,8}}=(?!=){_VALUE}"
    rf"|\benviron\s{{0,8}}\.\s{{0,8}}setdefault\s{{0,8}}\(\s{{0,8}}{_NAME}\s{{0,8}},{_VALUE}"
    rf"|\bputenv\s{{0,8}}\(\s{{0,8}}{_NAME}\s{{0,8}},{_VALUE}"
)
_UPDATED = re.compile(r"\benviron\s{0,8}(?:\.\s{0,8}update\s{0,8}\(|\|=)")
_PAIR = re.compile(rf"(?:{_NAME}\s{{0,8}}:|\b([A-Za-z_]\w{{0,80}})\s{{0,8}}=(?!=)){_VALUE}")
_CUSTOM = ("sitecustomize.py", "usercustomize.py")
"""Modules that ``site`` imports where the search path has them; of each the first counts."""


def variables_set(
    tree: Tree, texts: Sequence[tuple[str, str, str]], folders: Sequence[str]
) -> tuple[dict[str, Any], ...]:
    """``StartupVariable`` records for the ``texts`` of ``.pth`` files (file, module or nothing, text) and for the
    modules for customization in the ``folders`` of the search path.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path, module, text in [*texts, *_customization(tree, folders)]:
        for name, value in _settings(text[:_LIMIT]):
            if not matters(name):
                continue
            record: dict[str, Any] = {"path": path, "name": name, "source": f"file {path}"}
            if module:
                record["module"] = module
            if value is not None:
                record["value"] = value[:_SHOWN]
            found.setdefault((path, name), record)
            if len(found) >= _MOST:
                return tuple(found.values())
    return tuple(found.values())


def _customization(tree: Tree, folders: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for name in _CUSTOM:
        for folder in folders:
            data = tree.read_bytes(f"{folder}/{name}", _LIMIT)
            if data is not None:
                yield f"{folder}/{name}", "", data.decode("utf-8", "replace")
                break


def _settings(text: str) -> Iterator[tuple[str, str | None]]:
    """Names and values that the text sets; None for a value that is computed."""
    code = re.sub(r"^[ \t]{0,80}#[^\n]*", "", text, flags=re.MULTILINE)
    for match in _ASSIGNED.finditer(code):
        told = match.groups()
        yield next((told[at], told[at + 1]) for at in range(0, len(told), 2) if told[at])
    for match in _UPDATED.finditer(code):
        for pair in _PAIR.finditer(code[match.end() : match.end() + _SPAN].partition(")")[0]):
            yield pair[1] or pair[2], pair[3]
