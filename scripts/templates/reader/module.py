"""What the package is, and which of its files tell version, CUDA and GPU code (name the wheels that you looked at)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..installations.package import add_declared, add_stated_version, locate, problems

if TYPE_CHECKING:
    from ..python.site import Site

# IMPORTS is what ``import`` takes, DISTRIBUTIONS the normalised names of the distributions that hold it; both are
# literals on a line of their own. A reader is imported only where one of these is there. Nothing of the package is
# imported or run: ``assigned`` reads a literal out of a file's text, ``add_parts`` (installations/parts.py) reads ELF
# files, ``add_torch_extension`` what a module compiled against PyTorch needs. Every fact names the file that it was
# read from.
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
