"""Compare the nodes of a fleet: which differ from the majority, which figures are slow, what changed; the verdict.

And which nodes are alike: the kind with which a node is compared, and the groups that agree in every compared fact.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count as numbers
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from envcheck.fleet import record
from envcheck.fleet.examine import Examined, Facts, NodeFinding
from envcheck.fleet.facts import BINS, MOST_MOVED, OF_HARDWARE, Aspect, Quantity, limits, means
from envcheck.fleet.names import absent
from envcheck.fleet.tables import Tables
from envcheck.knowledge.performance.spread import speed_ratio
from envcheck.model.checks import STATUSES, Report, Verdict
from envcheck.pipeline.request import Request
from envcheck.text.clean import clean

if TYPE_CHECKING:
    from envcheck.fleet.groups import NodeGroup

ASPECTS: tuple[Aspect, ...] = get_args(Aspect)


def compare(
    nodes: Sequence[Examined],
    facts: Facts,
    earlier: record.Fleet | None = None,
    *,
    expected: Sequence[str] = (),
    whole: bool = True,
    serials: bool = False,
) -> record.FleetComparison:
    """Compare ``nodes``, whose names differ; with ``earlier``, also tell what changed since.

    What is ``expected`` and did not even fail to answer has vanished, if ``whole``: no report is unread that may be of
    any node.
    """
    found = _Comparison(nodes, facts, earlier, serials=serials).result()
    present = [name for node in nodes for name in (node.name, node.host)]
    gone = absent(expected, present)
    lost = absent((node.name for node in (earlier.nodes if earlier else ()) if not node.problem), [*present, *gone])
    vanished = [record.Vanished(status="fail", nodes=tuple(gone)), record.Vanished(status="warn", nodes=tuple(lost))]
    if not whole:
        vanished = [record.Vanished(status="unknown", nodes=(*gone, *lost))]
    return msgspec.structs.replace(found, vanished=tuple(each for each in vanished if each.nodes))


_NODE = "\0"  # Stands for the number of a node in its lines


class _Comparison:
    def __init__(self, nodes: Sequence[Examined], facts: Facts, earlier: record.Fleet | None, *, serials: bool) -> None:
        self._nodes, self._facts, self._earlier, self._serials = nodes, facts, earlier, serials
        self._kinds = Kinds(nodes)
        # A number for each value, in the order in which they are first asked for.
        self._subjects: dict[str, int] = defaultdict(numbers(1).__next__, {"": 0})
        self._digests: dict[bytes, int] = defaultdict(numbers().__next__)
        self._quantities: dict[Quantity, int] = defaultdict(numbers().__next__)
        self._whats: dict[int, list[tuple[int, int]]] = {}
        self._lines: dict[Any, str] = {}  # What to write of a node in tables, by what several nodes share
        self._aspects: dict[str, int] = {aspect: place for place, aspect in enumerate(ASPECTS)}

    def result(self) -> record.FleetComparison:
        with tempfile.TemporaryDirectory(prefix="envcheck-fleet-") as folder, closing(Tables(folder)) as tables:
            tables.fill("held", self._held())
            tables.fill("figure", self._figures())
            if self._earlier is not None:
                tables.fill("held_before", self._held_before(self._earlier))
                tables.fill("figure_before", self._figures_before(self._earlier))
            named = ((number, self._facts[digest]) for digest, number in self._digests.items())
            rows = ((number, clean(what), clean(value)) for number, facts in named for what, value in facts.items())
            tables.fill("fact", rows)
            tables.ask("shares")
            differences = tuple(self._differences(tables))
            spreads = tuple(self._spreads(tables))
            slow = tuple(self._slow(tables, spreads))
            groups, group_of = grouped(self._nodes, self._facts)
            came_or_went = None
            if self._earlier is not None:
                both = (self._nodes, self._earlier.nodes)
                now, then = ({node.name for node in nodes if not node.problem} for nodes in both)
                came_or_went = record.CameOrWent(came=tuple(sorted(now - then)), went=tuple(sorted(then - now)))
            kept = (digest for digest in self._digests if digest in self._facts)
            return record.FleetComparison(
                problems=tuple(_problems(self._nodes)),
                differences=differences,
                splits=tuple(
                    record.Split(
                        ASPECTS[aspect], what, self._kinds.named(basis), tuple(values), tuple(map(int, counts))
                    )
                    for basis, aspect, what, values, counts in tables.ask("undecided")
                ),
                slow=slow,
                spreads=spreads,
                drifts=tuple(
                    record.Drift(ASPECTS[aspect], what, before, after, self._places(zip(nodes, subjects, strict=True)))
                    for aspect, what, before, after, nodes, subjects in (tables.ask("drift") if self._earlier else ())
                ),
                slowed=tuple(self._slowed(tables)) if self._earlier else (),
                came_or_went=came_or_went,
                groups=groups,
                nodes=self._records(differences, slow, group_of),
                facts=tuple(record.FactsRecord(digest=digest.hex(), facts=self._facts[digest]) for digest in kept),
            )

    def _held(self) -> Iterator[str]:
        bases = [self._kinds.basis(node) for node in self._nodes]
        rare = ALL in bases
        for number, (node, own) in enumerate(zip(self._nodes, bases, strict=True)):
            of_hardware = own or self._kinds.rare(node)
            key = (of_hardware, node.aspects)  # which most nodes share with others
            if key not in self._lines:
                rows = []
                for aspect, subject, digest, complete in node.aspects:
                    numbers = (self._aspects[aspect], self._subjects[subject], self._digests[digest])
                    row = f"{','.join(map(str, numbers))},{complete:d}\n"
                    rows.append(f"{_NODE},{of_hardware if aspect in OF_HARDWARE else own},{row}")
                    if own and rare and aspect not in OF_HARDWARE:
                        rows.append(f"-1,{ALL},{row}")  # counts among all, and is no difference there
                self._lines[key] = "".join(rows)
            yield self._lines[key].replace(_NODE, str(number))

    def _figures(self) -> Iterator[str]:
        for number, node in enumerate(self._nodes):
            what = node.figures.what
            if id(what) not in self._lines:
                rows = (f"{_NODE},{subject},{quantity},%r\n" for subject, quantity in self._numbered(what))
                self._lines[id(what)] = "".join(rows)
            yield (self._lines[id(what)] % tuple(node.figures)).replace(_NODE, str(number))

    def _numbered(self, what: tuple[tuple[Quantity, str], ...]) -> list[tuple[int, int]]:
        """Subject and quantity by their numbers; many nodes share the object ``what``."""
        if id(what) not in self._whats:
            self._whats[id(what)] = [(self._subjects[subject], self._quantities[each]) for each, subject in what]
        return self._whats[id(what)]

    def _held_before(self, earlier: record.Fleet) -> Iterator[tuple[int, int, int, int, bool]]:
        known = {each.digest: each.facts for each in earlier.facts}
        for number, node in self._earlier_nodes(earlier):
            for aspect, subject, digest, complete in node.aspects:
                place = self._aspects.get(aspect)
                if place is not None and digest in known:
                    try:
                        key = bytes.fromhex(digest)
                    except ValueError:
                        key = digest.encode()  # not written by envcheck; any unique name will do
                    self._facts.setdefault(key, known[digest])
                    yield number, place, self._subjects[subject], self._digests[key], complete

    def _figures_before(self, earlier: record.Fleet) -> Iterator[tuple[int, int, int, float]]:
        known = [spread.quantity for spread in earlier.spreads]
        for number, node in self._earlier_nodes(earlier):
            for quantity, subject, value in node.figures:
                if 0 <= quantity < len(known):
                    yield number, self._subjects[subject], self._quantities[known[quantity]], value

    def _earlier_nodes(self, earlier: record.Fleet) -> Iterator[tuple[int, record.Node]]:
        """The nodes of the earlier report that are here too, by their numbers now."""
        now = {node.name: number for number, node in enumerate(self._nodes) if not node.problem}
        return ((now[node.name], node) for node in earlier.nodes if node.name in now and not node.problem)

    def _differences(self, tables: Tables) -> Iterator[record.Difference]:
        for basis, aspect, what, value, common, share, known, nodes, subjects in tables.ask("departures"):
            pairs = zip(nodes, subjects, strict=True)
            departing = [pair for pair in pairs if not means(value, self._nodes[pair[0]].host, common)]
            if departing:
                among, places = self._kinds.named(basis), self._places(departing)
                yield record.Difference(ASPECTS[aspect], what, value, common, among, share, known, places)

    def _places(self, pairs: Iterable[tuple[int, int]]) -> tuple[record.Place, ...]:
        names = list(self._subjects)
        found: dict[int, list[str]] = defaultdict(list)
        for node, subject in pairs:
            found[node] += [names[subject]] if subject else []
        return tuple(
            record.Place(node=self._nodes[node].name, subjects=tuple(subjects)) for node, subjects in found.items()
        )

    def _spreads(self, tables: Tables) -> Iterator[record.Spread]:
        bins: dict[int, list[int]] = defaultdict(lambda: [0] * BINS)
        for quantity, place, count in tables.ask("histogram", BINS, BINS - 1):
            bins[quantity][place] = count
        by_quantity = {row[0]: row[1:] for row in tables.ask("spread")}
        for measured, number in self._quantities.items():
            # A quantity of the earlier report alone has no figure.
            count, median, mad, low, high = by_quantity.get(number, (0, 0.0, 0.0, 0.0, 0.0))
            limit = limits(measured.unit, count, median, mad).limit
            shown = tuple(bins[number]) if number in bins else ()
            yield record.Spread(measured, count, median, mad, low, high, limit, shown)

    def _slow(self, tables: Tables, spreads: Sequence[record.Spread]) -> Iterator[record.Slow]:
        names = list(self._subjects)
        for number, spread in enumerate(spreads):
            limit = limits(spread.quantity.unit, spread.count, spread.median, spread.mad)
            for node, subject, value in tables.ask("outside", number, limit.low, limit.high):
                name, examined = names[subject], self._nodes[node]
                first = name.partition(" to ")[0]
                yield record.Slow(
                    status=limit.status(value),
                    node=examined.name,
                    subject=name,
                    serial=next((gpu.serial for gpu in examined.gpus if self._serials and gpu.name == first), None),
                    quantity=spread.quantity,
                    value=value,
                    median=spread.median,
                    ratio=speed_ratio(value, spread.median, spread.quantity.unit),
                    score=limit.score(value),
                )

    def _slowed(self, tables: Tables) -> Iterator[record.Slowed]:
        names, quantities = list(self._subjects), list(self._quantities)
        for node, subject, number, before, after in tables.ask("moved", MOST_MOVED, MOST_MOVED):
            ratio = speed_ratio(after, before, quantities[number].unit)
            if ratio < 1:
                yield record.Slowed(self._nodes[node].name, names[subject], quantities[number], before, after, ratio)

    def _records(
        self, differences: Iterable[record.Difference], slow: Iterable[record.Slow], group_of: Mapping[str, int]
    ) -> Sequence[record.Node]:
        departs = Counter(place.node for difference in differences for place in difference.places)
        slower = Counter(figure.node for figure in slow)

        def made(node: Examined) -> record.Node:
            numbers = (quantity for _, quantity in self._numbered(node.figures.what))
            return record.Node(
                **{field: getattr(node, field) for field in record.NodeReport.__struct_fields__ if field != "gpus"},
                gpus=tuple(gpu if self._serials else msgspec.structs.replace(gpu, serial=None) for gpu in node.gpus),
                group=group_of.get(node.name),
                differences=departs[node.name],
                slow=slower[node.name],
                aspects=tuple(
                    (aspect, subject, digest.hex(), whole) for aspect, subject, digest, whole in node.aspects
                ),
                figures=tuple(zip(numbers, (subject for _, subject in node.figures.what), node.figures, strict=True)),
            )

        return Records(self._nodes, made)


class Records(Sequence[record.Node]):
    """The record of each node, made whenever it is asked for: all of them at once take most of the memory."""

    def __init__(self, nodes: Sequence[Examined], made: Callable[[Examined], record.Node]) -> None:
        self._nodes, self._made = nodes, made

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[record.Node]:
        return map(self._made, self._nodes)

    def __getitem__(self, place: Any) -> Any:
        return self._made(self._nodes[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


def _problems(nodes: Iterable[Examined]) -> list[record.Problem]:
    """The findings of the nodes' own reports: failures first, then what most nodes have."""
    places: dict[NodeFinding, list[str]] = defaultdict(list)
    for node in nodes:
        for finding in node.findings:
            places[finding].append(node.name)
    found = [
        record.Problem(status=finding.status, rule=finding.rule, title=finding.title, nodes=tuple(names))
        for finding, names in places.items()
    ]
    return sorted(found, key=lambda problem: (STATUSES.index(problem.status), -len(problem.nodes), problem.rule))


UNANSWERED = "unanswered"
_VANISHED, _MAY_HAVE = ("node vanished", "nodes vanished"), ("node may have vanished", "nodes may have vanished")


def judged(request: Request, groups: Mapping[str, NodeGroup], report: Report, node: str) -> Report:
    """``report`` of ``node`` as its group sees it. What was not judged is, and secrets in it are masked."""
    if not report.checks and report.snapshot is not None:
        from envcheck.pipeline import session  # noqa: PLC0415  most reports come judged
        from envcheck.redact import mask_secrets  # noqa: PLC0415

        facts = msgspec.structs.replace(report.snapshot, runs=report.probes, measurements=report.measurements)
        found = session.judge(facts, request)
        report = mask_secrets(msgspec.structs.replace(found, created=report.created, host=found.host or report.host))
    if groups:
        from envcheck.fleet.groups import decided  # noqa: PLC0415  few have groups

        report = decided(report, node, groups)
    return report


def conclude(
    compared: record.FleetComparison,
    nodes: Sequence[Examined],
    how: record.Circumstances,
    *,
    superseded: int = 0,
    since: str | None = None,
) -> record.Fleet:
    """The whole fleet report; ``since`` is when the earlier one was made."""
    counts = Counter(UNANSWERED if node.problem else node.verdict for node in nodes)
    went = compared.came_or_went and compared.came_or_went.went
    moved = compared.drifts or compared.slowed or compared.declines or went
    statuses = {*(each.status for each in compared.vanished), *(each.status for each in compared.slow)}
    lacking = counts["unknown"] or counts[UNANSWERED] or "unknown" in statuses
    verdict: Verdict = "pass" if counts["pass"] and not lacking else "unknown"
    if counts["fail"] or "fail" in statuses:
        verdict = "fail"
    elif counts["warn"] or compared.differences or compared.splits or compared.slow or moved:
        verdict = "warn"
    different = {place.node for difference in compared.differences for place in difference.places}
    slow = {(figure.node, figure.subject) for figure in compared.slow}
    parts = [  # what stands out, worst first
        record.counted(sum(len(each.nodes) for each in compared.vanished if each.status != "unknown"), *_VANISHED),
        record.counted(sum(len(each.nodes) for each in compared.vanished if each.status == "unknown"), *_MAY_HAVE),
        record.counted(counts["fail"], "node fails", "nodes fail"),
        record.counted(counts[UNANSWERED], "node did not answer", "nodes did not answer"),
        record.counted(counts["unknown"], "node has no verdict", "nodes have no verdict"),
        record.counted(len(different), "node differs from the majority", "nodes differ from the majority"),
        record.counted(len(compared.declines), "node became slower", "nodes became slower"),
        record.counted(len(slow), "slow GPU or link", "slow GPUs or links"),
        record.counted(counts["warn"], "node warns", "nodes warn"),
        record.counted(len(compared.splits), "fact without a majority", "facts without a majority"),
    ]
    agreed = f"{len(nodes):,} nodes agree, and all pass" if nodes else "no node"
    head = record.Head(
        **how.overall_fields(),
        headline=", ".join(filter(None, parts)) or agreed,
        verdict=verdict,
        exit_code=how.exit_code(verdict, lacking=bool(lacking)),
        nodes=len(nodes),
        gpus=sum(len(node.gpus) for node in nodes),
        verdicts={word: counts[word] for word in ("fail", "warn", "unknown", "pass", UNANSWERED)},
        superseded=superseded,
        since=since,
    )
    return record.Fleet(head=head, **msgspec.structs.asdict(compared))


def grouped(nodes: Sequence[Examined], facts: Facts) -> tuple[tuple[record.Group, ...], dict[str, int]]:
    """The groups, the largest first, and the number of each node's."""
    members: dict[bytes, list[Examined]] = defaultdict(list)
    for node in nodes:
        if not node.problem:
            fingerprint = hashlib.blake2b(digest_size=16)
            for aspect, subject, digest, _ in sorted(node.aspects):
                fingerprint.update(f"{aspect}\0{subject}\0".encode("utf-8", "surrogatepass") + digest)
            members[fingerprint.digest()].append(node)
    ordered = sorted(members.values(), key=lambda group: (-len(group), group[0].name))
    references: dict[str, Examined] = {}
    groups = []
    for number, group in enumerate(ordered, 1):
        first = group[0]
        reference = references.setdefault(first.models, first)
        counts = Counter(gpu.model or "GPU of an unknown model" for gpu in first.gpus)
        gpus = ", ".join(f"{count} x {model}" for model, count in sorted(counts.items()))
        own, others = ({fact[:3] for fact in each.aspects} for each in (first, reference))
        named = {aspect: facts[digest] for aspect, _, digest, _ in first.aspects if aspect in ("driver", "kernel")}
        groups.append(
            record.Group(
                number=number,
                nodes=tuple(node.name for node in group),
                gpus=gpus or ("no GPU" if first.models == "none" else "GPUs not known"),
                driver=named.get("driver", {}).get("release"),
                kernel=named.get("kernel", {}).get("kernel"),
                differs_in=tuple(sorted({aspect for aspect, _, _ in own ^ others})),
            )
        )
    return tuple(groups), {name: group.number for group in groups for name in group.nodes}


ALL = 0  # The basis of all nodes
_FEWEST = 3
_SHARE = 0.05
"""Nodes with the same number of GPUs of a model are a kind if there are this many, and this share of the fleet.
Rarer ones are compared with the most frequent kind of that model, so that a node that lost a GPU stands out."""
_NO_GPU = "no GPU"


class Kinds:
    """The kinds of ``nodes``; each is a basis, numbered from 1, the most frequent first."""

    def __init__(self, nodes: Sequence[Examined]) -> None:
        counts = Counter(_kind_of(node) for node in nodes if node.models)
        least = max(_FEWEST, _SHARE * sum(counts.values()))
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        frequent = [kind for kind, count in ordered if count >= least]
        found = [kind for kind in frequent if kind != _NO_GPU] or frequent  # without a GPU only where no node has one
        self._kinds = {kind: number for number, kind in enumerate(found, 1)}
        self._of_models: dict[str, int] = {}
        for node in nodes:
            if number := self._kinds.get(_kind_of(node)):
                self._of_models[node.models] = min(number, self._of_models.get(node.models, number))
        self._rare: dict[str, int] = {}

    def basis(self, node: Examined) -> int:
        """The kind that ``node`` is compared with; ``ALL`` where none has its GPU models."""
        return self._kinds.get(_kind_of(node)) or self._of_models.get(node.models, ALL)

    def rare(self, node: Examined) -> int:
        """The basis for the hardware of a node without a kind: the nodes with the same GPU models."""
        return self._rare.setdefault(node.models, len(self._kinds) + len(self._rare) + 1)

    def named(self, basis: int) -> str:
        """The GPU models of a basis; empty for all nodes."""
        every = {number: models for kinds in (self._kinds, self._rare) for models, number in kinds.items()}
        return every.get(basis, "")


def _kind_of(node: Examined) -> str:
    return _NO_GPU if node.models == "none" else f"{len(node.gpus)} x {node.models}"
