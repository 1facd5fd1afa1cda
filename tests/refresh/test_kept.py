"""What a file of an index said is read once: of a wheel as of an archive, also where a refresh was ended on its way."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.refresh.index import PackageIndex
from envcheck.refresh.kept import Kept, default_place
from envcheck.refresh.run import Refreshed, refresh
from tests.every import cases
from tests.refresh.serving import Index, metadata, serve, torch_members
from tests.refresh.test_wheel_rows import write_projects

TORCH = (Path(__file__).with_name("data") / "torch.toml").read_text(encoding="utf-8")
FLAGS = "sm_80 sm_90 compute_90"


@pytest.fixture
def index() -> Iterator[Index]:
    served = Index()
    for version in ("2.4.0", "2.5.0"):
        members = torch_members(version, "12.1", FLAGS, "numpy>=1.20")
        served.add(f"torch-{version}-cp312-cp312-manylinux1_x86_64.whl", members)
    for version in ("1.0", "1.1"):
        members = {f"demo-{version}.dist-info/METADATA": metadata("demo", version, f"torch>=2.{version[-1]}")}
        served.add(f"demo-{version}-py3-none-any.whl", members)
    with serve(served):
        yield served


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    folder = tmp_path / "matrix"
    folder.mkdir()
    (folder / "torch.toml").write_text(TORCH)
    write_projects(folder, {"name": "demo"})
    return folder


def refreshed(index: Index, matrix: Path, place: Path | None, *, dry_run: bool = False) -> Refreshed:
    with closing(PackageIndex(index.address)) as asked, closing(Kept(place)) as kept:
        return refresh(asked, str(matrix), dry_run=dry_run, kept=kept)


def wheels_asked(index: Index) -> list[str]:
    asked = [path.rpartition("/")[2] for path in index.asked if "/files/" in path]
    index.asked.clear()
    return asked


def test_a_file_is_read_once(index: Index, matrix: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache" / "said.sqlite"
    first = refreshed(index, matrix, place, dry_run=True)
    assert {name.split("-")[0] for name in wheels_asked(index)} == {"torch", "demo"}
    again = refreshed(index, matrix, place)
    assert (again.changes, wheels_asked(index)) == (first.changes, [])
    members = {"demo-1.2.dist-info/METADATA": metadata("demo", "1.2", "torch>=2.5")}
    index.add("demo-1.2-py3-none-any.whl", members)
    assert [change.what for change in refreshed(index, matrix, place).changes][-1] == "demo ==1.2"
    assert set(wheels_asked(index)) == {"demo-1.2-py3-none-any.whl"}
    assert not refreshed(index, matrix, None).changes  # what was kept is what is read


def test_what_was_read_before_an_error_is_not_read_again(index: Index, matrix: Path, tmp_path: Path) -> None:
    place = tmp_path / "said.sqlite"
    broken = "demo-1.1-py3-none-any.whl"
    index.broken = {broken: 503}
    with pytest.raises(UsageError, match=f"^{broken} cannot be read"):
        refreshed(index, matrix, place)
    wheels_asked(index)
    index.broken = {}
    refreshed(index, matrix, place)
    assert broken in (asked := wheels_asked(index))
    assert not [name for name in asked if name.startswith("torch")]


def test_a_file_that_changed_under_its_name_is_read_again(index: Index, matrix: Path, tmp_path: Path) -> None:
    place = tmp_path / "said.sqlite"
    refreshed(index, matrix, place)
    members = {"demo-1.1.dist-info/METADATA": metadata("demo", "1.1", "torch>=2.9")}
    index.add("demo-1.1-py3-none-any.whl", members)
    (change,) = refreshed(index, matrix, place).changes
    assert change.what == "demo ==1.1"


def test_nothing_is_kept_of_a_file_without_a_hash(index: Index, matrix: Path, tmp_path: Path) -> None:
    index.hashes = dict.fromkeys(index.files, "")
    for _ in range(2):
        refreshed(index, matrix, tmp_path / "said.sqlite")
        assert "demo-1.1-py3-none-any.whl" in wheels_asked(index)


def test_metadata_that_is_a_file_of_its_own_is_read_without_the_wheel(index: Index, matrix: Path) -> None:
    name = "demo-1.1-py3-none-any.whl"
    index.metadata = {name: metadata("demo", "1.1", "torch>=2.1")}
    refreshed(index, matrix, None)
    asked = wheels_asked(index)
    assert (f"{name}.metadata" in asked, name in asked) == (True, False)


def test_metadata_that_is_not_what_the_index_says_is_refused(index: Index, matrix: Path) -> None:
    name = "demo-1.1-py3-none-any.whl"
    index.metadata = {name: metadata("demo", "1.1", "torch>=2.1")}
    with closing(PackageIndex(index.address)) as asked:
        (file,) = [each for each in asked.files("demo") if each.name == name]
        index.metadata[name] += b"Requires-Dist: numpy\n"
        with pytest.raises(UsageError, match=f"^{name}.metadata was refused: its sha256 is not what the index says"):
            asked.whole(file.metadata, 1 << 20)


def test_a_file_of_others_is_not_used(tmp_path: Path) -> None:
    place = tmp_path / "said.sqlite"
    place.touch()
    place.chmod(0o666)
    with pytest.raises(UsageError, match="other users can write it; remove it"):
        Kept(place)
    place.chmod(0o600)
    place.write_bytes(b"no database at all, but long enough to be read as the head of one" * 20)
    with pytest.raises(UsageError, match="what was read cannot be kept"):
        Kept(place)


@cases(
    "variables, place", ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/envcheck/refresh.sqlite"),
    ({"HOME": "/h"}, "/h/.cache/envcheck/refresh.sqlite"), ({"XDG_CACHE_HOME": "c"}, None), ({}, None),
)  # fmt: skip
def test_it_lies_in_the_folder_for_caches(variables: dict[str, str], place: str | None) -> None:
    found = default_place(variables)
    assert (str(found) if found else None) == place
