"""How each kind of machine looks: words and colours at 80 x 24 and 200 x 60, in the dark and in the light.

``ENVCHECK_WRITE_SCREENS=1 pytest tests/tui/test_snapshots.py`` writes the files in ``snapshots`` anew: read the
difference. Where a picture differs, the test says where, and leaves it as SVG.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from envcheck.checks import Report
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.screens.builds import BuildTable
from tests.rules.machines import eight
from tests.tui.picture import rows_of, styles_of, words_of
from tests.tui.showing import SHOWN, judged, settled, show, until
from tests.tui.test_performance import copied

SNAPSHOTS = Path(__file__).parent / "snapshots"
SIZES = {"80x24": (80, 24), "200x60": (200, 60)}
_PINNED = re.search(r"^textual==(\S+)$", (Path(__file__).parents[2] / "constraints.txt").read_text(), re.MULTILINE)

pytestmark = pytest.mark.skipif(
    _PINNED is None or version("textual") != _PINNED[1],
    reason="pictures are of the Textual in constraints.txt: each release draws its own parts a little differently",
)


def _measured() -> Report:
    """Constructed: copies in the memory of eight GPUs, one of which is slow and one too slow."""
    machine = eight()
    assert machine.gpus is not None
    shares = (0.9, 0.9, 0.89, 0.91, 0.78, 0.9, 0.5, 0.9)
    figures = tuple(copied(gpu, share) for gpu, share in zip(machine.gpus.items, shares, strict=True))
    return judged(msgspec.structs.replace(machine, measurements=figures))


def _is_whole(table: BuildTable) -> bool:
    return table.grid is not None and table.row_count == len(table.grid.rows)


PICTURES: dict[str, tuple[Callable[[], Report], str]] = {
    **{name: (report, "1") for name, report in SHOWN.items()},
    "performance": (_measured, "2"),
    "matrix": (SHOWN["driver-too-old"], "3"),
    "facts": (SHOWN["h200"], "4"),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PICTURES)
def test_picture(name: str, size: str, tmp_path: Path) -> None:
    report, tab = PICTURES[name]
    looks: list[str] = []
    pictures: list[str] = []

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press(tab)
        if tab == "3":
            await until(pilot, lambda: all(map(_is_whole, app.query(BuildTable))) and app.query(BuildTable), 60)
        await settled(pilot, 0.3)
        for look in ("dark", "light"):
            rows = rows_of(app)
            looks.extend(([words_of(rows)] if not looks else []) + [f"-- {look}\n{styles_of(rows)}"])
            pictures.append(app.export_screenshot())
            await pilot.press("t")
            await until(pilot, lambda: app.current_theme.dark is (len(pictures) == 2))
            await settled(pilot, 0.5)

    show(report(), steps, size=SIZES[size])
    _compare("".join(looks), pictures, SNAPSHOTS / f"{name}-{size}.txt", tmp_path)


def _compare(seen: str, pictures: list[str], file: Path, folder: Path) -> None:
    if os.environ.get("ENVCHECK_WRITE_SCREENS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(seen)
    kept = file.read_text()
    if seen == kept:
        return
    for look, picture in zip(("dark", "light"), pictures, strict=True):
        (folder / f"{file.stem}-{look}.svg").write_text(picture)
    difference = difflib.unified_diff(kept.splitlines(), seen.splitlines(), "kept", "seen", lineterm="", n=1)
    raise AssertionError("\n".join([f"another picture than in {file.name}; see {folder}", *difference]))
