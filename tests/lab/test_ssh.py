"""ssh itself: a server on this machine, by several names; one host refuses, one hangs, one has no right key."""

import getpass
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from envcheck.fleet import record
from envcheck.fleet.collective.report import FleetBench
from tests.fleet.collective.stand_in import BANDWIDTH

SERVER = shutil.which("sshd") or "/usr/sbin/sshd"
ROOT = Path(__file__).resolve().parents[2]
STAND_IN = ROOT / "tests/fleet/collective/stand_in.py"
GOOD = ("n1", "n2", "n3", "n4")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        not (Path(SERVER).exists() and shutil.which("ssh")), reason="needs the Debian package openssh-server"
    ),
]

SETTINGS = (Path(__file__).with_name("data") / "ssh_config").read_text(encoding="utf-8")
# The name by which a host was asked is what the stand-in goes by.
SSH = """#!/bin/sh
for host; do before=$line; line=$host; done
export FLEET_NODE="$before"
exec {ssh} -F {place}/settings "$@"
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PATH on which ssh has the settings of these hosts."""
    place = tmp_path_factory.mktemp("ssh")
    for name in ("host", "key", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / name], check=True)
    (place / "allowed").write_bytes((place / "key.pub").read_bytes())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": place / "host",
        "AuthorizedKeysFile": place / "allowed",
        "PidFile": "none",
        "StrictModes": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "MaxStartups": "100",
        "AcceptEnv": "FLEET_NODE",
    }
    (place / "settings").write_text(SETTINGS.format(port=port, place=place, user=getpass.getuser()))
    (place / "bin").mkdir()
    (place / "bin/ssh").write_text(SSH.format(ssh=shutil.which("ssh"), place=place))
    (place / "bin/ssh").chmod(0o755)
    Path("/run/sshd").mkdir(exist_ok=True)
    command = [SERVER, "-D", "-e", "-f", "none", *(f"-o{key}={value}" for key, value in options.items())]
    with (place / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as server:
        variables = {**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}"}
        until = time.monotonic() + 20
        while subprocess.run(["ssh", "--", "n1", "true"], env=variables, capture_output=True, check=False).returncode:
            assert time.monotonic() < until, (place / "log").read_text()
            time.sleep(0.2)
        yield variables["PATH"]
        server.terminate()


def run(path: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    variables = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "envcheck", *arguments]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, timeout=200, check=False)


def test_the_example_of_the_page_finds_who_does_not_answer(path: str, tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("\n".join([*GOOD, "closed", "hang", "stranger"]))
    page = (ROOT / "docs/fleet/ssh.md").read_text()
    line = next(line.strip() for line in page.splitlines() if line.startswith("    envcheck fleet"))
    run(path, tmp_path, *shlex.split(line)[1:])
    found = record.read((tmp_path / "fleet.jsonl").read_bytes())
    problems = {node.name: node.problem for node in found.nodes}
    assert [problems.pop(name) for name in GOOD] == [""] * len(GOOD)
    assert "Connection refused" in problems["closed"]
    assert "timed out" in problems["hang"]
    assert "Permission denied" in problems["stranger"]
    assert sorted(file.name for file in (tmp_path / "reports").iterdir()) == [f"{name}.json" for name in GOOD]
    assert not found.differences


def test_the_collector_is_judged_here(path: str, tmp_path: Path) -> None:
    """As docs/fleet/collector.md has it: ssh node python3 -I - < collect.py | envcheck check --from -"""
    (tmp_path / "collect.py").write_bytes(run(path, tmp_path, "collect", "--script").stdout)
    check = f"{sys.executable} -m envcheck check --from - --json"
    done = subprocess.run(
        f"ssh n1 python3 -I - < collect.py | {check}", shell=True, cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=200, check=False,
    )  # fmt: skip
    assert json.loads(done.stdout)["host"] == os.uname().nodename, done.stderr


def test_the_node_that_slows_the_others_down_is_found(path: str, tmp_path: Path) -> None:
    (tmp_path / "plan").write_text('{"n3": {"speed": 0.5}}')
    (tmp_path / "hosts.txt").write_text("\n".join(GOOD))
    node = shlex.join([sys.executable, str(STAND_IN), f"{tmp_path}/plan"])
    done = run(path, tmp_path, "bench", "--fleet", "--hosts", "hosts.txt", "--command", node, "--json")
    found = msgspec.json.decode(done.stdout, type=FleetBench)
    assert [slow.node for slow in found.slow] == ["n3"]
    assert found.slow[0].bandwidth == pytest.approx(0.5 * BANDWIDTH)
    assert {node.problem for node in found.nodes} == {""}
