"""Software that is one set of versions: every row of it, asked for its own stack, is compatible."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.load import load_matrix
from envcheck.compat.names import SETS, canonical
from envcheck.compat.specifier import Specifier, parse_specifier
from envcheck.compat.tables import ReleaseRow
from tests.compat.asking import assert_does_not_fit, assert_fits, questions, verdict
from tests.every import every
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
    # Containers are rows of images, which tests/compat/question/test_containers.py asks.
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


@every(
    questions("""
deepstream==6.3 cuda==12.1 tensorrt==8.5.3 driver==525.125.06 machine==x86_64
deepstream==6.3 tensorrt==8.5.3 cuda==12.1
jetpack==6.1 l4t==36.4.0 cuda==12.6 cudnn==9.3.0 tensorrt==10.3.0
""")
)
def test_fits(question: str) -> None:
    assert_fits(question)


@every(
    questions("""
tensorrt==8.5.3 cuda==12.1
deepstream==6.3 cuda==12.1 tensorrt==8.6.1
deepstream==6.3 cuda==11.8 tensorrt==8.5.3
deepstream==7.0 cuda==12.2 tensorrt==8.6.1 gpu==K80
""")
)
def test_does_not_fit(question: str) -> None:
    assert_does_not_fit(question)
