"""Rules and their pages in ``docs/rules`` come in pairs, and a check opens no page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from envcheck.report import render
from envcheck.report.answers.rule import rule_markdown
from envcheck.rules import documentation
from envcheck.rules.api import Rule
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.rules.documentation import FOLDER, SOURCES, write_sources
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
    page = rule_markdown(rule)
    head, title, *_ = page.split("\n\n")
    assert head == f"# `{rule.name}`"
    assert title == f"{rule.title}.", "the function or the row says the title, and so does the page"
    _, *sections = re.split(r"(?m)^## ", page)
    assert [section.partition("\n")[0] for section in sections] == HEADINGS
    assert all(section.partition("\n")[2].strip() for section in sections)
    assert page.endswith("\n")
    assert not re.search(r"[^\S\n]\n|\n\n\n|\t|\x1b|(?m:^(?! {4}).*<[a-zA-Z/!])", page), "no stray blanks, and no HTML"


@every(RULES)
def test_each_source_is_an_address(rule: Rule) -> None:
    lines = rule_markdown(rule).partition("## Sources\n\n")[2].splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"- \[[^\[\]]+\]\(https://[^\s()]+\)", line), line
    assert len(rule.sources) == len(lines)


def test_a_page_that_is_missing_is_empty_and_cites_nothing() -> None:
    assert documentation.page_of("no-such-rule") == ""
    assert documentation.sources_of("no-such-rule") == []


def test_what_the_wheel_carries_of_the_sources_is_what_the_pages_cite(tmp_path: Path) -> None:
    write_sources(PAGES, tmp_path / SOURCES)
    found = json.loads((tmp_path / SOURCES).read_bytes())
    assert found == {rule.name: [[source.title, source.address] for source in rule.sources] for rule in RULES}


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
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(INSTALLED)},
        capture_output=True,
        text=True,
        check=False,
    )
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
    assert set(files) == {"gpu-lost.md"}
    assert printed.startswith("A GPU fell off the bus.")
