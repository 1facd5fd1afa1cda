"""What is imported in the stead of an installed requirement, with metadata and without."""

from pathlib import Path
from typing import Any

import pytest

from probes.files.installations.examined import examined
from tests.every import cases
from tests.probes.environment_trees import Tree

USER = "/home/me/.local/lib/python3.11/site-packages"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A framework in the site folder of an interpreter, with a module and a package that it requires."""
    made = Tree(tmp_path)
    made.base("/opt/py")
    site = "/opt/py/lib/python3.11/site-packages"
    modules = {
        "typing_extensions": "typing_extensions.py", "sympy": "sympy/__init__.py",
        "cuda_pathfinder": "cuda/pathfinder/__init__.py", "nvidia_nccl_cu13": "nvidia/nccl/__init__.py",
    }  # fmt: skip
    made.wheel(site, "jaxlib", "0.7.2", "\n".join(f"Requires-Dist: {name}" for name in modules))
    for name, file in modules.items():
        folder = made.wheel(site, name, "4.12.0")
        made.file(f"{folder}/RECORD", f"{file},,\n")
        made.file(f"{site}/{file}")
    return made


def first(tree: Tree, name: str, **variables: str) -> dict[str, Any]:
    record = examined(tree.view(python=["/opt/py"], variables=variables))[0]
    return next(item for item in record["distributions"] if item["name"] == name)


def told(item: dict[str, Any]) -> tuple[str, str | None]:
    return item["version"], item.get("led_by")


def test_an_installed_requirement_is_what_is_imported(tree: Tree) -> None:
    assert told(first(tree, "typing-extensions", PYTHONPATH="/x")) == ("4.12.0", None)


@cases("folder, led_by", ("/x", "PYTHONPATH"), (USER, "user site"))
def test_another_copy_with_metadata_is_led_to(tree: Tree, folder: str, led_by: str) -> None:
    tree.wheel(folder, "typing_extensions", "4.5.0")
    assert told(first(tree, "typing-extensions", PYTHONPATH="/x")) == ("4.5.0", led_by)


@cases("file, text, version",
    ("typing_extensions.py", "", ""), ("sympy/__init__.py", '__version__ = "1.12"\n', "1.12"),
    ("sympy/__init__.py", "from .release import __version__\n", ""), ("sympy/x.py", "", "4.12.0"),
)  # fmt: skip
@cases("folder, led_by", ("/x", "PYTHONPATH"), (USER, "user site"))
def test_a_copy_without_metadata(tree: Tree, file: str, text: str, version: str, folder: str, led_by: str) -> None:
    tree.file(f"{folder}/{file}", text)
    name = "sympy" if file.startswith("sympy") else "typing-extensions"
    whole = version != "4.12.0"
    assert told(first(tree, name, PYTHONPATH="/x")) == (version, led_by if whole else None)


@cases("file, hides",
    ("random.py", ["/x/random.py"]), ("logging/__init__.py", ["/x/logging"]), ("xml/notes.txt", []),
    ("test/__init__.py", []), ("train.py", []),
)  # fmt: skip
def test_a_module_on_pythonpath_hides_one_of_pythons_own(tree: Tree, file: str, hides: list[str]) -> None:
    tree.file(f"/x/{file}")
    tree.file(f"{USER}/{file}")
    assert examined(tree.view(python=["/opt/py"], variables={"PYTHONPATH": "/x"}))[0]["hides_pythons_own"] == hides


@cases("file, hides",
    ("random.py", ["random.py"]), ("jax/__init__.py", ["jax"]), ("jaxlib.py", ["jaxlib.py"]), ("io.py", []),
    ("torch.py", []), ("sympy.py", ["sympy.py"]), ("jinja2.py", []), ("jax/notes.txt", []),
    ("cuda/__init__.py", ["cuda"]), ("cuda/notes.txt", []), ("nvidia/__init__.py", []),
)  # fmt: skip
def test_what_programs_started_in_the_working_folder_find_first(tree: Tree, file: str, hides: list[str]) -> None:
    for name in ("jax", "jaxlib"):
        tree.file(f"/opt/py/lib/python3.11/site-packages/{name}/__init__.py")
    tree.file(f"/here/{file}")
    folder = [f"/here/{name}" for name in hides]
    assert examined(tree.view(python=["/opt/py"], cwd="/here"))[0]["hides_pythons_own"] == folder
    tree.file("/here/__init__.py")
    assert examined(tree.view(python=["/opt/py"], cwd="/here"))[0]["hides_pythons_own"] == [], "inside a package"


@cases("file, lacks",
    ("_C.abi3.so", []), ("_C.cpython-311-x86_64-linux-gnu.so", []), ("ops.py", ["/here/jax/_C.abi3.so"]),
)  # fmt: skip
def test_a_checkout_that_was_not_built_lacks_compiled_modules(tree: Tree, file: str, lacks: list[str]) -> None:
    for path in ("/opt/py/lib/python3.11/site-packages/jax", "/here/jax"):
        tree.file(f"{path}/__init__.py")
    tree.file("/opt/py/lib/python3.11/site-packages/jax/_C.abi3.so")
    tree.file(f"/here/jax/{file}")
    assert examined(tree.view(python=["/opt/py"], cwd="/here"))[0]["missing_in_copies"] == lacks


def test_the_standard_library_itself_hides_nothing(tree: Tree) -> None:
    variables = {"PYTHONPATH": "/opt/py/lib/python3.11"}
    assert examined(tree.view(python=["/opt/py"], variables=variables))[0]["hides_pythons_own"] == []


LINE = "import sys; sys.path.insert(0, 'x')\n"


@cases("size, told", (f"{len(LINE)}", 0), ("7", 1), ("", 1))
def test_a_path_file_as_its_package_shipped_it_changes_nothing_for_anybody(tree: Tree, size: str, told: int) -> None:
    """nvidia-cutlass-dsl 4.8.0 has such a file, by which its own modules are found."""
    site = "/opt/py/lib/python3.11/site-packages"
    folder = tree.wheel(site, "nvidia_cutlass_dsl", "4.8.0")
    tree.file(f"{folder}/RECORD", f"dsl_packages.pth,sha256=x,{size}\n" if size else "other.pth,sha256=x,40\n")
    tree.file(f"{site}/dsl_packages.pth", LINE)
    found = examined(tree.view(python=["/opt/py"], variables={}))[0]["startup"]
    assert [each["path"] for each in found] == [f"{site}/dsl_packages.pth"] * told
