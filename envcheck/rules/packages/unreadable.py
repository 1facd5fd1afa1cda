"""What cannot be read, or has no record of its installation: its contents are unknown, not absent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from envcheck.compat.package_needs import normalised
from envcheck.model.checks import Check, Evidence, Fix, shortened
from envcheck.model.snapshot import Distribution, Environment, Snapshot, Unreadable, frameworks_in, items_in
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.machine import and_more
from envcheck.rules.fixes.reinstall import reinstall
from envcheck.text.lazy import lazy_pattern

_SHOWN = 5
_DENIED = "Permission denied"
_ABSENCE = frozenset(
    {
        "cpu-only-build", "cuda-library-missing", "cudnn-missing", "damaged-distribution", "environment-broken",
        "extension-binary-missing", "file-stops-framework", "imported-elsewhere", "jax-plugin-mismatch",
        "jit-compiler-missing", "library-lacks-symbols", "library-not-found", "nccl-missing", "package-unrecorded",
        "requirement-broken", "tensorrt-missing",
    }
)  # fmt: skip
"""Rules that conclude from absent or incomplete files."""
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
        evidence=tuple(Evidence(part.path, part.problem, part.source) for part in hidden[:_SHOWN]),
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
