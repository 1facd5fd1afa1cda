"""The kernel's side of the driver: modules, device nodes, Secure Boot, and what the kernel log says of the GPUs."""

from __future__ import annotations

import os
import re
import stat
from typing import Any

from .common.lazy import lazy_pattern
from .common.out import Out
from .common.record import Found, record
from .common.system import kernel_release
from .common.tree import Tree, refused
from .machine.kernel import find_module, forbidden_by, kernel_log, module_folder, other_kernels

PROBE = {
    "title": "Kernel module, device nodes, Secure Boot and kernel log",
    "early": True,
    "seconds": 10.0,
    "fills": ["kernel", "driver.release"],
}

_MODULES = "/proc/modules"

_VERSION, _PARAMETERS = "/proc/driver/nvidia/version", "/proc/driver/nvidia/params"

_NODES = (
    "/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/nvidia-caps-imex-channels/*", "/dev/nvgpu/*/*", "/dev/nvhost-gpu",
    "/dev/nvmap", "/dev/dxg",
)  # fmt: skip
_DEVICES = "/proc/devices"
_DEVICES_LINE = lazy_pattern(r"^ *(\d{1,9}) (nvidia[\w-]*)$", re.MULTILINE)
_CAPABILITIES = "/dev/nvidia-caps"
"""Whoever may read a node below it has what it stands for: a MIG instance, an IMEX channel."""

_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_LOCKDOWN = "/sys/kernel/security/lockdown"


def collect(tree: Tree, out: Out) -> None:
    # The modules in use; None where /proc/modules does not say.
    text = tree.read_text(_MODULES, 4 * 1024 * 1024)
    listed = re.findall(r"^([\w-]+) \d+ -?\d+ \S+ (Live|Loading|Unloading)\b", text or "", re.MULTILINE)
    unclear = text is None or (text.strip() and not listed)
    modules = None if unclear else frozenset(name for name, state in listed if state == "Live")
    lockdown = re.search(r"\[(\w+)\]", tree.read_line(_LOCKDOWN) or "")
    # The major numbers of NVIDIA's character devices, which a container shares with its host.
    characters = (tree.read_text(_DEVICES) or "").partition("Block devices:")[0]
    numbers = {name: int(number) for number, name in _DEVICES_LINE.findall(characters)}
    section = record(
        nouveau_loaded=_loaded(tree, modules, "nouveau"),
        nova_loaded=_loaded(tree, modules, "nova_core"),
        secure_boot=_secure_boot(tree),
        lockdown=Found(lockdown.group(1), f"file {_LOCKDOWN}") if lockdown else None,
        device_numbers=Found(numbers, f"file {_DEVICES}") if numbers else None,
    )
    # Tegra's GPU is driven by nvgpu; its ``nvidia`` module, where there is one, is for the display.
    loaded = Found(True, f"file {_VERSION}") if tree.lexists(_VERSION) else _loaded(tree, modules, "nvidia")
    tegra = _loaded(tree, modules, "nvgpu") if loaded and not loaded.value else None
    if tegra and tegra.value:
        loaded = Found(True, f"{tegra.source} (nvgpu)")
    release = kernel_release(tree)
    folder = module_folder(tree, release) if release else None
    file = find_module(tree, folder) if folder else None
    place = f"file {folder}"
    built_for = other_kernels(tree, release)
    peers = [each for name in ("nvidia_peermem", "nv_peer_mem") if (each := _loaded(tree, modules, name))]
    section["nvidia"] = record(
        loaded=loaded,
        **_running_version(tree),
        built=Found(file is not None, place) if folder else None,
        built_for=Found(built_for, "file /lib/modules") if built_for else None,
        file=Found(file, place),
        uvm_loaded=_loaded(tree, modules, "nvidia_uvm"),
        peer_memory_loaded=max(peers, key=lambda each: each.value) if peers else None,
        blacklisted_by=forbidden_by(tree),
        counters_for_admins=_counters_for_admins(tree),
    ) or {"source": "procfs"}
    section.setdefault("source", section["nvidia"].get("source", "procfs"))
    if tree.list_names("/dev") is not None:
        paths = [path for pattern in _NODES for path in tree.expand(pattern)][:512]
        owners = (_names(tree, "/etc/passwd"), _names(tree, "/etc/group"))
        section["device_nodes"] = [node for path in paths if (node := _device_node(tree, path, owners))]
    module = section["nvidia"]
    version_source = module.get("read", {}).get("version", module.get("source"))
    # The driver's release by the module that runs: there too where no NVML can be asked.
    running = version_source == f"file {_VERSION}" and "version" in module
    driver = {"driver": {"source": version_source, "release": module["version"]}} if running else {}
    out.fact({"kernel": section, **driver})
    # The log may be long: what was found before is sent first.
    out.fact({"kernel": {"source": section["source"], "log": kernel_log(tree)}})
    tree.report_unreadable(out)


def _loaded(tree: Tree, modules: frozenset[str] | None, name: str) -> Found | None:
    if modules is not None:
        return Found(name in modules, f"file {_MODULES}")
    names = tree.list_names("/sys/module")
    return Found(name in names, "file /sys/module") if names else None


def _running_version(tree: Tree) -> dict[str, Found]:
    """Version and flavour of the module that is loaded, by its own words."""
    fields: dict[str, Found] = {}
    line = (tree.read_text(_VERSION, 4096) or "").partition("\n")[0]
    match = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", line)
    if match:
        flavour = "open" if "Open Kernel Module" in line else "proprietary"
        fields = {"version": Found(match.group(1), f"file {_VERSION}"), "flavour": Found(flavour, f"file {_VERSION}")}
    version = tree.read_line("/sys/module/nvidia/version")
    if "version" not in fields and version:
        fields["version"] = Found(version, "file /sys/module/nvidia/version")
    taint = tree.read_line("/sys/module/nvidia/taint")
    if "flavour" not in fields and taint:
        fields["flavour"] = Found("proprietary" if "P" in taint else "open", "file /sys/module/nvidia/taint")
    return fields


def _counters_for_admins(tree: Tree) -> Found | None:
    set_to = re.search(r"^RmProfilingAdminOnly: (\d)$", tree.read_text(_PARAMETERS, 65536) or "", re.MULTILINE)
    return Found(set_to[1] != "0", f"file {_PARAMETERS}") if set_to else None


def _secure_boot(tree: Tree) -> Found | None:
    data = tree.read_bytes(_SECURE_BOOT, 16)
    if data and len(data) > 4:
        return Found(data[4] == 1, f"file {_SECURE_BOOT}")
    firmware = tree.list_names("/sys/firmware") or []
    if firmware and "efi" not in firmware:
        return Found(False, "file /sys/firmware")  # started by a BIOS or a boot loader, which know no Secure Boot
    variables = tree.list_names("/sys/firmware/efi/efivars")
    return Found(False, "file /sys/firmware/efi/efivars") if variables and data is None else None


def _device_node(tree: Tree, path: str, owners: tuple[dict[int, str], dict[int, str]]) -> dict[str, Any] | None:
    """A node by its permissions; it is not opened, because opening one may start the GPU."""
    place = tree.place(path)
    try:
        about = os.stat(place)
    except OSError as error:
        refused(path, error)
        return None
    if stat.S_ISDIR(about.st_mode):
        return None
    numbered = re.fullmatch(r"/dev/nvidia(\d{1,9})", path)
    needed = os.R_OK if path.startswith(_CAPABILITIES) else os.R_OK | os.W_OK
    node: dict[str, Any] = {
        "source": "file /dev",
        "path": path,
        "openable": os.access(place, needed),
        "mode": stat.filemode(about.st_mode),
        "owner": f"{owners[0].get(about.st_uid, about.st_uid)}:{owners[1].get(about.st_gid, about.st_gid)}",
    }
    if stat.S_ISCHR(about.st_mode):
        node["number"] = f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"
    if numbered:
        node["minor"] = int(numbered.group(1))
    return node


def _names(tree: Tree, path: str) -> dict[int, str]:
    """Numbers to names of /etc/passwd or /etc/group, read as a file: a name service might ask the network."""
    found = re.findall(r"^([^:\n]+):[^:\n]*:(\d{1,10}):", tree.read_text(path) or "", re.MULTILINE)
    return {int(number): name for name, number in found}
