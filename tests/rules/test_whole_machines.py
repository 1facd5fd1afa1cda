"""Whole machines: what is wrong with them is found once, and nothing is found where nothing is wrong."""

from envcheck.model.snapshot import (
    Driver,
    Environment,
    Framework,
    Gpu,
    Listing,
    Platform,
    ProbeRun,
    Snapshot,
    Variables,
)
from tests.every import every
from tests.rules.machines import (
    DOCKER,
    NO_DEVICE,
    NO_LIBCUDA,
    NO_NVML,
    answered,
    bad,
    but,
    cause,
    container_without_gpu,
    driver,
    eight,
    error,
    geforce,
    gpus,
    h200,
    judge,
    kernel,
    library,
    log,
    machine,
    not_loaded,
    on_the_bus,
    open_fails,
    torch,
    unloaded,
    variables,
    venv,
    with_venv,
    without_driver,
    without_gpu,
    xid,
)

RTX_3090 = geforce("NVIDIA GeForce RTX 3090", "8.6", "10de:2204")


def pasted(name: str, release: str, version: str, cuda: str | None, **changes: object) -> Snapshot:
    """What the text of collect_env tells: a GPU's name, the driver, PyTorch, and not much more."""
    found = Framework(source="pasted text", name="torch", version=version, cuda=cuda, cpu_only=cuda is None)
    environment = Environment(
        source="pasted text", key="pasted text", judged=True, python="3.10.12",
        frameworks=Listing(items=(found,), complete=False),
    )  # fmt: skip
    return Snapshot(
        platform=Platform(source="pasted text", os="linux"),
        driver=Driver(source="pasted text", release=release),
        gpus=Listing(items=(Gpu(source="pasted text", label="pasted-0", name=name),), complete=False),
        environments=Listing(items=(but(environment, **changes),), complete=False),
    )


HEALTHY = {
    "one H200": machine(),
    "eight H200": eight(),
    "a desktop card": machine(RTX_3090),
    "a driver behind the build inside one CUDA major": machine(driver=driver("535.183.01"),
        kernel=kernel(release="535.183.01")),
    "2 of 8 visible by CUDA_VISIBLE_DEVICES": but(eight(),
        gpus=gpus(*(h200(n, cuda_ordinal=n - 4 if n in (4, 5) else None) for n in range(8))), driver__cuda_devices=2,
        variables=variables(CUDA_VISIBLE_DEVICES="4,5")),
    "2 of 8 visible by device nodes": but(eight(), platform=DOCKER,
        gpus=gpus(h200(0), h200(1), *(on_the_bus(h200(n), "nvidia") for n in range(2, 8))), driver__cuda_devices=2,
        kernel=kernel(2)),
    "2 of 8 left by a batch scheduler": but(eight(),
        gpus=gpus(h200(0), h200(1), *(but(on_the_bus(h200(n), "nvidia"), minor=n) for n in range(2, 8))),
        driver__cuda_devices=2, variables=variables(CUDA_VISIBLE_DEVICES="0,1", SLURM_JOB_GPUS="2,3")),
    "a guest with NVLinks and no fabric manager": but(machine(h200(virtualization="passthrough")),
        platform__virtualization="kvm", fabric__manager_running=None),
    "a container that has CUDA and no NVML": machine(h200(index=None, source="cuda", persistence_mode=None),
        platform=DOCKER, driver=driver(nvml=NO_NVML)),
    "another GPU kept for a guest": machine(RTX_3090,
        on_the_bus(geforce("NVIDIA GeForce RTX 3090", "8.6", "10de:2204", 1), "vfio-pci")),
    "PCIe Gen1 at idle": machine(but(RTX_3090, pcie__generation=1)),
    "at the default power limit under load": machine(h200(throttle__reasons=("sw_power_cap",), power__draw=699.0)),
    "no process list, no NUMA node": machine(h200(numa_node=None, processes=())),
    "WSL": machine(geforce("NVIDIA GeForce RTX 4070 Laptop GPU", "8.9", "10de:2820", kernel_driver=None, minor=None),
        platform=Platform(source="procfs", os="linux", distribution="ubuntu", container="none", wsl=True),
        driver=driver("551.88", libraries=None), kernel=unloaded(nvidia__built=False, device_nodes=())),
    "pasted: nvcc does not matter, A100 with cu121 on driver 535": pasted("NVIDIA A100-SXM4-40GB", "535.54.03",
        "2.4.0+cu121", "12.1"),
    "pasted: cu117 on driver 510": pasted("NVIDIA A100-SXM4-40GB", "510.47.03", "2.0.1+cu117", "11.7"),
    "pasted: cu128 on driver 535": pasted("NVIDIA H100 80GB HBM3", "535.161.08", "2.8.0+cu128", "12.8"),
    "pasted: GB10 with cu130": pasted("NVIDIA GB10", "580.126.09", "2.11.0+cu130", "13.0"),
    "pasted: a failed fabric manager on a GeForce":
     error("Job for nvidia-fabricmanager.service failed because of an error"),
    "pasted: harmless messages": Snapshot(
        observed_errors=tuple(
            item
            for text in (
                "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
                "NCCL WARN Failed to open libibverbs.so[.1]",
                "E0000 cuda_dnn.cc:8310] Unable to register cuDNN factory: one has already been registered",
                "successful NUMA node read from SysFS had negative value (-1)",
                "[TRT] [W] TensorRT was linked against cuDNN 8.9.0 but loaded cuDNN 8.7.0",
                "[W:onnxruntime:, transformer_memcpy.cc:83] 10 Memcpy nodes are added to the graph",
                "common.cuh:112: ggml was not compiled with any CUDA arch <= 750",
            )
            for item in error(text).observed_errors
        )
    ),
}  # fmt: skip


@every(HEALTHY)
def test_a_healthy_machine_has_no_finding(name: str) -> None:
    assert bad(HEALTHY[name]) == []


BROKEN = {
    "no GPU": (without_gpu(), "no-nvidia-gpu"),
    "no GPU, but the driver's libraries":
     (without_gpu(driver=Driver(source="file", installed=True, nvml=answered("nvmlInit", 9, "DRIVER_NOT_LOADED"),
         cuda_init=NO_DEVICE, cuda_devices=0,
         libraries=Listing(items=(library("libcuda.so.1", "535.247.01"),), complete=True))), "no-nvidia-gpu"),
    "no GPU, in a container, with PyTorch": (with_venv(without_gpu(platform=DOCKER), venv(torch())), "no-nvidia-gpu"),
    "no GPU, with the CPU build": (with_venv(without_gpu(), venv(torch("2.5.1+cpu", None))), "no-nvidia-gpu"),
    "every GPU kept for guests": (
        without_gpu(gpus=gpus(on_the_bus(h200(0), "vfio-pci"), on_the_bus(h200(1), "vfio-pci"))), "no-nvidia-gpu"),
    "no driver": (without_driver(), "driver-not-installed"),
    "module not loaded": (not_loaded(), "driver-not-loaded"),
    "module not built": (not_loaded(kernel=unloaded(nvidia__built=False, nvidia__built_for=("6.8.0-40-generic",))),
        "kernel-module-missing"),
    "nouveau": (not_loaded(kernel=unloaded(nouveau_loaded=True), gpus=gpus(on_the_bus(h200(), "nouveau"))),
        "nouveau-loaded"),
    "Secure Boot": (not_loaded(kernel=unloaded(secure_boot=True)), "secure-boot-blocks-module"),
    "updated without a restart":
     (machine(on_the_bus(h200(), "nvidia"),
       driver=Driver(source="file", installed=True, nvml=answered("nvmlInit", 18, "LIB_RM_VERSION_MISMATCH"),
         cuda_init=answered("cuInit", 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
         libraries=Listing(items=(library("libcuda.so.1", "550.107.02"),), complete=True))), "driver-library-mismatch"),
    "fabric manager":
     (but(machine(*(h200(n, fabric__state="in_progress", cuda_ordinal=None) for n in range(8))),
       driver__cuda_init=answered("cuInit", 802, "CUDA_ERROR_SYSTEM_NOT_READY"), driver__cuda_devices=None,
       fabric__nvswitches=4), "fabric-manager-not-running"),
    "forward compatibility on a GeForce":
     (machine(but(RTX_3090, cuda_ordinal=None), platform=DOCKER,
       driver=driver(cuda_init=answered("cuInit", 804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
         cuda_devices=None)), "forward-compat-unsupported"),
    "an unexplained answer": (
        machine(h200(cuda_ordinal=None), driver=driver(cuda_init=answered("cuInit", 999, "CUDA_ERROR_UNKNOWN"))),
        "gpu-init-failed"),
    "an answer that no table knows": (
        machine(h200(cuda_ordinal=None), driver=driver(cuda_init=answered("cuInit", 912, "CUDA_ERROR_OF_TOMORROW"))),
        "gpu-init-failed"),
    "a container without GPU": (container_without_gpu(), "container-without-gpu"),
    "CUDA_VISIBLE_DEVICES is empty":
     (machine(h200(cuda_ordinal=None), driver=driver(cuda_init=NO_DEVICE, cuda_devices=0),
       variables=variables(CUDA_VISIBLE_DEVICES="")), "no-gpu-visible"),
    "CUDA_VISIBLE_DEVICES names a GPU that is not there":
     (machine(h200(cuda_ordinal=None), driver=driver(cuda_init=NO_DEVICE, cuda_devices=0),
       variables=variables(CUDA_VISIBLE_DEVICES="8")), "gpu-hidden"),
    "MIG mode without instances":
     (machine(h200(mig__enabled=True, mig__instances=(), cuda_ordinal=None),
       driver=driver(cuda_init=NO_DEVICE, cuda_devices=0)), "mig-without-instances"),
    "one of eight fell off the bus": (
        but(eight(),
         gpus=gpus(*(h200(n) for n in range(7)),
           but(on_the_bus(h200(7), "nvidia"), index=7,
             errors=(answered("nvmlDeviceGetHandleByIndex", 15, "GPU_IS_LOST"),))),
         kernel__log=log(xid(79, "pid=1234, GPU has fallen off the bus.", h200(7)))),
        "gpu-lost",
    ),
    "the CPU build": (with_venv(machine(), venv(torch("2.5.1+cpu", None))), "cpu-only-build"),
    "pasted: torch 2.11 on driver 570": (pasted("NVIDIA H100 80GB HBM3", "570.86.10", "2.11.0+cu130", "13.0"),
        "driver-too-old"),
    "pasted: cu117 on an H100": (pasted("NVIDIA H100 PCIe", "535.54.03", "2.0.1+cu117", "11.7"), "gpu-code-missing"),
    "pasted: the CPU build": (pasted("NVIDIA GeForce RTX 4080 Laptop GPU", "551.86", "2.2.2", None), "cpu-only-build"),
}  # fmt: skip


@every(BROKEN)
def test_a_broken_machine_has_one_root_cause(name: str) -> None:
    snapshot, expected = BROKEN[name]
    assert cause(snapshot) == expected
    assert open_fails(snapshot) == [expected]


def test_without_a_gpu_nothing_else_fails() -> None:
    assert [each.rule for each in judge(without_gpu()) if each.status == "fail"] == ["no-nvidia-gpu"]
    with_torch = with_venv(without_gpu(), venv(torch()))
    assert [each.rule for each in judge(with_torch) if each.status == "fail"] == ["no-nvidia-gpu"]


def test_a_failed_start_is_always_a_fail() -> None:
    for code in (-1, 1, 3, 34, 46, 100, 101, 304, 802, 803, 804, 805, 912, 999):
        snapshot = machine(h200(cuda_ordinal=None), driver=driver(cuda_init=answered("cuInit", code)))
        assert "gpu-init-failed@machine" in bad(snapshot), code
        later = machine(h200(cuda_ordinal=None), driver=driver(cuda_device_count=answered("cuDeviceGetCount", code)))
        assert "gpu-init-failed@machine" in bad(later), code


def test_what_nobody_looked_at_is_neither_passed_nor_failed() -> None:
    assert {each.status for each in judge(Snapshot())} == {"skipped"}


def test_a_probe_that_died_leaves_its_questions_open() -> None:
    died = ProbeRun(name="cuda", status="crashed", detail="SIGSEGV", fills=("driver.cuda_init",))
    snapshot = but(machine(driver=driver(cuda_init=None)), runs=(died,))
    (found,) = (each for each in judge(snapshot) if each.rule == "gpu-init-failed")
    assert (found.status, found.missing[0].probe) == ("unknown", "cuda")
    assert "SIGSEGV" in found.message


def test_scopes_keep_rules_apart() -> None:
    everything = but(machine(), variables=Variables(complete=True), driver=driver(cuda_init=NO_LIBCUDA))
    assert {each.scope for each in judge(everything, frozenset({"node"}))} == {"node"}
    assert {each.scope for each in judge(everything, frozenset({"env"}))} == {"env"}
