"""Write what is shown into the working folder, under pseudonyms where it is meant for others; say where."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.errors import EnvcheckError
from envcheck.output import write_whole
from envcheck.redact import mask_secrets, redact
from envcheck.report import FORMATS, Options, render

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.tui.app import EnvcheckApp

CHOICES = {
    **{name: told for name, told in FORMATS.items() if name not in ("summary", "speed")},
    "private": "the whole report as JSON with the names of machine and users in it",
    "svg": "a picture of this screen",
    "baseline": "the measured figures, to compare later ones with (envcheck bench --baseline)",
}
"""What can be written. All but ``private`` and ``baseline`` are redacted."""
_ENDINGS = {"json": "json", "private": "json", "text": "txt", "markdown": "md", "html": "html", "junit": "xml"}


async def export(app: EnvcheckApp, form: str) -> None:
    """Write it, and tell the path or what went wrong."""
    report = app.report
    if report is None:
        return
    ending = _ENDINGS.get(form, form if form != "baseline" else "baseline.json")
    path = Path.cwd() / f"envcheck-{time.strftime('%Y%m%d-%H%M%S')}.{ending}"
    try:
        await _write(app, report, form, path)
    except EnvcheckError as error:
        app.tell(str(error), severity="error")
    else:
        app.tell(f"written: {path}")


async def _write(app: EnvcheckApp, report: Report, form: str, path: Path) -> None:
    home = app.home
    if form == "baseline":
        from envcheck.baseline import save

        save(report, str(path))
    elif form == "private":
        write_whole(path, render(mask_secrets(report), "json"))
    elif form == "svg":
        hidden = redact(report, [home] if home else [])
        await app.show_report(hidden)
        picture = without_fonts(app.export_screenshot())
        await app.show_report(report)
        write_whole(path, picture)
    else:
        hidden = redact(report, [home] if home else [])
        write_whole(path, render(hidden, form, Options(home="")))


def without_fonts(picture: str) -> str:
    """An SVG picture that loads nothing from elsewhere: the reader's own fixed-width font does."""
    return re.sub(r"@font-face\s*\{[^}]*\}", "", picture)
