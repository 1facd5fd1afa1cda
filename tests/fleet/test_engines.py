"""What brings the answers: nodes that are dead, hang, print rubbish or too much are rows with their reason."""

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from envcheck.cli.parser import parse
from envcheck.errors import UsageError
from envcheck.fleet import record
from envcheck.fleet.engines import engine, kubernetes, launch, slurm
from envcheck.fleet.engines.engine import NodeProgram, node_program
from envcheck.fleet.engines.launch import NodeCommand, run_all
from envcheck.fleet.examine import NodeAnswer, file_name
from envcheck.fleet.record import Fleet
from tests.cli.calling import envcheck
from tests.every import cases, tabled
from tests.fleet.made import healthy
from tests.installed import INSTALLED

PYTHON = Path(sys.executable)

SSH = """#!python -IS
import os, subprocess, sys, time
host, line = sys.argv[-2:]
assert sys.argv[-3] == "--" and "BatchMode=yes" in sys.argv
if host == "dead":
    sys.exit("ssh: connect to host dead port 22: Connection refused")
if host == "hang":
    time.sleep(600)
if host.startswith("kept"):  # as a ProxyCommand does under nohup
    subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
if host == "kept-dead":
    sys.exit("Connection timed out during banner exchange")
if host == "rubbish":
    print("Welcome to rubbish, running \\x1b[31mLinux\\x1b[0m")
    sys.exit(0)
if host == "cut":
    print('{"collected": "1", "runs": [')
    sys.exit(0)
if host == "crash":
    os.kill(os.getpid(), 11)
if host == "open":  # what it starts keeps stdout open
    os.fork() or time.sleep(600)
if host == "mute":
    os.closerange(0, 3)
    time.sleep(600)
if host == "flood":
    sys.stdout.write("x" * (70 << 20))
    sys.exit(0)
print("Last login: today")
sys.stdout.flush()
sys.exit(subprocess.run(["/bin/sh", "-c", line]).returncode if host != "closed" else 255)
"""


def programs(folder: Path, **texts: str) -> str:
    """A PATH that begins with these programs. ``#!python`` is this test's own, which starts the soonest."""
    place = folder / "bin"
    place.mkdir()
    for name, text in texts.items():
        (place / name).write_text(text.replace("#!python", f"#!{sys.executable}", 1))
        (place / name).chmod(0o755)
    return f"{place}:{os.environ['PATH']}"


def fleet(*arguments: str, cwd: Path, **variables: str) -> Fleet:
    told = envcheck("fleet", *arguments, "--format", "jsonl", cwd=cwd, **variables)
    assert told.out, told.err
    return record.read(told.out.encode())


def problems(found: Fleet) -> dict[str, str]:
    return {node.name: node.problem for node in found.nodes}


def test_hosts_that_do_not_answer_are_rows(tmp_path: Path) -> None:
    names = ["good", "dead", "hang", "rubbish", "cut", "flood", "closed", "crash", "open", "mute"]
    (tmp_path / "hosts").write_text("# a comment\n" + "\n".join(names) + "\n\ngood # again\n")
    started = time.monotonic()
    found = fleet("--hosts", "hosts", "--timeout", "8", cwd=tmp_path, PATH=programs(tmp_path, ssh=SSH))
    assert time.monotonic() - started < 40
    told = problems(found)
    assert told.pop("good") == told.pop("open") == ""
    assert (told["crash"], told["mute"]) == ("crashed: SIGSEGV: it printed no report", "it printed no report")
    assert told["dead"] == "exit status 1: ssh: connect to host dead port 22: Connection refused"
    assert (told["hang"], told["rubbish"]) == ("no answer within 8 s", "it printed no report")
    assert "cut off or damaged" in told["cut"]
    assert told["flood"] == "it printed more than 64 MiB"
    assert told["closed"].startswith("exit status 255")
    assert (found.head.nodes, found.head.engine) == (len(names), "hosts")


def test_what_ssh_leaves_behind_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(json.dumps(healthy(1)[0]))
    (tmp_path / "hosts").write_text("kept\nkept-dead\nopen\n")
    path = programs(tmp_path, ssh=SSH)
    started = time.monotonic()
    found = fleet("--hosts", "hosts", "--command", "cat report", "--timeout", "60", cwd=tmp_path, PATH=path)
    assert time.monotonic() - started < 30
    late = "exit status 1: Connection timed out during banner exchange"
    assert problems(found) == {"kept": "", "kept-dead": late, "open": ""}


def test_a_command_of_the_users_own_runs_on_the_nodes(tmp_path: Path) -> None:
    report = healthy(1)[0]
    (tmp_path / "a report.json").write_text(json.dumps(report))
    (tmp_path / "hosts").write_text("one\ntwo\n")
    path = programs(tmp_path, ssh=SSH)
    found = fleet("--hosts", "hosts", "--command", "cat 'a report.json'", cwd=tmp_path, PATH=path)
    assert problems(found) == {"one": "", "two": ""}
    assert {node.host for node in found.nodes} == {report["host"]}


def test_answers_are_kept_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(json.dumps(healthy(1)[0]))
    (tmp_path / "hosts").write_text("one\nuser@two\n")
    path = programs(tmp_path, ssh=SSH)
    found = fleet("--hosts", "hosts", "--command", "cat report", "--save", "kept/here", cwd=tmp_path, PATH=path)
    assert sorted(file.name for file in (tmp_path / "kept/here").iterdir()) == ["one.json", "user@two.json"]
    assert [node.path for node in found.nodes] == ["kept/here/one.json", "kept/here/user@two.json"]


@cases("name, told", ("../../etc/x", "_.._etc_x"), ("..", "_"), ("a b", "a_b"), ("", "_"), ("é", "_"), ("n1.x", "n1.x"))
def test_a_node_cannot_choose_a_folder(name: str, told: str) -> None:
    assert file_name(name) == told


@cases("line, number", ("-oProxyCommand=x", 1), ("ok\ntwo words", 2), ("a\x1bb", 1))
def test_a_host_that_is_an_option_is_refused(line: str, number: int) -> None:
    with pytest.raises(UsageError, match=f"line {number} is not a host name"):
        engine.over_ssh(line, NodeProgram(("true",)), timeout=1)


def interrupted(folder: Path, path: str, arguments: list[str], runs: Callable[[], bool]) -> bytes:
    """What envcheck prints when Ctrl-C ends it, a second after ``runs`` holds; its exit status is 130."""
    command = [sys.executable, "-m", "envcheck", *arguments]
    variables = {**os.environ, "PATH": path, "PYTHONPATH": str(INSTALLED)}
    with subprocess.Popen(command, cwd=folder, env=variables, stdout=subprocess.PIPE) as process:
        until = time.monotonic() + 60
        while not runs() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    return out


def test_ctrl_c_keeps_what_came(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(json.dumps(healthy(1)[0]))
    (tmp_path / "hosts").write_text("one\nhang\n")
    options = ["fleet", "--hosts", "hosts", "--command", "cat report", "--save", "kept", "--format", "jsonl"]
    path = programs(tmp_path, ssh=SSH)
    found = record.read(interrupted(tmp_path, path, options, (tmp_path / "kept/one.json").exists))
    assert problems(found) == {"one": "", "hang": "interrupted before it answered"}
    assert found.head.verdict == "unknown"


def wait_until_read(pipe: IO[bytes]) -> None:
    """Wait until a process has taken what was written to it, and half a second more for what it makes of that."""
    until = time.monotonic() + 60
    left = array.array("i", [1])
    while left[0] and time.monotonic() < until:
        time.sleep(0.05)
        fcntl.ioctl(pipe, termios.FIONREAD, left)
    time.sleep(0.5)


@cases("asked", signal.SIGINT, signal.SIGTERM)
def test_an_interrupt_while_reports_come_on_stdin_keeps_those_that_came(tmp_path: Path, asked: int) -> None:
    lines = [json.dumps(report).encode() + b"\n" for report in healthy(4)]
    command = [sys.executable, "-m", "envcheck", "fleet", "--reports", "-", "--format", "jsonl"]
    variables = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(lines[:3]) + lines[3][:-100])
        process.stdin.flush()
        wait_until_read(process.stdin)
        process.send_signal(asked)
        assert process.stdout is not None
        found = record.read(process.stdout.read())
        process.stdin.close()
    assert (process.returncode, found.head.exit_code) == (130, 130)
    assert {node.problem for node in found.nodes} == {""}
    assert len(found.nodes) == 3


def test_an_interrupt_while_reports_are_read_loses_none_that_came(tmp_path: Path) -> None:
    """The signal is sent in the middle of the work on one report."""
    for report in healthy(6):
        (tmp_path / f"{report['host']}.json").write_text(json.dumps(report))
    program = (
        "import os, signal, envcheck.fleet.examine as examine\n"
        "from envcheck.cli.main import main\n"
        "whole, seen = examine.read_report, []\n"
        "def read_report(content, *more):\n"
        "    seen.append(content)\n"
        "    if len(seen) == 3: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return whole(content, *more)\n"
        "examine.read_report = read_report\n"
        "raise SystemExit(main(['fleet', '--reports', '.', '--format', 'jsonl']))"
    )
    variables = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=variables, capture_output=True, check=False
    )
    assert done.returncode == 130, done.stderr
    assert [node.problem for node in record.read(done.stdout).nodes] == [""] * 6


def test_no_more_nodes_than_asked_for_are_asked_at_once(tmp_path: Path) -> None:
    script = f"import os, time; me = '{tmp_path}/' + str(os.getpid()); open(me, 'w'); time.sleep(0.3); os.unlink(me)"
    commands = [NodeCommand(str(number), (str(PYTHON), "-c", script + "; print('{}')")) for number in range(6)]
    most = 0
    for _ in run_all(commands, jobs=2, timeout=60):
        most = max(most, len(list(tmp_path.iterdir())))
    assert most <= 2


def test_what_cannot_start_in_time_is_told() -> None:
    found = list(run_all([NodeCommand(str(number), ("sleep", "5")) for number in range(2)], jobs=1, timeout=0.5))
    assert sorted(answer.problem for answer in found) == [
        "no answer within 0.5 s",
        "not asked: --timeout 0.5 s was over",
    ]


def test_a_node_that_hangs_costs_no_more_than_its_own_time() -> None:
    """Of three at a time, the first hangs: the others are asked and answer meanwhile, and nobody waits for the rest."""
    commands = [NodeCommand("hangs", ("sleep", "60")), *(NodeCommand(f"n{n}", ("echo", "{}")) for n in range(6))]
    began = time.monotonic()
    found = {answer.node: answer.problem for answer in run_all(commands, jobs=3, timeout=60, each=1)}
    assert time.monotonic() - began < 30
    assert found == {"hangs": "no answer within 1 s", **{f"n{n}": "" for n in range(6)}}


@cases("options, seconds", ((), 30), (("--command", "x"), None), (("--node-timeout", "7"), 7))
def test_only_the_collector_over_ssh_has_a_time_of_its_own(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], seconds: float | None
) -> None:
    given: list[float | None] = []

    def run(*_: object, each: float | None, **_more: object) -> Iterator[NodeAnswer]:
        given.append(each)
        return iter(())

    monkeypatch.setattr(engine, "run_all", run)
    engine.chosen_engine(parse(["fleet", "--hosts", "-", *options], {}), "one")
    assert given == [seconds]


def test_a_program_that_is_not_there_is_told() -> None:
    assert [answer.problem for answer in run_all([NodeCommand("a", ("/no/such/ssh",))], jobs=1, timeout=5)] == [
        "/no/such/ssh cannot be started: No such file or directory"
    ]


@tabled
def test_a_report_follows_what_a_login_shell_prints(out: bytes, content: bytes) -> None:
    assert launch.read_answer("n", out, b"", 0).content == content


@tabled
def test_what_a_late_node_said_last_is_told(err: bytes, told: str) -> None:
    said = launch.no_answer(9, err)
    assert told in said
    assert "\x1b" not in said


@cases("command", "", "  ", "'unclosed")
def test_a_wrong_command_is_refused(command: str) -> None:
    with pytest.raises(UsageError, match="--command"):
        node_program(command)


# Slurm, with programs in the place of its own; tests/lab has the real ones.

SINFO = """#!/bin/sh
echo "$@" > "$0.asked"
echo 'n1|idle|none'
echo 'n2|mixed|none'
echo 'n2|mixed|none'
echo 'n3|down*|Not responding'
echo 'n4|drained|envcheck: gpu-lost gpu3'
"""
SRUN = """#!/bin/sh
echo "$@" >> "$0.asked"
case "$*" in *nodelist=n2*) echo "srun: error: n2: task 0: Killed" >&2; exit 137;; esac
cat report
"""


def test_slurm_asks_each_node_and_tells_why_others_are_down(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(json.dumps(healthy(1)[0]))
    path = programs(tmp_path, sinfo=SINFO, srun=SRUN)
    options = "-p gpu --nodelist=n[1-4] -A project"
    found = fleet(f"--slurm={options}", "--timeout", "20", cwd=tmp_path, PATH=path)
    assert problems(found) == {
        "n1": "", "n2": "exit status 137: srun: error: n2: task 0: Killed", "n3": "Slurm says down*: Not responding",
        "n4": "Slurm says drained: envcheck: gpu-lost gpu3",
    }  # fmt: skip
    assert "-p gpu -n n[1-4]" in (tmp_path / "bin/sinfo.asked").read_text()
    lines = (tmp_path / "bin/srun.asked").read_text().splitlines()
    assert sorted(line.partition("--nodelist=")[2].split()[0] for line in lines) == ["n1", "n2"]
    assert all("-p gpu -A project --nodes=1" in line and "n[1-4]" not in line for line in lines)


SCONTROL = """#!/bin/sh
case "$3" in n[[]*) echo n1 n2 n3 n4;; *) echo "$3" | tr , ' ';; esac
"""


@tabled
def test_nodes_that_the_options_leave_out_are_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, within: str, asked: list[str]
) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path, sinfo=SINFO, scontrol=SCONTROL))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if within:
        monkeypatch.setenv("SLURM_JOB_ID", "7")
        monkeypatch.setenv("SLURM_JOB_NODELIST", within)
    made = slurm.launches(options, NodeProgram(("x",)), start=9, timeout=9)
    assert [command.node for command in made.commands] == asked


def test_a_job_that_is_talked_to_may_run_as_long_as_the_talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path, sinfo=SINFO))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    made = slurm.launches("-p gpu", NodeProgram(("x",)), start=120, timeout=900)
    assert [command.node for command in made.commands] == ["n1", "n2"]
    for command in made.commands:
        assert {"--immediate=120", "--time=17", f"--job-name={made.job}"} <= {*command.argv}


def test_slurm_that_fails_is_told(tmp_path: Path) -> None:
    path = programs(
        tmp_path, sinfo="#!/bin/sh\necho 'slurm_load_partitions: Unable to contact controller' >&2\nexit 1\n"
    )
    told = envcheck("fleet", "--slurm", cwd=tmp_path, PATH=path)
    assert (told.status, told.err) == (
        2,
        "envcheck: --slurm: sinfo: slurm_load_partitions: Unable to contact controller\n",
    )


@tabled
def test_nodes_are_left_to_each_srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, kept: str) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path, sinfo=SINFO, scontrol=SCONTROL))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    srun = " ".join(slurm.launches(own, NodeProgram(("x",)), start=9, timeout=9).commands[0].argv)
    assert srun[srun.index("--time=") :].partition(" ")[2].startswith(f"{kept} --nodes=1".lstrip())


# Kubernetes, with a program in the place of kubectl.

KUBECTL = """#!python -IS
import json, os, sys
place = os.path.dirname(os.path.abspath(__file__))
arguments = sys.argv[1:]
with open(place + "/asked", "a") as file:
    file.write(json.dumps(arguments) + "\\n")
def ready(value, **more):
    return {"conditions": [{"type": "Ready", "status": value, **more}]}
def pod(node, phase, **state):
    status = {"phase": phase, "containerStatuses": [{"state": state}]}
    return {"metadata": {"name": "pod-" + node}, "spec": {"nodeName": node}, "status": status}
if arguments[:2] == ["get", "nodes"]:
    nodes = {name: ready("True") for name in ("k1", "k2", "k4", "k5")}
    nodes["k3"] = ready("False", message="kubelet stopped")
    print(json.dumps({"items": [{"metadata": {"name": name}, "status": status} for name, status in nodes.items()]}))
elif arguments[0] == "create":
    with open(place + "/manifest", "w") as file:
        file.write(sys.stdin.read())
elif arguments[0] == "delete":
    sys.exit("Error from server: etcdserver: request timed out")
elif arguments[:2] == ["get", "pods"] and open(place + "/asked").read().count('"pods"') == 1:
    sys.exit("Unable to connect to the server: net/http: TLS handshake timeout")
elif arguments[:2] == ["get", "pods"]:
    waits = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    pods = [pod("k1", "Succeeded"), pod("k2", "Failed", terminated={"exitCode": 127}), pod("k4", "Pending", **waits)]
    pods.append(pod("k5", "Succeeded"))
    print(json.dumps({"items": pods}))
elif arguments == ["logs", "pod-k1"]:
    print(open("report").read())
elif arguments == ["logs", "pod-k2"]:
    print("exec: python3: not found")
elif arguments == ["logs", "pod-k5"]:
    sys.exit("Error from server: dial tcp 10.0.0.5:10250: i/o timeout")
"""


def test_kubernetes_runs_a_pod_on_each_node_and_deletes_the_job(tmp_path: Path) -> None:
    """The first question about the pods and the last request fail, which costs no answer."""
    (tmp_path / "report").write_text(json.dumps(healthy(1)[0]))
    path = programs(tmp_path, kubectl=KUBECTL)
    found = fleet(
        "--kubernetes", "python:3.12-slim", "--timeout", "9", "--selector", "gpu=yes", cwd=tmp_path, PATH=path
    )
    assert problems(found) == {
        "k1": "",
        "k2": "exit status 127: exec: python3: not found",
        "k3": "Kubernetes says it is not ready: kubelet stopped",
        "k4": "no answer within 9 s: ImagePullBackOff: no such image",
        "k5": "--kubernetes: kubectl logs: Error from server: dial tcp 10.0.0.5:10250: i/o timeout",
    }
    calls = [json.loads(line) for line in (tmp_path / "bin/asked").read_text().splitlines()]
    assert (calls[0], calls[-1][:2]) == (["get", "nodes", "-o", "json", "-l", "gpu=yes"], ["delete", "job,configmap"])
    config, job = json.loads((tmp_path / "bin/manifest").read_text())["items"]
    assert "def main()" in config["data"]["collect.py"]
    assert job["spec"]["completions"] == 4
    assert job["metadata"]["name"] == config["metadata"]["name"] == calls[-1][2]


PODS = """#!python -IS
import json, sys
arguments = sys.argv[1:]
pods = json.load(open("pods"))
if arguments[:2] == ["get", "nodes"]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    print(json.dumps({"items": [{"metadata": {"name": name}, "status": ready} for name in pods]}))
elif arguments[:2] == ["get", "pods"]:
    items = []
    for name, each in pods.items():
        spec = {"nodeName": name} if each["placed"] else {}
        items.append({"metadata": {"name": "pod-" + name}, "spec": spec, "status": each["status"]})
    print(json.dumps({"items": items}))
elif arguments[0] == "logs":
    log = pods[arguments[1][4:]]["log"]
    log = "x" * log if isinstance(log, int) else log
    sys.exit("Error from server (BadRequest): container is terminated") if log is None else sys.stdout.write(log)
"""


def pod(phase: str, log: str | int | None = None, *, placed: bool = True, **status: Any) -> dict[str, Any]:
    """A pod whose log is this text, or as many characters."""
    return {"placed": placed, "log": log, "status": {"phase": phase, **status}}


def waiting(reason: str, message: str) -> dict[str, Any]:
    return pod("Pending", containerStatuses=[{"state": {"waiting": {"reason": reason, "message": message}}}])


def test_pods_that_bring_no_report_are_rows_with_the_reason_of_kubernetes(tmp_path: Path) -> None:
    reports = healthy(5)
    whole = [json.dumps(report) for report in reports]
    reports[4]["snapshot"]["gpus"] = {"items": [], "complete": True}
    unschedulable = {"type": "PodScheduled", "status": "False", "message": "0/9 nodes are available: too many pods"}
    killed = {"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    pods = {
        **{f"good{number}": pod("Succeeded", whole[number]) for number in range(4)},
        "bare": pod("Succeeded", json.dumps(reports[4])),
        "loud": pod("Succeeded", '{"level": "info"}\n' + whole[0] + "\nld.so: object 'x' cannot be preloaded\n"),
        "flood": pod("Succeeded", 70 << 20),
        "evicted": pod("Failed", reason="Evicted", message="The node was low on resource: memory."),
        "unpulled": waiting("ErrImagePull", "manifest unknown"),
        "misnamed": waiting("InvalidImageName", "invalid reference format"),
        "behind": pod("Succeeded", whole[0][: len(whole[0]) // 2]),
        "rotated": pod("Succeeded", whole[0][len(whole[0]) // 2 :]),
        "starved": pod("Failed", "", containerStatuses=[killed]),
        "full": pod("Pending", placed=False, conditions=[unschedulable]),
    }
    (tmp_path / "pods").write_text(json.dumps(pods))
    found = fleet("--kubernetes", "image", "--timeout", "8", cwd=tmp_path, PATH=programs(tmp_path, kubectl=PODS))
    told = {name: problem for name, problem in problems(found).items() if problem}
    assert told.pop("behind").startswith("no usable report")
    assert told == {
        "evicted": "Evicted: The node was low on resource: memory.",
        "unpulled": "no answer within 8 s: ErrImagePull: manifest unknown",
        "misnamed": "no answer within 8 s: InvalidImageName: invalid reference format",
        "rotated": "it printed no report",
        "flood": "--kubernetes: kubectl logs: it printed more than 64 MiB",
        "starved": "exit status 137: OOMKilled",
        "full": "no answer within 8 s: a pod is on no node: 0/9 nodes are available: too many pods",
    }
    assert {place.node for difference in found.differences for place in difference.places} == {"bare"}


def test_the_pods_may_do_nothing_but_look() -> None:
    listed: dict[str, Any] = kubernetes.manifest("n", "image", ["a", "b"], node_program(None), 60)
    allowed = listed["items"][1]["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    assert (allowed["runAsNonRoot"], allowed["readOnlyRootFilesystem"], allowed["allowPrivilegeEscalation"]) == (
        True, True, False,
    )  # fmt: skip
    assert len(listed["items"][0]["data"]["collect.py"]) < 1 << 20, "a ConfigMap has at most 1 MiB"


def test_a_pod_that_fails_does_not_end_those_of_other_nodes() -> None:
    """Beyond ``backoffLimit`` failures the Job fails, and Kubernetes ends its other pods."""
    nodes = [f"n{number}" for number in range(1000)]
    listed: dict[str, Any] = kubernetes.manifest("n", "image", nodes, node_program("envcheck check --json"), 60)
    assert listed["items"][0]["spec"]["backoffLimit"] > 100 * len(nodes)


@cases("each, told", (None, None), (45.0, 45))
def test_a_pod_may_have_a_time_of_its_own(each: float | None, told: int | None) -> None:
    listed: dict[str, Any] = kubernetes.manifest("n", "image", ["a"], node_program(None), 60, each)
    assert listed["items"][1]["spec"]["template"]["spec"].get("activeDeadlineSeconds") == told
