"""pyproject.toml as uv and Poetry read it; extras and groups of lock files; wheels for other machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.question.package_needs import marks_of
from envcheck.errors import UsageError
from envcheck.plans import read_plans
from envcheck.plans.readers.pyproject import pep440_bounds
from envcheck.snapshot import Planned
from tests.plans.reading import judge, packages, plan, versions

CU118 = "https://download.pytorch.org/whl/cu118"


def read(folder: Path, name: str, text: str, extras: str = "", python: str | None = None) -> dict[str, Planned]:
    (folder / name).write_text(text)
    return packages(read_plans([f"{folder}/{name}{extras}"], load_matrix(), marks_of(python, "linux", "x86_64")))


@pytest.mark.parametrize(
    ("sources", "build"),
    [
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
    ],
)
def test_the_index_of_uv_decides_about_the_build(tmp_path: Path, sources: str, build: str | None) -> None:
    text = f'[project]\nname = "x"\ndependencies = ["torch==2.4.1"]\n{sources}'
    assert read(tmp_path, "pyproject.toml", text)["torch"].build == build


@pytest.mark.parametrize("source", ['git = "https://x.example/y"', 'path = "../torch"', "workspace = true"])
def test_a_source_that_states_no_version_leaves_it_open(tmp_path: Path, source: str) -> None:
    text = f'[project]\nname = "x"\ndependencies = ["torch==2.4.1"]\n[tool.uv.sources]\ntorch = {{{source}}}\n'
    found = read(tmp_path, "pyproject.toml", text)["torch"]
    assert (found.version, found.line) == (None, 3)
    assert found.problem


POETRY = f"""[tool.poetry]
name = "x"

[tool.poetry.dependencies]
python = "^3.10"
torch = {{version = "2.0.1", source = "pt"}}
jax = {{version = "~0.4.30", extras = ["cuda12"], markers = "sys_platform == 'linux'"}}
cupy-cuda12x = {{version = "*", markers = "sys_platform == 'win32'"}}
tensorflow = {{version = "2.15.0", optional = true}}
vllm = "^0.6 || ^0.8"

[tool.poetry.group.old]
optional = true
[tool.poetry.group.old.dependencies]
xformers = "0.0.20"

[tool.poetry.extras]
tf = ["tensorflow"]

[[tool.poetry.source]]
name = "pt"
url = "{CU118}"
priority = "explicit"
"""


def test_poetrys_own_table(tmp_path: Path) -> None:
    found = read(tmp_path, "pyproject.toml", POETRY)
    assert set(found) == {"torch", "jax", "vllm"}
    assert (found["torch"].version, found["torch"].build, found["torch"].line) == ("2.0.1", "cu118", 6)
    assert (found["jax"].bounds, found["jax"].extras) == ("<0.5,>=0.4.30", ("cuda12",))
    assert found["vllm"].problem
    assert set(read(tmp_path, "pyproject.toml", POETRY, "[tf,old]")) == {*found, "tensorflow", "xformers"}
    with pytest.raises(UsageError, match="no extra or dependency group 'no'"):
        read(tmp_path, "pyproject.toml", POETRY, "[no]")


def test_poetry_chooses_by_platform_and_python(tmp_path: Path) -> None:
    text = """[tool.poetry]
name = "x"
[tool.poetry.dependencies]
torch = [
    {version = "2.4.1", platform = "darwin"},
    {version = "2.3.1", platform = "linux", python = "<3.9"},
    {version = "2.5.1", markers = "sys_platform == 'linux'", python = "^3.9"},
]
"""
    environment = plan(tmp_path, python="3.11", pyproject__toml=text)
    assert versions(environment) == {"torch": "2.5.1"}


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1", ">=1,<2"),
        ("1.2.3", "==1.2.3"),
        ("=1.2.3", "==1.2.3"),
        ("1.2.*", "==1.2.*"),
        (">=1, <2", ">=1,<2"),
        ("*", ""),
        ("^1 || ^2", None),
    ],
)
def test_bounds_of_poetry(text: str, bounds: str | None) -> None:
    assert pep440_bounds(text) == bounds


def test_the_line_is_that_of_the_entry_and_not_of_the_same_text_above(tmp_path: Path) -> None:
    text = """[project]
name = "x"
keywords = ["torch==2.0.1"]
dependencies = ["numpy"]
[dependency-groups]
gpu = [
    {include-group = "x"},
    "torch==2.0.1",
]
x = []
"""
    assert "torch" not in read(tmp_path, "pyproject.toml", text)
    assert read(tmp_path, "pyproject.toml", text, "[gpu]")["torch"].line == 8


UV = """version = 1
conflicts = [[{ package = "app", extra = "cpu" }, { package = "app", extra = "cu124" }]]
[[package]]
name = "app"
source = { virtual = "." }
[package.optional-dependencies]
cpu = [{ name = "torch", version = "2.6.0+cpu", marker = "extra == 'extra-3-app-cpu'" }]
cu124 = [{ name = "torch", version = "2.6.0+cu124", marker = "extra == 'extra-3-app-cu124'" }]
[package.dev-dependencies]
old = [{ name = "xformers" }]
[[package]]
name = "torch"
version = "2.6.0+cpu"
source = { registry = "https://download.pytorch.org/whl/cpu" }
[[package]]
name = "torch"
version = "2.6.0+cu124"
source = { registry = "https://download.pytorch.org/whl/cu124" }
[[package]]
name = "xformers"
version = "0.0.20"
source = { registry = "https://x.example/simple" }
"""


def test_extras_of_uv_lock_choose_among_versions(tmp_path: Path) -> None:
    assert read(tmp_path, "uv.lock", UV) == {}
    assert read(tmp_path, "uv.lock", UV, "[cpu]")["torch"].version == "2.6.0+cpu"
    assert read(tmp_path, "uv.lock", UV, "[cu124]")["torch"].version == "2.6.0+cu124"
    assert set(read(tmp_path, "uv.lock", UV, "[old]")) == {"xformers"}
    with pytest.raises(UsageError, match="no extra or dependency group 'no'"):
        read(tmp_path, "uv.lock", UV, "[no]")


POETRY_LOCK = """[[package]]
name = "torch"
version = "2.0.1"
groups = ["main"]
[[package]]
name = "tensorflow"
version = "2.15.0"
optional = true
groups = ["main"]
markers = "extra == \\"tf\\""
[[package]]
name = "jax"
version = "0.4.30"
optional = true
groups = ["main"]
[[package]]
name = "vllm"
version = "0.6.0"
groups = ["serve"]
[extras]
tf = ["tensorflow"]
jx = ["jax (>=0.4)"]
"""


@pytest.mark.parametrize(("extras", "more"), [("", ""), ("[tf]", "tensorflow"), ("[jx]", "jax"), ("[serve]", "vllm")])
def test_extras_and_groups_of_poetry_lock(tmp_path: Path, extras: str, more: str) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.poetry.group.serve]\noptional = true\n")
    assert set(read(tmp_path, "poetry.lock", POETRY_LOCK, extras)) == {"torch", more} - {""}


PYLOCK = """lock-version = "1.0"
created-by = "x"
extras = ["gpu"]
dependency-groups = ["dev"]
[[packages]]
name = "torch"
version = "2.0.1"
wheels = [{url = "https://x.example/torch-2.0.1-py3-none-any.whl", hashes = {x = "a"}}]
marker = "'gpu' in extras"
[[packages]]
name = "vllm"
version = "0.6.0"
wheels = [{url = "https://x.example/vllm-0.6.0-py3-none-any.whl", hashes = {x = "a"}}]
marker = "'dev' in dependency_groups"
"""


@pytest.mark.parametrize(("extras", "names"), [("", set()), ("[gpu]", {"torch"}), ("[dev,gpu]", {"torch", "vllm"})])
def test_extras_and_groups_of_pylock(tmp_path: Path, extras: str, names: set[str]) -> None:
    pytest.importorskip("packaging.pylock")
    assert set(read(tmp_path, "pylock.toml", PYLOCK, extras)) == names


@pytest.mark.parametrize(
    ("tag", "python", "fits"),
    [
        ("cp310-cp310-manylinux_2_28_x86_64", None, True),
        ("cp310-cp310-manylinux_2_28_x86_64", "3.10.4", True),
        ("cp310-cp310-manylinux_2_28_x86_64", "3.11", False),
        ("cp38-abi3-linux_x86_64", "3.11", True),
        ("cp312-abi3-linux_x86_64", "3.11", False),
        ("py3-none-any", "3.11", True),
        ("py3-none-manylinux1_x86_64.manylinux_2_5_x86_64", "3.11", True),
        ("cp310-none-macosx_11_0_arm64", None, False),
        ("cp310-cp310-win_amd64", None, False),
        ("cp310-cp310-manylinux_2_28_aarch64", None, False),
    ],
)
def test_a_wheel_for_another_machine_cannot_be_installed(
    tmp_path: Path, tag: str, python: str | None, *, fits: bool
) -> None:
    text = f"torch @ https://x.example/torch-2.0.1-{tag}.whl\n"
    found = read(tmp_path, "requirements.txt", text, python=python)["torch"]
    assert (found.refused is None) == fits
    lock = f'[[package]]\nname = "torch"\nversion = "2.0.1"\nfiles = [{{file = "torch-2.0.1-{tag}.whl"}}]\n'
    assert (read(tmp_path, "poetry.lock", lock, python=python)["torch"].refused is None) == fits
    archive = lock.replace("files = [", 'files = [{file = "torch-2.0.1.tar.gz"}, ')
    assert read(tmp_path, "poetry.lock", archive, python=python)["torch"].refused is None


def test_what_cannot_be_installed_fails_with_its_line(tmp_path: Path) -> None:
    text = "numpy\ntorch @ https://x.example/torch-2.0.1-cp310-cp310-win_amd64.whl\n"
    report = judge(plan(tmp_path, requirements__txt=text), "gpu==A100,driver==515.105.01")
    (check,) = [each for each in report.checks if each.title.endswith("cannot be installed")]
    assert (report.exit_code, check.status, check.location and check.location.line) == (1, "fail", 2)
