"""Where reports go: stdout, and files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from envcheck.errors import UsageError
from envcheck.text.inert import Syntax, inert

_OPEN_FILE = re.compile(r"/dev/(?:(stdout|stderr)|fd/([0-9]{1,9}))|/proc/self/fd/([0-9]{1,9})")


class Target(msgspec.Struct, frozen=True):
    """A file to write, and the format to write it in."""

    format: str
    path: Path


def parse_targets(texts: Sequence[str] | None, formats: Collection[str]) -> tuple[Target, ...]:
    """Read ``FORMAT:FILE`` and make sure, before any work is done, that each file can be written."""
    targets = tuple(_target(text, formats) for text in texts or ())
    for number, target in enumerate(targets):
        if _descriptor(target.path) is not None or (target.path.exists() and not target.path.is_file()):
            continue  # an open file, a device or a pipe takes one report after the other
        if target.path.absolute() in {other.path.absolute() for other in targets[:number]}:
            raise UsageError(f"-o {target.format}:{target.path}: another -o writes that file too; name another file")
    return targets


def _target(text: str, formats: Collection[str]) -> Target:
    form, colon, name = text.partition(":")
    if not colon or not name or form not in formats:
        raise UsageError(f"-o {text}: write FORMAT:FILE with a format of {', '.join(sorted(formats))}")
    return Target(form, writable(name, f"-o {text}"))


def writable(name: str, asked: str) -> Path:
    """The path of a file to write; raise UsageError, beginning with what was ``asked``, where it cannot be written."""
    path = Path(name)
    try:
        problem = "" if _descriptor(path) is not None else _problem(_behind_links(path))
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle, before Python 3.13
        problem = getattr(error, "strerror", None) or str(error)
    if problem:
        raise UsageError(f"{asked}: {problem}")
    return path


def _problem(path: Path) -> str:
    """Why ``path`` cannot be written; empty where it can."""
    if path.is_dir():
        return f"{path} is a folder; name a file"
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist"
    device = path.exists() and not path.is_file()
    needed = [path] if device else [path.parent, *([path] if path.exists() else [])]
    return "" if all(os.access(place, os.W_OK) for place in needed) else "no permission to write it"


def write_whole(path: Path, text: str, syntax: Syntax | None = None) -> None:
    """Write ``text`` to a new file beside ``path`` and put it in its place; raise UsageError when that fails.

    With a ``syntax`` it is made inert. What a link leads to is written, and the link stays. Devices, pipes and our own
    open files are written as they are.
    """
    text = text if syntax is None else inert(text, syntax)
    try:
        descriptor = _descriptor(path)
        if descriptor is not None:
            with open(os.dup(descriptor), "w", encoding="utf-8") as file:  # noqa: PTH123 - it has no path
                file.write(text)
        elif path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(_behind_links(path), text)
    except (OSError, RuntimeError) as error:
        raise UsageError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None


def _descriptor(path: Path) -> int | None:
    """The descriptor that ``/dev/stdout`` and its like stand for: a file behind it must go on where it is."""
    found = _OPEN_FILE.fullmatch(str(path))
    if found is None:
        return None
    return {"stdout": 1, "stderr": 2}.get(found[1]) or int(found[2] or found[3])


def _behind_links(path: Path) -> Path:
    if not path.is_symlink() or (path.exists() and not path.is_file()):
        return path
    place = path.resolve()
    if place.is_symlink():  # from Python 3.13 on, links in a circle are left as they are
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return place


def _replace(path: Path, text: str) -> None:
    import tempfile  # noqa: PLC0415  few checks write a file, and it brings random numbers and archives along

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
