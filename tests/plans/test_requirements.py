"""Requirements files: what counts, what stays open, and what is refused."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.errors import UsageError
from tests.plans.reading import packages, plan, versions


def test_pins_carry_the_line_on_which_they_begin(tmp_path: Path) -> None:
    text = "# pinned\n\ntorch==2.0.1 \\\n  --hash=sha256:aa \\\n  --hash=sha256:bb\nnumpy>=1.26  # any\n"
    found = packages(plan(tmp_path, requirements__txt=text))
    assert (found["torch"].version, found["torch"].line) == ("2.0.1", 3)
    assert found["torch"].source == f"{tmp_path}/requirements.txt:3"
    assert (found["numpy"].version, found["numpy"].bounds, found["numpy"].line) == (None, ">=1.26", 6)


@pytest.mark.parametrize(
    ("option", "build"),
    [
        ("", ""),
        ("--index-url https://download.pytorch.org/whl/cu118", "cu118"),
        ("--extra-index-url=https://download.pytorch.org/whl/cu121/", "cu121"),
        ("-ihttps://pypi.example/simple", ""),
        ("--index-url https://user:secret@mirror.example/simple", None),
        ("--find-links ./wheels", None),
    ],
)
def test_an_index_tells_the_build(tmp_path: Path, option: str, build: str | None) -> None:
    assert packages(plan(tmp_path, requirements__txt=f"{option}\ntorch==2.0.1\n"))["torch"].build == build


def test_no_build_is_inferred_where_the_index_is_private(tmp_path: Path) -> None:
    found = plan(tmp_path, requirements__txt="-i https://mirror.example/simple\ntorch==2.0.1\n")
    assert [each.name for each in found.distributions or ()] == []
    assert found.frameworks is not None
    assert [each.cuda for each in found.frameworks.items] == [None]


def test_markers_choose_by_the_machine_and_its_python(tmp_path: Path) -> None:
    text = 'torch==2.0.1 ; python_version < "3.10"\ntorch==2.4.0 ; python_version >= "3.10"\nwin==1 ; os_name == "nt"\n'
    assert versions(plan(tmp_path, "3.11", requirements__txt=text)) == {"torch": "2.4.0"}
    unknown = packages(plan(tmp_path, None, requirements__txt=text))["torch"]
    assert unknown.version is None
    assert unknown.problem is not None
    assert "contradicts" in unknown.problem


def test_included_files_and_constraints(tmp_path: Path) -> None:
    found = packages(
        plan(
            tmp_path,
            requirements__txt="-r base.txt\n-c limits.txt\nnumpy\n",
            _base__txt="torch>=2.0\n",
            _limits__txt="torch==2.0.1\nscipy==1.0\n",
        )
    )
    assert {name: each.version for name, each in found.items()} == {"torch": "2.0.1", "numpy": None}
    assert found["torch"].source.endswith("limits.txt:1")


def test_a_wheel_tells_its_version_and_a_folder_does_not(tmp_path: Path) -> None:
    text = (
        "torch @ https://x.example/torch-2.0.1%2Bcu118-cp310-cp310-linux_x86_64.whl\n"
        "./wheels/vllm-0.6.0-cp38-abi3-manylinux1_x86_64.whl\n-e .\n"
    )
    found = packages(plan(tmp_path, requirements__txt=text))
    assert (found["torch"].version, found["vllm"].version) == ("2.0.1+cu118", "0.6.0")
    assert found[""].problem is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-r https://x.example/r.txt\n", "requirements.txt:1: includes a file on the network"),
        ("-r /etc/passwd\n", "requirements.txt:1: includes a file by an absolute path"),
        ("-r requirements.txt\n", "requirements.txt:1: includes itself"),
        ("-r gone.txt\n", "requirements.txt:1: cannot read"),
        ("\0", "requirements.txt: this is no text file"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        plan(tmp_path, requirements__txt=text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_content_of_a_file_is_in_the_error(tmp_path: Path) -> None:
    found = plan(tmp_path, requirements__txt="-r other.txt\n", _other__txt="root:x:0:0:secret\n").planned
    assert found
    assert "secret" not in repr(found)


def test_an_unknown_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a plan is a requirements file"):
        plan(tmp_path, notes__md="torch==2.0.1\n")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from("torch=<>2.01;[]@:/-rc \\\n\"'#éx,~!$"), max_size=60))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    with suppress(UsageError):
        found = plan(tmp_path, any__txt=text)
        assert all(each.name or each.problem for each in found.planned or ())


def test_plans_with_different_indexes_leave_the_build_open(tmp_path: Path) -> None:
    one = "-i https://download.pytorch.org/whl/cu118\ntorch==2.0.1\n"
    found = packages(plan(tmp_path, a__txt=one, b__txt=one.replace("118", "117")))
    assert (found["torch"].version, found["torch"].build) == ("2.0.1", None)


def test_files_that_include_each_other_widely_are_refused(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"f{number}.txt").write_text(f"-r f{number + 1}.txt\n" * 2)
    (tmp_path / "f40.txt").write_text("")
    with pytest.raises(UsageError, match="more than 100 files are included"):
        plan(tmp_path, requirements__txt="-r f0.txt\n")


def test_too_many_packages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than 20,000 packages"):
        plan(tmp_path, requirements__txt="a\n" * 20_001)
