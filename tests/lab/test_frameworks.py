"""Frameworks as they are on PyPI: what their files tell, against what they say when imported and what cuobjdump lists.

No GPU is needed. The tests import packages, the readers do not.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.model.snapshot import Framework
from probes.common.tree import Tree
from probes.files.installations.catalog import DETAILED, frameworks
from probes.files.python.distributions import installed_in
from probes.files.python.site import Site
from tests.cli.calling import envcheck
from tests.every import cases

pytestmark = pytest.mark.lab

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
MINOR = "3.12"
WHEELS = (
    "bitsandbytes==0.50.2", "ctranslate2==4.8.5", "cupy-cuda12x==14.2.0", "jax==0.12.0", "jax-cuda12-pjrt==0.12.0",
    "jax-cuda12-plugin==0.12.0", "numba==0.68.1", "numba-cuda==0.30.4", "onnxruntime==1.31.1",
    "torch-tensorrt==2.14.0", "torchvision==0.29.2", "xformers==0.0.35",
)  # fmt: skip
"""About 470 MB."""
NEEDED = ("numpy", "cuda-pathfinder")  # What some of them cannot be imported without

SAYS = """
import json, sys
def ask(name):
    if name == "onnxruntime":
        import onnxruntime
        return {"version": onnxruntime.__version__, "providers": onnxruntime.get_available_providers()}
    if name == "ctranslate2":
        import ctranslate2
        return {"version": ctranslate2.__version__}
    if name == "cupy-cuda12x":
        import cupy
        from cupy.cuda import driver
        return {"version": cupy.__version__, "cuda": driver.get_build_version()}
    if name == "numba-cuda":
        import numba_cuda
        return {"version": numba_cuda.__version__}
    if name == "jax-cuda12-plugin":
        from jax_cuda12_plugin import _versions, version
        return {"version": version.__version__, "cuda": _versions.cuda_runtime_build_version()}
print(json.dumps(ask(sys.argv[1])))
"""


class Lab:
    """An environment with the wheels in it."""

    def __init__(self, folder: Path) -> None:
        program = sorted(PYENV.glob(f"versions/{MINOR}.*/bin/python{MINOR}"))
        if not program:
            pytest.skip(f"no Python {MINOR} below pyenv's root")
        self.prefix = folder / "env"
        self.program = self.prefix / "bin" / "python"
        self.site = self.prefix / "lib" / f"python{MINOR}" / "site-packages"
        subprocess.run([program[-1], "-m", "venv", "--without-pip", self.prefix], check=True)
        self.install(*WHEELS, "--no-deps")
        self.install(*NEEDED)

    def install(self, *what: str) -> None:
        options = ("install", "-q", "--only-binary=:all:", "--no-cache-dir", "--no-compile")
        command = [sys.executable, "-m", "pip", "--python", str(self.program), *options, *what]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{' '.join(what)}: {(done.stderr.strip().splitlines() or ['not to be had'])[-1]}")

    def read(self) -> dict[str, Framework]:
        tree = Tree({"root": "/", "variables": {"HOME": "/nowhere"}})
        installed = installed_in(tree, (str(self.site),), DETAILED)
        records = frameworks(Site(tree, str(self.prefix), (str(self.site),), 0, tuple(installed.items)))
        return {record["name"]: msgspec.convert(record, Framework) for record in records}

    def ask(self, name: str) -> dict[str, Any]:
        """What the framework says of itself when it is imported."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.prefix)}
        command = [str(self.program), "-B", "-c", SAYS, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("frameworks"))


@pytest.fixture(scope="module")
def found(lab: Lab) -> dict[str, Framework]:
    return lab.read()


def test_each_is_found_and_nothing_is_wrong_with_its_files(found: dict[str, Framework]) -> None:
    named = {wheel.partition("==")[0]: wheel.partition("==")[2] for wheel in WHEELS if "pjrt" not in wheel}
    assert {name: (framework.version or "").partition("+")[0] for name, framework in found.items()} == named
    problems = {name: framework.problem for name, framework in found.items() if framework.problem}
    assert problems == {"jax": "jaxlib, which it requires, is not installed"}


@cases("name", "onnxruntime", "ctranslate2", "cupy-cuda12x", "numba-cuda", "jax-cuda12-plugin")
def test_what_is_read_is_what_it_says_when_it_is_imported(lab: Lab, found: dict[str, Framework], name: str) -> None:
    said, framework = lab.ask(name), found[name]
    assert framework.version == said["version"]
    if "cuda" in said:  # the files name the major version alone
        assert framework.cuda == str(said["cuda"] // 1000)
    if "providers" in said:
        assert framework.cpu_only is ("CUDAExecutionProvider" not in said["providers"])


def test_builds(found: dict[str, Framework]) -> None:
    """What the wheels' own files say, as read by eye."""
    assert (found["torchvision"].cuda, found["torchvision"].version) == ("13.2", "0.29.2+cu132")
    assert (found["xformers"].cuda, found["xformers"].built_for) == ("12.8", {"torch": "2.10.0+cu128"})
    assert (found["torch-tensorrt"].cuda, found["torch-tensorrt"].tensorrt) == ("13.2", "11.1.0")
    assert found["jax-cuda12-plugin"].built_for == {"jaxlib": "0.12.0"}
    assert (found["ctranslate2"].cuda, found["ctranslate2"].cpu_only) == ("12", False)
    assert (found["cupy-cuda12x"].nccl, found["jax"].cuda, found["jax"].cpu_only) == ("2.25.1", "12", False)
    assert found["onnxruntime"].providers == ("CPU",)


@pytest.fixture(scope="module")
def cuobjdump(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> str:
    """NVIDIA's own tool, which lists what a library holds."""
    folder = tmp_path_factory.mktemp("tool")
    command = ["install", "-q", "--no-deps", "--target", str(folder), "nvidia-cuda-cuobjdump==13.5.37"]
    done = subprocess.run([sys.executable, "-m", "pip", *command], capture_output=True, text=True, check=False)
    tools = sorted(folder.rglob("cuobjdump"))
    if done.returncode or not tools:
        pytest.skip("NVIDIA's cuobjdump cannot be allocated here")
    return str(tools[0])


@cases("name", "torchvision", "xformers", "cupy-cuda12x", "ctranslate2", "jax-cuda12-plugin")
def test_gpu_code_is_what_cuobjdump_lists(found: dict[str, Framework], cuobjdump: str, name: str) -> None:
    listed: set[str] = set()
    for binary in found[name].binaries or ():
        if not binary.endswith("xla_cuda_plugin.so"):  # half a gigabyte, of which _prng.so has the same targets
            done = subprocess.run([cuobjdump, "-lelf", "-lptx", binary], capture_output=True, text=True, check=False)
            listed |= {f"sm_{number}" for number in re.findall(r"\.sm_(\d+[af]?)\.cubin", done.stdout)}
            listed |= {f"compute_{number}" for number in re.findall(r"\.sm_(\d+[af]?)\.ptx", done.stdout)}
    told = set(found[name].gpu_code or ())
    assert {target.rstrip("f") for target in told} == {target.rstrip("f") for target in listed}


def test_the_whole_command_beside_a_gpu(lab: Lab, tmp_path: Path) -> None:
    assumed = "gpu==H100,driver==580.95.05,os==linux"
    result = envcheck("check", "--json", "--python", str(lab.program), "--assume", assumed, cwd=tmp_path)
    report = json.loads(result.out)
    judged = {check["id"]: check["status"] for check in report["checks"] if check["subject"]["kind"] == "framework"}
    key = str(lab.prefix.resolve())
    assert judged[f"cpu-only-build@{key}:onnxruntime"] == "note"
    assert judged[f"driver-too-old@{key}:cupy-cuda12x"] == "pass"
    assert judged[f"gpu-code-missing@{key}:jax-cuda12-plugin"] == "pass"
    assert judged[f"gpu-code-missing@{key}:cupy-cuda12x"] == "pass"


def test_the_readers_take_little_time(lab: Lab) -> None:
    """Files are in memory and modules imported by now; what is left is reading."""
    began = time.process_time()
    lab.read()
    assert time.process_time() - began < 0.5
