"""How two reports of one machine differ: ``same_snapshot.py A B`` prints it, and exits with 1 where they do."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TIMES = frozenset({"seconds", "free", "used", "shared_memory_free", "duration_s", "created"})
"""What differs between two runs on one machine."""
OF_A_GPU = frozenset(
    {
        *(
            "temperature.gpu", "temperature.memory", "clocks.sm", "clocks.memory", "power.draw", "throttle.reasons",
            "fan",
        ),
        *("pcie.generation", "pcie.replays", "utilisation", "memory_utilisation", "processes", "performance_state"),
    }
)  # fmt: skip
"""What differs between two looks at one GPU."""


def steady(value: Any, moving: frozenset[str] = TIMES, within: str = "") -> Any:
    """``value``, which is called ``within``, without what changes from run to run: ``name`` or ``within.name``."""
    if isinstance(value, dict):
        kept = (key for key in value if key not in moving and f"{within}.{key}" not in moving)
        return {key: steady(value[key], moving, key) for key in kept}
    return [steady(inner, moving, within) for inner in value] if isinstance(value, list) else value


def differences(first: Any, second: Any, where: str = "") -> Iterator[str]:
    """Each place where the two differ, with both values."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted({*first, *second}):
            yield from differences(first.get(key), second.get(key), f"{where}.{key}" if where else key)
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, pair in enumerate(zip(first, second, strict=True)):
            yield from differences(*pair, f"{where}[{number}]")
    elif first != second:
        yield f"{where}: {json.dumps(first)[:300]} | {json.dumps(second)[:300]}"


def main() -> None:
    reports = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:3]]
    ours, theirs = (steady(report["snapshot"], TIMES | OF_A_GPU) for report in reports)
    found = list(differences(ours, theirs))
    sys.stdout.write("\n".join(found or ["the snapshots are equal"]) + "\n")
    first, second = (
        {run["name"]: run["status"] for run in report["probes"] if run["status"] != "skipped"} for report in reports
    )
    sys.stdout.writelines(f"{line}\n" for line in differences(first, second, "probes"))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
