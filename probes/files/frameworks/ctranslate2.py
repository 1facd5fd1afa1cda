"""CTranslate2.

Contents of Linux wheels (3.24.0 and 4.8.5): ``version.py`` assigns ``__version__``; ``_ext*.so`` needs
``../ctranslate2.libs/libctranslate2-….so.4.8.5``, which holds the GPU code, has the CUDA runtime linked into it, and
opens ``libcublas.so.12`` (and ``libcudnn.so.8`` up to 3.24) by those names when it is first used; without one of these
it raises ("is not found or cannot be loaded"). NCCL is opened for several GPUs alone.
"""

from __future__ import annotations

import re
from typing import Any

from ..installations.package import add_declared, add_stated_version, locate, problems
from ..installations.parts import add_parts, asked_by_name, asks_for_cuda, cuda_by_loads
from ..python.site import Site

IMPORTS = ("ctranslate2",)
DISTRIBUTIONS = ("ctranslate2",)

_NEEDED = ("libcublas", "libcudnn")
_CUDNN = re.compile(r"libcudnn-\w+\.so\.(\d{1,2}(?:\.\d{1,2}){1,2})")


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The CTranslate2 that ``import ctranslate2`` would take."""
    here = locate(site, "ctranslate2", names)
    if here is None:
        return []
    facts = here.gather("ctranslate2")
    stated = add_stated_version(facts, here, "version.py")
    add_declared(facts, here)
    libraries = here.files(r"libctranslate2\b.*\.so[.0-9]*", f"{here.folder}/ctranslate2.libs")
    libraries += here.files(r"libctranslate2\b.*\.so[.0-9]*")
    asks = [
        ask._replace(optional=not ask.names[0].startswith(_NEEDED))
        for path in libraries
        for ask in asked_by_name(here, path)
    ]
    parts = [*libraries, *here.files(r"_ext\b.*\.so")]
    add_parts(facts, here, parts, asks=asks)
    cuda_by_loads(facts)
    bundled = (_CUDNN.fullmatch(name) for name in sorted(here.names(f"{here.folder}/ctranslate2.libs")))
    facts.add(f"file {here.folder}/ctranslate2.libs", cudnn=next((match[1] for match in bundled if match), None))
    linked = asks_for_cuda(facts) if libraries else None
    facts.add(f"elf {here.path}", cpu_only=None if linked is None else not linked)
    return [facts.record(problems(here, stated, "version.py", ("version.py",)))]
