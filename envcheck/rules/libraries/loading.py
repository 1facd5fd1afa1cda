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
    """A library of the system is not installed."""


@rule(layer="library", arises=never, remedy=_LOAD_FIRST, explains=("framework-import-fails",))
def static_tls_exhausted() -> None:
    """A library was loaded too late to get static thread-local storage."""


@rule(layer="library", arises=never, remedy=_SAME_ARCHITECTURE, explains=("framework-import-fails",))
def library_of_other_architecture() -> None:
    """A library is built for another processor architecture."""


@rule(layer="library", arises=never, remedy=_ONE_OPENMP)
def openmp_loaded_twice() -> None:
    """Two copies of the OpenMP library are loaded into one process."""
