"""``envcheck check --deep`` on a real GPU: frameworks run on it, by proof, and load what was predicted."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.every import cases

ROOT = Path(__file__).resolve().parents[2]
TRIED = ("torch", "jax", "cupy", "triton")
COMPARED = ("cudnn", "cublas", "nccl")


@pytest.fixture(scope="module")
def interpreter() -> str:
    """The interpreter whose environment holds frameworks."""
    candidates = [shutil.which("python3"), sys.executable]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", "import torch"], check=False, capture_output=True).returncode == 0:
            return candidate
    pytest.skip("no PyTorch here")


def run(interpreter: str, *options: str, **changed: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "envcheck", "check", "--json", "--python", interpreter, *options]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    variables = {**os.environ, "PYTHONPATH": path, **changed}
    result = subprocess.run(command, cwd="/", env=variables, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def report(interpreter: str, temporary: Path) -> dict[str, Any]:
    return run(interpreter, "--deep", "--force", TMPDIR=str(temporary))


@pytest.fixture(scope="module")
def frameworks(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (judged,) = [env for env in report["snapshot"]["environments"]["items"] if env.get("judged")]
    return {framework["name"]: framework for framework in judged["frameworks"]["items"]}


def _named(frameworks: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """The framework of that name, or of that name with its CUDA version behind it."""
    found = [framework for key, framework in frameworks.items() if key == name or key.startswith(f"{name}-cuda")]
    if not found:
        pytest.skip(f"no {name} in this environment")
    return found[0]


@pytest.mark.parametrize("name", TRIED)
def test_it_ran_on_the_gpu(name: str, frameworks: dict[str, dict[str, Any]], report: dict[str, Any]) -> None:
    trial = _named(frameworks, name)["trial"]
    assert trial.get("error") is None, trial
    assert trial["ran_on_gpu"] is True
    assert trial["proof"] == "the driver says that the result lies in device memory"
    assert trial["gpu"] in {gpu["pci_bus_id"] for gpu in report["snapshot"]["gpus"]["items"]}
    assert {library.get("family") for library in trial["libraries"]} >= {"cuda"}


NUMBA = """
import numpy
from numba import cuda
@cuda.jit
def double(numbers):
    place = cuda.grid(1)
    if place < numbers.size:
        numbers[place] *= 2
numbers = cuda.to_device(numpy.ones(32768, "float32"))
double[256, 128](numbers)
assert numbers.copy_to_host().sum() == 65536
"""


def test_numba_does_what_a_program_of_its_own_does(
    interpreter: str, frameworks: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """A release of numba-cuda may not go with the NumPy here: then the trial says what any program would be told."""
    trial = _named(frameworks, "numba-cuda")["trial"]
    (tmp_path / "program.py").write_text(NUMBA)
    done = subprocess.run([interpreter, tmp_path / "program.py"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        assert (trial["ran_on_gpu"], trial.get("error")) == (True, None)
    else:
        assert trial["ran_on_gpu"] is False
        assert trial["error"].startswith(done.stderr.strip().splitlines()[-1])


@cases("name", "torch", "jax")
@pytest.mark.parametrize("family", COMPARED)
def test_what_was_predicted_is_what_was_loaded(name: str, family: str, frameworks: dict[str, dict[str, Any]]) -> None:
    framework = _named(frameworks, name)
    plugins = [other for key, other in frameworks.items() if key.startswith(f"{name}-cuda")]
    loads = [load for record in (framework, *plugins) for load in record["loads"] or ()]
    predicted = {load["path"] for load in loads if load["name"].startswith(f"lib{family}.so") and load.get("path")}
    loaded = {library["path"] for library in framework["trial"]["libraries"] if library.get("family") == family}
    if not predicted or not loaded:
        pytest.skip(f"{name}: predicted {predicted or 'nothing'}, loaded {loaded or 'nothing'}")
    assert loaded == predicted


def test_versions_that_torch_says_are_those_that_its_libraries_answer(frameworks: dict[str, dict[str, Any]]) -> None:
    trial = _named(frameworks, "torch")["trial"]
    loaded = {library.get("family"): library.get("version") for library in trial["libraries"]}
    assert (loaded["cudnn"], loaded["nccl"]) == (trial["answers"]["cudnn"], trial["answers"]["nccl"])
    assert loaded["cudart"] == trial["answers"]["cuda"]


def test_a_runtime_for_the_cpu_is_told(frameworks: dict[str, dict[str, Any]], report: dict[str, Any]) -> None:
    found = [framework for key, framework in frameworks.items() if key.startswith("onnxruntime")]
    if not found or not found[0].get("cpu_only"):
        pytest.skip("no ONNX Runtime for the CPU here")
    (runtime,) = found
    assert runtime["trial"]["ran_on_gpu"] is False
    assert "CUDAExecutionProvider" in runtime["trial"]["error"]
    checks = {
        check["rule"]: check["status"] for check in report["checks"] if check["subject"]["key"].endswith(":onnxruntime")
    }
    assert checks["cpu-only-build"] in ("fail", "warn", "note")


def test_nothing_is_left_behind(report: dict[str, Any], temporary: Path) -> None:
    assert list(temporary.iterdir()) == []
    assert not [run for run in report["probes"] if "behind" in run["detail"]]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch to keep the GPU busy with")
def test_gpus_at_work_are_left_alone_unless_forced(interpreter: str) -> None:
    code = (
        "import torch, time\n"
        "here = [torch.rand(8192, 8192, device=f'cuda:{n}') for n in range(torch.cuda.device_count())]\n"
        "def work(): return [each.sum().item() for each in [a @ a for a in here]]\n"
        "work()\nprint('on', flush=True)\nend = time.time() + 120\nwhile time.time() < end: work()\n"
    )
    with subprocess.Popen([interpreter, "-c", code], stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout
            assert worker.stdout.readline() == "on\n"
            subprocess.run(["sleep", "2"], check=True)  # the GPU's own sampling period is up to a second
            rows = {row["name"]: row for row in run(interpreter, "--deep")["probes"] if row.get("framework")}
        finally:
            worker.kill()
    assert rows["deep.torch"]["status"] == "skipped"
    assert "busy" in rows["deep.torch"]["detail"]
    assert "--force" in rows["deep.torch"]["detail"]
