"""Run ``envcheck`` and count what it does, in its own process and in each child: ``counting.py FOLDER ARGUMENT...``.

Each process leaves a JSON file in FOLDER: ``calls`` of Python functions (resuming a generator is one), ``patterns``
that were compiled, ``opened`` files, ``modules`` imported, ``bytes`` read. With MEMORY in the environment, ``memory``
alone: the peak of Python's own, in KiB. Times are noise; these are not.
"""

from __future__ import annotations

import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

COUNTER = r"""
def count_into(folder):
    import json, os, sys, threading

    counts = {"calls": 0, "patterns": 0, "opened": 0}
    before = len(sys.modules)

    def bytes_read():
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])

    def profile(frame, event, _argument):
        if event == "call":
            counts["calls"] += 1
            code = frame.f_code
            if code.co_name == "compile" and code.co_filename.endswith(("re/_compiler.py", "sre_compile.py")):
                counts["patterns"] += 1

    def audit(event, arguments):
        if event == "open" and not str(arguments[0]).startswith("/proc/"):  # the parent looks there while it waits
            counts["opened"] += 1

    def write():
        sys.setprofile(None)
        found = dict(counts, bytes=bytes_read() - begun, modules=len(sys.modules) - before)
        with open(f"{folder}/{os.getpid()}.json", "w") as file:
            json.dump(found, file)

    def leave(status, leave=os._exit):
        write()
        leave(status)

    begun = bytes_read()
    os._exit = leave
    sys.addaudithook(audit)
    threading.setprofile(profile)
    sys.setprofile(profile)
    return write
"""
_FUTURE = "from __future__ import annotations\n"


def main() -> int:
    folder = sys.argv[1]
    if "MEMORY" in os.environ:
        return peak(folder)
    names: dict[str, Any] = {}
    exec(COUNTER, names)  # what children begin with
    write = names["count_into"](folder)
    try:
        if sys.argv[2] == "check" and "--from" not in sys.argv:
            from envcheck.collect import starting  # noqa: PLC0415 - counted

            begun = starting.bootstrap().replace(_FUTURE, f"{_FUTURE}{COUNTER}count_into({folder!r})\n", 1)
            setattr(starting, "bootstrap", lambda: begun)  # noqa: B010 - a cached function, for the type checker
        from envcheck.cli.main import main as run  # noqa: PLC0415 - counted

        return run(sys.argv[2:])
    finally:
        write()


def peak(folder: str) -> int:
    tracemalloc.start()
    from envcheck.cli.main import main as run  # noqa: PLC0415 - counted

    status = run(sys.argv[2:])
    Path(folder, "peak.json").write_text(f'{{"memory": {tracemalloc.get_traced_memory()[1] // 1024}}}')
    return status


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
