"""The toolkit as the owner of what lies in it, and the versions of its parts by its ``version.json``."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from ._env_head import read_start
from ._kit import Request
from ._library_claims import Claim
from ._library_families import row_of
from ._toolkit_version import version

_JSON_LIMIT = 1 << 20
_PLAIN = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,4}")


class Toolkit(NamedTuple):
    claim: Claim
    parts: dict[str, str]
    source: str
    """The file that tells its version."""

    def declared(self, family: str) -> str | None:
        """The version of the family's part."""
        row = row_of(family)
        return self.parts.get(row.part or f"lib{row.name.lower()}") if row else None


def toolkit(request: Request, top: str) -> Toolkit:
    """The toolkit in the folder ``top`` (a real path)."""
    told = version(request, top)
    claim = Claim("toolkit", "CUDA toolkit", told.value if told else "")
    return Toolkit(claim, _parts(request, top), told.source if told else f"file {top}")


def _parts(request: Request, top: str) -> dict[str, str]:
    try:
        told = json.loads(read_start(request, f"{top}/version.json", _JSON_LIMIT) or b"")
    except (ValueError, RecursionError):
        return {}
    parts = told.items() if isinstance(told, dict) else ()
    versions = {name: part.get("version") for name, part in parts if isinstance(part, dict)}
    return {name: text for name, text in versions.items() if isinstance(text, str) and _PLAIN.fullmatch(text)}
