"""What paths lead to, each asked of the file system once: many libraries need the same few."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._kit import below
from ._links import resolve
from ._loading_heads import head_of

if TYPE_CHECKING:
    from ._kit import Request
    from ._loading_heads import Head


class Paths:
    """The paths of one system, as they are inside the request's root."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._folders: dict[str, str | None] = {}
        self._real: dict[str, str | None] = {}
        self._heads: dict[str, Head | None] = {}

    def folder(self, path: str) -> str | None:
        """The folder with its links resolved; None where one leads nowhere."""
        if path not in self._folders:
            self._folders[path] = resolve(self._request, path or "/")
        return self._folders[path]

    def real(self, path: str) -> str | None:
        """The path with its links resolved; None where its folder or its own link leads nowhere."""
        if path not in self._real:
            self._real[path] = self._resolved(path)
        return self._real[path]

    def head(self, path: str) -> Head | None:
        """The head of the file to which a path leads; None where it leads to none.

        Raises OSError where a path can lead nowhere for another reason (a link in a circle, a name that is too long).
        """
        if path not in self._heads:
            self._heads[path] = self._head(path)
        return self._heads[path]

    def _resolved(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        inside = self.folder(folder)
        if inside is None:
            return None
        place = f"{inside.rstrip('/')}/{name}"
        return resolve(self._request, place) if os.path.islink(below(self._request, place)) else place

    def _head(self, path: str) -> Head | None:
        if "\0" in path:
            return None
        if self._request.get("root", "/") == "/":
            return head_of(path)
        inside = self.real(path)
        return head_of(below(self._request, inside)) if inside else None
