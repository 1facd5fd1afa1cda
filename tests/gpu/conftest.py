"""Tests in this folder need an NVIDIA GPU and its driver; elsewhere they are skipped, and say why."""

from __future__ import annotations

from pathlib import Path

import pytest


def _why_not() -> str | None:
    if not Path("/dev/nvidiactl").exists() and not Path("/dev/dxg").exists():
        return "no NVIDIA device node on this machine"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _why_not()
    for item in items:
        if "gpu" in item.path.parent.parts:
            item.add_marker(pytest.mark.gpu)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))
