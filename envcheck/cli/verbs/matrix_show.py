"""``envcheck matrix show``: what the matrix knows of a component."""

from __future__ import annotations

from argparse import Namespace

from envcheck.cli.deliver import page
from envcheck.cli.request import overlays
from envcheck.compat.lookup import Page, look_up, overview
from envcheck.errors import ExitCode, UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.model.components import Component, parse_components
from envcheck.text.streams import print_text


def run(options: Namespace) -> int:
    """Print what is known; the exit status says whether anything is. Raises UsageError for what is no component."""
    folders = overlays(options)
    if options.component is None:
        return _list_all(options, folders)
    component = _one_component(options.component)
    found = look_up(load_matrix(folders), component)
    if options.format == "json":
        from envcheck.report import json

        print_text(json.render(found or Page(component=str(component))), syntax="json")
    elif found is None:
        print_text(f"The matrix knows nothing about {component}.\n")
    else:
        from envcheck.report.answers.matrix import render_page

        print_text(render_page(found, page(options), folders))
    return ExitCode.OK if found and (found.facts or found.known) else ExitCode.UNKNOWN


def _list_all(options: Namespace, folders: tuple[str, ...]) -> int:
    """Every component with rows, how many, and the newest day on which a source was read."""
    found = overview(load_matrix(folders))
    if options.format == "json":
        from envcheck.report import json

        print_text(json.render(found), syntax="json")
    else:
        from envcheck.report.answers.matrix import render_overview

        print_text(render_overview(found, page(options), folders))
    return ExitCode.OK


def _one_component(text: str) -> Component:
    """``NAME==VERSION``, or a name alone."""
    if not any(sign in text for sign in "=<>~!"):
        named = parse_components(f"{text}==0")
        return named[0]._replace(bounds=())
    found = parse_components(text)
    if len(found) != 1:
        raise UsageError(f"{text!r}: give one component")
    return found[0]
