"""What the lists over the screen offer: GPUs, environments; and saved reports by their path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from envcheck.checks import Check, Report, ways
from envcheck.errors import UsageError
from envcheck.redact import mask_secrets
from envcheck.report.page.pen import WORDS, Line, Pen, Span
from envcheck.report.page.stack import worst
from envcheck.report.page.subject import environments_of, framework_title, frameworks_in, gpu_name, gpus_of, listed
from envcheck.report.page.verbose import check_lines
from envcheck.report.saved.read import read_report
from envcheck.snapshot import Gpu
from envcheck.text.command import shell_line
from envcheck.tui.widgets.paint import Paint

_MOST_INPUT = 64 << 20
_GIB = 1 << 30


def command_of(check: Check) -> str:
    """The commands of its first way that has any, one step after the other, as a shell line; empty when none has."""
    found = ([shell_line(fix.command, ascii_only=False) for fix in way if fix.command] for way in ways(check.fixes))
    return " && ".join(next(filter(None, found), []))


def gpu_rows(report: Report, paint: Paint) -> list[Text]:
    """A row for each GPU: how it is, what it is, how it does."""
    rows = []
    for gpu in gpus_of(report):
        status = worst(_about(gpu, report))
        number = f"GPU {gpu.index if gpu.index is not None else gpu.key}"
        parts = [gpu_name(gpu), *_state(gpu)]
        rows.append(
            paint.line(
                (Span(f"{number:<8}"), Span(f"{WORDS[status]:<6}", status), Span(", ".join(filter(None, parts))))
            )
        )
    return rows


def _state(gpu: Gpu) -> list[str]:
    """What is known of how it does."""
    heat = gpu.temperature.gpu if gpu.temperature else None
    memory = gpu.memory
    used = (
        f"{memory.used / _GIB:.1f} of {memory.total / _GIB:.0f} GiB" if memory and memory.used and memory.total else ""
    )
    return [
        used,
        "" if gpu.utilisation is None else f"{gpu.utilisation:.0%} in use",
        "" if heat is None else f"{heat:.0f} C",
        "hidden from CUDA" if gpu.cuda_ordinal is None else "",
        gpu.pci_bus_id or "",
    ]


def gpu_lines(report: Report, number: int, pen: Pen) -> list[Line]:
    """Every check about one GPU, the pressing ones first."""
    gpu = gpus_of(report)[number]
    about = _about(gpu, report)
    lines: list[Line] = [(Span(pen.text(", ".join(filter(None, (gpu_name(gpu), *_state(gpu))))), "title"),), ()]
    order = ("fail", "warn", "unknown", "note", "pass", "skipped")
    for check in sorted(about, key=lambda check: order.index(check.status)):
        lines += check_lines(check, report, pen)
    return lines


def _about(gpu: Gpu, report: Report) -> list[Check]:
    names = set(gpu.identities())
    return [check for check in report.checks if names & {check.subject.key, check.subject.uuid or ""}]


def environment_rows(report: Report, paint: Paint) -> tuple[Sequence[str], Sequence[Text]]:
    """The environments' folders, and a row for each: which is judged, where it is, what is in it."""
    found = environments_of(report)
    rows = []
    for environment in found:
        titles = listed([framework_title(framework) for framework in frameworks_in(environment)]) or "no framework"
        word = "judged" if environment.judged else ""
        why = f" ({environment.why})" if environment.why else ""
        told = f"{environment.key}{why}: Python {environment.python or 'unknown'}, {titles}"
        rows.append(paint.line((Span(f"{word:<8}", "pass"), Span(told))))
    return [environment.key for environment in found], rows


def read_saved(name: str) -> Report:
    """The report in a file; raise UsageError when there is none."""
    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_INPUT)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None
    return mask_secrets(read_report(data))
