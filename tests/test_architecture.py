"""``docs/architecture.md`` is true: what it names exists, and its layers are those of the import contracts. What other
documents name exists too.
"""

import re
from pathlib import Path

from envcheck.text.toml import loads

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"(?m)^## ", PAGE)
_PATH = re.compile(r"`((?:envcheck|probes|matrix|scripts|tests|docs|benchmarks)/[\w./-]*)`")
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]
PARENTS = [ROOT, ROOT / "envcheck", ROOT / "probes"]  # Of what a document names by a path
NOT_OURS = {"envcheck/matrix", "docs/rules/NAME.md", ".github/envcheck", "random.py"}
"""Folders of users, a module of Python, and what stands for any page."""


def source(*places: str) -> str:
    """The Python of these files and folders."""
    files = [
        file for place in places for file in ((ROOT / place).rglob("*.py") if place[-3:] != ".py" else [ROOT / place])
    ]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def layers(package: str) -> list[set[str]]:
    """The layers of a package that ``lint-imports`` keeps in order, from the highest."""
    contracts = loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (found,) = (each["layers"] for each in contracts if each.get("containers") == [package])
    return [set(re.findall(r"\w+", layer)) for layer in found]


def test_every_path_exists() -> None:
    paths = _PATH.findall(PAGE)
    assert len(paths) > 40
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_what_any_document_names_exists() -> None:
    """A path below a folder of the project, or a Python file by its name alone."""
    folders = {each.name for parent in PARENTS for each in parent.iterdir() if each.is_dir()}
    files = {
        path.name for folder in ("envcheck", "probes", "tests", "scripts") for path in (ROOT / folder).rglob("*.py")
    }
    found, dead = 0, list[str]()
    for page in DOCUMENTS:
        for name in re.findall(r"`([\w./-]+)`", page.read_text(encoding="utf-8")):
            first, slash, _ = name.partition("/")
            if name not in NOT_OURS and (first in folders if slash else re.fullmatch(r"\w+\.py", name)):
                found += 1
                if not (name in files or any((parent / name).exists() for parent in PARENTS)):
                    dead.append(f"{page.relative_to(ROOT)}: {name}")
    assert found > 200
    assert dead == []


def test_every_function_is_defined_in_a_file_that_its_section_names() -> None:
    found = 0
    for section in SECTIONS:
        functions = re.findall(r"`(\w+)\(\)`", section)
        text = source(*(path for path in _PATH.findall(section) if path.endswith(".py")))
        assert [name for name in functions if not re.search(rf"(?m)^def {name}\(", text)] == [], section[:60]
        found += len(functions)
    assert found > 20


def test_every_class_exists() -> None:
    text = source("envcheck", "probes")
    names = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)*)`", PAGE)) - {"None"}
    assert len(names) > 5
    assert [name for name in names if not re.search(rf"(?m)^class {name}\b", text)] == []


def test_the_picture_is_what_lint_imports_enforces() -> None:
    picture = PAGE.partition("holds\nthis page to it:\n\n")[2].partition("\n\n")[0]
    rooms = [set(re.findall(r"\w+", re.split(r" {2,}", line.strip())[0])) for line in picture.splitlines()]
    assert rooms == layers("envcheck")
    for package in ("envcheck.rules", "probes.files"):
        chain = re.search(rf"(?m)^- {package.rpartition('.')[2]}: (.*)$", PAGE)
        assert chain is not None
        assert [set(re.findall(r"\w+", part)) for part in chain[1].split("→")] == layers(package)


def test_decisions_are_short_dated_and_numbered_in_order() -> None:
    notes = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [note.name[:4] for note in notes] == [f"{number:03}-" for number in range(1, len(notes) + 1)]
    for note in notes:
        lines = note.read_text(encoding="utf-8").splitlines()
        assert re.fullmatch(rf"# {note.name[:3]}: \S.*", lines[0]), note.name
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", lines[2]), note.name
        assert len(lines) <= 24, note.name
