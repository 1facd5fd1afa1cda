"""Read files whose size and kind cannot be trusted."""

from __future__ import annotations

import os
import stat


class TooLargeError(Exception):
    """A file is larger than it may be; the text says what it may be."""


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """The bytes of a regular file; raise OSError where there is none, TooLargeError where it has more than ``most``.

    A pipe or a device is not waited for, whatever puts it in the file's place meanwhile.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        content = file.read(most + 1)
    if content is None:  # procfs has regular files that are waited for
        raise OSError("there is nothing to read in it now")
    if len(content) > most:
        raise TooLargeError(f"it has more than {most >> 20} MiB")
    return content
