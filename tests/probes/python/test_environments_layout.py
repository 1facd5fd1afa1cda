"""Version, base, manager: what ``pyvenv.cfg`` and the folders of a prefix say."""

from probes.files.python.interpreter import locate
from probes.files.python.layout import EnvironmentLayout, read_layout
from tests.every import cases
from tests.probes.environment_trees import Tree, elf_with_constants


def layout(tree: Tree, path: str, **variables: str) -> EnvironmentLayout:
    view = tree.view(variables=variables)
    place = locate(view, path)
    assert place.prefix
    return read_layout(view, place, place.prefix)


def test_a_virtual_environment_of_venv(tree: Tree) -> None:
    tree.venv("/a", tree.base("/opt/py", "3.11.7"))
    read = layout(tree, "/a")
    assert (read.manager, read.version, read.minor) == ("venv", "3.11.7", "3.11")
    assert (read.base, read.implementation, read.externally_managed) == ("/opt/py", "cpython", False)
    assert not read.system_packages
    assert read.problem is None


@cases("settings, manager, version",
    ("implementation = CPython\nuv = 0.13.8\nversion_info = 3.12.1\n", "uv", "3.12.1"),
    ("implementation = CPython\nversion_info = 3.12.1.final.0\nvirtualenv = 20.25.0\n", "virtualenv", "3.12.1"),
    ("version = 3.12.1\n", "venv", "3.12.1"), ("", "venv", "3.12.9"), ("version = of mine\n", "venv", "3.12.9"),
)  # fmt: skip
def test_who_made_a_virtual_environment(tree: Tree, settings: str, manager: str, version: str) -> None:
    tree.venv("/a", tree.base("/opt/py", "3.12.9"))
    tree.file("/a/pyvenv.cfg", f"home = /opt/py/bin\n{settings}")
    read = layout(tree, "/a")
    assert (read.manager, read.version) == (manager, version)


def test_a_system_python_says_that_it_is_managed(tree: Tree) -> None:
    tree.base("/usr", "3.11.2")
    assert layout(tree, "/usr/bin/python3").externally_managed is False
    tree.file("/usr/lib/python3.11/EXTERNALLY-MANAGED")
    read = layout(tree, "/usr/bin/python3")
    assert (read.manager, read.externally_managed, read.version) == ("system", True, "3.11.2")
    tree.venv("/a", "/usr/bin/python3.11", "3.11.2")
    assert layout(tree, "/a").externally_managed is False


@cases("prefix, manager",
    ("/usr", "system"), ("/usr/local", "other"), ("/home/me/.pyenv/versions/3.11.7", "pyenv"),
    ("/data/pyenv/versions/3.11.7", "pyenv"), ("/home/me/.local/share/uv/python/cpython-3.11.7-linux-x86_64-gnu", "uv"),
)  # fmt: skip
def test_who_manages_an_installation(tree: Tree, prefix: str, manager: str) -> None:
    tree.base(prefix)
    tree.file("/home/me/.pyenv/shims/python3")
    read = layout(tree, prefix, PYENV_ROOT="/data/pyenv")
    assert (read.manager, read.base) == (manager, prefix)


def test_a_conda_environment(tree: Tree) -> None:
    tree.base("/conda/envs/c", "3.11.7")
    tree.at("/conda/envs/c/include/python3.11/patchlevel.h").unlink()
    tree.file("/conda/envs/c/conda-meta/python-3.11.9-h955ad1f_0.json", "{}")
    tree.file("/conda/envs/c/conda-meta/python-dateutil-3.11.1-0.json", "{}")
    read = layout(tree, "/conda/envs/c/bin/python3")
    assert (read.manager, read.version, read.externally_managed) == ("conda", "3.11.9", False)


def test_the_patch_level_is_read_in_the_interpreter_where_nothing_else_says_it(tree: Tree) -> None:
    tree.base("/usr", "3.11.2")
    tree.at("/usr/include/python3.11/patchlevel.h").unlink()
    assert layout(tree, "/usr").version == "3.11"
    tree.program("/usr/bin/python3.11", elf_with_constants(b"1.2.11\0003.11.2\0003.45.1\0"))
    assert layout(tree, "/usr").version == "3.11.2"


def test_two_patch_levels_in_the_interpreter_decide_nothing(tree: Tree) -> None:
    tree.base("/usr", "3.11.2")
    tree.at("/usr/include/python3.11/patchlevel.h").unlink()
    tree.program("/usr/bin/python3.11", elf_with_constants(b"\0003.11.2\0003.11.1\0"))
    assert layout(tree, "/usr").version == "3.11"


def test_a_header_of_another_version_decides_nothing(tree: Tree) -> None:
    tree.base("/usr", "3.11.2")
    tree.file("/usr/include/python3.11/patchlevel.h", '#define PY_VERSION "3.12.0"\n')
    assert layout(tree, "/usr").version == "3.11"


def test_versions_side_by_side_are_told_apart_by_the_program(tree: Tree) -> None:
    tree.base("/usr", "3.11.2")
    tree.program("/usr/bin/python2.7")
    tree.file("/usr/lib/python2.7/os.py")
    assert layout(tree, "/usr/bin/python2.7").version == "2.7"
    assert layout(tree, "/usr/bin/python3").version == "3.11.2"


def test_pypy(tree: Tree) -> None:
    tree.program("/pypy/bin/pypy3.10")
    tree.file("/pypy/lib/pypy3.10/os.py")
    read = layout(tree, "/pypy/bin/pypy3.10")
    assert (read.implementation, read.version) == ("pypy", "3.10")


def test_pypy_beside_cpython(tree: Tree) -> None:
    tree.base("/usr", "3.9.2")
    tree.program("/usr/bin/pypy3.9")
    tree.link("/usr/bin/pypy3", "pypy3.9")
    tree.file("/usr/lib/pypy3.9/os.py")
    tree.at("/usr/lib/pypy3.9/site-packages").mkdir()
    assert layout(tree, "/usr/bin/pypy3").implementation == "pypy"
    assert layout(tree, "/usr/bin/python3").implementation == "cpython"


def test_a_copied_interpreter_whose_base_is_gone(tree: Tree) -> None:
    tree.venv("/a", "/opt/py/bin/python3.11")
    for name in ("python", "python3"):
        tree.at(f"/a/bin/{name}").unlink()
        tree.program(f"/a/bin/{name}")
    read = layout(tree, "/a")
    assert (read.base, read.version) == (None, "3.11.7")
    assert read.problem == "its base interpreter /opt/py/bin/python3.11 is gone"
    tree.base("/opt/py")
    assert layout(tree, "/a").problem is None


def test_a_dangling_interpreter_keeps_what_the_settings_say(tree: Tree) -> None:
    tree.venv("/a", "/opt/py/bin/python3.11", settings="include-system-site-packages = true\n")
    read = layout(tree, "/a/bin/python")
    assert (read.base, read.version, read.system_packages) == (None, "3.11.7", True)
    assert read.problem == "its base interpreter /opt/py/bin/python3.11 is gone"


def test_a_base_that_became_another_version(tree: Tree) -> None:
    tree.base("/usr", "3.12.3")
    tree.venv("/a", "/usr/bin/python3", "3.11.2")
    assert layout(tree, "/a").problem == (
        "it was created for Python 3.11, and its base interpreter /usr/bin/python3.12 is 3.12 now"
    )


def test_settings_without_a_home(tree: Tree) -> None:
    tree.venv("/a", tree.base("/opt/py"))
    tree.file("/a/pyvenv.cfg", "version = 3.11.7\n")
    tree.at("/a/bin/python3").unlink()
    tree.program("/a/bin/python3")
    assert layout(tree, "/a").problem == "its pyvenv.cfg does not name the interpreter that it was made from"


def test_settings_that_are_no_text(tree: Tree) -> None:
    tree.venv("/a", tree.base("/opt/py"))
    tree.file("/a/pyvenv.cfg", b"\xff\xfe\0home = \0/opt\x1b[2J\n\xff" * 50)
    read = layout(tree, "/a")
    assert (read.manager, read.version, read.problem) == ("venv", "3.11.7", None)


def test_a_base_without_its_standard_library_is_told(tree: Tree) -> None:
    tree.venv("/a", tree.base("/opt/py", "3.11.7"))
    tree.at("/opt/py/lib/python3.11/os.py").unlink()
    problem = "its base interpreter /opt/py/bin/python3.11 has lost its standard library"
    assert layout(tree, "/a").problem == problem
    assert layout(tree, "/a/bin/python").problem == problem


ACTIVATE = "deactivate () {\n    unset VIRTUAL_ENV\n}\n"
PIP = "import sys\n"


@cases("activate, pip, moved",
    ('VIRTUAL_ENV="/a"\nexport VIRTUAL_ENV\n', "#!/a/bin/python3\n", None),
    ('VIRTUAL_ENV="/old/venv"\nexport VIRTUAL_ENV\n', "#!/old/venv/bin/python3\n", "/old/venv"),
    ("VIRTUAL_ENV='/old/my venv'\n", "", "/old/my venv"),
    ("        export VIRTUAL_ENV=/old/venv\n", "", "/old/venv"),
    ("VIRTUAL_ENV=$(cygpath /old/venv)\n", "", None),
    ('VIRTUAL_ENV="/linked"\n', "", None),
    ("", "#!/old/venv/bin/python3.11\n", "/old/venv"),
    ("", "#!/bin/sh\n'''exec' /old/venv/bin/python3.11 \"$0\" \"$@\"\n", "/old/venv"),
    ("", "#!/opt/py/bin/python3.11\n", None),
    ("", "#!/usr/bin/env python3\n", None),
)  # fmt: skip
def test_a_virtual_environment_whose_programs_name_another_folder(
    tree: Tree, activate: str, pip: str, moved: str | None
) -> None:
    tree.venv("/a", tree.base("/opt/py", "3.11.7"))
    tree.link("/linked", "/a")
    tree.file("/a/bin/activate", ACTIVATE + activate)
    tree.file("/a/bin/pip", pip + PIP)
    assert layout(tree, "/a").moved_from == moved


def test_a_system_python_was_not_moved(tree: Tree) -> None:
    tree.base("/usr", "3.11.2")
    tree.file("/usr/bin/pip", "#!/old/venv/bin/python3\n")
    assert layout(tree, "/usr/bin/python3").moved_from is None
