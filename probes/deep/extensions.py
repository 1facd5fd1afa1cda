"""Extensions of PyTorch, and smaller frameworks, each imported and put to work in a process of its own."""

from __future__ import annotations

from ..kit.out import Out
from ..kit.tree import Tree
from ..trials.small import ON_TORCH, OTHERS
from ..trials.trial import attempt

PROBE = {
    "title": "Extensions and smaller frameworks, imported and run",
    "kind": "deep",
    "seconds": 180.0,
    "uses": "gpu",
    "tries": [
        "torchvision",
        "torchaudio",
        "flash-attn",
        "flash-attn-3",
        "xformers",
        "bitsandbytes",
        "transformer-engine*",
        "vllm",
        "deepspeed",
        "torch-tensorrt",
        "apex",
        "paddlepaddle*",
        "mxnet*",
        "ctranslate2",
        "llama-cpp-python",
    ],
    "scopes": ["env"],
    "fills": ["environments.frameworks.trial"],
}


def collect(tree: Tree, out: Out) -> None:
    """Send how it went, as the trial of the framework that the request names."""
    name = tree.request["framework"]["name"]
    subjects = {**ON_TORCH, **OTHERS}
    longest = max((start for start in subjects if name.startswith(start)), key=len, default=None)
    if longest is None:
        out.absent(f"it is not known how to try {name}")
        return
    attempt(tree, out, subjects[longest])
