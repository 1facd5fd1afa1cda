"""cog.yaml of Replicate's Cog: an image of NVIDIA's CUDA, Python packages, and commands that are run in it.

For a torch that is pinned Cog adds PyTorch's index: the newest build for the CUDA that is named or an older one, the
newest of all where none is named, and the CPU build without ``gpu: true``. Needs PyYAML (extra ``plans``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
from packaging.specifiers import SpecifierSet

from envcheck.knowledge.relations.torch import builds, tag_of, torch_row
from envcheck.model.snapshot import Planned
from envcheck.model.versions import CudaVersion
from envcheck.plans.commands import of_system
from envcheck.plans.readers import dockerfile
from envcheck.plans.readers.docker_compose import entries
from envcheck.plans.readers.environment_yml import composed
from envcheck.plans.readers.requirements import numbered, of_lines
from envcheck.plans.requirement import item, unread
from envcheck.plans.sheet import Sheet

NAME = "cog.yaml"
FILES = re.compile(r"cog(?:[._-].{1,80})?\.ya?ml", re.IGNORECASE)

_TRUE = frozenset({"true", "yes", "on"})
_PYTHON = re.compile(r"(?P<minor>3\.[0-9]{1,2})(?P<patch>\.[0-9]{1,3})?")


def read(sheet: Sheet) -> list[Planned]:
    build = entries(entries(composed(sheet)).get("build"))
    if not build:
        raise sheet.error(None, "it has no section build")
    python, gpu = _PYTHON.fullmatch(_text(build, "python_version")), _text(build, "gpu").lower() in _TRUE
    if python and "python_version" not in sheet.markers:
        sheet = replace(sheet, markers={**sheet.markers, "python_version": python["minor"]})
    packages = [*_packages(sheet, build)]
    pinned = next((each.version for each in packages if each.name == "torch" and each.version), "")
    row, named = torch_row(sheet.matrix, pinned), CudaVersion.parse(_text(build, "cuda"))
    served = (CudaVersion.parse(each.cuda) for each in builds(row)) if row and gpu else ()
    newest = next((cuda for cuda in served if cuda and (named is None or cuda <= named)), None)
    if row and (newest or not gpu):
        packages = [_from_index(sheet, each, tag_of(str(newest or ""))) for each in packages]
    before, after = (dockerfile.of_commands(sheet, _commands(build, key)) for key in ("pre_install", "run"))
    parts: list[Iterable[Planned]] = [*before, packages, *after]
    if gpu:
        parts.insert(0, _image(sheet, build, _text(build, "cuda") or str(newest or "")))
    if python:
        bounds = SpecifierSet(f"=={python[0]}{'' if python['patch'] else '.*'}")
        parts.append([item(sheet, "python", bounds, _line(build["python_version"]))])
    words = [text for _, text in _texts(build.get("system_packages"))]
    parts.append(of_system(sheet, _line(build.get("system_packages")), ["apt-get", "install", *words]) or ())
    return sheet.bounded(dockerfile.in_order(sheet, parts))


def _image(sheet: Sheet, build: dict[str, Any], cuda: str) -> Iterator[Planned]:
    """What the base image holds; its CUDA is open where neither the file nor a build of PyTorch tells it."""
    cudnn, line = _text(build, "cudnn"), _line(build.get("cuda") or build["gpu"])
    if cuda:
        image = f"nvidia/cuda:{cuda}-cudnn{cudnn}-devel" if cudnn else f"r8.im/cog-base:cuda{cuda}"
        yield from dockerfile.of_image(sheet, image, line)
    else:
        yield unread(sheet, "the base image", line, "Cog selects its CUDA by what it installs; name it: cuda")


def _from_index(sheet: Sheet, each: Planned, tag: str) -> Planned:
    has = sheet.matrix.has_trait
    served = each.build == "" and (has(each.name, "distributes-torch") or has(each.name, "on-torch-index"))
    return msgspec.structs.replace(each, build=tag) if served else each


def _packages(sheet: Sheet, build: dict[str, Any]) -> Iterator[Planned]:
    path, lines = _text(build, "python_requirements"), _texts(build.get("python_packages"))
    if path:
        line = _line(build["python_requirements"])
        if not sheet.has_beside(path):
            yield unread(sheet, path[:80], line, "the file that it installs from was not found")
            return
        sheet = sheet.beside(path, line)
        lines = [*numbered(sheet)]
    for each in of_lines(sheet, lines):
        yield msgspec.structs.replace(each, together=sheet.file, isolated=True)


def _commands(build: dict[str, Any], key: str) -> list[tuple[int, str]]:
    """The commands of a list, each a text or a table with one."""
    nodes = ((node, entries(node).get("command", node)) for node in _listed(build.get(key)))
    return [(_line(node), command.value) for node, command in nodes if isinstance(command.value, str)]


def _texts(node: Any) -> list[tuple[int, str]]:
    return [(_line(each), each.value) for each in _listed(node) if isinstance(each.value, str)]


def _listed(node: Any) -> list[Any]:
    found: list[Any] = node.value if getattr(node, "id", None) == "sequence" else []
    return found


def _text(table: dict[str, Any], key: str) -> str:
    value = getattr(table.get(key), "value", "")
    return value if isinstance(value, str) else ""


def _line(node: Any) -> int:
    return node.start_mark.line + 1 if node is not None else 1
