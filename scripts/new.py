"""Write a new probe, rule, importer, format or framework reader with its test, from ``scripts/templates``.

    python scripts/new.py probe NAME
    python scripts/new.py rule FAMILY/NAME          # FAMILY is a folder of envcheck/rules
    python scripts/new.py importer NAME
    python scripts/new.py format NAME
    python scripts/new.py reader NAME               # NAME is what the framework's users import

What it writes passes lint, types and tests as it stands. Replace its example with your subject; CONTRIBUTING.md has
a worked example of each.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from envcheck import __version__  # noqa: E402 - as below
from scripts.rule_index import write_index  # noqa: E402 - found in the checkout that this file belongs to

PLACES = {
    "probe": ("probes/{name}.py", "tests/probes/test_{name}.py"),
    "rule": ("envcheck/rules/{family}/{name}.py", "tests/rules/{family}/test_{name}.py"),
    "importer": ("envcheck/importers/{name}.py", "tests/importers/test_{name}.py"),
    "format": ("envcheck/report/{name}.py", "tests/report/test_{name}.py"),
    "reader": ("probes/frameworks/{name}.py", "tests/probes/frameworks/test_{name}.py"),
}
"""The module and the test of each kind."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(PLACES))
    parser.add_argument("name", help="in small letters, words joined by underscores; of a rule FAMILY/NAME")
    options = parser.parse_args()
    try:
        written = create(ROOT, options.kind, options.name)
    except ValueError as error:
        parser.error(str(error))
    if options.kind == "rule":
        written.append(write_index(ROOT))
    for path in written:
        print(path.relative_to(ROOT))


def create(root: Path, kind: str, name: str) -> list[Path]:
    """Write module and test below ``root``; raise ValueError where the name cannot be taken."""
    family, slash, own = name.replace("-", "_").rpartition("/")
    words = own.split("_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", own):
        raise ValueError(f"{own!r} is no name in small letters, with words joined by underscores")
    if bool(slash) != (kind == "rule"):
        raise ValueError("a rule is named FAMILY/NAME" if kind == "rule" else f"a {kind} has no family")
    if kind == "rule" and not (root / "envcheck" / "rules" / family).is_dir():
        raise ValueError(f"envcheck/rules has no folder {family!r}")
    if kind == "rule" and not (len(words) > 1 and own.replace("_", "").isalpha()):
        raise ValueError("the name of a rule is the problem in two words or more, without digits")
    places = [root / place.format(name=own, family=family) for place in PLACES[kind]]
    for place in places:
        if place.exists():
            raise ValueError(f"{place.relative_to(root)} exists")
    for place, template in zip(places, ("module.py", "test.py"), strict=True):
        text = (ROOT / "scripts" / "templates" / kind / template).read_text(encoding="utf-8")
        for example, spelling in (
            ("example_thing", own),
            ("example-thing", own.replace("_", "-")),
            ("0.0", __version__.rpartition(".")[0]),
        ):
            text = text.replace(example, spelling)
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return places


if __name__ == "__main__":
    main()
