"""How a child is started: its command, its three pipes, its environment, its order with the request and the folders of
third-party packages; and the children that are started before anything else.

A check waits for the children that read environments and start CUDA: they take longest of all. They start before this
process has imported the rest of envcheck, and get their orders as soon as the options are parsed. What that saves is
measured in docs/decisions/044-one-runner.md.

Standard library only and Python 3.8 or newer: the collector brings this file along.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MARKER = "ENVCHECK_CHILD"  # Environment variable that holds a random token of the child
LIBRARY_PATH = "LD_LIBRARY_PATH"
WORKING_FOLDER = "/"  # The working folder of children that are not trials
ISOLATED = ("-I", "-S", *(["-B"] if sys.dont_write_bytecode else []))
"""Without variables, the working folder and ``site`` (hence ``.pth`` files). Bytecode of the probes is kept beside them
where this process keeps its own: uv installs none, and compiling took a quarter of a check's time.
"""
AS_A_USERS_PROGRAM = ("-B",)  # Options of a child that starts like the user's own programs, without writing bytecode


class Started(NamedTuple):
    """A started child; the descriptors are the parent's non-blocking ends of its pipes."""

    process: subprocess.Popen[bytes]
    token: str
    facts: int
    noise: int
    order: int
    ordered: bool = False  # Whether its order was already written
    sent_probe: str = ""  # The probe whose name was written behind it
    unsent: bytes = b""  # The part of that which did not fit into the pipe


class Launch(NamedTuple):
    """How to start a child, and its request."""

    interpreter: str
    request: Mapping[str, Any]
    path: Sequence[str] = ()  # Entries to append to the interpreter's ``sys.path``
    flags: tuple[str, ...] = ISOLATED
    variables: Mapping[str, str] | None = None
    """Its environment variables; None: envcheck's own, without relative folders of the loader's path."""
    cwd: str = WORKING_FOLDER

    @property
    def is_plain(self) -> bool:
        """Whether the child runs envcheck's own interpreter with envcheck's own variables."""
        return self[3:] == (ISOLATED, None, WORKING_FOLDER) and self.interpreter == sys.executable

    def start(self) -> Started:
        """Start the child; raise OSError if that fails."""
        variables = own_variables() if self.variables is None else self.variables
        return start(self.interpreter, self.flags, variables, self.cwd)

    def order(self, folder: str, alarm: int, prepare: Sequence[str] = ()) -> dict[str, Any]:
        """The first line of its order, as ``bootstrap.py`` describes it."""
        return {
            "request": self.request,
            "folder": folder,
            "path": self.path,
            "trial": self.flags == AS_A_USERS_PROGRAM,
            "alarm": alarm,
            "prepare": prepare,
        }


def own_variables() -> dict[str, str]:
    """The variables of this process without relative folders of the loader's path, since the child works in another
    folder.

    The rule ``loader-path-relative`` reports them.
    """
    variables = dict(os.environ)
    entries = variables.pop(LIBRARY_PATH, "").replace(";", ":").split(":")
    kept = ":".join(entry for entry in entries if entry.startswith(("/", "$ORIGIN", "${ORIGIN}")))
    return {**variables, LIBRARY_PATH: kept} if kept else variables


def start(interpreter: str, flags: tuple[str, ...], variables: Mapping[str, str], cwd: str, *imports: str) -> Started:
    """Start a child; raise OSError if that fails.

    ``imports``: a folder, and probes in it that the child imports at once.
    """
    if not interpreter:
        raise FileNotFoundError("it is not known which Python interpreter runs envcheck")
    token = os.urandom(16).hex()
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for our_end in (0, 0, 1):
            pipe = os.pipe()
            ours.append(pipe[our_end])
            theirs.append(pipe[1 - our_end])
            os.set_blocking(pipe[our_end], False)
        with suppress(OSError):  # a user may hold few such pipes
            fcntl.fcntl(ours[0], 1031, 1 << 20)  # F_SETPIPE_SZ: the child writes its facts before they are read
        facts, noise, order = theirs
        process = subprocess.Popen(
            [interpreter, *flags, "-c", bootstrap(), str(facts), str(order), *imports],
            stdin=subprocess.DEVNULL,
            stdout=noise,
            stderr=noise,
            pass_fds=(facts, order),
            start_new_session=True,
            cwd=cwd,
            env={**variables, MARKER: token},
        )
    except BaseException:
        for descriptor in ours:
            os.close(descriptor)
        raise
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    facts, noise, order = ours
    return Started(process, token, facts, noise, order)


@lru_cache(maxsize=None)
def bootstrap() -> str:
    with open(f"{os.path.dirname(__file__)}/bootstrap.py", encoding="utf-8") as file:  # noqa: PTH120, PTH123  as bundle
        return file.read()


EARLY_PROBES = ("environments", "cuda", "nvml")
"""The probes that each have an early child, which imports it and runs it first, or, the last, only prepares it: NVML
and ``cuInit`` wait for each other in the driver. Where cores are few, only the first has one."""
_FEW_CORES = 2
_SIGNS = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg", "/dev/nvmap", "/dev/nvhost-gpu")
"""Without any of them CUDA ends at once, and its child is not started early: that takes longer than its answer."""
_ALARM = 600  # Seconds after which it ends itself; more than the deadlines of its probes, which are not known yet


class _Early(NamedTuple):
    """An early child, which no group has taken yet."""

    started: Started
    folder: str  # The folder of its probes
    request: dict[str, Any] | None = None  # The request in its order, if that was sent


_waiting: dict[str, _Early] = {}  # By their first probes


def few_cores() -> bool:
    """Whether what is done beside the children that everybody waits for would slow them down."""
    return not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) <= _FEW_CORES


def start_early() -> None:
    """Start the early children. An error is suppressed here: it occurs again, and is reported, when a group needs a
    child.

    If this process is killed, its ends of the pipes close, which ends the children before or after their probes.
    """
    from envcheck import bundle  # noqa: PLC0415  the collector has none

    with suppress(OSError):
        folder = bundle.place("probes")
        for probe in EARLY_PROBES[: 1 if few_cores() or not any(map(os.path.exists, _SIGNS)) else None]:
            started = start(sys.executable, ISOLATED, own_variables(), WORKING_FOLDER, folder, probe)
            _waiting[probe] = _Early(started, folder)


def send_early(request: dict[str, Any], *, machine: bool) -> None:
    """Let early children run their first probes, or prepare them; those of ``machine`` only if it is asked about."""
    import json  # noqa: PLC0415  there is time for it while the children import their probes

    for probe in EARLY_PROBES if machine else EARLY_PROBES[:1]:
        child = _waiting.get(probe)
        if child is None:
            continue
        prepares = probe == EARLY_PROBES[-1]
        order = Launch(sys.executable, request, own_path()).order(child.folder, _ALARM, [probe] if prepares else ())
        data = "".join(f"{line}\n" for line in (json.dumps(order), *(() if prepares else (probe,)))).encode()
        sent = 0
        with suppress(OSError):  # the pipe is full, or the child has ended, which its group notices
            sent = os.write(child.started.order, data)
        started = child.started._replace(ordered=True, sent_probe="" if prepares else probe, unsent=data[sent:])
        _waiting[probe] = child._replace(started=started, request=request)


def end_early() -> None:
    """End the early children that no group took."""
    while _waiting:
        started = _waiting.popitem()[1].started
        for descriptor in (started.facts, started.noise, started.order):
            os.close(descriptor)
        os.killpg(started.process.pid, signal.SIGKILL)  # and any copies that it forked
        started.process.wait()


def waits(probe: str) -> bool:
    """Whether there is an early child of this probe."""
    return probe in _waiting


def take_early(folder: str, first: str, launch: Launch) -> Started | None:
    """The early child of the probe ``first``, if it is like ``launch``, of this folder, and sent no other request."""
    child = _waiting.get(first) if launch.is_plain else None
    if child is None or child.folder != folder or child.request not in (None, launch.request):
        return None
    return _waiting.pop(first).started


def own_path() -> list[str]:
    """The entries of ``sys.path`` that a child may import third-party packages from.

    The working folder is left out, since it may contain anything. Entries of PYTHONPATH come last, so that they cannot
    replace envcheck's own dependencies.
    """
    from pathlib import Path  # noqa: PLC0415  a check has no use for it before

    added: set[Path] = set()
    with suppress(OSError):  # an entry is relative to a removed working folder
        added = {Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    entries = []
    for entry in sys.path:
        is_working_folder = False
        with suppress(OSError):
            is_working_folder = Path(entry).samefile(".") and not entry.endswith("-packages")
        if Path(entry).is_absolute() and not is_working_folder:
            entries.append(entry)
    return sorted(entries, key=lambda entry: Path(entry).resolve() in added)


def probe_request(
    *, cwd: str, variables: Mapping[str, str], python: Sequence[str] = (), all_envs: bool = False, root: str = "/"
) -> dict[str, Any]:
    """The request that every probe gets, as JSON values; the ``Tree`` of probes/common/tree.py is made of it."""
    return {
        "root": root,
        "cwd": cwd,
        "python": list(python),
        "all_envs": all_envs,
        "own_prefix": sys.prefix,
        "variables": dict(variables),
    }


def working_folder() -> str:
    """The current folder, or the root if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109  as above
    except OSError:
        return "/"
