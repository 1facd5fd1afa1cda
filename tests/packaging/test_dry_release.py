"""A release without publishing: both distributions on an index on loopback, installed by what people install with."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.every import cases
from tests.packaging.installing import Built, build, run
from tests.refresh.serving import Index, serve

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def files(built: Built, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What one tag makes: wheel, sdist, and the wheel of the rows."""
    out = tmp_path_factory.mktemp("rows")
    assert build(built.tree / "gpu-envcheck-matrix", out, "--wheel").returncode == 0
    return [built.wheel, built.sdist, *out.iterdir()]


@pytest.fixture
def index(files: list[Path]) -> Iterator[Index]:
    served = Index()
    served.unknown = 404  # uv takes a project from the first index that knows it
    for file in files:
        served.files[file.name] = file.read_bytes()
        served.requires_python[file.name] = ">=3.10"
    with serve(served):
        yield served


def by_pip(address: str, place: Path) -> list[str]:
    run([sys.executable, "-m", "venv", str(place / "venv")])
    python = str(place / "venv" / "bin" / "python")
    run([python, "-m", "pip", "install", "-q", "--extra-index-url", address, "gpu-envcheck", "gpu-envcheck-matrix"])
    return [str(place / "venv" / "bin" / "envcheck")]


def by_pipx(address: str, place: Path) -> list[str]:
    run([sys.executable, "-m", "venv", str(place / "pipx")])
    python = str(place / "pipx" / "bin" / "python")
    run([python, "-m", "pip", "install", "-q", "pipx"])
    own = {**os.environ, "PIPX_HOME": str(place / "home"), "PIPX_BIN_DIR": str(place / "bin")}
    given = ["--pip-args", f"--extra-index-url {address}"]
    run([python, "-m", "pipx", "install", *given, "gpu-envcheck"], env=own)
    run([python, "-m", "pipx", "inject", *given, "gpu-envcheck", "gpu-envcheck-matrix"], env=own)
    return [str(place / "bin" / "envcheck")]


def by_uvx(address: str, place: Path) -> list[str]:
    uv = str(Path(sys.executable).parent / "uv")
    wanted = ["--from", "gpu-envcheck", "--with", "gpu-envcheck-matrix"]
    return [uv, "tool", "run", "--cache-dir", str(place / "cache"), "--index", address, *wanted, "envcheck"]


@cases("installed", by_pip, by_pipx, by_uvx)
def test_what_a_tag_makes_is_installed_and_answers(
    installed: Callable[[str, Path], list[str]], index: Index, tmp_path: Path
) -> None:
    command = installed(index.address, tmp_path)
    run([*command, "matrix", "check", "cuda==12.4", "driver==550.54.14"], cwd=tmp_path)
    copies = json.loads(run([*command, "matrix", "status", "--json"], cwd=tmp_path))["copies"]
    assert [each["origin"] for each in copies] == ["they came with envcheck", "the distribution gpu-envcheck-matrix"]
    asked = subprocess.run([*command, "check", "--json"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert asked.returncode in (0, 1, 3), asked.stderr
    got = [path.rpartition("/")[2] for path in index.asked if "/files/" in path]
    assert {name for name in index.files if name.endswith(".whl")} <= set(got)


def test_the_same_tree_makes_the_same_files(files: list[Path], built: Built, tmp_path: Path) -> None:
    assert build(built.tree, tmp_path).returncode == 0
    assert build(built.tree / "gpu-envcheck-matrix", tmp_path, "--wheel").returncode == 0
    first, second = (
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
        for paths in (files, tmp_path.iterdir())
    )
    assert first == second


def test_no_file_names_what_the_machine_that_built_it_is_called(files: list[Path], built: Built) -> None:
    """Of who built it, a file holds neither a home folder nor a temporary one."""
    for file in files:
        if file.suffix == ".whl":
            with zipfile.ZipFile(file) as wheel:
                contents = [wheel.read(name) for name in wheel.namelist() if ".dist-info/" in name]
        else:
            with tarfile.open(file) as archive:
                assert {(member.uid, member.uname) for member in archive} == {(0, "")}
                contents = []
        assert not [content for content in contents if str(built.tree).encode() in content]


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="a Debian package is made by Debian's tools")
def test_the_debian_package_is_made_the_same_twice_and_answers(built: Built, tmp_path: Path) -> None:
    variables = {**os.environ, "WHEEL": str(built.wheel), "PYTHON": sys.executable, "SOURCE_DATE_EPOCH": "1795900000"}
    for folder in ("a", "b"):
        run([str(Path(__file__).parents[2] / "recipes" / "deb" / "build"), str(tmp_path / folder)], env=variables)
    (first,), (second,) = ([*(tmp_path / folder).iterdir()] for folder in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    run(["dpkg", "-x", str(first), str(tmp_path / "root")])
    program = (tmp_path / "root" / "usr" / "bin" / "envcheck").read_text()
    program = program.replace("/usr/lib/gpu-envcheck", str(tmp_path / "root" / "usr" / "lib" / "gpu-envcheck"))
    run([sys.executable, "-I", "-c", program, "matrix", "check", "cuda==12.4", "driver==550.54.14"], cwd=tmp_path)
