"""The configuration of a run: found, read, and under the options that the command line and variables leave open."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from envcheck.collect.request import working_folder
from envcheck.config.find import find

if TYPE_CHECKING:
    from envcheck.config.read import Configuration


def configured(options: Namespace, argv: Sequence[str], variables: Mapping[str, str]) -> Namespace:
    """The options of ``argv`` with the configuration's values where nothing else is given, and ``configuration``;
    ``found_outputs`` says whether the files to write are of one that nobody named.

    Raises UsageError for a configuration that cannot be read or is wrong.
    """
    configuration, found_outputs = chosen(options), False
    if configuration is not None:
        from envcheck.cli.options import parse
        from envcheck.config.meaning import options_of

        named, settings = options.config, options_of(configuration)
        options = parse(argv, variables, settings)
        found_outputs = not named and getattr(options, "output", None) is settings.get("output")
    options.configuration, options.found_outputs = configuration, found_outputs
    return options


def chosen(options: Namespace) -> Configuration | None:
    """The configuration of ``--config``, else the nearest; None where there is none or ``--no-config`` is given."""
    if options.no_config:
        return None
    if options.config:
        from envcheck.config.read import read

        return read(options.config)
    return find(working_folder())
