"""The judged Python environment: whether it works and has a framework.

What cannot be read, there or elsewhere, or has no record of its installation, has unknown contents, not absent ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from envcheck.compat.package_needs import admits, later_release_for_python, normalised
from envcheck.knowledge.relations.torch import python_runs_torch
from envcheck.model.checks import ASSUMED, Check, Evidence, Fix, Status, shortened
from envcheck.model.snapshot import Distribution, Environment, Framework, Snapshot, Unreadable, frameworks_in, items_in
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, incompatible, note, passed, rule, warning
from envcheck.rules.facts.machine import and_more
from envcheck.rules.fixes.install import How, conda_command, install
from envcheck.rules.fixes.reinstall import rebuild, reinstall
from envcheck.text.lazy import lazy_pattern

_SHOWN = 8


@rule(layer="framework", decided_by="declared")
def environment_broken(environment: Environment, facts: Facts) -> Outcome | None:
    """The Python environment is broken, or cannot be examined."""
    if environment.problem is None:
        version = f"Python {environment.python}" if environment.python else "Python"
        place = environment.prefix or environment.key
        why = f" ({environment.why})" if environment.why and environment.why != place else ""
        return passed(f"{version} in {place}{why}")
    leads_nowhere = environment.prefix is None
    fixes: tuple[Fix, ...] = (*rebuild(environment), _OTHER)
    if leads_nowhere and environment.why == "--python":
        what = "an interpreter (FOLDER/bin/python), the folder of an environment, or a program on PATH"
        chosen = "Leave --python out: the active environment, ./.venv or the first python on PATH is used"
        fixes = (Fix(f"Name with --python {what}"), Fix(chosen, command=("envcheck", "check")))
    elif leads_nowhere and environment.why in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        leave = ("conda", "deactivate") if environment.why == "CONDA_PREFIX" else ("deactivate",)
        fixes = (Fix("Deactivate the missing environment, or create it again", command=leave), _OTHER)
    elif leads_nowhere:
        fixes = (_OTHER,)
    elif environment.manager == "conda" and environment.executable is None:
        fixes = (Fix("Install Python into the environment", command=conda_command(facts, ("python",))), _OTHER)
    elif "for Windows" in environment.problem:
        fixes = (Fix("Create an environment on this system, and install into it what it needs"), _OTHER)
    nowhere = f"{environment.why or 'The path'} does not lead to a Python environment"
    return failure(
        title=nowhere if leads_nowhere else "The Python environment is broken or cannot be examined",
        message=f"{environment.prefix or environment.key}: {environment.problem}.",
        evidence=(
            evidence_of("problem", environment, "problem"),
            evidence_of("chosen by", environment, "why") if environment.why else None,
        ),
        fixes=fixes,
    )


_OTHER = Fix("Judge another interpreter", command=("envcheck", "check", "--python", "python3"))


@rule(layer="framework", decided_by="declared")
def environment_moved(environment: Environment, _facts: Facts) -> Outcome | None:
    """The virtual environment was moved or copied; its programs lead to another folder."""
    old = environment.moved_from
    if old is None or environment.problem is not None:  # without a Python nothing starts, wherever it leads
        return None
    prefix, fixes = environment.prefix or "", [Fix("Create it again where it is to be used")]
    if all(re.fullmatch(r"/[\w./@-]+", path) for path in (old, prefix)):  # paths that sed reads as they are
        change = f"s#{old.replace('.', '[.]')}([^[:alnum:]_.-]|$)#{prefix}\\1#g"
        command = ("find", f"{prefix}/bin", "-type", "f", "-exec", "sed", "-E", "-i", change, "{}", "+")
        fixes.insert(0, Fix("Write its own folder into its programs", command=command))
    programs = f"activate, pip and other programs in {environment.prefix}/bin were written for {old}"
    return warning(
        title="The virtual environment was moved or copied: its programs lead elsewhere",
        message=f"{programs}: they change that environment, or do not start if it is gone.",
        evidence=(evidence_of("written for", environment, "moved_from"),),
        fixes=tuple(fixes),
    )


@rule(
    layer="framework",
    decided_by="declared",
    needs=("environment.frameworks.complete",),
    arises=lambda environment, _facts: (  # it could be examined, and none of its packages is only assumed
        environment.problem is None
        and not (environment.unreadable and environment.frameworks is None)
        and all(found.source != ASSUMED for found in environment.distributions or ())
    ),
)
def no_framework(_environment: Environment, facts: Facts) -> Outcome | None:
    """The Python environment has no framework to judge."""
    if found := facts.frameworks:
        return passed(", ".join(each.title for each in found))
    others = (each for each in items_in(facts.snapshot.environments) if not each.judged)
    other = next(filter(frameworks_in, others), None)
    if other is None:
        text = "No framework that envcheck knows is installed there, nor in any other environment that was found."
        return note(title="No framework in the judged environment", message=text)
    names = ", ".join(each.title for each in frameworks_in(other))
    place = other.executable or other.prefix or other.key
    return note(
        title="No framework in the judged environment; another one has it",
        message=f"{other.prefix or other.key} has {names}.",
        evidence=(Evidence("other environment", other.prefix or other.key, other.source),),
        fixes=(Fix("Judge that environment", command=("envcheck", "check", "--python", place)),),
    )


def _pythons_are_known(framework: Framework, facts: Facts) -> bool:
    """Whether it is PyTorch, or a framework whose release's Pythons are known."""
    if framework.name == "torch" or not facts.is_main_framework(framework):
        return framework.name == "torch"
    return any("python" in row.needs for row in facts.rows_of_release(framework.name, framework.version))


@rule(layer="framework", needs=("framework.version", "environment.python"), arises=_pythons_are_known)
def python_unsupported(framework: Framework, facts: Facts) -> Outcome | None:
    """The framework's release has no wheels for this Python version."""
    environment = facts.environment
    version, python = framework.version or "", environment.python or ""
    fit = facts.fit_of_release(framework.name, version, "python", python)
    if framework.name == "torch":
        fit = python_runs_torch(facts.matrix, version, python, facts.driver_os, facts.processor)
    if fit is None:
        return None
    evidence = (evidence_of("Python", environment, "python"), evidence_of(framework.name, framework, "version"))
    if fit.ok or framework.gpu_available or framework.imported:
        return passed(f"{framework.title} supports Python {environment.python}", *evidence)
    if not fit.bad:
        return None
    title = f"{framework.title} has no wheels for Python {environment.python}"
    anew = Fix(f"Create an environment with {fit.nearest_change or 'a supported Python'}")
    # The installation will be refused: PyPI and PyTorch's indexes have no wheel.
    item = next((each for each in environment.planned or () if each.name == framework.name), None)
    refused = item is not None and item.conda is None and item.image is None and item.build is not None
    worst: Status = "fail" if refused or framework.source == ASSUMED else "warn"
    return incompatible(title, fit, evidence=evidence, fixes=(anew,), worst=worst)


@rule(layer="framework", decided_by="declared")
def python_not_admitted(environment: Environment, facts: Facts) -> Outcome | None:
    """An installed package does not support the environment's Python."""
    python = environment.python
    first = facts.packages
    asking = [each for each in first.values() if each.requires_python and "conda" not in (each.channel, each.installer)]
    if python is None or not any(each.requires_python for each in first.values()):
        return None
    refusing = [each for each in asking if not _admits_python(each.requires_python or "", python)][::-1]
    if not refusing:
        return passed(f"The frameworks and their requirements support Python {python}")
    frameworks = {each.name for each in facts.frameworks if facts.is_main_framework(each) and not each.imported}
    refusing.sort(key=lambda each: each.name not in frameworks)
    newer = []  # those that refuse it by a lower bound
    for each in refusing:
        parts = (each.requires_python or "").split(",")
        if not _admits_python(",".join(part for part in parts if part.strip().startswith((">", "~="))), python):
            newer.append(each)
    names = [each.name for each in refusing]
    demands = "; ".join(
        f"{each.name} {each.version} requires Python {each.requires_python}" for each in refusing[:_SHOWN]
    )
    text = f"Remove packages that do not support Python {python}, and install releases that do"
    if len(newer) == len(refusing):
        fixes = install(facts, names, text, How(owner=names[0]), remove=names)
    else:
        # Newer releases, if every package is known to have one for this Python; otherwise nothing may change.
        known = {
            each.name: later_release_for_python(
                facts.matrix, each.name, each.version, python, facts.driver_os, facts.processor
            )
            for each in refusing
        }
        lines = [f"{name}{later}" for name, later in known.items() if later]
        text = f"Install newer releases, which are for Python {python}"
        newest = install(facts, lines, text, How(owner=names[0])) if len(lines) == len(known) else ()
        bounds = refusing[0].requires_python
        anew = Fix(f"Create an environment with Python {bounds}, and install into it what it needs")
        fixes = (*newest, anew)
    return Outcome(
        status="fail" if any(each.name in frameworks for each in newer) else "warn",
        title=f"Packages for another Python than {python}: {names[0][:30]}{and_more(names)}"[:80],
        message=f"{demands}; this is Python {python}.",
        evidence=(
            evidence_of("Python", environment, "python"),
            *(evidence_of(each.name, each, "requires_python") for each in refusing[:_SHOWN]),
        ),
        fixes=fixes,
    )


def _admits_python(bounds: str, python: str) -> bool:
    """Whether bounds admit a Python version, possibly without its third number; unreadable bounds admit all."""
    known = python.count(".") > 1
    return any(admits(bounds, each) is not False for each in ((python,) if known else (f"{python}.0", f"{python}.99")))


_DENIED = "Permission denied"
_ABSENCE = frozenset(
    {
        "cpu-only-build", "cuda-library-missing", "cuda-library-too-old", "cudnn-missing", "cudnn-mixed-copies",
        "cudnn-too-old", "damaged-distribution", "environment-broken", "extension-binary-missing",
        "file-stops-framework", "imported-elsewhere", "jax-plugin-mismatch", "jit-compiler-missing",
        "library-lacks-symbols", "library-not-found", "nccl-missing", "nccl-version-mismatch", "package-unrecorded",
        "requirement-broken", "tensorrt-missing",
    }
)  # fmt: skip
"""Rules that conclude from absent or incomplete files, or from the copy that is found where another one is hidden."""
_WORD = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@rule(layer="framework", ground="environment")
def environment_unreadable(environment: Environment, _facts: Facts) -> Outcome | None:
    """Part of the Python environment cannot be read."""
    if not environment.unreadable:
        return None
    otherwise = "Restore the missing folder or the broken link, or create the environment again"
    return _unreadable_outcome(environment.unreadable, otherwise)


@rule(layer="kernel", scope="env", always=True, ground="machine")
def machine_unreadable(snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """Part of the machine cannot be read."""
    # Each path once, without those that environments report.
    reported = {part.path for each in items_in(snapshot.environments) for part in each.unreadable or ()}
    hidden = tuple({part.path: part for part in snapshot.unreadable if part.path not in reported}.values())
    if not hidden:
        return None
    return _unreadable_outcome(hidden, "Restore what cannot be read; the system log shows disk errors")


def _unreadable_outcome(hidden: Sequence[Unreadable], otherwise: str) -> Outcome:
    first = hidden[0]
    denied = any(part.problem == _DENIED for part in hidden)
    by_user = "Run envcheck as the user who runs the programs, or let this user read these paths"
    return Outcome(
        status="unknown",
        message=f"{first.path}: {first.problem}{and_more(hidden)}.",
        evidence=tuple(Evidence(part.path, part.problem, part.source) for part in hidden[:5]),
        decided_by="declared",
        fixes=(Fix(by_user if denied else otherwise),),
    )


def without_false_absence(checks: Iterable[Check], snapshot: Snapshot) -> tuple[Check, ...]:
    """``checks`` without conclusions about absence or damage where what could not be read may tell otherwise."""
    hidden = {environment.key: environment for environment in items_in(snapshot.environments) if environment.unreadable}
    return tuple(_open(check, hidden) for check in checks) if hidden else tuple(checks)


def _open(check: Check, hidden: dict[str, Environment]) -> Check:
    environment = hidden.get(check.subject.environment or "")
    if environment is None or check.rule not in _ABSENCE or check.status not in ("fail", "warn", "pass"):
        return check
    parts = environment.unreadable or ()
    if check.status != "pass":
        shown = (f"{each.what} {each.value}" for each in check.evidence)
        texts = (check.subject.key, check.title, check.message, *shown)
        named = frozenset(normalised(word.rstrip(".")) for text in texts for word in _WORD.findall(text))
        parts = tuple(part for part in parts if _may_disprove(part.path, check, named, environment))
    if not parts:
        return check
    return msgspec.structs.replace(
        check,
        status="unknown",
        title=shortened(f"Not known: {check.title}"),
        message=f"{parts[0].path} cannot be read: {parts[0].problem}.",
        fixes=(),
        action="none",
    )


def _may_disprove(path: str, check: Check, named: frozenset[str], environment: Environment) -> bool:
    """Whether what lies at ``path`` may be what a finding misses. Metadata, and a package's folder, concern a finding
    that names it; a library may lie in any folder; what leads to packages concerns everything.
    """
    folders = (*environment.site_packages, f"{environment.prefix}/conda-meta")
    top = next((path[len(each) + 1 :] for each in folders if path.startswith(f"{each}/")), "").partition("/")[0]
    stem, _, kind = top.rpartition(".")
    if not top or kind in ("pth", "egg-link"):
        return True
    if kind in ("dist-info", "egg-info"):
        return normalised(stem.partition("-")[0]) in named
    if kind == "json":
        return normalised(stem.rsplit("-", 2)[0]) in named
    return check.layer == "library" or normalised(stem if kind in ("py", "so") else top) in named


_PATHS = 8
_AGAIN = Fix("Install the package again with pip, uv or conda, or remove its folder if it is not wanted")


@rule(layer="framework", ground="environment", remedy=(_AGAIN,))
def package_unrecorded(environment: Environment, facts: Facts) -> Outcome | None:
    """A package has no record of its installation."""
    paths = environment.unrecorded
    if not paths or environment.problem is not None:  # as a required check that passes, it would carry a verdict
        return None
    frameworks = [each for each in frameworks_in(environment) if each.path in paths and not each.imported]
    first = [each.path for each in frameworks if each.path]
    shown = [*first, *(path for path in paths if path not in first)]
    names = [path.rpartition("/")[2] for path in shown]
    lost = [Distribution(name=each.name, version=each.version, channel="pip") for each in frameworks if each.version]
    return Outcome(
        status="unknown" if frameworks or not environment.distributions else "note",
        title=f"No record of the installation of {names[0][:40]}{and_more(names)}",
        message=f"No metadata names {', '.join(names[:_PATHS])}: the installation may have ended early.",
        evidence=tuple(Evidence(path, "no metadata names it", f"file {path}") for path in shown[:_PATHS]),
        decided_by="declared",
        fixes=reinstall(lost, facts) or (_AGAIN,),
    )
