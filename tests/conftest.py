"""What every test may rely on."""

import gc
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from envcheck.errors import MatrixError
from envcheck.knowledge.compiling import compile_folder
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import TABLES
from tests import installed
from tests.thorough import examples

# Hundreds of programs are started, and every worker imports all tests: none is to compile everything each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ROOT = Path(__file__).parents[1]
LAB = ROOT / "tests" / "lab"


def pytest_configure(config: pytest.Config) -> None:
    """Import the program and Hypothesis as they are compiled for themselves: pytest would rewrite all of both, since
    their distributions have plugins, which takes seconds in a new environment.
    """
    getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set()).difference_update(("envcheck", "hypothesis"))
    from hypothesis import settings  # noqa: PLC0415 - not before

    # How long a machine takes is not a property of the code.
    settings.register_profile("untimed", deadline=None, max_examples=examples(500))
    settings.load_profile("untimed")
    gc.disable()  # until all is collected; what hands out tests to workers does without


@pytest.hookimpl(trylast=True)  # coverage is measured from here on: what is imported before, it does not see
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the program once, for all workers and what they start; let each worker rewrite its share of the tests.

    End at once, and with the reason, where a row of the matrix is malformed: every test would fail of it.
    """
    if hasattr(session.config, "workerinput"):
        with patch("envcheck.knowledge.load.rows_folder", lambda: installed.ROWS):
            load_matrix()  # as the first process compiled it, which checked it
        _import_share(session.config)
    else:
        compiling = [sys.executable, "-m", "compileall", "-q", "-j", "0", "envcheck", "probes"]
        subprocess.run(compiling, cwd=ROOT, check=False)
        try:
            installed.renew(_parsed_once())
        except MatrixError as error:
            pytest.exit(str(error), pytest.ExitCode.USAGE_ERROR)


def _parsed_once() -> dict[str, Any]:
    """The rows in plain lists and dictionaries, from which the matrix of this process is made too."""
    document = compile_folder(ROOT / "matrix", TABLES)
    with patch("envcheck.knowledge.load.compile_folder", lambda *_: dict(document)):
        load_matrix()
    return document


def _import_share(config: pytest.Config) -> None:
    """Import every fourth module where there are four workers, before all of them collect all in the same order.

    In a fresh checkout each would rewrite the assertions of every module otherwise; so it finds the others' cached.
    """
    worker = config.workerinput  # type: ignore[attr-defined]
    chosen = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    files = {file for place in chosen for file in (place.rglob("test_*.py") if place.is_dir() else [place])}
    ours = sorted(file for file in files if LAB not in file.parents or config.option.markexpr != "not lab")
    for file in ours[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # collecting it tells why it cannot be imported
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Three workers more than there are processors: many tests wait for a process or a screen."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else len(os.sched_getaffinity(0)) + 3


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the lab out where none of it is chosen: every worker would import it all."""
    return True if collection_path == LAB and config.option.markexpr == "not lab" else None


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later garbage collection: modules, items and the matrix live to the end."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 50, 50)  # what a test makes is seldom in cycles, and the most goes with the test


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Collect once what the tests left in cycles: pytest would look through all that they made twice, the interpreter
    once more.
    """
    gc.collect()
    if "_duckdb" not in sys.modules:  # it reports what is never collected as leaks
        gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def heed_interrupts() -> Iterator[None]:
    """Take SIGINT as a terminal's program does: a shell's background jobs, and what they start, ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
