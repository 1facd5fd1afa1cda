"""``envcheck plan``: what is chosen passes ``check --plan``, and where nothing fits it says why."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from envcheck.text.toml import loads
from tests.cli.calling import envcheck
from tests.every import cases, tabled

H100 = "gpu==H100,driver==550.54.14"
RTX5090 = "gpu==RTX 5090,driver==570.86.10"
T4 = "gpu==T4,driver==535.183.01"


def chosen(folder: Path, *words: str, assume: str = H100, status: int = 0) -> dict[str, Any]:
    result = envcheck("plan", *words, "--assume", assume, "--json", cwd=folder)
    assert (result.status, result.err) == (status, "")
    found: dict[str, Any] = json.loads(result.out)
    return found


def test_the_answer_is_that_of_the_schema(tmp_path: Path) -> None:
    schema = json.loads(envcheck("schema", "plan", cwd=tmp_path).out)
    jsonschema.Draft202012Validator(schema).validate(chosen(tmp_path, "torch"))
    jsonschema.Draft202012Validator(schema).validate(chosen(tmp_path, "torch<2.7", assume=RTX5090, status=1))


def releases(found: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["version"] for each in found["packages"]}


@cases(
    "wishes, assume",
    (("torch", "vllm", "flash-attn>=2.7"), H100),
    (("torch", "torchvision", "torchaudio", "xformers"), RTX5090),
    (("sglang",), T4),
    (("jax",), H100),
    (("tensorflow", "keras"), T4),
    (("cupy-cuda12x",), H100),
    (("onnxruntime-gpu",), RTX5090),
    (("transformers", "peft", "bitsandbytes", "torch<2.9"), RTX5090),
)
def test_a_set_that_is_chosen_passes_as_a_plan(wishes: tuple[str, ...], assume: str, tmp_path: Path) -> None:
    asked = (*wishes, "--assume", assume, "--python", "3.12")
    made = envcheck("plan", *asked, "--format", "requirements", cwd=tmp_path)
    assert made.status == 0
    (tmp_path / "requirements.txt").write_text(made.out)
    judged = envcheck(
        "check", "--plan", "requirements.txt", "--assume", f"{assume},python==3.12", "--json", cwd=tmp_path
    )
    assert json.loads(judged.out)["verdict"] != "fail"
    pinned = [line for line in made.out.splitlines() if not line.startswith("-")]
    assert all("==" in line for line in pinned)
    assert len(pinned) >= len(wishes)


def test_the_build_of_pytorch_is_for_the_driver(tmp_path: Path) -> None:
    found = chosen(tmp_path, "torch", assume=RTX5090)
    assert found["tag"].startswith("cu12")
    assert releases(found)["torch"].endswith(f"+{found['tag']}")
    assert "needs driver 580" in found["packages"][0]["given_up"]
    assert found["described"][:2] == ["__cuda=12.8", "__cuda_arch=12.0"]
    assert "nvidia :: sm_arch :: 120_real" in found["described"]
    text = envcheck("plan", "torch", "--assume", RTX5090, cwd=tmp_path).out
    assert f"--torch-backend={found['tag']}" in text
    assert f"--extra-index-url https://download.pytorch.org/whl/{found['tag']}" in text


def test_releases_follow_each_other(tmp_path: Path) -> None:
    """The engine decides the PyTorch, with the reason of each step back."""
    found = chosen(tmp_path, "vllm", "--python", "3.12", assume="gpu==H100,driver==580.65.06")
    vllm, torch = releases(found)["vllm"], releases(found)["torch"]
    why = {each["name"]: each["given_up"] for each in found["packages"]}
    assert f"vllm {vllm} requires torch=={torch}" in why["torch"]
    older = chosen(tmp_path, "vllm", "--python", "3.12")["packages"][1]["given_up"]
    assert "https://github.com/vllm-project/vllm/releases/tag/v0." in older  # a build for another CUDA


def test_requirements_of_the_python_that_is_asked_for_count(tmp_path: Path) -> None:
    """PyTorch requires Triton of some Pythons by a marker."""
    found = releases(chosen(tmp_path, "triton==3.8.0", "--python", "3.12"))
    assert found["torch"].startswith("2.14.")


def test_what_is_compiled_comes_after_pytorch_with_its_wheel(tmp_path: Path) -> None:
    found = chosen(tmp_path, "flash-attn", "torch", "--python", "3.12")
    (flash,) = (each for each in found["packages"] if each["name"] == "flash-attn")
    assert flash["compiled"]
    assert flash["wheel"].endswith("-cp312-cp312-linux_x86_64.whl")
    made = envcheck("plan", "flash-attn", "torch", "--assume", H100, "--format", "dockerfile", cwd=tmp_path).out
    *_, first, second = made.splitlines()
    assert first.startswith("RUN pip install --no-cache-dir ")
    assert "--no-build-isolation flash-attn==" in second


@tabled
def test_what_has_no_wheel_on_pypi_sees_the_pytorch_that_is_there(tmp_path: Path, name: str, wheel: str) -> None:
    found = chosen(tmp_path, name, "torch", "--python", "3.12")
    (package,) = (each for each in found["packages"] if each["name"] == name)
    assert package["compiled"]
    assert package["wheel"].endswith(wheel)
    assert bool(package["wheel"]) is bool(wheel)


def test_an_extra_brings_the_gpu_support(tmp_path: Path) -> None:
    (jax,) = chosen(tmp_path, "jax")["packages"]
    assert jax["extras"] == ["cuda12"]
    (newer,) = chosen(tmp_path, "jax", assume="gpu==H100,driver==580.65.06")["packages"]
    assert newer["extras"] == ["cuda13"]


@tabled
def test_what_brings_the_libraries_is_named(wishes: str, extras: list[str], beside: set[str], tmp_path: Path) -> None:
    """Extras where there are some, else NVIDIA's wheels, unless PyTorch brings them; and releases that go with it."""
    first, *_ = (name for name in wishes.split())
    found = chosen(tmp_path, *wishes.split())["packages"]
    assert {each["name"] for each in found} == {first, *beside}
    assert next(each["extras"] for each in found if each["name"] == first) == extras


def test_what_is_opened_by_name_is_put_on_the_path(tmp_path: Path) -> None:
    text = envcheck("plan", "ctranslate2", "--assume", H100, cwd=tmp_path).out
    assert 'export LD_LIBRARY_PATH=$(python -c "import nvidia.cublas, nvidia.cudnn; ' in text
    made = envcheck("plan", "ctranslate2", "--assume", H100, "--format", "dockerfile", cwd=tmp_path).out
    assert "/etc/ld.so.conf.d/nvidia-wheels.conf && ldconfig" in made


def test_pyproject_names_the_index_for_what_it_serves(tmp_path: Path) -> None:
    made = envcheck("plan", "torch", "transformers", "--assume", RTX5090, "--format", "pyproject", cwd=tmp_path).out
    document = loads(made)
    (index,) = document["tool"]["uv"]["index"]
    assert document["tool"]["uv"]["sources"] == {"torch": {"index": index["name"]}}
    assert index["explicit"] is True
    assert [line.partition("==")[0] for line in document["dependencies"]] == ["torch", "transformers"]


@cases(
    "wishes, assume, reason, nearest",
    (("torch==2.15.0",), "gpu==H100,driver==470.82.01", "CUDA 13.2 needs driver 580", "driver >= 580"),
    (("torch<2.7",), RTX5090, "none of which runs on sm_120", "instead of torch<2.7: torch 2."),
    (
        ("vllm==0.10.0", "torch==2.9.0"),
        H100,
        "vllm 0.10.0 requires torch==2.7.1",
        "instead of torch==2.9.0: vllm 0.10.0, torch 2.7",
    ),
    (("torch==2.1.0",), f"{H100},python==3.13", "CPython 3.8 to 3.11", "python 3.11"),
    (("cupy-cuda13x",), T4, "CUDA 13.0 needs driver 580", "driver >= 580"),
)
def test_where_nothing_fits_it_says_why_and_what_would(
    wishes: tuple[str, ...], assume: str, reason: str, nearest: str, tmp_path: Path
) -> None:
    found = chosen(tmp_path, *wishes, assume=assume, status=1)
    assert found["verdict"] == "incompatible"
    assert reason in " ".join(each["message"] for each in found["reasons"])
    assert [text for text in found["nearest"] if text.startswith(nearest)]
    text = envcheck("plan", *wishes, "--assume", assume, cwd=tmp_path).out
    assert text.startswith("NOTHING FITS")
    assert "pip install" not in text
    comments = envcheck("plan", *wishes, "--assume", assume, "--format", "requirements", cwd=tmp_path).out
    assert all(line.startswith("#") for line in comments.splitlines())


def test_two_causes_have_no_single_change(tmp_path: Path) -> None:
    """Neither a driver nor a GPU alone would do, and no older release has code for Volta and a PyTorch that has."""
    found = chosen(tmp_path, "vllm==0.33.0", assume="gpu==V100,driver==550.54.14", status=1)
    assert found["nearest"] == []
    apart = chosen(tmp_path, "torchvision==0.19.1", "torch==2.9.1", assume=RTX5090, status=1)["nearest"]
    assert apart  # no GPU brings together what pip keeps apart, though none of this one's PyTorch has its code
    assert not any("GPU" in text for text in apart)


def test_a_file_says_what_is_wished_and_a_target_for_what(tmp_path: Path) -> None:
    (tmp_path / "requirements.in").write_text("torch>=2.5,<2.8\n")
    (tmp_path / "envcheck.toml").write_text('[target.desk]\ngpu = "RTX 5090"\ndriver = "570.86.10"\n')
    made = envcheck("plan", "-r", "requirements.in", "--target", "desk", "--json", cwd=tmp_path)
    found = json.loads(made.out)
    assert releases(found) == {"torch": "2.7.1+cu128"}
    assert found["machine"]["gpu"] == "RTX 5090"


@cases(
    "words, told",
    ((), "nothing to install is named"),
    (("torch", "--assume", "os==linux"), "no GPU is known here"),
    (("not a package", "--assume", H100), "'not a package' names no package and its releases"),
    (("torch @ https://example.org/x.whl", "--assume", H100), "names no package and its releases"),
    (("-r", "gone.txt", "--assume", H100), "cannot read gone.txt"),
    (("-r", "@all", "--assume", H100), "-r @all: name files; check --plan takes the plans of a configuration"),
    (("torch", "--assume", H100, "--python", "new"), "python==new"),
    (("torch", "--assume", H100, "--resolve"), "there is no uv on PATH"),
)
def test_what_cannot_be_asked(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    result = envcheck("plan", *words, cwd=tmp_path, PATH=str(tmp_path))
    assert (result.status, result.out) == (2, "")
    assert told in result.err
    assert result.err.count("\n") == 1


def test_an_image_has_no_releases_to_choose_from(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM nvcr.io/nvidia/pytorch:24.10-py3\n")
    result = envcheck("plan", "-r", "Dockerfile", "--assume", H100, cwd=tmp_path)
    assert (result.status, result.out) == (2, "")
    assert "has no releases on a package index to choose from" in result.err


def stub(folder: Path, script: str) -> str:
    """A ``PATH`` whose ``uv`` is this script."""
    place = folder / "bin" / "uv"
    place.parent.mkdir()
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return f"{place.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"


def pylock(**versions: str) -> str:
    """A command that prints what uv writes of these, each a wheel of 100 MB; PyTorch's without its size."""
    lines = [
        f'[[packages]]\nname = "{name.replace("_", "-")}"\nversion = "{version}"\n'
        f'wheels = [{{ url = "https://x"{", size = 100_000_000" if name != "torch" else ""} }}]'
        for name, version in versions.items()
    ]
    return "cat <<'END'\n" + "\n".join(lines) + "\nEND"


def test_what_uv_resolves_is_judged_too(tmp_path: Path) -> None:
    path = stub(
        tmp_path,
        'cat > asked; echo "$@" > options\n' + pylock(torch="2.7.1", nvidia_nccl_cu12="2.26.2", numpy="2.2.0"),
    )
    asked = ("plan", "torch<2.8", "--assume", H100, "--python", "3.12", "--resolve")
    found = json.loads(envcheck(*asked, "--json", cwd=tmp_path, PATH=path).out)
    assert (tmp_path / "asked").read_text() == "torch==2.7.1"
    assert "--python-version 3.12 --python-platform x86_64-manylinux_2_28" in (tmp_path / "options").read_text()
    assert found["resolved"] == ["torch==2.7.1", "nvidia-nccl-cu12==2.26.2", "numpy==2.2.0"]
    assert (found["download"], found["unsized"]) == (200_000_000, 1)
    assert "3 packages, 0.20 GB to download and 1 of" in envcheck(*asked, cwd=tmp_path, PATH=path).out
    made = envcheck(*asked, "--format", "requirements", cwd=tmp_path, PATH=path)
    assert (made.status, made.out.splitlines()[1]) == (0, "nvidia-nccl-cu12==2.26.2")


def test_what_uv_resolves_may_not_fit_after_all(tmp_path: Path) -> None:
    path = stub(tmp_path, pylock(torch="2.7.1", vllm="0.33.0"))
    result = envcheck("plan", "torch<2.8", "--assume", H100, "--resolve", "--json", cwd=tmp_path, PATH=path)
    assert (result.status, json.loads(result.out)["verdict"]) == (1, "incompatible")


def test_uv_without_an_answer_is_no_verdict(tmp_path: Path) -> None:
    path = stub(tmp_path, "echo 'No solution found' >&2; exit 1")
    result = envcheck("plan", "torch", "--assume", H100, "--resolve", cwd=tmp_path, PATH=path)
    assert (result.status, result.out) == (3, "")
    assert "--resolve: uv finds no set: No solution found" in result.err


def test_uv_is_started_only_when_asked(tmp_path: Path) -> None:
    path = stub(tmp_path, "touch started; exit 1")
    assert envcheck("plan", "torch", "--assume", H100, cwd=tmp_path, PATH=path).status == 0
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("form", ["text", "json", "requirements", "pyproject", "dockerfile", "conda", "pixi"])
def test_names_from_a_file_stay_text(form: str, tmp_path: Path) -> None:
    (tmp_path / "wishes.txt").write_text("torch\n\x1b]0;x\x07evil\n")
    result = envcheck("plan", "-r", "wishes.txt", "--assume", H100, "--format", form, cwd=tmp_path)
    assert "\x1b" not in result.out + result.err


@tabled
def test_what_is_written_is_read_again_and_fits(form: str, file: str, wishes: str, line: str, tmp_path: Path) -> None:
    words = (*wishes.split(), "--python", "3.12", "--assume", H100)
    text = envcheck("plan", *words, "--format", form, cwd=tmp_path).out
    assert line in text
    (tmp_path / file).write_text(text)
    assert envcheck("check", "--plan", file, "--assume", H100, cwd=tmp_path).status == 0


def test_what_pixi_is_given_is_read_again_and_fits(tmp_path: Path) -> None:
    words = ("torch", "torchvision", "xformers", "--python", "3.12", "--assume", RTX5090)
    text = envcheck("plan", *words, "--format", "pixi", cwd=tmp_path).out
    asked = loads(text)["pypi-dependencies"]
    assert asked["torch"]["index"] == asked["torchvision"]["index"]
    assert "index" not in asked["xformers"]
    workspace = '[workspace]\nchannels = ["conda-forge"]\nplatforms = ["linux-64"]\n\n'
    (tmp_path / "pixi.toml").write_text(workspace + text)
    assert envcheck("check", "--plan", "pixi.toml", "--assume", RTX5090, cwd=tmp_path).status == 0


def test_a_set_of_a_day_has_no_later_release(tmp_path: Path) -> None:
    """As uv chooses it with ``--exclude-newer 2025-02-15``."""
    found = chosen(tmp_path, "vllm", "xformers", "flash-attn", "--as-of", "2025-02-15")
    own = {"torch": "2.5.1", "vllm": "0.7.2", "xformers": "0.0.28.post3", "flash-attn": "2.7.4.post1"}
    assert (releases(found), found["as_of"]) == (own, "2025-02-15")
    text = envcheck("plan", "torch", "--as-of", "2025-02-15", "--assume", H100, cwd=tmp_path).out
    assert "as of 2025-02-15: newer releases" in text
    for day, further, told in (
        ("2025-2-1", (), "is not a day such as"),
        ("2025-02-01", ("--resolve",), "about today's"),
    ):
        result = envcheck("plan", "torch", "--as-of", day, *further, cwd=tmp_path)
        assert (result.status, told in result.err) == (2, True)
