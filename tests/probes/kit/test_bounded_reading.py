"""The readers of inspected files: regular files alone, at most so much of them, and nothing is waited for."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.snapshot import Snapshot
from probes.kit.tree import Tree

TREE = Tree({"root": "/"})

NO_FILES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to what waits": lambda path: path.symlink_to("/proc/kmsg"),
    "link to what grows": lambda path: path.symlink_to("/proc/self/pagemap"),
    "folder": Path.mkdir,
    "loop": lambda path: path.symlink_to(path),
    "dangling": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_gives_nothing_at_once(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "file"
    NO_FILES[kind](place)
    started = time.monotonic()
    assert not TREE.read_text(str(place))
    assert not TREE.read_bytes(str(place), 64)
    assert time.monotonic() - started < 1


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"x" * 3_000_000)
    assert TREE.read_bytes(str(place), 2_500_000) == b"x" * 2_500_000
    assert TREE.read_bytes(str(place), 4_000_000) == b"x" * 3_000_000
    assert TREE.read_text("/proc/version") == Path("/proc/version").read_text()
    assert TREE.read_bytes("name\0of none") is None


def test_an_environment_of_pipes_devices_and_procfs_is_read_in_time(
    tmp_path: Path, run_probe: Callable[..., tuple[Snapshot, dict[str, str]]]
) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    (site / "torch").mkdir(parents=True)
    (site / "numpy-1.0.dist-info").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    names = ("{}.pth", "torch/{}.py", "torch/version.py", "numpy-1.0.dist-info/METADATA", "__editable___{}_finder.py")
    for kind in ("pipe", "link to a device", "link to what waits"):
        for name in names:
            place = site / name.format(kind.replace(" ", "_"))
            if not os.path.lexists(place):
                NO_FILES[kind](place)
    started = time.monotonic()
    snapshot, done = run_probe("environments", {"python": [str(tmp_path)]}, sourced=False)
    assert time.monotonic() - started < 5
    assert done["status"] == "ok"
    assert snapshot.environments
