"""Which distributions are installed in a folder, by ``*.dist-info`` and ``*.egg-info`` (recording installed projects,
PyPA; egg-info, setuptools). A damaged one costs only itself, and one without metadata is none: pip sees it so too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ._env_paths import is_file, printable
from ._kit import Request, list_names, read_text

LIMIT = 20_000
REQUIREMENTS = 1000
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.!+-]{0,100}")
_SEPARATORS = re.compile(r"[-_.]+")
_PYTHON_TAG = re.compile(r"-py\d+(\.\d+)?(-.*)?$")
"""``-py3.11`` (and a platform) at the end of an egg's name."""

Fields = dict[str, Any]


@dataclass
class Installed:
    """Distributions in the order of the search path; ``complete`` when no folder and no entry was left out."""

    items: list[Fields] = field(default_factory=list)
    complete: bool = True


def normalised(name: str) -> str:
    """A distribution's name as PyPA's name normalisation writes it."""
    return _SEPARATORS.sub("-", name).lower()


def installed_in(request: Request, folders: Iterable[str], detailed: frozenset[str]) -> Installed:
    """The distributions of ``folders``; for names in ``detailed`` with what they require."""
    found = Installed()
    linked: set[str] = set()
    for folder in folders:
        names = list_names(request, folder)
        if names is None:
            found.complete = False
            continue
        linked.update(normalised(name[: -len(".egg-link")]) for name in names if name.endswith(".egg-link"))
        for name in names:
            if len(found.items) >= LIMIT:
                found.complete = False
                return found
            record = _distribution(request, folder, name, detailed, linked)
            if record is not None:
                found.items.append(record)
    return found


def _distribution(
    request: Request, folder: str, name: str, detailed: frozenset[str], linked: set[str]
) -> Fields | None:
    path = f"{folder}/{name}"
    if name.startswith("~"):  # pip's leavings of an installation that was broken off; pip passes over them too
        return None
    if name.endswith(".dist-info"):
        return _dist_info(request, path, name[: -len(".dist-info")], detailed)
    if name.endswith(".egg-info"):
        return _egg(request, path, name[: -len(".egg-info")], detailed, linked)
    if name == "EGG-INFO":
        return _egg(request, path, folder.rpartition("/")[2].removesuffix(".egg"), detailed, linked)
    return None


def _dist_info(request: Request, path: str, stem: str, detailed: frozenset[str]) -> Fields | None:
    metadata = f"{path}/METADATA"
    if not is_file(request, metadata):
        return None
    record = _named(request, metadata, stem)
    if record is None:
        return None
    record |= {"path": path, "channel": "pip", "source": "wheel metadata"}
    installer = read_text(request, f"{path}/INSTALLER", 200)
    if installer and installer.strip():
        record["installer"] = printable(installer.strip(), 40)
    if _is_editable(read_text(request, f"{path}/direct_url.json", 65536)):
        record["editable"] = True
    if record["name"] in detailed:
        record["requires"] = _requirements(read_text(request, metadata))
    return record


def _egg(request: Request, path: str, stem: str, detailed: frozenset[str], linked: set[str]) -> Fields | None:
    single = is_file(request, path)
    metadata = path if single else f"{path}/PKG-INFO"
    if not single and not is_file(request, metadata):
        return None
    record = _named(request, metadata, _PYTHON_TAG.sub("", stem))
    if record is None:
        return None
    record |= {"path": path, "channel": "pip", "source": f"file {metadata}"}
    if record["name"] in linked:
        record["editable"] = True
    if record["name"] in detailed:
        record["requires"] = _requirements(read_text(request, metadata))
    return record


def _named(request: Request, metadata: str, stem: str) -> Fields | None:
    """Name and version: of the folder's name where that is plain, else of the metadata."""
    name, dash, version = stem.partition("-")
    if dash and _NAME.fullmatch(name) and _VERSION.fullmatch(version) and "-" not in version:
        return {"name": normalised(name), "version": version}
    headers = _headers(read_text(request, metadata) or "", ("Name", "Version"))
    name, version = headers.get("Name", [""])[0], headers.get("Version", [""])[0]
    if _NAME.fullmatch(name) and _VERSION.fullmatch(version):
        return {"name": normalised(name), "version": version}
    return None


def _headers(text: str, wanted: tuple[str, ...]) -> dict[str, list[str]]:
    """The wanted fields of a metadata file; it is laid out as a mail header, which an empty line ends."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.strip():
            break
        key, colon, value = line.partition(":")
        if colon and key in wanted:
            found.setdefault(key, []).append(value.strip())
    return found


def _requirements(text: str | None) -> list[str]:
    lines = _headers(text or "", ("Requires-Dist",)).get("Requires-Dist", [])
    return [printable(line) for line in lines[:REQUIREMENTS]]


def _is_editable(direct_url: str | None) -> bool:
    """PEP 610: ``dir_info.editable`` of ``direct_url.json``."""
    if not direct_url:
        return False
    try:
        said = json.loads(direct_url)
    except (ValueError, RecursionError):
        return False
    info = said.get("dir_info") if isinstance(said, dict) else None
    return isinstance(info, dict) and info.get("editable") is True
