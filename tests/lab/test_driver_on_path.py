"""A driver library that is none, first on LD_LIBRARY_PATH before Debian's real ones: what is seen, and what is said."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.snapshot import Platform, Snapshot, Variables
from envcheck.snapshot.merge import merge
from tests.lab import debian_driver
from tests.probes.fake_parent import run_child
from tests.rules.machines import check_of, checks_of

pytestmark = pytest.mark.lab

STUB = "int cuInit(unsigned f){return 34;} int cuDriverGetVersion(int*v){*v=12080;return 0;}"
CUDA, NVML = "libcuda.so.1", "libnvidia-ml.so.1"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return debian_driver.driver_libraries("535", tmp_path_factory.mktemp("driver"))


def empty(place: Path, _real: Path) -> None:
    place.write_bytes(b"")


def text(place: Path, _real: Path) -> None:
    place.write_text("version https://git-lfs.github.com/spec/v1\n")


def cut(place: Path, real: Path) -> None:
    place.write_bytes((real / place.name).read_bytes()[:200_000])


def folder(place: Path, _real: Path) -> None:
    place.mkdir()


def stub(place: Path, _real: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    source = place.with_suffix(".c")
    source.write_text(STUB)
    subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{CUDA}", "-o", place, source], check=True)


def seen(probe: str, path: str) -> Snapshot:
    """What a probe tells; nothing where its process dies of the library."""
    try:
        return run_child(
            probe, variables={"LD_LIBRARY_PATH": path}, more={"variables": {"LD_LIBRARY_PATH": path}}
        ).snapshot
    except AssertionError:
        return Snapshot()


def judged(first: Path, real: Path) -> Snapshot:
    """What the probes see of a machine on whose path ``first`` lies before the real driver."""
    path = f"{first}:{real}"
    parts = [seen(name, path) for name in ("driver_files", "nvml", "cuda")]
    named = Variables(source="process", values={"LD_LIBRARY_PATH": path}, complete=True)
    return merge([*parts, Snapshot(variables=named, platform=Platform(os="linux", container="none"))])


@pytest.mark.parametrize(
    ("damage", "name", "why"),
    [
        (empty, CUDA, "it is empty"),
        (text, CUDA, "it is not an ELF file"),
        (cut, CUDA, "it is cut off"),
        (folder, CUDA, "it is a folder"),
        (stub, CUDA, "it is a link-time stub"),
        (empty, NVML, "it is empty"),
        (cut, NVML, "it is cut off"),
    ],
)
def test_the_file_and_the_variable_are_named(
    damage: Callable[[Path, Path], None], name: str, why: str, real: Path, tmp_path: Path
) -> None:
    damage(tmp_path / name, real)
    found = check_of("driver-library-unusable", judged(tmp_path, real))
    assert found.status == "fail"
    assert f"{tmp_path / name}: {why}" in found.message
    assert found.fixes[0].command == ("env", f"LD_LIBRARY_PATH={real}", "python")


def test_the_real_libraries_alone_are_no_finding(real: Path, tmp_path: Path) -> None:
    assert checks_of("driver-library-unusable", judged(tmp_path, real)) == ()


def test_following_the_fix_ends_the_finding(real: Path, tmp_path: Path) -> None:
    empty(tmp_path / CUDA, real)
    _, setting, _ = check_of("driver-library-unusable", judged(tmp_path, real)).fixes[0].command
    done = subprocess.run(
        ["python3", "-c", f"import ctypes; print(ctypes.CDLL({CUDA!r}).cuDriverGetVersion(None))"],
        env={**os.environ, "LD_LIBRARY_PATH": setting.partition("=")[2]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"  # the real library answers that no place for the version was given
