"""Rows of a user's own over the shipped ones: replaced by id, added, cited as theirs, refused when they are wrong."""

import json
from pathlib import Path

import pytest

from envcheck.errors import MatrixError
from envcheck.knowledge.load import load_matrix, overlay_folders
from envcheck.model.versions import CudaVersion
from tests.every import cases

SOURCE = """\
[sources.page]
title = "Our own measurements"
address = "https://example.org/measured"
read = "2026-12-01"

"""
TORCH = '[[torch]]\nversion = "{}"\ndefault_cuda = "12.4"\nsource = "page"\n'


def overlay(tmp_path: Path, rows: str, name: str = "own") -> str:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "torch.toml").write_text(SOURCE + rows)
    return str(folder)


def test_the_same_id_replaces_a_row(tmp_path: Path) -> None:
    place = overlay(tmp_path, TORCH.format("2.5.1"))
    joined = load_matrix((place,))
    (row,) = (row for row in joined.torch if row.version == "2.5.1")
    assert row.cudnn is None
    assert len(joined.torch) == len(load_matrix().torch)
    assert [one.id for one in joined.torch] == [one.id for one in load_matrix().torch]
    (source,) = joined.cite(row)
    assert (source.title, source.address) == (f"Our own measurements (from {place})", "https://example.org/measured")


def test_a_new_id_adds_a_row_where_it_belongs(tmp_path: Path) -> None:
    rows = TORCH.format("2.5.2") + '[[cuda]]\nversion = "12.10"\nsource = "page"\n'
    rows += '[[driver]]\nbranch = 551\nsource = "page"\n'
    rows += '[[release]]\nname = "jetpack"\nversions = "==99.1"\nsource = "page"\n'
    rows += '[[release]]\nname = "our-thing"\nversions = "==1"\nneeds = { torch = ">=2" }\nsource = "page"\n'
    joined = load_matrix((overlay(tmp_path, rows),))
    versions = [row.version for row in joined.torch]
    assert versions[versions.index("2.5.2") - 1] == "2.5.1"
    cuda = [CudaVersion.parse(row.version) for row in joined.cuda]
    assert cuda == sorted(version for version in cuda if version)
    branches = [row.branch for row in joined.drivers if row.os == "linux"]
    assert 551 in branches
    assert branches == sorted(branches)
    assert [row.name for row in joined.releases][-1] == "our-thing"
    assert [row.versions for row in joined.releases if row.name == "jetpack"][-1] == "==99.1"


def test_the_line_of_a_project_replaces_and_adds(tmp_path: Path) -> None:
    """A folder without TOML is one too."""
    lines = tmp_path / ".config" / "envcheck" / "matrix" / "generated" / "pypi.jsonl"
    lines.parent.mkdir(parents=True)
    (shipped, *_) = load_matrix().wheels
    replaced = {"versions": shipped.versions, "pythons": {"any": "==3.9"}}
    source = {"title": "Our index", "address": "https://example.org", "read": "2026-12-01"}
    projects = [{"name": shipped.name, "source": source, "wheels": [replaced]}, {"name": "our-thing", "source": source}]
    lines.write_text("".join(f"{json.dumps(project)}\n" for project in projects))
    (place,) = overlay_folders(None, {"HOME": str(tmp_path)}, pytest.fail)
    joined = load_matrix((place,))
    (row,) = (row for row in joined.wheels if row.id == shipped.id)
    assert row.pythons == {"any": "==3.9"}
    assert [source.title for source in joined.cite(row)] == [f"Our index (from {place})"]
    assert len(joined.wheels) == len(load_matrix().wheels)


THING = '[[release]]\nname = "our-thing"\nversions = "==1"\nneeds = {{ torch = "{}" }}\n{}source = "page"\n'


@cases("system, needs",
    ("", ["==2.6"]), ('machine = ["aarch64"]\n', ["==2.4", "==2.6"]), ('machine = ["x86_64"]\n', ["==2.6", "==2.5"]),
    ('os = ["windows"]\n', ["==2.4", "==2.5", "==2.6"]),
)  # fmt: skip
def test_a_row_replaces_that_of_its_systems(tmp_path: Path, system: str, needs: list[str]) -> None:
    """One that names none speaks of all."""
    rows = THING.format("==2.4", 'machine = ["x86_64"]\n') + THING.format("==2.5", 'machine = ["aarch64"]\n')
    joined = load_matrix((overlay(tmp_path, rows, "base"), overlay(tmp_path, THING.format("==2.6", system))))
    assert [row.needs["torch"] for row in joined.releases if row.name == "our-thing"] == needs


def test_the_last_overlay_outranks(tmp_path: Path) -> None:
    first = overlay(tmp_path, TORCH.format("2.5.1").replace("12.4", "12.1"), "first")
    second = overlay(tmp_path, TORCH.format("2.5.1").replace("12.4", "12.8"), "second")
    assert {row.version: row.default_cuda for row in load_matrix((first, second)).torch}["2.5.1"] == "12.8"
    assert {row.version: row.default_cuda for row in load_matrix((second, first)).torch}["2.5.1"] == "12.1"


def test_the_shipped_rows_are_not_touched(tmp_path: Path) -> None:
    before = load_matrix()
    place = overlay(tmp_path, TORCH.format("2.5.1"))
    load_matrix((place,))
    assert load_matrix() is before
    assert place not in "".join(source.title for source in before.sources.values())


def test_shipped_sources_stay_theirs(tmp_path: Path) -> None:
    """An overlay's file may be called as a shipped one, and its sources too."""
    place = overlay(tmp_path, TORCH.format("9.0.0").replace('"page"', '"wheels"'))
    file = Path(place) / "torch.toml"
    file.write_text(file.read_text().replace("[sources.page]", "[sources.wheels]"))
    joined = load_matrix((place,))
    shipped = next(row for row in joined.torch if row.version == "2.5.1")
    assert joined.cite(shipped) == load_matrix().cite(shipped)


@cases(
    "rows, complaint", ('[[torch]]\nversion = 2\nsource = "page"\n', "torch.toml: [[torch]] number 1 (version = 2): "),
    ('[[torch]]\nversion = "2"\n', "the row names no source"), ("[[torch\n", "torch.toml: cannot be read as TOML"),
    (TORCH.format("2.5.1") * 2, "2 rows are called torch/2.5.1"),
)  # fmt: skip
def test_a_wrong_overlay_is_one_sentence_that_names_it(tmp_path: Path, rows: str, complaint: str) -> None:
    place = overlay(tmp_path, rows)
    with pytest.raises(MatrixError) as caught:
        load_matrix((place,))
    assert str(caught.value).startswith(f"{place}: ")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_or_is_empty(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="absent: there is no such folder of rows"):
        load_matrix((str(tmp_path / "absent"),))
    with pytest.raises(MatrixError, match="no matrix here: it has no TOML file"):
        load_matrix((str(tmp_path),))


@cases("variables, found",
    ({"XDG_CONFIG_HOME": "{base}"}, True), ({"HOME": "{home}"}, True),
    ({"XDG_CONFIG_HOME": "{base}/empty", "HOME": "{home}"}, False), ({"XDG_CONFIG_HOME": "config"}, False), ({}, False),
)  # fmt: skip
def test_the_configuration_folder(tmp_path: Path, variables: dict[str, str], found: bool) -> None:  # noqa: FBT001
    base = tmp_path / "home" / ".config"
    (base / "envcheck" / "matrix").mkdir(parents=True)
    (base / "empty" / "envcheck" / "matrix").mkdir(parents=True)
    (base / "envcheck" / "matrix" / "rows.toml").write_text(SOURCE)
    given = {name: text.format(base=base, home=tmp_path / "home") for name, text in variables.items()}
    own = (str(base / "envcheck" / "matrix"),) if found else ()
    unread: list[str] = []
    assert overlay_folders(None, given, unread.append) == own
    assert overlay_folders("named", given, unread.append) == (*own, "named")
    assert unread == []


@cases("table, row",
    ("error", 'problem = "gpu-lost"\npriority = 1\nsaid_by = "framework-ran"\nlines = ["(a+)+b"]'),
    ("family", 'name = "cudart"\nfiles = "x"\nkind = "cuda"\nnumbered = "own"'),
)  # fmt: skip
def test_rows_that_an_overlay_cannot_replace_are_refused(table: str, row: str, tmp_path: Path) -> None:
    source = '[sources.me]\ntitle = "me"\naddress = "https://example.org"\nread = "2026-11-23"\n'
    (tmp_path / "mine.toml").write_text(f'{source}[[{table}]]\n{row}\nsource = "me"\n')
    with pytest.raises(MatrixError, match="are read from the rows that came with envcheck alone"):
        load_matrix((str(tmp_path),))
