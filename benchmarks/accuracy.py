"""How often the diagnosis of pasted text is right: primary causes and false alarms over a file of known cases.

    python benchmarks/accuracy.py PATH/cases.jsonl [--show ID] [--json] [--without-errors]

envcheck must be installed in that Python's environment (or ``PYTHONPATH`` name the checkout).
A case is a line of JSON with ``id``, ``kind`` (layout of the text), ``dump`` and ``error`` (the text), ``problem`` (the
root cause by the name of its rule, ``none`` for a healthy machine), ``also_right`` (other names that a careful reader
would accept) and ``severity``: ``fault`` is right when the primary cause has one of the names; ``remark`` when it is
told as a note (a warning is tolerated, a failure is wrong); ``healthy`` when no check warns or fails.

``--without-errors`` leaves out each line that speaks of a failure: what is left are facts, and the cause must follow
from them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from envcheck.enrich.complete import complete
from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.importers.formats.error_lines import is_error
from envcheck.knowledge.error_lines import named_by
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Check, Scope
from envcheck.model.snapshot import Snapshot
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import evaluate

SCOPES: frozenset[Scope] = frozenset({"node", "container", "env"})
HEALTHY = "none"

Result = Literal["right", "tolerated", "wrong", "missed", "quiet", "false alarm"]
RIGHT: frozenset[Result] = frozenset({"right", "tolerated", "quiet"})


class Case(msgspec.Struct, frozen=True):
    """A known case; other fields of the line are not needed."""

    id: str
    kind: str
    dump: str
    error: str
    problem: str
    severity: Literal["fault", "remark", "healthy"]
    also_right: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.dump}\n{self.error}"

    def without_errors(self) -> Case:
        """The case without the lines that speak of a failure."""
        kept = (line for line in self.dump.split("\n") if not is_error(line) and named_by(line) is None)
        return msgspec.structs.replace(self, dump="\n".join(kept), error="")

    @property
    def accepted(self) -> frozenset[str]:
        return frozenset((self.problem, *self.also_right))


class Outcome(msgspec.Struct, frozen=True):
    """What envcheck made of a case."""

    id: str
    kind: str
    problem: str
    severity: str
    result: Result
    recognised: bool
    found: str | None  # Rule of the primary cause; for a healthy case, of the first alarm
    alarms: tuple[str, ...]  # ``rule: status`` of every warning and failure


def has_rule(outcome: Outcome) -> bool:
    """Whether there is a rule of the problem's name: without one it cannot be found."""
    return find_rule(outcome.problem) is not None


def judge(text: str) -> tuple[Snapshot | None, tuple[Check, ...]]:
    """The facts and checks of a text; no facts where nothing in it was recognised."""
    try:
        snapshot = complete(read_text(text), load_matrix())
    except UsageError:
        return None, ()
    return snapshot, evaluate(Facts(snapshot, load_matrix()), all_rules(), SCOPES)


def assess(case: Case) -> Outcome:
    snapshot, checks = judge(case.text)
    alarms = tuple(check for check in checks if check.status in ("warn", "fail"))
    cause = primary(checks)
    return Outcome(
        id=case.id,
        kind=case.kind,
        problem=case.problem,
        severity=case.severity,
        result=_result(case, checks, alarms, cause),
        recognised=snapshot is not None,
        found=cause.rule if cause else None,
        alarms=tuple(f"{check.rule}: {check.status}" for check in alarms),
    )


def _result(case: Case, checks: Sequence[Check], alarms: Sequence[Check], cause: Check | None) -> Result:
    if case.problem == HEALTHY:
        return "false alarm" if alarms else "quiet"
    if case.severity == "remark":
        return _result_of_remark(case, checks, alarms)
    if cause is None:
        return "missed"
    return "right" if cause.rule in case.accepted else "wrong"


def _result_of_remark(case: Case, checks: Sequence[Check], alarms: Sequence[Check]) -> Result:
    """A remark is a note; anything else that fails, or warns of another matter, is an alarm about nothing."""
    if any(check.status == "fail" or check.rule not in case.accepted for check in alarms):
        return "wrong"
    told = [check for check in checks if check.rule in case.accepted and check.status in ("note", "warn")]
    if not told:
        return "missed"
    return "right" if all(check.status == "note" for check in told) else "tolerated"


# --- showing ------------------------------------------------------------------------------------------------------


def summary(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Number of cases by result."""
    counts = Counter(outcome.result for outcome in outcomes)
    return {result: counts[result] for result in ("right", "tolerated", "wrong", "missed", "quiet", "false alarm")}


def _print_report(outcomes: Sequence[Outcome]) -> None:
    faults = [outcome for outcome in outcomes if outcome.severity == "fault"]
    remarks = [outcome for outcome in outcomes if outcome.severity == "remark"]
    healthy = [outcome for outcome in outcomes if outcome.severity == "healthy"]
    with_rule = [outcome for outcome in faults if has_rule(outcome)]
    _print_line("faults", faults)
    _print_line("  of these, with a rule of their name", with_rule)
    _print_line("remarks", remarks)
    _print_line("healthy", healthy)
    unread = [outcome.id for outcome in outcomes if not outcome.recognised]
    print(f"nothing recognised in {len(unread)} of {len(outcomes)} texts")
    _print_table("by layout of the text", outcomes, lambda outcome: outcome.kind)
    _print_table("by problem", outcomes, lambda outcome: outcome.problem)
    _print_cases("false alarms", [outcome for outcome in outcomes if outcome.result == "false alarm"])
    _print_cases("wrong primary cause", [outcome for outcome in outcomes if outcome.result == "wrong"])
    _print_cases("missed though there is a rule", [found for found in with_rule if found.result == "missed"])


def _print_line(title: str, group: Sequence[Outcome]) -> None:
    right = sum(outcome.result in RIGHT for outcome in group)
    counts = ", ".join(f"{count} {result}" for result, count in summary(group).items() if count)
    print(f"{title:38} {right:3} of {len(group):3} right   {counts}")


def _print_table(title: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> None:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome)].append(outcome)
    print(f"\n{title}")
    for name, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        _print_line(f"  {name}", group)


def _print_cases(title: str, outcomes: Sequence[Outcome]) -> None:
    print(f"\n{title}: {len(outcomes)}")
    for outcome in outcomes:
        print(f"  {outcome.id} ({outcome.problem}): {', '.join(outcome.alarms)}; primary {outcome.found}")


def _show(case: Case) -> None:
    """One case in full: its text, what was read of it, and every check that says something."""
    snapshot, checks = judge(case.text)
    print(case.text, end="\n\n")
    facts = msgspec.json.format(msgspec.json.encode(snapshot), indent=1).decode() if snapshot else "nothing recognised"
    print(facts, end="\n\n")
    for check in checks:
        if check.status in ("fail", "warn", "note", "pass"):
            print(f"{check.status:5} {check.rule} [{check.decided_by}] {check.title}: {check.message}")
    outcome = assess(case)
    print(f"\n{outcome.result}: expected {', '.join(sorted(case.accepted))}, found {outcome.found}")


def _cases(path: str) -> list[Case]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Case) for line in lines if line.strip()]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], allow_abbrev=False)
    parser.add_argument("cases", help="file of cases, a JSON object a line")
    parser.add_argument("--show", metavar="ID", help="one case in full")
    parser.add_argument("--json", action="store_true", help="every outcome as JSON")
    parser.add_argument("--without-errors", action="store_true", help="leave out the lines that speak of a failure")
    options = parser.parse_args(arguments)
    cases = _cases(options.cases)
    if options.without_errors:
        cases = [case.without_errors() for case in cases]
    if options.show:
        for case in cases:
            if case.id == options.show:
                _show(case)
        return 0
    outcomes = [assess(case) for case in cases]
    if options.json:
        document = {"summary": summary(outcomes), "cases": outcomes}
        print(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())
    else:
        _print_report(outcomes)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
