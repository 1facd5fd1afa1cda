"""Container images whose tag says what they hold: ``FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime``.

The image is the one that runs, or that is built from; a text that names several says of none that it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from envcheck.compat.images import Image, image_of, is_framework
from envcheck.compat.load import load_matrix
from envcheck.compat.names import canonical
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, with_environment
from envcheck.importers.kit.stated_libraries import stated_cuda, stated_cudnn
from envcheck.snapshot import OF_FRAMEWORK_IMAGE, OF_IMAGE, Distribution, Framework, Listing, Snapshot

NAME = "container image"
RANK = Rank.PROSE

_IMAGE = re.compile(
    r"(?:^|[\s\"'=`(])(?:docker\.io/)?(?P<name>[a-z0-9.-]{2,60}(?:/[a-z0-9._-]{2,60}){1,3}):(?P<tag>[A-Za-z0-9][\w.-]{2,100})(?=$|[\s\"'`,;)@])"
)
_NOT_RUN = re.compile(r"error|not found|manifest|pull access|unable|fail", re.IGNORECASE)
_LONGEST_LINE, _MOST = 600, 8


def read(paste: Paste) -> Snapshot:
    found = dict(image for image, _ in zip(_images(paste), range(_MOST), strict=False))
    return _snapshot(next(iter(found.values()))) if len(found) == 1 else Snapshot()


def _images(paste: Paste) -> Iterator[tuple[str, Image]]:
    """The images whose tags the matrix can read, by name."""
    for line in paste.statements:
        if ":" not in line or "/" not in line or _NOT_RUN.search(line[:_LONGEST_LINE]):
            continue
        for match in _IMAGE.finditer(line[:_LONGEST_LINE]):
            image = image_of(load_matrix(), f"{match['name']}:{match['tag']}")
            if image is not None and image.row is not None:
                yield image.name, image


def _snapshot(image: Image) -> Snapshot:
    held = image.holds
    cuda, cudnn = held.get("cuda"), held.get("cudnn")
    framework = image.row.frameworks.get(image.name.rpartition(":")[0]) if image.row else None
    if framework:
        version = held.get(framework)
        minor = ".".join(cuda.split(".")[:2]) if cuda else None
        gpu_build = False if cuda else None
        found = Framework(source=SOURCE, name=framework, version=version, cuda=minor, cpu_only=gpu_build)
        return with_environment(environment(frameworks=(found,)))
    of_framework = is_framework(load_matrix(), canonical(image.name.partition(":")[0].rpartition("/")[2]))
    told_by = OF_FRAMEWORK_IMAGE if of_framework else OF_IMAGE
    items = (*((stated_cuda(cuda, told_by=told_by),) if cuda else ()), *((stated_cudnn(cudnn),) if cudnn else ()))
    libraries = Listing(items=items) if items else None
    packages = {name: version for name, version in held.items() if is_framework(load_matrix(), name)}
    if not packages:
        return Snapshot(libraries=libraries)
    listed = tuple(Distribution(source=SOURCE, name=name, version=version) for name, version in packages.items())
    return msgspec.structs.replace(with_environment(environment(distributions=listed)), libraries=libraries)
