"""Evidence that CUDA is wanted on a machine without a list of GPUs, as in most pasted text."""

from __future__ import annotations

import re

from envcheck.knowledge.error_lines import matches_fragment
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.variables import hides_all
from envcheck.knowledge.tables import Trait
from envcheck.model.checks import Evidence
from envcheck.model.snapshot import Environment, items_in
from envcheck.rules.api import Facts, evidence_of
from envcheck.rules.facts.library_names import wheel_of
from envcheck.rules.facts.machine import on_tegra
from envcheck.rules.messages.observed import line_evidence
from envcheck.rules.variables.visible_devices import VISIBLE, setting_evidence

_OF_CUDA: tuple[Trait, ...] = ("brings-cuda", "chooses-cuda-of-torch")

_CODE = re.compile(r"\S{1,200}\.py\b")
"""The file of a warning; CPU builds of PyTorch have a ``torch/cuda/__init__.py``, too."""


def evidence_for_cuda(environment: Environment, facts: Facts) -> tuple[Evidence, ...]:
    """Evidence that CUDA is wanted, strongest first; none if GPUs were looked for."""
    if facts.snapshot.gpus is not None:
        return ()
    package = _package(environment, facts.matrix)
    return (*_driver(facts), *_variable(facts), *package, *_error(facts), *_stated(facts), *_jetson(facts))


def _driver(facts: Facts) -> tuple[Evidence, ...]:
    driver = facts.snapshot.driver
    known = next((field for field in ("release", "cuda") if driver and getattr(driver, field)), None)
    return (evidence_of(f"driver: {known}", driver, known),) if driver and known else ()


def _variable(facts: Facts) -> tuple[Evidence, ...]:
    value = facts.variable(VISIBLE)
    return (setting_evidence(VISIBLE, value),) if value is not None and not hides_all(value) else ()


def _package(environment: Environment, matrix: Matrix) -> tuple[Evidence, ...]:
    for each in environment.distributions or ():
        if wheel_of(each.name) is not None or any(matrix.has_trait(each.name, trait) for trait in _OF_CUDA):
            return (evidence_of(f"CUDA's libraries: {each.name}", each, "version"),)
    return ()


def _stated(facts: Facts) -> tuple[Evidence, ...]:
    """CUDA or cuDNN that somebody says is installed: whoever installs them wants CUDA."""
    libraries = items_in(facts.snapshot.libraries)
    found = next((each for each in libraries if each.stated), None)
    return (evidence_of(f"installed: {found.path}", found, "declared"),) if found else ()


def _jetson(facts: Facts) -> tuple[Evidence, ...]:
    """A Jetson, whose chip has a GPU."""
    platform = facts.snapshot.platform
    source = platform.source_of("tegra") if platform and on_tegra(facts) else None
    return (Evidence(what="machine", value="Jetson", source=source),) if source else ()


def _error(facts: Facts) -> tuple[Evidence, ...]:
    asking = (
        error
        for error in facts.snapshot.observed_errors
        if matches_fragment("cuda-wanted", _CODE.sub("", error.text))
        and not matches_fragment("logged-with-its-place", error.text)
    )
    found = next(asking, None)
    return (line_evidence(found, "asks for CUDA"),) if found else ()
