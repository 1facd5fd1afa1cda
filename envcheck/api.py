"""The functions behind ``envcheck.check`` and ``envcheck.snapshot``: a check without the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, get_args

from envcheck.collect.starting import working_folder
from envcheck.errors import UsageError
from envcheck.model.components import Component, parse_components
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline import session
from envcheck.pipeline.request import ALL_SCOPES, FailOn, Request

if TYPE_CHECKING:
    from envcheck.model.checks import Report, Scope


def check(
    *,
    python: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    scopes: Iterable[Scope] = ALL_SCOPES,
    assume: str | Iterable[str] = (),
    require: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
    skip: str | Iterable[str] = (),
    fail_on: FailOn = "fail",
    timeout: float | None = None,
    verify: bool = False,
    deep: bool = False,
    given: Snapshot | None = None,
) -> Report:
    """Examine this machine and judge it, as ``envcheck check`` does; nothing is printed.

    ``python`` is the interpreter or environment folder to judge, or several, of which the first is judged (default:
    the interpreter that runs this program). ``assume``, ``require``, ``only`` and ``skip`` take what the options take:
    ``assume="gpu==H100,driver==550.54.14"``, ``require=["torch>=2.4", "gpus>=8"]``, names of rules. ``timeout`` is in
    seconds, for the whole run. With ``given``, judge these facts instead of this machine.

    ``Report.exit_code`` is what the command line would return: 0, 1, or 3 without a verdict. Raise UsageError for what
    cannot be carried out. Probes run in child processes; nothing of the inspected environment is started unless
    ``deep`` is set. ``ENVCHECK_…`` variables do not count.
    """
    chosen = frozenset(scopes)
    if not chosen or not chosen <= ALL_SCOPES:
        raise UsageError(f"scopes: choose from {', '.join(sorted(ALL_SCOPES))}")
    if fail_on not in get_args(FailOn):
        raise UsageError(f"fail_on: choose from {', '.join(get_args(FailOn))}")
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):
        raise UsageError("timeout: write seconds, a number above 0")
    if given is not None and not isinstance(given, Snapshot):
        raise UsageError("given: write a Snapshot, as envcheck.snapshot() returns it")
    if given is not None and (python is not None or verify or deep):
        raise UsageError("python, verify and deep examine this machine, and given holds facts: use one of them")
    request = Request(
        scopes=chosen,
        python=_paths(python),
        assume=_components(assume, "assume"),
        require=_components(require, "require"),
        only=_texts(only, "only"),
        skip=_texts(skip, "skip"),
        fail_on=fail_on,
        timeout=timeout,
        verify=verify,
        deep=deep,
        cwd=working_folder(),
        variables=dict(os.environ),
    )
    return session.check(request) if given is None else session.judge(given, request)


def snapshot(
    *, python: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None, timeout: float | None = None
) -> Snapshot:
    """Examine this machine and judge nothing: the facts, each with its source; arguments as for ``check``."""
    return session.gather_here(
        Request(python=_paths(python), timeout=timeout, cwd=working_folder(), variables=dict(os.environ))
    )


def _paths(python: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None) -> tuple[str, ...]:
    if python is None:
        return (sys.executable,) if sys.executable else ()
    several = (python,) if isinstance(python, (str, os.PathLike)) else python
    try:
        paths = tuple(os.fspath(path) for path in several)
    except TypeError:
        raise UsageError("python: write a path, or a list of paths") from None
    if not paths or not all(paths):
        raise UsageError("python: an empty path")
    return paths


def _components(texts: str | Iterable[str], argument: str) -> tuple[Component, ...]:
    try:
        return tuple(component for text in _texts(texts, argument) for component in parse_components(text))
    except UsageError as error:
        raise UsageError(f"{argument}: {error}") from None


def _texts(texts: str | Iterable[str], argument: str) -> tuple[str, ...]:
    given = (texts,) if isinstance(texts, str) else tuple(texts) if isinstance(texts, Iterable) else (texts,)
    if not all(isinstance(text, str) for text in given):
        raise UsageError(f"{argument}: write a text, or a list of texts")
    return given
