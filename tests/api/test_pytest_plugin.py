"""The plugin: its header line, its marker, and that it costs nothing where neither is used."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.cli.calling import ROOT
from tests.installed import INSTALLED

_CONFTEST = """
import envcheck, msgspec
from envcheck.model.snapshot import Snapshot

class Recording(msgspec.Struct):
    snapshot: Snapshot

facts = msgspec.json.decode(open({machine!r}, "rb").read(), type=Recording).snapshot
real = envcheck.check
envcheck.check = lambda **asked: real(given=facts, **asked)
"""
_TEST = """
import pytest

@pytest.mark.needs_gpu({asked})
def test_on_gpu_{number}():
    pass
"""
WANTED = {
    "": ("passed", ""),
    "memory='24GiB', capability='8.0'": ("passed", ""),
    "capability='9.0'": ("passed", ""),
    "capability='10.0'": ("skipped", "needs 1 GPU with at least compute capability 10.0; found NVIDIA H200 (9.0, 1"),
    "memory='1 TiB'": ("skipped", "needs 1 GPU with at least memory 1 TiB; found NVIDIA H200"),
    "count=8": ("skipped", "needs 8 GPUs; found NVIDIA H200"),
    "memory='much'": ("error", 'needs_gpu: write memory="24GiB"'),
    "memory=24": ("error", 'needs_gpu: write memory="24GiB"'),
    "'24GiB'": ("error", 'needs_gpu: write memory="24GiB"'),
    "mem='24GiB'": ("error", 'needs_gpu: write memory="24GiB"'),
    "capability=[8]": ("error", 'needs_gpu: write memory="24GiB"'),
    "count='2'": ("error", 'needs_gpu: write memory="24GiB"'),
    "capability=9.0": ("passed", ""),
    "count=0": ("error", "a count of 1 or more"),
    "memories='1GiB'": ("error", 'needs_gpu: write memory="24GiB"'),
}
OTHERS = [part for name in ("hypothesispytest", "xdist") for part in ("-p", f"no:{name}")]
"""Plugins that are not needed, and take longer to import than the tests."""


def run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-rs", "--strict-markers", "-p", "no:cacheprovider", *OTHERS, *options]
    variables = {**os.environ, "PYTHONPATH": str(INSTALLED), "COLUMNS": "300", "CI": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, env=variables, check=False, timeout=120)
    return done.stdout.decode() + done.stderr.decode()


def project(folder: Path, *asked: str) -> Path:
    (folder / "conftest.py").write_text(_CONFTEST.format(machine=str(ROOT / "tests/machines/h200.json")))
    tests = [_TEST.format(asked=arguments, number=number) for number, arguments in enumerate(asked)]
    (folder / "test_marked.py").write_text("".join(tests))
    return folder


def outcomes(junit: Path) -> list[tuple[str, str]]:
    """The outcome of each test and the words that it comes with."""
    found = []
    for case in ET.parse(junit).getroot().iter("testcase"):
        outcome = next(iter(case), None)
        found.append(("passed", "") if outcome is None else (outcome.tag, outcome.get("message") or ""))
    return found


def test_a_marked_test_runs_where_a_gpu_fits(tmp_path: Path) -> None:
    run(project(tmp_path, *WANTED), "--junit-xml=found.xml")
    found = outcomes(tmp_path / "found.xml")
    for (asked, (outcome, words)), (seen, said) in zip(WANTED.items(), found, strict=True):
        assert seen == outcome, asked
        assert words in said, asked


def test_without_a_working_gpu_the_reason_is_the_finding(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import envcheck\nfrom envcheck.model.snapshot import Listing, Snapshot\nreal = envcheck.check\n"
        "facts = Snapshot(gpus=Listing(items=(), complete=True))\n"
        "envcheck.check = lambda **asked: real(given=facts, **asked)\n"
    )
    (tmp_path / "test_marked.py").write_text(_TEST.format(asked="", number=0))
    out = run(tmp_path)
    assert "1 skipped" in out
    assert "no GPU works here: No NVIDIA GPU" in out


def test_the_header_shows_verdict_and_cause(tmp_path: Path) -> None:
    assert "envcheck: PASS GPU, driver and frameworks look compatible" in run(project(tmp_path, ""), "--envcheck")
    assert "envcheck: " not in run(tmp_path)


def test_unused_it_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "import sys\n\ndef test_plain():\n"
        "    ours = {name for name in sys.modules if name.partition('.')[0] in ('envcheck', 'msgspec')}\n"
        "    assert ours == {'envcheck', 'envcheck.pytest_plugin'}\n"
    )
    assert "1 passed" in run(tmp_path)
