"""The severity and the example on a rule's page are what the rule prints of the machines of these tests."""

from pathlib import Path

from tests.every import every
from tests.installed import ROOT
from tests.rules.page_examples import COMMAND, examples, with_example

PAGES = sorted((ROOT / "docs" / "rules").glob("*.md"))


@every(PAGES)
def test_what_the_page_shows_is_what_is_printed(file: Path) -> None:
    page = file.read_text(encoding="utf-8")
    assert with_example(file.stem, page) == page, f"run: {COMMAND}"


@every(PAGES)
def test_each_page_has_an_example(file: Path) -> None:
    assert f"[{file.stem}]" in examples()[file.stem].text
