"""Newer rows than those that came with envcheck: wheels of ``gpu-envcheck-matrix`` are checked, put into the user's
folder for data, and taken away again (docs/decisions/064-rows-of-their-own.md).
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tempfile
import zipfile
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import msgspec

from envcheck.bundle import COMPILED, DATE
from envcheck.errors import MatrixError, UsageError
from envcheck.knowledge.copies import FORMAT, ROWS_PACKAGE, copies, look_again, updates_folder
from envcheck.knowledge.load import check_compiled, matrix_date

DISTRIBUTION = "gpu-envcheck-matrix"
MOST_BYTES = 64 << 20  # Bytes that a wheel, and the rows in it, may have: more than ten times what they have today
_MOST_UNREAD = 100  # One of so many rows may be for newer envchecks alone: with more, less might be known than before
_KEPT = 2  # Copies in the data folder: what counts, and what was there before
_FORMAT = re.compile(rf"{ROWS_PACKAGE}/([0-9]{{1,4}})/{re.escape(COMPILED)}")
_TWO_DAYS = timedelta(days=2)  # How far ahead of this machine's clock a day may be: it is later elsewhere


class RowsCopy(msgspec.Struct, frozen=True):
    read: str  # The newest day on which a source of it was read, and the minute of it; empty where that is unknown
    place: str
    origin: str
    counts: bool
    left_out: str = ""  # Why it does not count


class Standing(msgspec.Struct, frozen=True):
    """How old the rows are, and where they come from."""

    read: str
    age_days: int
    copies: tuple[RowsCopy, ...]  # What counts comes first
    newer: str | None = None  # The day of newer rows on the index: empty where it has none, None where it was not asked


class NewRows(msgspec.Struct, frozen=True):
    """Rows that passed every check."""

    read: str
    content: bytes
    unread: int  # Rows in it that only a newer envcheck can read: they are left out, and their releases unknown


def standing(newer: str | None = None) -> Standing:
    """The copies of this machine. Raises FileNotFoundError where the installation has no rows."""
    found = copies()
    (own, place, _), *_ = found
    own = own or matrix_date()  # a checkout, where no build noted it
    counting = max((copy for copy in found if not copy[2]), key=lambda copy: copy[0])
    listed = []
    for day, folder, doubt in found:
        counts = folder == counting[1]
        origin = "they came with envcheck" if folder == place else "the distribution gpu-envcheck-matrix"
        origin = "brought by envcheck matrix update" if folder.startswith(updates_folder() or "\0") else origin
        older = "" if counts else f"not newer than {counting[0]}"
        listed.append(RowsCopy(day or own, folder, origin, counts, doubt or older))
    listed.sort(key=lambda copy: not copy.counts)
    age = (_today() - date.fromisoformat(listed[0].read[: len("2026-11-29")])).days
    return Standing(listed[0].read, age, tuple(listed), newer)


def checked(data: bytes, name: str, sha256: str) -> NewRows:
    """The rows of a wheel whose ``sha256`` is known from elsewhere. Raises UsageError with what is wrong with it."""
    found = hashlib.sha256(data).hexdigest()
    if found != sha256.lower().removeprefix("sha256:"):
        raise _refused(name, f"its sha256 is {found}, not {sha256}: it was changed or cut short")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            matches = [match for entry in wheel.namelist() if (match := _FORMAT.fullmatch(entry))]
            formats = {int(match[1]): match[0] for match in matches}
            if FORMAT not in formats:
                listed = ", ".join(map(str, sorted(formats))) or "none"
                raise _refused(name, f"this envcheck reads rows of format {FORMAT}, and it has {listed}")
            content = _member(wheel, formats[FORMAT], name)
            day = _member(wheel, formats[FORMAT].replace(COMPILED, DATE), name).decode("ascii", "replace").strip()
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, OSError, ValueError) as error:
        raise _refused(name, f"it cannot be read as a wheel of {DISTRIBUTION}: {error}") from None
    try:
        newest, every, unread = check_compiled(content)
    except MatrixError as error:
        raise _refused(name, f"this envcheck cannot read its rows: {error.__cause__ or error}") from None
    if unread * _MOST_UNREAD > every:
        raise _refused(name, f"only a newer envcheck can read {unread} of its {every} rows: install one")
    if not re.fullmatch(rf"{re.escape(newest)}(\.[0-9]{{4}})?", day):
        raise _refused(name, f"it says that its rows were read on {day}, and they say {newest}")
    if date.fromisoformat(newest) > _today() + _TWO_DAYS:
        raise _refused(name, f"its rows are of {day}, which is yet to come (today is {_today()} here)")
    in_use = standing().read
    if day <= in_use:
        raise _refused(name, f"its rows are of {day}, and those in use are of {in_use}")
    return NewRows(day, content, unread)


def put(rows: NewRows) -> Path:
    """Put rows into the data folder, whole or not at all, and keep what counted before. Raises UsageError."""
    below = _newer_rows()
    try:
        below.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=below))
        try:
            for name, content in ((COMPILED, rows.content), (DATE, f"{rows.read}\n".encode())):
                with (scratch / name).open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            scratch.rename(below / rows.read)
        except OSError:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    except OSError as error:
        raise UsageError(f"the rows cannot be written to {below}: {error.strerror or error}; nothing changed") from None
    look_again()
    for old in _brought(below)[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return below / rows.read


def take_back() -> str:
    """Take the newest rows out of the data folder; return their day. Raises UsageError where there are none."""
    below = _newer_rows()
    found = _brought(below)
    if not found:
        raise UsageError(f"there is nothing to go back from: envcheck matrix update brought no rows to {below}")
    try:
        gone = found[-1].rename(below / f".gone-{found[-1].name}-{os.getpid()}")
    except OSError as error:
        raise UsageError(f"{found[-1]} cannot be taken away: {error.strerror or error}") from None
    look_again()
    shutil.rmtree(gone, ignore_errors=True)
    return found[-1].name


def _brought(below: Path) -> list[Path]:
    """What updates brought, the oldest first."""
    return sorted(Path(place) for _, place, _ in copies() if Path(place).parent == below)


def _newer_rows() -> Path:
    if not copies()[0][0]:
        raise UsageError("this envcheck runs from a checkout, which reads the rows in it alone: pull newer ones")
    place = updates_folder()
    if not place:
        raise UsageError("there is no folder for newer rows: neither XDG_DATA_HOME nor HOME is an absolute path")
    return Path(place)


def _member(wheel: zipfile.ZipFile, entry: str, name: str) -> bytes:
    with wheel.open(entry) as member:
        content = member.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise _refused(name, f"{entry} has more than {MOST_BYTES >> 20} MiB")
    return content


def _refused(name: str, why: str) -> UsageError:
    return UsageError(f"{name} was refused: {why}; nothing changed")


def _today() -> date:
    return datetime.now(timezone.utc).date()
