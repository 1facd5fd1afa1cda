"""PyTorch as its files describe it: real wheels' own words, conda's, and files that are damaged or contradict."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.model.snapshot import Framework
from probes.files.frameworks import torch
from probes.files.installations.catalog import CATALOGUE
from probes.files.installations.torch_files import read_version_file
from probes.files.python.distributions import installed_by_conda, installed_in
from probes.files.python.site import Site
from tests.every import cases, tabled
from tests.known import Expected, fields, known
from tests.probes.environment_trees import Tree, elf_with_constants

SITE = "/env/lib/python3.11/site-packages"
NAMES = ("torch", "pytorch")
ELF_FILES = Path(__file__).parents[1] / "elf_files"
EMBEDDED = ("sm_75", "compute_75")  # What ``embedded.so`` holds code for, as its README says


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.at(SITE).mkdir(parents=True)
    return made


def read_or_none(tree: Tree, *before: str, **variables: str) -> Framework | None:
    """What is found in the environment, with the folders ``before`` on PYTHONPATH."""
    view = tree.view(variables=variables)
    folders = (*before, SITE)
    detailed = frozenset(NAMES)
    items = installed_in(view, folders, detailed).items + installed_by_conda(view, "/env", detailed).items
    found = torch.read(Site(view, "/env", folders, len(before), tuple(items)), CATALOGUE[0])
    return msgspec.convert(found[0], Framework) if found else None


def read(tree: Tree, *before: str) -> Framework:
    return known(read_or_none(tree, *before))


@tabled
def test_cuda_wheels(tree: Tree, wheel: str, expected: dict[str, Any]) -> None:
    tree.torch(SITE, wheel)
    found = read(tree)
    assert fields(found, expected) == expected
    assert (found.name, found.path, found.cpu_only, found.hip) == ("torch", f"{SITE}/torch", False, None)
    assert (found.problem, found.source_of("version")) == (None, f"file {SITE}/torch/version.py")
    assert found.source_of("cudnn") == "wheel metadata"
    assert "filelock" not in found.requires
    assert all(line.startswith(("nvidia-", "cuda-", "triton")) for line in found.requires)


def test_the_cpu_wheel(tree: Tree) -> None:
    tree.torch(SITE, "torch-2.13.0+cpu")
    found = read(tree)
    assert (found.version, found.cuda, found.cpu_only, found.problem) == ("2.13.0+cpu", None, True, None)
    assert (found.gpu_code, found.requires) == (None, ())


@tabled
def test_targets_inside_the_library(tree: Tree, constants: bytes, targets: str | None) -> None:
    tree.torch(SITE)
    library = f"{SITE}/torch/lib/libtorch_python.so"
    tree.file(library, elf_with_constants(constants))
    found = read(tree)
    assert found.gpu_code == (tuple(targets.split()) if targets else None)
    if targets:
        assert found.read["gpu_code"] == f"elf {library}"


@cases("damage", b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + b"\xff" * 200, b"text" * 100)
def test_a_damaged_library_says_nothing(tree: Tree, damage: bytes) -> None:
    tree.torch(SITE)
    tree.file(f"{SITE}/torch/lib/libtorch_python.so", damage)
    found = read(tree)
    assert (found.version, found.gpu_code) == ("2.5.1+cu124", None)


def test_a_library_cut_short_says_nothing(tree: Tree) -> None:
    tree.torch(SITE)
    whole = elf_with_constants(b"\0sm_80 sm_90\0")
    for length in range(0, len(whole), 7):
        tree.file(f"{SITE}/torch/lib/libtorch_python.so", whole[:length])
        assert read(tree).gpu_code is None


def test_the_targets_of_a_cpu_build_are_not_looked_for(tree: Tree) -> None:
    tree.torch(SITE, "torch-2.13.0+cpu")
    tree.file(f"{SITE}/torch/lib/libtorch_python.so", elf_with_constants(b"\0sm_80 sm_90\0"))
    assert read(tree).gpu_code is None


@cases("value, unknown",
    ("dynamo", ()), ("+dynamo, -guards,torch._inductor", ()), ("all", ()), ("inductr", ("inductr",)),
    ("dynamo,+inductr", ("+inductr",)), ("torch.nn,nonesuch.part", ("nonesuch.part",)),
)  # fmt: skip
def test_logs_that_it_does_not_have(tree: Tree, value: str, unknown: tuple[str, ...]) -> None:
    tree.torch(SITE)
    file = f"{SITE}/torch/_logging/_registrations.py"
    tree.file(file, 'register_log("dynamo", ["torch._dynamo"])\nregister_artifact(\n    "guards",\n    "Guards.")\n')
    assert known(read_or_none(tree, TORCH_LOGS=value)).unknown_flags == unknown
    tree.at(file).unlink()
    assert known(read_or_none(tree, TORCH_LOGS=value)).unknown_flags is None


def test_without_a_list_the_gpu_code_itself_counts(tree: Tree) -> None:
    tree.torch(SITE)
    library = f"{SITE}/torch/lib/libtorch_cuda.so"
    tree.file(library, (ELF_FILES / "embedded.so").read_bytes())
    found = read(tree)
    assert (found.gpu_code, found.read["gpu_code"]) == (EMBEDDED, f"elf {library}")
    tree.file(f"{SITE}/torch/lib/libtorch_python.so", elf_with_constants(b"\0sm_80 sm_90\0"))
    assert read(tree).gpu_code == ("sm_80", "sm_90")


def test_no_torch_at_all(tree: Tree) -> None:
    tree.wheel(SITE, "torchvision", "0.20.1")
    tree.file(f"{SITE}/torch/__pycache__/x.pyc")
    assert read_or_none(tree) is None


# --- version.py ---------------------------------------------------------------------------------------------------
@tabled
def test_version_files(tree: Tree, text: str, version: str, cuda: str | None, *, cpu_only: bool) -> None:
    tree.file(f"{SITE}/torch/version.py", text)
    said = read_version_file(tree.view(), f"{SITE}/torch")
    assert (said.version, said.cuda, said.cpu_only, said.problem) == (version, cuda, cpu_only, None)


@cases(
    "content, problem", ("def broken(:\n", "it is not Python"), (b"__version__ = '2'\0", "it is not Python"),
    (b"\xff\xfe\xfa", "it is not Python"), ("(" * 5000, "it is not Python"),
    ("x = " + "-" * 60000 + "1", "it is not Python"), ("", "it assigns no plain __version__"),
    ("from torch._version import __version__\n", "it assigns no plain __version__"),
    ("__version__ = 2.5\n", "it assigns no plain __version__"),
    ("__version__ = '2.5'\n__version__ = '2.6'\n", "it assigns no plain __version__"),
    ("__version__ = '\\x1b[2J'\n", "it assigns no plain __version__"),
    ("__version__ = '2.5.1'\n", "it does not say for which CUDA it was built"),
    ("__version__ = '2.5.1'\ncuda = get()\n", "it does not say for which CUDA it was built"),
    ("__version__ = '2.5.1'\ncuda = '\\d'\n", "it does not say for which CUDA it was built"),
)  # fmt: skip
def test_version_files_that_tell_too_little(tree: Tree, content: str | bytes, problem: str) -> None:
    tree.file(f"{SITE}/torch/version.py", content)
    said = read_version_file(tree.view(), f"{SITE}/torch")
    assert said.there
    assert (said.problem, said.cpu_only, said.cuda) == (problem, None, None)


def test_a_version_file_that_is_no_file(tree: Tree) -> None:
    tree.at(f"{SITE}/torch/version.py").mkdir(parents=True)
    assert read_version_file(tree.view(), f"{SITE}/torch").problem == "it is not a file that may be read"


# --- files that are missing or contradict -------------------------------------------------------------------------
OF_2_4 = "__version__ = '2.4.0+cu121'\ncuda = '12.1'\nhip = None\n"
OF_2_5 = "__version__ = '2.5.1+cu124'\ncuda = '12.4'\nhip = None\n"


def metadata(version: str, url: str = "") -> dict[str, str]:
    """What an installer leaves of a torch; ``url`` tells that it is editable."""
    folder = f"{SITE}/torch-{version}.dist-info"
    files = {f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n\n"}
    return {**files, f"{folder}/direct_url.json": url} if url else files


@cases("about, wheel, files, before, expected",
    ("a leftover folder", "", {f"{SITE}/torch/lib/libtorch_cuda.so": ""}, "",
     {"version": None, "cuda": None, "cpu_only": None,
      "problem": f"{SITE}/torch holds no version.py: an incomplete or shadowing torch"}),
    ("metadata without a folder", "", metadata("2.5.1+cpu"), "",
     {"version": "2.5.1+cpu", "cpu_only": True, "path": None, "source": "wheel metadata",
      "problem": "its metadata is there, its folder is not: an incomplete installation"}),
    ("an editable installation whose folder is unknown", "",
     metadata("2.5.0a0+gitabc", '{"dir_info": {"editable": true}}'), "",
     {"version": "2.5.0a0+gitabc", "cpu_only": None,
      "problem": "it is installed in editable mode, and no file tells where its folder is"}),
    ("an editable installation whose source folder is gone", "",
     metadata("2.5.0a0+gitabc", '{"url": "file:///src/pytorch", "dir_info": {"editable": true}}'), "",
     {"problem": "it is installed in editable mode, and its source folder /src/pytorch is gone", "path": None,
      "incomplete": True}),
    ("the version falls back to the metadata", "torch-2.5.1", {f"{SITE}/torch/version.py": "broken("}, "",
     {"version": "2.5.1", "cuda": None, "cpu_only": None, "cudnn": "9.1.0.70",
      "problem": f"{SITE}/torch/version.py tells too little: it is not Python"}),
    ("metadata of another version", "torch-2.5.1", {f"{SITE}/torch/version.py": OF_2_4}, "",
     {"version": "2.4.0+cu121", "cuda": "12.1",
      "problem": "its metadata says 2.5.1, its version.py says 2.4.0+cu121"}),
    ("metadata of another build", "",
     {**metadata("2.5.1+cpu"), f"{SITE}/torch/__init__.py": "", f"{SITE}/torch/version.py": OF_2_5}, "",
     {"version": "2.5.1+cu124", "cpu_only": False,
      "problem": "its metadata says 2.5.1+cpu, its version.py says 2.5.1+cu124"}),
    ("PYTHONPATH puts another torch first", "torch-2.5.1", {"/home/me/torch/__init__.py": ""}, "/home/me",
     {"path": "/home/me/torch", "version": None, "cudnn": None,
      "problem": "/home/me/torch holds no version.py: an incomplete or shadowing torch; "
                 f"PYTHONPATH puts /home/me/torch before {SITE}/torch"}),
    ("PYTHONPATH puts a module first", "torch-2.5.1", {"/home/me/torch.py": ""}, "/home/me",
     {"path": "/home/me/torch.py",
      "problem": "/home/me/torch.py holds no version.py: an incomplete or shadowing torch; "
                 f"PYTHONPATH puts /home/me/torch.py before {SITE}/torch"}),
    ("a plain folder on PYTHONPATH shadows nothing", "torch-2.5.1", {"/home/me/torch/notes.txt": ""}, "/home/me",
     {"path": f"{SITE}/torch", "problem": None}),
    ("a project's folder with code", "", {"/project/torch/__init__.py": ""}, "/project", {"path": "/project/torch"}),
)  # fmt: skip
def test_files(tree: Tree, about: str, wheel: str, files: dict[str, str], before: str, expected: Expected) -> None:
    if wheel:
        tree.torch(SITE, wheel)
    for path, content in files.items():
        tree.file(path, content)
    assert fields(read(tree, *([before] if before else [])), expected) == expected


def test_a_project_with_a_folder_of_that_name_is_none(tree: Tree) -> None:
    tree.file("/project/torch/lib/libtorch_cuda.so")
    assert read_or_none(tree, "/project") is None


def test_a_torch_that_lives_on_python_path_alone(tree: Tree) -> None:
    tree.torch("/target")
    found = read(tree, "/target")
    assert (found.version, found.cudnn, found.problem) == ("2.5.1+cu124", "9.1.0.70", None)


def test_pins_that_differ_by_platform_decide_nothing(tree: Tree) -> None:
    lines = ["nvidia-cudnn-cu12==9.1.0.70; platform_machine == 'x86_64'", "nvidia-cudnn-cu12==9.2.0.1; else"]
    more = ["nvidia-nccl-cu12==2.21.*", "nvidia-nccl-cu12>=2.20", "triton ==3.1.0"]
    tree.wheel(SITE, "torch", "2.5.1", "".join(f"Requires-Dist: {line}\n" for line in [*lines, *more]))
    found = read(tree)
    assert (found.cudnn, found.nccl, found.requires) == (None, None, (*lines, *more))


# --- conda --------------------------------------------------------------------------------------------------------
CUDA_BUILD = "__version__ = '2.5.1'\ncuda = '12.4'\nhip = None\n"
CPU_BUILD = "__version__ = '2.5.1'\ncuda = None\nhip = None\n"
FOR_CUDA = "py3.11_cuda12.4_cudnn9.1.0_0"


@cases("about, build, version_file, expected",
    ("the package for CUDA", FOR_CUDA, CUDA_BUILD,
     {"version": "2.5.1", "cuda": "12.4", "cudnn": "9.1.0", "problem": None,
      "source_of.cudnn": f"file /env/conda-meta/pytorch-2.5.1-{FOR_CUDA}.json"}),
    ("the package for CPUs", "py3.11_cpu_0", CPU_BUILD, {"cpu_only": True, "cuda": None, "problem": None}),
    ("conda speaks where the version file does not", FOR_CUDA, "broken(",
     {"version": "2.5.1", "cuda": "12.4", "cpu_only": False,
      "problem": f"{SITE}/torch/version.py tells too little: it is not Python"}),
    ("pip over conda", FOR_CUDA, CPU_BUILD,
     {"cpu_only": True, "problem": f"conda installed the build {FOR_CUDA}, its version.py says CUDA none"}),
    ("pip's newer one over conda", FOR_CUDA, "__version__ = '2.6.0+cpu'\ncuda = None\nhip = None\n",
     {"problem": f"conda installed 2.5.1 ({FOR_CUDA}), its version.py says 2.6.0+cpu"}),
)  # fmt: skip
def test_packages_of_conda(tree: Tree, about: str, build: str, version_file: str, expected: Expected) -> None:
    tree.file(f"/env/conda-meta/pytorch-2.5.1-{build}.json", '{"depends": ["pytorch-cuda >=12.4"]}')
    tree.file(f"{SITE}/torch/__init__.py")
    tree.file(f"{SITE}/torch/version.py", version_file)
    assert fields(read(tree), expected) == expected
