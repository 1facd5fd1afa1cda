"""numba-cuda, and the bindings that some releases refuse to be imported without."""

from __future__ import annotations

from pathlib import Path

from tests.every import cases
from tests.probes.frameworks.framework_trees import Frameworks, requires

CHECK = """
if config.CUDA_USE_NVIDIA_BINDING:
    if not (
        importlib.util.find_spec("cuda")
        and importlib.util.find_spec("cuda.bindings")
    ):
        raise ImportError("CUDA bindings not found.")
"""
LINES = requires(
    "numba>=0.60.0",
    'cuda-bindings==11.8.*; extra == "cu11"',
    'cuda-bindings==12.9.*; extra == "cu12"',
    'cuda-core==0.3.*; extra == "cu12"',
    'cuda-bindings; extra == "test-cu12"',
)
EACH = (("cuda-bindings==11.8.*",), ("cuda-bindings==12.9.*", "cuda-core==0.3.*"))


def asked(tmp_path: Path, code: str, **variables: str) -> tuple[tuple[str, ...], ...] | None:
    tree = Frameworks(tmp_path)
    files: dict[str, str | bytes] = {
        "numba_cuda/__init__.py": "",
        "numba_cuda/VERSION": "0.18.1\n",
        "numba_cuda/numba/cuda/__init__.py": code,
    }
    tree.package(files, "numba-cuda", "0.18.1", LINES)
    return tree.found(**variables)["numba-cuda"].needs_one_of


def test_a_release_that_refuses_to_be_imported_without_bindings_needs_those_of_one_cuda(tmp_path: Path) -> None:
    assert asked(tmp_path, CHECK) == EACH


@cases("off", "0", "False")
def test_unless_a_variable_turns_that_off(tmp_path: Path, off: str) -> None:
    assert asked(tmp_path, CHECK, NUMBA_CUDA_USE_NVIDIA_BINDING=off) is None


def test_a_release_that_does_without_requires_none(tmp_path: Path) -> None:
    assert asked(tmp_path, "from numba import config\n") is None
