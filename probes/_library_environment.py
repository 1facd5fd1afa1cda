"""The copies in one Python environment: what its wheels and conda packages list, and what lies there unlisted."""

from __future__ import annotations

from typing import Any

from . import _owner_conda
from ._kit import Request
from ._library_claims import Claim
from ._library_copies import Copies
from ._links import expand, folder_names
from ._owner_wheels import recorded_by

_BUNDLES = (
    "torch/lib",
    "tensorrt_libs",
    "tensorrt_lean_libs",
    "tensorrt_dispatch_libs",
    "tensorrt",
    "cutensor/lib",
    "cusparselt/lib",
    "cupy/.data/lib",
    "jaxlib/cuda",
    "onnxruntime/capi",
    "paddle/libs",
    "mxnet",
)
"""Folders of site-packages in which wheels bring copies along; read whether or not a RECORD lists them."""

_CONDA = ("lib", "lib/stubs", "targets/*/lib", "targets/*/lib/stubs", "cuda-compat", "nvvm/lib64")

Record = dict[str, Any]


def add_environment(request: Request, copies: Copies, environment: Record) -> None:
    """Everything in the environment that the record describes."""
    key = environment["key"]
    distributions = environment.get("distributions") or ()
    for distribution in distributions:
        if distribution["channel"] == "pip":
            _add_wheel(request, copies, key, distribution)
    for site in environment.get("site_packages") or ():
        _add_site(request, copies, key, site)
    conda = [item for item in distributions if item["channel"] == "conda"]
    if conda:
        _add_prefix(request, copies, key, conda)
    copies.complete = copies.complete and bool(environment.get("distributions_complete"))


def _add_wheel(request: Request, copies: Copies, key: str, distribution: Record) -> None:
    path = distribution["path"]
    if not path.endswith(".dist-info"):
        return
    by_conda = distribution.get("installer") == "conda"  # conda's own record is the one that counts
    for recorded in recorded_by(request, path).libraries:
        claim = Claim("wheel", distribution["name"], distribution["version"], recorded.size, recorded.hash)
        copies.add(recorded.path, "conda" if by_conda else "wheel", key, claim=None if by_conda else claim)


def _add_site(request: Request, copies: Copies, key: str, site: str) -> None:
    names = set(folder_names(request, site)[0])
    origin = {"site-packages": "wheel", "dist-packages": "system"}.get(site.rpartition("/")[2], "other")
    folders = [f"{site}/{bundle}" for bundle in _BUNDLES if bundle.partition("/")[0] in names]
    folders += [f"{site}/{name}" for name in sorted(names) if name.endswith(".libs")]
    if "nvidia" in names:
        folders += expand(request, f"{site}/nvidia/*/lib")
    for folder in folders:
        copies.add_folder(folder, origin, key)


def _add_prefix(request: Request, copies: Copies, key: str, packages: list[Record]) -> None:
    claims = _owner_conda.owners(request, key, packages)
    for path, owners in claims.items():
        for claim in owners:
            copies.add(path, "conda", key, claim=claim)
    for pattern in _CONDA:
        for folder in expand(request, f"{key}/{pattern}"):
            copies.add_folder(folder, "conda", key)
