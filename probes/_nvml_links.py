"""NVLinks of a GPU, and how two GPUs are joined."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from ._nvml_ask import INVALID_ARGUMENT, REFUSED, SUCCESS, UNKNOWN_HERE, Device
from ._nvml_convert import bus_id

LINK_COUNT = 91
LINK_SPEED = 164
"""Numbers of NVML's fields: links of the GPU, and the speed of one in MB/s (its number goes into the scope)."""

REMOTE_KINDS = {0: "gpu", 1: "cpu", 2: "switch"}
"""IBM Power is the one processor that NVML tells from GPU and switch."""

PATHS = {0: "internal", 10: "single", 20: "multiple", 30: "hostbridge", 40: "node", 50: "system"}
P2P_READ = 0
P2P_NVLINK = 2
P2P_OK = 0
P2P_STATUSES = {
    0: "ok",
    1: "chipset_not_supported",
    2: "gpu_not_supported",
    3: "ioh_topology_not_supported",
    4: "disabled_by_regkey",
    5: "not_supported",
    6: "unknown",
}
"""``nvmlGpuP2PStatus_t``."""

Pair = tuple[dict[str, Any], Device]
"""A GPU's record and its device."""


def nvlinks(device: Device, record: dict[str, Any]) -> None:
    device.asked.append("nvlinks")
    links = []
    refusals = []
    for number in range(_most_links(device)):
        code, active = device.attempt(("nvmlDeviceGetNvLinkState", number))
        if code == SUCCESS:
            links.append({**_link(device, number), "active": bool(active)})
        elif code in REFUSED:
            refusals.append(code)
        elif code not in UNKNOWN_HERE | {INVALID_ARGUMENT}:
            device.note("nvlinks", "nvmlDeviceGetNvLinkState", code)
    if links:
        record["nvlinks"] = links
    elif refusals:
        device.note("nvlinks", "nvmlDeviceGetNvLinkState", refusals[0])


def _most_links(device: Device) -> int:
    present = device.ask_field("", LINK_COUNT)
    return int(present) if present else int(getattr(device.nvml, "NVML_NVLINK_MAX_LINKS", 18))


def _link(device: Device, number: int) -> dict[str, Any]:
    link: dict[str, Any] = {"source": "nvml", "link": number}
    code, version = device.attempt(("nvmlDeviceGetNvLinkVersion", number))
    if code == SUCCESS and version:
        link["version"] = version
    code, remote = device.attempt(("nvmlDeviceGetNvLinkRemotePciInfo", number))
    address = bus_id(device.nvml, remote.busId) if code == SUCCESS else None
    if address:
        link["remote_pci_bus_id"] = address
    code, kind = device.attempt(("nvmlDeviceGetNvLinkRemoteDeviceType", number))
    if code == SUCCESS and kind in REMOTE_KINDS:
        link["remote_kind"] = REMOTE_KINDS[kind]
    speed = device.ask_field("", LINK_SPEED, number)
    if speed:
        link["bandwidth"] = speed * 1e6
    return link


def gpu_links(gpus: Iterable[Pair]) -> list[dict[str, Any]]:
    """How every two of the GPUs with a PCI bus id are joined."""
    known = [pair for pair in gpus if "pci_bus_id" in pair[0]]
    return [_gpu_link(first, second) for first, second in combinations(known, 2)]


def _gpu_link(first: Pair, second: Pair) -> dict[str, Any]:
    link: dict[str, Any] = {"source": "nvml", "first": first[0]["pci_bus_id"], "second": second[0]["pci_bus_id"]}
    code, level = first[1].attempt(("nvmlDeviceGetTopologyCommonAncestor", second[1].handle))
    if code == SUCCESS:
        link["path"] = PATHS.get(level, str(level))
    joined = _nvlinks_between(first, second)
    if joined is not None:
        link["nvlinks"] = joined
    code, status = first[1].attempt(("nvmlDeviceGetP2PStatus", second[1].handle, P2P_READ))
    if code == SUCCESS:
        link["peer_read"] = P2P_STATUSES.get(status, str(status))
    return link


def _nvlinks_between(first: Pair, second: Pair) -> int | None:
    """NVLinks that join two GPUs, directly or through switches; None when that is not known.

    Links into switches join two GPUs only if the driver says that they reach each other over NVLink.
    """
    if any("nvlinks" not in record and "nvlinks" not in device.refused for record, device in (first, second)):
        return None
    ours, theirs = ([link for link in pair[0].get("nvlinks", ()) if link["active"]] for pair in (first, second))
    direct: int = sum(link.get("remote_pci_bus_id") == second[0]["pci_bus_id"] for link in ours)
    if direct:
        return direct
    switched = min(sum(link.get("remote_kind") == "switch" for link in links) for links in (ours, theirs))
    if not switched:
        return 0
    code, status = first[1].attempt(("nvmlDeviceGetP2PStatus", second[1].handle, P2P_NVLINK))
    if code != SUCCESS:
        return None
    return switched if status == P2P_OK else 0
