"""``envcheck matrix check`` and ``show``: whether named components fit together, and what is known of one.

Scripts call them in loops, so they import only the renderer that they need.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from envcheck.cli.deliver import page
from envcheck.cli.request import overlays
from envcheck.errors import ExitCode, UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.model.components import parse_components
from envcheck.text.streams import print_text

STATUS: dict[FitVerdict, ExitCode] = {
    "compatible": ExitCode.OK,
    "incompatible": ExitCode.FOUND,
    "unknown": ExitCode.UNKNOWN,
}


def check(options: Namespace) -> int:
    """Print the answer; the exit status is its verdict. Raises UsageError for an invalid question."""
    from envcheck.compat.answer import ask

    folders = overlays(options)
    components = [component for text in options.components for component in parse_components(text)]
    answer = ask(load_matrix(folders), components)
    _print("render_answer", answer, options, folders)
    return STATUS[answer.verdict]


def show(options: Namespace) -> int:
    """Print what is known, or every component with rows; the exit status says whether anything is known.

    Raises UsageError for what is no component.
    """
    from envcheck.compat.lookup import Page, look_up, overview

    folders, asked = overlays(options), options.component
    if asked is None:
        _print("render_overview", overview(load_matrix(folders)), options, folders)
        return ExitCode.OK
    components = parse_components(asked if any(sign in asked for sign in "=<>~!") else f"{asked}==0")
    if len(components) != 1:
        raise UsageError(f"{asked!r}: give one component")
    component = components[0]
    if not any(sign in asked for sign in "=<>~!"):  # a name alone
        component = component._replace(bounds=())
    matrix = load_matrix(folders)
    found = look_up(matrix, component)
    if found is None and options.format != "json":
        near = matrix.similar_name(component.name)
        hint = f": did you mean {near!r}?" if near not in (None, component.name) else "."
        print_text(f"The matrix knows nothing about {component}{hint}\n")
    else:
        _print("render_page", found or Page(component=str(component)), options, folders)
    return ExitCode.OK if found and (found.facts or found.known) else ExitCode.UNKNOWN


def _print(renderer: str, found: Any, options: Namespace, folders: tuple[str, ...]) -> None:
    if options.format == "json":
        from envcheck.report import json

        print_text(json.render(found), syntax="json")
    else:
        from envcheck.report.answers import matrix

        print_text(getattr(matrix, renderer)(found, page(options), folders))
