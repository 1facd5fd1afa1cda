"""What ``--require`` and a configuration demand; ``envcheck/pipeline`` holds the facts and findings against it."""

from __future__ import annotations

from envcheck.rules.api import Facts, Outcome, elsewhere, rule
from envcheck.snapshot import Snapshot


@rule(layer="request", scope="node", arises=elsewhere)
def requirement_not_met(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """Something that was required is not there, or not in the required version.

    What it checks
        The bounds of --require, and require and gpus of a configuration: GPUs, their number and memory,
        the driver, CUDA, frameworks and packages. What is not known is not met: the answer is then
        unknown, and there is no pass.

    Why it matters
        You said that the work needs it.

    How to fix
        Install what is named in a version within the bounds, use another machine, or correct the
        bounds.

    Sources
        Version specifiers: https://packaging.python.org/en/latest/specifications/version-specifiers/
    """


@rule(layer="request", scope="node", arises=elsewhere)
def forbidden_problem(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """A problem that the configuration forbids was found, or was not looked for.

    What it checks
        Each name under forbid in the configuration: the rule of that name must have run and found
        nothing. A finding of that rule fails, however mild it is by itself. If the rule did not run, or
        could not answer, there is no verdict.

    Why it matters
        The configuration says that the problem must be absent. That nobody looked does not show that.

    How to fix
        Solve the problem that is named (envcheck rule NAME has its page), or give the check what it
        lacks. Otherwise take the name out of forbid.

    Sources
        TOML, arrays: https://toml.io/en/v1.0.0#array
    """


@rule(layer="request", scope="node", arises=elsewhere)
def ignore_expired(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """The day until which the configuration ignores a finding has passed.

    What it checks
        The day in until of each ignore of the configuration, in UTC. After it the entry warns for 14
        days and still sets its finding aside. Then it fails and sets nothing aside any more.

    Why it matters
        An exception that nobody looks at again hides the next fault of the same name.

    How to fix
        Solve the problem and delete the entry, or set a later day and say why in reason.

    Sources
        TOML, local dates: https://toml.io/en/v1.0.0#local-date
    """


@rule(layer="request", scope="node", arises=elsewhere)
def below_minimum_share(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """A measured figure is below the share of its ceiling that is required.

    What it checks
        Each quantity under minimum-share in the configuration, for each GPU: the measured figure as a
        share of what the chip can do at most. What was not measured is skipped. A figure that cannot be
        judged (another program used the GPU, a model without data) leaves no verdict.

    Why it matters
        The configuration says which speed the work needs.

    How to fix
        Look at the conditions of the run in the report (clocks, power, temperature, other programs) and
        at the findings about them, or lower the share.

    Sources
        CUDA C++ Best Practices Guide, bandwidth:
          https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#bandwidth
    """
