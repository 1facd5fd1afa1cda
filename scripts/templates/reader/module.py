"""What the package is, and which of its files tell version, CUDA and GPU code (name the wheels that you looked at)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..installations.package import add_declared, locate, problems
from ..installations.text import assigned, version

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
    stated = version(assigned(here.text("__init__.py") or "", "__version__"))
    facts.add(f"file {here.path}/__init__.py", version=stated)
    add_declared(facts, here)
    return [facts.record(problems(here, stated, "__init__.py", ("__init__.py",)))]
