"""Which releases of a package run on this machine, by rows of the matrix."""

from __future__ import annotations

from envcheck.compat.devices import refused
from envcheck.compat.package_needs import needed_of, pinned_by, requirement_name, runs_on
from envcheck.compat.question import AskedGpu
from envcheck.compat.wheels import published
from envcheck.knowledge.relations.gpu_code import code_runs_on, read_targets
from envcheck.knowledge.relations.torch import torch_row
from envcheck.knowledge.specifier import Version, parse_version
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts

_MOST_OTHERS = 4  # Newer, and older, releases of one package that are considered


def other_releases(name: str, there: str, facts: Facts) -> list[str]:
    """Pins on releases of a package that this driver and Python run, also with the PyTorch that they pin: the one that
    is there, newer ones, then older ones, each time the newest first.
    """
    plain, same, newer, older = there.partition("+")[0], list[str](), list[str](), list[str]()
    own = parse_version(plain)
    for release in reversed(published(facts.matrix, name) if own else ()):
        found = same if str(release) == plain else newer if own and release.numbers > own.numbers else older
        if len(found) < _MOST_OTHERS and runs_here(name, release, facts):
            found.append(f"=={release}")
    return [*same, *newer, *older]


def runs_here(name: str, release: Version, facts: Facts) -> bool:
    """Whether rows tell that these GPUs, this driver and Python run a release, with the PyTorch of the index that it is
    or pins; where rows name the CUDA of other releases, also its own.
    """
    version = str(release)
    rows = facts.rows_of_release(name, version)
    lines = needed_of(facts.matrix, name, version, facts.driver_os, facts.processor)
    pins = [pinned_by(line) for line in lines if requirement_name(line) == "torch"]
    torches = [torch_row(facts.matrix, pin) for pin in (version if name == "torch" else None, *pins) if pin]
    if not rows or not all(runs_on(row, facts.python) for row in rows) or (torches and facts.driver_os == "windows"):
        return False  # for Windows, the default index has PyTorch for the CPU only
    field = "default_cuda" if facts.processor == "x86_64" else "default_cuda_aarch64"
    builds = [CudaVersion.parse(getattr(row, field)) if row else None for row in torches]
    own = [*filter(None, (CudaVersion.parse(row.cuda) for row in rows))]
    known = builds or own or not any(row.cuda for row in facts.matrix.rows_of(name))
    runs = all(cuda is not None and facts.runs_builds_for(cuda) for cuda in (*builds, *own))
    return bool(known) and runs and has_code(name, release, facts) is True


def has_code(name: str, release: Version, facts: Facts) -> bool | None:
    """Whether rows about a release refuse none of the GPUs; None where there are none."""
    rows = facts.rows_of_release(name, str(release))
    code = read_targets(target for row in rows for target in row.targets)
    for _, gpu in facts.gpus_with_capability:
        bad = any(refused(facts.matrix, row, AskedGpu("", gpu, None)) for row in rows)
        if bad or (code and code_runs_on(facts.matrix, code, gpu).bad):
            return False
    return True if rows else None
