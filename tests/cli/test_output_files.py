"""``-o``: files appear whole, links stay links, and what cannot be written is no reason to print nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.text.output import parse_targets, writable, write_whole
from tests.cli.calling import envcheck

FORMATS = ("json", "text")


def test_two_reports_cannot_be_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for second in ("x", "./x", str(tmp_path / "x")):
        with pytest.raises(UsageError, match="another -o writes that file too"):
            parse_targets(["json:x", f"text:{second}"], FORMATS)
    assert (
        len(parse_targets(["json:/dev/null", "text:/dev/null", "text:/dev/stdout", "json:/dev/stdout"], FORMATS)) == 4
    )


@pytest.mark.parametrize("name", ["a" * 300, "loop", "folder", "folder/none/x", "to-folder"])
def test_a_name_that_cannot_be_written_is_refused_at_once(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "to-folder").symlink_to("folder")
    with pytest.raises(UsageError, match=r"^-o json:\S+: "):
        parse_targets([f"json:{tmp_path / name}"], FORMATS)


def test_what_a_link_leads_to_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("old")
    for name in ("kept", "new"):
        link = tmp_path / f"to-{name}"
        link.symlink_to(name)
        write_whole(writable(str(link), "-o"), "text")
        assert link.is_symlink()
        assert (tmp_path / name).read_text() == "text"
    assert len(list(tmp_path.iterdir())) == 4


def test_an_open_file_goes_on_where_it_is(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        file.write("before ")
        file.flush()
        write_whole(writable(f"/dev/fd/{file.fileno()}", "-o"), "after")
    assert (tmp_path / "log").read_text() == "before after"
    assert [entry.name for entry in tmp_path.iterdir()] == ["log"]


def test_the_page_is_printed_where_a_file_cannot_be_written(tmp_path: Path) -> None:
    assumed = ("--assume", "gpu==H100,driver==550.54.14,os==linux")
    found = envcheck("check", *assumed, "--json", "-o", "json:/dev/full", "-o", "json:kept.json", cwd=tmp_path)
    assert (found.status, found.err) == (2, "envcheck: cannot write /dev/full: No space left on device\n")
    assert json.loads(found.out)["verdict"] == json.loads((tmp_path / "kept.json").read_text())["verdict"] == "pass"


def test_a_baseline_that_cannot_be_kept_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    found = envcheck("bench", "--save-baseline", "missing/base.json", cwd=tmp_path)
    assert (found.status, found.out) == (2, "")
    assert found.err == "envcheck: --save-baseline: the folder missing does not exist\n"
