"""``envcheck plan``: choose what to install here, and say how."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from shutil import which
from typing import TYPE_CHECKING

from msgspec.structs import replace

from envcheck.cli.deliver import page
from envcheck.cli.request import planned, request_of, targets_of
from envcheck.cli.verbs.matrix import STATUS
from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.model.components import Component, parse_components
from envcheck.model.snapshot import Environment, Listing, Platform, Snapshot, items_in
from envcheck.pipeline import session
from envcheck.pipeline.assume import assumes_machine
from envcheck.text.clean import brief
from envcheck.text.streams import print_text

if TYPE_CHECKING:
    from envcheck.knowledge.matrix import Matrix
    from envcheck.knowledge.relations.fit import FitVerdict
    from envcheck.model.checks import Report
    from envcheck.pipeline.planned.solution import Solution
    from envcheck.pipeline.request import Request

_LONGEST_S = 300.0  # How long uv may take
_MOST_ROUNDS = 3  # How often uv is asked: again, where it chose what does not run here


def run(options: Namespace) -> int:
    """Print the set; the exit status says whether one fits. Raises UsageError for what is no requirement."""
    from envcheck.pipeline.planned.solve import solve
    from envcheck.plans.readers.pyproject import uv_settings
    from envcheck.report.answers import plan

    if options.repair is not None:
        return _repair(options)
    options.plan, options.newest = options.requirement or [], False
    if not (options.wishes or options.plan):
        raise UsageError("nothing to install is named: envcheck plan torch vllm, or -r FILE")
    if named := next((file for file in options.plan if file.startswith("@")), None):
        raise UsageError(f"-r {named}: name files; check --plan takes the plans of a configuration")
    python = parse_components(f"python=={options.python}") if options.python else ()
    assume = (*(options.assume or ()), *python)
    assume = _for_one_machine(options, assume, "a set is")
    request = planned(
        request_of(options, assume=assume, targets=(), scopes=frozenset({"node", "env"})), options, assume
    )
    wishes = request.planned or Environment(source="plan", key="")
    for each in wishes.planned or ():
        if not each.name or each.conda is not None or each.image is not None:
            raise UsageError(f"{each.source}: {brief(each.asked)} has no releases on a package index to choose from")
    empty = replace(wishes, planned=(), distributions=(), frameworks=Listing())
    facts = session.check(replace(request, planned=empty)).snapshot or Snapshot()
    if not any(gpu.compute_capability for gpu in items_in(facts.gpus)):
        raise UsageError("no GPU is known here: name the machine, --assume gpu==H100,driver==550.54.14, or --target")
    judge = session.plan_judge(facts, request)
    matrix = load_matrix(request.overlays)
    found = solve(facts, wishes, matrix, judge, uv_settings(options.plan, matrix))
    if options.resolve and found.verdict != "incompatible":
        found = _resolved(found, facts, request, judge)
    if found.compiling:
        found = replace(found, compiling=f"{found.compiling}; {_compilers_here(request)}")
    print_text(plan.render(found, options.format, page(options)), syntax="json" if options.format == "json" else "text")
    return STATUS[found.verdict]


def _compilers_here(request: Request) -> str:
    """Which compilers this machine has, if the set is for it."""
    if assumes_machine(request.assume):
        return "whether they are there is not known of an assumed machine"
    own = replace(request, planned=None, probes=("toolkits",))
    kits = items_in(session.gather_here(own).toolkits)
    found = [f"nvcc of CUDA {kit.version or '(unread)'} ({kit.nvcc})" for kit in kits if kit.nvcc]
    found.append(which("c++") or which("g++") or "no C++ compiler on PATH")
    return f"here: {', '.join(found if len(found) > 1 else ['no nvcc', *found])}"


def _for_one_machine(options: Namespace, assume: tuple[Component, ...], what: str) -> tuple[Component, ...]:
    """What is assumed, with what the target says; raise UsageError for several targets."""
    targets = targets_of(options, assume)
    if len(targets) > 1:
        raise UsageError(f"--target: {len(targets)} targets, and {what} for one machine: name one of them")
    return (*(targets[0].assume if targets else ()), *assume)


def _repair(options: Namespace) -> int:
    """Print what to install over an environment."""
    from envcheck.pipeline.planned.repair import repair_installed
    from envcheck.report.answers import plan

    if options.wishes:
        raise UsageError("--repair changes what is installed: envcheck plan REQUIREMENT chooses a new set")
    python = (options.repair,) if options.repair else ()
    assume = _for_one_machine(options, tuple(options.assume or ()), "an environment is repaired")
    request = request_of(options, python=python, assume=assume, targets=(), scopes=frozenset({"node", "env"}))
    report = session.check(request)
    facts = replace(report.snapshot or Snapshot(), environments=None)
    found = repair_installed(report, load_matrix(request.overlays), session.plan_judge(facts, request))
    print_text(plan.render(found, options.format, page(options)), syntax="json" if options.format == "json" else "text")
    return STATUS[found.verdict]


def _resolved(found: Solution, facts: Snapshot, request: Request, judge: Callable[[Environment], Report]) -> Solution:
    """The set with all that uv would install beside it, judged again."""
    from envcheck.collect.resolve import resolve
    from envcheck.compat.package_needs import marks_of, requirement_name
    from envcheck.compat.question import Reason
    from envcheck.pipeline.planned.checks import machine_of
    from envcheck.pipeline.planned.sets import constraint
    from envcheck.pipeline.planned.solve import package_of
    from envcheck.plans import read_plans
    from envcheck.report.answers.plan import pin_of
    from envcheck.rules.api import Facts

    matrix = load_matrix(request.overlays)
    python = next((part.exact for part in request.assume if part.name == "python"), None)
    platform = facts.platform or Platform()
    options = _options(found, platform, python, matrix)
    machine, markers = machine_of(Facts(facts, matrix)), marks_of(python, platform.os or "linux", platform.machine)
    overridden = {requirement_name(each.requirement) for each in found.overrides}
    own = {each.name for each in found.packages} | overridden
    began = time.monotonic()
    for _ in range(_MOST_ROUNDS):
        given = {"overrides": found.overrides, "constraints": found.constraints}
        files = {option: [each.requirement for each in lines] for option, lines in given.items()}
        uv = resolve("\n".join(map(pin_of, found.packages)), options, request.timeout or _LONGEST_S, files)
        plan = read_plans((), matrix, markers, wishes=uv.pins)
        entries = [replace(each, together=None) if each.name in overridden else each for each in plan.planned or ()]
        report = judge(replace(plan, planned=tuple(entries)))
        # What is required by packages that no row knows may not run here, where an older release does.
        failing = {package_of(each) for each in report.checks if each.status == "fail"} - own
        others = [replace(each, version=None, bounds=f"<={each.version}") for each in entries if each.name in failing]
        more = [one for each in others for one in constraint(each, matrix, markers, machine)]
        if not more:
            break
        found = replace(found, constraints=(*found.constraints, *more))
    seconds = round(time.monotonic() - began, 1)
    verdicts: dict[str, FitVerdict] = {"fail": "incompatible", "unknown": "unknown"}
    verdict = verdicts.get(report.verdict, found.verdict)
    worst = [each for each in report.checks if each.status == report.verdict and verdict != found.verdict]
    reasons = [Reason(verdict=verdict, message=f"{each.title}: {each.message}", sources=each.sources) for each in worst]
    found = replace(found, verdict=verdict, reasons=(*reasons, *found.reasons))
    return replace(found, resolved=tuple(uv.pins), resolved_s=seconds, download=uv.size, unsized=uv.unsized)


def _options(found: Solution, platform: Platform, python: str | None, matrix: Matrix) -> list[str]:
    """What uv is told of the machine and the index."""
    from envcheck.compat.wheels import wheels_of
    from envcheck.knowledge.names import canonical
    from envcheck.knowledge.specifier import numbers_in, parse_version
    from envcheck.rules.fixes.frameworks import INDEX

    options = ["--python-version", python] if python else []
    if platform.os == "linux" and platform.machine:
        kind, _, release = (platform.libc or "").partition(" ")
        releases = ((canonical(each.name), parse_version(each.version)) for each in found.packages)
        wheels = (row for name, version in releases if version for row in wheels_of(matrix, name, version))
        needed = {row.glibc[platform.machine] for row in wheels if platform.machine in row.glibc}
        # Of an assumed machine uv would take 2.28, and find no wheel for a newer one.
        release = release if kind == "glibc" else max(needed | {"2.28"}, key=numbers_in)
        tag = f"manylinux_{release.replace('.', '_')}" if kind in ("glibc", "") else "unknown-linux-musl"
        options += ["--python-platform", f"{platform.machine}-{tag}"]
    if found.tag:
        options += ["--extra-index-url", f"{INDEX}{found.tag}", "--index-strategy", "unsafe-best-match"]
    return options
