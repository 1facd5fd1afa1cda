"""Questions that take longer than a key may wait, answered in a process of its own: pure functions, all of them.

A report comes as its JSON, which crosses a pipe faster than a pickle of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from envcheck.checks import Report
from envcheck.compat.load import load_matrix
from envcheck.compat.performance.expected import quantities
from envcheck.compat.question.answer import ask
from envcheck.compat.relations.driver_cuda import branch_that_speaks
from envcheck.components import parse_components
from envcheck.diff import diff
from envcheck.errors import EnvcheckError, UsageError
from envcheck.redact import redact
from envcheck.report import Options, render
from envcheck.report.answers.diff import render_diff
from envcheck.report.answers.matrix import answer_lines
from envcheck.report.page.pen import Line, Pen
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.tui.widgets.choices import read_saved
from envcheck.tui.worker import grid as grids
from envcheck.tui.worker.process import Link


def serve(link: Link) -> None:
    """Answer one question after the other: a function of this module by its name, and its arguments."""
    while True:
        name, arguments = link.receive()
        link.send(_answer_or_error(name, arguments))


def _answer_or_error(name: str, arguments: tuple[object, ...]) -> object:
    try:
        return globals()[name](*arguments)
    except EnvcheckError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the next question may have an answer
        return EnvcheckError(f"envcheck broke: {type(error).__name__}: {error}")


def suggested(overlays: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """What can be asked about, by the name of the field."""
    known = load_matrix(tuple(overlays))
    builds = [f"torch=={row.version}" for row in known.torch[::-1]]
    return {"gpu": [row.name for row in known.gpus], "package": [*builds, *grids.names(overlays)]}


def known_of(report: bytes) -> Mapping[str, str]:
    """The machine of a report, as the fields take it."""
    found = msgspec.json.decode(report, type=Report)
    if found.snapshot is None:
        return {}
    facts = Facts(found.snapshot, load_matrix(found.overlays))
    gpu = next(iter(facts.usable_gpus), None)
    environment = facts.environment
    frameworks = environment.frameworks.items if environment and environment.frameworks else ()
    torch = next((framework for framework in frameworks if framework.name == "torch" and framework.version), None)
    python = environment.python if environment and environment.python else ""
    return {
        "gpu": (gpu.name or "") if gpu else "",
        "driver": _driver(facts),
        "python": ".".join(python.split(".")[:2]),
        "package": f"torch=={torch.version}" if torch else "",
    }


def _driver(facts: Facts) -> str:
    """Its release; where only the CUDA that it speaks is known, the branch that speaks it."""
    driver, platform = facts.snapshot.driver, facts.snapshot.platform
    if driver is None or driver.release or not driver.cuda:
        return (driver.release or "") if driver else ""
    row = branch_that_speaks(facts.tables, driver.cuda, (platform.os if platform else None) or "linux")
    return str(row.branch) if row else ""


def fits(stated: Sequence[str], overlays: Sequence[str], options: Options) -> list[Line]:
    """Whether these components fit, as the page of ``matrix check``; raise UsageError."""
    components = tuple(component for text in stated for component in parse_components(text))
    answer = ask(load_matrix(tuple(overlays)), components)
    return answer_lines(answer, Pen(options), overlays)


def grid(package: str, overlays: Sequence[str]) -> grids.Grid | None:
    """The grid of ``package``, or PyTorch's where there is none."""
    return grids.grid(package, overlays) or grids.grid("torch", overlays)


def row(stated: Sequence[str], fixed: Sequence[str], overlays: Sequence[str]) -> Sequence[grids.Cell]:
    """A row of it."""
    return grids.row(stated, fixed, overlays)


def rule_pages() -> Mapping[str, str]:
    """What each rule says of itself, by its name."""
    return {rule.name: rule.documentation for rule in all_rules()}


def compared(name: str, report: bytes, options: Options) -> str:
    """What is otherwise than in the saved report ``name``, as text; raise UsageError."""
    found = msgspec.json.decode(report, type=Report)
    return render_diff(diff([(name, read_saved(name)), ("what is shown", found)]), options)


def rendered(report: bytes, form: str, homes: Sequence[str]) -> str:
    """A report in a format; ``private``: as JSON, and not redacted."""
    found = msgspec.json.decode(report, type=Report)
    if form == "private":
        return render(found, "json")
    return render(redact(found, homes), form, Options(home=""))


def redacted(report: bytes, homes: Sequence[str]) -> bytes:
    """A report under pseudonyms."""
    return msgspec.json.encode(redact(msgspec.json.decode(report, type=Report), homes))


def named(wanted: Sequence[str]) -> None:
    """Raise UsageError for a quantity that is not measured."""
    known = quantities(load_matrix())
    for name in wanted:
        if name not in known:
            raise UsageError(f"there is no quantity {name!r}; choose from {', '.join(sorted(known))}")
