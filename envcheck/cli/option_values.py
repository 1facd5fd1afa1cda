"""The types of option values; argparse turns an ArgumentTypeError into a sentence about the option."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from envcheck.model.checks import Scope

SCOPES: tuple[Scope, ...] = ("node", "container", "env")
_LONGEST_INDEX = 4
_LONGEST_PORT, _LAST_PORT = 5, 65535


def path(text: str) -> str:
    """A path. An empty one comes from an unset variable in a script, and would mean something else."""
    if not text:
        raise argparse.ArgumentTypeError("an empty path")
    return text


def count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 10000")
    return int(text)


def seconds(text: str) -> float:
    number = 0.0
    with suppress(ValueError):
        number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number


def port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_PORT and int(text) <= _LAST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {_LAST_PORT}")
    return int(text)


def indices(text: str) -> tuple[int, ...]:
    """``0,2``: GPUs by nvidia-smi's numbers."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) <= _LONGEST_INDEX for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of GPU indices such as 0,2")
    return tuple(map(int, parts))


def scopes(text: str) -> frozenset[str]:
    """``node,env``."""
    names = frozenset(name.strip() for name in text.split(","))
    wrong = sorted(names - set(SCOPES))
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not a scope; choose from {', '.join(SCOPES)}")
    return names


# An ``ENVCHECK_…`` variable for every option: the default of an option that is not given.


_PREFIX = "ENVCHECK_"
_LIST_SEPARATOR = ";"
"""Separates the values of a repeatable option in its variable."""


_OTHER_VARIABLES = re.compile(
    "CHILD|DEBUG|DOCS_URL|SECONDS"
    "|FUZZ_SECONDS|LAB_WHEELS|NCCL|NVRTC|OTHER_NCCL|REQUIRE_PREPARED|REWRITE_GOLDEN|SARIF_SCHEMA|THOROUGH|WRITE_SAMPLES|WRITE_SCREENS"
    r"|TEST(?:_\w+)?"
)
"""Those that set no option: of the program, of its documented scripts; then of its build and its tests."""
_OF_A_SERVICE = re.compile(r"(?:\w+_)?(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_[0-9]+_\w+)?)")
"""What Kubernetes sets in every pod for a service whose name begins with ``envcheck``."""


def refuse_unknown(parser: argparse.ArgumentParser, variables: Mapping[str, str]) -> None:
    """Raise UsageError for an ``ENVCHECK_…`` variable that sets no option of any verb: misspelt, it would be silently
    ignored.
    """
    given = [name for name in variables if name.startswith(_PREFIX) and variables[name]]
    doubtful = {
        name: "--" + name.removeprefix(_PREFIX).lower().replace("_", "-")
        for name in given
        if not _is_known(name.removeprefix(_PREFIX))
    }
    options = set(_options(parser)) if doubtful else set()
    for name, option in doubtful.items():
        if option in options and name != _variable(option):
            raise UsageError(f"{name}: write {_variable(option)}")
        if option not in options:
            from envcheck.text.wrap import did_you_mean

            raise UsageError(f"{name}: there is no option {option}{did_you_mean(option, options)}")


def _is_known(rest: str) -> bool:
    return any(known.fullmatch(rest) for known in (_OTHER_VARIABLES, _OF_A_SERVICE))


def _variable(option: str) -> str:
    return _PREFIX + option.removeprefix("--").replace("-", "_").upper()


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of its actions
        yield from (option for option in action.option_strings if option.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - nor a public name for it
            for verb in action.choices.values():
                yield from _options(verb)


def read_variables(verb: argparse.ArgumentParser, variables: Mapping[str, str]) -> None:
    """Read defaults from ``ENVCHECK_…`` variables, with the checks of the command line."""
    for action in verb._actions:  # noqa: SLF001 - argparse has no public list of its actions
        name = next((option for option in action.option_strings if option.startswith("--")), None)
        if name is None or name == "--help":
            continue
        variable = _variable(name)
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
