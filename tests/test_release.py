"""Documents install envcheck from where it is: ``source`` of ``[tool.release]`` in ``pyproject.toml``, the one place.

Until a release no package index has it, and a document that names none but the distribution would fetch nothing, or a
stranger's package. ``ENVCHECK_WRITE_SAMPLES=1 pytest tests/test_release.py`` writes the one place into all documents.
"""

import os
import re
from pathlib import Path

from packaging.requirements import Requirement

from envcheck.text.toml import loads
from tests.every import cases, every

ROOT = Path(__file__).parents[1]
PROJECT = loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCE: str = PROJECT["tool"]["release"]["source"]
DOCUMENTS = [ROOT / "README.md", ROOT / "action.yml", ROOT / "CONTRIBUTING.md", ROOT / ".pre-commit-hooks.yaml"]
DOCUMENTS += [file for file in sorted((ROOT / "docs").rglob("*")) if file.suffix in (".md", ".yaml", ".yml", ".sh")]
_UNRELEASED = "no package index has it"
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<name>gpu-envcheck(?:\[[\w,]+\])?)[^'\"\n]*(?P=quote)")
_INSTALLS = re.compile(r"(?:install\b|uvx |pipx run |--from |dependencies: )[^\n`#]*?gpu-envcheck[^\n`#]*")


def strangers(text: str, source: str) -> list[str]:
    """The installations of ``text`` that get envcheck from elsewhere than ``source``."""
    found = [each[0].strip() for each in _INSTALLS.finditer(text)]
    wanted = re.compile(rf"['\"]gpu-envcheck(?:\[[\w,]+\])?{re.escape(source)}['\"]")
    return [each for each in found if len(wanted.findall(each)) != each.count("gpu-envcheck")]


def written(text: str, source: str) -> str:
    """``text`` with every installation from ``source``; after the release without the paragraphs that speak of none."""
    text = _QUOTED.sub(lambda found: f"{found['quote']}{found['name']}{source}{found['quote']}", text)
    return text if source else re.sub(rf"(?m)^(?:\S.*\n)*.*{_UNRELEASED}.*\n(?:.+\n)*\n", "", text)


@every(DOCUMENTS)
def test_documents_install_from_the_one_place(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    if os.environ.get("ENVCHECK_WRITE_SAMPLES"):
        text = written(text, SOURCE)
        file.write_text(text, encoding="utf-8")
    assert strangers(text, SOURCE) == [], "write it as [tool.release] of pyproject.toml says"


def test_readme_says_whether_it_is_released() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (_UNRELEASED in text) == bool(SOURCE)
    assert {"Source", "Documentation"} <= PROJECT["project"].get("urls", {}).keys() or SOURCE
    assert f"'gpu-envcheck{SOURCE}'" in text


@cases(
    "text, found",
    ("pip install gpu-envcheck", 1),
    ("pip install --quiet 'gpu-envcheck[plans]'", 1),
    ("uvx gpu-envcheck check", 1),
    ('additional_dependencies: ["gpu-envcheck[plans] @ git+https://example.org/other"]', 1),
    ("pip install 'gpu-envcheck[plans] @ git+ADDRESS'", 0),
    ("the distribution is gpu-envcheck", 0),
)
def test_what_would_ask_an_index_is_found(text: str, found: int) -> None:
    assert len(strangers(text, " @ git+ADDRESS")) == found
    assert strangers(text.replace(" @ git+ADDRESS", ""), "") == [] or "'" not in text


def test_release_day_changes_one_place() -> None:
    for file in DOCUMENTS:
        released = written(file.read_text(encoding="utf-8"), "")
        assert strangers(released, "") == []
        assert _UNRELEASED not in released
        assert "git+ADDRESS" not in released
        assert released.count("\n#") == file.read_text(encoding="utf-8").count("\n#")


def test_the_one_place_is_a_requirement() -> None:
    assert Requirement(f"gpu-envcheck[plans]{SOURCE}".replace("ADDRESS", "https://example.org/e.git")).name
