"""Packages that no metadata names: what an installation leaves that ended before it wrote its record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest

from envcheck.checks import Report
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.snapshot import Snapshot, items_in
from probes.kit.tree import REFUSED
from tests.probes.environment_trees import Tree
from tests.probes.other_user import as_nobody, as_root

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """An environment with PyTorch, and two real packages of which one has another name than its distribution."""
    made = Tree(tmp_path)
    site = made.venv("/a", made.base("/usr"))
    made.torch(site)
    for name in ("msgspec", "PyYAML"):
        found = distribution(name)
        for file in found.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                place = made.at(f"{site}/{file}")
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), place)
    for place in (tmp_path, *list(tmp_path.parents)[:-2]):
        place.chmod(place.stat().st_mode | 0o055)
    return made


SITE = "/a/lib/python3.11/site-packages"


def examined(tree: Tree, run_probe: RunProbe, python: str = "/a") -> tuple[list[str], Report]:
    REFUSED.clear()
    snapshot, _ = run_probe("environments", tree.view(python=[python]))
    (found, *_) = items_in(snapshot.environments)
    assert found.unrecorded is not None
    return [path.rpartition("/")[2] for path in found.unrecorded], judge(snapshot, Request(scopes=frozenset({"env"})))


def forget(tree: Tree, *names: str) -> None:
    for info in tree.at(SITE).glob("*.dist-info"):
        if info.name.partition("-")[0].lower() in names:
            shutil.rmtree(info)


def test_what_metadata_names_is_recorded(tree: Tree, run_probe: RunProbe) -> None:
    assert examined(tree, run_probe)[0] == []


def test_a_framework_without_metadata_leaves_no_verdict(tree: Tree, run_probe: RunProbe) -> None:
    forget(tree, "torch")
    names, report = examined(tree, run_probe)
    assert names == ["torch"]
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert report.headline.startswith("no verdict: No metadata names")


def test_no_metadata_at_all_leaves_no_verdict(tree: Tree, run_probe: RunProbe) -> None:
    forget(tree, "torch", "msgspec", "pyyaml")
    shutil.rmtree(tree.at(f"{SITE}/torch"))
    names, report = examined(tree, run_probe)
    assert names == ["_yaml", "msgspec", "yaml"]
    assert report.verdict == "unknown"


def test_another_package_without_metadata_is_told(tree: Tree, run_probe: RunProbe) -> None:
    forget(tree, "pyyaml")
    names, report = examined(tree, run_probe)
    assert names == ["_yaml", "yaml"]
    (check,) = (check for check in report.checks if check.rule == "package-unrecorded")
    assert (check.status, check.title) == ("note", "No record of the installation of _yaml and 1 more")


def test_what_a_source_tree_or_a_remnant_is_called_is_left_out(tree: Tree, run_probe: RunProbe) -> None:
    tree.file(f"{SITE}/namespace/inner/__init__.py")
    tree.file(f"{SITE}/~umpy/__init__.py")
    tree.file("/src/torchvision/__init__.py")
    tree.file(f"{SITE}/mine.pth", "/src\n")
    tree.file(f"{SITE}/old/__init__.py")
    tree.file(f"{SITE}/of_old-1.0.egg-info/top_level.txt", "old\n")
    assert examined(tree, run_probe)[0] == []


def test_a_record_of_conda_names_its_packages(tree: Tree, run_probe: RunProbe) -> None:
    forget(tree, "pyyaml", "msgspec")
    paths = ["lib/python3.11/site-packages/yaml/__init__.py", "site-packages/_yaml/__init__.py"]
    tree.file("/a/conda-meta/libyaml-py-6.0-h1.json", json.dumps({"name": "libyaml-py", "files": paths}))
    assert examined(tree, run_probe)[0] == ["msgspec"]


def test_the_folder_of_debians_packages_needs_no_record(tree: Tree, run_probe: RunProbe) -> None:
    tree.file("/usr/lib/python3/dist-packages/lsb/__init__.py")
    assert examined(tree, run_probe, "/usr")[0] == []


def test_damaged_metadata_names_its_package(tree: Tree, run_probe: RunProbe) -> None:
    for info in tree.at(SITE).glob("*.dist-info"):
        (info / "METADATA").unlink()
    assert examined(tree, run_probe)[0] == []


@as_root
def test_what_may_be_named_in_a_closed_record_is_not_told(tree: Tree, run_probe: RunProbe) -> None:
    (info,) = tree.at(SITE).glob("[Pp]y[Yy]*.dist-info")
    info.chmod(0)
    tree.view()
    with as_nobody():
        assert examined(tree, run_probe)[0] == []
