"""Why Slurm is to drain a node, in a line that HealthCheckProgram passes to scontrol: ``envcheck: gpu-lost gpu3``."""

from __future__ import annotations

from envcheck.model.checks import Report
from envcheck.report import Format, Options
from envcheck.text.clean import clean

FORMAT = Format(
    shows="the reason in one line for which Slurm drains a node", suffix="slurm.txt", syntax="text", targets=False
)


def render(report: Report, _options: Options) -> str:
    """The rule that found the root cause, and the GPUs where it did; ``envcheck: ok`` where nothing was found."""
    if report.primary is None or report.verdict not in ("fail", "warn"):
        return f"envcheck: {'ok' if report.verdict == 'pass' else 'no verdict'}\n"
    bad = (check for check in report.checks if check.status in ("fail", "warn") and not check.ignored)
    found = [check for check in bad if check.rule == report.primary]
    gpus = sorted({check.subject.index for check in found if check.subject.index is not None})
    return clean(" ".join([f"envcheck: {report.primary}", *(f"gpu{index}" for index in gpus)]))[:100] + "\n"
