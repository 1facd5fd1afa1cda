"""How a framework's Python code loads libraries, as data: what, in which order, from where."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Preload(NamedTuple):
    """A file that the framework's Python code loads itself, so that later requests for its soname get it.

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
    """Skipped if a library with one of these sonames (no patterns) is already loaded."""
    unless_found: bool = False
    """Skipped if the loader would find one of these by name."""
    required: bool = False
    """Whether the code gives up where there is no such file, or it cannot be loaded: the preloads after it at the same
    place are left out then."""
    every: bool = False
    """Whether all matching files are loaded, in the order of ``names`` and then by name, not only the first."""


class Ask(NamedTuple):
    """A library that code loads by name (``dlopen``) after the parts are loaded."""

    names: tuple[str, ...]
    """Alternatives; the first that is found is taken. One with a slash is that file (of a plug-in: ``parts`` that may
    fail)."""
    by: str | None = None
    """Name or path of the requesting file, whose RPATH or RUNPATH applies; None: Python code (``ctypes``)."""
    optional: bool = True
    """Whether the framework works without it."""
