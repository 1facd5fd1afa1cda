"""The whole way, from an index on loopback to the files: what is regenerated, what is left alone, what is refused."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from envcheck.errors import MatrixError, UsageError
from envcheck.knowledge.load import read_folder
from envcheck.knowledge.specifier import parse_version, speaks_of
from envcheck.refresh import run
from envcheck.refresh.index import PackageIndex
from envcheck.refresh.run import Refreshed, refresh, report
from tests.every import cases
from tests.refresh.serving import Index as Served
from tests.refresh.serving import metadata, serve, torch_members
from tests.refresh.test_wheel_rows import write_projects

WHOLE = (Path(__file__).with_name("data") / "rows.toml").read_text(encoding="utf-8")
SOURCES = WHOLE.partition("\n[[torch]]")[0]
ROWS = WHOLE.removeprefix(SOURCES)

LINUX = "manylinux_2_28_x86_64.whl"


def add_demo(served: Served, version: str, *requires: str, python: str = ">=3.9", platform: str = LINUX) -> None:
    name = f"demo-{version}-cp39-abi3-{platform}"
    members = {f"demo-{version}.dist-info/METADATA": metadata("demo", version, *requires, python=python)}
    served.add(name, members, requires_python=python)


def add_torch(served: Served, version: str, cuda: str | None, flags: str, *requires: str, ballast: int = 0) -> None:
    for python in ("cp310", "cp311"):
        members = torch_members(version, cuda, flags, *requires, ballast=ballast)
        served.add(f"torch-{version}-{python}-{python}-{LINUX}", members)


@pytest.fixture
def served() -> Iterator[Served]:
    """An index that says what the rows say."""
    index = Served()
    add_torch(index, "2.5.0", "12.4", "sm_50 sm_90", "nvidia-cudnn-cu12 (==9.1.0.70)", "triton; extra == 'x'")
    for version in ("1.0", "1.1"):
        add_demo(index, version, "torch==2.4.0", "numpy")
    add_demo(index, "1.2", "torch==2.4.1")
    with serve(index):
        yield index


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    folder = tmp_path / "matrix"
    folder.mkdir()
    (folder / "rows.toml").write_text(WHOLE)
    return folder


def regenerate(served: Served, matrix: Path, *only: str, dry_run: bool = False) -> Refreshed:
    with closing(PackageIndex(served.address)) as index:
        return refresh(index, str(matrix), only, dry_run=dry_run, today="2026-12-24")


def text(matrix: Path) -> str:
    return (matrix / "rows.toml").read_text()


def told(outcome: Refreshed) -> list[str]:
    return [f"{change.what}: {change.how}" for change in outcome.changes]


# --- nothing new --------------------------------------------------------------------------------------------------
@cases("spoken", "json", "html")
def test_where_the_rows_are_right_no_byte_changes(served: Served, matrix: Path, spoken: str) -> None:
    served.format = spoken
    outcome = regenerate(served, matrix)
    assert outcome == Refreshed((), (), written=False)
    assert report(outcome) == "Nothing changed: the rows say what the index says.\n"
    assert text(matrix) == WHOLE


def test_a_second_refresh_changes_nothing(served: Served, matrix: Path) -> None:
    add_torch(served, "2.6.0", "12.6", "sm_50 sm_90 sm_100")
    add_demo(served, "1.3", "torch==2.5.0")
    assert regenerate(served, matrix).written
    once = text(matrix)
    assert regenerate(served, matrix).changes == ()
    assert text(matrix) == once


def test_wheels_are_read_by_ranges(served: Served, matrix: Path) -> None:
    add_torch(served, "2.6.0", "12.6", "sm_90 sm_100", ballast=3 << 20)
    whole = max(map(len, served.files.values()))
    assert whole > 3 << 20
    assert told(regenerate(served, matrix, "torch")) == ["torch 2.6.0: new row: CUDA 12.6"]
    assert 0 < served.sent < whole / 4


# --- PyTorch ------------------------------------------------------------------------------------------------------
def test_a_new_torch_becomes_a_row(served: Served, matrix: Path) -> None:
    add_torch(served, "2.6.0", "13.0", "sm_75 sm_120 compute_120", "nvidia-cudnn-cu13==9.5.1.17", "triton~=3.8.0")
    served.add("torch-2.6.0-cp311-cp311-manylinux_2_28_aarch64.whl", torch_members("2.6.0", "13.0", "sm_80 sm_90"))
    served.add("torch-2.6.0-cp312-cp312-win_amd64.whl", torch_members("2.6.0", None, ""))
    assert told(regenerate(served, matrix)) == ["torch 2.6.0: new row: CUDA 13.0"]
    assert """
[[torch]]
version = "2.6.0"
default_cuda = "13.0"
default_cuda_aarch64 = "13.0"
cudnn = "9.5.1.17"
triton = "~=3.8.0"
all_builds = false
builds = [
    { cuda = "13.0", targets = ["sm_75", "sm_120", "compute_120"] },
    { cuda = "13.0", targets = ["sm_80", "sm_90"], machine = "aarch64" },
]
source = ["wheels"]

[[release]]
name = "demo"
""" in text(matrix)
    assert 'read = "2026-12-24"' in text(matrix)
    assert [row.version for row in read_folder(matrix).torch] == ["2.5.0", "2.6.0"]


def test_a_torch_row_is_corrected_where_the_wheel_tells(served: Served, matrix: Path) -> None:
    wrong = ROWS.replace("9.1.0.70", "9.1.0.69").replace('"12.4", targets = ["sm_50", "sm_90"]', '"12.4"')
    (matrix / "rows.toml").write_text(SOURCES + wrong)
    assert told(regenerate(served, matrix, "torch")) == [
        "torch 2.5.0: cudnn: 9.1.0.69 -> 9.1.0.70",
        "torch 2.5.0: targets of CUDA 12.4 for x86_64: none -> sm_50 sm_90",
    ]
    assert text(matrix) == SOURCES.replace('PyPI torch"\nread = "2026-01-01', 'PyPI torch"\nread = "2026-12-24') + ROWS


def test_torch_rows_that_do_not_cite_the_wheels_stay(served: Served, matrix: Path) -> None:
    by_hand = ROWS.replace("9.1.0.70", "9.1.0.69").replace('["wheels", "documents"]', '["documents"]')
    (matrix / "rows.toml").write_text(SOURCES + by_hand)
    assert regenerate(served, matrix, "torch").changes == ()


def test_what_wheels_no_longer_state_goes_from_rows_that_cite_nothing_else(served: Served, matrix: Path) -> None:
    add_torch(served, "2.6.0", "12.6", "sm_50 sm_90 sm_100", "triton==3.2.0")
    regenerate(served, matrix, "torch")
    add_torch(served, "2.6.0.post1", "12.6", "sm_50 sm_90 sm_100")
    (matrix / "rows.toml").write_text(text(matrix).replace('cudnn = "9', 'triton = "3.1.0"\ncudnn = "9'))
    assert told(regenerate(served, matrix, "torch")) == ["torch 2.6.0: triton: 3.2.0 -> no longer stated"]
    assert [row.triton for row in read_folder(matrix).torch] == ["3.1.0", None]


# --- releases that were added -------------------------------------------------------------------------------------
def add_for_two_pythons(served: Served) -> None:
    for python, torch in (("cp310", "2.5.0"), ("cp313", "2.6.0")):
        members = {"demo-1.3.dist-info/METADATA": metadata("demo", "1.3", f"torch=={torch}", python=">=3.9")}
        served.add(f"demo-1.3-{python}-{python}-{LINUX}", members)


def add_for_two_machines(served: Served) -> None:
    for platform in (LINUX, "manylinux_2_28_aarch64.whl"):
        condition = "; platform_machine == 'x86_64'"
        add_demo(served, "1.3", "torch==2.5.0", f"xformers==0.0.28{condition}", platform=platform)


@cases("about, add, changes",
    ("a post-release stands for its release",
     lambda served: add_torch(served, "2.5.0.post1", "12.4", "sm_50 sm_90", "nvidia-cudnn-cu12==9.1.0.71"),
     ["torch 2.5.0: cudnn: 9.1.0.70 -> 9.1.0.71"]),
    ("releases before the first row stay out", lambda served: add_torch(served, "1.13.0", "11.7", "sm_37 sm_86"), []),
    ("wheels for several Pythons that need different releases", add_for_two_pythons,
     ["demo ==1.3: new row: torch ==2.5.0|==2.6.0, python ==3.10|==3.13"]),
    ("what holds on one machine is not said of both", add_for_two_machines,
     ["demo ==1.3: new row: torch ==2.5.0, python >=3.9"]),
    ("every release counts, whatever Python asks",
     lambda served: add_demo(served, "1.3", "torch==2.5.0", python=">=3.99"),
     ["demo ==1.3: new row: torch ==2.5.0, python >=3.99"]),
)  # fmt: skip
def test_added(served: Served, matrix: Path, about: str, add: Callable[[Served], None], changes: list[str]) -> None:
    add(served)
    assert told(regenerate(served, matrix)) == changes


# --- what METADATA tells ------------------------------------------------------------------------------------------
def test_a_new_release_becomes_a_row_behind_its_own(served: Served, matrix: Path) -> None:
    add_demo(served, "1.3", "torch==2.5.0", "nvidia-cudnn-cu12<10,>=9.1; extra == 'gpu'", python="<3.14,>=3.10")
    add_demo(served, "1.4", "torch==2.5.0", "nvidia-cudnn-cu12<10,>=9.1; extra == 'gpu'", python="<3.14,>=3.10")
    outcome = regenerate(served, matrix)
    assert told(outcome) == ["demo >=1.3,<=1.4: new row: torch ==2.5.0, cudnn >=9.1, python >=3.10,<3.14"]
    assert outcome.files == (matrix / "rows.toml",)
    assert """
source = ["demo", "documents"]

[[release]]
name = "demo"
versions = ">=1.3,<=1.4"
needs = { torch = "==2.5.0", cudnn = ">=9.1", python = ">=3.10,<3.14" }
os = ["linux"]
machine = ["x86_64"]
source = ["demo"]

[[release]]
name = "other"
""" in text(matrix)


def test_a_need_that_a_row_did_not_have_is_added_unless_another_row_says_it(served: Served, matrix: Path) -> None:
    add_demo(served, "1.0", "torch==2.4.0", "xformers==0.0.27")
    add_demo(served, "1.1", "torch==2.4.0", "xformers==0.0.27", "nvidia-cudnn-cu12==9.1.0")
    path = matrix / "rows.toml"
    beside = '[[release]]\nname = "demo"\nversions = "==1.1"\nneeds = { cudnn = "==9.1" }\nsource = ["documents"]\n\n'
    path.write_text(path.read_text().replace("# By hand.\n", f"{beside}# By hand.\n", 1))
    assert told(regenerate(served, matrix)) == ["demo >=1.0,<1.2: xformers: ==0.0.27, which the row did not say"]
    added = [row.needs for row in read_folder(matrix).releases if row.name == "demo" and "xformers" in row.needs]
    assert added == [{"torch": "==2.4.0", "cuda": ">=12,<13", "python": ">=3.9", "xformers": "==0.0.27"}]


@cases("more", "1.3.0.1", "1.3.1")
def test_a_release_of_two_numbers_does_not_stand_for_others(served: Served, matrix: Path, more: str) -> None:
    add_demo(served, "1.3", "torch==2.5.0")
    add_demo(served, more, "torch==2.5.1")
    regenerate(served, matrix)
    rows = {row.needs["torch"]: row for row in read_folder(matrix).releases if row.name == "demo"}
    for version, torch in (("1.3.0", "==2.5.0"), (more, "==2.5.1")):
        asked = parse_version(version)
        assert asked
        assert [need for need, row in rows.items() if speaks_of(row.versions, asked) == "all"] == [torch]
    assert regenerate(served, matrix).changes == ()


def test_a_wrong_pin_is_corrected_and_what_metadata_does_not_tell_stays(served: Served, matrix: Path) -> None:
    (matrix / "rows.toml").write_text(SOURCES + ROWS.replace('torch = "==2.4.0"', 'torch = "==2.3.0"'))
    assert told(regenerate(served, matrix)) == ["demo >=1.0,<1.2: torch: ==2.3.0 -> ==2.4.0"]
    assert ROWS in text(matrix)


def test_a_row_is_split_where_its_releases_differ(served: Served, matrix: Path) -> None:
    add_demo(served, "1.1", "torch==2.3.1")
    assert told(regenerate(served, matrix)) == ["demo >=1.0,<1.2: needs differ: split into 2 rows"]
    rows = {row.versions: row for row in read_folder(matrix).releases if row.name == "demo"}
    assert {versions: row.needs["torch"] for versions, row in rows.items()} == {
        "==1.0": "==2.4.0", "==1.1": "==2.3.1", "==1.2": "==2.4.1",
    }  # fmt: skip
    assert rows["==1.1"].needs["cuda"] == ">=12,<13"


def test_a_row_completed_by_hand_is_only_said_to_differ(served: Served, matrix: Path) -> None:
    add_demo(served, "1.2", "torch==2.4.2", python=">=3.8")
    outcome = regenerate(served, matrix)
    assert told(outcome) == [
        "demo ==1.2: torch: the row says ==2.4.1, METADATA ==2.4.2; left alone: it cites other sources too"
    ]
    assert outcome.files == ()
    assert report(outcome).endswith("\nnothing to write\n")
    assert text(matrix) == WHOLE


def test_withdrawn_releases_and_candidates_are_none(served: Served, matrix: Path) -> None:
    add_demo(served, "1.3", "torch==2.5.0")
    add_demo(served, "1.4rc1", "torch==2.5.0")
    served.yanked.add(f"demo-1.3-cp39-abi3-{LINUX}")
    assert regenerate(served, matrix).changes == ()


# --- what is written ----------------------------------------------------------------------------------------------
def test_a_dry_run_writes_nothing(served: Served, matrix: Path) -> None:
    add_demo(served, "1.3", "torch==2.5.0")
    outcome = regenerate(served, matrix, dry_run=True)
    assert f"would write {matrix / 'rows.toml'}\n" in report(outcome)
    assert not outcome.written
    assert text(matrix) == WHOLE


def test_only_what_is_named_is_asked_for(served: Served, matrix: Path) -> None:
    add_torch(served, "2.6.0", "12.6", "sm_90 sm_100")
    assert regenerate(served, matrix, "demo").changes == ()
    assert {path.split("/")[2] for path in served.asked if path.startswith("/simple")} == {"demo"}


def test_a_name_without_generated_rows(served: Served, matrix: Path) -> None:
    with pytest.raises(UsageError, match="--only vllm: no rows of it are generated; they are of demo, torch"):
        regenerate(served, matrix, "vllm")
    assert served.asked == []


@cases("broken", "torch/", "demo/", f"demo-1.3-cp39-abi3-{LINUX}", f"torch-2.5.0-cp311-cp311-{LINUX}")
def test_when_anything_cannot_be_read_nothing_changes(served: Served, matrix: Path, broken: str) -> None:
    add_demo(served, "1.3", "torch==2.5.0")
    add_torch(served, "2.6.0", "12.6", "sm_90 sm_100")
    served.broken[broken] = 503
    with pytest.raises(UsageError) as caught:
        regenerate(served, matrix)
    assert "\n" not in str(caught.value)
    assert "http" not in str(caught.value).lower().replace("http status 503", "")
    assert text(matrix) == WHOLE


@cases("about, spoil, complaint",
    ("a server without ranges", lambda served: setattr(served, "ranges", False),
     r"\.whl cannot be read by ranges: the server does not offer it"),
    ("a wheel that is no zip", lambda served: served.files.update({f"demo-1.0-cp39-abi3-{LINUX}": b"<html>" * 100}),
     rf"demo-1.0-cp39-abi3-{LINUX} cannot be read by ranges: BadZipFile"),
    ("a server that promises more than was asked", lambda served: setattr(served, "range_end", 1 << 40),
     r"\.whl cannot be read by ranges: RemoteZipError"),
    ("a member that unpacks without end",
     lambda served: served.add(f"torch-2.6.0-cp311-cp311-{LINUX}",
         torch_members("2.6.0", "12.6", "sm_90 sm_100") | {"torch/version.py": b"#" * (1 << 22)}),
     r"torch/version.py is longer than 65536 bytes"),
)  # fmt: skip
def test_spoilt(served: Served, matrix: Path, about: str, spoil: Callable[[Served], object], complaint: str) -> None:
    spoil(served)
    with pytest.raises(UsageError, match=complaint):
        regenerate(served, matrix)
    assert text(matrix) == WHOLE


def test_a_wheel_whose_list_of_members_has_no_end(served: Served, matrix: Path) -> None:
    wheel = f"demo-1.2-cp39-abi3-{LINUX}"
    end = served.files[wheel].rindex(b"PK\x05\x06")
    listed = (1 << 30).to_bytes(4, "little")
    content = served.files[wheel]
    served.files[wheel] = content[: end + 12] + listed + content[end + 16 :]
    served.padding[wheel] = 1 << 30
    with pytest.raises(UsageError, match=rf"{wheel} cannot be read by ranges: RemoteZipError"):
        regenerate(served, matrix, "demo")


def test_a_result_that_is_no_matrix_is_dropped(served: Served, matrix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_demo(served, "1.3", "torch==2.5.0")
    monkeypatch.setattr(run, "read_folder", _refuse)
    with pytest.raises(MatrixError, match="not a matrix"):
        regenerate(served, matrix)
    assert text(matrix) == WHOLE


def _refuse(_folder: Path) -> None:
    raise MatrixError("not a matrix")


def test_an_interrupted_write_leaves_it_whole(served: Served, matrix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_demo(served, "1.3", "torch==2.5.0")

    def full(*_names: str, **_folders: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(UsageError, match="No space left on device"):
        regenerate(served, matrix)
    assert text(matrix) == WHOLE
    assert [path.name for path in matrix.iterdir()] == ["rows.toml"]


def test_rows_that_somebody_changed_meanwhile_are_not_lost(served: Served, matrix: Path) -> None:
    add_demo(served, "1.3", "torch==2.5.0")
    by_hand = WHOLE + "# a remark\n"

    def write(_step: str) -> None:
        (matrix / "rows.toml").write_text(by_hand)

    refused = pytest.raises(UsageError, match=r"rows\.toml was changed while the")
    with closing(PackageIndex(served.address)) as index, refused:
        refresh(index, str(matrix), on_step=write)
    assert text(matrix) == by_hand


def test_line_ends_stay(served: Served, matrix: Path) -> None:
    (matrix / "rows.toml").write_bytes(WHOLE.replace("\n", "\r\n").encode())
    add_demo(served, "1.3", "torch==2.5.0")
    assert regenerate(served, matrix).written
    assert (
        (matrix / "rows.toml")
        .read_bytes()
        .decode()
        .startswith(SOURCES.partition("[sources.demo]")[0].replace("\n", "\r\n"))
    )
    assert [row.versions for row in read_folder(matrix).releases][-2:] == ["==1.3", "==1.0"]


# --- where it may write -------------------------------------------------------------------------------------------
def test_an_installed_matrix_is_refused(served: Served, matrix: Path) -> None:
    package = matrix.parent / "site-packages" / "envcheck"
    package.mkdir(parents=True)
    installed = matrix.rename(package / "matrix")
    with pytest.raises(UsageError, match="belongs to an installed package, which is never changed"):
        regenerate(served, installed)
    assert served.asked == []


@cases("trace", "compiled.json", "../__init__.py")
def test_a_folder_of_a_package_is_refused(served: Served, matrix: Path, trace: str) -> None:
    (matrix / trace).write_text("")
    with pytest.raises(UsageError, match="belongs to an installed package"):
        regenerate(served, matrix)


def test_a_link_into_a_package_is_refused(served: Served, matrix: Path, tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("")
    elsewhere = tmp_path / "elsewhere" / "link"
    elsewhere.parent.mkdir()
    elsewhere.symlink_to(matrix)
    with pytest.raises(UsageError, match="belongs to an installed package"):
        regenerate(served, elsewhere)


def test_the_default_is_the_checkout_s(monkeypatch: pytest.MonkeyPatch, matrix: Path) -> None:
    monkeypatch.setattr(run, "folder", lambda _name: matrix)
    assert run.folder_to_write(None) == matrix


@cases("prepare, complaint",
    (lambda folder: (folder / "rows.toml").unlink(), "no matrix here: it has no TOML file"),
    (lambda folder: (folder / "rows.toml").rename(folder.parent / "x") and folder.rmdir(), "there is no such folder"),
    (lambda folder: (folder / "rows.toml").write_text("[sources]\n"), r"no file there has a table \[generated.NAME\]"),
    (lambda folder: (folder / "rows.toml").write_text('[generated.a]\nsource = "b"\n'), r"there is no \[sources.b\]"),
    (lambda folder: (folder / "rows.toml").write_text("[generated.a]\nsources = 1\n"), r"rows.toml: \[generated.a\]: "),
    (lambda folder: write_projects(folder, {"name": 5}), "pypi.jsonl: line 1: not a project as"),
)  # fmt: skip
def test_a_folder_that_does_not_do(served: Served, matrix: Path, prepare: object, complaint: str) -> None:
    assert callable(prepare)
    prepare(matrix)
    with pytest.raises((UsageError, MatrixError), match=complaint):
        regenerate(served, matrix)
    assert served.asked == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(served: Served, matrix: Path) -> None:
    (matrix / "rows.toml").chmod(0o444)
    with pytest.raises(UsageError, match="no permission to write"):
        regenerate(served, matrix)
