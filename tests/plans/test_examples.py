"""Plans as texts, in the documents of ``examples/``: what is read of each, and what it is judged to be.

A document has subjects (``## the index tells the build``), and each has cases: lines ``=== …`` say what holds of the
text below them. That is a requirements file, but for what stands below ``--- NAME``; a file ``--- beside: NAME`` is
no plan itself. In front of a line, ``python 3.12`` and ``[EXTRA]`` say for which Python and which extras the plan is
read; a remark in brackets may follow it behind two blanks.

    === gpu==H100,driver==550.54.14: fail; torch fail line 2 "no code"; open jax; no "is not on PyPI"
    === read torch version=2.9.1 build=-
    === names numpy,torch
    === unread 2
    === refused "no FROM line"

Of a machine: the verdict; a check of the plan about a package, or of a rule (``RULE NAME``, ``RULE *``), with its
status, its line (``line 2``), that it has a source (``sourced``) and words of it; the packages that are open, and those
that fail (``fails``); words that some check says, or none; a rule that finds nothing (``no RULE``), and the first cause
(``primary``). Of a package: fields of its record, ``-`` for nothing.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from envcheck.errors import UsageError
from envcheck.model.checks import PLAN, Check, Report
from envcheck.model.snapshot import Environment
from tests.documents import subjects
from tests.plans.reading import judge, packages, plan_at


class Case(NamedTuple):
    """Texts by their names, and what is said of those that are plans."""

    said: list[str]
    plans: dict[str, str]
    beside: dict[str, str]


def _case(said: list[str], text: str) -> Case:
    first = "" if text.startswith("--- ") else "--- requirements.txt\n"
    _, *parts = re.split(r"^--- (.+)\n", f"{first}{text}\n", flags=re.MULTILINE)
    found = {name: f"{content.strip()}\n" for name, content in zip(parts[::2], parts[1::2], strict=True)}
    beside = {name.removeprefix("beside: "): found.pop(name) for name in [*found] if name.startswith("beside: ")}
    return Case([line.partition("  (")[0] for line in said], found, beside)


SUBJECTS = {
    f"{file.stem}: {subject}": [_case(*case) for case in cases]
    for file in sorted(Path(__file__).with_name("examples").glob("*.txt"))
    for subject, cases in subjects(file.read_text(encoding="utf-8")).items()
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_said_of_a_plan(subject: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: list[str] = []
    for number, case in enumerate(SUBJECTS[subject]):
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        for name, text in (case.plans | case.beside).items():
            Path(name).write_text(text)
        told = [(line, "; ".join(_differing([*case.plans], line))) for line in case.said]
        text = "\n".join(case.plans.values())
        wrong += [f"=== {line}\n{found}, of\n{text}" for line, found in told if found]
    assert not wrong, "\n".join(wrong)


def _differing(names: list[str], line: str) -> Iterator[str]:
    """What is not as a line says."""
    asked = re.fullmatch(r"(?:python (\S+) )?(\[\S+\])? ?(?:(read|names|unread|refused) |(.+?): )(.+)", line)
    assert asked, line
    python, extras, kind, machine, rest = asked.groups()
    try:
        environment = plan_at(*(f"{name}{extras or ''}" for name in names), python=python)
    except UsageError as error:
        if kind != "refused" or rest.strip('"') not in str(error) or "\n" in str(error):
            yield f"it is refused: {error}"
        return
    if machine:
        yield from _misjudged(judge(environment, machine), rest)
    elif kind == "read":
        yield from _misread(environment, rest)
    elif kind == "names":
        found = ",".join(sorted(name or "?" for name in packages(environment))) or "-"
        yield from [found] * (found != rest)
    else:
        found = ",".join(str(each.line) for each in environment.planned or () if not each.name and each.problem)
        yield from [f"unread is {found}"] * (kind == "refused" or found != rest)


def _misread(environment: Environment, said: str) -> Iterator[str]:
    name, _, fields = said.partition(" ")
    record = packages(environment)[name.replace("?", "")]
    for field, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', fields):
        value = getattr(record, field)
        text = ",".join(value) if isinstance(value, tuple) else "-" if value is None else str(value)
        if text != (plain or quoted):
            yield f"{field} is {text!r}"


def _misjudged(report: Report, said: str) -> Iterator[str]:
    verdict, *items = (item.strip() for item in re.findall(r'(?:[^;"]|"[^"]*")+', said))
    if report.verdict != verdict:
        yield f"the verdict is {report.verdict} ({report.headline})"
    for item in items:
        if not _holds(report, re.sub(r'"[^"]*"', "", item).split(), re.findall(r'"([^"]*)"', item)):
            yield f"not so: {item}"


def _holds(report: Report, item: list[str], words: list[str]) -> bool:
    if not item or item == ["no"]:
        return any(_says(check, words) for check in report.checks) is not bool(item)
    if item[0] == "no":
        return not any(check.rule == item[1] and check.status in ("fail", "warn") for check in report.checks)
    if item[0] == "primary":
        return report.primary == item[1]
    if item[0] in ("open", "fails"):
        found = {
            check.subject.key.rpartition(":")[2]
            for check in report.checks
            if check.status == "fail" or (check.rule, check.status) == (PLAN, "unknown")
            if (check.status == "fail") is (item[0] == "fails")
        }
        return item[1:] == [",".join(sorted(found)) or "-"]
    sourced = item[-1] == "sourced"
    item = item[:-1] if sourced else item
    line = item[-1] if item[-2] == "line" else None
    *rule, name, status = item[:-2] if line else item
    return any(
        (check.rule, check.status) == (*(rule or [PLAN]), status)
        and (name == "*" or check.subject.key.endswith(f":{name}"))
        and (line is None or (check.location is not None and str(check.location.line) == line))
        and _says(check, words)
        and (not sourced or check.sources)
        for check in report.checks
    )


def _says(check: Check, words: list[str]) -> bool:
    told = "\n".join((check.title, check.message, *(fix.text for fix in check.fixes)))
    return all(word in told for word in words)
