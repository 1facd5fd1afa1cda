"""What mends a missing, older or foreign library of CUDA, in the words of the environment's own manager."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from envcheck.checks import Fix
from envcheck.rules.api import Facts, FrameworkSubject
from envcheck.rules.commands import pip_command, python_of
from envcheck.rules.framework_facts import importance, module_of, named, of
from envcheck.rules.framework_fixes import install_gpu_build, same_version
from envcheck.rules.install import How, in_steps, install
from envcheck.rules.libraries_names import LibraryName
from envcheck.rules.libraries_requirements import PLAIN_NAME, declared, requirements
from envcheck.snapshot import Framework
from envcheck.versions import CudaVersion

_BETWEEN = {"LD_PRELOAD": "[ :]+", "LD_LIBRARY_PATH": "[:;]"}
"""What separates the entries of a variable, where that is not the colon alone."""


def install_libraries(names: Iterable[LibraryName], subject: FrameworkSubject, facts: Facts) -> tuple[Fix, ...]:
    """Install the wheels that hold these libraries, in the versions that the framework's metadata asks for."""
    framework = subject.framework
    names = tuple(names)
    wanted = requirements(names, framework, facts)
    unnumbered = [name.file for name in names if not name.number]
    if not wanted and unnumbered:
        return (_toolkit_of_developers(unnumbered, framework), *install_gpu_build(facts, framework))
    if not wanted:
        return install_gpu_build(facts, framework)
    text = f"Install what holds the missing libraries for {named(framework)}"
    found = install(facts, wanted, text, How(again=True, owner=framework.name))
    led = lead_into_wheels(framework)
    return in_steps((*found, *led)) if led else found


def lead_into_wheels(framework: Framework) -> tuple[Fix, ...]:
    """The step after installing, for a framework whose loader must be led to NVIDIA's wheels."""
    if framework.looks_in_wheels is not False:
        return ()
    there = f"Lead the loader there, since {framework.name} does not look into wheels by itself"
    return (Fix(text=f"{there}: check again, which names the folders for LD_LIBRARY_PATH"),)


def install_declared(framework: Framework, family: str, facts: Facts) -> tuple[Fix, ...]:
    """Install the version of one library's wheel that the framework's metadata asks for."""
    wanted = declared(framework, family)
    if wanted is None:
        return ()
    how = How(again=True, owner=framework.name)
    return install(facts, (wanted,), f"Install the release that {named(framework)} asks for: {wanted}", how)


def install_framework_again(subject: FrameworkSubject, facts: Facts) -> tuple[Fix, ...]:
    """Install the framework's own release anew, with the libraries that it pins."""
    framework = subject.framework
    version = same_version(framework)
    if framework.name == "torch" or not PLAIN_NAME.fullmatch(framework.name) or not version:
        return install_gpu_build(facts, framework)
    text = f"Install {framework.name} {version.removeprefix('==')} again, with the libraries that it asks for"
    return install(facts, (f"{framework.name}{version}",), text, How(again=True, owner=framework.name))


def without_variable(name: str, places: Iterable[str], facts: Facts) -> tuple[Fix, ...]:
    """Start a program with a variable's value less these folders (and files in them), or without the variable where
    nothing else is in it, or an entry leads there by another name (a link).
    """
    gone = tuple(dict.fromkeys(places))
    parts = [part for part in re.split(_BETWEEN.get(name, ":"), facts.variable(name) or "") if part]
    kept = [part for part in parts if not any(_is_at(part, place) for place in gone)]
    text = f"Take {', '.join(gone)} out of {name}" + (": nothing else is in it" if parts and not kept else "")
    change = (f"{name}={':'.join(kept)}",) if len(kept) < len(parts) and kept else ("-u", name)
    return (Fix(text=text, command=("env", *change, "python")),)


def _is_at(part: str, place: str) -> bool:
    """Whether an entry of a search path, which may be a relative one, is the place or a file in it."""
    plain = PurePosixPath(part)
    if not plain.is_absolute():
        return PurePosixPath(place).match(part)
    return str(plain) == place or (".so" in plain.name and str(plain.parent) == place)


def add_folders(folders: Sequence[str]) -> Fix:
    """Let the loader look in these folders."""
    text = (
        f"Let the loader look in {', '.join(folders)}. LD_LIBRARY_PATH holds for the process that is started with it: "
        "set it for each program and for envcheck, or as root name the folders in /etc/ld.so.conf.d and run ldconfig"
    )
    return Fix(text=text, command=("env", f"LD_LIBRARY_PATH={':'.join(folders)}", "python"))


def _toolkit_of_developers(files: Sequence[str], framework: Framework) -> Fix:
    """Names without a number are links for those who link programs; wheels have none."""
    cuda = f"CUDA {framework.cuda}" if framework.cuda else "CUDA"
    listed = " and ".join(files)
    text = f"Put a toolkit of {cuda} with cuDNN, as developers install it, on the loader's path: it has {listed}"
    return Fix(text=f"{text}, which wheels of NVIDIA's have not", who="root")


def see_loader(facts: Facts) -> tuple[Fix, ...]:
    """How to see what the loader looks for and takes, where only an error line is known."""
    environment = facts.environment
    found = sorted(of(environment), key=lambda each: importance(each, facts.tables)) if environment else []
    framework = next((each for each in found if each.name in facts.about), next(iter(found), None))
    text = "See which file the loader takes, or where it looks in vain"
    load = ("-c", f"import {module_of(framework)}") if framework else ()
    return (
        Fix(
            text=text if load else f"{text}: import what fails",
            command=("env", "LD_DEBUG=libs", python_of(environment), *load),
        ),
        Fix(text="See what LD_LIBRARY_PATH puts first", command=("printenv", "LD_LIBRARY_PATH")),
    )


def bring_library(facts: Facts) -> tuple[Fix, ...]:
    """Where only an error line is known: install what holds the library, or show the loader where it is."""
    text = (
        "Install the package that holds the library, for the CUDA major in its name: one of NVIDIA's wheels, or the "
        "framework's own extra"
    )
    return (Fix(text=text), *see_loader(facts))


def bring_cudnn(facts: Facts) -> tuple[Fix, ...]:
    """Install cuDNN as a wheel."""
    return (*_wheel(facts, "nvidia-cudnn", "cuDNN, of the major that is asked for,"), *see_loader(facts))


def bring_nccl(facts: Facts) -> tuple[Fix, ...]:
    """Install NCCL as a wheel."""
    return (*_wheel(facts, "nvidia-nccl", "the NCCL that the framework pins"), *see_loader(facts))


def bring_tensorrt(facts: Facts) -> tuple[Fix, ...]:
    """Install TensorRT as a wheel."""
    return (*_wheel(facts, "tensorrt", "TensorRT, of the major that is asked for,"), *see_loader(facts))


def list_wheels(facts: Facts) -> tuple[Fix, ...]:
    """Where only an error line is known: see which of NVIDIA's wheels there are, and leave one CUDA major."""
    text = "List NVIDIA's wheels; remove those of the other CUDA major, and install the rest again"
    return (Fix(text=text, command=pip_command(facts.environment, "list")),)


def other_compiler(_facts: Facts) -> tuple[Fix, ...]:
    """Where only an error line is known: a newer release that brings a newer compiler, or one first on PATH."""
    text = "Install a newer release of what compiles (Triton, XLA's nvidia-cuda-nvcc), which brings a newer compiler"
    return (Fix(text=text), Fix(text="See which ptxas comes first on PATH", command=("ptxas", "--version")))


def _wheel(facts: Facts, base: str, what: str) -> tuple[Fix, ...]:
    """The wheel for the CUDA major of the environment's framework; without a command where that is not known."""
    frameworks = of(facts.environment) if facts.environment else ()
    cuda = next((version for each in frameworks if (version := CudaVersion.parse(each.cuda))), None)
    text = f"Install {what} as a wheel for the CUDA major of the framework"
    if cuda is None:
        return (Fix(text=f"{text}: {base}-cu…"),)
    return install(facts, (f"{base}-cu{cuda.major}",), text, How())
