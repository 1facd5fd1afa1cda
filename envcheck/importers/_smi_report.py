"""A full report of nvidia-smi, as a tree with the element names of its XML, to a Snapshot."""

from __future__ import annotations

import re

import msgspec

from envcheck.importers import _smi_gpu
from envcheck.importers._gpu_lines import MOST_GPUS, label
from envcheck.importers._paste import SOURCE
from envcheck.importers._smi_values import whole
from envcheck.importers._xml import Element
from envcheck.snapshot import Driver, Gpu, Listing, Snapshot

_RELEASE = re.compile(r"[0-9]{2,4}(?:\.[0-9]{1,4}){1,2}")
_CUDA = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}")


def snapshot_of(root: Element) -> Snapshot:
    """The driver and the GPUs of the report."""
    return Snapshot(driver=_driver(root), gpus=_gpus(root))


def _driver(root: Element) -> Driver | None:
    """The driver; nvidia-smi printed this, so its libraries are there."""
    release = _matching(root, _RELEASE, "driver_version", "kmd_version")
    cuda = _matching(root, _CUDA, "cuda_version", "cuda_umd_version")
    if release is None and cuda is None:
        return None
    return Driver(source=SOURCE, installed=True, release=release, cuda=cuda)


def _matching(root: Element, pattern: re.Pattern[str], *names: str) -> str | None:
    texts = [found.text for name in names if (found := root.at(name))]
    return next((text for text in texts if pattern.fullmatch(text)), None)


def _gpus(root: Element) -> Listing[Gpu] | None:
    """The GPUs whose element is whole. They come in the order of their index when none was left out by ``-i``."""
    elements = [element for element in root.all("gpu") if element.whole][:MOST_GPUS]
    attached = root.at("attached_gpus")
    count = whole(attached.text) if attached else None
    if not elements and count != 0:
        return None
    every = count == len(elements)
    gpus = [_smi_gpu.read(element) for element in elements]
    numbered = [_numbered(gpu, place, every=every) for place, gpu in enumerate(gpus)]
    return Listing(items=tuple(numbered), complete=every)


def _numbered(gpu: Gpu, place: int, *, every: bool) -> Gpu:
    """With its index, when that is known; a GPU that the text does not identify gets a label by its place."""
    if every:
        return msgspec.structs.replace(gpu, index=place, label=label(place))
    return gpu if gpu.identities() else msgspec.structs.replace(gpu, label=f"{SOURCE} {place}")
