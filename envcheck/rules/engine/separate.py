"""Fixes where single packages are not enough: all that a framework requires, an environment each, another release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envcheck.checks import Check, Fix
from envcheck.compat.matrix import Matrix
from envcheck.compat.question.package_needs import extra_of, requirement_name
from envcheck.rules.api import Facts
from envcheck.rules.facts.frameworks import distributions_in, full_name, is_main_framework
from envcheck.rules.facts.library_names import family_of_wheel
from envcheck.rules.fixes.commands import create_command, fill_command, uv_prefix
from envcheck.rules.fixes.install import How, in_steps, install, uninstall
from envcheck.rules.fixes.releases import newer_releases, same_version
from envcheck.snapshot import Framework, frameworks_in


def two_environments(facts: Facts, check: Check, why: str, others: Sequence[str]) -> Iterator[tuple[Fix, ...]]:
    """Move one framework into a separate environment, preferably the one that the finding is about."""
    environment = facts.environment
    if environment is None or not environment.prefix or environment.externally_managed:
        return
    for framework in _concerned_frameworks(facts, check, others):
        place, uv = f"{environment.prefix.rstrip('/')}-{framework.name}", uv_prefix(environment) is not None
        interpreter = environment.executable or "python3"
        create = create_command(place, uv=uv, python=environment.python or "", interpreter=interpreter)
        wanted = f"{framework.name}{_gpu_extra(framework, facts.matrix)}{same_version(framework)}"
        alone = f"{framework.name} in a separate environment, since in one environment {why}"
        yield in_steps(
            (
                Fix(text=f"Keep {alone}: create it", command=create),
                Fix(text=f"Install {wanted} there", command=fill_command(place, wanted, uv=uv)),
                uninstall(facts, (framework.name,), f"Remove {framework.name} from {environment.prefix}"),
            )
        )


def install_newer(facts: Facts, check: Check, others: Sequence[str]) -> Iterator[tuple[Fix, ...]]:
    """Install a newer release of either framework, which may have compatible requirements."""
    for framework in _concerned_frameworks(facts, check, others):
        for bounds in newer_releases(framework, facts):
            wanted = f"{framework.name}{_gpu_extra(framework, facts.matrix)}{bounds}"
            yield install(facts, (wanted,), f"Install a release of {framework.name} that fits with the rest", How())


def complete_in_place(facts: Facts, check: Check, others: Sequence[str]) -> Iterator[tuple[Fix, ...]]:
    """Install the release of a framework that is there: pip then brings what it requires and is missing or differs."""
    if facts.environment is None or facts.environment.planned is not None:
        return
    by_pip = {each.name for each in distributions_in(facts.environment) if each.channel == "pip"}
    for framework in _concerned_frameworks(facts, check, others):
        if framework.name in by_pip:
            wanted = f"{framework.name}{_gpu_extra(framework, facts.matrix)}{same_version(framework)}"
            yield install(facts, (wanted,), f"Install all that {full_name(framework)} requires, in its releases")


def _concerned_frameworks(facts: Facts, check: Check, others: Sequence[str]) -> list[Framework]:
    environment = facts.environment
    by_name = {each.name: each for each in frameworks_in(environment)}
    subject = check.subject.key.rpartition(":")[2] if check.subject.kind == "framework" else ""
    names = dict.fromkeys(name for name in (subject, *others) if name in by_name)
    return [by_name[name] for name in names if is_main_framework(by_name[name], facts.matrix) and by_name[name].version]


def _gpu_extra(framework: Framework, matrix: Matrix) -> str:
    """The extra that installs the CUDA libraries, or the plug-in that needs them: ``[and-cuda]``."""
    for line in framework.requires:
        name, extra = requirement_name(line), extra_of(line)
        if extra and (family_of_wheel(name) or matrix.has_trait(name, "part-for-cuda")):
            return f"[{extra}]"
    return ""
