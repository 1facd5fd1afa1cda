"""Write a probe, rule, error, relation, importer, format or framework reader with its test, from ``scripts/templates``.

    python scripts/new.py probe NAME
    python scripts/new.py rule FAMILY/NAME          # FAMILY is a folder of envcheck/rules
    python scripts/new.py error NAME                # a problem that error lines alone reveal
    python scripts/new.py relation NAME
    python scripts/new.py importer NAME
    python scripts/new.py format NAME
    python scripts/new.py reader NAME               # NAME is what the framework's users import

Of a rule or error it writes the page too (then run "python -m tests.rules.page_examples", which adds its example, and
"python scripts/documentation.py", which adds it to the completions); of
an error rows, and of a reader an entry of the catalogue, in place of a module. What it writes passes lint, types and
tests as it stands. Replace its example with your subject, and delete the comments that guide you; CONTRIBUTING.md has
worked examples of a row, a rule and a probe.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from envcheck import __version__  # noqa: E402 - as below
from envcheck.knowledge.load import read_folder  # noqa: E402 - as below
from scripts.rule_index import write_index  # noqa: E402 - found in the checkout that this file belongs to

_RULE = ("envcheck/rules/{family}/{name}.py", "tests/rules/{family}/test_{name}.py", "docs/rules/{dashed}.md")
PLACES = {
    "probe": ("probes/{name}.py", "tests/probes/test_{name}.py"),
    "rule": _RULE,
    "error": ("tests/rules/messages/test_{name}.py", "docs/rules/{dashed}.md"),
    "relation": ("envcheck/knowledge/relations/{name}.py", "tests/knowledge/test_{name}.py"),
    "importer": ("envcheck/importers/formats/{name}.py", "tests/importers/test_{name}.py"),
    "format": ("envcheck/report/{name}.py", "tests/report/test_{name}.py"),
    "reader": ("tests/probes/frameworks/test_{name}.py",),
}
"""The module and the test of each kind, and the page of a rule."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(PLACES))
    parser.add_argument("name", help="in small letters, words joined by underscores; of a rule FAMILY/NAME")
    options = parser.parse_args()
    try:
        written = create(ROOT, options.kind, options.name)
    except ValueError as error:
        parser.error(str(error))
    if options.kind == "error":
        written.append(add_rows(ROOT, options.name.replace("-", "_")))
    if options.kind == "reader":
        written.append(add_entry(ROOT, options.name.replace("-", "_")))
    if options.kind in ("rule", "error"):
        written.append(write_index(ROOT))
    if options.kind == "format":
        from scripts.documentation import write_man_page  # noqa: PLC0415 - lists the formats with the new one

        written.append(write_man_page())
    for path in written:
        print(path.relative_to(ROOT))


def create(root: Path, kind: str, name: str) -> list[Path]:
    """Write module, test and page below ``root``; raise ValueError where the name cannot be taken."""
    family, slash, own = name.replace("-", "_").rpartition("/")
    words = own.split("_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", own):
        raise ValueError(f"{own!r} is not a name in small letters, with words joined by underscores")
    is_rule = kind == "rule"
    if bool(slash) != is_rule:
        raise ValueError("a rule is named FAMILY/NAME" if is_rule else f"a {kind} has no family")
    if is_rule and not (root / "envcheck" / "rules" / family).is_dir():
        raise ValueError(f"envcheck/rules has no folder {family!r}")
    if kind in ("rule", "error") and not (len(words) > 1 and own.replace("_", "").isalpha()):
        raise ValueError("the name of a rule is the problem in two words or more, without digits")
    places = [root / place.format(name=own, family=family, dashed=own.replace("_", "-")) for place in PLACES[kind]]
    for place in places:
        if place.exists():
            raise ValueError(f"{place.relative_to(root)} exists")
    # A family whose rules judge something else than the machine has its own templates.
    folder = f"{kind}/{family}" if (ROOT / "scripts" / "templates" / kind / family).is_dir() else kind
    for place in places:
        template = "page.md" if place.suffix == ".md" else "test.py" if place.name.startswith("test_") else "module.py"
        place.parent.mkdir(exist_ok=True)
        place.write_text(_filled(f"{folder}/{template}", own), encoding="utf-8")
    return places


def add_rows(root: Path, name: str) -> Path:
    """Add the problem ``name`` and an error line of it to the matrix, behind all others; return the file."""
    lowest = max(row.priority for row in read_folder(root / "matrix").errors) + 10
    path = root / "matrix" / "errors.toml"
    row = _filled("error/rows.toml", name).replace("priority = 0", f"priority = {lowest}")
    path.write_text(path.read_text(encoding="utf-8") + row, encoding="utf-8")
    return path


def add_entry(root: Path, name: str) -> Path:
    """Add the framework ``name`` to the catalogue, behind all others; return the file."""
    path = root / "probes" / "files" / "installations" / "catalog.py"
    text, end = path.read_text(encoding="utf-8"), ")  # fmt: skip\n"
    path.write_text(text.replace(end, _filled("reader/entry.txt", name) + end, 1), encoding="utf-8")
    return path


def _filled(template: str, name: str) -> str:
    text = (ROOT / "scripts" / "templates" / template).read_text(encoding="utf-8")
    for example, spelling in (
        ("example_thing", name),
        ("example-thing", name.replace("_", "-")),
        ("0.0", __version__.rpartition(".")[0]),
    ):
        text = text.replace(example, spelling)
    return text


if __name__ == "__main__":
    main()
