"""Write what is shown into the working folder, under pseudonyms where it is meant for others; say where."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.errors import EnvcheckError
from envcheck.report import FORMATS
from envcheck.text.output import write_whole

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.tui.app import EnvcheckApp

_OWN = {
    "private": "the whole report as JSON with the names of machine and users in it",
    "svg": "a picture of this screen",
    "baseline": "the measured figures, to compare later ones with (envcheck bench --baseline)",
}
_SUFFIXES = {"private": "json", "svg": "svg", "baseline": "baseline.json"}
_ROUNDS = 3
"""Times that all is drawn before a picture is taken: what is laid out anew may lead to more of it."""


def choices() -> dict[str, str]:
    """What can be written, and what each is. All but ``private`` and ``baseline`` are redacted."""
    return {**{name: form.shows for name, form in FORMATS.items()}, **_OWN}


async def export(app: EnvcheckApp, form: str) -> None:
    """Write it, and tell the path or what went wrong."""
    report = app.report
    if report is None:
        return
    suffix = _SUFFIXES.get(form) or FORMATS[form].suffix
    path = Path.cwd() / f"envcheck-{time.strftime('%Y%m%d-%H%M%S')}.{suffix}"
    try:
        await _write(app, report, form, path)
    except EnvcheckError as error:
        app.tell(str(error), severity="error")
    else:
        app.tell(f"written: {path}")


async def _write(app: EnvcheckApp, report: Report, form: str, path: Path) -> None:
    homes = [app.home] if app.home else []
    if form == "baseline":
        from envcheck.report.saved.baseline import save

        save(report, str(path))
    elif form == "svg":
        write_whole(path, await _picture(app, report, await app.desk.redacted(report, homes)), "markup")
    else:
        syntax = FORMATS["json" if form == "private" else form].syntax
        write_whole(path, await app.desk.rendered(report, form, homes), syntax)


async def _picture(app: EnvcheckApp, report: Report, redacted: Report) -> str:
    """The screen as it shows ``redacted`` in place of ``report``."""
    app.show(redacted)
    try:
        for _ in range(_ROUNDS):
            await _drawn(app)
        picture = without_fonts(app.export_screenshot())
    finally:
        shown = app.report
        if shown is redacted:
            app.show(report)
    if shown is not redacted:
        raise EnvcheckError("another report came while the picture was taken, so it was not written; take it again")
    return picture


async def _drawn(app: EnvcheckApp) -> None:
    """Until what was put on the screen is there."""
    drawn = asyncio.Event()
    app.call_after_refresh(drawn.set)
    await drawn.wait()


def without_fonts(picture: str) -> str:
    """An SVG picture that loads nothing from elsewhere: the reader's own fixed-width font does."""
    return re.sub(r"@font-face\s*\{[^}]*\}", "", picture)
