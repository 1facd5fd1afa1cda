"""What a whole command executes, as the kernel sees it: its own children and nothing else."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed (apt-get install strace)"),
]

COMMANDS = [["check"], ["check", "--assume", "gpu==H100,driver==580"], ["check", "--all-envs"], ["bench"], ["explain"]]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_executes_its_own_children_alone(arguments: list[str], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=execve,execveat", "-o", str(trace)]
    program = [sys.executable, "-m", "envcheck", *arguments]
    done = subprocess.run([*command, *program], input="driver 580.65.06", capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 2, 3), done.stderr
    # A call that another one interrupts is told on two lines, of which the first has its arguments.
    own, *children = [line for line in trace.read_text().splitlines() if re.search(r" execve(at)?\(", line)]
    assert '"-m", "envcheck"' in own
    assert children or arguments[0] == "explain"
    for child in children:
        assert re.search(rf'execve\("{re.escape(sys.executable)}", \["[^"]+", "-I", "-S", ("-B", )?"-c"', child), child
