"""Files change where a value changes, whole or not at all."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envcheck.errors import MatrixError, UsageError
from envcheck.refresh.document import Document
from tests.cli.calling import ROOT
from tests.every import cases
from tests.refresh.serving import Index, metadata, serve

TEXT = (Path(__file__).with_name("data") / "remarks.toml").read_text(encoding="utf-8")


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
    "name": "a", "versions": "==1.1", "needs": {"torch": '=="2'}, "all": False,
    "builds": [{"cuda": "12.4", "targets": ["sm_90"]}], "none": [],
}  # fmt: skip
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


@cases("position, before", (0, "[[release]]\nname = "), (1, "# --- b: a heading"), (2, "# The end.\n"))
def test_a_row_is_written_as_by_hand_between_the_others(tmp_path: Path, position: int, before: str) -> None:
    rows = document(tmp_path)
    rows.insert("release", position, NEW)
    assert rows.text.count(NEW_TEXT + "\n" + before) == 1
    assert rows.text.replace(NEW_TEXT + "\n", "") == TEXT
    assert [str(row["versions"]) for row in document(tmp_path, rows.text).rows("release")].index("==1.1") == position


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


# --- A refresh that dies while it writes leaves each file as it was, or as it should become -------------------------
ROWS = """\
[generated.{name}]
source = "{name}"
needs = {{ torch = "torch" }}

[sources.{name}]
title = "{name} on PyPI"
address = "PyPI {name}"
read = "2026-01-01"

[[release]]
name = "{name}"
versions = "==1.0"
needs = {{ torch = "==2.4.0" }}
source = ["{name}"]

# {remark}
"""
REMARK = "a remark " * 2000
NAMES = ("one", "two")

DYING = """
import os, signal, sys
step, moment = int(sys.argv[1]), sys.argv[2]
rename, count = os.rename, 0

def dying(*names, **folders):
    global count
    count += 1
    if count == step and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    done = rename(*names, **folders)
    if count == step:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

os.rename = dying
from envcheck.cli.main import main
main(sys.argv[3:])
"""


@pytest.fixture
def index() -> Iterator[Index]:
    served = Index()
    for name in NAMES:
        for version, torch in (("1.0", "2.4.0"), ("1.1", "2.5.0")):
            member = f"{name}-{version}.dist-info/METADATA"
            served.add(f"{name}-{version}-py3-none-any.whl", {member: metadata(name, version, f"torch=={torch}")})
    with serve(served):
        yield served


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    folder = tmp_path / "matrix"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.toml").write_text(ROWS.format(name=name, remark=REMARK))
    return folder


def texts(matrix: Path) -> list[str]:
    return [(matrix / f"{name}.toml").read_text() for name in NAMES]


def run(arguments: list[str], matrix: Path, index: Index, prepare: Callable[[], None] | None = None) -> tuple[int, str]:
    command = ["matrix", "refresh", "--matrix", str(matrix), "--index-url", index.address]
    done = subprocess.run(
        [sys.executable, *arguments, *command],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}, cwd=matrix,
        capture_output=True, text=True, preexec_fn=prepare, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@cases("step, moment, written", (1, "before", 0), (1, "after", 1), (2, "before", 1))
def test_killed_while_it_writes(index: Index, matrix: Path, step: int, moment: str, written: int) -> None:
    old = texts(matrix)
    assert run(["-c", DYING, str(step), moment], matrix, index)[0] == -signal.SIGKILL
    left = texts(matrix)
    assert [text == before for text, before in zip(left, old, strict=True)].count(False) == written
    assert run(["-m", "envcheck"], matrix, index)[0] == 0
    new = texts(matrix)
    assert all(text in (before, after) for text, before, after in zip(left, old, new, strict=True))
    assert all('versions = "==1.1"' in text and REMARK in text for text in new)


def test_a_full_disk(index: Index, matrix: Path) -> None:
    """No file may become longer than half of what is to be written."""
    old = texts(matrix)
    half = len(old[0]) // 2
    status, said = run(
        ["-m", "envcheck"], matrix, index, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (half, half))
    )
    assert (status, said.count("\n")) == (2, 3)
    assert said.splitlines()[-1].startswith("envcheck: cannot write ")
    assert texts(matrix) == old
    assert sorted(path.name for path in matrix.iterdir()) == ["one.toml", "two.toml"]
