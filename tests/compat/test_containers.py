"""Containers of NVIDIA as components: what they hold, and which drivers and GPUs they run on."""

import re
from functools import cache
from typing import Any

from envcheck.compat.containers import REGISTRY, read_container
from envcheck.compat.question import Container
from envcheck.compat.wheels import published
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables.software import ImageRow
from envcheck.model.versions import ComputeCapability, DriverRelease
from tests.every import every, tabled
from tests.knowledge.asking import (
    assert_does_not_fit,
    assert_fits,
    assert_nobody_can_tell,
    judged,
    shown,
    verdict,
)
from tests.thorough import sample

try:
    from re import _parser as parser  # type: ignore[attr-defined]  # since Python 3.11
except ImportError:
    import sre_parse as parser

MATRIX = load_matrix()


@cache
def container(text: str) -> Container:
    found = read_container(MATRIX, text)
    assert isinstance(found, Container), found
    return found


def one_tag(tags: str) -> str:
    """The first tag that a pattern of tags admits."""
    made = ""
    for kind, what in parser.parse(tags):
        made += _first(kind, what)
    return made


def _first(kind: Any, what: Any) -> str:
    name = str(kind)
    if name == "LITERAL":
        return chr(int(what))
    if name == "IN":
        (first, value), *_ = what
        code: int = value[0] if str(first) == "RANGE" else value
        return chr(code)
    if name == "MAX_REPEAT":
        return "".join(_first(*each) for each in what[2]) * int(what[0])
    if name == "SUBPATTERN":
        return "".join(_first(*each) for each in what[3])
    if name == "BRANCH":
        return "".join(_first(*each) for each in what[1][0])
    raise AssertionError(name)


@cache
def examples() -> dict[str, ImageRow]:
    """One image of each row that names releases; rows whose tags state versions are asked below."""
    return {
        f"{row.names[0].removeprefix(REGISTRY)}:{one_tag(row.tags)}": row
        for row in MATRIX.images
        if row.holds or row.also or row.base or row.capability_min
        if not re.search(r"\(\?P<(cuda|python|rapids|torch|tensorflow)>", row.tags)
    }


def shipped() -> list[str]:
    return list(examples())


def is_published(part: str, held: Container) -> bool:
    """Whether the framework in a container is a wheel that the matrix knows for that CUDA."""
    cuda = held.holds["cuda"].split(".")
    return verdict(f"{part}=={held.holds[part]}+cu{cuda[0]}{cuda[1]} gpu==8.0") != "unknown"


@every(lambda: sample(shipped()))
def test_a_release_fits_its_own_stack(release: str) -> None:
    held = container(release)
    row = held.row
    stated = {name: version for name, version in held.holds.items() if name not in ("torch", "ubuntu")}
    parts = " ".join(f"{name}=={version}" for name, version in stated.items() if name not in row.disputed)
    cuda = next((one for one in MATRIX.cuda_rows if held.holds.get("cuda", "").startswith(str(one))), None)
    bundled = MATRIX.cuda_rows[cuda].bundled_driver if cuda else None
    asked = [DriverRelease.parse(text) for text in (row.driver, bundled)]
    newest = max(row.branch for row in MATRIX.drivers if row.os == "linux")
    driver = f"driver=={max(filter(None, asked), default=newest)}" if cuda or row.driver else ""
    discrete = [
        one
        for one, capability in MATRIX.capability_rows.items()
        if not capability.tegra and (cuda is None or one.sm in MATRIX.cuda_rows[cuda].targets)
    ]
    built = [part for part in row.frameworks.values() if part in row.holds]
    least = None if built else row.capability_min
    gpu = f"gpu=={least or min(ComputeCapability(7, 5), max(discrete))}" if cuda or row.capability_min else ""
    if all(is_published(part, held) for part in built):
        for question in filter(None, (parts, driver, gpu, driver and gpu and f"{driver} {gpu}")):
            assert_fits(f"nvcr=={release} {question}")
    else:
        assert_nobody_can_tell(f"nvcr=={release} {gpu}")
    for name, other in row.disputed.items():
        assert_nobody_can_tell(f"nvcr=={release} {name}=={other}")


@every(shipped)
def test_no_row_stands_behind_another_one_that_admits_its_tags(release: str) -> None:
    assert container(release).row.id == examples()[release].id


def test_what_an_image_is_made_from_is_an_image_with_a_base_of_its_own() -> None:
    made = [row for row in MATRIX.images if row.base]
    assert made
    for row in made:
        below = read_container(MATRIX, row.base)
        assert isinstance(below, Container), below
        assert not below.row.base


@every(lambda: sample(shipped()))
def test_another_version_of_what_a_release_holds_is_not_in_it(release: str) -> None:
    for name, version in container(release).holds.items():
        assert_does_not_fit(f"nvcr=={release} {name}=={abs(int(version.partition('.')[0]) - 1)}")


@every(lambda: sample(shipped(), 8))
def test_a_newer_driver_never_fits_worse(release: str) -> None:
    order = ["incompatible", "unknown", "compatible"]
    for gpu in ("Tesla T4", "GeForce RTX 2080 Ti"):
        drivers = ["440.33.01", "450.51.06", "470.57.02", "525.60.13", "535.54.03", "560.35.03", "580.65.06"]
        on = gpu.replace(" ", ",")
        found = [order.index(verdict(f"nvcr=={release} driver=={one} gpu=={on}")) for one in drivers]
        # A data-center GPU does with the branches that cuda-compat knows, which are not all up to the next one.
        assert found[-1] == max(found) if gpu == "Tesla T4" else found == sorted(found), (gpu, found)


@tabled
def test_nobody_can_tell(question: str, why: str) -> None:
    assert_nobody_can_tell(question)
    found = judged(question)
    assert any(why in reason.message for reason in found.reasons), shown(found)


@cache
def named_after_frameworks() -> list[tuple[str, str]]:
    """One container of each row and repository, and the package after which the repository is named."""
    packages = {"pytorch": "torch"}
    found = [
        (
            f"{name.removeprefix(REGISTRY)}:{one.rpartition(':')[2]}",
            packages.get(name.rpartition("/")[2], name.rpartition("/")[2]),
        )
        for one in shipped()
        for name in container(one).row.names
    ]
    return [(one, package) for one, package in found if package in MATRIX.wheels_by_name]


@every(named_after_frameworks)
def test_a_container_holds_its_publishers_build(release: str, package: str) -> None:
    """PyPI's release of the same number decides nothing: neither its CUDA nor its cuDNN is the container's."""
    held = container(release).holds.get(package)
    assert verdict(f"nvcr=={release} {package}==99.0") == ("incompatible" if held else "unknown")
    if held:
        assert_fits(f"nvcr=={release} {package}=={held.partition('a')[0].partition('+')[0]}")


@every(shipped)
def test_gpus_that_a_month_nearby_refuses_are_not_said_to_fit(release: str) -> None:
    """Of a release without notes CUDA alone tells of GPUs, and CUDA takes more of them than the image was built for."""
    held = container(release)
    if held.row.capability_min:
        return
    months = [
        (one.row.tags, one.row.capability_min)
        for name in shipped()
        if set((one := container(name)).row.names) & set(held.row.names)
    ]
    known = sorted((tags[:6], least) for tags, least in months if least)
    after = next((least for tags, least in known if tags > held.row.tags[:6]), None)
    for gpu in ("6.0", "7.0") if after == "7.5" else ():
        assert verdict(f"nvcr=={release} gpu=={gpu}") != "compatible", gpu


def brings_libraries(name: str) -> bool:
    """Whether pip installs CUDA's libraries beside a package, which it takes before those of an image, or may."""
    rows = (
        *(row.needs for row in MATRIX.releases if row.name == name),
        *(row.needs for row in MATRIX.requirements if row.name == name),
    )
    required = {key for needs in rows for key in needs}
    return any(key == "torch" or key.startswith("nvidia-") for key in required) or name in {
        row.name for row in MATRIX.extras
    }


@cache
def users_of_an_images_libraries() -> list[str]:
    """The newest release of each package that loads CUDA's libraries from where it finds them."""
    names = {row.name for row in MATRIX.releases if "cuda" in row.needs}.intersection(MATRIX.wheels_by_name)
    return [
        f"{name}=={known[-1]}"
        for name in sorted(names)
        if (known := published(MATRIX, name)) and not brings_libraries(name)
    ]


@every(users_of_an_images_libraries)
def test_a_package_in_a_cuda_image_is_judged_by_the_images_cuda(package: str) -> None:
    for release in ("11.8.0", "12.6.3", "13.0.2"):
        plain = verdict(f"{package} cuda=={release}")
        inside = verdict(f"{package} nvcr==cuda:{release}-runtime-ubuntu22.04")
        assert {plain, inside} != {"compatible", "incompatible"}, release
