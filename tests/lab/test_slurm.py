"""Slurm itself, as Debian packages it: one controller and six slurmd on this machine, each a node of its own."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec
import pytest

from envcheck.fleet import record
from envcheck.fleet.collective.report import FleetBench
from envcheck.fleet.record import Fleet
from tests.every import cases
from tests.fleet.collective.stand_in import BANDWIDTH
from tests.fleet.made import healthy

PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "sinfo", "scontrol")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd runs as root"),
    pytest.mark.skipif(
        not all(map(shutil.which, PROGRAMS)), reason="needs the Debian packages slurm-wlm and munge (no systemd)"
    ),
]

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = ROOT / "tests/fleet/collective/stand_in.py"
ENVCHECK = Path(sys.executable).parent / "envcheck"
NODES = tuple(f"n{number}" for number in range(1, 7))
WITHOUT = ("c1", "c2")  # Nodes without a GPU, in a partition of their own
CONFIGURATION = (Path(__file__).with_name("data") / "slurm.conf").read_text(encoding="utf-8")


NOTHING = "#!/bin/sh\nexit 0\n"


class Cluster:
    """A running cluster, and what its nodes answer."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.processes: list[subprocess.Popen[bytes]] = []
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._log: IO[bytes] = (place / "daemons.log").open("wb")
        self.variables = {**os.environ, "SLURM_CONF": f"{place}/slurm.conf"}
        host = os.uname().nodename.partition(".")[0]
        (place / "slurm.conf").write_text(CONFIGURATION.format(place=place, host=host))
        for name in ("prolog", "epilog", "health"):
            self.program(name, NOTHING)
        (place / "munge.key").write_bytes(os.urandom(128))
        (place / "munge.key").chmod(0o400)

    def program(self, name: str, text: str) -> None:
        """Write a program in one step: slurmd may start it at any time."""
        made = self.place / f"{name}.new"
        made.write_text(text)
        made.chmod(0o755)
        made.rename(self.place / name)

    def calm(self, *names: str) -> None:
        """Let these programs do nothing from now on: one that runs already could still drain its node."""
        for name in names:
            self.program(name, NOTHING)
        paths = {f"{self.place}/{name}".encode() for name in names}
        self.wait(lambda: not any(paths & set(words) for words in commands()))

    def start(self) -> None:
        place = self.place
        self._run(
            "munged", "--foreground", "--force", f"--key-file={place}/munge.key", f"--socket={place}/munge.socket",
            f"--pid-file={place}/munged.pid", f"--log-file={place}/munged.log", f"--seed-file={place}/munged.seed",
        )  # fmt: skip
        self.wait((place / "munge.socket").exists)
        self._run("slurmctld", "-D")
        for node in (*NODES, *WITHOUT):
            self.start_node(node)
        self.wait(lambda: self.states() == dict.fromkeys(NODES, "idle"))
        self.wait(lambda: self.states("cpu") == dict.fromkeys(WITHOUT, "idle"))

    def start_node(self, node: str) -> None:
        self.nodes[node] = self._run("slurmd", "-D", "-N", node)

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            command, env=self.variables, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        self.processes.append(started)
        return started

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()

    def asked(self, *command: str) -> str:
        done = subprocess.run(command, env=self.variables, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout

    def states(self, partition: str = "gpu") -> dict[str, str]:
        lines = self.asked("sinfo", "-hN", "-p", partition, "-o", "%N|%T").splitlines()
        return dict(line.split("|") for line in lines if "|" in line)

    def reason(self, node: str) -> str:
        return self.asked("sinfo", "-hN", "-p", "gpu", "-n", node, "-o", "%E").strip()

    def wait(self, true: Callable[[], bool], seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while not true():
            ended = [process.args for process in self.processes if process.poll() is not None]
            assert time.monotonic() < until, (self.states(), ended, (self.place / "daemons.log").read_text()[-3000:])
            time.sleep(0.3)

    def resume(self, node: str) -> None:
        self.asked("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self.wait(lambda: self.states()[node] == "idle")

    def fleet(self, *arguments: str) -> Fleet:
        return record.read(self._printed("fleet", "--slurm=-p gpu", "--format", "jsonl", *arguments))

    def bench(self, plan: dict[str, dict[str, float]], *arguments: str) -> FleetBench:
        """All-reduce between the nodes, which behave as ``plan`` says (tests/fleet/collective/stand_in.py)."""
        (self.place / "plan").write_text(json.dumps(plan))
        node = shlex.join([sys.executable, str(STAND_IN), f"{self.place}/plan"])
        printed = self._printed("bench", "--fleet", "--slurm=-p gpu", "--command", node, "--json", *arguments)
        return msgspec.json.decode(printed, type=FleetBench)

    def _printed(self, *arguments: str) -> bytes:
        command = [str(ENVCHECK), *arguments]
        done = subprocess.run(
            command, env=self.variables, cwd=self.place, capture_output=True, timeout=180, check=False
        )
        assert done.stdout, done.stderr
        return done.stdout


def commands() -> Iterator[list[bytes]]:
    """The command line of each process."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield file.read_bytes().split(b"\0")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A short path: sockets have 108 characters. munge wants a folder that only its user may write.
    place = Path(tempfile.mkdtemp(prefix="envcheck-slurm-", dir="/run"))
    place.chmod(0o755)
    for name in ("state", "sys/module/nvidia", *(f"{node}.spool" for node in (*NODES, *WITHOUT))):
        (place / name).mkdir(parents=True)
    made = Cluster(place)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(place, ignore_errors=True)


ANSWERS = """#!/bin/sh
[ "$SLURMD_NODENAME" = n4 ] && sleep 600
[ "$SLURMD_NODENAME" = n5 ] && echo rubbish && exit 0
exec cat "{place}/$SLURMD_NODENAME.json"
"""


def test_each_of_the_different_nodes_is_named(cluster: Cluster) -> None:
    """n2 has another driver, n3 a slow GPU, n4 hangs, n5 prints rubbish, and n6 is dead."""
    reports = healthy(len(NODES))
    reports[1]["snapshot"]["driver"]["release"] = "570.1"
    for figure in reports[2]["measurements"][:4]:
        figure["value"] *= 0.7
    for node, report in zip(NODES, reports, strict=True):
        (cluster.place / f"{node}.json").write_text(json.dumps(report))
    cluster.program("answer", ANSWERS.format(place=cluster.place))
    cluster.nodes["n6"].kill()
    cluster.wait(lambda: cluster.states()["n6"].startswith("down"))
    started = time.monotonic()
    asked = ("--command", f"{cluster.place}/answer", "--timeout", "15", "--expect-nodes", "n[1-7]")
    found = cluster.fleet(*asked, "-o", "text:page")
    assert time.monotonic() - started < 40
    page = (cluster.place / "page").read_text().rstrip().splitlines()
    assert len(page) < 15, page
    for node, told in (
        ("n2", "570.1"), ("n3", "70% of the median"), ("n4", "no answer"), ("n5", "no report"), ("n6", "down"),
        ("n7", "nothing came of"),
    ):  # fmt: skip
        (place,) = (number for number, line in enumerate(page) if re.search(rf"\b{node}\b", line))
        assert told in " ".join(" ".join(page[place : place + 2]).split()), page
    problems = {node.name: node.problem for node in found.nodes}
    assert [name for name in NODES if not problems[name]] == ["n1", "n2", "n3"]
    assert problems["n4"] == "no answer within 15 s"
    assert problems["n5"] == "it printed no report"
    assert problems["n6"].startswith("Slurm says down")
    assert [(each.what, each.value, each.places[0].node) for each in found.differences] == [("release", "570.1", "n2")]
    cluster.start_node("n6")
    cluster.wait(lambda: cluster.states()["n6"] == "idle")
    cluster.wait(lambda: cluster.states()["n4"] == "idle")


def test_a_node_that_is_taken_says_so(cluster: Cluster) -> None:
    (cluster.place / "n2.json").write_text(json.dumps(healthy(1)[0]))
    with subprocess.Popen(["srun", "-w", "n1", "--exclusive", "sleep", "100"], env=cluster.variables) as job:
        cluster.wait(lambda: cluster.states()["n1"] == "allocated")
        chosen = "--slurm=-p gpu -w n[1-2]"
        found = cluster.fleet(chosen, "--command", f"cat {cluster.place}/n2.json", "--timeout", "10")
        job.terminate()
    told = {node.name: node.problem for node in found.nodes}
    assert told.pop("n2") == ""
    assert told["n1"] in (
        "no answer within 10 s: srun: the job is queued and waiting for resources",
        "no answer within 10 s: srun: error: Unable to allocate resources: Requested nodes are busy",
    )
    cluster.asked("scancel", "--user=root")
    cluster.wait(lambda: cluster.states()["n1"] == "idle")


def test_ctrl_c_keeps_what_came_and_cancels_the_jobs(cluster: Cluster) -> None:
    for node, report in zip(NODES, healthy(len(NODES)), strict=True):
        (cluster.place / f"{node}.json").write_text(json.dumps(report))
    cluster.program("answer", ANSWERS.format(place=cluster.place))
    command = [str(ENVCHECK), "fleet", "--slurm=-p gpu", "--command", f"{cluster.place}/answer", "--save", "kept"]
    with subprocess.Popen(
        [*command, "--format", "jsonl"], env=cluster.variables, cwd=cluster.place, stdout=subprocess.PIPE
    ) as process:
        cluster.wait(lambda: len(list((cluster.place / "kept").glob("n*.json"))) == len(NODES) - 2)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    problems = {node.name: node.problem for node in record.read(printed).nodes}
    assert [name for name in NODES if not problems[name]] == ["n1", "n2", "n3", "n6"]
    assert problems["n4"] == "interrupted before it answered"
    cluster.wait(lambda: cluster.asked("squeue", "-h") == "")


def test_the_node_with_low_figures_is_named(cluster: Cluster) -> None:
    reports = healthy(len(NODES))
    figure = reports[2]["measurements"][0]
    figure["value"] *= 0.7
    for node, report in zip(NODES, reports, strict=True):
        (cluster.place / f"{node}.json").write_text(json.dumps(report))
    cluster.program("answer", f'#!/bin/sh\nexec cat "{cluster.place}/$SLURMD_NODENAME.json"\n')
    found = cluster.fleet("--command", f"{cluster.place}/answer", "--timeout", "60")
    assert [node.problem for node in found.nodes] == [""] * len(NODES)
    (slow,) = found.slow
    assert (slow.node, slow.subject, slow.status) == ("n3", "GPU 0", "fail")
    assert slow.value == pytest.approx(figure["value"])


def test_the_node_that_slows_the_others_down_is_found(cluster: Cluster) -> None:
    found = cluster.bench({"n5": {"speed": 0.5}}, "--timeout", "100")
    assert {node.name: node.problem for node in found.nodes} == dict.fromkeys(NODES, "")
    assert [(slow.node, slow.status) for slow in found.slow] == [("n5", "fail")]
    assert cluster.asked("squeue", "-h") == ""


def test_nodes_that_hang_die_or_break_a_run_are_rows(cluster: Cluster) -> None:
    began = time.monotonic()
    found = cluster.bench({"n1": {"hangs": 1}, "n2": {"dies": 1}, "n3": {"killed": 1}}, "--timeout", "30")
    assert time.monotonic() - began < 60
    problems = {node.name: node.problem for node in found.nodes if node.problem}
    assert problems.pop("n1") == "no answer within 15 s"
    assert "envcheck: command not found" in problems.pop("n2")
    assert "killed by SIGKILL" in problems.pop("n3")
    assert problems == {}
    assert found.groups[-1].bandwidth == pytest.approx(BANDWIDTH)
    cluster.wait(lambda: set(cluster.states().values()) == {"idle"})


def test_within_an_allocation_its_nodes_are_measured(cluster: Cluster) -> None:
    (cluster.place / "plan").write_text("{}")
    node = shlex.join([sys.executable, str(STAND_IN), f"{cluster.place}/plan"])
    command = ["salloc", "-N3", str(ENVCHECK), "bench", "--fleet", "--slurm", "--command", node, "--json"]
    done = subprocess.run(command, env=cluster.variables, capture_output=True, timeout=180, check=False)
    found = msgspec.json.decode(done.stdout, type=FleetBench)
    assert (found.verdict, len(found.nodes)) == ("pass", 3)


def test_an_excluded_node_is_not_asked(cluster: Cluster) -> None:
    found = cluster.fleet("--slurm=-p gpu -w n[1-3] -x n2", "--command", "cat n1.json", "--timeout", "60")
    assert {node.name: node.problem for node in found.nodes} == {"n1": "", "n3": ""}


def test_the_collector_runs_where_nothing_is_installed(cluster: Cluster) -> None:
    found = cluster.fleet("--timeout", "90")
    assert {node.name: node.problem for node in found.nodes} == dict.fromkeys(NODES, "")
    assert not found.differences


def test_within_an_allocation_its_nodes_are_asked(cluster: Cluster) -> None:
    fleet = [str(ENVCHECK), "fleet", "--slurm", "--format", "jsonl", "--timeout", "90"]
    command = ["salloc", "-N2", "-w", "n1,n2", *fleet]
    done = subprocess.run(command, env=cluster.variables, capture_output=True, timeout=180, check=False)
    found = record.read(done.stdout)
    assert {node.name: node.problem for node in found.nodes} == {"n1": "", "n2": ""}


# Prolog and HealthCheckProgram. What envcheck would say is said by a program in its place.


def script(name: str, said: str) -> str:
    """The script of the documentation, with an envcheck that runs ``said``, on nodes with NVIDIA's driver."""
    text = (ROOT / "docs/fleet/slurm" / f"{name}.sh").read_text()
    head, _, rest = text.partition("ENVCHECK=${ENVCHECK:-/opt/envcheck/bin/envcheck}\n")
    assert rest
    # Of this cluster, whose configuration lies elsewhere, scontrol has to be told.
    configuration = f"SLURM_CONF={Path(said).parent}/slurm.conf\nexport SLURM_CONF\n"
    own = f"ENVCHECK={said}\nENVCHECK_SECONDS=2\nENVCHECK_SYS={Path(said).parent}/sys\n"
    return f"{head}{configuration}{own}{rest}"


def saying(cluster: Cluster, status: int, text: str = "", node: str = "n1") -> str:
    """An envcheck that says ``text`` on ``node``, and passes on the others."""
    path = f"said-{status}-{time.monotonic_ns()}"
    wait = "sleep 60\n" if status == 124 else ""
    cluster.program(
        path, f'#!/bin/sh\ncase $SLURMD_NODENAME in {node}) ;; *) exit 0;; esac\n{wait}echo "{text}"\nexit {status}\n'
    )
    return f"{cluster.place}/{path}"


OTHERS = (2, 3, 4, 124, 130)  # Wrong usage, no verdict, an internal error, a time-out, and an interruption


def test_a_broken_node_is_drained_with_its_reason(cluster: Cluster) -> None:
    said = saying(cluster, 1, "envcheck: gpu-lost gpu3")
    cluster.program("health", script("health", said))
    cluster.wait(lambda: cluster.states()["n1"].startswith("drain"))
    assert cluster.reason("n1") == "envcheck: gpu-lost gpu3"
    assert {state for node, state in cluster.states().items() if node != "n1"} == {"idle"}
    cluster.program("health", script("health", saying(cluster, 0)))
    time.sleep(7)
    assert cluster.states()["n1"].startswith("drain"), "nothing resumes a node but its administrator"
    cluster.resume("n1")


def test_no_node_without_a_gpu_is_drained_in_a_mixed_cluster(cluster: Cluster) -> None:
    """The same health check on all: it drains the node whose GPU is lost, and lets alone those that never had one."""
    said = saying(cluster, 1, "envcheck: gpu-lost gpu3", node="*")
    text = script("health", said).replace(
        f"ENVCHECK_SYS={cluster.place}/sys", f"ENVCHECK_SYS={cluster.place}/of-$SLURMD_NODENAME"
    )
    (cluster.place / "of-n1/module/nvidia").mkdir(parents=True)
    cluster.program("health", text)
    cluster.wait(lambda: cluster.states()["n1"].startswith("drain"))
    time.sleep(7)
    others = {**cluster.states(), **cluster.states("cpu")}
    assert {node for node, state in others.items() if state != "idle"} == {"n1"}
    cluster.calm("health")
    cluster.resume("n1")


def test_a_node_without_a_gpu_is_not_drained(cluster: Cluster) -> None:
    said = saying(cluster, 1, "envcheck: no-nvidia-gpu")
    (cluster.place / "sys/module/nvidia").rmdir()
    nothing_is_drained(cluster, said)
    (cluster.place / "sys/module/nvidia").mkdir()


def test_a_reason_of_somebody_else_stays(cluster: Cluster) -> None:
    cluster.asked("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=new fan")
    cluster.program("health", script("health", saying(cluster, 1, "envcheck: gpu-lost gpu3")))
    time.sleep(7)
    assert cluster.reason("n1") == "new fan"
    cluster.calm("health")
    cluster.resume("n1")


@cases("status", *OTHERS, 127, 1)
def test_no_node_is_drained_when_envcheck_fails(cluster: Cluster, status: int) -> None:
    """With 1, Python itself ends: of an installation that is broken."""
    told = "ModuleNotFoundError: No module named 'envcheck'" if status == 1 else "envcheck: something"
    nothing_is_drained(cluster, f"{cluster.place}/none" if status == 127 else saying(cluster, status, told))


def nothing_is_drained(cluster: Cluster, said: str) -> None:
    """A job runs between a Prolog and health checks that ask ``said``, and its node stays in use."""
    for name in ("prolog", "health"):
        cluster.program(name, script(name, said))
    assert cluster.asked("srun", "-w", "n1", "-t", "1", "echo", "ran").strip() == "ran"
    time.sleep(6)
    assert cluster.states()["n1"] == "idle"
    cluster.calm("prolog", "health")


def test_the_prolog_of_a_broken_node_drains_it(cluster: Cluster) -> None:
    cluster.program("prolog", script("prolog", saying(cluster, 1, "envcheck: gpu-lost gpu3")))
    command = ["srun", "-w", "n1", "-t", "1", "echo", "ran"]
    pipe = subprocess.PIPE
    job = subprocess.Popen(command, env=cluster.variables, stdout=pipe, stderr=pipe, text=True)
    cluster.wait(lambda: cluster.states()["n1"].startswith("drain"))
    assert "rolog" in cluster.reason("n1")
    job.terminate()
    out, _ = job.communicate(timeout=30)
    assert "ran" not in out
    cluster.calm("prolog")
    cluster.asked("scancel", "--user=root")
    cluster.resume("n1")


def test_the_epilog_of_a_broken_node_drains_it_after_the_job(cluster: Cluster) -> None:
    cluster.program("epilog", script("prolog", saying(cluster, 1, "envcheck: gpu-lost gpu3")))
    assert cluster.asked("srun", "-w", "n1", "-t", "1", "echo", "ran").strip() == "ran"
    cluster.wait(lambda: cluster.states()["n1"].startswith("drain"))
    assert "pilog" in cluster.reason("n1")
    assert {state for node, state in cluster.states().items() if node != "n1"} == {"idle"}
    # The health check finds the same, and leaves the reason as it is.
    reason = cluster.reason("n1")
    cluster.program("health", script("health", saying(cluster, 1, "envcheck: gpu-lost gpu3")))
    time.sleep(7)
    assert cluster.reason("n1") == reason
    cluster.calm("epilog", "health")
    cluster.resume("n1")


def test_an_epilog_that_finds_nothing_drains_nothing(cluster: Cluster) -> None:
    cluster.program("epilog", script("prolog", saying(cluster, 3, "no verdict")))
    assert cluster.asked("srun", "-w", "n1", "-t", "1", "echo", "ran").strip() == "ran"
    time.sleep(3)
    assert cluster.states()["n1"] == "idle"
    cluster.calm("epilog")
