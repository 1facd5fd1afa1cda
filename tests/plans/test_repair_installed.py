"""``envcheck plan --repair``: what is told over an installed environment fits, and breaks nothing that is there."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import Result, envcheck

H100 = "gpu==H100,driver==580.95.05"


def environment(folder: Path, *installed: str) -> Path:
    """A virtual environment of packages with metadata: ``NAME==VERSION``, and behind a semicolon what it requires."""
    prefix = folder / "venv"
    site = prefix / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(sys.executable)
    (prefix / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\nversion = 3.11.7\n")
    for text in installed:
        line, _, requires = text.partition("; ")
        name, _, version = line.partition("==")
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        lines = "".join(f"Requires-Dist: {each}\n" for each in requires.split("; ") if each)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}")
        (info / "INSTALLER").write_text("pip\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n")
        (site / name).mkdir()
        (site / name / "__init__.py").touch()
    return prefix


def repair(prefix: Path, *words: str, assume: str = H100) -> Result:
    return envcheck("plan", "--repair", str(prefix), "--assume", assume, *words, cwd=prefix.parent)


def told(prefix: Path, status: int, assume: str = H100) -> dict[str, Any]:
    result = repair(prefix, "--json", assume=assume)
    assert (result.status, result.err) == (status, "")
    found: dict[str, Any] = json.loads(result.out)
    return found


def moved(found: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["version"] for each in found["packages"]}


def test_what_does_not_go_with_pytorch_moves_to_it(tmp_path: Path) -> None:
    prefix = environment(
        tmp_path, "torch==2.9.1", "torchvision==0.19.1; torch==2.4.1", "xformers==0.0.28; torch==2.4.1"
    )
    found = told(prefix, 0)
    assert moved(found) == {"torchvision": "0.24.1", "xformers": "0.0.33.post2"}
    assert [each[-2:] for each in found["steps"]] == [["torchvision==0.24.1", "xformers==0.0.33.post2"]]
    assert "0.19.1 is installed" in found["packages"][0]["given_up"]


def test_with_it_moves_what_it_requires_in_another_release(tmp_path: Path) -> None:
    prefix = environment(tmp_path, "torch==2.9.1", "vllm==0.6.4; torch==2.5.1", "transformers==4.46.0")
    assert moved(told(prefix, 0)) == {"transformers": "4.56.0", "vllm": "0.14.0"}


def test_pytorch_moves_to_a_build_that_the_gpu_runs_with_its_family(tmp_path: Path) -> None:
    prefix = environment(tmp_path, "torch==2.4.1", "torchvision==0.19.1; torch==2.4.1", "xformers==0.0.28.post1")
    found = told(prefix, 0, "gpu==RTX 5090,driver==570.86.10")
    assert moved(found) == {"torch": "2.7.1+cu128", "torchvision": "0.22.1+cu128", "xformers": "0.0.31"}
    assert found["steps"][0][-2:] == ["--index-url", "https://download.pytorch.org/whl/cu128"]
    text = repair(prefix, assume="gpu==RTX 5090,driver==570.86.10").out
    assert text.count("pip install") == 1
    assert "uv pip install" not in text


def test_a_set_that_breaks_something_else_is_not_told(tmp_path: Path) -> None:
    bound = "torchvision==0.19.1; torch==2.4.1"
    prefix = environment(tmp_path, "torch==2.9.1", bound, "mymodels==1.0; torchvision<0.20")
    found = told(prefix, 1)
    assert not found["packages"]
    assert any("mymodels" in each["message"] for each in found["reasons"])


def test_what_fits_stays(tmp_path: Path) -> None:
    result = repair(environment(tmp_path, "torch==2.9.1", "torchvision==0.24.1; torch==2.9.1"))
    assert "the releases that are installed fit" in result.out
    assert "pip install" not in result.out


def test_without_a_path_it_is_the_environment_of_a_check(tmp_path: Path) -> None:
    prefix = environment(tmp_path, "torch==2.9.1", "torchvision==0.19.1; torch==2.4.1")
    result = envcheck("plan", "--repair", "--assume", H100, "--json", cwd=tmp_path, VIRTUAL_ENV=str(prefix))
    assert (result.status, moved(json.loads(result.out))) == (0, {"torchvision": "0.24.1"})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--repair", ".", "--resolve"), "--repair"),
        (("--repair", ".", "-r", "x.txt"), "--repair"),
        (("torch", "--repair", "--assume", H100), "--repair"),
    ],
)
def test_it_is_one_thing_or_the_other(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    result = envcheck("plan", *words, cwd=tmp_path)
    assert result.status == 2
    assert why in result.err
