"""How a child is started: its command, its three pipes, its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

MARKER = "ENVCHECK_CHILD"
"""Environment variable that holds a random token of the child."""
LIBRARY_PATH = "LD_LIBRARY_PATH"
WORKING_FOLDER = "/"
"""The working folder of children that are not trials."""
ISOLATED = ("-I", "-S", *(["-B"] if sys.dont_write_bytecode else []))
"""Without variables, the working folder and ``site`` (hence ``.pth`` files). Bytecode of the probes is kept beside them
where this process keeps its own: uv installs none, and compiling took a quarter of a check's time.
"""


class Started(NamedTuple):
    """A started child; the descriptors are the parent's non-blocking ends of its pipes."""

    process: subprocess.Popen[bytes]
    token: str
    facts: int
    noise: int
    order: int
    sent_probe: str = ""
    """The probe whose order was already written."""
    unsent: bytes = b""
    """The part of that order that did not fit into the pipe."""


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


@cache
def bootstrap() -> str:
    with open(f"{os.path.dirname(__file__)}/bootstrap.py", encoding="utf-8") as file:  # noqa: PTH120, PTH123  as bundle
        return file.read()
