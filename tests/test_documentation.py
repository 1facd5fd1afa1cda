"""The man page and the site are made from the texts that the program prints, and load nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import docutils
import pytest

from envcheck.config.describe import documentation_address
from envcheck.config.find import find
from envcheck.config.options import VERBS, options_of
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import TABLES
from envcheck.report.answers.rule import address_line, rule_place
from envcheck.rules.catalog import all_rules
from scripts import documentation
from scripts.documentation import MAN_PAGE, man_page
from tests.cli.calling import envcheck
from tests.every import cases

TEXT = MAN_PAGE.read_text(encoding="utf-8")
CONSTRAINTS = (Path(__file__).parents[1] / "constraints.txt").read_text()


def test_the_man_page_is_current() -> None:
    if f"docutils=={docutils.__version__}\n" not in CONSTRAINTS:
        pytest.skip("another release of docutils writes the page differently")
    assert man_page() == TEXT, "write it again: python scripts/documentation.py"


@pytest.mark.parametrize("name", documentation.completions())
def test_the_completions_are_current(name: str) -> None:
    written = (documentation.COMPLETIONS / name).read_text(encoding="utf-8")
    assert written == documentation.completions()[name], "write it again: python scripts/documentation.py"


def test_the_man_page_has_every_verb_and_option() -> None:
    plain = re.sub(r"\\f.", "", TEXT).replace("\\-", "-")
    missing = [
        f"{verb.name} {flag}"
        for verb in VERBS
        for option in options_of(verb.name)
        for flag in option.flags
        if not re.search(rf"(?m)^(\.B )?.*{re.escape(flag)}\b", plain)
    ]
    assert missing == []
    sections = set(re.findall(r"(?m)^\.SH (.*)$", plain))
    assert {f"envcheck {verb.name}" for verb in VERBS if verb.name} <= sections


class Loads(HTMLParser):
    """What a page has the browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "embed", "object"):
            self.found.append(given.get("src") or "")
        if tag == "a":
            self.links.append(given.get("href") or "")
        if tag == "link" and given.get("rel") not in ("next", "prev", "canonical", "author"):
            self.found.append(given.get("href") or "")


@pytest.mark.lab
def test_the_site_has_a_page_for_each_rule_and_loads_nothing(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    script = Path(documentation.__file__)
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, env={**os.environ, "PYTHONWARNINGS": ""})
    for rule in all_rules():
        assert "<h1><code" in (tmp_path / rule_place(rule.name)).read_text(), rule.name
    for table in TABLES:
        assert (tmp_path / "matrix" / f"{table}.html").is_file()
    assert "--plan" in (tmp_path / "commands.html").read_text()
    for page in tmp_path.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text())
        assert not [each for each in loads.found if "//" in each], page
        links = {target.partition("#")[0] for target in loads.links if not re.match(r"[a-z]+:|//|#|$", target)}
        assert [target for target in links if not (page.parent / target).exists()] == [], page


LINK = re.compile(r"\]\((?P<inline>[^)\s]+)\)|^\[[^\]]+\]: (?P<below>\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the site is built from."""
    place = tmp_path_factory.mktemp("site")
    documentation.write_sources(place)
    return place


def test_every_page_can_be_reached_from_the_index(sources: Path) -> None:
    listed = {
        line
        for block in re.findall(r"```\{toctree\}\n(.*?)```", (sources / "index.md").read_text(), re.DOTALL)
        for line in block.splitlines()
        if line and not line.startswith(":")
    }
    written = {str(file.relative_to(sources).with_suffix("")) for file in sources.rglob("*") if file.suffix in PAGE}
    linked = {
        str((page.parent / found["inline"]).resolve().relative_to(sources).with_suffix(""))
        for name in ("rules", *documentation.LISTS)
        for page in (sources / f"{name}.md",)
        for found in LINK.finditer(page.read_text())
        if found["inline"] and found["inline"].endswith(".md")
    }
    assert written - {"index"} == listed | linked


PAGE = (".md", ".rst")


def test_no_link_between_pages_is_dead(sources: Path) -> None:
    dead = [
        f"{file.relative_to(sources)}: {target}"
        for file in sources.rglob("*.md")
        if file.parent.name not in ("rules", "matrix")
        for found in LINK.finditer(file.read_text())
        if not re.match(r"[a-z]+:|#", target := found["inline"] or found["below"])
        and not (file.parent / target.partition("#")[0]).exists()
    ]
    assert dead == []


@cases("name", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs")
def test_no_link_of_the_checkout_is_dead(name: str) -> None:
    place = documentation.ROOT / name
    files = sorted(place.rglob("*.md")) if place.is_dir() else [place]
    targets = [(file, found["inline"] or found["below"]) for file in files for found in LINK.finditer(file.read_text())]
    inside = [(file, target.partition("#")[0]) for file, target in targets if not re.match(r"[a-z]+:|#", target)]
    assert [(file.name, target) for file, target in inside if not (file.parent / target).exists()] == []


HOSTED = "https://docs.example.org/envcheck"


@cases(
    "variable, configured, urls, base",
    ("", "", ["Documentation, https://docs.example.org/envcheck/"], f"{HOSTED}/"),
    ("", "", ["Source, https://example.org"], None),
    ("", "", ["Documentation, javascript:alert(1)"], None),
    ("", "", [], None),
    ("", "http://intern/envcheck", ["Documentation, https://docs.example.org/envcheck"], "http://intern/envcheck/"),
    (HOSTED, "http://intern/envcheck", [], f"{HOSTED}/"),
)
def test_the_documentation_has_one_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, configured: str, urls: list[str], base: str | None
) -> None:
    class Metadata:
        def get_all(self, name: str) -> list[str]:
            assert name == "Project-URL"
            return urls

    monkeypatch.setattr("envcheck.config.describe.metadata", lambda _name: Metadata())
    if configured:
        (tmp_path / "envcheck.toml").write_text(f'documentation = "{configured}"\n')
    assert documentation_address({"ENVCHECK_DOCS_URL": variable}, str(tmp_path)) == base
    assert f"{base or ''}rules/gpu-lost.html" in address_line("gpu-lost", base)


@cases("address", "docs.example.org", "javascript:alert(1)", "https://x y", "https://x\x1b[31m")
def test_what_is_no_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match="ENVCHECK_DOCS_URL: write an address"):
        documentation_address({"ENVCHECK_DOCS_URL": address}, str(tmp_path))
    (tmp_path / "envcheck.toml").write_text(f"documentation = {json.dumps(address)}\n")
    with pytest.raises(UsageError, match=r"envcheck\.toml:1: documentation: write an address"):
        find(str(tmp_path))
    assert documentation_address({}, str(tmp_path)) is None


def test_envcheck_rule_names_the_address(tmp_path: Path) -> None:
    hosted = {"ENVCHECK_DOCS_URL": HOSTED}
    assert f"This page: {HOSTED}/rules/gpu-lost.html\n" in envcheck("rule", "gpu-lost", cwd=tmp_path, **hosted).out
    (found,) = json.loads(envcheck("rule", "gpu-lost", "--format", "json", cwd=tmp_path, **hosted).out)
    assert found["address"] == f"{HOSTED}/rules/gpu-lost.html"
    assert "rules/gpu-lost.html (ENVCHECK_DOCS_URL" in envcheck("rule", "gpu-lost", cwd=tmp_path).out
    (tmp_path / "envcheck.toml").write_text(f'documentation = "{HOSTED}"\n')
    assert f"This page: {HOSTED}/rules/gpu-lost.html\n" in envcheck("rule", "gpu-lost", cwd=tmp_path).out
    assert json.loads(envcheck("config", "--json", cwd=tmp_path).out)["values"]["documentation"]["value"] == HOSTED
