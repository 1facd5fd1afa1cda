"""What a set says of the rest that is installed: constraints, within which that runs here; and in uv's overrides, or
commands of pip, what a row knows better than a package that requires it.

PyTorch 2.9.1 pins a cuDNN beside which it is broken; faster-whisper requires the ONNX Runtime for processors, whose
files take the place of those for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from envcheck.compat.narrowing import admitted_by, contains, newest_of, releases_within
from envcheck.compat.package_needs import pinned_by
from envcheck.compat.question import Answer, exactly
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import HARDWARE
from envcheck.knowledge.specifier import parse_version, speaks_of
from envcheck.knowledge.tables.packages import Trait
from envcheck.model.components import Component
from envcheck.model.snapshot import Planned
from envcheck.pipeline.planned.checks import answer_of
from envcheck.pipeline.planned.solution import Constraint, Override
from envcheck.rules.facts.library_names import wheel_of

_FOLDER: Trait = "shares-its-folder"


def mending(
    item: Planned, needs: Mapping[str, str], matrix: Matrix, runs: Callable[[str, str], bool]
) -> Iterator[Override]:
    """The libraries without which a release is broken, where it pins others: in the nearest release that ``runs``."""
    version = parse_version(item.version or "")
    rows = [row for row in matrix.flaws if row.mended_by and row.name == item.name and version]
    for row in (row for row in rows if version and speaks_of(row.versions, version) == "all"):
        for name, bounds in needs.items():
            wheel, pinned = wheel_of(name), pinned_by(f"{name}{bounds}")
            mended = row.mended_by.get(wheel.name, "") if wheel else ""
            others = releases_within(matrix, name, mended, item.as_of) if mended else ()
            release = next((each for each in others if runs(name, each)), "")
            if release and pinned and not contains(mended, pinned):
                pin = f"{name}=={release}"
                reason = f"in place of {pinned}, which {item.name} {item.version} requires: {row.problem}"
                pip = (("install", "--no-deps", pin),)
                yield Override(requirement=pin, reason=reason, pip=pip, sources=matrix.cite(row))


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
                if name in there or owner == item.name or project not in matrix.projects(name, _FOLDER):
                    continue
                if contains(needs[owner][name], item.version or ""):
                    there.add(name)
                    yield item, owner, name


def left_out(items: Sequence[Planned], needs: Mapping[str, Mapping[str, str]], matrix: Matrix) -> Iterator[Override]:
    """What packages require that would write over the files of one of the set which is built for CUDA."""
    for item, owner, name in written_over(items, needs, matrix):
        projects = matrix.projects(item.name, "has-cuda-provider")
        rows = [row for row in matrix.traits if row.trait == _FOLDER and row.project in projects]
        pip = (
            ("uninstall", "-y", name),
            ("install", "--force-reinstall", "--no-deps", f"{item.name}=={item.version}"),
        )
        yield Override(
            requirement=f'{name}; sys_platform == "never"',
            reason=f"left out, though {owner} requires it: it writes over the files of {item.name}",
            pip=pip,
            sources=matrix.cite(*rows),
        )
