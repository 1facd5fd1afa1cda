"""Answers of nodes: kept (``--save``), read in separate processes where there are many, the newest of each node.

Answers are untrusted.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from itertools import chain
from pathlib import Path
from sys import intern
from typing import TypeAlias

import msgspec

from envcheck.bounded import TooLargeError, read_file
from envcheck.errors import EnvcheckError, UsageError
from envcheck.fleet.facts import NodeFigures, aspects, figures, gpus_of, models
from envcheck.fleet.record import NodeGpu, NodeReport
from envcheck.model.checks import Report, Status, Verdict
from envcheck.report.page.findings import folded
from envcheck.report.saved import MOST_BYTES, SharedEnvironments, read_report
from envcheck.text.clean import brief
from envcheck.text.output import write_whole

_BATCH = 64
_ALONE = 200  # Answers that one process reads faster than others could be started
_BYTES_KEPT = 32 << 20
"""Bytes of answers after which a batch is full too: a report may have twice as many, and a fleet thousands of them."""
_PROCESSES = 8
_MOST_FINDINGS = 200
_LONGEST_NAME = 200


class NodeAnswer(msgspec.Struct, frozen=True):
    """What came from a node: a report, or the file in which it lies, or the reason why there is none."""

    node: str  # The name by which it was asked; empty where the report has it
    path: str = ""  # The file in which the report lies; where the report came along, the file in which it was kept
    content: bytes = b""  # The report itself; empty where it is to be read from ``path``
    problem: str = ""  # Why there is none


class NodeFinding(msgspec.Struct, frozen=True):
    """A failed rule, a warning or an open question of a node's own report."""

    status: Status
    rule: str
    title: str


Aspects: TypeAlias = tuple[tuple[str, str, bytes, bool], ...]


class Examined(NodeReport, frozen=True, kw_only=True):
    """A node, as far as it is compared."""

    verdict: Verdict = "unknown"
    aspects: Aspects = ()  # Aspect, subject, digest of its facts, whether they are complete
    figures: NodeFigures = NodeFigures()
    findings: tuple[NodeFinding, ...] = ()


Facts = dict[bytes, dict[str, str]]  # The facts by the digest of their aspect
Judge = Callable[[Report, str], Report]  # What the report of a node, by the name by which it was asked, is taken for


def examine(
    answers: Iterable[NodeAnswer], judge: Judge, on_node: Callable[[Examined], None] = lambda _: None
) -> tuple[list[Examined], Facts]:
    """Read every answer; ``judge`` sees each report before it is compared, and has to be one that can be pickled."""
    nodes: list[Examined] = []
    facts: Facts = {}

    def keep(batch: tuple[list[Examined], Facts]) -> None:
        facts.update(batch[1])
        nodes.extend(batch[0])
        for node in batch[0]:
            on_node(node)

    later = iter(answers)
    first = _batch(later, _ALONE)
    coming = chain(first, later)
    try:
        cores = min(len(os.sched_getaffinity(0)), _PROCESSES)
    except AttributeError:
        cores = min(os.cpu_count() or 1, _PROCESSES)
    if cores == 1 or not _is_full(first, _ALONE):
        known: dict[bytes, bytes] = {}
        for answer in coming:
            keep(_examined((answer,), judge, known))
        return nodes, facts
    for batch in _in_processes(coming, judge, cores):
        keep(batch)
    return nodes, facts


def _batch(coming: Iterator[NodeAnswer], most: int) -> list[NodeAnswer]:
    """The next ``most`` answers; fewer where they are large, or no more come."""
    found: list[NodeAnswer] = []
    for answer in coming:
        found.append(answer)
        if _is_full(found, most):
            break
    return found


def _is_full(answers: Sequence[NodeAnswer], most: int) -> bool:
    return len(answers) >= most or sum(len(answer.content) for answer in answers) >= _BYTES_KEPT


def _in_processes(coming: Iterator[NodeAnswer], judge: Judge, cores: int) -> Iterator[tuple[list[Examined], Facts]]:
    from collections import deque  # noqa: PLC0415  a few reports need no other process
    from concurrent.futures import Future, ProcessPoolExecutor  # noqa: PLC0415
    from multiprocessing import get_context  # noqa: PLC0415
    from threading import active_count  # noqa: PLC0415

    # A fork has everything imported already; beside other threads it could hang.
    how = get_context("fork" if active_count() == 1 and "duckdb" not in sys.modules else "spawn")
    with ProcessPoolExecutor(cores, how, _get_ready, (judge,)) as pool:
        waiting: deque[Future[tuple[list[Examined], Facts]]] = deque()
        try:
            while batch := _batch(coming, _BATCH):
                waiting.append(pool.submit(_examined_here, batch))
                if len(waiting) > 3 * cores:  # never the content of a whole fleet at once
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _get_ready(judge: Judge) -> None:
    """Take ``judge``, once and not with each batch; Ctrl-C is the first process's business: it keeps what came."""
    import gc  # noqa: PLC0415
    import signal  # noqa: PLC0415

    _JUDGES.append(judge)
    gc.disable()  # a report holds no cycles, and looking for them takes a seventh of the time
    signal.signal(signal.SIGINT, signal.SIG_IGN)


_JUDGES: list[Judge] = []  # The one of this process
_KNOWN_HERE: dict[bytes, bytes] = {}  # Digests whose facts this process has sent before, each as the one object for it


def _examined_here(batch: Sequence[NodeAnswer]) -> tuple[list[Examined], Facts]:
    return _examined(batch, _JUDGES[-1], _KNOWN_HERE)


_SHARED = SharedEnvironments()


def _examined(batch: Sequence[NodeAnswer], judge: Judge, known: dict[bytes, bytes]) -> tuple[list[Examined], Facts]:
    facts: Facts = {}
    nodes = []
    for answer in batch:
        problem = answer.problem
        if not problem:
            try:
                report = read_report(answer.content or read_file(answer.path, MOST_BYTES), _SHARED)
                report = judge(report, answer.node)
            except (EnvcheckError, TooLargeError) as error:
                problem = brief(f"no usable report: {error}")
            except OSError as error:
                problem = brief(f"cannot be read: {error.strerror or error}")
        if problem:
            nodes.append(Examined(name=answer.node or _stem(answer.path), path=answer.path, problem=problem))
        else:
            nodes.append(_compared(report, answer, known, facts))
    return nodes, facts


def _compared(report: Report, answer: NodeAnswer, known: dict[bytes, bytes], facts: Facts) -> Examined:
    compared = []
    for each in aspects(report):
        if each.digest not in known:
            known[each.digest] = each.digest
            facts[each.digest] = each.facts
        compared.append((each.aspect, intern(each.subject), known[each.digest], each.complete))
    from envcheck.redact import HOST  # noqa: PLC0415

    # As the engine calls the node, else its host; a redacted report is named by its file.
    own = (report.host or "").strip() if report.host != HOST else ""
    bad = (check for check in report.checks if check.status in ("fail", "warn"))
    causes = folded(check for check in bad if not check.explained_by and not check.ignored)  # worst first
    findings = dict.fromkeys(NodeFinding(each.status, each.rule, each.title) for each in causes)
    return Examined(
        name=(answer.node or own or _stem(answer.path) or "?")[:_LONGEST_NAME],
        host=report.host,
        path=answer.path,
        created=report.created[:40],
        verdict=report.verdict,
        headline=report.headline,
        primary=report.primary,
        models=models(report),
        gpus=tuple(
            NodeGpu(name=intern(name), model=gpu.name and intern(gpu.name), uuid=gpu.uuid, serial=gpu.serial)
            for name, gpu in gpus_of(report)
        ),
        aspects=_shared(tuple(compared)),
        figures=figures(report),
        findings=tuple(findings)[:_MOST_FINDINGS],
    )


@lru_cache(maxsize=4096)
def _shared(compared: Aspects) -> Aspects:
    """One object for all nodes that agree."""
    return compared


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".json")[:_LONGEST_NAME]  # noqa: PTH119  10,000 of them


_PLAIN = re.compile(r"[^\w.@-]+", re.ASCII)
_LONGEST_FILE_NAME = 120


def keeping(answers: Iterable[NodeAnswer], folder: str) -> Iterator[NodeAnswer]:
    """``answers``, each report of which is written to ``folder``; raise UsageError where that fails."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for answer in answers:
            if not answer.content or answer.problem:
                yield answer
                continue
            file = place / f"{file_name(answer.node)}.json"
            write_whole(file, answer.content)
            yield msgspec.structs.replace(answer, path=str(file))
    except OSError as error:
        raise UsageError(f"--save {folder}: {error.strerror or error}") from None


def file_name(node: str) -> str:
    """The name of a node as the name of a file, which leads to no other folder."""
    return _PLAIN.sub("_", node).lstrip(".")[:_LONGEST_FILE_NAME] or "_"


_AHEAD = timedelta(days=1)  # How far a node's clock may be ahead; a report from later is older than any other
_NEVER = datetime.min.replace(tzinfo=timezone.utc)


def newest(nodes: Iterable[Examined]) -> tuple[list[Examined], int]:
    """One report for each node, in the order of the names; and how many were left out.

    Reports of one name that share no GPU are of different machines, as where many are called ``localhost``: each of
    these is named with its file.
    """
    named: dict[str, list[Examined]] = defaultdict(list)
    for node in nodes:
        named[node.name].append(node)
    until = datetime.now(timezone.utc) + _AHEAD
    kept: list[Examined] = []
    for _, alike in sorted(named.items()):
        machines = _machines(alike)
        for reports in machines:
            # Of reports of the same time, the last.
            node = max(reversed(reports), key=lambda each: (not each.problem, made_at(each.created, until)))
            only = len(machines) == 1
            kept.append(node if only else msgspec.structs.replace(node, name=f"{node.name} ({node.path})"))
    return kept, sum(map(len, named.values())) - len(kept)


def _machines(nodes: Iterable[Examined]) -> list[list[Examined]]:
    machines: list[list[Examined]] = []
    nameless: list[Examined] = []
    owners: dict[str, list[Examined]] = {}
    for node in nodes:
        gpus = [gpu.uuid for gpu in node.gpus if gpu.uuid]
        if not gpus:
            nameless.append(node)
            continue
        machine = next((owners[gpu] for gpu in gpus if gpu in owners), None)
        if machine is None:
            machine = []
            machines.append(machine)
        machine.append(node)
        owners.update(dict.fromkeys(gpus, machine))
    if not machines:
        return [nameless]
    machines[0] += nameless  # nothing says that it is another machine
    return machines


def made_at(created: str, until: datetime) -> datetime:
    """When a report was ``created``; long ago where it does not say, or says a time after ``until``."""
    try:
        found = msgspec.convert(created, datetime)
    except msgspec.ValidationError:
        return _NEVER
    if found.tzinfo is None:
        found = found.replace(tzinfo=timezone.utc)
    return found if found <= until else _NEVER
