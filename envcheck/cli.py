"""The command line: parse, call, choose a renderer, return an exit code."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from envcheck.errors import EnvcheckError, UsageError
from envcheck.exitcode import ExitCode

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.collect.bench_plan import Bench
    from envcheck.output import Target
    from envcheck.report import Options as ReportOptions
    from envcheck.session import Request
    from envcheck.snapshot import Measurement, Snapshot

_MOST_INPUT = 64 << 20
"""Bytes of a saved report or a pasted text that are read."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``envcheck`` with ``argv`` (default: the process's own) and return its exit status."""
    try:
        _end_children_on_termination()
        return _run(sys.argv[1:] if argv is None else argv)
    except EnvcheckError as error:
        print(f"envcheck: {error}", file=sys.stderr)
        return ExitCode.USAGE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`envcheck | head`): nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:
        if os.environ.get("ENVCHECK_DEBUG"):
            raise
        print(f"envcheck broke: {type(error).__name__}: {error} (ENVCHECK_DEBUG=1 shows where)", file=sys.stderr)
        return ExitCode.BROKEN


def _end_children_on_termination() -> None:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _run(argv: Sequence[str]) -> int:
    from envcheck.options import parse

    if not argv and _on_a_terminal():
        return _tui(parse(["tui"], os.environ), asked_for=False)
    options = parse(argv or ["check"], os.environ)
    if options.version:
        return _version()
    verbs = {
        "check": _check,
        "bench": _bench,
        "tui": _tui,
        "explain": _explain,
        "rule": _rule,
        "diff": _diff,
        "schema": _schema,
        "matrix": _matrix,
    }
    return verbs[options.verb or "check"](options)


def _version() -> int:
    from envcheck.compat.load import matrix_date
    from envcheck.options import versions

    print(versions(matrix_date()))
    return ExitCode.OK


def _check(options: Namespace) -> int:
    from envcheck import session
    from envcheck.output import parse_targets
    from envcheck.report import FORMATS
    from envcheck.report.progress import progress

    targets = parse_targets(options.output, FORMATS)
    request = _request(options)
    for wanted in ("deep", "bench"):
        if options.saved and getattr(options, wanted):
            raise UsageError(f"--{wanted} tries what is here, and --from judges a saved report: give one of the two")
    if options.saved:
        report = session.judge(_saved_snapshot(options.saved), request)
    else:
        with progress(sys.stderr, quiet=options.quiet) as on_event:
            report = session.check(request, on_event)
    return _deliver(report, options, targets)


def _on_a_terminal() -> bool:
    """Whether a person sits in front of a terminal that can show more than lines."""
    plain = os.environ.get("TERM", "dumb") == "dumb" or bool(os.environ.get("CI"))
    return not plain and sys.stdin.isatty() and sys.stdout.isatty()


def _tui(options: Namespace, *, asked_for: bool = True) -> int:
    """The terminal application; where it cannot be had and was not ``asked_for``, the text report."""
    try:
        from envcheck.tui.app import EnvcheckApp
    except ImportError as error:
        if asked_for:
            raise UsageError(
                f"the terminal application cannot be loaded ({error}); envcheck check needs none"
            ) from None
        return _run(["check"])
    from envcheck.report import Options, render
    from envcheck.request import Request

    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    page = Options(
        color=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),  # Textual takes the variable away
        ascii=options.ascii or not unicode,
        home=os.environ.get("HOME", ""),
    )
    request = Request(
        python=tuple(options.python or ()),
        baseline=_baseline(options),
        overlays=_overlays(options),
        cwd=_working_folder(),
        variables=dict(os.environ),
    )
    application = EnvcheckApp(request, page, saved=_saved_report(options.saved) if options.saved else None)
    try:
        report = application.run()
    finally:
        application.end_session()
    if report is not None:
        print(render(report, "text", page), end="")
    return ExitCode.OK


def _saved_report(name: str) -> Report:
    from envcheck.report.read import read_report

    return read_report(_read(name))


def _bench(options: Namespace) -> int:
    from envcheck import session
    from envcheck.baseline import save
    from envcheck.output import parse_targets
    from envcheck.report import FORMATS
    from envcheck.report.progress import progress
    from envcheck.rules.speed import MEASURED

    targets = parse_targets(options.output, FORMATS)
    request = _bench_request(options, MEASURED)
    with progress(sys.stderr, quiet=options.quiet) as on_event:
        report = session.check(request, on_event)
    options.format = "speed" if options.format in (None, "text") and not options.verbose else options.format
    status = _deliver(report, options, targets)
    if options.save_baseline and status == ExitCode.INTERRUPTED:
        print(f"envcheck: interrupted, so {options.save_baseline} was not written", file=sys.stderr)
    elif options.save_baseline:
        save(report, options.save_baseline)
    return status


def _bench_request(options: Namespace, rules: Sequence[str]) -> Request:
    from envcheck.collect.bench_plan import Bench
    from envcheck.session import Request

    return Request(
        python=tuple(options.python or ()),
        only=tuple(rules),
        fail_on=options.fail_on,
        timeout=options.timeout,
        bench=Bench(full=options.full, only=_quantities(options.only), gpus=options.gpu or (), force=options.force),
        baseline=_baseline(options),
        overlays=_overlays(options),
        cwd=_working_folder(),
        variables=dict(os.environ),
    )


def _quantities(names: Sequence[str] | None) -> tuple[str, ...]:
    from envcheck.compat.expected import quantities
    from envcheck.compat.load import tables

    known = quantities(tables())
    for name in names or ():
        if name not in known:
            raise UsageError(f"there is no quantity {name!r}; choose from {', '.join(sorted(known))}")
    return tuple(names or ())


def _baseline(options: Namespace) -> tuple[Measurement, ...]:
    name = getattr(options, "baseline", None)
    if not name:
        return ()
    from envcheck.baseline import read

    return read(_read(name), name)


def _explain(options: Namespace) -> int:
    from envcheck import session
    from envcheck.importers import read_text
    from envcheck.merge import merge
    from envcheck.output import parse_targets
    from envcheck.report import FORMATS

    targets = parse_targets(options.output, FORMATS)
    request = _request(options)
    if options.file == "-" and sys.stdin.isatty():
        raise UsageError("nothing to explain: name a file, or pipe the text in (envcheck explain < output.txt)")
    pasted = read_text(_read(options.file).decode("utf-8", "replace"))
    snapshot = merge([pasted, session.gather_here(request)]) if options.here else pasted
    return _deliver(session.judge(snapshot, request), options, targets)


def _rule(options: Namespace) -> int:
    from envcheck.report.rule_page import rule_list, rule_page
    from envcheck.rules.catalog import all_rules, find_rule

    if options.name is None:
        print(rule_list(all_rules()), end="")
        return ExitCode.OK
    rule = find_rule(options.name)
    if rule is None:
        raise UsageError(f"there is no rule {options.name!r}; envcheck rule lists them")
    print(rule_page(rule), end="")
    return ExitCode.OK


def _matrix(options: Namespace) -> int:
    if options.matrix_verb == "refresh":
        return _refresh(options)
    from envcheck import matrix_verbs

    form, overlays = options.format or "text", _overlays(options)
    if options.matrix_verb == "check":
        output = matrix_verbs.check(options.components, form, _shown(options), overlays)
    else:
        output = matrix_verbs.show(options.component, form, _shown(options), overlays)
    print(output.text, end="")
    sys.stdout.flush()
    return output.status


def _refresh(options: Namespace) -> int:
    from contextlib import closing

    try:
        from envcheck.refresh.index import Index, index_address
        from envcheck.refresh.run import refresh, report
    except ModuleNotFoundError as error:
        needed = "matrix refresh needs what the extra 'refresh' installs: pip install 'gpu-envcheck[refresh]'"
        raise UsageError(f"{needed} ({error.name} is missing)") from None
    from envcheck.report.clean import clean

    def say(step: str) -> None:
        if not options.quiet:
            print(f"reading {step}", file=sys.stderr)

    with closing(Index(index_address(options.index_url, os.environ))) as index:
        done = refresh(index, options.matrix, tuple(options.only or ()), dry_run=options.dry_run, on_step=say)
    print("\n".join(clean(line) for line in report(done).splitlines()))
    return ExitCode.OK


def _overlays(options: Namespace) -> tuple[str, ...]:
    from envcheck.compat.overlay import overlay_folders

    return overlay_folders(options.matrix, os.environ)


def _diff(options: Namespace) -> int:
    from envcheck.diff import diff
    from envcheck.redact import redact
    from envcheck.report import diff_json, diff_text
    from envcheck.report.read import read_report

    if options.files.count("-") > 1:
        raise UsageError("only one report can be read from stdin")
    reports = [(name, read_report(_read(name))) for name in options.files]
    if options.redact:
        reports = [(name, redact(report, _homes())) for name, report in reports]
    found = diff(reports)
    renderer = diff_json if options.format == "json" else diff_text
    print(renderer.render_diff(found, _shown(options)), end="")
    sys.stdout.flush()
    return ExitCode.OK if found.result == "same" else ExitCode.FOUND


def _schema(options: Namespace) -> int:
    import json

    from envcheck.report.schema import schema

    print(json.dumps(schema(options.name), indent=2))
    return ExitCode.OK


def _request(options: Namespace) -> Request:
    from envcheck.options import components
    from envcheck.session import ALL_SCOPES, Request

    return Request(
        scopes=options.scope or ALL_SCOPES,
        python=tuple(getattr(options, "python", None) or ()),
        all_envs=getattr(options, "all_envs", False),
        assume=components(options.assume, "--assume"),
        require=components(options.require, "--require"),
        only=tuple(options.only or ()),
        skip=tuple(options.skip or ()),
        fail_on=options.fail_on,
        timeout=getattr(options, "timeout", None),
        deep=getattr(options, "deep", False),
        bench=_quick(options),
        baseline=_baseline(options),
        force=getattr(options, "force", False),
        overlays=_overlays(options),
        cwd=_working_folder(),
        variables=dict(os.environ),
    )


def _quick(options: Namespace) -> Bench | None:
    from envcheck.collect.bench_plan import Bench

    return Bench(force=options.force) if getattr(options, "bench", False) else None


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "/"


def _saved_snapshot(name: str) -> Snapshot:
    import msgspec

    from envcheck.report.read import read_report

    report = read_report(_read(name))
    if report.snapshot is None:
        raise UsageError(f"{name} holds no facts (it was written without its snapshot); save it with --format json")
    return msgspec.structs.replace(report.snapshot, runs=report.probes, measurements=report.measurements)


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(_MOST_INPUT)
        with Path(name).open("rb") as file:
            return file.read(_MOST_INPUT)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def _deliver(report: Report, options: Namespace, targets: Sequence[Target]) -> int:
    from envcheck.output import write_whole
    from envcheck.report import Options, render

    shown = Options(verbose=options.verbose, redact=options.redact, homes=_homes())
    for target in targets:
        write_whole(target.path, render(report, target.format, shown))
    print(render(report, options.format or "text", _shown(options)), end="")
    sys.stdout.flush()
    return report.exit_code


def _shown(options: Namespace) -> ReportOptions:
    from envcheck.report import Options

    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return Options(
        color=_color(options),
        verbose=getattr(options, "verbose", False),
        quiet=getattr(options, "quiet", False),
        ascii=options.ascii or not unicode,
        home=os.environ.get("HOME", ""),
        redact=getattr(options, "redact", None),
        homes=_homes(),
    )


def _homes() -> tuple[str, ...]:
    """The home folder whose owner is to be hidden by redaction."""
    return tuple(filter(None, (os.environ.get("HOME"),)))


def _color(options: Namespace) -> bool:
    if options.color != "auto":
        return bool(options.color == "always")
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
