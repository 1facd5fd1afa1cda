"""CUDA and cuDNN that a text says are installed, without the path of a file."""

from __future__ import annotations

from envcheck.importers.kit.paste import SOURCE
from envcheck.snapshot import AS_STATED, Library


def stated_cuda(version: str, *, told_by: str = "") -> Library:
    """The toolkit of a CUDA version that a text states; ``told_by``: what kind of image has it, if one does."""
    read = {"declared": told_by} if told_by else {}
    path = f"CUDA {version}{AS_STATED}"
    return Library(source=SOURCE, path=path, family="cuda-toolkit", cuda=version, declared=version, read=read)


def stated_cudnn(version: str, *, loaded: bool = False) -> Library:
    """The cuDNN of a version that a text states; ``loaded``: that a program says it loaded."""
    path = f"cuDNN {version}{AS_STATED}"
    return Library(source=SOURCE, path=path, family="cudnn", declared=version, loaded=version if loaded else None)
