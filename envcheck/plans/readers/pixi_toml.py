"""pixi.toml, and the table ``[tool.pixi]`` of pyproject.toml: what one environment installs from conda's channels and
from package indexes, and what it asks of the machine. It is ``default`` unless ``FILE[NAME]`` names others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envcheck.model.snapshot import Planned
from envcheck.plans.readers.environment_yml import of_conda
from envcheck.plans.requirement import PackageIndexes, entry, of_table, of_wheel, open_part
from envcheck.plans.sheet import Sheet, UnreadError, table_of, text_of, texts_of
from envcheck.text.toml import Path, line_of, lines_of

NAME = "pixi.toml"

_DEFAULT = "default"
_OF_CONDA = ("dependencies", "host-dependencies", "build-dependencies")
_CHOOSES = ("version", "build")
_FROM_ELSEWHERE = ("git", "url", "path")
_ASKED_OF_MACHINE = {"cuda": "__cuda", "libc": "__glibc", "glibc": "__glibc"}
"""Keys of system requirements and platforms, with conda's virtual packages."""
_SYSTEMS = {"linux": ("linux",), "win": ("win32",), "osx": ("darwin",), "unix": ("linux", "darwin")}
_MACHINES = {"64": ("x86_64", "AMD64"), "aarch64": ("aarch64",), "arm64": ("arm64", "ARM64")}


def read(sheet: Sheet) -> list[Planned]:
    document = sheet.toml()
    if "workspace" not in document and "project" not in document:
        raise sheet.error(None, "it has neither a [workspace] nor a [project] table")
    sheet = sheet.asking(environment=environments(document))
    return sheet.bounded(of_manifest(sheet, document, ()))


def environments(manifest: Mapping[str, Any]) -> list[str]:
    """The names of the environments of a manifest."""
    return [_DEFAULT, *table_of({**manifest}, "environments")]


def of_manifest(sheet: Sheet, manifest: dict[str, Any], place: Path) -> Iterator[Planned]:
    """What the environments that are asked for install; ``place`` is where the manifest stands in the document."""
    lines = lines_of(sheet.text)
    workspace = table_of(manifest, "workspace") or table_of(manifest, "project")
    chosen = [*_features(sheet, manifest)]
    options = [table_of(part, "pypi-options") for _, part in chosen]
    indexes = PackageIndexes(main=next(filter(None, (text_of(each, "index-url") for each in options)), None))
    indexes.extra = tuple(text for each in options for text in texts_of(each, "extra-index-urls"))
    channels = [_channel(each) for _, part in chosen for each in _listed(part, "channels")]
    channels += [_channel(each) for each in _listed(workspace, "channels")]
    named = {name for _, part in chosen for name in _listed(part, "platforms") if isinstance(name, str)}
    for number, each in enumerate(_listed(workspace, "platforms")):
        if isinstance(each, dict) and each.get("name") in named and is_for(sheet, text_of(each, "platform")):
            yield from _of_machine(sheet, each, line_of(lines, (*place, "workspace", "platforms", number)))
    for path, part in chosen:
        at = (*place, *path)
        for key in _OF_CONDA:
            for name, asked in table_of(part, key).items():
                line = line_of(lines, (*at, key, name))
                yield from entry(sheet, line, _of_conda(sheet, name, asked, line, channels))
        for name, asked in table_of(part, "pypi-dependencies").items():
            line = line_of(lines, (*at, "pypi-dependencies", name))
            yield from entry(sheet, line, _of_index(sheet, name, asked, line, indexes))
        required = table_of(part, "system-requirements")
        yield from _of_machine(sheet, required, line_of(lines, (*at, "system-requirements")))


def _features(sheet: Sheet, manifest: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The tables that count: the manifest's own, those of features, and within each those for this platform."""
    known, features = table_of(manifest, "environments"), table_of(manifest, "feature")
    own, named = False, dict[str, None]()
    for name in [each for each in sheet.extras if each in known] or (_DEFAULT,):
        environment = known.get(name, [])
        table = environment if isinstance(environment, dict) else {"features": environment}
        own = own or table.get("no-default-feature") is not True
        named |= dict.fromkeys(texts_of(table, "features"))
    chosen: list[tuple[Path, dict[str, Any]]] = [((), manifest)] if own else []
    chosen += [(("feature", name), table_of(features, name)) for name in named]
    for path, part in chosen:
        yield path, part
        for platform, target in table_of(part, "target").items():
            if isinstance(target, dict) and is_for(sheet, platform):
                yield (*path, "target", platform), target


def is_for(sheet: Sheet, platform: str) -> bool:
    """Whether ``linux-64``, ``win`` or ``unix`` is the machine that the plan is for; Linux where that is not known."""
    system, _, machine = platform.partition("-")
    machines = _MACHINES.get(machine, ()) if machine else None
    own = sheet.markers.get("platform_machine")
    fits = machines is None or own in machines or (own is None and machine == "64")
    return sheet.markers.get("sys_platform", "linux") in _SYSTEMS.get(system, ()) and fits


def _listed(table: dict[str, Any], key: str) -> list[Any]:
    """A list of texts and tables; empty where it is absent."""
    found = table.get(key, [])
    if not isinstance(found, list):
        raise UnreadError(f"{key} is a list")
    return found


def _channel(asked: Any) -> str:
    return asked if isinstance(asked, str) else str(asked.get("channel", "")) if isinstance(asked, dict) else ""


def _of_conda(sheet: Sheet, name: str, asked: Any, line: int, channels: list[str]) -> Iterator[Planned]:
    if isinstance(asked, dict) and not set(asked) & set(_FROM_ELSEWHERE):
        bounds = ",".join(f'{key}="{text_of(asked, key)}"' for key in _CHOOSES if key in asked)
        channels = [text_of(asked, "channel")] if "channel" in asked else channels
        yield of_conda(sheet, f"{name}[{bounds}]" if bounds else name, line, channels)
    elif isinstance(asked, str):
        yield of_conda(sheet, f"{name} {asked}", line, channels)
    else:
        raise UnreadError("a package of conda's is a version, or a table that states one")


def _of_index(sheet: Sheet, name: str, asked: Any, line: int, indexes: PackageIndexes) -> Iterator[Planned]:
    table = {"version": asked} if isinstance(asked, str) else asked
    if not isinstance(table, dict):
        raise UnreadError("a package of an index is a version, or a table that states one")
    elsewhere = next((key for key in _FROM_ELSEWHERE if key in table), None)
    if elsewhere:
        if text_of(table, elsewhere) not in (".", "./"):  # the project that the plan belongs to
            prefix = "git+" if elsewhere == "git" else ""
            yield of_wheel(sheet, prefix + text_of(table, elsewhere), line, name=name)
        return
    version, marker = text_of(table, "version"), text_of(table, "env-markers")
    bounds = "" if version == "*" else f"=={version}" if version[:1].isdigit() else version
    if "index" in table:
        indexes = PackageIndexes(main=text_of(table, "index"))
    found = of_table(sheet, name, table, bounds, marker, line, build=indexes.build(sheet))
    yield from (indexes.opened(sheet, each) for each in found)


def _of_machine(sheet: Sheet, required: Mapping[str, Any], line: int) -> Iterator[Planned]:
    for key, name in _ASKED_OF_MACHINE.items():
        asked = required.get(key)
        if isinstance(asked, dict):  # of another C library than glibc nothing is judged
            asked = asked.get("version") if asked.get("family", "glibc") == "glibc" else None
        if isinstance(asked, str):
            yield from entry(sheet, line, (of_conda(sheet, each, line) for each in [f"{name} >={asked}"]))
        elif key in required and not isinstance(required[key], dict):
            yield open_part(sheet, line, UnreadError("a system requirement is a text"))
