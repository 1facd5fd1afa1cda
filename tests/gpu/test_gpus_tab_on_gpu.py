"""The GPUs tab over this machine's GPUs for some seconds: what stands on it, and what it takes of a processor."""

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

from textual.pilot import Pilot

from envcheck.tui.app import EnvcheckApp
from envcheck.tui.worker.telemetry import Telemetry
from tests.probes.fake_parent import run_child
from tests.tui.showing import Replay, show, until, words

_SAMPLES = 6
_MOST = 0.03  # Share of a core


def test_every_gpu_has_a_live_row(record_property: Callable[[str, object], None]) -> None:
    snapshot, telemetry = run_child("nvml").snapshot, Telemetry()
    assert snapshot.gpus
    count = len(snapshot.gpus.items)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.report)
        await pilot.press("2")
        await until(pilot, lambda: telemetry.taken > 1)
        first, processor, began = telemetry.taken, time.process_time(), time.monotonic()
        await asyncio.sleep(_SAMPLES)  # asking the pilot meanwhile would take more than the application
        share = (time.process_time() - processor) / (time.monotonic() - began)
        record_property("share of a core", f"{share:.1%}")
        sys.stdout.write(f"\n{count} GPUs at one sample a second: {share:.1%} of a core\n{words(app)}")
        assert not telemetry.problem
        assert telemetry.taken - first >= _SAMPLES - 2
        assert share < _MOST
        traces = [trace.samples[-1] for trace in telemetry.traces]
        assert len(traces) == count
        assert all(now.temperature and now.clock is not None and now.memory is not None for now in traces)
        assert "last minute" in words(app)
        await pilot.press("enter")
        await until(pilot, lambda: "util" in words(app))

    show(None, steps, gather=Replay(snapshot), telemetry=lambda: telemetry, size=(160, 50))
    assert telemetry._thread is None
