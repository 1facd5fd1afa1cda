"""What a configuration means: defaults of options, requirements, a policy. Names that do not exist are errors."""

from __future__ import annotations

import os
from typing import Any

from envcheck.checks import Location
from envcheck.compat.performance.quantities import QUANTITIES, selected
from envcheck.components import Component, parse_components
from envcheck.config.read import Configuration, did_you_mean
from envcheck.errors import UsageError
from envcheck.pipeline.request import Ignoring, Policy
from envcheck.report import FORMATS

_OPERATORS = ("==", "!=", ">=", "<=", ">", "<")


def options_of(place: Configuration) -> dict[str, Any]:
    """The defaults of ``check``'s options, by their names; raise UsageError."""
    config = place.config
    values: dict[str, Any] = {
        "require": list(config.require) if config.require else None,
        "scope": frozenset(config.scope) if config.scope else None,
        "only": list(config.only) if config.only else None,
        "skip": list(config.skip) if config.skip else None,
        "fail_on": config.fail_on,
        "format": config.format,
        "output": [_output(place, number) for number in range(len(config.output))] if config.output else None,
    }
    if config.format and config.format not in FORMATS:
        raise place.error(f"there is no format {config.format!r}{did_you_mean(config.format, FORMATS)}", "format")
    return {name: value for name, value in values.items() if value is not None}


def _output(place: Configuration, number: int) -> str:
    """``FORMAT:FILE`` with the path made absolute. A configuration must not choose files elsewhere."""
    text = (place.config.output or ())[number]
    form, _, name = text.partition(":")
    if form not in FORMATS or not name:
        raise place.error(f"output: write FORMAT:FILE, as in json:envcheck.json, not {text!r}", "output", number)
    folder = os.path.realpath(os.path.dirname(place.path))  # noqa: PTH120
    target = os.path.realpath(os.path.join(folder, name))  # noqa: PTH118
    if os.path.isabs(name) or not target.startswith(folder.rstrip("/") + "/"):  # noqa: PTH117
        raise place.error(f"output: {name!r} is not in the folder of the configuration; use -o", "output", number)
    return f"{form}:{target}"


def of_gpus(place: Configuration) -> tuple[Component, ...]:
    """What ``gpus`` asks for; raise UsageError."""
    return tuple(component for component, _ in _components(place, _of_gpus(place)))


def _components(place: Configuration, texts: dict[tuple[str, str | int], str]) -> list[tuple[Component, Location]]:
    from envcheck.pipeline.require import validate  # noqa: PLC0415  it brings the rules

    found = []
    for path, text in texts.items():
        try:
            components = parse_components(text)
            validate(components)
        except UsageError as error:
            raise place.error(f"{path[0]}: {str(error).removeprefix('--require ')}", *path) from None
        found += [(component, _at(place, *path)) for component in components]
    return found


def _of_gpus(place: Configuration) -> dict[tuple[str, str | int], str]:
    gpus = place.config.gpus
    if gpus is None:
        return {}
    if gpus.count is None and gpus.models is None and gpus.memory is None:
        raise place.error("gpus: it is empty; write count, models or memory", "gpus")
    found: dict[tuple[str, str | int], str] = {}
    if gpus.count is not None:
        count = str(gpus.count)
        found["gpus", "count"] = f"gpus{'' if count.startswith(_OPERATORS) else '=='}{count}"
    if gpus.models:
        for number, model in enumerate(gpus.models):
            if set(model) & set("\"',|"):
                raise place.error(f"gpus.models: {model!r} is no name of a model", "gpus", "models", number)
        found["gpus", "models"] = f'gpu=="{"|".join(gpus.models)}"'
    if gpus.memory:
        found["gpus", "memory"] = f"gpu-memory>={gpus.memory}"
    return found


def policy(place: Configuration) -> Policy | None:
    """What the configuration decides about findings, None where it decides nothing; raise UsageError."""
    config = place.config
    ignored = config.ignore or ()
    _check_rules(place)
    for word in config.minimum_share or ():
        try:
            selected([word])
        except UsageError:
            hint = did_you_mean(word, [quantity.name for quantity in QUANTITIES])
            raise place.error(f"minimum-share: there is no quantity {word!r}{hint}", "minimum-share", word) from None
    asked = {("require", number): text for number, text in enumerate(config.require or ())} | _of_gpus(place)
    places = {
        **{str(component): where for component, where in _components(place, asked)},
        **{name: _at(place, "forbid", number) for number, name in enumerate(config.forbid or ())},
        **{name: _at(place, "minimum-share", name) for name in config.minimum_share or ()},
        **{each.problem: _at(place, "ignore", number) for number, each in enumerate(ignored)},
    }
    if not places and not config.severity:
        return None
    return Policy(
        severity=config.severity or {},
        forbid=tuple(dict.fromkeys(config.forbid or ())),
        ignore=tuple(Ignoring(problem=each.problem, reason=each.reason, until=each.until) for each in ignored),
        shares=config.minimum_share or {},
        places=places,
    )


def _at(place: Configuration, *path: str | int) -> Location:
    return Location(file=place.path, line=place.line(*path))


def _check_rules(place: Configuration) -> None:
    """Raise UsageError for a name of no rule, and for a problem that is ignored twice or forbidden and made milder."""
    config = place.config
    ignored = [each.problem for each in config.ignore or ()]
    named: list[tuple[str, tuple[str | int, ...]]] = [(name, ("severity", name)) for name in config.severity or ()]
    for key in ("only", "skip", "forbid"):
        named += [(name, (key, number)) for number, name in enumerate(getattr(config, key) or ())]
    named += [(name.partition("@")[0], ("ignore", number, "problem")) for number, name in enumerate(ignored)]
    if not named:
        return
    from envcheck.rules.catalog import refuse_unselectable  # noqa: PLC0415  most configurations name no rule

    for name, path in named:
        try:
            refuse_unselectable(name)
        except UsageError as error:
            raise place.error(f"{path[0]}: {error}", *path) from None
    for number, name in enumerate(ignored):
        if name in ignored[:number]:
            raise place.error(f"ignore: {name} is ignored above already", "ignore", number)
    for name in config.severity or ():
        if name in (config.forbid or ()):
            raise place.error(
                f"severity: {name} is forbidden, so its findings fail; drop one of them", "severity", name
            )
