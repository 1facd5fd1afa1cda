"""Versions as people write them, and the specifiers that rows of the matrix set on them.

A specifier is a list of bounds that must all hold (``>=12.1,<13``); alternatives are separated by ``|``
(``==10.2|>=11.0,<=11.6``). A bound compares by the leading numbers that it names: ``<=11.6`` admits 11.6.2, ``<13``
admits 12.9 and not 13.0, and ``==2.16`` is ``==2.16.*``. A version that names too few numbers stands for a family
(``12`` for every 12.x), and a family is admitted wholly, in part, or not at all.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal, NamedTuple, TypeAlias

from envcheck.model.components import COMPARE, OPERATORS

Cover: TypeAlias = Literal["all", "some", "none"]
"""How much of what a version stands for a specifier admits."""

_VERSION = re.compile(
    r"v?(?P<numbers>[0-9]{1,9}(?:\.[0-9]{1,9}){0,5})"
    r"(?:[-_. ]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview|dp|ea|dev)[-_. ]?[0-9]*(?:[-_.]?dev[0-9]*)?"
    r"|(?:[-_.]?(?:post|rev)[-_.]?|-)(?P<post>[0-9]{1,9}))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_BOUND = re.compile(rf"({OPERATORS})\s*([^\s,|]+)")


class Scheme(NamedTuple):
    numbers: int = 3
    """Numbers that name one release; with fewer, a version stands for all that start so."""
    builds: bool = False
    """Whether further numbers count builds of the release, which people leave out: then any build will do, and
    ``3.14`` is admitted by ``!=3.14.1``."""
    digits: int = 1
    """Least digits of every number but the first: Ubuntu 22.04 has two."""


PLAIN = Scheme()


class Version(NamedTuple):
    numbers: tuple[int, ...]
    pre: bool = False
    """A pre-release of these numbers: it comes before them."""
    post: int | None = None
    local: str = ""
    """What follows the plus sign: the build of a release."""
    scheme: Scheme = PLAIN

    @property
    def family(self) -> bool:
        """Whether it stands for several releases."""
        return len(self.numbers) < self.scheme.numbers and not self.pre and self.post is None

    def __str__(self) -> str:
        first, *rest = self.numbers
        numbers = [str(first), *(f"{number:0{self.scheme.digits}}" for number in rest)]
        return ".".join(numbers) + (f".post{self.post}" if self.post is not None else "")


@cache
def parse_version(text: str, scheme: Scheme = PLAIN) -> Version | None:
    """Read ``2.5.1+cu124``, ``0.0.28.post3`` or ``2.27.3-1``; None for what is not a version."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    return Version(
        numbers=tuple(map(int, match["numbers"].split("."))),
        pre=match["pre"] is not None,
        post=int(match["post"]) if match["post"] else None,
        local=(match["local"] or "").lower(),
        scheme=scheme,
    )


def numbers_in(text: str) -> tuple[int, ...]:
    """The numbers of a version, by which rows are sorted; none for what is no version."""
    version = parse_version(text)
    return version.numbers if version else ()


class SpecifierBound(NamedTuple):
    operator: str
    numbers: tuple[int, ...]
    post: int | None = None
    prefix: bool = False
    """Written with ``.*``: pre-releases are meant too."""

    def cover(self, version: Version) -> Cover:
        """How much of ``version`` is admitted."""
        own, its = version.numbers, self.numbers
        if len(own) < len(its):
            if version.family:
                start, rest = self.numbers[: len(own)], self.numbers[len(own) :]
                if own != start:
                    return _as_cover(COMPARE[self.operator](own, start))
                if not any(rest) and self.post is None and self.operator in (">=", "<"):
                    return _as_cover(self.operator == ">=")
                return "some"
            if version.scheme.builds and own == its[: len(own)]:
                return _as_cover(self.operator not in ("<", ">"))
        own = (own + (0,) * len(its))[: len(its)]
        if own != its:
            return _as_cover(COMPARE[self.operator](own, its))
        # The numbers are the same: what follows them decides, unless the version has further ones.
        beyond = any(version.numbers[len(self.numbers) :])
        if version.pre and not beyond and not self.prefix:
            return _as_cover(self.operator in ("<=", "!="))
        if self.post is not None and not beyond:
            return _as_cover(COMPARE[self.operator](-1 if version.post is None else version.post, self.post))
        return _as_cover(self.operator in ("==", ">=", "<="))


class Specifier(NamedTuple):
    """Alternatives, each a list of bounds that must all hold."""

    alternatives: tuple[tuple[SpecifierBound, ...], ...]

    def cover(self, version: Version) -> Cover:
        """How much of ``version`` is admitted."""
        found = set[Cover]()
        for bounds in self.alternatives:
            covers = {bound.cover(version) for bound in bounds}
            found.add("none" if "none" in covers else "some" if "some" in covers else "all")
        return "all" if "all" in found else "some" if "some" in found else "none"

    @property
    def bounds(self) -> tuple[SpecifierBound, ...]:
        return tuple(bound for bounds in self.alternatives for bound in bounds)

    @property
    def names_post(self) -> bool:
        """Whether it tells post-releases apart."""
        return any(bound.post is not None for bound in self.bounds)


@cache
def parse_specifier(text: str) -> Specifier:
    """Read a specifier of the matrix; a bare version is ``==``. Raises ValueError for what is none."""
    return Specifier(tuple(_bounds(part) for part in text.split("|")))


@lru_cache(maxsize=1 << 15)
def covered(specifier: str, version: Version) -> Cover:
    """How much of ``version`` is admitted: a question meets the same rows and releases hundreds of times."""
    return parse_specifier(specifier).cover(version)


def _bounds(text: str) -> tuple[SpecifierBound, ...]:
    found: list[SpecifierBound] = []
    for piece in text.split(","):
        match = _BOUND.fullmatch(piece.strip())
        if match:
            found += _bound(match[1], match[2], text)
        else:
            found += _bound("==", piece.strip(), text)
    return tuple(found)


def _bound(operator: str, value: str, text: str) -> list[SpecifierBound]:
    version = parse_version(value.removesuffix(".*"))
    if version is None:
        raise ValueError(f"{value!r} in {text!r} is not a version")
    if operator == "~=":
        start = SpecifierBound("==", version.numbers[:-1], prefix=True)
        return [SpecifierBound(">=", version.numbers, version.post), start]
    return [SpecifierBound(operator, version.numbers, version.post, value.endswith(".*"))]


def _as_cover(holds: bool) -> Cover:  # noqa: FBT001 - a Boolean is all there is to say
    return "all" if holds else "none"
