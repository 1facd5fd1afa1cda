"""What NVML counts during a run: errors that rise, Xids, and the share of other programs. Over a made-up driver."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probes.measuring import sampler
from probes.measuring.sampler import Sampler
from tests.every import cases
from tests.probes.fake_gpus import h200
from tests.probes.fake_nvml import FakeLibrary, Handle, Typed, binding, numbered

GONE = 1 << 30  # The number of a process that is not here


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """The answers of one H200, which a test changes while the GPU is watched."""
    answers = h200()
    events = {"nvmlEventSetWait_v2": lambda _inputs, outputs: answers.get("events", lambda _: 10)(outputs[0])}
    system = {"nvmlDeviceGetHandleByUUID": Handle(1), "nvmlEventSetCreate": Handle(9)}
    library = FakeLibrary([answers], system, {9: events})
    answers["nvmlDeviceRegisterEvents"] = lambda _inputs, _outputs: 0
    nvml = binding(library)
    monkeypatch.setattr(sampler, "_started", lambda: nvml)
    monkeypatch.setattr(sampler, "_DEVICES", str(tmp_path))
    return answers


def counting(replays: int, nvlink: int = 0, ecc: int = 0) -> Any:
    return numbered({94: Typed(1, replays), 3: Typed(3, ecc), 38: Typed(3, nvlink), 52: Typed(3, nvlink)})


def using(shares: list[tuple[int, int]]) -> Any:
    """``nvmlDeviceGetProcessUtilization``, which is asked for the length first."""

    def answer(_inputs: Any, outputs: Any) -> int:
        *array, count = outputs
        count.value = len(shares)
        for target, (pid, share) in zip(array[0] if array else (), shares, strict=False):
            target.pid, target.smUtil = pid, share
        return 7 if shares and not array else 0

    return answer


def test_what_rose_is_told_and_nothing_else(gpu: dict[str, Any], tmp_path: Path) -> None:
    counters = tmp_path / "0000:00:06.0" / "aer_dev_correctable"
    counters.parent.mkdir()
    counters.write_text("RxErr 1\nTOTAL_ERR_COR 1\n")
    gpu["nvmlDeviceGetFieldValues"] = counting(5, nvlink=2, ecc=1)
    with Sampler("GPU-1", {}).watch() as found:
        gpu["nvmlDeviceGetFieldValues"] = counting(12, nvlink=4, ecc=1)
        counters.write_text("RxErr 4\nTOTAL_ERR_COR 4\n")
    assert found["rose"] == {"pcie-replays": 7, "nvlink-errors": 4, "pcie-errors": 3}
    assert {"xids", "used_by_others"}.isdisjoint(found)


def test_xids_of_the_run_are_told_and_those_before_it_are_not(gpu: dict[str, Any]) -> None:
    waiting = [13]

    def event(data: Any) -> int:
        if not waiting:
            return 10  # NVML's timeout
        data.eventData = waiting.pop(0)
        return 0

    gpu["events"] = event
    with Sampler("GPU-1", {}).watch() as found:
        waiting += [79, 48]
    assert found["xids"] == [79, 48]


@cases("shares, expected",
    ([("own", 90), ("other", 40), ("other", 30)], 40.0), ([("own", 90), ("gone", 40)], None), ([("other", 40)], None),
    ([], None),
)  # fmt: skip
def test_the_share_of_others_is_told_where_processes_are_known(
    gpu: dict[str, Any], shares: list[tuple[str, int]], expected: float | None
) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as other:
        numbers = {"own": os.getpid(), "other": other.pid, "gone": GONE}
        gpu["nvmlDeviceGetProcessUtilization"] = using([(numbers[whose], share) for whose, share in shares])
        with Sampler("GPU-1", {}).watch() as found:
            pass
    assert found.get("used_by_others") == expected


def test_a_program_of_the_same_shell_is_another_one() -> None:
    """What measures has a session of its own (``tests/collect/test_isolation.py``)."""
    asked = f"from probes.measuring.sampler import _is_own; print(_is_own({os.getpid()}))"
    answer = subprocess.run([sys.executable, "-c", asked], start_new_session=True, check=True, capture_output=True)
    assert answer.stdout.split() == [b"False"]


def test_without_nvml_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_started", lambda: None)
    with Sampler("GPU-1", {}).watch() as found:
        pass
    assert found == {}
