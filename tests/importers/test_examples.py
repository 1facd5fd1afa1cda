"""Texts as people paste them, in the documents of ``examples/``: what is read of each.

Lines ``=== FACT: VALUE`` stand above a text: the names of facts are those of ``told``, the values are JSON. Of a record
they are the fields that say anything.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.documents import subjects
from tests.importers.pasting import told

DOCUMENTS = sorted(Path(__file__).with_name("examples").glob("*.txt"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.stem)
def test_what_a_text_says(document: Path) -> None:
    wrong = []
    for subject, cases in subjects(document.read_text(encoding="utf-8")).items():
        for said, text in cases:
            expected = {name: json.loads(value) for name, _, value in (line.partition(": ") for line in said)}
            found = {name: plain(value) for name, value in told(f"{text}\n", expected).items()}
            if found != expected:
                wrong.append(f"## {subject}\n{text}\nis read as {found}, not {expected}")
    assert not wrong, "\n\n".join(wrong)


def plain(value: Any) -> Any:
    """The value as JSON has it; of records without the fields that hold their defaults."""
    if isinstance(value, msgspec.Struct):
        made = {field.name: field for field in msgspec.structs.fields(value)}
        blank = {
            name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            for name, field in made.items()
        }
        return {name: plain(getattr(value, name)) for name in made if getattr(value, name) != blank[name]}
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [*map(plain, value)] if isinstance(value, (list, tuple)) else value
