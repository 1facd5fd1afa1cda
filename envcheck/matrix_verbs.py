"""The verbs of ``envcheck matrix``: ask the compatibility matrix without a machine, and look things up in it.

Each verb imports its renderer late: ``matrix check`` is called in loops, and should not cost more than it must.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envcheck.compat.fit import FitVerdict
from envcheck.compat.load import tables
from envcheck.components import Component, parse_components
from envcheck.errors import UsageError
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


def check(texts: Sequence[str], form: str, options: Options, overlays: tuple[str, ...] = ()) -> Output:
    """Whether components fit together. Raises UsageError for what is no question."""
    from envcheck.compat.question import ask  # noqa: PLC0415

    components = [component for text in texts for component in parse_components(text)]
    answer = ask(tables(overlays), components)
    if form == "json":
        return Output(_as_json(answer), _STATUS[answer.verdict])
    from envcheck.report import fit_text  # noqa: PLC0415

    return Output(fit_text.render(answer, options, overlays), _STATUS[answer.verdict])


def show(text: str, form: str, options: Options, overlays: tuple[str, ...] = ()) -> Output:
    """What the matrix knows of a component. Raises UsageError for what names none."""
    from envcheck.compat.lookup import Page, look_up  # noqa: PLC0415

    component = _one_component(text)
    page = look_up(tables(overlays), component)
    status = ExitCode.OK if page else ExitCode.UNKNOWN
    if form == "json":
        return Output(_as_json(page or Page(component=str(component))), status)
    if page is None:
        return Output(f"The matrix knows nothing of {component}.\n", status)
    from envcheck.report import matrix_page  # noqa: PLC0415

    return Output(matrix_page.render(page, options, overlays), status)


def _as_json(value: object) -> str:
    from envcheck.report import fit_json  # noqa: PLC0415

    return fit_json.render(value)


def _one_component(text: str) -> Component:
    """``NAME==VERSION``, or a name alone."""
    if not any(sign in text for sign in "=<>~!"):
        named = parse_components(f"{text}==0")
        return named[0]._replace(bounds=())
    found = parse_components(text)
    if len(found) != 1:
        raise UsageError(f"{text!r}: name one component")
    return found[0]
