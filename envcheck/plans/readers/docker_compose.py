"""Compose files: the service that asks for a GPU, by the image that it runs or the Dockerfile that it is built from.

Each service is a container of its own: ``compose.yaml[NAME]`` is another one. Needs PyYAML (extra ``plans``).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from envcheck.model.snapshot import Planned
from envcheck.plans.readers import dockerfile
from envcheck.plans.readers.environment_yml import composed, pairs
from envcheck.plans.requirement import unread
from envcheck.plans.sheet import Sheet
from envcheck.plans.shell import filled

NAME = "compose.yaml"
FILES = re.compile(r"(?:docker-)?compose(?:[._-].{1,80})?\.ya?ml", re.IGNORECASE)

_GPU = frozenset({"nvidia", "gpu"})
"""What a service names that asks for GPUs: as its runtime, or as the driver or capability of a device."""
_OTHER_KEYS = frozenset({"build", "image", "volumes"})
"""Keys of a service behind which anything may have such a name."""
_MOST_NESTED = 6


def read(sheet: Sheet) -> list[Planned]:
    found = {name: node for name, node in entries(entries(composed(sheet)).get("services")).items() if pairs(node)}
    if not found:
        raise sheet.error(None, "it has no services")
    gpu = [name for name, node in found.items() if _asks_for_gpu(entries(node))]
    asked = sheet.extras or tuple(gpu if len(found) > 1 else found)
    if len(asked) != 1 or asked[0] not in found:
        raise sheet.error(None, f"name one of its services, as in {NAME}[{(gpu or [*found])[0][:80]}]")
    return sheet.bounded(_service(sheet, entries(found[asked[0]]), found[asked[0]].start_mark.line + 1))


def entries(node: Any, nested: int = 0) -> dict[str, Any]:
    """The values of a mapping by their keys, with those that it merges from another."""
    found = {name.value: value for name, value in pairs(node) if isinstance(name.value, str)}
    merged = found.pop("<<", None)
    return entries(merged, nested + 1) | found if merged is not None and nested < _MOST_NESTED else found


def _asks_for_gpu(service: dict[str, Any]) -> bool:
    left, seen = [node for name, node in service.items() if name not in _OTHER_KEYS], set[int]()
    while left:
        node = left.pop()
        if isinstance(node.value, list) and id(node) not in seen:
            seen.add(id(node))
            left += [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]
        elif isinstance(node.value, str) and node.value in _GPU:
            return True
    return "gpus" in service


def _text(node: Any) -> str:
    """A text with the defaults of its variables; empty where it is none."""
    value = getattr(node, "value", "")
    return filled(value, {}) if isinstance(value, str) else ""


def _service(sheet: Sheet, service: dict[str, Any], line: int) -> Iterator[Planned]:
    build = service.get("build")
    if build is None:
        yield from dockerfile.of_image(sheet, _text(service.get("image")), line)
        return
    table = entries(build)
    context = _text(table.get("context") or build) or "."
    file = posixpath.normpath(posixpath.join(context, _text(table.get("dockerfile")) or dockerfile.NAME))
    if {"dockerfile_inline", "additional_contexts"} & table.keys() or not sheet.has_beside(file):
        yield unread(sheet, f"build: {file[:80]}", line, "the Dockerfile that this service is built from is not read")
        return
    listed = table.get("args")
    given = {name: _text(value) for name, value in entries(listed).items()}
    if not given and listed is not None and isinstance(listed.value, list):
        given = dict(_text(each).partition("=")[::2] for each in listed.value)
    target = _text(table.get("target"))
    folder, extras = posixpath.relpath(context, posixpath.dirname(file) or "."), (target,) if target else ()
    yield from dockerfile.read(replace(sheet.beside(file, line), context=folder, extras=extras, arguments=given))
