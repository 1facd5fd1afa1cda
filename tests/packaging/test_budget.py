"""``budget.toml``: how many lines each folder may have, so that growth is a decision."""

from collections import Counter
from pathlib import Path

from envcheck.text.toml import loads

ROOT = Path(__file__).parents[2]
_PRODUCT = ("envcheck", "probes")
_BESIDE = ("tests", "scripts", "benchmarks")
_OTHER = {".css", ".cu", ".js", ".sh", ".sql", ".tcss"}
_WHAT_TO_DO = (
    "Simplify elsewhere in the folder. If that cannot be, raise its line in budget.toml, with a note in docs/decisions "
    "that says why. Lower a line in the commit that makes its folder smaller; delete the line of a folder that is gone."
)


def _counted() -> dict[str, Counter[str]]:
    """The lines that are there, by table of the budget and by folder: of the product two levels deep."""
    python, other, rows = Counter[str](), Counter[str](), Counter[str]()
    for top in (*_PRODUCT, *_BESIDE, "docs", "recipes"):
        for file in (file for file in (ROOT / top).rglob("*") if file.is_file()):
            folder = "/".join(file.relative_to(ROOT).parent.parts[: 2 if top in _PRODUCT else 1])
            if file.suffix == ".py" and top in (*_PRODUCT, *_BESIDE):
                python[folder] += _lines(file)
            elif top == "recipes" or (file.suffix in _OTHER and top != "tests"):
                other[folder] += _lines(file)
    for file in (ROOT / "matrix").rglob("*.*"):
        rows[file.relative_to(ROOT).parent.as_posix()] += _lines(file)
    return {"python": python, "other": other, "rows": rows}


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n")


def over(budget: dict[str, dict[str, int]], found: dict[str, Counter[str]]) -> list[str]:
    """What is above its line, has none, or is gone."""
    wrong = []
    for table, counted in found.items():
        for folder in sorted(counted.keys() | budget[table].keys()):
            most, lines = budget[table].get(folder, 0), counted[folder]
            if lines > most:
                wrong.append(f"{folder}: {lines} lines, {lines - most} above its budget of {most} ({table})")
            elif not lines:
                wrong.append(f"{folder}: it is gone, and has a budget of {most} ({table})")
    return wrong


def test_every_folder_keeps_its_budget() -> None:
    budget = loads((ROOT / "budget.toml").read_text(encoding="utf-8"))
    assert not (wrong := over(budget, _counted())), "\n".join([*wrong, _WHAT_TO_DO])


def test_what_is_above_a_budget_is_named_with_the_excess() -> None:
    budget = {"python": {"envcheck/rules": 10, "envcheck/old": 5, "tests": 3}, "rows": {}}
    found = {"python": Counter({"envcheck/rules": 12, "envcheck/new": 1, "tests": 3}), "rows": Counter[str]()}
    assert over(budget, found) == [
        "envcheck/new: 1 lines, 1 above its budget of 0 (python)",
        "envcheck/old: it is gone, and has a budget of 5 (python)",
        "envcheck/rules: 12 lines, 2 above its budget of 10 (python)",
    ]
