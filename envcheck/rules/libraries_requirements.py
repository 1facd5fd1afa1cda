"""What brings a missing library of CUDA, as an installer's requirement."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envcheck.compat.libraries import toolkit_wheels
from envcheck.rules.api import Facts
from envcheck.rules.framework_fixes import same_version
from envcheck.rules.libraries_names import LibraryName
from envcheck.rules.libraries_wheels import toolkit_extra, wheel_holding
from envcheck.snapshot import Framework
from envcheck.versions import CudaVersion

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_REQUIREMENT = re.compile(r"(nvidia-[a-z0-9-]+|tensorrt[a-z0-9-]*)(?:\[[^\]]*\])?\s*((?:[=<>!~]=?[0-9.*]+,?)*)")
_TOOLKIT = re.compile(r"cuda-toolkit\[([^\]]*)\]")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([a-z0-9][a-z0-9._-]{0,40})["']""")


def requirements(names: Sequence[LibraryName], framework: Framework, facts: Facts) -> tuple[str, ...]:
    """What brings these libraries: an extra of the framework's own, else the wheels that its metadata asks for, else
    those for the CUDA of its build. Wheels of the toolkit come by its distribution: their versions are not CUDA's.
    """
    own = dict.fromkeys(extra for name in names if (extra := _own_extra(framework, name.family)))
    if own:  # it brings what else belongs to them, as a compiler
        return (f"{framework.name}[{','.join(own)}]{same_version(framework)}",)
    extras: dict[str, None] = {}
    wanted: dict[str, None] = {}
    for name in (name for name in names if name.number):
        extra = toolkit_extra(name.family)
        found = declared(framework, name.family)
        if found is None and extra:
            extras[extra] = None
        elif found := found or _of_its_own(name, framework):
            wanted[found] = None
    cuda = CudaVersion.parse(framework.cuda)
    release = toolkit_wheels(facts.tables, cuda, minor="." in (framework.cuda or "")) if cuda and extras else None
    return (*((f"cuda-toolkit[{','.join(extras)}]{release}",) if release else ()), *wanted)


def _of_its_own(name: LibraryName, framework: Framework) -> str | None:
    """The wheel of a library that is released apart from the toolkit, of the major in its soname."""
    base, cuda = wheel_holding(name.family), CudaVersion.parse(framework.cuda)
    if base is None or cuda is None:
        return None
    return f"{base}-cu{cuda.major}=={name.number.partition('.')[0]}.*"


def declared(framework: Framework, family: str) -> str | None:
    """The wheel of a family, as the metadata asks for it."""
    for line in _lines_holding(framework, family):
        match = _REQUIREMENT.match(line)
        if match:
            return f"{match[1]}{match[2].rstrip(',')}"
    return None


def _own_extra(framework: Framework, family: str) -> str | None:
    """The extra, if just one, under which the metadata asks for a family: ``and-cuda``, ``ctk``."""
    marks = [_EXTRA.search(line) for line in _lines_holding(framework, family)]
    extras = {mark[1] for mark in marks if mark}
    return extras.pop() if len(extras) == 1 and all(marks) and PLAIN_NAME.fullmatch(framework.name) else None


def _lines_holding(framework: Framework, family: str) -> list[str]:
    """The lines of the metadata that ask for a wheel of a family, or for the toolkit's distribution with it."""
    base, extra = wheel_holding(family), toolkit_extra(family)
    wheel = re.compile(rf"{base}(?:-cu\d+)?")
    found = []
    for line in framework.requires if base else ():
        match, toolkit = _REQUIREMENT.match(line), _TOOLKIT.match(line)
        if (match and wheel.fullmatch(match[1])) or (toolkit and extra in toolkit[1].split(",")):
            found.append(line)
    return found
