"""NUMA nodes of a GPU's copies, as sysfs and procfs of a machine tell them."""

import os
from typing import Any

import pytest

from probes.common.tree import Tree
from probes.measuring.host_copies import CopyPlace, on_node, places
from tests.every import cases
from tests.probes.conftest import BuildRoot

NODES = "/sys/devices/system/node"
STATUS = "Name:\tpython3\nMems_allowed:\t00000003\nMems_allowed_list:\t{}\n"


def machine(count: int = 2, allowed: str = "0-3", policy: str = "default", **more: str) -> dict[str, str]:
    """Nodes of two CPUs each; the farther a node's number, the farther it is."""
    tree = {"/proc/self/status": STATUS.format(allowed), "/proc/self/numa_maps": f"7f00 {policy} anon=1 N0=1\n"}
    for node in range(count):
        tree[f"{NODES}/node{node}/cpulist"] = f"{2 * node}-{2 * node + 1}\n"
        tree[f"{NODES}/node{node}/distance"] = " ".join(str(10 + 11 * abs(node - other)) for other in range(count))
    return {**tree, f"{NODES}/possible": "0-7", **more}


@pytest.fixture(autouse=True)
def affinity(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The CPUs of this thread, and what they were set to."""
    now = [set(range(16))]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(now[-1]))
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: now.append(set(cpus)))
    return now


def found(build_root: BuildRoot, tree: dict[str, str], own: int | None) -> tuple[Any, Any, str]:
    there = places(Tree({"root": build_root(None, tree)}), own)
    return there.near, there.far, there.why_not_far


def test_its_own_node_is_near_and_the_farthest_is_far(build_root: BuildRoot) -> None:
    assert found(build_root, machine(4), 1) == (CopyPlace(1, "near"), CopyPlace(3, "far"), "")


@cases(
    "tree, own, why", (machine(1), None, "sysfs shows no second NUMA node"), ({}, 0, "sysfs shows no second NUMA node"),
    (machine(2), None, "sysfs does not say which NUMA node the GPU is on"),
    (machine(2, allowed="0"), 1, "this process may not use NUMA node 1, which the GPU is on"),
    (machine(2), 5, "this process may not use NUMA node 5, which the GPU is on"),
    (machine(2, policy="bind:0"), 0, "a memory policy (numactl) holds this process's memory in place"),
)  # fmt: skip
def test_nothing_is_called_near(build_root: BuildRoot, tree: dict[str, str], own: int | None, why: str) -> None:
    assert found(build_root, tree, own) == (CopyPlace(None), None, why)


def test_one_usable_node_is_near_and_none_is_far(build_root: BuildRoot) -> None:
    why = "this process may use NUMA node 1 alone"
    assert found(build_root, machine(2, allowed="1"), 1) == (CopyPlace(1, "near"), None, why)


def test_cpus_that_the_process_may_not_use_do_not_count(build_root: BuildRoot, affinity: list[set[int]]) -> None:
    affinity[:] = [{0, 1, 2}]
    near, far, why = found(build_root, machine(4), 0)
    assert (near, far, why) == (CopyPlace(0, "near"), CopyPlace(1, "far"), "")


def test_the_thread_runs_on_the_node_and_comes_back(build_root: BuildRoot, affinity: list[set[int]]) -> None:
    tree = Tree({"root": build_root(None, machine(4))})
    with on_node(tree, CopyPlace(2, "far")):
        assert affinity[-1] == {4, 5}
    assert affinity[-1] == set(range(16))


def test_the_thread_comes_back_from_what_fails(build_root: BuildRoot, affinity: list[set[int]]) -> None:
    tree = Tree({"root": build_root(None, machine(4))})
    with pytest.raises(ZeroDivisionError), on_node(tree, CopyPlace(2, "far")):
        _ = 1 / 0
    assert [each for each in affinity if each != set(range(16))] == [{4, 5}]
    assert affinity[-1] == set(range(16))


def test_without_a_node_the_thread_stays_where_it_is(build_root: BuildRoot, affinity: list[set[int]]) -> None:
    with on_node(Tree({"root": build_root(None, {})}), CopyPlace(None)):
        assert affinity[-1] == set(range(16))
