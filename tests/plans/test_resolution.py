"""What pip makes of pins that exclude each other, of what is there already, and of a system without wheels."""

from pathlib import Path

from envcheck.model.checks import PLAN
from envcheck.model.snapshot import Driver, Listing, Snapshot
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.report import Options, render
from tests.every import cases
from tests.plans.reading import judge, named, packages, plan, versions

H100 = "gpu==H100,driver==580.65.06"


@cases("text, pair",
    ("torch==2.5.0\nxformers==0.0.28.post3\n", ("xformers", "torch==2.5.1")),
    ("transformers==4.46.0\ntokenizers==0.15.0\n", ("transformers", "tokenizers>=0.20")),
    ("numpy==2.1.0\ntensorflow==2.15.0\n", ("tensorflow", "numpy")),
    ("torch==2.0.1\ntriton==1.0.0\n", ("torch", "triton==2.0.0")), ("torch==2.5.1\nxformers==0.0.28.post3\n", None),
    ("torch==2.5.1+cu124\nxformers==0.0.28.post3\n", None), ("torch>=2.5.1,<2.6\nxformers==0.0.28.post3\n", None),
)  # fmt: skip
def test_pins_that_exclude_each_other(tmp_path: Path, text: str, pair: tuple[str, str] | None) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), H100)
    found = [check for check in report.checks if "cannot be installed together" in check.title]
    named_first = [(check.id.rpartition(":")[2].partition(" ")[0], check.status) for check in found]
    assert named_first == ([(pair[0], "fail")] if pair else [])
    if pair:
        assert pair[1] in found[0].message
        assert report.exit_code == 1


def test_a_command_without_requirements_excludes_nothing(tmp_path: Path) -> None:
    text = "FROM ubuntu:22.04\nRUN pip install --no-deps torch==2.5.0 xformers==0.0.28.post3\n"
    report = judge(plan(tmp_path, Dockerfile=text), H100)
    assert not [check for check in report.checks if "cannot be installed together" in check.title]


@cases(
    "text, why",
    # Neither of which names what both require.
    (
        "spacy==3.7.2\ngradio==4.41.0\n",
        "spacy 3.7.2 requires typer>=0.3.0,<0.10.0, gradio 4.41.0 (FILE:2) requires typer>=0.12,<1.0",
    ),
    (
        "torch==2.7.1\nnumpy<1.20\nopencv-python==4.12.0.88\n",
        "opencv-python 4.12.0.88 requires numpy>=2,<2.3.0, not numpy<1.20 (FILE:2)",
    ),
    (
        "spacy==3.7.2\ngradio==4.41.0\ntyper==0.12.5\n",
        "spacy 3.7.2 requires typer>=0.3.0,<0.10.0, not typer==0.12.5 (FILE:3)",
    ),
    ("spacy==3.7.2\ngradio==3.41.2\n", ""),
    ("spacy==3.7.2\nclick==8.1.7\nnumpy<2\n", ""),
)
def test_requirements_leave_a_release(tmp_path: Path, text: str, why: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=text), "gpu==A100,driver==580.65.06")
    found = [check.message for check in report.checks if "cannot be installed together" in check.title]
    told = [each.replace(f"{tmp_path}/requirements.txt", "FILE").removesuffix(": pip refuses both.") for each in found]
    assert told == ([why] if why else [])


def test_an_override_of_uv_replaces_what_is_required(tmp_path: Path) -> None:
    text = '[project]\nname = "x"\ndependencies = ["spacy==3.7.2", "gradio==4.41.0"]\n'
    settings = '[tool.uv]\noverride-dependencies = ["typer==0.12.5"]\n'
    for more, number in (("", 1), (settings, 0)):
        report = judge(plan(tmp_path, pyproject__toml=text + more), "gpu==A100,driver==580.65.06")
        assert len([check for check in report.checks if "cannot be installed together" in check.title]) == number


@cases(
    "pins, refused",
    ("torch==2.14.0\ntriton==3.7.1\n", "torch 2.14.0 and triton 3.7.1 cannot be installed together"),
    ("torch==2.2.2\ntriton==3.6.0\n", ""),  # for Python 3.12 it requires none
    ("# a pin\ntorch==1.8.1\ntransformers==5.2.0\n", "No Python has wheels of torch 1.8.1 and transformers 5.2.0"),
    ("torch==1.8.1\nscipy==1.15.2\n", ""),  # has a source archive
    ("torch==2.4.0\nnumpy==1.26.4\ntransformers==4.45.0\n", ""),
)
def test_pins_are_refused_that_no_python_can_have(tmp_path: Path, pins: str, refused: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=pins), "gpu==V100,driver==580.65.06")
    told = [check.title for check in report.checks if check.rule == "plan-does-not-fit" and check.status == "fail"]
    assert (refused in told) if refused else not told


@cases(
    "pins, package",
    ("torch==2.14.0\ntransformer-engine==2.2.0\n", "transformer-engine"),
    ("torch==2.7.0\nbitsandbytes==0.47.0\n", ""),
    ("torch==2.15.0\nbitsandbytes==0.47.0\n", "bitsandbytes"),
)
def test_what_runs_within_pytorch_is_for_its_cuda(tmp_path: Path, pins: str, package: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=pins), "gpu==L4,driver==610.43.02")
    failed = [check.subject.key.rpartition(":")[2] for check in report.checks if check.status == "fail"]
    assert failed == ([package] if package else [])


@cases(
    "commands, torch",
    ("RUN pip install torch==2.5.1\nRUN pip install vllm==0.6.3\n", "2.4.0"),
    ("RUN pip install torch==2.5.1 && pip install vllm==0.6.3\n", "2.4.0"),
    ("RUN pip install torch==2.5.1\nRUN pip install --no-deps vllm==0.6.3\n", "2.5.1"),
    ("RUN pip install torch==2.5.1\nRUN pip install vllm==0.6.3 --no-dependencies\n", "2.5.1"),
    ("RUN pip install torch==2.5.1 vllm==0.6.3\n", "2.5.1"),
    ("RUN pip install vllm==0.6.3\nRUN pip install torch==2.5.1\n", "2.5.1"),
    ("RUN pip install torch==2.4.0\nRUN pip install vllm==0.6.3\n", "2.4.0"),
)
@cases("base", "ubuntu:22.04", "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime")
def test_a_later_command_replaces_what_its_packages_cannot_do_with(
    tmp_path: Path, base: str, commands: str, torch: str
) -> None:
    found = versions(plan(tmp_path, Dockerfile=f"FROM {base}\n{commands}"))["torch"] or ""
    assert found.partition("+")[0] == torch


def test_what_replaces_the_frameworks_of_an_image_is_judged(tmp_path: Path) -> None:
    text = "FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\nRUN pip install vllm==0.6.3\n"
    assert judge(plan(tmp_path, Dockerfile=text), H100).exit_code == 0
    assert judge(plan(tmp_path, Dockerfile=text), "gpu==B200,driver==580.65.06").exit_code == 1


@cases("base, asked, status",
    ("ubuntu:18.04", "torch==2.9.1", "fail"), ("ubuntu:22.04", "torch==2.9.1", None),
    ("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu18.04", "torch==2.9.1", "fail"), ("centos:7", "torch==2.9.1", "fail"),
    ("rockylinux:8", "torch==2.9.1", None), ("debian:bullseye-slim", "torch==2.9.1", None),
    ("python:3.12-alpine", "torch==2.5.1", "fail"), ("alpine:3.20", "onnxruntime-gpu==1.22.0", "fail"),
    ("python:3.12-slim-bookworm", "torch==2.5.1", None),
)  # fmt: skip
def test_the_c_library_of_an_image(tmp_path: Path, base: str, asked: str, status: str | None) -> None:
    report = judge(plan(tmp_path, Dockerfile=f"FROM {base}\nRUN pip install {asked}\n"), H100)
    found = [check for check in report.checks if f"not fit {base}" in check.title]
    assert [check.status for check in found] == ([status] if status else [])


def test_a_build_that_an_index_does_not_have_is_no_pass(tmp_path: Path) -> None:
    text = "--index-url https://download.pytorch.org/whl/cu118\ntorch=={}\n"
    report = judge(plan(tmp_path, requirements__txt=text.format("2.9.1")), H100)
    check = named(report, PLAN, "torch")
    assert (check.status, report.exit_code) == ("unknown", 3)
    assert "no build +cu118" in check.message
    assert judge(plan(tmp_path, requirements__txt=text.format("2.7.1")), H100).exit_code == 0


_PYTORCH = "https://download.pytorch.org/whl"


@cases(
    "name, text, status",
    ("requirements__txt", "torch==2.3.1+cu121\n", 3),
    ("requirements__txt", "-i https://pypi.org/simple\ntorch===2.3.1+cu121\n", 3),
    ("requirements__txt", f"--extra-index-url {_PYTORCH}/cu118\ntorch==2.3.1+cu121\n", 3),
    ("requirements__txt", f"torch==2.3.1+cu121\n--extra-index-url {_PYTORCH}/cu121\n", 0),
    ("requirements__txt", "torch==2.3.1+cu121\n-r index.txt\n", 0),
    ("requirements__txt", f"torch @ {_PYTORCH}/cu121/torch-2.3.1%2Bcu121-cp312-cp312-linux_x86_64.whl\n", 0),
    ("requirements__txt", "numpy==1.26.4\ntorch\n-c pins.txt\n", 3),
    ("Dockerfile", "FROM ubuntu:22.04\nRUN pip install torch==2.3.1+cu121\n", 3),
    ("Dockerfile", "FROM ubuntu:22.04\nENV PIP_EXTRA_INDEX_URL={0}\nRUN pip install torch==2.3.1+cu121\n", 0),
    ("pyproject__toml", "[project]\nname = 'a'\ndependencies = ['torch==2.3.1+cu121']\n", 3),
    ("environment__yml", "dependencies:\n- pip:\n  - torch==2.3.1+cu121\n", 3),
    ("environment__yml", "dependencies:\n- pip:\n  - torch==2.3.1+cu121\n  - --extra-index-url={0}\n", 0),
)
def test_a_build_with_a_local_tag_is_not_on_pypi(tmp_path: Path, name: str, text: str, status: int) -> None:
    files = {"_index__txt": f"--extra-index-url {_PYTORCH}/cu121\n", "_pins__txt": "torch==2.3.1+cu121\n"}
    report = judge(plan(tmp_path, **{name: text.format(f"{_PYTORCH}/cu121")}, **files), H100)
    assert report.exit_code == status
    told = [check for check in report.checks if "is not on PyPI" in check.title]
    assert [check.status for check in told] == ["unknown"] * bool(status)


def test_a_build_that_is_not_found_fails_where_it_could_not_run_anyway(tmp_path: Path) -> None:
    assert judge(plan(tmp_path, requirements__txt="torch==2.3.1+cu121\n"), "gpu==B200,driver==580.65.06").exit_code == 1


OF_CONDA = """name: lab
channels: [pytorch, nvidia]
dependencies:
  - python=3.10
  - pytorch=2.1.2=py3.10_cuda12.1_cudnn8.9.2_0
  - jpeg=9e
  - {more}
  - pip:
    - {pip}
"""


@cases(
    "more, pip, exit_code",
    ("tzdata=2023c=h71feb2d_0", "torch>=2.0", 0),  # conda's is there
    ("tzdata=2023c=h71feb2d_0", "torch>=2.2", 3),
    ("tzdata=2023c=h71feb2d_0", "deepspeed==0.12.6", 0),  # rows relate it to PyTorch alone
    ("m2w64-gcc-libs=5.3.0=7", "torch>=2.0", 1),
)
def test_an_environment_of_conda_with_packages_of_pip(tmp_path: Path, more: str, pip: str, exit_code: int) -> None:
    environment = plan(tmp_path, environment__yml=OF_CONDA.format(more=more, pip=pip))
    assert judge(environment, "gpu==A100,driver==550.54.14").exit_code == exit_code


def test_conda_has_packages_for_windows_alone(tmp_path: Path) -> None:
    text = OF_CONDA.format(more="m2w64-gcc-libs=5.3.0=7", pip="einops")
    report = judge(plan(tmp_path, environment__yml=text), "gpu==A100,driver==550.54.14")
    assert "for Windows alone" in named(report, PLAN, "m2w64-gcc-libs").message


def test_a_packages_extra_bounds_what_is_open(tmp_path: Path) -> None:
    for text, exit_code in (("sglang[srt]==0.4.5\ntransformers\n", 0), ("sglang==0.4.5\ntransformers\n", 3)):
        report = judge(plan(tmp_path, requirements__txt=text), "gpu==H100,driver==550.54.14,python==3.11")
        assert report.exit_code == exit_code, text


def test_the_variables_of_an_image_are_known(tmp_path: Path) -> None:
    text = "FROM nvidia/cuda:{}-devel-ubuntu22.04\nRUN conda install cuda=${{CUDA_VERSION}} torchvision=0.16.2\n"
    assert packages(plan(tmp_path, Dockerfile=text.format("12.2.2")))["cuda"].bounds == "==12.2.2"
    assert packages(plan(tmp_path, Dockerfile=text.format("12.2"))).keys() >= {
        ""
    }  # the tag says less than the variable


def test_a_wheel_by_address_is_judged_by_its_local_tag(tmp_path: Path) -> None:
    wheel = "https://example.com/flash_attn-2.7.4.post1%2Bcu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    for torch, exit_code in (("2.6.0", 0), ("2.5.1", 1)):
        text = f"torch=={torch}\n{wheel}\n"
        report = judge(
            plan(tmp_path, python="3.11", requirements__txt=text), "gpu==H100,driver==550.54.14,python==3.11"
        )
        assert report.exit_code == exit_code, torch


@cases(
    "override, status",
    ('["numpy<2"]', "note"),
    ('["triton>=3.3.0"]', "unknown"),  # then no requirement of PyTorch's bounds it
)
def test_overrides_of_uv_free_what_they_name_alone(tmp_path: Path, override: str, status: str) -> None:
    text = '[project]\nname = "a"\ndependencies = ["torch>=2.7.1,<2.9", "triton>=3.3.0"]\n'
    environment = plan(tmp_path, pyproject__toml=f"{text}[tool.uv]\noverride-dependencies = {override}\n")
    assert named(judge(environment, "gpu==H100,driver==570.86.10"), PLAN, "triton").status == status


def test_what_pytorch_brings_is_that_of_its_release(tmp_path: Path) -> None:
    environment = plan(tmp_path, requirements__txt="torch==2.2.1\ntriton==1.1.1\n")  # for some Pythons pip refuses both
    assert named(judge(environment, "gpu==RTX 4090,driver==535.183.01"), PLAN, "triton").status == "warn"
    environment = plan(tmp_path, requirements__txt="torch==2.2.1\ntriton==2.2.0\n")
    assert not [check for check in judge(environment, H100).checks if check.subject.key.endswith(":triton")]


def test_two_lines_that_exclude_each_other_follow_from_a_rule_about_both(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt="torch==2.7.0\ntorchvision==0.20.0\n"), H100)
    (found,) = (check for check in report.checks if "cannot be installed together" in check.title)
    assert (found.explained_by or "").startswith("torch-family-mismatch@")


def test_what_no_row_names_is_said_on_the_page(tmp_path: Path) -> None:
    report = judge(
        plan(tmp_path, requirements__txt="torch==2.7.0\nvlm==0.9\neinops\ninhouse\nflash-atn\nother\n"), H100
    )
    assert report.verdict == "pass"
    assert "Not known to the matrix: vlm, inhouse, flash-atn and 1 more." in render(report, "text", Options())


def test_without_a_gpu_a_plan_asks_for_the_machine(tmp_path: Path) -> None:
    chosen = plan(tmp_path, requirements__txt="torch==2.7.0\n")
    machine = Snapshot(gpus=Listing(items=(), complete=True), driver=Driver(installed=False, source="files"))
    report = session.judge(machine, Request(planned=chosen))
    found = next(check for check in report.checks if check.rule == "no-nvidia-gpu")
    assert found.status == "fail"
    assert [fix.text for fix in found.fixes] == [
        "Name the machine that the plan is for, by its GPU and driver, with --assume or --target"
    ]
