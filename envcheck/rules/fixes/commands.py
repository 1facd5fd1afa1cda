"""Package commands of pip, uv, conda and pixi; no other module writes them."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.rules.facts.frameworks import distributions_in, installed
from envcheck.snapshot import Distribution, Environment

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
    return folder.endswith(f"/lib/python{_minor(environment)}/site-packages") and not folder.startswith(own)


def is_virtual(environment: Environment) -> bool:
    """Whether it is a virtual environment, with a Python that is not its own."""
    return bool(environment.base_prefix) and environment.base_prefix != environment.prefix


def _minor(environment: Environment) -> str:
    return ".".join((environment.python or "").split(".")[:2])


def pip_command(environment: Environment | None, verb: str, *words: str, user: bool = False) -> tuple[str, ...]:
    """``pip VERB``, or ``uv pip VERB`` where uv manages the environment. For packages of the user site, the base Python
    runs pip: pip in a virtual environment cannot remove them.
    """
    if environment is not None and user:
        base = f"{environment.base_prefix}/bin/python{_minor(environment)}"
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
