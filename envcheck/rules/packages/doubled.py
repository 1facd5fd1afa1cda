"""Several distributions in one package folder: the one installed last overwrites part of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

import msgspec

from envcheck.compat.package_needs import requirement_name
from envcheck.knowledge.specifier import numbers_in
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import PASTED, Distribution, Environment, Framework
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, rule
from envcheck.rules.facts.frameworks import in_one_folder
from envcheck.rules.facts.library_names import family_of_wheel, version_of
from envcheck.rules.fixes.frameworks import install_gpu_build, suits
from envcheck.rules.fixes.install import in_steps, install
from envcheck.rules.fixes.libraries import add_wheel_folders, without_variable
from envcheck.rules.messages.observed import line_evidence
from envcheck.rules.packages.shipped import FOLLOWS_FROM_FILES
from envcheck.text.lazy import lazy_pattern

_ORT, _CUPY = "onnxruntime", "cupy"
_EXPLAINED = (*FOLLOWS_FROM_FILES, "file-stops-framework", "damaged-distribution")
_CUDA = lazy_pattern(r"-cu(?:da)?(\d{2})\d?x?")  # The CUDA major version in a package's name


def _doubled(project: str, facts: Facts) -> tuple[tuple[Distribution, ...], Framework | None]:
    """The distributions of a project that fill one folder, none where that is one alone; and the framework in it."""
    found, frameworks = in_one_folder(project, facts), facts.frameworks
    imported = (each for each in frameworks if project in facts.matrix.projects(each.name, "shares-its-folder"))
    return found if len(found) > 1 else (), next(imported, None)


def _evidence(found: Iterable[Distribution], framework: Framework | None) -> tuple[Evidence, ...]:
    shown = [
        Evidence(f"{each.name}{f' in {each.path}' if each.path else ''}", version_of(each), each.source_of("version"))
        for each in found
    ]
    if framework is not None:
        shown += [
            evidence_of(f"the package in {framework.path or 'use'}: {field}", framework, field)
            for field in ("name", "providers", "cuda", "problem")
            if getattr(framework, field)
        ]
    return tuple(shown)


def _over_each_other(
    title: str,
    message: str,
    found: Iterable[Distribution],
    framework: Framework | None,
    fixes: tuple[Fix, ...],
    *,
    lost: bool,
    works: bool = False,
) -> Outcome:
    """The finding, a failure where GPU support is ``lost``; about frameworks of all these names, one of which it is."""
    works = works or (framework is not None and bool(framework.ran_on_gpu))
    return Outcome(
        status="note" if works else "fail" if lost else "warn",
        title=title,
        message=message,
        evidence=_evidence(found, framework),
        decided_by="declared",
        fixes=fixes,
        frameworks=tuple(dict.fromkeys((*(each.name for each in found), *((framework.name,) if framework else ())))),
    )


def _with_cuda(found: Iterable[Distribution], facts: Facts) -> Distribution | None:
    return next((each for each in found if _ORT in facts.matrix.projects(each.name, "has-cuda-provider")), None)


@rule(
    layer="framework", remedy=lambda facts: install_gpu_build(facts, Framework(name="onnxruntime")), explains=_EXPLAINED
)
def onnxruntime_cpu_and_gpu(environment: Environment, facts: Facts) -> Outcome | None:
    """The CPU and the GPU package of ONNX Runtime are installed over each other."""
    found, framework = _doubled(_ORT, facts)
    # The GPU package is listed, but the imported one was built without the CUDA provider.
    listed = _with_cuda(facts.distributions, facts)
    lines = facts.lines_with("cuda-provider-not-built-in")
    unbuilt = (evidence_of(listed.name, listed, "version"), line_evidence(lines[0])) if listed and lines else ()
    if not unbuilt and not _with_cuda(found, facts):
        return None
    if not found:
        return failure(
            title="onnxruntime-gpu is installed, and another build of ONNX Runtime is imported",
            message="The GPU package always has the provider for CUDA built in; one that does not know it is the CPU "
            "package, installed over it or found before it.",
            evidence=unbuilt,
            confidence="medium",
            fixes=install_gpu_build(facts, Framework(name="onnxruntime")),
        )
    if framework is not None and _in_separate_folders(found):
        return _first_found(found, framework, facts)
    names = " and ".join(each.title for each in found)
    fixes = install_gpu_build(facts, framework or Framework(name="onnxruntime"))
    if environment.planned is not None:
        fixes = (Fix(f"Keep {(_with_cuda(found, facts) or found[-1]).name} alone in the plan"),)
    whose = f" The present files belong to {framework.name}." if framework is not None and framework.path else ""
    return _over_each_other(
        "CPU and GPU packages of ONNX Runtime are installed over each other",
        f"{names} share one package folder; the one that was installed last wins.{whose}",
        found,
        framework,
        fixes,
        lost=framework is None or framework.cpu_only is not False,
        works=any(_CUDA_PROVIDER in error.text for error in facts.snapshot.observed_errors),
    )


_CUDA_PROVIDER = "onnxruntime_providers_cuda"
"""The library of the GPU package: what tries to load it was not overwritten by the CPU package."""


def _in_separate_folders(found: tuple[Distribution, ...]) -> bool:
    """Whether each has a separate folder: then none overwrote another, and the first on the path is imported."""
    folders = [str(PurePosixPath(each.path).parent) for each in found if each.path]
    return len(folders) == len(found) == len(set(folders))


def _first_found(found: tuple[Distribution, ...], framework: Framework, facts: Facts) -> Outcome | None:
    if not framework.cpu_only or framework.ran_on_gpu:
        return None
    folder = str(PurePosixPath(framework.path or "").parent)
    by_variable = (framework.problem or "").startswith("PYTHONPATH puts")
    return failure(
        title="The CPU package of ONNX Runtime is found before the GPU package",
        message=f"{framework.name} in {folder} comes first on Python's search path"
        f"{', by PYTHONPATH' if by_variable else ''}; it is imported in place of the build for CUDA.",
        evidence=_evidence(found, framework),
        decided_by="declared",
        fixes=without_variable("PYTHONPATH", [folder], facts) if by_variable else install_gpu_build(facts, framework),
    )


@rule(layer="framework", decided_by="declared", explains=_EXPLAINED)
def cupy_multiple_packages(environment: Environment, facts: Facts) -> Outcome | None:
    """Several packages of CuPy are installed over each other."""
    found, framework = _doubled(_CUPY, facts)
    if not found:
        return None
    kept = _package_to_keep(found, framework, facts)
    fixes = _keep_alone(kept, found, ", for a CUDA that the driver runs", facts)
    if environment.planned is None and framework is not None and framework.version == kept.version:
        led = add_wheel_folders(msgspec.structs.replace(framework, name=kept.name))
        if led and any(family_of_wheel(each.name) for each in facts.distributions):
            fixes = in_steps((*fixes, *led))
    title = f"{len(found)} packages of CuPy are installed over each other"
    message = f"{' and '.join(each.title for each in found)} fill one package folder."
    lost = framework is not None and framework.failed
    return _over_each_other(title, message, found, framework, fixes, lost=lost)


@rule(layer="framework", decided_by="declared", explains=_EXPLAINED)
def builds_over_each_other(environment: Environment, facts: Facts) -> Outcome | None:
    """Two builds of a program are installed over each other."""
    for project in facts.matrix.projects_with("shares-its-folder"):
        if project in (_ORT, _CUPY):
            continue
        found, framework = _doubled(project, facts)
        found = tuple(each for each in found if each.channel != "conda")  # whose names choose a build
        for_cuda = [each for each in found if project in facts.matrix.projects(each.name, "has-cuda-provider")]
        # A text may speak of two releases that were tried in turn.
        tries = environment.source == PASTED and len({each.version for each in found}) > 1
        # One that requires another holds nothing itself: TensorFlow's wheel for Windows requires tensorflow-intel.
        required = {requirement_name(line) for each in found for line in each.requires or ()}
        empty = any(each.name in required for each in found)
        if len(found) < 2 or not for_cuda or tries or empty or _in_separate_folders(found):
            continue
        kept = _package_to_keep(sorted(for_cuda, key=lambda each: numbers_in(each.version)), None, facts)
        title = f"{' and '.join(each.title for each in found)} are installed over each other"
        message = "They fill one package folder; the one that was installed last wins."
        lost = framework is not None and bool(framework.cpu_only or framework.failed)
        return _over_each_other(title, message, found, framework, _keep_alone(kept, found, "", facts), lost=lost)
    return None


def _keep_alone(kept: Distribution, found: Sequence[Distribution], why: str, facts: Facts) -> tuple[Fix, ...]:
    if facts.environment.planned is not None:
        return (Fix(f"Keep {kept.name} alone in the plan"),)
    names = [each.name for each in found]
    return install(facts, (f"{kept.name}=={kept.version}",), f"Install {kept.name} alone{why}", remove=names)


def _package_to_keep(found: Sequence[Distribution], framework: Framework | None, facts: Facts) -> Distribution:
    """The package for the newest CUDA version that suits driver and GPUs; else the one that owns the files."""
    majors = [(int(match[1]), each) for each in found if (match := _CUDA.search(each.name))]
    running = [(major, each) for major, each in majors if suits(CudaVersion(major, 0), facts)]
    there = next((each for each in found if framework is not None and each.name == framework.name), found[-1])
    return max(running, key=lambda pair: pair[0], default=(0, there))[1]
