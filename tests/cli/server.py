"""Forks a process for each command line that it is sent, with envcheck imported and the matrix read once.

Each run is still a process of its own, with its own folder, variables, files and exit status. It does not start the
interpreter again, which takes most of the time of a test that asks for one sentence.
"""

import atexit
import gc
import importlib
import json
import os
import socket
import sys
import threading
from contextlib import suppress

from envcheck.cli.main import program
from envcheck.compat.answer import ask
from envcheck.compat.package_needs import marks_of
from envcheck.importers import read_text
from envcheck.knowledge.load import load_matrix
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.planned.solve import solve
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge, plan_judge
from envcheck.plans import read_plans
from envcheck.redact import mask_secrets
from envcheck.report import render
from envcheck.rules.catalog import all_rules

_NEEDED_BY_MOST = (
    "cli.request", "cli.parser", "cli.verbs.check", "cli.verbs.explain", "cli.verbs.matrix", "collect.gather",
    "collect.starting", "compat.lookup", "config.meaning", "config.read", "fleet.compare", "pipeline.warm_up",
    "plans.readers.dockerfile", "report.answers.matrix", "report.saved",
)  # fmt: skip
"""Imported for the processes that are forked."""
_NEEDED_BY_FLEETS = (
    "envcheck.cli.verbs.fleet", "envcheck.fleet.engines.reports", "envcheck.fleet.pages.text", "envcheck.fleet.store",
    "duckdb",
)  # fmt: skip
"""Imported before the first of them is."""


def main() -> None:
    """Answer each command line with its exit status, until the other end is closed."""
    for name in _NEEDED_BY_MOST:
        importlib.import_module(f"envcheck.{name}")
    _warm_up()
    asked = socket.socket(fileno=int(sys.argv[1]))
    while True:
        message, files, _, _ = socket.recv_fds(asked, 1 << 17, 3)
        if not message:
            return
        given = json.loads(message)
        if given["arguments"][:1] == ["fleet"]:
            with suppress(ImportError):  # of DuckDB, which is an extra
                for name in _NEEDED_BY_FLEETS:
                    importlib.import_module(name)
            gc.freeze()
        child = os.fork()
        if not child:
            asked.close()
            _become(files, **given)
            _run()
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        asked.send(str(os.waitstatus_to_exitcode(status)).encode())


def _warm_up() -> None:
    """Judge a text and choose what to install: half of the time of most commands is what the first of these decodes and
    compiles. All of it is pure: no process, thread or file is touched, and nothing depends on the environment.
    """
    matrix = load_matrix()
    all_rules()
    machine = parse_components("gpu==H100,driver==550.54.14,os==linux,machine==x86_64,python==3.12")
    ask(matrix, (*machine, *parse_components("torch==2.5.1")))
    text = "CUDA error: no kernel image is available\ntorch==2.5.1+cu124\nNVIDIA GeForce RTX 5090, driver 550.54.14\n"
    report = mask_secrets(judge(read_text(text), Request()))
    for form in ("text", "json"):
        render(report, form)
    wishes = read_plans((), matrix, marks_of("3.12", "linux", "x86_64"), wishes=["torch", "vllm"])
    request = Request(assume=machine, planned=wishes, scopes=frozenset({"node", "env"}))
    facts = judge(Snapshot(), request).snapshot or Snapshot()
    solve(facts, wishes, matrix, plan_judge(facts, request))
    gc.collect()
    gc.freeze()


def _run() -> None:
    """Run the program and end as a process does, but for freeing its memory: to take apart what is shared with the
    server copies all of it, which takes longer than most command lines.
    """
    try:
        program()
    except SystemExit as left:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        os._exit(left.code if isinstance(left.code, int) else 0)


def _become(files: list[int], arguments: list[str], cwd: str, variables: dict[str, str]) -> None:
    """Make this process what ``python -m envcheck`` with these arguments would be."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(cwd)
    sys.argv[1:] = arguments
    sys.path[0] = cwd


if __name__ == "__main__":
    main()
