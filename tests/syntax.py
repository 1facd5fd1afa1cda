"""The syntax trees of the program's modules."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def calls(folder: Path, *functions: str) -> Iterator[tuple[Path, ast.Call]]:
    """The calls below a folder of these functions, ``wording`` or ``re.compile``; a module that names none of them is
    not parsed, which takes most of the time.
    """
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(tree(path)) if any(name in text for name in functions) else ():
            if isinstance(node, ast.Call) and _name(node.func) in functions:
                yield path, node


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""
