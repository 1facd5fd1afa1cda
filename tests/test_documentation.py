"""The man page and the site are made from the texts that the program prints, and load nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import docutils
import pytest

from envcheck.cli.completion import commands
from envcheck.cli.options import grammar
from envcheck.compat.compiling import FIELDS
from envcheck.report.answers.rule import address_line, rule_address, rule_place
from envcheck.rules.catalog import all_rules
from scripts import documentation
from scripts.documentation import MAN_PAGE, man_page

TEXT = MAN_PAGE.read_text(encoding="utf-8")
CONSTRAINTS = (Path(__file__).parents[1] / "constraints.txt").read_text()


def test_the_man_page_is_current() -> None:
    if f"docutils=={docutils.__version__}\n" not in CONSTRAINTS:
        pytest.skip("another release of docutils writes the page differently")
    assert man_page() == TEXT, "write it again: python scripts/documentation.py"


def test_the_man_page_has_every_verb_and_option() -> None:
    plain = re.sub(r"\\f.", "", TEXT).replace("\\-", "-")
    missing = [
        " ".join((*command.words, flag))
        for command in commands(grammar())
        for option in command.options
        for flag in option.flags
        if not re.search(rf"(?m)^(\.B )?.*{re.escape(flag)}\b", plain)
    ]
    assert missing == []
    sections = set(re.findall(r"(?m)^\.SH (.*)$", plain))
    assert {f"envcheck {' '.join(command.words)}" for command in commands(grammar()) if command.words} <= sections


class Loads(HTMLParser):
    """What a page has the browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "embed", "object"):
            self.found.append(given.get("src") or "")
        if tag == "link" and given.get("rel") not in ("next", "prev", "canonical", "author"):
            self.found.append(given.get("href") or "")


@pytest.mark.lab
def test_the_site_has_a_page_for_each_rule_and_loads_nothing(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    script = Path(documentation.__file__)
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, env={**os.environ, "PYTHONWARNINGS": ""})
    for rule in all_rules():
        text = (tmp_path / rule_place(rule.name)).read_text()
        assert "<h1><code" in text, rule.name
    for table in FIELDS:
        assert (tmp_path / "matrix" / f"{table}.html").is_file()
    assert "--plan" in (tmp_path / "commands.html").read_text()
    for page in tmp_path.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text())
        assert not [each for each in loads.found if "//" in each], page


@pytest.mark.parametrize(
    ("urls", "address"),
    [
        (
            ["Documentation, https://docs.example.org/envcheck/"],
            "https://docs.example.org/envcheck/rules/gpu-lost.html",
        ),
        (["Source, https://example.org"], None),
        (["Documentation, javascript:alert(1)"], None),
        ([], None),
    ],
)
def test_a_rule_names_its_address(urls: list[str], address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Metadata:
        def get_all(self, name: str) -> list[str]:
            assert name == "Project-URL"
            return urls

    monkeypatch.setattr("importlib.metadata.metadata", lambda _name: Metadata())
    assert rule_address("gpu-lost") == address
    assert (address or "rules/gpu-lost.html") in address_line("gpu-lost")
