"""What comes with what was named: JetPack's CUDA, cuDNN and TensorRT; the CUDA of a PyTorch build."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.question.candidates import release_candidates
from envcheck.compat.question.names import SYSTEMS, canonical, scheme
from envcheck.compat.question.question import Implied, Question
from envcheck.compat.question.torch import NAME as TORCH
from envcheck.compat.question.torch import torch_readings
from envcheck.compat.specifier import parse_version
from envcheck.compat.tables import Tables


def with_implied(tables: Tables, question: Question) -> Question:
    """The question with what its system software brings, where that is not named itself."""
    found: dict[str, Implied] = {}
    systems = tuple(_systems(tables, question))
    for system in systems:
        for key, text in system.row.bundles.items():
            brought = canonical(key)
            version = parse_version(text, scheme(brought))
            if version and brought not in question.labels:
                found.setdefault(brought, system._replace(version=version))
    cuda = _of_torch(tables, question)
    if cuda and "cuda" not in question.labels:
        found.setdefault("cuda", cuda)
    return question._replace(implied=found, systems=systems, torch_cuda=cuda)


def _systems(tables: Tables, question: Question) -> Iterator[Implied]:
    for name in sorted(SYSTEMS):
        for version in question.versions.get(name, ())[:1]:
            for candidate in release_candidates(tables, question, name, version)[:1]:
                yield from (Implied(name, candidate.label, version, row) for row in candidate.rows)


def _of_torch(tables: Tables, question: Question) -> Implied | None:
    """The CUDA of PyTorch's build, where one is meant."""
    versions = question.versions.get(TORCH, ())
    builds = [
        candidate
        for version in versions
        for reading in torch_readings(tables, question, version)
        for candidate in reading.candidates
    ]
    if len({candidate.built_with for candidate in builds}) != 1:
        return None
    build = builds[-1]
    cuda = parse_version(build.built_with, scheme("cuda"))
    return Implied(TORCH, build.label, cuda, build.rows[0]) if cuda and build.rows else None
