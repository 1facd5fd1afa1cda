"""Package commands of pip, uv, conda and pixi; no other module writes them.

What conda installed, conda changes: its solver keeps packages consistent, and pip would overwrite them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from envcheck.compat.package_needs import normalised, read_requirement
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.libraries import TOOLKIT
from envcheck.model.checks import Changes, Fix
from envcheck.model.snapshot import Distribution, Environment
from envcheck.rules.api import Facts
from envcheck.rules.facts.frameworks import distributions_in, installed

CHANNEL = "conda-forge"


def uv_prefix(environment: Environment | None) -> str | None:
    """The prefix of an environment that uv created, or that has no pip and packages installed by uv; None for any
    other.
    """
    if environment is None:
        return None
    filled = environment.distributions_complete and not installed(environment, "pip")
    by_uv = filled and any(each.installer == "uv" for each in distributions_in(environment))
    return environment.prefix if environment.manager == "uv" or by_uv else None


def python_of(environment: Environment | None) -> str:
    """The path of the interpreter, or ``python`` where it is unknown."""
    return (environment.executable if environment else None) or "python"


def in_user_site(environment: Environment | None, distribution: Distribution | None) -> bool:
    """Whether ``pip install --user`` installed it, into the user's folder for this Python version."""
    folder = ((distribution.path if distribution else None) or "").rpartition("/")[0]
    if environment is None or not environment.prefix or folder not in environment.site_packages:
        return False
    own = tuple(f"{prefix.rstrip('/')}/" for prefix in (environment.prefix, environment.base_prefix) if prefix)
    return folder.endswith(f"/lib/python{_python_minor(environment)}/site-packages") and not folder.startswith(own)


def is_virtual(environment: Environment) -> bool:
    """Whether it is a virtual environment, with a Python that is not its own."""
    return bool(environment.base_prefix) and environment.base_prefix != environment.prefix


def _python_minor(environment: Environment) -> str:
    return ".".join((environment.python or "").split(".")[:2])


def pip_command(environment: Environment | None, verb: str, *words: str, user: bool = False) -> tuple[str, ...]:
    """``pip VERB``, or ``uv pip VERB`` where uv manages the environment. For packages of the user site, the base Python
    runs pip: pip in a virtual environment cannot remove them.
    """
    if environment is not None and user:
        base = f"{environment.base_prefix}/bin/python{_python_minor(environment)}"
        python = base if is_virtual(environment) else python_of(environment)
        allow = ("--break-system-packages",) if environment.externally_managed else ()
        return (python, "-m", "pip", verb, "--user" if verb == "install" else "--yes", *allow, *words)
    prefix = uv_prefix(environment)
    if prefix:
        return ("uv", "pip", verb, "--python", prefix, *words)
    yes = ("--yes",) if verb == "uninstall" else ()
    return (python_of(environment), "-m", "pip", verb, *yes, *words)


def create_command(
    place: str, *, uv: bool, python: str = "", interpreter: str = "python3", clear: bool = False
) -> tuple[str, ...]:
    """Create a virtual environment; ``clear`` empties an existing one."""
    emptied = ("--clear",) if clear else ()
    if uv:
        return ("uv", "venv", *emptied, *(("--python", python) if python else ()), place)
    return (interpreter, "-m", "venv", *emptied, place)


def fill_command(place: str, *words: str, uv: bool) -> tuple[str, ...]:
    """Install into a virtual environment that does not exist yet."""
    return ("uv", "pip", "install", "--python", place, *words) if uv else (
        f"{place}/bin/python", "-m", "pip", "install", *words
    )  # fmt: skip


def conda_command(
    environment: Environment, specs: Sequence[str], *, again: bool = False, alone: bool = False
) -> tuple[str, ...]:
    """The conda command, or the pixi command where the prefix belongs to a pixi project.

    ``again`` reinstalls the same packages; ``alone`` leaves out their requirements and uses the channels they came
    from.
    """
    prefix = environment.prefix or ""
    project, pixi, name = prefix.rpartition("/.pixi/envs/")
    if pixi:
        place = ("--manifest-path", project)
        if again:
            names = (spec.partition("=")[0].partition("<")[0].partition(">")[0].rstrip("!~") for spec in specs)
            return ("pixi", "reinstall", *place, "--environment", name, *names)
        return ("pixi", "add", *place, *(() if name == "default" else ("--feature", name)), *specs)
    where = ("--prefix", prefix) if prefix else ()
    force = ("--force-reinstall",) if again else ()
    how = ("--no-deps",) if alone else ("--channel", CHANNEL)
    return ("conda", "install", *where, *force, *how, *specs)


_SUFFIX = re.compile(r"-cu\d{2}$")
_MINOR = re.compile(r"==\s*(\d+(?:\.\d+)?)")


def is_managed_by_conda(environment: Environment, requirements: Iterable[str], owner: str = "") -> bool:
    """Whether conda installed the packages that these requirements replace, or the ``owner`` that needs them."""
    names = {normalised(asked.name) for line in requirements if (asked := read_requirement(line))}
    found = [each for each in environment.distributions or () if each.name in {owner, *names}]
    return bool(found) and all(is_conda_package(each) for each in found)


def is_conda_package(distribution: Distribution) -> bool:
    """Whether conda installed it. conda also writes a ``dist-info`` for Python packages, and its INSTALLER file names
    conda.
    """
    return distribution.channel == "conda" or distribution.installer == "conda"


def conda_installs(
    facts: Facts, environment: Environment, requirements: Sequence[str], text: str, *, again: bool, risk: str
) -> tuple[Fix, ...]:
    """Install these with conda; nothing where the conda-forge name of one is unknown."""
    specs = list(dict.fromkeys(spec for line in requirements for spec in _specs(line, facts.matrix)))
    if not specs:
        return ()
    there = {each.name for each in environment.distributions or () if each.channel == "conda"}
    force = again and any(re.split(r"[=<>!~]", spec, maxsplit=1)[0] in there for spec in specs)
    command = conda_command(environment, specs, again=force)
    words = f"{text}, from {CHANNEL}" + ("" if command[0] == "pixi" else " (or with mamba or micromamba)")
    changes = Changes(installs=tuple(requirements), again=again)
    told = "; ".join(filter(None, (risk, "conda may move other packages: it asks before it does")))
    return (Fix(text=words, command=command, risk=told, changes=changes),)


def _specs(line: str, matrix: Matrix) -> list[str]:
    """A PyPI requirement as conda specifications."""
    asked = read_requirement(line)
    if asked is None:
        return []
    names = {row.name: row.package for row in matrix.conda}
    name, bounds = normalised(asked.name), str(asked.specifier)
    if name == TOOLKIT:
        libraries = ("runtime" if extra == "cudart" else extra for extra in sorted(asked.extras))
        bases = [names.get(f"nvidia-{each}") or names.get(f"nvidia-cuda-{each}") for each in libraries]
        minor = _MINOR.match(bounds)
        return [*filter(None, bases), *([f"cuda-version={minor[1]}"] if minor else [])]
    base = _SUFFIX.sub("", name)
    if base.startswith("nvidia-"):
        # The framework's own recipe sets the other bounds: wheels and conda packages have different releases.
        major = _MINOR.match(bounds)
        return [f"{names[base]}={major[1].partition('.')[0]}" if major else names[base]] if base in names else []
    return [f"{names.get(name, name)}{bounds}"]
