"""Pipfile.lock: its categories, and what each way to lock a package says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envcheck.compat.load import load_matrix
from envcheck.errors import UsageError
from envcheck.plans import read_plans
from tests.plans.reading import packages, plan, versions

PIPFILE_LOCK = {
    "_meta": {
        "sources": [{"name": "pypi", "url": "https://pypi.example/simple"}, {"name": "own", "url": "https://x/s"}]
    },
    "default": {
        "torch": {"version": "==2.9.1", "index": "pypi", "markers": "python_version >= '3.9'"},
        "jax": {"version": "==0.7.2", "extras": ["cuda12"]},
        "cupy-cuda11x": {"version": "*"},
        "flash-attn": {"git": "https://example.org/flash-attention.git", "ref": "abc"},
        "xformers": {"file": "https://example.org/xformers-0.0.33.post2-cp39-abi3-manylinux_2_28_x86_64.whl"},
        "bitsandbytes": {"version": "==0.45.0", "markers": "sys_platform == 'win32'"},
    },
    "develop": {"deepspeed": {"version": "==0.19.1"}},
}


def _lock(folder: Path, extras: str = "") -> dict[str, str | None]:
    (folder / "Pipfile.lock").write_text(json.dumps(PIPFILE_LOCK, indent=4))
    return versions(read_plans([f"{folder}/Pipfile.lock{extras}"], load_matrix(), {"sys_platform": "linux"}))


def test_pipfile_lock(tmp_path: Path) -> None:
    found = _lock(tmp_path)
    assert found == {
        "torch": "2.9.1", "jax": "0.7.2", "cupy-cuda11x": None, "flash-attn": None, "xformers": "0.0.33.post2",
    }  # fmt: skip
    assert _lock(tmp_path, "[develop]").keys() - found.keys() == {"deepspeed"}
    with pytest.raises(UsageError, match="no extra or dependency group 'other'"):
        _lock(tmp_path, "[other]")


def test_lines_builds_and_extras_of_pipfile_lock(tmp_path: Path) -> None:
    text = json.dumps(PIPFILE_LOCK, indent=4)
    found = packages(plan(tmp_path, Pipfile__lock=text))
    line = found["flash-attn"].line
    assert line is not None
    assert '"flash-attn"' in text.split("\n")[line - 1]
    assert (found["jax"].extras, found["torch"].build) == (("cuda12",), "")
    private = text.replace('"index": "pypi"', '"index": "own"')
    assert packages(plan(tmp_path, Pipfile__lock=private))["torch"].build is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"default": 1}', "[" * 99_999])
def test_what_is_no_pipfile_lock_is_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"Pipfile\.lock"):
        plan(tmp_path, Pipfile__lock=text)


def test_pipenv_in_a_build_installs_its_lock(tmp_path: Path) -> None:
    (tmp_path / "Pipfile.lock").write_text(json.dumps(PIPFILE_LOCK))
    text = "FROM python:3.11\nCOPY . /app\nWORKDIR /app\nRUN pipenv install --deploy --system\n"
    found = packages(plan(tmp_path, Dockerfile=text))
    assert found["torch"].version == "2.9.1"
    assert found["torch"].file.endswith("Pipfile.lock")
