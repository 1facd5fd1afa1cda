"""Read files of which neither size nor kind can be trusted, nor, where nobody named them, their author."""

from __future__ import annotations

import errno
import os
import stat

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_MOST_LINKS = 40


class TooLargeError(Exception):
    """A file is larger than it may be; the text says what it may be."""


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """The bytes of a regular file; raise OSError where there is none, TooLargeError where it has more than ``most``.

    A pipe or a device is not waited for, whatever puts it in the file's place meanwhile.
    """
    return _content(os.open(path, _FLAGS), most)


def read_found(path: str, most: int) -> tuple[bytes, str]:
    """The bytes of a file that was found, not named, and why others may have written it; empty where none could.

    Raises as ``read_file``. The file and its folder, and those behind links, must belong to the user or root, and
    nobody else may write them. What is judged is what was opened, so folders further up need no look: who swaps one
    can only put another in its place that is the user's own.
    """
    descriptor, doubt = _open_found(path)
    return _content(descriptor, most), doubt


def doubt_about(path: str) -> str:
    """Why others may have written a file, as ``read_found`` has it; empty for what no regular file is."""
    try:
        descriptor, doubt = _open_found(path)
    except OSError:
        return ""
    regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
    os.close(descriptor)
    return doubt if regular else ""


def _content(descriptor: int, most: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not a regular file")
        likely = min(found.st_size, most) + 1  # no room is made for more, unless there is more
        content = file.read(likely)
        if content is not None and len(content) == likely:
            content += file.read(most + 1 - likely) or b""
    if content is None:  # procfs has regular files that are waited for
        raise OSError("there is nothing to read in it now")
    if len(content) > most:
        raise TooLargeError(f"it has more than {most >> 20} MiB")
    return content


def _open_found(path: str) -> tuple[int, str]:
    doubt = ""
    for _ in range(_MOST_LINKS):
        place, name = os.path.split(path)
        folder = os.open(place or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            doubt = doubt or _doubt(folder, f"its folder {place}")
            descriptor = os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            path = os.path.join(place, os.readlink(name, dir_fd=folder))  # noqa: PTH118
        else:
            return descriptor, doubt or _doubt(descriptor, "it")
        finally:
            os.close(folder)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _doubt(descriptor: int, what: str) -> str:
    found = os.fstat(descriptor)
    if found.st_uid not in (0, os.geteuid()):
        return f"{what} belongs to another user (uid {found.st_uid})"
    shared = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_private(descriptor, found))
    return f"other users can write {what}" if shared else ""


def _is_private(descriptor: int, found: os.stat_result) -> bool:
    """Whether the group of a file is the owner's private one, as umask 002 on Debian and Fedora presumes.

    It has the owner's name, since the members of a directory service need not be listed, and no other member. With an
    access list the bits of the group stand for everyone on it.
    """
    import grp  # noqa: PLC0415  few files are writable for a group
    import pwd  # noqa: PLC0415

    try:
        if "system.posix_acl_access" in os.listxattr(descriptor):
            return False
    except OSError:  # no attributes, no list
        pass
    try:
        owner, group = pwd.getpwuid(found.st_uid), grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    others = {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == found.st_gid} | set(group.gr_mem)
    return group.gr_name == owner.pw_name and others <= {owner.pw_name, "root"}
