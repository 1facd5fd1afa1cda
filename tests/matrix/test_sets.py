"""Software that is one set of versions, and what frameworks declare of the libraries under them."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import SETS, canonical
from envcheck.knowledge.specifier import Specifier, parse_specifier
from envcheck.knowledge.tables import ReleaseRow
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

# The release, the library, a version that its METADATA admits and one that it does not; read on 2026-11-23.
DECLARED = """
tensorflow==2.8.1 protobuf 4.21.6 3.8.0
tensorflow==2.8.2 protobuf 3.19.6 3.20.3
tensorflow==2.9.1 protobuf 3.19.6 4.21.6
tensorflow==2.11.1 protobuf 3.19.6 4.21.6
tensorflow==2.12.0 protobuf 4.25.3 4.21.5
tensorflow==2.16.1 protobuf 4.25.3 5.26.0
tensorflow==2.18.0 protobuf 5.29.3 6.30.0
tensorflow==2.12.0 keras 2.12.0 2.13.1
tensorflow==2.15.0 keras 2.15.0 3.0.0
tensorflow==2.16.1 keras 3.3.3 2.15.0
tensorflow==2.15.0 ml-dtypes 0.2.0 0.3.1
tensorflow==2.15.1 ml-dtypes 0.3.2 0.2.0
tensorflow==2.18.0 ml-dtypes 0.4.1 0.5.0
tensorflow==2.18.1 ml-dtypes 0.5.0 0.3.2
jaxlib==0.4.18 scipy 1.7.3 1.6.3
jaxlib==0.4.19 scipy 1.9.3 1.8.1
jaxlib==0.4.29 ml-dtypes 0.4.0 0.3.2
jaxlib==0.4.30 ml-dtypes 0.2.0 0.1.0
jaxlib==0.10.0 scipy 1.14.1 1.13.1
transformers==4.40.0 huggingface-hub 0.23.0 1.0.0
transformers==4.29.0 huggingface-hub 0.11.0 0.10.1
transformers==4.29.1 huggingface-hub 0.14.1 0.13.4
transformers==5.1.0 huggingface-hub 1.3.0 0.36.0
diffusers==0.36.0 huggingface-hub 1.0.0 2.0.0
scipy==1.11.1 numpy 1.21.6 1.20.3
scipy==1.13.0 numpy 2.2.6 2.3.0
scipy==1.18.0 numpy 2.5.0 1.26.4
onnxruntime-gpu==1.24.1 cuda 12.8 12.6
onnxruntime-gpu==1.26.0 cuda 12.9 12.6
"""


@every([line.split() for line in DECLARED.strip().splitlines()])
def test_both_sides_of_a_declared_bound_are_answered(release: str, library: str, admitted: str, refused: str) -> None:
    within, beyond = (judged(f"{release} {library}=={version}") for version in (admitted, refused))
    assert within.verdict == "compatible", shown(within)
    assert beyond.verdict == "incompatible", shown(beyond)
