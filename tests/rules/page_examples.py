"""The severity and the example on each rule's page: what rules print of the machines that the tests judge.

python -m tests.rules.page_examples     # write them into docs/rules

Of all findings of a rule the page shows one of facts before one of an error line, which may show another side of the
problem than the page describes; of these the most severe that is short enough, and the first of equals. Recorded
machines come first.
"""

import datetime as dt
import os
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from envcheck.importers import read_text
from envcheck.model.checks import Check, Report, Status
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Snapshot, Unreadable
from envcheck.pipeline.session import Request
from envcheck.pipeline.session import judge as report_on
from envcheck.report import Options
from envcheck.report.page.pen import Pen
from envcheck.report.page.verbose import check_lines
from envcheck.rules.catalog import all_rules
from envcheck.rules.documentation import FOLDER
from tests.cli.test_bad_input import ERROR, HEALTHY, STEPS
from tests.golden import reports as golden
from tests.installed import ROOT
from tests.plans.reading import judge as judge_plan
from tests.plans.reading import plan
from tests.plans.test_requirements import H100 as H100_ASSUMED
from tests.rules.engine.test_finding_sources import what_machines_show
from tests.rules.machines import but, geforce, machine, torch, venv, with_venv
from tests.rules.messages.test_pasted_facts import H100
from tests.rules.packages.packages_here import beside_torch, dist, having, load
from tests.rules.speed.test_not_measured import WHY, here, on, reported
from tests.rules.speed.test_not_measured import run as not_run
from tests.rules.trials.test_rules_trial import ran, trial_run, tried, with_runs

COMMAND = "python -m tests.rules.page_examples"
SEVERITIES: dict[Status, str] = {"fail": "failure", "warn": "warning", "note": "note"}
OPEN = "unknown: it only says what could not be judged"
_ORDER: tuple[Status, ...] = ("fail", "warn", "note", "unknown")
_COLUMNS = 84
"""A page indents it by eight."""
_SHORT = 20
"""Lines of a preferred example. Its commands, which are never broken, are as short as a page is wide."""
_NO_WAY = "No automatic fix"
"""A page shows how a fix looks, where any machine has one."""


class Example(NamedTuple):
    """What a page says of its rule's findings."""

    severity: str
    text: str


def recorded() -> Iterator[Report]:
    """Reports of recorded machines, of what can be asked, and of what leaves a question open."""
    yield from (
        make() for group in ("recorded", "bench", "constructed", "asked") for make in golden.GROUPS[group].values()
    )
    yield from (_planned(), golden._judged(Snapshot(), assume=parse_components(golden._UNKNOWN)))
    late = msgspec.structs.replace(golden._POLICY, today=dt.date(2027, 2, 1))
    yield golden._machine("h100-tried-and-measured", policy=late)
    yield reported(here(2), *on(1), runs=(not_run(0, "skipped", WHY), not_run(1)))
    yield report_on(read_text(HEALTHY + STEPS + ERROR + STEPS), Request())
    yield report_on(read_text(f"{H100}| memtest  | Fail  |"), Request())
    slow = trial_run("timed-out", None, name="deep.libraries", seconds=120.0)
    yield report_on(with_runs(tried(torch(trial=ran())), slow), Request())
    closed = Unreadable(source="os", path="/opt/venv/lib/python3.12/site-packages", problem="Permission denied")
    yield report_on(with_venv(machine(), but(venv(torch()), unreadable=(closed,))), Request())
    driver = Unreadable(source="os", path="/proc/driver/nvidia", problem="Permission denied")
    yield report_on(but(machine(), unreadable=(driver,)), Request())
    yield from (report_on(each, Request()) for each in constructed())


def constructed() -> Iterator[Snapshot]:
    """Machines with problems that neither a recorded machine nor the CASES of a test have."""
    path = "/opt/gcc/lib64/libstdc++.so.6.0.25"
    cxx = load(
        "libstdc++.so.6", lacks=("GLIBCXX_3.4.30",), offers="GLIBCXX_3.4.25", path=path, found_by="LD_LIBRARY_PATH"
    )
    libm = load("libm.so.6", lacks=("GLIBC_2.29",), offers="GLIBC_2.27")
    yield from (beside_torch(but(torch(), loads=(old,), loads_complete=True)) for old in (cxx, libm))
    volta = geforce("Tesla V100-SXM2-16GB", "7.0", "10de:1db1")
    yield with_venv(machine(volta), having(distributions=(dist("flash-attn", "2.6.3"),)))


def _planned() -> Report:
    """A plan with two packages that write the same files, by its path from the working folder."""
    before = Path.cwd()
    with TemporaryDirectory() as place:
        os.chdir(place)
        try:
            return judge_plan(plan(Path(), requirements__txt="torch==2.2.0\nnvidia-nccl-cu11==2.19.3\n"), H100_ASSUMED)
        finally:
            os.chdir(before)


def findings() -> Iterator[tuple[Check, Report | Snapshot]]:
    """What checks report of every machine, with the report, or the facts of which one can be made."""
    for report in recorded():
        yield from ((check, report) for check in report.checks if check.status not in ("pass", "skipped"))
    yield from what_machines_show()


@cache
def examples() -> dict[str, Example]:
    """By rule."""
    found: dict[str, list[tuple[Check, Report | Snapshot]]] = {rule.name: [] for rule in all_rules()}
    for check, seen_on in findings():
        if not check.ignored:
            found[check.rule].append((check, seen_on))
    return {name: _example(candidates) for name, candidates in found.items()}


def _example(candidates: list[tuple[Check, Report | Snapshot]]) -> Example:
    statuses = {check.judged or check.status for check, _ in candidates}
    words = [word for status, word in SEVERITIES.items() if status in statuses]
    severity = " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]])) or OPEN
    ordered = sorted(candidates, key=lambda each: _rank(each[0]))
    found, short = list[str](), list[str]()
    for text in filter(None, (_shown(check, seen_on) for check, seen_on in ordered[:40])):
        found.append(text)
        if text.count("\n") < _SHORT and max(map(len, text.splitlines())) <= _COLUMNS:
            short.append(text)
            if _NO_WAY not in text:
                return Example(severity, text)
    return Example(severity, short[0] if short else min(found, key=len, default=""))


def _rank(check: Check) -> tuple[bool, bool, int]:
    """What a page shows first is lowest: a problem that facts show, of which no configuration changed the status."""
    says_less = check.status == "unknown" or (check.status == "note" and not check.fixes)
    from_line = any(part.what == "error line" for part in check.evidence)
    return says_less or from_line, check.judged is not None, _ORDER.index(check.status)


def _shown(check: Check, seen_on: Report | Snapshot) -> str:
    """What ``envcheck check -v`` prints of it, but for the sources, which the page has; nothing where a whole report
    has no such finding.
    """
    report = seen_on if isinstance(seen_on, Report) else report_on(seen_on, Request())
    found = next((each for each in report.checks if (each.id, each.status) == (check.id, check.status)), None)
    if found is None:
        return ""
    pen = Pen(Options(width=_COLUMNS))
    return pen.show(check_lines((msgspec.structs.replace(found, sources=()),), report, pen)).rstrip("\n")


def with_example(name: str, page: str) -> str:
    """The page of a rule with its severity and its example."""
    found = examples()[name]
    sections = {"Severity": f"{found.severity.capitalize()}."}
    if found.text:
        sections["Example"] = textwrap.indent(found.text, "    ")
    kept = re.sub(r"(?ms)^## (?:Severity|Example)\n.*?(?=^## )", "", page)
    made = "".join(f"## {heading}\n\n{body}\n\n" for heading, body in sections.items())
    return re.sub(r"(?m)^(?=## (?:Related rules|Sources)$)", lambda _: made, kept, count=1)


def main() -> None:
    for file in sorted((ROOT / FOLDER).glob("*.md")):
        file.write_text(with_example(file.stem, file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
