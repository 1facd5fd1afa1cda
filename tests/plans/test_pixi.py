"""pixi.toml, [tool.pixi] and pixi.lock, and what conda's virtual packages ask of a machine."""

from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.model.snapshot import Environment
from tests.plans.reading import judge, named, packages, plan, plan_at, sample, versions

MANIFEST = sample("pixi.toml")
PROJECT = """[project]
name = "app"
dependencies = ["torch==2.7.0", "numpy>=1"]
[tool.pixi.workspace]
channels = ["conda-forge"]
[tool.pixi.dependencies]
numpy = "2.1.*"
[tool.pixi.pypi-dependencies]
app = {path = ".", editable = true}
"""
LOCK = sample("pixi.lock")


def read(folder: Path, name: str, text: str, asked: str) -> Environment:
    path = folder / name
    path.write_text(text)
    return plan_at(f"{path}[{asked}]")


def test_the_default_environment_has_its_features_on_this_platform(tmp_path: Path) -> None:
    found = packages(plan(tmp_path, pixi__toml=MANIFEST))
    assert {name: each.bounds for name, each in found.items()} == {
        "python": "==3.11.*", "numpy": "<3,>=2", "scipy": "==1.14.1", "pytorch-gpu": "==2.5.1", "triton": "==3.4.0",
        "torchvision": "==0.22.0", "__cuda": ">=12.6", "__glibc": ">=2.28",
    }  # fmt: skip
    assert (found["numpy"].channels, found["scipy"].channels) == (("rapidsai",), ("conda-forge",))
    assert (found["torchvision"].build, found["torchvision"].extras, found["torchvision"].conda) == (
        "cu128",
        ("scipy",),
        None,
    )
    assert (found["triton"].line, found["__cuda"].line) == (20, 11)


def test_other_environments_are_named_in_brackets(tmp_path: Path) -> None:
    assert set(packages(read(tmp_path, "pixi.toml", MANIFEST, "alone"))) == {"tensorflow"}
    asked = {name: each.asked for name, each in packages(read(tmp_path, "pixi.toml", MANIFEST, "huge")).items()}
    assert (asked["__cuda"], asked["__glibc"]) == ("__cuda>=13.0", "__glibc>=2.35")
    with pytest.raises(UsageError, match="no extra or dependency group 'x'"):
        read(tmp_path, "pixi.toml", MANIFEST, "x")


def test_conda_replaces_what_a_project_requires_of_an_index(tmp_path: Path) -> None:
    found = packages(plan(tmp_path, pyproject__toml=PROJECT))
    assert {name: each.bounds for name, each in found.items()} == {"torch": "==2.7.0", "numpy": "==2.1.*"}
    assert found["numpy"].conda is not None


def test_a_lock_names_archives_epochs_and_its_own_project(tmp_path: Path) -> None:
    python = "      - pypi: https://files.example.org/packages/1a/jax-0.6.2-py3-none-any.whl\n"
    more = "      - pypi: https://files.example.org/packages/2b/fire-0.6.0.tar.gz\n      - pypi: .\n"
    epoch = "      - conda: https://conda.anaconda.org/conda-forge/linux-64/x264-1!164.3095-h166bdaf_2.tar.bz2\n"
    found = plan(tmp_path, pixi__lock=LOCK.replace(python, python + more + epoch))
    assert {"fire": "0.6.0", "x264": "164.3095"}.items() <= versions(found).items()
    assert [(each.asked, each.problem) for each in found.planned or () if not each.name] == [(".", "")]


def test_a_lock_has_one_environment_for_each_platform(tmp_path: Path) -> None:
    found = plan(tmp_path, pixi__lock=LOCK)
    assert versions(found) == {"pytorch": "2.7.1", "typing-extensions": "4.14.0", "jax": "0.6.2"}
    assert (packages(found)["pytorch"].conda, packages(found)["pytorch"].line) == ("cuda126_mkl_py312_h30b5a27_300", 8)
    assert judge(found, "gpu==H100,driver==560.35.03").verdict != "fail"
    assert judge(found, "gpu==B200,driver==570.86.10").verdict == "fail"
    cpu = read(tmp_path, "pixi.lock", LOCK, "cpu")
    assert named(judge(cpu, "gpu==H100,driver==560.35.03"), "cpu-only-build", "torch").status == "fail"


def test_what_the_solver_asks_of_the_machine_is_held_against_it(tmp_path: Path) -> None:
    text = "dependencies: [python=3.11, __cuda >=12.9, __cuda_arch >=8.0, __linux]\n"
    environment = plan(tmp_path, environment__yml=text)
    older = judge(environment, "gpu==T4,driver==535.183.01")
    driver, gpu = (named(older, "plan-does-not-fit", name) for name in ("__cuda", "__cuda_arch"))
    assert (driver.status, gpu.status) == ("fail", "fail")
    assert "12.2" in driver.message
    assert any(">=575" in fix.text for fix in driver.fixes)
    assert "7.5" in gpu.message
    newer = judge(environment, "gpu==H100,driver==580.95.05")
    assert {named(newer, "plan-does-not-fit", name).status for name in ("__cuda", "__cuda_arch")} == {"pass"}


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("pixi__toml", "[dependencies]\ntorch = '*'\n", r"neither a \[workspace\]"),
        ("pixi__lock", "version: 6\n", "locks no environment"),
    ],
)
def test_what_is_none_is_refused(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        plan(tmp_path, **{name: text})


def test_what_is_not_understood_may_be_anything(tmp_path: Path) -> None:
    text = (
        '[workspace]\n[dependencies]\ntorch = 3\n[pypi-dependencies]\njax = ["x"]\n[system-requirements]\ncuda = 12\n'
    )
    found = plan(tmp_path, pixi__toml=text).planned or ()
    assert [(each.name, bool(each.problem), each.line) for each in found] == [
        ("", True, 3),
        ("", True, 5),
        ("", True, 6),
    ]


@pytest.mark.parametrize(
    "text", ["[workspace]\nplatforms = 3\n", "[workspace]\nchannels = 3\n", "[project]\nchannels = 1.5\n"]
)
def test_a_list_that_is_none_leaves_the_file_open(tmp_path: Path, text: str) -> None:
    found = plan(tmp_path, pixi__toml=text).planned or ()
    assert [(each.name, each.problem and each.problem.endswith("is a list")) for each in found] == [("", True)]
