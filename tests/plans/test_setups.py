"""Folders and addresses in a plan: projects with setup.py, setup.cfg or dynamic dependencies, and what stays open."""

from pathlib import Path

from envcheck.model.snapshot import Planned
from tests.every import cases
from tests.plans.reading import judge, packages, plan, plan_at

H100 = "gpu==H100,driver==550.54.14"
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


@cases("text", "[options]\ninstall_requires = file: more.txt\n", "[options]\ninstall_requires =\n    vllm==0.6.0\n")
def test_a_project_of_setuptools_has_its_requirements_in_either_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "more.txt").write_text("vllm==0.6.0\n")
    (tmp_path / "setup.cfg").write_text(text)
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(install_requires=['torch==2.5.1'])\n")
    for project in (
        '[build-system]\nrequires = ["setuptools"]\n',
        '[project]\nname = "x"\ndynamic = ["dependencies"]\n',
    ):
        (tmp_path / "pyproject.toml").write_text(project)
        environment = plan_at(f"{tmp_path}/pyproject.toml")
        assert packages(environment).keys() == {"torch", "vllm"}


@cases(
    "table",
    'tool.setuptools.dynamic.dependencies = { file = ["more.txt"] }\n',
    'tool.setuptools.dynamic.dependencies.file = "more.txt"\n',
    'tool.hatch.metadata.hooks.requirements_txt.files = ["more.txt"]\n',
)
def test_dynamic_dependencies_are_in_the_file_that_the_backend_is_told_of(tmp_path: Path, table: str) -> None:
    text = f'{table}[project]\nname = "x"\ndynamic = ["dependencies"]\n'
    assert packages(plan(tmp_path, pyproject__toml=text, _more__txt="torch==2.0.1\n"))["torch"].version == "2.0.1"
    (tmp_path / "more.txt").unlink()
    (found,) = plan(tmp_path, pyproject__toml=text).planned or ()
    assert (found.name, bool(found.problem)) == ("", True)


SETUP = (
    "from setuptools import setup\nsetup(install_requires=['vllm==0.6.0'], extras_require={'gpu': ['jax==0.4.30']})\n"
)


@cases("line, names",
    ("-e ./lib", {"vllm"}), ("-e lib", {"vllm"}), ("./lib", {"vllm"}), ("./lib/", {"vllm"}),
    ("./lib[gpu]", {"vllm", "jax"}), ("-e file:lib", {"vllm"}), ("sub/lib", {"vllm"}),
    ("./lib ; sys_platform == 'win32'", set()), ("-e ./absent", {""}), ("./lib[other]", {"vllm", ""}),
)  # fmt: skip
def test_a_folder_beside_the_plan_counts_with_what_it_requires(tmp_path: Path, line: str, names: set[str]) -> None:
    for folder in ("lib", "sub/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "setup.py").write_text(SETUP)
    found = packages(plan(tmp_path, requirements__txt=f"torch==2.4.0\n{line}\n"))
    assert found.keys() - {"torch"} == names


@cases("line, verdict", ("-e .", "pass"), ("./", "pass"), ("-e .[gpu]", "unknown"), ("-e ./lib", "unknown"))
def test_the_project_of_the_plan_may_lie_elsewhere(tmp_path: Path, line: str, verdict: str) -> None:
    report = judge(plan(tmp_path, requirements__txt=f"torch==2.4.0\n{line}\n"), H100)
    assert report.verdict == verdict
    alone = judge(plan(tmp_path, requirements__txt=f"{line}\n"), H100)
    assert alone.verdict == "unknown"


def test_a_build_does_not_leave_out_the_project_that_it_installs(tmp_path: Path) -> None:
    text = (
        "FROM python:3.11-slim-bookworm\nRUN pip install torch==2.4.0\nCOPY . /app\nWORKDIR /app\nRUN pip install .\n"
    )
    assert judge(plan(tmp_path, Dockerfile=text), H100).verdict == "unknown"
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(install_requires=['numpy'])\n")
    assert judge(plan(tmp_path, Dockerfile=text), H100).verdict == "pass"


WHEEL = "https://x.example/flash_attn-2.8.3+cu128torch2.9.0cxx11abiFALSE-cp313-cp313-linux_x86_64.whl"


@cases("text", f"{WHEEL}; python_version == '3.13'", f"flash_attn @ {WHEEL} ; python_version == '3.13'")
def test_a_wheel_that_the_python_decides_on_fails_nothing_without_it(tmp_path: Path, text: str) -> None:
    text = f"torch==2.9.0\n{text}\n"
    t4 = "gpu==T4,driver==550.54.14"
    assert judge(plan(tmp_path, requirements__txt=text), t4).verdict == "unknown"
    assert judge(plan(tmp_path, python="3.13.1", requirements__txt=text), f"{t4},python==3.13.1").verdict == "fail"
    assert judge(plan(tmp_path, python="3.11.1", requirements__txt=text), f"{t4},python==3.11.1").verdict == "pass"


def test_a_marker_behind_an_address_is_read(tmp_path: Path) -> None:
    wheel = "https://x.example/bitsandbytes-0.49.0-py3-none-win_amd64.whl; sys_platform == 'win32'\n"
    assert not packages(plan(tmp_path, requirements__txt=wheel))


GIT = "git+https://github.com"


@cases("line, verdict",
    (f"{GIT}/openai/CLIP.git", "pass"), (f"-e {GIT}/openai/CLIP.git@main#egg=clip", "pass"),
    (f"{GIT}/openai/CLIP.git ; sys_platform == 'linux'", "pass"), (f"clip @ {GIT}/openai/CLIP", "pass"),
    (f"{GIT}/huggingface/diffusers@v0.30.0", "pass"),
    ("https://github.com/huggingface/diffusers/archive/refs/heads/main.zip", "pass"),
    (f"{GIT}/NVlabs/nvdiffrast", "unknown"), (f"nvdiffrast @ {GIT}/NVlabs/nvdiffrast", "unknown"),
    (f"{GIT}/facebookresearch/xformers.git", "unknown"),
    (f"{GIT}/NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch", "unknown"), ("https://x.example/clip", "unknown"),
    ("-e ./CLIP", "pass"), ("submodules/clip", "pass"), ("submodules/simple-knn", "unknown"), ("./xformers", "unknown"),
    ("./clip.zip", "unknown"),
)  # fmt: skip
def test_a_repository_counts_by_what_is_known_of_its_project(tmp_path: Path, line: str, verdict: str) -> None:
    assert judge(plan(tmp_path, requirements__txt=f"torch==2.4.0\n{line}\n"), H100).verdict == verdict
