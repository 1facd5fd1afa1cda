"""No verdict without a look: recorded machines with probes that died, and the reports that cannot be built.

The fault matrix is generated: every probe that a check starts, every way to die, every recorded machine, every format
whose readers go by a status.
"""

import itertools
import json
from collections.abc import Iterator
from functools import cache

import msgspec
import pytest

from envcheck.collect.catalog import ProbeSpec, all_probes
from envcheck.model.checks import Ground, Report
from envcheck.model.snapshot import Environment, Listing, ProbeRun, Snapshot
from envcheck.pipeline.session import Request, judge
from envcheck.report import Options, exit_status, render
from envcheck.report.saved import read_report
from tests.every import cases
from tests.known import known
from tests.test_machines import FOLDER, load
from tests.thorough import sample

MACHINES = sorted(path.relative_to(FOLDER).as_posix()[:-5] for path in FOLDER.rglob("*.json"))
RECORDED = [name for name in MACHINES if "/" not in name]
READING = [spec for spec in all_probes() if spec.kind in ("file", "driver")]
WAYS = ("failed", "crashed", "timed-out", "skipped", "partial")
FORMATS = ("text", "json", "nagios", "slurm-reason")
ASKED = Request(tried=True)
"""No verdict depends on which fixes would help; to try them takes most of the time of a machine with failures."""


@cache
def recorded(name: str) -> Snapshot:
    return load(name).snapshot


def with_dead(snapshot: Snapshot, specs: tuple[ProbeSpec, ...], way: str) -> Snapshot:
    """The machine as it is read where the probes die: without what they alone fill, or with a part of it."""
    if way != "partial":
        gone = {path for spec in specs for path in spec.fills}
        snapshot = msgspec.structs.replace(snapshot, **dict.fromkeys({path for path in gone if "." not in path}))
        if snapshot.driver is not None:
            fields = {path.removeprefix("driver.") for path in gone if path.startswith("driver.")}
            snapshot = msgspec.structs.replace(
                snapshot, driver=msgspec.structs.replace(snapshot.driver, **dict.fromkeys(fields))
            )
    status = "crashed" if way == "partial" else way
    dead = tuple(
        ProbeRun(
            name=spec.name,
            title=spec.title,
            status=status,  # type: ignore[arg-type]
            detail="ended by SIGKILL",
            cut_short=way == "skipped",
            fills=spec.fills,
        )
        for spec in specs
    )
    names = {spec.name for spec in specs}
    kept = tuple(run for run in snapshot.runs if run.name not in names)
    return msgspec.structs.replace(snapshot, runs=(*kept, *dead))


def faults(name: str) -> Iterator[tuple[tuple[ProbeSpec, ...], str]]:
    """Each probe by itself, in every way or, in the gate, in every other one, which are the others of the next probe;
    of the pairs each machine has its share in the gate, and all of them in the lab.
    """
    place = RECORDED.index(name)
    yield from sample([*itertools.product(itertools.combinations(READING, 1), WAYS)][place % 2 :], 2)
    yield from ((pair, WAYS[2]) for pair in sample([*itertools.combinations(READING, 2)][place:], len(RECORDED)))


@pytest.mark.parametrize("name", RECORDED)
def test_no_machine_passes_where_a_probe_died(name: str) -> None:
    healthy = judge(recorded(name), ASKED)
    for specs, way in faults(name):
        report = judge(with_dead(recorded(name), specs, way), ASKED)
        told = f"{name}, {way}: {', '.join(spec.name for spec in specs)}"
        assert report.verdict in ("unknown", "fail"), f"{told}: {report.headline}"
        if report.verdict == "unknown":
            assert report.headline.startswith("no verdict: "), told
            open_grounds = [ground for ground in report.grounds if not ground.holds]
            assert {spec.name for spec in specs} <= {ground.source for ground in open_grounds}, told
        elif healthy.verdict != "fail":
            assert "missing" in report.headline or "not" in report.headline, f"{told}: {report.headline}"


@cases("name", "h100-tried-and-measured", "h200-tensorflow", "h200-tensorrt")
def test_no_trial_or_measurement_that_died_is_a_pass(name: str) -> None:
    snapshot = recorded(name)
    ran = [number for number, run in enumerate(snapshot.runs) if run.status == "ok"]
    ways = itertools.product(("failed", "crashed", "timed-out"), ran, (snapshot.measurements, ()))
    for status, number, figures in sample(list(ways), 5):  # in turn with figures and without
        dead = msgspec.structs.replace(snapshot.runs[number], status=status, detail="ended by SIGKILL")
        runs = (*snapshot.runs[:number], dead, *snapshot.runs[number + 1 :])
        report = judge(msgspec.structs.replace(snapshot, runs=runs, measurements=figures), ASKED)
        assert report.exit_code in (1, 3), f"{name}, {dead.name} {status}: {report.headline}"


def test_a_dead_probe_beside_a_pasted_text_leaves_no_verdict() -> None:
    """As ``explain --here`` joins them."""
    environments = next(spec for spec in READING if spec.name == "environments")
    here = with_dead(recorded("h200"), (environments,), "timed-out")
    told = ProbeRun(name="nvidia-smi", title="Pasted: nvidia-smi", status="ok")
    assert judge(msgspec.structs.replace(here, runs=(*here.runs, told)), Request()).verdict == "unknown"


@cache
def timed_out() -> list[tuple[ProbeSpec, Report]]:
    return [(spec, judge(with_dead(recorded("h200"), (spec,), "timed-out"), Request())) for spec in READING]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_says_so(form: str) -> None:
    for spec, report in timed_out():
        text = render(report, form, Options())
        assert exit_status(report, form) != 0, f"{spec.name}: {text}"
        assert text.strip(), spec.name
        if form == "json":
            grounds = json.loads(text)["grounds"]
            assert next(each["what"] for each in grounds if each["status"] == "not-read") == spec.title


@pytest.mark.parametrize("name", RECORDED)
def test_what_nobody_looked_at_is_no_pass(name: str) -> None:
    """Facts without the row of a probe: as in a report of which a part was cut away."""
    for section in ("environments", "gpus", "driver"):
        snapshot = msgspec.structs.replace(recorded(name), **{section: None})
        kept = tuple(run for run in snapshot.runs if not any(each.startswith(section) for each in run.fills))
        report = judge(msgspec.structs.replace(snapshot, runs=kept), ASKED)
        assert report.verdict in ("unknown", "fail"), f"{name} without {section}: {report.headline}"
        unseen = [ground.what for ground in report.grounds if ground.status == "not-read"]
        assert len(unseen) == 1
        for form in ("text", "markdown", "html"):
            assert f"Not looked at: {unseen[0]}" in render(report, form, Options()), form


@cases("name", "h200", "h200x4")
def test_a_list_of_packages_that_is_cut_short_is_no_pass(name: str) -> None:
    snapshot = recorded(name)
    assert snapshot.judged_environment is not None
    cut = (
        msgspec.structs.replace(snapshot.judged_environment, frameworks=Listing(items=(), complete=False)),
        msgspec.structs.replace(snapshot.judged_environment, frameworks=None),
        msgspec.structs.replace(snapshot.judged_environment, distributions=None),
    )
    for environment in cut:
        changed = msgspec.structs.replace(snapshot, environments=Listing(items=(environment,), complete=True))
        report = judge(changed, Request())
        assert report.verdict == "unknown", report.headline
        assert environment.key in report.headline


def test_environments_of_which_none_is_judged_are_no_pass() -> None:
    snapshot = recorded("h200")
    named = msgspec.structs.replace(known(snapshot.judged_environment), judged=False)
    for listing in (Listing(items=(named,), complete=True), Listing(items=(), complete=False)):
        report = judge(msgspec.structs.replace(snapshot, environments=listing), Request())
        assert report.verdict == "unknown", report.headline
    nothing: Listing[Environment] = Listing(items=(), complete=True)
    assert judge(msgspec.structs.replace(snapshot, environments=nothing), Request()).verdict == "pass"


@pytest.mark.parametrize("name", [name for name in MACHINES if "/" in name])
def test_a_failure_that_is_certain_stays_one(name: str) -> None:
    snapshot = recorded(name)
    title = "Copies of CUDA's libraries"
    dead = ProbeRun(name="libraries", title=title, status="timed-out", detail="10 s", fills=("libraries",))
    report = judge(msgspec.structs.replace(snapshot, runs=(*snapshot.runs, dead)), Request())
    assert (report.verdict, report.exit_code) == ("fail", 1)


def test_a_probe_that_the_scope_does_not_need_may_die() -> None:
    libraries = next(spec for spec in READING if spec.name == "libraries")
    snapshot = with_dead(recorded("h200"), (libraries,), "timed-out")
    assert judge(snapshot, Request(scopes=frozenset({"node"}))).verdict == "pass"
    assert judge(snapshot, Request(scopes=frozenset({"env"}))).verdict == "unknown"


def test_grounds_name_what_was_read_and_judged() -> None:
    grounds = {ground.what: ground.status for ground in judge(recorded("h200"), Request()).grounds}
    assert grounds == {
        "GPUs": "judged",
        "driver": "judged",
        "packages of /opt/torch/.venv": "judged",
        "torch in /opt/torch/.venv": "judged",
    }


@cases(
    "grounds, verdict",
    ((), "pass"),
    ((Ground(what="GPUs", status="absent"),), "pass"),
    ((Ground(what="GPUs", status="judged"), Ground(what="driver", status="not-read")), "pass"),
    ((Ground(what="GPUs", status="judged"), Ground(what="driver", status="not-judged")), "warn"),
)
def test_a_report_that_passes_without_its_grounds_cannot_be_built(grounds: tuple[Ground, ...], verdict: str) -> None:
    report = judge(recorded("h200"), Request())
    with pytest.raises(ValueError, match="the verdict stands on what was not read or not judged"):
        msgspec.structs.replace(report, grounds=grounds, verdict=verdict)


def test_a_saved_report_that_claims_to_pass_is_read_without_a_verdict() -> None:
    saved = msgspec.json.decode(msgspec.json.encode(judge(recorded("h200"), Request())))
    for grounds in ([], [{"what": "GPUs", "status": "not-read"}]):
        report: Report = read_report(msgspec.json.encode({**saved, "grounds": grounds}))
        assert (report.verdict, report.exit_code) == ("unknown", 3)
        assert report.snapshot is not None
