"""Commands that reinstall a damaged package in the same version and build, and that restore a virtual environment's
Python, or rebuild it with the same packages; and where the wheel of an extension for the installed PyTorch lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envcheck.compat.question import listed
from envcheck.knowledge.relations.torch import compiled_for, tag_of
from envcheck.knowledge.specifier import numbers_in, parse_version
from envcheck.knowledge.tables.packages import Trait
from envcheck.model.checks import Changes, Fix
from envcheck.model.snapshot import Distribution, Environment, Framework, frameworks_in
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts
from envcheck.rules.fixes.frameworks import INDEX
from envcheck.rules.fixes.install import (
    conda_command,
    conda_name,
    conda_record,
    create_command,
    fill_command,
    in_steps,
    in_user_site,
    install_pip,
    is_of_uv,
    pip_command,
)
from envcheck.text.lazy import lazy_pattern

_ON_INDEX: tuple[Trait, ...] = ("distributes-torch", "released-with-torch", "on-torch-index")
"""The packages that PyTorch's index has, each in the folder of its build."""
_BUILD = lazy_pattern(r"(?:cu\d{2,3}|cpu|rocm[\d.]+|xpu)$")  # Local version labels that PyTorch's index has folders of
_STRINGS_BEFORE_CXX11 = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
"""A function of PyTorch that takes a string of the C++ ABI from before C++11."""
_RISK = "downloads the package; no other package changes"


def reinstall(distributions: Sequence[Distribution], facts: Facts) -> tuple[Fix, ...]:
    """Reinstall these packages with the tool that installed them, in as few commands as possible."""
    fixes: list[list[Fix]] = []
    by_conda = {each.name: record for each in distributions if (record := conda_record(each, facts))}
    packages = list({each.name: each for each in by_conda.values()}.values())
    if packages:
        specs = [f"{conda_name(each)}={each.version}" + (f"={each.build}" if each.build else "") for each in packages]
        command = conda_command(facts, specs, again=True, alone=True)
        fixes.append([Fix(f"Install {listed([each.name for each in packages])} again", command=command)])
    of_user = [each for each in distributions if in_user_site(each, facts)]
    wheels = [each for each in distributions if each.name not in by_conda and each not in of_user]
    fixes += [_by_pip(group, index, facts) for index, group in _by_index(of_user, facts).items()]
    if wheels and facts.environment.externally_managed:
        task = f"Install {listed([each.name for each in wheels])} again, with the system's package manager"
        fixes.append([Fix(task, who="root")])
    else:
        fixes += [_by_pip(group, index, facts) for index, group in _by_index(wheels, facts).items()]
    pip = install_pip(facts) if any("pip" in fix.command for group in fixes for fix in group) else ()
    return in_steps((*pip, *(fix for group in fixes for fix in group)))


def _by_index(wheels: Iterable[Distribution], facts: Facts) -> dict[str | None, list[Distribution]]:
    """The packages by the index that has their builds: the empty string is the default index, None an unknown one."""
    groups: dict[str | None, list[Distribution]] = {}
    for each in wheels:
        label = each.version.partition("+")[2]
        own = _BUILD.match(label) and facts.matrix.has_trait(each.name, *_ON_INDEX)
        groups.setdefault("" if not label else f"{INDEX}{label}" if own else None, []).append(each)
    return groups


def _by_pip(wheels: Sequence[Distribution], index: str | None, facts: Facts) -> list[Fix]:
    task = f"Install {listed([each.name for each in wheels])} again"
    pins = tuple(f"{each.name}=={each.version}" for each in wheels)
    if index is None:
        return [Fix(f"{task}: {', '.join(pins)}, from the index that has this build")]
    options = ("--index-url", index) if index else ()
    user = in_user_site(wheels[0], facts)
    if is_of_uv(facts) and not user:
        # Without uv's cache: its files may be hard links to the damaged ones.
        again: tuple[str, ...] = ("--reinstall", "--no-deps", "--no-cache")
    else:
        recorded = all(each.record is not False for each in wheels)
        again = ("--force-reinstall" if recorded else "--ignore-installed", "--no-deps")
    command = pip_command(facts, "install", *again, *pins, *options, user=user)
    return [Fix(task, command=command, risk=_RISK, changes=Changes(installs=pins, alone=True, again=True))]


_MINOR = lazy_pattern(r"\d+\.\d+")
_PLAIN = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}==[A-Za-z0-9][A-Za-z0-9.!+_-]{0,80}")
_LABEL = lazy_pattern(r"\+(cu\d+|cpu)$")
_LONGEST = 900  # Longest command, in characters, that is still readable; a longer one names only the frameworks
_TOOLS = frozenset({"pip", "setuptools", "wheel"})
_VIRTUAL = ("venv", "virtualenv", "uv")


def rebuild(environment: Environment) -> tuple[Fix, ...]:
    """Two alternatives: link it to a Python of the same minor version, which keeps the packages, or create it again."""
    prefix = environment.prefix
    minor = _MINOR.match(environment.python or "")
    if prefix is None or environment.manager not in _VIRTUAL:
        return (Fix("Create the environment again on this system, and install what it needs"),)
    if not minor:
        return _recreated(environment, prefix, None)
    if environment.problem and environment.problem.endswith(" is not executable"):  # and is there all the same
        return (Fix("Make its programs executable again", command=("chmod", "-R", "a+x", f"{prefix}/bin")),)
    text = f"Link the environment to a Python {minor[0]} of this system; its packages stay"
    # venv does not replace broken links.
    links = tuple(f"{prefix}/bin/{name}" for name in ("python", "python3", f"python{minor[0]}"))
    delete = Fix("Delete the links to the Python that is gone", command=("rm", "-f", "--", *links))
    upgrade = Fix(text, command=(f"python{minor[0]}", "-m", "venv", "--upgrade", prefix))
    unmarked = (environment.problem or "").endswith(" uses its base")
    relinked = (upgrade,) if unmarked else in_steps((delete, upgrade))
    if environment.manager == "uv":
        relinked = (Fix(text, command=("uv", "venv", "--allow-existing", "--python", minor[0], prefix)),)
    return (*relinked, *_recreated(environment, prefix, minor[0]))


def _recreated(environment: Environment, prefix: str, minor: str | None) -> tuple[Fix, ...]:
    """Create it empty and reinstall its packages, or only the frameworks where the command would be too long."""
    text = "Create it again" + (f" with Python {minor}" if minor else "")
    risk = "deletes what is installed in it; the next step installs it again"
    uv = environment.manager == "uv"
    create = create_command(prefix, uv=uv, python=minor or "", interpreter=f"python{minor or '3'}", clear=True)
    pins = _pinned(_wheels(environment))
    if sum(map(len, pins)) + len(pins) > _LONGEST:
        names = {each.name for each in frameworks_in(environment)}
        pins = _pinned([each for each in _wheels(environment) if each.name in names])
    if not pins:
        return (Fix(f"{text}, and install what it needs", command=create, risk=risk),)
    # PyTorch's index has the builds with a local version label.
    labels = dict.fromkeys(match[1] for pin in pins if (match := _LABEL.search(pin)))
    indexes = [word for label in labels for word in ("--extra-index-url", f"{INDEX}{label}")]
    fill = Fix(f"Install {'the frameworks' if len(pins) < len(_wheels(environment)) else 'its packages'} again",
               command=fill_command(prefix, *pins, *indexes, uv=uv))  # fmt: skip
    return in_steps((Fix(text, command=create, risk=risk), fill))


def _wheels(environment: Environment) -> list[Distribution]:
    found = {each.name: each for each in environment.distributions or () if not each.editable}
    return [each for each in found.values() if each.name not in _TOOLS]


def _pinned(wheels: list[Distribution]) -> tuple[str, ...]:
    return tuple(pin for pin in (f"{each.name}=={each.version}" for each in wheels) if _PLAIN.fullmatch(pin))


def wheel_addresses(name: str, version: str, torch: Framework, facts: Facts) -> tuple[str, str]:
    """The addresses, or empty, of the page for this PyTorch and CUDA, and of the wheel for this Python too."""
    row, cuda = facts.matrix.extension_build(name), CudaVersion.parse(torch.cuda)
    there, python = parse_version(torch.version or ""), facts.python
    if cuda is None or there is None or facts.processor != "x86_64":
        return "", ""
    _, old_abi = compiled_for(facts.matrix, (_STRINGS_BEFORE_CXX11,))
    values = {
        "version": version,
        "torch": ".".join(map(str, there.numbers[:2])),
        "cuda": tag_of(str(cuda)).removeprefix("cu"),
        "cuda_major": str(cuda.major),
        "abi": "FALSE" if any(there.numbers[:2] <= numbers_in(row.last) for row in old_abi) else "TRUE",
        "python": f"cp{''.join((python or '').split('.')[:2])}",
    }
    return row.page.format(**values), row.wheel.format(**values) if python else ""
