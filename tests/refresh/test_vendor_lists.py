"""Rows from NVIDIA's lists, on loopback: cut-outs of its releases.json as of September 2026, as it is kept by
2009seungbin-stack/my-first-repo, and of redistrib_13.3.0.json (CUDA) and 9.27.0 (cuDNN), as nixpkgs keeps them.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from envcheck.refresh.index import PackageIndex
from envcheck.refresh.run import refresh
from tests.every import cases
from tests.refresh.serving import Index, serve

DATA = Path(__file__).with_name("data")
KINDS = 'kinds = { "lts branch" = "long-term", "production branch" = "production" }\n'
SOURCE = '[generated.{}]\nsource = "list"\n{}\n[sources.list]\ntitle = "A list"\naddress = "{}"\nread = "2026-01-01"\n'
DRIVERS = (DATA / "drivers.toml").read_text(encoding="utf-8")
TOOLKITS = (DATA / "toolkits.toml").read_text(encoding="utf-8")
CUDNN = '\n[[release]]\nname = "cudnn"\nversions = ">=9.11,<9.13"\nneeds = { cuda = "==12" }\nsource = ["list"]\n'


@pytest.fixture
def served() -> Iterator[Index]:
    index = Index()
    index.files = {path.name: path.read_bytes() for path in DATA.glob("*.json")}
    index.files["cuda"] = b"".join(
        b'<a href="redistrib_%s.json">x</a>\n' % each
        for each in (b"13.3.0", b"11.0.3", b"13.2.1", b"13.2.0", b"13.4.1")
    )
    index.files["cudnn"] = b'<a href="redistrib_9.27.0.json"></a><a href="redistrib_9.11.0.json"></a><a href="v1.json">'
    with serve(index):
        yield index


def regenerated(index: Index, tmp_path: Path, name: str, path: str, rows: str) -> tuple[list[str], str]:
    """What changed, and the rows as they are then."""
    head = SOURCE.format(name, KINDS * (name == "driver"), f"{index.address.removesuffix('simple')}files/{path}")
    (tmp_path / "rows.toml").write_text(head + rows)
    with closing(PackageIndex(index.address)) as asked:
        done = refresh(asked, str(tmp_path), today="2026-12-24")
        told = [f"{change.what}: {change.how}" for change in done.changes]
        again = refresh(asked, str(tmp_path), today="2026-12-25")
        assert not again.files
    return told, (tmp_path / "rows.toml").read_text().partition("\n\n")[2]


def test_branches_get_their_kinds_and_new_ones_a_row(served: Index, tmp_path: Path) -> None:
    told, rows = regenerated(served, tmp_path, "driver", "releases.json", DRIVERS)
    assert told == [
        "driver R460: new row: production; the list does not say which CUDA it supports",
        "driver R580: kind: production -> long-term; left alone: it cites other sources too",
        "driver R595: kind: none -> production",
        "driver R615: its kind, 'new feature branch', is none of [generated.driver]",
    ]
    assert '[[driver]]\nbranch = 460\nkind = "production"\nsource = ["list"]\n\n[[driver]]\nbranch = 580\n' in rows
    assert 'branch = 595\nsource = ["notes", "list"]\nkind = "production"\n\n# Of Windows.\n' in rows
    assert 'read = "2026-12-24"' in rows


def test_toolkits_get_their_releases_and_new_ones_a_row(served: Index, tmp_path: Path) -> None:
    told, rows = regenerated(served, tmp_path, "cuda", "cuda", TOOLKITS)
    came = "new row: came with driver 610.43.02; the list does not say which GPUs it compiles for"
    assert told == ["cuda 13.2: releases: 13.2.1 is new", f"cuda 13.3: {came}", "cuda 13.4: releases: 13.4.1 is new"]
    new = 'version = "13.3"\nreleases = ["13.3.0"]\ndriver_linux = "580"\nbundled_driver = "610.43.02"\n'
    assert 'releases = ["13.2.0", "13.2.1"]\nsource = ["list"]\n\n[[cuda]]\n' + new in rows
    assert f'{new}source = ["list"]\nconfidence = "medium"\n\n# By hand.' in rows


@cases(
    "content, told",
    (None, "cudnn 9.27.0: no row has it: it is for CUDA 12 and 13; its support matrix says for which GPUs"),
    (b"{", "cudnn: ADDRESS is not such a list: Input data was truncated"),
    (b"[]", "cudnn: ADDRESS is not such a list: Expected `object`, got `array`"),
    (b'{"cudnn": {"version": 9}}', "cudnn: ADDRESS is not such a list: Expected `str`, got `int` - at `$.version`"),
    (
        b"{}",
        "cudnn 9.27.0: no row has it: it is for CUDA which it does not say; its support matrix says for which GPUs",
    ),
    ids=["as it is", "cut short", "no object", "no text", "nothing in it"],
)
def test_a_new_cudnn_is_told_and_nothing_is_written(
    content: bytes | None, told: str, served: Index, tmp_path: Path
) -> None:
    if content is not None:
        served.files["redistrib_9.27.0.json"] = content
    found, rows = regenerated(served, tmp_path, "cudnn", "cudnn", CUDNN)
    assert found == [told.replace("ADDRESS", f"{served.address.removesuffix('simple')}files/cudnn")]
    assert 'read = "2026-01-01"' in rows


def test_a_list_that_cannot_be_read_changes_nothing(served: Index, tmp_path: Path) -> None:
    told, _ = regenerated(served, tmp_path, "driver", "nowhere.json", DRIVERS)
    (one,) = told
    assert one.endswith("nowhere.json cannot be read: HTTP status 404; its rows stay as they are")
