"""README says what is so: its sample is what the code prints, its options exist, its commands are the gate's."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from envcheck.cli.options import parse
from envcheck.pipeline.session import Request, judge
from envcheck.report import FORMATS, Options, render
from envcheck.snapshot import Snapshot

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


class Recording(msgspec.Struct):
    snapshot: Snapshot


def test_the_sample_of_a_healthy_machine_is_what_is_printed() -> None:
    text = (ROOT / "tests" / "machines" / "h200x4-two-by-variable.json").read_bytes()
    report = judge(msgspec.json.decode(text, type=Recording).snapshot, Request())
    assert "".join(f"    {line}\n" for line in render(report, "text", Options()).splitlines()) in README


def test_the_options_exist() -> None:
    commands = re.findall(r"^ {4}envcheck (check .*?)(?: {2,}#.*)?$", README, re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        parse([word.strip("'") for word in command.split()], {})


def test_every_format_is_named() -> None:
    listed = README.partition("**Formats**")[2].partition("**Without a machine**")[0]
    assert {name for name in FORMATS if f"`{name}`" not in listed} == set()


def test_the_gate_runs_readmes_test_command() -> None:
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert ".venv/bin/pip install -q -e '.[test]' && .venv/bin/python -m pytest" in README
    assert 'pip install -q -c constraints.txt "${@:4}" ".[$3]"' in gate
    assert 'fresh "$python" main test' in gate
    assert "-m pytest" in gate
