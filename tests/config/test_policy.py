"""What a configuration decides: about findings of a real machine, and about constructed checks."""

import datetime as dt
import html
from pathlib import Path

import msgspec

from envcheck.config.describe import configuration_for
from envcheck.config.meaning import of_gpus, policy
from envcheck.config.read import read
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import LONGEST_HEADLINE, Check, Report, Subject
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.policy import decide
from envcheck.pipeline.request import Ignoring, Policy, Request
from envcheck.pipeline.session import judge
from envcheck.report import Options, render
from tests.every import cases
from tests.test_machines import load

TODAY = dt.date(2026, 11, 1)
HOPPER = parse_components("gpu==H100,driver==550.54.14,os==linux,machine==x86_64,torch==2.5.1+cu124")
TOO_OLD = parse_components("gpu==A100,driver==440.33.01,os==linux,torch==2.5.1+cu124")


def machine(name: str) -> Snapshot:
    return load(name).snapshot


def judged(policy: Policy, *, assume: tuple[object, ...] = TOO_OLD, **more: object) -> Report:
    decided = msgspec.structs.replace(policy, today=TODAY)
    return judge(Snapshot(), Request(assume=assume, policy=decided, **more))  # type: ignore[arg-type]


def of_rule(report: Report, rule: str) -> Check:
    (check,) = [check for check in report.checks if check.rule == rule]
    return check


def ignoring(problem: str, days: int) -> Ignoring:
    return Ignoring(problem=problem, reason="known", until=TODAY + dt.timedelta(days=days))


def test_a_severity_replaces_the_rules_own_and_the_report_keeps_both() -> None:
    assert judged(Policy()).verdict == "fail"
    milder = judged(Policy(severity={"driver-too-old": "warn", "gpu-unsupported-by-driver": "warn"}))
    check = of_rule(milder, "driver-too-old")
    assert (check.status, check.judged) == ("warn", "fail")
    assert judged(Policy(severity={"no-framework": "fail"}), assume=HOPPER).verdict == "pass"


def test_what_follows_from_an_ignored_cause_is_a_finding_of_its_own() -> None:
    def check(name: str, status: str, because: str | None = None) -> Check:
        return Check(
            id=f"{name}@machine", rule=name, scope="node", layer="driver", subject=Subject(), status=status,  # type: ignore[arg-type]
            title=name, explained_by=because,
        )  # fmt: skip

    found = (check("a", "fail"), check("b", "fail", "a@machine"), check("c", "warn", "b@machine"))
    for decision, expected in (
        (Policy(), [None, "a@machine", "b@machine"]),
        (Policy(ignore=(ignoring("a", 1),)), [None, None, "b@machine"]),
        (Policy(severity={"a": "warn"}), [None, None, "b@machine"]),
        (Policy(severity={"b": "warn"}), [None, "a@machine", "b@machine"]),
    ):
        decided = decide(
            found, msgspec.structs.replace(decision, today=TODAY), {"a", "b", "c"}, Snapshot(), load_matrix()
        )
        assert [each.explained_by for each in decided[:3]] == expected


@cases("days, status, held",
    (30, "pass", True), (0, "pass", True), (-1, "warn", True), (-14, "warn", True), (-15, "fail", False),
)  # fmt: skip
def test_an_ignore_expires(days: int, status: str, held: bool) -> None:  # noqa: FBT001
    report = judged(Policy(ignore=(ignoring("driver-too-old", days), ignoring("gpu-unsupported-by-driver", 99))))
    assert next(check for check in report.checks if check.id == "ignore-expired@driver-too-old").status == status
    assert (of_rule(report, "driver-too-old").ignored is not None) is held
    assert (report.exit_code == 1) is (status == "fail")


def test_an_expired_ignore_of_what_is_not_found_counts_too() -> None:
    report = judged(Policy(ignore=(ignoring("driver-too-old", -20),)), assume=HOPPER)
    assert (report.verdict, report.primary) == ("fail", "ignore-expired")


def test_an_ignore_alone_is_nothing_that_passed() -> None:
    report = judge(Snapshot(), Request(policy=Policy(ignore=(ignoring("no-framework", 9),), today=TODAY)))
    assert (report.verdict, report.exit_code) == ("unknown", 3)


def test_only_the_named_subject_is_ignored() -> None:
    assert of_rule(judged(Policy(ignore=(ignoring("driver-too-old@nothing", 9),))), "driver-too-old").ignored is None


TOLD = "2 failures ignored: gpu-unsupported-by-driver, +1"
BOTH = Policy(ignore=(ignoring("driver-too-old", 9), ignoring("gpu-unsupported-by-driver", 9)))


@cases("only", (), ("gpu-code-missing",), ids=["passes", "fails"])
@cases("options", {}, {"quiet": True}, {"verbose": True}, {"width": 40}, ids=str)
def test_what_is_ignored_is_told_with_the_verdict(options: dict[str, int], only: tuple[str, ...]) -> None:
    """The text page keeps it at any width; a page that fails tells it too."""
    assume = TOO_OLD if not only else parse_components("gpu==B200,driver==440.33.01,os==linux,torch==2.5.1+cu124")
    report = judged(BOTH, assume=assume)
    assert report.verdict == ("fail" if only else "pass")
    assert report.headline.endswith(f"({TOLD})")
    assert len(report.headline) <= LONGEST_HEADLINE
    assert TOLD[:23] in " ".join(render(report, "text", Options(**options)).split())  # type: ignore[arg-type]


@cases("form", "json", "summary", "nagios", "npd", "junit", "sarif", "html", "markdown", "github")
def test_every_format_with_a_headline_tells_what_is_ignored(form: str) -> None:
    text = html.unescape(render(judged(BOTH), {"npd": "node-problem-detector"}.get(form, form), Options()))
    assert "2 failures ignored" in text


def test_notes_and_what_passed_are_not_told_as_ignored() -> None:
    report = judged(Policy(severity={"driver-too-old": "note"}, ignore=(ignoring("driver-too-old", 9),)))
    assert "ignored" not in report.headline


def test_a_forbidden_problem_must_be_looked_for_and_absent() -> None:
    assert of_rule(judged(Policy(forbid=("driver-too-old",)), assume=HOPPER), "forbidden-problem").status == "pass"
    found = judged(Policy(forbid=("driver-too-old",)))
    check = of_rule(found, "forbidden-problem")
    assert (check.status, check.explained_by) == ("fail", of_rule(found, "driver-too-old").id)
    left_out = judged(Policy(forbid=("driver-too-old",)), assume=HOPPER, skip=("driver-too-old",))
    assert of_rule(left_out, "forbidden-problem").status == "unknown"
    assert left_out.exit_code == 3
    open_question = judged(Policy(forbid=("gpu-init-failed",)), assume=HOPPER)
    assert of_rule(open_question, "forbidden-problem").status == "unknown"
    assert open_question.exit_code == 3


def test_a_forbidden_remark_fails() -> None:
    snapshot = machine("h100-tried-and-measured")
    remark = next(check.rule for check in judge(snapshot, Request()).checks if check.status == "note")
    report = judge(snapshot, Request(policy=Policy(forbid=(remark,))))
    assert report.verdict == "fail"
    assert {check.status for check in report.checks if check.rule == "forbidden-problem"} == {"fail"}
    assert "note" not in {check.status for check in report.checks if check.rule == remark}


def test_shares_of_the_ceiling() -> None:
    snapshot = machine("h100-tried-and-measured")
    assert snapshot.measurements
    for least, status in ((0.5, "pass"), (0.99, "fail")):
        report = judge(snapshot, Request(policy=Policy(shares={"device-memory": least})))
        assert {check.status for check in report.checks if check.rule == "below-minimum-share"} == {status}
        assert (report.verdict == "fail") is (status == "fail")
    report = judge(Snapshot(), Request(policy=Policy(shares={"device-memory": 0.5, "gemm": 0.5})))
    assert [check.status for check in report.checks if check.rule == "below-minimum-share"] == ["skipped", "skipped"]


def test_the_closest_word_decides_where_two_name_a_quantity() -> None:
    snapshot = machine("h100-tried-and-measured")
    report = judge(snapshot, Request(policy=Policy(shares={"device-memory": 0.99, "device-memory-copy": 0.1})))
    found = [check for check in report.checks if check.rule == "below-minimum-share"]
    assert {"copy" in check.id for check in found if check.status == "pass"} == {True}
    assert len({check.id for check in found}) == len(found)


@cases("name", "h200", "h200x4", "h100-tried-and-measured")
def test_what_init_writes_holds_on_the_machine_that_it_describes(name: str, tmp_path: Path) -> None:
    snapshot = machine(name)
    path = tmp_path / "envcheck.toml"
    path.write_text(configuration_for(judge(snapshot, Request())))
    place = read(str(path))
    required = (*(part for text in place.value("require") or () for part in parse_components(text)), *of_gpus(place))
    assert {"gpus", "gpu", "gpu-memory", "driver", "torch"} <= {component.name for component in required}
    report = judge(snapshot, Request(require=required, policy=policy(place)))
    asked = [check for check in report.checks if check.rule == "requirement-not-met"]
    assert {check.status for check in asked} == {"pass"}
    assert all(check.location and check.location.line for check in asked)
    assert place.config.target


@cases("text, status",
    ("gpu==A100|H200", "pass"), ("gpu==A100|H100", "fail"), ("gpu!=A100|H100", "pass"), ("gpu!=A100|H200", "fail"),
    ("gpu-memory>=139GiB", "pass"), ("gpu-memory>=141GiB", "fail"), ("gpu-memory<192GB", "pass"),
)  # fmt: skip
def test_models_and_memory_can_be_required(text: str, status: str) -> None:
    report = judge(machine("h200x4"), Request(require=parse_components(text)))
    assert of_rule(report, "requirement-not-met").status == status


def test_memory_that_nobody_knows_is_unknown() -> None:
    report = judge(Snapshot(), Request(assume=HOPPER, require=parse_components("gpu-memory>=1GiB")))
    assert of_rule(report, "requirement-not-met").status == "unknown"
    assert report.exit_code == 3
