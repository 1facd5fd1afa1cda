"""What a rule is made of: its declaration, the facts it is given, and the outcomes it may return.

A rule is a function of one subject and the facts. Its name, with dashes for underscores, is the name of the problem.

    @rule(layer="gpu", scope="node", per="gpu", needs=("gpu.row_remap.pending",))
    def row_remap_pending(gpu: Gpu, facts: Facts) -> Outcome | None:
        '''Row remapping is waiting for a reset.

        What it checks
            …
        '''

It returns an ``Outcome``, or ``None`` when the question does not arise for the subject. It never sees a missing need:
the evaluator answers ``unknown`` or ``skipped`` for it. Where that answer would itself be noise (a CPU build has no
CUDA version to miss), ``arises`` says so before the needs are looked at. The error lines and driver answers that say it
stand under its name in ``matrix/errors.toml``.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from envcheck.checks import Confidence, DecidedBy, Evidence, Fix, Layer, Missing, Scope, Source, Status
from envcheck.compat.matrix import Matrix
from envcheck.compat.question.package_needs import marks_of
from envcheck.compat.tables import Os
from envcheck.enrich.complete import driver_os
from envcheck.snapshot import Environment, Framework, Gpu, Measurement, Record, Snapshot

Per: TypeAlias = Literal["machine", "gpu", "environment", "framework", "measurement"]
Action: TypeAlias = Literal["none", "reset", "reboot", "drain", "replace"]

DRIVERS_FOR_GUESTS = frozenset({"vfio-pci", "pci-stub", "xen-pciback"})
"""Kernel drivers that keep a GPU for a virtual machine."""


class Facts(msgspec.Struct, frozen=True):
    """All that a rule may look at besides its subject."""

    snapshot: Snapshot
    tables: Matrix
    about: tuple[str, ...] = ()
    """Names of the frameworks that a remedy is for; empty for rules."""

    @property
    def os(self) -> Literal["linux", "windows", "macos"]:
        """The operating system; Linux when nobody said."""
        platform = self.snapshot.platform
        return platform.os if platform and platform.os else "linux"

    @property
    def driver_os(self) -> Os:
        """The system as the relations know it: inside WSL, Linux programs run on the Windows driver."""
        return driver_os(self.snapshot.platform)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return self.snapshot.gpus.items if self.snapshot.gpus else ()

    @property
    def own_gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that this system is meant to use: not those kept for a guest or given to another container."""
        return tuple(gpu for gpu in self.gpus if not self._is_foreign(gpu))

    def _is_foreign(self, gpu: Gpu) -> bool:
        if gpu.kernel_driver in DRIVERS_FOR_GUESTS:
            return True
        platform, kernel = self.snapshot.platform, self.snapshot.kernel
        boxed = platform is not None and platform.container not in (None, "none")
        others_given = any(_is_listed(other) for other in self.gpus)
        nodes = [node.path for node in (kernel.device_nodes if kernel else None) or ()]
        return boxed and others_given and not _is_listed(gpu) and f"/dev/nvidia{gpu.minor}" not in nodes

    @property
    def usable_gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that the judged software can reach: those CUDA enumerates, or all when CUDA was not asked."""
        seen = tuple(gpu for gpu in self.gpus if gpu.cuda_ordinal is not None)
        return seen or self.own_gpus

    @property
    def environment(self) -> Environment | None:
        """The environment that the verdict is about."""
        listing = self.snapshot.environments
        return next((env for env in listing.items if env.judged), None) if listing else None

    @property
    def marks(self) -> Mapping[str, str]:
        """The environment markers of PEP 508 that are known of that environment."""
        environment, platform = self.environment, self.snapshot.platform
        python = environment.python if environment else None
        return marks_of(python, self.os, platform.machine if platform else None)

    def variable(self, name: str) -> str | None:
        """Value of an environment variable, or None when it is not set (or nobody looked)."""
        return self.snapshot.variables.values.get(name) if self.snapshot.variables else None


def _is_listed(gpu: Gpu) -> bool:
    return gpu.index is not None or gpu.cuda_ordinal is not None


class FrameworkSubject(msgspec.Struct, frozen=True):
    """A framework and the environment it lies in."""

    environment: Environment
    framework: Framework


class MeasurementSubject(msgspec.Struct, frozen=True):
    """A measurement and the GPU it was made on."""

    gpu: Gpu
    measurement: Measurement


Subject: TypeAlias = Snapshot | Gpu | Environment | FrameworkSubject | MeasurementSubject


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule concludes for one subject."""

    status: Status
    title: str
    message: str = ""
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()
    sources: tuple[Source, ...] = ()
    decided_by: DecidedBy = "inferred"
    confidence: Confidence = "high"
    action: Action = "none"
    missing: tuple[Missing, ...] = ()
    """The facts that would settle an ``unknown`` or ``skipped`` outcome."""
    frameworks: tuple[str, ...] = ()
    """Names of the frameworks that it concerns, where that is less than all of its environment."""


def passed(title: str, *evidence: Evidence, decided_by: DecidedBy = "inferred") -> Outcome:
    return Outcome(status="pass", title=title, evidence=evidence, decided_by=decided_by)


def seen(what: str, record: Record, field: str) -> Evidence:
    """Evidence: the field of a record, with the place where it was read."""
    value = getattr(record, field)
    return Evidence(what=what, value=_shown(value), source=record.source_of(field))


def _shown(value: object) -> str:
    if isinstance(value, tuple) and all(isinstance(part, str) for part in value):
        return " ".join(value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


S = TypeVar("S", bound=Subject)
RuleFunction: TypeAlias = Callable[[Any, Facts], Outcome | None]
Condition: TypeAlias = Callable[[Any, Facts], bool]
Remedy: TypeAlias = Callable[[Facts], tuple[Fix, ...]]
Proof: TypeAlias = Callable[[Any, Facts], Outcome | None]
Doubt: TypeAlias = Callable[[Facts], Outcome | None]

_SOURCE_LINE = re.compile(r"^ +(?P<title>\S.*?):\s+(?P<address>https://\S+)$", re.MULTILINE)


def never(_subject: object, _facts: Facts) -> bool:
    """``arises`` of a rule whose problem is known from error lines alone."""
    return False


class Rule(msgspec.Struct, frozen=True):
    """A rule's declaration and its function."""

    name: str
    layer: Layer
    scope: Scope
    per: Per
    needs: tuple[str, ...]
    """Paths that must be known: ``driver.release``, ``gpu.ecc`` (of the subject), ``framework.gpu_code``."""
    explains: tuple[str, ...]
    """Names of the rules whose findings are consequences of this one's."""
    explains_failing: tuple[str, ...]
    """Names of further ones, whose findings are consequences of its failures and not of its warnings."""
    explains_all: bool
    """Whether every other finding about its environment is a consequence."""
    required: bool
    """Whether the verdict is unknown while this rule cannot be judged."""
    function: RuleFunction
    arises: Condition | None = None
    """Whether the question arises for a subject at all; asked before the needs."""
    remedy: Remedy | None = None
    """What mends the problem, where the outcome itself names nothing better."""
    doubt: Doubt | None = None
    """What an error line that names this problem says instead, where it does not prove it; None where it does."""
    proof: Proof | None = None
    """What settles the question whatever else is known or not, because it was observed; asked before the needs."""
    symptom: bool = False
    """Whether what it finds is what somebody sees rather than what is wrong: any failure of the same framework or its
    environment, and whatever keeps CUDA from starting, accounts for it."""
    told_by: tuple[str, ...] = ()
    """Names of the rules whose findings tell the same, where they name the same packages (or files), and only there:
    theirs are shown."""
    yields_to: tuple[str, ...] = ()
    """Names of the rules beside whose findings, on the same subject or the machine, it has nothing to say."""
    always: bool = False
    """Whether it is put whatever scopes are asked for and whatever rules: it tells what the others could not see."""

    def is_put_in(self, scopes: frozenset[Scope]) -> bool:
        """Whether it is put where ``scopes`` are asked for."""
        return self.always or self.scope in scopes

    @property
    def documentation(self) -> str:
        """What ``envcheck rule NAME`` prints."""
        return inspect.getdoc(self.function) or _written(self.function)

    @property
    def title(self) -> str:
        return self.documentation.partition("\n")[0].rstrip(".")

    @property
    def sources(self) -> tuple[Source, ...]:
        """The pages under the heading *Sources* of the documentation: ``Title: address``, on one line or two."""
        _, _, below = self.documentation.partition("\nSources\n")
        return tuple(Source(title=line["title"], address=line["address"]) for line in _SOURCE_LINE.finditer(below))


def rule(  # noqa: PLR0913
    *,
    layer: Layer,
    scope: Scope,
    per: Per = "machine",
    needs: tuple[str, ...] = (),
    explains: tuple[str, ...] = (),
    explains_failing: tuple[str, ...] = (),
    explains_all: bool = False,
    required: bool = False,
    arises: Condition | None = None,
    remedy: Remedy | None = None,
    doubt: Doubt | None = None,
    proof: Proof | None = None,
    symptom: bool = False,
    told_by: tuple[str, ...] = (),
    yields_to: tuple[str, ...] = (),
    always: bool = False,
) -> Callable[[Callable[[S, Facts], Outcome | None]], Rule]:
    """Declare the decorated function to be the rule of its name."""

    def declare(function: Callable[[S, Facts], Outcome | None]) -> Rule:
        return Rule(
            name=function.__name__.replace("_", "-"),
            layer=layer,
            scope=scope,
            per=per,
            needs=needs,
            explains=explains,
            explains_failing=explains_failing,
            explains_all=explains_all,
            required=required,
            function=function,
            arises=arises,
            remedy=remedy,
            doubt=doubt,
            proof=proof,
            symptom=symptom,
            told_by=told_by,
            yields_to=yields_to,
            always=always,
        )

    return declare


def _written(function: Callable[..., object]) -> str:
    """The docstring in the source: ``python -OO`` drops it from the function, and with it titles and sources."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return next((ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)), "")
