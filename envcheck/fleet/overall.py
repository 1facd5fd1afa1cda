"""What both reports about many nodes say first: how they came about, what they amount to, and the exit code."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Literal

import msgspec

from envcheck import __version__
from envcheck.checks import Tool, Verdict
from envcheck.compat.load import matrix_date
from envcheck.errors import ExitCode


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a report about many nodes."""


class Overall(Part, frozen=True, kw_only=True):
    """The whole in a few fields."""

    schema_version: str
    """Version of this contract: readers accept any minor of their major."""
    tool: Tool
    """The program that made the report."""
    created: str
    """UTC, RFC 3339."""
    duration_s: float
    """How long it took, in seconds."""
    engine: str
    """What reached the nodes: ``reports``, ``hosts``, ``slurm``, ``kubernetes``, ``ray``."""
    headline: str
    """The result in a line."""
    verdict: Verdict
    """The whole in a word; ``unknown``: nodes lack a verdict or are too few to compare, and nothing is worse."""
    exit_code: int
    """0 nothing at or above ``--fail-on``, 1 something, 3 no verdict or a node without one, 130 interrupted."""


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """How a report about many nodes came about."""

    tool: Tool
    engine: str
    created: str
    duration_s: float
    fail_on: Literal["fail", "warn"] = "fail"
    interrupted: bool = False

    def exit_code(self, verdict: Verdict, *, lacking: bool) -> ExitCode:
        """The exit code; ``lacking``: a node is without a verdict."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if verdict == "fail" or (verdict == "warn" and self.fail_on == "warn"):
            return ExitCode.FOUND
        return ExitCode.UNKNOWN if verdict == "unknown" or lacking else ExitCode.OK


def circumstances(engine: str, began: float, fail_on: Literal["fail", "warn"], *, interrupted: bool) -> Circumstances:
    """How a report came about that ``began`` by ``time.monotonic()``, and is finished now."""
    return Circumstances(
        tool=Tool(version=__version__, matrix=matrix_date()),
        engine=engine,
        created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_s=round(time.monotonic() - began, 3),
        fail_on=fail_on,
        interrupted=interrupted,
    )


def counted(count: int, one: str, many: str) -> str:
    """A part of a headline: ``1 node fails``, ``3 nodes fail``; empty for none."""
    return f"{count:,} {one if count == 1 else many}" if count else ""
