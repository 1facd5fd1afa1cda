"""Work that a copy of a probe's process does: the same results, in order, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from envcheck.collect.catalog import all_probes
from envcheck.collect.gather import gather
from envcheck.snapshot import Snapshot
from tests.probes.framework_trees import SITE, Frameworks

ROOT = Path(__file__).resolve().parents[2]
CORES = sorted(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(len(CORES) < 2, reason="there is no second core for a copy")


def told(code: str) -> str:
    """What a process of one thread prints that runs ``code``, as a probe's child is one."""
    program = f"import os, sys, time\nfrom probes._beside import Beside\n{textwrap.dedent(code)}"
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


CHILDLESS = """
try:
    os.waitpid(-1, os.WNOHANG)
    print("a child is left")
except ChildProcessError:
    pass
"""


@two_cores
def test_the_steps_are_taken_elsewhere_one_after_the_other() -> None:
    code = """
    here, done = os.getpid(), []
    beside = Beside(lambda: [os.getpid() != here, done.append(1)], lambda: {"é": "x" * 200_000, "done": done})
    first, second = beside.next(), beside.next()
    print(first, second == {"é": "x" * 200_000, "done": [1]}, done)
    beside.end()
    """
    assert told(textwrap.dedent(code) + CHILDLESS) == "[True, None] True []\n"


@two_cores
@pytest.mark.parametrize("step", ["1 / 0", "os.kill(os.getpid(), 9)", "sys.exit('gone')", "{1: object()}"])
def test_after_a_step_that_fails_nothing_is_known(step: str) -> None:
    code = f"""
    beside = Beside(lambda: "one", lambda: {step}, lambda: "three")
    print(beside.next(), beside.next(), beside.next())
    """
    assert told(textwrap.dedent(code) + CHILDLESS) == "one None None\n"


@two_cores
def test_one_that_never_ends_is_ended() -> None:
    code = """
    beside = Beside(lambda: time.sleep(600))
    beside.end()
    beside.end()
    """
    assert told(textwrap.dedent(code) + CHILDLESS) == ""


@pytest.mark.parametrize(
    "before",
    [
        f"os.sched_setaffinity(0, {{{CORES[0]}}})",
        "import threading; threading.Thread(target=time.sleep, args=(1,), daemon=True).start()",
        "def refuse(): raise OSError('no more processes')\nos.fork = refuse",
    ],
    ids=["one core", "a thread", "no process"],
)
def test_where_no_copy_can_be_made_no_step_is_taken(before: str) -> None:
    code = "beside = Beside(lambda: print('taken'))\nprint(beside.next())\n" + CHILDLESS
    assert told(f"{before}\n{code}") == "None\n"


def gathered(root: Path) -> list[Snapshot]:
    request = {"root": str(root), "cwd": "/", "variables": {}, "python": ["/env/bin/python"], "all_envs": False}
    specs = [spec for spec in all_probes() if spec.name in ("environments", "libraries")]
    return gather(specs, request, scopes=("node", "container", "env"))


@two_cores
def test_the_facts_are_those_of_one_process(tmp_path: Path) -> None:
    tree = Frameworks(tmp_path)
    tree.venv("/env", tree.base("/usr", "3.12.3"), "3.12.3")
    version = "__version__ = '2.5.1+cu124'\ncuda: Optional[str] = '12.4'\n"
    tree.package({"torch/__init__.py": "", "torch/version.py": version}, "torch", "2.5.1")
    tree.package({"vllm/__init__.py": "", "vllm/_version.py": "__version__ = version = '0.6.3'\n"}, "vllm", "0.6.3")
    tree.package({"jaxlib/__init__.py": "", "jaxlib/version.py": "__version__ = '0.4.34'\n"}, "jaxlib", "0.4.34")
    tree.package({"onnxruntime/__init__.py": "__version__ = '1.20.1'\n"}, "onnxruntime", "1.20.1")
    tree.file(f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", "no ELF file")
    many = gathered(tmp_path)
    os.sched_setaffinity(0, CORES[:1])
    try:
        one = gathered(tmp_path)
    finally:
        os.sched_setaffinity(0, CORES)
    assert [(part.environments, part.libraries) for part in many] == [
        (part.environments, part.libraries) for part in one
    ]
    environments, libraries = many[0].environments, many[1].libraries
    assert environments is not None
    assert libraries is not None
    listing = environments.items[0].frameworks
    assert listing is not None
    assert [framework.name for framework in listing.items] == ["torch", "jaxlib", "onnxruntime", "vllm"]
    assert [library.path for library in libraries.items] == [f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"]
    assert [(run.status, run.detail) for part in many for run in part.runs] == [("ok", ""), ("ok", "")]
