"""Read plans: files that say what would be installed. Each format is one file in ``readers/``, found by listing.

A format has a ``NAME``, which is a file's own unless it has ``FILES`` too, a pattern of names, and a function:

    NAME = "uv.lock"
    def read(sheet: Sheet) -> list[Planned]: ...        # raises UsageError for what cannot be read

Plans are untrusted: sizes are bounded, nothing is run or fetched, and no content of a file appears in an error message.
A reader gathers and never judges. What a plan leaves open stays open.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from envcheck.bundle import modules_below
from envcheck.compat.narrowing import Narrowing, at_newest
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.model.snapshot import Environment, Planned
from envcheck.plans import readers
from envcheck.plans.readers import requirements
from envcheck.plans.requirement import open_part
from envcheck.plans.settle import as_environment, settled, with_torch_decided
from envcheck.plans.sheet import Reader, Sheet, UnreadError
from envcheck.text.clean import brief

__all__ = ["format_of", "read_plans"]

WISHES = "envcheck plan"  # The file of what is named on the command line
_MOST_FILES = 32


@cache
def _formats() -> tuple[tuple[re.Pattern[str], Reader], ...]:
    """All formats with the names of their files; the one that takes any text file comes last."""
    modules = [importlib.import_module(name) for name in modules_below(readers.__name__, readers.__path__)]
    modules.sort(key=lambda module: (module.NAME == "requirements", module.NAME))
    return tuple((getattr(module, "FILES", None) or re.compile(re.escape(module.NAME)), module) for module in modules)


def format_of(path: str) -> Reader | None:
    """What reads a file of this name."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return next((reader for files, reader in _formats() if files.fullmatch(name)), None)


def read_plans(
    paths: Sequence[str],
    matrix: Matrix,
    markers: Mapping[str, str],
    *,
    newest: bool = False,
    as_of: str | None = None,
    wishes: Sequence[str] = (),
) -> Environment:
    """What the files at ``paths`` would install together, and the requirements ``wishes``, as an environment.

    ``markers`` are the known environment markers (PEP 508) of the machine that it is meant for. With ``newest``, what
    the files leave open is the newest known release that an installer would choose: that of a day, with ``as_of``.
    Raises UsageError, with file and line, for a file that cannot be read or that is no plan.
    """
    if len(paths) > _MOST_FILES:
        raise UsageError(f"--plan: at most {_MOST_FILES} files")
    found: list[Planned] = []
    if wishes:
        named = requirements.read(Sheet(WISHES, "\n".join(wishes), matrix, markers))
        if unread := next((each for each in named if not each.name or each.problem), None):
            raise UsageError(
                f"{brief(wishes[(unread.line or 1) - 1])!r} names no package and its releases: torch, 'vllm>=0.9'"
            )
        found += settled(named, ())
    for path in paths:
        sheet = Sheet.open(path, matrix, markers, paths)
        reader = format_of(sheet.file)
        if reader is None:
            raise UsageError(
                f"--plan {sheet.file}: a plan is a requirements file (*.txt, *.in), pyproject.toml, setup.py, "
                f"setup.cfg, pylock.toml, uv.lock, poetry.lock, pdm.lock, Pipfile.lock, environment.yml, pixi.toml, "
                f"pixi.lock, a Dockerfile, compose.yaml or cog.yaml"
            )
        try:
            items = reader.read(sheet)
        except UnreadError as error:
            items = [open_part(sheet, None, error)]
        found += settled(items, sheet.constraints, sheet.undecided)
    found = settled(found, ())
    found = [msgspec.structs.replace(item, as_of=as_of) for item in found] if as_of else found
    items = Narrowing(with_torch_decided(found, matrix), matrix, markers).entries
    return as_environment(at_newest(items, matrix, markers) if newest else items, paths or (WISHES,), matrix)
