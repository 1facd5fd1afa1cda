"""JSON Schemas of what envcheck prints, made from the types themselves."""

from __future__ import annotations

from typing import Any

import msgspec

from envcheck.checks import SCHEMA_VERSION, Report
from envcheck.compat.question.question import Answer
from envcheck.diff import Diff
from envcheck.errors import UsageError
from envcheck.report.saved.descriptions import describe

SCHEMAS: dict[str, type[msgspec.Struct]] = {"report": Report, "fit": Answer, "diff": Diff}
"""The outputs that have a schema."""


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the output ``name``; raise UsageError when there is none of that name."""
    if name not in SCHEMAS:
        raise UsageError(f"there is no schema {name!r}; choose from {', '.join(SCHEMAS)}, fleet, fleet-bench or config")
    found = msgspec.json.schema(SCHEMAS[name])
    describe(found, SCHEMAS[name])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:envcheck:schema:{name}:{SCHEMA_VERSION}",
        "title": f"envcheck {name} {SCHEMA_VERSION}",
        **found,
    }


def published(name: str) -> str:
    """The name of the copy of a schema below ``docs/schema``."""
    return f"{name}-{SCHEMA_VERSION}.json"
