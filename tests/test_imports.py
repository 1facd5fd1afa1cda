"""Any module can be imported first: what is there already, as in the server of tests.cli, hides no missing import."""

import re
from graphlib import TopologicalSorter
from importlib.util import find_spec, resolve_name
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXTS = {
    path: path.read_text(encoding="utf-8") for top in ("envcheck", "probes") for path in (ROOT / top).rglob("*.py")
}
_FROM = re.compile(r"^from (\S+) import (\([^)]*\)|.*)|^import (\S+)", re.MULTILINE)
WHOLE = {"asyncio", "envcheck", "msgspec", "requests", "tomlkit", "urllib3"}
"""Packages of which each use is imported, or that import what is used of them."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imported(path: Path) -> set[str]:
    """What may be a module of what a module imports as it is imported."""
    found = set[str]()
    for start, names, plain in _FROM.findall(TEXTS[path]):
        whole = resolve_name(start, name_of(path).rpartition(".")[0]) if start else plain
        found |= {whole, *(f"{whole}.{word}" for word in re.findall(r"\w+", names))}
    return found


def test_no_module_needs_one_that_needs_it() -> None:
    names = {path: name_of(path).removesuffix(".__init__") for path in TEXTS}
    graph = {name: imported(path) - {name} for path, name in names.items()}
    order = [*TopologicalSorter(graph).static_order()]  # which raises CycleError
    assert len([name for name in order if name in graph]) == len(graph) > 400


def test_a_module_of_a_package_is_imported_by_who_uses_it() -> None:
    """``import xml`` is not enough for ``xml.etree``, unless somebody else has imported that."""
    lacking = set[str]()
    for path, text in TEXTS.items():
        plain = {*re.findall(r"^\s*import ([\w.]+)$", text, re.MULTILINE)}
        for package in plain - WHOLE:
            if (spec := find_spec(package)) and spec.submodule_search_locations:
                used = {f"{package}.{name}" for name in re.findall(rf"(?<!from )\b{package}\.(\w+)", text)}
                lacking |= {f"{name_of(path)}: {name}" for name in used - plain if find_spec(name)}
    assert lacking == set()
