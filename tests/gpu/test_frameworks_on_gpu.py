"""Frameworks at work on a real GPU: their figures are right, on the GPU, and beside envcheck's own.

No time is asserted. What an environment lacks is skipped.
"""

from __future__ import annotations

import os
from functools import cache

import pytest

from envcheck.collect.bench_plan import Bench
from envcheck.collect.catalog import all_probes
from envcheck.collect.gather import gather
from envcheck.collect.request import probe_request
from envcheck.rules.speed.frameworks import library_figure
from envcheck.snapshot import Measurement, Snapshot, Trial
from envcheck.snapshot.merge import merge
from tests.every import cases
from tests.gpu.test_inside_on_gpu import python_with

NEEDED = ("cuda", "nvml", "environments", "libraries", "bench.gemm", "bench.cudnn")


@cache
def measured(framework: str, python: str, variables: tuple[tuple[str, str], ...] = (), *only: str) -> Snapshot:
    specs = [spec for spec in all_probes() if spec.name in NEEDED or spec.name.startswith(f"bench.{framework}")]
    request = probe_request(cwd="/", variables={**os.environ, **dict(variables)}, python=[python])
    wish = Bench(frameworks=True, only=only, force=True)
    return merge(gather(specs, request, scopes=["node", "env"], bench=wish))


def trial_of(found: Snapshot, framework: str) -> Trial:
    assert found.environments
    items = [each for where in found.environments.items if where.frameworks for each in where.frameworks.items]
    return next(each.trial for each in items if each.name.startswith(framework) and each.trial)


def figures(found: Snapshot, framework: str) -> list[Measurement]:
    return [each for each in found.measurements if each.name.startswith(f"{framework}-")]


@cases("framework", "torch", "jax", "cupy", "tensorflow", "onnxruntime")
def test_every_figure_is_right_and_most_have_one_of_the_library_beside_them(framework: str) -> None:
    found = measured(framework, python_with(framework))
    trial = trial_of(found, framework)
    (run,) = [run for run in found.runs if run.name == f"bench.{framework}"]
    if framework == "onnxruntime" and run.status == "absent":
        pytest.skip(run.detail)  # its build for the CPU has the same name
    assert trial.ran_on_gpu, trial.error
    own = figures(found, framework)
    assert own
    for figure in own:
        assert not figure.failed, (figure.name, figure.variant, figure.missing)
        if figure.value is not None and figure.unit != "s":
            assert figure.verification, figure.name
            assert figure.verification.right, (figure.name, figure.variant, figure.verification)
    products = [figure for figure in own if figure.name == f"{framework}-gemm" and figure.value]
    assert products
    assert all(library_figure(figure, found) for figure in products)


def test_a_framework_that_was_told_to_use_the_cpu_has_no_figures() -> None:
    found = measured("jax", python_with("jax"), (("JAX_PLATFORMS", "cpu"),))
    assert trial_of(found, "jax").ran_on_gpu is False
    assert figures(found, "jax") == []
    (run,) = [run for run in found.runs if run.name == "bench.jax"]
    assert (run.status, run.detail) == ("absent", "JAX computes on the cpu")


def test_only_what_was_named_is_measured() -> None:
    found = measured("cupy", python_with("cupy"), (), "cupy-gemm")
    assert {figure.name for figure in found.measurements} == {"cupy-gemm"} | {"gemm"}
