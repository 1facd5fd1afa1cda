"""Tests in this folder need an NVIDIA GPU and its driver; elsewhere they are skipped, and say why."""

from pathlib import Path

import pytest


def _why_not() -> str | None:
    # Not by device nodes: the driver's libraries create /dev/nvidiactl where nothing is behind it.
    driven = Path("/proc/driver/nvidia/gpus")
    if not (driven.is_dir() and any(driven.iterdir())) and not Path("/dev/dxg").exists():
        return "no NVIDIA GPU is driven on this machine"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason, here = _why_not(), str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.gpu)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))
