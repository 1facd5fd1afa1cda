"""What is asked of a session. It imports nothing of what carries it out, so that asking is quick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    import datetime as dt

    from envcheck.collect.plan import BenchRequest
    from envcheck.model.checks import Location, Report, Scope
    from envcheck.model.components import Component
    from envcheck.model.snapshot import Environment, Measurement

FailOn = Literal["fail", "warn"]

ALL_SCOPES: frozenset[Scope] = frozenset({"node", "container", "env"})


class Ignoring(msgspec.Struct, frozen=True, kw_only=True):
    """A finding to set aside."""

    problem: str  # Name of a rule, or the id of one check
    reason: str
    until: dt.date  # The last day


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration decides about findings, after the rules have judged."""

    severity: Mapping[str, Literal["note", "warn", "fail"]] = {}  # By rule: the status of its findings
    forbid: tuple[str, ...] = ()  # Rules that must find nothing, and must have looked
    ignore: tuple[Ignoring, ...] = ()
    shares: Mapping[str, float] = {}  # By quantity: the least share of its ceiling, where it is measured
    places: Mapping[str, Location] = {}  # By component, rule or quantity: where the configuration asks for it
    today: dt.date | None = None  # None: the current day (UTC)


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine to judge for instead of this one: ``--target``."""

    name: str
    assume: tuple[Component, ...]
    planned: Environment | None = None  # What plans would install there


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be checked, and how."""

    scopes: frozenset[Scope] = ALL_SCOPES
    python: tuple[str, ...] = ()  # Interpreters or environment folders to examine; empty: choose as documented
    all_envs: bool = False
    """Whether to examine every environment in the known places too; the judged one stays the first."""
    assume: tuple[Component, ...] = ()
    targets: tuple[Machine, ...] = ()  # Judge once for each; what else ``assume`` states holds for all of them
    planned: Environment | None = None
    """What plans would install, to be judged instead of an environment of this machine."""
    tried: bool = False
    """Whether that is one of many sets, of which only is asked whether it fits: no fix is looked for."""
    require: tuple[Component, ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()  # Names of rules
    policy: Policy | None = None
    configuration: str | None = None  # The file that this request comes from, as far as it comes from one
    fail_on: FailOn = "fail"
    allow_unknown: bool = False  # Whether no verdict ends with exit status 0
    accepted: Report | None = None  # What it found is set aside, target by target
    timeout: float | None = None  # Seconds for the whole run
    probes: tuple[str, ...] = ()  # Names of the only probes to run; empty: all. The others leave no row.
    verify: bool = False
    """Also hash every file that the frameworks of the judged environment and what they require installed."""
    deep: bool = False
    """Also import each framework of the judged environment and let it compute on the GPU: starts its interpreter."""
    bench: BenchRequest | None = None  # What is to be measured, if anything
    baseline: tuple[Measurement, ...] = ()  # Figures to compare the measured ones with
    force: bool = False  # Try things also on a GPU that is at work
    overlays: tuple[str, ...] = ()  # Folders of rows that are laid over the matrix; the last outranks
    overlays_unread: tuple[str, ...] = ()  # Why rows of the configuration folder are left out
    cwd: str = "."
    variables: Mapping[str, str] = {}
    root: str = "/"
