"""What a framework's Python code does about libraries, as data: in what order it loads what, and where it looks."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Preload(NamedTuple):
    """A file that the framework's Python code loads itself, so that whoever asks later for its soname is given it.

    It goes through the search path's folders, in each through ``folders``, in each through ``names``, and takes the
    first file there is; where there is none, it goes on without.
    """

    names: tuple[str, ...]
    """Names of the file; shell patterns are allowed: ``libnvrtc.so.*[0-9]``."""
    folders: tuple[str, ...] = ("",)
    """Below a folder of the search path: ``nvidia/cudnn/lib``. An absolute one stands for itself. An empty one: the
    loader itself is asked for the name (``ctypes.CDLL("libnccl.so.2")``)."""
    after: str | None = None
    """Name of the file (``libtorch_global_deps.so``), of ``parts`` or ``extends``, after which it happens; None: before
    all of them."""
    when: Literal["always", "failed", "mapped"] = "always"
    """``failed``: only if ``after`` could not be loaded, which is then tried again when all of these are done.
    ``mapped``: only if the path of a loaded file contains ``mapped``."""
    mapped: str = ""
    unless_loaded: bool = False
    """Whether nothing is done where a library of one of these names (as sonames, no patterns) is loaded already."""
    unless_found: bool = False
    """The same where the loader would find one of them by its name: who needs it asks for it, and is given that."""
    required: bool = False
    """Whether the code gives up where there is no such file, or it cannot be loaded: the preloads after it at the same
    place are left out then."""
    every: bool = False
    """Whether all files that match are loaded, in order of ``names`` and then by name, not only the first."""


class Ask(NamedTuple):
    """A library that code loads by name (``dlopen``) once the parts are loaded."""

    names: tuple[str, ...]
    """Alternatives; the first that is found is taken. One with a slash is that file (of a plug-in: ``parts`` that may
    fail)."""
    by: str | None = None
    """Name or path of the loaded file that asks, whose RPATH or RUNPATH counts; None: Python code (``ctypes``)."""
    optional: bool = True
    """Whether the framework goes on without it."""
