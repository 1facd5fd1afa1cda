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
from tests.every import cases, every, every_tabled, tabled
from tests.known import known
from tests.thorough import examples

BUILDS = Scheme(3, builds=True)
MINORS = Scheme(2, builds=True)


def cover(spec: str, version: str, scheme: Scheme = Scheme()) -> str:  # noqa: B008 - a constant
    parsed = known(parse_version(version, scheme))
    return parse_specifier(spec).cover(parsed)


@every_tabled
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


@tabled
def test_reads_versions(text: str, numbers: tuple[int, ...], pre: str, post: int | None, local: str) -> None:
    assert parse_version(text) == Version(numbers, pre, post, local)


@cases("text, scheme", ("22.04", scheme("ubuntu")), ("12.4", MINORS), ("0.0.28.post3", PLAIN), ("2.5.1rc1", PLAIN))
def test_writes_versions_as_they_are_written(text: str, scheme: Scheme) -> None:
    assert str(parse_version(text, scheme)) == text


@every("", "x", "1..2", "latest", "1.2.3.4.5.6.7", "-1", "1.2+", "9" * 12, "2.5.1\x1b[0m")
def test_what_is_no_version_is_none(text: str) -> None:
    assert parse_version(text) is None


@tabled
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


@every_tabled
def test_a_row_about_a_release_is_about_its_post_releases(versions: str, version: str, expected: str) -> None:
    assert speaks_of(versions, known(parse_version(version, PLAIN))) == expected


@given(st.text(max_size=30))
def test_any_text_is_read_or_not(text: str) -> None:
    version = parse_version(text)
    assert version is None or version.numbers


# --- One version, written in many ways; and what only looks like one of them stays as it is -------------------------
@every_tabled
def test_what_is_meant(name: str, written: str, meant: str) -> None:
    assert spelled(name, Component(name, (Bound("==", written),))).exact == meant


def test_bounds_stay_as_they_are() -> None:
    component = Component("driver", (Bound(">=", "R550"), Bound("<", "560")))
    assert spelled("driver", component) is component
