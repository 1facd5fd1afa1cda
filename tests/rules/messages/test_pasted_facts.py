"""What rules make of a text: events by number, stated libraries, chained errors, and a text that tells little."""

from benchmarks.accuracy import judge as judge_text
from envcheck.errors import ExitCode
from envcheck.importers import read_text
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import frameworks_in
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.rules.catalog import find_rule
from envcheck.rules.engine.cause import primary
from tests.every import cases, every_tabled
from tests.rules.machines import check_of, kernel, log, machine, statuses, xid


def cause_in(text: str) -> str | None:
    found = primary(judge_text(text)[1])
    return found.rule if found else None


# --- events by number ---------------------------------------------------------------------------------------------
def test_the_catalogue_is_whole_and_names_rules_that_exist() -> None:
    rows = load_matrix().xids
    assert [row.number for row in rows] == sorted({row.number for row in rows})
    assert len(rows) == 172
    assert {row.problem for row in rows if find_rule(row.problem) is None} == set()


@cases("number, status", (31, "warn"), (62, "fail"), (45, "note"), (106, "note"))
def test_an_event_weighs_what_nvidia_asks_to_do(number: int, status: str) -> None:
    snapshot = machine(kernel=kernel(log=log(xid(number, "an event"))))
    assert statuses("gpu-error-logged", snapshot) == (status,)
    assert str(number) in check_of("gpu-error-logged", snapshot).message


def test_no_event_is_no_finding() -> None:
    assert statuses("gpu-error-logged", machine()) == ()


# --- verdicts of other tools --------------------------------------------------------------------------------------
H100 = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0d9a31c2-0000-0000-0000-000000000002)\nDriver Version: 550.90.07\n"


@every_tabled
def test_a_failure_that_a_tool_gives_no_reason_for_leaves_no_verdict(line: str) -> None:
    report = session.judge(read_text(H100 + line), Request())
    assert (report.verdict, cause_in(H100 + line)) == ("unknown", None)
    (check,) = [each for each in report.checks if each.rule == "text-tells-too-little"]
    assert check.evidence[0].value == line.strip()


@every_tabled
def test_a_slow_or_hanging_program_is_not_told_to_be_sound(line: str) -> None:
    report = session.judge(read_text(f"{H100}torch 2.4.0+cu121\n{line}\n"), Request())
    (check,) = [each for each in report.checks if each.rule == "text-tells-too-little"]
    assert (report.verdict, check.evidence[0].value) == ("unknown", line)
    assert ("does not show why" in check.message, bool(check.fixes[0].command)) == (True, True)


@every_tabled
def test_a_tool_that_finds_nothing_wrong_alarms_nobody(line: str) -> None:
    _, checks = judge_text(H100 + line)
    assert [check.id for check in checks if check.status in ("fail", "warn")] == []
    assert session.judge(read_text(H100 + line), Request()).verdict == "pass"


# --- what several processes, or a library, say of their releases ---------------------------------------------------
@every_tabled
def test_the_cudnn_that_pytorch_answers_is_no_longer_inferred(line: str) -> None:
    snapshot, _ = judge_text(f"torch 2.11.0+cu128\n{line}")
    assert snapshot is not None
    assert [each.cudnn for each in frameworks_in(snapshot.judged_environment)] == ["9.10.2"]


def test_a_release_with_builds_for_two_cudas_has_neither() -> None:
    snapshot, _ = judge_text("jax==0.4.25\njaxlib==0.4.25\n")
    assert snapshot is not None
    assert [each.cuda for each in frameworks_in(snapshot.judged_environment)] == [None, None]


# --- a text that tells little -------------------------------------------------------------------------------------
def test_words_of_the_field_alone_end_without_a_verdict_and_with_what_to_paste() -> None:
    report = session.judge(read_text("my cuda does not want what I want\n"), Request())
    assert (report.verdict, report.exit_code) == ("unknown", ExitCode.UNKNOWN)
    (check,) = [each for each in report.checks if each.rule == "text-tells-too-little"]
    assert "nvidia-smi" in check.message


def test_an_unknown_error_ends_with_what_was_understood() -> None:
    text = "torch 2.5.1+cu124, RTX 4090, driver 550.54.15\nRuntimeError: CUDA error: the flux is missing\n"
    report = session.judge(read_text(text), Request())
    assert report.verdict == "unknown"
    (check,) = [each for each in report.checks if each.rule == "text-tells-too-little"]
    assert "Understood: GPU RTX 4090, driver 550.54.15, torch 2.5.1+cu124" in check.message
    assert check.evidence[0].value == "RuntimeError: CUDA error: the flux is missing"
