"""Taking a permission away from any file or folder of the machine never makes its verdict better.

The probes of the machine run as another user over constructed trees, once for each path of the tree.
"""

from importlib import import_module
from pathlib import Path

import pytest

from envcheck.model.checks import Report
from envcheck.model.merge import merge
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from probes.common.tree import REFUSED
from tests.probes.conftest import BuildRoot, RunProbe
from tests.probes.other_user import as_nobody, as_root

PROBES = ("kernel", "pci", "platform", "toolkits", "driver_files", "variables", "libraries")
ROOTS = (
    "ubuntu-580-open",
    pytest.param("secure-boot", marks=pytest.mark.lab),  # much as the first
    pytest.param("kernel-upgraded", marks=pytest.mark.lab),
    "jetson-orin",
)
KEPT_FOR_ROOT = ("/proc/1", "/proc/self", "/proc/2417", "/sys/firmware", "/sys/kernel", "/var/log")
"""Closed to users of sound machines, too."""

TOOLKIT = {
    "/opt/cuda-12.1/bin/nvcc": "\x7fELF\x02", "/opt/cuda-12.1/version.txt": "CUDA Version 12.1.105\n",
    "/opt/cuda-12.1/lib64/libcublas.so.12": "\x7fELF\x02", "/etc/modprobe.d/none.conf": "blacklist nvidia\n",
    "/etc/ld.so.conf.d/cuda.conf": "/usr/local/cuda-12.8/compat\n",
}  # fmt: skip


def examined(run_probe: RunProbe, root: str) -> Snapshot:
    variables = {
        "PATH": "/usr/bin:/opt/cuda-12.1/bin", "CUDA_HOME": "/opt/cuda-12.1",
        "LD_LIBRARY_PATH": "/usr/local/cuda-12.8/compat", "HOME": "/home/me",
    }  # fmt: skip
    REFUSED.clear()
    request = {"root": root, "variables": variables}
    for name in PROBES:
        import_module(f"probes.{name}")  # the other user may not be able to
    with as_nobody():
        parts = [run_probe(name, request, sourced=False)[0] for name in PROBES]
    return merge(parts)


def judged(snapshot: Snapshot) -> Report:
    return judge(snapshot, Request(scopes=frozenset({"node", "container"}), tried=True))


def opened(report: Report) -> set[str]:
    return {check.rule for check in report.checks if check.status in ("warn", "fail")}


@as_root
@pytest.mark.parametrize("name", ROOTS)
def test_no_permission_taken_away_makes_the_verdict_better(
    name: str, run_probe: RunProbe, build_root: BuildRoot, tmp_path: Path
) -> None:
    root = Path(build_root(name, TOOLKIT))
    for place in (tmp_path, *list(tmp_path.parents)[:-2]):
        place.chmod(place.stat().st_mode | 0o055)
    seen = examined(run_probe, str(root))
    assert seen.unreadable == ()
    whole = judged(seen)
    noticed = 0
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or "/dev/" in str(path):
            continue
        inside = f"/{path.relative_to(root)}"
        before = path.stat().st_mode
        path.chmod(0)
        found = examined(run_probe, str(root))
        path.chmod(before)
        if not (REFUSED or inside.startswith(KEPT_FOR_ROOT)):
            assert found == seen, inside
            continue
        report = judged(found)
        # a finding may give way to a true one that it accounted for
        assert opened(report) <= opened(whole) or opened(whole) - opened(report), inside
        if not inside.startswith(KEPT_FOR_ROOT):
            told = next(check for check in report.checks if check.rule == "machine-unreadable")
            assert found.unreadable[0].path in told.message, inside
            assert "Permission denied" in told.message, inside
            assert report.verdict == "unknown" or opened(report), inside
            noticed += 1
        else:
            assert opened(report) == opened(whole) or report.verdict == "unknown", inside
    assert noticed > 10
