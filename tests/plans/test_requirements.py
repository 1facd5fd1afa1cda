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
from tests.every import cases
from tests.plans.reading import judge, named, packages, plan, versions
from tests.thorough import examples


def test_pins_carry_the_line_on_which_they_begin(tmp_path: Path) -> None:
    text = "# pinned\n\ntorch==2.0.1 \\\n  --hash=sha256:aa \\\n  --hash=sha256:bb\nnumpy>=1.26  # any\n"
    found = packages(plan(tmp_path, requirements__txt=text))
    assert (found["torch"].version, found["torch"].line) == ("2.0.1", 3)
    assert found["torch"].source == f"{tmp_path}/requirements.txt:3"
    assert (found["numpy"].version, found["numpy"].bounds, found["numpy"].line) == (None, ">=1.26", 6)


@cases(
    "option, build",
    ("", ""),
    ("--index-url https://download.pytorch.org/whl/cu118", "cu118"),
    ("--extra-index-url=https://download.pytorch.org/whl/cu121/", "cu121"),
    ("-ihttps://pypi.example/simple", ""),
    ("--index-url https://user:secret@mirror.example/simple", None),
    ("--find-links ./wheels", None),
    ('--extra-index-url https://download.pytorch.org/whl/cu121 ; sys_platform == "win32"', "cu121"),  # as pip reads it
    ("-f https://download.pytorch.org/whl/cu118/torch_stable.html", "cu118"),
    ("-f https://download.pytorch.org/whl/torch_stable.html", None),
    ("--find-links https://data.pyg.org/whl/torch-2.0.1+cu118.html", ""),
    ("-f https://storage.googleapis.com/jax-releases/jax_cuda_releases.html", ""),
    ("--extra-index-url https://pypi.nvidia.com", ""),
    ("-f https://data.pyg.org/whl/torch-2.0.1+cu118.html --index-url https://download.pytorch.org/whl/cu118", "cu118"),
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
    assert (unknown.version, unknown.problem, unknown.asked) == (None, None, "torch==2.0.1 or 2.4.0")


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


@cases(
    "text, message",
    ("-r https://x.example/r.txt\n", "requirements.txt:1: includes a file on the network"),
    ("-r /etc/passwd\n", "requirements.txt:1: includes a file by an absolute path"),
    ("-r requirements.txt\n", "requirements.txt:1: includes itself"),
    ("-r gone.txt\n", "requirements.txt:1: cannot read"),
    ("\0", "requirements.txt: this is no text file"),
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


@settings(max_examples=examples(1_000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from("torch=<>2.01;[]@:/-rc \\\n\"'#éx,~!$"), max_size=60))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    with suppress(UsageError):
        found = plan(tmp_path, any__txt=text)
        assert all(each.name or each.problem is not None for each in found.planned or ())


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


@cases("name",
    "flash-attn", "nvidia-nccl-cu11", "nvidia-cudnn-cu13", "nvidia-cusparselt-cu13", "faiss-gpu-cu12",
    "warp-lang", "mamba-ssm", "apex", "ctranslate2>=4", "exllamav2", "gsplat", "nvidia-cublas-cu11",
    "nvidia-cuda-runtime-cu13")  # fmt: skip
def test_what_the_matrix_knows_and_no_version_pins_is_told(tmp_path: Path, name: str) -> None:
    report = _of(tmp_path, f"{TORCH}{name}\n")
    bare = name.partition(">")[0]
    assert (_open(report), report.exit_code) == ({bare}, 3)
    check = named(report, PLAN, bare)
    assert check.location is not None
    assert check.location.line == 2
    assert _open(_of(tmp_path, f"{name}\n")) == {bare}


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


def test_what_a_later_command_asks_for_is_not_bound_by_what_is_there(tmp_path: Path) -> None:
    """It would bring a PyTorch of its own."""
    machine = "gpu==H100,driver==570.86.10"
    text = "FROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu22.04\nRUN pip install torch==2.7.0\nRUN pip install xformers\n"
    report = judge(plan(tmp_path, Dockerfile=text), machine)
    assert (_open(report), report.exit_code) == ({"xformers"}, 3)
    together = text.replace("==2.7.0\nRUN pip install", "==2.7.0")
    report = judge(plan(tmp_path, Dockerfile=together), machine)
    assert named(report, PLAN, "xformers").title == "xformers is not pinned; 0.0.30 fits"


def test_entries_narrow_each_other(tmp_path: Path) -> None:
    """The newest vLLM of those that require this torchaudio decides, and its PyTorch is the only one left."""
    text = "vllm\ntorch\ntorchaudio==2.8.0\n"
    report = _of(tmp_path, text)
    assert named(report, PLAN, "vllm").title == "vllm is not pinned; 0.11.0 fits"
    assert _open(report) == set()
    report = _of(tmp_path, text, "gpu==GTX 1080 Ti,driver==570.86.10")
    assert (named(report, PLAN, "vllm").status, report.exit_code) == ("unknown", 1)


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


@cases(
    "day, text, chosen",
    ("2025-02-15", "torch\nvllm\nxformers\n", {"torch": "2.5.1", "vllm": "0.7.2", "xformers": "0.0.28.post3"}),
    ("2024-03-27", "torch>=2\n", {"torch": "2.2.2"}),
    ("2024-03-26", "torch>=2\nbitsandbytes\n", {"torch": "2.2.1", "bitsandbytes": "0.43.0"}),
    ("2024-03-26", "torch>=2.3\n", {"torch": None}),
    ("2024-03-26", "torch==2.9.0\n", {"torch": "2.9.0"}),
)
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


def test_each_open_entry_is_told_and_the_release_that_fits_the_pinned_ones_is_named(tmp_path: Path) -> None:
    report = _of(tmp_path, f"{TORCH}nvidia-nccl-cu11\ncupy-cuda13x\nxformers>=0.0.20\n")
    assert _open(report) == {"nvidia-nccl-cu11"}
    assert named(report, PLAN, "cupy-cuda13x").status == "fail"  # as of today: no release runs with this driver
    # Newer releases of xformers require a newer PyTorch.
    assert named(report, PLAN, "xformers").title == "xformers is not pinned; 0.0.33.post2 fits"


@cases(
    "text, decided",
    (TORCH + "triton\nnvidia-cudnn-cu12\nnvidia-nccl-cu12>=2\n", {"triton": "3.5.1", "nvidia-nccl-cu12": "2.27.5"}),
    ("torch==2.9.1+cu130\nnvidia-cudnn-cu13\n", {"nvidia-cudnn-cu13": "9.13.0.50"}),
    ("torch==2.9.1+cu130\nnvidia-cudnn-cu12\n", {"nvidia-cudnn-cu12": None}),
    ("torchvision==0.24.1\ntorch>=2\ntriton\n", {"torch": "2.9.1", "triton": "3.5.1"}),
    ("vllm==0.19.1\ntorch\n", {"torch": "2.10.0"}),
    ("jax[cuda12]==0.7.2\njax-cuda12-plugin\njaxlib\n", {"jax-cuda12-plugin": "0.7.2", "jaxlib": "0.7.2"}),
    ("-i https://mirror.example/simple\ntorch==2.9.1\nnvidia-cudnn-cu12\n", {"nvidia-cudnn-cu12": None}),
)
def test_the_requirement_of_a_pinned_package_decides(tmp_path: Path, text: str, decided: dict[str, str | None]) -> None:
    found = versions(plan(tmp_path, requirements__txt=text))
    assert {name: found[name] for name in decided} == decided


def test_what_a_pinned_package_decides_leaves_nothing_open(tmp_path: Path) -> None:
    text = f"{TORCH}triton\nnvidia-cudnn-cu12\nnvidia-nccl-cu12\nnvidia-cublas-cu12\ntorchvision\n"
    assert _of(tmp_path, text).exit_code == 0
    assert _of(tmp_path, "jax[cuda12]==0.7.2\njax-cuda12-plugin\njaxlib\n").exit_code == 0


def test_a_library_that_another_build_of_pytorch_requires_is_not_open(tmp_path: Path) -> None:
    index = "--extra-index-url https://download.pytorch.org/whl/cu126\n"
    assert _open(_of(tmp_path, f"{index}{TORCH}nvidia-nvshmem-cu12\nnvidia-cudnn-cu12\n")) == set()
    report = _of(tmp_path, f"{index}{TORCH}nvidia-nvshmem-cu13\n")
    assert named(report, PLAN, "nvidia-nvshmem-cu13").status == "fail"


def test_a_plan_that_excludes_what_a_pinned_package_requires_is_told(tmp_path: Path) -> None:
    environment = plan(tmp_path, requirements__txt=f"{TORCH}triton<3\n")
    assert packages(environment)["triton"].refused == "torch requires triton==3.5.1, which the plan excludes"
    assert judge(environment, H100).exit_code == 1


@cases(
    "text, other",
    ("torch==1.11.0+cu113\npeft>=0.19.0\n", "peft>=0.19.0 can be installed with torch 1.11.0+cu113"),
    ("torch==1.13.1\npeft>=0.19.0\n", None),
    ("transformers==4.30.0\ntokenizers>=0.20\n", None),
)
def test_an_open_entry_of_which_every_release_excludes_a_pin_is_refused(
    tmp_path: Path, text: str, other: str | None
) -> None:
    index = "--extra-index-url https://download.pytorch.org/whl/cu113\n"
    titles = [check.title for check in _of(tmp_path, index + text, "gpu==A100,driver==550.54.14").checks]
    assert [each for each in titles if "No release of" in each] == ([f"No release of {other}"] if other else [])


@cases("text, status",
    ("cupy-cuda12x>=12,<14\n", "note"), ("xformers>=0.0.16,<0.0.20\n", "fail"), ("numba>=0.50,<0.60\n", "note"),
    ("tensorflow[and-cuda]>=2.15,<2.17\n", "note"),
)  # fmt: skip
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


def test_conda_leaves_the_same_open(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    text = "dependencies: [pytorch=2.0.1=py3.10_cuda11.7_cudnn8.5.0_0, cupy]\n"
    assert _open(judge(plan(tmp_path, environment__yml=text), "gpu==A100,driver==515.105.01")) == {"cupy"}


@cases("release", "cupy-cuda12x==99.0", "faiss-gpu==1.7.2", "nvidia-dali-cuda130==99.1")
def test_a_pinned_release_of_which_nothing_is_known_is_told(tmp_path: Path, release: str) -> None:
    report = _of(tmp_path, f"{TORCH}{release}\n")
    assert (_open(report), report.exit_code) == ({release.partition("=")[0]}, 3)


@cases("text, code", ("numba==0.60.0\naccelerate==1.7.0\n", 3), ("numba==0.60.0\ntransformers==4.51.3\n", 0))
def test_a_framework_that_only_a_requirement_names_is_open(tmp_path: Path, text: str, code: int) -> None:
    assert _of(tmp_path, text, "gpu==H100,driver==550.54.14").exit_code == code


def test_the_release_that_a_judged_package_requires_needs_no_answer_of_its_own(tmp_path: Path) -> None:
    machine, library = "gpu==H100,driver==580.65.06", "flashinfer-python==0.2.11.post3\n"
    assert _open(_of(tmp_path, library, machine)) == {"flashinfer-python"}
    assert _open(_of(tmp_path, f"sglang[srt]==0.5.1\n{library}", machine)) == set()
