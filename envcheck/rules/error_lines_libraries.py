"""Error lines about CUDA's libraries: the loader, cuDNN, cuBLAS, NCCL, TensorRT, the compilers.

A line that says which library is missing does not say why: what else is known tells that (``libraries_told_apart``).
"""

from __future__ import annotations

from envcheck.rules.error_line import ErrorLine, said, status

_GONE = (
    r"(?:cannot open shared object file|is not found or cannot be loaded|could not (?:be )?(?:found|located?|loaded?)\b"
    r"|not found\b|no such file|cannot be (?:found|loaded)|failed to load|image not found|file too short)"
)
_CANNOT_FIND = r"(?:(?:could not|cannot|can't|unable to|failed to) (?:load|locate|find)(?: any of)?|missing)"
_UNLESS_HARMLESS = r"^(?!.*(?:Unable to register|libibverbs|nccl-net|TF-TRT Warning|ignore above cudart))"
_CUDA = (
    r"(?:cudart|nvrtc(?:-builtins)?|nvJitLink|cublas(?:Lt)?|cusparse(?:Lt)?|cusolver(?:Mg)?|cufftw?|curand|cufile|cupti|"
    r"nvshmem\w*|npp[a-z]{1,6}|nvjpeg|nvToolsExt|cutensor)"
)

_TENSORRT = r"(?:nvinfer|nvonnxparser|nvparsers)(?:_\w+)?"


def _library(family: str) -> str:
    """A library of the family, as Linux or Windows writes it."""
    return rf"\b(?:lib{family}(?:[-.][0-9a-f]{{8}})?\.so|{family}(?:64)?_[\d_]+\.dll)"


def _missing(family: str) -> tuple[str, str]:
    """It is named, and then said to be missing, or the other way round."""
    library = _library(family)
    return (
        rf"{_UNLESS_HARMLESS}.*{library}\S*.{{0,120}}{_GONE}",
        rf"{_UNLESS_HARMLESS}.*\b{_CANNOT_FIND}\b.{{0,80}}{library}",
    )


LIBRARIES: tuple[ErrorLine, ...] = (
    *said(
        "framework-ran",
        "stub-library-loaded",
        r"using the stub version of|CUDA driver is a stub library|CUDA_ERROR_STUB_LIBRARY|cudaErrorStubLibrary",
        r"following libraries are (?:only )?stubs|is a stub(?: library)?\b.*(?:lib\w+\.so|driver)",
        status(34),
    ),
    *said(
        "framework-ran",
        "nvjitlink-mismatch",
        r"undefined symbol: _*nvJitLink|symbol _*nvJitLink\w+.* (?:version libnvJitLink|not defined)",
        r"libnvJitLink\.so\S*: version .* not found",
    ),
    *said(
        "framework-ran",
        "cudnn-mixed-copies",
        r"CUDNN_STATUS_(?:SUBLIBRARY_)?VERSION_MISMATCH",
        r"version libcudnn\w*\.so\S* not defined in file",
        r"libcudnn\w*\.so\S*: undefined symbol|undefined symbol: cudnn\w*,? version libcudnn",
        r"could not load symbol cudnn\w+\W.*undefined symbol",
    ),
    *said(
        "framework-ran",
        "library-shadowed",
        r"cuDNN version incompatibility: PyTorch was compiled\s+against",
        rf"symbol \w+,? version lib{_CUDA}\.so\S* not defined in file",
    ),
    *said(
        "framework-ran",
        "cudnn-too-old",
        r"Loaded runtime CuDNN library: \S+ but source was compiled with",
        r"Found cuDNN version \S+, but JAX was built against version \S+, which is newer",
        r"cuDNN(?: version)? \S+ is (?:too old|older than)",
        r"requires? (?:at least )?cuDNN (?:v|version )?\S+ (?:or (?:newer|later|above)|but)",
        r"CuDNN library (?:needs|must) .*(?:matching|equal or higher)",
    ),
    *said(
        "framework-ran",
        "cuda-library-too-old",
        r"Found \w+ version \S+, but JAX was built against version \S+, which is newer",
        r"cuda(?:rt)? (?:runtime )?version \S+ is older than the (?:version )?.{0,40}(?:built|compiled)",
        r"lib(?:cublas\w*|cusparse|cusolver|cufft|curand|cudart|cupti|nvrtc)\.so\S*: version .* not found",
        r"undefined symbol: \w+,? version lib(?:cublas|cusparse|cusolver|cufft|curand|cudart|cupti|nvrtc)\w*\.so",
    ),
    *said(
        "framework-ran",
        "nccl-version-mismatch",
        r"undefined symbol: p?nccl[A-Z]\w*",
        r"Mismatched NCCL version|NCCL version mismatch|NCCL .{0,40}versions? (?:do|does) not match",
        r"symbol lookup error.*\bp?nccl[A-Z]\w*",
    ),
    *said(
        "framework-ran",
        "nccl-no-interface",
        r"Socket creation failed ?: Address family not supported",
        r"with family \d+ is neither AF_INET",
        r"(?:NCCL|Bootstrap)\b.*\bno (?:usable )?(?:socket )?interfaces? (?:found|available)",
        r"no (?:IP )?(?:socket )?interface found (?:for|starting|with|matching)",
        r"NCCL_SOCKET_IFNAME\b.{0,60}\b(?:no such|not found|does not exist|no match|invalid)",
    ),
    *said(
        "framework-ran",
        "tensorrt-engine-mismatch",
        r"engine plan file is (?:not compatible with|generated on an incompatible)",
        r"Serialized Engine Version|Version tag does not match|safeSerializationVersion",
        r"expecting library version \S+ got \S+",
        r"engine (?:plan )?.{0,40}\b(?:was|were) (?:built|serialized|created|generated) (?:with|by|using) "
        r"(?:a different|another|an? (?:older|newer)) (?:version of )?TensorRT",
    ),
    *said(
        "framework-ran",
        "tensorrt-mixed-versions",
        r"TensorRT (?:library|runtime)? ?version mismatch|TensorRT was compiled against \S+ but (?:linked|loaded)",
        r"lib(?:nvinfer|nvonnxparser)\w*\.so\S*: (?:undefined symbol|version .* not found)",
        r"TensorRT-[\d.]+ but (?:linked|loaded) (?:library |against )?TensorRT",
    ),
    *said(
        "framework-ran",
        "jit-compiler-too-old",
        r"nvrtc: error: invalid value for --gpu-architecture",
        r"ptxas does not support CC",
        r"You are using ptxas \S+, which is older than|ptxas \S+ .{0,60}is known to miscompile",
        r"^(?!.*ptxas application ptx input)(?!.*driver).*Unsupported \.version \S+ ?; current version is",
        r"PTX \.version \S+ does not support \.target",
        r"Value 'sm_\w+' is not defined for option '(?:gpu-name|arch)'",
        r"SM version specified by \.target is higher than default",
        r"'sm_\w+' is not a recognized processor",
        r"libNVVM.*-arch=compute_\w+ is an unsupported option|NVVM_ERROR_INVALID_OPTION",
        r"ptxas (?:version )?\S+ is too old|requires? ptxas (?:version )?\S+ or (?:newer|later|higher)",
    ),
    *said(
        "framework-ran",
        "jit-compiler-missing",
        r"Can't find libdevice directory|libdevice not found at|libdevice(?:\.10\.bc)?\b.{0,40}(?:missing|not found)",
        r"Missing libdevice file|NvvmSupportError|libNVVM cannot be found|libnvvm\.so\S*: cannot open",
        r'Failure finding "libnvvm\.so',
        r"(?:can(?:no|')t|could ?n[o']t|unable to|failed to) (?:find|get|invoke|run|locate) (?:\w+ ){0,2}`?ptxas\b",
        r"Failed to find C compiler\. Please specify via CC|fatal error: Python\.h: No such file or directory",
        r"\bptxas\b\S*: (?:command )?not found|No such file or directory: '?\S*ptxas|No PTX compilation provider",
    ),
    *said(
        "framework-ran",
        "toolkit-lacks-gpu",
        r"nvcc fatal\s*: (?:Unsupported gpu architecture|Value '(?:sm|compute)_\w+' is not defined)",
        r"Unknown CUDA arch \(\S+\) or GPU not supported",
    ),
    *said(
        "framework-ran",
        "toolkit-differs-from-build",
        r"detected CUDA version \(\S+\) mismatches the version that was used to compile",
        r"Installed CUDA version \S+ does not match the version torch was compiled with",
        r"(?:being )?compiled with a version of Cuda that does\s+not match the version used to compile Pytorch",
        r"nvcc version \S+ (?:does not|doesn't) match .{0,40}(?:torch|built)",
    ),
    *said(
        "framework-ran",
        "toolkit-missing",
        r"CUDA_HOME (?:environment variable )?(?:is not set|does not exist|not found)",
        r"\bnvcc(?:\.exe)?['\"]?: (?:command )?not found|No such file or directory: '?\S*nvcc|'nvcc' is not recognized",
        r"No CUDA toolset found|CUDA_TOOLKIT_ROOT_DIR not found|Could not find (?:a )?CUDA ?toolkit",
        r"(?:could not|cannot|can't|failed to|unable to) (?:find|locate|detect) (?:the )?`?nvcc\b",
        r"nvcc was not found|Failed to find nvcc|Are you sure your environment has nvcc available",
        r"Failed to detect a default CUDA architecture|No CMAKE_CUDA_COMPILER could be found",
    ),
    *said(
        "framework-ran",
        "cuda-library-missing",
        rf"dso_loader\.cc.*{_library(_CUDA)}\S*.{{0,120}}{_GONE}",
        status="warn",
    ),
    *said("framework-ran", "cudnn-missing", *_missing(r"cudnn(?:_\w+?)?"), r"Cannot load cudnn shared library"),
    *said(
        "framework-ran",
        "cudnn-missing",
        r"cuDNN (?:library )?(?:was|is) not (?:found|installed|available)|Could not locate cudnn",
        r"Make sure that libcudnn\w*\.so\S* is in your library path",
    ),
    *said(
        "framework-ran",
        "tensorrt-missing",
        rf"^(?!.*dso_loader)(?!.*TF-TRT).*{_library(_TENSORRT)}\S*.{{0,120}}{_GONE}",
        r"Please install TensorRT libraries as mentioned",
    ),
    *said(
        "framework-ran",
        "nccl-missing",
        *_missing("nccl"),
        r"Failed to load NCCL library|NCCL (?:library )?(?:was|is) not (?:found|installed)",
    ),
    *said("framework-ran", "cuda-library-missing", *_missing(_CUDA)),
    *said(
        "framework-ran",
        "library-not-found",
        r"operation cu\w+Get(?:Property|Version)\(.*The cu\w+ library was not found",
        r"The cu(?:SPARSE|BLAS|SOLVER|FFT|RAND) library was not found",
        r"Cannot dlopen some GPU libraries",
        r"error 126 .*(?:onnxruntime_providers_cuda|cudnn|cublas|cudart)\w*\.dll",
        r"Failed to create CUDAExecutionProvider",
        r"Require cuDNN \S+ and CUDA \S+",
    ),
)
