"""Error statuses of the driver's libraries, and the rule that explains each."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from envcheck.checks import Evidence
from envcheck.compat.load import load_matrix
from envcheck.compat.tables import AnswerRow
from envcheck.rules.api import Facts
from envcheck.snapshot import ApiResult

NOT_LOADABLE = -1
"""The code of a call that failed because its library could not be loaded."""
_NOT_LOADED = AnswerRow(
    source=(), api="cuda", code=NOT_LOADABLE, problem="driver-not-installed", meaning="its library cannot be loaded"
)


def meaning_of(result: ApiResult) -> AnswerRow | None:
    """The meaning of a failed call; None for success and for a status that the matrix does not know."""
    if result.code == NOT_LOADABLE:
        return _NOT_LOADED
    api = "nvml" if result.call.lower().startswith("nvml") else "cuda"
    return _by_status().get((api, result.code))


@cache
def _by_status() -> dict[tuple[str, int], AnswerRow]:
    return {(row.api, row.code): row for row in load_matrix().answers}


def answers(facts: Facts) -> tuple[ApiResult, ...]:
    """The results of initializing the driver's libraries and counting devices."""
    driver = facts.snapshot.driver
    given = (driver.cuda_init, driver.cuda_device_count, driver.nvml) if driver else ()
    return tuple(result for result in given if result is not None)


def results_naming(problem: str, results: Iterable[ApiResult]) -> tuple[ApiResult, ...]:
    """The failed calls that ``problem`` explains."""
    return tuple(result for result in results if (error := meaning_of(result)) and error.problem == problem)


def call_evidence(result: ApiResult) -> Evidence:
    """A call and its status, as evidence."""
    status = " ".join(part for part in (str(result.code), result.name) if part) if result.code else "0"
    return Evidence(what=result.call, value=status, source=result.library or result.source)
