"""A TOML file is changed where a value changes and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.errors import MatrixError, UsageError
from envcheck.refresh.document import Document

TEXT = """\
# Rows.

[sources.page]
title = "A page"   # a remark
address = "https://example.org"
read = "2026-11-20"

[[release]]
name = "a"
versions = "==1.0"
needs = { torch = "==2.0.0" }  # measured
source = ["page"]

# --- b: a heading that belongs to what follows ---

[[release]]
name = "b"
versions = "==1.0"
source = ["page"]
[release.needs]
torch = "==2.0.0"

# The end.
"""


def document(tmp_path: Path, text: str = TEXT) -> Document:
    path = tmp_path / "rows.toml"
    path.write_text(text)
    return Document(path)


def changed_lines(document: Document) -> tuple[list[str], list[str]]:
    """Lines that went, and lines that came."""
    old, new = TEXT.splitlines(), document.text.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


def test_what_is_not_changed_stays(tmp_path: Path) -> None:
    assert document(tmp_path).text == TEXT


def test_a_value_changes_alone(tmp_path: Path) -> None:
    rows = document(tmp_path)
    rows.rows("release")[0]["needs"]["torch"] = "==2.1.0"
    assert changed_lines(rows) == (
        ['needs = { torch = "==2.0.0" }  # measured'],
        ['needs = { torch = "==2.1.0" }  # measured'],
    )
    rows.rows("release")[1]["needs"]["torch"] = "==2.2.0"
    assert changed_lines(rows)[1][-1] == 'torch = "==2.2.0"'


NEW = {
    "name": "a",
    "versions": "==1.1",
    "needs": {"torch": '=="2'},
    "all": False,
    "builds": [{"cuda": "12.4", "targets": ["sm_90"]}],
    "none": [],
}
NEW_TEXT = """\
[[release]]
name = "a"
versions = "==1.1"
needs = { torch = "==\\"2" }
all = false
builds = [
    { cuda = "12.4", targets = ["sm_90"] },
]
none = []
"""


@pytest.mark.parametrize(
    ("position", "before"), [(0, "[[release]]\nname = "), (1, "# --- b: a heading"), (2, "# The end.\n")]
)
def test_a_row_is_written_as_by_hand_between_the_others(tmp_path: Path, position: int, before: str) -> None:
    rows = document(tmp_path)
    rows.insert("release", position, NEW)
    assert rows.text.count(NEW_TEXT + "\n" + before) == 1
    assert rows.text.replace(NEW_TEXT + "\n", "") == TEXT
    again = document(tmp_path, rows.text)
    assert [str(row["versions"]) for row in again.rows("release")].index("==1.1") == position


def test_a_first_row_of_a_table(tmp_path: Path) -> None:
    rows = document(tmp_path)
    rows.insert("torch", 0, {"version": "2.0.0"})
    assert document(tmp_path, rows.text).rows("torch")[0]["version"] == "2.0.0"


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"rows.toml: cannot be read as TOML"):
        document(tmp_path, "[[release\n")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*absent\.toml: No such file or directory"):
        Document(tmp_path / "absent.toml")
