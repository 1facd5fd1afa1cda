"""``envcheck matrix refresh`` end to end: what it prints, its exit statuses, and that it fails in one sentence."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envcheck.cli.parser import parse
from envcheck.refresh.run import folder_to_write
from tests.cli.calling import ROOT, envcheck, refused
from tests.every import cases, tabled
from tests.refresh.serving import Index, metadata, serve
from tests.refresh.test_wheel_rows import write_projects

ROWS = (Path(__file__).with_name("data") / "demo.toml").read_text(encoding="utf-8")


@pytest.fixture
def index() -> Iterator[Index]:
    served = Index()
    for version, torch in (("1.0", "2.4.0"), ("1.1", "2.5.0")):
        members = {f"demo-{version}.dist-info/METADATA": metadata("demo", version, f"torch=={torch}", python=">=3.9")}
        served.add(f"demo-{version}-py3-none-any.whl", members)
    with serve(served):
        yield served


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    folder = tmp_path / "matrix"
    folder.mkdir()
    (folder / "rows.toml").write_text(ROWS)
    return folder


def test_it_says_what_changed_and_then_that_nothing_does(index: Index, matrix: Path) -> None:
    command = ("matrix", "refresh", "--matrix", "matrix", "--index-url", index.address)
    told = envcheck(*command, cwd=matrix.parent)
    assert (told.status, told.out) == (0, "demo ==1.1: new row: torch ==2.5.0, python >=3.9\nwrote matrix/rows.toml\n")
    assert told.err == "reading demo\n"
    again = envcheck(*command, "--quiet", cwd=matrix.parent)
    assert again == (0, "Nothing changed: the rows say what the index says.\n", "")


@cases("laid_out", str, lambda text: text.replace("\n", "\r\n"), ids=["as it came", "CRLF"])
def test_where_nothing_changed_no_file_is_written(laid_out: Callable[[str], str], index: Index, matrix: Path) -> None:
    """Lines are written in one style; those that say the same in another one stay as they are."""
    index.add("other-1.0-py3-none-any.whl", {"other-1.0.dist-info/METADATA": metadata("other", "1.0", "demo==1.0")})
    projects = write_projects(matrix, {"name": "other"})
    command = ("matrix", "refresh", "--matrix", "matrix", "--index-url", index.address)
    told = envcheck(*command, cwd=matrix.parent)
    assert told.out.endswith("wrote matrix/rows.toml\nwrote matrix/generated/pypi.jsonl\n")
    (written,) = projects.read_text().splitlines()
    by_hand = json.dumps(dict(reversed(json.loads(written).items()))) + "\n"
    assert by_hand.rstrip() != written
    projects.write_bytes(laid_out(by_hand).encode())
    files = (matrix / "rows.toml", projects)
    for file in files:
        os.utime(file, (1, 1))
    before = {file: (file.read_bytes(), file.stat()) for file in files}
    again = envcheck(*command, "--quiet", cwd=matrix.parent)
    assert again == (0, "Nothing changed: the rows say what the index says.\n", "")
    after = {file: (file.read_bytes(), file.stat()) for file in files}
    assert {file: (content, found.st_mtime_ns, found.st_ino) for file, (content, found) in after.items()} == {
        file: (content, found.st_mtime_ns, found.st_ino) for file, (content, found) in before.items()
    }


def test_a_dry_run_with_the_index_of_pip(index: Index, matrix: Path) -> None:
    told = envcheck("matrix", "refresh", "--matrix", str(matrix), "--dry-run", cwd=matrix, PIP_INDEX_URL=index.address)
    assert told.status == 0
    assert told.out.endswith(f"would write {matrix / 'rows.toml'}\n")
    assert (matrix / "rows.toml").read_text() == ROWS


@tabled
def test_what_cannot_be_done_is_one_sentence(matrix: Path, arguments: list[str], sentence: str) -> None:
    told = refused("matrix", "refresh", "-q", "--matrix", str(matrix), *arguments, cwd=matrix)
    assert told.startswith(f"envcheck: {sentence}")
    assert (matrix / "rows.toml").read_text() == ROWS


def test_no_variable_chooses_what_is_written(matrix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked in this process: to read all of the checkout's own rows takes seconds."""
    monkeypatch.setenv("ENVCHECK_MATRIX", str(matrix))
    assert folder_to_write(parse(["matrix", "refresh"], os.environ).matrix) == ROOT / "matrix"


def test_without_the_extra_it_says_what_is_needed(matrix: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['requests'] = None; from envcheck.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "matrix", "refresh", "--matrix", str(matrix)]
    told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == (
        "envcheck: matrix refresh needs the extra 'refresh': pip install 'gpu-envcheck[refresh]' "
        "(requests is missing)\n"
    )
