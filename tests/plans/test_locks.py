"""Lock files: pylock, uv, Poetry, PDM and Pipfile.lock, and what each way to lock says of a package."""

import json
from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.model.snapshot import Environment
from tests.every import cases
from tests.plans.reading import packages, plan, plan_at, sample, versions

UV = sample("uv.lock")

POETRY = sample("poetry.lock")

PYLOCK = sample("pylock.toml")

PROJECT = """[project]
name = "app"
dependencies = [
    "torch>=2.0,<2.1",
]
[project.optional-dependencies]
tf = ["tensorflow==2.15.*"]
"""


def test_uv_lock_follows_the_project(tmp_path: Path) -> None:
    found = packages(plan(tmp_path, uv__lock=UV))
    assert {name: each.version for name, each in found.items()} == {
        "torch": "2.0.1",
        "jax": "0.4.30",
        "jax-cuda12-plugin": "0.4.30",
    }
    assert (found["torch"].line, found["torch"].build, found["jax"].build) == (14, "", None)


def test_poetry_lock_leaves_out_optional_groups_and_other_systems(tmp_path: Path) -> None:
    assert versions(plan(tmp_path, poetry__lock=POETRY)) == {"torch": "2.0.1", "vllm": "0.6.0"}
    found = packages(plan(tmp_path, poetry__lock=POETRY, _pyproject__toml="[tool.poetry.group.dev]\noptional = true\n"))
    assert {name: (each.version, each.line) for name, each in found.items()} == {"torch": ("2.0.1", 1)}


def test_pylock(tmp_path: Path) -> None:
    found = packages(plan(tmp_path, pylock__toml=PYLOCK))
    assert {name: (each.version, each.build, each.line) for name, each in found.items()} == {
        "torch": ("2.0.1+cu118", "cu118", 4)
    }


def test_pyproject_and_its_extras(tmp_path: Path) -> None:
    assert versions(plan(tmp_path, pyproject__toml=PROJECT)) == {"torch": None}
    with pytest.raises(UsageError, match=r"has no extra or dependency group 'jax'"):
        plan_of_extras(tmp_path, "jax")
    found = packages(plan_of_extras(tmp_path, "tf"))
    assert (found["tensorflow"].bounds, found["tensorflow"].line) == ("==2.15.*", 7)


def plan_of_extras(folder: Path, extras: str) -> Environment:
    return plan_at(f"{folder}/pyproject.toml[{extras}]")


@cases("name", "uv__lock", "poetry__lock", "pylock__toml", "pyproject__toml")
@cases("text", "", "a = [", "a = 1", "package = []\n", "x" + ".x" * 300 + "=1")
def test_bad_toml_is_a_usage_error(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(UsageError) as raised:
        plan(tmp_path, **{name: text})
    assert name.replace("__", ".") in str(raised.value)


def test_deeply_nested_toml_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        plan(tmp_path, uv__lock="a = " + "[" * 5000)


def test_dynamic_dependencies_stay_open(tmp_path: Path) -> None:
    (found,) = plan(tmp_path, pyproject__toml='[project]\nname = "x"\ndynamic = ["dependencies"]\n').planned or ()
    assert (found.name, found.line) == ("", 3)
    assert "the dependencies are dynamic" in (found.problem or "")


def test_a_marker_of_uv_may_be_long(tmp_path: Path) -> None:
    marker = " or ".join(f"(sys_platform == 'linux' and extra != 'extra-3-app-{n}')" for n in range(200))
    text = UV_ROOT + f'dependencies = [{{ name = "torch", marker = "{marker}" }}]\n' + UV_TORCH
    assert packages(plan(tmp_path, uv__lock=text))["torch"].version == "2.0.1"


UV_ROOT = '[[package]]\nname = "app"\nversion = "1"\nsource = { editable = "." }\n'
UV_TORCH = '[[package]]\nname = "torch"\nversion = "2.0.1"\nsource = { registry = "https://pypi.org/simple" }\n'


# --- Pipfile.lock: its categories, and what each way to lock a package says of it -----------------------------------
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
    return versions(plan_at(f"{folder}/Pipfile.lock{extras}"))


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


@cases("text", "", "[]", "{}", '{"default": 1}', "[" * 99_999)
def test_what_is_no_pipfile_lock_is_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"Pipfile\.lock"):
        plan(tmp_path, Pipfile__lock=text)


def test_pipenv_in_a_build_installs_its_lock(tmp_path: Path) -> None:
    (tmp_path / "Pipfile.lock").write_text(json.dumps(PIPFILE_LOCK))
    text = "FROM python:3.11\nCOPY . /app\nWORKDIR /app\nRUN pipenv install --deploy --system\n"
    found = packages(plan(tmp_path, Dockerfile=text))
    assert found["torch"].version == "2.9.1"
    assert found["torch"].file.endswith("Pipfile.lock")


# --- What of a lock file holds: extras that exclude each other, and what depends on the Python ----------------------
FORKS = sample("conflicts-uv.lock")


@cases("extras, version, build",
    ("", "2.9.1", ""), ("[gpu]", "2.9.1+cu128", "cu128"), ("[cpu]", "2.9.1+cpu", "cpu"),
)  # fmt: skip
def test_the_extras_that_are_asked_for_choose_the_fork_of_uv_lock(
    tmp_path: Path, extras: str, version: str, build: str
) -> None:
    (tmp_path / "uv.lock").write_text(FORKS)
    found = packages(plan_at(f"{tmp_path}/uv.lock{extras}"))
    assert {name: (each.version, each.build, each.refused) for name, each in found.items()} == {
        "torch": (version, build, None)
    }


def test_extras_that_exclude_each_other_are_not_asked_for_together(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(FORKS)
    with pytest.raises(UsageError, match="cpu and gpu exclude each other"):
        plan_at(f"{tmp_path}/uv.lock[cpu,gpu]")
    text = '[project]\nname = "app"\n[project.optional-dependencies]\ncpu = []\ngpu = []\n[tool.uv]\n'
    (tmp_path / "pyproject.toml").write_text(f'{text}conflicts = [[{{ extra = "cpu" }}, {{ extra = "gpu" }}]]\n')
    with pytest.raises(UsageError, match="cpu and gpu exclude each other"):
        plan_of_extras(tmp_path, "cpu,gpu")


# --- pdm.lock -------------------------------------------------------------------------------------------------------
PDM = sample("pdm.lock")


def test_pdm_lock_installs_the_default_group_and_those_for_development(tmp_path: Path) -> None:
    found = packages(plan(tmp_path, pdm__lock=PDM))
    assert {name: (each.version, each.build, each.extras) for name, each in found.items()} == {
        "torch": ("2.5.1", "", ()),
        "jax": ("0.7.2", "", ("cuda12",)),
        "tensorflow": ("2.15.0", "", ()),
        "flash-attn": (None, "", ()),
    }
    (tmp_path / "pyproject.toml").write_text("[dependency-groups]\ntest = []\n")
    (tmp_path / "pdm.lock").write_text(PDM)
    assert _of_pdm(tmp_path) == {"torch", "jax", "flash-attn", "vllm"}
    assert _of_pdm(tmp_path, "[gpu]") == {"torch", "jax", "flash-attn", "vllm", "cupy-cuda12x"}
    with pytest.raises(UsageError, match="no extra or dependency group 'other'"):
        _of_pdm(tmp_path, "[other]")


def _of_pdm(folder: Path, extras: str = "") -> set[str]:
    return set(packages(plan_at(f"{folder}/pdm.lock{extras}")))
