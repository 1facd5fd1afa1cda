"""What a host has for containers that are to use its GPUs: engines, NVIDIA's toolkit, and how the two were joined."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

from ._kit import Request, clean, exists, list_names, read_text
from ._links import is_file, resolve
from ._record import Found, record

_FOLDERS = ("/usr/bin", "/usr/local/bin", "/bin", "/snap/bin", "/opt/bin", "/run/current-system/sw/bin")
_TOOLKIT_FOLDERS = (*_FOLDERS, "/usr/local/nvidia/toolkit", "/usr/sbin")

_ENGINES = ("docker", "podman", "nerdctl", "crictl", "k3s")
_TOOLKIT = (
    "nvidia-ctk",
    "nvidia-container-runtime",
    "nvidia-container-runtime-hook",
    "nvidia-container-toolkit",
    "nvidia-container-cli",
)

_DAEMON_FILES = ("/etc/docker/daemon.json", "/var/snap/docker/current/config/daemon.json")
_CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")
_CDI_KIND = re.compile(r"^\s*[\"']?kind[\"']?\s*:\s*[\"']?nvidia\.com/", re.MULTILINE)

_LISTS = "/etc/nvidia-container-runtime/host-files-for-container.d"
_ENTRY = re.compile(r"^\s*(?:lib|sym|dir|dev)\s*,\s*(/\S+)\s*$", re.MULTILINE)

_MOST_FILES = 50
_MOST_ENTRIES = 5_000
_MOST_MISSING = 20


def container_host(request: Request, *, tegra: bool) -> dict[str, Any]:
    """The ``container_host`` of a system that is itself no container; ``tegra`` adds the mount lists of a Jetson."""
    lists = _mount_lists(request) if tegra else None
    missing = _missing(request, lists) if lists else None
    return record(
        engines=Found(_programs(request, _FOLDERS, _ENGINES), "file"),
        toolkit=Found(_programs(request, _TOOLKIT_FOLDERS, _TOOLKIT), "file"),
        runtimes=_runtimes(request),
        cdi=Found(_cdi(request), "file"),
        mount_lists=Found(lists, f"file {_LISTS}") if lists is not None else None,
        mounts_missing=Found(missing, f"file {_LISTS}") if missing is not None else None,
    )


def _programs(request: Request, folders: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    """The first place of each program; a snap's commands are all links to one program, and count by their names."""
    found: dict[str, str] = {}
    for folder in folders:
        for name in names:
            path = f"{folder}/{name}"
            here = is_file(request, path) or (folder == "/snap/bin" and exists(request, path))
            if here and name not in found:
                found[name] = path
    return list(found.values())


def _runtimes(request: Request) -> Found | None:
    """The runtimes that Docker was told of; an empty list where its configuration has none or is not there."""
    for path in _DAEMON_FILES:
        if not exists(request, path):
            continue
        try:
            content = json.loads(read_text(request, path, 65536) or "")
        except ValueError:
            return None
        runtimes = content.get("runtimes") if isinstance(content, dict) else None
        names = sorted(clean(name) for name in runtimes)[:_MOST_FILES] if isinstance(runtimes, dict) else []
        return Found(names, f"file {path}")
    return Found([], f"file {_DAEMON_FILES[0]}")


def _cdi(request: Request) -> list[str]:
    found: dict[str, str] = {}
    for folder in _CDI_FOLDERS:
        for name in (list_names(request, folder) or [])[:_MOST_FILES]:
            path = f"{folder}/{name}"
            real = resolve(request, path) if name.endswith((".yaml", ".yml", ".json")) else None
            if real and real not in found and _CDI_KIND.search(read_text(request, real, 65536) or ""):
                found[real] = clean(path)
    return list(found.values())


def _mount_lists(request: Request) -> list[str]:
    names = [name for name in list_names(request, _LISTS) or [] if name.endswith(".csv")]
    return [clean(f"{_LISTS}/{name}") for name in names[:_MOST_FILES]]


def _missing(request: Request, lists: list[str]) -> list[str]:
    """Entries that are not on this system; the runtime leaves them out without a word."""
    entries = [path for name in lists for path in _ENTRY.findall(read_text(request, name) or "")]
    absent = (path for path in dict.fromkeys(entries[:_MOST_ENTRIES]) if "*" not in path and not exists(request, path))
    return [clean(path) for path in islice(absent, _MOST_MISSING)]
