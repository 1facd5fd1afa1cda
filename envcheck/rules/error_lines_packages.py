"""Error lines about Python packages and extensions that do not fit together."""

from __future__ import annotations

from envcheck.rules.error_line import ErrorLine, said

_TORCHS_SYMBOL = r"_Z(?:T[VIST])?N[rVKRO]*(?:2at|3c10|5torch|6caffe2)"
_EXTENSION = (
    r"(?:flash_attn\w*|flashinfer\w*|xformers|exllama\w*|apex\w*|amp_C|fused_\w+|torch_(?:scatter|sparse|cluster|spline_conv)|"
    r"lib(?:pyg|scatter|sparse)|mmcv\w*|detectron2|selective_scan_cuda|causal_conv1d_cuda|mamba\w*|transformer_engine\w*|"
    r"bitsandbytes\w*|natten\w*|awq\w*|gptq\w*|vllm|deepspeed\w*|pytorch3d|MultiScaleDeformableAttention)"
)
"""Extensions of PyTorch by the names of their modules or libraries."""
_FAMILY = r"(?:torchvision|torchaudio|torchtext|torch_tensorrt)"
_PINS = (
    r"(?:requires|has requirement) (?:py)?torch\s?\(?==(?P<minor>\d+\.\d+)\b.*"
    r"but you(?:'ll)? have (?:py)?torch (?!(?P=minor)(?!\d))"
)
"""What pip says of a pinned PyTorch of another minor version; another last number mostly works."""
_REMOVED = (
    r"(?:bool8?|int0?|float_?|complex_?|object0?|str0?|long|unicode_?|string_|cfloat|longfloat|singlecomplex|NaN|Inf|"
    r"Infinity|infty|NINF|PINF|NZERO|PZERO|row_stack|in1d|trapz|product|cumproduct|sometrue|alltrue|round_|asfarray|"
    r"msort|find_common_type|obj2sctype|sctypes|sctype2char|issctype|cast|source|recfromcsv|recfromtxt|safe_eval|"
    r"asscalar|typeDict|set_string_function|byte_bounds|compat|mat|_no_nep50_warning)"
)
"""What releases of NumPy removed from its namespace."""

_FORMAT = r"(?:bfloat16|bf16|fp8|float8\w*|MXFP4|NVFP4)"
_NO_WAY_AROUND = r"^(?!.*\b(?:CPU|MPS|XPU|AMD|ROCm|fall(?:s|ing)? ?back|fallback|casting|instead|will use)\b)"
"""A line that goes on with something else is a remark, and one about another processor none of ours."""

PACKAGES: tuple[ErrorLine, ...] = (
    *said(
        "framework-ran",
        "torch-family-mismatch",
        r"operator torchvision::\w+ does not exist",
        r"Couldn't load custom C\+\+ ops\b.*torchvision",
        r"PyTorch and torch(?:vision|audio) (?:were|was) compiled with different CUDA (?:major )?versions",
        rf"\b{_FAMILY} \S+ {_PINS}",
        rf"{_FAMILY}\S*: undefined symbol: {_TORCHS_SYMBOL}",
        r"procedure could not be found\b.*torch(?:vision|audio)",
        r"(?:libtorchaudio|libtorchtext|_torchaudio|_torchtext|torchvision/(?:_C|image))\S*: undefined symbol",
        r"cannot import name '(?:triton_key|AttrsDescriptor|get_cuda_stream)' from 'triton",
        r"\btorch \S+ requires triton==\S+.*but you(?:'ll)? have",
    ),
    *said(
        "framework-ran",
        "extension-built-for-other-torch",
        r"xFormers can't load C\+\+/CUDA extensions",
        r"xFormers was built for:?",
        r"^\W*PyTorch \S+ (?:with CUDA \d+ )?\(you have [\d.]+(?!\S*\+cpu)\S*\)",
        rf"^(?!.*/torch/lib/\S*: undefined).*undefined symbol: {_TORCHS_SYMBOL}",
        rf"{_EXTENSION}\S*(?:: |\s)undefined symbol",
        rf"\b{_EXTENSION}(?:[-\w.]*) \S+ {_PINS}",
        r"symbol not found\b.*(?:c10|libtorch)|procedure could not be found\b.*flash_attn",
        r"is compiled (?:with|against|for) (?:py)?torch \S+,? (?:but|while|and)\b",
    ),
    *said(
        "framework-ran",
        "extension-binary-missing",
        r"No module named ['\"]?(?:flash_attn(?:_2)?_cuda|flash_attn_3(?:_cuda)?\._C|vllm\._C|exllamav2_ext|"
        r"exllama_kernels|amp_C|fused_layer_norm_cuda|selective_scan_cuda|causal_conv1d_cuda|mmcv\._ext|detectron2\._C|"
        r"pytorch3d\._C|transformer_engine_(?:torch|extensions)|xformers\._C)",
        r"Configured CUDA binary not found at|Required library version not found: libbitsandbytes_cuda\d+",
        r"libbitsandbytes_cuda\d+\S*: cannot open shared object file",
        r"Could not find the bitsandbytes CUDA binary",
        r"xFormers (?:wasn't|was not) build? with CUDA support",
    ),
    *said(
        "framework-ran",
        "cupy-multiple-packages",
        r"multiple CuPy packages are installed in your environment",
        status="warn",
    ),
    *said(
        "framework-ran",
        "jax-plugin-mismatch",
        r"\bplugin \S+ version \S+ is installed, but it is not compatible with the installed jaxlib",
        r"jaxlib (?:version )?\S+ is newer than and incompatible with jax(?: version)? ",
        r"jaxlib is version \S+, but this version of jax requires version",
        r"No FFI handler registered for \S+.*\bplatform CUDA",
        r"Mismatched PJRT plugin PJRT API version|PJRT_Api\b.*(?:version|size) mismatch",
        r"(?:ALREADY_EXISTS|already (?:been )?registered)\b.*PJRT_Api|PJRT_Api already exists",
    ),
    *said(
        "framework-ran",
        "numpy-abi-mismatch",
        r"module that was compiled using NumPy 1\.x cannot be run in",
        r"\b_ARRAY_API not found",
        r"module compiled against (?:ABI|API) version 0x\w+ but this version of numpy is",
        r"numpy\.(?:dtype|ndarray|ufunc|random\.\S+) size changed, may indicate binary incompatibility",
        r"numpy\.core\.multiarray failed to import",
        rf"module 'numpy' has no attribute '{_REMOVED}'",
        r"`np\.\w+` was removed in the NumPy \d",
        r"Numba needs NumPy \S+ or (?:less|greater)",
        r"RuntimeError: Numpy is not available",
        r"No module named 'numpy\._core",
    ),
    *said(
        "framework-ran",
        "glibc-too-old",
        r"lib(?:c|m|pthread|dl|rt)\.so\.\d+: version [`'\"]?GLIBC_[\d.]+['\"`]? not found",
        r"version [`'\"]?GLIBC_2\.[\d.]+['\"`]? not found",
    ),
    *said(
        "framework-ran",
        "libstdcxx-too-old",
        r"version [`'\"]?(?:GLIBCXX|CXXABI)_[\d.]+['\"`]? not found",
    ),
    *said(
        "framework-ran",
        "gpu-feature-unsupported",
        rf"{_NO_WAY_AROUND}.*FlashAttention(?:-\d)? (?:forward |backward )?only supports? \w+.{{0,40}}GPUs?",
        rf"{_NO_WAY_AROUND}.*{_FORMAT}\b.{{0,60}}\b(?:only supported|not supported|requires?|unsupported)\b"
        r".{0,80}(?:compute capability|\bsm_?\d\d|\bGPUs?\b|Ampere|Hopper|Ada|Blackwell)",
        rf"{_NO_WAY_AROUND}.*(?:doesn't|does not|not) support (?:torch\.)?{_FORMAT}",
        rf"{_NO_WAY_AROUND}.*(?:quantization method|kernel|{_FORMAT})\b.*"
        r"(?:is not supported for the current GPU|minimum capability)",
        rf"{_NO_WAY_AROUND}.*(?:requires?|needs?|supports? only|only supports?)\b.{{0,60}}"
        r"\b(?:Ampere|Hopper|Blackwell|Ada)\b.{0,20}(?:GPU|newer|or later)",
        r"Feature '[^']*' (?:requires|not supported on) \.target '?sm_\w+",
        r"torch\._scaled_mm is only supported on",
        r"too old to be supported by the triton GPU compiler",
        r"requires? (?:a )?GPU with (?:compute )?capability (?:>=?|of at least|at least)",
    ),
)
