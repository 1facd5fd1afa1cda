"""Patterns that are compiled when they are first used: of some 400 that a program holds, most texts need half."""

from __future__ import annotations

import re
from typing import Any, cast


class _Uncompiled:
    """Stands for a pattern; the first method that is asked for compiles it, and all are found here from then on."""

    def __init__(self, text: str, flags: int) -> None:
        self.text, self.given = text, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.text, self.given)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """What ``re.compile`` returns, but for the type and ``re`` of its matches, which name the compiled pattern."""
    return cast("re.Pattern[str]", _Uncompiled(text, flags))
