"""Container images whose tag says what they hold: ``FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime``.

The image is the one that runs, or that is built from; a text that names several says of none that it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from envcheck.compat.load import load_matrix
from envcheck.compat.tables import ImageRow
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, with_environment
from envcheck.importers.kit.stated_libraries import stated_cuda, stated_cudnn
from envcheck.snapshot import Distribution, Framework, Listing, Snapshot

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
    found = dict(image for image, _ in zip(_images(paste), range(_MOST), strict=False))
    return _snapshot(*next(iter(found.values()))) if len(found) == 1 else Snapshot()


def _images(paste: Paste) -> Iterator[tuple[str, tuple[ImageRow, dict[str, str]]]]:
    """The images whose tags the matrix can read: the row, and the versions of what they hold."""
    for line in paste.statements:
        if ":" not in line or "/" not in line or _NOT_RUN.search(line[:_LONGEST_LINE]):
            continue
        for match in _IMAGE.finditer(line[:_LONGEST_LINE]):
            for row in load_matrix().images:
                told = re.fullmatch(row.tags, match["tag"]) if match["name"] in row.names else None
                if told:
                    stated = {key: value for key, value in told.groupdict().items() if value}
                    yield f"{match['name']}:{match['tag']}", (row, {**row.holds, **stated})
                    break


def _snapshot(row: ImageRow, held: dict[str, str]) -> Snapshot:
    cuda, cudnn = held.pop("cuda", None), held.pop("cudnn", None)
    if row.framework:
        version = held.get(row.framework)
        minor = ".".join(cuda.split(".")[:2]) if cuda else None
        gpu_build = False if cuda else None
        framework = Framework(source=SOURCE, name=row.framework, version=version, cuda=minor, cpu_only=gpu_build)
        return with_environment(environment(frameworks=(framework,)))
    items = (*((stated_cuda(cuda),) if cuda else ()), *((stated_cudnn(cudnn),) if cudnn else ()))
    libraries = Listing(items=items) if items else None
    if not held:
        return Snapshot(libraries=libraries)
    listed = tuple(Distribution(source=SOURCE, name=name, version=version) for name, version in held.items())
    return msgspec.structs.replace(with_environment(environment(distributions=listed)), libraries=libraries)
