"""Whether GPUs can access each other's memory over PCI Express."""

from __future__ import annotations

import re

from envcheck.checks import Evidence, Fix
from envcheck.compat.error_lines import matches_fragment
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import plural
from envcheck.rules.messages.observed import observed_problems
from envcheck.snapshot import Gpu, GpuLink, Pcie, Platform, Snapshot

_TRANSLATED = ("DMA", "DMA-FQ")
"""Types of IOMMU groups in which the kernel translates the devices' addresses."""

_HINDERED = {
    "chipset_not_supported": "the chipset does not support it",
    "ioh_topology_not_supported": "the GPUs are on different I/O hubs",
    "disabled_by_regkey": "a driver setting disables it",
}
"""NVML's answers that blame the machine and not the GPU model."""

_ACS_LINE = re.compile(r"ACSCtl:.{0,200}ReqRedir\+", re.IGNORECASE)
_SHOWN = 6
_LOST = 0.5
"""Share of the bandwidth through host memory below which direct copies are hindered, and not only no faster."""


def _only_settings(facts: Facts) -> Outcome | None:
    """ACS in the output of lspci proves nothing if the text reports no trouble between GPUs."""
    errors = facts.snapshot.observed_errors
    met = next(
        (found for found in observed_problems(facts.snapshot) if found.line.problem == "peer-access-blocked"), None
    )
    only_acs = met is not None and all(_ACS_LINE.search(evidence.value) for evidence in met.evidence)
    others = [error.text for error in errors if not _ACS_LINE.search(error.text)]
    trouble = any(matches_fragment("trouble-between-gpus", text) for text in others)
    trouble = trouble or len(facts.gpus) > 1
    if not only_acs or trouble:
        return None
    title = "A PCIe port redirects traffic between devices (ACS)"
    text = "This affects only direct transfers between GPUs, and between GPU and network card: slow or broken."
    return Outcome(status="note", title=title, message=text)


_TEST = Fix(text="Show which GPUs can access each other", command=("nvidia-smi", "topo", "-p2p", "r"))
_WITHOUT_IOMMU = Fix(
    text="Add iommu=pt to the kernel command line (or switch the IOMMU off in the firmware), and restart",
    who="root",
    risk="ends everything that runs on this machine; passing devices through to virtual machines needs the IOMMU",
)
_AROUND = Fix(text="Workaround: let NCCL use host memory with NCCL_P2P_DISABLE=1", risk="slower collectives")
_NO_ACS = Fix(
    text="Switch ACS off on the ports of PCIe switches: in the firmware, or after each boot with setpci "
    "(sudo setpci -s PORT ECAP_ACS+6.w=0000)",
    who="root",
    risk="weakens the isolation between devices; leave it on if devices are passed through to virtual machines",
)


@rule(
    layer="fabric",
    scope="node",
    arises=lambda snapshot, facts: (
        len([gpu for gpu in facts.own_gpus if gpu.pci_bus_id]) > 1 or _slower_directly(snapshot) is not None
    ),
    remedy=lambda _facts: (_TEST, _WITHOUT_IOMMU, _NO_ACS, _AROUND),
    doubt=_only_settings,
    explains=("nodes-not-connected",),
)
def peer_access_blocked(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """PCI Express settings hinder direct access between GPUs."""
    links = snapshot.fabric.links if snapshot.fabric else None
    pairs = [link for link in links or () if link.nvlinks == 0]
    slower = _slower_directly(snapshot)
    if slower is not None or not links:
        return slower
    if not pairs:
        return passed("NVLink connects all GPUs", decided_by="driver-answered")
    guest = (snapshot.platform or Platform()).virtualization not in (None, "none")
    open_pairs = [link for link in pairs if _allowed(link, snapshot) is not False]
    if open_pairs and not guest:
        found = _redirected(open_pairs, facts) or _translated(open_pairs, facts)
        if found is not None:
            return found
    hindered = [link for link in pairs if link.peer_read in _HINDERED]
    if hindered:
        return _not_offered(hindered)
    if any(_allowed(link, snapshot) is None for link in pairs):
        return None
    reached = f"{len(open_pairs)} of {plural(len(pairs), 'GPU pair')} on PCIe"
    return passed(f"Peer access: {reached}", decided_by="driver-answered")


def _slower_directly(snapshot: Snapshot) -> Outcome | None:
    """The finding in a text whose measured copies lose by peer access."""
    told = snapshot.told
    if told is None or told.direct_copies is None or told.staged_copies is None:
        return None
    if told.direct_copies >= _LOST * told.staged_copies:
        return None
    return Outcome(
        status="fail",
        title="Direct copies between GPUs are slower than copies through host memory",
        message="Something on the way redirects or translates them: ACS on a port, or the IOMMU.",
        evidence=(
            Evidence(what="copies with peer access", value=f"{told.direct_copies:g} GB/s", source=told.source),
            Evidence(what="copies without", value=f"{told.staged_copies:g} GB/s", source=told.source),
        ),
        confidence="medium",
    )


def _allowed(link: GpuLink, snapshot: Snapshot) -> bool | None:
    """Whether the two can access each other: by CUDA's answer, else by NVML's."""
    peers = (snapshot.fabric.peers if snapshot.fabric else None) or ()
    both = {link.first, link.second}
    answered = next((peer.allowed for peer in peers if {peer.first, peer.second} == both), None)
    if answered is not None:
        return answered
    return None if link.peer_read in (None, "unknown") else link.peer_read == "ok"


def _gpus_of(pairs: list[GpuLink], facts: Facts) -> list[Gpu]:
    ids = {name for link in pairs for name in (link.first, link.second)}
    return [gpu for gpu in facts.own_gpus if gpu.pci_bus_id in ids]


def _redirected(pairs: list[GpuLink], facts: Facts) -> Outcome | None:
    """Switch ports that redirect the GPUs' traffic to the root."""
    above = {gpu.pci_bus_id: (gpu.pcie or Pcie()).redirecting or () for gpu in _gpus_of(pairs, facts)}
    affected = {name: ports for name, ports in above.items() if ports}
    if not affected:
        return None
    ports = list(dict.fromkeys(port for each in affected.values() for port in each))
    return Outcome(
        status="warn",
        title=f"ACS redirects traffic between GPUs at {plural(len(ports), 'port')}",
        message="Transfers between GPUs below one switch go through the root: they are slow and may hang.",
        evidence=(
            Evidence(what="redirecting ports", value=", ".join(ports[:_SHOWN]), source="sysfs config"),
            Evidence(what="above GPUs", value=", ".join(str(name) for name in affected), source="sysfs"),
        ),
        fixes=(_NO_ACS, _AROUND),
    )


def _translated(pairs: list[GpuLink], facts: Facts) -> Outcome | None:
    """GPUs behind a translating IOMMU that CUDA still lets access each other."""
    known = [link for link in pairs if _allowed(link, facts.snapshot)]
    gpus = [gpu for gpu in _gpus_of(known, facts) if (gpu.pcie or Pcie()).iommu in _TRANSLATED]
    if len(gpus) < 2:
        return None
    return Outcome(
        status="warn",
        title="The IOMMU translates transfers between GPUs",
        message="CUDA permits peer access over PCIe, which is unsupported with a translating IOMMU on bare metal.",
        evidence=tuple(
            Evidence(what=f"IOMMU of {gpu.pci_bus_id}", value=str((gpu.pcie or Pcie()).iommu), source="sysfs")
            for gpu in gpus[:_SHOWN]
        ),
        fixes=(_WITHOUT_IOMMU, _AROUND),
    )


def _not_offered(pairs: list[GpuLink]) -> Outcome:
    reason = _HINDERED[pairs[0].peer_read or ""]
    return Outcome(
        status="note",
        title=f"No peer access between {plural(len(pairs), 'pair')} of GPUs",
        message=f"NVML's reason: {reason}. Transfers go through host memory.",
        evidence=tuple(
            Evidence(what=f"{link.first} and {link.second}", value=link.peer_read or "", source=link.source)
            for link in pairs[:_SHOWN]
        ),
        decided_by="driver-answered",
        fixes=(_TEST,),
    )
