"""Driver, CUDA, nvcc, GPU and kernel module against each other; Jetsons; models that drivers list late."""

from collections.abc import Iterator

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version
from envcheck.knowledge.tables.hardware import GpuRow
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.versions import DriverRelease
from tests.compat.test_requirements import named
from tests.every import every
from tests.knowledge.asking import (
    answer,
    assert_does_not_fit,
    assert_fits,
    assert_nobody_can_tell,
    judged,
    shown,
    verdict,
)

MATRIX = load_matrix()


def release(row: ReleaseRow) -> Version:
    """The release that a row is about."""
    return Version(parse_specifier(row.versions).bounds[0].numbers)


def test_what_is_taken_for_granted_is_said() -> None:
    found = answer("driver==535 cuda==12.4")
    assert found.assumed == {"driver": "the newest release of R535", "os": "linux", "machine": "x86_64"}
    assert answer("driver==535.54.03 cuda==12.4 os==linux machine==x86_64").assumed == {}


def test_machines_with_arm_processors_are_known() -> None:
    for gpu in ("GH200", "Jetson,AGX,Orin", "sm_87", "GB10"):
        assert answer(f"gpu=={gpu} cuda==13.0").assumed["machine"] == "aarch64"


def test_members_that_disagree_are_told_apart() -> None:
    found = answer("cuda>=12 gpu==RTX,3090 driver==525")
    assert found.reasons[0].message.startswith("cuda>=12 is ambiguous: yes for 12.0 to 12.9; no for 13.0 to 13.")
    found = answer("driver>=550.10 gpu==B200")
    assert (
        found.reasons[0].message
        == "driver>=550.10 is ambiguous: yes for 570.00 to R620 (newest); no for 550.10 to R565 (newest)"
    )


def test_versions_are_told_as_people_write_them() -> None:
    assert answer("driver==440.33 cuda==10.2").reasons[0].message == "CUDA 10.2 needs driver 440.33, this is 440.33.x"
    assert answer("driver==450.80 cuda==11.8").reasons[0].message.endswith("yes for 450.80.x; no for 450.80")
    assert answer("jetpack==6.2 gpu==Jetson,AGX,Thor").suggestions == ("jetpack 7.0",)
    assert answer("jetpack==6.2 l4t==r36.4.3").verdict == "compatible"


def test_what_is_misspelt_is_guessed_at_but_not_answered() -> None:
    found = answer("trch==2.5.1 gpu==H100")
    assert found.verdict == "unknown"
    assert found.reasons[0].message == "the matrix has no component called trch; did you mean torch?"
    assert answer("frobnicator==1 gpu==H100").reasons[0].message.endswith("no component called frobnicator")
    assert answer("driver==v550.54.14 cuda==V12.4.131").verdict == "compatible"


@every(
    ("cuda-compat==12.4 driver==550.54.14 gpu==RTX,3090", ("no cuda-compat",)),
    ("tensorrt-engine==10.3 tensorrt==10.9", ("tensorrt-engine 10.9", "tensorrt 10.3")),
    ("torch==2.5.1 driver==470.57.02", ("torch 2.5.1+cu118", "driver >= 525.60.13")),
)
def test_the_change_of_one_component_is_suggested(question: str, suggestions: tuple[str, ...]) -> None:
    assert answer(question).suggestions == suggestions


def test_a_release_of_a_toolkit_is_no_change_to_its_own_minor() -> None:
    assert answer("driver==396.26 cuda==9.2.148").suggestions == ("driver >= 396.37", "cuda 9.2.88")
    assert answer("gpu==RTX,5090 nvcc==12.6.20").suggestions == ("nvcc 12.8",)


def targets() -> list[tuple[str, str]]:
    """Every target that any toolkit has, beside every toolkit."""
    rows = [row for row in load_matrix().cuda if row.targets]
    return [(row.version, name) for row in rows for name in sorted({each for one in rows for each in one.targets})]


@every(targets())
def test_a_target_of_its_own_architecture_or_family_is_never_more_than_its_plain_one(cuda: str, name: str) -> None:
    plain = verdict(f"nvcc=={cuda} gpu=={name}")
    for suffix in "af":
        found = verdict(f"nvcc=={cuda} gpu=={name}{suffix}")
        assert found != "compatible" or plain == "compatible"
        row = next((one for one in load_matrix().capabilities if f"sm_{one.capability.replace('.', '')}" == name), None)
        if row is None:
            assert found != "compatible", f"no row says that there is {name}{suffix}"
        elif plain == "compatible":
            first = row.own_from if suffix == "a" else row.family_from
            wanted = first is not None and tuple(map(int, cuda.split("."))) >= tuple(map(int, first.split(".")))
            assert found == ("compatible" if wanted else "incompatible")


@every([row for row in MATRIX.gpus if row.jetpack and row.confidence != "weak"])
def test_a_module_needs_the_jetpack_that_brought_it(gpu: GpuRow) -> None:
    rows = [row for row in MATRIX.rows_of("jetpack") if gpu.compute_capability in row.capabilities]
    assert {covered(gpu.jetpack, release(row)) for row in rows} == {"all", "none"}
    for row in rows:
        wanted = "compatible" if covered(gpu.jetpack, release(row)) == "all" else "incompatible"
        named = gpu.name.replace(" ", ",")
        assert verdict(f"gpu=={named} jetpack=={release(row)}") == wanted
        linux = parse_specifier(row.needs["l4t"]).bounds[0].numbers
        assert verdict(f"gpu=={named} l4t=={'.'.join(map(str, linux))}") == wanted


# --- Models that drivers list later than their generation -----------------------------------------------------------
LISTED = [row for row in load_matrix().gpus if row.listed_from]


@every(lambda: [(row.name, row.listed_from) for row in LISTED])
def test_drivers_before_the_first_that_lists_a_model_are_open(name: str, listed: str) -> None:
    model = name.replace(" ", ",") if " " in name else name
    first = DriverRelease.parse(listed)
    assert first is not None
    assert verdict(f"gpu=={model} driver=={listed}") == "compatible"
    assert verdict(f"gpu=={model} driver=={first.branch}.0") == "unknown"
    assert verdict(f"gpu=={model} driver==525.60.13") in ("unknown", "incompatible")


def test_there_are_such_models() -> None:
    assert {"L40S", "H100 NVL"} <= {row.name for row in LISTED}


# --- Jetsons: their system's Python, and the packages that have builds for them apart from PyPI ---------------------
JETSONS = {name for row in MATRIX.indexes if row.jetsons for name in row.packages}
BUILDS = [row for name in JETSONS for row in MATRIX.rows_of(f"{name}-for-jetson")]


@every([row for name in ("jetpack", "l4t") for row in MATRIX.rows_of(name)])
def test_another_python_than_the_systems_is_not_refused(row: ReleaseRow) -> None:
    own = row.bundles["python"]
    for python in ("3.6", "3.8", "3.10", "3.12"):
        wanted = "compatible" if python == own else "unknown"
        assert verdict(f"{row.name}=={named(row.versions)} python=={python}") == wanted, python


@every([row for row in MATRIX.rows_of("jetpack") if row.bundles["python"] == "3.8"])
def test_the_systems_python_decides_about_no_package(row: ReleaseRow) -> None:
    found = judged(f"jetpack=={named(row.versions)} torch==2.5.1+cpu")
    assert not any("python" in reason.message for reason in found.reasons), shown(found)


def newest(name: str) -> Iterator[str]:
    """A few releases of a package, the newest first."""
    rows = MATRIX.wheels_by_name.get(name, ())
    yield from dict.fromkeys(named(row.versions) for row in reversed(rows[-8:]))


@every([(name, one) for name in sorted(JETSONS) for one in newest(name)])
def test_the_build_on_pypi_refuses_no_jetson(name: str, release: str) -> None:
    for jetson in ("gpu==Jetson,AGX,Orin", "gpu==Jetson,Nano", "jetpack==6.2", "jetpack==5.1.1", "l4t==32.7.1"):
        found = judged(f"{name}=={release} {jetson}")
        assert found.verdict != "incompatible", f"{jetson}\n{shown(found)}"


@every(BUILDS)
def test_a_build_for_jetsons_fits_the_jetpack_that_it_is_for(row: ReleaseRow) -> None:
    package, wanted = row.name.removesuffix("-for-jetson"), row.needs["jetpack"].split("|")
    for spec in wanted:
        assert_fits(f"{package}=={named(row.versions)} jetpack=={named(spec)}")
    assert verdict(f"{package}=={named(row.versions)} jetpack==7.0") == "unknown"
    assert_does_not_fit(f"{package}=={named(row.versions)} jetpack=={named(wanted[0])} cuda==9.0")


def test_every_package_with_such_builds_is_on_such_an_index() -> None:
    built = {row.name.removesuffix("-for-jetson") for row in MATRIX.releases if row.name.endswith("-for-jetson")}
    assert built
    assert built <= JETSONS


def test_what_is_said_of_both_indexes() -> None:
    (reason,) = judged("torch==2.5.1 jetpack==6.2").reasons
    assert "PyPI's torch 2.5.1 does not fit" in reason.message
    assert reason.message.endswith("the index decides")
    assert reason.sources
    assert_nobody_can_tell("torch==2.5.1 gpu==Jetson,Orin,Nano")


TX = ("Jetson TX1", "Jetson TX2", "Jetson TX2i")
ALL_OF_32 = (*TX, "Jetson Nano", "Jetson AGX Xavier")
MODULES = {
    "28.3.2": TX,
    "28.4": TX,
    "28.5": TX,
    "31.1": ("Jetson AGX Xavier",),
    "32.1": ("Jetson TX2", "Jetson TX2i", "Jetson Nano", "Jetson AGX Xavier"),
    "32.2.1": ALL_OF_32,
    "32.2.3": ALL_OF_32,
    "32.3.1": ALL_OF_32,
    "32.4.4": (*ALL_OF_32, "Jetson Xavier NX"),
    "32.5.1": (*ALL_OF_32, "Jetson Xavier NX", "Jetson TX2 NX"),
    "32.7.1": (*ALL_OF_32, "Jetson Xavier NX", "Jetson TX2 NX", "Jetson Xavier NX 16GB", "Jetson AGX Xavier 64GB"),
}
"""The modules that the page of a Jetson Linux names."""


@every(MODULES.items())
def test_the_modules_of_a_jetson_linux(release: str, modules: tuple[str, ...]) -> None:
    l4t = parse_version(release)
    assert l4t is not None
    (row,) = [row for row in MATRIX.rows_of("jetpack") if covered(row.needs["l4t"], l4t) != "none"]
    jetpack = named(row.versions)
    others = [row.name for row in MATRIX.gpus if row.kind == "tegra" and row.confidence != "weak"]
    for gpu in {*others, *modules}:
        for asked in (f"l4t=={release}", f"jetpack=={jetpack}"):
            found = verdict(f"{asked} gpu=={gpu.replace(' ', ',')}")
            assert found == ("compatible" if gpu in modules else "incompatible"), (asked, gpu)
