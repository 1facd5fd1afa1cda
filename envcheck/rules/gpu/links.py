"""GPU links: PCI Express, NVLink and the NVSwitch fabric."""

from __future__ import annotations

import msgspec

from envcheck.checks import Evidence, Fix
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.frameworks import finds_no_gpu
from envcheck.rules.facts.machine import cuda_answers, gpu_title, is_listed
from envcheck.rules.fixes import driver
from envcheck.rules.messages.driver import answers, call_evidence, results_naming
from envcheck.snapshot import PASTED, Fabric, Gpu, GpuFabric, NvLink, Pcie, Snapshot, frameworks_in

_RESEAT = (Fix(text="Reseat the card, its riser or cable", who="cluster-admin", risk="the machine must be off"),)


@rule(
    layer="gpu",
    scope="node",
    per="gpu",
    needs=("gpu.pcie.width", "gpu.pcie.width_max"),
    arises=is_listed,
    remedy=_RESEAT,
)
def pcie_link_degraded(gpu: Gpu, facts: Facts) -> Outcome | None:
    """A GPU's PCI Express link has fewer lanes than possible."""
    pcie = gpu.pcie or Pcie()
    evidence = (evidence_of("lanes", pcie, "width"), evidence_of("lanes possible", pcie, "width_max"))
    if pcie.width and pcie.width_max and pcie.width < pcie.width_max:
        return _too_few_lanes(gpu, pcie, evidence, facts)
    slot, own = pcie.generation_max, pcie.generation_device_max
    if slot and own and slot < own:
        return Outcome(
            status="note",
            title=f"{gpu_title(gpu)}: the slot is PCIe Gen{slot}, the GPU Gen{own}",
            message="The slot or a switch above it limits the link.",
            evidence=(
                evidence_of("generation possible", pcie, "generation_max"),
                evidence_of("generation of the GPU", pcie, "generation_device_max"),
            ),
            decided_by="driver-answered",
        )
    return passed(f"PCIe link uses all {pcie.width} lanes", *evidence, decided_by="driver-answered")


def _too_few_lanes(gpu: Gpu, pcie: Pcie, evidence: tuple[Evidence, ...], facts: Facts) -> Outcome:
    title = f"{gpu_title(gpu)}: PCIe link at {pcie.width} of {pcie.width_max} lanes"
    model = facts.matrix.model_of(gpu)
    smaller = model is not None and model.kind in ("geforce", "workstation")
    if smaller and (pcie.width or 0) * 2 == pcie.width_max:
        text = "Many boards of this kind are wired with half the lanes; on others, the link trained badly."
        return Outcome(status="note", title=title, message=text, evidence=evidence, decided_by="driver-answered")
    return Outcome(
        status="warn",
        title=title,
        message="The link trained with fewer lanes than GPU and slot allow.",
        evidence=evidence,
        decided_by="driver-answered",
        fixes=_RESEAT,
    )


def _uses_nvlink(gpu: Gpu, facts: Facts) -> bool:
    """MIG mode switches the links off by design."""
    return is_listed(gpu, facts) and not (gpu.mig and gpu.mig.enabled)


@rule(
    layer="fabric",
    scope="node",
    per="gpu",
    needs=("gpu.nvlinks",),
    arises=_uses_nvlink,
    remedy=lambda _facts: (driver.reset(None),),
)
def nvlink_down(gpu: Gpu, facts: Facts) -> Outcome | None:
    """An NVLink is down."""
    links = gpu.nvlinks or ()
    active, inactive = _by_state(links)
    model = _models(facts)[gpu.name]
    if not active and model.on_switch == _on_switch(gpu):
        return None
    # A link that is inactive on this GPU may be active on another.
    down = inactive if _on_switch(gpu) or not active else tuple(number for number in inactive if number in model.active)
    count = f"{len(active)} of {len(links)} NVLinks active"
    shown_links = Evidence(what=gpu_title(gpu), value=count, source=links[0].source if links else "")
    if not down:
        if inactive:
            text = "All GPUs of this model show the same, as with a bridge that uses only some links."
            return Outcome(status="note", title=f"{gpu_title(gpu)}: {count}", message=text, evidence=(shown_links,))
        return passed(count, shown_links, decided_by="driver-answered")
    return Outcome(
        status="warn",
        title=f"{gpu_title(gpu)}: {count}",
        message=f"Inactive links: {', '.join(str(number) for number in down)}.",
        evidence=(shown_links,),
        decided_by="driver-answered",
        action="reset",
        fixes=(driver.reset(gpu),),
    )


class _Model(msgspec.Struct):
    """The GPUs of one model that use NVLink."""

    on_switch: int = 0
    active: set[int] = set()


_latest: list[tuple[Facts, dict[str | None, _Model]]] = []
"""The models of the last facts: computing them for each GPU would take quadratic time."""


def _models(facts: Facts) -> dict[str | None, _Model]:
    if not _latest or _latest[0][0] is not facts:
        found: dict[str | None, _Model] = {}
        for gpu in facts.gpus:
            if _uses_nvlink(gpu, facts):
                model = found.setdefault(gpu.name, _Model())
                model.on_switch += _on_switch(gpu)
                model.active.update(_by_state(gpu.nvlinks or ())[0])
        _latest[:] = [(facts, found)]
    return _latest[0][1]


def _by_state(links: tuple[NvLink, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of the active and the inactive links."""
    active = tuple(link.link for link in links if link.active)
    return active, tuple(link.link for link in links if link.active is False)


def _on_switch(gpu: Gpu) -> bool:
    """Whether the GPU is connected to NVSwitches, where every link is used."""
    joined = gpu.fabric is not None and gpu.fabric.state == "completed"
    return joined or any(link.remote_kind == "switch" for link in gpu.nvlinks or () if link.active)


def _has_no_switch(facts: Facts) -> Outcome | None:
    """A note where no GPU of a text can have NVSwitches, or a framework works: then nothing needs the service."""
    models = [facts.matrix.model_of(gpu) for gpu in facts.gpus]
    others = bool(models) and all(model is not None and model.kind != "data-center" for model in models)
    works = any(each.gpu_available for each in frameworks_in(facts.environment))
    text = "Only machines with NVSwitches need it."
    return Outcome(status="note", title="The fabric manager does not run", message=text) if others or works else None


@rule(
    layer="fabric",
    scope="node",
    remedy=driver.start_fabric_manager,
    doubt=_has_no_switch,
    explains=("gpu-init-failed", "no-gpu-visible", "nvlink-down"),
)
def fabric_manager_not_running(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The NVSwitch fabric is not ready: the fabric manager has not set it up."""
    failed = results_naming("fabric-manager-not-running", answers(facts))
    states = tuple((gpu, gpu.fabric) for gpu in facts.gpus if gpu.fabric and not (gpu.mig and gpu.mig.enabled))
    fabric = snapshot.fabric or Fabric()
    switches, manager = fabric.nvswitches, fabric.manager_running
    bad = tuple(
        (gpu, state)
        for gpu, state in states
        if (state.state == "completed" and state.status) or (state.state in ("not_started", "in_progress") and switches)
    )
    told = manager is False and fabric.source == PASTED
    stopped = told and finds_no_gpu(facts.environment) and _has_no_switch(facts) is None
    if not failed and not bad and not stopped:
        ready = any(state.state == "completed" for _, state in states)
        return passed("The NVSwitch fabric is ready", decided_by="driver-answered") if ready else None
    evidence = (
        *(call_evidence(result) for result in failed),
        *(Evidence(what=f"fabric of {gpu_title(gpu)}", value=_shown(state), source=state.source) for gpu, state in bad),
        *((evidence_of("fabric manager seen running", fabric, "manager_running"),) if manager is not None else ()),
    )
    works = cuda_answers(facts) and not failed
    return Outcome(
        status="warn" if works else "fail",
        title="The NVSwitch fabric is not ready",
        message="The fabric manager does not run, and a framework finds no GPU."
        if stopped and not bad
        else "CUDA starts, but some GPUs have not joined the fabric."
        if works
        else "CUDA is waiting for the fabric manager.",
        evidence=evidence,
        decided_by="driver-answered",
    )


def _shown(state: GpuFabric) -> str:
    status = state.status_name or (str(state.status) if state.status else "")
    return f"{state.state} {status}".strip()
