"""setup.py and setup.cfg of setuptools: the requirements that they state, and those of the file that they read them
from. Nothing of the program is run: what it computes otherwise stays open.
"""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator, Mapping

import msgspec
from packaging.utils import canonicalize_name

from envcheck.model.snapshot import Planned
from envcheck.plans.readers import requirements
from envcheck.plans.requirement import entry, open_part, planned
from envcheck.plans.sheet import Sheet, UnreadError

NAME = "setup.py"
FILES = re.compile(r"setup\.(?:py|cfg)")

_LONGEST = 256 << 10
_LISTED = re.compile(r"(?:[\w.-]{1,80}/){0,4}[\w.-]{0,80}require[\w.-]{0,80}\.(?:txt|in)", re.IGNORECASE)
"""The name of a file that lists requirements."""
_OF_CFG = re.compile(r"\s*file:\s*(?P<files>.+)", re.DOTALL)
_COMPUTED = "the program computes what it requires, and is not run"

_Lines = list[tuple[int | None, str]]  # Requirements, each with its line


def read(sheet: Sheet) -> list[Planned]:
    found = sheet.bounded(_of_cfg(sheet) if sheet.file.endswith(".cfg") else _of_program(sheet))
    return [msgspec.structs.replace(each, together=sheet.file) for each in found]


def of_files(sheet: Sheet, paths: list[str], line: int | None) -> Iterator[Planned]:
    """What files that list requirements, beside the project's, would install."""
    for path in paths:
        if sheet.has_beside(path):
            yield from requirements.read(sheet.beside(path, line or 1))
        else:
            yield open_part(sheet, line, UnreadError("the file that its requirements are in was not found"))


def _of_program(sheet: Sheet) -> Iterator[Planned]:
    call, values, constants = _parsed(sheet)
    stated = {each.arg: each.value for each in call.keywords if each.arg is not None}
    if len(stated) < len(call.keywords) or call.args:
        yield open_part(sheet, call.lineno, UnreadError(_COMPUTED))
    extensions = stated.get("ext_modules")
    if extensions is not None and not (isinstance(extensions, ast.List) and not extensions.elts):
        problem = "it compiles a library of its own, which may hold code for GPUs"
        yield open_part(sheet, extensions.lineno, UnreadError(problem))
    wanted = [stated[key] for key in ("install_requires",) if key in stated]
    extras = _resolved(stated.get("extras_require"), values)
    named = dict(_pairs(extras)) if isinstance(extras, ast.Dict) else {}
    names = {canonicalize_name(name) for name in sheet.extras}
    for extra in sorted(names):
        found = next((value for key, value in named.items() if canonicalize_name(key.partition(":")[0]) == extra), None)
        if found is None:
            yield open_part(sheet, call.lineno, UnreadError(f"what its extra {extra} requires is not stated"))
        else:
            wanted.append(found)
    for node in wanted:
        lines = _texts(node, values)
        if lines is not None:
            yield from _required(sheet, lines)
        elif len(constants) == 1:
            yield from of_files(sheet, constants, node.lineno)
        else:
            yield open_part(sheet, node.lineno, UnreadError(_COMPUTED))


def _parsed(sheet: Sheet) -> tuple[ast.Call, dict[str, ast.expr], list[str]]:
    """The call of ``setup``, what is assigned once to names, and the files of requirements that the program names."""
    if len(sheet.text) > _LONGEST:
        raise sheet.unread(None, f"it has more than {_LONGEST >> 10} KiB")
    try:
        nodes = [*ast.walk(ast.parse(sheet.text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise sheet.unread(None, "this is no program of Python 3") from None
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    call = next((each for each in calls if _called(each) == "setup"), None)
    if call is None:
        raise sheet.unread(None, "it does not call setup()")
    targets = [
        (target.id, each.value if isinstance(each, (ast.Assign, ast.AnnAssign)) else None)
        for each in nodes
        if isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
        if isinstance(target, ast.Name)
    ]
    changed = {
        each.func.value.id
        for each in calls
        if isinstance(each.func, ast.Attribute) and isinstance(each.func.value, ast.Name)
    }
    names = [name for name, _ in targets]
    values = {name: value for name, value in targets if value is not None and names.count(name) == 1}
    texts = {each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    listed = sorted(text for text in texts if _LISTED.fullmatch(text))
    return call, {name: value for name, value in values.items() if name not in changed}, listed


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", None) or getattr(call.func, "id", ""))


def _resolved(node: ast.expr | None, values: Mapping[str, ast.expr]) -> ast.expr | None:
    return values.get(node.id) if isinstance(node, ast.Name) else node


def _pairs(node: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value, value


def _texts(node: ast.expr | None, values: Mapping[str, ast.expr], depth: int = 0) -> _Lines | None:
    """The texts of a list that is written out; None for one that is computed."""
    found = _resolved(node, values)
    if isinstance(found, ast.Call) and _called(found) == "list" and len(found.args) == 1 and not found.keywords:
        found = _resolved(found.args[0], values)
    if isinstance(found, ast.BinOp) and isinstance(found.op, ast.Add) and depth < 20:
        left, right = _texts(found.left, values, depth + 1), _texts(found.right, values, depth + 1)
        return None if left is None or right is None else left + right
    if isinstance(found, ast.Constant) and isinstance(found.value, str):
        return [(found.lineno, line) for line in found.value.splitlines() if line.strip()]
    if not isinstance(found, (ast.List, ast.Tuple)):
        return None
    texts = [(each.lineno, _text(each, values)) for each in found.elts]
    lines: _Lines = [(line, text) for line, text in texts if text is not None]
    return lines if len(lines) == len(texts) else None


def _text(node: ast.expr, values: Mapping[str, ast.expr]) -> str | None:
    """A text that is written out, or that a table has by its name: ``deps["torch"]``; None for one that is computed."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        return None
    key, table = node.slice.value, _resolved(node.value, values)
    if isinstance(table, ast.Dict):
        found = next((value for name, value in _pairs(table) if name == key), None)
        return found.value if isinstance(found, ast.Constant) and isinstance(found.value, str) else None
    # As projects of Hugging Face write it: {b: a for a, b in (re.findall(..., x)[0] for x in _deps)}
    plain = isinstance(table, ast.DictComp) and isinstance(table.key, ast.Name) and isinstance(table.value, ast.Name)
    lists = [each.id for each in ast.walk(table) if isinstance(each, ast.Name)] if plain and table else []
    listed = next((lines for name in lists if name in values and (lines := _texts(values[name], {}))), [])
    heads = [(re.split("[!=<>~ ]", text, maxsplit=1)[0], text) for _, text in listed]
    named = [text for head, text in heads if key in (head, head.partition("[")[0])]
    return named[0] if len(named) == 1 else None


def _of_cfg(sheet: Sheet) -> Iterator[Planned]:
    config = configparser.RawConfigParser(strict=False, delimiters=("=",))
    try:
        config.read_string(sheet.text)
    except configparser.Error:
        raise sheet.unread(None, "this is no configuration file of setuptools") from None
    lines = {text.strip(): number for number, text in reversed([*enumerate(sheet.text.split("\n"), start=1)])}
    lists = [config.get("options", "install_requires", fallback="")]
    section = "options.extras_require"
    of_extras = dict(config.items(section)) if config.has_section(section) else {}
    names = {canonicalize_name(name) for name in sheet.extras}
    lists += [text for name, text in of_extras.items() if canonicalize_name(name) in names]
    for text in lists:
        if of_file := _OF_CFG.fullmatch(text):
            yield from of_files(sheet, re.split(r"[\s,]+", of_file["files"].strip()), None)
            continue
        asked = (line.partition(" #")[0].strip() for line in text.splitlines())
        yield from _required(sheet, [(lines.get(each), each) for each in asked if each and not each.startswith("#")])


def _required(sheet: Sheet, lines: _Lines) -> Iterator[Planned]:
    for line, text in lines:
        yield from entry(sheet, line, filter(None, (planned(sheet, each, line) for each in [text])))
