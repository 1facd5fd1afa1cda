"""Reports built by hand, one for each kind of machine; the versions in them are examples, not knowledge."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from envcheck.model.checks import (
    Check,
    Evidence,
    Fix,
    Ground,
    Layer,
    Missing,
    Report,
    Scope,
    Source,
    Status,
    Subject,
    Summary,
    Tool,
)
from envcheck.model.snapshot import (
    ApiResult,
    Disagreement,
    Driver,
    DriverLibrary,
    Ecc,
    Environment,
    Framework,
    Gpu,
    Kernel,
    KernelModule,
    Listing,
    Memory,
    Platform,
    ProbeRun,
    Process,
    Reading,
    Snapshot,
    Toolkit,
    Variables,
)
from envcheck.report import Options, render

HOME = "/home/ada"
VENV = f"{HOME}/p/.venv"
GIB = 1 << 30
PAGE = Source(title="CUDA Toolkit release notes", address="https://docs.nvidia.com/cuda/", read="2026-11-20")


def check(
    rule: str,
    status: Status = "pass",
    title: str = "",
    *,
    layer: Layer = "driver",
    scope: Scope = "node",
    subject: Subject | None = None,
    **more: Any,
) -> Check:
    """A check of ``rule`` on ``subject`` (the machine)."""
    about = subject or Subject()
    shown = title or rule.replace("-", " ").capitalize()
    return Check(
        id=f"{rule}@{about.key}", rule=rule, scope=scope, layer=layer, subject=about, status=status, title=shown, **more
    )


def report(
    checks: Iterable[Check], snapshot: Snapshot, *, headline: str = "", primary: Check | None = None, **more: Any
) -> Report:
    """A report on ``checks``; fails and warns are judged as the verdict's definition says."""
    told = tuple(checks)
    statuses = {found.status for found in told}
    verdict = next((status for status in ("fail", "warn") if status in statuses), "pass")
    codes = {"pass": 0, "warn": 0, "fail": 1, "unknown": 3}
    fields: dict[str, Any] = {
        "tool": Tool(version="0.1.0", matrix="2026-11-20"), "created": "2026-11-20T17:03:29+00:00", "duration_s": 0.412,
        "host": "node1",
        "headline": headline or (primary.title if primary else "GPU, driver and frameworks look compatible"),
        "verdict": verdict, "exit_code": codes[str(more.get("verdict", verdict))],
        "primary": primary.rule if primary else None, "primary_check": primary.id if primary else None,
        "summary": Summary.of(told), "grounds": (Ground(what="GPUs", status="judged", source="nvml"),), "checks": told,
        "snapshot": snapshot,
        "probes": (ProbeRun(name="nvml", title="NVML", status="ok", seconds=0.12, fills=("gpus", "driver")),),
    }  # fmt: skip
    return Report(**(fields | more))


def gpu(number: int, name: str = "NVIDIA H200", capability: str = "9.0", memory: int = 140, **more: Any) -> Gpu:
    """GPU ``number`` as NVML shows an idle one; ``memory`` in GiB."""
    fields: dict[str, Any] = {
        "source": "nvml", "pci_bus_id": f"0000:{number + 6:02x}:00.0", "uuid": f"GPU-{number:08d}", "index": number,
        "cuda_ordinal": number, "name": name, "compute_capability": capability, "memory": Memory(total=memory * GIB),
        "utilisation": 0.0, "processes": (),
    }  # fmt: skip
    fields["ecc"] = Ecc(source="nvml", enabled=True, volatile_uncorrected=0)
    return Gpu(**(fields | more))


def about(found: Gpu) -> Subject:
    return Subject(kind="gpu", key=found.key, index=found.index, uuid=found.uuid, pci_bus_id=found.pci_bus_id)


def torch_subject(environment: str = VENV, name: str = "torch") -> Subject:
    return Subject(kind="framework", key=f"{environment}:{name}", environment=environment)


def gpu_checks(gpus: Iterable[Gpu]) -> list[Check]:
    """What a healthy GPU passes."""
    rules = ("uncorrected-ecc", "row-remap-pending", "row-remap-failed", "gpu-lost")
    return [check(rule, layer="gpu", subject=about(found)) for found in gpus for rule in rules]


def stack_checks() -> list[Check]:
    return [
        check("driver-not-installed"),
        check("driver-library-mismatch", layer="kernel"),
        check("gpu-init-failed", decided_by="driver-answered"),
        check("driver-too-old", layer="framework", scope="env", subject=torch_subject(), sources=(PAGE,)),
        check("gpu-code-missing", layer="framework", scope="env", subject=torch_subject()),
        check("mig-without-instances", "skipped", layer="gpu", message="nobody looked for gpu.mig"),
    ]


def machine(gpus: tuple[Gpu, ...], torch: Framework | None, **more: Any) -> Snapshot:
    """A Linux machine with a driver that works."""
    frameworks = Listing(items=(torch,) if torch else (), complete=True)
    environment = Environment(
        source="file", key=VENV, prefix=VENV, why="VIRTUAL_ENV", judged=True, python="3.12.3", manager="uv",
        frameworks=frameworks,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "platform": Platform(os="linux", distribution="ubuntu", machine="x86_64", container="none", host="node1"),
        "driver":
         Driver(source="nvml", installed=True, release="580.159.04", cuda="13.0",
         cuda_init=ApiResult(call="cuInit", code=0, name="CUDA_SUCCESS"),
         cuda_devices=sum(found.cuda_ordinal is not None for found in gpus)),
        "gpus": Listing(items=gpus, complete=True), "toolkits": Listing(complete=True),
        "environments": Listing(items=(environment,), complete=True),
    }  # fmt: skip
    return Snapshot(**(fields | more))


def torch_build(version: str = "2.11.0+cu130", cuda: str | None = "13.0", **more: Any) -> Framework:
    return Framework(source="wheel metadata", name="torch", version=version, cuda=cuda, **more)


def healthy() -> Report:
    """One H200, everything fits; the persistence mode is worth a note."""
    gpus = (gpu(0),)
    toolkit = Toolkit(path="/usr/local/cuda-13.0", version="13.0", on_path=True, cuda_home=True)
    note = check("persistence-mode-off", "note", "Persistence mode is off", layer="gpu", subject=about(gpus[0]))
    snapshot = machine(gpus, torch_build(), toolkits=Listing(items=(toolkit,), complete=True))
    return report([*stack_checks(), *gpu_checks(gpus), note], snapshot)


def healthy_8() -> Report:
    """Eight H200, three of them in use."""
    busy: dict[str, Any] = {"utilisation": 0.87, "processes": (Process(pid=41, kind="compute", memory=GIB),)}
    gpus = tuple(gpu(number, **(busy if number < 3 else {})) for number in range(8))
    return report([*stack_checks(), *gpu_checks(gpus)], machine(gpus, torch_build()))


def visible_2_of_8() -> Report:
    """CUDA_VISIBLE_DEVICES leaves two of eight."""
    gpus = tuple(
        gpu(number, "NVIDIA H100 80GB HBM3", cuda_ordinal=number if number < 2 else None) for number in range(8)
    )
    snapshot = machine(gpus, torch_build(), variables=Variables(values={"CUDA_VISIBLE_DEVICES": "0,1"}, complete=True))
    return report([*stack_checks(), *gpu_checks(gpus)], snapshot)


def cpu_only() -> Report:
    """The CPU build of PyTorch on a machine whose driver and GPUs are fine."""
    gpus = tuple(gpu(number, "NVIDIA H100 80GB", cuda_ordinal=number if number < 2 else None) for number in range(8))
    cause = check(
        "cpu-only-build", "fail", "PyTorch cannot use the GPU: CPU-only build", layer="framework", scope="env",
        subject=torch_subject(), decided_by="declared",
        evidence=(Evidence(what="torch", value="2.5.1+cpu", source="wheel metadata"),),
        fixes=(
            Fix(text="Install the build for CUDA 12.4, the newest that this driver runs",
             command=("uv", "pip", "install", "--reinstall", "torch", "--torch-backend=cu124")),
        ),
        sources=(PAGE,),
    )  # fmt: skip
    snapshot = machine(gpus, torch_build("2.5.1+cpu", None, cpu_only=True))
    driver = msgspec.structs.replace(snapshot.driver or Driver(), release="550.54.14", cuda="12.4")
    return report(
        [cause, *stack_checks()[:3], *gpu_checks(gpus), check("gpu-code-missing", "skipped", layer="framework")],
        msgspec.structs.replace(snapshot, driver=driver),
        primary=cause,
    )


def driver_too_old() -> Report:
    """A driver older than the framework's CUDA needs, with two consequences and a warning of its own."""
    gpus = (gpu(0, "NVIDIA GeForce RTX 4090", "8.9", 24),)
    cause = check(
        "driver-too-old",
        "fail",
        "The driver is too old for the CUDA 12.6 of torch",
        layer="framework",
        scope="env",
        subject=torch_subject(),
        message="torch 2.6.0+cu126 needs driver 525.60.13 or newer, and 470.256.02 is running.",
        evidence=(
            Evidence(what="driver release", value="470.256.02", source="nvml"),
            Evidence(what="CUDA that the driver supports", value="11.4", source="cuda"),
            Evidence(what="CUDA of the build", value="12.6", source="wheel metadata"),
        ),
        decided_by="driver-answered",
        fixes=(
            Fix(text="Install driver 525.60.13 or newer", command=("apt-get", "install", "nvidia-driver-550"),
             who="root", risk="needs a reboot"),
            Fix(text="Install the newest build that this driver runs, from the index of CUDA 11.8 builds",
             command=(f"{VENV}/bin/python", "-m", "pip", "install", "--force-reinstall", "torch==2.6.0+cu118",
               "--index-url=https://wheels.example/cu118")),
        ),
        sources=(PAGE,),
    )  # fmt: skip
    follows = [
        check("framework-cannot-reach-gpu", "fail", "torch does not reach the GPU", layer="framework",
         subject=torch_subject(), explained_by=cause.id),
        check("gpu-code-missing", "unknown", layer="framework", subject=torch_subject(), explained_by=cause.id),
    ]  # fmt: skip
    warning = check(
        "pcie-link-degraded", "warn", "The PCIe link is narrower than the GPU and the slot allow", layer="gpu",
        subject=about(gpus[0]), evidence=(Evidence(what="PCIe width", value="8 of 16", source="nvml"),),
    )  # fmt: skip
    snapshot = machine(gpus, torch_build("2.6.0+cu126", "12.6"))
    driver = msgspec.structs.replace(snapshot.driver or Driver(), release="470.256.02", cuda="11.4")
    return report(
        [cause, *follows, warning, *stack_checks()[:3], *gpu_checks(gpus)],
        msgspec.structs.replace(snapshot, driver=driver),
        primary=cause,
    )


def no_gpu() -> Report:
    """No NVIDIA GPU and no driver; a framework in another environment than the judged one."""
    cause = check(
        "no-nvidia-gpu", "fail", "There is no NVIDIA GPU in this machine", layer="gpu",
        evidence=(Evidence(what="PCI devices of vendor 10de", value="0", source="sysfs"),),
        fixes=(
            Fix(text="Judge the software for another machine: envcheck check --assume gpu==H100,driver==550.54.14"),
        ),
    )  # fmt: skip
    follow = check("driver-not-installed", "fail", "The NVIDIA driver is not installed", explained_by=cause.id)
    base = machine((), None)
    other = Environment(
        key="/opt/conda", why="CONDA_PREFIX", python="3.11.9",
        frameworks=Listing(items=(torch_build("2.5.1", "12.4"),), complete=True),
    )  # fmt: skip
    listed = base.environments.items if base.environments else ()
    snapshot = msgspec.structs.replace(
        base,
        driver=Driver(source="file", installed=False, libraries=Listing(complete=True)),
        environments=Listing(items=(*listed, other), complete=True),
    )
    return report([cause, follow, check("nouveau-loaded", layer="kernel")], snapshot, primary=cause)


def unknown_nvml() -> Report:
    """NVML hangs: neither driver nor GPUs are known."""
    run = ProbeRun(
        name="nvml", title="NVML", status="timed-out", seconds=13.0, detail="no answer from nvmlInit (process state D)",
        noise="NVRM: \x1b[31mwaiting\x1b[0m\n", fills=("driver", "gpus"),
    )  # fmt: skip
    lacks = [
        check(
            rule,
            "unknown",
            title,
            layer="driver",
            message=f"probe nvml did not supply {fact} (timed out: no answer from nvmlInit)",
            missing=(Missing(fact=fact, probe="nvml"),),
        )
        for rule, title, fact in (
            ("driver-too-old", "The driver is too old for the framework", "driver.release"),
            ("gpu-unsupported-by-driver", "The driver does not support the GPU", "gpus"),
            ("gpu-init-failed", "CUDA cannot be initialised", "driver.cuda_init"),
        )
    ]
    base = machine((), torch_build())
    snapshot = msgspec.structs.replace(base, gpus=None, driver=Driver(source="file", installed=True))
    return report(
        [*lacks, check("driver-not-installed")], snapshot, verdict="unknown",
        headline="no verdict: probe nvml did not supply driver.release (timed out: no answer …",
        ask=("driver.release", "gpus", "driver.cuda_init"), probes=(run,),
    )  # fmt: skip


def module_missing() -> Report:
    """In a container of a host whose kernel module is gone: one cause, many consequences on eight GPUs."""
    gpus = tuple(gpu(number, cuda_ordinal=None, utilisation=None, processes=None) for number in range(8))
    cause = check(
        "kernel-module-missing", "fail", "No NVIDIA kernel module is built for the running kernel 6.8.0-48-generic",
        layer="kernel",
        message="A module exists for 6.8.0-45-generic only; DKMS has not built it for the kernel that runs.",
        evidence=(
            Evidence(what="running kernel", value="6.8.0-48-generic", source="procfs"),
            Evidence(what="module built for", value="6.8.0-45-generic", source="file /lib/modules"),
        ),
        fixes=(
            Fix(text="Build the module", command=("dkms", "autoinstall", "-k", "6.8.0-48-generic"), who="root"),
            Fix(text="Boot the kernel that has one", who="root", risk="ends every job on the machine"),
        ),
        action="reboot",
    )  # fmt: skip
    follows = [
        check("driver-not-loaded", "fail", "The kernel module is not loaded", layer="kernel", explained_by=cause.id),
        check("gpu-init-failed", "fail", "CUDA cannot be initialised", explained_by="driver-not-loaded@machine"),
    ]
    rules = ("uncorrected-ecc", "row-remap-pending", "row-remap-failed", "power-throttled")
    follows += [
        check(rule, "unknown", layer="gpu", subject=about(found), explained_by=cause.id)
        for found in gpus
        for rule in rules
    ]
    base = machine(gpus, torch_build("2.6.0", "12.4"))
    module = KernelModule(source="procfs", loaded=False, built=False)
    library = DriverLibrary(path="/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14", version="550.54.14", kind="driver")
    driver = Driver(
        source="file", installed=True, libraries=Listing(items=(library,), complete=True),
        cuda_init=ApiResult(call="cuInit", code=100, name="CUDA_ERROR_NO_DEVICE"),
    )  # fmt: skip
    snapshot = msgspec.structs.replace(
        base, kernel=Kernel(source="procfs", nvidia=module), driver=driver,
        platform=Platform(os="linux", container="docker"),
    )  # fmt: skip
    container = check("container-without-gpu", layer="container", scope="container")
    return report([cause, *follows, container], snapshot, primary=cause)


def assumed() -> Report:
    """Software judged for a machine that is only stated."""
    gpus = (Gpu(source="assumed", label="assumed-0", name="H100", compute_capability="9.0"),)
    base = machine(gpus, torch_build("2.6.0+cu124", "12.4"))
    driver = Driver(source="assumed", installed=True, release="550.54.14", cuda="12.4")
    checks = [
        check("driver-too-old", layer="framework", subject=torch_subject()),
        check("gpu-code-missing", layer="framework", subject=torch_subject()),
        check("gpu-init-failed", "skipped"),
        check("requirement-not-met", layer="request", subject=Subject(key="torch>=2.4")),
    ]
    return report(
        checks,
        msgspec.structs.replace(base, driver=driver),
        assumed={"gpu": "H100", "driver": "550.54.14", "os": "linux"},
    )


def warned() -> Report:
    """Healthy but for two of eight GPUs that wait for a reset, and two sources that disagree."""
    gpus = tuple(gpu(number) for number in range(8))
    waiting = [
        check(
            "row-remap-pending",
            "warn",
            "Row remapping waits for a reset of the GPU",
            layer="gpu",
            subject=about(found),
            evidence=(Evidence(what="rows remapped after uncorrected errors", value="1", source="nvml"),),
            fixes=(
                Fix(
                    text="Reset the GPU when nothing runs on it",
                    command=("nvidia-smi", "--gpu-reset", "-i", str(found.index)),
                    who="root",
                    risk="ends whatever runs on the GPU",
                ),
            ),
            action="reset",
        )
        for found in (gpus[3], gpus[5])
    ]
    healthy_checks = [found for found in gpu_checks(gpus) if found.id not in {warning.id for warning in waiting}]
    readings = (Reading(value="13.0", source="cuda"), Reading(value="12.9", source="nvml"))
    snapshot = machine(gpus, torch_build(), disagreements=(Disagreement(path="driver.cuda", readings=readings),))
    return report([*waiting, *stack_checks(), *healthy_checks], snapshot, primary=waiting[0])


MODELS = (
    ("NVIDIA H200", "9.0", 140), ("NVIDIA H100 80GB HBM3", "9.0", 80), ("NVIDIA A100-SXM4-40GB", "8.0", 40),
    ("NVIDIA GeForce RTX 4090", "8.9", 24),
)  # fmt: skip


def mixed_16() -> Report:
    """Sixteen GPUs of four models, each failing in a way of its own."""
    gpus = tuple(gpu(number, *MODELS[number % 4]) for number in range(16))
    checks = [
        check(
            f"trouble-{number}",
            "fail" if number % 3 else "warn",
            f"Trouble of kind {number} on the GPU in slot {number}",
            layer="gpu",
            subject=about(found),
            message="It was seen in the registers, in the log and in the counters, and nothing else explains it.",
            evidence=tuple(Evidence(what=f"counter {name}", value=str(number), source="nvml") for name in "abcdef"),
            fixes=tuple(Fix(text=f"Take step {step}", who="root") for step in range(4)),
        )
        for number, found in enumerate(gpus)
    ]
    notes = [
        check("persistence-mode-off", "note", "Persistence mode is off", layer="gpu", subject=about(g)) for g in gpus
    ]
    runs = tuple(
        ProbeRun(name=f"probe-{number}", status="crashed", detail="crashed: SIGSEGV in libnvidia-ml.so.1", seconds=1.0)
        for number in range(9)
    )
    snapshot = machine(
        gpus, torch_build(), platform=Platform(os="linux", container="kubernetes"),
        toolkits=Listing(
            items=tuple(Toolkit(path=f"/usr/local/cuda-12.{n}", version=f"12.{n}") for n in range(9)), complete=True,
        ),
    )  # fmt: skip
    return report([*checks, *notes, *stack_checks()], snapshot, primary=checks[1], probes=runs)


ESCAPES = "\x1b[2J\x1b]0;owned\x07\r\n\x9b31m\u202egnp.exe\u2066\u200b\x7f"


def hostile(length: int = 2_500) -> Report:
    """Names, messages and commands that try to speak to the terminal, or never end: so many columns."""
    long, wide = "x" * length, "漢" * (length // 2)
    found = gpu(0, f"NVIDIA {ESCAPES}{wide}")
    bad = check(
        f"rule{ESCAPES}{long}", "fail", f"{ESCAPES}{long}", layer="gpu", subject=about(found),
        message=f"{ESCAPES} {wide}",
        evidence=tuple(Evidence(what=f"{ESCAPES}{n}", value=wide, source=long) for n in range(20)),
        fixes=(
            Fix(text=f"{ESCAPES}{long}", command=("rm", f"a{ESCAPES}b", long), risk=ESCAPES * 50),
            Fix(text=ESCAPES, command=("echo", f"{HOME}/it's {ESCAPES}"), who="root"),
        ),
    )  # fmt: skip
    follow = check(long, "fail", wide, layer="framework", subject=torch_subject(), explained_by=bad.id)
    others = [check(f"other-{n}{ESCAPES}", "warn", f"{wide}{n}", layer="driver") for n in range(50)]
    base = machine((found,), torch_build(f"{long}{ESCAPES}"))
    odd = Environment(key=f"{HOME}/{ESCAPES}{long}", why=ESCAPES, judged=True, problem=f"{ESCAPES}{wide}")
    snapshot = msgspec.structs.replace(
        base, platform=Platform(os="linux", container=f"{ESCAPES}{long}", host=ESCAPES),
        driver=Driver(
            installed=True, release=ESCAPES + long, cuda=wide, cuda_init=ApiResult(call="", code=9, name=long),
        ),
        toolkits=Listing(items=(Toolkit(path=f"/{ESCAPES}{long}", version=wide),)), environments=Listing(items=(odd,)),
    )  # fmt: skip
    dead = ProbeRun(name=f"nvml{ESCAPES}", status="crashed", detail=f"{ESCAPES}{long}", noise=f"{ESCAPES}\n{long}")
    return report(
        [bad, follow, *others], snapshot, primary=bad, headline=ESCAPES + long, host=ESCAPES + long,
        assumed={ESCAPES + long: wide}, ask=(ESCAPES + long,) * 50, probes=(dead,) * 50,
    )  # fmt: skip


EXAMPLES: dict[str, Callable[[], Report]] = {
    "healthy": healthy, "healthy-8": healthy_8, "visible-2-of-8": visible_2_of_8, "cpu-only": cpu_only,
    "driver-too-old": driver_too_old, "no-gpu": no_gpu, "unknown-nvml": unknown_nvml,
    "module-missing": module_missing, "assumed": assumed, "warned": warned, "mixed-16": mixed_16, "hostile": hostile,
}  # fmt: skip

PLAIN = Options(home=HOME)


def page(*checks: Check, snapshot: Snapshot | None = None, options: Options = PLAIN, **more: Any) -> str:
    """The page on these checks, the first of which is the cause if it is a failure."""
    primary = checks[0] if checks and checks[0].status == "fail" else None
    return render(report(checks, snapshot or machine((), None), primary=primary, **more), "text", options)
