"""Versions as people write them, and the specifiers that rows of the matrix set on them.

A specifier is a list of bounds that must all hold (``>=12.1,<13``); alternatives are separated by ``|``
(``==10.2|>=11.0,<=11.6``). What a bound means depends on what it names:

- A release: three numbers or more, or any suffix (``==2.5.1``, ``>=2.5rc1``). It means what PEP 440 says, as the
  package ``packaging`` reads it, so that ``<=2.5.1`` admits neither 2.5.1.post1 nor 2.5.1.1.
- A family: one or two numbers, or ``.*``. It stands for all that begins so, which PEP 440 knows with ``.*`` alone:
  ``<=11.6`` admits 11.6.2, ``>11.6`` does not, and ``==2.16`` is ``==2.16.*``.
- Of what counts builds (``Scheme.builds``: drivers, CUDA, cuDNN), which are no packages: always a family, whose last
  numbers may be left out on either side.

A version with too few numbers stands for a family too (``12`` for every 12.x), and is admitted wholly, in part, or not
at all. Which releases a row is about is a question of its own: ``speaks_of``.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal, NamedTuple, TypeAlias

from envcheck.model.components import COMPARE, OPERATORS
from envcheck.text.lazy import lazy_pattern

Cover: TypeAlias = Literal["all", "some", "none"]  # How much of what a version stands for a specifier admits
_COVERS: dict[bool, Cover] = {True: "all", False: "none"}

_VERSION = lazy_pattern(
    r"v?(?:(?P<epoch>[0-9]{1,9})!)?(?P<numbers>[0-9]{1,9}(?:\.[0-9]{1,9}){0,5})"
    r"(?:[-_. ]?(?P<pre>alpha|beta|preview|pre|a|b|c|rc|dp|ea)[-_. ]?(?P<nth>[0-9]{0,20}))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>[0-9]{0,9})|-(?P<build>[0-9]{1,9}))?"
    r"(?:[-_. ]?dev[-_.]?(?P<dev>[0-9]{0,20}))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_STAGES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc", "dp": "a", "ea": "a"}
"""Other words for the stages of a release; a developer preview and early access are NVIDIA's."""
_BOUND = lazy_pattern(rf"(===|{OPERATORS})\s*([^\s,|]+)")
_RELEASE = 3  # Numbers that name one release of a package; a bound with fewer stands for a family


class Scheme(NamedTuple):
    numbers: int = 3  # Numbers that name one release; with fewer, a version stands for all that start so
    builds: bool = False
    """Whether further numbers count builds of the release, which people leave out: then any build will do, and
    ``3.14`` is admitted by ``!=3.14.1``."""
    digits: int = 1  # Least digits of every number but the first: Ubuntu 22.04 has two


PLAIN = Scheme()


class Version(NamedTuple):
    numbers: tuple[int, ...]
    pre: str = ""  # What makes it a pre-release, as PEP 440 has it: ``rc1``, ``.dev20250131``. It precedes its release
    post: int | None = None
    local: str = ""  # What follows the plus sign: the build of a release
    scheme: Scheme = PLAIN
    epoch: int = 0

    @property
    def family(self) -> bool:
        """Whether it stands for several releases."""
        plain = not self.pre and self.post is None and not self.epoch
        return plain and len(self.numbers) < self.scheme.numbers

    @property
    def public(self) -> str:
        """As PEP 440 writes it, without the build."""
        post = f".post{self.post}" if self.post is not None else ""
        epoch = f"{self.epoch}!" if self.epoch else ""
        return f"{epoch}{'.'.join(map(str, self.numbers))}{self.pre}{post}"

    def __str__(self) -> str:
        first, *rest = self.numbers
        numbers = [str(first), *(f"{number:0{self.scheme.digits}}" for number in rest)]
        return ".".join(numbers) + self.pre + (f".post{self.post}" if self.post is not None else "")


@cache
def parse_version(text: str, scheme: Scheme = PLAIN) -> Version | None:
    """Read ``2.5.1+cu124``, ``0.0.28.post3`` or ``2.27.3-1``; None for what is not a version."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    stage, pre = (match["pre"] or "").lower(), ""
    post = match["post"] if match["build"] is None else match["build"]
    if stage or match["dev"] is not None:
        pre = f"{_STAGES.get(stage, stage)}{int(match['nth'] or 0)}" if stage else ""
        pre += f".post{int(post or 0)}" if post is not None else ""
        pre += f".dev{int(match['dev'] or 0)}" if match["dev"] is not None else ""
        post = None
    return Version(
        numbers=tuple(map(int, match["numbers"].split("."))),
        pre=pre,
        post=int(post or 0) if post is not None else None,
        local=(match["local"] or "").lower(),
        scheme=scheme,
        epoch=int(match["epoch"] or 0),
    )


def numbers_in(text: str) -> tuple[int, ...]:
    """The numbers of a version, by which rows are sorted; none for what is no version."""
    version = parse_version(text)
    return version.numbers if version else ()


class SpecifierBound(NamedTuple):
    operator: str
    numbers: tuple[int, ...]
    post: int | None = None
    prefix: bool = False  # Written with ``.*``: pre-releases are meant too
    pep440: str = ""  # The bound where it names a pre-release, a build or an epoch, or says ``===``, for ``packaging``

    def cover(self, version: Version) -> Cover:
        """How much of ``version`` is admitted."""
        own, its, builds = version.numbers, self.numbers, version.scheme.builds
        if own[: len(its)] != its[: len(own)] and not (self.pep440 or version.epoch):
            return _COVERS[COMPARE[self.operator](own, its)]  # the first numbers decide
        names_one = self.pep440 or self.post is not None  # by its suffix, with however few numbers
        if version.family and "!" not in self.pep440 and (len(own) < len(its) or names_one):
            return self._cover_family(version)
        if len(own) < len(its) and builds and own == its[: len(own)] and not self.pep440:
            return _COVERS[self.operator not in ("<", ">")]
        if self.pep440 or version.epoch:
            return _COVERS[_contains(self.pep440 or self._written(), version)]
        # A family begins with its first release, so that these mean the same of both.
        release = len(its) >= _RELEASE or self.post is not None or self.operator in (">=", "<")
        release = release and not (builds or self.prefix)
        size = max(len(own), len(its)) if release else len(its)
        own, its = (own + (0,) * size)[:size], (its + (0,) * size)[:size]
        if own != its:
            return _COVERS[COMPARE[self.operator](own, its)]
        # The numbers are the same: what follows them decides, unless the version has further ones.
        if version.pre and release:
            return _COVERS[_contains(self._written(), version)]
        beyond = any(version.numbers[size:])
        if version.pre and not beyond and not self.prefix:
            return _COVERS[self.operator in ("<=", "!=")]
        if (release or self.post is not None) and not beyond:
            if self.operator == ">" and self.post is None:
                return "none"  # a post-release is no later release
            posts = (-1 if post is None else post for post in (version.post, self.post))
            return _COVERS[COMPARE[self.operator](*posts)]
        return _COVERS[self.operator in ("==", ">=", "<=")]

    def _cover_family(self, version: Version) -> Cover:
        """How much of a family is admitted by a bound that names one release, or fewer than the family is."""
        own, its = version.numbers, self.numbers + (0,) * len(version.numbers)
        start, rest = its[: len(own)], self.numbers[len(own) :]
        if own != start:
            return _COVERS[COMPARE[self.operator](own, start)]
        if not any(rest) and self.post is None and self.operator in (">=", "<"):
            return _COVERS[self.operator == ">="]
        return "some"

    def _written(self) -> str:
        return f"{self.operator}{Version(self.numbers, post=self.post).public}{'.*' if self.prefix else ''}"


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


@lru_cache(maxsize=1 << 12)
def _contains(bound: str, version: Version) -> bool:
    """Whether ``packaging`` finds a version within a bound. It is loaded here: few versions need it."""
    from packaging.specifiers import Specifier as Pep440  # noqa: PLC0415
    from packaging.version import Version as Release  # noqa: PLC0415  which === compares as it is normalized

    return Pep440(bound).contains(Release(f"{version.public}+{version.local}".rstrip("+")), prereleases=True)


@cache
def parse_specifier(text: str) -> Specifier:
    """Read a specifier of the matrix; a bare version is ``==``. Raises ValueError for what is none."""
    alternatives: list[tuple[SpecifierBound, ...]] = []
    for part in text.split("|"):
        found: list[SpecifierBound] = []
        for piece in map(str.strip, part.split(",")):
            match = _BOUND.fullmatch(piece)
            found += _bound(match[1], match[2], part) if match else _bound("==", piece, part)
        alternatives.append(tuple(found))
    return Specifier(tuple(alternatives))


@lru_cache(maxsize=1 << 15)
def covered(specifier: str, version: Version) -> Cover:
    """How much of ``version`` is admitted: a question meets the same rows and releases hundreds of times."""
    return parse_specifier(specifier).cover(version)


@lru_cache(maxsize=1 << 15)
def speaks_of(versions: str, version: Version) -> Cover:
    """How much of ``version`` a row with these versions is about: a post-release is built from its release, so that
    what is said of that one holds, unless the row tells post-releases apart.
    """
    rows = parse_specifier(versions)
    if version.post is not None and not rows.names_post:
        padded = version.numbers + (0,) * (version.scheme.numbers - len(version.numbers))
        version = version._replace(numbers=padded, post=None)
    return rows.cover(version)


def _bound(operator: str, value: str, text: str) -> list[SpecifierBound]:
    bare = value.removesuffix(".*")
    version, prefix = parse_version(bare), bare != value
    if version is None:
        raise ValueError(f"{value!r} in {text!r} is not a version")
    exact = operator in ("==", "!=", "===")
    if prefix and (not exact or version.pre or version.local or version.post is not None):
        raise ValueError(f"{value!r} in {text!r} is not a version for {operator}")
    if not exact and version.local:  # PEP 440 refuses a build here, which people write all the same
        version = version._replace(local="")
    by_packaging = operator == "===" or bool(version.pre or version.local or version.epoch)
    if operator != "~=":
        pep440, known = "", operator
        if operator == "===":
            pep440, known = operator + value, "=="
        elif by_packaging:
            pep440 = operator + f"{version.public}+{version.local}".rstrip("+") + ".*" * prefix
        return [SpecifierBound(known, version.numbers, version.post, prefix, pep440)]
    series = version._replace(numbers=version.numbers[:-1], pre="", post=None)
    if not series.numbers:
        raise ValueError(f"{value!r} in {text!r} is not a version for ~=, which needs two numbers")
    least = f">={version.public}" if by_packaging else ""
    within = f"=={series.public}.*" if version.epoch else ""
    return [
        SpecifierBound(">=", version.numbers, version.post, pep440=least),
        SpecifierBound("==", series.numbers, prefix=True, pep440=within),
    ]
