"""Requirements files, and entries without an exact version: what counts, what stays open, what is refused."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.compat.narrowing import releases_within
from envcheck.compat.package_needs import marks_of
from envcheck.compat.requirements import declared
from envcheck.compat.wheels import published
from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix, matrix_date
from envcheck.model.checks import PLAN, Report
from envcheck.plans import read_plans
from tests.every import cases, tabled
from tests.plans.reading import judge, named, packages, plan
from tests.thorough import examples


def test_no_build_is_inferred_where_the_index_is_private(tmp_path: Path) -> None:
    found = plan(tmp_path, requirements__txt="-i https://mirror.example/simple\ntorch==2.0.1\n")
    assert [each.name for each in found.distributions or ()] == []
    assert found.frameworks is not None
    assert [each.cuda for each in found.frameworks.items] == [None]


@tabled
def test_what_cannot_be_read_is_one_sentence_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        plan(tmp_path, requirements__txt=text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_content_of_a_file_is_in_the_error(tmp_path: Path) -> None:
    found = plan(tmp_path, requirements__txt="-r other.txt\n", _other__txt="root:x:0:0:secret\n").planned
    assert found
    assert "secret" not in repr(found)


@settings(max_examples=examples(1_000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from("torch=<>2.01;[]@:/-rc \\\n\"'#éx,~!$"), max_size=60))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    with suppress(UsageError):
        found = plan(tmp_path, any__txt=text)
        assert all(each.name or each.problem is not None for each in found.planned or ())


def test_files_that_include_each_other_widely_are_refused(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"f{number}.txt").write_text(f"-r f{number + 1}.txt\n" * 2)
    (tmp_path / "f40.txt").write_text("")
    with pytest.raises(UsageError, match="more than 100 files are included"):
        plan(tmp_path, requirements__txt="-r f0.txt\n")


def test_too_many_packages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than 20,000 packages"):
        plan(tmp_path, requirements__txt="a\n" * 20_001)


# --- Entries without an exact version: none vanishes, and what else the plan pins may decide them -------------------
H100 = "gpu==H100,driver==550.54.14"
TORCH = "torch==2.9.1\n"
_UNKNOWN = "unknown"


def _of(folder: Path, text: str, machine: str = H100, **options: bool) -> Report:
    return judge(plan(folder, requirements__txt=text), machine, **options)


def _open(report: Report) -> set[str]:
    return {
        check.subject.key.rpartition(":")[2]
        for check in report.checks
        if (check.rule, check.status) == (PLAN, _UNKNOWN)
    }


@cases("name", "cupy-cuda11x", "xformers>=0.0.20", "bitsandbytes", "numba", "numba-cuda", "deepspeed", "cuml-cu12",
    "nvidia-dali-cuda120", "transformer-engine", "auto-gptq")  # fmt: skip
def test_what_goes_with_a_pinned_framework_is_judged_by_the_newest_release_that_it_leaves(
    tmp_path: Path, name: str
) -> None:
    report = _of(tmp_path, f"{TORCH}{name}\n")
    bare = name.partition(">")[0]
    check = named(report, PLAN, bare)
    assert (check.status, _open(report), report.exit_code) == ("note", set(), 0)
    assert check.title.startswith(f"{bare} is not pinned; ")
    assert f"(rows of {matrix_date()})" in check.message
    # Alone, or beside a framework that is open itself, it stays open.
    assert _open(_of(tmp_path, f"{name}\n")) == {bare}
    assert bare in _open(_of(tmp_path, f"torch\n{name}\n"))


def test_an_open_file_is_judged_as_it_would_be_installed_today_where_that_is_asked(tmp_path: Path) -> None:
    """vLLM is chosen before the PyTorch that it requires."""
    text = "torch\nvllm\nour-own-package\nnumba>=0.61\n"
    (tmp_path / "requirements.txt").write_text(text)
    marks = marks_of(None, "linux", "x86_64")
    environment = read_plans([f"{tmp_path}/requirements.txt"], load_matrix(), marks, newest=True)
    vllm, torch = (packages(environment)[name] for name in ("vllm", "torch"))
    assert vllm.newest
    assert vllm.version == str(published(load_matrix(), "vllm")[-1])
    assert declared(load_matrix(), "vllm", vllm.version, {})["torch"] == f"=={torch.version}"
    assert packages(environment)["our-own-package"].version is None
    report = judge(environment, "gpu==H100,driver==550.54.14")
    assert named(report, "driver-too-old", "torch").status == "fail"
    titles = {check.title for check in report.checks if check.status == "note"}
    assert f"vllm is not pinned; {vllm.version} is judged" in titles
    report = judge(environment, "gpu==H100,driver==580.65.06")
    assert (_open(report), report.exit_code) == (set(), 0)
    assert (_open(_of(tmp_path, text)), _of(tmp_path, text).exit_code) == ({"torch", "vllm", "numba"}, 3)


@tabled
def test_what_is_open_is_judged_by_the_releases_that_there_were_on_a_day(
    day: str, text: str, chosen: dict[str, str | None], tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(text)
    environment = read_plans([f"{tmp_path}/requirements.txt"], load_matrix(), {}, newest=True, as_of=day)
    assert {name: each.version for name, each in packages(environment).items()} == chosen
    report = judge(environment, "gpu==H100,driver==580.65.06")
    notes = {check.title for check in report.checks if check.status == "note"}
    for name, version in chosen.items():
        if version is None:
            assert f"known to have come to PyPI by {day}" in named(report, PLAN, name).message
        else:
            assert (f"{name} is not pinned; {version} is judged as of {day}" in notes) == (version not in text)


def test_of_what_is_open_no_release_is_chosen_that_was_yanked() -> None:
    assert releases_within(load_matrix(), "spacy", ">=3.8.0,<3.8.3", None) == ("3.8.2",)


@tabled
def test_a_range_with_an_end_is_judged_by_its_newest_release_and_fails_where_all_do(
    tmp_path: Path, text: str, status: str
) -> None:
    check = named(_of(tmp_path, text, tried=False), PLAN, text.partition(">")[0].partition("[")[0])
    assert check.status == status
    assert bool(check.fixes) is (status != "note")


def test_a_package_for_the_processor_is_told_where_its_newest_release_does_not_work_with_a_pinned_one(
    tmp_path: Path,
) -> None:
    machine = "gpu==A100,driver==515.105.01"
    report = _of(tmp_path, "torch==2.0.1\nnumpy\n", machine)
    newest = published(load_matrix(), "numpy")[-1]
    assert (_open(report), report.exit_code) == ({"numpy"}, 3)
    assert f"numpy {newest} does not work with torch 2.0.1; numpy 1.26.4 fits" in named(report, PLAN, "numpy").message
    assert _of(tmp_path, "torch==2.0.1\nnumpy<2\n", machine).exit_code == 0
    assert _of(tmp_path, f"{TORCH}numpy\nrequests\npandas\n").exit_code == 0
