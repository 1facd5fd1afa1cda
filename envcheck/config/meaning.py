"""What a configuration means: defaults of options, requirements, a policy, machines to judge for. Names that do not
exist are errors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from envcheck.collect.starting import working_folder
from envcheck.config.find import read_bytes
from envcheck.config.options import KEYS
from envcheck.config.read import Config, Configuration, check_words, in_file, parse
from envcheck.config.values import flattened
from envcheck.errors import UsageError
from envcheck.knowledge.performance.quantities import QUANTITIES, selected
from envcheck.model.checks import Location
from envcheck.model.components import Bound, Component, parse_components
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.assume import assume
from envcheck.pipeline.request import Ignoring, Machine, Policy
from envcheck.report import FORMATS
from envcheck.text.toml import Path, lines_of
from envcheck.text.wrap import did_you_mean

if TYPE_CHECKING:
    from envcheck.fleet.groups import NodeGroup


def options_of(place: Configuration) -> dict[str, Any]:
    """The defaults of the options that have a key; raise UsageError."""
    values: dict[str, Any] = {}
    for key, option in KEYS.items():
        value, read, known = place.value(key), option.kind.get("type", str), option.kind.get("choices")
        if known and value is not None and value not in known:
            raise place.error(f"there is no {key} {value!r}{did_you_mean(value, known)}", key)
        if key == "output" and value:
            value = [_output(place, number, text) for number, text in enumerate(value)]
        elif key == "expect-nodes" and value:
            folder = os.path.dirname(place.path)  # noqa: PTH120
            value = [os.path.join(folder, text) if "/" in text else text for text in value]  # noqa: PTH118
        elif isinstance(value, tuple) and option.kind.get("action") == "append":
            value = flattened(_read(place, key, number, text, read) for number, text in enumerate(value))
        elif isinstance(value, tuple):
            value = read(",".join(value))
        values |= {} if value is None else {option.dest: value}
    return values


def _read(place: Configuration, key: str, number: int, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except UsageError as error:
        raise place.error(f"{key}: {str(error).removeprefix(f'--{key} ')}", key, number) from None


def _output(place: Configuration, number: int, text: str) -> str:
    """``FORMAT:FILE`` with the path made absolute. A configuration must not choose files elsewhere."""
    form, _, name = text.partition(":")
    if form not in FORMATS or not name:
        raise place.error(f"output: write FORMAT:FILE, as in json:envcheck.json, not {text!r}", "output", number)
    folder = os.path.realpath(os.path.dirname(place.path))  # noqa: PTH120
    target = os.path.realpath(os.path.join(folder, name))  # noqa: PTH118
    if os.path.isabs(name) or not target.startswith(folder.rstrip("/") + "/"):  # noqa: PTH117
        raise place.error(f"output: {name!r} is not in the folder of the configuration; use -o", "output", number)
    return f"{form}:{target}"


def of_gpus(place: Configuration) -> tuple[Component, ...]:
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
        found += [(component, _location(place, *path)) for component in components]
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
        found["gpus", "count"] = f"gpus{'' if count.startswith(('==', '!=', '>=', '<=', '>', '<')) else '=='}{count}"
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
    asked = {("require", number): text for number, text in enumerate(place.value("require") or ())} | _of_gpus(place)
    places = {
        **{str(component): where for component, where in _components(place, asked)},
        **{name: _location(place, "forbid", number) for number, name in enumerate(config.forbid or ())},
        **{name: _location(place, "minimum-share", name) for name in config.minimum_share or ()},
        **{each.problem: _location(place, "ignore", number) for number, each in enumerate(ignored)},
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


def fleet_groups(place: Configuration) -> dict[str, NodeGroup]:
    """The group of each node that ``[[fleet.group]]`` names; raise UsageError, also for a node in two."""
    from envcheck.fleet.groups import NodeGroup  # noqa: PLC0415  it brings the rules
    from envcheck.fleet.names import host_of, unfolded  # noqa: PLC0415

    found: dict[str, NodeGroup] = {}
    for number, group in enumerate(place.config.fleet.group if place.config.fleet else ()):
        path: Path = ("fleet", "group", number)
        config = Config(gpus=group.gpus, severity=group.severity, ignore=group.ignore)
        own = replace(place, section=(*place.section, *path), config=config)
        node_group = NodeGroup(require=of_gpus(own), policy=policy(own))
        try:
            names = {host_of(name) for name in unfolded(" ".join(group.nodes))}
        except UsageError as error:
            raise own.error(f"nodes: {error}", "nodes") from None
        if twice := sorted(names & found.keys()):
            raise own.error(f"nodes: {twice[0]} is in a group above", "nodes")
        found |= dict.fromkeys(names, node_group)
    return found


def _location(place: Configuration, *path: str | int) -> Location:
    return Location(file=place.path, line=place.line(*path))


def _check_rules(place: Configuration) -> None:
    """Raise UsageError for a name of no rule, and for a problem that is ignored twice or forbidden and made milder."""
    config = place.config
    ignored = [each.problem for each in config.ignore or ()]
    named: list[tuple[str, tuple[str | int, ...]]] = [(name, ("severity", name)) for name in config.severity or ()]
    for key in ("only", "skip", "forbid"):
        named += [(name, (key, number)) for number, name in enumerate(place.value(key) or ())]
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
    for name in sorted({*(config.severity or ())} & {*(config.forbid or ())}):
        raise place.error(f"severity: {name} is forbidden, so its findings fail; drop one of them", "severity", name)


ALL, NONE = "all", "none"
"""Words of ``--target``: every target of the configuration, and this machine in spite of its ``targets``."""
_MOST = 100


def targets(named: Sequence[str], configuration: Configuration | None) -> tuple[Machine, ...]:
    """The machines of ``--target``: names, ``all``, and paths of files; raise UsageError for one that is not known.

    ``none`` stands for this machine.
    """
    if NONE in named:
        if len(named) > 1:
            raise UsageError(f"--target {NONE} judges this machine: give no other target beside it")
        return ()
    known = of_configuration(configuration) if configuration else {}
    found: dict[str, Machine] = {}
    for name in named:
        if name in known:
            machines: Sequence[Machine] = [known[name]]
        elif name == ALL and known:
            machines = [*known.values()]
        elif name.endswith(".toml") or "/" in name:
            machines = _in_file(name)
        elif not known:
            where = f"{configuration.path} names none" if configuration else "there is no configuration here"
            table = "NAME" if name == ALL else name
            raise UsageError(f"--target {name}: {where}; write [target.{table}] into one, or give a TOML file")
        else:
            path = configuration.path if configuration else ""
            raise UsageError(f"--target {name}: {path} has no such target{did_you_mean(name, known)}")
        for machine in machines:
            if found.setdefault(machine.name, machine) != machine:
                raise UsageError(f"--target {name}: there are two targets {machine.name!r}; rename one of them")
    if len(found) > _MOST:
        raise UsageError(f"--target: {len(found)} targets; at most {_MOST} are judged at once")
    return tuple(found.values())


def default_targets(place: Configuration) -> tuple[Machine, ...]:
    """The machines of the key ``targets``; raise UsageError with the line of one that is not known."""
    return _named(place, place.config.targets or (), "targets")


def _named(place: Configuration, names: Sequence[str], *path: str | int) -> tuple[Machine, ...]:
    """The machines of a list of targets at ``path``."""
    known = of_configuration(place)
    found: dict[str, Machine] = {}
    for number, name in enumerate(names):
        if name not in known and (name != ALL or not known):
            raise place.error(f"targets: there is no [target.{name}]{did_you_mean(name, known)}", *path, number)
        found |= {name: known[name]} if name in known else known
    return tuple(found.values())


def plan_groups(
    named: Sequence[str], place: Configuration | None
) -> list[tuple[str, tuple[str, ...], tuple[Machine, ...]]]:
    """Name, files and targets of each plan of ``--plan @NAME`` and ``@all``; raise UsageError for an unknown one."""
    listed = (place.config.plan if place else None) or ()
    if place is None or not listed:
        where = f"{place.path} has no [[plan]]" if place else "there is no configuration here"
        raise UsageError(f"--plan @{named[0]}: {where}; write one with name and files, or name a file")
    known: dict[str, tuple[str, tuple[str, ...], tuple[Machine, ...]]] = {}
    for number, each in enumerate(listed):
        if each.name == ALL or each.name in known:
            why = "--plan @all names every plan" if each.name == ALL else "there is one above"
            raise place.error(f"plan {each.name}: {why}; rename it", "plan", number, "name")
        folder = os.path.relpath(os.path.dirname(place.path) or ".", working_folder())  # noqa: PTH120
        files = (os.path.normpath(os.path.join(folder, file)) for file in each.files)  # noqa: PTH118
        machines = _named(place, each.targets or (), "plan", number, "targets")
        known[each.name] = (each.name, tuple(files), machines)
    for name in named:
        if name != ALL and name not in known:
            raise UsageError(f"--plan @{name}: {place.path} has no such plan{did_you_mean(name, known)}")
    return [group for name, group in known.items() if ALL in named or name in named]


def of_configuration(place: Configuration) -> dict[str, Machine]:
    """Every target of a configuration; raise UsageError with the line of what cannot be assumed."""
    for name in (ALL, NONE):
        if name in (place.config.target or {}):
            raise place.error(f"target {name}: --target {name} has a meaning of its own; rename it", "target", name)
    return {name: _machine(place, name, words, ("target", name)) for name, words in (place.config.target or {}).items()}


def _in_file(path: str) -> Sequence[Machine]:
    """The machines of a file: its targets as a configuration has them, else one of its own, called as the file is."""
    data = read_bytes(path)
    document, text = parse(path, data)
    if "target" in document or "tool" in document:
        place = in_file(path, data)
        if place is None or not place.config.target:
            raise UsageError(f"{path} names no target: write [target.NAME] with gpu, driver, os …")
        return tuple(of_configuration(place).values())
    place = Configuration(path=path, config=Config(), lines=lines_of(text))
    name = path.rpartition("/")[2].removesuffix(".toml") or path
    check_words(place, name, document, ())
    return [_machine(place, name, document, ())]


def _machine(place: Configuration, name: str, words: Mapping[str, str | int], path: Path) -> Machine:
    components = []
    for word, value in words.items():
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", word) or not str(value).strip():
            raise place.error(f"target {name}: write WORD = VALUE, as in gpu = 'H100'", *path, word)
        component = Component(re.sub(r"[._-]+", "-", word.lower()), (Bound("==", str(value).strip()),))
        components.append(component)
        try:
            assume(Snapshot(), [component])
        except UsageError as error:
            raise place.error(f"target {name}: {str(error).removeprefix('--assume ')}", *path, word) from None
    return Machine(name=name, assume=tuple(components))
