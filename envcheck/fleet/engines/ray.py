"""``--ray``: one task for each node of a running Ray cluster, through Ray's own API. The nodes need no envcheck."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.engines.asking import COLLECTOR, Ask
from envcheck.fleet.engines.launch import read_answer
from envcheck.fleet.examine import Answer
from envcheck.report.saved.read import MOST_BYTES
from envcheck.text.clean import brief

_TICK = 1.0
_CONNECT = 60.0
"""Seconds in which a cluster says that it is there."""


class RayNode(msgspec.Struct, frozen=True):
    """A node as Ray lists it."""

    name: str
    identity: str
    alive: bool
    reason: str


def answers(address: str, ask: Ask, *, timeout: float) -> Iterator[Answer]:
    """Ask every node of the cluster at ``address``; raise UsageError where it cannot be reached."""
    ray = _ray()
    _need_cluster(address, timeout)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except Exception as error:  # noqa: BLE001  Ray raises many kinds
        raise UsageError(brief(f"--ray {address}: {error}")) from None
    return _quietly(_answers(ray, nodes_of(ray.nodes()), ask, timeout))


def _need_cluster(address: str, timeout: float) -> None:
    """Raise UsageError where no cluster answers at ``host:port``: ray.init would try for many minutes."""
    if not re.fullmatch(r"[\w.-]+:\d{1,5}", address):
        return  # "auto" and such are found, or not, at once
    command = (sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address)
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=min(timeout, _CONNECT), check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        done = None
    if done is None or done.returncode:
        raise UsageError(f"--ray {address}: no Ray cluster answers there")


def _quietly(answers: Iterator[Answer]) -> Iterator[Answer]:
    """``answers``, while what Ray's threads print about its nodes stays off stdout, which is the report's."""
    with Path(os.devnull).open("w", encoding="utf-8") as nothing, redirect_stdout(nothing):
        yield from answers


def _answers(ray: Any, nodes: list[RayNode], ask: Ask, timeout: float) -> Iterator[Answer]:
    deadline = time.monotonic() + timeout
    waiting: dict[Any, RayNode] = {}
    try:
        for node in nodes:
            if not node.alive:
                yield Answer(node.name, problem=brief(f"Ray says it is dead: {node.reason or 'no reason given'}"))
        task = _task(ask, timeout)
        for node in nodes:
            if node.alive:
                pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.identity, soft=False)
                # No CPU: a node whose CPUs are all taken is asked too.
                remote = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=pinned)(task)
                waiting[remote.remote()] = node
        while waiting and time.monotonic() < deadline:
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=min(_TICK, max(0.0, deadline - time.monotonic())))
            for reference in done:
                yield _answer(ray, waiting.pop(reference), reference)
        for node in waiting.values():
            yield Answer(node.name, problem=f"no answer within {timeout:g} s")
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)
        ray.shutdown()


def _answer(ray: Any, node: RayNode, reference: Any) -> Answer:
    try:
        out, err, status = ray.get(reference)
    except Exception as error:  # noqa: BLE001  whatever the cluster raises is the node's reason
        said = [line for line in str(error).splitlines() if line.strip()]
        return Answer(node.name, problem=brief(f"{type(error).__name__}: {said[-1] if said else ''}"))
    return read_answer(node.name, out, err, status)


def _task(ask: Ask, timeout: float) -> Callable[[], tuple[bytes, bytes, int]]:
    """The function that a node runs. It is nested, since Ray sends such a function itself and not its name."""
    argv, stdin, most = ask.argv, ask.stdin, MOST_BYTES
    own_python = argv == COLLECTOR

    def run() -> tuple[bytes, bytes, int]:
        import subprocess  # noqa: PLC0415  the node has no module of ours
        import sys  # noqa: PLC0415

        command = [sys.executable, *argv[1:]] if own_python else list(argv)
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return b"", b"it timed out", 124
        except OSError as error:
            return b"", str(error).encode(), 127
        return done.stdout[: most + 1], done.stderr[-4096:], done.returncode

    return run


def nodes_of(listed: list[dict[str, Any]]) -> list[RayNode]:
    """The nodes of ``ray.nodes()``, by host; where several share a host, with the start of their identity."""
    hosts = [str(node.get("NodeManagerHostname") or node.get("NodeManagerAddress") or "?") for node in listed]
    many = {host for host, count in Counter(hosts).items() if count > 1}
    return [
        RayNode(
            name=f"{host} {node['NodeID'][:8]}" if host in many else host,
            identity=node["NodeID"],
            alive=bool(node.get("Alive")),
            reason=str(node.get("DeathReasonMessage") or ""),
        )
        for host, node in zip(hosts, listed, strict=True)
    ]


def _ray() -> Any:
    try:
        import ray  # noqa: PLC0415  the release must be the cluster's, so it is no extra of envcheck
        import ray.util.scheduling_strategies  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(f"--ray needs the package 'ray' in the release that the cluster runs ({error})") from None
    return ray
