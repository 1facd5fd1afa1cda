"""Lines of ``.pth`` files that change Python's search path by code: their text is read, nothing is run.

``site`` runs every line that begins with ``import``. Where such a line, or a module beside the file that it imports,
changes ``sys.path``, files do not tell what an import takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ._env_head import read_start
from ._env_paths import is_folder, name_of
from ._kit import Request, list_names

_LIMIT = 64 << 10
_MOST = 20
_SHOWN = 200

_CHANGES = re.compile(
    r"\bpath\s*\.\s*(?:insert|append|extend|remove|pop|clear|reverse|sort)\s*\("
    r"|\bsys\s*\.\s*path\s*(?:\[[^\]\n]{0,80}\]\s*)?\+?=(?!=)"
    r"|\bdel\s+sys\s*\.\s*path\b|\baddsitedir\s*\("
)
_IMPORTED = re.compile(r"\bimport\s+([A-Za-z_]\w{0,100})(?:\s*,\s*([A-Za-z_]\w{0,100}))?")
_FOLDER = re.compile(r"['\"](/[^'\"\n]{1,400})['\"]")
_KNOWN = ("__editable__", "easy-install.pth")
"""Of setuptools: finders of editable installations, which are read (``_env_editable``), and lines that put the plain
lines of the same file first."""


def path_changes(
    request: Request, code: Sequence[tuple[str, str]], folders: Sequence[str]
) -> tuple[dict[str, Any], ...]:
    """``Startup`` records of those of the lines ``code`` (file and line) that change the search path."""
    found: list[dict[str, Any]] = []
    for path, line in code:
        if name_of(path).startswith(_KNOWN) or len(found) >= _MOST:
            continue
        where = next((text for text in _texts(request, path, line) if _CHANGES.search(text[1])), None)
        if where is not None:
            found.append(_record(request, path, line, where, folders))
    return tuple(found)


def _texts(request: Request, path: str, line: str) -> Iterator[tuple[str, str]]:
    """The line, then the modules beside the file that it imports: an empty name or the path, and the text."""
    yield "", line
    site = path.rpartition("/")[0]
    for match in _IMPORTED.finditer(line[:4096]):
        for name in filter(None, match.groups()):
            data = read_start(request, f"{site}/{name}.py", _LIMIT)
            if data is not None:
                yield f"{site}/{name}.py", data.decode("utf-8", "replace")


def _record(request: Request, path: str, line: str, where: tuple[str, str], folders: Sequence[str]) -> dict[str, Any]:
    module, text = where
    named = [folder for folder in dict.fromkeys(_FOLDER.findall(text[:_LIMIT])) if is_folder(request, folder)][:_MOST]
    there = {name for folder in folders for name in list_names(request, folder) or ()}
    shadows = sorted({name for folder in named for name in list_names(request, folder) or ()} & there)
    packages = [name for name in shadows if "-" not in name and not name.startswith((".", "__"))]
    record: dict[str, Any] = {"path": path, "line": line[:_SHOWN], "source": f"file {path}"}
    if module:
        record["module"] = module
    return {**record, "folders": named, "shadows": packages[:_MOST]}
