"""A library of a framework's own that is gone from where its module looks: no list of files tells of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.checks import Report
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.snapshot import Snapshot
from probes.kit.tree import REFUSED
from tests.probes.loader.loading_builds import GCC, REASON, Workshop, rpath

pytestmark = pytest.mark.skipif(GCC is None, reason=REASON)

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
SITE = "lib/python3.11/site-packages"
LIBRARY = f"{SITE}/torch/lib/libtorch_python.so"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """PyTorch as conda or a build from source installs it: without a list of its files."""
    shop = Workshop(tmp_path)
    shop.program("bin/python3.11")
    shop.at("lib/python3.11/os.py").touch()
    shop.library(f"{SITE}/torch/lib/libtorch.so", [])
    shop.library(LIBRARY, [f"{SITE}/torch/lib/libtorch.so"], *rpath("$ORIGIN"))
    shop.library(f"{SITE}/torch/_C.cpython-311-x86_64-linux-gnu.so", [LIBRARY], *rpath("$ORIGIN/lib"))
    shop.at(f"{SITE}/torch/__init__.py").touch()
    shop.at(f"{SITE}/torch/version.py").write_text("__version__ = '2.5.1'\ncuda = '12.4'\nhip = None\n")
    shop.at(f"{SITE}/torch-2.5.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.1\n")
    return tmp_path


def instead(place: Path, put: Callable[[Path], object]) -> None:
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    put(place)


HOLES: dict[str, Callable[[Path], None]] = {
    "gone": lambda root: (root / LIBRARY).unlink(),
    "a pipe": lambda root: instead(root / LIBRARY, os.mkfifo),
    "a dangling link": lambda root: instead(root / LIBRARY, lambda place: place.symlink_to("nowhere")),
    "its folder gone": lambda root: shutil.rmtree((root / LIBRARY).parent),
    "its folder a pipe": lambda root: instead((root / LIBRARY).parent, os.mkfifo),
    "what it needs gone": lambda root: (root / LIBRARY).with_name("libtorch.so").unlink(),
}


def judged(environment: Path, run_probe: RunProbe) -> Report:
    REFUSED.clear()
    snapshot, _ = run_probe("environments", {"python": [str(environment)], "variables": {}}, sourced=False)
    return judge(snapshot, Request(scopes=frozenset({"env"})))


def test_a_whole_one_has_no_finding(environment: Path, run_probe: RunProbe) -> None:
    assert "library-not-found" not in {check.rule for check in judged(environment, run_probe).checks}


@pytest.mark.parametrize("hole", HOLES)
def test_a_library_of_its_own_that_is_not_found_fails(hole: str, environment: Path, run_probe: RunProbe) -> None:
    HOLES[hole](environment)
    report = judged(environment, run_probe)
    (check,) = (check for check in report.checks if check.rule == "library-not-found")
    assert (check.status, report.verdict) == ("fail", "fail")
    assert "libtorch" in check.title
