"""Wheel and sdist are built once, with the build requirements of this environment (nothing is fetched)."""

import shutil
from pathlib import Path

import pytest

from tests.packaging.installing import Built, Environment, build, run

ROOT = Path(__file__).resolve().parents[2]
_OF_THE_APPLICATION = "/(pygments|textual|rich|markdown_it)/"
_SHIPPED = ("envcheck", "matrix", "probes", "docs", "tests", "benchmarks", "scripts", "gpu-envcheck-matrix")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build sdist, and the wheel from that sdist, out of a clean copy of this checkout."""
    tree = tmp_path_factory.mktemp("tree")
    for name in _SHIPPED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for file in ROOT.iterdir():
        if file.is_file() and not file.name.startswith("."):
            shutil.copy2(file, tree)
    out = tmp_path_factory.mktemp("dist")
    done = build(tree, out)
    assert done.returncode == 0, done.stderr
    return Built(next(out.glob("*.whl")), next(out.glob("*.tar.gz")), tree, done.stdout + done.stderr)


@pytest.fixture(scope="session")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment of the wheel alone, ``small``, in a folder of its own; what no command imports is not compiled."""
    small = Environment(tmp_path_factory.mktemp("installed") / "small")
    small.install(str(built.wheel))
    run([str(small.python), "-m", "compileall", "-q", "-x", _OF_THE_APPLICATION, str(small.place / "lib")])
    return small


@pytest.fixture
def fresh(tmp_path: Path) -> Environment:
    """An empty virtual environment of the interpreter that runs the tests."""
    return Environment(tmp_path / "venv")
