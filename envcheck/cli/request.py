"""Configuration and input of a verb: saved reports, pasted text, plans, baselines, the Request of its options."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from envcheck.errors import NoVerdictError, UsageError
from envcheck.pipeline.request import Request
from envcheck.text.clean import brief
from envcheck.text.streams import say

if TYPE_CHECKING:
    from envcheck.model.checks import Report
    from envcheck.model.components import Component
    from envcheck.model.runs import Measurement
    from envcheck.model.software import Environment
    from envcheck.pipeline.request import Machine, Policy


_MOST = 64 << 20  # Bytes read from a file; one more shows that it is longer

_SILENT_MS = 1000


def read_input(name: str, most: int = _MOST) -> bytes:
    """The first ``most`` bytes and one of the file ``name``, or of stdin where it is ``-``; raise UsageError.

    It waits for the writer of a pipe; after a second, it says so.
    """
    try:
        if name == "-":
            return sys.stdin.buffer.read(most + 1)
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb") as file:
            found = os.fstat(file.fileno())
            if stat.S_ISFIFO(found.st_mode):
                ready = select.poll()
                ready.register(file, select.POLLIN)
                if not ready.poll(_SILENT_MS):
                    say(brief(f"envcheck: waiting for input from the pipe {name}"))
                    ready.poll()
            os.set_blocking(file.fileno(), True)
            # Python takes memory for as many bytes as it is asked for; what the kernel makes up has no size.
            return file.read(min(most, found.st_size or most) + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def pasted_text(name: str) -> str:
    """The text of the file ``name``, or of stdin where it is ``-``; raise UsageError if it is too long."""
    content = read_input(name)
    if len(content) > _MOST:
        raise UsageError(
            f"{'stdin' if name == '-' else name} has more than {_MOST >> 20} MiB: keep the lines with versions and "
            f"those around the error, as in (head -n 2000 LOG; tail -n 2000 LOG) | envcheck explain -"
        )
    return content.decode("utf-8", "replace")


def saved_report(name: str) -> Report:
    """The report that was saved as ``name``, its secrets masked; raise UsageError, which names it, if it is none."""
    from envcheck.redact import mask_secrets

    return mask_secrets(unmasked_report(name))


def unmasked_report(name: str) -> Report:
    """The report that was saved as ``name``, as it stands there; raise UsageError, which names it, if it is none.

    Whoever shows anything of it masks that.
    """
    from envcheck.report.saved import read_report

    try:
        return read_report(read_input(name))
    except UsageError as error:
        named = "stdin" if name == "-" else name
        raise UsageError(str(error) if named in str(error) else f"{named}: {error}") from None


def judged_again(name: str, request: Request) -> Report:
    """What ``request`` says of the facts and figures of ``saved_report(name)``; date and duration stay."""
    from envcheck.pipeline.judging import judge

    saved = saved_report(name)
    if saved.snapshot is None:
        raise UsageError(f"{name} contains no snapshot; save the report with --format json")
    facts = replace(saved.snapshot, runs=saved.probes, measurements=saved.measurements)
    return replace(judge(facts, request), created=saved.created, duration_s=saved.duration_s, timing=saved.timing)


_MOST_FILES = 500  # Files that a folder of earlier runs may hold


def baseline(names: Sequence[str]) -> tuple[Measurement, ...]:
    """The figures of all that ``--baseline`` names."""
    if not names:
        return ()
    from envcheck.report.saved import MOST_RUNS, NoFiguresError, newest, read_baseline

    found = []
    for name in names:
        for file in files_of(name):
            try:
                found.append(read_baseline(read_input(file), file))
            except NoFiguresError as error:
                if file == name:
                    raise
                say(brief(f"envcheck: {error}; it is left out"))
    if not found:
        raise UsageError(f"{', '.join(names)} holds no figure to compare with")
    if len(found) > MOST_RUNS:
        say(f"envcheck: --baseline names {len(found)} runs; the newest {MOST_RUNS} count")
    return newest(found)


def files_of(name: str) -> list[str]:
    """``name``, or the JSON files of the folder ``name``; raise UsageError for a folder without any, or too many."""
    if name == "-" or not os.path.isdir(name):  # noqa: PTH112  a name may hold any byte
        return [name]
    try:
        with os.scandir(name) as entries:
            files = sorted(entry.path for entry in entries if entry.name.endswith(".json") and entry.is_file())
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None
    if not files:
        raise UsageError(f"the folder {name} holds no JSON file")
    if len(files) > _MOST_FILES:
        raise UsageError(f"the folder {name} holds {len(files)} JSON files; at most {_MOST_FILES} are read")
    return files


def _with_system(assume: tuple[Component, ...], general: tuple[Component, ...] = ()) -> tuple[Component, ...]:
    """``assume``; for another machine whose system nothing states, with Linux on x86_64: wheels differ by system."""
    from envcheck.model.components import Bound, Component
    from envcheck.pipeline.assume import assumes_machine

    if not assumes_machine(assume):
        return assume
    stated = {component.name for component in (*general, *assume)}
    added = {"os": "linux", "machine": "x86_64"}
    return (*assume, *(Component(name, (Bound("==", value),)) for name, value in added.items() if name not in stated))


def planned(request: Request, options: Namespace, assume: tuple[Component, ...]) -> Request:
    """The request with what the files of ``--plan`` would install: for each target, and of each plan ``@NAME``.

    Of the verb ``plan``, with what is wished.
    """
    import platform

    from envcheck.compat.package_needs import marks_of
    from envcheck.knowledge.load import load_matrix
    from envcheck.pipeline.assume import assumes_machine, merged_components
    from envcheck.pipeline.request import Machine
    from envcheck.plans import read_plans

    began = time.monotonic()
    named = [path[1:] for path in options.plan if path.startswith("@")]
    if named and len(named) < len(options.plan):
        raise UsageError("--plan: the files of @NAME are judged on their own: name other files in a separate run")
    groups: list[tuple[str, tuple[str, ...], tuple[Machine, ...]]] = [("", tuple(options.plan), ())]
    if named:
        from envcheck.config.meaning import plan_groups

        groups = plan_groups(named, options.configuration)
    own = {"linux": "linux", "darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    chosen = bool(options.target) or assumes_machine(assume)
    matrix = load_matrix(request.overlays)
    read: dict[Any, Environment] = {}
    machines: list[Machine] = []
    with _time_limit(request.timeout):
        for group, files, targets in groups:
            for target in (() if chosen else targets) or request.targets or (None,):
                machine = _with_system(target.assume if target else assume, assume)
                stated = {part.name: part.exact for part in merged_components(assume, machine)}
                system, processor = stated.get("os") or own, stated.get("machine") or platform.machine()
                markers = marks_of(stated.get("python"), system, processor)
                key = (files, *sorted(markers.items()))
                if key not in read:
                    newest, wishes = options.newest or bool(options.as_of), getattr(options, "wishes", ())
                    read[key] = read_plans(files, matrix, markers, newest=newest, as_of=options.as_of, wishes=wishes)
                name = " on ".join(filter(None, (group, target.name if target else "")))
                machines.append(Machine(name=name, assume=machine, planned=read[key]))
    left = request.timeout and max(0.001, request.timeout - (time.monotonic() - began))
    request = replace(request, planned=machines[0].planned, timeout=left)
    if machines[0].name:
        return replace(request, targets=tuple(machines))
    return replace(request, assume=machines[0].assume)


@contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Raise NoVerdictError where the block takes longer, whatever it does; no limit beside the main thread."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        raise NoVerdictError(f"--plan: reading it took longer than --timeout {seconds:g} s; nothing was judged")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)  # again, where what was interrupted ignored the error
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def request_of(options: Namespace, **more: Any) -> Request:
    """The Request with every option that has the name of a field, and with ``more``, which outranks them."""
    from envcheck.collect.starting import working_folder

    given = fields(Request, options)
    unread: list[str] = []
    given["configuration"] = getattr(getattr(options, "configuration", None), "path", None)
    if "matrix" in options:
        given |= {"overlays": overlays(options, unread), "overlays_unread": tuple(unread)}
    if "baseline" in options:
        given["baseline"] = baseline(options.baseline or ())
    return Request(**{**given, "cwd": working_folder(), "variables": dict(os.environ), **more})


def fields(kind: type[Struct], options: Namespace) -> dict[str, Any]:
    """The fields of ``kind`` that are given as options of their names."""
    given = {name: value for name, value in vars(options).items() if name in kind.__struct_fields__ and value}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def judging_request(options: Namespace) -> Request:
    """What ``check`` and ``explain`` ask; options that a verb does not have count as not given."""
    required, policy = of_configuration(options)
    assume = tuple(options.assume or ())
    targets = targets_of(options, assume)
    bench = None
    if getattr(options, "bench", False):
        from envcheck.collect.plan import BenchRequest

        bench = BenchRequest(force=options.force)
    required = tuple(dict.fromkeys((*(options.require or ()), *required)))
    more = {"accepted": unmasked_report(options.accept) if options.accept else None, "bench": bench}
    request = request_of(options, assume=assume, targets=targets, require=required, policy=policy, **more)
    return planned(request, options, assume) if getattr(options, "plan", None) else request


def of_configuration(options: Namespace) -> tuple[tuple[Component, ...], Policy | None]:
    """The requirements that no option stands for, and the policy; none without a configuration."""
    configuration = getattr(options, "configuration", None)
    if configuration is None:
        return (), None
    from envcheck.config.meaning import of_gpus, policy

    return of_gpus(configuration), policy(configuration)


def targets_of(options: Namespace, assume: tuple[Component, ...]) -> tuple[Machine, ...]:
    """The machines of ``--target``, else those that the configuration judges for; raise UsageError for an unknown one.

    Whoever assumes a machine, reads a saved report, or tries what is here, asks about that machine.
    """
    named, configuration = getattr(options, "target", None), getattr(options, "configuration", None)
    if named:
        from envcheck.config.meaning import targets

        return targets(named, configuration)
    if configuration is None or not configuration.config.targets or not hasattr(options, "target"):
        return ()
    from envcheck.config.meaning import default_targets
    from envcheck.pipeline.assume import assumes_machine

    defaults = default_targets(configuration)
    here = any(getattr(options, name) for name in ("saved", "verify", "deep", "bench"))
    return () if here or assumes_machine(assume) else defaults


def overlays(options: Namespace, unread: list[str] | None = None) -> tuple[str, ...]:
    """The folders of rows that are added to the matrix; what cannot be read is reported, and added to ``unread``."""
    from envcheck.knowledge.load import load_matrix, overlay_folders

    def tell(text: str) -> None:
        say(brief(f"envcheck: {text}"))
        if unread is not None:
            unread.append(brief(text))

    folders = overlay_folders(options.matrix, os.environ, unread=tell)
    if options.matrix:
        load_matrix(folders)  # now, so that nothing is started where they are wrong
    return folders
