"""``--fix-plan``: the diff that is printed makes the plan fit, and what it cannot change it says."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from envcheck.cli.main import main
from envcheck.pipeline.planned import repair
from tests.every import cases

BLACKWELL = ("--assume", "gpu==RTX 5090,driver==570.86.10")
H100 = ("--assume", "gpu==H100,driver==550.54.14")
LOCK = '[[package]]\nname = "torch"\nversion = "2.5.1"\noptional = false\n\n[metadata]\nlock-version = "2.1"\n'
OLD_DRIVER = ("--assume", "gpu==T4,driver==450.80.02")
INSTALL = "RUN pip install \\\n torch==${TORCH}+$TAG "
OF_TAG = " --index-url https://download.pytorch.org/whl/$TAG\n"
POETRY = '[tool.poetry]\nname = "a"\n[tool.poetry.dependencies]\npython = "^3.10"\n'
CONDA = "channels: [pytorch, nvidia]\ndependencies:\n- python=3.10\n"
INDEX = "--extra-index-url https://download.pytorch.org/whl/"


@cases("name, text, after, machine",
    ("requirements.txt", f"torch==2.5.1\n{INDEX}cu121\n", f"torch==2.7.0\n{INDEX}cu128\n", BLACKWELL),
    ("requirements.txt", "torch==2.5.1\n", f"{INDEX}cu128\ntorch==2.7.0\n", BLACKWELL),
    ("requirements.txt", "torch==2.0.1\ntorchvision==0.15.2\n",
     f"{INDEX}cu118\ntorch==2.0.1\ntorchvision==0.15.2\n", H100),
    ("requirements.txt", "torch~=1.7.1\ntorchvision~=0.8.2\n",
     f"{INDEX}cu118\ntorch==2.0.0\ntorchvision==0.15.1\n", H100),
    ("requirements.txt", "torch == 2.3.1  # pinned\nxFormers==0.0.27\ntyping_extensions==4.8.0\neinops\n",
     f"{INDEX}cu128\ntorch==2.7.1  # pinned\nxFormers==0.0.31\ntyping_extensions==4.10.0\neinops\n", BLACKWELL),
    ("Dockerfile",
     "FROM ubuntu:22.04\nRUN pip install numpy \\\n  torch==2.5.1+cu121 --index-url https://download.pytorch.org/whl/cu121\n",
     "FROM ubuntu:22.04\nRUN pip install numpy \\\n  torch==2.7.0+cu128 --index-url https://download.pytorch.org/whl/cu128\n",
     BLACKWELL),
    # What the Python decides on, in each of its lines.
    ("requirements.txt", "torch==2.4.1; python_version < '3.11'\ntorch==2.5.1; python_version >= '3.11'\n",
     f"{INDEX}cu128\ntorch==2.7.0; python_version < '3.11'\ntorch==2.7.0; python_version >= '3.11'\n", BLACKWELL),
    ("requirements.txt", "https://download.pytorch.org/whl/cu121/torch-2.5.1%2Bcu121-cp310-cp310-linux_x86_64.whl\n",
     f"{INDEX}cu128\ntorch==2.7.0+cu128\n", BLACKWELL),
    # What sets variables of the line alone, and the index that serves both.
    ("Dockerfile",
     f"FROM ubuntu:22.04\nARG TORCH=2.5.1\nENV TAG=cu121 A=1\n{INSTALL}torchvision==0.20.1{OF_TAG}",
     f"FROM ubuntu:22.04\nARG TORCH=2.7.0\nENV TAG=cu128 A=1\n{INSTALL}torchvision==0.22.0{OF_TAG}", BLACKWELL),
    ("Dockerfile", "FROM ubuntu:22.04\nARG V=2.5.1\nRUN echo $V\nRUN pip install torch==$V\n",
     "FROM ubuntu:22.04\nARG V=2.5.1\nRUN echo $V\nRUN pip install torch==2.8.0\n", BLACKWELL),
    ("Dockerfile", 'ARG CUDA="12.1"\nFROM pytorch/pytorch:2.4.1-cuda${CUDA}-cudnn9-devel\n',
     'ARG CUDA="12.1"\nFROM pytorch/pytorch:2.7.0-cuda12.8-cudnn9-devel\n', BLACKWELL),
    ("Dockerfile", "FROM nvcr.io/nvidia/pytorch:24.05-py3\n", "FROM nvcr.io/nvidia/pytorch:25.01-py3\n", BLACKWELL),
    ("Dockerfile", "FROM nvidia/cuda:12.9.1-devel-ubuntu22.04\nRUN pip install torch==2.8.0\n",
     "FROM nvidia/cuda:12.8.2-devel-ubuntu22.04\nRUN pip install torch==2.8.0\n", BLACKWELL),
    ("compose.yaml", "services:\n  a:\n    image: pytorch/pytorch:2.4.1-cuda12.1-cudnn9-runtime\n",
     "services:\n  a:\n    image: pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime\n", BLACKWELL),
    # PyPI's build where a file has no place for an index.
    ("pyproject.toml", '[project]\nname = "a"\ndependencies = ["torch==2.5.1"]\n',
     '[project]\nname = "a"\ndependencies = ["torch==2.8.0"]\n', BLACKWELL),
    ("pyproject.toml", f'{POETRY}torch = "2.5.1"\ntorchvision = {{version = "0.20.1"}}\n',
     f'{POETRY}torch = "==2.8.0"\ntorchvision = {{version = "==0.23.0"}}\n', BLACKWELL),
    ("setup.py", 'from setuptools import setup\nsetup(install_requires=["torch==2.5.1", "torchvision==0.20.1"])\n',
     'from setuptools import setup\nsetup(install_requires=["torch==2.8.0", "torchvision==0.23.0"])\n', BLACKWELL),
    ("environment.yml", f"{CONDA}- pytorch=2.3.1\n- torchvision=0.18.1\n- pytorch-cuda=12.1\n",
     f"{CONDA}- pytorch=2.3.1\n- torchvision=0.18.1\n- pytorch-cuda=11.8\n", OLD_DRIVER),
    ("environment.yml", f"{CONDA}- pytorch=1.13.1\n- torchvision=0.14.1\n- pytorch-cuda=11.7\n",
     f"{CONDA}- pytorch=2.0.0\n- torchvision=0.15.1\n- pytorch-cuda=11.8\n", H100),
)  # fmt: skip
def test_the_diff_makes_the_plan_fit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    after: str,
    machine: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    assert main(["check", "--plan", name, *machine]) == 1
    capsys.readouterr()
    assert main(["check", "--plan", name, *machine, "--fix-plan"]) == 0
    shown = capsys.readouterr()
    assert (tmp_path / name).read_text() == text  # which nobody asked to change
    assert "envcheck: it fits with " in shown.err
    subprocess.run(["patch", "-p1"], input=shown.out, text=True, check=True, capture_output=True)
    assert (tmp_path / name).read_text() == after
    assert main(["check", "--plan", name, *machine]) == 0


@cases(
    "name, text, exit_code, told",
    ("requirements.txt", f"torch==2.7.0\n{INDEX}cu128\n", 0, "nothing of the plan fails"),
    ("requirements.txt", "torch==2.5.1\nflash-attn==1.0.0\ntensorflow==2.10.0\n", 1, "fits with none of the releases"),
    ("poetry.lock", LOCK, 2, "poetry.lock is written by its tool"),
    (
        "pyproject.toml",
        f'{POETRY}torch = [{{version = "2.5.1", python = "<3.11"}}, {{version = "2.6.0", python = ">=3.11"}}]\n',
        1,
        "pyproject.toml is not changed",
    ),
    # The page of files is for the PyTorch that goes.
    ("plan.txt", "torch==2.5.1\n-f https://data.pyg.org/whl/torch-2.5.1+cu124.html\n", 1, "plan.txt is not changed"),
    (
        "Dockerfile",
        (
            "FROM pytorch/pytorch:1.6.0-cuda10.1-cudnn7-devel\n"
            "RUN pip install mmcv-full==1.3.0 -f https://download.openmmlab.com/mmcv/dist/cu101/torch1.6.0/index.html\n"
        ),
        1,
        "Dockerfile is not changed",
    ),
)
def test_what_is_not_changed_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    exit_code: int,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    assert main(["check", "--plan", name, *BLACKWELL, "--fix-plan"]) == exit_code
    shown = capsys.readouterr()
    assert told in shown.err
    assert not shown.out


@cases(
    "text, machine, fix",
    ("torch==2.7.0\ntorchvision==0.20.0\n", H100, "In plan.txt, write torchvision==0.22.0 in line 2"),
    (
        "torch==2.5.1\n",
        BLACKWELL,
        "In plan.txt, write torch==2.7.0 in line 1; take torch from https://download.pytorch.org/whl/cu128",
    ),
    ("torch==2.7.1\n", BLACKWELL, "Take torch from https://download.pytorch.org/whl/cu128"),
    # What requires another release of a neighbour moves with it, and what is open only where it fails.
    (
        "sglang[srt]>=0.4.5\ntransformers==4.51.1\nnumpy\n",
        BLACKWELL,
        "In plan.txt, write sglang[srt]==0.5.10.post1 in line 1 and transformers==5.3.0 in line 2",
    ),
    ("torch==2.1.0\ntorchtext==0.16.0\n", BLACKWELL, None),  # which ended with torch 2.3
    ("torch==2.4.0\ncolossalai>=0.4.4\n", BLACKWELL, None),  # which takes no PyTorch that has code for it
)
def test_a_check_has_the_lines_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, machine: tuple[str, ...], fix: str | None
) -> None:
    """In each failure of the plan; followed to the letter, the plan fits."""
    monkeypatch.chdir(tmp_path)
    plan = Path("plan.txt")
    plan.write_text(text)
    assert main(["check", "--plan", "plan.txt", *machine, "-o", "json:report.json"]) == 1
    failing = [each for each in json.loads(Path("report.json").read_text())["checks"] if each["status"] == "fail"]
    texts = {part["text"] for each in failing for part in each["fixes"] if part["text"].startswith(("In ", "Take "))}
    assert texts == ({fix} if fix else set())
    assert fix or not any(part["text"].startswith("Install") for each in failing for part in each["fixes"])
    lines = text.splitlines()
    for pin, number in re.findall(r"(\S+==\S+) in line ([0-9]+)", fix or ""):
        lines[int(number) - 1] = pin
    index = re.search(r"take torch from (\S+)", fix or "", re.IGNORECASE)
    plan.write_text("\n".join([*lines, *([f"--extra-index-url {index[1]}"] if index else [])]) + "\n")
    assert main(["check", "--plan", "plan.txt", *machine]) == (0 if fix else 1)


def test_no_lines_are_looked_for_where_most_of_a_file_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it said that none of those tried would do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repair, "_MOST_FAILING", 0)
    Path("plan.txt").write_text("torch==2.7.0\ntorchvision==0.20.0\n")
    assert main(["check", "--plan", "plan.txt", *H100, "-o", "json:report.json"]) == 1
    checks = json.loads(Path("report.json").read_text())["checks"]
    texts = [part["text"] for each in checks for part in each["fixes"]]
    assert texts
    assert not any(text.startswith(("In plan.txt", "None of the releases")) for text in texts)


@cases("python, more", ("", ""), ('python = "3.10"\n', ""), ('python = "3.10"\n', "six; python_version<'3.11'\n"))
def test_the_lines_to_change_suit_all_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str, more: str
) -> None:
    """A build for the new GPU that the old one needs too: alone, the new one would take 2.7.0 of another index.

    Of another Python, the file is read on its own, and may have other lines.
    """
    monkeypatch.chdir(tmp_path)
    Path("plan.txt").write_text(f"torch==2.5.1\n{more}")
    Path("envcheck.toml").write_text(
        f'[target.old]\ngpu = "V100"\ndriver = "570.86.10"\n{python}'
        '[target.new]\ngpu = "RTX 5090"\ndriver = "570.86.10"\n'
    )
    targets = ["--target", "old", "--target", "new"]
    assert main(["check", "--plan", "plan.txt", *targets, "-o", "json:report.json"]) == 1
    new = json.loads(Path("report.json").read_text())["targets"][1]
    (failing,) = (each for each in new["checks"] if each["status"] == "fail")
    assert [part["text"] for part in failing["fixes"]] == ["In plan.txt, write torch==2.8.0 in line 1"]
    Path("plan.txt").write_text("torch==2.8.0\n")
    assert main(["check", "--plan", "plan.txt", *targets]) == 0
