"""The versions that CUDA's libraries answer when they are loaded and called, each in a process of its own."""

from __future__ import annotations

import os
import select
import signal

from ..common.harmless import give_up_making_devices
from ..common.out import Out, clean
from ..common.tree import Tree
from ..trials.libraries import can_be_asked, version_of_file

PROBE = {"title": "Versions that CUDA's libraries answer", "seconds": 120.0, "uses": "files", "fills": ["libraries"]}

SECONDS_EACH = 30  # Loading cuBLASLt's hundreds of megabytes from a busy network file system takes its time
_LONGEST = 4096


def collect(tree: Tree, out: Out) -> None:
    """Ask the libraries of the request, so that what one loads or breaks does not meet another.

    Forks of this process, not programs: it has one thread and has loaded none of them.
    """
    give_up_making_devices()
    waiting = [library for library in tree.request["libraries"] if can_be_asked(library["family"])]
    if not waiting:
        out.absent("no library that can be asked for its version")
    running: dict[int, tuple[int, dict[str, str]]] = {}
    failed: list[str] = []
    while waiting or running:
        while waiting and len(running) < 4:
            library = waiting.pop()
            out.progress(f"asking {library['path']}")
            descriptor, pid = _started(library)
            running[descriptor] = pid, library
        for descriptor in select.select(list(running), [], [])[0]:
            pid, library = running.pop(descriptor)
            with os.fdopen(descriptor, "rb") as pipe:
                answer = pipe.read(_LONGEST).decode("ascii", "replace")
            os.waitpid(pid, 0)
            if not answer:
                failed.append(library["path"])
            else:
                record = {**library, "loaded": clean(answer), "source": "the library itself"}
                out.fact({"libraries": {"items": [record], "complete": False}})
    if failed:
        out.progress(f"{len(failed)} gave no answer")
        print("no answer from:", *failed, sep="\n")  # noqa: T201  what a probe prints is kept with its row


def _started(library: dict[str, str]) -> tuple[int, int]:
    """A fork that asks one library, as (descriptor to read its answer from, process id)."""
    answer, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return answer, pid
    try:
        signal.alarm(SECONDS_EACH)
        os.write(writer, (version_of_file(library["path"], library["family"]) or "").encode())
    except BaseException as error:
        os.write(2, f"{library['path']}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(0)
