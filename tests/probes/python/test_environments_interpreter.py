"""From what was named to an interpreter: links, shims, folders, and what turns out to be none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probes.python.interpreter import PythonPlace, locate
from tests.probes.environment_trees import PROGRAM, Tree

SHIM = """#!/usr/bin/env bash
set -e
program="${0##*/}"
export PYENV_ROOT="/home/me/.pyenv"
exec "/home/me/.pyenv/libexec/pyenv" exec "$program" "$@"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.base("/usr", "3.11.2")
    return made


def found(tree: Tree, path: str, **variables: str) -> PythonPlace:
    return locate(tree.view(variables=variables), path)


def test_alternatives_lead_through_links_to_the_base(tree: Tree) -> None:
    tree.link("/etc/alternatives/python", "/usr/bin/python3")
    tree.link("/usr/bin/python", "/etc/alternatives/python")
    assert found(tree, "/usr/bin/python") == PythonPlace("/usr/bin/python", "/usr")


def test_a_merged_bin_folder_leads_to_usr(tree: Tree) -> None:
    tree.link("/bin", "usr/bin")
    tree.link("/lib", "usr/lib")
    assert found(tree, "/bin/python3").prefix == "/usr"


def test_a_link_to_a_virtual_environment_from_outside_is_told(tree: Tree) -> None:
    """Python takes its base there: neither of the two is judged in its place."""
    tree.venv("/a", "/usr/bin/python3.11")
    tree.link("/home/me/bin/python", "/a/bin/python")
    place = found(tree, "/home/me/bin/python")
    why = "Python uses its base there; name /a/bin/python"
    assert (place.prefix, place.problem, place.lost) == ("/a", None, ("/home/me/bin/python", why))


def test_a_program_of_an_environment_leads_to_the_interpreter_that_runs_it(tree: Tree) -> None:
    tree.venv("/a", "/usr/bin/python3.11")
    tree.program("/home/me/bin/tool", "#!/a/bin/python3\nimport sys\n")
    assert found(tree, "/home/me/bin/tool") == PythonPlace("/a/bin/python3", "/a")


def test_another_file_of_an_environment_does_not_make_it_a_broken_one(tree: Tree) -> None:
    tree.venv("/a", "/usr/bin/python3.11")
    tree.file("/a/bin/activate")
    assert found(tree, "/a/bin/activate") == PythonPlace("/a/bin/activate", None, "/a/bin/activate is not executable")


@pytest.mark.parametrize("asked", ["/a", "/a/bin/python", "/a/bin/python3"])
def test_a_virtual_environment_by_folder_and_by_program(tree: Tree, asked: str) -> None:
    tree.venv("/a", "/usr/bin/python3.11")
    place = found(tree, asked)
    assert (place.prefix, place.problem) == ("/a", None)


def test_folders_that_hold_an_interpreter(tree: Tree) -> None:
    tree.base("/home/me/.pyenv/versions/3.7.16", "3.7.16")
    assert found(tree, "/home/me/.pyenv/versions/3.7.16").prefix == "/home/me/.pyenv/versions/3.7.16"
    tree.program("/pypy/bin/pypy3.10")
    tree.file("/pypy/lib/pypy3.10/os.py")
    assert found(tree, "/pypy") == PythonPlace("/pypy/bin/pypy3.10", "/pypy")


def test_what_does_not_exist(tree: Tree) -> None:
    assert found(tree, "/nowhere/python").problem == "it does not exist"


def test_a_folder_that_is_no_environment(tree: Tree) -> None:
    tree.file("/data/readme")
    problem = "it is a folder without a Python environment (there is no bin/python)"
    assert found(tree, "/data") == PythonPlace(problem=problem)


def test_a_project_folder_is_answered_with_its_environment(tree: Tree) -> None:
    tree.venv("/project/.venv", "/usr/bin/python3.11")
    assert (found(tree, "/project").problem or "").endswith("; /project/.venv is one")


def test_a_base_that_is_gone_is_named(tree: Tree) -> None:
    tree.venv("/a", "/opt/old/bin/python3.9", "3.9.1")
    for asked in ("/a", "/a/bin/python"):
        place = found(tree, asked)
        assert (place.prefix, place.problem) == ("/a", "its base interpreter /opt/old/bin/python3.9 is gone")


def test_an_environment_without_a_program(tree: Tree) -> None:
    tree.file("/a/pyvenv.cfg", "home = /usr/bin\n")
    assert found(tree, "/a") == PythonPlace(None, "/a", "it has lost its interpreter (there is no bin/python)")


def test_an_environment_laid_out_for_windows(tree: Tree) -> None:
    tree.file("/a/pyvenv.cfg", "home = C:\\Python311\n")
    tree.file("/a/Scripts/python.exe", b"MZ")
    assert "laid out for Windows" in (found(tree, "/a").problem or "")


def test_a_conda_environment_without_python(tree: Tree) -> None:
    tree.file("/conda/envs/c/conda-meta/history")
    place = found(tree, "/conda/envs/c")
    assert (place.prefix, place.problem) == ("/conda/envs/c", "it is a conda environment without Python")


@pytest.mark.parametrize(
    ("content", "mode", "sentence"),
    [
        (PROGRAM, 0o644, "it is not executable"),
        (b"#!/bin/sh\nexec python3\n", 0o755, "it is a script, which is never run here"),
        (b"hello", 0o755, "it is not a program for Linux"),
        (b"", 0o755, "it is not a program for Linux"),
        (b"MZ\x90\0", 0o755, "it is not a program for Linux"),
        (PROGRAM, 0o755, "it has lost its standard library"),
    ],
)
def test_a_program_that_is_no_working_interpreter(tree: Tree, content: bytes, mode: int, sentence: str) -> None:
    tree.file("/x/python3", content, mode)
    place = found(tree, "/x/python3")
    assert place.prefix is None
    assert (place.problem or "").startswith(sentence)


def test_a_launcher_of_another_name_is_no_python(tree: Tree) -> None:
    tree.program("/usr/bin/mise")
    tree.link("/shims/python3", "/usr/bin/mise")
    assert found(tree, "/shims/python3").problem == ("it leads to /usr/bin/mise, which is not Python by its name")


def test_links_in_a_circle(tree: Tree) -> None:
    tree.link("/x/python3", "python")
    tree.link("/x/python", "python3")
    assert found(tree, "/x/python").problem == "it is a circular link"


def test_a_pipe_is_never_opened(tree: Tree) -> None:
    tree.at("/x").mkdir()
    os.mkfifo(tree.at("/x/python3"), 0o755)
    assert found(tree, "/x/python3").problem == "it is not a file"


def test_control_characters_of_a_path_stay_out_of_the_sentence(tree: Tree) -> None:
    tree.file("/x\x1b[31m/bin/python3", b"#!/bin/sh\n", 0o755)
    problem = found(tree, "/x\x1b[31m").problem
    assert problem == "/x[31m/bin/python3 is a script, which is never run here; name the interpreter itself"


# --- pyenv --------------------------------------------------------------------------------------------------------


@pytest.fixture
def pyenv(tree: Tree) -> Tree:
    tree.program("/home/me/.pyenv/shims/python3", SHIM)
    for version in ("3.9.18", "3.11.7", "3.11.10", "3.12.1"):
        tree.base(f"/home/me/.pyenv/versions/{version}", version)
    tree.file("/home/me/.pyenv/version", "3.12.1\n")
    return tree


def chosen(tree: Tree, **variables: str) -> str:
    place = found(tree, "/home/me/.pyenv/shims/python3", **variables)
    assert place.problem is None
    return (place.prefix or "").rpartition("/")[2]


def test_a_shim_follows_the_version_file_of_the_root(pyenv: Tree) -> None:
    assert chosen(pyenv) == "3.12.1"


def test_a_shim_follows_the_nearest_version_file(pyenv: Tree) -> None:
    pyenv.file("/home/me/.python-version", "# chosen\n  3.9.18\n")
    assert chosen(pyenv) == "3.9.18"
    pyenv.file("/home/.python-version", "3.11.7\n")
    assert chosen(pyenv) == "3.9.18"


def test_a_shim_follows_the_variable_first(pyenv: Tree) -> None:
    pyenv.file("/home/me/.python-version", "3.9.18\n")
    assert chosen(pyenv, PYENV_VERSION="3.11.7") == "3.11.7"


def test_the_newest_of_a_minor_and_the_first_that_has_the_program(pyenv: Tree) -> None:
    assert chosen(pyenv, PYENV_VERSION="3.11") == "3.11.10"
    assert chosen(pyenv, PYENV_VERSION="python-3.9") == "3.9.18"
    pyenv.file("/home/me/.pyenv/versions/2.7.18/bin/python2")
    assert chosen(pyenv, PYENV_VERSION="2.7.18:3.9.18") == "3.9.18"


def test_a_version_that_is_not_installed(pyenv: Tree) -> None:
    place = found(pyenv, "/home/me/.pyenv/shims/python3", PYENV_VERSION="3.13.9")
    assert place.problem == "pyenv selects 3.13.9 (PYENV_VERSION), which is not installed"
    assert place.prefix is None


def test_a_version_without_the_program(pyenv: Tree) -> None:
    pyenv.program("/home/me/.pyenv/shims/python2", SHIM)
    place = found(pyenv, "/home/me/.pyenv/shims/python2", PYENV_VERSION="3.9.18")
    assert place.problem == "pyenv selects 3.9.18 (PYENV_VERSION), which holds no python2"


def test_without_any_choice_the_system_decides(pyenv: Tree) -> None:
    pyenv.at("/home/me/.pyenv/version").unlink()
    assert found(pyenv, "/home/me/.pyenv/shims/python3").system


def test_a_version_cannot_lead_out_of_the_versions_folder(pyenv: Tree) -> None:
    place = found(pyenv, "/home/me/.pyenv/shims/python3", PYENV_VERSION="../../../../usr")
    assert place.prefix is None
    assert "not installed" in (place.problem or "")


def test_system_leaves_the_choice_to_path(pyenv: Tree) -> None:
    place = found(pyenv, "/home/me/.pyenv/shims/python3", PYENV_VERSION="system")
    assert place.system
    assert place.problem == "the pyenv shim /home/me/.pyenv/shims/python3 selects no version"
