"""The input of a verb: saved reports, pasted text, baselines, and the Request that its options stand for."""

from __future__ import annotations

import os
import select
import stat
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from envcheck.cli.options import components
from envcheck.errors import UsageError
from envcheck.pipeline.request import ALL_SCOPES, Request
from envcheck.text.clean import brief
from envcheck.text.streams import say

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.collect.bench_plan import Bench
    from envcheck.components import Component
    from envcheck.pipeline.request import Machine, Policy
    from envcheck.snapshot import Environment, Measurement

_MOST = 64 << 20
"""Bytes read from a file; one more shows that it is longer."""

_SILENT_MS = 1000


def read_input(name: str, most: int = _MOST) -> bytes:
    """The first ``most`` bytes and one of the file ``name``, or of stdin where it is ``-``; raise UsageError."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(most + 1)
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb") as file:
            _wait(file.fileno(), name)
            return file.read(most + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def _wait(descriptor: int, name: str) -> None:
    """Wait for the writer of a pipe; after a second, say so."""
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        ready = select.poll()
        ready.register(descriptor, select.POLLIN)
        if not ready.poll(_SILENT_MS):
            say(brief(f"envcheck: waiting for input from the pipe {name}"))
            ready.poll()
    os.set_blocking(descriptor, True)


def pasted_text(name: str) -> str:
    """The text of the file ``name``, or of stdin where it is ``-``; raise UsageError if it is too long."""
    content = read_input(name)
    if len(content) > _MOST:
        raise UsageError(
            f"{_named(name)} has more than {_MOST >> 20} MiB: keep the lines with versions and those around the "
            f"error, as in (head -n 2000 LOG; tail -n 2000 LOG) | envcheck explain -"
        )
    return content.decode("utf-8", "replace")


def saved_report(name: str) -> Report:
    """The report that was saved as ``name``, its secrets masked; raise UsageError, which names it, if it is none."""
    from envcheck.redact import mask_secrets
    from envcheck.report.saved.read import read_report

    try:
        return mask_secrets(read_report(read_input(name)))
    except UsageError as error:
        named = _named(name)
        raise UsageError(str(error) if named in str(error) else f"{named}: {error}") from None


def _named(name: str) -> str:
    return "stdin" if name == "-" else name


def baseline(options: Namespace) -> tuple[Measurement, ...]:
    """The figures of ``--baseline``; none where it was not given."""
    name = getattr(options, "baseline", None)
    if not name:
        return ()
    from envcheck.report.saved.baseline import read

    return read(read_input(name), name)


# Plans.


def with_system(assume: tuple[Component, ...]) -> tuple[Component, ...]:
    """Linux on x86_64, where another machine is assumed without its system: wheels differ by system."""
    from envcheck.components import Bound, Component
    from envcheck.pipeline.assume import assumes_machine

    stated = {component.name for component in assume}
    if not assumes_machine(assume):
        return assume
    added = {"os": "linux", "machine": "x86_64"}
    return (*assume, *(Component(name, (Bound("==", value),)) for name, value in added.items() if name not in stated))


def planned(options: Namespace, assume: tuple[Component, ...], folders: tuple[str, ...]) -> Environment | None:
    """What the files of ``--plan`` would install; None where it was not given."""
    paths = getattr(options, "plan", None)
    if not paths:
        return None
    import platform

    from envcheck.compat.load import load_matrix
    from envcheck.compat.question.package_needs import marks_of
    from envcheck.plans import read_plans

    stated = {component.name: component.exact for component in assume}
    own = {"linux": "linux", "darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    marks = marks_of(stated.get("python"), stated.get("os") or own, stated.get("machine") or platform.machine())
    return read_plans(paths, load_matrix(folders), marks)


# The Request that the options of a verb stand for.


def judging_request(options: Namespace) -> Request:
    """What ``check`` and ``explain`` ask; options that a verb does not have count as not given."""
    from envcheck.collect.request import working_folder

    unread: list[str] = []
    configured, policy = of_configuration(options)
    folders = overlays(options, unread)
    assume = components(options.assume, "--assume")
    if getattr(options, "plan", None):
        assume = with_system(assume)
    return Request(
        scopes=options.scope or ALL_SCOPES,
        python=tuple(getattr(options, "python", None) or ()),
        all_envs=getattr(options, "all_envs", False),
        assume=assume,
        planned=planned(options, assume, folders),
        targets=_targets(options),
        require=tuple(dict.fromkeys((*components(options.require, "--require"), *configured))),
        only=tuple(options.only or ()),
        skip=tuple(options.skip or ()),
        policy=policy,
        configuration=getattr(getattr(options, "configuration", None), "path", None),
        fail_on=options.fail_on,
        timeout=getattr(options, "timeout", None),
        verify=getattr(options, "verify", False),
        deep=getattr(options, "deep", False),
        bench=_quick(options),
        baseline=baseline(options),
        force=getattr(options, "force", False),
        overlays=folders,
        overlays_unread=tuple(unread),
        cwd=working_folder(),
        variables=dict(os.environ),
    )


def of_configuration(options: Namespace) -> tuple[tuple[Component, ...], Policy | None]:
    """The requirements that no option stands for, and the policy; none without a configuration."""
    configuration = getattr(options, "configuration", None)
    if configuration is None:
        return (), None
    from envcheck.config.meaning import of_gpus, policy

    return of_gpus(configuration), policy(configuration)


def _targets(options: Namespace) -> tuple[Machine, ...]:
    """The machines of ``--target``; raise UsageError where one is not known."""
    named = getattr(options, "target", None)
    if not named:
        return ()
    from envcheck.config.targets import targets

    return targets(named, options.configuration)


def overlays(options: Namespace, unread: list[str] | None = None) -> tuple[str, ...]:
    """The folders of rows that are added to the matrix; what cannot be read is reported, and added to ``unread``."""
    from envcheck.compat.overlay import overlay_folders
    from envcheck.text.clean import brief
    from envcheck.text.streams import say

    def tell(text: str) -> None:
        say(brief(f"envcheck: {text}"))
        if unread is not None:
            unread.append(brief(text))

    return overlay_folders(options.matrix, os.environ, unread=tell)


def _quick(options: Namespace) -> Bench | None:
    if not getattr(options, "bench", False):
        return None
    from envcheck.collect.bench_plan import Bench

    return Bench(force=options.force)
