"""Rule pages, the progress line, and what importing a renderer costs."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from envcheck.checks import Scope
from envcheck.events import Judged, ProbeFinished, ProbesPlanned, ProbeStarted, Progress
from envcheck.report.progress import ProgressLine, progress
from envcheck.report.rule_page import rule_list, rule_page
from envcheck.rules.api import Facts, Outcome, Rule, rule
from envcheck.snapshot import ProbeRun, Snapshot
from tests.report.examples import healthy


def example_rule(name: str, scope: Scope) -> Rule:
    def judge(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
        """A title that says what the problem is.

        What it checks
            A thing.
        """
        return None

    judge.__name__ = name
    return rule(layer="driver", scope=scope)(judge)


def test_a_rule_page_is_the_documentation() -> None:
    found = example_rule("driver_too_old", "env")
    assert rule_page(found) == "A title that says what the problem is.\n\nWhat it checks\n    A thing.\n"


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


def finished(name: str) -> ProbeFinished:
    return ProbeFinished(ProbeRun(name=name, status="ok"), Snapshot())


def test_the_progress_line_tells_what_runs() -> None:
    clock = Clock()
    line = ProgressLine(clock)
    assert line.text(80) == "starting  0.0 s"
    line.on_event(ProbesPlanned((("nvml", "NVML"), ("cuda", "CUDA"), ("kernel", "Kernel"))))
    line.on_event(ProbeStarted("nvml", "NVML"))
    line.on_event(ProbeStarted("cuda", "CUDA"))
    line.on_event(Progress("nvml", "GPU 2 of 8"))
    clock.now += 1.25
    assert line.text(80) == "0 of 3 probes  1.2 s  nvml (GPU 2 of 8), cuda"
    line.on_event(finished("nvml"))
    line.on_event(Judged(healthy()))
    assert line.text(80) == "1 of 3 probes  1.2 s  cuda"
    assert line.text(10) == "1 of 3 pr…"


def test_the_progress_line_is_safe() -> None:
    line = ProgressLine(Clock())
    line.on_event(Progress("nvml", "\x1b[2J\nboo"))
    assert line.text(80) == "starting  0.0 s  nvml (\\x1b[2J\\nboo)"


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
            _pause()
    assert "nvml" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
    assert "\n" not in stream.getvalue()


def _pause() -> None:
    import time  # noqa: PLC0415 - only this test waits

    time.sleep(0.01)


@pytest.mark.parametrize(
    ("stream", "term", "quiet"),
    [(io.StringIO(), "xterm", False), (Terminal(), "dumb", False), (Terminal(), "xterm", True)],
)
def test_progress_is_silent_elsewhere(
    stream: io.StringIO,
    term: str,
    quiet: bool,  # noqa: FBT001 - a parameter
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", term)
    with progress(stream, quiet=quiet) as on_event:
        on_event(ProbeStarted("nvml", "NVML"))
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
    assert "envcheck.report.encode" in loaded
    heavy = {
        "envcheck.report.text",
        "envcheck.report.stack",
        "envcheck.report.pen",
        "envcheck.rules",
        "envcheck.compat",
    }
    assert not loaded & heavy
    assert not any(name.startswith(("textual", "rich")) for name in loaded)
