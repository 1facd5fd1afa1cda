"""How frameworks behave is a row: no module lists the beginnings of their names again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.tables import Trait

ROOT = Path(__file__).parents[2] / "envcheck"
OF_OTHERS = {
    "compat/performance/quantities.py": "the frameworks that are measured",
    "compat/names.py": "the other names of components",
    "importers/paste.py": "words of the lines that a long text is searched for",
    "report/page/essentials.py": "the distributions that the page names",
    "rules/engine/simulate.py": "distributions that are frameworks once they are installed",
    "rules/fixes/frameworks.py": "how each project's build for CUDA is installed",
    "rules/packages/doubled.py": "two projects with rules of their own",
    "rules/packages/required.py": "the packages that other rules speak of",
}
"""Modules that name several projects' frameworks for what only they know of them."""


@pytest.mark.parametrize(
    ("trait", "with_it", "without"),
    [
        ("falls-back-to-cpu", ("tensorflow-gpu", "jax-cuda12-plugin", "onnxruntime-gpu"), ("torch", "jax")),
        ("compiles-at-run-time", ("jax", "jax-cuda13-plugin", "cupy-cuda12x", "amd-cupy"), ("torch", "onnxruntime")),
        (
            "builds-listed",
            ("tensorflow", "tensorflow-gpu", "onnxruntime-gpu", "ctranslate2"),
            ("paddlepaddle-gpu", "jaxlib"),
        ),
        ("compiles-with-xla", ("jax", "tensorflow"), ("torch", "cupy", "tensorflow-cpu")),
        ("no-gpu-on-windows", ("tensorflow", "tensorflow-intel", "jaxlib", "vllm"), ("torch", "tensorflow-cpu")),
        ("own-kernels", ("flash-attn", "xformers", "transformer-engine-cu12", "vllm"), ("torch", "triton", "cupy")),
        ("needs-its-kernels", ("flash-attn-3", "vllm", "transformer-engine-cu13"), ("flash-attn", "xformers")),
        ("compiles-where-it-runs", ("deepspeed", "gsplat", "tinycudann"), ("torch", "flash-attn")),
        ("toolkit-of-torch", ("deepspeed",), ("gsplat", "exllamav2")),
        ("needs-compiled-parts", ("flash-attn", "torchvision", "bitsandbytes"), ("xformers", "torch")),
        ("loses-compiled-parts", ("xformers",), ("flash-attn", "torchvision")),
        ("compiled-by-pip", ("flash-attn", "transformer-engine-torch"), ("xformers", "vllm")),
        ("cuda-of-torch", ("torchvision", "torchaudio"), ("xformers", "torch")),
        ("distributes-torch", ("torch", "pytorch-gpu"), ("torchvision", "torch-tensorrt", "pytorch-cuda")),
        ("released-with-torch", ("torchvision", "torch-tensorrt", "triton"), ("torch", "xformers", "flash-attn")),
        ("on-torch-index", ("torchaudio", "xformers"), ("torchtext", "flash-attn", "triton")),
        ("chooses-cuda-of-torch", ("pytorch-cuda", "cudatoolkit"), ("pytorch", "cpuonly", "cuda-toolkit")),
        ("refuses-other-numpy", ("numba",), ("torch", "numba-cuda")),
        ("binary-interface", ("numpy", "torch"), ("scipy", "transformers", "cupy-cuda12x", "pandas")),
        ("for-a-part", ("triton", "nvidia-cudnn-cu12", "nvidia-cusparselt"), ("torch", "nvidia-nccl-cu12", "cudnn")),
        ("part-for-cuda", ("jax-cuda12-plugin", "jax-cuda13-pjrt"), ("jax", "jaxlib", "cupy-cuda12x")),
        ("brings-cuda", ("nvidia-cuda-nvcc", "cuda-toolkit", "cuda-libraries"), ("cuda-python", "cuda-bindings")),
        ("has-cuda-provider", ("onnxruntime-gpu", "ort-nightly-gpu"), ("onnxruntime", "onnxruntime-directml")),
        (
            "shares-its-folder",
            ("onnxruntime-gpu", "tensorflow-intel", "cupy-cuda12x", "pytorch-triton-rocm", "faiss-gpu-cu12"),
            ("onnxruntime-extensions", "tensorflow-io", "cupy-xarray", "tritonclient", "torch"),
        ),
        ("refuses-older-cudnn", ("torch", "jaxlib", "intel-tensorflow", "tf-nightly"), ("onnxruntime-gpu", "cupy")),
    ],
)
def test_the_traits_of_frameworks(trait: Trait, with_it: tuple[str, ...], without: tuple[str, ...]) -> None:
    matrix = load_matrix()
    assert [name for name in with_it if not matrix.has_trait(name, trait)] == []
    assert [name for name in without if matrix.has_trait(name, trait)] == []


def test_no_module_lists_the_names_again() -> None:
    named = {(name.removesuffix("*"), row.project) for row in load_matrix().traits for name in row.names}
    project_of = dict(named)
    assert len(project_of) == len(named), "a name belongs to one project, whatever the order of the rows"
    of_one_row = [{name.removesuffix("*") for name in row.names} for row in load_matrix().traits]
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for texts in _collections(ast.parse(path.read_text()))
        if len({project_of[text] for text in texts & project_of.keys()}) > 1
        or any(len(texts & names) > 1 for names in of_one_row)
    }
    assert found == set(OF_OTHERS)


def _collections(tree: ast.Module) -> Iterator[set[str]]:
    """The texts that stand in each collection."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            yield {str(each.value) for each in node.elts if isinstance(each, ast.Constant)}
        elif isinstance(node, ast.Dict):
            yield {str(each.value) for each in node.keys if isinstance(each, ast.Constant)}
