"""Packages that NVIDIA, or the Jetson community, builds for Jetsons apart from PyPI.

What PyPI's build lacks on a Jetson decides nothing then: it depends on the index that the package came from.
"""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.compat.names import CUDA_PARTS, HARDWARE, PLATFORM
from envcheck.compat.question.question import Question, summary
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.specifier import Version, covered
from envcheck.compat.tables import IndexRow

_BUILD = CUDA_PARTS | HARDWARE | PLATFORM | {"python", "glibc", "ubuntu"}
"""What another build of the same release may need or hold otherwise."""
_OWN = "-for-jetson"
"""Rows of ``torch-for-jetson`` tell for which releases of JetPack there is which release of PyTorch."""
_JETPACK = "jetpack"


def on_jetsons(question: Question, found: Sequence[Fit]) -> list[Fit]:
    """The answers, without those about the build on PyPI where another index has its own for Jetsons."""
    indexes = {name: row for row in question.matrix.indexes if row.jetsons for name in row.packages}
    left = list(found)
    for name in indexes.keys() & question.versions.keys() if _is_jetson(question) else ():
        refusals = [fit for fit in left if fit.bad and name in fit.about and {*fit.about} <= {*_BUILD, name}]
        if refusals and not any(version.local for version in question.versions[name]):
            left = [fit for fit in left if name not in fit.about or not {*fit.about} <= {*_BUILD, name}]
            left.append(_elsewhere(question, name, question.versions[name][-1], refusals, indexes[name]))
    return left


def _is_jetson(question: Question) -> bool:
    rows = question.matrix.capability_rows
    return bool(question.systems) or any((row := rows.get(gpu.capability)) and row.tegra for gpu in question.gpus)


def _elsewhere(question: Question, name: str, version: Version, refusals: list[Fit], index: IndexRow) -> Fit:
    """The answer for the build of the other index, where a row tells of it; else both sides."""
    matrix, about = question.matrix, tuple(dict.fromkeys(part for fit in refusals for part in fit.about))
    implied = question.implied.get(_JETPACK)
    for jetpack in question.versions.get(_JETPACK, (implied.version,) if implied else ()):
        rows = [row for row in matrix.rows_for(name + _OWN, version) if covered(row.needs[_JETPACK], jetpack) == "all"]
        if rows:
            reason = f"{name} {version} has a wheel for JetPack {jetpack} of its own, which is not on PyPI"
            return conclude(matrix, "compatible", reason, *rows).concerning(*about)
    label = f"{name} {version}"
    told = f"PyPI's {label} does not fit: {refusals[0].reason}; {index.note}, and may have {label}: the index decides"
    return summary("unknown", told, [*refusals, conclude(matrix, "unknown", "", index)]).concerning(*about)
