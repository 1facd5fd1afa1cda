"""A file that may say anything, read piece by piece with ``pread``.

Not mapped into memory: a mapped file that another program shortens kills its reader with SIGBUS.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from ._kit import refused

if TYPE_CHECKING:
    from types import TracebackType

READ_LIMIT = 64 << 20
"""No single read is longer than this, whatever a file claims."""

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class ElfError(ValueError):
    """Why a file cannot be read as what it should be, as one sentence without the path."""


class Reader:
    """Something with bytes at offsets."""

    path: str
    size: int
    """Bytes."""

    def read(self, offset: int, size: int) -> bytes:
        """The bytes there, fewer where it ends or ``READ_LIMIT`` does; raises ElfError if the disk fails."""
        raise NotImplementedError

    def exactly(self, offset: int, size: int, what: str) -> bytes:
        """As many bytes as asked for, or ElfError that names ``what`` lies beyond the end."""
        data = self.read(offset, size)
        if len(data) != size:
            raise ElfError(f"{what} lies beyond the end of the file")
        return data


class File(Reader):
    """A regular file open for reading; closes itself as a context manager, else with the last reference."""

    def __init__(self, path: str) -> None:
        """Open ``path``; raises ElfError where it is no regular file or cannot be opened."""
        self.path = path
        self._descriptor = -1
        try:
            _require_regular(os.stat(path))  # first: opening a device can already change something
            self._descriptor = os.open(path, _FLAGS)
            found = os.fstat(self._descriptor)
            _require_regular(found)
        except (OSError, ValueError) as error:
            refused(path, error)
            self.close()
            raise ElfError(_reason(error)) from error
        self.size = found.st_size

    def read(self, offset: int, size: int) -> bytes:
        left = self.size - offset
        if size > left or size > READ_LIMIT:
            size = min(left, READ_LIMIT)
        if offset < 0 or size <= 0:
            return b""
        try:
            return os.pread(self._descriptor, size, offset)
        except OSError as error:
            raise ElfError(_reason(error)) from error

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> File:  # noqa: PYI034  Self is newer than the oldest interpreter that reads this
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class Window(Reader):
    """A part of a file as if it were one: nothing in it leads out of it."""

    def __init__(self, whole: Reader, start: int, size: int) -> None:
        self.path = whole.path
        self.start = start
        self.size = max(0, min(size, whole.size - start))
        self._whole = whole

    def read(self, offset: int, size: int) -> bytes:
        return self._whole.read(self.start + offset, min(size, self.size - offset)) if offset >= 0 else b""


def _require_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ElfError("it is no regular file")


def _reason(error: Exception) -> str:
    if isinstance(error, ElfError):
        return str(error)
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
