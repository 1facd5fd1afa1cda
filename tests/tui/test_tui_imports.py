"""The application and the command line stand apart, and the first screen waits for nothing that it does not need."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.installed import INSTALLED

ROOT = Path(__file__).resolve().parents[2]


def python(code: str, folder: Path = INSTALLED) -> str:
    return subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip


def test_the_first_screen_imports_neither_a_driver_nor_what_judges() -> None:
    loaded = python("import sys, envcheck.tui.app, envcheck.pipeline.request; print(*sys.modules)").split()
    heavy = {"pynvml", "cuda", "envcheck.pipeline.session", "envcheck.collect.gather", "envcheck.rules.catalog"}
    assert not heavy & set(loaded)


def test_a_check_never_imports_textual() -> None:
    code = "import sys; from envcheck.cli.main import main; main(['check', '--only', 'no-nvidia-gpu', '--json'])"
    code += "; print(); print(*sys.modules)"
    loaded = python(code).rsplit("\n", 2)[-2].split()
    assert "envcheck.pipeline.session" in loaded
    assert not {"textual", "rich", "envcheck.tui"} & set(loaded)


def without_the_application(tmp_path: Path) -> Path:
    shutil.copytree(INSTALLED / "envcheck", tmp_path / "envcheck")
    shutil.rmtree(tmp_path / "envcheck/tui")
    return tmp_path


def test_without_the_application_the_command_line_is_whole(tmp_path: Path) -> None:
    folder = without_the_application(tmp_path)
    told = on_a_terminal([], folder)
    assert "pass" in told or "fail" in told
    assert "\x1b[?1049h" not in told
    refused = subprocess.run(
        [sys.executable, "-B", "-m", "envcheck", "tui"], cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "use envcheck check" in refused.stderr


def test_on_a_dumb_terminal_and_in_ci_it_is_the_text_report() -> None:
    for variables in ({"TERM": "dumb"}, {"CI": "1"}):
        told = on_a_terminal([], INSTALLED, **variables)
        assert "\x1b[?1049h" not in told
        assert "GPU" in told


def on_a_terminal(arguments: list[str], folder: Path, **variables: str) -> str:
    """What ``envcheck`` writes to a terminal until it ends."""
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    environment = {**kept, "TERM": "xterm-256color", "PYTHONPATH": str(folder), **variables}
    controller, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-B", "-m", "envcheck", *arguments],
        cwd=folder, env=environment, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    told, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([controller], [], [], 0.1)[0]:
            try:
                piece = os.read(controller, 65536)
            except OSError:
                break
            if not piece:
                break
            told += piece
    child.wait(10)
    os.close(controller)
    return told.decode("utf-8", "replace")
