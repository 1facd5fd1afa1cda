"""Undefined symbols of an extension, held against the framework that it would meet."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ._env_paths import printable
from ._loading import failed
from ._loading_symbols import UnreadError, missing, undefined

if TYPE_CHECKING:
    from ._loading import Image, Process, Request
    from ._loading_script import Event

_SHOWN = 16
_FRAMEWORK = re.compile(r"lib(?:torch|c10)\w*\.so")
_CORE = re.compile(r"lib(?:torch|torch_cpu|torch_python|c10|caffe2)\.so")
_OF_FRAMEWORK = re.compile(rb"_Z(?:T[VIST])?N[rVKRO]*(?:2at|3c10|5torch|6caffe2)")
"""Mangled names whose outermost namespace is one of PyTorch's."""


def unresolved(process: Process, events: list[Event]) -> list[str] | None:
    """Symbols of the framework's own parts that nothing in the process would define, as they stand.

    Asked only of parts that link PyTorch. None where no part does, or where it cannot be known: where PyTorch itself
    was not loaded, what it defines was not there to be met.
    """
    parts = [event.requests for event in events if _links_framework(event.requests)]
    if not parts or not any(_CORE.match(os.path.basename(image.path)) for image in process.images):
        return None
    if any(_fails_in_framework(request) for requests in parts for request in requests):
        return None
    found: dict[bytes, None] = {}
    try:
        for requests in parts:
            found.update(dict.fromkeys(_of_part(process, requests)))
    except UnreadError:
        return None
    return [printable(name.decode("utf-8", "replace")) for name in list(found)[:_SHOWN]]


def _links_framework(requests: list[Request]) -> bool:
    image = requests[0].image
    return image is not None and any(_FRAMEWORK.match(name) for name in image.head.needed)


def _fails_in_framework(request: Request) -> bool:
    """Whether a library of the framework's own lacks what it needs."""
    return (
        request.image is None and request.by is not None and bool(_FRAMEWORK.match(os.path.basename(request.by.path)))
    )


def _of_part(process: Process, requests: list[Request]) -> list[bytes]:
    """Where a library is missing, all but the framework's own symbols may have been in that one."""
    part = requests[0].image
    if part is None:
        return []
    names = undefined(part.head)
    if failed(requests):
        names = tuple(name for name in names if _OF_FRAMEWORK.match(name))
    images = [*process.images, *(request.image for request in requests if request.image)]
    scope = sorted(dict.fromkeys(images), key=_by_promise)
    return missing(names, [image.head for image in scope if image is not part])


def _by_promise(image: Image) -> bool:
    """Libraries of the framework first: there nearly all is found."""
    return _FRAMEWORK.match(os.path.basename(image.path)) is None
