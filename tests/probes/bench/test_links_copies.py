"""Copies between memories that stand for a host's and two GPUs': what the timed copies left is verified, word by word.

The memories are bytes of this process, and a copy may go wrong in one of them.
"""

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from probes.measuring import host_copies, peer_copies
from probes.measuring.host_copies import HostCopies
from probes.measuring.peer_copies import PeerCopies
from probes.measuring.verify import POISON, SEED
from tests.every import cases

SIZE = 4096
WORDS = SIZE // 8


class Memories:
    """Buffers by address; every copy is counted, and one may be spoiled."""

    def __init__(self) -> None:
        self.held: dict[int, bytearray] = {}
        self.copies: list[tuple[int, int]] = []
        self.spoil: Any = lambda target, copies: None
        """Called with the bytes that a copy wrote, and the copies made so far."""

    def take(self) -> int:
        address = 1000 + len(self.held)
        self.held[address] = bytearray(SIZE)
        return address

    def copy(self, target: int, source: int, size: int) -> None:
        self.held[target][:size] = self.held[source][:size]
        self.copies.append((target, source))
        self.spoil(target, self.copies)

    def call(self, name: str, *arguments: Any) -> Any:
        if name.startswith("cuMemcpy"):
            self.copy(*arguments[:3])
        return 1

    def word(self, address: int, place: int) -> bytes:
        return bytes(self.held[address][8 * place : 8 * place + 8])


class FakePattern:
    words = WORDS

    def __init__(self, bench: Any, size: int) -> None:
        self._held = bench.memories.held
        assert size == SIZE

    def close(self) -> None: ...

    def write(self, address: int, seed: int = SEED) -> None:
        self._held[address][:] = self._due(seed)

    def poison(self, address: int) -> None:
        self._held[address][:] = bytes([POISON]) * SIZE

    def wrong(self, address: int, seed: int = SEED) -> int:
        found, due = self._held[address], self._due(seed)
        return sum(found[place : place + 8] != due[place : place + 8] for place in range(0, SIZE, 8))

    def _due(self, seed: int) -> bytes:
        return b"".join(((seed + word) % (1 << 64)).to_bytes(8, "little") for word in range(WORDS))


def bench(memories: Memories, name: str) -> Any:
    def rate(name: str, amount: float, work: Any, plan: Any, *, poison: Any = None, **facts: Any) -> dict[str, Any]:
        work()  # the warm-up
        for _ in range(plan.samples):
            poison()
            work()
        return {"name": name, "amount": amount, **facts}

    device = SimpleNamespace(
        handle=name, context=name, stream=0, allocate=lambda size: memories.take(), free=memories.held.pop,
        enter=lambda: None, synchronize=lambda: None,
    )  # fmt: skip
    return SimpleNamespace(uuid=name, device=device, memories=memories, rate=rate)


@pytest.fixture
def memories(monkeypatch: pytest.MonkeyPatch) -> Memories:
    found = Memories()
    for module in (host_copies, peer_copies):
        monkeypatch.setattr(module, "SIZE", SIZE)
        monkeypatch.setattr(module, "Pattern", FakePattern)
        monkeypatch.setattr(module, "call", found.call)
    monkeypatch.setattr(host_copies, "WAKE_SECONDS", 0.01)

    def memset(address: int, byte: int, size: int) -> None:
        found.held[address][:] = bytes([byte]) * size

    monkeypatch.setattr(ctypes, "memset", memset)
    return found


class Host(list[int]):
    """Addresses of host memory."""

    awake = False


def copies_with_host(memories: Memories) -> tuple[HostCopies, list[int]]:
    host = Host([memories.take(), memories.take()])
    return HostCopies(bench(memories, "GPU-0"), host), host  # type: ignore[arg-type]


def results(memories: Memories, kind: str) -> tuple[bool, int, int]:
    """Right, checked, wrong."""
    copies, _ = copies_with_host(memories)
    checked = (copies.both_ways() if kind == "both" else copies.one_way(kind))["verification"]
    return checked["right"], checked["checked"], checked["wrong"]


@cases("kind, words", ("host-to-device", 1), ("device-to-host", 1), ("both", 2))
def test_sound_copies_are_right(memories: Memories, kind: str, words: int) -> None:
    assert results(memories, kind) == (True, words * WORDS, 0)


def last_of(target: int, source: int) -> Any:
    """Spoils a byte of each copy from ``source`` to ``target``."""

    def spoil(memories: Memories) -> Any:
        def spoiled(written: int, copies: list[tuple[int, int]]) -> None:
            if copies[-1] == (target, source):
                memories.held[written][SIZE - 1] ^= 1

        return spoiled

    return spoil


# In the order in which they are taken: two of the host, then two of the GPU.
HOST, HOST2, GPU, GPU2 = range(1000, 1004)


@cases("kind, target, source",
    ("host-to-device", GPU, HOST), ("device-to-host", HOST, GPU), ("both", GPU, HOST), ("both", HOST2, GPU2),
)  # fmt: skip
def test_one_wrong_byte_is_caught_in_either_direction(memories: Memories, kind: str, target: int, source: int) -> None:
    memories.spoil = last_of(target, source)(memories)
    right, _, wrong = results(memories, kind)
    assert (right, wrong) == (False, 1)


@cases("kind, target, source",
    ("host-to-device", GPU, HOST), ("device-to-host", HOST, GPU), ("both", GPU, HOST), ("both", HOST2, GPU2),
)  # fmt: skip
def test_a_copy_that_writes_nothing_leaves_poison(
    memories: Memories, kind: str, target: int, source: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = memories.copy

    def lazy(to: int, origin: int, size: int) -> None:
        if (to, origin) != (target, source):
            real(to, origin, size)

    monkeypatch.setattr(memories, "copy", lazy)
    right, _, wrong = results(memories, kind)
    assert (right, wrong) == (False, WORDS)


def test_crossed_buffers_are_wrong(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each direction has a pattern of its own: what comes back is not taken for what was to come."""
    real = memories.copy
    monkeypatch.setattr(
        memories, "copy", lambda to, origin, size: real(to, GPU if (to, origin) == (HOST2, GPU2) else origin, size)
    )
    assert results(memories, "both")[0] is False


def peers(memories: Memories, *, both: bool) -> dict[str, Any]:
    copies = PeerCopies(bench(memories, "GPU-0"), bench(memories, "GPU-1"), "NVLink", both=both)
    found: dict[str, Any] = (copies.both_ways() if both else copies.one_way())["verification"]
    copies.close()
    return found


@cases("both, times", (False, 1), (True, 2))
def test_sound_copies_between_gpus_are_right(memories: Memories, both: bool, times: int) -> None:  # noqa: FBT001
    found = peers(memories, both=both)
    assert (found["right"], found["checked"], found["wrong"]) == (True, times * WORDS, 0)
    assert not memories.held


# In the order in which both ends take them: the first sends and receives, then the second.
SENT, RECEIVED, SENT2, RECEIVED2 = range(1000, 1004)


@cases("both, target, source", (False, 1001, SENT), (True, RECEIVED2, SENT), (True, RECEIVED, SENT2))
def test_one_wrong_byte_between_gpus_is_caught(
    memories: Memories,
    both: bool,  # noqa: FBT001
    target: int,
    source: int,
) -> None:
    memories.spoil = last_of(target, source)(memories)
    found = peers(memories, both=both)
    assert (found["right"], found["wrong"]) == (False, 1)
