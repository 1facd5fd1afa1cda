"""Rows of requirements from METADATA and from source archives: for which Pythons, systems and machines."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from envcheck.errors import UsageError
from envcheck.knowledge.load import read_folder
from envcheck.refresh import metadata as metadata_module
from envcheck.refresh.index import PackageIndex
from envcheck.refresh.metadata import read_archive
from envcheck.refresh.run import refresh
from tests.every import cases
from tests.refresh.serving import Index as Served
from tests.refresh.serving import metadata, serve
from tests.refresh.test_wheel_rows import write_projects

X86 = "manylinux_2_28_x86_64"
ARM = "manylinux_2_28_aarch64"


def add(served: Served, version: str, *requires: str, tags: tuple[str, ...] = (f"cp310-cp310-{X86}",)) -> None:
    for tag in tags:
        members = {f"demo-{version}.dist-info/METADATA": metadata("demo", version, *requires, python=">=3.9")}
        served.add(f"demo-{version}-{tag}.whl", members, requires_python=">=3.9")


def rows(served: Served, folder: Path) -> list[tuple[Any, ...]]:
    if not (folder / "generated").exists():
        write_projects(folder, {"name": "demo"}, {"name": "torch"})
    with serve(served), closing(PackageIndex(served.address)) as index:
        refresh(index, str(folder), ["demo"])
        assert not refresh(index, str(folder), ["demo"]).changes
    found = read_folder(folder).requirements
    return [(row.versions, dict(row.needs), row.python, row.os, row.machine) for row in found]


def test_releases_alike_share_a_row_and_a_new_requirement_is_never_missed(tmp_path: Path) -> None:
    served = Served()
    add(served, "1.0", "torch==2.5.0")
    add(served, "1.1", "torch==2.5.0")
    assert rows(served, tmp_path) == [(">=1.0,<=1.1", {"torch": "==2.5.0"}, "", (), ())]
    add(served, "1.1", "torch==2.5.0", "nvidia-nccl-cu12>=2.20")
    add(served, "1.2", "torch==2.6.0")
    assert rows(served, tmp_path) == [
        ("==1.0", {"torch": "==2.5.0"}, "", (), ()),
        ("==1.1", {"nvidia-nccl-cu12": ">=2.20", "torch": "==2.5.0"}, "", (), ()),
        ("==1.2", {"torch": "==2.6.0"}, "", (), ()),
    ]


def test_strangers_extras_and_what_has_no_bound_are_left_out(tmp_path: Path) -> None:
    served = Served()
    add(served, "1.0", "requests>=2", "torch", "nvidia-nccl-cu12", 'torch==2.5.0; extra == "gpu"')
    assert rows(served, tmp_path) == []


def test_extras_are_read_where_the_line_of_a_project_has_them(tmp_path: Path) -> None:
    served = Served()
    of_gpu = ("torch==2.5.0; extra == 'gpu'", "demo[gpu]; extra == 'all'", "torch>=2; extra == 'docs'")
    add(served, "1.0", "torch>=2", *of_gpu, "requests; extra == 'docs'")
    row = {"versions": "==0.9", "needs": {"torch": "==2.4.0"}, "extras": ["old"]}
    write_projects(tmp_path, {"name": "demo", "extras": [row]}, {"name": "torch"})
    assert rows(served, tmp_path) == [("==1.0", {"torch": ">=2"}, "", (), ())]
    found = read_folder(tmp_path).extra_requirements
    assert [(row.versions, dict(row.needs), row.extras) for row in found] == [
        ("==1.0", {"torch": ">=2,==2.5.0"}, ("all", "gpu"))
    ]


def test_a_release_that_requires_another_one_of_itself_says_nothing(tmp_path: Path) -> None:
    served = Served()
    add(served, "1.1", "demo==1.0", "torch>=2.1")
    assert rows(served, tmp_path) == [("==1.1", {"torch": ">=2.1"}, "", (), ())]


def test_markers_make_rows_for_their_pythons_and_machines(tmp_path: Path) -> None:
    served = Served()
    here = 'platform_machine == "x86_64"'
    old, new = 'torch>=2.1,>=2.0; python_version < "3.12"', 'torch>=2.2; python_version >= "3.12"'
    add(served, "1.0", old, new, f"nvidia-nccl-cu12==2.20.5; {here}", tags=(f"py3-none-{X86}", f"py3-none-{ARM}"))
    assert sorted(rows(served, tmp_path), key=str) == [
        ("==1.0", {"nvidia-nccl-cu12": "==2.20.5"}, "", (), ("x86_64",)),
        ("==1.0", {"torch": ">=2.1"}, "<3.12", (), ()),
        ("==1.0", {"torch": ">=2.2"}, ">=3.12", (), ()),
    ]


def test_where_wheels_say_different_things_each_holds_for_its_pythons(tmp_path: Path) -> None:
    served = Served()
    add(served, "1.0", "torch>=2.1", "nvidia-nccl-cu12>=2.18", tags=(f"cp310-cp310-{X86}",))
    add(served, "1.0", "torch>=2.1", "nvidia-nccl-cu12>=2.19", tags=(f"cp311-cp311-{X86}", f"cp312-cp312-{X86}"))
    add(served, "1.0", "torch>=2.1", "nvidia-nccl-cu12>=2.20", tags=(f"cp313-cp313-{X86}",))
    assert sorted(rows(served, tmp_path), key=str) == [
        ("==1.0", {"nvidia-nccl-cu12": ">=2.18"}, "<3.11", (), ()),
        ("==1.0", {"nvidia-nccl-cu12": ">=2.19"}, ">=3.11,<3.13", (), ()),
        ("==1.0", {"nvidia-nccl-cu12": ">=2.20"}, ">=3.13", (), ()),
        ("==1.0", {"torch": ">=2.1"}, "", (), ()),
    ]


def test_a_requirement_holds_for_the_systems_of_its_marker(tmp_path: Path) -> None:
    served = Served()
    windows = 'torch==2.5.0; sys_platform == "win32"'
    add(served, "1.0", windows)
    assert rows(served, tmp_path) == []
    add(served, "1.1", windows, 'torch>=2.4; sys_platform != "win32"', tags=("py3-none-any",))
    assert sorted(rows(served, tmp_path), key=str) == [
        ("==1.1", {"torch": "==2.5.0"}, "", ("windows",), ()),
        ("==1.1", {"torch": ">=2.4"}, "", ("linux", "macos"), ()),
    ]


def test_wheels_of_another_system_may_require_something_else(tmp_path: Path) -> None:
    served = Served()
    add(served, "1.0", "torch>=2.1", "nvidia-nccl-cu12==2.20.5")
    add(served, "1.0", "torch>=2.1", tags=("cp310-cp310-win_amd64", "cp310-cp310-macosx_11_0_arm64"))
    assert sorted(rows(served, tmp_path), key=str) == [
        ("==1.0", {"nvidia-nccl-cu12": "==2.20.5"}, "", ("linux",), ()),
        ("==1.0", {"torch": ">=2.1"}, "", (), ()),
    ]


def test_a_processor_is_what_python_calls_it_on_the_system(tmp_path: Path) -> None:
    served = Served()
    marker = 'platform_machine == "arm64" or platform_machine == "AMD64"'
    add(served, "1.0", f"torch>=2.1; {marker}", tags=("py3-none-any",))
    assert sorted(rows(served, tmp_path), key=str) == [
        ("==1.0", {"torch": ">=2.1"}, "", ("macos",), ("aarch64",)),
        ("==1.0", {"torch": ">=2.1"}, "", ("windows",), ()),
    ]


# --- Requirements of releases that have a source archive alone ------------------------------------------------------
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


@cases("members, wanted",
    ({INFO: metadata("demo", "1.0", "torch>=2.0"), LISTED: b"torch>=1.0\n"}, ["torch>=2.0"]),
    ({INFO: OLD_INFO, LISTED: b"numpy<2,>=1.16\ntorch\n\n[gpu]\ncupy>=9\n"}, ["numpy<2,>=1.16", "torch"]),
    ({INFO: OLD_INFO, LISTED: b'[:python_version < "3.8"]\nnumpy<1.22\n'}, ['numpy<1.22; python_version < "3.8"']),
    ({INFO: OLD_INFO, LISTED: b'[gpu:python_version < "3.8"]\nnumpy<1.22\n'}, []),
    ({"demo-1.0/src/demo.egg-info/requires.txt": b"torch>=1.5\n"}, ["torch>=1.5"]),
    ({"demo-1.0/tests/a/b/c/other.egg-info/requires.txt": b"torch>=1.5\n"}, []),
    ({INFO: OLD_INFO, LISTED: b"=broken\ntorch>=1.5\n\xff\n"}, ["torch>=1.5"]),
    ({"demo-1.0/setup.py": b"raise SystemExit"}, []),
)  # fmt: skip
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
    put(served, "demo-1.1.1.tar.gz", packed({LISTED: b"torch\n"}))  # but one that names it without bounds does
    assert [each[0] for each in rows(served, tmp_path)] == ["==1.0", "==1.2"]


def test_the_search_ends_after_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_module, "_MOST_UNPACKED", 1000)
    served = Served()
    put(served, "demo-1.0.tar.gz", packed({"demo-1.0/large": b"\0" * 2000, LISTED: b"torch>=1.5\n"}))
    assert required(served) == []


@cases(
    "content", b"", b"text", gzip.compress(b"text"), packed({LISTED: b"torch\n"})[:60],
    ids=["empty", "text", "no archive", "cut short"],
)  # fmt: skip
def test_a_broken_archive_is_told(content: bytes) -> None:
    served = Served()
    put(served, "demo-1.0.tar.gz", content)
    with pytest.raises(UsageError, match="cannot be read as an archive"):
        required(served)
