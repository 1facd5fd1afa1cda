"""What the worker process of ``Client`` answers: pure functions, called by name. Reports are passed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import msgspec

from envcheck.compat.answer import ask
from envcheck.compat.choose import evaluate
from envcheck.compat.package_needs import marks_of
from envcheck.diff.reports import diff
from envcheck.errors import EnvcheckError, UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.driver import branch_for_cuda
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.checks import Report
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Listing, Platform, Snapshot, items_in
from envcheck.pipeline.planned.solve import solve
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge, plan_judge
from envcheck.plans import read_plans
from envcheck.redact import redact
from envcheck.report import Options, render
from envcheck.report.answers.diff import render_diff
from envcheck.report.answers.matrix import answer_lines
from envcheck.report.answers.plan import commands, plan_lines
from envcheck.report.answers.rule import rule_sections
from envcheck.report.page.pen import Line, Pen
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.tui.widgets.choices import read_saved
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
    return {"gpu": [row.name for row in known.gpus], "package": [*builds, *names(overlays)]}


def machine_fields(report: bytes) -> Mapping[str, str]:
    """The machine of a report, as values of the fields of the matrix screen."""
    found = msgspec.json.decode(report, type=Report)
    if found.snapshot is None:
        return {}
    facts = Facts(found.snapshot, load_matrix(found.overlays))
    gpu = next(iter(facts.usable_gpus), None)
    torch, driver, release = facts.framework("torch"), facts.driver, facts.driver.release or ""
    # Where only the CUDA version that the driver supports is known: the branch that supports it.
    branch = branch_for_cuda(facts.matrix, driver.cuda, facts.os) if driver.cuda and not release else None
    return {
        "gpu": (gpu.name or "") if gpu else "",
        "driver": str(branch.branch) if branch else release,
        "python": ".".join((facts.python or "").split(".")[:2]),
        "package": f"torch=={torch.version}" if torch and torch.version else "",
    }


def fits(stated: Sequence[str], overlays: Sequence[str], options: Options) -> list[Line]:
    """The page of ``matrix check`` about these components, when quiet without sources; raise UsageError."""
    components = tuple(component for text in stated for component in parse_components(text))
    return answer_lines(ask(load_matrix(tuple(overlays)), components), Pen(options), overlays, cited=not options.quiet)


def to_install(
    report: bytes, machine: Sequence[str], wishes: Sequence[str], options: Options
) -> tuple[list[Line], str]:
    """The page of ``envcheck plan`` for a report's (or an assumed) machine, and its command; raise UsageError."""
    found = msgspec.json.decode(report, type=Report)
    matrix, snapshot = load_matrix(found.overlays), found.snapshot or Snapshot()
    assume = tuple(component for text in machine for component in parse_components(text))
    platform = snapshot.platform or Platform()
    python = next((part.exact for part in assume if part.name == "python"), None)
    markers = marks_of(python, platform.os or "linux", platform.machine)
    wanted = read_plans((), matrix, markers, wishes=wishes)
    none = msgspec.structs.replace(wanted, planned=(), distributions=(), frameworks=Listing())
    request = Request(assume=assume, overlays=found.overlays, planned=none)
    facts = judge(snapshot, request).snapshot or Snapshot()
    if not any(gpu.compute_capability for gpu in items_in(facts.gpus)):
        raise UsageError("no GPU is known here: name one in the field gpu")
    solution = solve(facts, wanted, matrix, plan_judge(facts, request))
    steps = commands(solution, ("uv", "pip", "install")) if solution.verdict != "incompatible" else []
    return plan_lines(solution, Pen(options)), " && ".join(steps)


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
    return msgspec.json.encode(redact(msgspec.json.decode(report, type=Report), homes))


_AROUND = 2  # Releases in the grid: the newest, and the neighbours of the requested one on both sides

Cell = Literal["fits", "no", "?", ""]
_CELLS: dict[str, Cell] = {"compatible": "fits", "incompatible": "no"}


@dataclass(frozen=True)
class Grid:
    """A grid that is not judged yet; ``stated[row][column]`` is the build of a cell, as a component."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    stated: tuple[tuple[str, ...], ...]


def grid(package: str, overlays: Sequence[str] = ()) -> Grid | None:
    """The grid of ``package`` (``torch``, ``torch==2.4.0+cu121``); None where the matrix has no release of it."""
    found = load_matrix(tuple(overlays))
    name, _, build = package.partition("==")
    name, version = name.strip().lower(), build.partition("+")[0].strip()
    builds: dict[str, dict[str, str]] = {}  # of each release: columns, and the component in each
    if name == "torch":
        wheels = {row.version: row.builds for row in found.torch[::-1]}
        versions = _shown([*wheels], version)
        tags = {_tag(each.cuda) for one in versions for each in wheels[one] if each.cuda}
        for one in versions:
            built = {_tag(each.cuda) for each in wheels[one] if (each.os, each.machine) == ("linux", "x86_64")}
            builds[one] = {tag: f"torch=={one}+{tag}" for tag in built}
    else:
        rows = [row for row in found.releases if row.name == name and _single(row)]
        versions = _shown(sorted({_single(row) for row in rows}, key=_by_number), version)
        for row in rows:
            tag, one = row.build or _tag(row.cuda or ""), _single(row)
            builds.setdefault(one, {})[tag] = f"{name}=={one}+{row.build}" if row.build else f"{name}=={one}"
        tags = {tag for one in versions for tag in builds[one]}
    columns = sorted(tags, key=_by_number)
    stated = tuple(tuple(builds[one].get(tag, "") for tag in columns) for one in versions)
    return Grid(name, tuple(versions), tuple(columns), stated) if versions else None


def _shown(newest_first: Sequence[str], version: str) -> list[str]:
    """The rows of the grid."""
    wanted = newest_first.index(version) if version in newest_first else 0
    return [row for place, row in enumerate(newest_first) if place < 16 or abs(place - wanted) <= _AROUND]


def row(stated: Sequence[str], fixed: Sequence[str], overlays: Sequence[str] = ()) -> tuple[Cell, ...]:
    """Whether each build of a row fits the ``fixed`` components; empty where there is no build."""

    def judged(build: str) -> Cell:
        with suppress(EnvcheckError):
            components = tuple(one for text in (*fixed, build) for one in parse_components(text))
            return _CELLS.get(evaluate(load_matrix(tuple(overlays)), components).verdict, "?")
        return "?"  # what cannot be read cannot be judged

    return tuple(judged(build) if build else "" for build in stated)


def names(overlays: Sequence[str] = ()) -> tuple[str, ...]:
    """The packages that have a grid."""
    found = load_matrix(tuple(overlays))
    return "torch", *sorted({found_row.name for found_row in found.releases if _single(found_row)})


def _single(row: ReleaseRow) -> str:
    """The release of a row about one release or one series (``==2.16.*``); else empty."""
    versions = row.versions.removeprefix("==").removesuffix(".*")
    return versions if row.versions.startswith("==") and not set(versions) & set("<>=,|*! ") else ""


def _tag(cuda: str) -> str:
    return f"cu{cuda.replace('.', '')}" if cuda else "any"


def _by_number(text: str) -> list[int]:
    """Newest first."""
    numbers = "".join(character if character.isdecimal() else " " for character in text)
    return [-int(number[:18]) for number in numbers.split()] or [1]
