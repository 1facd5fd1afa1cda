"""What needs one of several packages, and releases that several indexes carry: swept over all rows that say so."""

from __future__ import annotations

from envcheck.compat.load import load_matrix
from envcheck.compat.names import canonical, scheme
from envcheck.compat.specifier import Cover, parse_specifier, parse_version
from envcheck.compat.tables import ReleaseRow
from tests.compat.asking import judged, shown, verdict
from tests.every import every
from tests.thorough import sample

MATRIX = load_matrix()
CHOOSING = [row for row in MATRIX.releases if row.one_of]
ELSEWHERE = [row for row in MATRIX.releases if row.index]
GPUS = [f"sm_{row.capability.replace('.', '')}" for row in MATRIX.capabilities if not row.tegra]
BESIDE = [
    *(f"gpu=={gpu}" for gpu in GPUS),
    *(f"driver=={branch}" for branch in (470, 525, 535, 570, 580)),
    *(f"cuda=={cuda}" for cuda in ("11.8", "12.1", "12.9", "13.0")),
    "cudnn==8.9.7",
    "cudnn==9.12.0",
]
RANK = ("compatible", "unknown", "incompatible")


def first(specifier: str) -> str:
    """A version that a specifier names."""
    bound = next(bound for bound in parse_specifier(specifier).bounds if bound.operator in ("==", ">=", "<="))
    return ".".join(map(str, bound.numbers)) + ("" if bound.post is None else f".post{bound.post}")


def cover(specifier: str, text: str, name: str = "") -> Cover:
    version = parse_version(text, scheme(name))
    assert version is not None
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
