"""``--ray``: a task or an actor for each node of a running Ray cluster, through Ray's own API."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.engines.engine import COLLECTOR, NODE, Coming, NodeProgram, interruptible
from envcheck.fleet.engines.launch import NodeWord, last_words, output_of, read_answer
from envcheck.fleet.examine import NodeAnswer
from envcheck.report.saved import MOST_BYTES
from envcheck.text.clean import brief

_TICK = 1.0
_CONNECT = 60.0  # Seconds in which a cluster says that it is there


class RayNode(msgspec.Struct, frozen=True):
    name: str
    identity: str
    alive: bool
    reason: str
    gpus: float = 0.0  # GPUs that Ray counts there

    @property
    def why_dead(self) -> str:
        """Why no program can run there."""
        return brief(f"Ray says it is dead: {self.reason or 'no reason given'}")


def answers(address: str, ask: NodeProgram, *, timeout: float, each: float | None) -> Coming:
    """Ask every node of the cluster at ``address``; raise UsageError where it cannot be reached."""
    ray = _connected(address, timeout)
    nodes = nodes_of(ray.nodes())
    return interruptible(_quiet(_answers(ray, nodes, ask, timeout, each or timeout)), [node.name for node in nodes])


def _connected(address: str, timeout: float) -> Any:
    """The package, connected to the cluster at ``address``; raise UsageError where it cannot be reached."""
    try:
        import ray  # noqa: PLC0415  the release must be the cluster's, so it is not an extra of envcheck
        import ray.util.scheduling_strategies  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(f"--ray needs the package 'ray' in the release that the cluster runs ({error})") from None
    # Whether a cluster answers at host:port: ray.init would try for many minutes. "auto" is found, or not, at once.
    if re.fullmatch(r"[\w.-]+:\d{1,5}", address):
        command = (sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address)
        try:
            output_of(command, "--ray", called="health-check", seconds=min(timeout, _CONNECT))
        except UsageError:
            raise UsageError(f"--ray {address}: no Ray cluster answers there") from None
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except Exception as error:  # noqa: BLE001  Ray raises many kinds
        raise UsageError(brief(f"--ray {address}: {error}")) from None
    return ray


def _quiet(answers: Iterator[NodeAnswer]) -> Iterator[NodeAnswer]:
    """``answers``, while what Ray's threads print about its nodes stays off stdout, which is the report's."""
    with Path(os.devnull).open("w", encoding="utf-8") as nothing, redirect_stdout(nothing):
        yield from answers


def _answers(ray: Any, nodes: list[RayNode], ask: NodeProgram, timeout: float, each: float) -> Iterator[NodeAnswer]:
    deadline = time.monotonic() + timeout
    waiting: dict[Any, RayNode] = {}
    try:
        for node in nodes:
            if not node.alive:
                yield NodeAnswer(node.name, problem=node.why_dead)
        task = _task(ask, each)
        for node in nodes:
            if node.alive:
                # No CPU: a node whose CPUs are all taken is asked too.
                remote = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=_actor_on(ray, node))(task)
                waiting[remote.remote()] = node
        while waiting and time.monotonic() < deadline:
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=min(_TICK, max(0.0, deadline - time.monotonic())))
            for reference in done:
                node = waiting.pop(reference)
                try:
                    answer = read_answer(node.name, *ray.get(reference))
                except Exception as error:  # noqa: BLE001  whatever the cluster raises is the node's reason
                    answer = NodeAnswer(node.name, problem=_last_line(error))
                yield answer
        for node in waiting.values():
            yield NodeAnswer(node.name, problem=f"no answer within {timeout:g} s")
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)
        ray.shutdown()


def _task(ask: NodeProgram, timeout: float) -> Callable[[], tuple[bytes, bytes, int]]:
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
            return b"", f"no answer within {timeout:g} s".encode(), 124
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
            gpus=float((node.get("Resources") or {}).get("GPU") or 0.0),
        )
        for host, node in zip(hosts, listed, strict=True)
    ]


def _actor_on(ray: Any, node: RayNode) -> Any:
    return ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.identity, soft=False)


class Actors:
    """A ``Crew`` of programs that are children of actors, which hold their nodes' GPUs.

    Raises UsageError where the cluster at ``address`` cannot be reached.
    """

    def __init__(self, address: str, ask: NodeProgram, timeout: float) -> None:
        self._ray = _connected(address, timeout)
        listed = nodes_of(self._ray.nodes())
        self.nodes = {node.name: node for node in listed if node.alive}
        self.down = {node.name: node.why_dead for node in listed if not node.alive}
        self._quiet = ExitStack()
        self._actors: dict[str, Any] = {}
        self._listening: dict[Any, str] = {}
        nothing = self._quiet.enter_context(Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  until it is closed
        self._quiet.enter_context(redirect_stdout(nothing))  # what Ray's threads print is not a report
        program = _program()
        for name, node in self.nodes.items():
            options = {"num_cpus": 0, "num_gpus": node.gpus, "max_restarts": 0, "max_concurrency": 2}
            remote = self._ray.remote(scheduling_strategy=_actor_on(self._ray, node), **options)(program)
            self._actors[name] = remote.remote(ask.argv, ask.argv == NODE)
            self._listening[self._actors[name].heard.remote()] = name

    def close(self) -> None:
        for actor in self._actors.values():
            with suppress(Exception):
                self._ray.kill(actor)
        self._ray.shutdown()
        self._quiet.close()

    def send(self, node: str, data: bytes) -> None:
        if node in self._actors:
            self._actors[node].send.remote(data)

    def stderr_of(self, _node: str) -> bytes:
        """Nothing: an actor tells its program's stderr at its end."""
        return b""

    def receive(self, seconds: float) -> list[NodeWord]:
        if not self._listening:
            return []
        done, _ = self._ray.wait(list(self._listening), num_returns=1, timeout=seconds)
        found = []
        for reference in done:
            name = self._listening.pop(reference)
            try:
                lines, err, status = self._ray.get(reference)
            except Exception as error:  # noqa: BLE001  whatever the cluster raises is the node's reason
                found.append(NodeWord(name, ended=_last_line(error)))
                continue
            found += [NodeWord(name, line) for line in lines]
            if status is None:
                self._listening[self._actors[name].heard.remote()] = name
            else:
                found.append(NodeWord(name, ended=last_words(err, status, "it ended without a message")))
        return found


def _program() -> type:
    """The class of the actors. It is nested, since Ray sends such a class itself and not its name."""

    class ChildOfWorker:
        """A child of the Ray worker, whose stdout is read in a thread."""

        def __init__(self, argv: tuple[str, ...], own_python: bool) -> None:  # noqa: FBT001  Ray calls it
            import queue  # noqa: PLC0415  the node has no module of ours
            import subprocess  # noqa: PLC0415
            import sys  # noqa: PLC0415
            import tempfile  # noqa: PLC0415
            import threading  # noqa: PLC0415

            command = [sys.executable, "-m", *argv] if own_python else list(argv)
            self.err = tempfile.TemporaryFile()  # noqa: SIM115  as long as the actor
            pipe = subprocess.PIPE
            self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.err, start_new_session=True)
            self.lines: Any = queue.Queue()

            def read() -> None:
                for line in self.child.stdout:  # type: ignore[union-attr]
                    self.lines.put(line.rstrip(b"\n"))
                self.lines.put(None)

            threading.Thread(target=read, daemon=True).start()

        def send(self, data: bytes) -> None:
            try:
                self.child.stdin.write(data)  # type: ignore[union-attr]
                self.child.stdin.flush()  # type: ignore[union-attr]
            except OSError:
                pass

        def heard(self) -> tuple[list[bytes], bytes, int | None]:
            """The lines that came, once there is one; at the end the end of stderr, and the exit status."""
            found = [self.lines.get()]
            while not self.lines.empty():
                found.append(self.lines.get())
            if found[-1] is not None:
                return found, b"", None
            self.err.seek(0)
            return found[:-1], self.err.read()[-4096:], self.child.wait()

    return ChildOfWorker


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return brief(f"{type(error).__name__}: {lines[-1] if lines else ''}")
