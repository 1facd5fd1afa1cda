"""Write plans into a folder and read them; the files that tests write."""

from pathlib import Path

from envcheck.compat.package_needs import marks_of
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Check, Report
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Environment, Planned
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.plans import read_plans

DATA = Path(__file__).with_name("data")
_LINUX = "os==linux,machine==x86_64"


def sample(name: str) -> str:
    """A file of ``data``, constructed for these tests."""
    return (DATA / name).read_text(encoding="utf-8")


def plan(folder: Path, python: str | None = None, **files: str) -> Environment:
    """Read the files, whose names are written with ``__`` for a dot; those that start with ``_`` are only included."""
    paths = []
    for name, text in files.items():
        path = folder / name.removeprefix("_").replace("__", ".")
        path.write_text(text)
        if not name.startswith("_"):
            paths.append(str(path))
    return plan_at(*paths, python=python)


def plan_at(*paths: object, python: str | None = None) -> Environment:
    """Read the plans that lie there, for Linux on x86_64; a path may end in the extras that are asked for."""
    return read_plans([*map(str, paths)], load_matrix(), marks_of(python, "linux", "x86_64"))


def packages(environment: Environment) -> dict[str, Planned]:
    """What it would install, by name."""
    return {each.name: each for each in environment.planned or ()}


def versions(environment: Environment) -> dict[str, str | None]:
    return {name: each.version for name, each in packages(environment).items()}


def judge(environment: Environment, machine: str, *, tried: bool = True) -> Report:
    """The report for a machine such as ``gpu==A100,driver==515.105.01``; not ``tried``, with what repairs it."""
    return session.check(Request(assume=parse_components(f"{machine},{_LINUX}"), planned=environment, tried=tried))


def named(report: Report, rule: str, name: str) -> Check:
    """The check of a rule about a package."""
    return next(check for check in report.checks if check.rule == rule and check.subject.key.endswith(f":{name}"))
