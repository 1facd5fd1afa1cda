"""GPU features that packages need, beyond GPU code."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.devices import refused
from envcheck.compat.question import AskedGpu
from envcheck.knowledge.matrix import Matrix
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Distribution, Environment, Framework, frameworks_in
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.frameworks import rows_of_release
from envcheck.rules.facts.machine import gpu_title, gpus_with_capability
from envcheck.rules.facts.trials import ran_on


def _packages(environment: Environment, matrix: Matrix) -> Iterator[Framework | Distribution]:
    """The packages with their own kernels, each once, with the most detailed record."""
    known = {each.name: each for each in frameworks_in(environment) if each.version}
    found: list[Framework | Distribution] = [*known.values()]
    found += [each for each in environment.distributions or () if each.name not in known]
    return (each for each in found if matrix.has_trait(each.name, "own-kernels"))


@rule(
    layer="gpu",
    scope="env",
    per="environment",
    remedy=(Fix(text="Choose what this GPU supports: float16, another attention or quantization; or use a newer GPU"),),
    explains=("gpu-code-missing",),
)
def gpu_feature_unsupported(environment: Environment, facts: Facts) -> Outcome | None:
    """A package or number format needs a newer GPU."""
    if not any(gpu.compute_capability for gpu in facts.usable_gpus):
        return None
    refusals = []
    for each in _packages(environment, facts.matrix):
        for gpu, capability in gpus_with_capability(facts):
            proven = isinstance(each, Framework) and ran_on(each, gpu)
            asked = AskedGpu(gpu.name or "GPU", capability, None)
            rows = () if proven else rows_of_release(facts, each.name, each.version)
            refusals += [(each, row, gpu, *no) for row in rows if (no := refused(facts.matrix, row, asked))]
    if not refusals:
        records = list(_packages(environment, facts.matrix))
        if not records or not all(rows_of_release(facts, each.name, each.version) for each in records):
            return None  # not all of them are known
        return passed(f"The GPUs support {', '.join(dict.fromkeys(each.name for each in records))}")
    record, row, gpu, why, change = refusals[0]
    # Programs do without an installed one; a plan that still names it asks for it.
    useless = environment.planned is not None or facts.matrix.has_trait(record.name, "needs-its-kernels")
    status: Status = "fail" if useless and row.confidence != "weak" else "warn"
    names = ", ".join(dict.fromkeys(f"{each.name} {each.version}" for each, *_ in refusals))
    return Outcome(
        status=status,
        title=f"{record.name} {record.version} does not support {gpu.name or gpu_title(gpu)}",
        message=f"{names}: {record.name} {why}, and {gpu_title(gpu)} has {gpu.compute_capability}.",
        evidence=(
            *(Evidence(what=each.name, value=each.version or "", source=each.source) for each, *_ in refusals),
            evidence_of(f"compute capability of {gpu_title(gpu)}", gpu, "compute_capability"),
        ),
        confidence=row.confidence,
        sources=facts.matrix.cite(row),
        fixes=(Fix(text=f"Switch {record.name} off in the program, or use {change}"),),
    )
