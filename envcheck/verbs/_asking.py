"""The Request that the options of a verb stand for."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING

from envcheck.options import components
from envcheck.request import ALL_SCOPES, Request
from envcheck.verbs._reading import baseline

if TYPE_CHECKING:
    from envcheck.collect.bench_plan import Bench


def judging_request(options: Namespace) -> Request:
    """What ``check`` and ``explain`` ask; options that a verb does not have count as not given."""
    from envcheck.collect.probe_request import working_folder

    unread: list[str] = []
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
        verify=getattr(options, "verify", False),
        deep=getattr(options, "deep", False),
        bench=_quick(options),
        baseline=baseline(options),
        force=getattr(options, "force", False),
        overlays=overlays(options, unread),
        overlays_unread=tuple(unread),
        cwd=working_folder(),
        variables=dict(os.environ),
    )


def overlays(options: Namespace, unread: list[str] | None = None) -> tuple[str, ...]:
    """The folders of rows that are laid over the matrix; what cannot be read is said, and kept in ``unread``."""
    from envcheck.compat.overlay import overlay_folders
    from envcheck.report.clean import brief
    from envcheck.streams import say

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
