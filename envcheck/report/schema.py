"""JSON Schemas of what envcheck prints, made from the types themselves, with what each field means: the comments
behind the fields of the structs, or the docstrings below, which Python does not keep at run time.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from envcheck.compat.question import Answer
from envcheck.diff.reports import Diff
from envcheck.errors import UsageError
from envcheck.model.checks import SCHEMA_VERSION, Report
from envcheck.pipeline.planned.solution import Solution

SCHEMAS: dict[str, type[msgspec.Struct]] = {"report": Report, "fit": Answer, "plan": Solution, "diff": Diff}
"""The outputs that have a schema."""


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the output ``name``; raise UsageError when there is none of that name."""
    if name not in SCHEMAS:
        known = f"{', '.join(SCHEMAS)}, fleet, fleet-bench, fleet-history or config"
        raise UsageError(f"there is no schema {name!r}; choose from {known}")
    return described(SCHEMAS[name], name, SCHEMA_VERSION)


def published(name: str) -> str:
    """The name of the copy of a schema below ``docs/schema``."""
    return f"{name}-{SCHEMA_VERSION}.json"


def described(root: Any, name: str, version: str, title: str = "") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the output ``name``, which is a ``root``: a struct, or a union of some."""
    schema = msgspec.json.schema(root)
    for each in schema["$defs"].values():  # a struct's docstring, whose indentation newer Pythons leave out
        each["description"] = _flowing(each.get("description", ""))
    for kind in _structs(inspect.type_info(root), set()):
        properties = schema["$defs"].get(_named(kind), {}).get("properties", {})
        for field in kind.fields:
            # What is said of the field where it is declared.
            bases = [base for base in _class(kind.cls).__mro__ if base.__module__.startswith("envcheck.")]
            texts = (_meanings(base.__module__).get((base.__name__, field.name)) for base in bases)
            text = next(filter(None, texts), "")
            if text and field.encode_name in properties:
                properties[field.encode_name] = {"description": text, **properties[field.encode_name]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:envcheck:schema:{name}:{version}",
        "title": f"envcheck {name} {version}{title}",
        **schema,
    }


def _structs(kind: inspect.Type, seen: set[str]) -> Iterator[inspect.StructType]:
    """Every struct that a value of ``kind`` may hold, once."""
    for part in getattr(kind, "types", ()):
        yield from _structs(part, seen)
    for name in ("item_type", "value_type"):
        if isinstance(part := getattr(kind, name, None), inspect.Type):
            yield from _structs(part, seen)
    if isinstance(kind, inspect.StructType) and _named(kind) not in seen:
        seen.add(_named(kind))
        yield kind
        for field in kind.fields:
            yield from _structs(field.type, seen)


def _named(kind: inspect.StructType) -> str:
    """The name of a struct among msgspec's definitions: ``Gpu``, ``Listing_Gpu_``."""
    arguments: tuple[Any, ...] = getattr(kind.cls, "__args__", ())
    name: str = _class(kind.cls).__name__
    return f"{name}_{'_'.join(each.__name__ for each in arguments)}_" if arguments else name


def _class(cls: Any) -> Any:
    return getattr(cls, "__origin__", cls)


@cache
def _meanings(module: str) -> dict[tuple[str, str], str]:
    """What each field means, by class and name: the comment behind it, or the docstring below."""
    file = sys.modules[module].__file__
    content = Path(file).read_bytes() if file else b""
    comments = {
        token.start[0]: token.string.removeprefix("# ")
        for token in tokenize.tokenize(BytesIO(content).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith("# noqa")
    }
    found: dict[tuple[str, str], str] = {}
    for declared in ast.walk(ast.parse(content)):
        if not isinstance(declared, ast.ClassDef):
            continue
        for field, after in pairwise((*declared.body, ast.Pass())):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                text = comments.get(field.end_lineno or 0, "")
                text += "." if text and not text.endswith((".", "…")) else ""
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    text = str(after.value.value)
                found[declared.name, field.target.id] = _flowing(text)
    return found


def _flowing(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")
