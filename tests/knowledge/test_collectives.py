"""What a collective operation should have reached: by what joins the GPUs, how many, and which algorithm."""

from typing import Any

import pytest

from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.performance.collectives import collective_expectation, latency_limit, link_of
from envcheck.knowledge.performance.expected import Expectation
from envcheck.knowledge.performance.quantities import library_tested, selected
from envcheck.model.snapshot import Collective, Fabric, Gpu, GpuLink, Measurement, NvLink
from tests.every import cases, every
from tests.rules.machines import but, h200

MATRIX = load_matrix()
RATE = 26.562e9
LARGE = 512 << 20


def nvlinks(kind: str, count: int = 18, *, down: int = 0) -> tuple[NvLink, ...]:
    return tuple(
        NvLink(source="nvml", link=number, active=number >= down, remote_kind=kind, bandwidth=RATE)
        for number in range(count)
    )


def on_switch(count: int, **changes: Any) -> tuple[Gpu, ...]:
    return tuple(h200(number, **{"nvlinks": nvlinks("switch"), **changes}) for number in range(count))


def joined(gpus: tuple[Gpu, ...], links: int | None) -> Fabric:
    pairs = [(one, other) for i, one in enumerate(gpus) for other in gpus[i + 1 :]]
    return Fabric(
        source="nvml",
        links=tuple(
            GpuLink(source="nvml", first=one.pci_bus_id or "", second=other.pci_bus_id or "", nvlinks=links)
            for one, other in pairs
        ),
    )


def all_reduce(gpus: tuple[Gpu, ...], value: float = 353e9, size: int = LARGE, **facts: Any) -> Measurement:
    together = Collective(
        source="bench", ranks=len(gpus), gpus=tuple(gpu.uuid or "" for gpu in gpus),
        **{"processes": len(gpus), "transports": ("P2P/CUMEM",), "nvls_channels": 0, **facts},
    )  # fmt: skip
    return Measurement(
        source="bench", name="nccl-all-reduce", gpu=gpus[0].uuid, value=value, unit="B/s", size=size,
        collective=together,
    )  # fmt: skip


def expected(gpus: tuple[Gpu, ...], measured: Measurement, fabric: Fabric | None = None) -> Expectation | str:
    return collective_expectation(MATRIX, gpus, fabric, measured)


def test_gpus_on_a_switch_are_held_to_all_their_links() -> None:
    gpus = on_switch(8)
    found = expected(gpus, all_reduce(gpus))
    assert isinstance(found, Expectation)
    assert found.ceiling == pytest.approx(18 * RATE)
    assert found.share == pytest.approx(353e9 / (18 * RATE))
    assert (found.judgement, found.basis) == ("pass", "18 NVLinks of each GPU to a switch, by NVML")
    assert found.rows == ("collective/nccl-all-reduce-nvswitch-hopper-8-8",)
    assert found.sources


def test_the_gpu_with_the_fewest_links_decides() -> None:
    gpus = (*on_switch(7), h200(7, nvlinks=nvlinks("switch", down=6)))
    found = expected(gpus, all_reduce(gpus, 230e9))
    assert isinstance(found, Expectation)
    assert found.ceiling == pytest.approx(12 * RATE)


def test_a_slow_one_is_judged() -> None:
    gpus = on_switch(8)
    judgements = {}
    for value in (340e9, 300e9, 100e9, 600e9):
        found = expected(gpus, all_reduce(gpus, value))
        assert isinstance(found, Expectation)
        judgements[value] = found.judgement
    assert judgements == {340e9: "pass", 300e9: "warn", 100e9: "fail", 600e9: "above-ceiling"}


GPUS = on_switch(8)
REFUSED = {
    "small": (all_reduce(GPUS, size=1 << 20), "latency decides more than bandwidth"),
    "switch sums": (all_reduce(GPUS, algorithm="nvls"), "with sums inside the switch"),
    "switch may sum": (all_reduce(GPUS, nvls_channels=16), "with sums inside the switch"),
    "no log": (all_reduce(GPUS, transports=()), "what joins the GPUs is not known"),
    "another way": (all_reduce(GPUS, transports=("NEW/way",)), "what joins the GPUs is not known"),
    "no band": (but(all_reduce(GPUS), name="nccl-new"), "no band is known for 8 GPUs over NVLink through a switch"),
    "no value": (but(all_reduce(GPUS), value=None, missing="rank 1 died"), "rank 1 died"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_nobody_knows_is_not_judged(case: str) -> None:
    measured, why = REFUSED[case]
    found = expected(GPUS, measured)
    assert isinstance(found, str)
    assert why in found


def test_a_ring_is_judged_although_the_switch_could_sum() -> None:
    assert isinstance(expected(GPUS, all_reduce(GPUS, algorithm="ring", nvls_channels=16)), Expectation)


def test_gpus_of_several_kinds_are_not_judged() -> None:
    gpus = (*on_switch(7), h200(7, nvlinks=nvlinks("switch"), compute_capability="8.0"))
    assert expected(gpus, all_reduce(gpus)) == "GPUs of several kinds took part"


def test_gpus_that_are_not_described_are_not_judged() -> None:
    assert expected(GPUS[:7], all_reduce(GPUS)) == "not all of the GPUs that took part are described"


@cases("links, link", (4, "nvlink"), (0, "pcie"), (None, None))
def test_direct_links_are_told_from_pci_express(links: int | None, link: str | None) -> None:
    gpus = tuple(h200(number, nvlinks=nvlinks("gpu", 4) if links else ()) for number in range(2))
    together = all_reduce(gpus).collective
    assert together
    assert link_of(gpus, joined(gpus, links), together) == link
    assert link_of(gpus, None, together) is None


@cases("way, words", ("SHM/direct", "through host memory"), ("NET/Socket", "over the network"))
def test_gpus_without_nvlink_may_exchange_data_otherwise(way: str, words: str) -> None:
    gpus = tuple(h200(number, nvlinks=()) for number in range(2))
    found = expected(gpus, all_reduce(gpus, transports=(way,)), joined(gpus, 0))
    assert isinstance(found, str)
    assert f"no band is known for 2 GPUs {words}" in found


@cases("way", "SHM/direct", "NET/Socket")
def test_gpus_that_nvlink_joins_are_held_to_it_whatever_nccl_used(way: str) -> None:
    found = expected(GPUS, all_reduce(GPUS, 30e9, transports=(way, "P2P/CUMEM")))
    assert isinstance(found, Expectation)
    assert found.judgement == "fail"


def test_a_machine_where_only_some_pairs_have_links_is_neither() -> None:
    gpus = tuple(h200(number, nvlinks=nvlinks("gpu", 4)) for number in range(3))
    fabric = joined(gpus, 4)
    some = but(fabric, links=(but((fabric.links or ())[0], nvlinks=0), *(fabric.links or ())[1:]))
    together = all_reduce(gpus).collective
    assert together
    assert link_of(gpus, some, together) is None


def latency(gpus: tuple[Gpu, ...], **facts: Any) -> Measurement:
    return but(all_reduce(gpus, 8e-6, size=8, **facts), unit="s")


@cases("processes", 1, 2)
def test_latency_is_held_to_what_was_seen(processes: int) -> None:
    gpus = on_switch(2)
    found = latency_limit(MATRIX, gpus, None, latency(gpus, processes=processes))
    assert not isinstance(found, str)
    seconds, sources = found
    assert seconds == 25e-6
    assert sources


def test_a_latency_that_nobody_measured_is_not_judged() -> None:
    gpus = on_switch(2)
    whys = [
        latency_limit(MATRIX, GPUS, None, latency(GPUS)),
        latency_limit(MATRIX, gpus, None, latency(gpus, transports=())),
    ]
    assert [str(why).partition(":")[0] for why in whys] == [
        "no latency is known for 8 GPUs over NVLink through a switch",
        "what joins the GPUs is not known",
    ]


@every(MATRIX.collectives)
def test_a_band_is_one(row: Any) -> None:
    assert 0.2 <= row.low < row.high <= 1.0
    assert 2 <= row.least <= row.most
    assert row.size >= 64 << 20
    assert row.architecture in {"", *(each.name for each in MATRIX.architectures)}
    assert MATRIX.cite(row)


# --- Which quantities words on the command line select, where a library has the same work as others -----------------
@cases("word, names",
    ("all-reduce", ("nccl-all-reduce",)), ("reduce", ("nccl-reduce",)),
    ("nccl-reduce", ("nccl-reduce-scatter", "nccl-reduce")), ("gemm", ("gemm",)),
)  # fmt: skip
def test_a_word_selects_what_it_names(word: str, names: tuple[str, ...]) -> None:
    assert selected((word,)) == names


def test_a_library_selects_all_of_its_own() -> None:
    found = selected(("nccl",))
    assert len(found) == 7
    assert {library_tested(name) for name in found} == {"NCCL"}


def test_an_unknown_word_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="all-gather"):
        selected(("nccl-all-gathr",))
