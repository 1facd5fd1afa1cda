"""What comes with a set of releases, and does not go with it: what does not run here, within which bounds that does;
and what takes the place of its files.

faster-whisper requires the ONNX Runtime for processors, whose files take the place of those for GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from envcheck.compat.narrowing import admitted_by, contains, newest_of
from envcheck.compat.question import Answer, exactly
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import HARDWARE
from envcheck.knowledge.tables.packages import Trait
from envcheck.model.components import Component
from envcheck.model.snapshot import Planned
from envcheck.pipeline.planned.checks import answer_of
from envcheck.pipeline.planned.solution import Constraint

FOLDER: Trait = "shares-its-folder"


def constraint(
    item: Planned, matrix: Matrix, markers: Mapping[str, str], machine: Sequence[Component]
) -> Iterator[Constraint]:
    """The bound without which an installer takes the newest release, if the GPU or the driver does not run that."""
    hardware = [part for part in machine if part.name in HARDWARE]

    def answer(release: str, *parts: Component) -> Answer:
        return answer_of(matrix, (exactly(item.name, release), *parts))

    newest = newest_of(item, matrix, markers)
    reasons = answer(newest, *hardware).reasons if newest else ()
    for why in islice((each for each in reasons if each.verdict == "incompatible"), 1):
        known = reversed(admitted_by(item, matrix, markers))
        if release := next((each for each in known if answer(each, *machine).verdict == "compatible"), None):
            bound = f"{item.name}<={release}"
            yield Constraint(requirement=bound, reason=f"else {why.message}", sources=why.sources)


def written_over(
    items: Sequence[Planned], needs: Mapping[str, Mapping[str, str]], matrix: Matrix
) -> Iterator[tuple[Planned, str, str]]:
    """Those of ``items`` that are built for CUDA and whose files another package takes the place of, with who requires
    that, and its name.

    ``needs`` are the bounds that each package, of the items or required by them, sets on others.
    """
    there = {each.name for each in items}
    for item in items:
        for project in matrix.projects(item.name, "has-cuda-provider"):
            for owner, name in sorted((owner, name) for owner, own in needs.items() for name in own):
                if name in there or owner == item.name or project not in matrix.projects(name, FOLDER):
                    continue
                if contains(needs[owner][name], item.version or ""):
                    there.add(name)
                    yield item, owner, name
