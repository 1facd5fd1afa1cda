"""Rules without a function: problems that error lines alone reveal, and findings that ``envcheck/pipeline`` makes.

The first are rows of ``matrix/errors.toml``. Where their fixes or their outcome depend on the machine, the function
that tells is here, under the name of the problem.
"""

from __future__ import annotations

from typing import Final

import msgspec

from envcheck.knowledge.error_lines import lines_with
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables import ProblemRow
from envcheck.model.checks import ASSUMPTION, BELOW_MINIMUM, EXPIRED, FORBIDDEN, PLAN, Fix, Layer, Scope
from envcheck.rules.api import Doubt, Facts, Outcome, Remedy, Rule, elsewhere, never
from envcheck.rules.fixes.install import pip_command
from envcheck.rules.fixes.libraries import SYSTEM_LIBRARY


def provide_library(facts: Facts) -> tuple[Fix, ...]:
    """Install a library of the system."""
    if facts.driver_os != "windows":
        return (SYSTEM_LIBRARY,)
    return (
        Fix(
            text="Put the DLL beside the program, or in a folder of PATH: from the package that brings it (NVIDIA's "
            "instructions for cuDNN 8 name that of zlibwapi.dll; others come with the Visual C++ Redistributable)"
        ),
    )


def build_without_isolation(facts: Facts) -> tuple[Fix, ...]:
    """Build an extension where it sees the installed PyTorch."""
    return (
        Fix(
            text="Install PyTorch first, then the package without build isolation",
            command=pip_command(facts.environment, "install", "--no-build-isolation", "PACKAGE"),
        ),
        Fix(text="Or install a wheel of the package that is compiled for this PyTorch, CUDA and Python"),
    )


def pod_not_scheduled(facts: Facts) -> Outcome | None:
    """Of a pod that no node can take: nothing about how a container is started helps."""
    if not lines_with("pod-not-scheduled", facts.snapshot.observed_errors):
        return None
    return Outcome(
        status="fail",
        title="No node of the cluster offers the GPUs that the pod asks for",
        message="Their device plugin reports none, or other pods hold them.",
        fixes=(
            Fix(
                text="Compare nvidia.com/gpu under Allocatable with what is allocated, and read the node's taints",
                command=("kubectl", "describe", "nodes"),
            ),
            Fix(
                text="If Allocatable lists none: read the log of the node's device plugin. It needs the driver on the "
                "node, and NVIDIA's runtime as the default of containerd or CRI-O (or the plugin's runtimeClassName)",
                command=("kubectl", "get", "pods", "-A", "-o", "wide"),
                who="cluster-admin",
            ),
            Fix(text="If all are allocated: ask for fewer, or wait until another pod ends"),
        ),
    )


REMEDIES: Final[dict[str, Remedy]] = {
    "system-library-missing": provide_library,
    "build-does-not-see-torch": build_without_isolation,
}
DOUBTS: Final[dict[str, Doubt]] = {"scheduler-lacks-gpu": pod_not_scheduled}

_REQUIRED = "requirement-not-met"
_ASKED: tuple[tuple[str, Layer, Scope, str], ...] = (
    (PLAN, "framework", "env", "What a plan would install does not fit the machine, or that is open"),
    (ASSUMPTION, "driver", "node", "It is not known whether the assumed driver supports the assumed GPU"),
    (_REQUIRED, "request", "node", "Something that was required is not there, or not in the required version"),
    (FORBIDDEN, "request", "node", "A problem that the configuration forbids was found, or was not looked for"),
    (EXPIRED, "request", "node", "The day until which the configuration ignores a finding has passed"),
    (BELOW_MINIMUM, "request", "node", "A measured figure is below the share of its ceiling that is required"),
)
"""What is said of plans, assumptions, requirements and a configuration: name, layer, scope, title."""


def rules_without_function() -> tuple[Rule, ...]:
    """Both kinds."""
    asked = (
        Rule(name=name, title=title, layer=layer, scope=scope, arises=elsewhere) for name, layer, scope, title in _ASKED
    )
    return (*map(_rule_of, load_matrix().problems), *asked)


def _rule_of(row: ProblemRow) -> Rule:
    stated = tuple(Fix(**msgspec.structs.asdict(fix)) for fix in row.fixes)
    return Rule(
        name=row.name,
        title=row.title,
        layer=row.layer,
        scope=row.scope,
        since=row.since,
        arises=never,
        remedy=REMEDIES.get(row.name, stated),
        doubt=DOUBTS.get(row.name),
        explains=row.explains,
    )
