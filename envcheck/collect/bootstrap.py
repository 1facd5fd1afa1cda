"""What a child runs: ``PYTHON -I -S -c <the text of this file> FACTS ORDER [FOLDER PROBE...]``, the numbers of two
descriptors, and probes of a folder that are imported before the order is there.

ORDER gives first a line of JSON with ``request``, ``folder``, ``path`` (entries that go behind those of the
interpreter, without their ``.pth`` files), ``alarm`` (seconds), ``prepare`` (probes that get ready while the child
waits for their names; may be left out) and ``trial`` (whether this child tries a framework as its user's program
would: it may start programs, and the working folder that ``-c`` put on the path goes, since it runs without ``-I``),
then the name of a probe on each line, the next one when the last is done. JSON lines go to FACTS.

Standard library only and Python 3.8 or newer: it may be run by another interpreter than envcheck's own.
"""

# ruff: noqa: BLE001, PLC0415, PTH123, S110, SIM105 A probe may raise anything, and the child continues. Imports cost
# start-up time, so they are few and some late.
from __future__ import annotations

import errno
import faulthandler
import gc
import importlib
import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

PACKAGE = "_envcheck_probes"
STARTS = frozenset(
    {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.startfile", "pty.spawn"}
)
"""Audit events before a program is started."""
ALLOWED = "/dcgmi"  # The one program of the machine that a check starts: it asks a host engine, and a library does not
STANDARD_ERROR = 2


class FactLine:
    """The descriptor that the parent reads."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._identity = self._file_identity()

    def write(self, data: bytes) -> None:
        # A library may have closed the descriptor and reused its number.
        if self._file_identity() != self._identity:
            raise OSError("the line to envcheck was closed")
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def send(self, probe: str, **message: object) -> None:
        self.write(json.dumps({"probe": probe, **message}).encode() + b"\n")

    def _file_identity(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_dev, status.st_ino


def main() -> None:
    """Run the probes that ORDER names, one after the other."""
    own_process = os.getpid()
    line = FactLine(int(sys.argv[1]))
    os.set_inheritable(int(sys.argv[2]), False)
    import_early(*sys.argv[3:])
    with open(int(sys.argv[2]), "rb") as order_file:
        line_of_order = order_file.readline()
        if not line_of_order:
            os._exit(0)  # this child was not needed
        order = json.loads(line_of_order)
        # Write no core file, report where a crash occurred, and exit some time after the parent's deadline.
        try:
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        except (ImportError, OSError, ValueError):
            pass
        faulthandler.enable(STANDARD_ERROR)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(order["alarm"])
        if not order["trial"]:
            # Forbid Python code in this process to start other programs, which some libraries do on import.
            sys.addaudithook(refuse)
            # multiprocessing calls it without an audit event.
            forks: Any = importlib.import_module("_posixsubprocess")
            forks.fork_exec = lambda program, *_: refuse("os.exec", (program,))
        elif sys.path[:1] == [""]:
            del sys.path[0]
        sys.path.extend(entry for entry in order["path"] if entry not in sys.path)
        make_package(order["folder"])
        tree = importlib.import_module(PACKAGE + ".common.tree").Tree(order["request"])
        prepare(order.get("prepare", ()), tree)
        counted = 0.0
        for name in order_file:
            counted = run_probe(name.decode().strip(), tree, line, counted)
            if os.getpid() != own_process:
                break  # a fork of the probe returned here
    os._exit(0)  # remaining threads and exit handlers of libraries must not delay or change the exit


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise the error of a system that forbids starting programs, which libraries handle."""
    if event in STARTS and not (event == "os.posix_spawn" and str(arguments[0]).endswith(ALLOWED)):
        raise PermissionError(errno.EPERM, "a check starts no program", repr(arguments[:1])[:200])


def import_early(folder: str = "", *names: str) -> None:
    """Import probes, which need only the standard library. An error is suppressed: it recurs when the probe runs."""
    if folder:
        make_package(folder)
        gc.set_threshold(100_000)  # it will read files, which makes many objects and few cycles
    for name in names:
        try:
            importlib.import_module(PACKAGE + "." + name)
        except Exception:
            pass


def make_package(folder: str) -> None:
    """Make ``folder`` a package under a private name, so that relative imports work and no other name is taken."""
    if PACKAGE in sys.modules:
        return
    package = type(sys)(PACKAGE)
    package.__path__ = [folder]
    sys.modules[PACKAGE] = package


def prepare(names: Iterable[str], tree: Any) -> None:
    """Call the probes' ``prepare``. An error is suppressed: it occurs again, and is reported, when the probe runs."""
    for name in names:
        try:
            importlib.import_module(PACKAGE + "." + name).prepare(tree)
        except Exception:
            pass


def processor_time() -> float | None:
    """Seconds of processor time of this process and of those that it waited for; None where that cannot be asked."""
    try:
        import resource

        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in used)
    except (ImportError, OSError, ValueError):
        return None


def run_probe(name: str, tree: Any, line: FactLine, counted: float) -> float:
    """Run one probe; an exception ends only this probe. Its processor time is what was not ``counted`` before: to the
    first probe of a process belongs the start of this process.
    """
    line.send(name, begin=True)
    started = time.monotonic()
    out = importlib.import_module(PACKAGE + ".common.out").Out(name, line.write)
    ending = None
    try:
        collect = getattr(importlib.import_module(PACKAGE + "." + name), "collect", None)
        if collect is None:
            ending = {"status": "failed", "detail": "it has no function collect"}
        else:
            collect(tree, out)
    except BaseException as error:
        ending = failure(error)
    for stream in (sys.stdout, sys.stderr):  # what was printed, before the parent learns that the probe is done
        try:
            stream.flush()
        except Exception:
            pass
    line.write(b"\n")  # in case the probe left an unfinished line
    used = processor_time()
    line.send(name, seconds=time.monotonic() - started, processor=None if used is None else used - counted)
    if ending is None:
        out.done()
    else:
        line.send(name, done=ending)
    return used or 0.0


def failure(error: BaseException) -> dict[str, str]:
    """The failure of a probe that raised ``error``, bounded whatever the error's text is."""
    import traceback

    try:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:
        text, trace = type(error).__name__, ""
    return {"status": "failed", "detail": text[:1000], "trace": trace[-4000:]}


if __name__ == "__main__":
    main()
