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
from tests.every import cases, tabled
from tests.known import Expected, fields
from tests.probes.environment_trees import PROGRAM, Laid, Tree


def searched(tree: Tree, path: str, **variables: str) -> SearchPath:
    view = tree.view(variables=variables)
    place = locate(view, path)
    assert place.prefix
    return search_path(view, read_layout(view, place, place.prefix))


PACKAGES = "lib/python3.11/site-packages"
OPT: Laid = {"/opt/py": ("base",)}
VENV: Laid = {**OPT, "/a": ("venv", "/opt/py/bin/python3.11")}
SITE, BASE, USER = f"/a/{PACKAGES}", f"/opt/py/{PACKAGES}", f"/home/me/.local/{PACKAGES}"
SHARED: Laid = {**OPT, "/a": ("venv", "/opt/py/bin/python3.11", "3.11.7", "include-system-site-packages = true\n"),
                f"{USER}/": ""}  # fmt: skip
DEBIAN: Laid = {"/usr": ("base", "3.11.2", "dist-packages")}
DEBIANS = tuple(f"/usr/{path}/dist-packages" for path in ("local/lib/python3.11", "lib/python3", "lib/python3.11"))
PYPY: Laid = {"/usr": ("base", "3.9.2"), "/usr/bin/pypy3.9": PROGRAM, "/usr/lib/pypy3.9/os.py": "",
              "/usr/lib/pypy3.9/site-packages/": ""}  # fmt: skip
OF_PASSWD: Laid = {**OPT, "/etc/passwd": f"x\nme:x:{os.getuid()}:0::/data/me:/bin/sh\n",
                   f"/data/me/.local/{PACKAGES}/": ""}  # fmt: skip
LINES = "# /src/no\n\n/src/one  \ninner\nimport sys; sys.path.append('/src/hidden')\n/src/gone\n"
OF_SETUPTOOLS = "import sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:]; sys.path[0:0]=new\n"
SETS = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '{}'\n"


@cases("about, files, path, variables, expected",
    ("a virtual environment sees its own folder alone",
     {**DEBIAN, "/a": ("venv", "/usr/bin/python3.11"), "/a/lib64": "-> lib", f"{USER}/": ""}, "/a", {},
     {"folders": (SITE,), "by_variable": 0, "complete": True, "led_by": ("",), "startup": (), "variables": ()}),
    ("packages of the system bring the user and the base", SHARED, "/a", {}, {"folders": (SITE, USER, BASE)}),
    ("but for the user", SHARED, "/a", {"PYTHONNOUSERSITE": "1"}, {"folders": (SITE, BASE)}),
    ("Debian's dist-packages", {**DEBIAN, **{f"{path}/": "" for path in DEBIANS[:2]}}, "/usr/bin/python3", {},
     {"folders": DEBIANS}),
    ("lib64 comes before lib where they differ",
     {"/usr": ("base", "3.11.2"), "/usr/lib64/python3.11/site-packages/": ""}, "/usr", {},
     {"folders": ("/usr/lib64/python3.11/site-packages", f"/usr/{PACKAGES}")}),
    ("PyPy beside CPython", PYPY, "/usr/bin/pypy3.9", {}, {"folders": ("/usr/lib/pypy3.9/site-packages",)}),
    ("CPython beside PyPy", PYPY, "/usr/bin/python3", {}, {"folders": ("/usr/lib/python3.9/site-packages",)}),
    ("the user's folder by its variable", {**OPT, f"/data/{PACKAGES}/": ""}, "/opt/py", {"PYTHONUSERBASE": "/data"},
     {"folders": (f"/data/{PACKAGES}", BASE)}),
    ("no home", OPT, "/opt/py", {"HOME": ""}, {"folders": (BASE,)}),
    ("the home of the passwd file", OF_PASSWD, "/opt/py", {"HOME": ""},
     {"folders": (f"/data/me/.local/{PACKAGES}", BASE)}),
    ("PYTHONPATH comes first, and an empty part is the current folder",
     {**VENV, "/x/": "", "/home/me/lib/": ""}, "/a", {"PYTHONPATH": "/x:lib:/gone::/x"},
     {"folders": ("/x", "/home/me/lib", "/home/me", SITE), "by_variable": 3, "complete": True,
      "led_by": ("PYTHONPATH", "PYTHONPATH", "PYTHONPATH", ""), "startup": (), "variables": ()}),
    ("plain lines of path files alone",
     {**VENV, "/src/one/": "", "/src/two/": "", f"{SITE}/inner/": "", "/src/hidden/": "", f"{SITE}/b.pth": "/src/two\n",
      f"{SITE}/a.pth": LINES, f"{SITE}/.hidden.pth": "/src/hidden\n", "/src/one/nested.pth": "/src/hidden\n"}, "/a", {},
     {"folders": (SITE, "/src/one", f"{SITE}/inner", "/src/two")}),
    ("path files in a folder of PYTHONPATH are not read", {**VENV, "/src/": "", "/x/a.pth": "/src\n"}, "/a",
     {"PYTHONPATH": "/x"}, {"folders": ("/x", SITE)}),
    ("a path file that is no text costs itself alone",
     {**VENV, "/src/": "", f"{SITE}/a.pth": b"\xff\xfe/\0src\n\0\n", f"{SITE}/b.pth": "-> b.pth",
      f"{SITE}/c.pth": "/src\n"}, "/a", {},
     {"folders": (SITE, "/src"), "undecodable": (f"{SITE}/a.pth",)}),
    ("replacement characters in UTF-8 are text", {**VENV, f"{SITE}/a.pth": "/\ufffd\n"}, "/a", {}, {"undecodable": ()}),
    ("what leads to each folder", {**OPT, f"{USER}/": "", "/src/": "", f"{USER}/a.pth": "/src\n"}, "/opt/py",
     {"PYTHONUSERBASE": "/home/me/.local"},
     {"folders": (USER, "/src", BASE), "led_by": ("user site", f"{USER}/a.pth", "")}),
    *((f"a line of setuptools' own: {name}", {**VENV, f"{SITE}/{name}": OF_SETUPTOOLS}, "/a", {}, {"startup": ()})
      for name in ("easy-install.pth", "__editable__.foo-1.0.pth")),
    ("an unknown version leaves the list incomplete",
     {"/a/pyvenv.cfg": "home = /gone\n", "/a/bin/python": PROGRAM}, "/a", {},
     {"folders": (), "by_variable": 0, "complete": False, "led_by": (), "startup": (), "variables": ()}),
)  # fmt: skip
def test_what_is_searched(
    tree: Tree, about: str, files: Laid, path: str, variables: dict[str, str], expected: Expected
) -> None:
    tree.lay(files)
    assert fields(searched(tree, path, **variables), expected) == expected


def test_path_files_without_end_are_cut_and_said_to_be(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.files.python.search_path.FOLDERS", 3)
    many = [f"/src/{number}" for number in range(5)]
    tree.lay({**VENV, **{f"{path}/": "" for path in many}, f"{SITE}/a.pth": "\n".join(many)})
    found = searched(tree, "/a")
    assert (len(found.folders), found.complete) == (3, False)


def test_the_first_module_for_customization_counts(tree: Tree) -> None:
    early, late = "/early/sitecustomize.py", f"{SITE}/sitecustomize.py"
    tree.lay({**VENV, early: SETS.format(0), late: SETS.format(1)})
    found = searched(tree, "/a", PYTHONPATH="/early").variables
    assert [(record["path"], record["value"]) for record in found] == [(early, "0")]
    tree.file("/opt/py/lib/python3.11/sitecustomize.py", "import apport_python_hook\n")  # as Debian has it
    assert searched(tree, "/a").variables == ()
    assert [record["path"] for record in searched(tree, "/a", PYTHONPATH="/early").variables] == [early]


@tabled
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


@cases("line, always",
    ("import os; os.environ['CUDA_VISIBLE_DEVICES']=''", True), ("os.putenv('NCCL_DEBUG', 'INFO')", True),
    ("import os, x; os.environ['NCCL_DEBUG'] = 'INFO' if x else 'WARN'", None),
    ("import os; x = os.name == 'nt' and os.putenv('NCCL_DEBUG', 'INFO')", None),
    ("if x: os.environ['NCCL_DEBUG'] = 'INFO'", None), ("    os.environ['NCCL_DEBUG'] = 'INFO'", None),
    ("import os; os.environ.setdefault('NCCL_DEBUG', 'INFO')", None), ("os.environ.update(NCCL_DEBUG='INFO')", None),
)  # fmt: skip
def test_a_statement_that_depends_on_nothing_is_told(tree: Tree, line: str, always: bool | None) -> None:  # noqa: FBT001
    site = tree.venv("/a", tree.base("/opt/py"))
    tree.file(f"{site}/sitecustomize.py", f"import os\n{line}\n")
    (record,) = searched(tree, "/a").variables
    assert record.get("always") is always


@tabled
def test_variables_that_a_line_of_code_sets_are_told(tree: Tree, line: str, told: dict[str, str | None]) -> None:
    site = tree.venv("/a", tree.base("/opt/py"))
    hider = f"{site}/hider.py"
    tree.file(hider, "import os\n# os.environ['NCCL_DEBUG'] = '1'\nos.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n")
    tree.file(f"{site}/z.pth", f"{line}\n")
    found = searched(tree, "/a").variables
    assert {record["name"]: record.get("value") for record in found} == told
    assert all(record["path"] == f"{site}/z.pth" for record in found)
    assert all(record.get("module") == (hider if "hider" in line else None) for record in found)


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
