from __future__ import annotations

from envcheck.importers.prose.gpu_names import models
from tests.every import every


@every(
    [
        "a k8s cluster with GPU nodes, CUDA 12",
        "K8s 1.29, GPU Operator",
        "driver 510, CUDA 11.6 on the GPU node",
        "GPU: ION cannon",
        "nvidia 340 is too old for this card",
    ]
)
def test_what_looks_like_an_old_model_is_none(line: str) -> None:
    assert not list(models(line))
