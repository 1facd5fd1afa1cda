"""What the matrix adds to a Snapshot, and what it leaves alone. All Snapshots here are constructed."""

import msgspec

from envcheck.enrich.complete import complete
from envcheck.enrich.stated import driver_os
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import Distribution, Driver, Environment, Framework, Gpu, Listing, Platform, Snapshot
from tests.every import cases, every
from tests.known import Expected, fields, known

MATRIX = load_matrix()
FROM_PYPI = Distribution(name="torch", version="2.5.1", channel="pip")
LINUX = Platform(os="linux", machine="x86_64")
SERVER = Platform(os="linux", machine="aarch64", tegra_release="")
CONDA = Distribution(name="torch", version="2.5.1", channel="conda")


def completed_gpu(gpu: Gpu) -> Gpu:
    done = known(complete(Snapshot(gpus=Listing(items=(gpu,), complete=True)), MATRIX).gpus)
    assert done.complete
    return done.items[0]


def completed_driver(driver: Driver, platform: Platform | None = None) -> Driver:
    return known(complete(Snapshot(driver=driver, platform=platform), MATRIX).driver)


def completed_torch(
    torch: Framework,
    platform: Platform | None = LINUX,
    *,
    distribution: Distribution | None = FROM_PYPI,
    manager: str = "venv",
) -> Framework:
    frameworks = Listing(items=(torch,), complete=True)
    distributions = (distribution,) if distribution else None
    environment = Environment(key="/venv", manager=manager, distributions=distributions, frameworks=frameworks)  # type: ignore[arg-type]
    done = complete(Snapshot(platform=platform, environments=Listing(items=(environment,))), MATRIX)
    return known(known(done.environments).items[0].frameworks).items[0]


def test_nothing_stays_nothing() -> None:
    assert complete(Snapshot(), MATRIX) == Snapshot()
    empty = Snapshot(gpus=Listing(complete=True), environments=Listing(items=(Environment(key="/venv"),)))
    assert complete(empty, MATRIX) == empty


def test_completing_twice_adds_nothing() -> None:
    gpus = Listing(items=(Gpu(label="assumed-0", name="NVIDIA L4"),))
    once = complete(Snapshot(platform=LINUX, driver=Driver(release="550.54.14"), gpus=gpus), MATRIX)
    assert complete(once, MATRIX) == once


# --- GPUs ---------------------------------------------------------------------------------------------------------
@cases("about, gpu, expected",
    ("capability and architecture follow from its name",
     Gpu(label="assumed-0", name="NVIDIA H100 80GB HBM3", source="assumed"),
     {"name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "architecture": "hopper",
      "source_of.compute_capability": "inferred gpu/h100-80gb-hbm3",
      "source_of.architecture": "inferred architecture/hopper", "source_of.name": "assumed"}),
    ("what the GPU said stands",
     Gpu(label="x", name="NVIDIA H100 80GB HBM3", compute_capability="12.0", architecture="odd"),
     {"compute_capability": "12.0", "architecture": "odd", "read": {}}),
    ("the architecture follows from the capability alone",
     Gpu(label="x", name="something new", compute_capability="12.1"), {"architecture": "blackwell"}),
    ("a GPU known to PCI alone gets its name",
     Gpu(pci_bus_id="0000:01:00.0", pci_device_id="10de:2684", source="sysfs"),
     {"name": "GeForce RTX 4090", "compute_capability": "8.9", "architecture": "ada",
      "source_of.name": "inferred gpu/geforce-rtx-4090"}),
    ("one that its driver gives no name of its own is known by its PCI id",
     Gpu(name="NVIDIA Graphics Device", pci_device_id="10de:2684", source="nvml"),
     {"name": "NVIDIA Graphics Device", "compute_capability": "8.9"}),
    ("what the GPU says it does not have is not added",
     Gpu(label="x", name="Tesla T4", not_supported=("compute_capability",)), {"compute_capability": None}),
)  # fmt: skip
def test_a_gpu(about: str, gpu: Gpu, expected: Expected) -> None:
    assert fields(completed_gpu(gpu), expected) == expected


@cases("name", "NVIDIA GeForce ...", "RTX 6000", "NVIDIA Z9000")
def test_a_name_that_says_too_little_adds_nothing(name: str) -> None:
    gpu = Gpu(label="x", name=name)
    assert completed_gpu(gpu) == gpu


# --- driver -------------------------------------------------------------------------------------------------------
@cases(
    "release, platform, cuda, row", ("550.54.14", None, "12.4", "driver/550"),
    ("565.57.01", LINUX, "12.7", "driver/565"), ("551.61", Platform(os="windows"), "12.4", "driver/550-windows"),
    ("572.60", Platform(os="linux", wsl=True), "12.8", "driver/570-windows"),
)  # fmt: skip
def test_the_cuda_that_a_driver_cuda(release: str, platform: Platform | None, cuda: str, row: str) -> None:
    driver = completed_driver(Driver(release=release, source="pasted text"), platform)
    assert (driver.cuda, driver.source_of("cuda")) == (cuda, f"inferred {row}")


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
@cases("about, torch, platform, expected",
    ("the local version tells the build",
     Framework(name="torch", version="2.5.1+cu118", source="wheel metadata"), LINUX,
     {"cuda": "11.8", "cpu_only": False,
      "gpu_code": ("sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
      "source_of.cuda": "inferred local version", "source_of.gpu_code": "inferred torch/2.5.1",
      "cudnn": None}),  # the pins are those of the default build
    ("a plain version from PyPI is the default wheel", Framework(name="torch", version="2.5.1"), LINUX,
     {"cuda": "12.4", "cpu_only": False, "cudnn": "9.1.0.70", "nccl": "2.21.5",
      "gpu_code": ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
      "source_of.cuda": "inferred torch/2.5.1"}),
    ("a CPU build", Framework(name="torch", version="2.5.1+cpu"), LINUX,
     {"cpu_only": True, "cuda": None, "gpu_code": None}),
    ("a ROCm build", Framework(name="torch", version="2.5.1+rocm6.2"), LINUX,
     {"hip": "6.2", "cuda": None, "cpu_only": False, "gpu_code": None}),
    # nothing says it, and the CUDA version does
    ("what the files told selects the build", Framework(name="torch", version="2.5.1", cuda="11.8"), LINUX,
     {"cpu_only": None, "gpu_code": ("sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")}),
    ("until 2.10 the wheel for aarch64 is a CPU build", Framework(name="torch", version="2.10.0"), SERVER,
     {"cpu_only": True}),
    ("since then it is none", Framework(name="torch", version="2.11.0"), SERVER,
     {"gpu_code": ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120")}),
    *((f"an unlisted version tells no more than its name: {version}", Framework(name="torch", version=version), LINUX,
       {"gpu_code": None, "cudnn": None})
      for version in ("2.99.0+cu140", "2.6.0.dev20241112+cu124", "2.5.0a0+872d972e41.nv24.8", "x")),
)  # fmt: skip
def test_pytorch(about: str, torch: Framework, platform: Platform, expected: Expected) -> None:
    assert fields(completed_torch(torch, platform), expected) == expected


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


@cases("torch",
    # the files outrank the table
    Framework(name="torch", version="2.5.1", cuda="12.1", cpu_only=False, gpu_code=("sm_90",), nccl="2.20.5"),
    Framework(name="jax", version="0.4.30"),
)  # fmt: skip
def test_what_is_left_as_it_is(torch: Framework) -> None:
    assert completed_torch(torch) == torch


@cases(
    "distribution", Distribution(name="torch", version="2.5.1", channel="conda", build="py3.12_cpu_0"),
    Distribution(name="torch", version="2.5.1", channel="pip", editable=True),
    Distribution(name="numpy", version="2.1.0", channel="pip"), None,
)  # fmt: skip
def test_a_plain_version_from_elsewhere_tells_nothing(distribution: Distribution | None) -> None:
    plain = Framework(name="torch", version="2.5.1")
    assert completed_torch(plain, distribution=distribution) == plain


def test_conda_s_builds_have_gpu_code_of_their_own() -> None:
    observed = Framework(name="torch", version="2.5.1", cuda="12.4")
    assert completed_torch(observed, distribution=CONDA).gpu_code is None
    unsaid = Distribution(name="torch", version="2.5.1")
    assert completed_torch(observed, distribution=unsaid, manager="conda").gpu_code is None


def test_a_completed_snapshot_is_still_one() -> None:
    done = complete(Snapshot(gpus=Listing(items=(Gpu(label="x", name="Tesla T4"),))), MATRIX)
    assert msgspec.json.decode(msgspec.json.encode(done), type=Snapshot) == done
