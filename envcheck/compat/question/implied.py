"""What comes with what was named: JetPack's CUDA, cuDNN and TensorRT; the CUDA of a PyTorch build."""

from __future__ import annotations

from envcheck.compat.question.candidates import release_candidates
from envcheck.compat.question.names import canonical, scheme
from envcheck.compat.question.question import Implied, Question
from envcheck.compat.question.torch import NAME as TORCH
from envcheck.compat.question.torch import torch_readings
from envcheck.compat.specifier import parse_version
from envcheck.compat.tables import Tables

_BRINGING = ("jetpack", "l4t")


def with_implied(tables: Tables, question: Question) -> Question:
    """The question with what its system software brings, where that is not named itself."""
    found: dict[str, Implied] = {}
    for name in _BRINGING:
        for version in question.versions.get(name, ())[:1]:
            for candidate in release_candidates(tables, question, name, version)[:1]:
                for row in candidate.rows:
                    for key, text in row.bundles.items():
                        brought = canonical(key)
                        parsed = parse_version(text, scheme(brought))
                        if parsed and brought not in question.labels:
                            found.setdefault(brought, Implied(name, candidate.label, parsed, row))
    cuda = _of_torch(tables, question)
    if cuda and "cuda" not in question.labels:
        found.setdefault("cuda", cuda)
    return question._replace(implied=found)


def _of_torch(tables: Tables, question: Question) -> Implied | None:
    """The CUDA of PyTorch's build, where only one is meant."""
    versions = question.versions.get(TORCH, ())
    builds = [
        candidate
        for version in versions
        for reading in torch_readings(tables, question, version)
        for candidate in reading.candidates
    ]
    if len({candidate.rows[0].cuda for candidate in builds}) != 1:
        return None
    row = builds[-1].rows[0]
    cuda = parse_version(row.cuda or "", scheme("cuda"))
    return Implied(TORCH, builds[-1].label, cuda, row) if cuda else None
