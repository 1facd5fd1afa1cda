"""What windows offer: the fix command, one GPU, environments, saved reports, files to write into the working folder."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from envcheck.errors import UsageError
from envcheck.model.checks import STATUSES, Check, Report, ways_in_order
from envcheck.model.gpus import Gpu
from envcheck.model.snapshot import frameworks_in
from envcheck.redact import mask_secrets
from envcheck.report import FORMATS
from envcheck.report.page.pen import Line, Pen, StyledSpan
from envcheck.report.page.subject import framework_title, gpu_name, listed
from envcheck.report.page.verbose import check_lines
from envcheck.report.saved import read_report, save_baseline
from envcheck.text.clean import shell_line
from envcheck.text.output import write_whole
from envcheck.tui.widgets.paint import Paint

if TYPE_CHECKING:
    from envcheck.tui.worker.sessions import Client


def command_of(check: Check) -> str:
    """The commands of the first fix that has any, as one shell line; empty when none has."""
    found = (
        [shell_line(fix.command, ascii_only=False) for fix in way if fix.command] for way in ways_in_order(check.fixes)
    )
    return " && ".join(next(filter(None, found), []))


def gpu_lines(report: Report, number: int, pen: Pen) -> list[Line]:
    """Every check of one GPU, the most urgent first; one that passed in a line."""
    gpu = report.gpus[number]
    parts = (gpu_name(gpu), "hidden from CUDA" if gpu.cuda_ordinal is None else "", gpu.pci_bus_id or "")
    lines: list[Line] = [(StyledSpan(pen.text(", ".join(filter(None, parts))), "title"),), ()]
    for check in sorted(checks_of_gpu(gpu, report), key=lambda check: STATUSES.index(check.status)):
        lines += check_lines((check,), report, pen)[: 1 if check.status == "pass" else None]
    return lines


def checks_of_gpu(gpu: Gpu, report: Report) -> list[Check]:
    names = set(gpu.identities())
    return [check for check in report.checks if names & {check.subject.key, check.subject.uuid or ""}]


def environment_rows(report: Report, paint: Paint) -> tuple[Sequence[str], Sequence[Text]]:
    """The keys of the environments, and a row for each: which one is checked, where it is, what it holds."""
    rows = []
    for environment in report.environments:
        titles = listed([framework_title(framework) for framework in frameworks_in(environment)]) or "no framework"
        word = "checked" if environment.judged else ""
        why = f" ({environment.why})" if environment.why else ""
        text = f"{environment.key}{why}: Python {environment.python or 'unknown'}, {titles}"
        rows.append(paint.line((StyledSpan(f"{word:<9}", "pass"), StyledSpan(text))))
    return [environment.key for environment in report.environments], rows


def read_saved(name: str) -> Report:
    """The report in a file; raise UsageError when it cannot be read."""
    return mask_secrets(read_report(content_of(name, 64 << 20)))


def content_of(name: str, most: int) -> bytes:
    """At most so many bytes of a file; raise UsageError when it cannot be read."""
    try:
        with Path(name).expanduser().open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


_OWN = {
    "private": ("json", "the whole report as JSON, with the names of the machine and its users"),
    "svg": ("svg", "a picture of this screen"),
    "baseline": ("baseline.json", "the measured figures, to compare with later (envcheck bench --baseline)"),
}
"""Suffix and description of the formats that only the application offers; ``private`` and ``baseline`` show names."""


def choices() -> dict[str, str]:
    return {name: form.shows for name, form in FORMATS.items()} | {name: shows for name, (_, shows) in _OWN.items()}


async def export(
    report: Report, form: str, client: Client, home: str, picture: Callable[[Report], Awaitable[str]]
) -> Path:
    """Write a file and return its path; raise EnvcheckError. ``picture`` draws the screen for a redacted report."""
    suffix = _OWN[form][0] if form in _OWN else FORMATS[form].suffix
    path = Path.cwd() / f"envcheck-{time.strftime('%Y%m%d-%H%M%S')}.{suffix}"
    homes = [home] if home else []
    if form == "baseline":
        save_baseline(report, str(path))
    elif form == "svg":
        redacted = msgspec.json.decode(await client.ask("redacted", report, homes), type=Report)
        write_whole(path, without_fonts(await picture(redacted)), "markup")
    else:
        syntax = FORMATS["json" if form == "private" else form].syntax
        write_whole(path, await client.ask("rendered", report, form, homes), syntax)
    return path


def without_fonts(picture: str) -> str:
    """An SVG picture that downloads no font: the viewer's own fixed-width font serves."""
    return re.sub(r"@font-face\s*\{[^}]*\}", "", picture)
