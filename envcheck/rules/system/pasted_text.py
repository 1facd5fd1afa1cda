"""Whether a pasted text was read completely: what was not read was not found healthy."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.knowledge.error_lines import matches_fragment
from envcheck.model.checks import Evidence, Fix, Missing
from envcheck.model.snapshot import PASTED, PASTED_TITLE, ObservedError, Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.machine import plural
from envcheck.rules.fixes.remedies import remedy_of
from envcheck.rules.messages.observed import line_evidence, observed_problems

_ADVICE = "Paste only the part around the error, with the lines that state the versions"
_SHOWN = 3


@rule(layer="framework", always=True, ground="text")
def text_not_read_whole(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """The pasted text was not read completely."""
    runs = [run for run in snapshot.runs if run.name == PASTED]
    if not runs:
        return None
    return Outcome(
        status="unknown",
        title="The text was read only in part",
        message=f"Part of the text was not read: {' and '.join(run.detail for run in runs)}. {_ADVICE}.",
        evidence=tuple(Evidence("read", run.detail, run.name) for run in runs),
        fixes=(Fix(_ADVICE),),
        missing=(Missing(fact="rest of the text"),),
    )


def _unnamed(facts: Facts) -> list[ObservedError]:
    """The lines of this field that tell an error which no row knows, and those of a program's end or a bare failure."""
    return [
        error
        for error in facts.snapshot.observed_errors
        if matches_fragment("tool-reports-failure", error.text)
        or matches_fragment("end-of-a-program", error.text)
        or matches_fragment("slow-or-hanging", error.text)
        or (matches_fragment("of-this-field", error.text) and matches_fragment("error-of-a-program", error.text))
    ]


def _leaves_open(snapshot: Snapshot, facts: Facts) -> bool:
    """Whether a text was read that names no problem, and tells too little, no GPU, or has an unknown error."""
    named = [each.line.status for each in observed_problems(facts)]
    if not any(run.title.startswith(PASTED_TITLE) for run in snapshot.runs) or {*named} - {"note"}:
        return False
    if named:  # remarks do not say why a program is slow
        return facts.complains_of_speed
    if _unnamed(facts) or not facts.gpus:
        return True
    # Nothing to compare: a GPU that is only named, a driver or a toolkit, alone or none at all.
    versions = [each.version for each in facts.frameworks if each.version]
    listed = versions or any(gpu.uuid or gpu.pci_bus_id for gpu in facts.gpus)
    return not listed and len({thing.split()[0] for thing in _understood(facts)}) <= 1


def _understood(facts: Facts) -> Iterator[str]:
    yield from dict.fromkeys(f"GPU {gpu.name}" for gpu in facts.gpus if gpu.name)
    if facts.gpus and not any(gpu.name for gpu in facts.gpus):
        yield plural(len(facts.gpus), "GPU")
    if facts.driver.release:
        yield f"driver {facts.driver.release}"
    for framework in facts.frameworks:
        yield f"{framework.title} on the CPU" if framework.gpu_available is False else framework.title
    yield from (f"CUDA toolkit {toolkit.version}" for toolkit in items_in(facts.snapshot.toolkits) if toolkit.version)


@rule(layer="framework", always=True, arises=_leaves_open, ground="text")
def text_tells_too_little(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The pasted text says too little for a diagnosis."""
    understood = list(_understood(facts))[:8]
    wanted = ["what nvidia-smi prints"] if not facts.gpus or facts.driver.release is None else []
    if not facts.frameworks:
        wanted.append("what pip list or python -m torch.utils.collect_env prints")
    unknown = _unnamed(facts)[-_SHOWN:]
    shown = tuple(line_evidence(error, "unknown error") for error in unknown)
    known = f"Understood: {', '.join(understood)}" if understood else "No version and no GPU was found in it"
    why, look = "envcheck does not know its error" if unknown else "it names no error", None
    if unknown and all(matches_fragment("slow-or-hanging", error.text) for error in unknown):
        why = "a program is slow or hangs, and it does not show why"
        look = remedy_of("text-tells-too-little", shown, facts)  # what would decide it, by what the text tells
    wanted.append("the whole error message with its traceback")
    return Outcome(
        status="unknown",
        title="The text does not show the cause",
        message=f"{known}; {why}. " + (look.message if look else f"Paste {', '.join(wanted)}."),
        evidence=shown,
        fixes=look.fixes if look else tuple(Fix(f"Paste {what}") for what in wanted[:1]),
        sources=look.sources if look else (),
        missing=() if look else (Missing(fact="cause in the text"),),
    )
