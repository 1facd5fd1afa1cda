"""Machines to judge for: by name from the configuration, or from a file of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envcheck.components import Bound, Component
from envcheck.config.file import read_bytes
from envcheck.config.model import Config
from envcheck.config.read import Configuration, check_words, did_you_mean, in_file, parse
from envcheck.errors import UsageError
from envcheck.pipeline.assume import assume
from envcheck.pipeline.request import Machine
from envcheck.snapshot import Snapshot
from envcheck.text.toml import Path, lines_of

ALL, NONE = "all", "none"
"""Words of ``--target``: every target of the configuration, and this machine in spite of its ``targets``."""
_MOST = 100
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


def targets(named: Sequence[str], configuration: Configuration | None) -> tuple[Machine, ...]:
    """The machines of ``--target``: names, ``all``, and paths of files; raise UsageError for one that is not known.

    ``none`` stands for this machine.
    """
    if NONE in named:
        if len(named) > 1:
            raise UsageError(f"--target {NONE} judges this machine: give no other target beside it")
        return ()
    found: dict[str, Machine] = {}
    for name in named:
        for machine in _named(name, configuration):
            if found.setdefault(machine.name, machine) != machine:
                raise UsageError(f"--target {name}: there are two targets {machine.name!r}; rename one of them")
    if len(found) > _MOST:
        raise UsageError(f"--target: {len(found)} targets; at most {_MOST} are judged at once")
    return tuple(found.values())


def default_targets(place: Configuration) -> tuple[Machine, ...]:
    """The machines of the key ``targets``; raise UsageError with the line of one that is not known."""
    known = of_configuration(place)
    found: dict[str, Machine] = {}
    for number, name in enumerate(place.config.targets or ()):
        if name not in known and (name != ALL or not known):
            raise place.error(f"targets: there is no [target.{name}]{did_you_mean(name, known)}", "targets", number)
        found |= {name: known[name]} if name in known else known
    return tuple(found.values())


def of_configuration(place: Configuration) -> dict[str, Machine]:
    """Every target of a configuration; raise UsageError with the line of what cannot be assumed."""
    for name in (ALL, NONE):
        if name in (place.config.target or {}):
            raise place.error(f"target {name}: --target {name} has a meaning of its own; rename it", "target", name)
    return {name: _machine(place, name, words, ("target", name)) for name, words in (place.config.target or {}).items()}


def _named(name: str, configuration: Configuration | None) -> Sequence[Machine]:
    known = of_configuration(configuration) if configuration else {}
    if name in known:
        return [known[name]]
    if name == ALL and known:
        return tuple(known.values())
    if name.endswith(".toml") or "/" in name:
        return _in_file(name)
    if not known:
        where = f"{configuration.path} names none" if configuration else "there is no configuration here"
        table = "NAME" if name == ALL else name
        raise UsageError(f"--target {name}: {where}; write [target.{table}] into one, or give a TOML file")
    raise UsageError(
        f"--target {name}: {configuration.path if configuration else ''} has no such target{did_you_mean(name, known)}"
    )


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
        if not _WORD.fullmatch(word) or not str(value).strip():
            raise place.error(f"target {name}: write WORD = VALUE, as in gpu = 'H100'", *path, word)
        component = Component(re.sub(r"[._-]+", "-", word.lower()), (Bound("==", str(value).strip()),))
        components.append(component)
        try:
            assume(Snapshot(), [component])
        except UsageError as error:
            raise place.error(f"target {name}: {str(error).removeprefix('--assume ')}", *path, word) from None
    return Machine(name=name, assume=tuple(components))
