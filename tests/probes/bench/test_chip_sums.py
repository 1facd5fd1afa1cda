"""The sums and chains that the kernels are checked against, by brute force."""

from __future__ import annotations

import pytest

from probes.bench import memory as bench_memory
from probes.measuring import caches, pattern
from probes.measuring.caches import BLOCK, LCG_A, LCG_C, _folded, _texture_sum


def texture_sum(grid: int, texels: int, rounds: int) -> int:
    """``texture_fetch`` of kernels/caches.cu, thread by thread."""
    total = 0
    for thread in range(grid * BLOCK):
        place, own = thread % texels, 0
        for _ in range(rounds):
            own = (own + _folded(place)) % (1 << 32)
            place += BLOCK
            if place >= texels:
                place -= texels
        total += own
    return total


@pytest.mark.parametrize(("grid", "rounds"), [(1, 4), (3, 8), (4, 4), (5, 12), (9, 4)])
def test_the_texture_total(grid: int, rounds: int) -> None:
    assert _texture_sum(grid, 2048, rounds) == texture_sum(grid, 2048, rounds)


def test_a_folded_vector() -> None:
    assert [_folded(i) for i in range(3)] == [0 ^ 1 ^ 2 ^ 3, 4 ^ 5 ^ 6 ^ 7, 8 ^ 9 ^ 10 ^ 11]


@pytest.mark.parametrize("lines", [1 << 7, 1 << 12])
def test_the_chain_visits_every_line(lines: int) -> None:
    place, seen = 0, set()
    for _ in range(lines):
        place = (LCG_A * place + LCG_C) % lines
        seen.add(place)
    assert len(seen) == lines


@pytest.mark.parametrize("words", [2, 10, 4096])
def test_the_total_of_the_pattern(words: int) -> None:
    step, seed = bench_memory.STEP, bench_memory.SEED
    brute = sum((i * step + seed) % (1 << 64) for i in range(words)) % (1 << 64)
    assert (step * (words * (words - 1) // 2) + seed * words) % (1 << 64) == brute


def test_patterns_are_told_apart_from_poison() -> None:
    for seed in (bench_memory.SEED, pattern.SEED):
        words = [(i * bench_memory.STEP + seed) % (1 << 64) for i in range(1000)]
        assert len(set(words)) == 1000
        assert int.from_bytes(bytes([bench_memory.POISON]) * 8, "little") not in words


def test_whole_turns_of_shared_memory() -> None:
    """A thread comes back to where it began: the closed form counts whole turns."""
    vectors = caches.SHARED_WORDS // 4
    assert vectors % BLOCK == 0
    assert 4096 * BLOCK % vectors == 0
