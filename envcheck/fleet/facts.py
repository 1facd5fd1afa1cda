"""What of a report is compared with those of other nodes: facts that healthy nodes of one kind share, and figures.

Facts are grouped in aspects, and an aspect of a node (or of a GPU) is kept once for all nodes that have the same: most
nodes of a fleet agree. What differs between healthy machines (UUIDs, temperatures, counters) is not a fact here.

Figures are compared with those of the same GPU model. The center is the median and the width 1.4826 times the median
absolute deviation, which estimates the standard deviation without being moved by the outliers that are looked for
(Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993, whose 3.5 is the least distance here). Among many some
are far off by chance: the distance grows until a normal distribution would put one figure in a hundred such quantities
beyond it. A figure must also be slower by 5 %, since healthy GPUs of one model can lie very close together.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from math import isfinite
from operator import attrgetter
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

import msgspec

from envcheck.diff import facts as diff_facts
from envcheck.knowledge.performance.expected import at_work
from envcheck.knowledge.performance.spread import DEVIATION
from envcheck.model.checks import Report, Status
from envcheck.model.snapshot import Environment, Gpu, Measurement, Snapshot
from envcheck.rules.facts.measurements import measurement_name

Aspect: TypeAlias = Literal[
    "GPU model", "GPUs", "firmware", "GPU settings", "topology", "driver", "kernel", "system", "toolkits",
    "libraries", "packages", "variables",
]  # fmt: skip

OF_HARDWARE: frozenset[Aspect] = frozenset({"GPUs", "firmware", "GPU settings", "topology"})
"""Aspects that only nodes with the same GPU model share."""

_FIRMWARE = ("VBIOS", "GSP firmware")
_OF_ONE_GPU = frozenset({"UUID", "model", "uncorrected memory errors", "row remapping pending", *_FIRMWARE})
"""What differs between healthy GPUs, or is an aspect of its own."""
_LONGEST = 300  # Characters of a value; of a longer one the start is kept with a digest of the whole
_MOST = 5000  # Facts of an aspect
_HOST = range(4, 254)
"""Characters of a host name that is looked for in values: a shorter one is often a word, and DNS has no longer one."""
_ANY_HOST = "localhost"
_THIS_HOST = "this host"


class AspectFacts(msgspec.Struct, frozen=True, dict=True):
    """An aspect of a node, or of one of its GPUs."""

    aspect: Aspect
    subject: str  # ``GPU 3``; empty for the node
    facts: dict[str, str]
    complete: bool = False  # Whether a fact that is not here is absent; else it is not known

    @cached_property
    def digest(self) -> bytes:
        """Equal for equal facts."""
        encoded = msgspec.json.encode((self.aspect, self.complete, sorted(self.facts.items())))
        return hashlib.blake2b(encoded, digest_size=16).digest()

    @cached_property
    def words(self) -> tuple[str, int]:
        """All that is in it, as one text; and the characters of what is longest."""
        words = [*self.facts, *self.facts.values()]
        return "\0".join(words), max(map(len, words), default=0)


def gpus_of(report: Report) -> tuple[tuple[str, Gpu], ...]:
    """The GPUs by name: ``GPU 3``, by nvidia-smi's index, else by its place in the list."""
    return tuple((f"GPU {gpu.index if gpu.index is not None else place}", gpu) for place, gpu in enumerate(report.gpus))


def models(report: Report) -> str:
    """The GPU models of a node: what makes it comparable with others. ``none``: no GPU; empty: not known."""
    snapshot = report.snapshot
    if snapshot is None or snapshot.gpus is None:
        return ""
    names = sorted({gpu.name or "" for gpu in snapshot.gpus.items})
    if not names:
        return "none" if snapshot.gpus.complete else ""
    return "" if "" in names else " + ".join(names)


def aspects(report: Report) -> Iterator[AspectFacts]:
    """Everything of ``report`` that is compared."""
    snapshot = report.snapshot
    if snapshot is None:
        return
    rename, found = _Names(report), [*_aspects(report, snapshot)]
    concerned = rename.concerns(found)  # of all at once: most nodes have nothing
    for aspect in found:
        facts = aspect.facts
        if len(facts) > _MOST:
            facts = dict(list(facts.items())[:_MOST])
        if concerned and rename.concerns([aspect]):
            # A host may be called as a package; of names of facts, only paths name hosts.
            facts = {rename.neutral(what, hosts="/" in what): rename.neutral(value) for what, value in facts.items()}
        if facts or aspect.complete:
            yield aspect if facts is aspect.facts else msgspec.structs.replace(aspect, facts=facts)


def _aspects(report: Report, snapshot: Snapshot) -> Iterator[AspectFacts]:
    if snapshot.gpus is not None and (kinds := models(report)):
        named = gpus_of(report)
        yield _facts("GPU model", {"model": kinds})
        counts = Counter(gpu.name or "" for _, gpu in named)
        yield _facts("GPUs", {f"number of {name}": f"{count}" for name, count in sorted(counts.items())})
        for name, gpu in named:
            facts = diff_facts.gpu_facts(gpu)
            firmware = {what: facts[what] for what in _FIRMWARE}
            yield _facts("firmware", {**firmware, "part number": gpu.part_number}, subject=name)
            settings = {what: value for what, value in facts.items() if what not in _OF_ONE_GPU}
            yield _facts("GPU settings", settings, subject=name)
        yield _facts("topology", dict(_topology(report, snapshot)))
    system = {**diff_facts.system_facts(snapshot.platform)} if snapshot.platform else {}
    kernel = system.pop("kernel", None)
    yield _facts("system", system)
    yield _facts("kernel", {"kernel": kernel})
    driver = {**diff_facts.driver_facts(snapshot.driver)} if snapshot.driver else {}
    driver.pop("devices that CUDA shows", None)
    yield _facts("driver", {**driver, **diff_facts.module_facts(snapshot)})
    if snapshot.toolkits:
        yield _facts("toolkits", diff_facts.toolkit_facts(snapshot.toolkits.items), complete=snapshot.toolkits.complete)
    if snapshot.libraries:
        yield _facts("libraries", diff_facts.library_facts(snapshot.libraries.items))
    judged = snapshot.judged_environment
    if judged is not None:
        yield _packages(judged)
    if snapshot.variables:
        values = {
            name: value for name, value in snapshot.variables.values.items() if name not in diff_facts.OF_ONE_PROCESS
        }
        yield _facts("variables", values, complete=snapshot.variables.complete)


_KNOWN: dict[int, tuple[Environment, AspectFacts]] = {}
"""By the identity of an environment, which reports of many nodes share: its packages."""
_MOST_KNOWN = 64


def _packages(judged: Environment) -> AspectFacts:
    known = _KNOWN.get(id(judged))
    if known is None or known[0] is not judged:
        installed = {"python": judged.python, **diff_facts.package_facts(judged), **diff_facts.build_facts(judged)}
        known = (judged, _facts("packages", installed, complete=judged.distributions_complete))
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[id(judged)] = known
    return known[1]


def _topology(report: Report, snapshot: Snapshot) -> Iterator[tuple[str, str | None]]:
    names: dict[str | None, str] = {}
    for name, gpu in gpus_of(report):
        names[gpu.pci_bus_id] = name
        yield f"NUMA node of {name}", diff_facts.number(gpu.numa_node)
    fabric = snapshot.fabric
    if fabric is None:
        return
    yield "NVSwitches", diff_facts.number(fabric.nvswitches)
    yield "Fabric Manager runs", diff_facts.yes(fabric.manager_running)
    for link in fabric.links or ():
        pair = f"{names.get(link.first, link.first)} - {names.get(link.second, link.second)}"
        yield f"{pair}: NVLinks", diff_facts.number(link.nvlinks)
        yield f"{pair}: PCIe path", link.path
    for peer in fabric.peers or ():
        pair = f"{names.get(peer.first, peer.first)} - {names.get(peer.second, peer.second)}"
        yield f"{pair}: peer access", diff_facts.yes(peer.allowed)


def _facts(
    aspect: Aspect, facts: Mapping[str, str | None], *, subject: str = "", complete: bool = False
) -> AspectFacts:
    return _shared_facts(aspect, subject, complete, *facts.items())


@lru_cache(maxsize=1024)
def _shared_facts(aspect: Aspect, subject: str, complete: bool, *facts: tuple[str, str | None]) -> AspectFacts:  # noqa: FBT001
    """One object for all nodes that agree, so that its digest is made once."""
    return AspectFacts(aspect, subject, {what: value for what, value in facts if value is not None}, complete)


def means(value: str | None, host: str | None, other: str | None) -> bool:
    """Whether ``value``, a fact of the node called ``host``, only looks different from ``other``: by chance, where the
    node is called as a word in it.
    """
    if value is None or other is None or _THIS_HOST not in value:
        return False
    return any(value.replace(_THIS_HOST, name) == other for name in _host_names(host))


def _host_names(host: str | None) -> Iterator[str]:
    """What a host may be called in values: whole, and without its domain."""
    for name in (host or "", (host or "").partition(".")[0]):
        if len(name) in _HOST and not name.startswith(_ANY_HOST):
            yield name


class _Names:
    """Replaces what names this node alone, and cuts what is too long."""

    def __init__(self, report: Report) -> None:
        self._gpus = {gpu.uuid: name for name, gpu in gpus_of(report) if gpu.uuid}
        platform = report.snapshot.platform if report.snapshot else None
        self._hosts = {*_host_names(report.host), *_host_names(platform.host if platform else None)}
        self._own = (*self._gpus, *self._hosts)

    def concerns(self, aspects: Iterable[AspectFacts]) -> bool:
        """Whether anything in ``aspects`` is to be replaced or cut."""
        words = [each.words for each in aspects]
        text = "\0".join(text for text, _ in words)
        return any(longest > _LONGEST for _, longest in words) or any(name in text for name in self._own)

    def neutral(self, text: str, *, hosts: bool = True) -> str:
        """``text`` without names of this node: of a fact's name, where ``hosts`` is false, only those of its GPUs."""
        for name, called in self._gpus.items():
            if name in text:
                text = text.replace(name, called)
        if hosts and any(name in text for name in self._hosts):
            words = "|".join(map(re.escape, sorted(self._hosts, key=len, reverse=True)))
            # Whole words: a host may be called as a part of many.
            text = re.sub(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])", _THIS_HOST, text)
        if len(text) <= _LONGEST:
            return text
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        return f"{text[:_LONGEST]}… ({len(text):,} characters, {digest})"


_MOST_FIGURES = 4096  # Figures of one node
_KEY = ("name", "precision", "shape", "burst", "variant")  # What distinguishes quantities
_key = attrgetter(*_KEY)
_NOBODY: tuple[str, Gpu | None] = ("", None)


class Quantity(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """What was measured, on what."""

    model: str  # GPU model, or the model of the processor
    title: str  # As in ``BF16 matrix product 8192^3, sustained``
    unit: str  # ``B/s``, ``FLOP/s``, ``OP/s`` or ``s``; in seconds less is better


class NodeFigures(msgspec.Struct, frozen=True):
    """The figures of a node, in little memory: of thousands of nodes, most have measured the same."""

    what: tuple[tuple[Quantity, str], ...] = ()
    """Quantity of each, and its subject: ``GPU 3``, ``GPU 0 to GPU 3``; empty for the processor."""
    values: bytes = b""  # Their values, as floats of eight bytes

    def __iter__(self) -> Iterator[float]:
        return iter(memoryview(self.values).cast("d"))


@lru_cache(maxsize=4096)
def _shared(what: tuple[tuple[Quantity, str], ...]) -> tuple[tuple[Quantity, str], ...]:
    """One object for all nodes that measured the same."""
    return what


def figures(report: Report) -> NodeFigures:
    """The usable figures: not those of a GPU that others used, nor of one that computed wrongly."""
    named: dict[str | None, tuple[str, Gpu | None]] = {
        gpu.uuid: (name, gpu) for name, gpu in gpus_of(report) if gpu.uuid
    }
    platform = report.snapshot.platform if report.snapshot else None
    what, values = list[tuple[Quantity, str]](), array("d")
    for measured in report.measurements[:_MOST_FIGURES]:
        wrong = measured.verification is not None and not measured.verification.right
        if wrong or not (measured.value and isfinite(measured.value) and measured.value > 0):
            continue
        subject, gpu = named.get(measured.gpu, _NOBODY)
        model = gpu.name if gpu else None
        if measured.gpu is None:
            model = (platform.cpu_model if platform else None) or "processor"
        elif gpu is not None and model:
            seen, total = measured.conditions, gpu.memory.total if gpu.memory else None
            before = seen.utilisation_before if seen else None
            if seen and at_work(before / 100 if before is not None else None, seen.memory_before, total):
                continue
            peer = named.get(measured.peer, _NOBODY)[0] if measured.peer else ""
            subject = f"{subject} to {peer}" if peer else subject
        if model:
            what.append((_quantity(model, measured.unit, *_key(measured)), subject))
            values.append(measured.value)
    return NodeFigures(_shared(tuple(what)), values.tobytes())


@lru_cache(maxsize=4096)
def _quantity(model: str, unit: str, *key: Any) -> Quantity:
    """One object for each quantity: a fleet has a few dozen, and a million figures."""
    return Quantity(model, measurement_name(Measurement(**dict(zip(_KEY, key, strict=True)))), unit)


BINS = 24
MOST_MOVED = 0.05  # Share by which a figure may be worse than an earlier one
_LEAST_SCORE = 3.5
_BY_CHANCE = 0.01  # Figures of a quantity that a normal distribution may put beyond the limit
_SLOWER = 0.05
_FAILS = 0.15  # Shares by which a figure must be slower than the median to warn and to fail
_FEWEST = 4  # With fewer figures none is called slow


class FigureLimits(msgspec.Struct, frozen=True):
    median: float
    low: float = float("-inf")
    high: float = float("inf")
    sigma: float = 0.0

    @property
    def limit(self) -> float | None:
        return next((edge for edge in (self.low, self.high) if abs(edge) != float("inf")), None)

    def status(self, value: float) -> Status:
        """How bad a figure outside the limits is."""
        ratio = self.median / value if self.high != float("inf") else value / self.median
        return "fail" if ratio < 1 - _FAILS else "warn"

    def score(self, value: float) -> float | None:
        """Distance from the median in robust standard deviations; None where there is none."""
        return (value - self.median) / self.sigma if self.sigma > 0 else None


def limits(unit: str, count: int, median: float, mad: float) -> FigureLimits:
    """The limits of a quantity with ``count`` figures."""
    if count < _FEWEST:
        return FigureLimits(median)
    sigma = DEVIATION * mad
    distance = max(_LEAST_SCORE, NormalDist().inv_cdf(1 - min(_BY_CHANCE / count, 0.5))) * sigma
    if unit == "s":
        return FigureLimits(median, high=max(median + distance, median / (1 - _SLOWER)), sigma=sigma)
    return FigureLimits(median, low=min(median - distance, median * (1 - _SLOWER)), sigma=sigma)
