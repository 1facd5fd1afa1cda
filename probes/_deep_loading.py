"""What an import asks for: which library it is about to load, and which packages it wants.

The former is the last word of a process that the loading kills.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator  # noqa: UP035  read by Python 3.8 too

Tell = Callable[[str], None]

_EVENTS = ("import", "ctypes.dlopen")
_OWN = "/lib-dynload/"
"""Where the interpreter's own extensions lie."""
_listeners: list[Tell] = []
_wanted: dict[str, None] = {}
"""Top-level packages, in the order in which they were first asked for."""
_hooked: list[bool] = []


@contextmanager
def loading_told(tell: Tell) -> Iterator[None]:
    """Call ``tell`` with the path of every library of a package before it is loaded."""
    if not _hooked:
        sys.addaudithook(_hear)  # it cannot be taken back: it stays, and is silent while nobody listens
        _hooked.append(True)
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)


def packages_lost() -> list[str]:
    """Packages that were asked for and are not loaded: absent, or their own import failed."""
    return [name for name in _wanted if name not in sys.modules]


def _hear(event: str, arguments: Any) -> None:
    if not _listeners or event not in _EVENTS:
        return
    path = arguments[1] if event == "import" else arguments[0]
    if event == "import" and isinstance(arguments[0], str):
        _wanted[arguments[0].partition(".")[0]] = None
    if isinstance(path, str) and path.startswith("/") and ".so" in path and _OWN not in path:
        try:
            _listeners[-1](path)
        except Exception:
            pass
