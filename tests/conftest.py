"""What every test may rely on."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from envcheck.compat.load import load_matrix
from envcheck.errors import MatrixError
from tests import installed

# Hundreds of programs are started, and every worker imports all tests: none is to compile everything each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ROOT = Path(__file__).parents[1]
LAB = ROOT / "tests" / "lab"

settings.register_profile("untimed", deadline=None)  # how long a machine takes is not a property of the code
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Import the program as it is compiled for itself: pytest would rewrite it, since its distribution has a plugin."""
    getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("envcheck")
    gc.disable()  # until all is collected


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the program once, for all workers and what they start.

    End at once, and with the reason, where a row of the matrix is malformed: every test would fail of it.
    """
    if not hasattr(session.config, "workerinput"):
        compiling = [sys.executable, "-m", "compileall", "-q", "-j", "0", "envcheck", "probes"]
        subprocess.run(compiling, cwd=ROOT, check=False)
        try:
            load_matrix()
            installed.renew()
        except MatrixError as error:
            pytest.exit(str(error), pytest.ExitCode.USAGE_ERROR)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Two workers more than there are processors: many tests wait for a process or a screen."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else len(os.sched_getaffinity(0)) + 2


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the lab out where none of it is chosen: every worker would import it all."""
    return True if collection_path == LAB and config.option.markexpr == "not lab" else None


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later garbage collection: modules, items and the matrix live to the end."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def heed_interrupts() -> Iterator[None]:
    """Take SIGINT as a terminal's program does: a shell's background jobs, and what they start, ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
