"""Show the answer of a verb: how its page looks, the files that were asked for, and stdout."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envcheck.errors import UsageError
from envcheck.report import FORMATS, Options, Pages, exit_status
from envcheck.text.clean import clean
from envcheck.text.inert import Syntax, inert
from envcheck.text.output import OutputTarget, write_whole
from envcheck.text.streams import print_text, say

if TYPE_CHECKING:
    from envcheck.model.checks import Report


def page(options: Namespace) -> Options:
    """How ``options`` and the terminal want a page to look; options that a verb does not have count as not given."""
    color = bool(options.color == "always")
    if options.color == "auto":
        forced = _is_on("FORCE_COLOR") or _is_on("CLICOLOR_FORCE")
        terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and os.environ.get("CLICOLOR") != "0"
        color = not os.environ.get("NO_COLOR") and (forced or terminal)
    return Options(
        width=columns(),
        color=color,
        verbose=getattr(options, "verbose", False),
        quiet=getattr(options, "quiet", False),
        ascii=options.ascii or not supports_unicode(),
        home=os.environ.get("HOME", ""),
        redact=getattr(options, "redact", None),
        homes=home_folders(),
    )


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0", "false")


def columns() -> int:
    """The columns of the terminal on stdout; those of ``Options`` for a pipe or a file."""
    try:
        wide = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    except (OSError, ValueError, AttributeError):
        wide = 0
    return wide or Options().width


def supports_unicode() -> bool:
    """Whether stdout can carry every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def home_folders() -> tuple[str, ...]:
    """The home folder whose owner is to be hidden by redaction."""
    return tuple(filter(None, (os.environ.get("HOME"),)))


def deliver(report: Report, options: Namespace, targets: Sequence[OutputTarget], edits: str = "") -> int:
    """Write ``report`` to ``targets``, print it, and return the exit status; raise UsageError for what failed.
    ``edits`` is what would make the judged plan fit.

    The status is the report's, or the one that the readers of the printed format expect.
    """
    pages = Pages(report)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and "github" in (options.format, *(target.format for target in targets)):
        # Appended: other commands of the step may have written to it.
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(inert(pages.render("markdown", _for_files(options)), FORMATS["markdown"].syntax))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            say(f"envcheck: cannot write the job's summary {clean(summary)}: {why}")

    def shown(form: str, wanted: Options) -> str:
        return pages.render(form, wanted._replace(edits=edits) if edits else wanted)

    write_all(shown, lambda name: FORMATS[name].syntax, options, targets)
    return exit_status(report, options.format)


def _for_files(options: Namespace) -> Options:
    """How a page looks in a file, whatever stdout is."""
    return Options(verbose=options.verbose, redact=getattr(options, "redact", None), homes=home_folders())


def write_all(
    render: Callable[[str, Options], str | Iterable[str]],
    syntax_of: Callable[[str], Syntax],
    options: Namespace,
    targets: Sequence[OutputTarget],
) -> None:
    """Write what ``render`` makes of a format to ``targets``, and print it; then raise UsageError for what failed."""
    shown, failures, over = _for_files(options), [], None
    if getattr(options, "found_outputs", False):
        from envcheck.report.saved import REPORT

        over = REPORT
    for target in targets:
        try:
            write_whole(target.path, render(target.format, shown), syntax_of(target.format), over)
        except UsageError as error:
            failures.append(str(error))
    print_text(render(options.format, page(options)), syntax=syntax_of(options.format))
    if failures:
        raise UsageError("; ".join(failures))
