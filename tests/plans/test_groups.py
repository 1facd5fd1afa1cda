"""A project's default install: its own extras, and groups that uv, Poetry, PDM and Hatch install unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.compat.load import load_matrix
from envcheck.plans import read_plans
from tests.plans.reading import packages, plan, versions

PROJECT = '[project]\nname = "my_app"\ndependencies = ["numpy"]\n'


@pytest.mark.parametrize(
    ("more", "installed"),
    [
        ('[dependency-groups]\ndev = ["torch"]\ndocs = ["jax"]\n', {"torch"}),
        ('[dependency-groups]\nDev = [{include-group = "gpu_x"}]\nGPU-x = ["torch"]\n', {"torch"}),
        ('[dependency-groups]\ndev = ["jax"]\ngpu = ["torch"]\n[tool.uv]\ndefault-groups = ["gpu"]\n', {"torch"}),
        ('[dependency-groups]\na = ["jax"]\nb = ["torch"]\n[tool.uv]\ndefault-groups = "all"\n', {"jax", "torch"}),
        ('[dependency-groups]\ndev = ["jax"]\n[tool.uv]\ndefault-groups = []\n', set()),
        ('[tool.uv]\ndev-dependencies = ["torch"]\n', {"torch"}),
        ('[tool.rye]\ndev-dependencies = ["torch"]\n', {"torch"}),
        ('[tool.pdm.dev-dependencies]\nany = ["torch"]\n', {"torch"}),
        ('[dependency-groups]\nany = ["torch"]\n[tool.pdm]\n', {"torch"}),
        ('[tool.hatch.envs.default]\nextra-dependencies = ["torch"]\n', {"torch"}),
        ('[tool.hatch.envs.other]\ndependencies = ["torch"]\n', set()),
        ('[tool.poetry.group.any.dependencies]\ntorch = "*"\n', {"torch"}),
        ('[tool.poetry.group.any]\noptional = true\n[tool.poetry.group.any.dependencies]\ntorch = "*"\n', set()),
        ('[tool.poetry.dev-dependencies]\ntorch = "*"\n', {"torch"}),
        ('[dependency-groups]\ndev = ["jax[cuda12]"]\n[tool.uv]\noverride-dependencies = ["jax==0.4.1"]\n', {"jax"}),
    ],
)
def test_groups_that_are_installed_unasked(tmp_path: Path, more: str, installed: set[str]) -> None:
    assert packages(plan(tmp_path, pyproject__toml=PROJECT + more)).keys() == {"numpy", *installed}


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        ("[all]", '[project.optional-dependencies]\nall = ["My.App[gpu]"]\ngpu = ["torch"]\n'),
        ("", '[dependency-groups]\ndev = ["my-app[gpu]"]\n[project.optional-dependencies]\ngpu = ["torch"]\n'),
        ("", '"my_app[gpu]"]\n[project.optional-dependencies]\ngpu = ["torch"]\n'),
    ],
)
def test_extras_of_the_project_itself_are_followed(tmp_path: Path, asked: str, more: str) -> None:
    start = PROJECT if more.startswith("[") else PROJECT.rstrip("]\n") + ", "
    (tmp_path / "pyproject.toml").write_text(start + more)
    assert "torch" in packages(read_plans([f"{tmp_path}/pyproject.toml{asked}"], load_matrix(), {}))


@pytest.mark.parametrize(
    ("command", "installed"),
    [
        ("pip install .", set()),
        ("pip install -e .[all]", {"jax"}),
        ("uv sync", {"torch"}),
        ("uv sync --no-dev", set()),
        ("uv sync --no-default-groups --extra all", {"jax"}),
    ],
)
def test_pip_installs_no_groups(tmp_path: Path, command: str, installed: set[str]) -> None:
    more = '[dependency-groups]\ndev = ["torch"]\n[project.optional-dependencies]\nall = ["jax"]\n'
    text = f"FROM ubuntu:22.04\nCOPY . .\nRUN {command}\n"
    found = packages(plan(tmp_path, Dockerfile=text, _pyproject__toml=PROJECT + more))
    assert found.keys() - {""} >= {"numpy", *installed}
    assert not found.keys() & ({"torch", "jax"} - installed)


@pytest.mark.parametrize(
    ("project", "installed"),
    [
        ("", {"torch"}),
        ("[tool.uv]\ndefault-groups = ['docs']\n", {"jax"}),
        ("[tool.uv]\ndefault-groups = []\n", set()),
        ("[tool.uv]\ndefault-groups = 'all'\n", {"torch", "jax"}),
    ],
)
def test_default_groups_of_uv_lock(tmp_path: Path, project: str, installed: set[str]) -> None:
    text = "".join(f'[[package]]\nname = "{name}"\nversion = "2.0"\n' for name in ("torch", "jax"))
    text += """[[package]]
name = "app"
source = { editable = "." }
[package.dev-dependencies]
dev = [{ name = "torch" }]
docs = [{ name = "jax" }]
"""
    assert packages(plan(tmp_path, uv__lock=text, _pyproject__toml=project)).keys() == installed
    groups = text.replace("[package.dev-dependencies]", "[manifest.dependency-groups]")
    assert packages(plan(tmp_path, uv__lock=groups, _pyproject__toml=project)).keys() == installed


def test_what_a_lock_does_not_lock_stays_open(tmp_path: Path) -> None:
    text = '[[package]]\nname = "app"\nsource = { virtual = "." }\n'
    text += 'dependencies = [{ name = "torch", version = "2.0.1" }]\n'
    found = packages(plan(tmp_path, uv__lock=text))["torch"]
    assert (found.version, found.problem) == (None, "the lock file states no version")


def test_uv_decides_within_its_constraints(tmp_path: Path) -> None:
    text = '[project]\nname = "a"\ndependencies = ["torch>=2", "jax==0.4.30"]\n[tool.uv]\n'
    more = 'constraint-dependencies = ["torch==2.0.1"]\noverride-dependencies = ["jax==0.4.1"]\n'
    assert versions(plan(tmp_path, pyproject__toml=text + more)) == {"torch": "2.0.1", "jax": "0.4.1"}


def test_constraints_on_one_package_hold_together(tmp_path: Path) -> None:
    found = plan(tmp_path, requirements__txt="torch\n-c a.txt\n", _a__txt="torch==2.0.1\ntorch<3\n")
    assert versions(found) == {"torch": "2.0.1"}


@pytest.mark.parametrize(
    ("items", "lines"),
    [
        ("- [torch]", [2]),
        ("- torch: 2.0", [2]),
        ("- 1.0", [2]),
        ("-", [2]),
        ("- pip: torch", [2]),
        ("- pip:\n  - [torch]\n  - torch: 1.0\n  - jax", [3, 4]),
        ("- pip:\n  - pip:\n    - torch", [3]),
        ("- pip: [jax]\n  conda: [torch]", [3]),
        ("- &a [torch]\n- *a", [2]),
        ("- <<: {pip: [torch]}", [2]),
        ("- numpy\ndependencies: [torch]", [3]),
        ("- numpy\npip: [torch]", [3]),
        ("- pip:\n  - --pre torch", [3]),
        ("- pytorch-2.0.1-0.tar.bz2", [2]),
        ("- -c pytorch", [2]),
        ("- pip:\n  - |\n    jax\n    = ?", [3]),
        ("- 'pytorch[version=\">=2\", url=x]'", [2]),
    ],
)
def test_nodes_of_conda_that_are_not_understood(tmp_path: Path, items: str, lines: list[int]) -> None:
    found = plan(tmp_path, environment__yml=f"dependencies:\n{items}\n").planned or ()
    assert [each.line for each in found if not each.name] == lines


def test_conda_has_pip_read_a_file_of_its_list(tmp_path: Path) -> None:
    text = "x: &p [torch==2.0.1]\ndependencies:\n- pip:\n  - --pre -r more.txt\n  - -ihttps://x.example\n  - jax\n"
    found = packages(plan(tmp_path, environment__yml=text, _more__txt="torch==2.0.1\n"))
    assert (found["torch"].version, found["torch"].build, found["jax"].line) == ("2.0.1", None, 6)
    assert found["torch"].together == found["jax"].together
