"""An ``ENVCHECK_…`` variable for every option: what stands in for an option that is not given."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from envcheck.errors import UsageError

_LIST_SEPARATOR = ";"
"""Separates the values of a repeatable option in its variable."""


def read_variables(verb: argparse.ArgumentParser, variables: Mapping[str, str]) -> None:
    """Take defaults from ``ENVCHECK_…``; the values go through the same checks as on the command line."""
    for action in verb._actions:  # noqa: SLF001 - argparse has no public list of its actions
        name = next((option for option in action.option_strings if option.startswith("--")), None)
        if name is None or name == "--help":
            continue
        variable = "ENVCHECK_" + name.removeprefix("--").replace("-", "_").upper()
        text = variables.get(variable)
        if text:
            verb.set_defaults(**{action.dest: _from_variable(verb, action, variable, text)})


def _from_variable(verb: argparse.ArgumentParser, action: argparse.Action, variable: str, text: str) -> object:
    if action.nargs == 0:
        if text.lower() not in ("1", "true", "yes", "0", "false", "no"):
            raise UsageError(f"{variable}={text}: write 1 or 0")
        on = text.lower() in ("1", "true", "yes")
        if isinstance(action, argparse.BooleanOptionalAction):
            return on
        return action.const if on else verb.get_default(action.dest)
    repeatable = isinstance(action, argparse._AppendAction)  # noqa: SLF001 - argparse has no public name for it
    values = text.split(_LIST_SEPARATOR) if repeatable else [text]
    if action.choices is not None and text not in action.choices:
        raise UsageError(f"{variable}={text}: choose from {', '.join(map(str, action.choices))}")
    try:
        typed = [action.type(value) if callable(action.type) else value for value in values]
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{variable}={text}: {error}") from None
    return typed if repeatable else typed[0]
