"""Rows of wheels from file names, as real projects name their files."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import date
from pathlib import Path

from envcheck.bundle import folder
from envcheck.knowledge.compiling import PROJECTS
from envcheck.knowledge.days import days_in
from envcheck.knowledge.load import read_folder
from envcheck.refresh.document import Projects
from envcheck.refresh.index import IndexFile as File
from envcheck.refresh.index import PackageIndex
from envcheck.refresh.project_rows import published_rows, wheel_rows
from envcheck.refresh.run import refresh
from envcheck.refresh.wheel_files import newest_wheel, pythons_of, releases
from tests.every import cases, tabled
from tests.refresh.serving import Index as Served
from tests.refresh.serving import metadata, serve

SOURCE = {"title": "demo on PyPI", "address": "PyPI demo", "read": "2026-01-01"}


def write_projects(folder: Path, *projects: dict[str, object]) -> Path:
    """The generated file of a folder of rows, with these lines."""
    path = folder / "generated" / "pypi.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps({'source': SOURCE, **project})}\n" for project in projects))
    return path


def rows(*names: str, requires_python: str = "", yanked: tuple[str, ...] = ()) -> dict[str, dict[str, str]]:
    """The Pythons by system, by the versions of the row."""
    files = [File(name, "", requires_python, name in yanked) for name in names]
    return {row["versions"]: row["pythons"] for row in wheel_rows("demo", files)}


@tabled
def test_a_wheel_is_for_the_systems_of_its_name(platform: str, systems: list[str]) -> None:
    found = rows(f"demo-1.0-cp310-cp310-{platform}.whl")
    assert [list(pythons) for pythons in found.values()] == ([systems] if systems else [])


@tabled
def test_tags_and_requires_python_tell_the_pythons(tags: str, requires: str, spec: str) -> None:
    found = rows(f"demo-1.0-{tags}-manylinux_2_17_x86_64.whl", requires_python=requires)
    assert list(found.values()) == [{"linux-x86_64": spec}]


def test_a_build_for_free_threaded_python_is_no_other_s() -> None:
    assert rows("demo-1.0-cp313-cp313t-win_amd64.whl") == {}


def test_releases_alike_share_a_row_and_a_gap_parts_them() -> None:
    def wheel(version: str, python: str = "cp310-cp310") -> str:
        return f"demo-{version}-{python}-win_amd64.whl"

    found = rows(
        wheel("1.0"), wheel("1.1"), "demo-1.2.tar.gz", wheel("1.3"), wheel("1.4", "cp311-cp311"), wheel("2.0rc1")
    )
    assert list(found) == [">=1.0,<1.2", "==1.3", "==1.4"]
    assert found["==1.4"] == {"windows-x86_64": "==3.11"}


def test_a_yanked_wheel_counts_where_a_release_has_no_other_file() -> None:
    """pip installs it for ``==1.0``, and for nothing else."""
    name, other = "demo-1.0-cp310-cp310-win_amd64.whl", "demo-1.0-cp311-cp311-win_amd64.whl"
    assert rows(name, yanked=(name,)) == {"==1.0": {"windows-x86_64": "==3.10"}}
    assert rows(name, other, yanked=(name,)) == {"==1.0": {"windows-x86_64": "==3.11"}}
    assert rows(name, "demo-1.0.tar.gz", yanked=(name,)) == {}


def test_the_least_glibc_of_any_wheel_and_the_archive_are_told() -> None:
    tags = ("cp310-cp310-manylinux_2_28", "cp311-cp311-manylinux2014", "pp39-pypy39_pp73-manylinux2010")  # one of PyPy
    wheels = [f"demo-1.0-{tag}_x86_64.whl" for tag in tags]
    (row,) = wheel_rows("demo", [File(name, "") for name in (*wheels, "demo-1.0.tar.gz", "demo-1.0-4.tar.gz")])
    assert row["glibc"] == {"x86_64": "2.17"}
    assert row["archive"]


def test_of_a_source_archive_alone_the_declared_pythons_are_told() -> None:
    archives = [File("demo-1.0.tar.gz", "", ">=3.8"), File("demo-2.0.tar.gz", ""), File("demo-3.0.tar.gz", "", ">=3.9")]
    wheel = File("demo-3.0-py3-none-any.whl", "", ">=3.9")
    told = {row["versions"]: row.get("archive_pythons") for row in wheel_rows("demo", [*archives, wheel])}
    assert told == {"==1.0": ">=3.8", "==3.0": None}


def test_a_long_series_is_parted_for_the_limit_of_a_line() -> None:
    (row,) = published_rows("demo", [File(f"demo-8.3.{number}-py3-none-any.whl", "") for number in range(300)])
    assert [word for text in row["releases"] for word in text.split()] == [f"8.3.{number}" for number in range(300)]
    assert max(text.count(".") for text in row["releases"]) < 200


def test_the_day_of_the_first_file_of_each_release_is_kept() -> None:
    """As PyPI had it: a mirror may have it later, or tell no day."""
    first, second = date(2024, 12, 30), date(2025, 1, 9)
    days = {
        "1.0.tar.gz": second,
        "1.0-py3-none-any.whl": first,
        "1.1.tar.gz": None,
        "2.0.zip": first,
        "3.0.zip": second,
    }
    files = [File(f"demo-{name}", "", yanked="1" in name, uploaded=day) for name, day in days.items()]
    (row,) = published_rows("demo", files)
    assert (row["days"], row["yanked"]) == ("20241230 - 0 10", "1.0 1.1")
    assert [*days_in(row["days"])] == [first, None, first, second]
    assert [*days_in("20241330 1")] == [*days_in("99999999")] == []
    assert published_rows("demo", files, {"1.1": second, "3.0": first})[0]["days"] == "20241230 10 -10 0"
    assert "days" not in published_rows("demo", [File("demo-1.0.tar.gz", "")])[0]


@cases("name", "demo-.whl", "demo-1.0-x.whl", "other-1.0-py3-none-any.whl", "demo-1.0.exe", "-.tar.gz")
def test_other_files_are_left_out(name: str) -> None:
    assert rows(name) == {}


def test_the_shipped_lines_are_as_a_refresh_writes_them() -> None:
    path = folder("matrix") / PROJECTS
    assert Projects(path).text.encode() == path.read_bytes()


def test_all_rows_of_the_name_are_written_anew_and_nothing_else(tmp_path: Path) -> None:
    other = {"versions": "==1.0", "pythons": {"any": ">=3.0"}}
    gone = {**other, "versions": "==0.1"}
    path = write_projects(tmp_path, {"name": "zother", "wheels": [other]}, {"name": "demo", "wheels": [gone]})
    served = Served()
    served.add("demo-1.0-cp310-cp310-win_amd64.whl", {"demo-1.0.dist-info/METADATA": metadata("demo", "1.0")})
    with serve(served), closing(PackageIndex(served.address)) as index:
        outcome = refresh(index, str(tmp_path), ["demo"], today="2026-02-02")
        again = refresh(index, str(tmp_path), ["demo"])
    assert [(change.what, change.how.partition(":")[0]) for change in outcome.changes] == [
        ("demo ==1.0", "written"), ("demo ==0.1", "taken away"), ("demo", "written"),
    ]  # fmt: skip
    assert (again.changes, again.files) == ((), ())
    demo, zother = path.read_text().splitlines()
    assert demo == (
        '{"name":"demo","source":{"title":"demo on PyPI","address":"PyPI demo","read":"2026-02-02"},'
        '"wheels":[{"versions":"==1.0","pythons":{"windows-x86_64":"==3.10"}}],"published":[{"releases":["1.0"]}]}'
    )
    assert json.loads(zother) == {"name": "zother", "source": SOURCE, "wheels": [other]}
    found = read_folder(tmp_path)
    assert [(row.name, row.versions) for row in found.wheels] == [("demo", "==1.0"), ("zother", "==1.0")]
    assert found.sources["pypi.jsonl/demo"].read == "2026-02-02"


# --- Releases and platforms by file names, as real projects name their files ----------------------------------------


def files(*names: str) -> list[File]:
    return [File(name, f"https://index.example/{name}") for name in names]


def test_only_final_releases_with_wheels_that_stand() -> None:
    listed = [
        *files(
            "vllm-0.2.0-cp311-cp311-manylinux1_x86_64.whl", "vllm-0.3.0.tar.gz", "vllm-0.9.0rc1-cp38-abi3-win_amd64.whl"
        ),
        *files("vllm-0.6.1+cu118-cp38-abi3-manylinux1_x86_64.whl", "other-1.0-py3-none-any.whl", "nonsense.whl"),
        *files("vllm-0.10.2-cp38-abi3-manylinux1_x86_64.whl", "vllm-0.4.0.post1-cp311-cp311-manylinux1_x86_64.whl"),
        File("vllm-0.2.1-cp311-cp311-manylinux1_x86_64.whl", "https://index.example/", yanked=True),
    ]
    assert [str(release.version) for release in releases(listed, "vLLM")] == ["0.2.0", "0.4.0.post1", "0.10.2"]


def test_pythons_and_platforms() -> None:
    (release,) = releases(
        files(
            "torch-1.4.0-cp27-cp27mu-manylinux1_x86_64.whl", "torch-1.4.0-cp36-cp36m-manylinux1_x86_64.whl",
            "torch-1.4.0-cp38-cp38-manylinux1_x86_64.whl", "torch-1.4.0-cp37-none-macosx_10_9_x86_64.whl",
            "torch-1.4.0-cp39-cp39-win_amd64.whl", "torch-1.4.0-cp310-cp310-manylinux_2_28_aarch64.whl",
        ),
        "torch",
    )  # fmt: skip
    assert pythons_of(release) == [(2, 7), (3, 6), (3, 8)]
    assert pythons_of(release, "windows") == [(3, 9)]
    assert pythons_of(release, machine="aarch64") == [(3, 10)]
    assert release.machines == ("x86_64", "aarch64")
    newest = newest_wheel(release)
    assert newest is not None
    assert newest.file.name == "torch-1.4.0-cp38-cp38-manylinux1_x86_64.whl"


def test_the_last_build_of_a_wheel_counts() -> None:
    (release,) = releases(
        files(
            "torch-2.10.0-1-cp310-cp310-manylinux_2_28_x86_64.whl",
            "torch-2.10.0-3-cp310-cp310-manylinux_2_28_x86_64.whl",
        ),
        "torch",
    )
    newest = newest_wheel(release)
    assert newest is not None
    assert newest.build == (3, "")


@tabled
def test_what_a_wheel_is_for(name: str, later: bool, platforms: set[tuple[str, str]]) -> None:  # noqa: FBT001
    ((wheel,),) = (release.wheels for release in releases(files(name), "x"))
    assert (wheel.any_later, set(wheel.platforms)) == (later, platforms)
    assert newest_wheel(releases(files(name), "x")[0], *next(iter(platforms or {("linux", "x86_64")}))) == wheel
