"""The slow nodes of a fleet are found by few measurements, whichever they are; a node that is not slow is not named."""

import math
import random
from collections.abc import Callable, Collection, Mapping
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.fleet.collective.search import GroupOutcome as Outcome
from envcheck.fleet.collective.search import Search
from tests.every import cases
from tests.thorough import examples

HEALTHY = 48e9
Measure = Callable[[tuple[str, ...]], Outcome]


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def fleet(
    speeds: Mapping[str, float],
    *,
    breaking: Collection[str] = (),
    dying: Collection[str] = (),
    noise: float = 0.0,
    seed: int = 0,
) -> Measure:
    """A fleet whose groups are as fast as their slowest node; ``breaking`` nodes make a group fail without a word of
    who did, ``dying`` ones are named as the cause.
    """
    drawn = random.Random(seed)

    def measure(group: tuple[str, ...]) -> Outcome:
        assert len(group) == len(set(group)) >= 2
        dead = {node: f"{node} died" for node in group if node in dying}
        if dead:
            return Outcome(problem="a node died", at_fault=dead)
        if set(group) & set(breaking):
            return Outcome(problem="NCCL: remote error")
        return Outcome(min(speeds.get(node, 1.0) for node in group) * HEALTHY * (1 + drawn.uniform(-noise, noise)))

    return measure


def searched(count: int, measure: Measure) -> Search:
    search = Search(names(count), measure)
    search.run()
    assert search.finished
    return search


def most(count: int, odd: int) -> int:
    """Measurements that a search may take: logarithmic in the number of nodes."""
    steps = math.ceil(math.log2(count))
    return 11 if count < 6 else 2 + (steps + 1) + odd * (2 * steps + 2)


FEWEST = {0: 2, 1: 3, 2: 4}
"""Nodes from which on so many slow ones are found: two healthy ones must be left."""


@settings(max_examples=examples(2_000), deadline=None)
@given(data=st.data())
def test_one_or_two_slow_nodes_are_named_and_no_other(data: st.DataObject) -> None:
    odd = data.draw(st.integers(0, 2))
    count = data.draw(st.integers(FEWEST[odd], 64))
    chosen = data.draw(st.lists(st.sampled_from(names(count)), min_size=odd, max_size=odd, unique=True))
    speeds = {node: data.draw(st.floats(0.05, 0.8)) for node in chosen}
    noise = data.draw(st.sampled_from([0.0, 0.01, 0.04]))
    search = searched(count, fleet(speeds, noise=noise, seed=data.draw(st.integers(0, 99))))
    assert {each.node for each in search.suspects} == set(chosen)
    assert search.unsettled == []
    assert len(search.groups) <= most(count, odd)


@settings(max_examples=examples(2_000), deadline=None)
@given(data=st.data())
def test_two_nodes_that_are_slow_together_only_are_named_and_no_other(data: st.DataObject) -> None:
    count = data.draw(st.integers(3, 64))
    chosen = data.draw(st.lists(st.sampled_from(names(count)), min_size=2, max_size=2, unique=True))
    speed = data.draw(st.one_of(st.none(), st.floats(0.05, 0.8)))
    healthy = fleet({}, noise=data.draw(st.sampled_from([0.0, 0.01, 0.04])), seed=data.draw(st.integers(0, 99)))

    def measure(group: tuple[str, ...]) -> Outcome:
        outcome = healthy(group)
        if not {*chosen} <= {*group}:
            return outcome
        return Outcome(problem="NCCL: remote error") if speed is None else Outcome((outcome.value or 0.0) * speed)

    search = searched(count, measure)
    assert [{*link.nodes} for link in search.links] == [{*chosen}]
    assert (search.suspects, search.unsettled, search.lost) == ([], [], {})
    assert len(search.groups) <= most(count, 1) + math.comb(math.ceil(math.log2(count)) + 1, 2)


@cases("count", 3, 4, 6, 8, 17, 33, 64)
def test_groups_that_are_slower_the_larger_they_are_have_no_slow_link(count: int) -> None:
    def measure(group: tuple[str, ...]) -> Outcome:
        return Outcome(HEALTHY * (1 - 0.05 * math.log2(len(group))))

    search = searched(count, measure)
    assert (search.suspects, search.links, search.unsettled) == ([], [], [])


@settings(max_examples=examples(2_000), deadline=None)
@given(data=st.data())
def test_nodes_that_break_or_die_are_named(data: st.DataObject) -> None:
    odd = data.draw(st.integers(1, 2))
    count = data.draw(st.integers(FEWEST[odd], 64))
    chosen = data.draw(st.lists(st.sampled_from(names(count)), min_size=odd, max_size=odd, unique=True))
    kinds = [data.draw(st.sampled_from(["slow", "breaking", "dying"])) for _ in chosen]
    of = {kind: [node for node, its in zip(chosen, kinds, strict=True) if its == kind] for kind in set(kinds)}
    measure = fleet(dict.fromkeys(of.get("slow", ()), 0.5), breaking=of.get("breaking", ()), dying=of.get("dying", ()))
    search = searched(count, measure)
    assert set(search.lost) == set(of.get("dying", ()))
    left = count - len(search.lost)
    if left >= FEWEST[odd - len(search.lost)]:
        assert {each.node for each in search.suspects} == set(of.get("slow", ())) | set(of.get("breaking", ()))
        assert {each.node for each in search.suspects if each.bandwidth is None} == set(of.get("breaking", ()))
    else:
        assert search.suspects == []
    assert len(search.groups) <= most(count, odd) + len(search.lost)


@cases("count", 4, 5, 6, 7, 8, 9, 16, 31)
def test_every_pair_of_slow_nodes_is_found(count: int) -> None:
    for pair in combinations(names(count), 2):
        assert {each.node for each in searched(count, fleet(dict.fromkeys(pair, 0.6))).suspects} == set(pair)


@cases("count", 2, 3, 10)
def test_where_no_group_works_nothing_is_blamed(count: int) -> None:
    search = searched(count, fleet({}, breaking=names(count)))
    assert (search.reference, search.suspects, search.lost) == (None, [], {})


def test_two_nodes_alone_are_not_judged() -> None:
    search = searched(2, fleet({"n1": 0.1}))
    assert [group.bandwidth for group in search.groups] == [0.1 * HEALTHY]
    assert search.suspects == []


def test_all_slow_alike_is_not_told_from_all_healthy() -> None:
    """There is nothing to compare with: the figures are shown, and nobody is blamed."""
    assert searched(9, fleet(dict.fromkeys(names(9), 0.3))).suspects == []


def test_a_slowness_that_no_pair_shows_is_unsettled() -> None:
    """A group of more than two is slow whenever it has n0, and its pairs are not."""
    healthy = fleet({})

    def measure(group: tuple[str, ...]) -> Outcome:
        return Outcome(0.5 * HEALTHY) if "n0" in group and len(group) > 2 else healthy(group)

    search = searched(32, measure)
    assert search.suspects == []
    assert [group for group in search.unsettled if "n0" in group]


def test_what_was_found_stays_where_the_measuring_ends() -> None:
    calls = 0
    healthy = fleet({"n5": 0.5})

    def measure(group: tuple[str, ...]) -> Outcome:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise TimeoutError
        return healthy(group)

    search = Search(names(16), measure)
    with pytest.raises(TimeoutError):
        search.run()
    assert (search.finished, len(search.groups)) == (False, 3)
