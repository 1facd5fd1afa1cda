"""What to do next about a trial that failed, or came to no end, by the way in which it did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from envcheck.checks import Fix
from envcheck.rules.api import FrameworkSubject
from envcheck.rules.facts.frameworks import module_of, named
from envcheck.snapshot import Trial


class _Way(NamedTuple):
    """A way to fail: what the error says, and what then tells the reason."""

    pattern: str
    text: str
    command: tuple[str, ...] = ()
    """``PYTHON`` and ``MODULE`` stand for the environment's interpreter and for what is imported."""


_IMPORT = ("PYTHON", "-c", "import MODULE")
_WAYS = (
    _Way(
        r"^crashed: SIGBUS",
        "A mapped file was cut off, or /dev/shm is full: compare the files, and see where it crashes",
        ("PYTHON", "-X", "faulthandler", "-c", "import MODULE"),
    ),
    _Way(
        r"^crashed: SIGILL",
        "The build uses instructions that this processor does not have (see the flags in /proc/cpuinfo), or a file is "
        "damaged: see where it crashes",
        ("PYTHON", "-X", "faulthandler", "-c", "import MODULE"),
    ),
    _Way(
        r"^crashed: ",
        "See where it crashes: the last lines name the file that was running",
        ("PYTHON", "-X", "faulthandler", "-c", "import MODULE"),
    ),
    _Way(
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|RESOURCE_EXHAUSTED|OutOfMemoryError",
        "The GPU's memory is in use: end what holds it, or choose another GPU, and try again",
        ("nvidia-smi", "--query-compute-apps=pid,name,used_memory", "--format=csv"),
    ),
    _Way(
        r"^killed by SIGKILL|out of host memory|Cannot allocate memory|MemoryError",
        "Mostly memory ran out: see whether the kernel or the limit of the container ended it, and give it more",
        ("journalctl", "--dmesg", "--grep", "oom|Killed process"),
    ),
    _Way(r"^killed by ", "Something else ended the process: try the import by hand", _IMPORT),
    _Way(
        r"^timed out",
        "See what takes the time, on a file system that is not slow and a machine that is not busy",
        ("PYTHON", "-X", "importtime", "-c", "import MODULE"),
    ),
    _Way(
        r"ArithmeticError: the result is wrong",
        "See whether the GPU computes wrong without the framework too: then it is the hardware",
        ("envcheck", "bench"),
    ),
    _Way(r"JAX_PLATFORMS=", "Let JAX choose by itself", ("env", "-u", "JAX_PLATFORMS", "PYTHON")),
    _Way(
        r"undefined symbol|symbol \S+.* not defined|version .* not found|cannot open shared object|wrong ELF class"
        r"|file too short|invalid ELF header",
        "See which files the loader takes, and from where",
        ("env", "LD_DEBUG=libs", *_IMPORT),
    ),
    _Way(
        r"PermissionError|Permission denied",
        "Make the file readable for the user who runs the program, and the folders that it lies in",
    ),
    _Way(
        r"CUDA error|cudaError|CUDA_ERROR|cuda[A-Z]\w+ failed|CUDNN_STATUS|CUBLAS_STATUS|CUSOLVER_STATUS|CUFFT_",
        "Let each call report its own error, then look at the first one; the kernel log has what the driver says of it",
        ("env", "CUDA_LAUNCH_BLOCKING=1", *_IMPORT),
    ),
    _Way(
        r"lists no GPU|counts no CUDA device|left out and the CPU computes|result is on|computes on \w+ by default"
        r"|cannot offload",
        "It starts, and finds no GPU: started by hand, it prints which library or call failed",
        _IMPORT,
    ),
    _Way(r"^exited with status", "It ended itself: see what it prints when it is started by hand", _IMPORT),
)


def next_steps(subject: FrameworkSubject) -> tuple[Fix, ...]:
    """What tells the reason of a failed trial, and what is left to do where nothing else names it."""
    trial = subject.framework.trial
    if trial is None:
        return ()
    return tuple(_steps(subject, trial))


def _steps(subject: FrameworkSubject, trial: Trial) -> Iterator[Fix]:
    framework, error = subject.framework, trial.error or ""
    if error.startswith(("crashed: SIGSEGV", "crashed: SIGBUS")) and subject.environment.verified is None:
        text = "Compare the hashes of the installed files: a library that was overwritten crashes without a word"
        yield Fix(text=text, command=("envcheck", "check", "--verify", "--python", *_filled(("PYTHON",), subject)))
    way = next((way for way in _WAYS if re.search(way.pattern, error, re.IGNORECASE)), None)
    frame = next((file for file in trial.files or () if file.role == "frame" and file.owner), None)
    if way is not None:
        yield Fix(text=way.text, command=_filled(way.command, subject))
    elif frame is not None:
        place = f"{frame.path}, line {frame.line}" if frame.line else frame.path
        yield Fix(text=f"Look at {place} (of {frame.owner}), where it was raised", command=_filled(_IMPORT, subject))
    else:
        yield Fix(text="See the whole traceback", command=_filled(_IMPORT, subject))
    if trial.imported is False:
        yield Fix(text=f"If that does not help, install {named(framework)} in a separate environment")


def _filled(command: tuple[str, ...], subject: FrameworkSubject) -> tuple[str, ...]:
    python = subject.environment.executable or "python"
    module = module_of(subject.framework)
    return tuple(python if part == "PYTHON" else part.replace("MODULE", module) for part in command)
