"""The folders of ``sys.path`` in their order; the real interpreter is asked whether the order is right."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from probes.common.tree import Tree as View
from probes.files.python.interpreter import locate
from probes.files.python.layout import read_layout
from probes.files.python.search_path import SearchPath, search_path
from tests.every import cases
from tests.probes.environment_trees import Tree


def searched(tree: Tree, path: str, **variables: str) -> SearchPath:
    view = tree.view(variables=variables)
    place = locate(view, path)
    assert place.prefix
    return search_path(view, read_layout(view, place, place.prefix))


def folders(tree: Tree, path: str, **variables: str) -> list[str]:
    return list(searched(tree, path, **variables).folders)


USER = "/home/me/.local/lib/python3.11/site-packages"


def test_a_virtual_environment_sees_its_own_folder_only(tree: Tree) -> None:
    site = tree.venv("/a", tree.base("/usr", "3.11.2", site="dist-packages"))
    tree.link("/a/lib64", "lib")
    tree.at(USER).mkdir(parents=True)
    assert searched(tree, "/a") == SearchPath((site,), 0, complete=True, led_by=("",))


def test_system_packages_bring_the_user_and_the_base(tree: Tree) -> None:
    site = tree.venv("/a", tree.base("/opt/py"), settings="include-system-site-packages = true\n")
    tree.at(USER).mkdir(parents=True)
    below = "/opt/py/lib/python3.11/site-packages"
    assert folders(tree, "/a") == [site, USER, below]
    assert folders(tree, "/a", PYTHONNOUSERSITE="1") == [site, below]


def test_the_dist_packages_of_debian(tree: Tree) -> None:
    tree.base("/usr", "3.11.2", site="dist-packages")
    for path in ("/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages"):
        tree.at(path).mkdir(parents=True)
    assert folders(tree, "/usr/bin/python3") == [
        "/usr/local/lib/python3.11/dist-packages",
        "/usr/lib/python3/dist-packages",
        "/usr/lib/python3.11/dist-packages",
    ]


def test_lib64_comes_before_lib_where_they_differ(tree: Tree) -> None:
    tree.base("/usr", "3.11.2")
    tree.at("/usr/lib64/python3.11/site-packages").mkdir(parents=True)
    assert folders(tree, "/usr") == ["/usr/lib64/python3.11/site-packages", "/usr/lib/python3.11/site-packages"]


def test_pypy_and_cpython_of_one_version_keep_to_their_own(tree: Tree) -> None:
    tree.base("/usr", "3.9.2")
    tree.program("/usr/bin/pypy3.9")
    tree.file("/usr/lib/pypy3.9/os.py")
    tree.at("/usr/lib/pypy3.9/site-packages").mkdir()
    assert folders(tree, "/usr/bin/pypy3.9") == ["/usr/lib/pypy3.9/site-packages"]
    assert folders(tree, "/usr/bin/python3") == ["/usr/lib/python3.9/site-packages"]


def test_the_user_folder_follows_its_variable_and_the_passwd_file(tree: Tree) -> None:
    tree.base("/opt/py")
    site = "/opt/py/lib/python3.11/site-packages"
    tree.at("/data/lib/python3.11/site-packages").mkdir(parents=True)
    assert folders(tree, "/opt/py", PYTHONUSERBASE="/data") == ["/data/lib/python3.11/site-packages", site]
    assert folders(tree, "/opt/py", HOME="") == [site]
    tree.file("/etc/passwd", f"x\nme:x:{os.getuid()}:0::/data/me:/bin/sh\n")
    tree.at("/data/me/.local/lib/python3.11/site-packages").mkdir(parents=True)
    assert folders(tree, "/opt/py", HOME="") == ["/data/me/.local/lib/python3.11/site-packages", site]


def test_python_path_comes_first_and_an_empty_part_is_the_current_folder(tree: Tree) -> None:
    site = tree.venv("/a", tree.base("/opt/py"))
    tree.at("/x").mkdir()
    tree.at("/home/me/lib").mkdir(parents=True)
    found = searched(tree, "/a", PYTHONPATH="/x:lib:/gone::/x")
    led_by = ("PYTHONPATH", "PYTHONPATH", "PYTHONPATH", "")
    assert found == SearchPath(("/x", "/home/me/lib", "/home/me", site), 3, complete=True, led_by=led_by)


def test_plain_lines_of_path_files_only(tree: Tree) -> None:
    site = tree.venv("/a", tree.base("/opt/py"))
    for path in ("/src/one", "/src/two", f"{site}/inner", "/src/hidden"):
        tree.at(path).mkdir(parents=True)
    tree.file(f"{site}/b.pth", "/src/two\n")
    tree.file(
        f"{site}/a.pth", "# /src/no\n\n/src/one  \ninner\nimport sys; sys.path.append('/src/hidden')\n/src/gone\n"
    )
    tree.file(f"{site}/.hidden.pth", "/src/hidden\n")
    tree.file("/src/one/nested.pth", "/src/hidden\n")
    assert folders(tree, "/a") == [site, "/src/one", f"{site}/inner", "/src/two"]


def test_path_files_beside_python_path_are_not_read(tree: Tree) -> None:
    tree.venv("/a", tree.base("/opt/py"))
    tree.at("/src").mkdir()
    tree.file("/x/a.pth", "/src\n")
    assert "/src" not in folders(tree, "/a", PYTHONPATH="/x")


def test_path_files_without_end_are_cut_and_said_to_be(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.files.python.search_path.FOLDERS", 3)
    site = tree.venv("/a", tree.base("/opt/py"))
    for number in range(5):
        tree.at(f"/src/{number}").mkdir(parents=True)
    tree.file(f"{site}/a.pth", "".join(f"/src/{number}\n" for number in range(5)))
    found = searched(tree, "/a")
    assert len(found.folders) == 3
    assert not found.complete


def test_a_path_file_that_is_no_text_costs_only_itself(tree: Tree) -> None:
    site = tree.venv("/a", tree.base("/opt/py"))
    tree.at("/src").mkdir()
    tree.file(f"{site}/a.pth", b"\xff\xfe/\0src\n\0\n")
    tree.link(f"{site}/b.pth", "b.pth")
    tree.file(f"{site}/c.pth", "/src\n")
    assert folders(tree, "/a") == [site, "/src"]


def test_what_leads_to_each_folder_is_told(tree: Tree) -> None:
    tree.base("/opt/py")
    user = "/home/me/.local/lib/python3.11/site-packages"
    tree.at(user).mkdir(parents=True)
    tree.at("/src").mkdir()
    tree.file(f"{user}/a.pth", "/src\n")
    found = searched(tree, "/opt/py", PYTHONUSERBASE="/home/me/.local")
    led_by = dict(zip(found.folders, found.led_by, strict=True))
    assert led_by == {user: "user site", "/src": f"{user}/a.pth", "/opt/py/lib/python3.11/site-packages": ""}


@cases("line, told",
    ("import sys; sys.path.insert(0, '/other')", True), ("import sys; sys.path[0:0] = ['/other']", True),
    ("import sys as s; s.path.append('/other')", True), ("import site; site.addsitedir('/other')", True),
    ("import moves", True), ("import sys; sys.__plen = len(sys.path)", False),
    ("import os; var = 'X'; enabled = os.environ.get(var); enabled and __import__('_distutils_hack')", False),
    ("import sys, types, os; p = os.path.join('/a', 'b'); m = sys.modules.get('b'); m.__path__.append(p)", False),
    ("import sys; exec('import os')", False), ("import _virtualenv", False),
    ("# import sys; sys.path.insert(0, '/other')", False),
)  # fmt: skip
def test_a_line_of_code_that_changes_the_search_path_is_told(tree: Tree, line: str, told: bool) -> None:  # noqa: FBT001
    site = tree.venv("/a", tree.base("/opt/py"))
    tree.at("/other/torch").mkdir(parents=True)
    tree.at(f"{site}/torch").mkdir(parents=True)
    tree.file(f"{site}/moves.py", "import sys\nsys.path.insert(0, '/other')\n")
    tree.file(f"{site}/_virtualenv.py", "import sys\nsys.meta_path.insert(0, object())\n")
    tree.file(f"{site}/z.pth", f"{line}\n")
    found = searched(tree, "/a").startup
    if not told:
        assert found == ()
        return
    (record,) = found
    module = {"module": f"{site}/moves.py"} if line == "import moves" else {}
    path = f"{site}/z.pth"
    places = {"folders": ["/other"], "shadows": ["torch"]}
    assert record == {"path": path, "line": line, "source": f"file {path}", **module, **places}


@cases("name", "easy-install.pth", "__editable__.foo-1.0.pth")
def test_setuptools_own_lines_are_no_change(tree: Tree, name: str) -> None:
    site = tree.venv("/a", tree.base("/opt/py"))
    tree.file(f"{site}/{name}", "import sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:]; sys.path[0:0]=new\n")
    assert searched(tree, "/a").startup == ()


@cases(
    "line, told",
    ("import os; os.environ['CUDA_VISIBLE_DEVICES']=''", {"CUDA_VISIBLE_DEVICES": ""}),
    ('import os; os.environ["CUDA_VISIBLE_DEVICES"] = "-1" # off', {"CUDA_VISIBLE_DEVICES": "-1"}),
    ("import os; os.environ.setdefault('XLA_FLAGS', '--xla_x')", {"XLA_FLAGS": "--xla_x"}),
    ("import os; os.putenv('CUDA_VISIBLE_DEVICES', '7')", {"CUDA_VISIBLE_DEVICES": "7"}),
    ("import os; os.environ.update(JAX_PLATFORMS='cpu', TF_X='1')", {"JAX_PLATFORMS": "cpu", "TF_X": "1"}),
    ("import os; os.environ |= {'JAX_PLATFORMS': 'cpu'}", {"JAX_PLATFORMS": "cpu"}),
    ("import os; os.environ['NCCL_DEBUG'] = 'IN' + x", {"NCCL_DEBUG": None}),
    ("import os; os.environ['NCCL_DEBUG'] = str(x)", {"NCCL_DEBUG": None}),
    ("import hider", {"CUDA_VISIBLE_DEVICES": "-1"}),
    ("import os; os.environ['AWS_SECRET_ACCESS_KEY'] = 'x'", {}),
    ("import os; os.environ['CUDA_VISIBLE_DEVICES'] == ''", {}),
    ("import os; os.environ.get('CUDA_VISIBLE_DEVICES', '')", {}),
    ("# import os; os.environ['CUDA_VISIBLE_DEVICES']=''", {}),
)
def test_variables_that_a_line_of_code_sets_are_told(tree: Tree, line: str, told: dict[str, str | None]) -> None:
    site = tree.venv("/a", tree.base("/opt/py"))
    hider = f"{site}/hider.py"
    tree.file(hider, "import os\n# os.environ['NCCL_DEBUG'] = '1'\nos.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n")
    tree.file(f"{site}/z.pth", f"{line}\n")
    found = searched(tree, "/a").variables
    assert {record["name"]: record.get("value") for record in found} == told
    assert all(record["path"] == f"{site}/z.pth" for record in found)
    assert all(record.get("module") == (hider if "hider" in line else None) for record in found)


def test_the_first_module_for_customization_counts(tree: Tree) -> None:
    site = tree.venv("/a", tree.base("/opt/py"))
    for folder, value in (("/early", "0"), (site, "1")):
        tree.file(f"{folder}/sitecustomize.py", f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '{value}'\n")
    found = searched(tree, "/a", PYTHONPATH="/early").variables
    assert [(record["path"], record["value"]) for record in found] == [("/early/sitecustomize.py", "0")]


def test_an_unknown_version_leaves_the_list_incomplete(tree: Tree) -> None:
    tree.file("/a/pyvenv.cfg", "home = /gone\n")
    tree.program("/a/bin/python")
    assert searched(tree, "/a") == SearchPath((), 0, complete=False)


def test_the_running_interpreter_agrees(tmp_path: Path) -> None:
    """The order is that of ``sys.path`` of the Python that runs the tests, with PYTHONPATH and without user folder."""
    env = {"PYTHONPATH": f"{tmp_path}:", "PYTHONNOUSERSITE": "1", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-B", "-c", "import json, sys; print(json.dumps(sys.path))"]
    said = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    expected = list(dict.fromkeys(path for path in json.loads(said) if path.endswith("-packages")))
    view = View({"root": "/", "cwd": str(tmp_path), "variables": {**env, "HOME": "/nowhere"}})
    place = locate(view, sys.executable)
    assert place.prefix
    found = search_path(view, read_layout(view, place, place.prefix))
    assert (found.folders[0], found.by_variable) == (str(tmp_path), 1)
    assert [path for path in found.folders if path.endswith("-packages")] == expected
