"""A GPU that is slower than the others of its machine: which, in what, how far, and why.

The machines are recorded ones, and their figures those of two recorded H200; what makes a straggler is changed here.
"""

import re
from typing import Any

import msgspec

from envcheck.knowledge.performance.spread import speed_ratio
from envcheck.model.checks import Check
from envcheck.model.snapshot import Conditions, Gpu, Listing, Measurement, Snapshot
from tests.every import cases, every
from tests.rules.machines import but, check_of, checks_of, geforce, h200, judge, machine
from tests.rules.speed.measurements import conditions, figure, gemm, memory_copy, span, to_gpu, to_peer
from tests.rules.speed.test_recorded_bench import RECORDED, SNAPSHOT
from tests.test_machines import load

BUSY = conditions(utilisation_before=97.0)


def gpus_of(snapshot: Snapshot) -> tuple[Gpu, ...]:
    assert snapshot.gpus is not None
    return snapshot.gpus.items


def with_gpus(count: int, *values: float, **more: Any) -> Snapshot:
    """``count`` H200 with a BF16 product each."""
    here = [h200(number, sm_count=132) for number in range(count)]
    return machine(
        *here, measurements=tuple(gemm(value=v, gpu=g.uuid, **more) for v, g in zip(values, here, strict=True))
    )


def recorded(count: int) -> Snapshot:
    """The recorded machine of two, or the recorded one of four; of eight, four twice. Their GPUs have the figures of
    the two recorded GPUs in turn; copies between GPUs are left out, except of the two.
    """
    if count == 2:
        return SNAPSHOT
    here = gpus_of(load("h200x4").snapshot)
    if count == 8:
        here = (
            *here,
            *(
                but(gpu, uuid=f"{gpu.uuid}-{n}", index=4 + n, pci_bus_id=f"0000:a{n}:00.0")
                for n, gpu in enumerate(here)
            ),
        )
    assert SNAPSHOT.gpus is not None
    both = [gpu.uuid for gpu in SNAPSHOT.gpus.items]
    figures = [
        but(measured, gpu=gpu.uuid)
        for number, gpu in enumerate(here)
        for measured in RECORDED.measurements
        if measured.gpu == both[number % 2] and measured.peer is None
    ]
    return but(machine(), gpus=Listing(items=here, complete=True), measurements=tuple(figures))


def slowed(snapshot: Snapshot, number: int, names: tuple[str, ...], by: float, **changes: Any) -> Snapshot:
    """The figures ``names`` of a GPU, slower by a share, and the conditions of their runs."""
    uuid = gpus_of(snapshot)[number].uuid

    def changed(each: Measurement) -> Measurement:
        if each.gpu != uuid or each.name not in names or not each.value:
            return each
        factor = 1 / (1 - by) if each.unit == "s" else 1 - by
        assert each.conditions is not None
        return but(
            each,
            value=each.value * factor,
            samples=tuple(sample * factor for sample in each.samples),
            conditions=but(each.conditions, **changes),
        )

    return but(snapshot, measurements=tuple(map(changed, snapshot.measurements)))


def stragglers(snapshot: Snapshot) -> dict[int | None, Check]:
    return {check.subject.index: check for check in checks_of("gpu-straggler", snapshot) if check.status == "warn"}


@cases("count", 2, 4, 8)
def test_recorded_gpus_keep_up_with_each_other(count: int) -> None:
    found = checks_of("gpu-straggler", recorded(count))
    assert [(check.subject.index, check.status) for check in found] == [(number, "pass") for number in range(count)]
    assert "as fast as the other GPUs of its model" in found[0].title


@cases("count", 2, 4, 8)
@cases("name", "gemm", "device-memory-copy", "host-to-device", "latency-device-memory")
def test_the_slow_one_of_recorded_gpus_is_named(count: int, name: str) -> None:
    last = count - 1
    found = stragglers(slowed(recorded(count), last, (name,), 0.2))
    assert list(found) == [last]
    check = found[last]
    assert f"GPU {last}" in check.title
    assert "% slower than the " in check.title
    assert check.figure is not None
    assert check.figure.name.startswith(name)
    assert check.figure.siblings
    assert 0.17 < 1 - speed_ratio(check.figure.value, check.figure.siblings, check.figure.unit) < 0.25
    assert check.figure.tolerated is not None
    assert 0.05 <= check.figure.tolerated < 0.2
    # Others that a copy of the same recorded GPU is among must not be touched.
    assert all(
        check.status == "pass" for check in checks_of("gpu-straggler", slowed(recorded(count), last, (name,), 0.01))
    )


@cases("values, slow",
    ((820, 650), [1]), ((820, 815, 650), [2]), ((820, 815, 650, 830), [2]), ((820, 650, 650, 830), [1, 2]),
    ((820, 815, 790, 830), []), ((820, 760), []), ((820, 820, 820, 820, 650, 650, 650, 650), [4, 5, 6, 7]),
    ((820, 650, 815, 650, 830, 825, 650, 822), [1, 3, 6]), ((820, 815, 830, 825, 650, 822, 818, 1200), [4]),
)  # fmt: skip
def test_which_are_slow_among_two_to_eight(values: tuple[float, ...], slow: list[int]) -> None:
    found = stragglers(with_gpus(len(values), *(value * 1e12 for value in values)))
    assert sorted(number for number in found if number is not None) == slow


def test_a_straggler_has_a_next_step() -> None:
    found = [check for check in checks_of("gpu-straggler", with_gpus(4, 8e14, 8e14, 5e14, 8e14)) if check.fixes]
    assert [check.fixes[0].command for check in found] == [("envcheck", "bench", "--gpu", "2")]


def test_gpus_that_all_differ_are_tolerated() -> None:
    scattered = (900, 780, 860, 700, 950, 820, 740, 1000)
    assert not stragglers(with_gpus(8, *(value * 1e12 for value in scattered)))


def test_it_says_how_far_and_what_is_tolerated() -> None:
    check = stragglers(with_gpus(4, 820e12, 815e12, 600e12, 830e12))[2]
    assert check.title == "GPU 2 (NVIDIA H200): 27% slower than the 3 others (BF16 matrix product 8192^3)"
    shown = check.evidence[0]
    assert shown.value.startswith("600 TFLOP/s; the median of the 3 others is 820 TFLOP/s: 26.8% slower, 10.")
    assert check.decided_by == "measured"


def test_of_two_it_says_that_the_faster_counts_as_sound() -> None:
    check = stragglers(with_gpus(2, 820e12, 600e12))[1]
    assert "27% slower than the other GPU" in check.title
    assert "With two GPUs only" in check.message


@cases(
    "changes, words",
    ({"throttle": {"sw_thermal_slowdown": 0.8}}, "thermal throttling by the driver in 80% of the samples"),
    ({"power_limit": 500.0}, "power limit 500 W, the others 700 W"),
    ({"sm_clock": span(1200e6)}, "SM clock 1200 MHz, the others 1980 MHz"),
    ({"memory_clock": span(1600e6)}, "memory clock 1600 MHz, the others 3201 MHz"),
    ({"pcie_width": 8}, "8 PCI Express lanes, the others 16"),
    ({"pcie_generation": 3}, "PCI Express generation 3, the others 5"),
    ({"temperature": span(60.0, 80.0, 86.0)}, "86 C, the others 50 C"),
    ({"throttle": {"sw_power_cap": 0.9}}, "it was at its power limit in 90% of the samples"),
    ({}, "NVML reports nothing in which it differs from the others"),
)
def test_the_cause_is_what_differs_from_the_others(changes: dict[str, Any], words: str) -> None:
    sound = with_gpus(4, 820e12, 815e12, 822e12, 830e12)
    assert words in stragglers(slowed(sound, 2, ("gemm",), 0.3, **changes))[2].message


def test_what_all_gpus_show_is_no_cause() -> None:
    hot = conditions(throttle={"sw_thermal_slowdown": 0.8}, power_limit=500.0)
    check = stragglers(slowed(with_gpus(4, 820e12, 815e12, 822e12, 830e12, conditions=hot), 2, ("gemm",), 0.3))[2]
    assert "NVML reports nothing in which it differs" in check.message


def test_what_is_not_known_of_the_others_is_no_difference() -> None:
    blank = Conditions(source="nvml", samples=3)
    sound = with_gpus(3, 820e12, 815e12, 600e12)
    figures = [but(each, conditions=blank) for each in sound.measurements[:2]]
    assert "NVML reports nothing" in stragglers(but(sound, measurements=(*figures, sound.measurements[2])))[2].message


def test_a_busy_gpu_is_not_compared_and_no_measure_for_others() -> None:
    busy = with_gpus(4, 820e12, 815e12, 400e12, 830e12)
    figures = [but(each, conditions=BUSY) if each.value == 400e12 else each for each in busy.measurements]
    found = {check.subject.index: check for check in checks_of("gpu-straggler", but(busy, measurements=tuple(figures)))}
    assert [found[number].status for number in range(4)] == ["pass", "pass", "skipped", "pass"]
    assert "another program used the GPU" in found[2].message


def test_with_all_others_busy_nothing_is_compared() -> None:
    two = with_gpus(2, 820e12, 400e12)
    figures = (two.measurements[0], but(two.measurements[1], conditions=BUSY))
    found = checks_of("gpu-straggler", but(two, measurements=figures))
    assert [check.status for check in found] == ["skipped", "skipped"]


def test_other_models_are_not_compared() -> None:
    gpus = [h200(0), h200(1), geforce("NVIDIA GeForce RTX 4090", "8.9", "10de:2684", 2)]
    figures = [gemm(value=820e12 / (1 + 9 * (number == 2)), gpu=gpu.uuid) for number, gpu in enumerate(gpus)]
    found = checks_of("gpu-straggler", machine(*gpus, measurements=tuple(figures)))
    assert [(check.subject.index, check.status) for check in found] == [(0, "pass"), (1, "pass")]


@every(
    ("copy-latency", "s", None), ("launch-and-sync", "s", None), ("kernel-launch", "s", None),
    ("host-to-device", "B/s", "pageable"), ("host-to-device", "B/s", "pageable, near"),
    ("tensorrt-convolution", "FLOP/s", "fused"), ("tensorrt-convolution", "FLOP/s", "unfused"),
)  # fmt: skip
def test_what_says_nothing_about_the_gpu_is_not_compared(case: tuple[str, str, str | None]) -> None:
    name, unit, variant = case
    figures = [figure(name, value, unit, gpu=h200(n).uuid, variant=variant) for n, value in enumerate((1.0, 3.0, 1.0))]
    assert not checks_of("gpu-straggler", machine(h200(0), h200(1), h200(2), measurements=tuple(figures)))


def pairs(slow: int | None, count: int = 4, **more: Any) -> Snapshot:
    here = [h200(number) for number in range(count)]
    figures = [
        to_peer(200e9 if slow in (one, other) else 395e9, gpu=here[one].uuid, peer=here[other].uuid, **more)
        for one in range(count)
        for other in range(one + 1, count)
    ]
    return machine(*here, measurements=tuple(figures))


@cases("slow", 0, 2, 3)
def test_a_gpu_whose_links_are_all_slow_is_named(slow: int) -> None:
    found = stragglers(pairs(slow))
    assert list(found) == [slow]
    assert "(Copy between GPUs, one direction, NVLink)" in found[slow].title


def test_links_of_two_gpus_or_of_sound_ones_name_nobody() -> None:
    assert not stragglers(pairs(None))
    assert not checks_of("gpu-straggler", pairs(0, 2))


def test_a_single_slow_pair_is_no_slow_gpu() -> None:
    sound = pairs(None)
    first, *rest = sound.measurements
    assert not stragglers(but(sound, measurements=(but(first, value=100e9, samples=()), *rest)))


def test_noisy_samples_are_tolerated() -> None:
    here = [h200(0), h200(1), h200(2)]
    figures = [memory_copy(gpu=gpu.uuid) for gpu in here[:2]]
    noisy = memory_copy(3.95e12, gpu=here[2].uuid, samples=(3.5e12, 3.8e12, 3.95e12, 4.1e12, 4.4e12))
    assert not stragglers(machine(*here, measurements=(*figures, noisy)))
    assert list(stragglers(machine(*here, measurements=(*figures, memory_copy(3.95e12, gpu=here[2].uuid))))) == [2]


def test_a_gpu_alone_is_compared_with_nothing() -> None:
    assert not checks_of("gpu-straggler", machine(h200(), measurements=(gemm(), to_gpu())))
    assert not checks_of("gpu-straggler", machine(h200(), h200(1), measurements=(gemm(), to_gpu())))


def test_many_gpus_and_figures_are_judged_in_time() -> None:
    """A thousand GPUs; a straggler among them is found."""
    here = [h200(n, uuid=f"GPU-{n}", pci_bus_id=f"{n:04x}:00:00.0") for n in range(1000)]
    figures = [
        figure("l2-read", 5e12 if n == 777 else 9e12, gpu=f"GPU-{n}", variant=f"v{kind}", conditions=None)
        for n in range(1000)
        for kind in range(3)
    ]
    assert list(stragglers(machine(*here, measurements=tuple(figures)))) == [777]


def test_the_check_is_of_the_gpu() -> None:
    check = stragglers(with_gpus(3, 820e12, 815e12, 600e12))[2]
    assert (check.subject.kind, check.subject.uuid) == ("gpu", h200(2).uuid)
    assert msgspec.json.decode(msgspec.json.encode(check), type=Check) == check
    assert check.sources
    assert judge(with_gpus(3, 820e12, 815e12, 600e12))
    assert check_of("slow-gemm", machine(h200(sm_count=132), measurements=(gemm(),))).status == "pass"


# --- algorithms ---------------------------------------------------------------------------------------------------
def chosen(snapshot: Snapshot, *algorithms: str | None) -> Snapshot:
    """Each GPU's products with what cuBLASLt chose on it."""
    by_uuid = dict(zip((gpu.uuid for gpu in gpus_of(snapshot)), algorithms, strict=True))
    found = (but(each, algorithm=by_uuid[each.gpu]) for each in snapshot.measurements)
    return but(snapshot, measurements=tuple(found))


ODD = with_gpus(4, 820e12, 815e12, 650e12, 830e12)


@cases("algorithms, slow",
    (("TN 66-1", "TN 66-1", "TN 66-2", "TN 66-1"), []), (("TN 66-1",) * 4, [2]), ((None,) * 4, [2]),
    (("TN 66-1", "TN 66-1", "TN 66-1", "TN 66-2"), [2]), (("TN 66-1", "TN 66-2", "TN 66-2", "TN 66-1"), [2]),
    (("TN 66-1", "TN 66-2", "TN 66-3", "TN 66-4"), []),
)  # fmt: skip
def test_gpus_are_compared_by_the_same_algorithm(algorithms: tuple[str | None, ...], slow: list[int]) -> None:
    assert sorted(number for number in stragglers(chosen(ODD, *algorithms)) if number is not None) == slow


@cases("slower, statuses", (0.01, ["pass", "pass"]), (0.2, ["pass", "skipped"]), (0.4, ["pass", "warn"]))
def test_of_two_with_two_algorithms_a_difference_that_a_choice_makes_is_not_judged(
    slower: float, statuses: list[str]
) -> None:
    found = checks_of("gpu-straggler", chosen(with_gpus(2, 820e12, (1 - slower) * 820e12), "TN 66-1", "TN 66-2"))
    assert [check.status for check in found] == statuses
    skipped = {check.message for check in found if check.status == "skipped"}
    assert skipped <= {"Measured, not compared: the library chose another algorithm on it."}


def test_among_many_gpus_too_an_algorithm_is_no_slow_gpu() -> None:
    here = with_gpus(20, *(820e12,) * 18, 700e12, 700e12)
    assert list(stragglers(chosen(here, *("TN 66-1",) * 19, "TN 66-2"))) == [18]


def one_slower(name: str, precision: str | None) -> Check:
    """The last of four GPUs, one of whose figures is 11 % slower."""
    snapshot = recorded(4)
    last = gpus_of(snapshot)[3].uuid
    found = list(snapshot.measurements)
    place = next(
        place
        for place, each in enumerate(found)
        if (each.gpu, each.name, each.precision) == (last, name, precision) and each.value
    )
    found[place] = but(found[place], value=0.85 * (found[place].value or 0.0), samples=())
    checks = checks_of("gpu-straggler", but(snapshot, measurements=tuple(found)))
    return next(check for check in checks if check.subject.index == 3)


@cases("name, precision", ("gemm", "fp8"), ("gemm", "tf32"))
def test_one_odd_figure_of_a_library_among_many_is_no_slow_gpu(name: str, precision: str) -> None:
    check = one_slower(name, precision)
    assert check.status == "note"
    compared = re.search(r"as fast as the 3 others in (\d+) of (\d+) figures", check.title)
    assert compared
    assert int(compared[1]) + 1 == int(compared[2]) > 50
    assert "slower" in check.message


def test_one_odd_figure_of_the_memory_is_a_slow_gpu() -> None:
    assert one_slower("device-memory-copy", None).status == "warn"
