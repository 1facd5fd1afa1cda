"""Files that the application writes into the working folder. All but two are redacted."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.report import FORMATS
from envcheck.text.output import write_whole

if TYPE_CHECKING:
    from envcheck.model.checks import Report
    from envcheck.tui.worker.client import Client

_OWN = {
    "private": ("json", "the whole report as JSON, with the names of the machine and its users"),
    "svg": ("svg", "a picture of this screen"),
    "baseline": ("baseline.json", "the measured figures, to compare with later (envcheck bench --baseline)"),
}
"""Suffix and description of the formats that only the application offers; ``private`` and ``baseline`` show names."""


def choices() -> dict[str, str]:
    """Name and description of each format."""
    own = {name: shows for name, (_, shows) in _OWN.items()}
    return {**{name: form.shows for name, form in FORMATS.items()}, **own}


async def export(
    report: Report, form: str, client: Client, home: str, picture: Callable[[Report], Awaitable[str]]
) -> Path:
    """Write a file and return its path; raise EnvcheckError. ``picture`` draws the screen for a redacted report."""
    suffix = _OWN[form][0] if form in _OWN else FORMATS[form].suffix
    path = Path.cwd() / f"envcheck-{time.strftime('%Y%m%d-%H%M%S')}.{suffix}"
    homes = [home] if home else []
    if form == "baseline":
        from envcheck.report.saved.baseline import save

        save(report, str(path))
    elif form == "svg":
        import msgspec

        from envcheck.model.checks import Report

        redacted = msgspec.json.decode(await client.ask("redacted", report, homes), type=Report)
        write_whole(path, without_fonts(await picture(redacted)), "markup")
    else:
        syntax = FORMATS["json" if form == "private" else form].syntax
        write_whole(path, await client.ask("rendered", report, form, homes), syntax)
    return path


def without_fonts(picture: str) -> str:
    """An SVG picture that downloads no font: the viewer's own fixed-width font serves."""
    return re.sub(r"@font-face\s*\{[^}]*\}", "", picture)
