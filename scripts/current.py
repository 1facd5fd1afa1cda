"""Say for which names of current.txt the rows lack the newest release, and which other rows by hand end before it.

python scripts/current.py [URL]: the index of ``matrix refresh`` where none is named. Status 1: one of the first lags.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parents[1]))

from envcheck.knowledge.compiling import compile_folder
from envcheck.refresh.index import PackageIndex, in_parallel, index_address
from envcheck.refresh.release_rows import covered
from envcheck.refresh.wheel_files import Release, with_archives

_LAST = 3  # Releases before the newest: rows that end before these are about old ones alone


def lag(name: str, found: Sequence[Release], content: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Why the rows are not current for a project with these releases; empty where they are."""
    if not found:
        return f"{name}: the index has no release"
    newest = found[-1]
    own = {table: [row for row in content[table] if row.get("name") == name] for table in ("release", "published")}
    known = {version for row in own["published"] for text in row["releases"] for version in text.split()}
    known |= {row["version"] for row in content["torch"] if name == "torch"}
    known |= {each for row in content["cuda"] if name == "cuda-toolkit" for each in row.get("releases", ())}
    if not known:
        return f"{name}: no row knows it"
    if newest.version not in map(Version, known):
        return f"{name} {newest.version}: the rows end with {max(map(Version, known))}"
    every = [row["versions"] for row in own["release"]]
    in_rows = [release.version for text in every for release in covered(text, every, found[-1 - _LAST :])]
    if in_rows and newest.version not in in_rows:
        return f"{name} {newest.version}: what it needs is told up to {max(in_rows)}"
    return ""


def main(arguments: Sequence[str]) -> int:
    content = compile_folder(Path(__file__).parents[1] / "matrix")
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if not line.startswith("#")]
    by_hand = {row["name"] for row in content["release"]} & {row["name"] for row in content["published"]}
    asked = [*names, *sorted(by_hand - {*names})]
    with closing(PackageIndex(index_address(next(iter(arguments), None), os.environ))) as index:
        files = in_parallel(index.pool, index.files, asked)
    lags = {}
    for name, its in zip(asked, files, strict=True):
        found = with_archives((file for file in its if not file.yanked), name)
        if (found or name in names) and (said := lag(name, found, content)):
            lags[name] = said if name in names else f"besides: {said}"
    late = lags.keys() & {*names}
    print("\n".join((*lags.values(), f"{len(names) - len(late)} of {len(names)} names are current")))
    return bool(late)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
