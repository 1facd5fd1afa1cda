"""The one grammar for components: ``torch>=2.4``, ``gpu=="RTX 5090"``, ``gpus>=8``, ``driver==550.54.14``.

A component is a name and one or more bounds; several components are separated by commas, and a piece that starts with
an operator is a further bound of the component before it: ``torch>=2.4,<2.6,driver>=550``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from envcheck.errors import UsageError
from envcheck.text.lazy import lazy_pattern

OPERATORS = "==|!=|>=|<=|~=|>|<"
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
"""What each asks of two versions; ``~=`` asks for a bound at either end."""
_NAME = lazy_pattern(r"\s*([A-Za-z][A-Za-z0-9._-]*)\s*")
_SECOND = lazy_pattern(rf"\s([A-Za-z][A-Za-z0-9._-]{{0,80}}\s{{0,8}}(?:{OPERATORS}).{{0,40}})")
"""A further component within a value, after a blank."""
_BOUND = lazy_pattern(rf"\s*(?:=(?===))?({OPERATORS})\s*(\"[^\"]*\"|'[^']*'|[^,\"']*)\s*")


class Bound(NamedTuple):
    """An operator (``==`` for ``===`` too) and the version (or name) that it compares with."""

    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.operator}{self.value}"


class Component(NamedTuple):
    """A named thing and the bounds set on it."""

    name: str  # Lower case, with dashes: ``nvidia-cudnn-cu12``
    bounds: tuple[Bound, ...]

    @property
    def exact(self) -> str | None:
        """The value, when the only bound is ``==``."""
        only = self.bounds[0] if len(self.bounds) == 1 else None
        return only.value if only and only.operator == "==" else None

    def __str__(self) -> str:
        return self.name + ",".join(str(bound) for bound in self.bounds)


def parse_components(text: str) -> tuple[Component, ...]:
    """Read a list of components; raise UsageError with what could not be read and what is expected."""
    if not isinstance(text, str):
        raise UsageError(
            f"write a requirement as a text, as in 'torch>=2.4', not a value of type {type(text).__name__}"
        )
    found: list[Component] = []
    rest = text
    while rest.strip():
        name = _NAME.match(rest)
        if name:
            found.append(Component(re.sub(r"[._-]+", "-", name[1].lower()), ()))
            rest = rest[name.end() :]
        bound = _BOUND.match(rest)
        value = bound[2].strip("\"' ") if bound else ""
        if bound and bound[2][:1] not in ("'", '"') and (second := _SECOND.search(value)):
            raise UsageError(f"cannot read {text!r}: separate components by commas, as before {second[1]!r}")
        rest = rest[bound.end() :] if bound else rest
        if not found or not value or (rest and not rest.startswith(",")):
            raise UsageError(f"cannot read {text!r}: write NAME==VERSION, as in torch>=2.4 or gpu==H100")
        found[-1] = found[-1]._replace(bounds=(*found[-1].bounds, Bound(bound[1] if bound else "", value)))
        rest = rest[1:]
    if not found:
        raise UsageError("an empty component: write NAME==VERSION, as in torch>=2.4 or gpu==H100")
    return tuple(found)
