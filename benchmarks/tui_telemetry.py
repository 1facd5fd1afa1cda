"""What part of a processor the application needs while it watches GPUs once a second.

    python -m benchmarks.tui_telemetry [SECONDS]

It runs in a pseudo-terminal of 140 x 40, over facts of a recorded machine with 1, 2 or 8 GPUs; NVML is a stand-in whose
values change each second, so that what NVML itself costs is not in the figures. Processor time is that of the whole
process. ``in front`` is the tab, or the window of one GPU; with the overview in front no GPU is asked.
"""

from __future__ import annotations

import itertools
import os
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from benchmarks.replayed_bench import machine
from benchmarks.terminal import Program
from envcheck.model.snapshot import Listing, Snapshot
from envcheck.pipeline.request import Request
from envcheck.report import Options
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.worker.examination import examine
from envcheck.tui.worker.telemetry import Telemetry

SIZE = (140, 40)
FRONT = {"the overview": b"", "the GPUs": b"2", "one GPU": b"2\r"}
_UUID = "GPU-{:08}-0000-0000-0000-000000000000"


def gpus(count: int) -> Snapshot:
    """The recorded machine with so many of its GPUs."""
    known = machine()
    first = known.gpus.items[0] if known.gpus else None
    if first is None:
        raise ValueError("the recorded machine has no GPU")
    items = [
        replace(first, index=number, uuid=_UUID.format(number), pci_bus_id=f"0000:{number:02x}:00.0")
        for number in range(count)
    ]
    return replace(known, gpus=Listing(items=tuple(items), complete=True))


def nvml(count: int) -> Any:
    """An NVML under a load that changes."""
    ticks = itertools.count()
    fields = itertools.count(0, 1 << 30)
    return SimpleNamespace(
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        NVML_MEMORY_ERROR_TYPE_UNCORRECTED=1,
        NVML_VOLATILE_ECC=0,
        NVML_FI_DEV_PCIE_COUNT_TX_BYTES=197,
        NVML_FI_DEV_PCIE_COUNT_RX_BYTES=198,
        NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX=138,
        NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX=139,
        nvmlMemory_v2=2,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: count,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetUUID=_UUID.format,
        nvmlDeviceGetPowerUsage=lambda _: 300_000 + next(ticks) * 7919 % 300_000,
        nvmlDeviceGetMemoryInfo=lambda *_, **__: SimpleNamespace(used=(20 + next(ticks) % 50) << 30),
        nvmlDeviceGetClockInfo=lambda *_: 1500 + next(ticks) * 31 % 400,
        nvmlDeviceGetTemperature=lambda *_: 40 + next(ticks) % 30,
        nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=next(ticks) * 17 % 100),
        nvmlDeviceGetTotalEccErrors=lambda *_: 0,
        nvmlDeviceGetFieldValues=lambda _, wanted: [
            SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(ullVal=next(fields))) for _ in wanted
        ],
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0,
    )


def watch(count: int) -> None:
    """The application over the stand-ins."""
    gather = partial(lambda known, *_: known, gpus(count))
    telemetry = partial(Telemetry, partial(nvml, count))
    EnvcheckApp(Request(), Options(), examine=partial(examine, gather=gather), telemetry=telemetry).run()


def used(pid: int) -> float:
    """Seconds of processor time of a process so far: of the threads that it has, finer than the ticks of ``stat``."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors; share of one processor in {seconds:.0f} s")
    for count in (1, 2, 8):
        for place, keys in FRONT.items():
            program = Program(["-m", "benchmarks.tui_telemetry", "--watch", str(count)], *SIZE)
            try:
                program.wait(lambda written: b"palette" in written)
                program.rest(4.0)
                for key in keys:
                    os.write(program.terminal, bytes([key]))
                    program.rest(1.0)
                before, bytes_before = used(program.pid), len(program.written)
                program.rest(seconds)
                share, written = (used(program.pid) - before) / seconds, len(program.written) - bytes_before
            finally:
                program.end()
            print(f"{count} GPUs, in front {place:<14}{share:8.2%}{written / seconds:10.0f} bytes/s", flush=True)


if __name__ == "__main__":
    watch(int(sys.argv[2])) if sys.argv[1:2] == ["--watch"] else main()
