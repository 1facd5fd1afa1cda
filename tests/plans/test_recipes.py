"""Recipes that projects publish, each for three machines: the plan installs the same, or what fits in its place.

A recipe is a line of ``data/recipes.txt``. What it would install was resolved by uv from PyPI on the day in the file's
head, with Linux wheels for x86_64; by hand where PyPI has sources alone, or an index of PyTorch is named. It is judged
by the same rules: where the plan has an older release, or none, the recipe's own does not run on that machine.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version

from envcheck.compat.package_needs import marks_of
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Report
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Environment, Snapshot
from envcheck.pipeline import session
from envcheck.pipeline.planned.solution import Solution
from envcheck.pipeline.planned.solve import solve
from envcheck.pipeline.request import Request
from envcheck.plans import read_plans
from tests.every import cases, every_tabled
from tests.plans.reading import sample

MACHINES = ("gpu==H100,driver==550.54.14", "gpu==RTX 5090,driver==570.86.10", "gpu==T4,driver==535.183.01")
INDEX = "--extra-index-url https://download.pytorch.org/whl/"


class Recipe(NamedTuple):
    """A line of the table."""

    name: str
    wishes: str
    python: str
    torch_index: str
    """Its index of PyTorch, if it names one: ``cu128``."""
    installs: str
    """What that comes to, of what the plan speaks of."""
    expected: str
    """For each machine what the plan is beside that: same, build (the same in another build), newer, older, none
    (nothing fits), open.
    """
    page: str


def recipes() -> list[Recipe]:
    lines = (line for line in sample("recipes.txt").splitlines() if line and not line.startswith("#"))
    return [Recipe(*map(str.strip, line.split("|"))) for line in lines]


@cache
def machine(assume: str) -> tuple[Snapshot, Callable[[Environment], Report]]:
    """The facts of an assumed machine, and what judges a plan by them."""
    request = Request(
        assume=parse_components(f"{assume},os==linux,machine==x86_64"),
        scopes=frozenset({"node", "env"}),
        planned=Environment(source="plan", key=""),
    )
    facts = session.check(request).snapshot or Snapshot()
    return facts, session.plan_judge(facts, request)


def planned(recipe: Recipe, assume: str) -> Solution:
    facts, judge = machine(f"{assume},python=={recipe.python}")
    wishes = read_plans((), load_matrix(), marks_of(recipe.python, "linux", "x86_64"), wishes=recipe.wishes.split())
    return solve(facts, wishes, load_matrix(), judge)


def beside(found: Solution, recipe: Recipe) -> str:
    """What the plan is beside the recipe."""
    if found.verdict != "compatible":
        return "none" if found.verdict == "incompatible" else "open"
    own = {(asked := Requirement(line)).name: str(asked.specifier)[2:] for line in recipe.installs.split()}
    chosen = {each.name: each.version for each in found.packages if each.name in own}
    pairs = [(Version(Version(chosen[name]).public), Version(Version(own[name]).public)) for name in chosen]
    same = "build" if found.tag and found.tag != recipe.torch_index else "same"
    return "older" if any(a < b for a, b in pairs) else "newer" if any(a > b for a, b in pairs) else same


def verdict_on(recipe: Recipe, assume: str, folder: Path) -> str:
    """What is found of the recipe's own releases."""
    file = folder / "requirements.txt"
    index = [INDEX + recipe.torch_index] if recipe.torch_index else []
    file.write_text("\n".join([*recipe.installs.split(), *index]))
    _, judge = machine(f"{assume},python=={recipe.python}")
    return judge(read_plans([str(file)], load_matrix(), marks_of(recipe.python, "linux", "x86_64"))).verdict


def differences(place: int, folder: Path) -> Iterator[str]:
    for recipe in recipes():
        found = planned(recipe, MACHINES[place])
        expected = recipe.expected.split()[place]
        if (got := beside(found, recipe)) != expected:
            yield f"{recipe.name}: {got}, not {expected}: {[(each.name, each.version) for each in found.packages]}"
        elif got not in ("newer", "open"):
            fails = verdict_on(recipe, MACHINES[place], folder) == "fail"
            if fails is (got == "same"):
                yield f"{recipe.name}: the plan is {got}, and the recipe's own releases {'fail' if fails else 'do not'}"
            if got == "older" and not any(each.given_up for each in found.packages):
                yield f"{recipe.name}: the plan is older and does not say why"


def test_there_are_sixty() -> None:
    assert len({recipe.name for recipe in recipes()}) >= 60
    assert all(recipe.page and len(recipe.expected.split()) == len(MACHINES) for recipe in recipes())


@cases("place", 0, 1, 2)
def test_each_recipe_is_planned_for_each_machine(place: int, tmp_path: Path) -> None:
    assert not [*differences(place, tmp_path)]


H100, RTX5090, T4 = MACHINES
B200, V100 = "gpu==B200,driver==580.95.05", "gpu==V100,driver==580.95.05"


@every_tabled
def test_what_is_impossible_is_explained(wishes: str, assume: str, reason: str, nearest: str) -> None:
    found = planned(Recipe("", wishes, "3.12", "", "", "", ""), assume)
    assert found.verdict == "incompatible"
    assert reason in " ".join(each.message for each in found.reasons)
    assert all(each.sources for each in found.reasons)
    assert any(text.startswith(nearest) for text in found.nearest or ("",))
