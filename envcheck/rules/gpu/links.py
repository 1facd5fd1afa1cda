"""The links of a GPU: PCI Express, NVLink and its switches, and direct access between GPUs."""

from __future__ import annotations

import re

import msgspec

from envcheck.knowledge.error_lines import matches_fragment
from envcheck.model.checks import DecidedBy, Evidence, Fix, Status
from envcheck.model.snapshot import PASTED, Fabric, Gpu, GpuLink, NvLink, Pcie, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, if_known, note, passed, rule, warning
from envcheck.rules.facts.machine import and_more, is_listed, plural
from envcheck.rules.facts.measurements import kept_by_identity
from envcheck.rules.fixes import driver
from envcheck.rules.messages.observed import observed_problems, refusals
from envcheck.text.lazy import lazy_pattern


@rule(layer="gpu", decided_by="driver-answered", needs=("gpu.pcie.width", "gpu.pcie.width_max"), arises=is_listed)
def pcie_link_degraded(gpu: Gpu, facts: Facts) -> Outcome | None:
    """A GPU's PCI Express link has fewer lanes than possible."""
    pcie = gpu.pcie or Pcie()
    evidence = (evidence_of("lanes", pcie, "width"), evidence_of("lanes possible", pcie, "width_max"))
    if pcie.width and pcie.width_max and pcie.width < pcie.width_max:
        title = f"{gpu.title}: PCIe link at {pcie.width} of {pcie.width_max} lanes"
        model = facts.matrix.model_of(gpu)
        if model is not None and model.kind in ("geforce", "workstation") and pcie.width * 2 == pcie.width_max:
            text = "Many boards of this kind are wired with half the lanes; on others, the link trained badly."
            return note(title=title, message=text, evidence=evidence)
        text = "The link trained with fewer lanes than GPU and slot allow."
        return warning(title=title, message=text, evidence=evidence)
    slot, own, busy = pcie.generation_max, pcie.generation_device_max, (gpu.utilisation or 0.0) >= _BUSY
    if slot and pcie.generation and pcie.generation < slot and busy and gpu.performance_state in ("P0", "P1", "P2"):
        return warning(
            title=f"{gpu.title}: PCIe link at Gen{pcie.generation} of Gen{slot} under load",
            message="An idle link saves power; that of a busy GPU should be at its full speed.",
            evidence=(evidence_of("generation", pcie, "generation"), evidence_of("use", gpu, "utilisation")),
        )
    if slot and own and slot < own:
        return note(
            title=f"{gpu.title}: the slot is PCIe Gen{slot}, the GPU Gen{own}",
            message="The slot or a switch above it limits the link.",
            evidence=(
                evidence_of("generation possible", pcie, "generation_max"),
                evidence_of("generation of the GPU", pcie, "generation_device_max"),
            ),
        )
    return passed(f"PCIe link uses all {pcie.width} lanes", *evidence)


def _uses_nvlink(gpu: Gpu, facts: Facts) -> bool:
    """MIG mode switches the links off by design."""
    return is_listed(gpu, facts) and not (gpu.mig and gpu.mig.enabled)


@rule(layer="fabric", needs=("gpu.nvlinks",), arises=_uses_nvlink, remedy=(driver.reset(None),))
def nvlink_down(gpu: Gpu, facts: Facts) -> Outcome | None:
    """An NVLink is down."""
    links = gpu.nvlinks or ()
    active, inactive = _by_state(links)
    model = _models(facts)[gpu.name]
    if not active and model.on_switch == on_switch(gpu):
        return None
    # A link that is inactive on this GPU may be active on another.
    down = inactive if on_switch(gpu) or not active else tuple(number for number in inactive if number in model.active)
    count = f"{len(active)} of {len(links)} NVLinks active"
    shown_links = Evidence(gpu.title, count, links[0].source if links else "")
    sheet = row.nvlink if (row := facts.matrix.model_of(gpu)) else None
    alone = sum(bool(each.nvlinks) for each in facts.gpus) == 1
    if active and inactive and not down and alone and facts.complains_of_speed and sheet and sheet.links == len(links):
        return warning(
            title=f"{gpu.title}: {count}",
            message="A GPU on a board with NVLinks uses all of them; one with a bridge may use only some.",
            evidence=(shown_links,),
            confidence="medium",
            fixes=(Fix("Compare with the other GPUs", command=("nvidia-smi", "nvlink", "-s")), driver.reset(gpu)),
        )
    if down and sheet and len(active) == sheet.links:  # a model for export has fewer than its chip
        text = f"{len(active)} NVLinks active, as many as this model has"
        return passed(text, shown_links, decided_by="driver-answered")
    if not down:
        if inactive:
            text = "All GPUs of this model show the same, as with a bridge that uses only some links."
            return note(title=f"{gpu.title}: {count}", message=text, evidence=(shown_links,))
        return passed(count, shown_links, decided_by="driver-answered")
    return warning(
        title=f"{gpu.title}: {count}",
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


@kept_by_identity  # to compute them for each GPU would take quadratic time
def _models(facts: Facts) -> dict[str | None, _Model]:
    found: dict[str | None, _Model] = {}
    for gpu in facts.gpus:
        if _uses_nvlink(gpu, facts):
            model = found.setdefault(gpu.name, _Model())
            model.on_switch += on_switch(gpu)
            model.active.update(_by_state(gpu.nvlinks or ())[0])
    return found


def _by_state(links: tuple[NvLink, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of the active and the inactive links."""
    return tuple(link.link for link in links if link.active), tuple(link.link for link in links if link.active is False)


def on_switch(gpu: Gpu) -> bool:
    """Whether the GPU is connected to NVSwitches, where every link is used."""
    joined = gpu.fabric is not None and gpu.fabric.state == "completed"
    return joined or any(link.remote_kind == "switch" for link in gpu.nvlinks or () if link.active)


def _has_no_switch(facts: Facts) -> Outcome | None:
    """A note where no GPU of a text can have NVSwitches, or a framework works: then nothing needs the service."""
    models = [facts.matrix.model_of(gpu) for gpu in facts.gpus]
    others = bool(models) and all(model is not None and model.kind != "data-center" for model in models)
    works = any(each.gpu_available for each in facts.frameworks)
    text = "Only machines with NVSwitches need it."
    return note(title="The fabric manager does not run", message=text) if others or works else None


@rule(layer="fabric", decided_by="driver-answered", remedy=driver.start_fabric_manager, doubt=_has_no_switch)
def fabric_manager_not_running(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The NVSwitch fabric is not ready: the fabric manager has not set it up."""
    failed = refusals("fabric-manager-not-running", facts)
    states = tuple((gpu, gpu.fabric) for gpu in facts.gpus if gpu.fabric and not (gpu.mig and gpu.mig.enabled))
    fabric = snapshot.fabric or Fabric()
    switches, manager = fabric.nvswitches, fabric.manager_running
    bad = tuple(
        (gpu, state)
        for gpu, state in states
        if (state.state == "completed" and state.status) or (state.state in ("not_started", "in_progress") and switches)
    )
    pasted = manager is False and fabric.source == PASTED
    stopped = pasted and facts.finds_no_gpu and _has_no_switch(facts) is None
    if not failed and not bad and not stopped:
        ready = any(state.state == "completed" for _, state in states)
        return passed("The NVSwitch fabric is ready") if ready else None
    evidence: list[Evidence | None] = list(failed)
    for gpu, state in bad:
        status = state.status_name or (str(state.status) if state.status else "")
        evidence.append(Evidence(f"fabric of {gpu.title}", f"{state.state} {status}".strip(), state.source))
    evidence.append(if_known("fabric manager seen running", fabric, "manager_running"))
    works = facts.cuda_answers and not failed
    return Outcome(
        status="warn" if works else "fail",
        title="The NVSwitch fabric is not ready",
        message="The fabric manager does not run, and a framework finds no GPU."
        if stopped and not bad
        else "CUDA starts, but some GPUs have not joined the fabric."
        if works
        else "CUDA is waiting for the fabric manager.",
        evidence=tuple(evidence),
    )


TRANSLATED = ("DMA", "DMA-FQ")  # Types of IOMMU groups in which the kernel translates the devices' addresses

_HINDERED = {
    "chipset_not_supported": "the chipset does not support it",
    "ioh_topology_not_supported": "the GPUs are on different I/O hubs",
    "disabled_by_regkey": "a driver setting disables it",
}
"""NVML's answers that blame the machine and not the GPU model."""

_ACS_LINE = lazy_pattern(r"ACSCtl:.{0,200}ReqRedir\+", re.IGNORECASE)
_SHOWN = 6
_BUSY, _LOST = 0.9, 0.5  # Share of the bandwidth through host memory below which direct copies are hindered


def _only_settings(facts: Facts) -> Outcome | None:
    """ACS in the output of lspci proves nothing if the text reports no trouble between GPUs."""
    errors = facts.snapshot.observed_errors
    blocked = [found for found in observed_problems(facts) if found.line.problem == "peer-access-blocked"]
    others = [error.text for error in errors if not _ACS_LINE.search(error.text)]
    if not blocked or not all(_ACS_LINE.search(evidence.value) for evidence in blocked[0].evidence):
        return None
    if len(facts.gpus) > 1 or any(matches_fragment("trouble-between-gpus", text) for text in others):
        return None
    text = "This affects only direct transfers between GPUs, and between GPU and network card: slow or broken."
    return note(title="A PCIe port redirects traffic between devices (ACS)", message=text)


_TEST = Fix("Show which GPUs can access each other", command=("nvidia-smi", "topo", "-p2p", "r"))
_WITHOUT_IOMMU = Fix(
    "Add iommu=pt to the kernel command line (or switch the IOMMU off in the firmware), and restart",
    who="root",
    risk="ends everything that runs on this machine; passing devices through to virtual machines needs the IOMMU",
)
_AROUND = Fix("Workaround: let NCCL use host memory with NCCL_P2P_DISABLE=1", risk="slower collectives")
_NO_ACS = Fix(
    "Switch ACS off on the ports of PCIe switches: in the firmware, or after each boot with setpci "
    "(ECAP_ACS+6.w=0000 on each of these ports)",
    who="root",
    risk="weakens the isolation between devices; leave it on if devices are passed through to virtual machines",
)


@rule(layer="fabric", remedy=(_TEST, _WITHOUT_IOMMU, _NO_ACS, _AROUND), doubt=_only_settings)
def peer_access_blocked(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """PCI Express settings hinder direct access between GPUs."""
    links = snapshot.fabric.links if snapshot.fabric else None
    pairs = [link for link in links or () if link.nvlinks == 0]
    slower = _slower_directly(facts)
    if slower is not None or not links or len([gpu for gpu in facts.own_gpus if gpu.pci_bus_id]) < 2:
        return slower
    if not pairs:
        return passed("NVLink connects all GPUs", decided_by="driver-answered")
    return _judge_pairs(pairs, snapshot, facts)


def _judge_pairs(pairs: list[GpuLink], snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """What hinders access between GPUs that no NVLink connects."""
    guest = facts.platform.virtualization not in (None, "none")
    answers = [(link, _allowed(link, snapshot)) for link in pairs]
    open_pairs = [link for link, allowed in answers if allowed is not False]
    # Above which GPUs a switch port redirects traffic to the root, and which are behind a translating IOMMU though CUDA
    # lets them access each other; a guest sees neither.
    redirected = {gpu.pci_bus_id: (gpu.pcie or Pcie()).redirecting for gpu in _gpus_of(open_pairs, facts)}
    ports = list(dict.fromkeys(port for above in redirected.values() for port in above or ()))
    joined = _gpus_of([link for link, allowed in answers if allowed], facts)
    translated = [gpu for gpu in joined if (gpu.pcie or Pcie()).iommu in TRANSLATED]
    hindered = [link for link in pairs if link.peer_read in _HINDERED]
    status: Status = "warn"
    decided_by: DecidedBy = "inferred"
    if ports and not guest:
        title = f"ACS redirects traffic between GPUs at {plural(len(ports), 'port')}"
        message = "Transfers between GPUs below one switch go through the root: they are slow and may hang."
        evidence = [
            Evidence("redirecting ports", ", ".join(ports[:_SHOWN]), "sysfs config"),
            Evidence("above GPUs", ", ".join(str(name) for name, above in redirected.items() if above), "sysfs"),
        ]
        fixes: tuple[Fix, ...] = (_NO_ACS, _AROUND)
    elif len(translated) > 1 and not guest:
        title = "The IOMMU translates transfers between GPUs"
        message = "CUDA permits peer access over PCIe, which is unsupported with a translating IOMMU on bare metal."
        kinds = [(gpu.pci_bus_id, (gpu.pcie or Pcie()).iommu) for gpu in translated[:_SHOWN]]
        evidence = [Evidence(f"IOMMU of {name}", str(kind), "sysfs") for name, kind in kinds]
        fixes = (_WITHOUT_IOMMU, _AROUND)
    elif hindered:
        status, decided_by = "note", "driver-answered"
        title = f"No peer access between {plural(len(hindered), 'pair')} of GPUs"
        message = f"NVML's reason: {_HINDERED[hindered[0].peer_read or '']}. Transfers go through host memory."
        evidence = [
            Evidence(f"{link.first} and {link.second}", link.peer_read or "", link.source) for link in hindered[:_SHOWN]
        ]
        fixes = (_TEST,)
    elif any(allowed is None for _, allowed in answers):
        return None
    else:
        reached = f"{len(open_pairs)} of {plural(len(pairs), 'GPU pair')} on PCIe"
        return passed(f"Peer access: {reached}", decided_by="driver-answered")
    return Outcome(
        status=status, title=title, message=message, evidence=tuple(evidence), decided_by=decided_by, fixes=fixes
    )


def _slower_directly(facts: Facts) -> Outcome | None:
    """The finding in a text whose measured copies lose by peer access."""
    copies = facts.told
    if copies.direct_copies is None or copies.staged_copies is None:
        return None
    if copies.direct_copies >= _LOST * copies.staged_copies:
        return None
    return failure(
        title="Direct copies between GPUs are slower than copies through host memory",
        message="Something on the way redirects or translates them: ACS on a port, or the IOMMU.",
        evidence=(
            Evidence("copies with peer access", f"{copies.direct_copies:g} GB/s", copies.source),
            Evidence("copies without", f"{copies.staged_copies:g} GB/s", copies.source),
        ),
        confidence="medium",
    )


def _allowed(link: GpuLink, snapshot: Snapshot) -> bool | None:
    """Whether the two can access each other: by CUDA's answer, else by NVML's."""
    peers = (snapshot.fabric.peers if snapshot.fabric else None) or ()
    answered = next((peer.allowed for peer in peers if {peer.first, peer.second} == {link.first, link.second}), None)
    by_driver = None if link.peer_read in (None, "unknown") else link.peer_read == "ok"
    return by_driver if answered is None else answered


def _gpus_of(pairs: list[GpuLink], facts: Facts) -> list[Gpu]:
    ids = {name for link in pairs for name in (link.first, link.second)}
    return [gpu for gpu in facts.own_gpus if gpu.pci_bus_id in ids]


_WITH_RDMA = ("data-center", "workstation")  # Kinds of GPUs whose memory network adapters may access


@rule(layer="fabric", decided_by="declared", arises=lambda _snapshot, facts: bool(facts.platform.adapters))
def adapter_without_gpudirect(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Network adapters do not reach GPU memory directly."""
    module, models = facts.module, {gpu.uuid: facts.matrix.model_of(gpu) for gpu in facts.own_gpus}
    gpus = [gpu for gpu in facts.own_gpus if (model := models[gpu.uuid]) and model.kind in _WITH_RDMA]
    others = all(matches_fragment("adapter-of-its-own-kind", name) for name in facts.platform.adapters or ())
    if others or not gpus or module.flavour is None or module.peer_memory_loaded is None:
        return None
    away = [gpu for gpu in gpus if gpu.adapters and {*gpu.adapters.values()} == {"far"}]
    adapters = evidence_of("adapters", facts.platform, "adapters")
    evidence = (adapters, evidence_of("nvidia-peermem is loaded", module, "peer_memory_loaded"))
    if module.flavour == "proprietary" and not module.peer_memory_loaded:
        return note(
            title="GPUDirect RDMA is off: nvidia-peermem is not loaded",
            message="The proprietary kernel module has no DMA-BUF: between nodes, NCCL copies through host memory.",
            evidence=(*evidence, evidence_of("kernel module", module, "flavour")),
            fixes=(
                Fix("Load it, also at each boot (/etc/modules-load.d)", ("sudo", "modprobe", "nvidia-peermem"), "root"),
                Fix("Install the open kernel modules, which offer DMA-BUF", who="root"),
            ),
        )
    if away and facts.platform.virtualization == "none":
        return note(
            title=f"Every network adapter is far from {away[0].title}{and_more(away)}",
            message="They are on another NUMA node: NCCL does not use GPUDirect RDMA between them.",
            evidence=(adapters, *(evidence_of(f"shared with {gpu.title}", gpu, "adapters") for gpu in away)),
            fixes=(Fix("Run what communicates between nodes on GPUs beside an adapter (nvidia-smi topo -m)"),),
        )
    return passed("Network adapters reach GPU memory directly", *evidence)
