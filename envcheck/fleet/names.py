"""Names of nodes as Slurm and people write many of them: ``gpu[001-003]``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envcheck.text.wrap import consecutive

_UNUSUAL = re.compile(r"[\[\],\s\"]")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})(\D*)", re.DOTALL)


def folded(names: Iterable[str]) -> list[str]:
    """``names`` in order, runs of numbered ones joined: ``gpu[001-003]``; quoted where they could be taken for such."""
    families: dict[tuple[str, str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names)):
        found = _NUMBERED.fullmatch(name)
        if _UNUSUAL.search(name) or not name:
            plain.append(f'"{name}"')
        elif found:
            padded = len(found[2]) if found[2].startswith("0") and found[2] != "0" else 0
            families.setdefault((found[1], found[3], padded), []).append(int(found[2]))
        else:
            plain.append(name)
    for (head, tail, padded), numbers in families.items():
        runs = consecutive(sorted(numbers))
        parts = [f"{run[0]:0{padded}d}" + (f"-{run[-1]:0{padded}d}" if len(run) > 1 else "") for run in runs]
        plain.append(f"{head}{parts[0]}{tail}" if len(numbers) == 1 else f"{head}[{','.join(parts)}]{tail}")
    return sorted(plain)
