"""environment.yml of conda: packages of conda's own, and those in its list for pip. Needs PyYAML (extra ``plans``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envcheck.model.snapshot import Planned
from envcheck.plans.readers.requirements import of_lines
from envcheck.plans.requirement import entry, item, open_part
from envcheck.plans.sheet import Sheet, UnreadError

if TYPE_CHECKING:
    import yaml


NAME = "environment.yml"
FILES = re.compile(r".*\.ya?ml", re.IGNORECASE | re.DOTALL)

VIRTUAL = "__"
"""What the names of virtual packages begin with: the solver finds them on the machine."""
_NAME = r"(?!.*\.(?:conda|tar\.bz2|txt)$)[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}"
_SPEC = re.compile(rf"(?:(?P<channel>[A-Za-z0-9._/-]{{1,80}})::)?(?P<name>{_NAME})(?P<rest>.{{0,300}})")
_BOUND = r"[=<>!~]{1,3}\s*[^=<>!~,\s\[\]]{1,80}"
_BUILD = r"(?P<build>[A-Za-z0-9_.*-]{1,80})"
_REST = (
    re.compile(rf"(?:\s*(?P<bounds>{_BOUND}(?:,{_BOUND}){{0,8}})(?:=+{_BUILD})?)?"),
    re.compile(rf"\s+(?P<bounds>[0-9*][^=<>!~,\s]{{0,80}})(?:\s+{_BUILD})?"),
)
"""What follows a name: ``=1.2=build``, ``>=1.2,<2``; or, behind a blank, the version alone, which is meant exactly."""
_IN_BRACKETS = re.compile(r"\s*(?P<key>[a-z_]{1,20})\s*=\s*(?P<value>\"[^\"]*\"|'[^']*'|[^\"',]*?)\s*(?:,|$)")
_CHOOSES = {"version", "build", "channel", "subdir", "build_number"}
"""What of a package is chosen in brackets, of which the first two tell its release."""
_TEXT = "tag:yaml.org,2002:str"
_NO_TEXT = "a dependency is a text, or under pip: a list of texts"
_SECTIONS = {"name", "channels", "dependencies", "prefix", "variables", "platforms", "category"}
_LONGEST = 512 << 10
_LONGEST_CHANNEL, _MOST_CHANNELS = 80, 20
_ALTERNATIVES = "conda's alternatives cannot be written as one list of bounds"
_EXACT_NUMBERS = 3  # ``=2.0.1`` accepts 2.0.1 and what is numbered below it, which is one release


def read(sheet: Sheet) -> list[Planned]:
    root = composed(sheet)
    listed = next((value for name, value in pairs(root) if _text(name) == "dependencies"), None)
    if not _is(listed, "sequence"):
        raise sheet.error(None, "it has no list of dependencies")
    channels: Any = next((value for name, value in pairs(root) if _text(name) == "channels"), None)
    named = [_text(each) or "" for each in channels.value] if _is(channels, "sequence") else []
    return sheet.bounded(_read(sheet, root, listed, named))


def composed(sheet: Sheet) -> Any:
    """The document as nodes, which know their lines; nothing is constructed."""
    try:
        import yaml  # noqa: PLC0415 - few have such a plan
    except ImportError:
        raise sheet.error(None, "reading it needs PyYAML: pip install 'gpu-envcheck[plans]'") from None
    if len(sheet.text) > _LONGEST:  # its parser takes a second for 100 KB
        raise sheet.error(None, f"it has more than {_LONGEST >> 10} KiB")
    try:
        return yaml.compose(sheet.text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise sheet.error(line, "this is no valid YAML") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise sheet.error(None, "this is no valid YAML, or nested too deeply") from None


def _is(node: Any, kind: str) -> bool:
    return getattr(node, "id", None) == kind


def pairs(node: Any) -> list[tuple[yaml.Node, yaml.Node]]:
    """The keys and values of a mapping."""
    found: list[tuple[yaml.Node, yaml.Node]] = node.value if _is(node, "mapping") else []
    return found


def _text(node: Any) -> str | None:
    """The text of a node; None for anything else, such as a list, a number or nothing."""
    return node.value if _is(node, "scalar") and node.tag == _TEXT else None


def _line(node: Any) -> int:
    found: int = node.start_mark.line + 1
    return found


def _read(sheet: Sheet, root: Any, listed: Any, channels: Sequence[str]) -> Iterator[Planned]:
    there = set[str]()
    for name, _ in pairs(root):
        if _text(name) not in _SECTIONS - there:
            yield _unread(sheet, name, "conda knows no such section, or has it twice")
        there.add(_text(name) or "")
    for node in listed.value:
        text = _text(node)
        if text is not None:
            yield from entry(sheet, _line(node), (of_conda(sheet, each, _line(node), channels) for each in [text]))
            continue
        if not pairs(node):
            yield _unread(sheet, node, _NO_TEXT)
        for name, value in pairs(node):
            if _text(name) != "pip" or not _is(value, "sequence"):
                yield _unread(sheet, name, _NO_TEXT)
                continue
            # Conda has pip install from a file of these lines beside its own.
            lines = [(_line(node), text) for node in value.value for text in (_text(node) or "").splitlines()]
            for each in of_lines(sheet, lines):
                yield msgspec.structs.replace(each, together=f"{sheet.file}:{_line(name)}")
            yield from (_unread(sheet, each, _NO_TEXT) for each in value.value if _text(each) is None)


def _unread(sheet: Sheet, node: Any, problem: str) -> Planned:
    return open_part(sheet, _line(node), UnreadError(problem))


def of_conda(sheet: Sheet, text: str, line: int, channels: Sequence[str] = ()) -> Planned:
    """One package of conda's: ``pytorch=2.0.1=py3.10_cuda11.7_0``, ``numpy>=1.26``, ``cuda-version 11.8``."""
    found = _SPEC.fullmatch(text.strip()) if len(text) <= 300 else None
    parts = _parts(found["rest"]) if found else None
    if found is None or parts is None:
        raise sheet.unread(line, "this is no package of conda's; write NAME=VERSION")
    version, build = parts
    bounds, problem = (SpecifierSet(), _ALTERNATIVES) if "|" in version else (_bounds(version), None)
    if bounds is None:  # as of jpeg=9e, which decides nothing here
        bounds, problem = SpecifierSet(), "its version cannot be read" if sheet.matrix.knows(found["name"]) else None
    planned = item(sheet, found["name"], bounds, line, build=None, problem=problem)
    if found["name"].startswith(VIRTUAL):
        planned = msgspec.structs.replace(planned, name=found["name"], asked=f"{found['name']}{bounds}")
    wanted = [found["channel"].partition("/")[0]] if found["channel"] else channels
    names = tuple(each.rstrip("/").rpartition("/")[2][:_LONGEST_CHANNEL] for each in wanted[:_MOST_CHANNELS])
    elsewhere = sheet.markers.get("sys_platform", "win32") != "win32"
    refused = elsewhere and sheet.matrix.has_trait(planned.name, "for-windows-alone")
    why = "conda's channels have it for Windows alone" if refused else None
    return msgspec.structs.replace(planned, conda="" if "*" in build else build, channels=names, refused=why)


def _parts(rest: str) -> tuple[str, str] | None:
    """The bounds and the build behind a name; None for what is neither."""
    if rest.startswith("[") and rest.endswith("]"):
        chosen, place = dict[str, str](), 1
        while part := _IN_BRACKETS.match(rest, place, len(rest) - 1):
            chosen[part["key"]], place = part["value"].strip("\"'"), part.end()
        if place < len(rest) - 1 or not chosen.keys() <= _CHOOSES:
            return None
        version = chosen.get("version", "")
        return version if not version[:1].isdigit() else f"=={version}", chosen.get("build", "")
    found = next((found for each in _REST if (found := each.fullmatch(rest))), None)
    if found is None:
        return None
    bounds = found["bounds"] or ""
    return f"=={bounds}" if bounds[:1].isdigit() else bounds.removeprefix("*"), found["build"] or ""


def _bounds(text: str) -> SpecifierSet | None:
    """Conda's bounds in PEP 440: ``=2.0`` accepts 2.0 and all below it, ``=2.0.1`` one release."""
    bare = text.replace(" ", "")
    if bare.strip("=") in ("", "*"):
        return SpecifierSet()
    if re.match(r"=[^=]", bare):
        version = bare[1:].removesuffix(".*").removesuffix("*").rstrip(".")
        bare = f"=={version}" if version.count(".") + 1 >= _EXACT_NUMBERS else f"=={version}.*"
    elif bare.startswith("==") and bare.endswith("*"):  # 1.8* as 1.8.*
        bare = f"{bare.rstrip('.*')}.*"
    try:
        return SpecifierSet(bare)
    except InvalidSpecifier:
        return None
