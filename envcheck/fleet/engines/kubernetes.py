"""``--kubernetes``: a Job with one pod a node, whose logs are the answers. Context and namespace are those of kubectl.

The Job and the ConfigMap with the collector are deleted at the end.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from envcheck.errors import UsageError
from envcheck.fleet.engines.engine import COLLECTOR, Coming, NodeProgram, interruptible
from envcheck.fleet.engines.launch import output_of, read_answer
from envcheck.fleet.examine import NodeAnswer
from envcheck.report.saved import MOST_BYTES
from envcheck.text.clean import brief

_SECONDS = 60.0
_TICK = 2.0
_JOB = Path(__file__).with_name("job.json")
"""The cluster starts another pod for each that failed, after a wait that grows, and ends the others only after a
million; the first answer of a node counts. It deletes the Job by itself after ten minutes, if nobody else does."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_FOLDER = "/envcheck"


def answers(image: str, selector: str | None, ask: NodeProgram, *, timeout: float, each: float | None) -> Coming:
    """Run the Job on the nodes that ``selector`` chooses; raise UsageError where kubectl fails."""
    listed = json.loads(_kubectl("get", "nodes", "-o", "json", *(("-l", selector) if selector else ())))
    nodes: dict[str, str] = {}
    """Why a node takes no pod; empty where it does."""
    for node in listed.get("items", ()):
        reason = ""
        for condition in node.get("status", {}).get("conditions", ()):
            if not reason and condition.get("type") == "Ready" and condition.get("status") != "True":
                reason_given = condition.get("message") or condition.get("reason") or "?"
                reason = brief(f"Kubernetes says it is not ready: {reason_given}")
        nodes[str(node["metadata"]["name"])] = reason
    if not nodes:
        raise UsageError("--kubernetes: no node of the cluster is selected")
    return interruptible(_answers(image, nodes, ask, timeout, each), nodes)


def _answers(
    image: str, nodes: dict[str, str], ask: NodeProgram, timeout: float, each: float | None
) -> Iterator[NodeAnswer]:
    for name, reason in nodes.items():
        if reason:
            yield NodeAnswer(name, problem=reason)
    waiting = {name for name, reason in nodes.items() if not reason}
    if not waiting:
        return
    name = f"envcheck-fleet-{secrets.token_hex(4)}"
    deadline = time.monotonic() + timeout
    try:
        made = manifest(name, image, sorted(waiting), ask, timeout, each)
        _kubectl("create", "-f", "-", stdin=json.dumps(made).encode())
        while waiting and time.monotonic() < deadline:
            for pod in _pods(name):
                node = str(pod.get("spec", {}).get("nodeName") or "")
                if node in waiting and pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                    waiting.discard(node)
                    yield _logged(node, str(pod["metadata"]["name"]), pod)
            if waiting:
                time.sleep(min(_TICK, max(0.0, deadline - time.monotonic())))
        for node in sorted(waiting):
            yield NodeAnswer(node, problem=f"no answer within {timeout:g} s{_waits(name, node)}")
    finally:
        with suppress(UsageError):  # the cluster deletes the Job by itself, and the answers are worth more
            _kubectl("delete", "job,configmap", name, "--ignore-not-found", "--wait=false")


def _pods(job: str) -> list[dict[str, Any]]:
    """The Job's pods; none where the cluster does not say it now: it is asked again until the deadline."""
    try:
        found = json.loads(_kubectl("get", "pods", "-l", f"job-name={job}", "-o", "json"))
    except (UsageError, ValueError):
        return []
    return list(found.get("items", ()))


def _logged(node: str, pod: str, pod_state: dict[str, Any]) -> NodeAnswer:
    status = pod_state.get("status", {})
    states = status.get("containerStatuses") or [{}]
    ended = states[0].get("state", {}).get("terminated") or {}
    # Of the pod itself where its container never ended: evicted, or refused by the node.
    reason = ": ".join(str(status[key]) for key in ("reason", "message") if status.get(key))
    try:
        log = _kubectl("logs", pod, most=MOST_BYTES)
    except UsageError as error:  # of this node alone; an evicted pod has no log any more
        return NodeAnswer(node, problem=brief(reason or str(error)))
    exit_code = int(ended.get("exitCode") or 0)
    # stderr is in the log too; of a program that ended well, its last line is no reason but the end of a report.
    lines = [line for line in log.splitlines() if line.strip()] if exit_code and not reason else []
    last = lines[-1] if lines else (reason or str(ended.get("reason") or "")).encode()
    return read_answer(node, log, last, exit_code)


def _waits(name: str, node: str) -> str:
    """What the pod on ``node`` waits for, as Kubernetes says it; else why a pod is on no node yet."""
    nowhere = ""
    for pod in _pods(name):
        status = pod.get("status", {})
        if pod.get("spec", {}).get("nodeName") == node:
            for state in status.get("containerStatuses") or ():
                waiting = state.get("state", {}).get("waiting") or {}
                if waiting:
                    return brief(f": {waiting.get('reason')}: {waiting.get('message') or ''}")
        elif not pod.get("spec", {}).get("nodeName"):
            for condition in status.get("conditions") or ():
                if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                    nowhere = brief(f": a pod is on no node: {condition.get('message') or condition.get('reason')}")
    return nowhere


def manifest(
    name: str, image: str, nodes: Sequence[str], ask: NodeProgram, timeout: float, each: float | None = None
) -> dict[str, Any]:
    """A List with the ConfigMap of the collector, and the Job whose pods are spread over ``nodes``, one on each."""
    mounted = ask.argv == COLLECTOR
    job = json.loads(_JOB.read_text(encoding="utf-8"))
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    container, labels = pod["containers"][0], {**job["metadata"]["labels"], "envcheck-fleet": name}
    affinity = pod["affinity"]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]
    affinity["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"] = terms
    affinity["podAntiAffinity"][_REQUIRED][0]["labelSelector"]["matchLabels"] = {"envcheck-fleet": name}
    job["metadata"] = {"name": name, "labels": labels}
    spec |= {"parallelism": len(nodes), "completions": len(nodes), "activeDeadlineSeconds": int(timeout) + 60}
    spec["template"]["metadata"]["labels"] = labels
    pod |= {} if each is None else {"activeDeadlineSeconds": max(1, int(each))}
    container |= {"image": image, "command": ["python3", "-I", f"{_FOLDER}/collect.py"] if mounted else list(ask.argv)}
    if mounted:
        pod["volumes"] = [{"name": "collector", "configMap": {"name": name}}]
        container["volumeMounts"] = [{"name": "collector", "mountPath": _FOLDER, "readOnly": True}]
    data = {"collect.py": ask.stdin.decode()}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": job["metadata"], "data": data}
    return {"apiVersion": "v1", "kind": "List", "items": [config, job] if mounted else [job]}


def _kubectl(*arguments: str, **how: Any) -> bytes:
    return output_of(("kubectl", *arguments), "--kubernetes", called=f"kubectl {arguments[0]}", seconds=_SECONDS, **how)
