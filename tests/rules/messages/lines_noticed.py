"""Lines of container managers, kernels and compilers, and sentences about what is gone, loaded or wanted, by problem."""

# ruff: noqa: E501, RUF001  lines as the programs print them, in other scripts too

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "known-bad-release": [
        "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: ptxas 12.3.52 has a bug that we think can affect XLA. Please use a different version.",
    ],
    "gpu-init-failed": [
        "llama.cpp: cuCtxCreate failed with error 999",
        'level=WARN msg="error looking up nvidia GPU memory" error="cuda driver library failed to get device context 999"',
    ],
    "gpu-memory-exhausted": [
        "cuda driver library failed to get device context 2",
        "cuda driver library device memory info lookup failure 2",
    ],
    "secure-boot-blocks-module": [
        "modprobe: ERROR: could not insert 'nvidia_modeset': Operation not permitted with kernel lockdown = integrity",
    ],
    "driver-not-loaded": [
        "insmod: ERROR: could not insert module nvidia.ko: Operation not permitted",
    ],
    "cpu-only-build": [
        "torch-2.2.2+cpu: не видит CUDA",
        "torch 2.3.1+cpu 检测不到 GPU",
        "torch 2.8.0+cpu, cuda available: False on a machine with a supported GPU",
        "Die GPU wird von torch 2.5.0+cpu nicht erkannt",
        "torch 2.1.0+cpu no detecta la GPU",
        "torch 2.1.0+cpu não detecta a GPU",
        "torch 2.1.0+cpu ne détecte pas la carte graphique",
        "torch 2.1.0+cpu でGPUが認識されない",
    ],
    "system-library-missing": [
        "Could not locate zlibwapi.dll. Please make sure it is in your library path!",
        "The code execution cannot proceed because VCRUNTIME140_1.dll was not found.",
        "由于找不到 zlibwapi.dll，无法继续执行代码。",
    ],
    "container-toolkit-missing": [
        "    NVRM Version:",
        "Error: Failed preparing container for start: The NVIDIA container tools couldn't be found",
    ],
    "gpu-lost": [
        "node17 has lost a GPU",
        "nvidia-smi only shows 7 of the 8 H100 since this morning",
        "Node n3 sees just 3 of its 4 V100 cards in nvidia-smi",
        "One of our four A6000 no longer appears in nvidia-smi",
        "GPU 5 is gone from nvidia-smi, the other seven are there",
        "nvidia-smi lists 7 GPUs, 8 are installed",
        "a GPU dropped out of the server gpu05",
        "One of the four RTX 2080 Ti cards has vanished from nvidia-smi",
    ],
    "cuda-library-missing": [
        "The wheel requires libcudnn.so.8",
    ],
    "library-not-found": [
        "Failed to dlopen libcuda.so, and libcuda.so.1 is listed in the cache",
    ],
    "driver-not-installed": ["RuntimeError: Failed to dlopen libcuda.so"],
    "torch-family-mismatch": [
        "torch 2.1.0a0+41361538.nv23.06: unable to load torchaudio",
    ],
    "extension-built-for-other-torch": [
        "with torch built from source: _ext undefined symbol",
    ],
}
