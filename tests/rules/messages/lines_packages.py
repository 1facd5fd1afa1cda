"""Lines in the shape of public reports, for the rows of ``errors.toml``."""

EXAMPLES: dict[str, list[str]] = {
    "torch-family-mismatch": [
        "RuntimeError: operator torchvision::nms does not exist",
        (
            "RuntimeError: Couldn't load custom C++ ops. This can happen if your PyTorch and torchvision versions are "
            "incompatible"
        ),
        (
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA versions. "
            "PyTorch has CUDA Version=12.1 and torchvision has CUDA Version=11.8."
        ),
        "RuntimeError: Detected that PyTorch and TorchAudio were compiled with different CUDA versions.",
        "torchvision 0.15.0+cu117 requires torch==2.0.0, but you have torch 1.13.1 which is incompatible.",
        "ERROR: torchaudio 2.0.0 has requirement torch==2.0.0, but you'll have torch 1.13.1+cu117.",
        "OSError: /v/site-packages/torchvision/_C.so: undefined symbol: _ZN3c104impl23ExcludeDispatchKeyGuardC1E",
        "[WinError 127] The specified procedure could not be found. Error loading torchvision\\_C.pyd",
        "OSError: /v/torchaudio/lib/libtorchaudio.so: undefined symbol: aoti_torch_x",
        "ImportError: cannot import name 'triton_key' from 'triton.compiler.compiler' (/v/triton/compiler/compiler.py)",
        "torch 2.5.1 requires triton==3.1.0, but you have triton 3.3.0 which is incompatible.",
    ],
    "extension-built-for-other-torch": [
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:",
        "    xFormers was built for:",
        "    PyTorch 2.0.1 (you have 2.1.0+cu121)",
        "    PyTorch 2.0.0+cu118 with CUDA 1108 (you have 1.13.1+cu117)",
        "ImportError: /v/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
        "ImportError: /v/my_ops.so: undefined symbol: _ZNK2at6Tensor7is_cudaEv",
        "ImportError: flash_attn_2_cuda undefined symbol",
        "xformers 0.0.20 requires torch==2.0.1, but you have torch 2.1.0 which is incompatible.",
        "vllm 0.6.3 requires torch==2.4.0, but you have torch 2.5.1+cu124 which is incompatible.",
        "ImportError: dlopen(/v/mmcv/_ext.so, 0x0002): symbol not found in flat namespace '__ZN3c106detail'",
        ("ImportError: DLL load failed: The specified procedure could not be found, flash_attn"),
        "MMCV is compiled with torch 1.9.0, but the installed one is 2.0.0",
    ],
    "extension-binary-missing": [
        "ModuleNotFoundError: No module named 'flash_attn_2_cuda'",
        "Failed to import from vllm._C with ModuleNotFoundError(\"No module named 'vllm._C'\")",
        "Configured CUDA binary not found at /v/bitsandbytes/libbitsandbytes_cuda130.so",
        "OSError: libbitsandbytes_cuda117.so: cannot open shared object file: No such file or directory",
        "Could not find the bitsandbytes CUDA binary at PosixPath('/v/bitsandbytes/libbitsandbytes_cuda126.so')",
        "    xFormers wasn't build with CUDA support",
    ],
    "cupy-multiple-packages": [
        "  CuPy may not function correctly because multiple CuPy packages are installed in your environment:"
    ],
    "jax-plugin-mismatch": [
        (
            "RuntimeWarning: JAX plugin jax_cuda12_plugin version 0.9.2 is installed, but it is not compatible with "
            "the installed jaxlib version 0.9.0.1, so it will not be used."
        ),
        "RuntimeError: jaxlib version 0.4.30 is newer than and incompatible with jax version 0.4.26.",
        "RuntimeError: jaxlib is version 0.4.16, but this version of jax requires version >= 0.4.23.",
        "INVALID_ARGUMENT: No FFI handler registered for cusolver_getrf_ffi on a platform CUDA",
        "INTERNAL: Mismatched PJRT plugin PJRT API version (0.55) and framework PJRT API version 0.67).",
        "ALREADY_EXISTS: PJRT_Api already exists for device type cuda",
    ],
    "numpy-abi-mismatch": [
        "A module that was compiled using NumPy 1.x cannot be run in",
        "AttributeError: _ARRAY_API not found",
        "RuntimeError: module compiled against API version 0xe but this version of numpy is 0xd",
        "RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000",
        (
            "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, "
            "got 88 from PyObject"
        ),
        "ImportError: numpy.core.multiarray failed to import",
        "AttributeError: module 'numpy' has no attribute 'row_stack'",
        "AttributeError: module 'numpy' has no attribute 'bool'.",
        "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.",
        "ImportError: Numba needs NumPy 2.2 or less. Got NumPy 2.3.",
        "RuntimeError: Numpy is not available",
        "ModuleNotFoundError: No module named 'numpy._core'",
    ],
    "glibc-too-old": [
        "OSError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.33' not found (required by libpyg.so)",
        "ImportError: /lib64/libm.so.6: version `GLIBC_2.27' not found (required by libcurand.so.10)",
        "version 'GLIBC_2.34' not found",
    ],
    "libstdcxx-too-old": [
        "ImportError: /opt/gcc/lib64/libstdc++.so.6: version `GLIBCXX_3.4.21' not found (required by _pywrap.so)",
        "ImportError: /lib64/libstdc++.so.6: version `CXXABI_1.3.8' not found",
    ],
    "gpu-feature-unsupported": [
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.",
        "ValueError: Your setup doesn't support bf16/gpu.",
        "ValueError: The quantization method awq_marlin is not supported for the current GPU. Minimum capability: 80.",
        "RuntimeError: FP8 is not supported on this GPU: it needs Ada or Hopper",
        "RuntimeError: this kernel requires Hopper GPUs",
        "ptxas error   : Feature 'movmatrix' requires .target sm_75 or higher",
        "RuntimeError: torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9",
        "Found Tesla P100 which is too old to be supported by the triton GPU compiler",
        "RuntimeError: the kernel requires a GPU with capability >= 8.9",
    ],
}

HARMLESS = [
    "torchvision 0.20.0 requires torch==2.5.0, but you have torch 2.5.1 which is incompatible.",
    "xformers 0.0.28.post3 requires torch==2.5.1, but you have torch 2.5.0 which is incompatible.",
    "torchmetrics 1.0 requires torch==2.5.1, but you have torch 2.4.0 which is incompatible.",
    "Your device 'Tesla T4' (with compute capability 7.5) doesn't support torch.bfloat16. Falling back",
    "Cannot use FlashAttention-2 backend for Volta and Turing GPUs.",
    "INFO: bfloat16 is not supported on this GPU, using float16 instead",
    "this CPU does not support bf16",
    "torchvision/image.so: failed to load image Python extension",
    "AttributeError: module 'numpy' has no attribute 'my_own_function'",
    "AttributeError: partially initialized module 'numpy' has no attribute 'array' (circular import)",
    "ImportError: /v/torch/lib/libtorch_python.so: undefined symbol: _ZN2at4_ops5empty4callE",
    "ModuleNotFoundError: No module named 'flash_attn'",
    "jax 0.4.30, jaxlib 0.4.30",
    "undefined symbol: PyUnicode_AsUTF8",
]
"""What other problems print too, or what is a remark."""
