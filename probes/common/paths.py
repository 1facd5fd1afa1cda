"""Operations on paths as text."""

from __future__ import annotations

import os

from .lazy import lazy_pattern

_CONTROL = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str, limit: int = 300) -> str:
    """The text without control characters, cut to ``limit``, safe to print."""
    return _CONTROL.sub("", text)[:limit]


def without_prefix(text: str, prefix: str) -> str:
    """``text`` without ``prefix`` at its start; ``str.removeprefix`` is newer than Python 3.8."""
    return text[len(prefix) :] if text.startswith(prefix) else text


def without_suffix(text: str, suffix: str) -> str:
    return text[: -len(suffix)] if suffix and text.endswith(suffix) else text


def joined(folder: str, path: str) -> str:
    """``path`` relative to ``folder``, without empty components and dots."""
    return _text(os.path.join(folder, path))


def parent(path: str) -> str:
    return os.path.dirname(_text(path)) or "."


def name_of(path: str) -> str:
    name = os.path.basename(_text(path))
    return "" if name == "." else name


def inside(path: str, folder: str) -> bool:
    """Whether the real path ``path`` is ``folder`` or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _text(path: str) -> str:
    root = "/" if path.startswith("/") else ""
    return root + "/".join(part for part in path.split("/") if part not in {"", "."}) or "."
