"""Run ``envcheck`` and count what it does, in its own process and in each child: ``counting.py FOLDER ARGUMENT...``.

Each process leaves a JSON file in FOLDER: ``calls`` of Python functions (resuming a generator is one), ``patterns``
that were compiled, ``opened`` files, ``modules`` imported, ``bytes`` read; with MEMORY in the environment ``memory``,
the peak of Python's own in KiB, too. Times are noise; these are not. The profiler that counts calls is CPython's own:
a function in its place would take as long as the command.
"""

from __future__ import annotations  # so that its module is loaded before anything is counted

import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

COUNTER = r"""
def count_into(folder):
    import _lsprof, json, os, sys, threading

    before = len(sys.modules)
    opened = 0
    profilers = []

    def bytes_read():
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])

    def profile(*_event):
        profilers.append(_lsprof.Profiler(subcalls=False, builtins=False))
        profilers[-1].enable()

    def audit(event, arguments):
        nonlocal opened
        if event == "open" and not str(arguments[0]).startswith("/proc/"):  # the parent looks there while it waits
            opened += 1

    def is_pattern(code):
        return code.co_name == "compile" and code.co_filename.endswith(("re/_compiler.py", "sre_compile.py"))

    def write():
        profilers[0].disable()
        called = [(each.code, each.callcount) for one in profilers for each in one.getstats()]
        found = {
            "calls": sum(number for _, number in called),
            "patterns": sum(number for code, number in called if is_pattern(code)),
            "opened": opened, "bytes": bytes_read() - begun, "modules": len(sys.modules) - before,
        }
        with open(f"{folder}/{os.getpid()}.json", "w") as file:
            json.dump(found, file)

    def leave(status, leave=os._exit):
        write()
        leave(status)

    begun = bytes_read()
    os.sched_getaffinity = lambda _process: {0}  # forks share out work as it comes, and have counts of before
    os._exit = leave
    sys.addaudithook(audit)
    threading.setprofile(profile)
    profile()
    return write
"""
_FUTURE = "from __future__ import annotations\n"


def main() -> int:
    folder = sys.argv[1]
    if "MEMORY" in os.environ:
        tracemalloc.start()
    names: dict[str, Any] = {}
    exec(COUNTER, names)  # what children begin with
    write = names["count_into"](folder)
    try:
        if sys.argv[2] == "check" and "--from" not in sys.argv:
            from envcheck.collect import runner, starting  # noqa: PLC0415 - counted

            setattr(runner._Job, "is_through", False)  # noqa: B010 - each child exits by itself, and leaves its counts

            begun = starting.bootstrap().replace(_FUTURE, f"{_FUTURE}{COUNTER}count_into({folder!r})\n", 1)
            setattr(starting, "bootstrap", lambda: begun)  # noqa: B010 - a cached function, for the type checker
        from envcheck.cli.main import main as run  # noqa: PLC0415 - counted

        return run(sys.argv[2:])
    finally:
        peak = tracemalloc.get_traced_memory()[1] // 1024
        write()
        if peak:
            Path(folder, "peak.json").write_text(f'{{"memory": {peak}}}')


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
