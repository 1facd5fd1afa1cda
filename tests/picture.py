"""The moving picture of README.md, ``docs/screens/check.svg``: a recorded machine, asked by other tools and envcheck.

``python -m tests.picture`` draws it. The page is rendered now, from the facts in ``tests/machines``; what other
programs printed stands beside them. Viewers that do not move it, or are asked not to, show the page.
"""

import html
import json
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

import msgspec

from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.session import Request, judge
from envcheck.report import Options, render

ROOT = Path(__file__).parents[1]
MACHINE = ROOT / "tests" / "machines" / "h200-older-cudnn.json"
PICTURE = ROOT / "docs" / "screens" / "check.svg"

_COLUMNS, _ROWS = 80, 24
_CELL, _LINE, _SIZE = 8.4, 18, 14
_LEFT, _TOP = 18, 46
_TYPING, _ANSWER, _READ = 0.03, 0.35, {1: 2.2, 2: 9.0, 3: 3.5}
"""Seconds: to type a character, before what is printed, and after the last line of each scene."""
_COLOURS = {
    "1;31": "#ff7b72", "1;33": "#e3b341", "1;35": "#d2a8ff", "36": "#79c0ff", "32": "#7ee787", "1;36": "#a5d6ff",
    "2": "#8b949e", "1": "#ffffff", "": "#c9d1d9",
}  # fmt: skip
_SGR = re.compile(r"\x1b\[([0-9;]*)m([^\x1b]*)\x1b\[0m|([^\x1b]+)")


class Shown(NamedTuple):
    """One row, when it appears, and how long it takes to be typed."""

    text: str
    row: int
    scene: int
    at: float
    typing: float


def recorded(name: str) -> dict[str, str]:
    """What programs printed on the machine: ``printed``, or ``mended``."""
    found: dict[str, str] = json.loads(MACHINE.read_bytes())[name]
    return found


def page(*, color: bool = True) -> str:
    """What ``envcheck check`` prints there."""
    facts = msgspec.convert(json.loads(MACHINE.read_bytes())["snapshot"], Snapshot)
    return render(judge(facts, Request()), "text", Options(color=color))


def scenes() -> list[list[tuple[str, str]]]:
    """Commands with their output, a list for each screen."""
    broken, mended = recorded("printed"), recorded("mended")
    (variable,) = set(re.findall(r"LD_LIBRARY_PATH=\S+", page(color=False)))  # the fix that the page offers
    train = "python train.py"
    return [
        [(command, broken[command]) for command in broken],
        [("envcheck check", page())],
        [(f"export {variable}", ""), (train, mended[train])],
    ]


def timeline() -> tuple[list[Shown], list[float], float]:
    """Every row, when each scene begins, and when it all begins again."""
    rows: list[Shown] = []
    begins, clock = [], 0.0
    for scene, commands in enumerate(scenes(), 1):
        begins.append(clock)
        row = 0
        for command, output in commands:
            clock += 0.5 if rows else 0.0  # never an empty screen
            typing = len(command) * _TYPING
            rows.append(Shown(f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m", row, scene, clock, typing))
            clock += typing + _ANSWER
            row += 1
            for line in output.splitlines():
                for part in [line] if "\x1b" in line else textwrap.wrap(line, _COLUMNS) or [""]:
                    rows.append(Shown(part, row, scene, clock, 0))
                    row += 1
                    clock += 0.03
        if row > _ROWS:
            raise AssertionError(f"scene {scene} has {row} rows, and the picture {_ROWS}")
        clock += _READ[scene]
    return rows, begins, clock


def picture() -> str:
    """The picture as SVG."""
    rows, begins, end = timeline()
    ends = [*begins[1:], end]
    styles, drawn = [], []
    for number, shown in enumerate(rows):
        start, over = (f"{100 * at / end:.3f}" for at in (shown.at, ends[shown.scene - 1]))
        top = _TOP + shown.row * _LINE
        styles.append(f"@keyframes a{number} {{ 0% {{opacity:0}} {start}% {{opacity:1}} {over}% {{opacity:0}} }}")
        styles.append(f"#a{number} {{ animation: a{number} {end:.2f}s step-end infinite }}")
        cover = ""
        if shown.typing:
            wide = (_COLUMNS + 2) * _CELL
            typed = f"{100 * (shown.at + shown.typing) / end:.3f}"
            letters = round(shown.typing / _TYPING)
            styles.append(
                f"@keyframes c{number} {{ 0%, {start}% {{transform:none; animation-timing-function:steps({letters})}} "
                f"{typed}%, 100% {{transform:translateX({letters * _CELL:.1f}px)}} }}"
            )
            styles.append(f"#c{number} {{ animation: c{number} {end:.2f}s linear infinite }}")
            cover = (
                f'<rect id="c{number}" class="cover" x="{_LEFT + 2 * _CELL:.1f}" y="{top - _LINE + 4}" '
                f'width="{wide:.1f}" height="{_LINE}"/>'
            )
        still = "" if shown.scene == 2 else ' class="moving"'
        drawn.append(f'<g id="a{number}"{still}>{_row(shown.text, top)}{cover}</g>')
    wide, high = round(_COLUMNS * _CELL + 2 * _LEFT), _TOP + _ROWS * _LINE + 4
    classes = "\n".join(f".s{number} {{ fill: {colour} }}" for number, colour in enumerate(_COLOURS.values()))
    told = html.escape(" ".join(page(color=False).splitlines()[0].split()))
    buttons = "".join(
        f'<circle cx="{_LEFT + 6 + 20 * place}" cy="18" r="6" fill="{colour}"/>'
        for place, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img">
<title>envcheck check: {told}</title>
<style>
text {{ font: {_SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre }}
{classes}
.s0, .s1, .s2, .s5, .s7 {{ font-weight: 700 }}
.moving, .cover {{ opacity: 0 }}
.cover {{ fill: #0d1117 }}
@media not (prefers-reduced-motion: reduce) {{
.cover {{ opacity: 1 }}
{chr(10).join(styles)}
}}
</style>
<clipPath id="screen"><rect x="1" y="30" width="{wide - 2}" height="{high - 34}"/></clipPath>
<rect x=".5" y=".5" width="{wide - 1}" height="{high - 1}" rx="9" fill="#0d1117" stroke="#30363d"/>
{buttons}
<g clip-path="url(#screen)">
{chr(10).join(drawn)}
</g>
</svg>
"""


def _row(text: str, top: int) -> str:
    """The pieces of a row, each as wide as its columns whatever the font."""
    column, parts = 0, []
    for style, styled, plain in _SGR.findall(text):
        piece = styled or plain
        if piece.strip():
            number = list(_COLOURS).index(style if styled else "")
            indent = len(piece) - len(piece.lstrip())
            piece_left = _LEFT + (column + indent) * _CELL
            shown = piece.strip()
            parts.append(
                f'<text class="s{number}" x="{piece_left:.1f}" y="{top}" textLength="{len(shown) * _CELL:.1f}" '
                f'lengthAdjust="spacingAndGlyphs">{html.escape(shown)}</text>'
            )
        column += len(piece)
    return "".join(parts)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
