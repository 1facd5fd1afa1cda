"""Lines of container managers, kernels and compilers, and sentences about what is gone, loaded or wanted, by problem."""

# ruff: noqa: E501, RUF001  lines as the programs print them, in other scripts too

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "known-bad-release": [
        "worker3:412:455 [1] NCCL INFO ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856",
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
        "modprobe: ERROR: could not insert 'nvidia_modeset': Operation not permitted with kernel lockdown = integrity"
    ],
    "driver-not-loaded": ["insmod: ERROR: could not insert module nvidia.ko: Operation not permitted"],
    "cpu-only-build": [
        "No GPU/TPU found, falling back to CPU. The job is on a GPU node",
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
    "jit-compiler-too-old": [
        "ptx_compiler_helpers.cc:88] *** WARNING *** Invoking ptxas with version 12.4.131, which corresponds to a CUDA version <=12.6.2.",
        "CUDA versions 12.x.y up to and including 12.6.2 miscompile certain edge cases around clamping.",
    ],
    "driver-too-old": [
        'library=/usr/lib64/libcuda.so.440.33.01 error="symbol lookup for cuCtxCreate_v3 failed"',
        "The procedure entry point cuGreenCtxCreate could not be located in the dynamic link library C:\\Windows\\System32\\nvcuda.dll.",
        "nvcuda.dll of this machine does not export cuGetProcAddress_v2",
        "Unable to load cudart library libcudart.so.12.4.99: your nvidia driver is too old or missing.",
    ],
    "gpu-unsupported-by-driver": ["The NVIDIA driver 570.86 ignores my GTX 780 at boot"],
    "peer-access-blocked": [
        "b.to(1): tensor([2.8026e-45, 0.0000e+00], device='cuda:1'), b.cpu().to(1): tensor([2., 4.], device='cuda:1')",
        "b.to(1): tensor([0., 0., 0.], device='cuda:1'), b.cpu().to(1): tensor([2., 4., 6.], device='cuda:1')",
        "a tensor copied to GPU 1 is garbage, through the host it is right",
        "b.to('cuda:1') is all zeros, through the CPU it is right",
        "A copy from GPU 0 to GPU 1 gives NaNs",
        "tensors that go between the two GPUs arrive corrupted",
        "all_gather_perf -g 4 hangs on an EPYC server",
    ],
    "library-shadowed": [
        "LD_LIBRARY_PATH names cuDNN 8.9, MXNet still loads cuDNN 7.6 of /usr/local/cuda",
        "LD_LIBRARY_PATH is set, the system's cublas of 10.2 is still loaded",
        "Theano still uses the old cuDNN",
        "JitifyException: Runtime compilation failed, with both CUDA versions in PATH",
    ],
    "builds-over-each-other": [
        "tensorflow==1.15.0 is there, and tensorflow-gpu runs only on the CPU",
        "tensorflow==1.13.1 beside tensorflow-gpu: only the CPU is used",
    ],
    "cuda-major-mismatch": ["the wheels are built for cuDNN 9, but 4.5.0 still depends on cuDNN 8"],
    "driver-older-than-toolkit": [
        "the CUDA driver version differs from the CUDA runtime version",
        "The CUDA toolkit is newer than the driver",
    ],
    "no-gpu-visible": ["vllm/config/device.py: RuntimeError: Device string must not be empty"],
    "gpu-code-missing": ["The AllReduce kernel is not compiled for compute capability 7.0"],
    "jax-plugin-mismatch": [
        "ImportError: cannot import name 'mosaic_gpu' from 'jax._src.lib' (/opt/venv/lib/python3.12/site-packages/jax/_src/lib/__init__.py)"
    ],
    "cuda-library-missing": ["The wheel requires libcudnn.so.8"],
    "library-not-found": [
        "INFO 06-01 [__init__.py:248] No platform detected, vLLM is running on UnspecifiedPlatform",
        "RuntimeError: Failed to infer device type, the driver is in /usr/local/nvidia/lib64",
        "/usr/local/nvidia/lib64/libcuda.so.1 is present in the pod",
        "libnvidia-ml.so.1 was not found, the host's driver is in /usr/local/nvidia/lib64",
        "the driver lies in /usr/local/nvidia/lib64, LD_LIBRARY_PATH does not have it",
        "bash: nvidia-smi: command not found, it is /usr/local/nvidia/bin/nvidia-smi",
        "Failed to dlopen libcuda.so, and libcuda.so.1 is listed in the cache",
    ],
    "driver-not-installed": ["RuntimeError: Failed to dlopen libcuda.so"],
    "torch-family-mismatch": ["torch 2.1.0a0+41361538.nv23.06: unable to load torchaudio"],
    "extension-built-for-other-torch": ["with torch built from source: _ext undefined symbol"],
}
