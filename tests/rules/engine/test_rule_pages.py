"""Rules and their pages in ``docs/rules`` come in pairs, and a check opens no page."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck.report import render
from envcheck.report.answers.rule import rule_markdown, rule_page
from envcheck.rules import documentation
from envcheck.rules.api import Rule
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.rules.documentation import (
    FOLDER,
    LINES,
    RELATED,
    SOURCES,
    example_lines,
    lines_of,
    named_on,
    page_of,
    write_compiled_pages,
)
from tests.every import every
from tests.installed import INSTALLED, ROOT
from tests.rules.engine.test_rule_catalog import HEADINGS
from tests.test_machines import report_on

PAGES = ROOT / FOLDER
RULES = all_rules()


def test_each_rule_has_a_page_and_each_page_a_rule() -> None:
    assert {file.name for file in PAGES.iterdir()} == {f"{rule.name}.md" for rule in RULES}


@every(RULES)
def test_the_page_has_name_title_and_sections(rule: Rule) -> None:
    page = page_of(rule.name)
    head, title, *_ = page.split("\n\n")
    assert head == f"# `{rule.name}`"
    assert title == f"{rule.title}.", "the function or the row says the title, and so does the page"
    _, *sections = re.split(r"(?m)^## ", page)
    headings = [section.partition("\n")[0] for section in sections]
    assert headings in (HEADINGS, [heading for heading in HEADINGS if heading != RELATED])
    assert all(section.partition("\n")[2].strip() for section in sections)
    assert page.endswith("\n")
    assert not re.search(r"[^\S\n]\n|\n\n\n|\t|\x1b|(?m:^(?! {4}).*<[a-zA-Z/!])", page), "no stray blanks, and no HTML"


@every(RULES)
def test_each_source_is_an_address(rule: Rule) -> None:
    lines = page_of(rule.name).partition("## Sources\n\n")[2].splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"- \[[^\[\]]+\]\(https://[^\s()]+\)", line), line
    assert len(rule.sources) == len(lines)


@every(RULES)
def test_the_rules_that_a_page_names_exist(rule: Rule) -> None:
    page = page_of(rule.name)
    named = named_on(page)
    assert len(named) == page.partition(f"## {RELATED}\n")[2].count("- [`")
    assert set(named) <= {other.name for other in RULES} - {rule.name}


@every(RULES)
def test_a_page_that_is_shown_has_no_character_that_a_terminal_obeys(rule: Rule) -> None:
    for shown in (rule_page(rule), rule_markdown(rule)):
        assert all(character.isprintable() or character == "\n" for character in shown)


def test_a_page_that_is_missing_is_empty_and_cites_nothing() -> None:
    assert documentation.page_of("no-such-rule") == ""
    assert documentation.sources_of("no-such-rule") == []


def test_what_the_wheel_carries_of_the_pages_is_what_a_checkout_reads(tmp_path: Path) -> None:
    write_compiled_pages(PAGES, ROOT / "matrix", tmp_path)
    cited = json.loads((tmp_path / SOURCES).read_bytes())
    assert cited == {rule.name: [[source.title, source.address] for source in rule.sources] for rule in RULES}
    lines = json.loads((tmp_path / LINES).read_bytes())
    assert {name: lines.get(name, []) for name in cited} == {name: lines_of(name) for name in cited}


ROWS = """
[[error]]
problem = "a-problem"
priority = 2
examples = ["the second line of `a` problem", "a line of the same row"]

[[error]]
problem = "a-problem"
priority = 1
examples = ["the first <b>line</b>\\u001b[2J"]

[[error]]
problem = "another-problem"
priority = 3
"""


def test_a_page_shows_an_example_of_each_row_and_obeys_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tmp_path / "errors.toml"
    rows.write_text(ROWS)
    found = example_lines(rows)
    assert found == {
        "a-problem": ["the first <b>line</b>\x1b[2J", "the second line of `a` problem"],
        "another-problem": [],
    }
    monkeypatch.setattr("envcheck.report.answers.rule.lines_of", lambda _name: found["a-problem"])
    shown = "    the first <b>line</b>\\x1b[2J\n    the second line of `a` problem\n\n"
    rule = find_rule("gpu-lost")
    assert rule is not None
    assert f"## Error lines\n\nLines like these lead to it:\n\n{shown}" in rule_markdown(rule)


PROGRAM = f"""
import os, sys
from envcheck.cli.main import main

opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
try:
    sys.exit(main(sys.argv[1:]))
finally:
    print(*(os.path.basename(path) for path in opened if {FOLDER!r} in path), file=sys.stderr)
"""


def opened(tmp_path: Path, *arguments: str) -> tuple[list[str], str]:
    """The names of the files of ``docs/rules`` that an installed envcheck opens, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(INSTALLED)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    return done.stderr.split(), done.stdout


def saved(tmp_path: Path, name: str) -> str:
    """The report of a recorded machine as a file."""
    file = tmp_path / "report.json"
    file.write_text(render(report_on(name), "json"))
    return str(file)


def test_a_check_opens_no_page_and_cites_what_they_cite(tmp_path: Path) -> None:
    files, printed = opened(tmp_path, "check", "--from", saved(tmp_path, "constructed/gpu-lost"), "--json")
    assert files == [SOURCES]
    rule = find_rule("gpu-lost")
    assert rule is not None
    (found,) = (check for check in json.loads(printed)["checks"] if check["rule"] == rule.name)
    assert [source["address"] for source in found["sources"]] == [source.address for source in rule.sources]


def test_a_check_without_findings_opens_nothing(tmp_path: Path) -> None:
    files, printed = opened(tmp_path, "check", "--from", saved(tmp_path, "h200"), "--json")
    assert not {check["status"] for check in json.loads(printed)["checks"]} & {"fail", "warn", "note"}
    assert files == []


def test_a_shown_page_is_the_only_one_opened(tmp_path: Path) -> None:
    files, printed = opened(tmp_path, "rule", "gpu-lost")
    assert set(files) == {"gpu-lost.md", SOURCES, LINES}
    assert printed.startswith("A GPU fell off the bus.")
