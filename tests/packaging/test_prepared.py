"""A wheel is built wherever there is no NVRTC, and says that it holds no GPU code, unless a release is asked for."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.packaging.installing import Built

ROOT = Path(__file__).resolve().parents[2]
LACKING = "GPU code for machines without NVRTC is lacking: "


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The build steps where no installed package is on the path, and so no NVRTC wheel."""
    found = importlib.import_module("hatch_build")
    monkeypatch.setattr(sys, "path", [str(ROOT), *(entry for entry in sys.path if "site-packages" not in entry)])
    return found


def build(built: Built, out: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel of the tree with the requirements of this environment."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(out), str(built.tree)]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)


def test_a_wheel_without_gpu_code_says_so(built: Built, tmp_path: Path) -> None:
    done = build(built, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{LACKING}the build environment holds no NVRTC wheel" in done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "/prepared/" in name]


def test_a_release_is_not_built_without_gpu_code(built: Built, tmp_path: Path) -> None:
    done = build(built, tmp_path, ENVCHECK_REQUIRE_PREPARED="1")
    assert done.returncode != 0
    assert f"{LACKING}the build environment holds no NVRTC wheel" in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_nvrtc_that_cannot_be_loaded_ends_no_build(
    steps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"\x7fELF of another machine")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    files, (reason,) = steps.prepared_code(tmp_path)
    assert files == {}
    assert reason.startswith("NVRTC cannot be loaded: ")


class Weak:
    """An NVRTC that knows a GPU and fails on a source."""

    version = "11.8"

    def __init__(self, *known: int) -> None:
        self._known = known

    def architectures(self) -> tuple[int, ...]:
        return self._known

    def cubin(self, source: str, name: str, *_: object) -> bytes:
        from probes.measuring.kernels import CompileError  # noqa: PLC0415 - the path is the test's

        if "mma.sync" in source:
            raise CompileError("ptxas: no such instruction\nmore")
        return b"\x7fELF of 11.8"


class Strong(Weak):
    version = "12.9"

    def cubin(self, *_: object) -> bytes:
        return b"\x7fELF of 12.9"


def test_the_next_compiler_is_asked_where_one_fails(steps: Any) -> None:
    from probes.measuring.variants import Variant  # noqa: PLC0415 - the path is the test's

    memory, compute = Variant("memory", (), (5, 0)), Variant("compute", ("-DMMA",), (8, 0))
    both = [Weak(90), Strong(90)]
    assert steps.compiled(both, memory, "cubin", 90) == b"\x7fELF of 11.8"
    assert steps.compiled(both, compute, "cubin", 90) == b"\x7fELF of 12.9"
    with pytest.raises(LookupError, match=r"^NVRTC 11\.8: ptxas: no such instruction$"):
        steps.compiled(both[:1], compute, "cubin", 90)
    with pytest.raises(LookupError, match="no NVRTC of the build environment knows it"):
        steps.compiled(both, memory, "cubin", 100)
