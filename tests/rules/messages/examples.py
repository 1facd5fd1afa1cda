"""The error lines that stand in ``matrix/errors.toml`` as examples of what its rows name."""

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_ROWS = Path(__file__).parents[3] / "matrix" / "errors.toml"
_BY_NUMBER = {
    "gpu-firmware-timeout": [
        "NVRM: Xid (PCI:0000:2b:00): 119, pid=1, name=python, Timeout after 45s of waiting for RPC response from GPU0"
    ],
    "gpu-lost": [
        "NVRM: Xid (PCI:0000:2b:00): 79, pid=1, name=python",
        "XidCriticalError: Xid=79 on Device=GPU-8a56a4bc, the device will go unhealthy.",
    ],
    "gpu-error-logged": [
        "NVRM: Xid (PCI:0000:3b:00): 62, pid='<unknown>', name=<unknown>",
        "NVRM: Xid (PCI:0000:79:00): 109, pid=1, name=python, Ch 00000008, errorString CTX SWITCH TIMEOUT",
    ],
}
"""Events of the driver, whose rows stand in ``xids.toml`` by number."""


class Example(NamedTuple):
    """A line and the problem that it names."""

    problem: str
    line: str
    alone: bool
    """Whether it does so without another line beside it."""


@cache
def examples() -> tuple[Example, ...]:
    """All of them: for each problem, those of a failure that name it alone come first."""
    rows = sorted(toml.loads(_ROWS.read_text(encoding="utf-8"))["error"], key=lambda row: row["priority"])
    rows.sort(key=lambda row: row.get("status", "fail") != "fail")
    return (
        *(Example(problem, line, alone=True) for problem, lines in _BY_NUMBER.items() for line in lines),
        *(Example(row["problem"], line, alone=True) for row in rows for line in row.get("examples", ())),
        *(Example(row["problem"], line, alone=False) for row in rows for line in row.get("examples_beside", ())),
    )


@cache
def by_problem() -> dict[str, list[str]]:
    """The lines of each problem."""
    found: dict[str, list[str]] = {}
    for example in examples():
        found.setdefault(example.problem, []).append(example.line)
    return found


def pairs() -> list[tuple[str, str]]:
    """Problem and line of each example."""
    return [(problem, line) for problem, line, _ in examples()]
