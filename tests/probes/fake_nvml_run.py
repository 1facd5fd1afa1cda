"""Run the NVML probe over made-up GPUs in this process."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from envcheck.model.snapshot import Gpu, Snapshot
from tests.probes.fake_gpus import SYSTEM
from tests.probes.fake_nvml import FakeLibrary, binding, install

Ask = Callable[..., tuple[Snapshot, dict[str, str]]]
"""``ask(*gpus, request=, system=, lacks=, handles=)`` returns the Snapshot and how the probe ended."""


def asking(run_probe: Ask, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """A function that runs the probe over GPUs, and fails if it met anything that it did not expect."""

    def ask(
        *gpus: Any, request: Mapping[str, Any] | None = None, system: Mapping[str, Any] | None = None, **library: Any
    ) -> tuple[Snapshot, dict[str, str]]:
        install(monkeypatch, binding(FakeLibrary(list(gpus), {**SYSTEM, **(system or {})}, **library)))
        result = run_probe("nvml", {"root": "/nonexistent", **(request or {})})
        assert capsys.readouterr().err == ""
        return result

    return ask


def only_gpu(result: tuple[Snapshot, dict[str, str]]) -> Gpu:
    listing = result[0].gpus
    assert listing
    (gpu,) = listing.items
    return gpu
