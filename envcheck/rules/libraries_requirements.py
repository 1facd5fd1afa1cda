"""What brings a missing library of CUDA, as an installer's requirement."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envcheck.compat.libraries import toolkit_wheels
from envcheck.compat.package_needs import admits, normalised, of_an_extra, read_requirement
from envcheck.rules.api import Facts
from envcheck.rules.framework_fixes import same_version
from envcheck.rules.libraries_names import LibraryName
from envcheck.rules.libraries_wheels import TOOLKIT, lines_holding, serves, toolkit_extra, wheel_holding
from envcheck.snapshot import Framework
from envcheck.versions import CudaVersion

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([a-z0-9][a-z0-9._-]{0,40})["']""")


def requirements(names: Sequence[LibraryName], framework: Framework, facts: Facts) -> tuple[str, ...]:
    """What brings these libraries: a wheel that is installed and has lost its library, that very wheel again; else an
    extra of the framework's own, else the wheels that its metadata asks for, else those for the CUDA of its build.
    Wheels of the toolkit come by its distribution: their versions are not CUDA's.
    """
    listed = {name: line for name in names if name.number and (line := _listed(name, framework, facts))}
    rest = [name for name in names if name not in listed]
    again = tuple(dict.fromkeys(listed.values()))
    own = dict.fromkeys(extra for name in rest if (extra := _own_extra(framework, name.family)))
    if own:  # it brings what else belongs to them, as a compiler
        return (*again, f"{framework.name}[{','.join(own)}]{same_version(framework)}")
    extras: dict[str, None] = {}
    wanted: dict[str, None] = {}
    for name in (name for name in rest if name.number):
        extra = toolkit_extra(name.family)
        found = declared(framework, name.family)
        if found is None and extra:
            extras[extra] = None
        elif found := found or _of_its_own(name, framework):
            wanted[found] = None
    release = _toolkit_release(framework, facts) if extras else None
    toolkit = (f"{TOOLKIT}[{','.join(extras)}]{release}",) if release else ()
    return tuple(dict.fromkeys((*toolkit, *again, *wanted)))


def _listed(name: LibraryName, framework: Framework, facts: Facts) -> str | None:
    """The wheel that is installed and holds this library, in the release that is there, unless another is asked for."""
    line = declared(framework, name.family)
    asked = read_requirement(line) if line else None
    for each in (facts.environment.distributions or ()) if facts.environment else ():
        if each.channel != "conda" and serves(each, name, facts.tables):
            fits = asked is None or not str(asked.specifier) or admits(str(asked.specifier), each.version) is not False
            return f"{each.name}=={each.version}" if fits else line
    return None


def _toolkit_release(framework: Framework, facts: Facts) -> str | None:
    """The release of the toolkit's distribution: as the metadata asks for it, else for the CUDA of the build."""
    for line in framework.requires:
        asked = read_requirement(line)
        if asked is not None and normalised(asked.name) == TOOLKIT and str(asked.specifier) and not of_an_extra(line):
            return str(asked.specifier)
    cuda = CudaVersion.parse(framework.cuda)
    return toolkit_wheels(facts.tables, cuda, minor="." in (framework.cuda or "")) if cuda else None


def _of_its_own(name: LibraryName, framework: Framework) -> str | None:
    """The wheel of a library that is released apart from the toolkit, of the major in its soname."""
    base, cuda = wheel_holding(name.family), CudaVersion.parse(framework.cuda)
    if base is None or cuda is None:
        return None
    return f"{base}-cu{cuda.major}=={name.number.partition('.')[0]}.*"


def declared(framework: Framework, family: str) -> str | None:
    """The wheel of a family, as the metadata asks for it."""
    for line in lines_holding(framework, family):
        asked = read_requirement(line)
        if asked is not None and normalised(asked.name) != TOOLKIT:
            return f"{normalised(asked.name)}{asked.specifier}"
    return None


def _own_extra(framework: Framework, family: str) -> str | None:
    """The extra, if just one, under which the metadata asks for a family: ``and-cuda``, ``ctk``."""
    marks = [_EXTRA.search(line) for line in lines_holding(framework, family)]
    extras = {mark[1] for mark in marks if mark}
    return extras.pop() if len(extras) == 1 and all(marks) and PLAIN_NAME.fullmatch(framework.name) else None
