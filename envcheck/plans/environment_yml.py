"""environment.yml of conda: packages of conda's own, and those in its list for pip. Needs PyYAML (extra ``plans``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envcheck.plans.kit.requirement import item
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.requirements import of_arguments
from envcheck.snapshot import Planned

if TYPE_CHECKING:
    import yaml

NAME = "environment.yml"

_SPEC = re.compile(r"(?:(?P<channel>[A-Za-z0-9._/-]{1,80})::)?(?P<name>[A-Za-z0-9_.-]{1,80})(?P<rest>.{0,300})")
_BOUND = r"[=<>!~]{1,3}\s*[^=<>!~,\s\[\]]{1,80}"
_BUILD = r"(?P<build>[A-Za-z0-9_.*-]{1,80})"
_REST = (
    re.compile(rf"(?:\s*(?P<bounds>{_BOUND}(?:,{_BOUND}){{0,8}})(?:=+{_BUILD})?)?"),
    re.compile(rf"\s+(?P<bounds>[0-9*][^=<>!~,\s]{{0,80}})(?:\s+{_BUILD})?"),
)
"""What follows a name: ``=1.2=build``, ``>=1.2,<2``; or, behind a blank, the version alone, which is meant exactly."""
_IN_BRACKETS = re.compile(r"(?P<key>version|build)\s*=\s*[\"']?(?P<value>[^\"'\]]{1,80}?)[\"']?\s*(?:,|$)")
_ALTERNATIVES = "conda's alternatives cannot be written as one list of bounds"
_EXACT_NUMBERS = 3
"""``=2.0.1`` accepts 2.0.1 and what is numbered below it, which is one release."""


def recognise(name: str) -> bool:
    return name.lower().endswith((".yml", ".yaml"))


def read(sheet: Sheet) -> list[Planned]:
    root = _composed(sheet)
    listed = _value(root, "dependencies")
    if not _is(listed, "sequence"):
        raise sheet.error(None, "it has no list of dependencies")
    return sheet.bounded(_read(sheet, listed))


def _composed(sheet: Sheet) -> Any:
    """The document as nodes, which know their lines; nothing is constructed."""
    try:
        import yaml  # noqa: PLC0415 - few have such a plan
    except ImportError:
        raise sheet.error(None, "reading it needs PyYAML: pip install 'gpu-envcheck[plans]'") from None
    try:
        return yaml.compose(sheet.text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise sheet.error(
            error.problem_mark.line + 1 if error.problem_mark else None, "this is no valid YAML"
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise sheet.error(None, "this is no valid YAML, or nested too deeply") from None


def _is(node: Any, kind: str) -> bool:
    return getattr(node, "id", None) == kind


def _value(node: Any, key: str) -> Any:
    """The value of a key in a mapping's node."""
    pairs: list[tuple[yaml.Node, yaml.Node]] = node.value if _is(node, "mapping") else []
    return next((value for name, value in pairs if _is(name, "scalar") and name.value == key), None)


def _read(sheet: Sheet, listed: Any) -> Iterator[Planned]:
    words: list[str] = []
    for node in listed.value:
        line = node.start_mark.line + 1
        if _is(node, "scalar"):
            yield of_conda(sheet, node.value, line)
            continue
        of_pip = _value(node, "pip")
        if not _is(of_pip, "sequence"):
            raise sheet.error(line, "a dependency is a text, or a list for pip")
        options = [each.value for each in of_pip.value if _is(each, "scalar") and each.value.startswith("-")]
        words = [word for text in options for word in text.replace("=", " ", 1).split()]
        packages = [each for each in of_pip.value if _is(each, "scalar") and not each.value.startswith("-")]
        # Options hold for all lines of the list; what a file of options installs is told once.
        places = [(each.value, each.start_mark.line + 1) for each in packages]
        for text, place in places:
            yield from of_arguments(sheet, [*_index_options(words), text.strip()], place)
        yield from of_arguments(sheet, words, line)


def _index_options(words: list[str]) -> list[str]:
    """The options that choose the package index, with their values."""
    wanted = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links")
    return [word for place, word in enumerate(words) if word in wanted or (place and words[place - 1] in wanted)]


def of_conda(sheet: Sheet, text: str, line: int) -> Planned:
    """One package of conda's: ``pytorch=2.0.1=py3.10_cuda11.7_0``, ``numpy>=1.26``, ``cuda-version 11.8``."""
    found = _SPEC.fullmatch(text.strip()) if len(text) <= 300 else None
    parts = _parts(found["rest"]) if found else None
    if found is None or parts is None:
        raise sheet.error(line, "this is no package of conda's; write NAME=VERSION")
    version, build = parts
    bounds, problem = (SpecifierSet(), _ALTERNATIVES) if "|" in version else (_bounds(version), None)
    if bounds is None:
        raise sheet.error(line, "a version cannot be read; write NAME=VERSION")
    planned = item(sheet, found["name"], bounds, line, build=None, problem=problem)
    return msgspec.structs.replace(planned, conda="" if "*" in build else build)


def _parts(rest: str) -> tuple[str, str] | None:
    """The bounds and the build behind a name; None for what is neither."""
    if rest.startswith("[") and rest.endswith("]"):
        told = {found["key"]: found["value"] for found in _IN_BRACKETS.finditer(rest[1:-1])}
        version = told.get("version", "")
        return version if not version[:1].isdigit() else f"=={version}", told.get("build", "")
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
