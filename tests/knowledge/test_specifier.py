"""Versions and specifiers: how they are written, compared and counted."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version as Pep440

from envcheck.compat.reading import spelled
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import scheme
from envcheck.knowledge.specifier import PLAIN, Scheme, Version, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.components import Bound, Component
from tests.every import cases, every
from tests.known import known
from tests.thorough import examples

BUILDS = Scheme(3, builds=True)
MINORS = Scheme(2, builds=True)


def cover(spec: str, version: str, scheme: Scheme = Scheme()) -> str:  # noqa: B008 - a constant
    parsed = known(parse_version(version, scheme))
    return parse_specifier(spec).cover(parsed)


@every(
    # bounds compare by the numbers that they name
    ("<=11.6", "11.6.2", "all"), ("<=11.6", "11.7.0", "none"), (">11.6", "11.6.2", "none"), (">11.6", "11.7.0", "all"),
    ("<13", "12.9.1", "all"), ("<13", "13.0.0", "none"), (">=12.1,<13", "12.0.1", "none"),
    ("==2.16.*", "2.16.2", "all"), ("==2.16", "2.16.2", "all"), ("==2.16", "2.17.0", "none"),
    ("!=2.16", "2.16.2", "none"), ("!=2.16", "2.17.2", "all"), ("2.16", "2.16.2", "all"), ("~=3.8.0", "3.8.4", "all"),
    ("~=3.8.0", "3.9.0", "none"), ("~=3.8", "3.9.0", "all"),
    # alternatives
    ("==10.2|>=11.0,<=11.6", "10.2.89", "all"), ("==10.2|>=11.0,<=11.6", "11.3.1", "all"),
    ("==10.2|>=11.0,<=11.6", "10.1.0", "none"), ("==10.2|>=11.0,<=11.6", "11.7.0", "none"),
    # a missing number of a distribution is zero, a further one is a release of its own
    ("==0.12.0.1", "0.12.0", "none"), ("==0.12.0", "0.12.0.1", "none"), ("<=0.12.0", "0.12.0.1", "none"),
    (">0.12.0", "0.12.0.1", "all"), ("<=0.12", "0.12.0.1", "all"), (">=0.12.0", "0.12.0.1", "all"),
    ("<0.12.0.1", "0.12.0", "all"),
    # families
    ("==12.4", "12", "some"), (">=12.0", "12", "all"), (">=12.1", "12", "some"), ("<12.0", "12", "none"),
    ("<13", "12", "all"), (">=13", "12", "none"), ("<=12.4", "12", "some"), (">=2.5.1", "2.5", "some"),
    ("==2.5.1|==2.5.0", "2.5", "some"),
    # pre-releases come before their release
    (">=2.0.0", "2.0.0rc1", "none"), (">=2.0", "2.0.0rc1", "none"), (">=1.9", "2.0.0rc1", "all"),
    ("<2.0.0", "2.0.0rc1", "none"), ("==2.0.0", "2.0.0.dev20250131", "none"), ("==2.0.*", "2.0.0rc1", "all"),
    ("==2.0", "2.0.1rc1", "all"), (">=2.5rc1", "2.5", "all"), ("<2.5.0rc1", "2.5", "none"),
    ("==2.5.1rc1", "2.5", "some"), (">=2.5.1rc1", "2.4", "none"), ("<1!2.0", "2.5", "all"),
    # post-releases
    ("==0.0.28", "0.0.28.post3", "none"), ("!=0.0.28", "0.0.28.post3", "all"), ("<=0.0.28", "0.0.28.post3", "none"),
    (">0.0.28", "0.0.28.post3", "none"), (">=0.0.28", "0.0.28.post3", "all"), ("==0.0", "0.0.28.post3", "all"),
    (">=2.5.post1", "2.5", "some"), ("==0.0.28.post3", "0.0.28.post3", "all"), ("==0.0.28.post3", "0.0.28", "none"),
    ("==0.0.28.post3", "0.0.28.post2", "none"), (">=0.0.28.post2", "0.0.28.post3", "all"),
    (">=0.0.28.post2", "0.0.29", "all"), ("<0.0.28.post2", "0.0.28", "all"),
    # a build matters where it is named, and is before or after nothing
    ("==2.5.1", "2.5.1+cu124", "all"), ("==2.5.1+cu124", "2.5.1", "none"), (">=2.5.1+cu124", "2.5.1", "all"),
)  # fmt: skip
def test_distributions(spec: str, version: str, expected: str) -> None:
    assert cover(spec, version) == expected


@every(
    (">=8.9.2.26", "8.9.2", BUILDS, "all"), ("==10.3.0.26", "10.3.0", BUILDS, "all"),
    ("<8.9.2.26", "8.9.2", BUILDS, "none"), (">=8.9.2.26", "8.9.1", BUILDS, "none"),
    (">=8.9.2.26", "8.9", BUILDS, "some"), (">=8.9", "8.9.7.29", BUILDS, "all"), ("==12.6.2", "12.6", MINORS, "all"),
    ("==12.6.2", "12.6.1", MINORS, "none"), ("==12.6.2", "12", MINORS, "some"), (">=3.6.1", "3.6", MINORS, "all"),
    (">=3.11,!=3.14.1", "3.14", MINORS, "all"), (">=3.11,!=3.14.1", "3.14.1", MINORS, "none"),
    (">=3.11,!=3.14.1", "3.14.2", MINORS, "all"), (">=3.11,!=3.14", "3.14", MINORS, "none"),
    ("==2.27.3", "2.27.3-1", BUILDS, "all"), ("<=8.9.2", "8.9.2.26", BUILDS, "all"),
    ("==8.9.2", "8.9.2.26", BUILDS, "all"), (">=8.9.2rc1", "8.9.2.26", BUILDS, "all"),
    ("==6.2", "6.2", Scheme(2), "all"), ("==6.2.1", "6.2", Scheme(2), "none"),
    ("<=13", "13.2.0", Scheme(1, builds=True), "all"), ("<=13.2", "13", Scheme(1, builds=True), "all"),
)  # fmt: skip
def test_components_that_count_builds(spec: str, version: str, scheme: Scheme, expected: str) -> None:
    assert cover(spec, version, scheme) == expected


@cases("text, numbers, pre, post, local",
    ("2.5.1+cu124", (2, 5, 1), "", None, "cu124"), ("0.4.25+cuda11.cudnn86", (0, 4, 25), "", None, "cuda11.cudnn86"),
    ("v1.9.1", (1, 9, 1), "", None, ""), ("2.5.0a0+872d972e41.nv24.8", (2, 5, 0), "a0", None, "872d972e41.nv24.8"),
    ("2.0.0.dev20250131", (2, 0, 0), ".dev20250131", None, ""),
    ("2.0-preview_2.post1.dev3", (2, 0), "rc2.post1.dev3", None, ""), ("6.0 DP", (6, 0), "a0", None, ""),
    ("0.8.0.post1", (0, 8, 0), "", 1, ""), ("0.8.0.post", (0, 8, 0), "", 0, ""), ("2.27.3-1", (2, 27, 3), "", 1, ""),
)  # fmt: skip
def test_reads_versions(text: str, numbers: tuple[int, ...], pre: str, post: int | None, local: str) -> None:
    assert parse_version(text) == Version(numbers, pre, post, local)


@cases("text, scheme", ("22.04", scheme("ubuntu")), ("12.4", MINORS), ("0.0.28.post3", PLAIN), ("2.5.1rc1", PLAIN))
def test_writes_versions_as_they_are_written(text: str, scheme: Scheme) -> None:
    assert str(parse_version(text, scheme)) == text


@every("", "x", "1..2", "latest", "1.2.3.4.5.6.7", "-1", "1.2+", "9" * 12, "2.5.1\x1b[0m")
def test_what_is_no_version_is_none(text: str) -> None:
    assert parse_version(text) is None


@cases(
    "text", "", ">=", "=>2", ">=a", "==1.0,", "|==2", ">= 1 2",
    # nor does PEP 440 know these
    "~=2", "~=2.5.*", ">=2.*", "==2.5rc1.*", "==2.5.post1.*",
)  # fmt: skip
def test_what_is_no_specifier_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        parse_specifier(text)


@every(load_matrix().releases)
def test_every_specifier_of_the_matrix_can_be_read(row: ReleaseRow) -> None:
    for text in (row.versions, *row.needs.values()):
        assert parse_specifier(text).bounds
    for text in row.bundles.values():
        assert parse_specifier(text).alternatives


numbers = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(tuple)
operators = st.sampled_from(["==", "!=", ">=", "<=", ">", "<"])


@given(numbers, operators, numbers)
def test_an_operator_and_its_opposite_share_all(own: tuple[int, ...], operator: str, bound: tuple[int, ...]) -> None:
    opposite = {"==": "!=", "!=": "==", ">=": "<", "<": ">=", "<=": ">", ">": "<="}[operator]
    text = ".".join(map(str, bound))
    version = Version(own, scheme=Scheme(1))
    one, other = parse_specifier(operator + text).cover(version), parse_specifier(opposite + text).cover(version)
    assert {one, other} == {"all", "none"}


@given(numbers.filter(lambda own: len(own) < 3), st.integers(0, 30), operators, numbers)
def test_a_family_is_admitted_as_its_members_are(
    own: tuple[int, ...], further: int, operator: str, bound: tuple[int, ...]
) -> None:
    """What is said of all members of a family holds for each; what is said of none holds for none."""
    spec = parse_specifier(operator + ".".join(map(str, bound)))
    family = spec.cover(Version(own, scheme=Scheme(len(own) + 1)))
    member = spec.cover(Version((*own, further), scheme=Scheme(len(own) + 1)))
    if family != "some" and len(bound) <= len(own) + 1:
        assert member == family


# --- A bound that names a release means what PEP 440 says -----------------------------------------------------------
release = st.lists(st.integers(0, 2), min_size=3, max_size=4).map(lambda numbers: ".".join(map(str, numbers)))
epoch = st.sampled_from(["", "", "", "1!"])
before = st.sampled_from(["", "", "a1", "b0", "rc1", "rc2", "-preview_2", "c"])
after = st.sampled_from(["", "", ".post0", ".post1", "-2", ".post", "r3"])
developed = st.sampled_from(["", "", ".dev0", ".dev20250131"])
local = st.sampled_from(["", "", "+cu124", "+cu126", "+872d.nv24-12"])
public = st.tuples(epoch, release, before, after, developed).map("".join)
short = st.tuples(st.integers(0, 2), st.integers(0, 2)).map(lambda numbers: "{}.{}".format(*numbers))
bounds = st.one_of(
    st.tuples(st.sampled_from(["==", "!=", ">=", "<=", ">", "<", "~=", "==="]), public),
    st.tuples(st.sampled_from(["==", "!=", "==="]), public, local),
    st.tuples(st.sampled_from(["==", "!="]), epoch, st.one_of(short, release), st.just(".*")),
    st.tuples(st.just("~="), epoch, short),
).map("".join)


@settings(max_examples=examples(2_500))
@example("===2.0.2.1+872d.nv24-12", "2.0.2.1", "+872d.nv24-12")  # it is compared as packaging writes it
@given(st.lists(bounds, min_size=1, max_size=2).map(",".join), public, local)
def test_a_bound_on_a_release_is_that_of_pep_440(text: str, version: str, build: str) -> None:
    meant = SpecifierSet(text).contains(Pep440(version + build), prereleases=True)
    assert cover(text, version + build) == ("all" if meant else "none")


@given(public, local)
def test_a_version_is_that_of_pep_440(text: str, build: str) -> None:
    version = known(parse_version(text + build))
    assert Pep440(version.public) == Pep440(text)
    assert version.numbers == Pep440(text).release


@every(
    ("==0.0.28", "0.0.28.post3", "all"), (">=0.0.27,<=0.0.28", "0.0.28.post3", "all"),
    (">=0.0.27,!=0.0.28", "0.0.28.post3", "none"), ("==0.0.28|==0.0.29", "0.0.28.post3", "all"),
    ("==0.0.28", "0.0.28.1", "none"), ("==2024.9", "2024.9.post1", "all"), (">=2024.9.1", "2024.9.post1", "none"),
    # one that tells post-releases apart means them
    (">=0.0.28,<0.0.28.post2", "0.0.28.post1", "all"), (">=0.0.28,<0.0.28.post2", "0.0.28.post2", "none"),
)  # fmt: skip
def test_a_row_about_a_release_is_about_its_post_releases(versions: str, version: str, expected: str) -> None:
    assert speaks_of(versions, known(parse_version(version, PLAIN))) == expected


@given(st.text(max_size=30))
def test_any_text_is_read_or_not(text: str) -> None:
    version = parse_version(text)
    assert version is None or version.numbers


# --- One version, written in many ways; and what only looks like one of them stays as it is -------------------------
@every(
    ("cuda", "cu124", "12.4"), ("cuda", "cu118", "11.8"), ("cuda", "V12.4.131", "12.4.131"),
    ("cuda", "12.4u1", "12.4"), ("nvcc", "12.4 Update 1", "12.4"), ("cuda", "12.x", "12"), ("cuda", "12.*", "12"),
    ("cuda", "latest", "latest"), ("driver", "R550", "550"), ("driver", "v550.54.14", "550.54.14"),
    ("driver", "550.54.14-0ubuntu1", "550.54.14"), ("driver", "550.54.14-1", "550.54.14"),
    ("driver", "550.x.x", "550"), ("driver", "550.54.14-open", "550.54.14-open"), ("l4t", "R36.4.3", "36.4.3"),
    ("python", "cp312", "3.12"), ("python", "py39", "3.9"), ("python", "3.12.*", "3.12"),
    ("python", "3.14t", "3.14t"), ("gpu", "8x H100", "H100"), ("gpu", "2xA100", "A100"), ("gpu", "4090", "4090"),
    ("gpu", "H100 80GB HBM3", "H100 80GB HBM3"), ("torch", "2.5.*", "2.5"), ("torch", "2.5.1+cu124", "2.5.1+cu124"),
    ("torch", "v2.5.1", "v2.5.1"), ("nccl", "2.27.3-1", "2.27.3-1"), ("msvc", "1940", "19.40"),
    ("msvc", "14.38.33130", "19.38"), ("msvc", "19.29", "19.29"),
)  # fmt: skip
def test_what_is_meant(name: str, written: str, meant: str) -> None:
    assert spelled(name, Component(name, (Bound("==", written),))).exact == meant


def test_bounds_stay_as_they_are() -> None:
    component = Component("driver", (Bound(">=", "R550"), Bound("<", "560")))
    assert spelled("driver", component) is component
