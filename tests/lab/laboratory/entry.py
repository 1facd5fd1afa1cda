"""What an environment of the laboratory is: how it is built, what is wrong with it, and where its fixes should lead."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tests.lab.laboratory.place import H100, Place

Goal = Literal["green", "elsewhere", "words"]
"""Where following the fixes leads: to a check that passes; to what no change of the environment can do (another GPU or
driver); or to a fix in words alone, since no command can do it."""


@dataclass(frozen=True)
class Broken:
    """An environment with one thing wrong."""

    name: str
    family: str  # The class of fault, as ``damage`` or ``overlay``
    build: Callable[[Place], None]
    rules: tuple[str, ...]  # Rules that are right as the root cause; empty: any that names it
    names: tuple[str, ...] = ()
    """Patterns that the text of the root cause must hold: the file, the variable, the package at fault."""
    goal: Goal = "green"
    works: str = ""
    """Code that does not run in the environment as it was built, and must run when the fixes were followed."""
    fix: str = ""  # Pattern that the first command of the fix must hold
    assumed: str = H100
    manager: Literal["pip", "uv"] = "pip"
    options: tuple[str, ...] = ()
    left_unmet: str = ""
    """Pattern of what pip check may say afterwards: of a requirement that another distribution meets."""

    def right(self, check: dict[str, Any] | None) -> bool:
        """Whether a check is the root cause, and says so."""
        if check is None or (self.rules and check["rule"] not in self.rules):
            return False
        said = words(check)
        return all(re.search(pattern, said) for pattern in self.names)

    def offers(self, check: dict[str, Any] | None) -> bool:
        """Whether the fix is of the kind that it must be."""
        commands = [" ".join(fix["command"]) for fix in (check or {"fixes": []})["fixes"] if fix["command"]]
        return not self.fix or bool(commands and re.search(self.fix, commands[0]))


@dataclass(frozen=True)
class Healthy:
    """An environment that must stay free of findings."""

    name: str
    family: str
    build: Callable[[Place], None]
    assumed: str = H100
    allowed: tuple[str, ...] = ()  # Rules that may warn all the same: what they say is true of it
    verdict: str = "pass"
    silent: tuple[str, ...] = ()  # Patterns that no text of the report may hold
    manager: Literal["pip", "uv"] = "pip"
    works: str = ""  # Code that runs in it, which proves that it is healthy


def words(check: dict[str, Any]) -> str:
    """All that a finding says, its fixes left out."""
    told = [f"{each['what']} {each['value']} {each['source']}" for each in check["evidence"]]
    return "\n".join([check["title"], check["message"], *told])
