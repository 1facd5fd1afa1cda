"""``bench --fleet`` over ssh: who is slow, dies, hangs or breaks in a run, is named with its reason, in time.

ssh is a program that runs the line here, and NCCL is ``stand_in.py``; the lines between nodes, the agreement of their
processes, faults and their blame are the real ones. tests/gpu has NCCL, tests/lab Slurm and Ray.
"""

import json
import os
import shlex
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from envcheck.fleet.collective.report import FleetBench
from envcheck.fleet.collective.together import Together
from envcheck.fleet.engines.launch import NodeCommand, Processes
from tests.cli.calling import ROOT, envcheck
from tests.every import cases
from tests.fleet.collective.stand_in import BANDWIDTH
from tests.fleet.test_engines import interrupted, programs

SSH = """#!/bin/sh
for host; do before=$line; line=$host; done
[ "$before" = kept ] && sleep 600 </dev/null >/dev/null & # as a ProxyCommand does under nohup
[ "$before" = gone ] && echo "ssh: connect to host gone port 22: No route to host" >&2 && exit 255
FLEET_NODE=$before exec /bin/sh -c "$line"
"""
STAND_IN = Path(__file__).parent / "stand_in.py"
NODE = (sys.executable, "-S", str(STAND_IN))  # which starts the soonest


def command(folder: Path, plan: dict[str, dict[str, Any]], names: list[str]) -> list[str]:
    """The options of a run over ``names``, which behave as ``plan`` says."""
    (folder / "plan").write_text(json.dumps(plan))
    (folder / "hosts").write_text("\n".join(names))
    node = shlex.join([*NODE, str(folder / "plan")])
    return ["bench", "--fleet", "--hosts", "hosts", "--command", node]


def bench(folder: Path, plan: dict[str, dict[str, Any]], names: list[str], *more: str) -> FleetBench:
    path = programs(folder, ssh=SSH)
    told = envcheck(*command(folder, plan, names), "--json", *more, cwd=folder, PATH=path)
    assert told.out, told.err
    found = msgspec.json.decode(told.out, type=FleetBench)
    assert told.status == found.exit_code
    return found


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def problems(found: FleetBench) -> dict[str, str]:
    return {node.name: node.problem for node in found.nodes if node.problem}


def test_a_slow_node_is_named_with_its_figure(tmp_path: Path) -> None:
    found = bench(tmp_path, {"n4": {"speed": 0.5}}, names(7))
    (slow,) = found.slow
    assert (slow.node, slow.status) == ("n4", "fail")
    assert slow.bandwidth == pytest.approx(0.5 * BANDWIDTH)
    assert slow.expected == pytest.approx(BANDWIDTH)
    assert (found.verdict, found.exit_code, problems(found)) == ("fail", 1, {})
    assert found.groups[0].nodes == tuple(names(7))
    assert found.groups[0].bandwidth == pytest.approx(0.5 * BANDWIDTH)
    assert {node.nccl for node in found.nodes} == {"0.0.0"}


def test_healthy_nodes_pass(tmp_path: Path) -> None:
    found = bench(tmp_path, {"n1": {"gpus": 1}}, names(4))
    assert (found.verdict, found.exit_code, found.slow) == ("pass", 0, ())
    assert [group.bandwidth for group in found.groups] == [pytest.approx(BANDWIDTH)] * len(found.groups)


def test_a_node_a_little_slower_warns(tmp_path: Path) -> None:
    found = bench(tmp_path, {"n1": {"speed": 0.88}}, names(4), "--fail-on", "warn")
    assert [(slow.node, slow.status) for slow in found.slow] == [("n1", "warn")]
    assert (found.verdict, found.exit_code) == ("warn", 1)


SIZES = [3, 8, pytest.param(32, marks=pytest.mark.lab), pytest.param(64, marks=pytest.mark.lab)]


@pytest.mark.parametrize("count", SIZES)
def test_two_nodes_that_are_slow_together_only_are_named(tmp_path: Path, count: int) -> None:
    pair = ["n0", f"n{count - 1}"]
    found = bench(tmp_path, {"*": {"link": pair, "speed": 0.5}}, names(count))
    assert [sorted(link.nodes) for link in found.links] == [sorted(pair)]
    assert found.links[0].bandwidth == pytest.approx(0.5 * BANDWIDTH)
    assert found.links[0].expected == pytest.approx(BANDWIDTH)
    assert (found.slow, found.unsettled, problems(found), found.verdict) == ((), (), {}, "fail")
    assert found.headline == "1 link between two nodes is slow"


@pytest.mark.parametrize("count", SIZES[1:])
def test_two_slow_nodes_and_one_that_dies_in_a_run_are_named(tmp_path: Path, count: int) -> None:
    plan: dict[str, dict[str, Any]] = {"n1": {"speed": 0.5}, "n5": {"speed": 0.7}, "n7": {"killed": 1}}
    found = bench(tmp_path, plan, names(count), "--timeout", "120")
    assert [slow.node for slow in found.slow] == ["n1", "n5"]
    assert list(problems(found)) == ["n7"]
    assert "killed by SIGKILL" in problems(found)["n7"]
    assert (found.unsettled, found.links, found.exit_code) == ((), (), 1)


@pytest.mark.parametrize("count", SIZES)
def test_where_all_are_slow_alike_nobody_is_blamed(tmp_path: Path, count: int) -> None:
    found = bench(tmp_path, {"*": {"speed": 0.3}}, names(count))
    assert (found.slow, found.links, found.unsettled, problems(found)) == ((), (), (), {})
    assert found.reference == pytest.approx(0.3 * BANDWIDTH)


def test_nodes_that_do_not_answer_are_rows_and_the_others_are_measured(tmp_path: Path) -> None:
    plan: dict[str, dict[str, Any]] = {"n0": {"dies": 1}, "n1": {"hangs": 1}, "n2": {"rubbish": 1}, "n3": {"gpus": 0}}
    plan |= {"n4": {"gpus": 300}, "kept": {"dies": 1}}
    began = time.monotonic()
    found = bench(tmp_path, {**plan, "n6": {"speed": 0.5}}, [*names(8), "gone", "kept"], "--timeout", "14")
    assert time.monotonic() - began < 25
    assert problems(found) == {
        "n0": "exit status 1: envcheck: command not found", "n1": "no answer within 7 s",
        "n2": "it sent a line that cannot be read; does it run the same version of envcheck?",
        "n3": "no matching CUDA GPU found", "n4": "it names 300 GPUs; at most 256 are measured",
        "gone": "exit status 255: ssh: connect to host gone port 22: No route to host",
        "kept": "exit status 1: envcheck: command not found",
    }  # fmt: skip
    assert [slow.node for slow in found.slow] == ["n6"]
    assert found.exit_code == 1


@cases("behaviour, reason", ("killed", "killed by SIGKILL"), ("fails", "the GPU fell off"), ("wrong", ""))
def test_a_node_at_fault_is_named(tmp_path: Path, behaviour: str, reason: str) -> None:
    found = bench(tmp_path, {"n2": {behaviour: 1}}, names(5))
    if behaviour == "wrong":
        assert [(slow.node, slow.problem) for slow in found.slow] == [("n2", "2 of 40 sums are wrong")]
    else:
        assert list(problems(found)) == ["n2"]
        assert reason in problems(found)["n2"]
        assert found.slow == ()
    assert (found.verdict, found.exit_code) == ("fail", 1)


def test_an_error_of_nccl_names_nobody_and_the_search_does(tmp_path: Path) -> None:
    """NCCL fails on many ranks at once; only the groups show whose fault it is."""
    found = bench(tmp_path, {"n2": {"breaks": 1}}, names(6))
    assert [(slow.node, slow.bandwidth) for slow in found.slow] == [("n2", None)]
    assert "NCCL: remote error (6)" in found.slow[0].problem
    assert problems(found) == {}


def test_a_node_whose_program_stops_is_named(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text(json.dumps({"n2": {"stops": 1}}))
    argv = (*NODE, str(tmp_path / "plan"))
    commands = [NodeCommand(name, ("env", f"FLEET_NODE={name}", *argv)) for name in names(3)]
    with closing(Processes(commands)) as crew:
        together = Together(crew, names(3), 60.0, limit=3.0)
        together.gather(20.0)
        assert dict(together.measure(names(3)).at_fault) == {"n2": "it did not answer within 3 s"}
        assert together.measure(names(2)).value == pytest.approx(BANDWIDTH)


@cases("count", 1, 2)
def test_too_few_nodes_are_one_sentence(tmp_path: Path, count: int) -> None:
    found = bench(tmp_path, {}, names(count))
    assert (found.verdict, found.exit_code) == ("unknown", 3)
    told = "an all-reduce between nodes takes two of them" if count == 1 else "two nodes reach 50.0 GB/s"
    assert found.headline.startswith(told)


def test_the_time_limit_ends_the_search_with_what_came(tmp_path: Path) -> None:
    began = time.monotonic()
    found = bench(tmp_path, {"n1": {"stops": 1}}, names(5), "--timeout", "8")
    assert time.monotonic() - began < 20
    assert found.unfinished == "--timeout 8 s was over"
    assert found.exit_code == 3


def test_ctrl_c_keeps_what_came_and_leaves_no_process(tmp_path: Path) -> None:
    plan = str(tmp_path / "plan")
    options = [*command(tmp_path, {"n1": {"stops": 1}}, names(3)), "--json"]
    out = interrupted(tmp_path, programs(tmp_path, ssh=SSH), options, lambda: len(_left(plan)) >= 3)
    found = msgspec.json.decode(out, type=FleetBench)
    assert (found.exit_code, found.unfinished) == (130, "interrupted")
    assert not _left(plan)


def _left(plan: str) -> list[str]:
    """The nodes that run with this plan."""
    started = "\0".join([*NODE, plan]).encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "cmdline").read_bytes().startswith(started):
                found.append(folder.name)
        except OSError:
            continue
    return found


def test_the_page_names_the_slow_node(tmp_path: Path) -> None:
    path = programs(tmp_path, ssh=SSH)
    options = command(tmp_path, {"n3": {"speed": 0.5}}, names(6))
    told = envcheck(*options, "-o", "json:out.json", cwd=tmp_path, PATH=path)
    assert told.out.startswith("FAIL  1 node is slow\n")
    assert "n3 with n1: 25.0 GB/s, 50%; two healthy nodes reach 50.0 GB/s" in told.out
    assert msgspec.json.decode((tmp_path / "out.json").read_bytes(), type=FleetBench).slow[0].node == "n3"


@cases("arguments, told",
    (["--fleet"], "--fleet needs what starts the nodes: --hosts FILE, --slurm or --ray ADDRESS"),
    (["--fleet", "--hosts", "/no/such"], "cannot read /no/such: No such file or directory"),
    (["--fleet", "--slurm", "--full"], "--fleet takes no --full"),
    (["--fleet", "--slurm", "--format", "html"], "--fleet prints text or json, not html"),
    (["--fleet", "--slurm", "--command", " "], "--command is empty; it is what each node runs"),
    (["--hosts", "x"], "--hosts needs --fleet or --fleet-node"),
    (["--fleet-node", "--list"], "--fleet-node takes no --list"),
)  # fmt: skip
def test_wrong_usage_is_one_sentence(tmp_path: Path, arguments: list[str], told: str) -> None:
    result = envcheck("bench", *arguments, cwd=tmp_path)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"envcheck: {told}")
    assert result.err.count("\n") == 1


def test_the_program_of_a_node_says_that_it_has_no_gpu_and_ends_with_its_stdin(tmp_path: Path) -> None:
    told = envcheck("bench", "--fleet-node", cwd=tmp_path)
    lines = [json.loads(line) for line in told.out.splitlines() if line]
    (ready,) = [line["fact"]["ready"] for line in lines if "fact" in line]
    if ready["gpus"]:
        pytest.skip("this machine has a GPU")
    assert ready["host"] == os.uname().nodename
    assert lines[-1]["done"] == {"status": "ok", "detail": ""}
    assert told.status == 0


# The schema.


def test_a_report_fits_the_published_schema(tmp_path: Path) -> None:
    published = json.loads((ROOT / "docs/schema/fleet-bench-1.0.json").read_text())
    found = bench(tmp_path, {"n1": {"speed": 0.5}, "n2": {"dies": 1}}, names(6))
    jsonschema.Draft202012Validator(published).validate(json.loads(msgspec.json.encode(found)))
