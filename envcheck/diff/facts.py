"""Compare the facts of two machines, or of one machine at two times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from envcheck.diff.record import Change, Facts, Match, Note, Section, added_and_removed, changed
from envcheck.model.checks import Report
from envcheck.model.snapshot import Environment, Gpu, Listing, Snapshot, frameworks_in, items_in

OF_ONE_PROCESS = ("RANK", "LOCAL_RANK")
_PACKAGED = ("wheel", "conda", "driver")  # Origins of libraries whose versions are told with a distribution or driver
_OF_FLEETS = frozenset({"multiprocessors", "addressing mode", "IOMMU", "fabric"})  # What is compared among nodes alone


def compare_facts(first: Report, second: Report, matched: Match) -> Iterator[Change | Note]:
    """System, driver, GPUs, toolkits, libraries, environments and variables."""
    ours, theirs = first.snapshot or Snapshot(), second.snapshot or Snapshot()
    yield from _section("system", ours.platform, theirs.platform, system_facts)
    yield from _section("driver", ours.driver, theirs.driver, driver_facts)
    yield from changed("driver", "", module_facts(ours), module_facts(theirs))
    yield from _only_one("gpus", ours.gpus, theirs.gpus)
    for first_gpu, second_gpu in matched.gpus:
        yield from changed("gpus", called(first_gpu), _gpu(first_gpu, matched), _gpu(second_gpu, matched))
    if ours.gpus is not None and theirs.gpus is not None:
        gone, come = matched.gpus_left
        names, others = ({called(gpu): gpu.name for gpu in gpus} for gpus in (gone, come))
        complete = (ours.gpus.complete, theirs.gpus.complete)
        yield from added_and_removed("gpus", "", names, others, complete=complete)
        if (gone and not complete[1]) or (come and not complete[0]):
            yield Note(section="gpus", why="a list of GPUs is not complete: none is said to be gone or new")
    yield from _section("toolkits", ours.toolkits, theirs.toolkits, toolkit_facts)
    yield from _section("libraries", ours.libraries, theirs.libraries, library_facts)
    # Versions of the owning packages, for files without a version of their own.
    before, after = (
        {
            f"{found.path}, by its package": found.declared
            for found in items_in(side.libraries)
            if found.origin not in _PACKAGED and found.on_disk is None
        }
        for side in (ours, theirs)
    )
    yield from changed("libraries", "", before, after)
    yield from _only_one("environments", ours.environments, theirs.environments)
    for mine, other in matched.environments:
        key = mine.key
        yield from changed("environments", key, {"python": mine.python}, {"python": other.python})
        names, others = package_facts(mine), package_facts(other)
        yield from changed("environments", key, names, others)
        complete = (mine.distributions_complete, other.distributions_complete)
        yield from added_and_removed("environments", key, names, others, complete=complete)
        yield from changed("environments", key, build_facts(mine), build_facts(other))
        if (mine.distributions or other.distributions) and not all(complete):
            yield Note(section="environments", why=f"{key}: a list of distributions is not complete")
    if ours.environments is not None and theirs.environments is not None:
        left, new = ({found.key: found.python for found in side} for side in matched.environments_left)
        complete = (ours.environments.complete, theirs.environments.complete)
        yield from added_and_removed("environments", "", left, new, complete=complete)
    yield from _only_one("variables", ours.variables, theirs.variables)
    if ours.variables is not None and theirs.variables is not None:
        first_values, second_values = (
            {name: value for name, value in side.values.items() if name not in OF_ONE_PROCESS}
            for side in (ours.variables, theirs.variables)
        )
        second_values = {name: matched.as_first(value) for name, value in second_values.items()}
        yield from changed("variables", "", first_values, second_values)
        complete = (ours.variables.complete, theirs.variables.complete)
        yield from added_and_removed("variables", "", first_values, second_values, complete=complete)


def _section(section: Section, ours: Any, theirs: Any, facts_of: Callable[[Any], Facts]) -> Iterator[Change | Note]:
    """A record or a listing of both sides, by the facts that are ``told`` of it, or of its items."""
    yield from _only_one(section, ours, theirs)
    if ours is not None and theirs is not None:
        before, after = (facts_of(side.items if isinstance(side, Listing) else side) for side in (ours, theirs))
        yield from changed(section, "", before, after)
        if isinstance(ours, Listing):
            yield from added_and_removed(section, "", before, after, complete=(ours.complete, theirs.complete))


def _only_one(section: Section, before: object, after: object) -> Iterator[Note]:
    if (before is None) != (after is None):
        yield Note(section=section, why=f"only the {'second' if before is None else 'first'} report looked at it")


def system_facts(platform: Any) -> Facts:
    return {
        "system": platform.distribution_title or platform.distribution or platform.os,
        "machine": platform.machine,
        "kernel": platform.kernel_release,
        "libc": platform.libc,
        "container": platform.container,
        "virtualization": platform.virtualization,
        "processors": number(platform.cpus),
        "memory": gib(platform.memory),
        "shared memory": gib(platform.shared_memory),
        "Windows": platform.windows_build,
        "L4T": platform.tegra_release,
    }


def driver_facts(driver: Any) -> Facts:
    start = driver.cuda_init
    return {
        "installed": yes(driver.installed),
        "release": driver.release,
        "CUDA": driver.cuda,
        "cuInit": (f"{start.code} {start.name}".strip() if start.code else "ok") if start else None,
        "devices that CUDA shows": number(driver.cuda_devices),
    }


def module_facts(snapshot: Snapshot) -> Facts:
    module = snapshot.kernel.nvidia if snapshot.kernel else None
    if module is None:
        return {}
    return {
        "kernel module loaded": yes(module.loaded),
        "kernel module": module.version,
        "flavour of the kernel module": module.flavour,
    }


def called(gpu: Gpu) -> str:
    """``GPU 0 at 0000:06:00.0``."""
    number = f"GPU {gpu.index}" if gpu.index is not None else "GPU"
    return f"{number} at {gpu.pci_bus_id}" if gpu.pci_bus_id else f"{number} {gpu.key}"


def _gpu(gpu: Gpu, matched: Match) -> Facts:
    left_out = _OF_FLEETS if matched.one_machine else _OF_FLEETS | {"UUID"}  # those of two machines always differ
    return {what: value for what, value in gpu_facts(gpu).items() if what not in left_out}


def gpu_facts(gpu: Gpu) -> Facts:
    ecc, power, pcie, remap = gpu.ecc, gpu.power, gpu.pcie, gpu.row_remap
    links = [link.active for link in gpu.nvlinks or ()]
    return {
        "UUID": gpu.uuid,
        "model": gpu.name,
        "compute capability": gpu.compute_capability,
        "memory": gib(gpu.memory.total if gpu.memory else None),
        "multiprocessors": number(gpu.sm_count),
        "VBIOS": gpu.vbios,
        "GSP firmware": gpu.gsp_firmware,
        "kernel driver": gpu.kernel_driver,
        "compute mode": gpu.compute_mode,
        "persistence mode": yes(gpu.persistence_mode),
        "addressing mode": gpu.addressing_mode,
        "recovery action": gpu.recovery_action,
        "power limit": f"{power.limit:.0f} W" if power and power.limit is not None else None,
        "ECC": yes(ecc.enabled) if ecc else None,
        "uncorrected memory errors": number(ecc.aggregate_uncorrected) if ecc else None,
        "row remapping pending": yes(remap.pending) if remap else None,
        "row remapping failed": yes(remap.failed) if remap else None,
        "MIG": yes(gpu.mig.enabled) if gpu.mig else None,
        "PCIe width": number(pcie.width) if pcie else None,
        "PCIe generation at most": number(pcie.generation_max) if pcie else None,
        "IOMMU": pcie.iommu if pcie else None,
        "NVLinks active": str(links.count(True)) if gpu.nvlinks is not None else None,
        "fabric": gpu.fabric.state if gpu.fabric else None,
    }


def toolkit_facts(items: Any) -> Facts:
    return {toolkit.path: toolkit.version for toolkit in items}


def library_facts(items: Any) -> Facts:
    return {found.path: found.on_disk for found in items if found.origin not in _PACKAGED}


def package_facts(environment: Environment) -> dict[str, str | None]:
    """Versions of distributions; of frameworks their full versions."""
    versions: dict[str, set[str]] = {}
    for found in environment.distributions or ():
        versions.setdefault(found.name, set()).add(found.version)
    releases: dict[str, str | None] = {name: " and ".join(sorted(found)) for name, found in versions.items()}
    frameworks = frameworks_in(environment)
    return releases | {framework.name: framework.version for framework in frameworks if framework.version}


def build_facts(environment: Environment) -> Facts:
    """What the frameworks were built with, and whether they ran."""
    found: dict[str, str | None] = {}
    for framework in frameworks_in(environment):
        name, trial = framework.name, framework.trial
        found |= {f"CUDA of {name}": framework.cuda, f"cuDNN of {name}": framework.cudnn}
        found |= {f"NCCL of {name}": framework.nccl, f"{name} ran on the GPU": yes(trial.ran_on_gpu) if trial else None}
    return found


def yes(value: bool | None) -> str | None:  # noqa: FBT001 - it is the fact itself
    return None if value is None else "yes" if value else "no"


def number(value: int | None) -> str | None:
    return None if value is None else f"{value}"


def gib(value: int | None) -> str | None:
    return None if value is None else f"{value / (1 << 30):.0f} GiB"
