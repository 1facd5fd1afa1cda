"""What the package is, and which of its files tell version, CUDA and GPU code (name the wheels that you looked at)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..installations.package import add_declared, add_stated_version, locate, problems

if TYPE_CHECKING:
    from ..python.site import Site

IMPORTS = ("example_thing",)
DISTRIBUTIONS = ("example-thing",)


def read(site: Site, distributions: tuple[str, ...]) -> list[dict[str, Any]]:
    """The package that ``import example_thing`` would take."""
    here = locate(site, "example_thing", distributions)
    if here is None:
        return []
    facts = here.gather("example_thing")
    stated = add_stated_version(facts, here, "__init__.py")
    add_declared(facts, here)
    return [facts.record(problems(here, stated, "__init__.py", ("__init__.py",)))]
