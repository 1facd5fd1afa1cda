"""The folders that an environment searches (``sys.path``, ``.pth`` files, editable installations), and the variables
that code sets at every start of its interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ...common.lazy import lazy_pattern
from ...common.paths import joined, name_of
from ...common.tree import Tree
from ...common.variable_names import matters
from .interpreter import LIBRARY
from .layout import EnvironmentLayout

# Packages that editable installations of setuptools bring by a finder: the module is read, and never run.
#
# Such an installation puts two files into a site folder: ``__editable__.NAME-VERSION.pth``, which imports the finder,
# and ``__editable___NAME_VERSION_finder.py``, whose constant ``MAPPING`` says where each package lies.

_IMPORT = lazy_pattern(rb"^import (__editable___\w{1,200}_finder)\b", re.MULTILINE)


def mapped(tree: Tree, folders: Iterable[str]) -> dict[str, str]:
    """Import name → path of its package (or of its module, without ``.py``), from all finders in ``folders``."""
    found: dict[str, str] = {}
    for folder in folders:
        names = [name for name in tree.list_names(folder) or () if name.startswith("__editable__")]
        for name in [name for name in names if name.endswith(".pth")][:200]:
            for match in _IMPORT.finditer(tree.read_bytes(f"{folder}/{name}", 4096) or b""):
                mapping = _mapping(tree, f"{folder}/{match[1].decode()}.py")
                found.update((key, path) for key, path in mapping.items() if key not in found)
    return found


def _mapping(tree: Tree, path: str) -> dict[str, str]:
    text = (tree.read_bytes(path, 256 << 10) or b"").decode("utf-8", "replace")
    match = re.search(r"^MAPPING(?:\s*:[^=\n]{1,100})?\s*=\s*(\{.*\})\s*$", text, re.MULTILINE)
    if not match:
        return {}
    import ast  # few environments have one

    try:
        mapping = ast.literal_eval(match[1])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return {}
    pairs = mapping.items() if isinstance(mapping, dict) else ()
    texts = ((key, value) for key, value in pairs if isinstance(key, str) and isinstance(value, str))
    return {key: value for key, value in texts if value.startswith("/") and "\0" not in value}


# Lines of ``.pth`` files that change Python's search path by code: their text is read, nothing is run.
#
# ``site`` runs every line that begins with ``import``. Where such a line, or a module beside the file that it imports,
# changes ``sys.path``, files do not show what an import takes.


_LIMIT = 64 << 10
_MOST = 20
_SHOWN = 200

_CHANGES = lazy_pattern(
    r"\bpath\s*\.\s*(?:insert|append|extend|remove|pop|clear|reverse|sort)\s*\("
    r"|\bsys\s*\.\s*path\s*(?:\[[^\]\n]{0,80}\]\s*)?\+?=(?!=)"
    r"|\bdel\s+sys\s*\.\s*path\b|\baddsitedir\s*\("
)
_FOLDER = lazy_pattern(r"['\"](/[^'\"\n]{1,400})['\"]")
_KNOWN = ("__editable__", "easy-install.pth")
"""Files of setuptools: finders of editable installations, which are read here, and code that moves the file's plain
lines to the front.
"""


def path_changes(tree: Tree, code: Sequence[tuple[str, str]], folders: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """``Startup`` records for those lines of ``code`` (file and line) that change the search path."""
    found: list[dict[str, Any]] = []
    for path, line in code:
        if name_of(path).startswith(_KNOWN) or len(found) >= _MOST:
            continue
        where = next((text for text in _texts(tree, path, line) if _CHANGES.search(text[1])), None)
        if where is not None:
            module, text = where
            named = [path for path in dict.fromkeys(_FOLDER.findall(text[:_LIMIT])) if tree.is_folder(path)][:_MOST]
            there = {name for folder in folders for name in tree.list_names(folder) or ()}
            shadows = sorted({name for folder in named for name in tree.list_names(folder) or ()} & there)
            packages = [name for name in shadows if "-" not in name and not name.startswith((".", "__"))]
            record: dict[str, Any] = {"path": path, "line": line[:_SHOWN], "source": f"file {path}"}
            if module:
                record["module"] = module
            found.append({**record, "folders": named, "shadows": packages[:_MOST]})
    return tuple(found)


def _texts(tree: Tree, path: str, line: str) -> Iterator[tuple[str, str]]:
    """The line (with an empty name), then the modules beside its file that it imports (path and text)."""
    yield "", line
    site = path.rpartition("/")[0]
    for match in re.finditer(r"\bimport\s+([A-Za-z_]\w{0,100})(?:\s*,\s*([A-Za-z_]\w{0,100}))?", line[:4096]):
        for name in filter(None, match.groups()):
            data = tree.read_bytes(f"{site}/{name}.py", _LIMIT)
            if data is not None:
                yield f"{site}/{name}.py", data.decode("utf-8", "replace")


# Where an environment looks for packages, in the order of its ``sys.path``.
#
# As documented for ``PYTHONPATH`` and the module ``site``: PYTHONPATH, the virtual environment's folder, the user's,
# the base's; each site folder brings the plain lines of its ``.pth`` files along. Lines that begin with ``import`` are
# code and say what they do only when they are run; what their text shows is reported.


FOLDERS = 1000
_CODE = ("import ", "import\t")


class SearchPath(NamedTuple):
    """Existing folders, each once; ``by_variable`` of them come first, from PYTHONPATH."""

    folders: tuple[str, ...] = ()
    by_variable: int = 0
    complete: bool = False
    led_by: tuple[str, ...] = ()
    """What adds each folder that is not a site folder of the environment: ``PYTHONPATH``, ``user site`` or the path of
    a ``.pth`` file; else empty.
    """
    startup: tuple[dict[str, Any], ...] = ()  # The lines of ``.pth`` files that change this list by code
    variables: tuple[dict[str, Any], ...] = ()  # Variables that such lines set, and modules for customization
    undecodable: tuple[str, ...] = ()  # The ``.pth`` files that are not UTF-8, at which the interpreter does not start


def search_path(tree: Tree, layout: EnvironmentLayout) -> SearchPath:
    """The folders that the environment's interpreter would search, without its standard library."""
    code: list[tuple[str, str]] = []
    undecodable: list[str] = []
    value = str(tree.variables.get("PYTHONPATH", ""))
    by_variable = _distinct(tree, ((joined(tree.cwd, part), "PYTHONPATH") for part in value.split(":") if value))
    sites = _distinct(tree, _with_path_files(tree, _sites(tree, layout), code, undecodable), by_variable)
    entries = [*by_variable.values(), *sites.values()]
    folders = tuple(folder for folder, _ in entries)
    complete = layout.minor is not None and len(folders) < FOLDERS
    startup = path_changes(tree, code, folders) if code else ()
    texts = [(path, module, text) for path, line in code for module, text in _texts(tree, path, line)]
    led_by = tuple(led_by for _, led_by in entries)
    first = [*folders[: len(by_variable)], *filter(None, (layout.standard_library,)), *folders[len(by_variable) :]]
    variables = variables_set(tree, texts, first)
    return SearchPath(folders, len(by_variable), complete, led_by, startup, variables, tuple(undecodable))


def _distinct(
    tree: Tree, folders: Iterator[tuple[str, str]], before: dict[str, tuple[str, str]] | None = None
) -> dict[str, tuple[str, str]]:
    """Real path → path and what adds it, for all existing folders that are not in ``before``."""
    found: dict[str, tuple[str, str]] = {}
    for folder, led_by in folders:
        key = tree.real_path(folder)
        if key not in found and key not in (before or {}) and tree.is_folder(folder):
            found[key] = (folder, led_by)
            if len(found) >= FOLDERS:
                break
    return found


def _sites(tree: Tree, layout: EnvironmentLayout) -> Iterator[tuple[str, str]]:
    if layout.virtual:
        yield from ((folder, "") for folder in _site_folders(tree, layout, layout.prefix))
    if layout.minor and (layout.system_packages or not layout.virtual):
        base = str(tree.variables.get("PYTHONUSERBASE") or "") or (f"{tree.home()}/.local" if tree.home() else "")
        if base.startswith("/") and not tree.variables.get("PYTHONNOUSERSITE"):
            yield f"{base}/lib/python{layout.minor}/site-packages", "user site"
        if layout.base:
            yield from ((folder, "") for folder in _site_folders(tree, layout, layout.base))


def _site_folders(tree: Tree, layout: EnvironmentLayout, prefix: str) -> Iterator[str]:
    """``site-packages``, and the folders that Debian uses instead."""
    minor = layout.minor
    other = "python" if layout.implementation == "pypy" else "pypy"
    for lib in ("lib64", "lib"):
        if lib == "lib64" and tree.link_target(f"{prefix}/lib64") is not None:
            continue
        for name in tree.list_names(f"{prefix}/{lib}") or []:
            match = LIBRARY.match(name)
            if match and match.group(1) != other and match.group(2) == minor:
                yield f"{prefix}/{lib}/{name}/site-packages"
    yield f"{prefix}/local/lib/python{minor}/dist-packages"
    if minor and minor.startswith("3"):
        yield f"{prefix}/lib/python3/dist-packages"
    yield f"{prefix}/lib/python{minor}/dist-packages"


def _with_path_files(
    tree: Tree, sites: Iterator[tuple[str, str]], code: list[tuple[str, str]], undecodable: list[str]
) -> Iterator[tuple[str, str]]:
    """Each site folder and what its ``.pth`` files add; code goes to ``code``, what is no text to ``undecodable``."""
    for site, led_by in sites:
        yield site, led_by
        names = [name for name in tree.list_names(site) or [] if name.endswith(".pth") and name[0] != "."]
        for name in names[:1000]:
            path = f"{site}/{name}"
            data = tree.read_bytes(path) or b""
            text = data.decode("utf-8", "replace")
            undecodable += [path] if text.encode() != data else []
            lines = text.lstrip("\ufeff").splitlines()
            plain = (line.rstrip() for line in lines)
            named = (line for line in plain if name_of(line) and not line.startswith(("#", *_CODE)))
            yield from ((joined(site, line), path) for line in named)
            code += [(path, line) for line in lines if line.startswith(_CODE)]


_NAME = r"['\"]([A-Za-z_]\w{0,80})['\"]"
_VALUE = r"\s{0,8}(?:['\"]([^'\"\n]{0,200})['\"]\s{0,8}(?=[;,)}#\n]|$))?"
_ASSIGNED = lazy_pattern(
    rf"\benviron\s{{0,8}}\[\s{{0,8}}{_NAME}\s{{0,8}}\]\s{{0,8}}=(?!=){_VALUE}"
    rf"|\benviron\s{{0,8}}\.\s{{0,8}}setdefault\s{{0,8}}\(\s{{0,8}}{_NAME}\s{{0,8}},{_VALUE}"
    rf"|\bputenv\s{{0,8}}\(\s{{0,8}}{_NAME}\s{{0,8}},{_VALUE}"
)
_SET_DEFAULT = 2  # The group that holds the name where a value in the environment is kept
_PAIR = lazy_pattern(rf"(?:{_NAME}\s{{0,8}}:|\b([A-Za-z_]\w{{0,80}})\s{{0,8}}=(?!=)){_VALUE}")
_ONLY_IF = lazy_pattern(r"^\s|\b(?:if|else|for|while|and|or|def|lambda)\b")
"""What stands before a statement in its line that does not run at every start."""
_CUSTOM = ("sitecustomize.py", "usercustomize.py")
"""Modules that ``site`` imports where the search path has them; of each the first counts."""


def variables_set(
    tree: Tree, texts: Sequence[tuple[str, str, str]], folders: Sequence[str]
) -> tuple[dict[str, Any], ...]:
    """``StartupVariable`` records for the ``texts`` of ``.pth`` files (file, module or nothing, text) and for the
    modules for customization in the ``folders`` of the search path (Debian's standard library has one of its own).
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    customs: list[tuple[str, str, str]] = []
    for name in _CUSTOM:
        read = ((f"{folder}/{name}", tree.read_text(f"{folder}/{name}", _LIMIT)) for folder in folders)
        path, text = next(((path, text) for path, text in read if text is not None), ("", ""))
        customs += [(path, "", text)] if path else []
    for path, module, text in [*texts, *customs]:
        for name, value, always in _settings(text[:_LIMIT]):
            if not matters(name):
                continue
            record: dict[str, Any] = {"path": path, "name": name, "source": f"file {path}"}
            if module:
                record["module"] = module
            if value is not None:
                record.update(value=value[:_SHOWN], **({"always": True} if always else {}))
            found.setdefault((path, name), record)
            if len(found) >= _MOST:
                return tuple(found.values())
    return tuple(found.values())


def _settings(text: str) -> Iterator[tuple[str, str | None, bool]]:
    """Names and values that the text sets, None for one that is computed, and whether it does so unconditionally."""
    code = re.sub(r"^[ \t]{0,80}#[^\n]*", "", text, flags=re.MULTILINE)
    for match in _ASSIGNED.finditer(code):
        groups = match.groups()
        at = next(at for at in range(0, len(groups), 2) if groups[at])
        before = code[code.rfind("\n", 0, match.start()) + 1 : match.start()]
        yield groups[at], groups[at + 1], at != _SET_DEFAULT and not _ONLY_IF.search(before)
    for match in re.finditer(r"\benviron\s{0,8}(?:\.\s{0,8}update\s{0,8}\(|\|=)", code):
        for pair in _PAIR.finditer(code[match.end() : match.end() + 600].partition(")")[0]):
            yield pair[1] or pair[2], pair[3], False
