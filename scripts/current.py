"""Ask an index for the newest release of each name in current.txt, and say which of them the rows do not have.

python scripts/current.py [URL]: the index of ``matrix refresh`` where none is named. The status is 1 where any lags.
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

_LAST = 3
"""Releases before the newest: rows that end before these are about old ones alone."""


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
    with closing(PackageIndex(index_address(next(iter(arguments), None), os.environ))) as index:
        asked = in_parallel(index.pool, index.files, names)
    found = [
        with_archives((file for file in files if not file.yanked), name)
        for name, files in zip(names, asked, strict=True)
    ]
    lags = [said for name, its in zip(names, found, strict=True) if (said := lag(name, its, content))]
    print("\n".join((*lags, f"{len(names) - len(lags)} of {len(names)} names are current")))
    return bool(lags)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
