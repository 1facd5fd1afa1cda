"""Reports of every kind, from facts that lie in the repository, and all that can be printed of each."""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from envcheck.compat.package_needs import marks_of
from envcheck.diff.reports import diff
from envcheck.importers import read_text
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Report, Tool
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Environment, Listing, Snapshot
from envcheck.pipeline.request import Ignoring, Machine, Policy, Request
from envcheck.pipeline.session import judge
from envcheck.plans import read_plans
from envcheck.report import FORMATS, Options, Pages
from envcheck.report.answers.diff import render_diff
from envcheck.report.json import render as as_json
from tests.golden.corpus import index, joined
from tests.rules.speed.test_recorded_bench import load as load_bench
from tests.test_machines import FOLDER, load

ROOT = Path(__file__).parents[2]
VARIANTS = {
    "-v": Options(verbose=True), "-q": Options(quiet=True), "60 columns": Options(width=60),
    "120 columns": Options(width=120), "ASCII": Options(ascii=True), "color": Options(color=True),
}  # fmt: skip
"""How a page may be asked for otherwise; what is printed the same is not recorded again."""
_FIT = "gpu==H100,driver==550.54.14,os==linux,machine==x86_64"
_TOO_OLD = "gpu==A100,driver==440.33.01,os==linux,machine==x86_64"
_UNKNOWN = "gpu==Frobnicator 9000,driver==550.54.14,os==linux,machine==x86_64"
_TORCH = "torch==2.5.1+cu124"
_PASTED = ("h200_collect_env.txt", "h200_smi.txt", "h200_smi.xml", "h200x8_smi.txt", "constructed_smi_query.txt")
_PLAN = "tests/recipes/plans/requirements.txt"

Reports = Mapping[str, Callable[[], Report]]


def _judged(snapshot: Snapshot, **asked: Any) -> Report:
    """The report, without what differs between two runs and between two releases."""
    report = judge(snapshot, Request(**asked))
    return msgspec.structs.replace(
        report, created="2026-01-01T00:00:00+00:00", duration_s=1.0, tool=Tool(version="0.0.0", matrix="2026-01-01"),
        timing=(),
    )  # fmt: skip


def _machine(name: str, **asked: Any) -> Report:
    return _judged(load(name).snapshot, **asked)


def _bench(name: str, **asked: Any) -> Report:
    return _judged(load_bench(name).snapshot, **asked)


def _pasted(name: str) -> Report:
    return _judged(read_text((ROOT / "tests" / "importers" / "data" / name).read_text()))


def _machines(*texts: str) -> tuple[Machine, ...]:
    return tuple(Machine(name=text.partition(",")[0], assume=parse_components(text)) for text in texts)


def _planned() -> tuple[Environment, Snapshot]:
    """The plan, by the path that it has from the root of the checkout: the working folder of the caller."""
    environment = read_plans([_PLAN], load_matrix(), marks_of("3.11", "linux", "x86_64"))
    return environment, Snapshot(environments=Listing(items=(environment,)))


def _plan(machine: str) -> Report:
    environment, snapshot = _planned()
    return _judged(snapshot, planned=environment, assume=parse_components(machine))


def _plan_for_targets() -> Report:
    environment, snapshot = _planned()
    return _judged(snapshot, planned=environment, targets=_machines(_FIT, _TOO_OLD, "gpu==B200,driver==580.65.06"))


def _slower_than_before() -> Report:
    """Figures below those of an earlier run, which were a fifth higher."""
    found = load_bench("h100x2-bench-hot").snapshot
    before = (msgspec.structs.replace(each, value=each.value and each.value * 1.2) for each in found.measurements)
    return _judged(found, baseline=tuple(before))


_POLICY = Policy(
    severity={"numpy-abi-mismatch": "fail"},
    forbid=("cpu-only-build",),
    ignore=(Ignoring(problem="framework-cannot-use-gpu", reason="known", until=dt.date(2026, 12, 31)),),
    shares={"gemm": 0.99},
    today=dt.date(2026, 6, 1),
)
GROUPS: dict[str, Reports] = {
    "recorded": {file.stem: partial(_machine, file.stem) for file in sorted(FOLDER.glob("*.json"))},
    "constructed": {
        file.stem: partial(_machine, f"constructed/{file.stem}")
        for file in sorted((FOLDER / "constructed").glob("*.json"))
    },
    "bench": {
        **{name: partial(_bench, name) for name in ("h100x2-bench-full", "h100x2-bench-hot")},
        "with a baseline": _slower_than_before,
    },
    "asked": {
        "require": lambda: _machine("h200x4", require=parse_components("torch>=2.4,gpus>=8,gpu==H200,driver>=550")),
        "policy": lambda: _machine("h100-tried-and-measured", policy=_POLICY),
        "one scope": lambda: _machine("constructed/driver-too-old", scopes=frozenset({"node"})),
        "one rule": lambda: _machine("constructed/driver-too-old", only=("driver-too-old",)),
        "fail on a warning": lambda: _machine("h100-tried-and-measured", fail_on="warn"),
        "assume a driver": lambda: _machine("h200", assume=parse_components("driver==535.129.03")),
        "assume a machine": lambda: _machine("h200", assume=parse_components(f"{_TOO_OLD},{_TORCH}")),
        "targets": lambda: _judged(Snapshot(), targets=_machines(_FIT, _TOO_OLD, _UNKNOWN)),
        "plan that fits": lambda: _plan("gpu==A100,driver==550.54.14,os==linux,machine==x86_64,python==3.11"),
        "plan that does not fit": lambda: _plan("gpu==B200,driver==580.65.06,os==linux,machine==x86_64"),
        "plan for targets": _plan_for_targets,
        "nothing": lambda: _judged(Snapshot()),
    },
    "pasted": {name: partial(_pasted, name) for name in _PASTED},
}


def documents(group: str) -> dict[str, str]:
    """Of each report of a group: the page and its conclusion open, with hashes of all formats; these compressed."""
    pages: dict[str, str] = {}
    bulk: dict[str, str] = {}
    for name, make in GROUPS[group].items():
        report = make()
        formats = dict(_formats(report))
        bulk |= {f"{name}: {form}": text for form, text in formats.items()}
        conclusion = f"{report.verdict}, exit status {report.exit_code}, cause: {report.primary_check or 'none'}"
        pages[name] = f"{conclusion}\n\n{formats['text']}\n{index(formats)}"
    return {f"reports/{group}.txt": joined(pages), f"reports/{group}.xz": joined(bulk)}


def _formats(report: Report) -> Iterator[tuple[str, str]]:
    pages = Pages(report)
    for form, known in FORMATS.items():
        if report.targets and not known.targets:
            continue
        plain = pages.render(form, Options())
        yield form, plain
        if known.syntax != "json":  # which looks at no option
            for variant, options in VARIANTS.items():
                text = pages.render(form, options)
                if text != plain:
                    yield f"{form}, {variant}", text


COMPARED = {
    "another machine": ("h200", "h200x4"),
    "fewer GPUs visible": ("h200x4", "h200x4-two-by-variable"),
    "another stack": ("h200-tensorflow", "h100-tried-and-measured"),
    "the same": ("h200", "h200"),
}


def comparisons() -> dict[str, str]:
    """Differences between reports: the page open, the JSON compressed."""
    made = {name: partial(_machine, name) for pair in COMPARED.values() for name in pair}
    reports: dict[str, tuple[Callable[[], Report], Callable[[], Report]]] = {
        **{title: (made[first], made[second]) for title, (first, second) in COMPARED.items()},
        "figures": (partial(_bench, "h100x2-bench-full"), partial(_bench, "h200x2-bench-full")),
    }
    pages: dict[str, str] = {}
    bulk: dict[str, str] = {}
    for title, (first, second) in reports.items():
        found = diff([("a.json", first()), ("b.json", second())])
        page = render_diff(found, Options())
        forms = {"json": as_json(found), **{name: render_diff(found, options) for name, options in VARIANTS.items()}}
        pages[title] = f"{page}\n{index(forms)}"
        bulk |= {f"{title}: {form}": text for form, text in forms.items()}
    return {"reports/diff.txt": joined(pages), "reports/diff.xz": joined(bulk)}
