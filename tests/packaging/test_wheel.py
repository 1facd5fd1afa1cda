"""What is shipped is what is in the tree, nothing generic lands in site-packages, and it runs from there."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from envcheck import bundle
from envcheck.compat.compiling import COMPILED
from envcheck.rules.documentation import FOLDER, LINES, SOURCES
from tests.packaging.installing import run

if TYPE_CHECKING:
    from tests.packaging.installing import Built, Environment


def python_and_data(folder: Path) -> set[str]:
    return {
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and file.name != "compiled.json"
    }


def test_the_wheel_holds_envcheck_and_its_metadata_alone(built: Built) -> None:
    names = [PurePosixPath(name) for name in zipfile.ZipFile(built.wheel).namelist()]
    tops = {name.parts[0] for name in names}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == {"envcheck"}
    assert len(tops) == 3
    data = ["/".join(name.parts[1:]) for name in names if name.parts[0].endswith(".data")]
    assert data == ["data/share/man/man1/envcheck.1"]


def test_the_wheel_holds_every_file_of_the_tree(built: Built) -> None:
    shipped = {name for name in zipfile.ZipFile(built.wheel).namelist() if name.startswith("envcheck/")}
    expected = {f"envcheck/{name}" for name in python_and_data(built.tree / "envcheck")}
    for folder in ("matrix", "probes", "docs/rules"):
        expected |= {f"envcheck/{folder}/{name}" for name in python_and_data(built.tree / folder)}
    made = {"envcheck/matrix/compiled.json", *(f"envcheck/{FOLDER}/{name}" for name in (SOURCES, LINES))}
    assert shipped - made == expected
    assert made <= shipped


def test_the_sdist_can_be_tested(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}
    needed = {
        "scripts/new.py",
        "docs/rules.md",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "constraints.txt",
        "budget.toml",
        "action.yml",
        "tests/test_merge.py",
        "tests/golden/corpus/cases.xz",
        "probes/kit/tree.py",
    }
    assert needed <= names


def test_an_editable_installation_copies_nothing_that_could_become_stale(built: Built, tmp_path: Path) -> None:
    pytest.importorskip("editables")  # what hatchling needs for it
    build = f"import hatchling.build; print(hatchling.build.build_editable({str(tmp_path)!r}))"
    wheel = tmp_path / run([sys.executable, "-c", build], cwd=built.tree).splitlines()[-1]
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert [PurePosixPath(name).suffix for name in names] == [".pth"]
    assert zipfile.ZipFile(wheel).read(names[0]).decode().strip() == str(built.tree)


def test_a_checkout_reads_its_own_folders() -> None:
    """A copy inside the package, or what a build compiles of the rows and pages, would be read in their place."""
    root = Path(__file__).resolve().parents[2]
    for name in ("matrix", "probes", FOLDER):
        assert bundle.folder(name) == root / name
    assert not (root / "matrix" / COMPILED).exists()
    assert {file.suffix for file in (root / FOLDER).iterdir()} == {".md"}


def test_the_wheel_runs_outside_the_checkout(built: Built, fresh: Environment, tmp_path: Path) -> None:
    before = site_packages(fresh)
    fresh.install(str(built.wheel))
    added = site_packages(fresh) - before
    own = {name for name in added if name.startswith(("envcheck", "gpu_envcheck", "matrix", "probes"))}
    assert {name for name in own if not name.endswith(".dist-info")} == {"envcheck"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for script in ("envcheck", "gpu-envcheck"):
        result = subprocess.run(
            [str(fresh.place / "bin" / script), "check", "--json", "--python", str(fresh.python)],
            cwd=elsewhere,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode in (0, 1, 3), result.stderr
        report = json.loads(result.stdout)
        assert report["schema_version"] == "1.0"
        assert {probe["name"]: probe["status"] for probe in report["probes"]}["environments"] == "ok"
    assert list(elsewhere.iterdir()) == []


def site_packages(environment: Environment) -> set[str]:
    (folder,) = (environment.place / "lib").glob("python*/site-packages")
    return {entry.name for entry in folder.iterdir()}
