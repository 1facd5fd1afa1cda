"""Which copy of the rows counts, what is refused as newer rows, and the way back."""

import hashlib
import io
import json
import os
import zipfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from envcheck import bundle
from envcheck.bundle import COMPILED, DATE
from envcheck.errors import MatrixError, UsageError
from envcheck.knowledge import copies, updates
from envcheck.knowledge.copies import FORMAT, ROWS_PACKAGE
from envcheck.knowledge.load import overlay_folders, read_compiled
from tests.every import cases

OWN = "2026-10-30"
NEWER = "2026-11-20"


def rows(day: str, **changed: Any) -> bytes:
    """Constructed: a compiled matrix of one row, whose source was read on ``day``."""
    source = {"title": "Notes", "address": "https://docs.nvidia.com/notes", "read": day}
    row = {"name": "numpy", "pattern": "x", "source": ["a/b"]}
    return json.dumps({"sources": {"a/b": source}, "fragment": [row], **changed}).encode()


def wheel(day: str, content: bytes | None = None, form: int = FORMAT, stated: str = "") -> bytes:
    """Constructed: a wheel of the rows of ``day``."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{ROWS_PACKAGE}/{form}/{COMPILED}", rows(day[:10]) if content is None else content)
        archive.writestr(f"{ROWS_PACKAGE}/{form}/{DATE}", f"{stated or day}\n")
    return packed.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def bring(day: str) -> Path:
    data = wheel(day)
    return updates.put(updates.checked(data, "rows.whl", sha256(data)))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with rows of ``OWN``, and a user's empty folder for data."""
    package = tmp_path / "site" / "envcheck"
    copy(package / "matrix", OWN)
    for module in (bundle, copies):
        monkeypatch.setattr(module, "PACKAGE", str(package))
    monkeypatch.setattr(copies, "_copies", [])
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return package.parent


def copy(folder: Path, day: str) -> Path:
    folder.mkdir(parents=True)
    (folder / COMPILED).write_bytes(rows(day))
    (folder / DATE).write_text(f"{day}\n")
    return folder


def places() -> list[tuple[str, bool, str]]:
    return [(each.read, each.counts, each.left_out) for each in updates.standing().copies]


def test_the_newest_copy_counts(site: Path) -> None:
    assert copies.rows_folder() == str(site / "envcheck" / "matrix")
    beside = copy(site / ROWS_PACKAGE / str(FORMAT), NEWER)
    copies.look_again()
    assert (copies.rows_folder(), copies.date_of_rows()) == (str(beside), NEWER)
    brought = bring("2026-11-25")
    assert (copies.rows_folder(), copies.date_of_rows()) == (str(brought), "2026-11-25")
    older = "not newer than 2026-11-25"
    assert places() == [("2026-11-25", True, ""), (OWN, False, older), (NEWER, False, older)]


def test_a_second_set_of_one_day_is_newer_and_the_first_is_not(site: Path) -> None:
    bring(f"{NEWER}.0870")
    assert bring(f"{NEWER}.1170").name == copies.date_of_rows() == f"{NEWER}.1170"
    for day in (NEWER, f"{NEWER}.0870", f"{NEWER}.1170"):
        with pytest.raises(UsageError, match=f"its rows are of {day}, and those in use are of {NEWER}.1170"):
            bring(day)
    assert (updates.take_back(), updates.standing().read) == (f"{NEWER}.1170", f"{NEWER}.0870")


@cases("day", OWN, "2026-10-29")
def test_a_copy_that_is_not_newer_leaves_what_came_with_envcheck(site: Path, day: str) -> None:
    copy(site / ROWS_PACKAGE / str(FORMAT), day)
    assert copies.rows_folder() == str(site / "envcheck" / "matrix")


def test_rows_of_another_format_are_not_looked_at(site: Path) -> None:
    copy(site / ROWS_PACKAGE / str(FORMAT + 1), NEWER)
    assert places() == [(OWN, True, "")]


def test_a_checkout_reads_its_own_rows_alone(site: Path) -> None:
    copy(site / ROWS_PACKAGE / str(FORMAT), NEWER)
    (site / "envcheck" / "matrix" / DATE).unlink()
    assert [place for _, place, _ in copies.copies()] == [str(site / "envcheck" / "matrix")]
    with pytest.raises(UsageError, match="runs from a checkout"):
        updates.put(updates.NewRows(NEWER, rows(NEWER), 0))


def test_rows_that_others_may_have_written_are_left_out_and_told(site: Path) -> None:
    place = bring(NEWER)
    place.chmod(0o777)
    copies.look_again()
    assert copies.rows_folder() == str(site / "envcheck" / "matrix")
    told: list[str] = []
    overlay_folders(None, {}, told.append)
    assert told == [f"newer rows in {place} are left out: other users can write its folder {place}"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(site: Path) -> None:
    below = bring(NEWER).parent
    below.chmod(0)
    try:
        assert ("", str(below), "it cannot be read: Permission denied") in copies.copies()
    finally:
        below.chmod(0o700)


def test_the_way_back_leads_to_what_counted_before(site: Path) -> None:
    for day in ("2026-11-01", "2026-11-10", NEWER):
        place = bring(day)
    assert sorted(path.name for path in place.parent.iterdir()) == ["2026-11-10", NEWER]
    assert [updates.take_back(), copies.copies()[-1][0]] == [NEWER, "2026-11-10"]
    assert updates.take_back() == "2026-11-10"
    assert list(place.parent.iterdir()) == []
    assert places() == [(OWN, True, "")]
    with pytest.raises(UsageError, match="there is nothing to go back from"):
        updates.take_back()


def test_what_cannot_be_written_leaves_no_trace(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device; nothing changed"):
        bring(NEWER)
    assert list(Path(copies.updates_folder()).iterdir()) == []


TOMORROW = (datetime.now(timezone.utc).date() + timedelta(days=9)).isoformat()
_NO_SOURCE = rows(NEWER, fragment=[{"name": "numpy", "pattern": "x", "source": ["a/c"]}])
_TWINS = rows(NEWER, fragment=[{"name": "numpy", "pattern": x, "source": ["a/b"]} for x in "xx"])
_UNDATED = rows(NEWER, sources={"a/b": {"title": "Notes", "address": "https://docs.nvidia.com", "read": "today"}})


@cases("data, why",
    (wheel(OWN), f"its rows are of {OWN}, and those in use are of {OWN}"),
    (wheel("2026-10-01"), f"its rows are of 2026-10-01, and those in use are of {OWN}"),
    (wheel(TOMORROW), f"its rows are of {TOMORROW}, which is yet to come"),
    (wheel(NEWER, stated=TOMORROW), f"it says that its rows were read on {TOMORROW}, and they say {NEWER}"),
    (wheel(NEWER, stated=f"{NEWER}.x"), f"it says that its rows were read on {NEWER}.x, and they say {NEWER}"),
    (wheel(NEWER, form=FORMAT + 1), f"reads rows of format {FORMAT}, and it has {FORMAT + 1}"),
    (wheel(NEWER, rows(NEWER)[:-9]), "this envcheck cannot read its rows: "),
    (wheel(NEWER, rows(NEWER, fragment=[{"name": 5}])), "only a newer envcheck can read 1 of its 1 rows"),
    (wheel(NEWER, rows(NEWER, fragment=[5])), "only a newer envcheck can read 1 of its 1 rows"),
    (wheel(NEWER, _NO_SOURCE), r"\[\[fragment\]\]: the row fragment/numpy has no source"),
    (wheel(NEWER, _TWINS), r"\[\[fragment\]\]: 2 rows are called fragment/numpy"),
    (wheel(NEWER, _UNDATED), "source a/b: it needs a title, an address and the day"),
    (wheel(NEWER, b""), "this envcheck cannot read its rows: "),
    (wheel(NEWER)[:-40], "it cannot be read as a wheel of gpu-envcheck-matrix: "),
    (b"", "it cannot be read as a wheel of gpu-envcheck-matrix: "),
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_reason(site: Path, data: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=f"^rows.whl was refused: .*{why}.*; nothing changed$"):
        updates.checked(data, "rows.whl", sha256(data))


def test_what_was_changed_on_its_way_is_refused(site: Path) -> None:
    data = wheel(NEWER)
    tampered = wheel(NEWER, rows(NEWER, fragment=[]))
    with pytest.raises(UsageError, match="it was changed or cut short"):
        updates.checked(tampered, "rows.whl", sha256(data))
    assert updates.checked(data, "rows.whl", f"sha256:{sha256(data).upper()}").read == NEWER


def test_a_member_that_grows_is_not_read_whole(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "MOST_BYTES", 1 << 20)
    data = wheel(NEWER, b" " * (2 << 20))
    assert len(data) < 9000
    with pytest.raises(UsageError, match="has more than 1 MiB"):
        updates.checked(data, "rows.whl", sha256(data))


def test_rows_that_only_a_newer_envcheck_can_read_are_left_out(site: Path) -> None:
    """Of those that came with envcheck, none is: there a row that cannot be read is damage."""
    known = [{"name": f"a{number}", "pattern": "x", "source": ["a/b"]} for number in range(200)]
    unread = {**known[0], "name": "new", "knob": 1}
    data = wheel(NEWER, rows(NEWER, fragment=[*known, unread], unheard_of=[{"name": "b"}]))
    found = updates.checked(data, "rows.whl", sha256(data))
    assert found.unread == 1
    place = updates.put(found)
    assert [row.name for row in read_compiled(place / COMPILED).fragments] == [row["name"] for row in known]
    own = site / "envcheck" / "matrix" / COMPILED
    own.write_bytes(rows(OWN, fragment=[unread]))
    updates.take_back()
    with pytest.raises(MatrixError, match="damaged"):
        _ = read_compiled(own).fragments
