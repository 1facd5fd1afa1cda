"""Files that a Dockerfile or a requirements file installs from: followed within the project, or said to be unread."""

from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.model.snapshot import Planned
from tests.every import cases, tabled
from tests.plans.reading import packages, plan_at, sample

UV_LOCK = sample("context-uv.lock")
POETRY_LOCK = '[[package]]\nname = "torch"\nversion = "2.0.1"\noptional = false\nfiles = []\n'
PROJECT = """[project]
name = "app"
version = "1"
dependencies = ["torch==2.0.1"]
[project.optional-dependencies]
more = ["vllm==0.6.0"]
"""
FILES = {
    "requirements.txt": "torch==2.0.1\n", "docker/gpu.txt": "torch==2.0.1\n",
    "docker/other/requirements.txt": "torch==1.13.1\n", "constraints.txt": "torch==2.0.1\n", "pyproject.toml": PROJECT,
    "sub/pyproject.toml": PROJECT, "uv.lock": UV_LOCK, "poetry.lock": POETRY_LOCK,
    "env.yml": "dependencies: [{pip: ['torch==2.0.1']}]\n", "SE3nv.yml": "dependencies: [{pip: ['-r file:gpu.txt']}]\n",
    "gpu.txt": "torch==2.0.1\n", "install.sh": "pip install torch\n", "build.sh": "make\n",
}  # fmt: skip


def _plan(folder: Path, dockerfile: str, *others: str, name: str = "Dockerfile") -> dict[str, Planned]:
    for path, text in {**FILES, name: f"FROM debian\n{dockerfile}\n"}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    paths = [str(folder / each) for each in (name, *others)]
    return packages(plan_at(*paths))


@tabled
def test_the_files_that_a_build_installs_from_are_followed(tmp_path: Path, lines: str) -> None:
    found = _plan(tmp_path, lines)
    assert found["torch"].version == "2.0.1"
    assert "" not in found
    assert "vllm" not in found


@tabled
def test_extras_of_a_project_count(tmp_path: Path, lines: str) -> None:
    assert _plan(tmp_path, lines)["vllm"].version == "0.6.0"


@tabled
def test_what_cannot_be_followed_stays_open(tmp_path: Path, lines: str) -> None:
    found = _plan(tmp_path, lines)
    assert found[""].problem
    assert found[""].line
    assert "torch" not in found


def test_a_further_plan_is_what_a_build_could_not_find(tmp_path: Path) -> None:
    lines = "RUN pip install -r requirements.txt && uv sync && conda env create -f env.yml"
    assert set(_plan(tmp_path, lines, "requirements.txt", "uv.lock", "env.yml")) == {"torch"}


@pytest.mark.parametrize("repository", [False, True])
def test_the_working_directory_and_the_repository_are_contexts_of_a_dockerfile_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, repository: bool
) -> None:
    if repository:
        (tmp_path / ".git").mkdir()
    else:
        monkeypatch.chdir(tmp_path)
    lines = "COPY constraints.txt .\nRUN pip install -r constraints.txt"
    assert _plan(tmp_path, lines, name="docker/Dockerfile")["torch"].version == "2.0.1"


@cases("command", "pip uninstall -y torch torchvision", "python3 -m pip uninstall torch -y", "uv pip uninstall torch")
def test_what_is_uninstalled_is_not_there(tmp_path: Path, command: str) -> None:
    assert "torch" not in _plan(tmp_path, f"FROM debian\nRUN pip install torch==2.0.1\nRUN {command}")
    again = f"FROM debian\nRUN pip install torch==2.0.1 && {command} && pip install torch==2.1.0"
    assert _plan(tmp_path, again)["torch"].version == "2.1.0"


@cases("image", "pytorch/pytorch:2.0.1-cuda11.7-cudnn8-runtime", "debian")
@cases("command, release",
    ("torch", "2.0.1"), ("'torch>=1.13'", "2.0.1"), ("'torch>=2.1'", ""), ("-U torch", ""), ("torch==2.1.0", "2.1.0"),
)  # fmt: skip
def test_pip_leaves_a_release_that_it_may_leave(tmp_path: Path, image: str, command: str, release: str) -> None:
    first = "RUN pip install torch==2.0.1\n" if image == "debian" else ""
    found = _plan(tmp_path, f"FROM {image}\n{first}RUN pip install {command}")["torch"]
    assert (found.version or "").partition("+")[0] == release


@cases("line", "-r ../outside.txt", "-r link.txt", "-c ../outside.txt")
def test_nothing_outside_of_the_project_is_read(tmp_path: Path, line: str) -> None:
    (tmp_path / "outside.txt").write_text("torch==2.0.1\n")
    inside = tmp_path / "project"
    inside.mkdir()
    (inside / "link.txt").symlink_to(tmp_path / "outside.txt")
    (inside / "requirements.txt").write_text(f"{line}\n")
    with pytest.raises(UsageError, match=r"requirements\.txt:1: includes a file outside"):
        plan_at(inside / "requirements.txt")
    assert _plan(inside, "COPY . .\nRUN pip install -r link.txt")[""].problem


def test_a_requirements_file_follows_the_project_beside_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "requirements.txt").write_text("-e .[more]\n")
    found = packages(plan_at(tmp_path / "requirements.txt"))
    assert (found["torch"].source, found["vllm"].version) == (f"{tmp_path}/pyproject.toml:4", "0.6.0")


@tabled
def test_a_project_that_cannot_be_read_stays_open(tmp_path: Path, project: str, problem: str, line: int) -> None:
    (tmp_path / "pyproject.toml").write_text(project)
    (tmp_path / "requirements.txt").write_text(".\n")
    (found,) = plan_at(tmp_path / "requirements.txt").planned or ()
    assert problem in (found.problem or "")
    assert (found.name, found.line) == ("", line)


COMPOSE = """x-base: &base
  deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1}]}}}
services:
  web: {image: nginx, volumes: ["./nvidia:/gpu"]}
  train:
    <<: *base
    build: {context: .., dockerfile: docker/gpu.Dockerfile, target: late, args: ["TORCH=2.0.1"]}
  serve: {image: "nvcr.io/nvidia/pytorch:${TAG:-25.10-py3}"}
  other: {build: "https://example.org/app.git"}
"""
STAGES = """ARG TORCH=1.13.1
FROM debian AS early
ARG TORCH
RUN pip install torch==$TORCH
FROM early AS late
COPY constraints.txt /tmp/r.txt
RUN pip install -r /tmp/r.txt
FROM debian
"""


@tabled
def test_one_service_or_stage_is_judged(tmp_path: Path, path: str, torch: str) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "docker").mkdir()
    (tmp_path / "constraints.txt").write_text("torch==2.0.1\n")
    (tmp_path / "docker/compose.yaml").write_text(COMPOSE)
    (tmp_path / "docker/gpu.Dockerfile").write_text(STAGES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        try:
            found = packages(plan_at(f"docker/{path}"))
        except UsageError as error:
            assert torch in str(error)  # noqa: PT017 - what is refused is a row as well
            return
    told = {each.version if each.name == "torch" else f"{each.image} {each.problem}" for each in found.values()}
    assert any(torch in (each or "") for each in told) if torch else not told - {"None None"}
