"""Models that drivers list later than their generation: nobody says whether earlier drivers support them."""

from __future__ import annotations

from envcheck.compat.load import load_matrix
from envcheck.versions import DriverRelease
from tests.compat.asking import verdict
from tests.every import every

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


@every(
    lambda: [
        ("5.0.2", "cudnn==8.4.1", "cudnn==8.6.0"),
        ("5.1.2", "cudnn==8.6.0", "cudnn==8.9.0"),
        ("6.1", "cuda==12.6", "cuda==12.2"),
        ("6.2", "cuda==12.8", "cuda==12.4"),
    ]
)
def test_what_one_document_alone_lets_a_jetpack_have_is_open(jetpack: str, fits: str, disputed: str) -> None:
    assert verdict(f"jetpack=={jetpack} {fits}") == "compatible"
    assert verdict(f"jetpack=={jetpack} {disputed}") == "unknown"
