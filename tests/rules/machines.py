"""Machines for the tests of rules, put together by hand; the versions in them are examples, not knowledge."""

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from envcheck.enrich.complete import complete
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Check, Scope, ways
from envcheck.model.snapshot import (
    ApiResult,
    Clocks,
    DeviceNode,
    Distribution,
    Driver,
    DriverLibrary,
    Ecc,
    Environment,
    Fabric,
    Framework,
    Gpu,
    GpuFabric,
    Kernel,
    KernelLog,
    KernelMessage,
    KernelModule,
    Listing,
    Memory,
    Mig,
    NvLink,
    ObservedError,
    Pcie,
    Platform,
    Power,
    RowRemap,
    Snapshot,
    Temperature,
    Throttle,
    Variables,
)
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import evaluate, framework_importance
from tests.known import likened

S = TypeVar("S", bound=msgspec.Struct)

ALL: frozenset[Scope] = frozenset({"node", "container", "env"})
GIB = 1 << 30
RELEASE = "550.54.14"
VENV = "/home/ada/p/.venv"


def but(struct: S, **changes: Any) -> S:
    """The same, with other fields; ``outer__inner`` names a field of a field."""
    plain = {name: value for name, value in changes.items() if "__" not in name}
    for path, value in changes.items():
        outer, _, inner = path.partition("__")
        if inner:
            plain[outer] = but(plain.get(outer, getattr(struct, outer)), **{inner: value})
    return msgspec.structs.replace(struct, **plain)


# --- judging ------------------------------------------------------------------------------------------------------
def judge(snapshot: Snapshot, scopes: frozenset[Scope] = ALL) -> tuple[Check, ...]:
    """Every check on the machine, by the real matrix."""
    knowledge = load_matrix()
    return evaluate(Facts(complete(snapshot, knowledge), knowledge), all_rules(), scopes)


def checks_of(rule: str, snapshot: Snapshot) -> tuple[Check, ...]:
    return tuple(check for check in judge(snapshot) if check.rule == rule)


def check_of(rule: str, snapshot: Snapshot) -> Check:
    """The one check of this rule."""
    (found,) = checks_of(rule, snapshot)
    return found


def statuses(rule: str, snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(check.status for check in checks_of(rule, snapshot))


def said(rule: str, there: Snapshot | Environment, expected: Any) -> Any:
    """What a rule says of a machine, to be held against what is expected: statuses, or fields of its only check."""
    snapshot = there if isinstance(there, Snapshot) else with_venv(machine(), there)
    if isinstance(expected, tuple):
        return statuses(rule, snapshot)
    of_all = {"cause": cause(snapshot)} if "cause" in expected else {}
    return agreed(check_of(rule, snapshot), expected, **of_all)


def agreed(check: Check, expected: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What is expected of the fields of a check, or what they are instead.

    Of its evidence, ``what``, ``evidence`` and ``read`` are names, values and sources; ``fixes`` are the commands, or
    else texts, ``ways`` the same by ways, ``fix`` is the first one, ``text`` its text and ``who`` its user.
    """
    told_ways = tuple(tuple(" ".join(fix.command) or fix.text for fix in way) for way in ways(check.fixes))
    fixes = tuple(chain(*told_ways))
    made = {
        "ways": told_ways,
        "fixes": fixes,
        "fix": next(iter(fixes), None),
        "text": check.fixes[0].text if fixes else None,
        "who": check.fixes[0].who if fixes else None,
        "commands": tuple(fix.command for fix in check.fixes),
        "what": tuple(each.what for each in check.evidence),
        "evidence": tuple(each.value for each in check.evidence),
        "read": tuple(each.source for each in check.evidence),
        **more,
    }
    return likened({name: made[name] if name in made else attrgetter(name)(check) for name in expected}, expected)


def bad(snapshot: Snapshot) -> list[str]:
    """Ids of what fails or warns."""
    return [check.id for check in judge(snapshot) if check.status in ("fail", "warn")]


def open_fails(snapshot: Snapshot) -> list[str]:
    """Names of the rules that fail and that nothing explains."""
    return [check.rule for check in judge(snapshot) if check.status == "fail" and not check.explained_by]


def cause(snapshot: Snapshot) -> str | None:
    """The root cause."""
    found = primary(judge(snapshot), framework_importance(Facts(snapshot, load_matrix())))
    return found.rule if found else None


# --- GPUs ---------------------------------------------------------------------------------------------------------
def links(count: int = 18, *, inactive: Iterable[int] = (), kind: str | None = "switch") -> tuple[NvLink, ...]:
    down = set(inactive)
    return tuple(
        NvLink(source="nvml", link=number, active=number not in down, remote_kind=None if number in down else kind)
        for number in range(count)
    )


def h200(number: int = 0, **changes: Any) -> Gpu:
    """A healthy, idle H200 on an NVSwitch board, as NVML, CUDA and sysfs report it."""
    gpu = Gpu(
        source="nvml", read={"kernel_driver": "sysfs", "cuda_ordinal": "cuda", "compute_capability": "cuda"},
        pci_bus_id=f"0000:{16 + number:02x}:00.0", uuid=f"GPU-0e15350{number}-8466-b46e-c83c-8251dbfbcacd",
        index=number, cuda_ordinal=number, minor=number, name="NVIDIA H200", compute_capability="9.0",
        pci_device_id="10de:2335", kernel_driver="nvidia", persistence_mode=True, compute_mode="default",
        recovery_action="none", memory=Memory(source="nvml", total=140 * GIB, used=0, free=140 * GIB),
        ecc=Ecc(source="nvml", enabled=True, volatile_uncorrected=0, aggregate_uncorrected=0),
        row_remap=RowRemap(source="nvml", corrected=0, uncorrected=0, pending=False, failed=False),
        mig=Mig(source="nvml", enabled=False), clocks=Clocks(source="nvml", sm=345e6, sm_max=1980e6),
        power=Power(source="nvml", draw=76.0, limit=700.0, limit_default=700.0),
        temperature=Temperature(source="nvml", gpu=30.0),
        throttle=Throttle(source="nvml", reasons=("gpu_idle",), seconds={"sw_thermal_slowdown": 0.0}),
        pcie=Pcie(source="nvml", generation=1, generation_max=5, generation_device_max=5, width=16, width_max=16),
        nvlinks=links(), fabric=GpuFabric(source="nvml", state="completed", status=0),
        not_supported=("ecc.retired_pages", "ecc.retirement_pending"),
    )  # fmt: skip
    return but(gpu, **changes)


def geforce(name: str, capability: str, device: str, number: int = 0, **changes: Any) -> Gpu:
    """A healthy desktop card without ECC, row remapping, MIG or NVLink."""
    plain = h200(
        number, name=name, compute_capability=capability, pci_device_id=device, persistence_mode=False, ecc=None,
        row_remap=None, mig=None, fabric=None, nvlinks=None, recovery_action=None,
        pcie=Pcie(source="nvml", generation=1, generation_max=4, generation_device_max=4, width=16, width_max=16),
        not_supported=("ecc", "row_remap", "mig", "fabric", "nvlinks", "recovery_action"),
    )  # fmt: skip
    return but(plain, **changes)


def on_the_bus(gpu: Gpu, kernel_driver: str = "") -> Gpu:
    """What sysfs alone knows of the GPU."""
    return Gpu(
        source="sysfs", pci_bus_id=gpu.pci_bus_id, pci_device_id=gpu.pci_device_id, kernel_driver=kernel_driver,
        pcie=Pcie(source="sysfs", generation=1, width=16, width_max=16),
    )  # fmt: skip


# --- the rest of a machine ----------------------------------------------------------------------------------------
def answered(call: str, code: int = 0, name: str = "", **more: Any) -> ApiResult:
    return ApiResult(source=("nvml" if call.startswith("nvml") else "cuda"), call=call, code=code, name=name, **more)


NOT_LOADED = answered("nvmlInit", 9, "DRIVER_NOT_LOADED")
NO_NVML = answered("nvmlInit", -1, "LIBRARY_NOT_FOUND")
NO_LIBCUDA = answered("cuInit", -1, "LIBRARY_NOT_FOUND")
NO_DEVICE = answered("cuInit", 100, "CUDA_ERROR_NO_DEVICE")


def library(soname: str, version: str, **more: Any) -> DriverLibrary:
    path = f"/usr/lib/x86_64-linux-gnu/{soname.rpartition('.')[0]}.{version}"
    return DriverLibrary(source="file", path=path, soname=soname, version=version, kind="driver", **more)


def driver(release: str = RELEASE, **changes: Any) -> Driver:
    """A driver that answers."""
    found = Driver(
        source="nvml",
        read={"installed": "file", "cuda_init": "cuda"},
        installed=True,
        release=release,
        nvml=answered("nvmlInit"),
        cuda_init=answered("cuInit"),
        cuda_devices=1,
        cuda_device_count=answered("cuDeviceGetCount"),
        libraries=Listing(
            items=(library("libcuda.so.1", release), library("libnvidia-ml.so.1", release)), complete=True
        ),
    )
    return but(found, **changes)


NO_DRIVER = Driver(
    source="file", installed=False, nvml=NO_NVML, cuda_init=NO_LIBCUDA, libraries=Listing(items=(), complete=True)
)


def nodes(*numbers: int, openable: bool = True) -> tuple[DeviceNode, ...]:
    common = (
        DeviceNode(source="file /dev", path=path, openable=True) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm")
    )
    return (
        *(common if numbers else ()),
        *(DeviceNode(source="file /dev", path=f"/dev/nvidia{n}", minor=n, openable=openable) for n in numbers),
    )


def log(*messages: KernelMessage) -> KernelLog:
    return KernelLog(source="file /dev/kmsg", readable=True, messages=messages)


def kernel(gpus: int = 1, release: str = RELEASE, **changes: Any) -> Kernel:
    found = Kernel(
        source="file /proc/modules",
        nvidia=KernelModule(source="procfs", loaded=True, version=release, flavour="open", built=True, uvm_loaded=True),
        nouveau_loaded=False, nova_loaded=False, secure_boot=False, device_nodes=nodes(*range(gpus)), log=log(),
    )  # fmt: skip
    return but(found, **changes)


def unloaded(**changes: Any) -> Kernel:
    """A kernel without NVIDIA's module."""
    module = KernelModule(source="file /proc/modules", loaded=False, built=True, uvm_loaded=False)
    return but(kernel(0, nvidia=module), **changes)


JETSON = Platform(
    source="file /etc/nv_tegra_release", os="linux", machine="aarch64", container="none", wsl=False, tegra=True,
    tegra_release="36.4.0",
)  # fmt: skip

UBUNTU = Platform(
    source="file /etc/os-release", os="linux", distribution="ubuntu", distribution_like=("debian",),
    kernel_release="6.8.0-45-generic", machine="x86_64", container="none", wsl=False, virtualization="none",
    tegra_release="",
)  # fmt: skip
DOCKER = but(UBUNTU, container="docker")


def torch(version: str = "2.5.1+cu124", cuda: str | None = "12.4", **changes: Any) -> Framework:
    """A PyTorch, as its files tell."""
    found = Framework(
        source=f"file {VENV}/lib/python3.12/site-packages/torch/version.py", name="torch", version=version,
        path=f"{VENV}/lib/python3.12/site-packages/torch", cuda=cuda, cpu_only=cuda is None,
        gpu_code=("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90") if cuda else None,
    )  # fmt: skip
    return but(found, **changes)


def framework(name: str, version: str = "1.0", **fields: Any) -> Framework:
    """Any other framework, as its metadata tells."""
    known = {"source": "wheel metadata", "path": f"{VENV}/lib/python3.12/site-packages/{name.replace('-', '_')}"}
    return Framework(**{"name": name, "version": version, **known, **fields})


def venv(*frameworks: Framework, **changes: Any) -> Environment:
    """The environment that is judged."""
    found = Environment(
        source=f"file {VENV}/pyvenv.cfg",
        key=VENV,
        why="VIRTUAL_ENV",
        judged=True,
        executable=f"{VENV}/bin/python",
        python="3.12.3",
        prefix=VENV,
        manager="venv",
        distributions=tuple(
            Distribution(source="wheel metadata", name=each.name, version=each.version or "", channel="pip")
            for each in frameworks
        ),
        distributions_complete=True,
        frameworks=Listing(items=frameworks, complete=True),
    )
    return but(found, **changes)


def with_venv(snapshot: Snapshot, *environments: Environment) -> Snapshot:
    return but(snapshot, environments=Listing(items=environments, complete=True))


def variables(**values: str) -> Variables:
    return Variables(source="process", values=values, complete=True)


def error(text: str, line: int = 1) -> Snapshot:
    """Pasted text that holds nothing but an error line."""
    return Snapshot(observed_errors=(ObservedError(source="pasted text", text=text, line=line),))


def gpus(*items: Gpu, complete: bool = True) -> Listing[Gpu]:
    return Listing(items=items, complete=complete)


def machine(*items: Gpu, **changes: Any) -> Snapshot:
    """A healthy machine with these GPUs (one H200 by default) and a PyTorch that fits."""
    found = items or (h200(),)
    snapshot = Snapshot(
        platform=UBUNTU, kernel=kernel(len(found)), driver=driver(cuda_devices=len(found)), gpus=gpus(*found),
        fabric=Fabric(source="sysfs", nvswitches=0, manager_running=False),
        environments=Listing(items=(venv(torch()),), complete=True), variables=variables(),
    )  # fmt: skip
    return but(snapshot, **changes)


def eight() -> Snapshot:
    """A healthy node with eight H200."""
    return machine(*(h200(number) for number in range(8)), fabric__nvswitches=4, fabric__manager_running=True)


def without_gpu(**changes: Any) -> Snapshot:
    """A machine whose PCI bus holds no NVIDIA device, without a driver."""
    snapshot = Snapshot(
        platform=UBUNTU, kernel=unloaded(nvidia__built=False), driver=NO_DRIVER, gpus=gpus(),
        fabric=Fabric(source="sysfs", nvswitches=0), environments=Listing(items=(venv(),), complete=True),
        variables=variables(),
    )  # fmt: skip
    return but(snapshot, **changes)


def without_driver(**changes: Any) -> Snapshot:
    """A GPU on the bus, and no driver."""
    return but(without_gpu(), gpus=gpus(on_the_bus(h200(), "nouveau")), kernel__nouveau_loaded=True, **changes)


def not_loaded(**changes: Any) -> Snapshot:
    """A GPU on the bus, the driver's libraries, and no kernel module."""
    libraries = driver().libraries
    silent = Driver(
        source="file", installed=True, libraries=libraries, nvml=NOT_LOADED, cuda_init=NO_DEVICE, cuda_devices=0
    )
    return but(machine(on_the_bus(h200()), driver=silent, kernel=unloaded()), **changes)


def container_without_gpu(**changes: Any) -> Snapshot:
    """A container that got nothing of the host's GPU."""
    return but(machine(on_the_bus(h200(), "nvidia"), platform=DOCKER, driver=NO_DRIVER, kernel=kernel(0)), **changes)


def xid(number: int, text: str, gpu: Gpu | None = None) -> KernelMessage:
    place = gpu.pci_bus_id if gpu else None
    line = f"NVRM: Xid (PCI:{(place or '0000:00:00.0')[:-2]}): {number}, {text}"
    return KernelMessage(source="file /dev/kmsg", text=line, xid=number, pci_bus_id=place)
