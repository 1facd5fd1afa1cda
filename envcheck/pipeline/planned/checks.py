"""The checks that judging a plan yields, and the question that it puts to the matrix."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.compat.answer import ask
from envcheck.compat.question import Answer
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.model.checks import PLAN, Check, Evidence, Fix, Location, Status, Subject
from envcheck.model.components import Bound, Component
from envcheck.model.snapshot import Environment, Planned
from envcheck.sources import Source


def asked(
    matrix: Matrix, name: str, version: str, machine: Sequence[Component], *, suggest: bool = True
) -> Answer | None:
    """What the matrix answers; None for what it cannot be asked."""
    try:
        return ask(matrix, [Component(name, (Bound("==", version),)), *machine], suggest=suggest)
    except UsageError:
        return None


def answered(item: Planned, environment: Environment, answer: Answer | None, of: str = "") -> Check:
    """The check that states the matrix's answer about a package; ``of`` tells which releases it stands for."""
    label = label_of(item)
    if answer is None:
        return check_of(
            item, environment, "unknown", f"Whether {label} fits is not known", "The matrix cannot read this version."
        )
    statuses: dict[str, Status] = {"compatible": "pass", "incompatible": "fail"}
    status = statuses.get(answer.verdict, "unknown")
    titles = {"pass": f"{label} fits", "fail": f"{label} does not fit{of}"}
    reasons = [reason for reason in answer.reasons if reason.verdict == answer.verdict]
    return check_of(
        item,
        environment,
        status,
        titles.get(status, f"Whether {label} fits is not known"),
        "; ".join(dict.fromkeys(reason.message for reason in reasons)),
        fixes=tuple(Fix(text=f"Use {text}.") for text in answer.suggestions[:3]) if status == "fail" else (),
        sources=tuple(dict.fromkeys(source for reason in reasons for source in reason.sources)),
    )


def left_open(item: Planned, environment: Environment, fits: Sequence[str] = (), others: Sequence[str] = ()) -> Check:
    """The plan does not say which release, and they do not all fit."""
    name = item.name
    why = item.problem or "the plan accepts several releases"
    told = f"; {name} {fits[-1]} fits" if fits else "; no release that it accepts is known to fit" if others else ""
    told += f", {name} {others[-1]} does not or is not known to" if fits and others else ""
    fixes = (Fix(text=f"Pin {name}=={fits[-1]}, which fits."),) if fits else (Fix(text=f"Pin {name} to one release."),)
    return check_of(
        item,
        environment,
        "unknown",
        f"Which release of {name} would be installed is open",
        f"{item.asked}: {why}{told}.",
        fixes=fixes,
    )


def label_of(item: Planned) -> str:
    """What the plan asks for, as text: ``torch 2.5.1``."""
    return item.asked.replace("==", " ") + (f" of {item.image}" if item.image else "")


def check_of(
    item: Planned,
    environment: Environment,
    status: Status,
    title: str,
    message: str,
    *,
    fixes: tuple[Fix, ...] = (),
    sources: tuple[Source, ...] = (),
) -> Check:
    """A check on one entry of the plan, at its line."""
    name = item.name or f"{item.source} {item.asked}"
    return Check(
        id=f"{PLAN}@{environment.key}:{name}",
        rule=PLAN,
        scope="env",
        layer="framework",
        subject=Subject(kind="framework", key=f"{environment.key}:{name}", environment=environment.key),
        status=status,
        title=title,
        message=message,
        evidence=(Evidence(what="planned", value=item.asked, source=item.source),),
        location=Location(file=item.file, line=item.line),
        fixes=fixes,
        sources=sources,
    )
