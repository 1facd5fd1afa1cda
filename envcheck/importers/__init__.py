"""Read pasted text into a partial Snapshot. Each importer is one file, found by listing; ``kit/`` holds helpers.

An importer has a ``NAME``, a ``RANK`` and one or two functions of a ``Paste``:

    NAME = "torch collect_env"
    RANK = Rank.OUTPUT
    def read(paste: Paste) -> Snapshot: ...        # what the text says; raises Unreadable when nothing can be got
    def recognise(paste: Paste) -> bool: ...       # whether it is read at all, where an empty Snapshot does not tell

Importers gather and never judge, like probes: they compare no versions, and what a tool could not find out ("Could not
collect", "N/A") stays unknown. A paste may contain several pieces; each importer extracts its own.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import msgspec

from envcheck.errors import UsageError
from envcheck.importers.kit.assemble import assemble, with_packages
from envcheck.importers.kit.paste import SOURCE, TEXT_LIMIT, Paste, left_out_run
from envcheck.importers.kit.protocol import Rank, Unreadable
from envcheck.importers.kit.spoken import speaks_of_field
from envcheck.snapshot import PASTED_TITLE, ProbeRun, Snapshot
from envcheck.snapshot.merge import merge

__all__ = ["TEXT_LIMIT", "Importer", "importers", "list_names", "read_text"]

_PASTE_WHAT = (
    "paste what `python -m torch.utils.collect_env`, `nvidia-smi`, `nvidia-smi -q -x` or `pip list` prints, "
    "and the error message"
)


@dataclass(frozen=True)
class Importer:
    """A reader of one format."""

    name: str
    rank: Rank
    recognise: Callable[[Paste], bool] | None
    read: Callable[[Paste], Snapshot]


@cache
def importers() -> tuple[Importer, ...]:
    """All importers, the most trusted first."""
    modules = [importlib.import_module(name) for name in _modules()]
    found = [Importer(module.NAME, module.RANK, getattr(module, "recognise", None), module.read) for module in modules]
    return tuple(sorted(found, key=lambda importer: (importer.rank, importer.name)))


def _modules() -> Iterator[str]:
    """The importers' modules, here and in the folders of a subject or a program with several."""
    for entry in pkgutil.iter_modules(__path__):
        name = f"{__name__}.{entry.name}"
        if not entry.ispkg:
            yield name
        elif entry.name != "kit":
            package = importlib.import_module(name)
            yield from (f"{name}.{form.name}" for form in pkgutil.iter_modules(package.__path__))


def list_names() -> tuple[str, ...]:
    """The names of the formats that can be read."""
    return tuple(importer.name for importer in importers())


def read_text(text: str) -> Snapshot:
    """The facts in ``text`` as one partial Snapshot, with its records marked ``pasted text``.

    ``runs`` has a row for each format that was recognised, and says what was not read. Raises UsageError when nothing
    in the text is recognised and it has no word of this field.
    """
    paste = Paste.of(text)
    merged = Snapshot()
    runs: list[ProbeRun] = []
    for importer in importers():
        if importer.recognise is not None and not importer.recognise(paste):
            continue
        part, run, left_out = _read(importer, paste)
        if importer.recognise is None and part == Snapshot() and run.status == "ok":
            continue
        told = with_packages(merge([merged, part]), part)
        if importer.rank is Rank.MENTION:
            # A mention may be about anything: that it differs is no disagreement.
            told = msgspec.structs.replace(told, disagreements=merged.disagreements)
            if assemble(told) == assemble(merged):
                continue
        merged = told
        runs += [run, *left_out]
    snapshot = assemble(merged)
    without_facts = msgspec.structs.replace(snapshot, told=None) == Snapshot()
    if without_facts and not speaks_of_field("\n".join(paste.statements)):
        raise UsageError(_not_recognised(paste, runs))
    if without_facts:
        runs.append(ProbeRun(name="words", title=f"{PASTED_TITLE}words of this field", status="ok"))
    if paste.unread:
        runs.append(left_out_run(paste.unread))
    return msgspec.structs.replace(snapshot, runs=snapshot.runs + tuple(runs))


def _read(importer: Importer, paste: Paste) -> tuple[Snapshot, ProbeRun, tuple[ProbeRun, ...]]:
    """The importer's facts, how it ended, and what it had to leave out."""
    title = f"{PASTED_TITLE}{importer.name}"
    try:
        part = importer.read(paste)
    except Unreadable as problem:
        run = ProbeRun(name=importer.name, title=title, status="failed", detail=str(problem))
        return problem.partial, run, ()
    left_out = tuple(run for run in part.runs if run.name == SOURCE)
    told = "; ".join(run.detail for run in part.runs if run.name != SOURCE)
    run = ProbeRun(name=importer.name, title=title, status="ok", detail=told)
    return msgspec.structs.replace(part, runs=()), run, left_out


def _not_recognised(paste: Paste, runs: list[ProbeRun]) -> str:
    if not paste.text.strip():
        return f"the text is empty: {_PASTE_WHAT}"
    problems = "; ".join(f"{run.name}: {run.detail}" for run in runs if run.detail)
    understood = f" ({problems})" if problems else ""
    return f"nothing in the text was recognised{understood}: {_PASTE_WHAT}"
