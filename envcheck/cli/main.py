"""The command line: parse, call the verb, and end with an exit status whatever happened."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from envcheck.errors import EnvcheckError, ExitCode, NoVerdictError, UsageError
from envcheck.text import streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_SELDOM = 1_000_000
"""Allocations between two runs of the cycle collector: imports and a report make many objects and few cycles. A check
of 200 distributions makes 100,000, which it visits in 30 ms."""


def program() -> NoReturn:
    gc.set_threshold(_SELDOM)
    status = main()
    if len(sys._current_frames()) > 1 or "_duckdb" in sys.modules:  # noqa: SLF001  DuckDB reports all that is not freed
        sys.exit(status)
    atexit._run_exitfuncs()  # noqa: SLF001  as Python itself does
    os._exit(status)  # else Python frees all objects, one after another, which takes 12 ms after a check


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``envcheck`` with ``argv`` (default: ``sys.argv``) and return its exit status."""
    streams.prepare()
    return streams.finish(_guarded(sys.argv[1:] if argv is None else argv))


def _guarded(argv: Sequence[str]) -> int:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt  # which ends the children

    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                signal.signal(number, interrupt)
        return _run(argv)
    except EnvcheckError as error:
        no_verdict = isinstance(error, NoVerdictError)
        return _failed(f"envcheck: {error}", ExitCode.UNKNOWN if no_verdict else ExitCode.USAGE)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except SystemExit as left:  # the parser leaves so after --help
        return left.code if isinstance(left.code, int) else ExitCode.OK
    except MemoryError:
        return _failed(
            "envcheck: internal error: out of memory (see ulimit -v, or the memory limit of the container)",
            ExitCode.BROKEN,
        )
    except Exception as error:  # noqa: BLE001  every error is reported in one line
        return _broken(error)


def _broken(error: Exception) -> int:
    home = os.environ.get("PYTHONHOME", "").partition(os.pathsep)[0]
    own = os.path.realpath(f"{os.path.realpath(sys.executable)}/../..")
    if home and not sys.flags.ignore_environment and os.path.realpath(home) != own:
        # Another Python's standard library, and nothing more is said: what else would print it may be lacking too.
        wrong = f"PYTHONHOME={home[:200]!a} gives this Python (of {own!a}) the standard library of another one"
        streams.say(f"envcheck: {wrong}: unset it, or run env -u PYTHONHOME envcheck")
        return ExitCode.BROKEN
    if os.environ.get("ENVCHECK_DEBUG"):
        from traceback import format_exc

        from envcheck.text.clean import clean

        streams.say("\n".join(map(clean, format_exc().splitlines())))
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if name in ("", "envcheck", "matrix", "probes") or name in sys.stdlib_module_names:
        message = f"internal error: {type(error).__name__}: {error} (ENVCHECK_DEBUG=1 prints the traceback)"
    else:
        who = f"{name!a}, which envcheck requires, cannot be found by its Python ({sys.executable})"
        message = f"{who}: install envcheck again there, or see what PYTHONPATH and sitecustomize do to the search path"
    return _failed(f"envcheck: {message}", ExitCode.BROKEN)


def _failed(message: str, status: int) -> int:
    from envcheck.text.clean import brief

    streams.say(brief(message))
    return status


def _run(argv: Sequence[str]) -> int:
    argv = argv or ["tui" if _can_show_application() else "check"]
    if [*argv] == ["--version"]:
        return _print_version()
    if argv[0] == "node":
        from envcheck.cli.kept import exit_status_of

        status = exit_status_of(argv[1:])
        if status is not None:
            return status
    others = ("-h", "--help", "--from", "--scope")
    if argv[0] != "check" or any(argument.startswith(others) for argument in argv):  # they are not parsed yet
        return _run_verb(argv)
    from envcheck.collect.starting import end_early, start_early

    start_early()
    try:
        return _run_verb(argv)
    finally:
        end_early()


def _run_verb(argv: Sequence[str]) -> int:
    from envcheck.cli.parser import configured, parse

    options = parse(argv, os.environ)
    if options.version:
        return _print_version()
    if "no_config" in options:
        options = configured(options, argv, os.environ)
    verb = options.verb or "check"
    if verb == "check" and not options.saved:
        from envcheck.collect.starting import probe_request, send_early, working_folder
        from envcheck.config.values import SCOPES

        if options.scopes == frozenset(SCOPES):
            python, all_envs = options.python or (), options.all_envs
            request = probe_request(cwd=working_folder(), variables=os.environ, python=python, all_envs=all_envs)
            send_early(request, machine=not (options.assume or options.target or options.plan))
    # Import msgspec as if there were no ``typing_extensions``: it takes what is in ``typing`` since Python 3.11, and
    # brings no ``inspect``. Together these would take a tenth of the time of ``matrix check``.
    if sys.version_info >= (3, 11) and not {"typing_extensions", "msgspec"} & sys.modules.keys():
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # an import of it fails
        try:
            import msgspec  # noqa: F401
        finally:
            del sys.modules["typing_extensions"]
    from envcheck.cli.verbs import run_verb

    return run_verb(verb, options)


def _print_version() -> int:
    from envcheck import __version__
    from envcheck.knowledge.copies import date_of_rows

    date = date_of_rows()
    if not date:
        from envcheck.knowledge.load import matrix_date

        date = matrix_date()
    streams.print_text(f"envcheck {__version__} (matrix read {date})\n")
    return ExitCode.OK


def _can_show_application() -> bool:
    """Whether stdin and stdout are a capable terminal, and the application can be loaded."""
    plain = os.environ.get("TERM", "dumb") == "dumb" or bool(os.environ.get("CI"))
    if plain or not sys.stdin.isatty() or not sys.stdout.isatty():
        return False
    from envcheck.cli.verbs.tui import why_not

    return not why_not()


def pre_commit() -> NoReturn:
    """The hook of pre-commit: ``envcheck check`` with the file names that pre-commit appends to its arguments.

    ``--plan`` takes one file, so that what follows it stays readable; pre-commit can only append names. A program of
    its own keeps ``envcheck check FILE`` an error. Exit statuses are those of ``envcheck check``.
    """
    sys.exit(main(check_of_plans(sys.argv[1:])))


def check_of_plans(arguments: Sequence[str]) -> list[str]:
    """The command line that checks the files at the end of ``arguments``, all of them as one environment.

    Without a file, or with an unknown option, it is one that ``envcheck`` refuses with exit status 2.
    """
    from envcheck.cli.parser import grammar

    whole = ["check", *arguments]
    try:
        files: list[str] = grammar().parse_known_args(whole)[1]
    except UsageError:
        return whole  # main says what is wrong
    if not files:
        return [*whole, "--plan="]  # never the machine at hand instead of a file
    if whole[-len(files) :] != files or any(name.startswith("-") for name in files):
        return whole
    return [*whole[: -len(files)], *(f"--plan={name}" for name in files)]
