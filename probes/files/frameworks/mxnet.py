"""Apache MXNet: ``mxnet`` for the CPU, ``mxnet-cuNNN`` for one CUDA each, all filling the package ``mxnet``.

Contents of Linux wheels (mxnet 1.9.1 and 2.0.0b1, mxnet-cu112 1.9.1): ``libinfo.py`` assigns ``__version__``;
everything is in ``libmxnet.so``. No file of text names the CUDA version; the distribution's name and the library do.
"""

from __future__ import annotations

import re
from typing import Any

from ..installations.package import add_declared, add_stated_version, digits_as_version, locate, owner, problems
from ..installations.parts import add_parts, asks_for_cuda, cuda_by_loads
from ..python.site import Site

IMPORTS = ("mxnet",)
DISTRIBUTIONS = ("mxnet",)

_NAME = re.compile(r"mxnet(?:-cu(\d{2,3}))?(?:mkl|-mkl|-native)?")


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The MXNet that ``import mxnet`` would take."""
    forks = sorted({item["name"] for item in site.distributions if _NAME.fullmatch(item["name"])} - set(names))
    here = locate(site, "mxnet", (*names, *forks))
    if here is None:
        return []
    library = here.files(r"libmxnet\.so")
    wheel = owner(here, library[0] if library else None)
    facts = here.gather(wheel["name"] if wheel else "mxnet")
    stated = add_stated_version(facts, here, "libinfo.py")
    add_declared(facts, here)
    match = _NAME.fullmatch(wheel["name"]) if wheel else None
    if wheel and match and match[1]:
        facts.add(wheel["source"], cuda=digits_as_version(match[1]), cpu_only=False)
    add_parts(facts, here, library)
    cuda_by_loads(facts)
    linked = asks_for_cuda(facts) if library else None
    facts.add(f"elf {here.path}/libmxnet.so", cpu_only=None if linked is None else not linked)
    return [facts.record(problems(here, stated, "libinfo.py", ("libinfo.py",)))]
