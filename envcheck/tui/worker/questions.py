"""What the worker process of ``Client`` answers: pure functions, called by name. Reports are passed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from envcheck.compat.answer import ask
from envcheck.diff import diff
from envcheck.errors import EnvcheckError
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.driver import branch_for_cuda
from envcheck.model.checks import Report
from envcheck.model.components import parse_components
from envcheck.model.snapshot import frameworks_in
from envcheck.redact import redact
from envcheck.report import Options, render
from envcheck.report.answers.diff import render_diff
from envcheck.report.answers.matrix import answer_lines
from envcheck.report.answers.rule import rule_sections
from envcheck.report.page.pen import Line, Pen
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.tui.widgets.choices import read_saved
from envcheck.tui.worker import grid as grids
from envcheck.tui.worker.process import WorkerLink


def serve(link: WorkerLink) -> None:
    """Answer one question after the other: the name of a function of this module, and its arguments."""
    while True:
        name, arguments = link.receive()
        link.send(answer(name, arguments))


def answer(name: str, arguments: tuple[object, ...]) -> object:
    """The result of a function of this module, or the EnvcheckError that it ended with."""
    try:
        return globals()[name](*arguments)
    except EnvcheckError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the next question may have an answer
        return EnvcheckError(f"envcheck failed: {type(error).__name__}: {error}")


def suggested(overlays: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Suggestions for each field of the matrix screen."""
    known = load_matrix(tuple(overlays))
    builds = [f"torch=={row.version}" for row in known.torch[::-1]]
    return {"gpu": [row.name for row in known.gpus], "package": [*builds, *grids.names(overlays)]}


def machine_fields(report: bytes) -> Mapping[str, str]:
    """The machine of a report, as values of the fields of the matrix screen."""
    found = msgspec.json.decode(report, type=Report)
    if found.snapshot is None:
        return {}
    facts = Facts(found.snapshot, load_matrix(found.overlays))
    gpu = next(iter(facts.usable_gpus), None)
    environment = facts.environment
    frameworks = frameworks_in(environment)
    torch = next((framework for framework in frameworks if framework.name == "torch" and framework.version), None)
    python = environment.python if environment and environment.python else ""
    # Where only the CUDA version that the driver supports is known: the branch that supports it.
    driver, platform = facts.snapshot.driver, facts.snapshot.platform
    release = (driver.release if driver else None) or ""
    if driver is not None and driver.cuda and not release:
        branch = branch_for_cuda(facts.matrix, driver.cuda, (platform.os if platform else None) or "linux")
        release = str(branch.branch) if branch else ""
    return {
        "gpu": (gpu.name or "") if gpu else "",
        "driver": release,
        "python": ".".join(python.split(".")[:2]),
        "package": f"torch=={torch.version}" if torch else "",
    }


def fits(stated: Sequence[str], overlays: Sequence[str], options: Options) -> list[Line]:
    """The page of ``matrix check`` about these components; raise UsageError."""
    components = tuple(component for text in stated for component in parse_components(text))
    return answer_lines(ask(load_matrix(tuple(overlays)), components), Pen(options), overlays)


def grid(package: str, overlays: Sequence[str]) -> grids.Grid | None:
    """The grid of ``package``, or of PyTorch where it has none."""
    return grids.grid(package, overlays) or grids.grid("torch", overlays)


row = grids.row


def rule_pages(names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """The text below each heading of the pages of these rules, by name."""
    return {rule.name: rule_sections(rule) for rule in all_rules() if rule.name in names}


def compared(name: str, report: bytes, options: Options) -> str:
    """The differences from the saved report ``name``, as text; raise UsageError."""
    found = msgspec.json.decode(report, type=Report)
    return render_diff(diff([(name, read_saved(name)), ("current report", found)]), options)


def rendered(report: bytes, form: str, homes: Sequence[str]) -> str:
    """A report in a format, redacted; ``private``: as JSON, not redacted."""
    found = msgspec.json.decode(report, type=Report)
    if form == "private":
        return render(found, "json")
    return render(found, form, Options(redact=True, homes=tuple(homes)))


def redacted(report: bytes, homes: Sequence[str]) -> bytes:
    """A redacted report, as JSON."""
    return msgspec.json.encode(redact(msgspec.json.decode(report, type=Report), homes))
