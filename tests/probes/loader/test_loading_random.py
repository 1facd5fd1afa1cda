"""Random layouts of libraries that need each other, in several folders and by several ways: predicted as they load."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TypeVar

import pytest

from tests.probes.loader.loading_builds import GCC, REASON, Workshop, rpath, runpath

pytestmark = pytest.mark.skipif(GCC is None, reason=REASON)

T = TypeVar("T")
FOLDERS = [f"d{number}" for number in range(4)]
NAMES = [f"libx{number}.so" for number in range(5)]


class Layout:
    """One random layout below a folder, and what a program in it opens."""

    def __init__(self, shop: Workshop, seed: int) -> None:
        self._shop = shop
        self._random = random.Random(seed)
        for name in NAMES:
            shop.library(f"stubs/{name}")
        files = [self._file(folder, name) for name in NAMES for folder in self._some(FOLDERS, 1, 2)]
        self.program = shop.program("bin/host", [f"stubs/{name}" for name in self._some(NAMES, 0, 1)], *self._path())
        self.variables = {"LD_LIBRARY_PATH": ":".join(self._folders(0, 2))}
        preloaded = [str(path) for path in self._some(files, 0, 1)]
        if preloaded:
            self.variables["LD_PRELOAD"] = " ".join(preloaded)
        self.opened = self._some([*NAMES, *map(str, files), "libnone.so"], 2, 5)

    def _file(self, folder: str, name: str) -> Path:
        needed = [f"stubs/{other}" for other in self._some(NAMES, 0, 2)]
        soname = self._random.choice(["", "", "", "", None, self._random.choice(NAMES)])
        return self._shop.library(f"{folder}/{name}", needed, *self._path(), soname=soname)

    def _path(self) -> tuple[str, ...]:
        how = self._random.choice([rpath, runpath, None])
        folders = self._folders(1, 2)
        return how(*folders) if how else ()

    def _folders(self, least: int, most: int) -> list[str]:
        forms = ["{top}/{folder}", "$ORIGIN/../{folder}", "{top}/{folder}/../{folder}"]
        return [
            self._random.choice(forms).format(top=self._shop.folder, folder=folder)
            for folder in self._some(FOLDERS, least, most)
        ]

    def _some(self, things: list[T], least: int, most: int) -> list[T]:
        return self._random.sample(things, self._random.randint(least, min(most, len(things))))


def differs(folder: Path, seed: int) -> str | None:
    """Empty where all is as predicted; None where the program cannot even start, which says nothing."""
    shop = Workshop(folder)
    layout = Layout(shop, seed)
    truth = shop.attempt(layout.program, layout.opened, layout.variables)
    if truth is None:
        return None
    predicted = shop.predicted(layout.program, layout.opened, layout.variables)
    return "" if predicted == truth else f"seed {seed}: {layout.opened} {layout.variables}: {predicted} != {truth}"


@pytest.mark.parametrize("seed", range(6))
def test_a_random_layout(tmp_path: Path, seed: int) -> None:
    assert not differs(tmp_path, seed)


@pytest.mark.lab
def test_many_random_layouts(tmp_path: Path) -> None:
    found = []
    for seed in range(100, 260):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found.append(differs(folder, seed))
    assert not [one for one in found if one]
    assert found.count("") > len(found) / 2
