"""The page for people: within 24 lines and 80 columns whatever the machine; with ``verbose``, everything.

Targets come before it, as many as there are.
"""

from __future__ import annotations

from envcheck.model.checks import Report
from envcheck.report import Format, Options
from envcheck.report.page.findings import Outline
from envcheck.report.page.frame import head_lines, other_lines, tail_lines
from envcheck.report.page.pen import LINES, ROOMS, Line, Pen, screen_rows
from envcheck.report.page.stack import stack_lines
from envcheck.report.page.subject import judged_environment

FORMAT = Format(shows="a page for people: the cause, the fix, the stack", suffix="txt", syntax="text")


def render(report: Report, options: Options) -> str:
    """``report`` as a page, or, when ``options.quiet``, its verdict and cause alone."""
    pen = Pen(options)
    outline = Outline(report)
    targets: list[Line] = []
    if report.targets:
        from envcheck.report.page.targets import target_lines

        targets = target_lines(report, pen)
    if options.verbose:
        from envcheck.report.page.verbose import verbose_lines

        return pen.show([*targets, *verbose_lines(outline, pen)])
    if options.quiet:
        return pen.show([*targets, *head_lines(outline, pen, ROOMS[1])])
    # Whether the head already says which environment was judged, and why.
    judged, subject = judged_environment(report), outline.cause.lead.subject if outline.cause else None
    heads_page = judged and subject and not judged.problem and judged.key in (subject.environment, subject.key)
    for room in ROOMS:
        page = [
            *head_lines(outline, pen, room),
            *other_lines(outline, pen, room),
            *stack_lines(report, pen, room, place_told=bool(heads_page)),
            *tail_lines(report, pen, room),
        ]
        if screen_rows(page, pen.width) <= LINES:
            break
    return pen.show([*targets, *page])
