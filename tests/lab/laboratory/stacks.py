"""Sets of real wheels that go together: what a resolver installs, pinned."""

PURE = (
    "filelock==4.2.11", "fsspec==2026.9.0", "jinja2==3.1.6", "markupsafe==3.0.4", "mpmath==1.3.0", "networkx==3.6.1",
    "typing-extensions==4.16.0",
)  # fmt: skip

NVIDIA_12 = (
    "nvidia-cublas-cu12==12.4.5.8", "nvidia-cuda-cupti-cu12==12.4.127", "nvidia-cuda-nvrtc-cu12==12.4.127",
    "nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cudnn-cu12==9.1.0.70", "nvidia-cufft-cu12==11.2.1.3",
    "nvidia-curand-cu12==10.3.5.147", "nvidia-cusolver-cu12==11.6.1.9", "nvidia-cusparse-cu12==12.3.1.170",
    "nvidia-nccl-cu12==2.21.5", "nvidia-nvjitlink-cu12==12.4.127", "nvidia-nvtx-cu12==12.4.127",
)  # fmt: skip

NUMPY = "numpy==2.2.6"

TORCH_12 = (*PURE, *NVIDIA_12, "sympy==1.13.1", "triton==3.1.0", "torch==2.5.1", NUMPY)
"""PyTorch as PyPI has it for CUDA 12.4."""

TORCH_13 = (
    *PURE, "cuda-bindings==13.5.0", "cuda-pathfinder==1.9.0", "cuda-toolkit==13.0.2", "nvidia-cublas==13.1.0.3",
    "nvidia-cuda-cupti==13.0.85", "nvidia-cuda-nvrtc==13.0.88", "nvidia-cuda-runtime==13.0.96",
    "nvidia-cudnn-cu13==9.19.0.56", "nvidia-cufft==12.0.0.61", "nvidia-cufile==1.15.1.6", "nvidia-curand==10.4.0.35",
    "nvidia-cusolver==12.0.4.66", "nvidia-cusparse==12.6.3.3", "nvidia-cusparselt-cu13==0.8.0",
    "nvidia-nccl-cu13==2.28.9", "nvidia-nvjitlink==13.0.88", "nvidia-nvshmem-cu13==3.4.5", "nvidia-nvtx==13.0.85",
    "setuptools==81.0.0", "sympy==1.14.0", "triton==3.6.0", "torch==2.11.0", NUMPY,
)  # fmt: skip
"""PyTorch as PyPI has it for CUDA 13.0."""

CUPY = (
    "cupy-cuda12x==14.2.0",
    "cuda-pathfinder==1.9.0",
    *(each for each in NVIDIA_12 if not any(name in each for name in ("cudnn", "cupti", "nccl", "nvtx"))),
    NUMPY,
)

JAX_CPU = ("jax==0.6.2", "jaxlib==0.6.2", "ml-dtypes==0.5.3", "opt-einsum==3.4.0", "scipy==1.15.3", NUMPY)

JAX_12 = (
    *JAX_CPU, "jax-cuda12-plugin==0.6.2", "jax-cuda12-pjrt==0.6.2",
    *(each for each in NVIDIA_12 if "cudnn" not in each and "nvtx" not in each), "nvidia-cuda-nvcc-cu12==12.9.86",
    "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nvshmem-cu12==3.3.9",
)  # fmt: skip

_JAX_7 = ("jax==0.7.2", "jaxlib==0.7.2", "ml-dtypes==0.5.3", "opt-einsum==3.4.0", "scipy==1.15.3", NUMPY)

JAX_13 = (
    *_JAX_7,
    "jax-cuda13-plugin==0.7.2",
    "jax-cuda13-pjrt==0.7.2",
    *(each for each in TORCH_13 if each.startswith("nvidia-") and not any(
        name in each for name in ("cufile", "curand", "cusparselt", "nvtx"))),
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
)  # fmt: skip

JAX_12_THEN_13 = (
    *(each for each in JAX_12 if each.startswith("nvidia-")),
    "jax-cuda12-plugin==0.7.2",
    "jax-cuda12-pjrt==0.7.2",
    *JAX_13,
)

JAX_7_FOR_12 = (
    *_JAX_7,
    "jax-cuda12-plugin==0.7.2",
    "jax-cuda12-pjrt==0.7.2",
    *(each for each in JAX_12 if each.startswith("nvidia-")),
)

JAX_13_THEN_12 = (*(each for each in JAX_13 if each.startswith(("nvidia-", "jax-"))), *JAX_7_FOR_12)

CUPY_OF_NUMPY_1 = ("cupy-cuda12x==13.0.0", "fastrlock==0.8.3", *CUPY[2:-1])
"""CuPy from before NumPy 2, which finds the wheels by LD_LIBRARY_PATH alone; without a NumPy."""

TORCH_CPU = (*PURE, "setuptools==81.0.0", "sympy==1.14.0", "torch==2.13.0", NUMPY)

ONNX = (
    "onnxruntime-gpu==1.20.2", "coloredlogs==15.0.1", "humanfriendly==10.0", "flatbuffers==25.9.23",
    "packaging==25.0", "protobuf==6.33.0", "sympy==1.14.0", "mpmath==1.3.0", *NVIDIA_12[:-1], NUMPY,
)  # fmt: skip
"""ONNX Runtime with all that it loads, where LD_LIBRARY_PATH leads to the wheels."""

NUMBA = (
    "numba==0.61.2", "numba-cuda==0.20.1", "llvmlite==0.44.0", "cuda-bindings==12.9.4", "cuda-core==0.3.2",
    "cuda-pathfinder==1.9.0", "nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-cuda-nvrtc-cu12==12.9.86",
    "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-nvjitlink-cu12==12.9.86", NUMPY,
)  # fmt: skip
