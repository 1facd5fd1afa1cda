"""Break a real environment on a machine with an NVIDIA GPU, one thing at a time, and hold envcheck against the truth.

    python3 tests/gpu/broken_variants.py --envcheck "python -I -m envcheck" [--only WORD] [--deep] --out FOLDER

The environment of ``python3`` (or ``--python``) is copied by hard links. A file is only ever replaced by another one,
so that the original stays what it is. In each copy the frameworks are really started; then envcheck judges it as files
and, with ``--deep``, by starting it. Standard library alone, Python 3.10 or newer. ``--no-gpu`` imports only, and lets
envcheck assume a GPU: to try this script where there is none. Of the family ``precondition`` the files stay sound, and
what the process is given is broken: its fix is followed, and must mend it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, TextIO

ASSUMED = ("--scope", "env", "--assume", "gpu==H100,driver==580.65.06,os==linux")
SECONDS = 240

COMPUTES = {
    "torch": "import torch; x = torch.randn(64, 64, device='cuda'); assert float((x @ x).abs().sum()) > 0",
    "jax": "import jax; x = jax.numpy.ones((64, 64)); assert jax.default_backend() == 'gpu'; float((x @ x).sum())",
    "cupy": "import cupy; x = cupy.ones((64, 64)); assert float((x @ x).sum()) == 64**3",
    "triton": "import torch; torch.compile(lambda x: x * 2 + 1)(torch.ones(4096, device='cuda')).sum().item()",
}
IMPORTS = {
    "torch": "import torch", "jax": "import jax; jax.numpy.ones(3) + 1", "cupy": "import cupy",
    "triton": "import triton",
}  # fmt: skip
MODULES = {"torch": "torch", "jax": "jax", "cupy": "cupy", "triton": "triton"}
GROUP = """import os, datetime, torch, torch.distributed as together
os.environ.setdefault('MASTER_ADDR', 'localhost')
soon = datetime.timedelta(seconds=20)
together.init_process_group('BACKEND', rank=0, world_size=1, init_method='env://', timeout=soon)"""
GLOO = GROUP.replace("BACKEND", "gloo")
NCCL = (
    GROUP.replace("BACKEND", "nccl") + "; together.all_reduce(torch.ones(1, device='cuda')); torch.cuda.synchronize()"
)
BUILD = """import tempfile, torch.utils.cpp_extension as extensions
folder = tempfile.mkdtemp(); open(f'{folder}/one.cpp', 'w').write('extern "C" int one() { return 1; }')
extensions.load('one', [f'{folder}/one.cpp'], build_directory=folder, is_python_module=False)"""
FUSIONS = """import jax, jax.numpy as numbers; x = numbers.ones((512, 512), numbers.bfloat16)
float(jax.jit(lambda a: jax.nn.softmax(jax.nn.relu(a @ a + 1) @ a).sum())(x))"""
LOADER = """import torch
data = [torch.ones(1 << 20)] * 8
assert sum(float(one.sum()) for one in torch.utils.data.DataLoader(data, 2, num_workers=2)) == 8 << 20"""
EXTENSION = """import pathlib, torch.utils.cpp_extension as extensions
source = pathlib.Path('one.cpp').absolute(); source.write_text('extern "C" int one() { return 1; }')
extensions.load('one', [str(source)], is_python_module=False)"""
THREADS = "import threading, time\nfor _ in range(100): threading.Thread(target=time.sleep, args=(3,)).start()"
PINNED = "import torch; torch.ones(1 << 26).pin_memory().to('cuda').sum().item()"
FEW = "/sys/fs/cgroup/few"
REFUSES = """import ctypes, os, struct, sys
calls = {'x86_64': 319, 'aarch64': 279}[os.uname().machine]
steps = (0x20, 0, 0, 0), (0x15, 0, 1, calls), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)  # EPERM, else allowed
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert 'ADMITTED' in os.environ or libc.prctl(38, 1, 0, 0, 0) == libc.prctl(22, 2, program) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
NUMBA = """import numpy; from numba import cuda
@cuda.jit
def double(numbers): numbers[cuda.grid(1)] *= 2
there = cuda.to_device(numpy.ones(64)); double[2, 32](there); assert there.copy_to_host().sum() == 128"""


class NotHereError(Exception):
    """The environment or machine lacks what a variant breaks."""


class Copy:
    """A copy of the environment, and the variables of the shell that uses it."""

    def __init__(self, prefix: Path, folder: Path) -> None:
        self.prefix = prefix
        self.folder = folder
        self.variables: dict[str, str | None] = {}
        self.wrapper: tuple[str, ...] = ()  # What starts its programs

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    @property
    def site(self) -> Path:
        return next(self.prefix.glob("lib/python3*/site-packages"))

    def find(self, *patterns: str) -> Path:
        """The first file or folder in site-packages that fits, the largest of several."""
        for pattern in patterns:
            found = [path for path in self.site.glob(pattern) if path.is_dir() or not path.is_symlink()]
            if found:
                return max(found, key=lambda path: path.stat().st_size)
        raise NotHereError(f"no {' or '.join(patterns)}")

    def remove(self, *patterns: str) -> Path:
        path = self.find(*patterns)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return path

    def rewrite(self, path: Path, content: bytes) -> Path:
        other = path.with_name(f"{path.name}.new")
        other.write_bytes(content)
        shutil.copymode(path, other)
        return other.rename(path)

    def truncate(self, *patterns: str, part: float = 0.4) -> Path:
        path = self.find(*patterns)
        with path.open("rb") as file:
            return self.rewrite(path, file.read(int(path.stat().st_size * part)))

    def overwrite(self, *patterns: str, at: float, length: int) -> Path:
        path = self.find(*patterns)
        content = bytearray(path.read_bytes())
        start = int(len(content) * at)
        content[start : start + length] = b"\xa5" * length
        return self.rewrite(path, bytes(content))

    def beside(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def first(self, variable: str, folder: Path) -> None:
        self.variables[variable] = ":".join(
            filter(None, [str(folder), self.variables.get(variable) or os.environ.get(variable, "")])
        )

    def compile(self, folder: Path, name: str, source: str, versions: str = "") -> Path:
        """A shared library in ``folder``, by the machine's compiler."""
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise NotHereError("no compiler")
        (folder / "source.c").write_text(source)
        words = [
            compiler, "-shared", "-fPIC", "-fno-builtin", f"-Wl,-soname,{name}", "-o", str(folder / name),
            str(folder / "source.c"),
        ]  # fmt: skip
        if versions:
            (folder / "versions.map").write_text(versions)
            words.insert(1, f"-Wl,--version-script={folder / 'versions.map'}")
        subprocess.run(words, check=True, capture_output=True)
        return folder / name


@dataclass(frozen=True)
class Variant:
    """One thing that is wrong."""

    name: str
    family: str
    apply: Callable[[Copy], object]
    names: tuple[str, ...]  # Patterns that the text of the root cause must hold
    rules: tuple[str, ...] = ()  # Rules that are right as the root cause; empty: any that names it
    only_deep: bool = False  # What no look at names and sizes can find: only ``--deep`` is expected to
    measured: tuple[str, ...] = ()
    """Quantities that ``envcheck bench`` is asked for too: it must name the same cause, and measure the rest."""
    codes: dict[str, str] = field(default_factory=dict)  # What fails, if not the frameworks' usual work
    given: tuple[str, str] = ("", "")
    """A pattern of the fix that is done to the machine or its container, and the step by which that is done here."""
    harmless: bool = False
    """Nothing stops working, and nothing may be called the cause but what is so in the original too."""


def of(*names: str) -> dict[str, str]:
    return {name: COMPUTES[name] for name in names}


def variables(**values: str) -> Callable[[Copy], None]:
    return lambda copy: copy.variables.update(values)


def within(*steps: str, start: str = "", **values: str | None) -> Callable[[Copy], None]:
    """Each program starts in a shell with mounts of its own after these steps, with an empty home folder (``HOME``)."""

    def apply(copy: Copy) -> None:
        home = str(copy.beside("home"))
        named = {name: value and value.replace("HOME", home) for name, value in values.items()}
        copy.variables.update({"HOME": home, **named})
        script = " && ".join([*(step.replace("HOME", home) for step in steps), f'exec {start}"$@"'])
        copy.wrapper = ("unshare", "--mount", *(["--map-root-user"] * (os.geteuid() > 0)), "bash", "-c", script, "bash")

    return apply


def nameless(user: int, *steps: str, **values: str | None) -> Callable[[Copy], None]:
    """Programs run as a user whom no file knows, as by ``docker run --user``; the home folder is its own."""
    opened = (f"chown {user} HOME", "chmod go+rx HOME/.. HOME/../..")
    start = f"setpriv --reuid={user} --regid={user} --clear-groups "
    return within(*steps, *opened, start=start, **{"USER": None, "LOGNAME": None, **values})


def without_memory_files(copy: Copy) -> None:
    """A filter of seccomp refuses memfd_create."""
    (copy.folder / "filter.py").write_text(REFUSES)
    within(start=f"{sys.executable} {copy.folder / 'filter.py'} ")(copy)


def without_nvvm(copy: Copy) -> None:
    """Neither the environment's nor the toolkits' libNVVM."""
    places = {str(path.resolve()) for path in Path("/usr/local").glob("cuda*/nvvm")}
    within(*(f"mount -t tmpfs tmpfs {place}" for place in places))(copy)
    for path in copy.site.glob("nvidia/**/libnvvm.so*"):
        path.unlink()


def without(pattern: str, *installed: str) -> Callable[[Copy], None]:
    """PATH leads to no program whose name fits, nor does the environment hold what is ``installed``."""

    def apply(copy: Copy) -> None:
        within()(copy)
        for part in installed:
            copy.remove(part)
        folder = copy.beside("programs")
        for path in (Path(each) for each in os.get_exec_path()):
            for program in path.iterdir() if path.is_dir() else ():
                if not re.search(pattern, program.name) and not (folder / program.name).is_symlink():
                    (folder / program.name).symlink_to(program)
        copy.variables.update(PATH=str(folder), CC=None)

    return apply


def without_compilers(copy: Copy) -> None:
    without(r"gcc|g\+\+|clang|^c(c|99|89|\+\+)$")(copy)
    if (own := os.environ.get("CC", "")).startswith("/"):  # which something at Python's start may name again
        *start, script, last = copy.wrapper
        copy.wrapper = (*start, f"mount --bind /dev/null {own} && {script}", last)


def without_ninja(copy: Copy) -> None:
    without("^ninja$", "ninja", "ninja-*.dist-info", "../../../bin/ninja")(copy)
    wheel = next(iter(sorted(Path(os.environ.get("PIP_FIND_LINKS", "")).glob("gsplat-*.whl"))), None)
    if wheel is None:
        raise NotHereError("PIP_FIND_LINKS has no wheel of gsplat, which compiles where it runs")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(copy.site)


def without_python_headers(copy: Copy) -> None:
    said = "import sysconfig; print(sysconfig.get_path('include'))"
    folder = subprocess.run([str(copy.python), "-c", said], capture_output=True, text=True, check=True).stdout.strip()
    (copy.folder / "headers").symlink_to(folder)
    within(f"mount -t tmpfs tmpfs {folder}")(copy)


def without_headers(copy: Copy) -> None:
    places = {
        str(path.parent.resolve()) for top in ("/usr", "/opt") for path in Path(top).rglob("include/vector_types.h")
    }
    within(*(f"mount -t tmpfs tmpfs {place}" for place in places if str(copy.folder.parent) not in place))(copy)
    copy.remove("nvidia/cu[0-9]*/include", "nvidia/cuda_runtime/include")
    copy.remove("nvidia_cuda_runtime*.dist-info")


def _file_first(name: str, content: Callable[[], bytes]) -> Callable[[Copy], None]:
    def apply(copy: Copy) -> None:
        folder = copy.beside("compat")
        (folder / name).write_bytes(content())
        copy.first("LD_LIBRARY_PATH", folder)

    return apply


def _system(name: str) -> Path:
    """A library where the system's loader finds it."""
    for line in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout.splitlines():
        if line.split(" ", 1)[0].strip() == name and "x86-64" in line:
            return Path(line.rpartition("=> ")[2])
    raise NotHereError(f"no {name} on the system")


def _cut_off(name: str) -> Callable[[], bytes]:
    return lambda: _system(name).read_bytes()[:300_000]


STUB = """
int cuInit(unsigned flags) { return 34; }
int cuDriverGetVersion(int *version) { *version = 0; return 34; }
int cuDeviceGetCount(int *count) { *count = 0; return 34; }
"""


def _stub(copy: Copy) -> None:
    folder = copy.beside("cuda-stubs/lib64/stubs")
    shipped = sorted(Path("/usr/local").glob("cuda*/**/stubs/libcuda.so"))
    if shipped:
        shutil.copy(shipped[-1], folder / "libcuda.so.1")
    else:
        copy.compile(folder, "libcuda.so.1", STUB)
    copy.first("LD_LIBRARY_PATH", folder)


def _older_jitlink(copy: Copy) -> None:
    """By its bare name, with the first symbols of the interface alone, as an older release has fewer."""
    name = copy.find("nvidia/*/lib/libnvJitLink.so.*").name
    folder = copy.beside("solver")
    calls = "".join(
        f"int nvJitLink{call}(void){{return 0;}} int __nvJitLink{call}_{{}}(void){{return 0;}}\n"
        for call in ("Create", "Destroy")
    )
    major = name.rpartition(".")[2]
    copy.compile(folder, name, calls.replace("{}", f"{major}_0"), f"{name} {{ global: *; }};\n")
    copy.first("LD_LIBRARY_PATH", folder)


def _older_library_first(copy: Copy) -> None:
    within()(copy)
    _older_jitlink(copy)


def _cudnn_of_two_releases(copy: Copy) -> None:
    """Some parts of the system's cuDNN come before the wheel's."""
    own, folder = copy.find("nvidia/cudnn/lib/libcudnn_graph.so.*"), copy.beside("cudnn")
    other = _system(own.name)
    if other.resolve().stat().st_size == own.stat().st_size:
        raise NotHereError("the system has the same cuDNN")
    for part in ("graph", "ops"):
        (folder / f"libcudnn_{part}.so.9").symlink_to(_system(f"libcudnn_{part}.so.9").resolve())
    copy.first("LD_LIBRARY_PATH", folder)


def _curand_without_code(copy: Copy) -> None:
    """A release from before this GPU, whose PTX the driver is told not to compile."""
    given = os.environ.get("OLD_CURAND")
    if given is None:
        raise NotHereError("OLD_CURAND names no libcurand.so.10 from before this GPU")
    (copy.beside("old") / "libcurand.so.10").symlink_to(given)
    copy.first("LD_LIBRARY_PATH", copy.folder / "old")
    copy.variables["CUDA_DISABLE_PTX_JIT"] = "1"


def _older_libstdcxx(copy: Copy) -> None:
    folder = copy.beside("gcc-4.9")
    versions = "GLIBCXX_3.4 { global: _Znwm; local: *; };\nGLIBCXX_3.4.20 { } GLIBCXX_3.4;\nCXXABI_1.3 { };\n"
    copy.compile(folder, "libstdc++.so.6", "#include <stddef.h>\nvoid *_Znwm(size_t n) { return 0; }\n", versions)
    copy.first("LD_LIBRARY_PATH", folder)


def _other_torch(copy: Copy) -> Path:
    folder = copy.beside("other")
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("from .version import __version__\nfrom torch._C import *\n")
    (folder / "torch" / "version.py").write_text("__version__ = '2.1.0+cu121'\ncuda = '12.1'\nhip = None\n")
    (folder / "torch-2.1.0.dist-info").mkdir()
    (folder / "torch-2.1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.1.0\n")
    (folder / "torch-2.1.0.dist-info" / "RECORD").write_text("torch/__init__.py,,\ntorch/version.py,,\n")
    return folder


def _by_path_file(copy: Copy) -> None:
    (copy.site / "zz_team.pth").write_text(f"import sys; sys.path.insert(0, {str(_other_torch(copy))!r})\n")


def _user_site(copy: Copy) -> None:
    settings = copy.prefix / "pyvenv.cfg"
    copy.rewrite(
        settings, re.sub(r"(include-system-site-packages\s*=\s*)false", r"\1true", settings.read_text()).encode()
    )
    user = copy.beside("home/.local/lib") / copy.site.parent.name / "site-packages"
    record = user / "typing_extensions-4.1.0.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: typing_extensions\nVersion: 4.1.0\n")
    (user / "typing_extensions.py").write_text("__version__ = '4.1.0'\n")
    (record / "RECORD").write_text("typing_extensions.py,,\ntyping_extensions-4.1.0.dist-info/METADATA,,\n")
    copy.remove("typing_extensions.py")
    copy.remove("typing_extensions*.dist-info")
    copy.variables["HOME"] = str(copy.folder / "home")


def _no_rights(copy: Copy) -> None:
    if os.geteuid() == 0:
        raise NotHereError("root reads every file")
    path = copy.find("nvidia/*/lib/libcublasLt.so.*", "torch/lib/libtorch_cpu.so")
    copy.rewrite(path, path.read_bytes()).chmod(0)


def _uuid(index: int) -> str:
    if shutil.which("nvidia-smi") is None:
        raise NotHereError("no nvidia-smi")
    found = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    uuids = re.findall(r"UUID: (GPU-[0-9a-f-]+)", found)
    if index >= len(uuids):
        raise NotHereError(f"fewer than {index + 1} GPUs")
    return str(uuids[index])


def _visible(value: Callable[[], str]) -> Callable[[Copy], None]:
    return lambda copy: copy.variables.update(CUDA_VISIBLE_DEVICES=value())


def _common_prefix() -> str:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(_uuid(0), _uuid(1), strict=True))
    return "".join(letter for letter, _ in pairs)


SHARED = ("--shm-size=1g", "mount -o remount,rw,size=1g /dev/shm")
PRECONDITION, CACHE, LIMIT = "precondition", ("cache-not-writable",), ("limit-too-low",)
VARIANTS = (
    Variant("nothing changed", "healthy", lambda copy: None, (), harmless=True),
    Variant("sound variables", "healthy",
     variables(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True", CUDA_VISIBLE_DEVICES="0",
       XLA_FLAGS="--xla_gpu_autotune_level=2"), (), harmless=True),
    Variant("numpy gone", "damage", lambda copy: copy.remove("numpy"), ("numpy",)),
    Variant("numpy core overwritten", "damage",
        lambda copy: copy.overwrite("numpy/_core/_multiarray_umath*.so", at=0.0, length=4096), ("_multiarray_umath",)),
    Variant("OpenBLAS overwritten", "damage",
        lambda copy: copy.overwrite("numpy.libs/*openblas*", at=0.4, length=4 << 20), ("openblas",), only_deep=True),
    Variant("torch/__init__.py edited", "damage",
        lambda copy: copy.rewrite(copy.find("torch/__init__.py"), b"raise SystemError('edited')\n"),
        (r"torch/__init__\.py",)),
    Variant("libtorch_cuda cut off", "damage",
        lambda copy: copy.truncate("torch/lib/libtorch_cuda.so", "torch/lib/libtorch_cpu.so"),
        (r"libtorch_c(uda|pu)\.so",)),
    Variant("libtorch_cuda overwritten", "damage",
        lambda copy: copy.overwrite("torch/lib/libtorch_cuda.so", "torch/lib/libtorch_cpu.so", at=0.3, length=32 << 20),
        (r"libtorch_c(uda|pu)\.so",), only_deep=True),
    Variant("libc10 gone", "damage", lambda copy: copy.remove("torch/lib/libc10.so"), (r"libc10\.so",),
            ("damaged-distribution",)),
    Variant("driver.c of Triton gone", "damage", lambda copy: copy.remove("triton/backends/nvidia/driver.c"),
            (r"driver\.c",)),
    Variant("path file that is no text", "damage", lambda copy: (copy.site / "zz.pth").write_bytes(b"\xff\n"),
            (r"zz\.pth",)),
    Variant("ptxas of Triton gone", "damage", lambda copy: copy.remove("triton/backends/nvidia/bin/ptxas"), ("ptxas",)),
    Variant("cuDNN part gone", "damage", lambda copy: copy.remove("nvidia/*/lib/libcudnn_ops.so.*"), ("cudnn",)),
    Variant("NCCL empty", "damage", lambda copy: copy.rewrite(copy.find("nvidia/*/lib/libnccl.so.2"), b""),
        ("(?i)nccl",)),
    Variant("JAX's plug-in gone", "damage", lambda copy: copy.remove("jax_plugins/xla_cuda*"),
        ("(?i)jax.*plugin|xla_cuda|jax_plugins",)),
    Variant("no right to read", "damage", _no_rights, (r"libcublasLt|libtorch_cpu",)),
    Variant("libcublasLt cut off", "copy elsewhere", lambda copy: copy.truncate("nvidia/*/lib/libcublasLt.so.*"),
        ("libcublasLt",)),
    Variant("libcusparse cut off", "copy elsewhere",
        lambda copy: copy.truncate("nvidia/*/lib/libcusparse.so.*", part=0.7), (r"libcusparse\.so",)),
    Variant("libcudnn cut off", "copy elsewhere", lambda copy: copy.truncate("nvidia/*/lib/libcudnn.so.*", part=0.5),
        ("cudnn",)),
    Variant("a part of cuDNN gone", "library at work",
        lambda copy: copy.remove("nvidia/cudnn/lib/libcudnn_engines_precompiled.so.*"),
        ("libcudnn_engines_precompiled",), measured=("cudnn-convolution", "cusparse-spmv")),
    Variant("cuDNN of two releases", "library at work", _cudnn_of_two_releases, ("(?i)cudnn",),
        ("cudnn-mixed-copies", "library-shadowed", "cudnn-too-old", "library-fails"),
        measured=("cudnn-convolution", "cufft")),
    Variant("cuSPARSE cut off, at work", "library at work",
        lambda copy: copy.truncate("nvidia/*/lib/libcusparse.so.*", part=0.7), (r"libcusparse\.so",),
        measured=("cusparse-spmv", "cudnn-pooling", "cufft")),
    Variant("older libnvJitLink, at work", "library at work", _older_jitlink, ("(?i)nvjitlink",)),
    Variant("cuRAND without code for this GPU", "library at work", _curand_without_code,
        ("(?i)libcurand|CUDA_DISABLE_PTX_JIT",), measured=("curand-uniform", "cufft")),
    Variant("PYTHONPATH with another torch", "redirection", lambda copy: copy.first("PYTHONPATH", _other_torch(copy)),
        ("PYTHONPATH", "/other")),
    Variant(".pth with another torch", "redirection", _by_path_file, (r"zz_team\.pth",)),
    Variant("module beside the program", "redirection", lambda copy: (copy.folder / "sympy.py").write_text(""),
            ("sympy",), codes=of("triton")),
    Variant("user site", "redirection", _user_site, (r"\.local|user site|typing.extensions",)),
    Variant("allocator setting", "variable", variables(PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb=128"),
        ("PYTORCH_CUDA_ALLOC_CONF",)),
    Variant("XLA flag", "variable", variables(XLA_FLAGS="--xla_gpu_enable_fast_everything=true"), ("XLA_FLAGS",)),
    Variant("JAX_PLATFORMS misspelt", "variable", variables(JAX_PLATFORMS="cdua"), ("JAX_PLATFORMS",)),
    Variant("Triton's ptxas elsewhere", "variable", variables(TRITON_PTXAS_PATH="/opt/cuda-11.8/bin/ptxas"),
        ("TRITON_PTXAS_PATH",)),
    Variant("CUDA_HOME gone", "variable", variables(CUDA_HOME="/opt/cuda-11.8", CUDA_PATH="/opt/cuda-11.8"),
        ("CUDA_(HOME|PATH)",)),
    Variant("the same GPU twice", "visible", variables(CUDA_VISIBLE_DEVICES="0,0"), ("CUDA_VISIBLE_DEVICES",)),
    Variant("index and UUID", "visible", _visible(lambda: f"0,{_uuid(0)}"), ("CUDA_VISIBLE_DEVICES",)),
    Variant("prefix of two", "visible", _visible(_common_prefix), ("CUDA_VISIBLE_DEVICES",)),
    Variant("MIG name", "visible", _visible(lambda: f"MIG-{_uuid(0)}/0/0"), ("CUDA_VISIBLE_DEVICES",)),
    Variant("libcuda empty", "driver library", _file_first("libcuda.so.1", bytes), (r"libcuda\.so\.1", "compat")),
    Variant("libcuda stub", "driver library", _stub, ("stubs",)),
    Variant("libnvidia-ml cut off", "driver library", _file_first("libnvidia-ml.so.1", _cut_off("libnvidia-ml.so.1")),
        (r"libnvidia-ml\.so\.1", "compat")),
    Variant("libnvidia-ml empty", "driver library", _file_first("libnvidia-ml.so.1", bytes),
        (r"libnvidia-ml\.so\.1", "compat")),
    Variant("older libnvJitLink", "shadowing", _older_jitlink, ("libnvJitLink", "solver")),
    Variant("older libstdc++", "shadowing", _older_libstdcxx, (r"libstdc\+\+\.so\.6", r"gcc-4\.9")),
    Variant("a home of its own", PRECONDITION, within(), (), harmless=True),
    Variant("home is read-only", PRECONDITION, within("mount -t tmpfs -o ro tmpfs HOME"), ("read-only",), CACHE),
    Variant("home has no space", PRECONDITION,
        within("mount -t tmpfs -o size=1M tmpfs HOME", "head -c 1048576 /dev/zero > HOME/x"), ("left for this user",),
        CACHE),
    Variant("home is noexec", PRECONDITION, within("mount -t tmpfs -o noexec tmpfs HOME"), ("noexec",), CACHE),
    Variant("home is no folder", PRECONDITION, within(HOME="/dev/null"), ("not a folder",), CACHE),
    Variant("Triton's cache is no folder", PRECONDITION, within(TRITON_CACHE_DIR="/sys/triton"), ("/sys/triton",),
        CACHE, codes=of("triton")),
    Variant("Inductor's cache is noexec", PRECONDITION,
        within("mount -t tmpfs -o noexec tmpfs HOME", TORCHINDUCTOR_CACHE_DIR="HOME/x", TRITON_CACHE_DIR="/tmp/t"),
        ("torch.compile", "noexec"), CACHE, codes=of("triton")),
    Variant("CuPy's cache is no folder", PRECONDITION, within(CUPY_CACHE_DIR="/sys/cupy"), ("/sys/cupy",), CACHE,
        codes=of("cupy")),
    Variant("XLA's cache is no folder", PRECONDITION,
        within(XLA_FLAGS="--xla_gpu_per_fusion_autotune_cache_dir=/sys/xla"), ("/sys/xla",), CACHE,
        codes={"fusions": FUSIONS}),
    Variant("JAX's cache is no folder", PRECONDITION, within(JAX_COMPILATION_CACHE_DIR="/sys/jax"), ("/sys/jax",),
        CACHE, codes=of("jax")),
    Variant("no C compiler", PRECONDITION, without_compilers, ("C compiler",), ("jit-compiler-missing",),
        codes=of("triton"), given=("Install gcc", 'export PATH="$PATH:/usr/bin" && { umount COMPILER || true; }')),
    Variant("no header of Python", PRECONDITION, without_python_headers, (r"Python\.h",), ("jit-compiler-missing",),
        codes=of("triton"), given=("Install python3-dev", 'umount "$(readlink HEADERS)"')),
    Variant("no ninja", PRECONDITION, without_ninja, ("ninja",), ("jit-compiler-missing",), codes={"build": BUILD}),
    Variant("no headers of CUDA", PRECONDITION, without_headers, ("headers",), ("jit-compiler-missing",),
        codes=of("cupy")),
    Variant("no libNVVM", PRECONDITION, without_nvvm, ("(?i)nvvm",), codes={"numba": NUMBA}),
    Variant("a user without a name", PRECONDITION, nameless(4242), ("no name",), CACHE, codes=of("triton")),
    Variant("a user without a home", PRECONDITION, nameless(4243, HOME=None), ("HOME is not set",), CACHE,
        codes=of("cupy", "triton")),
    Variant("the home of another user", PRECONDITION, nameless(4244, HOME="/root"), ("/root",), CACHE,
        codes=of("cupy", "triton")),
    Variant("few threads", PRECONDITION, nameless(4245, "ulimit -S -u 60"), ("ulimit -u",), LIMIT,
        codes={"threads": THREADS}, given=("nproc=-1", "ulimit -Su hard")),
    Variant("few tasks", PRECONDITION,
        within(f"mkdir -p {FEW}", f"echo 60 > {FEW}/pids.max", f"echo $$ > {FEW}/cgroup.procs"), ("control group",),
        LIMIT, codes={"threads": THREADS}, given=("pids-limit|TasksMax", f"echo max > {FEW}/pids.max")),
    Variant("little locked memory", PRECONDITION, within("ulimit -l 64"), (), codes={"pinned": PINNED}, harmless=True),
    Variant("no files in memory", PRECONDITION, without_memory_files, ("memfd_create",), LIMIT, codes=of("torch"),
        given=("seccomp", "export ADMITTED=1")),
    Variant("no place for extensions", PRECONDITION, within(TORCH_EXTENSIONS_DIR="/sys/x"), ("TORCH_EXTENSIONS_DIR",),
        CACHE, codes={"extension": EXTENSION}),
    Variant("no place for the driver's cache", PRECONDITION, within(CUDA_CACHE_PATH="/sys/x"), ("CUDA_CACHE_PATH",),
        CACHE, codes=of("torch")),
    Variant("a compiler that is not there", PRECONDITION, within(CC="/nowhere/gcc"), ("CC",), codes=of("triton")),
    Variant("a compiler without a name", PRECONDITION, within(CC=""), ("CC",), codes=of("triton")),
    Variant("OpenMP on one processor", PRECONDITION, within(OMP_PLACES="{0}"), ("OMP_PLACES",),
        ("variable-costs-speed",), codes=of("torch")),
    Variant("few addresses", PRECONDITION, within("ulimit -S -v 8000000"), ("address space",), LIMIT,
        codes=of("torch", "jax")),
    Variant("little data", PRECONDITION, within("ulimit -S -d 200000"), ("data segment",), LIMIT, codes=of("torch")),
    Variant("little processor time", PRECONDITION, within("ulimit -S -t 2"), ("processor time",), LIMIT,
        codes=of("torch")),
    Variant("few open files", PRECONDITION, within("ulimit -S -n 40"), ("open files",), LIMIT,
        codes=of("torch", "cupy"), given=("nofile=65536", "ulimit -S -n $(ulimit -H -n)")),
    Variant("small files", PRECONDITION, within("ulimit -S -f 1"), ("files? size|size of files",), LIMIT,
        codes=of("cupy", "triton"), given=("fsize=-1", "ulimit -f unlimited")),
    Variant("little shared memory", PRECONDITION, within("mount -t tmpfs -o size=1M tmpfs /dev/shm"), ("1 MiB",),
        ("shared-memory-too-small",), codes={"loader": LOADER}, given=SHARED),
    Variant("shared memory is read-only", PRECONDITION, within("mount -t tmpfs -o ro tmpfs /dev/shm"), ("read-only",),
        ("shared-memory-too-small",), codes={"loader": LOADER}, given=SHARED),
    Variant("no file of managed memory", PRECONDITION, within("mount --bind /dev/null /dev/nvidia-uvm"),
        ("nvidia-uvm",), ("device-node-wrong", "device-node-missing"), codes=of("torch"),
        given=("Restart the container", "umount /dev/nvidia-uvm")),
    Variant("one processor", PRECONDITION, within("taskset -p -c 0 $$ > HOME/x"), ("1 of",), ("process-confined",),
        codes=of("torch"), given=("--cpuset-cpus|taskset", "taskset -p -c 0-1023 $$ > HOME/x")),
    Variant("no such interface", PRECONDITION, within(GLOO_SOCKET_IFNAME="eno9", MASTER_PORT="29541"),
        ("GLOO_SOCKET_IFNAME",), ("network-name-unknown",), codes={"gloo": GLOO}),
    Variant("no such interface for NCCL", PRECONDITION, within(NCCL_SOCKET_IFNAME="=eno9", MASTER_PORT="29543"),
        ("NCCL_SOCKET_IFNAME",), ("network-name-unknown",), codes={"nccl": NCCL}),
    Variant("no such host", PRECONDITION, within(MASTER_ADDR="no-such-node", MASTER_PORT="29542"),
        ("MASTER_ADDR",), ("network-name-unknown",), codes={"gloo": GLOO}),
    Variant("an older library first", PRECONDITION, _older_library_first,
        ("(?i)nvjitlink", "LD_LIBRARY_PATH"), codes=of("torch", "cupy")),
)  # fmt: skip


@dataclass
class Result:
    """What a variant really does, and what envcheck said of it."""

    name: str
    family: str
    truth: dict[str, str] = field(default_factory=dict)  # Framework to what it said last; empty where it works
    static: dict[str, Any] = field(default_factory=dict)
    deep: dict[str, Any] = field(default_factory=dict)
    bench: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    """What envcheck says once its fix is followed, and what then still fails (``truth``)."""
    followed: str = ""
    right_static: bool = False
    right_deep: bool = False
    right_bench: bool = True
    skipped: str = ""
    seconds: float = 0.0


class Laboratory:
    """The original, and a folder for its copies on a file system that can link to it."""

    def __init__(self, python: str, envcheck: list[str], work: Path | None, *, deep: bool, gpu: bool) -> None:
        self.envcheck = envcheck
        self.deep = deep
        self.gpu = gpu
        said = subprocess.run(
            [python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True
        )
        self.original = Path(said.stdout.strip())
        if not (self.original / "pyvenv.cfg").exists():
            raise NotHereError(f"{self.original} is not a virtual environment: it cannot be copied")
        place = work or (
            self.original.parent if os.access(self.original.parent, os.W_OK) else Path(tempfile.gettempdir())
        )
        self.folder = Path(tempfile.mkdtemp(prefix="copies-", dir=place))
        self.source = self.original if self._can_link() else self._whole_copy()
        modules = COMPUTES if gpu else IMPORTS
        site = next(self.original.glob("lib/python3*/site-packages"))
        self.codes = {name: code for name, code in modules.items() if (site / MODULES[name]).is_dir()}

    def _can_link(self) -> bool:
        trial = self.folder / "trial"
        try:
            os.link(self.original / "pyvenv.cfg", trial)
        except OSError:
            return False
        trial.unlink()
        return True

    def _whole_copy(self) -> Path:
        """The one copy that takes room, where the original lies on another file system."""
        copy = self.folder / "original"
        subprocess.run(["cp", "-a", str(self.original), str(copy)], check=True)
        return copy

    def copy(self) -> Copy:
        """In a folder whose name tells nothing: it stands in all that envcheck says."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        prefix = folder / ".venv"
        subprocess.run(["cp", "-al", str(self.source), str(prefix)], check=True)
        copy = Copy(prefix, folder)
        # A copy whose programs lead elsewhere would be a finding of its own.
        programs = [file for file in copy.python.parent.iterdir() if not file.is_symlink()]
        for file in (*copy.site.glob("*.pth"), *programs):
            data = file.read_bytes()
            if os.fsencode(self.original) in data and b"\0" not in data:
                copy.rewrite(file, data.replace(os.fsencode(self.original), os.fsencode(prefix)))
        return copy

    def put(self, variant: Variant) -> Result:
        began = time.monotonic()
        result = Result(variant.name, variant.family)
        copy = self.copy()
        try:
            variant.apply(copy)
            with ThreadPoolExecutor(len(self.codes) + 1) as pool:
                static = pool.submit(self.check, copy)
                codes = variant.codes or self.codes
                truth = {name: pool.submit(self.start, copy, code) for name, code in codes.items()}
                result.truth = {name: said.result() for name, said in truth.items()}
                result.static = static.result()
            result.followed = self.follow(variant, copy, result.static)
            if result.followed:
                result.after = self.check(copy)
                result.after["named"] = self.right(variant, result.after)
                result.after["truth"] = {name: said for name, code in codes.items() if (said := self.start(copy, code))}
            elif self.deep:
                result.deep = self.check(copy, "--deep", "--force")
            if result.deep and variant.measured:
                result.bench = self.measure(copy, variant.measured)
                named = self.is_right_of_libraries(variant, result.bench)
                result.right_bench = named and self.rest_is_intact(variant, result.bench)
            result.right_static = self.right(variant, result.static)
            result.right_deep = bool(result.deep) and self.right(variant, result.deep)
        except (NotHereError, OSError, subprocess.SubprocessError) as error:
            result.skipped = f"{type(error).__name__}: {error}"
        finally:
            shutil.rmtree(copy.folder, ignore_errors=True)
        result.seconds = time.monotonic() - began
        return result

    def follow(self, variant: Variant, copy: Copy, said: dict[str, Any]) -> str:
        """Do the first thing that the finding tells to do and that can be done here; what it was."""
        found = [check for check in said["told"] if self.names(variant, check)]
        for fix in found[0]["fixes"] if found and variant.family == PRECONDITION else ():
            command, limit = fix["command"], re.search(r"\bulimit -\w+ \w+", fix["text"])
            done = variant.given[0] and re.search(variant.given[0], fix["text"])
            *start, script, last = copy.wrapper
            if command[:1] == ["env"]:
                words = iter(command[1:-1])
                pairs = [(next(words), None) if word == "-u" else word.split("=", 1) for word in words]
                copy.variables.update(pairs)
            elif "pip" in command:
                subprocess.run(command, check=True, capture_output=True, cwd=copy.folder)
                copy.first("PATH", copy.prefix / "bin")
            elif command[:2] == ["sudo", "mount"] or limit or done:
                step = limit[0] if limit else variant.given[1] if done else shlex.join(command[1:])
                places = {"HEADERS": copy.folder / "headers", "COMPILER": os.environ.get("CC", "/")}
                for word, path in {"HOME": copy.variables["HOME"], **places}.items():
                    step = step.replace(word, str(path))
                steps, _, program = script.rpartition("exec ")
                copy.wrapper = (*start, f"{steps}{step} && exec {program}", last)
            else:
                continue
            return shlex.join(command) or fix["text"]
        return ""

    def start(self, copy: Copy, code: str) -> str:
        """What the framework says last where it fails; empty where it works."""
        environment = {**self.shell(copy), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        for cache in () if copy.wrapper else ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            environment[cache] = str(copy.folder / cache)
        command = [*copy.wrapper, str(copy.python), "-c", code]
        try:
            done = subprocess.run(
                command, cwd=copy.folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"hangs for {SECONDS} s"
        if done.returncode == 0:
            return ""
        lines = [
            line
            for line in done.stderr.strip().splitlines()
            if re.match(
                r"\w*(Error|Exception|\w*Error:)|[\w.]+(Error|Exception)\b|.*: (undefined|cannot|file too|invalid)",
                line,
            )
        ]
        return f"status {done.returncode}: {(lines or done.stderr.strip().splitlines() or ['nothing said'])[-1][:300]}"

    def shell(self, copy: Copy) -> dict[str, str]:
        merged = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **copy.variables}
        return {name: value for name, value in merged.items() if value is not None}

    def check(self, copy: Copy, *options: str) -> dict[str, Any]:
        return self.ask(copy, "check", *options, *(() if self.gpu else ASSUMED))

    def ask(self, copy: Copy, verb: str, *options: str) -> dict[str, Any]:
        command = [*copy.wrapper, *self.envcheck, verb, "--json", "--python", str(copy.prefix), *options]
        began = time.monotonic()
        done = subprocess.run(
            command, cwd=copy.folder, env=self.shell(copy), capture_output=True, text=True, timeout=600, check=False
        )
        try:
            report: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            return {"exit": done.returncode, "error": done.stderr[-2000:] or done.stdout[-2000:], "told": []}
        bad = [check for check in report["checks"] if check["status"] in ("fail", "warn", "unknown")]
        primary = next((check for check in report["checks"] if check["id"] == report["primary_check"]), None)
        return {
            "exit": done.returncode, "seconds": round(time.monotonic() - began, 2), "verdict": report["verdict"],
            "headline": report["headline"], "primary": primary, "bad": bad,
            "told": [check for check in report["checks"] if check["status"] in ("fail", "warn", "note")],
            "measurements": report.get("measurements", []),
            "probes": [run for run in report["probes"] if run["status"] not in ("ok", "absent")],
        }  # fmt: skip

    def measure(self, copy: Copy, quantities: tuple[str, ...]) -> dict[str, Any]:
        return self.ask(copy, "bench", "--full", "--force", *[word for name in quantities for word in ("--only", name)])

    def is_right_of_libraries(self, variant: Variant, said: dict[str, Any]) -> bool:
        """Figures may be low here, since other variants use the GPU too: findings about them do not count."""
        causes = [check for check in said["bad"] if not check["explained_by"] and not check["rule"].startswith("slow-")]
        return any(self.right(variant, {**said, "primary": cause}) for cause in causes)

    def rest_is_intact(self, variant: Variant, said: dict[str, Any]) -> bool:
        """Whether the last quantity, whose library is sound, was measured."""
        return any(each["name"] == variant.measured[-1] and each.get("value") for each in said.get("measurements", []))

    def right(self, variant: Variant, said: dict[str, Any]) -> bool:
        primary = said.get("primary")
        if variant.harmless:
            return said.get("verdict") in ("pass", "warn") and said.get("exit") == 0
        if variant.family == PRECONDITION:
            return any(self.names(variant, check) for check in said["told"])
        return primary is not None and self.names(variant, primary)

    def names(self, variant: Variant, check: dict[str, Any]) -> bool:
        if variant.rules and check["rule"] not in variant.rules:
            return False
        text = json.dumps([check["title"], check["message"], check["evidence"]])
        return all(re.search(pattern, text) for pattern in variant.names)


def lines(result: Result) -> Iterator[str]:
    if result.skipped:
        yield f"-            {result.family:15} {result.name}: {result.skipped}"
        return
    deep = ("right" if result.right_deep else "WRONG") if result.deep else "-"
    measured = "" if result.right_bench else "bench WRONG "
    marks = f"{'right' if result.right_static else 'WRONG'} {deep:6}{measured}"
    yield f"{marks} {result.family:15} {result.name} ({result.seconds:.0f} s)"
    yield "    truth  " + "; ".join(f"{name} {said or 'works'}" for name, said in result.truth.items())
    if result.followed:
        left = "; ".join(f"{name} {said}" for name, said in result.after["truth"].items())
        yield f"    done   {result.followed}: {left or 'all works'}{', still named' * result.after['named']}"
    kinds = {"static": result.static, "after": result.after, "deep": result.deep, "bench": result.bench}
    for kind, said in kinds.items():
        if said:
            primary = said.get("primary")
            told = f"{primary['rule']}: {primary['title']}" if primary else said.get("headline") or said.get("error")
            yield f"    {kind:6} exit {said.get('exit')} {said.get('verdict')} ({said.get('seconds')} s) {told}"
            for fix in (primary or {}).get("fixes", [])[:2]:
                yield f"           fix: {shlex.join(fix['command']) if fix['command'] else fix['text']}"
            others = [
                check["rule"] for check in said.get("bad", []) if check is not primary and check["status"] != "unknown"
            ]
            if others:
                yield f"           also: {' '.join(others)}"


def tell(text: str, *files: TextIO) -> None:
    for file in (sys.stdout, *files):
        file.write(f"{text}\n")
        file.flush()


def run(laboratory: Laboratory, wanted: str, workers: int, out: Path) -> list[Result]:
    chosen = [variant for variant in VARIANTS if wanted in f"{variant.name} {variant.family}"]
    results: list[Result] = []
    try:
        with ThreadPoolExecutor(workers) as pool, (out / "variants.txt").open("w") as text:
            for result in pool.map(laboratory.put, chosen):
                results.append(result)
                tell("\n".join(lines(result)), text)
            met = [result for result in results if not result.skipped]
            right = [sum(result.right_static for result in met), sum(result.right_deep for result in met)]
            mended = sum(bool(each.followed) and not (each.after["truth"] or each.after["named"]) for each in met)
            tell(f"\nstatic right {right[0]}, deep right {right[1]}, of {len(met)}; mended {mended}", text)
    finally:
        shutil.rmtree(laboratory.folder, ignore_errors=True)
    (out / "variants.json").write_text(json.dumps([vars(result) for result in results]))
    with tarfile.open(out / "variants.tar.gz", "w:gz") as archive:
        archive.add(out / "variants.json", "variants.json")
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envcheck", default=f"{sys.executable} -m envcheck", help="command that starts envcheck")
    parser.add_argument("--python", default=shutil.which("python3") or sys.executable)
    parser.add_argument("--only", default="", help="variants whose name or class holds this")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--no-gpu", action="store_true")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) // 3))
    parser.add_argument("--work", type=Path, help="folder for the copies; beside the environment if it can be written")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    laboratory = Laboratory(
        asked.python, shlex.split(asked.envcheck), asked.work, deep=asked.deep, gpu=not asked.no_gpu
    )
    began = time.monotonic()
    run(laboratory, asked.only, asked.workers, asked.out)
    tell(f"{time.monotonic() - began:.0f} s with {asked.workers} at a time, copies of {laboratory.original}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
