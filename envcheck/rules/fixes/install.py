"""Commands that change packages, in the words of pip, uv, conda and pixi: printed, never run.

What conda installed, conda changes: its solver keeps packages consistent, and pip would overwrite them. A command moves
nothing but what it names: where a package is installed again in the same version, pip's ``--force-reinstall`` alone
would also bring its requirements to their newest releases. So it goes with ``--no-deps``, and what the package then
still lacks is a second step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from envcheck.compat.package_needs import (
    active_requirements,
    admits,
    normalised,
    pinned_by,
    read_requirement,
    requirement_name,
    same_package,
)
from envcheck.compat.wheels import published
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.libraries import TOOLKIT
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import Changes, Fix
from envcheck.model.snapshot import Distribution, Environment
from envcheck.rules.api import Facts
from envcheck.rules.facts.machine import and_more
from envcheck.text.lazy import lazy_pattern

CHANNEL = "conda-forge"


def is_of_uv(facts: Facts) -> bool:
    """Whether uv created the environment, or fills it without pip."""
    filled = facts.environment.distributions_complete and not facts.installed("pip")
    return facts.environment.manager == "uv" or (filled and any(each.installer == "uv" for each in facts.distributions))


def in_user_site(distribution: Distribution | None, facts: Facts) -> bool:
    """Whether ``pip install --user`` installed it, into the user's folder for this Python version."""
    environment = facts.environment
    folder = ((distribution.path if distribution else None) or "").rpartition("/")[0]
    if not environment.prefix or folder not in environment.site_packages:
        return False
    own = tuple(f"{prefix.rstrip('/')}/" for prefix in (environment.prefix, environment.base_prefix) if prefix)
    return folder.endswith(f"/lib/python{_python_minor(facts)}/site-packages") and not folder.startswith(own)


def is_virtual(environment: Environment) -> bool:
    """Whether it is a virtual environment, with a Python that is not its own."""
    return bool(environment.base_prefix) and environment.base_prefix != environment.prefix


def _python_minor(facts: Facts) -> str:
    return ".".join((facts.python or "").split(".")[:2])


def pip_command(facts: Facts, verb: str, *words: str, user: bool = False) -> tuple[str, ...]:
    """``pip VERB``, or ``uv pip VERB`` where uv manages the environment. For packages of the user site, the base Python
    runs pip: pip in a virtual environment cannot remove them.
    """
    environment = facts.environment
    if user:
        base = f"{environment.base_prefix}/bin/python{_python_minor(facts)}"
        python = base if is_virtual(environment) else facts.interpreter
        allow = ("--break-system-packages",) if environment.externally_managed else ()
        return (python, "-m", "pip", verb, "--user" if verb == "install" else "--yes", *allow, *words)
    if is_of_uv(facts):
        return ("uv", "pip", verb, *(("--python", environment.prefix) if environment.prefix else ()), *words)
    yes = ("--yes",) if verb == "uninstall" else ()
    return (facts.interpreter, "-m", "pip", verb, *yes, *words)


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


def conda_command(facts: Facts, specs: Sequence[str], *, again: bool = False, alone: bool = False) -> tuple[str, ...]:
    """The conda command, or the pixi command where the prefix belongs to a pixi project.

    ``again`` reinstalls the same packages; ``alone`` leaves out their requirements. The channel is added to those that
    conda is configured to use, of which there may be none.
    """
    prefix = facts.environment.prefix or ""
    project, pixi, name = prefix.rpartition("/.pixi/envs/")
    if pixi:
        place = ("--manifest-path", project)
        if again:
            names = (spec.partition("=")[0].partition("<")[0].partition(">")[0].rstrip("!~") for spec in specs)
            return ("pixi", "reinstall", *place, "--environment", name, *names)
        return ("pixi", "add", *place, *(() if name == "default" else ("--feature", name)), *specs)
    where = ("--prefix", prefix) if prefix else ()
    force = ("--force-reinstall",) if again else ()
    how = ("--no-deps",) if alone else ()
    return ("conda", "install", *where, *force, *how, "--channel", CHANNEL, *specs)


_SUFFIX = lazy_pattern(r"-cu\d{2}$")
_MINOR = lazy_pattern(r"==\s*(\d+(?:\.\d+)?)")

_RECORD = lazy_pattern(r".*[/\\]conda-meta[/\\](.+)-[^-]+-[^-]+\.json")


def conda_name(package: Distribution) -> str:
    """The name of a package that conda installed, by its record: to conda, ``-`` and ``_`` are not the same."""
    record = _RECORD.fullmatch(package.path or "")
    return record[1] if record else package.name


def conda_record(package: Distribution, facts: Facts) -> Distribution | None:
    """The record in conda-meta of a package that conda installed, also where its Python metadata is given."""
    names = {package.name, *(row.package for row in facts.matrix.conda if row.name == package.name)}
    records = (each for each in facts.distributions if each.channel == "conda" and each.name in names)
    return package if package.channel == "conda" else next(records, None) if package.installer == "conda" else None


def is_conda_package(distribution: Distribution) -> bool:
    """Whether conda installed it; its Python packages have a ``dist-info`` too, whose INSTALLER names conda."""
    return distribution.channel == "conda" or distribution.installer == "conda"


def conda_installs(facts: Facts, requirements: Sequence[str], text: str, *, again: bool, risk: str) -> tuple[Fix, ...]:
    """Install these with conda; nothing where the conda-forge name of one is unknown."""
    there = {each.name: conda_name(each) for each in facts.distributions if each.channel == "conda"}
    specs = list(dict.fromkeys(spec for line in requirements for spec in _specs(line, there, facts.matrix)))
    if not specs:
        return ()
    force = again and any(re.split(r"[=<>!~]", spec, maxsplit=1)[0] in there.values() for spec in specs)
    command = conda_command(facts, specs, again=force)
    words = f"{text}, from {CHANNEL}" + ("" if command[0] == "pixi" else " (or with mamba or micromamba)")
    changes = Changes(installs=tuple(requirements), again=again)
    risks = "; ".join(filter(None, (risk, "conda may move other packages: it asks before it does")))
    return (Fix(text=words, command=command, risk=risks, changes=changes),)


def _specs(line: str, there: Mapping[str, str], matrix: Matrix) -> list[str]:
    """A PyPI requirement as conda specifications; ``there`` are conda's names of what it installed."""
    asked = read_requirement(line)
    if asked is None:
        return []
    names = {row.name: row.package for row in matrix.conda}
    name, bounds = requirement_name(line), str(asked.specifier)
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
    return [f"{names.get(name) or there.get(name, name)}{bounds}"]


_VENV = ".venv"
_WITH_EXTRAS = lazy_pattern(r"[\w.-]+(?:\[[\w., -]*\])?")
_NAMED = 3
_PIP_ONLY_BUILDS = "--no-cache-dir"

_LOCKED_BY = {
    "uv.lock": ("uv add", "uv sync"),
    "poetry.lock": ("poetry add", "poetry sync"),
    "pdm.lock": ("pdm add", "pdm sync"),
    "Pipfile.lock": ("pipenv install", "pipenv sync"),
}
"""The commands that add a package to a lock file, and that make an environment what it says."""


class How(msgspec.Struct, frozen=True):
    """How packages are installed."""

    index: str = ""  # Address of the index to take them from, in place of the usual one
    links: str = ""  # Address of a page whose wheels are taken too
    build: tuple[str, ...] = ()  # Options for what is compiled: ``("--no-build-isolation",)``
    torch_backend: str = ""  # uv's own word for an index of PyTorch
    variables: tuple[str, ...] = ()  # What must be set for it: ``("CMAKE_ARGS=-DGGML_CUDA=on",)``
    again: bool = False  # Also where the same version is there already
    alone: bool = False  # Only these, without what they require
    newest: bool = False  # The newest releases, whatever is there; what they require moves only where it must
    owner: str = ""  # The distribution for whose sake it is: where conda installed that one, conda installs these
    risk: str = ""


def install(
    facts: Facts, requirements: Sequence[str], text: str, how: How | None = None, *, remove: Sequence[str] = ()
) -> tuple[Fix, ...]:
    """One way, in steps: remove ``remove``, install ``requirements``, install what those then still lack."""
    way, environment = how or How(), facts.environment
    # What conda installed, or the owner that needs it, conda replaces.
    names = {way.owner, *map(requirement_name, requirements)}
    listed = [each for each in facts.distributions if each.name in names]
    if listed and all(map(is_conda_package, listed)):
        by_conda = conda_installs(facts, requirements, text, again=way.again, risk=way.risk)
        if by_conda:
            return by_conda
    if environment.externally_managed:
        why = "The system forbids pip to install here: create a virtual environment first"
        create = create_command(_VENV, uv=False, interpreter=environment.executable or "python3")
        command = (*_set(way), *fill_command(_VENV, *requirements, *way.build, *_index(way), uv=False))
        risk = "programs must then be started with that environment's Python"
        return in_steps((Fix(text=why, command=create), Fix(text=text, command=command, risk=risk)))
    kept = []  # those for which an installer would find nothing to do
    for line in requirements:
        asked = read_requirement(line) if "[" not in line else None
        there = facts.installed(requirement_name(line))
        if asked and there and there.name not in remove and admits(str(asked.specifier), there.version) is not False:
            kept.append(line)
    moved = requirements if way.again or way.newest else [line for line in requirements if line not in kept]
    steps = [*install_pip(facts), *_listed_again(facts, [*remove, *map(requirement_name, moved)])]
    if remove:
        gone = ", ".join(remove[:_NAMED]) + and_more(remove, _NAMED) if remove[_NAMED + 1 :] else " and ".join(remove)
        steps.append(uninstall(facts, remove, f"Remove {gone}"))
    if way.again and kept:
        steps += _reinstallation(facts, requirements, kept, text, way)
    else:
        steps.append(_installation(facts, requirements, text, msgspec.structs.replace(way, again=False)))
        if way.alone:
            steps += _missing_requirements_step(facts, requirements)
    return in_steps(steps)


def _listed_again(facts: Facts, names: Sequence[str]) -> list[Fix]:
    """The step without which pip neither replaces nor removes what lost its list of files."""
    there = [each for name in names if (each := facts.installed(name)) and each.record is False]
    pins = tuple(dict.fromkeys(f"{each.name}=={each.version}" for each in there if not is_conda_package(each)))
    if not pins or is_of_uv(facts):
        return []
    command = pip_command(facts, "install", "--ignore-installed", "--no-deps", *pins)
    text = f"Install {' and '.join(pins)} over itself: pip removes nothing whose list of files (RECORD) is lost"
    return [Fix(text, command=command, changes=Changes(installs=pins, alone=True, again=True))]


def compile_again(
    facts: Facts, name: str, version: str, text: str, *variables: str, no_wheel: bool = False
) -> tuple[Fix, ...]:
    """Compile a release of a package against the installed PyTorch; with ``no_wheel`` where it has wheels too."""
    build = ("--no-build-isolation", "--no-cache-dir", *(("--no-binary", name) if no_wheel else ()))
    how = How(build=build, variables=variables, alone=True, again=True)
    return install(facts, (f"{name}=={version.partition('+')[0]}",), text, how)


def install_pip(facts: Facts) -> tuple[Fix, ...]:
    """The step without which ``python -m pip`` fails: an environment made without pip, and not by uv."""
    if not facts.environment.distributions_complete or is_of_uv(facts):
        return ()
    listed = any(each.installer for each in facts.distributions)
    if facts.environment.manager == "conda" or not listed or facts.installed("pip"):
        return ()
    command = (facts.interpreter, "-m", "ensurepip")
    return (Fix(text="Install pip, which this environment does not have", command=command),)


def install_release_for(name: str, component: str, facts: Facts) -> tuple[Fix, ...]:
    """The newest release of a package that the matrix knows to work with what is installed of ``component``; without
    one, whatever is newest, unless that is installed.
    """
    distribution = facts.installed(component)
    there = distribution.version if distribution else ""
    bounds = facts.bounds_for(name, component, there, python=facts.python) if there else ""
    own = facts.installed(name)
    if bounds and own is not None and admits(bounds, own.version):
        return ()  # it would change nothing
    if bounds:
        return install(facts, (f"{name}{bounds}",), f"Upgrade {name} to a release for {component} {there}")
    if is_newest(facts, name):
        return ()
    return install(facts, (name,), f"Upgrade {name}, for {component} {there}".rstrip(), How(newest=True, owner=name))


def is_newest(facts: Facts, name: str) -> bool:
    """Whether the newest release of a package that PyPI is known to list is installed: an upgrade changes nothing."""
    own, listed = facts.installed(name), published(facts.matrix, name)
    return own is not None and bool(listed) and parse_version(own.version) == listed[-1]


def one_bound(bounds: Iterable[str]) -> str:
    """Join these bounds into one specifier, without those that others imply."""
    parts = {part.strip() for each in bounds for part in each.split(",") if part.strip() and "|" not in part}
    ordered = sorted(parts, key=_strictness)
    ends = [*[part for part in ordered if part[0] == ">"][-1:], *[part for part in ordered if part[0] == "<"][:1]]
    pins = [part[2:] for part in ordered if part[:2] == "=="]
    ends = [part for part in ends if not pins or any(admits(part, pin) is not True for pin in pins)]
    joined = ",".join(ends)
    kept = (part for part in ordered if part[0] in "=~" or (part[0] == "!" and admits(joined, part[2:]) is not False))
    return ",".join((*ends, *kept))


def _strictness(part: str) -> tuple[object, ...]:
    """The order of bounds by their version; of one version, ``>`` is above ``>=`` and ``<`` below ``<=``."""
    version = parse_version(part.lstrip("<>=!~"))
    numbers = (version.numbers, not version.pre, version.pre, version.post or 0) if version else ((), False, "", 0)
    return (*numbers, (part[0] == "<") == ("=" in part), part)


def in_steps(fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    """All of them as one way, in this order."""
    first, rest = fixes[:1], fixes[1:]
    return (*first, *(msgspec.structs.replace(fix, continues=True) for fix in rest))


def uninstall(facts: Facts, names: Sequence[str], text: str) -> Fix:
    """Remove these packages."""
    removes = tuple(map(requirement_name, names))
    user = all(in_user_site(facts.installed(name), facts) for name in removes)
    return Fix(text, command=pip_command(facts, "uninstall", *names, user=user), changes=Changes(removes=removes))


def _reinstallation(facts: Facts, requirements: Sequence[str], kept: Sequence[str], text: str, way: How) -> list[Fix]:
    """What is there in the right version once more, file by file; then the rest."""
    exactly = [_pinned_to_installed(line, facts) if line in kept else line for line in requirements]
    if is_of_uv(facts):  # uv moves nothing that it was not asked for
        further = _missing_requirements_step(facts, requirements) if way.alone else ()
        return [_installation(facts, exactly, text, way), *further]
    first = [_pinned_to_installed(line, facts) for line in kept]
    steps = [_installation(facts, first, text, msgspec.structs.replace(way, alone=True))]
    rest = [line for line in requirements if line not in kept]
    if rest:
        once = msgspec.structs.replace(way, again=False)
        steps.append(_installation(facts, rest, "Install what goes with it", once))
    return [*steps, *_missing_requirements_step(facts, kept)]


def _pinned_to_installed(line: str, facts: Facts) -> str:
    """The requirement, pinned to the installed release: the newest that it admits may be another one."""
    there, named = facts.installed(requirement_name(line)), _WITH_EXTRAS.match(line)
    return line if not (there and named) or pinned_by(line) else f"{named[0]}=={there.version.partition('+')[0]}"


def _missing_requirements_step(facts: Facts, requirements: Sequence[str]) -> list[Fix]:
    """Install what these require, by the metadata of the installed release, and is not installed."""
    named = [*map(requirement_name, requirements)]
    owners = (each for name in named if (each := facts.installed(name)) and each.channel != "conda")
    wanted: dict[str, None] = {}
    for asked in active_requirements((line for each in owners for line in each.requires or ()), facts.markers):
        name = normalised(asked.name)
        if not any(same_package(name, other) for other in (*facts.packages, *named)):
            extras = f"[{','.join(sorted(asked.extras))}]" if asked.extras else ""
            wanted[f"{name}{extras}{asked.specifier}"] = None
    text = f"Install what it requires and is missing: {', '.join(map(requirement_name, wanted))}"
    return [_installation(facts, tuple(wanted), text, How())] if wanted else []


def _installation(facts: Facts, requirements: Sequence[str], text: str, way: How) -> Fix:
    options: tuple[str, ...] = ("--no-deps",) if way.alone else ()
    environment, named = facts.environment, list(map(requirement_name, requirements))
    # A virtual environment's own folder comes before the user site: what is installed there is imported, and other
    # environments keep what they have.
    of_user = bool(named) and all(in_user_site(facts.installed(name), facts) for name in named)
    user = of_user and not is_virtual(environment)
    if is_of_uv(facts) and not user:
        kept = [name for name in named if facts.installed(name)] if way.again else []
        options += tuple(word for name in named if way.newest for word in ("--upgrade-package", name))
        again = tuple(word for name in kept for word in ("--reinstall-package", name))
        build = tuple("--no-cache" if option == _PIP_ONLY_BUILDS else option for option in way.build)
        index = (f"--torch-backend={way.torch_backend}",) if way.torch_backend else _index(way)
        words = (*options, *again, *requirements, *build, *index)
    else:
        again = ("--force-reinstall",) if way.again else ("--upgrade",) if way.newest else ()
        words = (*again, *options, *requirements, *way.build, *_index(way))
    command = pip_command(facts, "install", *words, user=user)
    taken = {name: getattr(way, name) for name in ("again", "newest", "index", "torch_backend")}
    changes = Changes(installs=tuple(requirements), alone=way.alone or "--no-deps" in way.build, **taken)
    folder, _, lock = (environment.lock_file or "").rpartition("/")
    adds, syncs = _LOCKED_BY.get(lock, ("", ""))
    undone = f"{lock} in {folder} does not have it, so that {syncs} undoes it: keep it with {adds}" if adds else ""
    risk = "; ".join(filter(None, (way.risk, undone)))
    return Fix(text=text, command=(*_set(way), *command), risk=risk, changes=changes)


def _index(way: How) -> tuple[str, ...]:
    return (*(("--index-url", way.index) if way.index else ()), *(("--find-links", way.links) if way.links else ()))


def _set(how: How) -> tuple[str, ...]:
    return ("env", *how.variables) if how.variables else ()
