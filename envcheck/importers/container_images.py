"""Container images whose tag says what they hold: ``FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime``.

The image is the one that runs, or that is built from; a text that names several says of none that it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.compat.images import image_of
from envcheck.compat.load import load_matrix
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, with_environment
from envcheck.importers.kit.stated_libraries import stated_cuda, stated_cudnn
from envcheck.snapshot import Distribution, Framework, Library, Listing, Snapshot

NAME = "container image"
RANK = Rank.PROSE

_IMAGE = re.compile(
    r"(?:^|[\s\"'=`(])(?:docker\.io/)?(?P<name>[a-z0-9.-]{2,60}(?:/[a-z0-9._-]{2,60}){1,3}):(?P<tag>[A-Za-z0-9][\w.-]{2,100})(?=$|[\s\"'`,;)@])"
)
_NOT_RUN = re.compile(r"error|not found|manifest|pull access|unable|fail", re.IGNORECASE)
_LONGEST_LINE, _MOST = 600, 8


def recognise(paste: Paste) -> bool:
    return next(_images(paste), None) is not None


def read(paste: Paste) -> Snapshot:
    found = dict.fromkeys(pair for pair, _ in zip(_images(paste), range(_MOST), strict=False))
    if len(found) != 1:
        return Snapshot()
    ((image, held),) = found
    return _snapshot(image, dict(held))


_Held = tuple[tuple[str, str], ...]


def _images(paste: Paste) -> Iterator[tuple[str, _Held]]:
    """The images whose tags the matrix can read, with what they hold."""
    for line in paste.statements:
        if ":" not in line or "/" not in line or _NOT_RUN.search(line[:_LONGEST_LINE]):
            continue
        for match in _IMAGE.finditer(line[:_LONGEST_LINE]):
            image = image_of(load_matrix(), f"{match['name']}:{match['tag']}")
            if image is not None and image.row is not None:
                yield match[0].strip(), tuple(sorted(image.holds.items()))


def _snapshot(image: str, held: dict[str, str]) -> Snapshot:
    cuda, cudnn, torch = held.get("cuda"), held.get("cudnn"), held.get("torch")
    if "pytorch" in image:
        minor = ".".join(cuda.split(".")[:2]) if cuda else None
        framework = Framework(source=SOURCE, name="torch", version=torch, cuda=minor, cpu_only=False if cuda else None)
        return with_environment(environment(frameworks=(framework,)))
    items: list[Library] = []
    if cuda:
        items.append(stated_cuda(cuda))
    if cudnn:
        items.append(stated_cudnn(cudnn))
    libraries = Listing(items=tuple(items)) if items else None
    listed = held.get("tensorflow")
    if listed is None:
        return Snapshot(libraries=libraries)
    return with_environment(
        environment(distributions=(Distribution(source=SOURCE, name="tensorflow", version=listed),))
    )
