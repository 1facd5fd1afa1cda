"""Read pasted text into a partial Snapshot: by the importers in the modules of ``formats/`` and ``prose/``, or rows.

What a single line tells is a row of ``matrix/readings.toml``, in a format of its own or in one that is also code.

    @importer("torch collect_env", Rank.OUTPUT, recognise=_is_report)
    def read(paste: Paste) -> Snapshot: ...        # what the text says; raises UnreadablePiece where it breaks off

Importers gather and never judge, like probes: they compare no versions, and what a tool could not find out ("Could not
collect", "N/A") stays unknown. A paste may contain several pieces; each importer extracts its own.
"""

from __future__ import annotations

import importlib
from functools import cache

import msgspec

from envcheck.bundle import modules_below
from envcheck.errors import UsageError
from envcheck.importers.assemble import assemble, with_packages
from envcheck.importers.importer import IMPORTERS, Importer, Rank, UnreadablePiece
from envcheck.importers.paste import SOURCE, TEXT_LIMIT, Paste, left_out_run
from envcheck.importers.prose.mentions import speaks_of_field
from envcheck.importers.readings import reading_importers
from envcheck.model.merge import merge
from envcheck.model.snapshot import PASTED_TITLE, ProbeRun, Snapshot

__all__ = ["TEXT_LIMIT", "Importer", "importers", "list_names", "read_text"]

_PASTE_WHAT = (
    "paste what `python -m torch.utils.collect_env`, `nvidia-smi`, `nvidia-smi -q -x` or `pip list` prints, "
    "and the error message"
)


@cache
def importers() -> tuple[Importer, ...]:
    """All importers, the most trusted first."""
    for name in modules_below(__name__, __path__):
        importlib.import_module(name)
    every = [*IMPORTERS, *reading_importers({importer.name for importer in IMPORTERS})]
    return tuple(sorted(every, key=lambda importer: (importer.rank, importer.name)))


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
        both = with_packages(merge([merged, part]), part)
        if importer.rank is Rank.MENTION:
            # A mention may be about anything: that it differs is no disagreement.
            both = msgspec.structs.replace(both, disagreements=merged.disagreements)
            if assemble(both) == assemble(merged):
                continue
        merged = both
        runs += [run, *left_out]
    snapshot = assemble(merged)
    without_facts = msgspec.structs.replace(snapshot, told=None) == Snapshot()
    if without_facts and not speaks_of_field("\n".join(paste.statements)):
        problems = "; ".join(f"{run.name}: {run.detail}" for run in runs if run.detail)
        understood = f" ({problems})" if problems else ""
        what = f"nothing in the text was recognised{understood}" if paste.text.strip() else "the text is empty"
        raise UsageError(f"{what}: {_PASTE_WHAT}")
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
    except UnreadablePiece as problem:
        run = ProbeRun(name=importer.name, title=title, status="failed", detail=str(problem))
        return problem.partial, run, ()
    left_out = tuple(run for run in part.runs if run.name == SOURCE)
    detail = "; ".join(run.detail for run in part.runs if run.name != SOURCE)
    run = ProbeRun(name=importer.name, title=title, status="ok", detail=detail)
    return msgspec.structs.replace(part, runs=()), run, left_out
