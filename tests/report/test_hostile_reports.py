"""Saved reports: those of a newer envcheck are read, those beyond bounds refused, and no value breaks judging."""

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from envcheck.errors import UsageError
from envcheck.model.checks import Report
from envcheck.model.snapshot import Distribution, Environment, Framework, Listing, Snapshot
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.report import render
from envcheck.report.saved import MOST_JUDGED, MOST_RECORDS, MOST_VALUES, NOT_KNOWN, read_report
from envcheck.rules.engine import evaluate
from tests.every import cases
from tests.known import known
from tests.test_machines import TRIED, report_on

DIGITS = "9" * 5000
REQUEST = Request(cwd="/", variables={})


@pytest.fixture(scope="module")
def tried() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(render(report_on(TRIED), "json"))
    content["measurements"] = content["measurements"] or content["snapshot"]["measurements"]
    return content


def read(content: dict[str, Any]) -> Report:
    return read_report(json.dumps(content).encode())


def judged(content: dict[str, Any]) -> Report:
    """As ``check --from`` judges it."""
    report = read(content)
    assert report.snapshot
    return judge(
        msgspec.structs.replace(report.snapshot, runs=report.probes, measurements=report.measurements), REQUEST
    )


def changed(content: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """``content`` with ``value`` at ``path``; what lies beside the path is shared."""
    whole = {**content}
    place: Any = whole
    for step in path[:-1]:
        place[step] = copy.copy(place[step])
        place = place[step]
    place[path[-1]] = value
    return whole


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value that holds no others, the first of each list standing for all."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*path, key))
    elif isinstance(value, list):
        for part in value[:1]:
            yield from places(part, (*path, 0))
    else:
        yield path, value


@cases(
    "path", ("verdict",), ("checks", 0, "status"), ("checks", 0, "layer"), ("checks", 0, "scope"),
    ("checks", 0, "decided_by"), ("checks", 0, "action"), ("checks", 0, "subject", "kind"), ("checks", 0, "rule"),
    ("probes", 0, "status"), ("probes", 0, "name"), ("measurements", 0, "precision"), ("snapshot", "platform", "os"),
    ("snapshot", "platform", "container"), ("snapshot", "gpus", "items", 0, "compute_mode"),
    ("snapshot", "environments", "items", 0, "manager"),
    ("snapshot", "environments", "items", 0, "distributions", 0, "channel"),
    ("snapshot", "libraries", "items", 0, "origin"), ids=lambda path: ".".join(map(str, path)),
)  # fmt: skip
def test_a_word_of_a_newer_minor_is_taken_as_not_known(path: tuple[str | int, ...], tried: dict[str, Any]) -> None:
    tried = {**tried, "schema_version": "1.9", "probes": tried["probes"] or [{"name": "nvml", "status": "ok"}]}
    content = changed(tried, path, "mxfp6")
    report = read(content)
    assert len(report.checks) == len(tried["checks"])
    if path[0] not in ("verdict", "checks"):  # which are not judged again
        assert judged(content).verdict in ("pass", "warn", "fail", "unknown")
    if path == ("checks", 0, "status"):
        assert report.checks[0].status == "unknown"


def test_a_record_that_needs_a_word_that_is_not_known_is_left_out(tried: dict[str, Any]) -> None:
    files = [{"source": "x", "path": f"/{kind}", "package": "torch", "kind": kind} for kind in ("missing", "mxfp6")]
    found = read(changed(tried, ("snapshot", "environments", "items", 0, "shipped"), {"source": "x", "damaged": files}))
    shipped = known(known(found.snapshot).environments).items[0].shipped
    assert [file.path for file in known(shipped).damaged] == ["/missing"]


def test_what_stands_for_a_word_that_is_not_known_is_one_itself() -> None:
    needed: set[tuple[str, str]] = set()

    def look(kind: inspect.Type) -> None:
        for part in getattr(kind, "types", ()):
            look(part)
        for name in ("item_type", "value_type"):
            if isinstance(part := getattr(kind, name, None), inspect.Type):
                look(part)
        if isinstance(kind, inspect.StructType) and kind not in seen_kinds:
            seen_kinds.append(kind)
            for field in kind.fields:
                word = NOT_KNOWN.get((kind.cls.__name__, field.name))
                if word and isinstance(field.type, inspect.LiteralType):
                    assert field.required
                    assert word in field.type.values
                    needed.add((kind.cls.__name__, field.name))
                look(field.type)

    seen_kinds: list[inspect.Type] = []
    look(inspect.type_info(Report))
    assert needed == set(NOT_KNOWN)


def with_all(content: dict[str, Any], kinds: tuple[type, ...], value: object) -> dict[str, Any]:
    """``content`` with ``value`` in the place of each fact of these kinds."""
    content = copy.deepcopy(content)
    for section in ("snapshot", "measurements"):
        for path, there in list(places(content[section], (section,))):
            if isinstance(there, kinds) and not isinstance(there, bool):
                place: Any = content
                for step in path[:-1]:
                    place = place[step]
                place[path[-1]] = value
    return content


@cases("value", DIGITS, f"1.{DIGITS}+cu124", "", "((((", "٣.٤")
def test_no_text_breaks_judging(value: str, tried: dict[str, Any]) -> None:
    """Such as a version of more digits than Python reads: in every text, and in each version alone."""
    judged(with_all(tried, (str,), value))
    environment = ("snapshot", "environments", "items", 0)
    for path in (
        ("snapshot", "driver", "release"),
        ("snapshot", "driver", "cuda"),
        (*environment, "python"),
        (*environment, "distributions", 0, "version"),
        *((*environment, "frameworks", "items", 0, name) for name in ("version", "cuda")),
        (*environment, "frameworks", "items", 0, "requires"),
    ):
        judged(changed(tried, path, [f"torch=={value}", f"numpy<{value}"] if path[-1] == "requires" else value))


@cases("value", 0, -1, 2**62, -(2**62))
def test_no_number_breaks_judging(value: int, tried: dict[str, Any]) -> None:
    judged(with_all(tried, (int, float), value))


@cases("text, words",
    (b'{"schema_version": "1.0", "x": NaN}', "is not JSON"),
    (b'{"schema_version": "1.0", "duration_s": 1e999}', "not a report"),
    (b'{"schema_version": "1.0", "x": [' + b"{}," * (MOST_RECORDS + 1) + b"{}]}", "more than 500000 records"),
    (b'{"schema_version": "1.0", "x": [' + b"0," * (MOST_VALUES + 1) + b"0]}", "4000000 values"),
)  # fmt: skip
def test_what_is_beyond_bounds_is_refused(text: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_report(text)


def many_gpus(content: dict[str, Any], count: int) -> dict[str, Any]:
    gpu = content["snapshot"]["gpus"]["items"][0]
    items = [{**gpu, "uuid": f"GPU-{n:032x}", "pci_bus_id": f"{n:04x}:01:00.0", "index": n} for n in range(count)]
    return changed(content, ("snapshot", "gpus", "items"), items)


def test_more_gpus_than_a_machine_has_are_refused(tried: dict[str, Any]) -> None:
    most = MOST_JUDGED["GPUs"]
    with pytest.raises(UsageError, match=f"has {most + 1} GPUs; at most {most} are read"):
        read(many_gpus(tried, most + 1))


def spent(content: dict[str, Any]) -> float:
    started = time.process_time()
    judged(content)
    return time.process_time() - started


def test_judging_is_linear_in_gpus_and_distributions(tried: dict[str, Any]) -> None:
    """Four times as many must not take ten times as long: what grows with the square takes sixteen times."""
    environments = ("snapshot", "environments", "items", 0)
    env = tried["snapshot"]["environments"]["items"][0]

    def many(count: int) -> dict[str, Any]:
        packages = [{"source": "x", "name": f"package-{n}", "version": f"1.{n}"} for n in range(count * 20)]
        lines = [f"package-{n}>=1.{n}" for n in range(count * 5)]
        content = changed(many_gpus(tried, count), (*environments, "distributions"), packages + env["distributions"])
        return changed(content, (*environments, "frameworks", "items", 0, "requires"), lines)

    spent(many(1))  # what is read once is read
    few = min(spent(many(40)) for _ in range(2))
    assert spent(many(160)) < 10 * few


def test_judging_is_linear_in_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each framework lacks what it requires, so that each has a fix to be simulated."""
    judged_by_rules = evaluate._judge
    calls: list[None] = []

    def counted(*arguments: Any) -> Any:
        calls.append(None)
        return judged_by_rules(*arguments)

    monkeypatch.setattr(evaluate, "_judge", counted)

    def asked(count: int) -> int:
        names = ["torch", *(f"package-{number}" for number in range(count - 1))]
        wheels = tuple(
            Distribution(source="x", name=name, version="2.5.1", path=f"/v/{name}", channel="pip", requires=("numpy",))
            for name in names
        )
        found = tuple(Framework(source="x", name=name, version="2.5.1", path=f"/v/{name}") for name in names)
        environment = Environment(
            source="x", key="/v", prefix="/v", python="3.11.2", judged=True,
            frameworks=Listing(items=found, complete=True), distributions=wheels, distributions_complete=True,
        )  # fmt: skip
        calls.clear()
        judge(Snapshot(environments=Listing(items=(environment,), complete=True)), REQUEST)
        return len(calls)

    few = asked(25)
    assert asked(200) < 8 * few
