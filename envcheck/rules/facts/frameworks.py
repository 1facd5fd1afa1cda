"""Questions about a framework: its build, its role, and its environment."""

from __future__ import annotations

from envcheck.compat.package_needs import release_fits, release_for, release_rows
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.tables import Machine, ReleaseRow
from envcheck.model.snapshot import Distribution, Environment, Framework, frameworks_in
from envcheck.model.versions import CodeTarget
from envcheck.rules.api import Facts, FrameworkSubject
from envcheck.rules.facts.library_names import open_entries

LEAST_IMPORTANT = 2
"""The importance of compilers, extensions of a framework, and frameworks without a row in the matrix."""


def built_for_cuda(subject: FrameworkSubject, _facts: Facts) -> bool:
    """Whether it may be a CUDA build: nothing shows that it is built for the CPU or ROCm only."""
    return not subject.framework.cpu_only and not subject.framework.hip


def is_main_framework(framework: Framework, matrix: Matrix) -> bool:
    """Whether programs are written against it: it is no extension, no compiler and no inference engine.

    A failure of such a framework is a failure of its environment.
    """
    row = matrix.role_of(framework.name)
    return framework.extends is None and row is not None and row.role in ("framework", "library")


def importance(framework: Framework, matrix: Matrix) -> int:
    """How important a framework is, from 0: frameworks and engines, then libraries, then the rest."""
    row = matrix.role_of(framework.name)
    if row is None or row.role == "compiler" or (framework.extends is not None and row.role != "engine"):
        return LEAST_IMPORTANT
    return 1 if row.role == "library" else 0


def role_position(framework: Framework, matrix: Matrix) -> int:
    """The position of its role in the matrix; it orders frameworks of the same importance."""
    row = matrix.role_of(framework.name)
    return matrix.roles.index(row) if row is not None else len(matrix.roles)


def compiles_its_code(framework: Framework, matrix: Matrix) -> bool:
    """Whether its files hold only a part of the GPU code that it runs."""
    return matrix.has_trait(framework.name, "compiles-at-run-time")


def only_compiles_for_torch(environment: Environment | None) -> bool:
    """Whether Triton stands beside PyTorch, of which only ``torch.compile`` needs it, and not beside vLLM."""
    names = {each.name for each in frameworks_in(environment)}
    return "torch" in names and "vllm" not in names


def base_framework(subject: FrameworkSubject) -> Framework | None:
    """The framework that it extends, if that is in its environment."""
    return framework_named(subject.framework.extends, subject.environment)


def framework_named(name: str | None, environment: Environment | None) -> Framework | None:
    return next((each for each in frameworks_in(environment) if each.name == name), None)


def distributions_in(environment: Environment | None) -> tuple[Distribution, ...]:
    """The installed packages of an environment whose metadata was read."""
    return (environment.distributions if environment else None) or ()


def in_one_folder(environment: Environment | None, project: str, matrix: Matrix) -> tuple[Distribution, ...]:
    """The installed distributions of a project that all install its import package, each name once. Those of a plan
    whose release is open have an empty version.
    """
    found: dict[str, Distribution] = {}
    for each in (*distributions_in(environment), *open_entries(environment)):
        if project in matrix.projects(each.name, "shares-its-folder"):
            found.setdefault(each.name, each)
    return tuple(found.values())


def installed(environment: Environment | None, name: str) -> Distribution | None:
    """The installed distribution with this normalised name."""
    return next((each for each in distributions_in(environment) if each.name == name), None)


def module_of(framework: Framework) -> str:
    """Its import name, from its path if possible. A path is foreign text, so only an identifier is taken from it."""
    name = (framework.path or "").rpartition("/")[2].removesuffix(".py")
    return name if name.isidentifier() else framework.name.partition("-")[0]


def other_cuda_builds(subject: FrameworkSubject, matrix: Matrix) -> tuple[Framework, ...]:
    """Other frameworks of its environment that are built for CUDA, without the one that it extends."""
    own = (subject.framework.name, subject.framework.extends)
    return tuple(
        each
        for each in frameworks_in(subject.environment)
        if each.name not in own and is_main_framework(each, matrix) and each.cpu_only is False and not each.hip
    )


def is_known_cuda_build(framework: Framework) -> bool:
    """Whether its files show that it is built for CUDA."""
    return framework.cpu_only is False or framework.cuda is not None


def provides_gpu_support(subject: FrameworkSubject) -> bool:
    """Whether the framework that it extends uses the GPU only through it: numba-cuda, or a CUDA plug-in of JAX."""
    base, own = base_framework(subject), subject.framework.source
    return base is not None and (base.read.get("cpu_only") == own or (base.cpu_only is None and base.cuda is None))


def finds_no_gpu(environment: Environment | None) -> bool:
    """Whether a framework that may be built for CUDA was asked and finds no GPU."""
    return any(
        each.gpu_available is False and not each.cpu_only and not each.hip for each in frameworks_in(environment)
    )


def full_name(framework: Framework) -> str:
    return f"{framework.name} {framework.version}" if framework.version else framework.name


def machine(facts: Facts) -> Machine:
    """The processor architecture for choosing wheels; x86_64 when it is unknown."""
    return "aarch64" if facts.platform.on_arm or facts.platform.tegra else "x86_64"


def rows_of_release(facts: Facts, name: str, version: str | None) -> tuple[ReleaseRow, ...]:
    """The rows of the matrix about a release, for this driver's system and processor."""
    return release_rows(facts.matrix, name, version or "", facts.driver_os, machine(facts))


def fit_of_release(facts: Facts, name: str, version: str | None, component: str, there: str) -> Fit | None:
    """Whether a release goes with a version of a component, here; None where no row tells."""
    return release_fits(facts.matrix, name, version or "", component, there, facts.driver_os, machine(facts))


def bounds_for(facts: Facts, name: str, component: str, there: str, *, python: str | None = None) -> str:
    """The newest release of a package that is known to go with a component here, as bounds; empty for none."""
    os, processor = facts.driver_os, machine(facts)
    return release_for(facts.matrix, name, component, there, os, processor, python=python) or ""


def code_targets(framework: Framework) -> tuple[CodeTarget, ...]:
    """The targets that it contains GPU code for."""
    return tuple(target for text in framework.gpu_code or () if (target := CodeTarget.parse(text)))
