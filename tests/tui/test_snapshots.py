"""How each kind of machine looks: words and colours at three sizes, in the dark and in the light.

``ENVCHECK_WRITE_SCREENS=1 pytest tests/tui/test_snapshots.py`` writes the files in ``snapshots`` anew: read the
difference. Where a picture differs, the test says where, and leaves it as SVG. Beside the words of ``PAINTED`` lie the
pictures themselves, to be looked at: ``xz -dc FILE.svg.xz > FILE.svg``.
"""

import difflib
import lzma
import os
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from envcheck.model.checks import Report
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.screens.whatif import BuildTable
from tests.rules.machines import eight
from tests.tui.picture import rows_of, styles_of, words_of
from tests.tui.showing import SHOWN, judged, show, until
from tests.tui.test_performance import copied

SNAPSHOTS = Path(__file__).parent / "snapshots"
SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x50": (200, 50)}
_PINNED = re.search(r"^textual==(\S+)$", (Path(__file__).parents[2] / "constraints.txt").read_text(), re.MULTILINE)

pytestmark = pytest.mark.skipif(
    _PINNED is None or version("textual") != _PINNED[1],
    reason="pictures are of the Textual in constraints.txt: each release draws its own parts a little differently",
)


def measured() -> Report:
    """Constructed: copies in the memory of eight GPUs, one of which is slow and one too slow."""
    machine = eight()
    assert machine.gpus is not None
    shares = (0.9, 0.9, 0.89, 0.91, 0.78, 0.9, 0.5, 0.9)
    figures = tuple(copied(gpu, share) for gpu, share in zip(machine.gpus.items, shares, strict=True))
    return judged(msgspec.structs.replace(machine, measurements=figures))


def is_whole(table: BuildTable) -> bool:
    return table.grid is not None and table.row_count == len(table.grid.rows)


PICTURES: dict[str, tuple[Callable[[], Report], str]] = {
    **{name: (report, "1") for name, report in SHOWN.items()}, "gpus": (measured, "2"),
    "performance": (measured, "3"), "matrix": (SHOWN["driver-too-old"], "4"), "facts": (SHOWN["h200"], "5"),
}  # fmt: skip
PAINTED = ("no-gpu", "h200", "gpus", "driver-too-old", "mixed-cudnn", "wsl", "jetson", "dead-probe")


@pytest.mark.parametrize("name", PICTURES)
def test_picture(name: str, tmp_path: Path) -> None:
    report, tab = PICTURES[name]
    # One start shows every size, except of the matrix: what is selected in its tables depends on the first one.
    starts = [[size] for size in SIZES] if tab == "4" else [[*SIZES]]
    kept = {size: file.read_text() if (file := _file(name, size)).exists() else "" for size in SIZES}
    seen, painted = dict.fromkeys(SIZES, ""), dict[Path, str]()

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press(tab)
        if tab == "4":
            await until(pilot, lambda: all(map(is_whole, app.query(BuildTable))) and app.query(BuildTable), 60)
        for size in sizes:
            await pilot.resize_terminal(*SIZES[size])
            for look in ("dark", "light"):
                if app.current_theme.dark is not (look == "dark"):
                    await pilot.press("t")
                drawn = await _drawn(app, pilot, look, kept[size])
                seen[size] += drawn
                picture = app.export_screenshot(simplify=True) if name in PAINTED or drawn not in kept[size] else ""
                painted[SNAPSHOTS / f"{name}-{size}-{look}.svg.xz"] = picture
                if drawn not in kept[size]:
                    (tmp_path / f"{name}-{size}-{look}.svg").write_text(picture)

    for sizes in starts:
        show(report(), steps, size=SIZES[sizes[0]])
    if os.environ.get("ENVCHECK_WRITE_SCREENS"):
        for size, drawn in seen.items():
            _file(name, size).write_text(drawn)
        for file, picture in painted.items() if name in PAINTED else ():
            file.write_bytes(lzma.compress(picture.encode()))
        return
    _compare(name, kept, seen, tmp_path)
    if name in PAINTED:
        others = [
            file.name for file, picture in painted.items() if lzma.decompress(file.read_bytes()) != picture.encode()
        ]
        assert not others, f"other pictures than in {', '.join(others)}"


def _file(name: str, size: str) -> Path:
    return SNAPSHOTS / f"{name}-{size}.txt"


async def _drawn(app: EnvcheckApp, pilot: Pilot[Any], look: str, kept: str) -> str:
    """The screen as soon as it is in ``kept``; one that is not has three seconds to come to rest."""
    drawn = ""
    for _ in range(30):
        rows = rows_of(app)
        drawn = f"{words_of(rows) if look == 'dark' else ''}-- {look}\n{styles_of(rows)}"
        if drawn in kept:
            break
        await pilot.pause(0.1)
    return drawn


def _compare(name: str, kept: dict[str, str], seen: dict[str, str], folder: Path) -> None:
    others = [f"{name}-{size}" for size in SIZES if kept[size] != seen[size]]
    before, after = (("".join(pictures.values())).splitlines() for pictures in (kept, seen))
    difference = difflib.unified_diff(before, after, "kept", "seen", lineterm="", n=1)
    assert not others, "\n".join([f"other pictures than in {', '.join(others)}; see {folder}", *difference])
