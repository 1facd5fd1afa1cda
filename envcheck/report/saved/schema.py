"""JSON Schemas of what envcheck prints, made from the types themselves."""

from __future__ import annotations

from typing import Any

import msgspec

from envcheck.compat.question import Answer
from envcheck.diff import Diff
from envcheck.errors import UsageError
from envcheck.model.checks import SCHEMA_VERSION, Report
from envcheck.report.saved.descriptions import described

SCHEMAS: dict[str, type[msgspec.Struct]] = {"report": Report, "fit": Answer, "diff": Diff}
"""The outputs that have a schema."""


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the output ``name``; raise UsageError when there is none of that name."""
    if name not in SCHEMAS:
        raise UsageError(f"there is no schema {name!r}; choose from {', '.join(SCHEMAS)}, fleet, fleet-bench or config")
    return described(SCHEMAS[name], name, SCHEMA_VERSION)


def published(name: str) -> str:
    """The name of the copy of a schema below ``docs/schema``."""
    return f"{name}-{SCHEMA_VERSION}.json"
