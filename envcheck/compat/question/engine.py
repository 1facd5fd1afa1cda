"""TensorRT engines: which runtime loads an engine that a given TensorRT built.

Whether an engine was built to be version-compatible, its version does not tell; builders do not unless they are asked
to, so an engine is taken for one that was not, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.fit import Fit, conclude
from envcheck.compat.question.judgement import Judgement
from envcheck.compat.question.question import Question
from envcheck.compat.question.rows import rows_of
from envcheck.compat.specifier import Version, parse_specifier
from envcheck.compat.tables import Tables

NAME = "tensorrt-engine"
ASSUMED = "not built to be version-compatible"
_RUNTIME = "tensorrt"


def judge_engine(tables: Tables, question: Question) -> Iterator[Judgement]:
    """An engine loads in the version that built it; one built to be version-compatible, in those that its row needs."""
    if NAME not in question.versions:
        return
    runtime = question.versions.get(_RUNTIME)
    by, label = _RUNTIME, ""
    if runtime is None and _RUNTIME in question.implied:
        implied = question.implied[_RUNTIME]
        runtime, by, label = (implied.version,), implied.by, f" (it comes with {implied.label})"
    for engine in question.versions[NAME]:
        for version in runtime or ():
            yield Judgement((NAME, by), _loads(tables, engine, version, label))


def _loads(tables: Tables, engine: Version, runtime: Version, where: str) -> Fit:
    row = next((row for row in rows_of(tables, NAME) if parse_specifier(row.versions).cover(engine) == "all"), None)
    this = f"an engine built by TensorRT {engine}, this is {runtime}{where}"
    if row is None:
        return conclude(tables, "unknown", f"the matrix does not know where engines of TensorRT {engine} load")
    shortest = min(len(engine.numbers), len(runtime.numbers))
    if engine.numbers[:shortest] == runtime.numbers[:shortest]:
        if engine.numbers != runtime.numbers and (engine.family or runtime.family):
            return conclude(tables, "unknown", f"an engine loads in the very version that built it: {this}", row)
        return conclude(tables, "compatible", f"an engine loads in the version that built it, TensorRT {engine}", row)
    admitted = _RUNTIME in row.needs and parse_specifier(row.needs[_RUNTIME]).cover(runtime) != "none"
    if admitted and runtime.numbers > engine.numbers:
        reason = f"only an engine built to be version-compatible loads in a newer TensorRT: {this}"
    else:
        reason = f"an engine loads in the version of TensorRT that built it: {this}"
    return conclude(tables, "incompatible", reason, row, change=f"TensorRT {engine}, or an engine built by {runtime}")
