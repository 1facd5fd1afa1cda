"""Installing envcheck moves nothing that is already there.

The environments hold what PyTorch itself pins (without the libraries of hundreds of megabytes, whose names envcheck
does not depend on), and an older stack: cuda-bindings 12.9 with NumPy 1.26.
"""

import re
import sys

import pytest

from tests.packaging.installing import Built, Environment, run

pytestmark = pytest.mark.lab  # resolves and installs environments for half a minute

TORCH = {"2.11.0": (3, 10), "2.14.1": (3, 10), "2.15.0": (3, 11)}
"""PyTorch releases that pin cuda-bindings, and the oldest Python that each supports."""

_HEAVY = re.compile(r"nvidia-|triton|torch$")


def pins_of(environment: Environment, requirement: str) -> list[str]:
    options = ["-q", "--no-header", "--no-annotate", "--python", str(environment.python), "-"]
    resolved = run([environment.uv, "pip", "compile", *options], input=requirement)
    return [line for line in resolved.splitlines() if "==" in line]


@pytest.mark.parametrize("release", TORCH)
def test_beside_the_pins_of_pytorch(release: str, built: Built, fresh: Environment) -> None:
    if sys.version_info[:2] < TORCH[release]:
        pytest.skip(f"torch {release} needs Python {TORCH[release]}")
    pins = [pin for pin in pins_of(fresh, f"torch=={release}") if not _HEAVY.match(pin.partition("==")[0])]
    assert any(pin.startswith("cuda-bindings==") for pin in pins)
    fresh.install("--no-deps", *pins)
    assert_nothing_moves(fresh, built)


def test_the_resolver_changes_no_pin_of_pytorch(built: Built, fresh: Environment) -> None:
    alone = set(pins_of(fresh, "torch==2.11.0"))
    assert alone <= set(pins_of(fresh, f"torch==2.11.0\ngpu-envcheck @ file://{built.wheel}"))


def test_beside_older_bindings_and_numpy(built: Built, fresh: Environment) -> None:
    if sys.version_info >= (3, 13):
        pytest.skip("NumPy 1.26 has no wheel for this Python")
    fresh.install("cuda-bindings==12.9.*", "numpy==1.26.*", "nvidia-ml-py==12.535.*")
    assert_nothing_moves(fresh, built)


def assert_nothing_moves(environment: Environment, built: Built) -> None:
    before = environment.freeze()
    environment.install(str(built.wheel))
    after = environment.freeze()
    assert {name: after.get(name) for name in before} == before
    assert "gpu-envcheck" in after
    run([str(environment.python), "-I", "-c", "import envcheck.pipeline.session, pynvml, cuda.bindings.driver"])
