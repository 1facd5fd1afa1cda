"""List the sources of the matrix that were read long ago, the oldest first, with the rows that rest on them.

python scripts/aging.py [DAYS]: those read more than DAYS (90) days ago. The status is 1 where there are any. What
``envcheck matrix refresh`` reads anew is left out: of it, nothing that did not change is dated again.
"""

from __future__ import annotations

import sys
from collections import Counter
from datetime import date, datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from envcheck.knowledge.compiling import PROJECTS, compile_folder, row_files
from envcheck.refresh.document import Document, find_work, is_generated

MOST_DAYS = 90


def aging(folder: Path, today: date, days: int) -> list[str]:
    """A line for each such source of a folder of rows: its age, its file and key, its rows, what it is and where."""
    content = compile_folder(folder)
    sources = content.pop("sources")
    rests = Counter(key for rows in content.values() for row in rows for key in row["source"])
    toml = [path for path in row_files(folder) if path.suffix == ".toml" and is_generated(path)]
    works = find_work([Document(path) for path in toml], ()) if toml else []
    again = {f"{work.document.path.stem}/{work.generated.source}" for work in works if hasattr(work, "generated")}
    found = []
    for key, source in sources.items():
        age = (today - date.fromisoformat(source["read"])).days
        if age > days and key not in again and not key.startswith(f"{Path(PROJECTS).name}/"):
            told = f"{source['title']}: {source['address']}"
            found.append((-age, f"{age} days: {key}, {rests[key]} rows: {told}"))
    return [line for _, line in sorted(found)]


def main(arguments: list[str]) -> int:
    days = int(arguments[0]) if arguments else MOST_DAYS
    lines = aging(Path(__file__).parents[1] / "matrix", datetime.now(timezone.utc).date(), days)
    print("\n".join((*lines, f"{len(lines)} sources were read more than {days} days ago")))
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
