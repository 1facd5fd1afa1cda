"""Version, base, manager: what ``pyvenv.cfg`` and the folders of a prefix say."""

from probes.files.python.interpreter import locate
from probes.files.python.layout import read_layout
from tests.every import cases
from tests.known import Expected, fields
from tests.probes.environment_trees import PROGRAM, Laid, Tree, elf_with_constants

DEBIAN: Laid = {"/usr": ("base", "3.11.2")}
MANAGED: Laid = {**DEBIAN, "/usr/lib/python3.11/EXTERNALLY-MANAGED": ""}
HEADER = "/usr/include/python3.11/patchlevel.h"
PYPY: Laid = {"/usr": ("base", "3.9.2"), "/usr/bin/pypy3.9": PROGRAM, "/usr/bin/pypy3": "-> pypy3.9",
              "/usr/lib/pypy3.9/os.py": "", "/usr/lib/pypy3.9/site-packages/": ""}  # fmt: skip
OPT, NEWER = "/opt/py/bin/python3.11", "/opt/py/bin/python3.12"
VENV: Laid = {"/opt/py": ("base", "3.11.7"), "/a": ("venv", OPT)}
COPIED: Laid = {"/a": ("venv", OPT), "/a/bin/python": PROGRAM, "/a/bin/python3": PROGRAM}
GONE = f"its base interpreter {OPT} is gone"
NO_LIBRARY = f"its base interpreter {OPT} has lost its standard library"
UV = "/home/me/.local/share/uv/python/cpython-3.11.7-linux-x86_64-gnu"
ACTIVATE = "deactivate () {\n    unset VIRTUAL_ENV\n}\n"

UPGRADED: Laid = {
    "/opt/py": ("base", "3.11.7"), "/usr": ("base", "3.12.3"), "/a": ("venv", "/usr/bin/python3", "3.12.3"),
    "/a/lib/python3.11/site-packages/numpy-2.0.dist-info/METADATA": "",
    "/a/lib/python3.12/site-packages/pip-25.0.dist-info/METADATA": "",
}  # fmt: skip


@cases("about, files, path, expected",
    ("a virtual environment of venv", VENV, "/a",
     {"manager": "venv", "version": "3.11.7", "minor": "3.11", "base": "/opt/py", "implementation": "cpython",
      "externally_managed": False, "system_packages": False, "problem": None}),
    *((f"who made it: {settings}",
       {"/opt/py": ("base", "3.12.9"), "/a": ("venv", NEWER), "/a/pyvenv.cfg": f"home = /opt/py/bin\n{settings}"}, "/a",
       {"manager": manager, "version": version}) for settings, manager, version in (
        ("implementation = CPython\nuv = 0.13.8\nversion_info = 3.12.1\n", "uv", "3.12.1"),
        ("implementation = CPython\nversion_info = 3.12.1.final.0\nvirtualenv = 20.25.0\n", "virtualenv", "3.12.1"),
        ("version = 3.12.1\n", "venv", "3.12.1"), ("", "venv", "3.12.9"), ("version = of mine\n", "venv", "3.12.9"))),
    *((f"who manages it: {prefix}", {prefix: ("base",), "/home/me/.pyenv/shims/python3": ""}, prefix,
       {"manager": manager, "base": prefix}) for prefix, manager in (
        ("/usr", "system"), ("/usr/local", "other"), ("/home/me/.pyenv/versions/3.11.7", "pyenv"),
        ("/data/pyenv/versions/3.11.7", "pyenv"), (UV, "uv"))),
    ("a system's Python", DEBIAN, "/usr/bin/python3", {"externally_managed": False}),
    ("a system's Python that says that it is managed", MANAGED, "/usr/bin/python3",
     {"manager": "system", "externally_managed": True, "version": "3.11.2"}),
    ("an environment of it is not managed", {**MANAGED, "/a": ("venv", "/usr/bin/python3.11", "3.11.2")}, "/a",
     {"externally_managed": False}),
    ("a system's Python was not moved", {**DEBIAN, "/usr/bin/pip": "#!/old/venv/bin/python3\n"}, "/usr/bin/python3",
     {"moved_from": None}),
    ("a conda environment",
     {"/c": ("base", "3.11.7"), "/c/include/python3.11/patchlevel.h": None,
      "/c/conda-meta/python-3.11.9-h955ad1f_0.json": "{}", "/c/conda-meta/python-dateutil-3.11.1-0.json": "{}"},
     "/c/bin/python3", {"manager": "conda", "version": "3.11.9", "externally_managed": False}),
    ("nothing says the patch level", {**DEBIAN, HEADER: None}, "/usr", {"version": "3.11"}),
    ("it is read in the interpreter then",
     {**DEBIAN, HEADER: None, "/usr/bin/python3.11": elf_with_constants(b"1.2.11\0003.11.2\0003.45.1\0")}, "/usr",
     {"version": "3.11.2"}),
    ("two patch levels in the interpreter decide nothing",
     {**DEBIAN, HEADER: None, "/usr/bin/python3.11": elf_with_constants(b"\0003.11.2\0003.11.1\0")}, "/usr",
     {"version": "3.11"}),
    ("a header of another version decides nothing", {**DEBIAN, HEADER: '#define PY_VERSION "3.12.0"\n'}, "/usr",
     {"version": "3.11"}),
    *((f"versions side by side are told apart by the program: {program}",
       {**DEBIAN, "/usr/bin/python2.7": PROGRAM, "/usr/lib/python2.7/os.py": ""}, f"/usr/bin/{program}",
       {"version": version}) for program, version in (("python2.7", "2.7"), ("python3", "3.11.2"))),
    ("PyPy", {"/pypy/bin/pypy3.10": PROGRAM, "/pypy/lib/pypy3.10/os.py": ""}, "/pypy/bin/pypy3.10",
     {"implementation": "pypy", "version": "3.10"}),
    ("PyPy beside CPython", PYPY, "/usr/bin/pypy3", {"implementation": "pypy"}),
    ("CPython beside PyPy", PYPY, "/usr/bin/python3", {"implementation": "cpython"}),
    ("a copied interpreter whose base is gone", COPIED, "/a", {"base": None, "version": "3.11.7", "problem": GONE}),
    ("a copied interpreter", {**COPIED, "/opt/py": ("base", "3.11.7")}, "/a", {"problem": None}),
    ("an interpreter that dangles keeps what the settings say",
     {"/a": ("venv", OPT, "3.11.7", "include-system-site-packages = true\n")}, "/a/bin/python",
     {"base": None, "version": "3.11.7", "system_packages": True, "problem": GONE}),
    ("a base that became another version", {"/usr": ("base", "3.12.3"), "/a": ("venv", "/usr/bin/python3", "3.11.2")},
     "/a", {"problem":
            "it was created for Python 3.11, and its base interpreter /usr/bin/python3.12 is 3.12 now"}),
    ("a newer Python upgraded its settings, and left its links",
     {**UPGRADED, "/a/bin/python3": "-> /opt/py/bin/python3"}, "/a", {"version": "3.11.7", "problem": None}),
    ("a newer Python upgraded it, whose packages are of the older", UPGRADED, "/a", {"problem":
            "it was created for Python 3.11, and its base interpreter /usr/bin/python3.12 is 3.12 now"}),
    ("packages of both", {**UPGRADED, "/a/lib/python3.12/site-packages/numpy-2.0.dist-info/METADATA": ""}, "/a",
     {"version": "3.12.3", "problem": None}),
    ("settings without a home", {**VENV, "/a/pyvenv.cfg": "version = 3.11.7\n", "/a/bin/python3": PROGRAM}, "/a",
     {"problem": "its pyvenv.cfg does not name the interpreter that it was made from"}),
    ("settings that are no text", {**VENV, "/a/pyvenv.cfg": b"\xff\xfe\0home = \0/opt\x1b[2J\n\xff" * 50}, "/a",
     {"manager": "venv", "version": "3.11.7", "problem": None}),
    *(("a base without its standard library", {**VENV, "/opt/py/lib/python3.11/os.py": None}, path,
       {"problem": NO_LIBRARY}) for path in ("/a", "/a/bin/python")),
    *((f"which folder its programs name: {moved}",
       {**VENV, "/linked": "-> /a", "/a/bin/activate": ACTIVATE + activate, "/a/bin/pip": f"{pip}import sys\n"}, "/a",
       {"moved_from": moved}) for activate, pip, moved in (
        ('VIRTUAL_ENV="/a"\nexport VIRTUAL_ENV\n', "#!/a/bin/python3\n", None),
        ('VIRTUAL_ENV="/old/venv"\nexport VIRTUAL_ENV\n', "#!/old/venv/bin/python3\n", "/old/venv"),
        ("VIRTUAL_ENV='/old/my venv'\n", "", "/old/my venv"),
        ("        export VIRTUAL_ENV=/old/venv\n", "", "/old/venv"),
        ("VIRTUAL_ENV=$(cygpath /old/venv)\n", "", None), ('VIRTUAL_ENV="/linked"\n', "", None),
        ("", "#!/old/venv/bin/python3.11\n", "/old/venv"),
        ("", "#!/bin/sh\n'''exec' /old/venv/bin/python3.11 \"$0\" \"$@\"\n", "/old/venv"),
        ("", "#!/opt/py/bin/python3.11\n", None), ("", "#!/usr/bin/env python3\n", None))),
)  # fmt: skip
def test_what_a_layout_says(tree: Tree, about: str, files: Laid, path: str, expected: Expected) -> None:
    tree.lay(files)
    view = tree.view(variables={"PYENV_ROOT": "/data/pyenv"})
    place = locate(view, path)
    assert place.prefix
    assert fields(read_layout(view, place, place.prefix), expected) == expected
