"""Constructed machines whose libraries, wheels and compilers fit together, or do not, and what rules say of each."""

from typing import Any

from envcheck.model.snapshot import Distribution, Framework, Library, Listing, Load, Snapshot, Toolkit, Trial
from tests.rules.machines import UBUNTU, VENV, but, machine, torch, variables, venv, with_venv

Case = tuple[str, str, Snapshot, tuple[str, ...]]

SITE = f"{VENV}/lib/python3.12/site-packages"
TORCH_LIB = f"{SITE}/torch/lib/libtorch_cuda.so"
OLD = "/opt/modules/cuda/lib64"
MINE = (
    "cuda-library-missing", "library-not-found", "library-shadowed", "cuda-library-too-old", "stub-library-loaded",
    "library-lacks-symbols", "nvjitlink-mismatch", "nvidia-wheel-conflict", "cuda-major-mismatch", "cudnn-missing",
    "cudnn-major-mismatch", "cudnn-too-old", "cudnn-mixed-copies", "tensorrt-missing", "tensorrt-mixed-versions",
    "nccl-missing", "nccl-version-mismatch", "jit-compiler-too-old", "jit-compiler-missing", "toolkit-lacks-gpu",
    "toolkit-missing", "toolkit-differs-from-build",
)  # fmt: skip


def wheel_path(folder: str, name: str) -> str:
    return f"{SITE}/nvidia/{folder}/lib/{name}"


def load(name: str, path: str | None = None, version: str | None = None, **changes: Any) -> Load:
    known = Load(
        source=f"elf {TORCH_LIB}", name=name, needed_by=TORCH_LIB, path=path, version=version,
        found_by="rpath" if path else None,
    )  # fmt: skip
    return but(known, **changes)


def copy(path: str, family: str, version: str, **changes: Any) -> Library:
    name = path.rpartition("/")[2]
    inside = path.startswith(VENV)
    known = Library(
        source=f"elf {path}", path=path, family=family, soname=name, on_disk=version,
        origin="wheel" if inside else "system", environment=VENV if inside else None,
    )  # fmt: skip
    return but(known, **changes)


CUDNN = load("libcudnn.so.9", wheel_path("cudnn", "libcudnn.so.9"), "9.1.0.70")
OPS = load("libcudnn_ops.so.9", wheel_path("cudnn", "libcudnn_ops.so.9"), "9.1.0.70")
GRAPH = load("libcudnn_graph.so.9", wheel_path("cudnn", "libcudnn_graph.so.9"), "9.1.0.70")
NCCL = load("libnccl.so.2", wheel_path("nccl", "libnccl.so.2"), "2.21.5")
CUBLAS = load("libcublas.so.12", wheel_path("cublas", "libcublas.so.12"), "12.4.5.8")
CUSPARSE = load("libcusparse.so.12", wheel_path("cusparse", "libcusparse.so.12"), "12.3.1.170")
JITLINK = load("libnvJitLink.so.12", wheel_path("nvjitlink", "libnvJitLink.so.12"), "12.4.127")
JITLINK_13 = load("libnvJitLink.so.13", f"{VENV}/nvidia/cu13/lib/libnvJitLink.so.13", "13.0.88")
SOUND = (CUDNN, OPS, NCCL, CUBLAS, CUSPARSE, JITLINK)
PINS = ("nvidia-cudnn-cu12==9.1.0.70", "nvidia-nccl-cu12==2.21.5", "nvidia-cublas-cu12==12.4.5.8")


def pytorch(*loads: Load, **changes: Any) -> Framework:
    """PyTorch with these loads in place of its own of those names."""
    names = {each.name for each in loads}
    kept = tuple(each for each in SOUND if each.name not in names)
    known = torch(cudnn="9.1.0", nccl="2.21.5", requires=PINS, loads=(*kept, *loads), loads_complete=True)
    return but(known, **changes)


def linked(name: str) -> Framework:
    """An extension of PyTorch with a library of its own that is not found."""
    loads = (load(f"lib{name}_own.so"),)
    return Framework(source="elf", name=name, version="1.0", extends="torch", loads=loads, loads_complete=True)


def wheels(**versions: str) -> tuple[Distribution, ...]:
    return tuple(
        Distribution(source="wheel metadata", name=name.replace("_", "-"), version=version, channel="pip")
        for name, version in versions.items()
    )


def having(
    *frameworks: Framework,
    libraries: tuple[Library, ...] = (),
    distributions: tuple[Distribution, ...] = (),
    **more: Any,
) -> Snapshot:
    found = venv(*frameworks)
    named = {each.name: each for each in (*(found.distributions or ()), *distributions)}
    environment = but(found, distributions=tuple(named.values()))
    return but(with_venv(machine(), environment), libraries=Listing(items=libraries, complete=True), **more)


def ptxas(version: str) -> Framework:
    return Framework(
        source=f"elf {SITE}/triton", name="triton", version="3.1.0", path=f"{SITE}/triton", cpu_only=False,
        built_for={"ptxas": version}, binaries=(f"{SITE}/triton/_C/libtriton.so",),
    )  # fmt: skip


def compiled_by_xla(
    *installed: str, name: str = "jax", extra: str = "with-cuda", trial: Trial | None = None, **changes: Any
) -> Snapshot:
    """JAX with its plug-in (or TensorFlow) and these of the wheels that its extra asks for."""
    wheels = ("nvidia-cublas>=13.0.0.19", "nvidia-cuda-nvcc>=13.0.48", "nvidia-nvvm")
    lines = tuple(f'{line}; sys_platform == "linux" and extra == "{extra}"' for line in wheels)
    declared = Framework(source="wheel metadata", name=name, version="0.12.0", requires=lines)
    base = but(declared, requires=() if name == "jax" else lines, trial=trial, cpu_only=False)
    plugin = but(declared, name="jax-cuda13-plugin", extends="jax", cuda="13")
    there = (Distribution(source="wheel metadata", name=each, version="13.0.88", channel="pip") for each in installed)
    parts = (base, plugin) if name == "jax" else (base,)
    return having(*parts, distributions=tuple(there), **{"toolkits": Listing(complete=True), **changes})


def toolkit(version: str, **changes: Any) -> Listing[Toolkit]:
    home = f"/usr/local/cuda-{version}"
    found = Toolkit(source=f"file {home}", path=home, version=version, nvcc=f"{home}/bin/nvcc", cuda_home=True)
    found = but(found, **changes)
    return Listing(items=(found,), complete=True)


OLD_CUDNN = load("libcudnn.so.9", f"{OLD}/libcudnn.so.9", "9.0.0", found_by="LD_LIBRARY_PATH")
OLD_JITLINK = load("libnvJitLink.so.12", f"{OLD}/libnvJitLink.so.12", "12.1.105", found_by="LD_LIBRARY_PATH")
BUNDLED = copy(wheel_path("cudnn", "libcudnn.so.9"), "cudnn", "9.1.0", owner="nvidia-cudnn-cu12==9.1.0.70")
BUNDLED_JITLINK = copy(wheel_path("nvjitlink", "libnvJitLink.so.12"), "nvJitLink", "12.4.127")
TENSORFLOW = Framework(
    source="wheel metadata", name="tensorflow", version="2.18.0", cuda="12.5", cpu_only=False,
    loads=(load("libcudnn.so.9", optional=True),), loads_complete=True,
)  # fmt: skip
CANNOT_COMPILE = but(ptxas("12.4.99"), compiles_with={"C compiler": "", "Python.h": ""})
VLLM = Framework(source="wheel metadata", name="vllm", version="0.11.0", extends="torch", cpu_only=False)
DEEPSPEED, FLASHINFER = wheels(deepspeed="0.15.0"), wheels(flashinfer_python="0.5.0")
CUPY = Framework(
    source="file x", name="cupy-cuda12x", version="14.2.0", cuda="12", cpu_only=False,
    compiles_with={"CUDA headers": ""},
)  # fmt: skip

CASES: list[Case] = [
    ("all is there", "cuda-library-missing", having(pytorch()), ("pass",)),
    ("one is not", "cuda-library-missing", having(pytorch(load("libcufft.so.11"))), ("fail",)),
    ("not all followed", "cuda-library-missing", having(pytorch(loads_complete=False)), ("unknown",)),
    ("nobody followed", "cuda-library-missing", having(pytorch(loads=None)), ()),
    ("it does without", "cuda-library-missing", having(pytorch(load("libcutensor.so.2", optional=True))), ("pass",)),
    ("it lies elsewhere", "library-not-found",
     having(pytorch(load("libcufft.so.11", unfound=("/opt/cuda/lib64/libcufft.so.11",)))), ("fail",)),
    ("nothing missing", "library-not-found", having(pytorch()), ()),
    ("torch's own", "library-not-found", having(pytorch(load("libtorch_python.so"))), ("fail",)),
    ("the system's", "library-not-found", having(pytorch(load("libgomp.so.1"))), ("fail",)),
    ("in a CPU build", "library-not-found", having(pytorch(load("libc10.so"), cpu_only=True)), ("fail",)),
    ("the driver's", "library-not-found", having(pytorch(load("libcuda.so.1"), load("libnvidia-ml.so.1"))), ()),
    ("a plugin's", "library-not-found", having(pytorch(load("libplugin.so", optional=True))), ()),
    ("an engine's", "library-not-found", having(pytorch(), linked("vllm")), ("fail",)),
    ("an extension's", "library-not-found", having(pytorch(), linked("torchvision")), ("warn",)),
    ("not followed", "library-not-found", having(pytorch(load("libx.so"), loads_complete=False)), ()),
    ("refused", "library-not-found",
     having(pytorch(load("libcufft.so.11", "/x/libcufft.so.11", refused="it is empty"))), ("fail",)),
    ("only another major", "cuda-major-mismatch",
     having(pytorch(load("libcublas.so.12")),
       libraries=(copy("/usr/local/cuda/lib64/libcublas.so.11", "cublas", "11.11.3", cuda="11.8"),)), ("fail",)),
    ("NCCL of another major", "cuda-major-mismatch",
     having(pytorch(), libraries=(copy(NCCL.path or "", "nccl", "2.28.9", cuda="13.0"),)), ("warn",)),
    ("an extension of another major", "cuda-major-mismatch",
     having(pytorch(),
       Framework(source="elf x", name="flash-attn", version="2.6.0", extends="torch", cuda="11.8", loads=())),
     ("warn",)),
    ("one major", "cuda-major-mismatch", having(pytorch()), ()),
    ("no cuDNN", "cudnn-missing", having(pytorch(load("libcudnn.so.9"))), ("fail",)),
    ("TensorFlow without cuDNN", "cudnn-missing", having(TENSORFLOW), ("fail",)),
    ("TensorFlow beside PyTorch", "cudnn-missing", having(pytorch(), TENSORFLOW), ("warn",)),
    ("cuDNN", "cudnn-missing", having(pytorch()), ()),
    ("cuDNN 8 alone", "cudnn-major-mismatch",
     having(pytorch(load("libcudnn.so.9")), libraries=(copy("/usr/lib/libcudnn.so.8", "cudnn", "8.9.7"),)), ("fail",)),
    ("cuDNN 9", "cudnn-major-mismatch", having(pytorch()), ()),
    ("as built", "cudnn-too-old", having(pytorch()), ("pass",)),
    ("older minor", "cudnn-too-old", having(pytorch(OLD_CUDNN)), ("fail",)),
    ("newer", "cudnn-too-old", having(pytorch(but(CUDNN, version="9.19.0"))), ("pass",)),
    ("not known", "cudnn-too-old", having(pytorch(but(CUDNN, version=None))), ()),
    ("one release", "cudnn-mixed-copies", having(pytorch()), ("pass",)),
    ("two releases", "cudnn-mixed-copies", having(pytorch(but(OPS, version="9.14.0"))), ("fail",)),
    ("an older libcudnn before whole newer parts", "cudnn-mixed-copies",
     having(pytorch(but(OPS, version="9.28.0"), but(GRAPH, version="9.28.0"))), ("pass",)),
    ("a newer libcudnn before older parts", "cudnn-mixed-copies",
     having(pytorch(but(OPS, version="9.0.0"), but(GRAPH, version="9.0.0"))), ("fail",)),
    ("an older libcudnn before parts of two releases", "cudnn-mixed-copies",
     having(pytorch(but(OPS, version="9.28.0"), but(GRAPH, version="9.14.0"))), ("fail",)),
    ("a release is not known", "cudnn-mixed-copies", having(pytorch(but(OPS, version=None))), ()),
    ("an older one wins", "library-shadowed", having(pytorch(OLD_CUDNN), libraries=(BUNDLED,)), ("fail",)),
    ("an older cuBLAS wins", "library-shadowed",
     having(pytorch(but(CUBLAS, path=f"{OLD}/libcublas.so.12", version="12.1.3", found_by="LD_LIBRARY_PATH")),
       libraries=(copy(CUBLAS.path or "", "cublas", "12.4.5"),)), ("warn",)),
    ("a newer one wins", "library-shadowed", having(pytorch(but(OLD_CUDNN, version="9.14.0")), libraries=(BUNDLED,)),
     ()),
    ("the system's loses", "library-shadowed",
     having(pytorch(but(CUDNN, others=("/usr/lib/libcudnn.so.9",))), libraries=(BUNDLED,)), ()),
    ("of unknown release", "library-shadowed", having(pytorch(but(OLD_CUDNN, version=None)), libraries=(BUNDLED,)),
     ("warn",)),
    ("of unknown release, with every function", "library-shadowed",
     having(pytorch(but(OLD_CUDNN, version=None, missing_symbols=())), libraries=(BUNDLED,)), ()),
    ("of unknown release, without a function", "library-shadowed",
     having(pytorch(but(OLD_CUDNN, version=None, missing_symbols=("cudnnNew",))), libraries=(BUNDLED,)), ("fail",)),
    ("newer, without a function", "library-shadowed",
     having(pytorch(but(OLD_CUDNN, version="9.99.0", missing_symbols=("cudnnGone",))), libraries=(BUNDLED,)),
     ("fail",)),
    ("without a function", "library-lacks-symbols",
     having(pytorch(but(NCCL, found_by="cache", missing_symbols=("ncclCommSplit",)))), ("fail",)),
    ("with every function", "library-lacks-symbols", having(pytorch(but(NCCL, missing_symbols=()))), ()),
    ("symbols not looked up", "library-lacks-symbols", having(pytorch()), ()),
    ("older than asked for", "cuda-library-too-old", having(pytorch(but(CUBLAS, version="12.1.3.1"))), ("warn",)),
    ("of another CUDA than its own", "cuda-library-too-old",
     having(pytorch(load("libcudart.so.11.0", "/usr/local/cuda-11.8/lib64/libcudart.so.11.0", "11.8.89"),
         requires=("nvidia-cuda-runtime-cu12==12.4.127",))), ()),
    ("as asked for", "cuda-library-too-old", having(pytorch()), ()),
    ("older than an extra asks that was not chosen", "cuda-library-too-old",
     having(pytorch(requires=('nvidia-cublas>=13.0; extra == "cu13"', 'nvidia-cublas-cu12>=12.1; extra == "cu12"'))),
     ()),
    ("older than the chosen extra asks", "cuda-library-too-old",
     having(pytorch(requires=('nvidia-cublas>=13.0; extra == "cu13"', 'nvidia-cublas-cu12>=12.6; extra == "cu12"')),
       distributions=wheels(nvidia_cublas_cu12="12.4.5.8")), ("warn",)),
    ("a stub", "stub-library-loaded",
     having(pytorch(load("libcublas.so.12", "/usr/local/cuda/lib64/stubs/libcublas.so"))), ("fail",)),
    ("no stub", "stub-library-loaded", having(pytorch()), ()),
    ("older libnvJitLink", "nvjitlink-mismatch", having(pytorch(OLD_JITLINK), libraries=(BUNDLED_JITLINK,)), ("fail",)),
    ("fitting libnvJitLink", "nvjitlink-mismatch", having(pytorch()), ("pass",)),
    ("libnvJitLink of each CUDA", "nvjitlink-mismatch",
     having(pytorch(but(CUSPARSE, version="12.6.3.3"), JITLINK, JITLINK_13)), ("pass",)),
    ("cuSPARSE of unknown CUDA", "nvjitlink-mismatch", having(pytorch(but(CUSPARSE, version="99.1.1.1"))), ()),
    ("NCCL twice", "nvidia-wheel-conflict",
     having(pytorch(), distributions=wheels(nvidia_nccl_cu12="2.21.5", nvidia_nccl_cu13="2.28.9")), ("warn",)),
    ("CUDA twice", "nvidia-wheel-conflict",
     having(pytorch(), distributions=wheels(nvidia_cublas_cu12="12.4.5.8", nvidia_cublas="13.1.0.3")), ("pass",)),
    ("an older pin", "nvidia-wheel-conflict", having(pytorch(), distributions=wheels(nvidia_cudnn_cu12="8.9.7.29")),
     ("warn",)),
    ("a newer pin", "nvidia-wheel-conflict", having(pytorch(), distributions=wheels(nvidia_cudnn_cu12="9.19.0.56")),
     ("pass",)),
    ("two claim a file", "nvidia-wheel-conflict",
     having(pytorch(), distributions=wheels(nvidia_cudnn_cu12="9.1.0.70"),
       libraries=(but(BUNDLED, claimed_by=("nvidia-cudnn-cu11==9.1.0.70", "nvidia-cudnn-cu12==9.1.0.70")),)),
     ("warn",)),
    ("written over", "nvidia-wheel-conflict",
     having(pytorch(), distributions=wheels(nvidia_cudnn_cu12="9.1.0.70"), libraries=(but(BUNDLED, altered=True),)),
     ("warn",)),
    ("no wheel", "nvidia-wheel-conflict", having(pytorch()), ()),
    ("no TensorRT", "tensorrt-missing",
     having(pytorch(),
       Framework(source="elf x", name="torch-tensorrt", version="2.5.0", extends="torch", cuda="12.4",
         loads=(load("libnvinfer.so.10"),))), ("warn",)),
    ("a provider without it", "tensorrt-missing",
     having(Framework(source="elf x", name="onnxruntime-gpu", version="1.20.0", cuda="12.2", cpu_only=False,
         loads=(load("libnvinfer.so.10", optional=True),))), ()),
    ("TensorRT mixed", "tensorrt-mixed-versions",
     having(pytorch(), distributions=wheels(tensorrt_cu12_libs="10.3.0", tensorrt_cu12_bindings="10.5.0")), ("warn",)),
    ("TensorRT whole", "tensorrt-mixed-versions",
     having(pytorch(), distributions=wheels(tensorrt_cu12_libs="10.3.0", tensorrt_cu12="10.3.0")), ("pass",)),
    ("TensorRT for two CUDAs", "tensorrt-mixed-versions",
     having(pytorch(), distributions=wheels(tensorrt_cu12_libs="10.3.0", tensorrt_cu13_libs="10.14.0")), ("pass",)),
    ("no NCCL", "nccl-missing", having(pytorch(load("libnccl.so.2"))), ("fail",)),
    ("NCCL", "nccl-missing", having(pytorch()), ()),
    ("older NCCL", "nccl-version-mismatch", having(pytorch(but(NCCL, version="2.18.1"))), ("warn",)),
    ("NCCL as built", "nccl-version-mismatch", having(pytorch()), ("pass",)),
    ("NCCL of unknown release", "nccl-version-mismatch", having(pytorch(but(NCCL, version=None))), ()),
    ("ptxas knows it", "jit-compiler-too-old", having(ptxas("12.4.99")), ("pass",)),
    ("ptxas of unknown CUDA", "jit-compiler-too-old", having(ptxas("99.0")), ("skipped",)),
    ("no ptxas at all", "jit-compiler-missing",
     having(but(ptxas("12.4"), built_for={}), toolkits=Listing(complete=True)), ("warn",)),
    ("ptxas of a toolkit", "jit-compiler-missing", having(but(ptxas("12.4"), built_for={}), toolkits=toolkit("12.4")),
     ()),
    ("toolkits not listed", "jit-compiler-missing", having(but(ptxas("12.4"), built_for={})), ()),
    ("its own ptxas", "jit-compiler-missing", having(ptxas("12.4.99")), ("pass",)),
    ("XLA without its compilers", "jit-compiler-missing", compiled_by_xla("nvidia-cublas"), ("warn",)),
    ("XLA without libdevice", "jit-compiler-missing", compiled_by_xla("nvidia-cublas", "nvidia-cuda-nvcc"), ("warn",)),
    ("XLA of TensorFlow", "jit-compiler-missing", compiled_by_xla("nvidia-cublas", name="tensorflow", extra="and-cuda"),
     ("note",)),
    ("XLA with its compilers", "jit-compiler-missing",
     compiled_by_xla("nvidia-cublas", "nvidia-cuda-nvcc", "nvidia-nvvm"), ()),
    ("XLA with a toolkit", "jit-compiler-missing", compiled_by_xla("nvidia-cublas", toolkits=toolkit("13.0")), ()),
    ("toolkits not listed, XLA", "jit-compiler-missing", compiled_by_xla("nvidia-cublas", toolkits=None), ()),
    ("CUDA of the machine", "jit-compiler-missing", compiled_by_xla(), ()),
    ("XLA with a folder of CUDA", "jit-compiler-missing",
     compiled_by_xla("nvidia-cublas", variables=variables(XLA_FLAGS="--xla_gpu_cuda_data_dir=/opt/cuda")), ()),
    ("no C compiler", "jit-compiler-missing", having(CANNOT_COMPILE), ("warn",)),
    ("no C compiler beside torch", "jit-compiler-missing", having(pytorch(), CANNOT_COMPILE), ("note",)),
    ("no C compiler for vLLM", "jit-compiler-missing", having(pytorch(), CANNOT_COMPILE, VLLM), ("warn",)),
    ("a C compiler", "jit-compiler-missing",
     having(but(ptxas("12.4.99"), compiles_with={"C compiler": "/usr/bin/gcc"})), ("pass",)),
    ("CuPy without headers", "jit-compiler-missing",
     having(CUPY, distributions=wheels(nvidia_cuda_nvrtc_cu12="12.9.86")),
     ("fail",)),
    ("CuPy with the wheel of headers", "jit-compiler-missing",
     having(CUPY, distributions=wheels(nvidia_cuda_runtime_cu12="12.9.79")), ()),
    ("CuPy with headers", "jit-compiler-missing", having(but(CUPY, compiles_with={"CUDA headers": "/x.h"})), ()),
    ("CuPy that ran without them", "jit-compiler-missing",
     having(but(CUPY, trial=Trial(source="trial", ran_on_gpu=True))), ()),
    ("nothing compiled", "toolkit-lacks-gpu", having(pytorch(), toolkits=toolkit("11.4")), ()),
    ("old toolkit", "toolkit-lacks-gpu", having(pytorch(), distributions=DEEPSPEED, toolkits=toolkit("11.4")),
     ("warn",)),
    ("nobody looked for it", "toolkit-lacks-gpu", having(pytorch(), distributions=DEEPSPEED), ()),
    ("no toolkit", "toolkit-missing", having(pytorch(), distributions=DEEPSPEED, toolkits=Listing(complete=True)),
     ("note",)),
    ("no variable names it", "toolkit-missing",
     having(pytorch(), distributions=FLASHINFER, toolkits=toolkit("12.4", cuda_home=False, on_path=False)), ("note",)),
    ("in the usual place", "toolkit-missing", having(pytorch(), distributions=FLASHINFER,
     toolkits=toolkit("12.4", cuda_home=False, on_path=False, aliases=("/usr/local/cuda",))), ()),
    ("nothing to compile", "toolkit-missing", having(pytorch(), toolkits=Listing(complete=True),
     distributions=(*FLASHINFER, *wheels(flashinfer_jit_cache="0.5.0"))), ()),
    ("no ninja", "jit-compiler-missing",
     having(pytorch(), distributions=FLASHINFER, platform=but(UBUNTU, programs=())), ("note",)),
    ("ninja", "jit-compiler-missing",
     having(pytorch(), distributions=FLASHINFER, platform=but(UBUNTU, programs=("/usr/bin/ninja",))), ()),
    ("ninja in an environment that is not active", "jit-compiler-missing", having(pytorch(),
     distributions=(*FLASHINFER, *wheels(ninja="1.13")), platform=but(UBUNTU, programs=())), ()),
    ("no need of ninja", "jit-compiler-missing", having(pytorch(), platform=but(UBUNTU, programs=())), ()),
    ("not all listed", "toolkit-missing", having(pytorch(), distributions=DEEPSPEED, toolkits=Listing()), ()),
    ("no need of a toolkit", "toolkit-missing", having(pytorch(), toolkits=Listing(complete=True)), ()),
    ("another major", "toolkit-differs-from-build",
     having(pytorch(), distributions=DEEPSPEED, toolkits=toolkit("11.8")), ("warn",)),
    ("another minor", "toolkit-differs-from-build",
     having(pytorch(), distributions=DEEPSPEED, toolkits=toolkit("12.1")), ()),
    ("nvcc of another major", "toolkit-differs-from-build", having(pytorch(), toolkits=toolkit("11.8")), ()),
]  # fmt: skip
