"""The hash of every file that the frameworks and what they require installed, against the list that came with it."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from base64 import urlsafe_b64encode
from contextlib import suppress
from typing import NamedTuple

from .common.out import Out
from .common.record import Record
from .common.tree import Tree
from .files.installations.examined import examined
from .files.owners.conda import all_files as listed_by_conda
from .files.owners.shipped import comparable, differing, is_anothers
from .files.owners.wheels import Recorded, decides, for_tests, is_native
from .files.owners.wheels import all_files as listed_by_wheel

PROBE = {
    "title": "Hashes of the installed files",
    "kind": "verify",
    "seconds": 3600.0,
    "scopes": ["env", "container"],
    "fills": ["environments"],
}

_AT_LEAST, _A_SECOND = 60.0, 50e6
"""Seconds that are taken in any case, and bytes that a slow disk gives in each one besides: what is left after that is
left out, and the record says so.
"""
_ENOUGH = 3500.0
_NICE = 10
"""Trials run beside it, and a core gives one of these nine times as much. With a greater number it would come to
nothing where other programs keep all cores busy.
"""
_FILES = 1_000_000
_DAMAGED = 500
_PIECE = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_TOLD_EVERY = 0.5
_HASHES = {"sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}
_NOT_RUN = (
    ".h", ".hpp", ".cuh", ".a", ".pyi", ".pxd", ".pyx", ".typed", ".md", ".rst", ".txt", ".html", ".cmake", ".pc",
)  # fmt: skip
"""Endings of what only compilers and people read: images that were made smaller have it removed."""


class _Task(NamedTuple):
    item: Record
    recorded: Recorded
    size: int


class _Work:
    """The files, the largest first, shared out among threads: hashing leaves the interpreter's lock to others."""

    def __init__(self, tree: Tree, tasks: list[_Task]) -> None:
        self.differing: list[tuple[_Task, Record]] = []
        self.files = self.bytes = self.unread = 0
        self._tree = tree
        self._tasks = tasks
        self._lock = threading.Lock()
        self._next = 0
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(_cores())]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for its end, no longer than so; whether it has come."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self) -> bool:
        """Take no further file; whether none was left."""
        with self._lock:
            left, self._next = len(self._tasks) - self._next, len(self._tasks)
        return left <= 0 and self.wait(0)

    def _serve(self) -> None:
        buffer = memoryview(bytearray(_PIECE))
        while True:
            with self._lock:
                number, self._next = self._next, self._next + 1
            if number >= len(self._tasks):
                return
            task = self._tasks[number]
            difference = self._compared(task, buffer)
            with self._lock:
                self.files += 1
                if difference:
                    self.differing.append((task, difference))

    def _compared(self, task: _Task, buffer: memoryview) -> Record | None:
        """How the file differs; None where it does not, or cannot be read."""
        recorded = task.recorded
        kind, _, wanted = (recorded.hash or "").partition("=")
        try:
            digest = self._digest(self._tree.place(recorded.path), kind, task.size, buffer)
        except OSError:
            self.unread += 1
            return None
        if digest is None or digest == wanted:
            return None
        found = f"{kind}={digest}"
        if task.item["channel"] != "conda" and recorded.size not in (None, task.size):
            # Machine code of another length was built or stripped by somebody; of the same length, overwritten.
            sizes = {"recorded": f"{recorded.size} bytes", "found": f"{task.size} bytes"}
            return {"kind": "size", **sizes, "digest": found}
        return {"kind": "hash", "recorded": recorded.hash, "found": found, "digest": found}

    def _digest(self, place: str, kind: str, size: int, buffer: memoryview) -> str | None:
        descriptor = os.open(place, _FLAGS)
        hashed = _HASHES[kind]()
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            left = size + 1  # a file that grows while it is read still has an end
            while left > 0 and (number := os.readv(descriptor, [buffer[: min(left, _PIECE)]])):
                hashed.update(buffer[:number])
                left -= number
                self.bytes += number
        finally:
            os.close(descriptor)
        return urlsafe_b64encode(hashed.digest()).decode().rstrip("=")


def collect(tree: Tree, out: Out) -> None:
    """Send ``verified`` of the environment that is judged."""
    judged = next(iter(examined(tree)), None)
    items = comparable(judged) if judged else []
    if judged is None or not items:
        out.absent("no framework whose files are listed")
        return
    tasks: list[_Task] = []
    damaged: list[Record] = []
    for item in items:
        files = listed_by_conda(tree, judged["key"], item) if item["channel"] == "conda" else None
        for recorded in files if files is not None else listed_by_wheel(tree, item["path"]):
            kind, inside = (recorded.hash or "").partition("=")[0], recorded.path.rpartition("-packages/")[2]
            if for_tests(inside) or kind not in _HASHES or len(tasks) >= _FILES:
                continue
            try:
                tasks.append(_Task(item, recorded, os.stat(tree.place(recorded.path)).st_size))
            except (FileNotFoundError, NotADirectoryError):  # it is reported at once
                name = recorded.path.rpartition("/")[2]
                runs = is_native(recorded.path) or ("." in name and not name.lower().endswith(_NOT_RUN))
                if len(damaged) <= _DAMAGED and runs and not (recorded.size == 0 and name == "__init__.py"):
                    # Of modules deep in a package, it is said where sizes are compared whether something imports them.
                    fault: Record = {"kind": "missing", **({} if decides(inside) else {"aside": True})}
                    damaged.append(differing(tree, item, recorded.path, None, fault))
            except (OSError, ValueError):
                pass
    tasks.sort(key=lambda task: -task.size)
    total = sum(task.size for task in tasks)
    with suppress(OSError):
        os.nice(_NICE)  # before its threads start, which inherit it
    until = time.monotonic() + min(_ENOUGH, _AT_LEAST + total / _A_SECOND)
    work = _Work(tree, tasks)
    work.start()
    while not work.wait(_TOLD_EVERY) and time.monotonic() < until:
        out.progress(f"hashed {work.bytes / 1e9:.1f} of {total / 1e9:.1f} GB")
    complete = work.stop()
    python = judged.get("python")
    for task, fault in work.differing:
        digest = fault.pop("digest")
        if not is_anothers(tree, judged["distributions"], task.item, task.recorded, digest):
            damaged.append(differing(tree, task.item, task.recorded.path, python, fault))
    complete = complete and not work.unread and len(damaged) <= _DAMAGED and len(tasks) < _FILES
    record: Record = {"source": "wheel metadata", "packages": list(dict.fromkeys(item["name"] for item in items))}
    record.update(unlisted=(judged.get("shipped") or {}).get("unlisted") or [], files=work.files, bytes=work.bytes)
    record.update(damaged=damaged[:_DAMAGED], complete=complete)
    environment = {"key": judged["key"], "source": judged["source"], "verified": record}
    out.fact({"environments": {"items": [environment], "complete": False}})


def _cores() -> int:
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except (AttributeError, OSError):
        return 1
