"""Put environments to the test, and say in a table how many were judged right and how many fixes led somewhere.

    python -m tests.lab.laboratory.bench [--wheels FOLDER] [--keep FOLDER] [--cause-only] [WORD …]

Of all environments, or those whose name or class holds one of the words. A further one is an entry in damage.py,
overlay.py, variables.py, fit.py or healthy.py: a function that builds it from real wheels, the rules that may be its
cause, what their text must name, and code that fails in it until the fixes were followed. Large wheels are kept without
their GPU code, so that a build for CUDA can be imported where there is no GPU.
"""

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from _pytest.outcomes import Skipped

from tests.lab.laboratory import damage, fit, habits, healthy, overlay, upgrades, upkeep, variables
from tests.lab.laboratory.entry import Broken, Healthy, words
from tests.lab.laboratory.follow import Journey, follow, primary_of
from tests.lab.laboratory.place import BAD, Place
from tests.lab.laboratory.store import Store

BROKEN: tuple[Broken, ...] = tuple(
    entry for kind in (damage, overlay, variables, fit, habits, upgrades, upkeep) for entry in kind.ENTRIES
)
HEALTHY: tuple[Healthy, ...] = healthy.ENTRIES


@dataclass
class Outcome:
    """What became of a broken environment."""

    entry: Broken
    report: dict[str, Any]
    before: str  # Why the code of the entry did not run
    right: bool
    journey: Journey
    after: str = ""
    """Why it still does not run when the fixes were followed, or what they left unmet that was met before."""
    seconds: float = 0.0

    @property
    def led(self) -> bool:
        """Whether the fixes led where they should."""
        if not self.right or not self.entry.offers(primary_of(self.report)):
            return False
        if self.entry.goal == "elsewhere":
            return True
        return self.journey.end in (self.entry.goal, "green") and not self.after


def put(entry: Broken, folder: Path, store: Store) -> Outcome:
    """Build the environment, check it, and follow the fixes."""
    began = time.monotonic()
    place = _built(entry, folder, store)
    before = place.runs(entry.works) if entry.works else ""
    unmet = place.unmet()
    report = place.judge(entry.assumed, *entry.options)
    right = entry.right(primary_of(report))
    journey = Journey("elsewhere") if entry.goal == "elsewhere" else follow(place, report, entry.assumed, entry.options)
    after = ""
    if journey.end == "green":
        left = {each for each in place.unmet() - unmet if not (entry.left_unmet and re.search(entry.left_unmet, each))}
        after = (place.runs(entry.works) if entry.works else "") or "; ".join(sorted(left))
    return Outcome(entry, report, before, right, journey, after, time.monotonic() - began)


def judged(entry: Broken, folder: Path, store: Store) -> Outcome:
    """Build the environment and check it: a few seconds."""
    began = time.monotonic()
    report = _built(entry, folder, store).judge(entry.assumed, *entry.options)
    right = entry.right(primary_of(report))
    return Outcome(entry, report, "not tried", right, Journey("not followed"), seconds=time.monotonic() - began)


def _built(entry: Broken | Healthy, folder: Path, store: Store) -> Place:
    place = Place(folder, store, entry.manager)
    entry.build(place)
    return place


@dataclass
class Health:
    """What was said of a healthy environment."""

    entry: Healthy
    broken: str  # Why it is not healthy after all
    alarms: list[str]


def examine(entry: Healthy, folder: Path, store: Store) -> Health:
    """Build the environment, and collect what is said against it."""
    place = _built(entry, folder, store)
    broken = place.runs(entry.works) if entry.works else ""
    report = place.judge(entry.assumed)
    bad = [check for check in report["checks"] if check["status"] in BAD and check["rule"] not in entry.allowed]
    alarms = [f"{check['status']} {check['rule']}: {check['title']}" for check in bad]
    if entry.verdict and report["verdict"] != entry.verdict:
        alarms.append(f"verdict {report['verdict']}: {report['headline']}")
    texts = [report["headline"], *map(words, report["checks"])]
    alarms += [f"says: {pattern}" for pattern in entry.silent if any(re.search(pattern, text) for text in texts)]
    return Health(entry, broken, alarms)


def line(outcome: Outcome) -> str:
    """What became of a broken environment, in a few lines."""
    entry, journey, check = outcome.entry, outcome.journey, primary_of(outcome.report)
    marks = f"{'right' if outcome.right else 'WRONG':6}{'led' if outcome.led else 'LOST':5}"
    said = (
        f"{check['rule']}: {check['title']}" if check else f"{outcome.report['verdict']}: {outcome.report['headline']}"
    )
    rows = [f"{marks}{entry.family:15}{entry.name} ({outcome.seconds:.0f} s)", f"said   {said}"]
    if not outcome.right:
        rows.append(f"wanted {' | '.join(entry.rules) or 'any rule'} naming {entry.names}")
    rows += [f"step   {step[:300]}" for step in journey.steps]
    rows.append(f"end    {journey.end} {journey.detail}")
    if entry.works:
        rows.append(f"runs   before: {outcome.before or 'YES: is this environment broken?'}")
    if outcome.after:
        rows.append(f"       after: {outcome.after}")
    return "\n            ".join(rows)


def _line_of_health(health: Health) -> str:
    rows = [f"{'ALARM' if health.alarms else 'quiet':11}{health.entry.family:15}{health.entry.name}", *health.alarms]
    return "\n            ".join([*rows, *([f"does not run: {health.broken}"] if health.broken else [])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="of the environments' names or classes")
    parser.add_argument("--wheels", type=Path, help="folder to keep the wheels in from one run to the next")
    parser.add_argument("--keep", type=Path, help="folder in which the environments are left")
    parser.add_argument("--cause-only", action="store_true", help="follow no fix and start no interpreter")
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="laboratory-") as own:
        bench = _Bench(Store(asked.wheels or Path(own)), asked.keep or Path(own), keep=asked.keep is not None)
        outcomes = bench.all(_chosen(BROKEN, asked.words), judged if asked.cause_only else put, line)
        health = bench.all(_chosen(HEALTHY, asked.words), examine, _line_of_health)
    _say(
        f"\ncause right {sum(each.right for each in outcomes)} of {len(outcomes)}, "
        f"fixes {sum(each.led for each in outcomes)} of {len(outcomes)}, "
        f"false alarms {sum(bool(each.alarms) for each in health)} of {len(health)}; {time.monotonic() - began:.0f} s"
    )
    return 0


Kind = TypeVar("Kind", Broken, Healthy)
Result = TypeVar("Result", Outcome, Health)


@dataclass
class _Bench:
    store: Store
    folder: Path
    keep: bool

    def all(
        self, entries: Iterable[Kind], do: Callable[[Kind, Path, Store], Result], tell: Callable[[Result], str]
    ) -> list[Result]:
        """One environment after the other, each in a folder whose name tells nothing: it stands in all that is said."""
        results: list[Result] = []
        self.folder.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            place = Path(tempfile.mkdtemp(dir=self.folder))
            try:
                results.append(do(entry, place, self.store))
                _say(tell(results[-1]) + (f"\n            {place}" if self.keep else ""))
            except (Exception, Skipped) as error:  # noqa: BLE001 - one that cannot be built ends no other
                _say(f"-          {entry.family:15}{entry.name}: {type(error).__name__} {error}")
            if not self.keep:
                shutil.rmtree(place, ignore_errors=True)
        return results


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _chosen(entries: tuple[Kind, ...], wanted: list[str]) -> list[Kind]:
    return [each for each in entries if not wanted or any(word in f"{each.name} {each.family}" for word in wanted)]


if __name__ == "__main__":
    raise SystemExit(main())
