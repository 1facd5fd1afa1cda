"""Who owns a file: lists of wheels, conda and dpkg, odd, damaged and hostile, and whose version is the library's."""

import json
import os
import random
from pathlib import Path

from probes.files.owners.claims import Claim, decide, declared
from probes.files.owners.conda import owners
from probes.files.owners.system_packages import dpkg_owners
from probes.files.owners.wheels import Recorded, decisive, libraries_by
from tests.every import cases, tabled
from tests.known import known
from tests.probes.environment_trees import Tree

INFO = "/site/nvidia_cudnn_cu12-9.1.0.70.dist-info"
CUDNN = "/site/nvidia/cudnn/lib/libcudnn.so.9"


def recorded(tree: Tree, content: str | bytes) -> list[Recorded]:
    tree.file(f"{INFO}/RECORD", content)
    found = libraries_by(tree.view(), INFO)
    return known(found)


@cases("line, found",
    ("nvidia/cudnn/lib/libcudnn.so.9,sha256=abc,104664", [(CUDNN, 104664, "sha256=abc")]),
    ("nvidia/cudnn/lib/libcudnn.so.9,,", [(CUDNN, None, None)]),
    ("nvidia/cudnn/lib/libcudnn.so.9,sha256=abc,104664\r", [(CUDNN, 104664, "sha256=abc")]),
    ('"nvidia/cudnn/lib/libcudnn.so.9",sha256=abc,"104664"', [(CUDNN, 104664, "sha256=abc")]),
    ('"a,b/libcudnn.so.9",,5', [("/site/a,b/libcudnn.so.9", 5, None)]),
    ("/opt/lib/libcudnn.so.9,,5", [("/opt/lib/libcudnn.so.9", 5, None)]),
    ("../../../lib/libcudnn.so.9,,5", [("/lib/libcudnn.so.9", 5, None)]),
    ("nvidia/cudnn/lib/libcudnn.so.9,,-5", [(CUDNN, None, None)]),
    ("nvidia/cudnn/lib/libcudnn.so.9,,\u0665", [(CUDNN, None, None)]), ("nvidia/cudnn/lib/libcudnn.so.9", []),
    ('"nvidia/cudnn/lib/libcudnn.so.9', []), ("nvidia/cudnn/lib/libcudnn.so.9.py,,5", []),
    ("nvidia/cudnn/lib/libcudnn_static.a,,5", []), ("nvidia/libcudnn.so/readme,,5", []), ("", []),
)  # fmt: skip
def test_lines_of_record(tree: Tree, line: str, found: list[tuple[str, int | None, str | None]]) -> None:
    assert [tuple(each) for each in recorded(tree, f"a/b.py,sha256=x,1\n{line}\nc.py,,")] == found


def test_many_lines_of_which_few_matter(tree: Tree) -> None:
    lines = [f"torch/include/file{number}.h,sha256=x,{number}" for number in range(5000)]
    lines.insert(2500, "torch/lib/libcudnn.so.8,sha256=y,7")
    assert [each.path for each in recorded(tree, "\n".join(lines))] == ["/site/torch/lib/libcudnn.so.8"]


def test_a_record_is_read_again_when_it_changed(tree: Tree) -> None:
    assert len(recorded(tree, "a/libcudnn.so.9,,1\n")) == 1
    assert len(recorded(tree, "a/libcudnn.so.9,,1\nb/libcudnn.so.9,,1\n")) == 2


def test_no_record_and_what_is_none(tree: Tree) -> None:
    assert libraries_by(tree.view(), INFO) is None
    tree.at(INFO).mkdir(parents=True)
    os.mkfifo(tree.at(f"{INFO}/RECORD"))
    assert libraries_by(tree.view(), INFO) is None
    assert decisive(tree.view(), INFO) == ((), True)


@tabled
def test_which_files_decide(tree: Tree, line: str, path: str | None) -> None:
    recorded(tree, f"x/y/z.h,sha256=x,1\n{line}\nx/README,,")
    assert [each.path for each in decisive(tree.view(), INFO)[0]] == ([f"/site/{path}"] if path else [])


def test_random_records(tree: Tree) -> None:
    chance = random.Random(11)
    pieces = [
        b"/libcudnn.so.9", b",", b'"', b"\n", b"\r", b"\0", b"\xff", b"sha256=x", b"12", b"../", b"/libcu", b".so",
    ]  # fmt: skip
    for _ in range(300):
        content = b"".join(chance.choice(pieces) for _ in range(chance.randrange(60)))
        for each in recorded(tree, content):
            assert each.path.startswith("/")
            assert "\n" not in each.path


# --- conda --------------------------------------------------------------------------------------------------------
def conda(tree: Tree, content: str | bytes, name: str = "cudnn") -> dict[str, list[Claim]]:
    path = f"/env/conda-meta/{name}-9.3.0-0.json"
    tree.file(path, content)
    return owners(tree.view(), "/env", [{"name": name, "version": "9.3.0", "path": path}])


def test_entries_in_any_layout(tree: Tree) -> None:
    entry = {"_path": "lib/libcudnn.so.9.3.0", "path_type": "hardlink", "size_in_bytes": 7, "sha256": "x"}
    claim = {"/env/lib/libcudnn.so.9.3.0": [Claim("conda", "cudnn", "9.3.0", 7)]}
    for indent in (None, 0, 2):
        record = {
            "files": ["lib/libcudnn.so.9.3.0"],
            "paths_data": {"paths": [{"_path": "a", "size_in_bytes": 1}, entry]},
        }
        assert conda(tree, json.dumps(record, indent=indent)) == claim


def test_without_sizes_the_path_alone_is_told(tree: Tree) -> None:
    assert conda(tree, json.dumps({"files": ["lib/libcudnn.so.9.3.0"]})) == {
        "/env/lib/libcudnn.so.9.3.0": [Claim("conda", "cudnn", "9.3.0")]
    }


def test_records_of_other_packages_are_not_opened(tree: Tree) -> None:
    assert conda(tree, json.dumps({"files": ["lib/libcudnn.so.9.3.0"]}), "xz") == {}


@cases("content",
    "", "{", '"/libcudnn.so.9', '{"files": ["/etc/libcudnn.so.9"]}', '{"files": ["lib/libcudnn.so.9\\u0000"]}',
    "[" * 100_000 + '"lib/libcudnn.so.9', b"\xff\xfe" * 1000 + b"/libcudnn.so.9",
)  # fmt: skip
def test_damaged_records_of_conda(tree: Tree, content: str | bytes) -> None:
    assert conda(tree, content) == {}


def test_random_records_of_conda(tree: Tree) -> None:
    whole = json.dumps(
        {"paths_data": {"paths": [{"_path": f"lib/libcudnn_{n}.so.9", "size_in_bytes": n} for n in range(20)]}}
    ).encode()
    chance = random.Random(5)
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 30)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        for path in conda(tree, bytes(damaged)):
            assert path.startswith("/")


# --- dpkg ---------------------------------------------------------------------------------------------------------
def test_a_package_whose_version_is_not_told(tree: Tree) -> None:
    tree.file("/usr/lib/libnccl.so.2.1.0")
    tree.file("/var/lib/dpkg/info/libnccl2:amd64.list", "/usr\n/usr/lib\n/usr/lib/libnccl.so.2.1.0\n")
    for status in (None, "", "Package: libnccl2-dev\nVersion: 9\n\n", "Package: libnccl2\nVersion: \x1b[31m\n\n"):
        if status is not None:
            tree.file("/var/lib/dpkg/status", status)
        found = dpkg_owners(tree.view(), {"/usr/lib/libnccl.so.2.1.0"})
        assert found == {"/usr/lib/libnccl.so.2.1.0": [Claim("dpkg", "libnccl2", "")]}
    tree.file("/var/lib/dpkg/status", "Package: libnccl2\nVersion: 2.1.0-1+cuda9")
    found = dpkg_owners(tree.view(), {"/usr/lib/libnccl.so.2.1.0"})
    assert found["/usr/lib/libnccl.so.2.1.0"][0].version == "2.1.0-1+cuda9"


def test_lists_that_are_no_lists(tree: Tree) -> None:
    tree.file("/usr/lib/libnccl.so.2.1.0")
    tree.link("/var/lib/dpkg/info/libcuda1.list", "/dev/zero")
    tree.link("/var/lib/dpkg/info/libnccl2.list", "libnccl2.list")
    tree.at("/var/lib/dpkg/info/nccl.list").mkdir()
    tree.file("/var/lib/dpkg/info/libcublas.list", b"\xff/usr/lib/libnccl.so.2.1.0\nusr/lib/libnccl.so.2.1.0\n\0")
    assert dpkg_owners(tree.view(), {"/usr/lib/libnccl.so.2.1.0"}) == {}
    assert dpkg_owners(tree.view(), set()) == {}


# --- Who owns a file, and whether the owner's version is the library's ----------------------------------------------
@tabled
def test_whose_version_is_the_library_s(kind: str, name: str, version: str, family: str, result: str | None) -> None:
    assert declared(Claim(kind, name, version), family) == result


def test_nobody_declares_nothing() -> None:
    assert declared(None, "cudnn") is None


A = Claim("wheel", "a", "1", 5, "sha256=x")
B = Claim("wheel", "b", "1", 6, "sha256=y")
SAME = Claim("wheel", "c", "1", 5, "sha256=x")
OTHER = Claim("wheel", "d", "1", 5, "sha256=z")
CONDA = Claim("conda", "e", "1", 5)
UNSIZED = Claim("dpkg", "f", "1")


@cases("claims, ownership",
    ([], (None, None)), ([A], (A, False)), ([B], (B, True)), ([A, B], (A, False)), ([B, A], (A, False)),
    ([A, SAME], (A, False)), ([A, CONDA], (A, False)), ([B, Claim("wheel", "g", "1", 7)], (None, True)),
    ([UNSIZED], (UNSIZED, None)), ([UNSIZED, A], (A, False)), ([UNSIZED, B], (None, None)), ([A, OTHER], (None, True)),
)  # fmt: skip
def test_who_owns_five_bytes(tmp_path: Path, claims: list[Claim], ownership: tuple[Claim | None, bool | None]) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"12345")
    assert decide(claims, str(place), 5) == ownership


def test_a_file_that_is_gone_meanwhile(tmp_path: Path) -> None:
    assert decide([A, OTHER], str(tmp_path / "gone"), 5) == (None, None)


def test_as_the_owner_is_shown() -> None:
    assert A.text == "a==1"
    assert CONDA.text == "e 1"
    assert Claim("toolkit", "CUDA toolkit", "").text == "CUDA toolkit"
