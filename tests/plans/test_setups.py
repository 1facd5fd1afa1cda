"""Folders and addresses in a plan: projects with setup.py, setup.cfg or dynamic dependencies, and what stays open."""

from pathlib import Path

from envcheck.model.snapshot import Planned
from tests.every import cases, tabled
from tests.plans.reading import packages, plan, plan_at

CONSTANT = 'from setuptools import setup\nREQUIRED = ["torch==2.0.1"] + ["numpy"]\nsetup(install_requires=REQUIRED'

TABLE = (
    '_deps = ["torch==2.0.1", "ray[default]>=2", "torchvision"]\n'
    'deps = {{b: a for a, b in (re.findall(r"^(([^!=<>~ ]+)(?:[!=<>~ ].*)?$)", x)[0] for x in _deps)}}\n'
    "r = {}\nsetup(install_requires=list(r))\n"
)
"""As projects of Hugging Face state them."""


def required(folder: Path, text: str, name: str = "setup.py", extras: str = "") -> list[Planned]:
    (folder / name).write_text(text)
    return [*(plan_at(f"{folder}/{name}{extras}").planned or ())]


@cases("text, expected",
    ('import setuptools\nsetuptools.setup(install_requires=["torch==2.0.1", "numpy>=1"])\n', ["torch", "numpy"]),
    (CONSTANT + ")\n", ["torch", "numpy"]), (CONSTANT + ", ext_modules=[])\n", ["torch", "numpy"]),
    (CONSTANT + ', ext_modules=[CUDAExtension("x", [])])\n', ["", "torch", "numpy"]),
    (CONSTANT + ", **more)\n", ["", "torch", "numpy"]),
    ('setup(install_requires="""torch==2.0.1\nnumpy""")\n', ["torch", "numpy"]),
    ('r = ["torch"]\nr.append("numpy")\nsetup(install_requires=r)\n', [""]),
    ('r = ["torch"]\nr += ["numpy"]\nsetup(install_requires=r)\n', [""]),
    ("setup(install_requires=open('requirements.txt').read().split())\n", ["jax"]),
    ("setup(install_requires=lines('requirements.txt') + lines('requirements-gpu.txt'))\n", [""]),
    ("setup(install_requires=[f'torch=={v}'])\n", [""]), ("print 'x'\n", [""]), ("x = 1\n", [""]), ("setup()\n", []),
    (TABLE.format('[deps["torch"], deps["ray"]]'), ["torch", "ray"]), (TABLE.format('[deps["jax"]]'), [""]),
    (TABLE.format('[deps["torch"] + "0"]'), [""]),
    ('d = {"a": "torch==2.0.1"}\nsetup(install_requires=[d["a"]])\n', ["torch"]),
    ("-" * 100_000, [""]), ("f" + "()" * 50_000, [""]),
)  # fmt: skip
def test_setup_py_is_read_and_not_run(tmp_path: Path, text: str, expected: list[str]) -> None:
    (tmp_path / "requirements.txt").write_text("jax==0.4.30\n")
    assert [each.name for each in required(tmp_path, text)] == expected


SETUP_CFG = """[options]
install_requires =
    torch==2.0.1  # the framework
    # a comment
    numpy; sys_platform == "win32"
[options.extras_require]
gpu = jax==0.4.30
listed = file: more.txt
"""


def test_setup_cfg(tmp_path: Path) -> None:
    (found,) = required(tmp_path, SETUP_CFG, "setup.cfg")
    assert (found.name, found.version) == ("torch", "2.0.1")


@tabled
def test_dynamic_dependencies_are_in_the_file_that_the_backend_is_told_of(tmp_path: Path, table: str) -> None:
    text = f'{table}[project]\nname = "x"\ndynamic = ["dependencies"]\n'
    assert packages(plan(tmp_path, pyproject__toml=text, _more__txt="torch==2.0.1\n"))["torch"].version == "2.0.1"
    (tmp_path / "more.txt").unlink()
    (found,) = plan(tmp_path, pyproject__toml=text).planned or ()
    assert (found.name, bool(found.problem)) == ("", True)


SETUP = (
    "from setuptools import setup\nsetup(install_requires=['vllm==0.6.0'], extras_require={'gpu': ['jax==0.4.30']})\n"
)


@tabled
def test_a_folder_beside_the_plan_counts_with_what_it_requires(tmp_path: Path, line: str, names: set[str]) -> None:
    for folder in ("lib", "sub/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "setup.py").write_text(SETUP)
    found = packages(plan(tmp_path, requirements__txt=f"torch==2.4.0\n{line}\n"))
    assert found.keys() - {"torch"} == names
