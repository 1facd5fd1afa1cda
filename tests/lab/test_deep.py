"""Real frameworks that are tried on a machine whose GPU is only claimed: how each says that it cannot use it.

There is no GPU here. The facts say that there is one, so that the operations are tried and really fail; interpreter,
packages, what they raise and what they print are real. Frameworks that run on a GPU are in tests/gpu.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect.catalog import probes_in
from envcheck.collect.gather import gather
from envcheck.model.checks import Check
from envcheck.model.merge import merge
from envcheck.model.snapshot import Framework, Snapshot, Trial
from envcheck.pipeline.session import Request, judge

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
CLAIMED = {
    "gpus": {"items": [{"source": "claimed", "label": "claimed", "name": "NVIDIA H100", "compute_capability": "9.0"}]},
    "driver": {"source": "claimed", "installed": True, "release": "580.65.06", "cuda": "13.0"},
}
KEPT = ("environments", "platform", "variables")


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped probes, but those that would look for a GPU: in their place, one that claims one."""
    folder = tmp_path_factory.mktemp("claimed") / "probes"
    shutil.copytree(ROOT / "probes", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.glob("[!_]*.py"):
        if not file.stem.startswith("deep_") and file.stem not in KEPT:
            file.unlink()
    header = {"title": "A claim", "kind": "file", "seconds": 5.0, "uses": "files", "scopes": ["env"], "fills": ["gpus"]}
    (folder / "claim.py").write_text(f"PROBE = {header!r}\ndef collect(tree, out):\n    out.fact({CLAIMED!r})\n")
    return folder


class Tried:
    """What became of one environment."""

    def __init__(self, python: Path, probes: Path, **variables: str) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        request = {
            "root": "/",
            "cwd": "/",
            "python": [str(python)],
            "own_prefix": "",
            "variables": {**kept, **variables},
        }
        parts = gather(probes_in(probes), request, scopes=["env"], folder=probes, deep=True)
        self.snapshot: Snapshot = merge(parts)
        self.checks = judge(self.snapshot, Request(scopes=frozenset({"env"}))).checks

    def framework(self, name: str) -> Framework:
        assert self.snapshot.environments
        (environment,) = [found for found in self.snapshot.environments.items if found.judged]
        assert environment.frameworks
        (framework,) = [found for found in environment.frameworks.items if found.name == name]
        return framework

    def trial(self, name: str) -> Trial:
        trial = self.framework(name).trial
        assert trial
        return trial

    def check(self, rule: str, name: str) -> Check | None:
        return next((c for c in self.checks if c.rule == rule and c.subject.key.endswith(f":{name}")), None)


def installed(folder: Path, *packages: str, python: str = sys.executable) -> Path:
    """A virtual environment with these packages; skip where they cannot be allocated."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    command = [folder / "bin" / "python", "-m", "pip", "install", "-q", *packages]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(packages)}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return folder / "bin" / "python"


def test_pytorch_for_the_cpu(tmp_path: Path, probes: Path) -> None:
    tried = Tried(installed(tmp_path / "env", "torch==2.13.0+cpu", "numpy"), probes)
    trial = tried.trial("torch")
    assert (trial.imported, trial.ran_on_gpu) == (True, False)
    assert trial.error == "AssertionError: Torch not compiled with CUDA enabled (in a matrix product)"
    assert trial.answers["version"] == tried.framework("torch").version
    assert tried.framework("torch").gpu_available is False
    assert tried.check("framework-cannot-use-gpu", "torch") is None
    found = tried.check("cpu-only-build", "torch")
    assert found
    assert found.status == "fail"


def test_jax_for_the_cpu(tmp_path: Path, probes: Path) -> None:
    tried = Tried(installed(tmp_path / "env", "jax"), probes)
    trial = tried.trial("jax")
    assert (trial.imported, trial.ran_on_gpu) == (True, False)
    assert "cuda" in (trial.error or "")
    assert tried.framework("jax").gpu_available is False


def test_onnxruntime_for_the_cpu(tmp_path: Path, probes: Path) -> None:
    trial = Tried(installed(tmp_path / "env", "onnxruntime"), probes).trial("onnxruntime")
    assert (trial.imported, trial.ran_on_gpu) == (True, False)
    assert (trial.error or "").startswith("this build has no CUDAExecutionProvider: it has ")


def test_onnxruntime_for_the_gpu_falls_back_in_silence(tmp_path: Path, probes: Path) -> None:
    """The wheel brings none of CUDA's libraries; a session is made all the same, and computes on the CPU."""
    tried = Tried(installed(tmp_path / "env", "onnxruntime-gpu"), probes)
    trial = tried.trial("onnxruntime-gpu")
    assert (trial.imported, trial.ran_on_gpu) == (True, False)
    assert "CUDAExecutionProvider was left out and the CPU computes: lib" in (trial.error or "")
    assert "cannot open shared object file" in (trial.error or "")
    assert any("libonnxruntime_providers_cuda.so" in line for line in trial.warnings)
    found = tried.check("framework-cannot-use-gpu", "onnxruntime-gpu")
    assert found
    assert (found.status, found.decided_by) == ("fail", "framework-ran")


def test_cupy_and_numba_without_a_driver(tmp_path: Path, probes: Path) -> None:
    tried = Tried(installed(tmp_path / "env", "cupy-cuda12x", "numba-cuda"), probes)
    cupy, numba = tried.trial("cupy-cuda12x"), tried.trial("numba-cuda")
    assert (cupy.imported, cupy.ran_on_gpu) == (True, False)
    assert "CUDA driver" in (cupy.error or "")
    assert (numba.imported, numba.ran_on_gpu) == (True, False)
    assert "CUDA driver library cannot be found" in (numba.error or "")


ASKED = {
    "nvidia-cuda-runtime-cu12==12.4.127": ("cudart", "12.4"),
    "nvidia-nvjitlink-cu12==12.4.127": ("nvJitLink", "12.4"),
    "nvidia-cuda-nvrtc-cu12==12.4.127": ("nvrtc", "12.4"),
}


def test_libraries_answer_for_themselves(tmp_path: Path, probes: Path) -> None:
    """No GPU and no driver is needed for that."""
    shutil.copy(ROOT / "probes" / "libraries.py", probes)
    python = installed(tmp_path / "env", *ASKED)
    try:
        tried = Tried(python, probes)
    finally:
        (probes / "libraries.py").unlink()
    assert tried.snapshot.libraries
    inside = [found for found in tried.snapshot.libraries.items if found.path.startswith(str(tmp_path.resolve()))]
    answers: dict[Any, Any] = {found.family: found.loaded for found in inside if found.loaded}
    assert answers == dict(ASKED.values())
