"""Rule pages, the progress line, and what importing a renderer costs."""

from __future__ import annotations  # rules read the annotations of their functions as they are written

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envcheck.model.checks import Scope
from envcheck.model.events import Judged, ProbeFinished, ProbesPlanned, ProbeStarted, Progress
from envcheck.model.snapshot import ProbeRun, Snapshot
from envcheck.report.answers.rule import rule_list, rule_markdown, rule_page
from envcheck.report.progress import ProbeProgress, progress
from envcheck.rules.api import Facts, Outcome, Rule, rule
from tests.every import cases
from tests.report.examples import healthy


def example_rule(name: str, scope: Scope) -> Rule:
    def judge(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
        """A title that says what the problem is."""
        return None

    judge.__name__ = name
    return rule(layer="driver", scope=scope)(judge)


PAGE = (Path(__file__).with_name("data") / "a-problem.md").read_text(encoding="utf-8")
SHOWN = (Path(__file__).with_name("data") / "a-problem.txt").read_text(encoding="utf-8")


def test_a_rule_page_is_its_file_without_the_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envcheck.rules.documentation.folder", {"docs/rules": tmp_path}.__getitem__)
    monkeypatch.setattr("envcheck.report.answers.rule.lines_of", lambda _name: [])
    (tmp_path / "a-problem.md").write_text(PAGE)
    found = example_rule("a_problem", "env")
    assert rule_page(found) == SHOWN
    facts = "Layer: driver. Scope: env. Since envcheck 0.1.0.\n\n## What"
    assert rule_markdown(found) == PAGE.replace("## What", facts)


def test_the_rule_list_has_every_rule_once_by_scope() -> None:
    rules = [example_rule("z_last", "node"), example_rule("driver_too_old", "env"), example_rule("a" * 60, "node")]
    text = rule_list(rules)
    lines = text.splitlines()
    assert lines[0].startswith("Node")
    assert [line.split()[0] for line in lines if line.startswith("  ")] == ["a" * 60, "z-last", "driver-too-old"]
    assert all(len(line) <= 80 for line in lines)
    assert text.endswith("\n")
    assert rule_list([]) == ""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_progress_line_tells_what_runs() -> None:
    clock = Clock()
    line = ProbeProgress(clock)
    assert line.line(80) == "starting  0.0 s"
    line.add(ProbesPlanned((("nvml", "NVML"), ("cuda", "CUDA"), ("kernel", "Kernel"))))
    line.add(ProbeStarted("nvml", "NVML"))
    line.add(ProbeStarted("cuda", "CUDA"))
    line.add(Progress("nvml", "GPU 2 of 8"))
    clock.now += 1.25
    assert line.line(80) == "0 of 3 probes  1.2 s  nvml (GPU 2 of 8), cuda"
    line.add(ProbeFinished(ProbeRun(name="nvml", status="ok"), Snapshot()))
    line.add(Judged(healthy()))
    assert line.line(80) == "1 of 3 probes  1.2 s  cuda"
    assert line.line(10) == "1 of 3…"


def test_the_progress_line_is_safe() -> None:
    line = ProbeProgress(Clock())
    line.add(Progress("nvml", "\x1b[2J\nboo"))
    assert line.line(80) == "starting  0.0 s  nvml (\\x1b[2J\\nboo)"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_and_erased_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("envcheck.report.progress._SECONDS_BETWEEN", 0.01)
    stream = Terminal()
    with progress(stream) as on_event:
        on_event(ProbeStarted("nvml", "NVML"))
        for _ in range(500):
            if "nvml" in stream.getvalue():
                break
            on_event(Progress("nvml", ""))
            time.sleep(0.01)
    assert "nvml" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
    assert "\n" not in stream.getvalue()


def test_gpus_that_are_at_the_same_step_are_counted() -> None:
    line = ProbeProgress(Clock())
    for number in range(8):
        line.add(Progress("bench.gemm", "gemm bf16" if number else "gemm fp8", gpu=f"GPU-{number}"))
    assert line.line(80) == "starting  0.0 s  bench.gemm (gemm fp8), bench.gemm (gemm bf16) x7"


def plain(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, seconds: float, silence: float = 99.0) -> str:
    """What is written where lines stay, of two steps that take so long each."""
    monkeypatch.setattr("envcheck.report.progress._SECONDS_BETWEEN_LINES", 0.02)
    monkeypatch.setattr("envcheck.report.progress._SECONDS_OF_SILENCE", silence)
    with progress(stream, lines=True) as on_event:
        for step in ("gemm fp32", "gemm\x1b[2J"):
            on_event(Progress("bench.gemm", step))
            time.sleep(seconds)
    return stream.getvalue()


@cases("stream, term", (io.StringIO(), "xterm"), (Terminal(), "dumb"))
def test_progress_is_plain_lines_elsewhere(stream: io.StringIO, term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    text = plain(monkeypatch, stream, 0.3)
    first, second = text.splitlines()
    assert first.endswith("bench.gemm (gemm fp32)")
    assert second.endswith("bench.gemm (gemm\\x1b[2J)")
    assert not {"\x1b", "\r"} & set(text)
    assert text.endswith("\n")


def test_what_still_runs_is_said_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(plain(monkeypatch, io.StringIO(), 0.5, silence=0.1).splitlines()) > 2


@cases("lines, seconds", (True, 0.0), (False, 0.2))
def test_a_check_and_what_is_short_are_silent_elsewhere(
    lines: bool,  # noqa: FBT001 - a parameter
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("envcheck.report.progress._SECONDS_BETWEEN_LINES", 0.02 if seconds else 2.0)
    stream = io.StringIO()
    with progress(stream, lines=lines) as on_event:
        on_event(ProbeStarted("nvml", "NVML"))
        time.sleep(seconds)
    assert stream.getvalue() == ""


@cases("stream", io.StringIO(), Terminal())
def test_quiet_shows_no_progress(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("envcheck.report.progress._SECONDS_BETWEEN", 0.01)
    monkeypatch.setattr("envcheck.report.progress._SECONDS_BETWEEN_LINES", 0.01)
    with progress(stream, quiet=True, lines=True) as on_event:
        on_event(ProbeStarted("nvml", "NVML"))
        time.sleep(0.1)
    assert stream.getvalue() == ""


def test_progress_is_erased_when_the_run_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt), progress(stream):
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_format_imports_only_what_it_needs() -> None:
    program = (
        "import sys, envcheck.report, envcheck.report.json, envcheck.report.summary;"
        "print(*sorted(name for name in sys.modules if name.startswith(('envcheck', 'textual', 'rich'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "envcheck.text.encode" in loaded
    heavy = {
        "envcheck.report.text", "envcheck.report.page.stack", "envcheck.report.page.pen", "envcheck.rules",
        "envcheck.knowledge",
    }  # fmt: skip
    assert not loaded & heavy
    assert not any(name.startswith(("textual", "rich")) for name in loaded)
