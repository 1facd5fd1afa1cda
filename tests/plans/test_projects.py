"""pyproject.toml as uv, Poetry and PDM read it: default installs, extras, groups, and wheels of lock files."""

from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.model.snapshot import Planned
from envcheck.plans.readers.pyproject import pep440_bounds
from tests.every import cases, tabled
from tests.plans.reading import packages, plan, plan_at, sample

CU118 = "https://download.pytorch.org/whl/cu118"


def read(folder: Path, name: str, text: str, extras: str = "", python: str | None = None) -> dict[str, Planned]:
    (folder / name).write_text(text)
    return packages(plan_at(f"{folder}/{name}{extras}", python=python))


@cases(
    "sources, build",
    ("", ""),
    (f'[[tool.uv.index]]\nname = "x"\nurl = "{CU118}"\n', "cu118"),
    (f'[[tool.uv.index]]\nname = "x"\nurl = "{CU118}"\nexplicit = true\n', ""),
    (f'[tool.uv.sources]\ntorch = {{index = "x"}}\n[[tool.uv.index]]\nname = "x"\nurl = "{CU118}"\n', "cu118"),
    (
        (
            f'[[tool.uv.index]]\nname = "x"\nurl = "{CU118}"\nexplicit = true\n'
            """[tool.uv.sources]\ntorch = [{index = "x", marker = "sys_platform == 'win32'"}]\n"""
        ),
        "",
    ),
    (f'[tool.uv]\nextra-index-url = ["{CU118}"]\n', "cu118"),
    ('[tool.uv.sources]\ntorch = {index = "gone"}\n', None),
    ('[tool.uv]\nindex-url = "https://mirror.example/simple"\n', None),
)
def test_the_index_of_uv_decides_about_the_build(tmp_path: Path, sources: str, build: str | None) -> None:
    text = f'[project]\nname = "x"\ndependencies = ["torch==2.4.1"]\n{sources}'
    assert read(tmp_path, "pyproject.toml", text)["torch"].build == build


POETRY = sample("poetry-pyproject.toml")


def test_poetrys_own_table(tmp_path: Path) -> None:
    found = read(tmp_path, "pyproject.toml", POETRY)
    assert set(found) == {"torch", "jax", "vllm"}
    assert (found["torch"].version, found["torch"].build, found["torch"].line) == ("2.0.1", "cu118", 6)
    assert (found["jax"].bounds, found["jax"].extras) == ("<0.5,>=0.4.30", ("cuda12",))
    assert found["vllm"].problem
    assert set(read(tmp_path, "pyproject.toml", POETRY, "[tf,old]")) == {*found, "tensorflow", "xformers"}
    with pytest.raises(UsageError, match="no extra or dependency group 'no'"):
        read(tmp_path, "pyproject.toml", POETRY, "[no]")


@tabled
def test_bounds_of_poetry(text: str, bounds: str | None) -> None:
    assert pep440_bounds(text) == bounds


UV = sample("uv-extras.lock")


def test_extras_of_uv_lock_choose_among_versions(tmp_path: Path) -> None:
    assert read(tmp_path, "uv.lock", UV) == {}
    assert read(tmp_path, "uv.lock", UV, "[cpu]")["torch"].version == "2.6.0+cpu"
    assert read(tmp_path, "uv.lock", UV, "[cu124]")["torch"].version == "2.6.0+cu124"
    assert set(read(tmp_path, "uv.lock", UV, "[old]")) == {"xformers"}
    with pytest.raises(UsageError, match="no extra or dependency group 'no'"):
        read(tmp_path, "uv.lock", UV, "[no]")


POETRY_LOCK = sample("poetry-extras.lock")


@cases("extras, more", ("", ""), ("[tf]", "tensorflow"), ("[jx]", "jax"), ("[serve]", "vllm"))
def test_extras_and_groups_of_poetry_lock(tmp_path: Path, extras: str, more: str) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.poetry.group.serve]\noptional = true\n")
    assert set(read(tmp_path, "poetry.lock", POETRY_LOCK, extras)) == {"torch", more} - {""}


OF_TWO_BUILDS = {
    "pyproject.toml": """[project]
name = "app"
[project.optional-dependencies]
cpu = ["torch (==2.7.1)"]
cuda = ["torch (==2.7.1+cu126)"]
[[tool.poetry.source]]
name = "gpu"
url = "https://download.pytorch.org/whl/cu126"
priority = "explicit"
[tool.poetry.dependencies]
torch = [
  { markers = "extra == 'cpu' and extra != 'cuda'", source = "PyPI" },
  { markers = "extra == 'cuda' and extra != 'cpu'", source = "gpu" },
]
""",
    "poetry.lock": "".join(
        f"""[[package]]
name = "torch"
version = "2.7.1+{tag}"
[package.source]
url = "https://download.pytorch.org/whl/{tag}"
"""
        for tag in ("cpu", "cu126")
    )
    + '[extras]\ncuda = ["torch"]\n',
}


@tabled
def test_poetry_takes_builds_from_named_sources(
    tmp_path: Path, file: str, extras: str, version: str, build: str | None
) -> None:
    for name, text in OF_TWO_BUILDS.items():
        (tmp_path / name).write_text(text)
    found = read(tmp_path, file, OF_TWO_BUILDS[file], extras)["torch"]
    assert (found.version, found.build, found.problem) == (version, build, None)


PYLOCK = sample("pylock-extras.toml")


@cases("extras, names", ("", set()), ("[gpu]", {"torch"}), ("[dev,gpu]", {"torch", "vllm"}))
def test_extras_and_groups_of_pylock(tmp_path: Path, extras: str, names: set[str]) -> None:
    pytest.importorskip("packaging.pylock")
    assert set(read(tmp_path, "pylock.toml", PYLOCK, extras)) == names


@tabled
def test_a_wheel_for_another_machine_cannot_be_installed(
    tmp_path: Path, tag: str, python: str | None, *, fits: bool
) -> None:
    text = f"torch @ https://x.example/torch-2.0.1-{tag}.whl\n"
    assert (read(tmp_path, "requirements.txt", text, python=python)["torch"].refused is None) == fits
    lock = f'[[package]]\nname = "torch"\nversion = "2.0.1"\nfiles = [{{file = "torch-2.0.1-{tag}.whl"}}]\n'
    assert (read(tmp_path, "poetry.lock", lock, python=python)["torch"].refused is None) == fits
    archive = lock.replace("files = [", 'files = [{file = "torch-2.0.1.tar.gz"}, ')
    assert read(tmp_path, "poetry.lock", archive, python=python)["torch"].refused is None


# --- A project's default install ------------------------------------------------------------------------------------
PROJECT = '[project]\nname = "my_app"\ndependencies = ["numpy"]\n'


@tabled
def test_groups_that_are_installed_unasked(tmp_path: Path, more: str, installed: set[str]) -> None:
    assert packages(plan(tmp_path, pyproject__toml=PROJECT + more)).keys() == {"numpy", *installed}


@tabled
def test_pip_installs_no_groups(tmp_path: Path, command: str, installed: set[str]) -> None:
    more = '[dependency-groups]\ndev = ["torch"]\n[project.optional-dependencies]\nall = ["jax"]\n'
    text = f"FROM ubuntu:22.04\nCOPY . .\nRUN {command}\n"
    found = packages(plan(tmp_path, Dockerfile=text, _pyproject__toml=PROJECT + more))
    assert found.keys() - {""} >= {"numpy", *installed}
    assert not found.keys() & ({"torch", "jax"} - installed)


@tabled
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


@tabled
def test_nodes_of_conda_that_are_not_understood(tmp_path: Path, items: str, lines: list[int]) -> None:
    found = plan(tmp_path, environment__yml=f"dependencies:\n{items}\n").planned or ()
    assert [each.line for each in found if not each.name] == lines


def test_conda_has_pip_read_a_file_of_its_list(tmp_path: Path) -> None:
    text = "x: &p [torch==2.0.1]\ndependencies:\n- pip:\n  - --pre -r more.txt\n  - -ihttps://x.example\n  - jax\n"
    found = packages(plan(tmp_path, environment__yml=text, _more__txt="torch==2.0.1\n"))
    assert (found["torch"].version, found["torch"].build, found["jax"].line) == ("2.0.1", None, 6)
    assert found["torch"].together == found["jax"].together
