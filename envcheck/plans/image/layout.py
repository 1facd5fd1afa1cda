"""Which files of the build context lie where in an image, as far as COPY, ADD, WORKDIR and bind mounts tell."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from envcheck.plans.kit.sheet import Sheet

_WILD = frozenset("*?[")


@dataclass
class Layout:
    """The folder that commands run in, and what was copied."""

    folder: str | None = "/"
    """None: not known."""
    copies: list[tuple[str, str | None]] = field(default_factory=list)
    """Place in the image, and the path in the build context; None: it comes from elsewhere."""

    def copy(self) -> Layout:
        """The same, for further changes."""
        return replace(self, copies=[*self.copies])

    def enter(self, path: str) -> None:
        """Change the folder, as WORKDIR and ``cd`` do."""
        self.folder = self._absolute(path)

    def put(self, sources: list[str], target: str) -> None:
        """Note what is copied to ``target``."""
        place = self._absolute(target)
        if place is None:
            return
        for source in sources:
            elsewhere = "://" in source or source.startswith(("<<", "git@"))
            self.copies.append((place, None if elsewhere else posixpath.normpath(source.lstrip("/") or ".")))

    def cover(self, target: str) -> None:
        """Note that files which are not of the context are copied to ``target``."""
        if (place := self._absolute(target)) is not None:
            self.copies.append((place, None))

    def covers(self, path: str) -> bool:
        """Whether what lies at ``path`` was copied, from wherever."""
        place = self._absolute(path)
        return place is not None and any(_is_below(place, target) for target, _ in self.copies)

    def find(self, sheet: Sheet, path: str) -> str | None:
        """The file that lies at ``path`` in the image, seen from the sheet's folder; None: it is not in the context."""
        place = self._absolute(path)
        if place is None:
            return None
        for target, source in reversed(self.copies):
            if not _is_below(place, target):
                continue
            if source is None:
                return None
            for candidate in _candidates(source, posixpath.relpath(place, target)):
                for context in sheet.contexts:
                    if sheet.has_beside(there := posixpath.normpath(posixpath.join(context, candidate))):
                        return there
        return None

    def _absolute(self, path: str) -> str | None:
        if "$" in path or path.startswith("~") or (self.folder is None and not path.startswith("/")):
            return None
        return posixpath.normpath(posixpath.join(self.folder or "/", path))


def _is_below(place: str, target: str) -> bool:
    return place == target or place.startswith(target.rstrip("/") + "/")


def _candidates(source: str, rest: str) -> Iterator[str]:
    """Paths in the context of what lies ``rest`` below the target of a copied file or folder."""
    folder, name = posixpath.split(source)
    if rest == ".":
        yield source
        return
    if not _WILD & set(source):
        yield posixpath.join(source, rest)  # what a copied folder holds
    if fnmatch.fnmatchcase(rest.partition("/")[0], name):
        yield posixpath.join(folder, rest)  # a file in the folder that is the target
