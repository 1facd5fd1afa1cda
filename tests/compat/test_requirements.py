"""What releases require, swept over every row: bounds and pins of wheels, one of several packages, their own stack."""

import itertools
from collections.abc import Iterator
from functools import cache

from envcheck.compat.question import Question
from envcheck.compat.wheels import covering, not_published, published, series_meant
from envcheck.knowledge.gpu_names import find_by_name
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import canonical, scheme
from envcheck.knowledge.relations.torch import tag_of
from envcheck.knowledge.specifier import Cover, Specifier, Version, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.hardware import MigRow
from envcheck.knowledge.tables.software import ReleaseRow, RequirementRow, TorchRow
from tests.every import every
from tests.knowledge.asking import assert_does_not_fit, assert_fits, assert_nobody_can_tell, judged, shown, verdict
from tests.known import known
from tests.thorough import sample

MATRIX = load_matrix()
CONTRADICTED = {"sglang==0.5.6": "torchcodec==0.7.0", "axolotl==0.16.0": "torchao==0.17.0"}
"""Releases that pin what another of their pins refuses: SGLang 0.5.6 has PyTorch 2.9.1, and the TorchCodec for 2.8;
Axolotl 0.16.0 has PyTorch 2.8.0, and the torchao whose table begins with 2.9.
"""


def release(row: RequirementRow) -> Version | None:
    """A release that a row names, and that no other row but those of other Pythons or machines speaks of."""
    for bound in parse_specifier(row.versions).bounds:
        version = Version((*bound.numbers, 0, 0)[: max(len(bound.numbers), 3)], post=bound.post)
        if bound.operator in ("==", ">=", "<=") and row in own(row.name, version):
            return version
    return None


def own(name: str, version: Version) -> list[RequirementRow]:
    rows = covering(MATRIX.requirements_by_name[canonical(name)], version)
    return [row for row in rows if speaks_of(row.versions, version) == "all"]


def around(spec: Specifier) -> Iterator[Version]:
    """Versions at the bounds, and just beyond them."""
    for bound in spec.bounds:
        numbers = (*bound.numbers, 0, 0)[: max(len(bound.numbers), 3)]
        yield Version(numbers, post=bound.post)
        yield Version((*numbers[:-1], numbers[-1] + 1))
        if numbers[-1]:
            yield Version((*numbers[:-1], numbers[-1] - 1))


def where(row: RequirementRow) -> str:
    """A system for which the row holds, as the rest of a question; of those of its wheels, where it does not say. A
    source archive alone is for any.
    """
    version = release(row)
    assert version
    served = {
        each for one in covering(MATRIX.wheels_by_name.get(canonical(row.name), ()), version) for each in one.pythons
    }
    for os, machine in itertools.product(("linux", "windows", "macos"), ("x86_64", "aarch64")):
        held = os in (row.os or (os,)) and machine in (row.machine or (machine,))
        if held and (not served or served & {"any", f"{os}-{machine}"}):
            return f" os=={os} machine=={machine}"
    raise AssertionError(row.id)


@cache
def cases() -> list[RequirementRow]:
    return [row for row in MATRIX.requirements if release(row)]


def test_most_rows_are_swept() -> None:
    assert len(cases()) > 0.95 * len(MATRIX.requirements)


@every(lambda: sample([row for row in cases() if not row.python], 60))
def test_a_wheel_takes_what_it_requires_and_nothing_else(row: RequirementRow) -> None:
    version, system = release(row), where(row)
    for name, text in row.needs.items():
        spec = parse_specifier(text)
        for there in set(around(spec)):
            if spec.cover(there) == "none" and not series_meant(MATRIX, name, there):
                assert verdict(f"{row.name}=={version} {name}=={there}{system}") != "compatible", (name, there)
    if len(own(row.name, version or Version(()))) == 1:
        pins = " ".join(
            f"{name}=={text[2:]}" for name, text in row.needs.items() if text.startswith("==") and "," not in text
        )
        asked = f"{row.name}=={version}"
        if pins and CONTRADICTED.get(asked) not in pins.split():
            assert verdict(f"{asked} {pins}{system}") != "incompatible", pins


@every(lambda: sample([row for row in cases() if not row.python], 24))
def test_a_bound_below_alone_leaves_no_doubt_but_about_compiled_interfaces(row: RequirementRow) -> None:
    version, system = release(row), where(row)
    for name, text in row.needs.items():
        listed = published(MATRIX, canonical(name))
        open_ended = all(bound.operator in (">=", ">") for bound in parse_specifier(text).bounds)
        if listed and open_ended and not MATRIX.has_trait(name, "binary-interface"):
            told = shown(judged(f"{row.name}=={version} {name}=={listed[-1]}{system}"))
            assert "with that major version" not in told, (name, told)


@every(MATRIX.requirements)
def test_a_row_can_be_read(row: RequirementRow) -> None:
    assert row.needs
    for spec in filter(None, (row.versions, row.python, *row.needs.values())):
        assert parse_specifier(spec).bounds


@every([(row, key) for row in MATRIX.releases for key in row.known])
def test_beyond_what_documents_speak_of_nobody_can_tell(row: ReleaseRow, key: str) -> None:
    bound = next(one for one in parse_specifier(row.versions).bounds if one.operator in ("==", ">="))
    asked = f"{row.name}=={Version(bound.numbers, post=bound.post)}"
    *series, newest = map(int, row.known[key].split("."))
    beyond = (*series, newest + 1, 0)
    assert parse_specifier(row.needs[key]).cover(Version(beyond)) == "all"
    last = row.known[key] + (".0" if series else ".9")
    refusals = [each.message for each in judged(f"{asked} {key}=={last}").reasons if each.verdict != "compatible"]
    assert all(message.startswith("no Python can have both") for message in refusals)
    assert_nobody_can_tell(f"{asked} {key}=={'.'.join(map(str, beyond))}")


def test_where_no_python_is_named_those_that_it_does_not_fit_are_told() -> None:
    for numpy, others in (("1.24.4", ">=3.12,<3.13 or >=3.13,<3.14 or >=3.14"), ("2.0.2", ">=3.13,<3.14 or >=3.14")):
        assert_fits(f"fastembed==0.9.1 numpy=={numpy} python==3.11")
        (told,) = judged(f"fastembed==0.9.1 numpy=={numpy}").reasons
        assert (told.verdict, told.message.partition("not fit with Python ")[2]) == ("compatible", others)


def test_the_lower_bound_of_a_compiled_wheel_says_nothing_of_later_major_versions() -> None:
    found = judged("catboost==1.2.0 numpy==2.1.0")
    assert found.verdict in ("unknown", "incompatible"), shown(found)


# --- What needs one of several packages -----------------------------------------------------------------------------
CHOOSING = [row for row in MATRIX.releases if row.one_of]
ELSEWHERE = [row for row in MATRIX.releases if row.index]
GPUS = [f"sm_{row.capability.replace('.', '')}" for row in MATRIX.capabilities if not row.tegra]
BESIDE = [
    *(f"gpu=={gpu}" for gpu in GPUS), *(f"driver=={branch}" for branch in (470, 525, 535, 570, 580)),
    *(f"cuda=={cuda}" for cuda in ("11.8", "12.1", "12.9", "13.0")), "cudnn==8.9.7", "cudnn==9.12.0",
]  # fmt: skip
RANK = ("compatible", "unknown", "incompatible")


def first(specifier: str) -> str:
    """A version that a specifier names."""
    bound = next(bound for bound in parse_specifier(specifier).bounds if bound.operator in ("==", ">=", "<="))
    return ".".join(map(str, bound.numbers)) + ("" if bound.post is None else f".post{bound.post}")


def cover(specifier: str, text: str, name: str = "") -> Cover:
    version = known(parse_version(text, scheme(name)))
    return parse_specifier(specifier).cover(version)


def test_there_are_such_rows() -> None:
    assert {row.name for row in CHOOSING} == {"jax"}
    assert {row.name for row in ELSEWHERE} == {"onnxruntime-gpu", "xformers"}


@every(sample(CHOOSING))
def test_one_that_fits_is_enough_and_none_is_not(row: ReleaseRow) -> None:
    version = first(row.versions)
    for (group,) in [row.one_of]:
        assert set(group) <= row.needs.keys()
        for beside in BESIDE:
            alone = [verdict(f"{name}=={first(row.needs[name])} {beside}") for name in group]
            question = f"{row.name}=={version} {beside}"
            together = verdict(question)
            assert together == min(alone, key=RANK.index), (beside, shown(judged(question)))
            for name, own in zip(group, alone, strict=True):
                if together == "compatible" != own == "incompatible":
                    found = judged(question)
                    assert any(f"not with {name} " in reason.message for reason in found.reasons), shown(found)


@every(sample(CHOOSING))
def test_the_one_that_is_named_counts(row: ReleaseRow) -> None:
    for name in row.one_of[0]:
        version = first(row.needs[name])
        for beside in ("gpu==V100", "gpu==T4", "driver==535", "cuda==13.0"):
            alone = verdict(f"{name}=={version} {beside}")
            assert verdict(f"{row.name}=={first(row.versions)} {name}=={version} {beside}") == alone


@every(ELSEWHERE)
def test_the_index_decides_where_the_build_on_pypi_does_not_fit(row: ReleaseRow) -> None:
    """With another major of CUDA the answer is open, and names the index; with one that neither has, it is no."""
    own = [
        each
        for each in MATRIX.rows_of(canonical(row.name))
        if not each.build and cover(each.versions, first(row.versions)) == "all"
    ]
    cuda = row.cuda or ""
    found = judged(f"{row.name}=={first(row.versions)} cuda=={cuda}")
    if all(cover(each.needs["cuda"], cuda, "cuda") == "all" for each in own):
        assert found.verdict == "compatible"
    else:
        assert found.verdict == "unknown", shown(found)
        assert "the index decides" in found.reasons[0].message
    assert judged(f"{row.name}=={first(row.versions)} cuda==9.0").verdict == "incompatible"


# --- What a row says belongs together fits when it is asked for -----------------------------------------------------
SETS = ("jetpack", "l4t", "deepstream", "drive-os", "pyds")


def named(spec: str) -> str:
    """One version that a specifier of a row names."""
    return spec.partition("|")[0].partition(",")[0].lstrip("=<>").removesuffix(".*")


@every([row for name in SETS for row in MATRIX.rows_of(name)])
def test_a_set_fits_its_own_stack(row: ReleaseRow) -> None:
    stack = {name.removesuffix("-linux"): named(spec) for name, spec in (row.needs | row.bundles).items()}
    if row.needs.get("numpy", "").startswith("<"):
        del stack["numpy"]
    machine = f"machine=={row.machine[0]}" if row.machine else ""
    parts = " ".join(f"{name}=={version}" for name, version in stack.items())
    assert_fits(f"{row.name}=={named(row.versions)} {machine} {parts}")


def version(text: str) -> Version:
    return known(parse_version(text))


@every([row for row in MATRIX.rows_of("deepstream") if "jetpack" in row.needs])
def test_the_l4t_of_a_jetpack_stands_for_it(row: ReleaseRow) -> None:
    wanted = parse_specifier(row.needs["jetpack"])
    for jetpack in MATRIX.rows_of("jetpack"):
        l4t, release = named(jetpack.needs["l4t"]), parse_version(named(jetpack.versions), scheme("jetpack"))
        others = {one.versions for one in MATRIX.rows_of("jetpack") if one.needs["l4t"] == jetpack.needs["l4t"]}
        if len(others) == 1 and release and wanted.cover(release) != "all":
            assert verdict(f"deepstream=={named(row.versions)} l4t=={l4t}") != "compatible", l4t
        elif len(others) == 1:
            assert_fits(f"deepstream=={named(row.versions)} l4t=={l4t}")


@every([row for row in MATRIX.rows_of("deepstream") if "jetpack" in row.needs])
def test_it_runs_on_the_modules_of_a_jetpack_that_it_needs(row: ReleaseRow) -> None:
    release = f"deepstream=={named(row.versions)}"
    systems = [f"jetpack=={named(one.versions)}" for one in MATRIX.rows_of("jetpack")]
    fitting = [one for one in systems if verdict(f"{release} {one}") == "compatible"]
    for module in [one for one in MATRIX.gpus if one.kind == "tegra" and one.name.startswith("Jetson")]:
        asked = f"gpu=={module.name.replace(' ', ',')}"
        served = any(verdict(f"{one} {asked}") == "compatible" for one in fitting)
        assert (verdict(f"{release} {asked}") == "compatible") == served, module.name


@every([row for row in MATRIX.migs if row.name.endswith("GB") and find_by_name(MATRIX.gpus_by_name, row.name)])
def test_a_gpu_with_its_memory_has_the_instances_of_that_memory_alone(row: MigRow) -> None:
    others = [other for other in MATRIX.migs if other is not row and set(other.gpus) & set(row.gpus)]
    gpu = f"gpu=={row.name.replace(' ', ',')}"
    for profile in row.profiles:
        assert_fits(f"mig=={profile} {gpu}")
    for profile in {each for other in others for each in other.profiles} - set(row.profiles):
        assert_does_not_fit(f"mig=={profile} {gpu}")


@every([row for row in MATRIX.torch if row.all_builds])
def test_a_build_of_torch_runs_where_it_holds_code(row: TorchRow) -> None:
    """Whatever the libraries support that it comes with: it needs them for a part of its work."""
    for build in row.builds:
        if build.confidence == "high" and row.confidence == "high":
            torch = f"torch=={row.version}+{tag_of(build.cuda)} os=={build.os} machine=={build.machine}"
            for target in build.targets:
                if target.startswith("sm_") and target != "sm_110":  # a Jetson's, with a system of its own
                    assert_fits(f"{torch} gpu=={target}")


@every(sample([row for row in MATRIX.torch if row.nccl]))
def test_a_build_of_torch_comes_with_its_libraries(row: TorchRow) -> None:
    for build in row.builds:
        for name, held in (("nccl", build.nccl), ("cudnn", build.cudnn), ("cusparselt", build.cusparselt)):
            if held is None or build.os != "linux":
                continue
            torch = f"torch=={row.version}+{tag_of(build.cuda)} machine=={build.machine}"
            assert_fits(f"{torch} {name}=={held}")
            wheel = f"nvidia-{name}-cu{build.cuda.partition('.')[0]}"
            if not not_published(Question(MATRIX, {}), wheel, version(held)):
                assert_fits(f"{torch} {wheel}=={held}")
            if build.pinned:
                assert_does_not_fit(f"{torch} {wheel}=={held.rpartition('.')[0]}.99999")
