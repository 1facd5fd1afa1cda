"""Put environments to the test, and say in a table how many were judged right and how many fixes led somewhere.

    python -m tests.lab.laboratory.bench [--keep FOLDER] [--wheels FOLDER] [WORD …]

Of all environments, or those whose name or class holds one of the words.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.laboratory import damage, fit, healthy, overlay, variables
from tests.lab.laboratory.entry import Broken, Healthy, words
from tests.lab.laboratory.follow import Journey, follow, primary_of
from tests.lab.laboratory.place import BAD, Place
from tests.lab.laboratory.store import Store

BROKEN: tuple[Broken, ...] = (*damage.ENTRIES, *overlay.ENTRIES, *variables.ENTRIES, *fit.ENTRIES)
HEALTHY: tuple[Healthy, ...] = healthy.ENTRIES


@dataclass
class Outcome:
    """What became of a broken environment."""

    entry: Broken
    report: dict[str, Any]
    before: str
    """Why the code of the entry did not run."""
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
        return self.journey.end == self.entry.goal or (self.journey.end == "green" and not self.after)


def put(entry: Broken, folder: Path, store: Store) -> Outcome:
    """Build the environment, check it, and follow the fixes."""
    began = time.monotonic()
    place = Place(folder, store, entry.manager)
    entry.build(place)
    before = place.runs(entry.works) if entry.works else ""
    unmet = place.unmet()
    report = place.judge(entry.assumed, *entry.options)
    right = entry.right(primary_of(report))
    journey = Journey("elsewhere") if entry.goal == "elsewhere" else follow(place, report, entry.assumed, entry.options)
    after = ""
    if journey.end == "green":
        after = (place.runs(entry.works) if entry.works else "") or "; ".join(sorted(place.unmet() - unmet))
    return Outcome(entry, report, before, right, journey, after, time.monotonic() - began)


@dataclass
class Health:
    """What was said of a healthy environment."""

    entry: Healthy
    report: dict[str, Any]
    broken: str
    """Why it is not healthy after all."""
    alarms: list[str] = field(default_factory=list)


def examine(entry: Healthy, folder: Path, store: Store) -> Health:
    place = Place(folder, store, entry.manager)
    entry.build(place)
    report = place.judge(entry.assumed)
    health = Health(entry, report, place.runs(entry.works) if entry.works else "")
    said = [check for check in report["checks"] if check["status"] in BAD and check["rule"] not in entry.allowed]
    health.alarms = [f"{check['status']} {check['rule']}: {check['title']}" for check in said]
    if entry.verdict and report["verdict"] != entry.verdict:
        health.alarms.append(f"verdict {report['verdict']}: {report['headline']}")
    health.alarms += [f"says: {pattern}" for pattern in entry.silent if _says(report, pattern)]
    return health


def _says(report: dict[str, Any], pattern: str) -> bool:
    import re

    texts = [report["headline"], *map(words, report["checks"])]
    return any(re.search(pattern, text) for text in texts)


def line(outcome: Outcome) -> str:
    entry, journey = outcome.entry, outcome.journey
    check = primary_of(outcome.report)
    said = f"{check['rule']}: {check['title']}" if check else f"{outcome.report['verdict']}: {outcome.report['headline']}"
    mark = ("right" if outcome.right else "WRONG", "led" if outcome.led else "LOST")
    rows = [f"{mark[0]:6}{mark[1]:5}{entry.family:15}{entry.name}", f"            said   {said}"]
    if not outcome.right:
        rows.append(f"            wanted {' | '.join(entry.rules) or 'any rule'} naming {entry.names}")
    rows += [f"            step   {step[:300]}" for step in journey.steps]
    rows.append(f"            end    {journey.end} {journey.detail}")
    if outcome.before or outcome.after:
        rows.append(f"            runs   before: {outcome.before or 'yes'}; after: {outcome.after or 'yes'}")
    elif entry.works:
        rows.append("            runs   before: yes (does this environment have the fault?)")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="laboratory-") as own:
        store = Store(asked.wheels or Path(own))
        _run(asked.words, store, asked.keep or Path(own), keep=asked.keep is not None)
    return 0


def _run(wanted: list[str], store: Store, folder: Path, *, keep: bool) -> None:
    began = time.monotonic()
    right = led = met = 0
    for entry in _chosen(BROKEN, wanted):
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            outcome = put(entry, place, store)
        except BaseException as error:  # noqa: BLE001 - pytest's skips too: a table has a line for each
            if isinstance(error, KeyboardInterrupt):
                raise
            print(f"-     -    {entry.family:15}{entry.name}: {type(error).__name__} {error}", flush=True)
            continue
        met, right, led = met + 1, right + outcome.right, led + outcome.led
        print(line(outcome), f"           ({outcome.seconds:.0f} s, {place})" , flush=True)
        if not keep:
            shutil.rmtree(place, ignore_errors=True)
    alarms = healthy = 0
    for entry in _chosen(HEALTHY, wanted):
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            health = examine(entry, place, store)
        except BaseException as error:  # noqa: BLE001
            if isinstance(error, KeyboardInterrupt):
                raise
            print(f"-          {entry.family:15}{entry.name}: {type(error).__name__} {error}", flush=True)
            continue
        healthy, alarms = healthy + 1, alarms + bool(health.alarms)
        print(f"{'ALARM' if health.alarms else 'quiet':11}{entry.family:15}{entry.name}", *health.alarms, sep="\n            ", flush=True)
        if health.broken:
            print(f"            does not run: {health.broken}")
        if not keep:
            shutil.rmtree(place, ignore_errors=True)
    print(f"\ncause right {right} of {met}, fixes {led} of {met}, false alarms {alarms} of {healthy}; {time.monotonic() - began:.0f} s")


def _chosen(entries: tuple[Any, ...], wanted: list[str]) -> list[Any]:
    return [each for each in entries if not wanted or any(word in f"{each.name} {each.family}" for word in wanted)]


if __name__ == "__main__":
    raise SystemExit(main())
