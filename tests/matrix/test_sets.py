"""Software that is one set of versions, and what frameworks declare of the libraries under them."""

from collections.abc import Iterator
from pathlib import Path

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import SETS, canonical
from envcheck.knowledge.specifier import Specifier, parse_specifier
from envcheck.knowledge.tables.software import ReleaseRow
from tests.documents import lines_of
from tests.every import every
from tests.knowledge.asking import assert_does_not_fit, judged, shown, verdict
from tests.thorough import sample

MATRIX = load_matrix()
ROWS = [row for row in MATRIX.releases if row.name in SETS]
DRIVERS = ("driver", "driver-linux")


def first(spec: Specifier, digits: int = 1) -> str:
    """The first version that a specifier names and admits."""
    bound = next(bound for bound in spec.bounds if bound.operator in ("==", ">=", "<="))
    major, *rest = bound.numbers
    text = ".".join((str(major), *(f"{number:0{digits}}" for number in rest)))
    return text if bound.post is None else f"{text}.post{bound.post}"


def stack(row: ReleaseRow) -> Iterator[str]:
    """A row and what it lists, as components."""
    yield f"{row.name}=={first(parse_specifier(row.versions))}"
    for key, text in {**row.needs, **row.bundles}.items():
        spec = parse_specifier(text)
        if key == "ubuntu":
            yield f"os==ubuntu-{first(spec, 2)}"
        else:
            yield f"{'driver' if key in DRIVERS else canonical(key)}=={first(spec)}"
    if row.machine:
        yield f"machine=={row.machine[0]}"
    if row.capabilities and "jetpack" not in row.needs:
        yield f"gpu==sm_{row.capabilities[0].replace('.', '')}"


def test_every_kind_of_set_is_there() -> None:
    # Containers are rows of images, which tests/compat/test_containers.py asks.
    assert {row.name for row in ROWS} == SETS - {"nvcr"}


@every(ROWS)
def test_a_set_fits_together(row: ReleaseRow) -> None:
    assert verdict(" ".join(stack(row))) == "compatible"


@every(sample(ROWS))
def test_a_part_of_another_release_does_not_fit(row: ReleaseRow) -> None:
    """The last sentence about a set is not that everything goes."""
    for key in {"cuda", "tensorrt", "cudnn", "l4t"} & row.needs.keys():
        assert_does_not_fit(
            f"{row.name}=={first(parse_specifier(row.versions))} {key}==1.1 machine=={(row.machine or ['x86_64'])[0]}"
        )


# --- What frameworks declare of the libraries under them ------------------------------------------------------------
DECLARED = lines_of((Path(__file__).with_name("data") / "declared.txt").read_text(encoding="utf-8"))


@every([line.split() for line in DECLARED])
def test_both_sides_of_a_declared_bound_are_answered(release: str, library: str, admitted: str, refused: str) -> None:
    within, beyond = (judged(f"{release} {library}=={version}") for version in (admitted, refused))
    assert within.verdict == "compatible", shown(within)
    assert beyond.verdict == "incompatible", shown(beyond)
