"""What a worker asks of NCCL moves what each operation should, in one buffer too, and wrong data are seen."""

from collections import Counter
from typing import Any

import pytest

from probes.measuring.nccl import worker
from probes.measuring.nccl.jobs import rounds
from probes.measuring.nccl.values import OPERATIONS
from probes.measuring.nccl.worker import NcclStep, binary
from tests.every import cases
from tests.probes.bench.nccl.fake_nccl import FakeNccl, HostTalk, run_steps

IN_PLACE = [
    (name, in_place) for name in OPERATIONS for in_place in (False, True) if OPERATIONS[name].in_place or not in_place
]


@cases("kind", "fp32", "int32")
@cases("ranks", 2, 3, 8)
@pytest.mark.parametrize(("name", "in_place"), IN_PLACE)
def test_every_operation_gives_what_is_due(
    monkeypatch: pytest.MonkeyPatch, name: str, *, in_place: bool, ranks: int, kind: str
) -> None:
    nccl = FakeNccl(ranks)
    step = NcclStep(name, 96 * ranks, kind, in_place=in_place, samples=2, least=1, most=2)
    (result,) = run_steps(monkeypatch, nccl, step).results
    assert (result["wrong"], len(result["seconds"])) == (0, 2)
    elements = 24 * ranks
    assert result["checked"] == {"reduce": elements, "reduce-scatter": elements}.get(name, ranks * elements)
    assert set(nccl.done) == {OPERATIONS[name].function or "ncclSend"}


@pytest.mark.parametrize(("name", "in_place"), IN_PLACE)
def test_one_wrong_element_of_one_rank_is_found(monkeypatch: pytest.MonkeyPatch, name: str, *, in_place: bool) -> None:
    def spoil(rank: int, received: Any) -> None:
        if rank == 0 and len(received):
            received[len(received) - 1] += 0.5

    step = NcclStep(name, 256, in_place=in_place, samples=1, least=1, most=1)
    (result,) = run_steps(monkeypatch, FakeNccl(4, spoil), step).results
    assert 1 <= result["wrong"] <= 4  # an all-to-all has a receive for each peer


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items()])
def test_what_was_there_before_is_not_taken_for_a_result(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    nccl = FakeNccl(2)

    def forget() -> int:
        nccl.queue.clear()
        return 0

    monkeypatch.setattr(nccl, "run", forget)
    (result,) = run_steps(monkeypatch, nccl, NcclStep(name, 64, samples=1, least=1, most=1)).results
    assert result["wrong"] == result["checked"] > 0


@cases("captures", True, False)
def test_small_messages_are_queued_by_graphs_where_nccl_can(monkeypatch: pytest.MonkeyPatch, *, captures: bool) -> None:
    nccl, called = FakeNccl(2), Counter[str]()
    monkeypatch.setattr(nccl, "captures", captures)
    monkeypatch.setattr(worker, "call", lambda name, *_: called.update([name]))
    (result,) = run_steps(
        monkeypatch, nccl, NcclStep("all-reduce", 64, samples=2, least=3, most=3, per_graph=4)
    ).results
    assert result["in_graphs"] is captures
    each = 1e-5 / 3 / (4 if captures else 1)
    assert result["seconds"] == pytest.approx([each, each])
    # Before each sample three, in the first one more and in the others three, on both GPUs.
    assert dict(called) == ({"cuGraphLaunch": 2 * (4 + 6 + 6), "cuGraphExecDestroy": 2} if captures else {})


def test_operands_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, ...]] = []
    nccl = FakeNccl(2, lambda _, received: seen.append(tuple(received)))
    step = NcclStep("broadcast", 64, samples=1, least=1, most=1)
    run_steps(monkeypatch, nccl, step, step)
    assert len(set(seen)) == 2


def test_a_hidden_gpu_is_named_with_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    talk = run_steps(monkeypatch, FakeNccl(2), NcclStep("all-reduce", 64), hidden=(1,))
    assert talk.lines[-1]["error"] == "CUDA does not show GPU 1 to rank 1: CUDA_VISIBLE_DEVICES=0"
    assert not talk.results


@cases("own, other", ("2.28.9", "2.18.3"), ("2.18.3", "2.28.9"))
def test_another_release_on_another_rank_is_named(monkeypatch: pytest.MonkeyPatch, own: str, other: str) -> None:
    codes = {"2.28.9": 22809, "2.18.3": 21803}
    nccl = FakeNccl(2)
    nccl.version, nccl.number = own, codes[own]
    agreed = iter([max(codes.values()), -min(codes.values())])
    monkeypatch.setattr(HostTalk, "agree", lambda _self, _value: next(agreed))
    talk = run_steps(monkeypatch, nccl, NcclStep("all-reduce", 64))
    assert talk.lines[-1]["error"] == f"NCCL {own} here, {other} on another rank: all ranks need one release"
    assert talk.lines[-1]["library"] == nccl.path


@cases("size, text", (8, "8 B"), (32 << 10, "32 KiB"), (512 << 20, "512 MiB"), (8 << 30, "8 GiB"))
def test_sizes_are_binary(size: int, text: str) -> None:
    assert binary(size) == text


@cases("ranks", 3, 4, 8)
def test_every_pair_works_together_once(monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
    steps = tuple(NcclStep(name, 64, samples=1, least=1, most=1) for name in ("all-reduce", "send-recv"))
    first = NcclStep("broadcast", 4096, samples=1, least=1, most=1)
    pairs = rounds(ranks)
    _, *results = run_steps(monkeypatch, FakeNccl(ranks), first, rounds=pairs, pair_steps=steps).results
    assert all(result["wrong"] == 0 and result["checked"] == 2 * 16 for result in results)
    done = [(tuple(result["pair"]), result["step"]) for result in results]
    every = [(one, other) for one in range(ranks) for other in range(one + 1, ranks)]
    assert sorted(done) == [(pair, step) for pair in every for step in (0, 1)]
    for each in pairs:
        numbers = [number for pair in each for number in pair]
        assert len(set(numbers)) == len(numbers)
