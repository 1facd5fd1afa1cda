"""Fixes for a CUDA library that is missing, too old or the wrong copy: requirements and commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from envcheck.compat.package_needs import admits, extra_of, normalised, of_an_extra, pinned_by, read_requirement
from envcheck.compat.wheels import published
from envcheck.knowledge.error_lines import named_by
from envcheck.knowledge.relations.libraries import TOOLKIT, same_major, toolkit_wheels
from envcheck.model.checks import Fix
from envcheck.model.snapshot import Distribution, Framework, Load
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts, Remedy
from envcheck.rules.facts.libraries import VARIABLES, folder_of
from envcheck.rules.facts.library_names import (
    LibraryName,
    contains_library,
    cuda_of_wheel,
    lines_requiring,
    names_in,
    toolkit_extra,
    wheel_with,
)
from envcheck.rules.fixes.frameworks import install_gpu_build, same_version
from envcheck.rules.fixes.install import How, in_steps, install, is_conda_package
from envcheck.rules.messages.observed import at_fault
from envcheck.rules.messages.refine import MISSING, OF_OTHER_MAJOR, name_not_found, required_by_torch
from envcheck.text.lazy import lazy_pattern

SYSTEM_LIBRARY = Fix(
    "Install the system's package that holds the library; apt-file search and dnf provides name it, by its file"
)
"""For a missing library that is none of CUDA's."""

PLAIN_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")


def requirements(names: Sequence[LibraryName], framework: Framework, facts: Facts) -> tuple[str, ...]:
    """The requirements that install these libraries: the same wheel again, where an installed one lost its library;
    else an extra of the framework, else the wheels that its metadata requires, else those for its CUDA version. Wheels
    of the toolkit are requested through ``cuda-toolkit``, since their versions differ from CUDA's.
    """
    listed = {name: line for name in names if name.number and (line := _listed(name, framework, facts))}
    rest = [name for name in names if name not in listed]
    again = tuple(dict.fromkeys(listed.values()))
    own: dict[str, None] = {}
    for name in rest if PLAIN_NAME.fullmatch(framework.name) else ():
        # The one extra under which the metadata requires a family, if there is no other: ``and-cuda``, ``ctk``.
        of_family = {extra_of(line) for line in lines_requiring(framework, name.family)}
        own |= dict.fromkeys(filter(None, of_family)) if len(of_family) == 1 else {}
    if own:  # the extra also installs related parts, such as a compiler
        return (*again, f"{framework.name}[{','.join(own)}]{same_version(framework)}")
    extras: dict[str, None] = {}
    wanted: dict[str, None] = {}
    for name in (name for name in rest if name.number):
        extra = toolkit_extra(name.family)
        found = declared(framework, name.family)
        if found is None and extra:
            extras[extra] = None
        elif found:
            wanted[found] = None
        elif (wheel := wheel_with(name.family)) and (cuda := CudaVersion.parse(framework.cuda)):
            # Released separately from the toolkit, with the major version in its soname.
            wanted[f"{wheel}-cu{cuda.major}=={name.number.partition('.')[0]}.*"] = None
    # The version of ``cuda-toolkit``: as the metadata requires it, else for the CUDA version of the build.
    release: str | None = None
    for line in framework.requires if extras else ():
        asked = read_requirement(line)
        if asked is not None and normalised(asked.name) == TOOLKIT and str(asked.specifier) and not of_an_extra(line):
            release = release or str(asked.specifier)
    if extras and release is None and (cuda := CudaVersion.parse(framework.cuda)):
        release = toolkit_wheels(facts.matrix, cuda, minor="." in (framework.cuda or ""))
    toolkit = (f"{TOOLKIT}[{','.join(extras)}]{release}",) if release else ()
    return tuple(dict.fromkeys((*toolkit, *again, *wanted)))


def _listed(name: LibraryName, framework: Framework, facts: Facts) -> str | None:
    """The installed wheel with this library, pinned to its version unless the metadata requires another."""
    line = declared(framework, name.family)
    asked, cuda = read_requirement(line) if line else None, CudaVersion.parse(framework.cuda)
    majors = (None, str(cuda.major)) if cuda else ()
    for each in wheels_with(name, facts):
        if not majors or cuda_of_wheel(each) in majors:
            fits = asked is None or not str(asked.specifier) or admits(str(asked.specifier), each.version) is not False
            return f"{each.name}=={each.version}" if fits else line
    return None


def declared(framework: Framework, family: str) -> str | None:
    """The wheel of a family, as the metadata requires it."""
    for line in lines_requiring(framework, family):
        asked = read_requirement(line)
        if asked is not None and normalised(asked.name) != TOOLKIT:
            return f"{normalised(asked.name)}{asked.specifier}"
    return None


_BETWEEN = {"LD_PRELOAD": "[ :]+", "LD_LIBRARY_PATH": "[:;]"}
"""The separators between a variable's entries, where it accepts more than the colon."""


def install_libraries(names: Iterable[LibraryName], framework: Framework, facts: Facts) -> tuple[Fix, ...]:
    """Install the wheels with these libraries, in the versions that the framework's metadata requires."""
    names = tuple(names)
    wanted = requirements(names, framework, facts)
    unnumbered = [name.file for name in names if not name.number]
    if not wanted:
        # Names without a version number are links for linking programs; only development packages have them.
        cuda = f"CUDA {framework.cuda}" if framework.cuda else "CUDA"
        text = f"Put a toolkit of {cuda} with cuDNN, as developers install it, on the loader's path: it has "
        text += f"{' and '.join(unnumbered)}, which NVIDIA's wheels do not have"
        toolkit = (Fix(text, who="root"),) if unnumbered else ()
        return (*toolkit, *install_gpu_build(facts, framework))
    text = f"Install what holds the missing libraries for {framework.title}"
    found = install(facts, wanted, text, How(again=True, owner=framework.name))
    return in_steps((*found, *led)) if (led := add_wheel_folders(framework)) else found


def add_wheel_folders(framework: Framework) -> tuple[Fix, ...]:
    """The step after installing for a framework whose loader does not search NVIDIA's wheels."""
    if framework.looks_in_wheels is not False:
        return ()
    there = f"Point the loader there: {framework.name} does not search wheels by itself"
    return (Fix(f"{there}: check again, which names the folders for LD_LIBRARY_PATH"),)


def drop_from_variable(loads: Iterable[Load], facts: Facts) -> tuple[Fix, ...]:
    """Remove the copies that LD_LIBRARY_PATH or LD_PRELOAD puts first from that variable, if one does."""
    found = [load for load in loads if load.path and load.found_by in VARIABLES]
    name = (found[0].found_by if found else None) or ""
    folders = [folder_of(load.path) for load in found if load.found_by == name]
    return without_variable(name, folders, facts) if found else ()


def install_library_again(family: str, framework: Framework, facts: Facts) -> tuple[Fix, ...]:
    """Install the library version that the framework's metadata requires, else the framework and its pins."""
    wanted = declared(framework, family)
    text = f"Install the release that {framework.title} asks for: {wanted}"
    how = How(again=True, owner=framework.name)
    return install(facts, (wanted,), text, how) if wanted else install_framework_again(framework, facts)


def install_framework_again(framework: Framework, facts: Facts) -> tuple[Fix, ...]:
    """Reinstall the framework in its present version, with the libraries that it pins."""
    version = same_version(framework)
    if framework.name == "torch" or not PLAIN_NAME.fullmatch(framework.name) or not version:
        return install_gpu_build(facts, framework)
    text = f"Install {framework.name} {version.removeprefix('==')} again, with the libraries that it asks for"
    return install(facts, (f"{framework.name}{version}",), text, How(again=True, owner=framework.name))


def without_variable(name: str, places: Iterable[str], facts: Facts) -> tuple[Fix, ...]:
    """Start a program without these folders (and files in them) in a variable's value. The variable is unset where
    nothing else remains, or where an entry may reach them through a link.
    """
    gone = tuple(dict.fromkeys(places))
    parts = [part for part in re.split(_BETWEEN.get(name, ":"), facts.variable(name) or "") if part]

    def is_at(part: str, place: str) -> bool:
        """Whether an entry, possibly relative, is this folder or a file in it."""
        plain = PurePosixPath(part)
        if not plain.is_absolute():
            return PurePosixPath(place).match(part)
        return str(plain) == place or (".so" in plain.name and str(plain.parent) == place)

    kept = [part for part in parts if not any(is_at(part, place) for place in gone)]
    text = f"Take {', '.join(gone)} out of {name}" + (": nothing else is in it" if parts and not kept else "")
    change = (f"{name}={':'.join(kept)}",) if len(kept) < len(parts) and kept else ("-u", name)
    return (Fix(text, command=("env", *change, "python")),)


def add_folders(folders: Sequence[str]) -> Fix:
    text = (
        f"Let the loader look in {', '.join(folders)}. LD_LIBRARY_PATH holds for the process started with it: set it "
        "for each program and for envcheck, or as root name the folders in /etc/ld.so.conf.d and run ldconfig"
    )
    return Fix(text, command=("env", f"LD_LIBRARY_PATH={':'.join(folders)}", "python"))


_DLL = lazy_pattern(r"[\w.-]{1,60}\.dll\b", re.IGNORECASE)


def show_loader_search(facts: Facts) -> tuple[Fix, ...]:
    """Commands that show what the loader searches and takes, where only an error line is known."""
    file = next((found for error in facts.snapshot.observed_errors for found in _DLL.findall(error.text)), "")
    if file or facts.driver_os == "windows":
        text = "See which folder of PATH holds the DLL; Python itself looks only in those given to os.add_dll_directory"
        return (Fix(text, command=("where", file) if file else ("path",)),)
    found = sorted(facts.frameworks, key=facts.importance)
    framework = next((each for each in found if each.name in facts.about), next(iter(found), None))
    text = "See which file the loader finds, or where it searched"
    load = ("-c", f"import {framework.module}") if framework else ()
    command = ("env", "LD_DEBUG=libs", facts.interpreter, *load)
    first = Fix("See what LD_LIBRARY_PATH puts first", command=("printenv", "LD_LIBRARY_PATH"))
    return (Fix(text if load else f"{text}: import what fails", command=command), first)


def names_not_found(facts: Facts) -> list[LibraryName]:
    """The libraries that lines of the text do not find; where none says so, those that they name."""
    texts = [error.text for error in facts.snapshot.observed_errors]
    about = [text for text in texts if (line := named_by(text)) and line.problem in MISSING | OF_OTHER_MAJOR]
    found = [name for text in about if (name := name_not_found(text)) and name.number]
    return found or [name for text in texts for name in names_in(text) if name.number]


def wheels_with(name: LibraryName, facts: Facts) -> list[Distribution]:
    """The installed wheels that hold a library."""
    wheels = (each for each in facts.distributions if not is_conda_package(each))
    return [each for each in wheels if contains_library(each, name, facts.matrix)]


def look_in_wheels(wheels: Sequence[Distribution], name: LibraryName, facts: Facts) -> tuple[Fix, ...]:
    """Lead the loader to an installed wheel: installing it again changes nothing unless its files are gone."""
    wheel = wheels[0]
    folder = wheel.name.removeprefix("nvidia-").partition("-cu")[0].replace("-", "_")
    pinned = f"{wheel.name}=={wheel.version}"
    text = f"{pinned} is installed and holds {name.file}: show its folder. If its lib has the file, put that lib"
    command = (facts.interpreter, "-c", f"import nvidia.{folder} as it; print(it.__path__[0])")
    again = install(facts, (pinned,), "If the file is gone: install the wheel again", How(alone=True, again=True))
    return (Fix(f"{text} folder into LD_LIBRARY_PATH", command=command), *again)


def show_in_wheel(name: LibraryName | None, installing: Sequence[Fix], facts: Facts) -> tuple[Fix, ...]:
    """The fixes that install a wheel, and then the one that shows where its library lies."""
    if name is None or not installing or facts.driver_os == "windows":
        return tuple(installing)
    text = "A program that does not look into NVIDIA's wheels finds it by LD_LIBRARY_PATH: put this file's folder there"
    show = f'import glob, nvidia; print(*glob.glob(nvidia.__path__[0] + "/**/{name.file}", recursive=True))'
    return in_steps((*installing, Fix(text, command=(facts.interpreter, "-c", show))))


def install_wheel(base: str, what: str) -> Remedy:
    """The remedy that installs a wheel for the CUDA major version of the environment's framework, in the major version
    that a line asks for, or shows what the loader takes; without a command where the first is unknown, or no index has
    such a wheel.
    """

    def remedy(facts: Facts) -> tuple[Fix, ...]:
        cuda = next(filter(None, (CudaVersion.parse(each.cuda) for each in facts.frameworks)), None)
        asked = next((name for name in names_not_found(facts) if base.endswith(name.kind)), None)
        own = required_by_torch(f"{base}-cu", facts) if asked else None
        if asked and own and same_major(pinned_by(own), asked.number) is False:
            text = f"PyTorch requires {own}: install the release of {at_fault(facts)} for that one, or a PyTorch"
            return (Fix(f"{text} for {asked.file} in a new environment"), *show_loader_search(facts))
        wheels = wheels_with(asked, facts) if asked else []
        if wheels and asked and facts.driver_os != "windows":
            return (*look_in_wheels(wheels, asked, facts), *show_loader_search(facts))
        major = asked.number.partition(".")[0] if asked else ""
        # By the name of each wheel with the library, one for each CUDA, the major versions that it has.
        names = [name for name in facts.matrix.published_by_name if re.fullmatch(rf"{base}-cu\d+", name)]
        listed = {name: {each.numbers[0] for each in published(facts.matrix, name)} for name in names}
        having = [name for name, majors in listed.items() if major and int(major) in majors]
        if asked and major and not own and listed and not having:
            main = [each for each in facts.frameworks if facts.is_main_framework(each)]
            program = facts.matrix.title_of(main[0].name) if len(main) == 1 else "the program"
            text = f"No wheel has {asked.file}: install that release from NVIDIA's archive for the CUDA of {program}"
            variable = "PATH" if asked.file.endswith(".dll") else "LD_LIBRARY_PATH"
            there = f"Where {asked.file} is there already: put its folder into {variable}"
            return (Fix(f"{text}, or a newer release of {program}"), Fix(there), *show_loader_search(facts)[:1])
        text = f"Install {what} as a wheel for the CUDA major of the framework"
        wheel = f"{base}-cu{cuda.major}" if cuda else ""
        if not own and not (facts.matrix.is_published(wheel) or facts.matrix.rows_of(wheel)):
            none = f": {' or '.join(f'{name}=={major}.*' for name in having)}" if having else ""
            none = f": CUDA {cuda.major} has none, so install the framework for a newer CUDA" if cuda else none
            return (Fix(f"{text}{none}"), *show_loader_search(facts))
        bounds = f"=={major}.*" if asked else ""
        # Without a major version in the line, the installed release is what it refuses.
        found = install(facts, (own or f"{wheel}{bounds}",), text, How(newest=not bounds))
        return (*show_in_wheel(asked, found, facts), *show_loader_search(facts))

    return remedy


INSTALL_CUDNN = install_wheel("nvidia-cudnn", "cuDNN in the requested major version")
INSTALL_NCCL = install_wheel("nvidia-nccl", "the NCCL that the framework pins")
INSTALL_TENSORRT = install_wheel("tensorrt", "TensorRT in the requested major version")
