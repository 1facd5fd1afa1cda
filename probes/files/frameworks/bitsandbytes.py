"""bitsandbytes: one library for each CUDA, of which PyTorch's CUDA decides.

Contents of Linux wheels (0.41.3, 0.43.0 and 0.50.2): ``libbitsandbytes_cuda128.so`` and the like (up to 0.44 also
``…_nocublaslt.so`` for old GPUs), ``libbitsandbytes_cpu.so``, later others for ROCm and XPU. The one for the CUDA
that PyTorch was built with is loaded; later releases take the nearest of the same major where that is missing
(``cextension.py`` then speaks of ``available`` libraries). ``BNB_CUDA_VERSION`` names another; then no release
takes the nearest. ``__init__.py`` assigns ``__version__``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..installations.package import Installation, add_declared, add_stated_version, locate, problems
from ..installations.parts import add_torch_extension
from ..installations.torch_files import torch_of
from ..python.site import Site

if TYPE_CHECKING:
    from typing import TypeAlias

IMPORTS = ("bitsandbytes",)
DISTRIBUTIONS = ("bitsandbytes",)

_LIBRARY = re.compile(r"libbitsandbytes_cuda(\d{2})(\d)\.so")
_NEAREST = "def _find_cuda_libs"
_VARIABLE = "BNB_CUDA_VERSION"

Number: TypeAlias = "tuple[int, int]"


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The bitsandbytes that ``import bitsandbytes`` would take."""
    here = locate(site, "bitsandbytes", names)
    if here is None:
        return []
    facts = here.gather("bitsandbytes", extends="torch")
    stated = add_stated_version(facts, here, "__init__.py")
    add_declared(facts, here)
    # Version of CUDA → path, in order.
    found = ((_LIBRARY.fullmatch(path.rpartition("/")[2]), path) for path in here.files(_LIBRARY.pattern))
    libraries = dict(sorted(((int(match[1]), int(match[2])), path) for match, path in found if match))
    wrong = problems(here, stated, "__init__.py", ("__init__.py",))
    if libraries:
        variable = str(site.tree.variables.get(_VARIABLE, ""))
        named = (int(variable[:2]), int(variable[2])) if re.fullmatch(r"\d{3}", variable) else None
        match = re.fullmatch(r"(\d{1,2})\.(\d)", torch_of(site).cuda or "")
        wanted = named or ((int(match[1]), int(match[2])) if match else None)
        chosen = _chosen(here, libraries, wanted, exactly=named is not None) if wanted else None
        if chosen:
            facts.add(f"file {libraries[chosen]}", cuda=f"{chosen[0]}.{chosen[1]}", cpu_only=False)
            add_torch_extension(facts, here, [libraries[chosen]])
        elif wanted:
            versions = ", ".join(f"{major}.{minor}" for major, minor in libraries)
            wrong.append(
                f"it has libraries for CUDA {versions}, and none for {wanted[0]}.{wanted[1]}, which it would load"
            )
        facts.add(f"file {here.path}", cpu_only=False)
    elif here.names():
        others = any(name.startswith(("libbitsandbytes_rocm", "libbitsandbytes_xpu")) for name in here.names())
        facts.add(f"file {here.path}", cpu_only=not others)
        add_torch_extension(facts, here, here.files(r"libbitsandbytes_cpu\.so"))
    return [facts.record(wrong)]


def _chosen(here: Installation, libraries: dict[Number, str], wanted: Number, *, exactly: bool) -> Number | None:
    """The version whose library is loaded; None if there is none."""
    if wanted in libraries:
        return wanted
    if exactly or _NEAREST not in (here.text("cextension.py") or ""):
        return None
    same = [number for number in libraries if number[0] == wanted[0]]
    older = [number for number in same if number < wanted]
    return max(older) if older else min(same, default=None)
