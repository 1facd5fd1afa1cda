"""What to do next about a trial that failed or did not finish, by its error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables import StepRow
from envcheck.model.checks import Fix
from envcheck.model.snapshot import Trial
from envcheck.rules.api import FrameworkSubject
from envcheck.rules.facts.frameworks import full_name, module_of

_IMPORT = ("PYTHON", "-c", "import MODULE")


def next_steps(subject: FrameworkSubject) -> tuple[Fix, ...]:
    """Steps that show the reason of a failed trial where no finding names it."""
    trial = subject.framework.trial
    if trial is None:
        return ()
    return tuple(_steps(subject, trial))


def _steps(subject: FrameworkSubject, trial: Trial) -> Iterator[Fix]:
    framework, error = subject.framework, trial.error or ""
    if error.startswith(("crashed: SIGSEGV", "crashed: SIGBUS")) and subject.environment.verified is None:
        text = "Compare the hashes of the installed files: an overwritten library crashes without a message"
        yield Fix(text=text, command=("envcheck", "check", "--verify", "--python", *_filled(("PYTHON",), subject)))
    row = step_for(error)
    frame = next((file for file in trial.files or () if file.role == "frame" and file.owner), None)
    if row is not None:
        yield Fix(text=row.text, command=_filled(row.command, subject))
    elif frame is not None:
        place = f"{frame.path}, line {frame.line}" if frame.line else frame.path
        yield Fix(text=f"Look at {place} (of {frame.owner}), where it was raised", command=_filled(_IMPORT, subject))
    else:
        yield Fix(text="See the whole traceback", command=_filled(_IMPORT, subject))
    if trial.imported is False:
        yield Fix(text=f"If that does not help, install {full_name(framework)} in a separate environment")


def step_for(error: str) -> StepRow | None:
    """The first row of ``errors.toml`` that matches the error of a trial."""
    rows = sorted(load_matrix().steps, key=lambda row: row.priority)
    return next((row for row in rows if any(re.search(line, error, re.IGNORECASE) for line in row.lines)), None)


def _filled(command: tuple[str, ...], subject: FrameworkSubject) -> tuple[str, ...]:
    python = subject.environment.executable or "python"
    module = module_of(subject.framework)
    return tuple(python if part == "PYTHON" else part.replace("MODULE", module) for part in command)
