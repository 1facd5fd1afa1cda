"""What a build of PyTorch brings, by the matrix."""

from __future__ import annotations

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.question.package_needs import needed_of

MATRIX = load_matrix()
ROW = next(row for row in MATRIX.torch if row.triton and row.cudnn and len(row.builds) > 1)


@pytest.mark.parametrize("label", ["", "+cu999"])
def test_builds_for_every_cuda_pin_the_same_triton(label: str) -> None:
    """Else a fix that changes the build would seem to leave the old Triton, and be rejected."""
    pins = needed_of(MATRIX, "torch", f"{ROW.version}{label}")
    assert f"triton=={ROW.triton}" in pins
    assert any(pin.startswith("nvidia-cudnn") for pin in pins) is (label == "")


def test_a_build_for_cpus_pins_none() -> None:
    assert needed_of(MATRIX, "torch", f"{ROW.version}+cpu") == ()
