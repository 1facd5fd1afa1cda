"""What the matrix adds to a Snapshot, and what it leaves alone. All Snapshots here are constructed."""

from __future__ import annotations

import msgspec

from envcheck.enrich.complete import complete
from envcheck.enrich.stated import driver_os
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import Distribution, Driver, Environment, Framework, Gpu, Listing, Platform, Snapshot
from tests.every import cases, every

MATRIX = load_matrix()
FROM_PYPI = Distribution(name="torch", version="2.5.1", channel="pip")
LINUX = Platform(os="linux", machine="x86_64")


def completed_gpu(gpu: Gpu) -> Gpu:
    done = complete(Snapshot(gpus=Listing(items=(gpu,), complete=True)), MATRIX)
    assert done.gpus is not None
    assert done.gpus.complete
    return done.gpus.items[0]


def completed_driver(driver: Driver, platform: Platform | None = None) -> Driver:
    done = complete(Snapshot(driver=driver, platform=platform), MATRIX)
    assert done.driver is not None
    return done.driver


def completed_torch(
    torch: Framework,
    platform: Platform | None = LINUX,
    *,
    distribution: Distribution | None = FROM_PYPI,
    manager: str = "venv",
) -> Framework:
    environment = Environment(
        key="/venv",
        manager=manager,  # type: ignore[arg-type]
        distributions=(distribution,) if distribution else None,
        frameworks=Listing(items=(torch,), complete=True),
    )
    done = complete(Snapshot(platform=platform, environments=Listing(items=(environment,))), MATRIX)
    assert done.environments is not None
    frameworks = done.environments.items[0].frameworks
    assert frameworks is not None
    return frameworks.items[0]


def test_nothing_stays_nothing() -> None:
    assert complete(Snapshot(), MATRIX) == Snapshot()
    empty = Snapshot(gpus=Listing(complete=True), environments=Listing(items=(Environment(key="/venv"),)))
    assert complete(empty, MATRIX) == empty


def test_completing_twice_adds_nothing() -> None:
    snapshot = Snapshot(
        platform=LINUX,
        driver=Driver(release="550.54.14"),
        gpus=Listing(items=(Gpu(label="assumed-0", name="NVIDIA L4"),)),
    )
    once = complete(snapshot, MATRIX)
    assert complete(once, MATRIX) == once


# --- GPUs ---------------------------------------------------------------------------------------------------------


def test_a_gpu_s_capability_and_architecture_follow_from_its_name() -> None:
    gpu = completed_gpu(Gpu(label="assumed-0", name="NVIDIA H100 80GB HBM3", source="assumed"))
    assert (gpu.name, gpu.compute_capability, gpu.architecture) == ("NVIDIA H100 80GB HBM3", "9.0", "hopper")
    assert gpu.source_of("compute_capability") == "inferred gpu/h100-80gb-hbm3"
    assert gpu.source_of("architecture") == "inferred architecture/hopper"
    assert gpu.source_of("name") == "assumed"


def test_what_the_gpu_said_stands() -> None:
    gpu = completed_gpu(Gpu(label="x", name="NVIDIA H100 80GB HBM3", compute_capability="12.0", architecture="odd"))
    assert (gpu.compute_capability, gpu.architecture, gpu.read) == ("12.0", "odd", {})


def test_the_architecture_follows_from_the_capability_alone() -> None:
    assert completed_gpu(Gpu(label="x", name="something new", compute_capability="12.1")).architecture == "blackwell"


def test_a_gpu_known_to_pci_alone_gets_its_name() -> None:
    gpu = completed_gpu(Gpu(pci_bus_id="0000:01:00.0", pci_device_id="10de:2684", source="sysfs"))
    assert (gpu.name, gpu.compute_capability, gpu.architecture) == ("GeForce RTX 4090", "8.9", "ada")
    assert gpu.source_of("name") == "inferred gpu/geforce-rtx-4090"


def test_a_gpu_that_its_driver_gives_no_name_of_its_own_is_known_by_its_pci_id() -> None:
    gpu = completed_gpu(Gpu(name="NVIDIA Graphics Device", pci_device_id="10de:2684", source="nvml"))
    assert (gpu.name, gpu.compute_capability) == ("NVIDIA Graphics Device", "8.9")


@cases("name", "NVIDIA GeForce ...", "RTX 6000", "NVIDIA Z9000")
def test_a_name_that_says_too_little_adds_nothing(name: str) -> None:
    gpu = Gpu(label="x", name=name)
    assert completed_gpu(gpu) == gpu


def test_what_the_gpu_says_it_does_not_have_is_not_added() -> None:
    gpu = completed_gpu(Gpu(label="x", name="Tesla T4", not_supported=("compute_capability",)))
    assert gpu.compute_capability is None


# --- driver -------------------------------------------------------------------------------------------------------


@cases(
    "release, platform, cuda, row",
    ("550.54.14", None, "12.4", "driver/550"),
    ("565.57.01", LINUX, "12.7", "driver/565"),
    ("551.61", Platform(os="windows"), "12.4", "driver/550-windows"),
    ("572.60", Platform(os="linux", wsl=True), "12.8", "driver/570-windows"),
)
def test_the_cuda_that_a_driver_cuda(release: str, platform: Platform | None, cuda: str, row: str) -> None:
    driver = completed_driver(Driver(release=release, source="pasted text"), platform)
    assert driver.cuda == cuda
    assert driver.source_of("cuda") == f"inferred {row}"


@cases("release", None, "", "N/A", "650.10", "551.61")
def test_a_release_that_no_row_knows_adds_nothing(release: str | None) -> None:
    driver = Driver(release=release)
    assert completed_driver(driver, LINUX) == driver


def test_what_the_driver_answered_stands() -> None:
    assert completed_driver(Driver(release="550.54.14", cuda="12.8")).cuda == "12.8"


def test_whose_driver_releases_count() -> None:
    assert driver_os(None) == "linux"
    assert driver_os(Platform(os="linux", wsl=True)) == "wsl"
    assert driver_os(Platform(os="windows", wsl=False)) == "windows"


# --- PyTorch ------------------------------------------------------------------------------------------------------


def test_the_local_version_tells_the_build() -> None:
    torch = completed_torch(Framework(name="torch", version="2.5.1+cu118", source="wheel metadata"))
    assert (torch.cuda, torch.cpu_only) == ("11.8", False)
    assert torch.gpu_code == ("sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
    assert torch.source_of("cuda") == "inferred local version"
    assert torch.source_of("gpu_code") == "inferred torch/2.5.1"
    assert torch.cudnn is None, "the pins are those of the default build"


def test_a_plain_version_from_pypi_is_the_default_wheel() -> None:
    torch = completed_torch(Framework(name="torch", version="2.5.1"))
    assert (torch.cuda, torch.cpu_only, torch.cudnn, torch.nccl) == ("12.4", False, "9.1.0.70", "2.21.5")
    assert torch.gpu_code == ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
    assert torch.source_of("cuda") == "inferred torch/2.5.1"


def test_a_cpu_build() -> None:
    torch = completed_torch(Framework(name="torch", version="2.5.1+cpu"))
    assert (torch.cpu_only, torch.cuda, torch.gpu_code) == (True, None, None)


def test_a_rocm_build() -> None:
    torch = completed_torch(Framework(name="torch", version="2.5.1+rocm6.2"))
    assert (torch.hip, torch.cuda, torch.cpu_only, torch.gpu_code) == ("6.2", None, False, None)


def test_the_files_outrank_the_table() -> None:
    observed = Framework(name="torch", version="2.5.1", cuda="12.1", cpu_only=False, gpu_code=("sm_90",), nccl="2.20.5")
    assert completed_torch(observed) == observed


def test_what_the_files_told_selects_the_build() -> None:
    torch = completed_torch(Framework(name="torch", version="2.5.1", cuda="11.8"))
    assert torch.gpu_code is not None
    assert "sm_37" in torch.gpu_code
    assert torch.cpu_only is None, "nothing says it, and the CUDA version does"


@every(
    (LINUX, "13.0", False), (Platform(os="linux", machine="x86_64", wsl=True), "13.0", False),
    (Platform(os="windows", machine="AMD64"), None, True),
    (Platform(os="linux", machine="aarch64", tegra_release=""), "13.0", False),
    (Platform(os="linux", machine="aarch64"), None, None),
    (Platform(os="linux", machine="aarch64", tegra_release="36.4.0"), None, None), (Platform(os="linux"), None, None),
    (Platform(os="macos", machine="arm64"), None, None), (None, None, None),
)  # fmt: skip
def test_the_default_wheel_depends_on_the_system(platform: Platform | None, cuda: str | None, cpu_only: object) -> None:
    torch = completed_torch(Framework(name="torch", version="2.12.0"), platform)
    assert (torch.cuda, torch.cpu_only) == (cuda, cpu_only)


def test_until_2_10_the_wheel_for_aarch64_is_a_cpu_build() -> None:
    server = Platform(os="linux", machine="aarch64", tegra_release="")
    assert completed_torch(Framework(name="torch", version="2.10.0"), server).cpu_only is True
    code = completed_torch(Framework(name="torch", version="2.11.0"), server).gpu_code
    assert code == ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120")


@cases(
    "distribution",
    Distribution(name="torch", version="2.5.1", channel="conda", build="py3.12_cpu_0"),
    Distribution(name="torch", version="2.5.1", channel="pip", editable=True),
    Distribution(name="numpy", version="2.1.0", channel="pip"),
    None,
)
def test_a_plain_version_from_elsewhere_tells_nothing(distribution: Distribution | None) -> None:
    plain = Framework(name="torch", version="2.5.1")
    assert completed_torch(plain, distribution=distribution) == plain


def test_conda_s_builds_have_gpu_code_of_their_own() -> None:
    conda = Distribution(name="torch", version="2.5.1", channel="conda")
    observed = Framework(name="torch", version="2.5.1", cuda="12.4")
    assert completed_torch(observed, distribution=conda).gpu_code is None
    unsaid = Distribution(name="torch", version="2.5.1")
    assert completed_torch(observed, distribution=unsaid, manager="conda").gpu_code is None


@cases("version", "2.99.0+cu140", "2.6.0.dev20241112+cu124", "2.5.0a0+872d972e41.nv24.8", "x")
def test_an_unlisted_version_tells_no_more_than_its_name(version: str) -> None:
    torch = completed_torch(Framework(name="torch", version=version))
    assert torch.gpu_code is None
    assert torch.cudnn is None


def test_only_torch_is_completed() -> None:
    other = Framework(name="jax", version="0.4.30")
    assert completed_torch(other) == other


def test_a_completed_snapshot_is_still_one() -> None:
    done = complete(Snapshot(gpus=Listing(items=(Gpu(label="x", name="Tesla T4"),))), MATRIX)
    assert msgspec.json.decode(msgspec.json.encode(done), type=Snapshot) == done
