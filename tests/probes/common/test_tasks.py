"""Tasks shared out among copies of a probe's process: the same results, and no process left behind."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from envcheck.collect.catalog import all_probes
from envcheck.collect.gather import gather
from envcheck.model.snapshot import Snapshot
from tests.every import cases
from tests.known import known
from tests.probes.frameworks.framework_trees import SITE, Frameworks

ROOT = Path(__file__).resolve().parents[3]
CORES = sorted(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(len(CORES) < 2, reason="there is no second core for a copy")


PRELUDE = """
import json, os, sys, tempfile, time
from probes.common.tasks import run_tasks

here, place = os.getpid(), tempfile.mkstemp()[1]

def meet():
    "Go on once two processes have come to a task: else one might do them all before the other is there."
    with open(place, "a") as file:
        file.write(f"{os.getpid()} ")
    until = time.monotonic() + 30
    while len(set(open(place).read().split())) < 2 and time.monotonic() < until:
        time.sleep(0.005)
    return os.getpid()
"""
CHILDLESS = """
os.remove(place)
try:
    os.waitpid(-1, os.WNOHANG)
    print("a child is left")
except ChildProcessError:
    pass
"""


def told(code: str) -> str:
    """What a process of one thread prints that runs ``code``, as a probe's child is one."""
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(code) + CHILDLESS]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


@two_cores
def test_each_task_is_done_once_and_some_elsewhere(tmp_path: Path) -> None:
    code = f"""
    def task(number):
        def do():
            with open({str(tmp_path / "done")!r}, "a") as file:
                file.write(f"{{number}}\\n")
            return {{"é": "x" * 200_000, "number": number, "here": meet() == here}}
        return do
    results = run_tasks([task(number) for number in range(6)])
    print([result["number"] for result in results], {{result["here"] for result in results}} == {{True, False}})
    print({{len(result["é"]) for result in results}})
    """
    assert told(code) == "[0, 1, 2, 3, 4, 5] True\n{200000}\n"
    assert sorted((tmp_path / "done").read_text().split()) == ["0", "1", "2", "3", "4", "5"]


@two_cores
@cases("task", "1 / 0", "[][0]")
def test_a_task_that_fails_is_left_to_the_caller(task: str) -> None:
    code = f"""
    results = run_tasks([meet, lambda: {task}, meet])
    print(here in results, results[1])
    """
    assert told(code) == "True None\n"


@two_cores
@cases("end", "os.kill(os.getpid(), 9)", "sys.exit('gone')", "setattr(json, 'dumps', None)")
def test_of_a_copy_that_ends_nothing_is_known(end: str) -> None:
    code = f"""
    task = lambda: meet() == here or {end}
    results = run_tasks([task, task, task])
    print(set(map(str, results)) == {{"True", "None"}})
    """
    assert told(code) == "True\n"


@cases(
    "before", f"os.sched_setaffinity(0, {{{CORES[0]}}})",
    "import threading; threading.Thread(target=time.sleep, args=(1,), daemon=True).start()",
    "def refuse(): raise OSError('no more processes')\nos.fork = refuse", ids=["one core", "a thread", "no process"],
)  # fmt: skip
def test_where_no_copy_can_be_made_nothing_is_done(before: str) -> None:
    code = "print(run_tasks([lambda: print('done'), lambda: print('done')]))\n"
    assert told(f"{before}\n{code}") == "[None, None]\n"


@cases("number", 0, 1)
def test_what_cannot_be_shared_is_not_done(number: int) -> None:
    assert told(f"print(run_tasks([lambda: print('done')] * {number}))") == f"{[None] * number}\n"


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
    listing = known(environments).items[0].frameworks
    assert [framework.name for framework in known(listing).items] == ["torch", "jaxlib", "onnxruntime", "vllm"]
    assert [library.path for library in known(libraries).items] == [f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"]
    assert [(run.status, run.detail) for part in many for run in part.runs] == [("ok", ""), ("ok", "")]
