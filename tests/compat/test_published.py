"""Versions that were never published, and every one that was."""

import itertools
from functools import cache
from pathlib import Path

from envcheck.compat.choose import evaluate
from envcheck.compat.question import Question
from envcheck.compat.wheels import not_published, published
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import PublishedRow, ReleaseRow, RequirementRow, WheelRow
from envcheck.model.components import parse_components
from tests.documents import texts
from tests.every import every
from tests.knowledge.asking import answer, assert_nobody_can_tell, judged, shown
from tests.thorough import sample

MATRIX = load_matrix()
_DOCUMENT = (Path(__file__).with_name("data") / "published.txt").read_text(encoding="utf-8")
LISTED = {name: text.splitlines() for name, _, text in texts(_DOCUMENT)}
PUBLISHED = {row.name for row in MATRIX.published}
LISTINGS = MATRIX.published_by_name
QUESTION = Question(MATRIX, {})
GENERAL = [row for row in MATRIX.requirements if not (row.os or row.machine or row.python)]
"""What wheels require everywhere."""


def releases(row: PublishedRow) -> list[Version]:
    return [version for text in row.releases for word in text.split() if (version := parse_version(word))]


@cache
def skipped(row: PublishedRow) -> list[Version]:
    """Numbers between two releases that no release has, or begins with."""
    known = [version for each in MATRIX.published_by_name[row.name] for version in releases(each)]
    known += [version for each in MATRIX.torch if row.name == "torch" and (version := parse_version(each.version))]
    pairs = itertools.pairwise([version for version in releases(row) if len(version.numbers) == 3])
    after = (Version((*old.numbers[:2], old.numbers[2] + 1)) for old, new in pairs if old.numbers[:2] < new.numbers[:2])
    return [version for version in after if not any(one.numbers[:3] == version.numbers for one in known)]


def short(row: PublishedRow) -> list[Version]:
    """Releases of two numbers."""
    return [version for version in releases(row) if len(version.numbers) == 2 and version.post is None]


def late_series(name: str) -> list[Version]:
    """The first releases of series that have no X.Y.0, of those between others, that no row speaks of."""
    pairs = itertools.pairwise(version for version in published(MATRIX, name) if len(version.numbers) == 3)
    firsts = [new for old, new in pairs if old.numbers[:2] < new.numbers[:2]]
    return [one for one in firsts if not_published(QUESTION, name, Version((*one.numbers[:2], 0)))]


@cache
def without_rows(name: str) -> list[Version]:
    """Releases of which nothing but their existence is known: source archives that name no Python."""
    rows: list[ReleaseRow | WheelRow] = [*MATRIX.rows_of(name), *MATRIX.wheels_by_name.get(name, ())]
    return [one for one in published(MATRIX, name) if all(speaks_of(row.versions, one) == "none" for row in rows)]


def admitted_without_rows(row: RequirementRow) -> list[tuple[str, Version]]:
    """By package that wheels need, the newest such release that they admit."""
    by_name = {
        name: [one for one in without_rows(name) if covered(spec, one) == "all"] for name, spec in row.needs.items()
    }
    return [(name, found[-1]) for name, found in by_name.items() if found]


@every(sample(MATRIX.published))
def test_what_is_listed_exists(row: PublishedRow) -> None:
    assert len(set(releases(row))) == len(releases(row)) > 0
    assert not [version for version in releases(row) if not_published(QUESTION, row.name, version)]


@every(lambda: [row for row in MATRIX.published if skipped(row)])
def test_a_number_that_was_skipped_is_no_release(row: PublishedRow) -> None:
    others = [one.versions for one in MATRIX.rows_of(row.name) if one.index or one.versions.startswith("==")]
    for version in skipped(row):
        if any(parse_specifier(spec).cover(version) == "all" for spec in others):
            continue
        fit = not_published(QUESTION, row.name, version)
        assert fit is not None, version
        assert fit.verdict == "unknown"
        assert fit.sources


@every(*MATRIX.releases, *MATRIX.wheels)
def test_what_a_row_names_exists(row: ReleaseRow | WheelRow) -> None:
    for bound in parse_specifier(row.versions).bounds:
        if bound.operator == "==":
            assert not_published(QUESTION, row.name, Version(bound.numbers, post=bound.post)) is None


@every(LISTED["no release"])
def test_no_release_is_taken_for_its_neighbours(question: str) -> None:
    assert_nobody_can_tell(question)
    assert "PyPI lists no release" in answer(question).reasons[0].message


@every(lambda: sample([name for name in MATRIX.published_by_name if late_series(name)]))
def test_a_series_is_meant_where_it_has_no_first_release(name: str) -> None:
    for first in late_series(name):
        written = f"{name}=={first.numbers[0]}.{first.numbers[1]}"
        series, meant = evaluate(MATRIX, parse_components(written)), evaluate(MATRIX, parse_components(f"{written}.0"))
        assert meant.question.versions == series.question.versions
        assert meant.question.assumed[name].endswith(f"whose first release is {first}")


@every(sample([row for row in MATRIX.published if MATRIX.knows(row.name)]))
def test_a_first_release_means_itself(row: PublishedRow) -> None:
    firsts = [version for version in releases(row) if len(version.numbers) == 3 and not version.numbers[2]]
    for version in firsts:
        meant = evaluate(MATRIX, parse_components(f"{row.name}=={version}")).question
        assert [one.numbers for one in meant.versions[row.name]] == [version.numbers]


@every([row for row in MATRIX.published if row.name in MATRIX.wheels_by_name and short(row)])
def test_a_short_release_means_itself_and_no_series(row: PublishedRow) -> None:
    for version in short(row):
        meant = evaluate(MATRIX, parse_components(f"{row.name}=={version}")).question.versions[row.name]
        assert [one.numbers for one in meant] == [(*version.numbers, 0)]


@every(lambda: sample([(each, one) for each in filter(MATRIX.knows, LISTINGS) for one in without_rows(each)], 6))
def test_a_listed_release_of_which_no_row_tells_is_known(name: str, version: Version) -> None:
    found = judged(f"{name}=={version} python==3.8")
    if any(" requires torch " in each.message for each in found.reasons):
        return  # which has no wheel for this Python
    assert found.verdict == "unknown"
    assert "PyPI lists" in found.reasons[0].message


def asking(row: RequirementRow) -> Version | None:
    """A release that the row speaks of; none where only a fourth number, which is not compared, sets it apart."""
    whole = {one: one._replace(numbers=(*one.numbers, 0, 0)[:3]) for one in published(MATRIX, row.name)}
    return next((one for one in whole if speaks_of(row.versions, whole[one]) == "all"), None)


@every(lambda: [(row, *one) for row in sample(GENERAL, 6) if asking(row) for one in admitted_without_rows(row)])
def test_packages_that_need_such_a_release_tell_of_it(row: RequirementRow, name: str, version: Version) -> None:
    found = judged(f"{row.name}=={asking(row)} {name}=={version}")
    told = [reason.verdict for reason in found.reasons if f" needs {name} " in reason.message]
    assert told == ["compatible"], shown(found)


@every(LISTED["no toolkit"])
def test_a_cuda_that_drivers_alone_report_has_no_toolkit(question: str) -> None:
    assert_nobody_can_tell(question)
    assert "no toolkit of CUDA 12.7 was published" in shown(answer(question))


@every(LISTED["a release"])
def test_what_another_index_has_or_stands_for_several_is_a_release(question: str) -> None:
    found = answer(question)
    assert "lists no release" not in shown(found), shown(found)


NOTHING = ("nothing in the matrix", "the matrix does not know")
SILENT = {
    "auto-gptq": {"0.2.0", "0.2.1", "0.2.2", "0.3.0", "0.3.1", "0.3.2"},  # source archives alone
    "bitsandbytes": {"0.36.0", "0.36.0.post2"},  # the one has no libraries
    "nvidia-nccl-cu12": {"2.20.3"},  # its wheel was not read
    "open3d": {"0.16.1"},  # for macOS alone
    "onnxruntime-gpu": {"1.7.0", "1.8.0", "1.8.1", "1.9.0", "1.10.0", "1.23.1"},  # no wheels for Linux on PyPI
    "spconv-cu118": {"2.2.5", "2.2.6"},  # for Windows alone
    "thundergbm": {"0.3.4"},  # its wheel for every system was not read
    "vllm": {"0.2.1"},
}
"""Releases between known ones of whose GPU code nothing is known."""


@every(sample(sorted({row.name for row in MATRIX.releases if (row.targets or row.code) and row.name in PUBLISHED})))
def test_no_release_between_two_whose_gpu_code_is_known_is_without(name: str) -> None:
    versions = [version for version in published(MATRIX, name) if not version.pre and not version.local]
    told = [
        str(one)
        for one in versions
        if not any(
            words in reason.message for words in NOTHING for reason in judged(f"{name}=={one} gpu==A100").reasons
        )
    ]
    order = [str(version) for version in versions]
    between = order[order.index(told[0]) : order.index(told[-1])]
    assert set(between) - set(told) == SILENT.get(name, set()) & set(between)


NOT_FOR_GPUS = {"tensorflow"}
"""Its wheels for Windows and for Linux aarch64 have no GPU support, as its documents say."""


@every(
    sample(sorted({row.name for row in MATRIX.releases if row.os or row.machine} & {row.name for row in MATRIX.wheels}))
)
def test_a_wheel_for_a_system_is_not_refused_because_rows_are_for_another(name: str) -> None:
    for version in sample(published(MATRIX, name)):
        rows = [row for row in MATRIX.wheels_by_name[name] if speaks_of(row.versions, version) != "none"]
        for system in {one for row in rows for one in row.pythons if one.startswith(("linux", "windows"))}:
            os, machine = system.split("-")
            found = judged(f"{name}=={version} os=={os} machine=={machine} gpu==A100")
            refused = any(f"{version} is for" in one.message and "not for" in one.message for one in found.reasons)
            assert not refused or name in NOT_FOR_GPUS, f"{version} {system}"
