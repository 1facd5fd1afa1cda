"""Which GPU is tried, and when it is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.collect.trial_plan import Choice, child_variables, choose_gpu
from envcheck.snapshot import Gpu, Listing, Memory, Mig, MigInstance, Platform, Process, Snapshot

GIB = 1 << 30


def gpu(number: int = 0, *, used: int = 0, total: int = 80 * GIB, **changes: Any) -> Gpu:
    given = {
        "pci_bus_id": f"0000:0{number}:00.0",
        "uuid": f"GPU-{number}",
        "index": number,
        "cuda_ordinal": number,
        "utilisation": 0.0,
        "memory": Memory(total=total, used=used),
    }
    return Gpu(**{**given, **changes})


def choose(*items: Gpu, force: bool = False, complete: bool = True, **variables: str) -> Choice:
    return choose_gpu(Snapshot(gpus=Listing(items=items, complete=complete)), variables, force=force)


def test_the_only_gpu_needs_no_name() -> None:
    choice = choose(gpu())
    assert (choice.gpu, choice.visible, choice.refused, choice.absent) == (gpu(), None, "", "")
    assert not choice.one_at_a_time


def test_of_several_the_first_that_cuda_shows_and_nobody_uses() -> None:
    busy, third = gpu(1, cuda_ordinal=0, utilisation=0.9), gpu(2, cuda_ordinal=1)
    assert choose(gpu(0, cuda_ordinal=None), third, busy).visible == "GPU-2"
    assert choose(gpu(0, cuda_ordinal=None), third, busy, force=True).visible == "GPU-1"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"utilisation": 0.21}, "a kernel ran 21% of the time"),
        ({"used": 3 * GIB}, "3.0 of 80 GiB of its memory are in use"),
        ({"used": 2 * GIB, "total": 16 * GIB}, "2.0 of 16 GiB of its memory are in use"),
    ],
)
def test_a_gpu_at_work(changes: dict[str, Any], reason: str) -> None:
    assert choose(gpu(**changes)).refused == f"GPU 0 is busy ({reason}); --force tries it anyway"
    assert choose(gpu(**changes), force=True).gpu == gpu(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"utilisation": 0.2},
        {"used": 2 * GIB},
        {"used": GIB, "total": 8 * GIB},
        {"utilisation": None, "memory": None},
        {"processes": (Process(pid=7),)},
    ],
)
def test_an_idle_gpu_or_one_that_does_not_tell(changes: dict[str, Any]) -> None:
    assert choose(gpu(**changes)).refused == ""


@pytest.mark.parametrize("mode", ["exclusive_process", "prohibited"])
def test_one_that_takes_no_second_process(mode: str) -> None:
    assert choose(gpu(compute_mode=mode)).refused == ""
    assert choose(gpu(compute_mode=mode)).one_at_a_time
    for changes in ({"processes": (Process(pid=7),)}, {"utilisation": 0.5}):
        refused = choose(gpu(compute_mode=mode, **changes)).refused
        assert refused.startswith(f"GPU 0 takes no further process (compute mode {mode}) and is in use")


def test_all_reasons_are_told() -> None:
    assert choose(*(gpu(number, utilisation=0.5) for number in range(5))).refused.count("is busy") == 3


def test_an_instance_of_a_partitioned_gpu() -> None:
    mig = Mig(enabled=True, instances=(MigInstance(uuid="MIG-a"), MigInstance(uuid="MIG-b")))
    partitioned = gpu(mig=mig, used=60 * GIB, utilisation=None)
    assert choose(partitioned).visible == "MIG-a"
    assert choose(partitioned, CUDA_VISIBLE_DEVICES="MIG-b,MIG-a").visible == "MIG-b"
    assert choose(partitioned).refused == "", "what is used belongs to other instances"


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles"])
def test_a_variable_that_hides_all(value: str) -> None:
    choice = choose(gpu(cuda_ordinal=None), CUDA_VISIBLE_DEVICES=value)
    assert choice.absent == f"CUDA_VISIBLE_DEVICES={value} hides every GPU"


def test_no_gpu_is_absent_only_where_somebody_looked_everywhere() -> None:
    assert choose().absent == "there is no NVIDIA GPU here"
    assert choose(complete=False) == Choice()
    assert choose_gpu(Snapshot(), {}) == Choice()
    jetson = Snapshot(gpus=Listing(items=(), complete=True), platform=Platform(tegra_release="36.4.0"))
    assert choose_gpu(jetson, {}) == Choice()


def test_a_gpu_that_cuda_does_not_show_is_tried_as_the_user_would() -> None:
    assert choose(gpu(cuda_ordinal=None)) == Choice()


def test_relative_search_paths_keep_their_meaning(tmp_path: Any) -> None:
    given = {"PYTHONPATH": "src:/abs:", "LD_LIBRARY_PATH": "$ORIGIN/lib:lib", "PATH": "bin", "LD_PRELOAD": ""}
    found = child_variables(given, "/home/ada", str(tmp_path))
    assert found["PYTHONPATH"] == "/home/ada/src:/abs:/home/ada"
    assert (found["LD_LIBRARY_PATH"], found["PATH"]) == ("$ORIGIN/lib:/home/ada/lib", "bin")
    assert "CUDA_VISIBLE_DEVICES" not in found
    assert child_variables({"PYTHONPATH": ""}, "/", str(tmp_path), "GPU-1")["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert child_variables({"PYTHONPATH": ""}, "/", str(tmp_path))["PYTHONPATH"] == ""
