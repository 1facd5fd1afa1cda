"""``envcheck config``: the configuration that counts here, and where each value comes from; and ``init``, which writes
one that requires what this machine has.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec

from envcheck.cli.parser import parse
from envcheck.cli.request import request_of, saved_report
from envcheck.collect.starting import working_folder
from envcheck.config.describe import VARIABLE, configuration_for, entries
from envcheck.config.find import OWN, in_folder
from envcheck.config.meaning import default_targets, fleet_groups, of_gpus, options_of, policy
from envcheck.config.options import KEYS, variable
from envcheck.config.read import FIELDS, Configuration
from envcheck.config.values import SCOPES
from envcheck.errors import ExitCode, UsageError
from envcheck.text.output import writable, write_whole
from envcheck.text.streams import print_text, say


def run(options: Namespace) -> int:
    """Print it, with every name in it checked; raise UsageError where there is none or it is wrong."""
    configuration: Configuration | None = options.configuration
    if configuration is None:
        raise UsageError("there is no configuration here or in a folder above; envcheck init writes one")
    of_gpus(configuration)
    policy(configuration)
    default_targets(configuration)
    fleet_groups(configuration)
    values = _values(configuration)
    if options.json:
        content = {"file": configuration.path, "values": values}
        print_text(json.dumps(content, indent=2, default=str) + "\n", syntax="json")
    else:
        tables = {key: found for key, found in values.items() if isinstance(found["value"], dict) or key == "ignore"}
        lines = [f"# {configuration.path}"]
        for key, found in values.items():
            if key not in tables:
                lines += [f"{line}  # {found['from']}" for line in entries({key: found["value"]})]
        for key, found in tables.items():
            lines += ["", f"# {found['from']}", *entries({key: found["value"]})]
        print_text("".join(f"{line}\n" for line in lines), syntax="text")
    return ExitCode.OK


def _values(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """By key: the value and where it comes from. ``check`` and ``fleet`` would have these options."""
    defaults = options_of(configuration)
    settled = {
        name: value for verb in ("fleet", "check") for name, value in vars(parse([verb], os.environ, defaults)).items()
    }
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


def init(options: Namespace) -> int:
    """Write one to a new file, or to stdout; raise UsageError where the file exists or cannot be written."""
    name = options.output or OWN
    if name != "-" and os.path.lexists(name):
        raise UsageError(f"{name} exists and was not changed; name another file with -o, or - for stdout")
    counting = in_folder(os.path.realpath(working_folder())) if name == OWN else None
    if counting is not None:
        raise UsageError(f"{counting.path} has a configuration already; -o - prints another one to copy from")
    path = None if name == "-" else writable(name, f"-o {name}")
    if options.saved:
        report = saved_report(options.saved)
    else:
        from envcheck.pipeline import session
        from envcheck.report.progress import progress

        with progress(sys.stderr, quiet=False, lines=False) as on_event:
            report = session.check(request_of(options), on_event)
    text = configuration_for(report)
    if path is None:
        print_text(text, syntax="text")
    else:
        write_whole(Path(path), text)
        say(f"envcheck: wrote {path}; envcheck check uses it from now on")
    return ExitCode.OK
