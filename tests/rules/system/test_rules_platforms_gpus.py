"""The rules about shared and GPU memory, MIG devices, peer access and broken releases, on constructed machines."""

from typing import Any

from envcheck.model.snapshot import (
    DeviceNode,
    Distribution,
    FolderAccess,
    Framework,
    Gpu,
    GpuLink,
    Listing,
    Memory,
    MigInstance,
    ObservedError,
    PeerAccess,
    Platform,
    Process,
    Snapshot,
    Trial,
    Variables,
)
from tests.every import cases, every
from tests.rules.machines import (
    DOCKER,
    GIB,
    NO_DEVICE,
    UBUNTU,
    answered,
    bad,
    but,
    cause,
    check_of,
    driver,
    eight,
    h200,
    kernel,
    machine,
    statuses,
    torch,
    variables,
    venv,
    with_venv,
    without_gpu,
)

Case = tuple[str, str, Snapshot, tuple[str, ...]]
MIB = 1 << 20


def met(*lines: str) -> tuple[ObservedError, ...]:
    return tuple(ObservedError(source="pasted text", text=line, line=number) for number, line in enumerate(lines, 1))


# --- shared memory ------------------------------------------------------------------------------------------------
def shared(size: int | None, *, gpus: int = 2, free: int | None = None, platform: Platform = DOCKER) -> Snapshot:
    found = but(platform, shared_memory=size, shared_memory_free=free)
    return machine(*(h200(number) for number in range(gpus)), platform=found)


MEMORY: list[Case] = [
    ("shared-memory-too-small", "the default, two GPUs", shared(64 * MIB), ("warn",)),
    ("shared-memory-too-small", "the default, one GPU", shared(64 * MIB, gpus=1), ("note",)),
    ("shared-memory-too-small", "enough", shared(8 * GIB, free=8 * GIB), ("pass",)),
    ("shared-memory-too-small", "more than the default", shared(512 * MIB), ("note",)),
    ("shared-memory-too-small", "more than the default, one GPU", shared(512 * MIB, gpus=1), ("pass",)),
    ("shared-memory-too-small", "more than the default, on a host", shared(512 * MIB, platform=UBUNTU), ("pass",)),
    ("shared-memory-too-small", "full", shared(8 * GIB, free=MIB), ("warn",)),
    ("shared-memory-too-small", "full, one GPU", shared(8 * GIB, free=MIB, gpus=1), ("note",)),
    ("shared-memory-too-small", "a host's own is small", shared(32 * MIB, platform=UBUNTU), ("warn",)),
    ("shared-memory-too-small", "not known", shared(None), ("skipped",)),
    ("shared-memory-too-small", "no GPU", without_gpu(platform=but(DOCKER, shared_memory=64 * MIB)), ()),
    ("shared-memory-too-small", "Windows", shared(64 * MIB, platform=Platform(os="windows")), ()),
    ("shared-memory-too-small", "a process crashed on it",
     but(shared(64 * MIB, gpus=1), observed_errors=met("Bus error (core dumped)")), ("fail",)),
    ("shared-memory-too-small", "its data loaders wait",
     but(shared(64 * MIB, gpus=1), observed_errors=met("the data loader workers silently hang")), ("warn",)),
    ("shared-memory-too-small", "a process crashed on something else",
     but(shared(8 * GIB, gpus=1), observed_errors=met("Bus error (core dumped)")), ("pass",)),
]  # fmt: skip


@cases("runtime, words",
    ("docker", "--shm-size=1g"), ("podman", "--shm-size=1g"), ("kubernetes", "emptyDir"),
    ("apptainer", "on the host"),
)  # fmt: skip
def test_shared_memory_grows_in_the_words_of_the_runtime(runtime: str, words: str) -> None:
    found = check_of("shared-memory-too-small", shared(64 * MIB, platform=but(DOCKER, container=runtime)))
    assert words in found.fixes[0].text


def test_a_hosts_shared_memory_is_remounted() -> None:
    found = check_of("shared-memory-too-small", shared(64 * MIB, platform=UBUNTU))
    assert found.fixes[0].command[:3] == ("sudo", "mount", "-o")


@cases("why, command", ("its file system is read-only", "remount,rw"), ("this user may not write in /dev/shm", "1777"))
def test_shared_memory_that_cannot_be_written(why: str, command: str) -> None:
    place = FolderAccess(path="/dev/shm", obstacle=why)
    snapshot = but(shared(8 * GIB, platform=UBUNTU), variables=Variables(source="process", places=(place,)))
    found = check_of("shared-memory-too-small", snapshot)
    assert (found.status, why in found.title, command in found.fixes[0].command) == ("warn", True, True)


# --- memory of a GPU ----------------------------------------------------------------------------------------------
def filled(free: int, total: int = 140 * GIB, **changes: Any) -> Snapshot:
    return machine(h200(memory=Memory(source="nvml", total=total, free=free), **changes))


GPU_MEMORY: list[Case] = [
    ("gpu-memory-exhausted", "empty", filled(139 * GIB), ("pass",)),
    ("gpu-memory-exhausted", "full", filled(GIB), ("note",)),
    ("gpu-memory-exhausted", "a small share that is much", filled(6 * GIB), ("pass",)),
    ("gpu-memory-exhausted", "a small card, half full", filled(GIB, total=2 * GIB), ("pass",)),
    ("gpu-memory-exhausted", "in MIG mode", filled(0, mig__enabled=True, mig__instances=(MigInstance(),)), ()),
    ("gpu-memory-exhausted", "a GPU that does not tell", machine(h200(memory=None, not_supported=("memory",))), ()),
    ("gpu-memory-exhausted", "not known", machine(h200(memory=None)), ("skipped",)),
]


def test_who_holds_the_memory_is_told_most_first() -> None:
    holders = tuple(Process(source="nvml", pid=pid, memory=pid * GIB) for pid in (1, 90, 40, 3))
    found = check_of("gpu-memory-exhausted", filled(GIB, processes=holders))
    assert [each.what for each in found.evidence if each.what.startswith("process")] == [
        "process 90",
        "process 40",
        "process 3",
    ]
    assert bad(filled(GIB, processes=holders)) == []


# --- MIG devices --------------------------------------------------------------------------------------------------
def sliced(*names: str, number: int = 0, **changes: Any) -> Gpu:
    instances = tuple(MigInstance(source="nvml", uuid=name, name="3g.71gb") for name in names)
    fields: dict[str, Any] = {"cuda_ordinal": 0 if not number else None, **changes}
    return h200(number, mig__enabled=True, mig__instances=instances, **fields)


def mig(*items: Gpu, devices: int | None = 1, **changes: Any) -> Snapshot:
    found = driver(cuda_devices=devices)
    if devices == 0:
        found = but(found, cuda_init=NO_DEVICE, cuda_device_count=None)
    return but(machine(*items), driver=found, **changes)


def visible(value: str) -> dict[str, Any]:
    return {"variables": variables(CUDA_VISIBLE_DEVICES=value)}


TWO = sliced("MIG-1", "MIG-2")
ORDINAL = "RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED"

MIG: list[Case] = [
    ("mig-enumeration", "no MIG", machine(), ()),
    ("mig-enumeration", "one instance", mig(sliced("MIG-1")), ("pass",)),
    ("mig-enumeration", "two instances", mig(TWO), ("note",)),
    ("mig-enumeration", "one is named", mig(TWO, **visible("MIG-2")), ("note",)),
    ("mig-enumeration", "two are named", mig(TWO, **visible("MIG-1,MIG-2")), ("warn",)),
    ("mig-enumeration", "two are named and shown", mig(TWO, devices=2, **visible("MIG-1,MIG-2")), ("pass",)),
    ("mig-enumeration", "the GPU is named", mig(TWO, devices=0, **visible("GPU-0e153500")), ("fail",)),
    ("mig-enumeration", "another GPU is named", mig(TWO, devices=0, **visible("GPU-ffff")), ("note",)),
    ("mig-enumeration", "a whole GPU beside", mig(sliced("MIG-1"), h200(1, cuda_ordinal=None)), ("note",)),
    ("mig-enumeration", "a whole GPU beside, which is chosen",
     mig(sliced("MIG-1", cuda_ordinal=None), h200(1, cuda_ordinal=0), **visible("GPU-0e153501")), ("pass",)),
    ("mig-enumeration", "CUDA was not asked", mig(TWO, devices=None), ()),
    ("mig-enumeration", "a program counts by NVML", mig(TWO, devices=None, observed_errors=met(ORDINAL)), ("fail",)),
    ("mig-enumeration", "a program counts wrongly by itself", machine(observed_errors=met(ORDINAL)), ()),
    ("mig-permission", "no MIG", machine(), ()),
    ("mig-permission", "CUDA works", mig(TWO), ("pass",)),
    ("mig-permission", "NVML refuses",
     mig(sliced(errors=(answered("nvmlDeviceGetMigDeviceHandleByIndex", 4, "NO_PERMISSION"),)), devices=0), ("fail",)),
    ("mig-permission", "no node", mig(TWO, devices=0), ("fail",)),
    ("mig-permission", "no instance", mig(sliced(), devices=0), ()),
    ("mig-permission", "nobody looked for nodes", mig(TWO, devices=0, kernel=kernel(device_nodes=None)), ()),
]  # fmt: skip


def capability(number: int, *, openable: bool) -> DeviceNode:
    path = f"/dev/nvidia-caps/nvidia-cap{number}"
    return DeviceNode(source="file /dev", path=path, openable=openable, mode="cr--r-----", owner="root:root")


def test_a_capability_that_may_not_be_read_is_named() -> None:
    given = kernel(device_nodes=(*(capability(n, openable=False) for n in (1, 2, 21)),))
    found = check_of("mig-permission", mig(TWO, devices=0, kernel=given))
    assert (found.status, found.evidence[0].what) == ("fail", "/dev/nvidia-caps/nvidia-cap21")
    readable = kernel(device_nodes=(capability(1, openable=False), capability(21, openable=True)))
    assert statuses("mig-permission", mig(TWO, devices=0, kernel=readable)) == ()


def test_missing_permission_is_the_cause_of_no_device() -> None:
    refused = answered("nvmlDeviceGetMigDeviceHandleByIndex", 4, "NO_PERMISSION")
    snapshot = mig(sliced("MIG-1", errors=(refused,)), devices=0)
    assert cause(snapshot) == "mig-permission"
    assert check_of("no-gpu-visible", snapshot).explained_by == f"mig-permission@{h200().key}"


# --- peer access --------------------------------------------------------------------------------------------------
def peers(
    *, nvlinks: int = 0, read: str | None = "ok", allowed: bool | None = True, virtualization: str = "none", **pcie: Any
) -> Snapshot:
    """Two GPUs of one machine, joined over PCI Express unless there are NVLinks."""
    changed = {f"pcie__{name}": value for name, value in pcie.items()}
    first, second = (but(h200(number), **changed) for number in (0, 1))
    ids: dict[str, Any] = {"first": str(first.pci_bus_id), "second": str(second.pci_bus_id)}
    link = GpuLink(source="nvml", nvlinks=nvlinks, path="single", peer_read=read, **ids)
    told = None if allowed is None else (PeerAccess(source="cuda", allowed=allowed, **ids),)
    snapshot = but(machine(first, second), fabric__links=(link,), fabric__peers=told)
    return but(snapshot, platform__virtualization=virtualization)


REDIRECTED: dict[str, Any] = {"redirecting": ("0000:16:00.0",)}
ACS = "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-"

PEERS: list[Case] = [
    ("peer-access-blocked", "they reach each other", peers(redirecting=(), iommu=""), ("pass",)),
    ("peer-access-blocked", "passed through", peers(redirecting=(), iommu="identity"), ("pass",)),
    ("peer-access-blocked", "ACS", peers(**REDIRECTED), ("warn",)),
    ("peer-access-blocked", "ACS beside NVLink", peers(nvlinks=18, **REDIRECTED), ("pass",)),
    ("peer-access-blocked", "ACS in a guest", peers(virtualization="kvm", **REDIRECTED), ("pass",)),
    ("peer-access-blocked", "ACS, and no peer access anyway",
     peers(read="gpu_not_supported", allowed=False, **REDIRECTED), ("pass",)),
    ("peer-access-blocked", "a translating IOMMU", peers(iommu="DMA-FQ"), ("warn",)),
    ("peer-access-blocked", "a translating IOMMU in a guest", peers(iommu="DMA-FQ", virtualization="kvm"), ("pass",)),
    ("peer-access-blocked", "a translating IOMMU, and CUDA refuses", peers(iommu="DMA", allowed=False), ("pass",)),
    ("peer-access-blocked", "the chipset", peers(read="chipset_not_supported", allowed=False), ("note",)),
    ("peer-access-blocked", "the model", peers(read="gpu_not_supported", allowed=False), ("pass",)),
    ("peer-access-blocked", "nobody told", peers(read=None, allowed=None), ()),
    ("peer-access-blocked", "NVML alone told", peers(allowed=None), ("pass",)),
    ("peer-access-blocked", "one GPU", machine(), ()),
    ("peer-access-blocked", "links that nobody looked at", eight(), ()),
    ("peer-access-blocked", "lspci alone", Snapshot(observed_errors=met(ACS)), ("note",)),
    ("peer-access-blocked", "lspci and a hang", Snapshot(observed_errors=met("all_reduce_perf hangs", ACS)), ("fail",)),
]  # fmt: skip


def test_the_ports_that_redirect_are_named() -> None:
    found = check_of("peer-access-blocked", peers(**REDIRECTED))
    assert ("redirecting ports", "0000:16:00.0") in [(each.what, each.value) for each in found.evidence]
    assert any("setpci" in fix.text for fix in found.fixes)
    assert all(fix.risk for fix in found.fixes)


# --- recovery -----------------------------------------------------------------------------------------------------
@cases(
    "advice, action, words",
    ("bus_reset", "reset", "--gpu-reset"),
    ("system_reboot", "reboot", "Restart the machine"),
    ("recover_imex_domain", "none", "IMEX"),
)
def test_newer_recovery_actions_are_understood(advice: str, action: str, words: str) -> None:
    found = check_of("gpu-needs-reset", machine(h200(recovery_action=advice)))
    assert (found.status, found.action) == ("fail", action)
    assert any(words in fix.text for fix in found.fixes)


# --- releases that are known to be broken -------------------------------------------------------------------------
def windows(build: str | None, *, wsl: bool = True) -> Snapshot:
    return Snapshot(
        platform=Platform(source="pasted text", os="linux" if wsl else "windows", wsl=wsl, windows_build=build)
    )


def wheel(name: str, version: str) -> Snapshot:
    package = Distribution(source="wheel metadata", name=name, version=version)
    return with_venv(machine(), venv(distributions=(package,)))


def with_framework(framework: Framework) -> Snapshot:
    return with_venv(machine(), venv(frameworks=Listing(items=(framework,), complete=True)))


def tensorflow(version: str, capability: str, *code: str, **changes: Any) -> Snapshot:
    """A TensorFlow beside a GPU of that compute capability; without ``code``, its files were not read."""
    found = but(torch(version, "12.5", gpu_code=code or None), name="tensorflow", **changes)
    return with_venv(machine(h200(compute_capability=capability)), venv(found))


def rtx_4090(count: int, release: str) -> Snapshot:
    gpus = (but(h200(number), name="NVIDIA GeForce RTX 4090") for number in range(count))
    return machine(*gpus, driver=driver(release=release))


RAN = Trial(source="process", imported=True, ran_on_gpu=True, gpu=h200().uuid)

RELEASES: list[Case] = [
    ("known-bad-release", "a driver that claims P2P", rtx_4090(2, "525.60.11"), ("warn",)),
    ("known-bad-release", "of one GPU it matters to none", rtx_4090(1, "525.60.11"), ("pass",)),
    ("known-bad-release", "a driver that claims none", rtx_4090(2, "525.105.17"), ("pass",)),
    ("known-bad-release", "only PTX for RTX 50", tensorflow("2.19.0", "12.0", "sm_89", "compute_90"), ("fail",)),
    ("known-bad-release", "by its release", tensorflow("2.20.0", "12.0"), ("fail",)),
    ("known-bad-release", "only PTX, which runs", tensorflow("2.19.0", "9.0", "sm_89", "compute_90"), ("pass",)),
    ("known-bad-release", "native code", tensorflow("2.19.0", "12.0", "sm_90", "sm_120"), ("pass",)),
    ("known-bad-release", "it ran", tensorflow("2.19.0", "12.0", "compute_90", trial=RAN), ("pass",)),
    ("known-bad-release", "a preview of Windows", windows("10.0.21343.1000"), ("fail",)),
    ("known-bad-release", "its full number in fewer parts", windows("10.0.21343"), ("fail",)),
    ("known-bad-release", "a later one", windows("10.0.22631.4317"), ("pass",)),
    ("known-bad-release", "Windows without WSL", windows("10.0.21343.1000", wsl=False), ("pass",)),
    ("known-bad-release", "nothing is known", windows(None), ()),
    ("known-bad-release", "a healthy machine", machine(), ("pass",)),
    ("known-bad-release", "a driver for Linux", machine(driver=driver("331.38")), ("warn",)),
    ("known-bad-release", "that number on Windows", machine(driver=driver("331.38"), platform__os="windows"),
     ("pass",)),
    ("known-bad-release", "NCCL as a wheel", wheel("nvidia-nccl-cu12", "2.29.2"), ("warn",)),
    ("known-bad-release", "NCCL with a build number", wheel("nvidia-nccl-cu13", "2.29.2.1"), ("warn",)),
    ("known-bad-release", "the next NCCL", wheel("nvidia-nccl-cu12", "2.29.3"), ("pass",)),
    ("known-bad-release", "NCCL in a framework", with_framework(torch(nccl="2.29.2")), ("warn",)),
    ("known-bad-release", "a PyTorch", with_framework(torch("2.9.0+cu128", "12.8")), ("note",)),
    ("known-bad-release", "with the cuDNN that it brings", with_framework(torch("2.9.1+cu128", "12.8")), ("note",)),
    ("known-bad-release", "with an old cuDNN", with_framework(torch("2.9.1+cu128", "12.8", cudnn="9.10.2")), ("note",)),
    ("known-bad-release", "with a new cuDNN", with_framework(torch("2.9.1+cu128", "12.8", cudnn="9.15.1")), ("pass",)),
    ("known-bad-release", "an old cuDNN of another PyTorch",
     with_framework(torch("2.8.0+cu128", "12.8", cudnn="9.10.2")), ("pass",)),
]  # fmt: skip


def test_a_broken_release_cites_its_row_and_names_the_next() -> None:
    found = check_of("known-bad-release", windows("10.0.21354.1"))
    assert found.title == "windows 10.0.21354.1 is known to be broken"
    assert "21359" in found.fixes[0].text
    assert {source.address for source in found.sources} == {
        "https://github.com/microsoft/WSL/issues/6773",
        "https://github.com/microsoft/WSL/issues/6809",
    }


def test_a_broken_release_stands_in_the_layer_that_it_belongs_to() -> None:
    broken = {
        "driver": machine(driver=driver("331.38")),
        "library": wheel("nvidia-nccl-cu12", "2.29.2"),
        "framework": with_framework(torch("2.9.0+cu128", "12.8")),
    }
    for layer, found in broken.items():
        assert check_of("known-bad-release", found).layer == layer


CASES: list[Case] = [*MEMORY, *GPU_MEMORY, *MIG, *PEERS, *RELEASES]


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected
