"""What only errors show: a system library that is missing, of another architecture, loaded twice or too late."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import Facts, never, rule

INSTALL_IT = "Install the system's package that holds the library (apt-file search NAME, dnf provides '*/NAME')"
_PUT_IT_THERE = (
    "Put the DLL beside the program, or in a folder of PATH: from the package that brings it (NVIDIA's instructions "
    "for cuDNN 8 name that of zlibwapi.dll; others come with the Visual C++ Redistributable)"
)


def _provide_it(facts: Facts) -> tuple[Fix, ...]:
    return (Fix(text=_PUT_IT_THERE if facts.driver_os == "windows" else INSTALL_IT),)


_LOAD_FIRST = (
    Fix(text="Load the named library first: LD_PRELOAD=/path/from/the/error python …, or import its package first"),
    Fix(text="Or reserve more: GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 python …"),
)


_SAME_ARCHITECTURE = (Fix(text="Install the build for this architecture: a 64-bit Python and wheels for it"),)


_ONE_OPENMP = (Fix(text="Install the packages that bring OpenMP from one source (all by conda, or all by pip)"),)


@rule(layer="library", arises=never, remedy=_provide_it, explains=("framework-import-fails",))
def system_library_missing() -> None:
    """A library of the system is not installed.

    What it checks
        Reads error lines of the loader about libraries that belong neither to CUDA nor to the driver,
        such as libGL.so.1, libnuma.so.1 or libopenblas.so.0, and on Windows zlibwapi.dll.

    Why it matters
        The package that needs it cannot be imported. Slim images lack many libraries that a desktop
        has.

    How to fix
        Install the distribution's package that holds the library: libgl1, libnuma1, libopenblas0,
        libopenmpi3 and so on. OpenCV has builds without a screen (opencv-python-headless). On Windows,
        cuDNN 8 from 8.3 on needs zlibwapi.dll, which does not come with it.

    Sources
        Linux manual, the dynamic loader: https://man7.org/linux/man-pages/man8/ld.so.8.html
    """


@rule(layer="library", arises=never, remedy=_LOAD_FIRST, explains=("framework-import-fails",))
def static_tls_exhausted() -> None:
    """A library was loaded too late to get static thread-local storage.

    What it checks
        Reads the loader's error "cannot allocate memory in static TLS block".

    Why it matters
        Some libraries (OpenMP's libgomp, jemalloc) need memory that the loader reserves when the
        program starts. Libraries loaded earlier may have used it up. The machine has memory enough.

    How to fix
        Import the package of the named library first, or name the library in LD_PRELOAD. glibc 2.33 and
        later can reserve more by GLIBC_TUNABLES.

    Sources
        glibc, tunables of the dynamic linker:
          https://www.gnu.org/software/libc/manual/html_node/Dynamic-Linking-Tunables.html
    """


@rule(layer="library", arises=never, remedy=_SAME_ARCHITECTURE, explains=("framework-import-fails",))
def library_of_other_architecture() -> None:
    """A library is built for another processor architecture.

    What it checks
        Reads error lines of the loader: "wrong ELF class", "[WinError 193]", "incompatible
        architecture".

    Why it matters
        A 32-bit process cannot load 64-bit libraries, and a library for x86-64 does not load on ARM.

    How to fix
        Use a 64-bit Python, install the wheel for this architecture, and remove folders of other
        architectures from LD_LIBRARY_PATH or PATH.

    Sources
        Linux manual, the dynamic loader: https://man7.org/linux/man-pages/man8/ld.so.8.html
    """


@rule(layer="library", arises=never, remedy=_ONE_OPENMP)
def openmp_loaded_twice() -> None:
    """Two copies of the OpenMP library are loaded into one process.

    What it checks
        Reads the error "OMP: Error #15: Initializing …, but found … already initialized".

    Why it matters
        The library ends the program, since two copies would count threads twice and may compute wrong
        results. Packages from conda and from pip often bring one copy each.

    How to fix
        Install the packages from one source. KMP_DUPLICATE_LIB_OK=TRUE silences the check only.

    Sources
        LLVM, messages of the OpenMP library:
          https://github.com/llvm/llvm-project/blob/main/openmp/runtime/src/i18n/en_US.txt
    """
