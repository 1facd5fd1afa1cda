"""README and CONTRIBUTING stay short, README's commands are the gate's, and every format is named."""

import re
from pathlib import Path

from envcheck.report import FORMATS
from tests.every import cases

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
_MOST_BYTES = 6000


@cases("name", "README.md", "CONTRIBUTING.md")
def test_the_page_is_short(name: str) -> None:
    assert len((ROOT / name).read_bytes()) <= _MOST_BYTES, "move what is not for everybody to docs/"


def test_every_format_is_named() -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    listed = page.partition("## Formats\n")[2].partition("\n## ")[0]
    assert {name for name in FORMATS if f"`{name}`" not in listed} == set()


def test_the_gate_runs_readmes_test_command() -> None:
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert ".venv/bin/pip install -q -e '.[test]' && .venv/bin/python -m pytest" in README
    assert 'add main --refresh-package gpu-envcheck --compile-bytecode ".[test]"\n' in gate
    assert '"$work/main/bin/python" -m pytest' in gate


def test_the_row_that_contributing_shows_is_one() -> None:
    shown = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## A row\n")[2].partition("## A rule")[0]
    parts = re.findall(r"(?m)(?:^ {4}(?:\[|\w+ = ).*\n)+", shown)
    rows = (ROOT / "matrix" / "flaws.toml").read_text(encoding="utf-8")
    assert len(parts) == 2
    assert [part for part in parts if re.sub(r"(?m)^ {4}", "", part) not in rows] == []
