"""Which packages conda installed into a prefix, Python's and others: one ``conda-meta/NAME-VERSION-BUILD.json`` each.

The name of the record says all that is wanted (neither version nor build holds a ``-``), so the records, which list
every file of their package, stay closed; only those of frameworks are opened, for what they depend on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ._env_distributions import LIMIT, REQUIREMENTS, Installed, normalised
from ._env_paths import is_folder, printable
from ._kit import Request, below, list_names, read_text, refused

_RECORD_LIMIT = 16 << 20
_BUILD_CUDA = re.compile(r"cuda_?(\d+(?:\.\d+)+|\d{2,3}(?![\d.]))")
_BUILD_CUDNN = re.compile(r"cudnn_?(\d+(?:\.\d+)+)")
_BUILD_CPU = re.compile(r"(?:^|_)cpu(?:_|$)")
_FILE = re.compile(
    r"(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]{0,200})-(?P<version>[^-\s]{1,100})-(?P<build>[^-\s]{1,100})\.json"
)


def installed_by_conda(request: Request, prefix: str, detailed: frozenset[str]) -> Installed:
    """The packages of the conda environment at ``prefix``; none where it is no conda environment."""
    folder = f"{prefix}/conda-meta"
    names = list_names(request, folder)
    if names is None:
        return Installed(complete=not is_folder(request, folder))
    found = Installed(complete=len(names) <= LIMIT)
    for name in names[:LIMIT]:
        match = _FILE.fullmatch(name)
        if match is None:
            continue
        record: dict[str, Any] = {
            "name": normalised(match["name"]).strip("-"),
            "version": printable(match["version"]),
            "build": printable(match["build"]),
            "path": f"{folder}/{name}",
            "channel": "conda",
            "installer": "conda",
            "source": f"file {folder}/{name}",
        }
        if record["name"] in detailed:
            record["requires"] = _depends(request, f"{folder}/{name}")
        if _is_empty(request, f"{folder}/{name}"):
            found.damage(f"{folder}/{name}", "it is empty")
        found.items.append(record)
    return found


def _is_empty(request: Request, path: str) -> bool:
    try:
        return os.stat(below(request, path)).st_size == 0
    except (OSError, ValueError) as error:
        refused(path, error)
        return False


def _depends(request: Request, path: str) -> list[str] | None:
    """What the package depends on, as conda's match specifications; None when the record cannot be read."""
    try:
        record = json.loads(read_text(request, path, _RECORD_LIMIT) or "")
    except (ValueError, RecursionError):
        return None
    depends = record.get("depends") if isinstance(record, dict) else None
    if not isinstance(depends, list):
        return None
    return [printable(line) for line in depends[:REQUIREMENTS] if isinstance(line, str)]


class CondaBuild(NamedTuple):
    """One conda package, and what its build string says of CUDA: ``py3.11_cuda12.4_cudnn9.1.0_0``, ``cpu_py310h1``."""

    version: str
    build: str
    source: str
    cuda: str | None
    cpu_only: bool | None
    cudnn: str | None


def conda_build(distributions: Iterable[dict[str, Any]], name: str) -> CondaBuild | None:
    """The conda package of that normalised name among ``distributions``, or None."""
    record = next((item for item in distributions if item["name"] == name and item["channel"] == "conda"), None)
    if record is None:
        return None
    build = record["build"]
    cuda, cudnn = _BUILD_CUDA.search(build), _BUILD_CUDNN.search(build)
    return CondaBuild(
        version=record["version"],
        build=build,
        source=record["source"],
        cuda=_cuda_version(cuda.group(1)) if cuda else None,
        cpu_only=False if cuda else True if _BUILD_CPU.search(build) else None,
        cudnn=cudnn.group(1) if cudnn else None,
    )


def _cuda_version(text: str) -> str:
    """``12.4`` of ``12.4`` and of ``124``; ``9.2`` of ``92``."""
    if "." in text:
        return ".".join(text.split(".")[:2])
    return f"{text[:-1]}.{text[-1]}"
