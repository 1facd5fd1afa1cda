"""Owners by rpm's database, put together here in its form; one that rpm itself wrote is in tests/lab."""

import random
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest

from probes.common.tree import Tree
from probes.files.owners import system_packages
from probes.files.owners.claims import Claim
from probes.files.owners.system_packages import RpmPackage, read, rpm_owners
from tests.every import cases
from tests.known import known

PATH = "/usr/lib64/libcublas.so.12.4.5.8"
STRING, STRINGS, NUMBERS = 6, 8, 4


def header(*entries: tuple[int, int, Any]) -> bytes:
    index, store = b"", b""
    for tag, kind, value in entries:
        values = value if isinstance(value, list) else [value]
        index += struct.pack(">IIII", tag, kind, len(store), len(values))
        for each in values:
            store += struct.pack(">I", each) if isinstance(each, int) else each.encode() + b"\0"
    return struct.pack(">II", len(entries), len(store)) + index + store


CUBLAS = header(
    (1000, STRING, "libcublas-12-4"), (1001, STRING, "12.4.5.8"), (1002, STRING, "1"), (1028, NUMBERS, [7, 2]),
    (1116, NUMBERS, [0, 1]), (1117, STRINGS, ["README", "libcublas.so.12.4.5.8"]),
    (1118, STRINGS, ["/usr/share/doc/", "/usr/lib64/"]),
)  # fmt: skip


def database(root: Path, place: str = "/var/lib/rpm", **packages: bytes) -> Path:
    file = root / place.lstrip("/") / "rpmdb.sqlite"
    file.parent.mkdir(parents=True)
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY AUTOINCREMENT, blob BLOB NOT NULL)")
        connection.execute("CREATE TABLE Name (key TEXT NOT NULL, hnum INTEGER NOT NULL, idx INTEGER NOT NULL)")
        for name, blob in packages.items():
            number = connection.execute("INSERT INTO Packages (blob) VALUES (?)", (blob,)).lastrowid
            connection.execute("INSERT INTO Name VALUES (?, ?, 0)", (name, number))
    connection.close()
    return file


def library(root: Path) -> Tree:
    place = root / PATH.lstrip("/")
    place.parent.mkdir(parents=True)
    place.touch()
    return Tree({"root": str(root)})


@cases("place", "/var/lib/rpm", "/usr/lib/sysimage/rpm")
def test_the_package_that_lists_a_file(tmp_path: Path, place: str) -> None:
    database(tmp_path, place, cublas=CUBLAS)
    tree = library(tmp_path)
    assert rpm_owners(tree, {PATH}) == {PATH: [Claim("rpm", "libcublas-12-4", "12.4.5.8-1", 2)]}
    assert rpm_owners(tree, {"/usr/lib64/libnccl.so.2"}) == {}


def test_a_folder_whose_name_means_something_in_an_address(tmp_path: Path) -> None:
    root = tmp_path / "a%20b?mode=rw#c"
    database(root, cublas=CUBLAS)
    assert set(rpm_owners(library(root), {PATH})) == {PATH}


def test_packages_of_other_names_are_not_opened(tmp_path: Path) -> None:
    database(tmp_path, bash=CUBLAS)
    assert rpm_owners(library(tmp_path), {PATH}) == {}


def test_nothing_is_created_beside_the_database(tmp_path: Path) -> None:
    file = database(tmp_path, cublas=CUBLAS)
    before = file.read_bytes()
    assert rpm_owners(library(tmp_path), {PATH})
    assert [each.name for each in file.parent.iterdir()] == ["rpmdb.sqlite"]
    assert file.read_bytes() == before


def test_an_epoch_is_told() -> None:
    package = read(header((1000, STRING, "nccl"), (1001, STRING, "2.21.5"), (1002, STRING, "1"), (1003, NUMBERS, [1])))
    assert package == RpmPackage("nccl", "1:2.21.5-1", ())


@cases(
    "blob", b"", b"\0" * 7, b"\xff" * 64, struct.pack(">II", 1 << 30, 1 << 30), CUBLAS[:40],
    header((1000, STRING, ""), (1001, STRING, "1")),
    struct.pack(">II", 1, 4) + struct.pack(">IIII", 1000, STRING, 1 << 31, 1) + b"abc\0",
)  # fmt: skip
def test_damaged_headers(blob: bytes) -> None:
    assert read(blob) is None


def test_indexes_beyond_the_folders_name_no_file() -> None:
    damaged = header(
        (1000, STRING, "nccl"), (1001, STRING, "2"), (1116, NUMBERS, [9, 0]), (1117, STRINGS, ["a", "b", "c"]),
        (1118, STRINGS, ["/usr/lib64/"]),
    )  # fmt: skip
    package = read(damaged)
    assert known(package).files == (("/usr/lib64/b", None),)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    tree = library(tmp_path)
    place = tmp_path / "var/lib/rpm/rpmdb.sqlite"
    place.parent.mkdir(parents=True)
    for content in (b"", b"SQLite format 3\0" + b"\xff" * 500, b"text"):
        place.write_bytes(content)
        assert rpm_owners(tree, {PATH}) == {}
    place.unlink()
    place.symlink_to("rpmdb.sqlite")
    assert rpm_owners(tree, {PATH}) == {}


def test_a_view_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = database(tmp_path, cublas=CUBLAS)
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE Name")
        endless = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) AS key, 1 AS hnum FROM n"
        )
        connection.execute(f"CREATE VIEW Name AS {endless}")
    connection.close()
    monkeypatch.setattr(system_packages, "_STEPS", 50_000)
    assert rpm_owners(library(tmp_path), {PATH}) == {}


# --- the older form -----------------------------------------------------------------------------------------------
PAGE = 512


def page(number: int, kind: int, items: list[bytes], *, after: int = 0, content: bytes = b"") -> bytes:
    """One page of Berkeley DB; a bucket's items from its end backwards, or an overflow page's content."""
    body = bytearray(PAGE)
    end, offsets = PAGE, []
    for item in items:
        end -= len(item)
        body[end : end + len(item)] = item
        offsets.append(end)
    free = len(content) or end
    struct.pack_into("<8xIIIHHBB", body, 0, number, 0, after, len(items), free, 0, kind)
    struct.pack_into(f"<{len(offsets)}H", body, 26, *offsets)
    body[26 : 26 + len(content)] = content or body[26 : 26 + len(content)]
    return bytes(body)


def berkeley(root: Path, blob: bytes, *, after: int = 0, first: int = 2, order: str = "<") -> None:
    """A file with one bucket, which holds a short value and one that lies on overflow pages (constructed)."""
    head = bytearray(PAGE)
    struct.pack_into(f"{order}12xII I", head, 0, 0x061561, 9, PAGE)
    struct.pack_into(f"{order}I", head, 72, 0)
    struct.pack_into(f"{order}32I", head, 96, *[1] * 32)
    off_page = struct.pack("<BxxxII", 3, first, len(blob))
    items = [b"\x01" + bytes(4), b"\x01" + bytes(4), b"\x01" + bytes(4), off_page]
    room = PAGE - 26
    parts = [blob[start : start + room] for start in range(0, len(blob), room)]
    pages = [bytes(head), page(1, 13, items, after=after)]
    for number, part in enumerate(parts, 2):
        pages.append(page(number, 7, [], after=number + 1 if number - 1 < len(parts) else 0, content=part))
    file = root / "var/lib/rpm/Packages"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(pages))


def test_the_older_form(tmp_path: Path) -> None:
    tree = library(tmp_path)
    berkeley(tmp_path, CUBLAS + bytes(900))
    assert rpm_owners(tree, {PATH}) == {PATH: [Claim("rpm", "libcublas-12-4", "12.4.5.8-1", 2)]}


def test_the_older_form_damaged(tmp_path: Path) -> None:
    tree = library(tmp_path)
    berkeley(tmp_path, CUBLAS, order=">")  # its page of metadata says one order, the others are in another
    assert rpm_owners(tree, {PATH}) == {}
    berkeley(tmp_path, CUBLAS, after=1)  # a bucket that leads to itself
    assert set(rpm_owners(tree, {PATH})) == {PATH}
    berkeley(tmp_path, CUBLAS, first=1)
    assert rpm_owners(tree, {PATH}) == {}
    berkeley(tmp_path, CUBLAS, first=1 << 30)
    assert rpm_owners(tree, {PATH}) == {}
    place = tmp_path / "var/lib/rpm/Packages"
    berkeley(tmp_path, CUBLAS)
    whole = place.read_bytes()
    chance = random.Random(3)
    for _ in range(300):
        damaged = bytearray(whole[: chance.randrange(len(whole))] if chance.random() < 0.3 else whole)
        for _ in range(chance.randrange(1, 20)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256) if damaged else 0
        place.write_bytes(damaged)
        assert set(rpm_owners(tree, {PATH})) <= {PATH}
