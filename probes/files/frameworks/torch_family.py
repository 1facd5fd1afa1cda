"""torchvision and torchaudio, which have one release for each release of PyTorch.

Contents of Linux wheels (torchvision 0.20.1 and 0.29.2; torchaudio 0.11.0, 0.13.1, 2.5.1 and 2.11.0): ``version.py``
assigns ``__version__`` with the label of the build (``'0.20.1+cu124'``), which the metadata of PyPI's wheels lacks;
``+cpu`` is a build without CUDA. The metadata pins torch by ``==``; torchvision 0.29 asks for ``>=`` because it keeps
to the part of PyTorch's interface that does not change, and torchaudio 2.11 asks for nothing. torchvision's
operations lie in ``_C.so`` (later ``_C_stable.so``) and ``image.so``, torchaudio's in ``lib/``.
"""

from __future__ import annotations

from typing import Any

from ...common.paths import without_prefix
from ..installations.package import Installation, add_declared, assigned, label, locate, problems, version
from ..installations.parts import add_torch_extension
from ..owners.requirements import pinned
from ..python.site import Gathered, Site

IMPORTS = ("torchvision", "torchaudio")
DISTRIBUTIONS = ("torchvision", "torchaudio")


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The installed ones of the two."""
    found = ((name, locate(site, name, (name,))) for name in names)
    return [_read(name, here) for name, here in found if here is not None]


def _read(name: str, here: Installation) -> dict[str, Any]:
    facts = here.gather(name, extends="torch")
    stated = version(assigned(here.text("version.py") or "", "__version__"))
    if stated:
        facts.add(f"file {here.path}/version.py", version=stated, **build_of(stated))
    add_declared(facts, here)
    add_pinned_torch(facts, here)
    if name == "torchvision":
        parts = [*here.files(r"_C(?:_stable)?(?:\..*)?\.so"), *here.files(r"image(?:_stable)?(?:\..*)?\.so")]
    else:
        parts = [
            *here.files(r"lib(?:torchaudio|ctc_prefix_decoder)\b.*\.so", "lib"),
            *here.files(r"_torchaudio\b.*\.so"),
        ]
        parts += here.files(r"_torchaudio\b.*\.so", "lib")
    add_torch_extension(facts, here, parts)
    return facts.record(problems(here, stated, "version.py", ("version.py",)))


def build_of(version_text: str | None) -> dict[str, Any]:
    """The CUDA version, or its absence, in the local tag of a version; ``+rocm6.2`` is a build for ROCm."""
    _, _, local = (version_text or "").partition("+")
    if local == "cpu":
        return {"cpu_only": True}
    if local.startswith("rocm"):
        return {"hip": version(without_prefix(local, "rocm")), "cpu_only": False}
    cuda = label(version_text).get("cuda")
    return {"cuda": cuda, "cpu_only": False} if cuda else {}


def add_pinned_torch(facts: Gathered, here: Installation) -> None:
    """Add the only PyTorch version that its metadata allows, as the one it was built for."""
    wheel = here.wheel
    torch = pinned((wheel or {}).get("requires") or (), "torch")
    if wheel and torch:
        facts.add(wheel["source"], built_for={"torch": torch})
