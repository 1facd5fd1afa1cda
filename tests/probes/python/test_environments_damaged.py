"""Metadata that cannot be used, files that are gone, and packages that no metadata names."""

import json
import os
import shutil
import time
from importlib.metadata import distribution
from pathlib import Path

import pytest

from envcheck.model.checks import Report
from envcheck.model.snapshot import items_in
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from probes.common.tree import REFUSED
from probes.files.python.distributions import LEFT, Installed, installed_by_conda, installed_in
from tests.every import cases
from tests.known import known
from tests.probes.conftest import RunProbe
from tests.probes.environment_trees import Tree
from tests.probes.other_user import as_nobody, as_root

SITE = "/site"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.at(SITE).mkdir()
    return made


def installed(tree: Tree) -> Installed:
    return installed_in(tree.view(), (SITE,), frozenset())


def problems(found: Installed) -> dict[str, str]:
    return {item["path"].removeprefix(f"{SITE}/"): item["problem"] for item in found.damaged}


def test_whole_metadata_is_no_damage(tree: Tree) -> None:
    path = tree.wheel(SITE, "whole", "1.0")
    tree.file(f"{path}/RECORD", "whole/__init__.py,,0\n")
    found = installed(tree)
    assert (found.damaged, found.items[0]["record"]) == ([], True)


@cases("content, problem, listed",
    (None, "METADATA is missing", []), (b"", "METADATA is empty", ["1.0"]), (b"\0" * 600, "METADATA is empty", ["1.0"]),
    (b"Metadata-Version: 2.1\nName: foo\n\nVersion: 3\n", "no version in METADATA", ["1.0"]),
    (b"Metadata-Version: 2.1\nVersion: 1.0\n", "no name in METADATA", ["1.0"]),
    (b"Name: foo\nVersion: \x1b[31m\n", "no usable version in METADATA", ["1.0"]),
    (b"Name: foo\r\nVersion: 1.1\r\n\r\nText\r\n", None, ["1.1"]), (b"Name: foo\nVersion: 1.0.0\n", None, ["1.0.0"]),
    (b"metadata-version: 2.1\nname: foo\nversion: 1.2\n", None, ["1.2"]),
    (b"Summary: " + b"x" * 9000 + b"\nName: foo\nVersion: 1.3\n", None, ["1.3"]),
    (b"\xff\xfe" * 3000, "no name in METADATA", ["1.0"]),
)  # fmt: skip
def test_metadata(tree: Tree, content: bytes | None, problem: str | None, listed: list[str]) -> None:
    tree.file(f"{SITE}/foo-1.0.dist-info/INSTALLER", "pip\n")
    if content is not None:
        tree.file(f"{SITE}/foo-1.0.dist-info/METADATA", content)
    found = installed(tree)
    assert problems(found) == ({"foo-1.0.dist-info": problem} if problem else {})
    assert [item["version"] for item in found.items] == listed


def test_what_is_no_folder_and_what_cannot_be_opened(tree: Tree) -> None:
    tree.file(f"{SITE}/file-1.0.dist-info", "not a folder")
    tree.link(f"{SITE}/loop-1.0.dist-info", "loop-1.0.dist-info")
    tree.link(f"{SITE}/gone-1.0.dist-info", "/nowhere")
    tree.at(f"{SITE}/pipe-1.0.dist-info").mkdir()
    os.mkfifo(tree.at(f"{SITE}/pipe-1.0.dist-info/METADATA"))
    tree.at(f"{SITE}/dev-1.0.dist-info").mkdir()
    tree.link(f"{SITE}/dev-1.0.dist-info/METADATA", "/dev/zero")
    tree.at(f"{SITE}/deep-1.0.dist-info/METADATA").mkdir(parents=True)
    found = installed(tree)
    assert found.items == []
    assert problems(found) == {
        "file-1.0.dist-info": "it cannot be read", "loop-1.0.dist-info": "it cannot be read",
        "gone-1.0.dist-info": "it cannot be read", "pipe-1.0.dist-info": "METADATA cannot be read",
        "dev-1.0.dist-info": "METADATA cannot be read", "deep-1.0.dist-info": "METADATA cannot be read",
    }  # fmt: skip
    assert found.complete


def test_what_an_installation_left_behind(tree: Tree) -> None:
    for name in ("~orch", "~orch-2.4.0.dist-info", "-umpy", "~umpy-1.0.egg-info"):
        tree.at(f"{SITE}/{name}").mkdir()
    tree.file(f"{SITE}/-", "")
    found = installed(tree)
    assert problems(found) == dict.fromkeys(("~orch", "~orch-2.4.0.dist-info", "-umpy", "~umpy-1.0.egg-info"), LEFT)


def test_an_empty_record_of_conda(tree: Tree) -> None:
    tree.file("/env/conda-meta/numpy-2.1.0-py312h1_0.json", "{}")
    tree.file("/env/conda-meta/cudnn-9.3.0-h1_0.json", "")
    found = installed_by_conda(tree.view(), "/env", frozenset())
    assert [item["path"] for item in found.damaged] == ["/env/conda-meta/cudnn-9.3.0-h1_0.json"]
    assert len(found.items) == 2


def test_the_environment_tells_of_all(tree: Tree, run_probe: RunProbe) -> None:
    site = tree.venv("/home/me/.venv", tree.base("/usr"))
    tree.wheel(site, "numpy", "1.26.4")
    tree.wheel(site, "numpy", "2.1.0")
    tree.at(f"{site}/~orch").mkdir()
    tree.file(f"{site}/\x1b]0;x\x07-1.0.dist-info/METADATA", "")
    snapshot, _ = run_probe("environments", tree.view())
    found = known(snapshot.environments).items[0]
    assert [(item.name, item.version) for item in found.distributions or ()] == [
        ("numpy", "1.26.4"),
        ("numpy", "2.1.0"),
    ]
    assert [(item.path, item.problem) for item in found.damaged or ()] == [
        (f"{site}/]0;x-1.0.dist-info", "METADATA is empty"), (f"{site}/~orch", LEFT),
    ]  # fmt: skip


def test_two_thousand_distributions(tree: Tree) -> None:
    """Within 150 ms of a free core on a laptop; here only that it is far from growing with the square."""
    for number in range(2000):
        tree.wheel(SITE, f"package{number}", "1.0", "Requires-Dist: a\n" + "x" * 4000)
    started = time.thread_time()
    found = installed(tree)
    assert time.thread_time() - started < 12
    assert len(found.items) == 2000
    assert found.complete


def test_more_damage_than_anybody_reads_is_bounded(tree: Tree) -> None:
    for number in range(600):
        tree.at(f"{SITE}/~left{number}").mkdir()
    assert len(installed(tree).damaged) == 500


def test_what_was_left_still_tells_its_name_and_version(tree: Tree) -> None:
    path = f"{SITE}/~orch-2.9.1.dist-info"
    tree.file(f"{path}/METADATA", "Metadata-Version: 2.1\nName: Torch\nVersion: 2.9.1\n")
    tree.at(f"{SITE}/~orch").mkdir()
    said = [(item["path"], item.get("name"), item.get("version")) for item in installed(tree).damaged]
    assert said == [(f"{SITE}/~orch", None, None), (path, "torch", "2.9.1")]


# --- Packages that no metadata names --------------------------------------------------------------------------------
@pytest.fixture
def tree_unrecorded(tmp_path: Path) -> Tree:
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


SITE_UNRECORDED = "/a/lib/python3.11/site-packages"


def examined(tree_unrecorded: Tree, run_probe: RunProbe, python: str = "/a") -> tuple[list[str], Report]:
    REFUSED.clear()
    snapshot, _ = run_probe("environments", tree_unrecorded.view(python=[python]))
    (found, *_) = items_in(snapshot.environments)
    assert found.unrecorded is not None
    return [path.rpartition("/")[2] for path in found.unrecorded], judge(snapshot, Request(scopes=frozenset({"env"})))


def forget(tree_unrecorded: Tree, *names: str) -> None:
    for info in tree_unrecorded.at(SITE_UNRECORDED).glob("*.dist-info"):
        if info.name.partition("-")[0].lower() in names:
            shutil.rmtree(info)


def test_what_metadata_names_is_recorded(tree_unrecorded: Tree, run_probe: RunProbe) -> None:
    assert examined(tree_unrecorded, run_probe)[0] == []


def test_a_framework_without_metadata_leaves_no_verdict(tree_unrecorded: Tree, run_probe: RunProbe) -> None:
    forget(tree_unrecorded, "torch")
    names, report = examined(tree_unrecorded, run_probe)
    assert names == ["torch"]
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert report.headline.startswith("no verdict: No metadata names")


def test_no_metadata_at_all_leaves_no_verdict(tree_unrecorded: Tree, run_probe: RunProbe) -> None:
    forget(tree_unrecorded, "torch", "msgspec", "pyyaml")
    shutil.rmtree(tree_unrecorded.at(f"{SITE_UNRECORDED}/torch"))
    names, report = examined(tree_unrecorded, run_probe)
    assert names == ["_yaml", "msgspec", "yaml"]
    assert report.verdict == "unknown"


def test_another_package_without_metadata_is_told(tree_unrecorded: Tree, run_probe: RunProbe) -> None:
    forget(tree_unrecorded, "pyyaml")
    names, report = examined(tree_unrecorded, run_probe)
    assert names == ["_yaml", "yaml"]
    (check,) = (check for check in report.checks if check.rule == "package-unrecorded")
    assert (check.status, check.title) == ("note", "No record of the installation of _yaml and 1 more")


def test_what_a_source_tree_or_a_remnant_is_called_is_left_out(tree_unrecorded: Tree, run_probe: RunProbe) -> None:
    tree_unrecorded.file(f"{SITE_UNRECORDED}/namespace/inner/__init__.py")
    tree_unrecorded.file(f"{SITE_UNRECORDED}/~umpy/__init__.py")
    tree_unrecorded.file("/src/torchvision/__init__.py")
    tree_unrecorded.file(f"{SITE_UNRECORDED}/mine.pth", "/src\n")
    tree_unrecorded.file(f"{SITE_UNRECORDED}/old/__init__.py")
    tree_unrecorded.file(f"{SITE_UNRECORDED}/of_old-1.0.egg-info/top_level.txt", "old\n")
    assert examined(tree_unrecorded, run_probe)[0] == []


def test_a_record_of_conda_names_its_packages(tree_unrecorded: Tree, run_probe: RunProbe) -> None:
    forget(tree_unrecorded, "pyyaml", "msgspec")
    paths = ["lib/python3.11/site-packages/yaml/__init__.py", "site-packages/_yaml/__init__.py"]
    tree_unrecorded.file("/a/conda-meta/libyaml-py-6.0-h1.json", json.dumps({"name": "libyaml-py", "files": paths}))
    assert examined(tree_unrecorded, run_probe)[0] == ["msgspec"]


def test_the_folder_of_debians_packages_needs_no_record(tree_unrecorded: Tree, run_probe: RunProbe) -> None:
    tree_unrecorded.file("/usr/lib/python3/dist-packages/lsb/__init__.py")
    assert examined(tree_unrecorded, run_probe, "/usr")[0] == []


def test_damaged_metadata_names_its_package(tree_unrecorded: Tree, run_probe: RunProbe) -> None:
    for info in tree_unrecorded.at(SITE_UNRECORDED).glob("*.dist-info"):
        (info / "METADATA").unlink()
    assert examined(tree_unrecorded, run_probe)[0] == []


@as_root
def test_what_may_be_named_in_a_closed_record_is_not_told(tree_unrecorded: Tree, run_probe: RunProbe) -> None:
    (info,) = tree_unrecorded.at(SITE_UNRECORDED).glob("[Pp]y[Yy]*.dist-info")
    info.chmod(0)
    tree_unrecorded.view()
    with as_nobody():
        assert examined(tree_unrecorded, run_probe)[0] == []
