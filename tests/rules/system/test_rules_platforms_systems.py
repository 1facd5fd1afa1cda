"""The rules about Windows and Jetson, on constructed machines."""

from typing import Any

from envcheck.model.snapshot import Distribution, Driver, Framework, Listing, Load, ObservedError, Platform, Snapshot
from tests.every import every
from tests.rules.machines import (
    DOCKER,
    JETSON,
    NO_LIBCUDA,
    NO_NVML,
    UBUNTU,
    answered,
    bad,
    but,
    cause,
    check_of,
    gpus,
    h200,
    kernel,
    machine,
    nodes,
    statuses,
    torch,
    venv,
    with_venv,
)

Case = tuple[str, str, Snapshot, tuple[str, ...]]

WSL = but(UBUNTU, wsl=True)

# --- Windows ------------------------------------------------------------------------------------------------------
WINDOWS = Platform(source="pasted text", os="windows")


def on_windows(*items: Framework | Distribution, platform: Platform = WINDOWS, **changes: Any) -> Snapshot:
    frameworks = tuple(item for item in items if isinstance(item, Framework))
    packages = tuple(item for item in items if isinstance(item, Distribution))
    found = venv(frameworks=Listing(items=frameworks, complete=True), distributions=packages)
    return but(with_venv(machine(platform=platform), found), **changes)


def tensorflow(version: str) -> Framework:
    return Framework(source="wheel metadata", name="tensorflow", version=version)


def package(name: str, version: str) -> Distribution:
    return Distribution(source="wheel metadata", name=name, version=version)


ON_WINDOWS: list[Case] = [
    ("windows-gpu-unsupported", "the first without", on_windows(tensorflow("2.11.0")), ("fail",)),
    ("windows-gpu-unsupported", "the last with", on_windows(tensorflow("2.10.1")), ("pass",)),
    ("windows-gpu-unsupported", "a recent one", on_windows(tensorflow("2.19.0")), ("fail",)),
    ("windows-gpu-unsupported", "by its name there", on_windows(package("tensorflow-intel", "2.13.0")), ("fail",)),
    ("windows-gpu-unsupported", "two numbers", on_windows(package("tensorflow", "2.12")), ("fail",)),
    ("windows-gpu-unsupported", "a build for the CPU by choice", on_windows(package("tensorflow-cpu", "2.13.0")), ()),
    ("windows-gpu-unsupported", "newer than the data", on_windows(tensorflow("3.0.0")), ()),
    ("windows-gpu-unsupported", "PyTorch", on_windows(torch()), ()),
    ("windows-gpu-unsupported", "Linux", on_windows(tensorflow("2.11.0"), platform=UBUNTU), ()),
    ("windows-gpu-unsupported", "WSL", on_windows(tensorflow("2.11.0"), platform=WSL), ()),
    ("windows-gpu-unsupported", "no GPU", on_windows(tensorflow("2.11.0"), gpus=gpus()), ()),
    ("windows-gpu-unsupported", "nobody asks for one", on_windows(tensorflow("2.11.0"), gpus=None, driver=None), ()),
]


def test_the_last_release_for_windows_is_named_with_what_it_needs() -> None:
    found = check_of("windows-gpu-unsupported", on_windows(tensorflow("2.15.0")))
    assert found.title == "tensorflow 2.15.0 has no GPU support on Windows"
    assert found.fixes[0].command == ("wsl", "--install")
    assert "<2.11.0, the last with GPU support on native Windows" in found.fixes[1].text
    assert "cuda >=11.2,<12" in found.fixes[1].text
    assert any(source.read for source in found.sources)


# --- Jetson -------------------------------------------------------------------------------------------------------
OLD_JETSON = but(JETSON, tegra_release="32.7.4")
JETPACK_5 = but(JETSON, tegra_release="35.4.1")
BOXED_JETSON = but(JETSON, container="docker")


def jetson(
    platform: Platform = JETSON, *frameworks: Framework, lines: tuple[str, ...] = (), **changes: Any
) -> Snapshot:
    errors = tuple(ObservedError(source="pasted text", text=line, line=1) for line in lines)
    empty = Snapshot(platform=platform, observed_errors=errors)
    return but(with_venv(empty, venv(*frameworks)) if frameworks else empty, **changes)


def missing(*names: str, optional: bool = False) -> Framework:
    loads = tuple(Load(source="elf", name=name, needed_by="/x/libtorch.so", optional=optional) for name in names)
    return torch("2.1.0", None, loads=loads)


def absent(name: str) -> str:
    return f"ImportError: {name}: cannot open shared object file: No such file or directory"


def image(release: str) -> Platform:
    return but(OLD_JETSON, container="docker", image_tegra_release=release)


NO_NUMBERS = ("libcudnn.so.x", "libcudnn.so", "libcudnn.so.\u00b2", "libnvinfer.so.8a.1", "libcudnn.so." + "9" * 5000)
SILENT = Driver(source="cuda", cuda_init=NO_LIBCUDA, nvml=NO_NVML)
CHIP = but(nodes(0)[0], path="/dev/nvmap")

ON_JETSON: list[Case] = [
    ("jetpack-mismatch", "an image of another branch", jetson(image("36.4.0")), ("fail",)),
    ("jetpack-mismatch", "an image of the branch", jetson(image("32.7.1")), ("pass",)),
    ("jetpack-mismatch", "an image, and only JetPack is known",
     jetson(but(image("35.4.1"), tegra_release=None, jetpack="4.6.1")), ("fail",)),
    ("jetpack-mismatch", "a build for a newer CUDA", jetson(OLD_JETSON, torch("2.1.0", "11.4")), ("fail",)),
    ("jetpack-mismatch", "a build for its CUDA", jetson(OLD_JETSON, torch("1.10.0", "10.2")), ("pass",)),
    ("jetpack-mismatch", "a build that runs", jetson(OLD_JETSON, torch("2.1.0", "11.4", gpu_available=True)),
     ("pass",)),
    ("jetpack-mismatch", "a CUDA that can be added", jetson(JETSON, torch("2.8.0", "12.8")), ("pass",)),
    ("jetpack-mismatch", "a library of another JetPack", jetson(OLD_JETSON, lines=(absent("libcudart.so.11.0"),)),
     ("fail",)),
    ("jetpack-mismatch", "a cuDNN of another JetPack", jetson(JETPACK_5, lines=(absent("libcudnn.so.9"),)), ("fail",)),
    ("jetpack-mismatch", "names without a number", jetson(OLD_JETSON, missing(*NO_NUMBERS)), ()),
    ("jetpack-mismatch", "a library of an older CUDA", jetson(JETSON, lines=(absent("libcublas.so.11"),)), ("fail",)),
    ("jetpack-mismatch", "a library of its own JetPack", jetson(OLD_JETSON, lines=(absent("libcublas.so.10"),)), ()),
    ("jetpack-mismatch", "numbers that are not CUDA's", jetson(JETSON, lines=(absent("libcufft.so.10"),)), ()),
    ("jetpack-mismatch", "by the framework's files", jetson(OLD_JETSON, missing("libcudnn.so.9")), ("fail",)),
    ("jetpack-mismatch", "it goes on without", jetson(OLD_JETSON, missing("libcudnn.so.9", optional=True)), ()),
    ("jetpack-mismatch", "TensorRT of a JetPack on an ARM machine",
     jetson(Platform(os="linux", machine="aarch64"), lines=(absent("libnvinfer.so.5"),)), ("fail",)),
    ("jetpack-mismatch", "TensorRT that servers have too",
     jetson(Platform(os="linux", machine="aarch64"), lines=(absent("libnvinfer.so.8"),)), ()),
    ("jetpack-mismatch", "an ARM server",
     jetson(Platform(os="linux", machine="aarch64", tegra=False), lines=(absent("libnvinfer.so.5"),)), ()),
    ("jetpack-mismatch", "no Jetson", machine(), ()),
    ("jetpack-mismatch", "a release that is not known", jetson(but(JETSON, tegra_release="99.1"), torch()), ()),
    ("jetson-libraries-not-mounted", "libcuda is not there", jetson(BOXED_JETSON, driver=SILENT), ("fail",)),
    ("jetson-libraries-not-mounted", "CUDA works",
     jetson(BOXED_JETSON, driver=Driver(source="cuda", cuda_init=answered("cuInit"), cuda_devices=1)), ("pass",)),
    ("jetson-libraries-not-mounted", "no container", jetson(JETSON, driver=SILENT), ()),
    ("jetson-libraries-not-mounted", "no Jetson", machine(platform=DOCKER), ()),
    ("jetson-libraries-not-mounted", "nobody asked", jetson(BOXED_JETSON), ()),
    ("jetson-libraries-not-mounted", "what the old runtime mounts",
     jetson(image("32.7.1"), lines=(absent("libcublas.so.10"), absent("libcurand.so.10"))), ("fail",)),
    ("jetson-libraries-not-mounted", "what newer images hold themselves",
     jetson(BOXED_JETSON, lines=(absent("libcublas.so.12"),)), ()),
    ("jetson-libraries-not-mounted", "the driver's side", jetson(BOXED_JETSON, lines=(absent("libnvrm_gpu.so"),)),
     ("fail",)),
    ("jetson-libraries-not-mounted", "of another JetPack", jetson(image("32.7.1"), lines=(absent("libcublas.so.11"),)),
     ()),
]  # fmt: skip


def test_an_image_of_another_branch_is_the_cause() -> None:
    found = check_of("jetpack-mismatch", jetson(image("36.4.0")))
    assert found.title == "The image is built for L4T 36.4.0, the Jetson has 32.7.4"
    assert "32.7.4" in found.fixes[0].text


def test_the_missing_library_is_quoted_with_what_this_jetpack_has() -> None:
    found = check_of("jetpack-mismatch", jetson(OLD_JETSON, lines=(absent("libnvinfer.so.10"),)))
    assert found.title == "libnvinfer.so.10 belongs to another JetPack"
    assert "tensorrt 8.2.1" in found.message
    assert found.evidence[0].source == "pasted text, line 1"


def test_a_container_without_the_chips_devices_says_so() -> None:
    bare = jetson(BOXED_JETSON, driver=SILENT, kernel=kernel(0, device_nodes=()))
    assert "the chip has no device node" in check_of("jetson-libraries-not-mounted", bare).message
    with_chip = jetson(BOXED_JETSON, driver=SILENT, kernel=kernel(0, device_nodes=(CHIP,)))
    assert "the chip has no device node" not in check_of("jetson-libraries-not-mounted", with_chip).message
    assert cause(bare) == "jetson-libraries-not-mounted"


CASES: list[Case] = [*ON_WINDOWS, *ON_JETSON]


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected


def test_nothing_is_bad_on_a_healthy_jetson() -> None:
    sound = jetson(
        JETSON,
        torch("2.8.0", "12.6", gpu_code=("sm_87",)),
        driver=Driver(source="cuda", cuda_init=answered("cuInit"), cuda_devices=1, cuda="12.6"),
        gpus=gpus(but(h200(), name="Orin", compute_capability="8.7", pci_device_id=None)),
    )
    assert bad(sound) == []
