"""The verbs of ``envcheck matrix``: ask the compatibility matrix without a machine, and look things up in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envcheck.compat.fit import FitVerdict
from envcheck.compat.load import tables
from envcheck.compat.question import ask
from envcheck.components import Component, parse_components
from envcheck.exitcode import ExitCode
from envcheck.report import Options

_STATUS: dict[FitVerdict, ExitCode] = {
    "compatible": ExitCode.OK,
    "incompatible": ExitCode.FOUND,
    "unknown": ExitCode.UNKNOWN,
}


class Output(NamedTuple):
    """What a verb prints, and its exit status."""

    text: str
    status: ExitCode


def check(texts: Sequence[str], form: str, options: Options) -> Output:
    """Whether components fit together. Raises UsageError for what is no question."""
    answer = ask(tables(), _components(texts))
    return Output(_rendered(answer, form, options), _STATUS[answer.verdict])


def _components(texts: Sequence[str]) -> list[Component]:
    return [component for text in texts for component in parse_components(text)]


def _rendered(answer: object, form: str, options: Options) -> str:
    if form == "json":
        from envcheck.report import fit_json  # noqa: PLC0415 - one of the two is needed

        return fit_json.render(answer)
    from envcheck.report import fit_text  # noqa: PLC0415 - one of the two is needed

    return fit_text.render(answer, options)  # type: ignore[arg-type]
