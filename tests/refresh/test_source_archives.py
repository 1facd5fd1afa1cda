"""Requirements of releases that have a source archive alone: PKG-INFO, setuptools' list, and broken archives."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.refresh import metadata as metadata_module
from envcheck.refresh.index import PackageIndex
from envcheck.refresh.metadata import read_archive
from tests.refresh.serving import Index as Served
from tests.refresh.serving import metadata, serve
from tests.refresh.test_requirement_rows import add, rows

LISTED = "demo-1.0/demo.egg-info/requires.txt"
INFO = "demo-1.0/PKG-INFO"
OLD_INFO = metadata("demo", "1.0")


def packed(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def put(served: Served, name: str, content: bytes) -> None:
    served.files[name] = content
    served.requires_python[name] = ">=3.8"


def required(served: Served) -> list[str]:
    with serve(served), closing(PackageIndex(served.address)) as index:
        return [str(one) for one in read_archive(index.files("demo")[0], index.session).requirements]


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ({INFO: metadata("demo", "1.0", "torch>=2.0"), LISTED: b"torch>=1.0\n"}, ["torch>=2.0"]),
        ({INFO: OLD_INFO, LISTED: b"numpy<2,>=1.16\ntorch\n\n[gpu]\ncupy>=9\n"}, ["numpy<2,>=1.16", "torch"]),
        ({INFO: OLD_INFO, LISTED: b'[:python_version < "3.8"]\nnumpy<1.22\n'}, ['numpy<1.22; python_version < "3.8"']),
        ({INFO: OLD_INFO, LISTED: b'[gpu:python_version < "3.8"]\nnumpy<1.22\n'}, []),
        ({"demo-1.0/src/demo.egg-info/requires.txt": b"torch>=1.5\n"}, ["torch>=1.5"]),
        ({"demo-1.0/tests/a/b/c/other.egg-info/requires.txt": b"torch>=1.5\n"}, []),
        ({INFO: OLD_INFO, LISTED: b"=broken\ntorch>=1.5\n\xff\n"}, ["torch>=1.5"]),
        ({"demo-1.0/setup.py": b"raise SystemExit"}, []),
    ],
)
def test_an_archive_declares(members: dict[str, bytes], wanted: list[str]) -> None:
    served = Served()
    put(served, "demo-1.0.tar.gz", packed(members))
    assert required(served) == wanted


def test_so_does_one_that_is_a_zip() -> None:
    served, file = Served(), io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(INFO, OLD_INFO)
        archive.writestr(LISTED, "torch>=1.5\n")
    put(served, "demo-1.0.zip", file.getvalue())
    assert required(served) == ["torch>=1.5"]


def test_a_release_with_wheels_is_told_by_these_and_another_by_its_archive(tmp_path: Path) -> None:
    served = Served()
    put(served, "demo-1.0.tar.gz", packed({LISTED: b"torch>=1.5\n"}))
    put(served, "demo-1.1.tar.gz", packed({"demo-1.1/demo.egg-info/requires.txt": b"torch>=1.6\n"}))
    add(served, "1.1", "torch>=1.7")
    assert rows(served, tmp_path) == [
        ("==1.0", {"torch": ">=1.5"}, "", (), ()),
        ("==1.1", {"torch": ">=1.7"}, "", (), ()),
    ]


def test_an_archive_that_names_nothing_parts_no_releases(tmp_path: Path) -> None:
    served = Served()
    add(served, "1.0", "torch>=1.7")
    put(served, "demo-1.1.tar.gz", packed({"demo-1.1/setup.py": b""}))
    add(served, "1.2", "torch>=1.7")
    assert rows(served, tmp_path) == [(">=1.0,<=1.2", {"torch": ">=1.7"}, "", (), ())]


def test_the_search_ends_after_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_module, "_MOST_UNPACKED", 1000)
    served = Served()
    put(served, "demo-1.0.tar.gz", packed({"demo-1.0/large": b"\0" * 2000, LISTED: b"torch>=1.5\n"}))
    assert required(served) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"text", gzip.compress(b"text"), packed({LISTED: b"torch\n"})[:60]],
    ids=["empty", "text", "no archive", "cut short"],
)
def test_a_broken_archive_is_told(content: bytes) -> None:
    served = Served()
    put(served, "demo-1.0.tar.gz", content)
    with pytest.raises(UsageError, match="cannot be read as an archive"):
        required(served)
