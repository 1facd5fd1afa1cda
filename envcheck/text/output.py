"""Where reports go: stdout, and files that appear whole or not at all.

Another user may share the folder, so no name is looked up twice: the folder is opened once, and everything else is
relative to its descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from envcheck.errors import UsageError
from envcheck.text.inert import Syntax, inert
from envcheck.text.wrap import did_you_mean

_MOST_LINKS = 40
_HEAD = 4096  # Bytes of a file that tell what it is


class OutputTarget(msgspec.Struct, frozen=True):
    """A file to write, and the format to write it in."""

    format: str
    path: Path


def parse_targets(texts: Sequence[str] | None, formats: Collection[str]) -> tuple[OutputTarget, ...]:
    """Read ``FORMAT:FILE`` and make sure, before any work is done, that each file can be written."""
    targets: list[OutputTarget] = []
    for text in texts or ():
        form, colon, name = text.partition(":")
        if not colon or not name or form not in formats:
            raise UsageError(f"-o {text}: write FORMAT:FILE{did_you_mean(form, formats)}")
        targets.append(OutputTarget(form, writable(name, f"-o {text}")))
    for number, target in enumerate(targets):
        if _descriptor(target.path) is not None or (target.path.exists() and not target.path.is_file()):
            continue  # an open file, a device or a pipe takes one report after the other
        if target.path.absolute() in {other.path.absolute() for other in targets[:number]}:
            raise UsageError(f"-o {target.format}:{target.path}: another -o writes that file too; name another file")
    return tuple(targets)


def writable(name: str, asked: str) -> Path:
    """The path of a file to write; raise UsageError, beginning with what was ``asked``, where it cannot be written."""
    path = Path(name)
    try:
        if _descriptor(path) is None:
            with _folder_of(path) as (folder, last):
                _refuse(folder, last, path)
    except (OSError, ValueError) as error:  # ValueError: a NUL
        raise UsageError(f"{asked}: {getattr(error, 'strerror', None) or error}") from None
    return path


def write_whole(
    path: Path,
    content: str | bytes | Iterable[str],
    syntax: Syntax | None = None,
    over: re.Pattern[bytes] | None = None,
) -> None:
    """Write ``content`` to a new file beside ``path`` and put it in its place; raise UsageError when that fails.

    It may come in parts. With a ``syntax`` it is made inert. A file keeps its mode and group; with ``over``, it gives
    way only if it begins like that. What a link of the user or root leads to is written, and the link stays. Devices,
    pipes and our own open files are written as they are.
    """
    try:
        parts = [content] if isinstance(content, str) else content
        encoded = ((inert(part, syntax) if syntax else part).encode() for part in parts if isinstance(part, str))
        data = [content] if isinstance(content, bytes) else encoded
        descriptor = _descriptor(path)
        if descriptor is not None:
            _write(os.dup(descriptor), data)
            return
        with _folder_of(path) as (folder, last):
            found = _status(folder, last)
            if over is not None and found is not None:
                _refuse_foreign(folder, last, over)
            if found is None or stat.S_ISREG(found.st_mode):
                _replace(folder, last, data, found)
            else:
                _write(os.open(last, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder), data)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None


def _descriptor(path: Path) -> int | None:
    """The descriptor that ``/dev/stdout`` and its like stand for: a file behind it must go on where it is."""
    found = re.fullmatch(r"/dev/(?:(stdout|stderr)|fd/([0-9]{1,9}))|/proc/self/fd/([0-9]{1,9})", str(path))
    return None if found is None else {"stdout": 1, "stderr": 2}.get(found[1]) or int(found[2] or found[3])


@contextlib.contextmanager
def _folder_of(path: Path) -> Iterator[tuple[int, str]]:
    """The folder that holds a file, opened, and the file's name in it; raise OSError.

    The folder must be no link. Where the file is one, the user's own or root's, they are those of what it leads to:
    with somebody else's, the kernel's ``protected_symlinks`` would refuse too.
    """
    for _ in range(_MOST_LINKS):
        try:
            folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise OSError(f"the folder {path.parent} does not exist") from None
        except NotADirectoryError:
            what = "is a link; name the folder that it leads to" if path.parent.is_symlink() else "does not exist"
            raise OSError(f"the folder {path.parent} {what}") from None
        with contextlib.ExitStack() as opened:
            opened.callback(os.close, folder)
            target = _own_link(folder, path.name)
            if target is None:
                yield folder, path.name
                return
        path = path.parent / target
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _own_link(folder: int, name: str) -> str | None:
    """What a link leads to; None for what is no link. Raises OSError for a link of another user."""
    try:
        entry = os.open(name or ".", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(entry)
        if not stat.S_ISLNK(found.st_mode):
            return None
        if found.st_uid not in (0, os.geteuid()):
            raise OSError(f"{name} is a link of another user (uid {found.st_uid})")
        return os.readlink("", dir_fd=entry)
    finally:
        os.close(entry)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name or ".", dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _refuse(folder: int, name: str, path: Path) -> None:
    """Raise OSError where a file cannot be written."""
    found = _status(folder, name)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise OSError(f"{path} is a folder; name a file")
    device = found is not None and not stat.S_ISREG(found.st_mode)
    needed = [name] if device else [".", *([name] if found else [])]
    if not all(os.access(place, os.W_OK, dir_fd=folder) for place in needed):
        raise OSError("no permission to write it")


def _refuse_foreign(folder: int, name: str, over: re.Pattern[bytes]) -> None:
    """Raise OSError for what is no file that begins like ``over``."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        if not (stat.S_ISREG(os.fstat(descriptor).st_mode) and over.match(file.read(_HEAD))):
            raise OSError("it exists and is no report of envcheck; name it with -o to replace it")


def _replace(folder: int, name: str, data: Iterable[bytes], found: os.stat_result | None) -> None:
    """Write a new file and put it in the place of the one that was ``found``, which keeps its mode and group."""
    temporary = f".envcheck-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if found else 0o666, dir_fd=folder)
    try:
        if found:
            mode = found.st_mode & 0o777
            try:
                os.fchown(descriptor, -1, found.st_gid)
            except OSError:
                mode &= ~stat.S_IRWXG  # they were the rights of another group
            os.fchmod(descriptor, mode)
        _write(descriptor, data)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _write(descriptor: int, data: Iterable[bytes]) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(data)
