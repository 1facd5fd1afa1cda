"""Libraries and folders made to mislead or to exhaust who looks at them; all constructed."""

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.common.tree import Tree as View
from probes.files.elf.info import elf_info
from probes.files.installations.parts import OpenByName, Preload, examined
from probes.files.loader.report import is_reported, version_in
from probes.files.python.site import Site
from tests.every import cases, tabled
from tests.probes.tiny_elf import tiny_elf
from tests.thorough import examples

INTERPRETER = Path("/lib64/ld-linux-x86-64.so.2")
pytestmark = pytest.mark.skipif(not INTERPRETER.exists(), reason="no x86-64 glibc, whose loader the tests borrow")

SITE = "/env/lib/python3.11/site-packages"
SECONDS = 15.0  # Much more than any of these takes, and less than it would without bounds


class Tree:
    """A root with an environment in it, whose Python is a constructed program."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file("/env/bin/python3.11", tiny_elf(interpreter=str(INTERPRETER)))
        self.file(str(INTERPRETER), INTERPRETER.read_bytes())
        (root / SITE[1:]).mkdir(parents=True)

    def file(self, path: str, content: bytes) -> str:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return path

    def link(self, path: str, target: str) -> str:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
        return path

    def examine(self, *parts: str, variables: dict[str, str] | None = None, **steps: Any) -> dict[str, Any]:
        view = View({"root": str(self.root), "variables": variables or {}})
        start = time.monotonic()
        found = examined(Site(view, "/env", (SITE,), 0, ()), list(parts), **steps)
        assert time.monotonic() - start < SECONDS
        return found


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def paths(found: dict[str, Any]) -> dict[str, str | None]:
    return {load["name"]: load.get("path") for load in found["loads"]}


# --- Nothing outside the root -----------------------------------------------------------------------------------------
def test_links_count_from_the_root(tree: Tree) -> None:
    tree.file("/opt/cuda/libcudart.so.12.9.79", tiny_elf(soname="libcudart.so.12"))
    tree.link(f"{SITE}/nvidia", "/opt/cuda")
    tree.link("/opt/cuda/libcudart.so.12", "/opt/cuda/libcudart.so.12.9.79")
    found = tree.examine(tree.file(f"{SITE}/fw/_C.so", tiny_elf(["libcudart.so.12"], runpath="$ORIGIN/../nvidia")))
    assert paths(found) == {"libcudart.so.12": "/opt/cuda/libcudart.so.12.9.79", "libcuda.so.1": None}
    assert found["loads"][0]["version"] == "12.9.79"


@cases("target", "{outside}/libnccl.so.2", "../../../../../../../../../..{outside}/libnccl.so.2")
def test_links_do_not_lead_out_of_it(tmp_path: Path, target: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "libnccl.so.2").write_bytes(tiny_elf(soname="libnccl.so.2"))
    tree = Tree(tmp_path / "root")
    tree.link(f"{SITE}/fw/libnccl.so.2", target.format(outside=outside))
    tree.link(f"{SITE}/nvidia/nccl/lib", str(outside))
    part = tree.file(f"{SITE}/fw/_C.so", tiny_elf(["libnccl.so.2"], runpath="$ORIGIN:$ORIGIN/../nvidia/nccl/lib"))
    found = tree.examine(part, preloads=[Preload(("libnccl.so.*",), ("nvidia/nccl/lib",))])
    assert paths(found) == {"libnccl.so.2": None}


def test_a_python_on_musl_is_not_answered_for(tree: Tree) -> None:
    """Its loader is there, and would search in another order."""
    loader = tree.file("/lib/ld-musl-x86_64.so.1", INTERPRETER.read_bytes())
    tree.file("/env/bin/python3.11", tiny_elf(interpreter=loader))
    part = tree.file(f"{SITE}/fw/_C.so", tiny_elf(["libnccl.so.2"]))
    found = tree.examine(part, extends=[part])
    assert ("loads" in found, found["loads_complete"], found["binaries"]) == (False, False, [part])


def test_a_processor_that_is_not_known(tree: Tree) -> None:
    """What lies in glibc-hwcaps may be taken, or not; the second process knows as little as the first."""
    part = tree.file(f"{SITE}/fw/_C.so", tiny_elf(["libnccl.so.2"], runpath="$ORIGIN/libs"))
    tree.file(f"{SITE}/fw/libs/libnccl.so.2", tiny_elf(soname="libnccl.so.2"))
    assert tree.examine(part)["loads_complete"] is True
    (tree.root / SITE[1:] / "fw/more/glibc-hwcaps").mkdir(parents=True)
    part = tree.file(f"{SITE}/fw/_D.so", tiny_elf(["libnccl.so.2"], runpath="$ORIGIN/more:$ORIGIN/libs"))
    assert [tree.examine(part)["loads_complete"] for _ in range(2)] == [False, False]


# --- Bounds ----------------------------------------------------------------------------------------------------------
def test_a_million_folders(tree: Tree) -> None:
    part = tree.file(f"{SITE}/fw/_C.so", tiny_elf(["libnccl.so.2"], runpath=":".join(["/none"] * 1_000_000)))
    found = tree.examine(part)
    assert found["loads_complete"] is False
    part = tree.file(f"{SITE}/fw/_D.so", tiny_elf(["libnccl.so.2"], rpath=":".join(f"/{n}" for n in range(5000))))
    found = tree.examine(part)
    assert (paths(found), found["loads_complete"]) == ({"libnccl.so.2": None}, False)
    found = tree.examine(variables={"LD_LIBRARY_PATH": ":".join(f"/{n}" for n in range(1_000_000))})
    assert found["loads_complete"] is False


def test_thousands_of_needed_libraries(tree: Tree) -> None:
    part = tree.file(f"{SITE}/fw/_C.so", tiny_elf([f"lib{number}.so" for number in range(12_000)], runpath="$ORIGIN"))
    found = tree.examine(part)
    assert len(found["loads"]) == 512
    assert found["loads_complete"] is False


def test_a_chain_and_a_ring_of_libraries(tree: Tree) -> None:
    count = 1500
    for number in range(count):
        name, following = f"lib{number}.so", f"lib{(number + 1) % count}.so"
        tree.file(f"{SITE}/fw/{name}", tiny_elf([following], soname=name, rpath="$ORIGIN"))
    assert tree.examine(f"{SITE}/fw/lib0.so")["loads"] == []


def test_what_is_no_file(tree: Tree) -> None:
    os.mkfifo(tree.root / f"{SITE[1:]}/libnccl.so.2")
    (tree.root / f"{SITE[1:]}/libcudart.so.12").mkdir()
    tree.link(f"{SITE}/libcurand.so.10", "libcurand.so.10")
    names = ["libnccl.so.2", "libcudart.so.12", "libcurand.so.10", "x" * 5000, "", "a/" * 3000]
    part = tree.file(f"{SITE}/_C.so", tiny_elf(names, runpath="$ORIGIN"))
    found = tree.examine(part, asks=[OpenByName((name,)) for name in names])
    refused = {load["name"]: load.get("refused") for load in found["loads"]}
    assert refused["libnccl.so.2"] == refused["libcudart.so.12"] == "it is not a regular file"
    assert refused["libcurand.so.10"] is None


def test_names_that_would_write_on_the_terminal(tree: Tree) -> None:
    part = tree.file(f"{SITE}/fw/_C.so", tiny_elf(["lib\x1b[31m\n\u202ered\udcff.so"], runpath="\x1b]0;title\x07"))
    found = tree.examine(part)
    (load,) = found["loads"]
    assert load["name"] == "lib[31m\u202ered.so"
    assert "\x1b" not in repr(found)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_libraries(tree: Tree, data: st.DataObject) -> None:
    whole = tiny_elf(["libnccl.so.2", "libcudart.so.12"], soname="lib.so", runpath="$ORIGIN")
    at = data.draw(st.integers(0, len(whole)))
    noise = data.draw(st.binary(max_size=24))
    end = data.draw(st.integers(0, len(whole) + 24))
    name = f"{SITE}/fw/{data.draw(st.integers(0, 10**9))}.so"
    tree.file(name, (whole[:at] + noise + whole[at + len(noise) :])[:end])
    assert isinstance(tree.examine(name, extends=[name])["loads_complete"], bool)


# --- Heads and names -------------------------------------------------------------------------------------------------
def test_a_head_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    place = tmp_path / "lib.so"
    place.write_bytes(tiny_elf(soname="one"))
    before = elf_info(str(place))
    assert before
    assert elf_info(str(place)) is before
    place.write_bytes(tiny_elf(soname="another"))
    after = elf_info(str(place))
    assert after
    assert (before.soname, after.soname) == ("one", "another")


@tabled
def test_names(name: str, told: bool, version: str | None) -> None:  # noqa: FBT001  pytest gives them by name
    assert (is_reported(name), version_in(f"/x/{name}", f"{name.partition('.so')[0]}.so.12")) == (told, version)


@tabled
def test_a_soname_is_no_release(name: str, version: str | None) -> None:
    unhashed = re.sub(r"[-.][0-9a-f]{8}(?=\.so)", "", name)
    assert {version_in(f"/x/{name}", soname) for soname in (name, unhashed, None)} == {version}


def test_a_file_numbered_beyond_its_soname_tells_its_release() -> None:
    assert version_in("/usr/local/cuda/lib64/libcudart.so.11.8.89", "libcudart.so.11.0") == "11.8.89"
