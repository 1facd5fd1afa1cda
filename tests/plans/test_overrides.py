"""``envcheck plan`` beside what packages require: overrides and constraints, by rows and by the project's own uv."""

from __future__ import annotations

import json
from pathlib import Path

from envcheck.text.toml import loads
from tests.cli.calling import envcheck
from tests.every import cases
from tests.plans.test_wishes import H100, T4, chosen, pylock, stub

V100 = "gpu==V100,driver==580.95.05"
CUDNN, WITHOUT = "nvidia-cudnn-cu12==9.15.0.57", 'onnxruntime; sys_platform == "never"'
WHISPER = ("faster-whisper", "onnxruntime-gpu")


@cases(
    "wishes, assume, overrides",
    (("torch==2.9.1",), H100, [CUDNN]),
    (("sglang==0.5.9",), H100, [CUDNN]),
    (("torch==2.9.1",), V100, []),  # for which cuDNN 9.15 has no code
    (("torch==2.10.0",), H100, []),
    (WHISPER, H100, [WITHOUT]),
    (("whisperx", "onnxruntime-gpu"), H100, [WITHOUT]),  # which requires faster-whisper
    (("faster-whisper",), H100, []),
    (("torch==2.9.1", "torchvision==0.19.1"), H100, None),
)
def test_what_a_row_knows_better_is_overridden(
    wishes: tuple[str, ...], assume: str, overrides: list[str] | None, tmp_path: Path
) -> None:
    asked = (*wishes, "--python", "3.12")
    found = chosen(tmp_path, *asked, assume=assume, status=0 if overrides is not None else 1)
    assert [each["requirement"] for each in found["overrides"]] == (overrides or [])
    assert all(each["reason"] and each["sources"] and each["pip"] for each in found["overrides"])


@cases("wishes, assume, bound", (("flashinfer-python",), T4, ["cuda-python<=12.9"]), (("torch",), H100, []))
def test_what_comes_with_a_set_is_held_to_what_runs(
    wishes: tuple[str, ...], assume: str, bound: list[str], tmp_path: Path
) -> None:
    held = chosen(tmp_path, *wishes, "--python", "3.12", assume=assume)["constraints"]
    assert [each["requirement"].rpartition(".")[0] for each in held] == bound
    assert all("needs driver 580" in each["reason"] for each in held)


def written(folder: Path, form: str, *words: str) -> str:
    return envcheck("plan", *words, "--assume", H100, "--python", "3.12", "--format", form, cwd=folder).out


def test_each_installer_is_told_in_its_own_words(tmp_path: Path) -> None:
    wishes = ("torch==2.9.1", "flash-attn", *WHISPER)
    text = written(tmp_path, "text", *wishes)
    assert f"over  {CUDNN}, in place of 9.10.2.21" in text
    assert f"printf '%s\\n' {CUDNN} '{WITHOUT}' > overrides.txt" in text
    assert "flash-attn==2.8.3.post2 --overrides overrides.txt" in text
    steps = [
        f"pip install --no-deps {CUDNN}",
        "pip uninstall -y onnxruntime",
        "pip install --force-reinstall --no-deps onnxruntime-gpu==1.26.0",
    ]
    assert "\n".join(f"  {step}" for step in steps) in text
    for form, mark in (("requirements", "# then: "), ("conda", "# then: "), ("dockerfile", "RUN ")):
        assert "\n".join(mark + step for step in steps) in written(tmp_path, form, *wishes)
    uv = loads(written(tmp_path, "pyproject", *wishes))["tool"]["uv"]
    assert uv["override-dependencies"] == [CUDNN, WITHOUT.replace('"', "'")]
    pixi = written(tmp_path, "pixi", *wishes)
    assert loads(pixi)["pypi-options"]["dependency-overrides"] == {"nvidia-cudnn-cu12": "==9.15.0.57"}
    assert pixi.endswith(f"# pixi cannot say this override of uv's: {WITHOUT}\n")


@cases(
    "newest, held",
    ("13.5.0", ["transformers<5", "cuda-bindings<=12.9.10"]),
    ("12.9.4", ["transformers<5"]),
)
def test_the_overrides_of_a_project_are_passed_on(newest: str, held: list[str], tmp_path: Path) -> None:
    """With its constraints; and uv is asked again where it takes what does not run here."""
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\ndependencies = ["torch==2.9.1", "transformers"]\n[tool.uv]\n'
        'override-dependencies = ["nvidia-cudnn-cu12>=9.16"]\nconstraint-dependencies = ["transformers<5"]\n'
    )
    pins = {"torch": "2.9.1", "nvidia_cudnn_cu12": "9.28.0.42"}
    held_back = pylock(**pins, cuda_bindings="12.9.4")
    answers = f'if grep -q cuda- "${{15}}"; then\n{held_back}\nelse\n{pylock(**pins, cuda_bindings=newest)}\nfi'
    path = stub(tmp_path, f'cat "${{13}}" "${{15}}" > files\n{answers}')
    asked = ("plan", "-r", "pyproject.toml", "--assume", H100, "--python", "3.12")
    found = json.loads(envcheck(*asked, "--resolve", "--json", cwd=tmp_path, PATH=path).out)
    assert found["verdict"] == "compatible"
    assert [each["requirement"] for each in found["overrides"]] == ["nvidia-cudnn-cu12>=9.16"]
    assert [each["requirement"] for each in found["constraints"]] == held
    assert (tmp_path / "files").read_text().splitlines() == ["nvidia-cudnn-cu12>=9.16", *held]
    assert found["resolved"][-1] == "cuda-bindings==12.9.4"
    text = envcheck(*asked, cwd=tmp_path).out
    assert "--overrides overrides.txt --constraint constraint.txt" in text
    assert "pip\n" not in text  # which has no overrides
    image = envcheck(*asked, "--format", "dockerfile", cwd=tmp_path).out
    assert "RUN uv pip install --system torch==2.9.1 transformers==4." in image
