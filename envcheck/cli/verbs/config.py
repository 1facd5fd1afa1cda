"""``envcheck config``: the configuration that counts here, and where each value comes from."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from typing import Any

import msgspec

from envcheck.cli.parser import parse
from envcheck.config.describe import VARIABLE, entries
from envcheck.config.meaning import default_targets, of_gpus, options_of, policy
from envcheck.config.options import KEYS, variable
from envcheck.config.read import FIELDS, Configuration
from envcheck.config.values import SCOPES
from envcheck.errors import ExitCode, UsageError
from envcheck.text.streams import print_text


def run(options: Namespace) -> int:
    """Print it, with every name in it checked; raise UsageError where there is none or it is wrong."""
    configuration: Configuration | None = options.configuration
    if configuration is None:
        raise UsageError("there is no configuration here or in a folder above; envcheck init writes one")
    of_gpus(configuration)
    policy(configuration)
    default_targets(configuration)
    values = _values(configuration)
    if options.json:
        content = {"file": configuration.path, "values": values}
        print_text(json.dumps(content, indent=2, default=str) + "\n", syntax="json")
    else:
        print_text("".join(f"{line}\n" for line in _lines(configuration, values)), syntax="text")
    return ExitCode.OK


def _values(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """By key: the value and where it comes from. ``check`` alone would have these options."""
    settled = vars(parse(["check"], os.environ, options_of(configuration)))
    found: dict[str, dict[str, Any]] = {}
    for key in FIELDS[()]:
        value, origin = configuration.value(key), f"{configuration.path}:{configuration.line(key)}"
        option = KEYS.get(key)
        name = variable("target" if key == "targets" else key)  # which --target sets
        if (option or key == "targets") and os.environ.get(name):
            value, origin = settled[option.dest if option else "target"], name
        elif key == "documentation" and os.environ.get(VARIABLE):
            value, origin = os.environ[VARIABLE], VARIABLE
        elif value is None and option:
            value, origin = option.kind.get("default"), "default"
        if isinstance(value, frozenset):
            value = [scope for scope in SCOPES if scope in value]
        if key == "require" and value:
            value = list(map(str, value))  # which may be components
        if value is not None:
            found[key] = {"value": msgspec.to_builtins(value, builtin_types=()), "from": origin}
    return found


def _lines(configuration: Configuration, values: dict[str, dict[str, Any]]) -> list[str]:
    lines = [f"# {configuration.path}"]
    for key, found in values.items():
        if not isinstance(found["value"], dict) and key != "ignore":
            lines += [f"{line}  # {found['from']}" for line in entries({key: found["value"]})]
    for key, found in values.items():
        if isinstance(found["value"], dict) or key == "ignore":
            lines += ["", f"# {found['from']}", *entries({key: found["value"]})]
    return lines
