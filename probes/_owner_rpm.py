"""Which RPM package a file belongs to, by rpm's own database; rpm is not asked.

In the form of SQLite the file is opened read-only and as one that does not change, so that SQLite creates nothing
beside it; in the older form (up to RHEL 8) it is a hash file of Berkeley DB. SUSE's form (ndb) is not read: files stay
without owner there.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator

from ._kit import Request, below, refused
from ._library_claims import Claim
from ._library_families import family_of
from ._links import resolve
from ._owner_dpkg import NAMES
from ._owner_rpm_berkeley import DamagedError, Hash
from ._owner_rpm_header import Package, name_in, read

_PACKAGES = 2000
_BLOB_LIMIT = 32 << 20
_SMALLEST = 64
_START = 4096
"""Bytes of a header that hold its index and, behind it, its name."""
_STEPS = 2_000_000
"""Instructions of SQLite's virtual machine that one question may take, so that no crafted file holds the probe up."""


def owners(request: Request, wanted: Collection[str]) -> dict[str, list[Claim]]:
    """For the real paths ``wanted``, the packages that list them."""
    found: dict[str, list[Claim]] = {}
    folders: dict[str, str | None] = {}
    for package in _packages(request) if wanted else ():
        for path, size in package.files:
            folder, name = posixpath.split(path)
            if family_of(name) is None:
                continue
            if folder not in folders:
                folders[folder] = resolve(request, folder)
            real = f"{folders[folder]}/{name}"
            if real in wanted:
                found.setdefault(real, []).append(Claim("rpm", package.name, package.version, size))
    return found


def _packages(request: Request) -> Iterator[Package]:
    for name, read_blobs in DATABASES.items():
        path = resolve(request, name)
        if path is not None and os.path.isfile(below(request, path)):
            packages = (read(blob) for blob in read_blobs(below(request, path)))
            yield from (package for package in packages if package is not None)
            return


def _from_sqlite(place: str) -> list[bytes]:
    """The headers of the packages whose names sound like CUDA."""
    import sqlite3

    name = place.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        connection = sqlite3.connect(f"file:{name}?mode=ro&immutable=1", uri=True, timeout=0.1)
    except sqlite3.Error:
        return []
    left = [_STEPS // 1000]

    def stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    try:
        connection.set_progress_handler(stop, 1000)
        connection.execute("PRAGMA trusted_schema = OFF")
        rows = connection.execute("SELECT key, hnum FROM Name").fetchmany(100_000)
        numbers = [number for name, number in rows if isinstance(name, str) and NAMES.match(name)][:_PACKAGES]
        question = "SELECT blob FROM Packages WHERE hnum = ? AND length(blob) <= ?"
        answers = [connection.execute(question, (number, _BLOB_LIMIT)).fetchone() for number in numbers]
    except sqlite3.Error:
        return []
    finally:
        connection.close()
    return [answer[0] for answer in answers if answer is not None and isinstance(answer[0], bytes)]


def _from_berkeley(place: str) -> list[bytes]:
    """The same of a hash file; of the other packages only the start is read, which holds the name."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        refused(place, error)
        return []
    found: list[bytes] = []
    try:
        for value in Hash(descriptor).values(_SMALLEST):
            if NAMES.match(name_in(value.start(_START))) and len(found) < _PACKAGES:
                found.append(value.whole())
    except (DamagedError, OSError):
        return found
    finally:
        os.close(descriptor)
    return found


DATABASES = {
    "/usr/lib/sysimage/rpm/rpmdb.sqlite": _from_sqlite,
    "/var/lib/rpm/rpmdb.sqlite": _from_sqlite,
    "/usr/lib/sysimage/rpm/Packages": _from_berkeley,
    "/var/lib/rpm/Packages": _from_berkeley,
}
"""Where rpm keeps its database, and how that is read; the first that is there counts."""
