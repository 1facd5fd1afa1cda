"""Where reports go: stdout, and files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from envcheck.errors import UsageError


@dataclass(frozen=True)
class Target:
    """A file to write, and the format to write it in."""

    format: str
    path: Path


def parse_targets(texts: Sequence[str] | None, formats: Collection[str]) -> tuple[Target, ...]:
    """Read ``FORMAT:FILE`` and make sure, before any work is done, that each file can be written."""
    return tuple(_target(text, formats) for text in texts or ())


def _target(text: str, formats: Collection[str]) -> Target:
    form, colon, name = text.partition(":")
    if not colon or not name or form not in formats:
        raise UsageError(f"-o {text}: write FORMAT:FILE with a format of {', '.join(sorted(formats))}")
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"-o {text}: {name} is a folder; name a file")
    if not path.parent.is_dir():
        raise UsageError(f"-o {text}: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise UsageError(f"-o {text}: no permission to write it")
    return Target(form, path)


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to a new file beside ``path`` and put it in its place; raise UsageError when that fails."""
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path, text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
