"""From what was named to an interpreter: every way to name an environment, and every damage to it."""

import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.checks import Report
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from probes.common.tree import REFUSED
from probes.files.python.interpreter import PythonPlace, locate
from tests.every import cases
from tests.known import Expected, fields
from tests.probes.conftest import RunProbe
from tests.probes.environment_trees import PROGRAM, Tree
from tests.probes.other_user import as_nobody

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
    made.venv("/a", "/usr/bin/python3.11")
    return made


def found(tree: Tree, path: str, **variables: str) -> PythonPlace:
    return locate(tree.view(variables=variables), path)


@cases("about, files, asked, expected",
    ("alternatives lead through links to the base",
     {"/etc/alternatives/python": "-> /usr/bin/python3", "/usr/bin/python": "-> /etc/alternatives/python"},
     "/usr/bin/python", {"executable": "/usr/bin/python", "prefix": "/usr", "problem": None}),
    ("a merged bin folder leads to usr", {"/bin": "-> usr/bin", "/lib": "-> usr/lib"}, "/bin/python3",
     {"prefix": "/usr"}),
    # Python takes its base there: neither of the two is judged in its place
    ("a link to a virtual environment from outside is told", {"/home/me/bin/python": "-> /a/bin/python"},
     "/home/me/bin/python",
     {"prefix": "/a", "problem": None,
      "lost": ("/home/me/bin/python", "Python uses its base there; name /a/bin/python")}),
    ("a program of an environment leads to the interpreter that runs it",
     {"/home/me/bin/tool": "#!/a/bin/python3\nimport sys\n"}, "/home/me/bin/tool",
     {"executable": "/a/bin/python3", "prefix": "/a", "problem": None}),
    ("another file of an environment does not make it a broken one", {"/a/bin/activate": ""}, "/a/bin/activate",
     {"executable": "/a/bin/activate", "prefix": None, "problem": "/a/bin/activate is not executable"}),
    *((f"a virtual environment by {asked}", {}, asked, {"prefix": "/a", "problem": None})
      for asked in ("/a", "/a/bin/python", "/a/bin/python3")),
    ("PyPy", {"/pypy/bin/pypy3.10": PROGRAM, "/pypy/lib/pypy3.10/os.py": ""}, "/pypy",
     {"executable": "/pypy/bin/pypy3.10", "prefix": "/pypy", "problem": None}),
    ("what does not exist", {}, "/nowhere/python", {"problem": "it does not exist"}),
    ("a folder that is no environment", {"/data/readme": ""}, "/data",
     {"prefix": None, "problem": "it is a folder without a Python environment (there is no bin/python)"}),
    ("an environment without a program", {"/b/pyvenv.cfg": "home = /usr/bin\n"}, "/b",
     {"executable": None, "prefix": "/b", "problem": "it has lost its interpreter (there is no bin/python)"}),
    ("a conda environment without Python", {"/conda/envs/c/conda-meta/history": ""}, "/conda/envs/c",
     {"prefix": "/conda/envs/c", "problem": "it is a conda environment without Python"}),
    ("a launcher of another name is no Python", {"/usr/bin/mise": PROGRAM, "/shims/python3": "-> /usr/bin/mise"},
     "/shims/python3", {"problem": "it leads to /usr/bin/mise, which is not Python by its name"}),
    ("links in a circle", {"/x/python3": "-> python", "/x/python": "-> python3"}, "/x/python",
     {"problem": "it is a circular link"}),
    ("control characters of a path stay out of the sentence", {"/x\x1b[31m/bin/python3": "#!/bin/sh\n"}, "/x\x1b[31m",
     {"problem": "/x[31m/bin/python3 is a script, which is never run here; name the interpreter itself"}),
)  # fmt: skip
def test_a_place(tree: Tree, about: str, files: dict[str, str | bytes], asked: str, expected: Expected) -> None:
    tree.lay(files)
    assert fields(found(tree, asked), expected) == expected


def test_a_folder_that_holds_an_interpreter(tree: Tree) -> None:
    tree.base("/home/me/.pyenv/versions/3.7.16", "3.7.16")
    assert found(tree, "/home/me/.pyenv/versions/3.7.16").prefix == "/home/me/.pyenv/versions/3.7.16"


def test_a_project_folder_is_answered_with_its_environment(tree: Tree) -> None:
    tree.venv("/project/.venv", "/usr/bin/python3.11")
    assert (found(tree, "/project").problem or "").endswith("; /project/.venv is one")


def test_a_base_that_is_gone_is_named(tree: Tree) -> None:
    tree.venv("/b", "/opt/old/bin/python3.9", "3.9.1")
    for asked in ("/b", "/b/bin/python"):
        place = found(tree, asked)
        assert (place.prefix, place.problem) == ("/b", "its base interpreter /opt/old/bin/python3.9 is gone")


def test_an_environment_laid_out_for_windows(tree: Tree) -> None:
    tree.lay({"/b/pyvenv.cfg": "home = C:\\Python311\n", "/b/Scripts/python.exe": b"MZ"})
    assert "laid out for Windows" in (found(tree, "/b").problem or "")


@cases("content, mode, sentence",
    (PROGRAM, 0o644, "it is not executable"),
    (b"#!/bin/sh\nexec python3\n", 0o755, "it is a script, which is never run here"),
    (b"hello", 0o755, "it is not a program for Linux"), (b"", 0o755, "it is not a program for Linux"),
    (b"MZ\x90\0", 0o755, "it is not a program for Linux"), (PROGRAM, 0o755, "it has lost its standard library"),
)  # fmt: skip
def test_a_program_that_is_no_working_interpreter(tree: Tree, content: bytes, mode: int, sentence: str) -> None:
    tree.file("/x/python3", content, mode)
    place = found(tree, "/x/python3")
    assert place.prefix is None
    assert (place.problem or "").startswith(sentence)


def test_a_pipe_is_never_opened(tree: Tree) -> None:
    tree.at("/x").mkdir()
    os.mkfifo(tree.at("/x/python3"), 0o755)
    assert found(tree, "/x/python3").problem == "it is not a file"


# --- pyenv --------------------------------------------------------------------------------------------------------
SHIMS = "/home/me/.pyenv/shims"


@pytest.fixture
def pyenv(tree: Tree) -> Tree:
    tree.program("/home/me/.pyenv/shims/python3", SHIM)
    for version in ("3.9.18", "3.11.7", "3.11.10", "3.12.1"):
        tree.base(f"/home/me/.pyenv/versions/{version}", version)
    tree.file("/home/me/.pyenv/version", "3.12.1\n")
    return tree


def chosen(tree: Tree, **variables: str) -> str:
    place = found(tree, f"{SHIMS}/python3", **variables)
    assert place.problem is None
    return (place.prefix or "").rpartition("/")[2]


@cases("about, files, selected, version",
    ("the version file of the root", {}, None, "3.12.1"),
    ("the nearest version file", {"/home/me/.python-version": "# chosen\n  3.9.18\n"}, None, "3.9.18"),
    ("not one above it", {"/home/me/.python-version": "3.9.18\n", "/home/.python-version": "3.11.7\n"}, None, "3.9.18"),
    ("the variable before a file", {"/home/me/.python-version": "3.9.18\n"}, "3.11.7", "3.11.7"),
    ("the newest of a minor", {}, "3.11", "3.11.10"),
    ("a name with python", {}, "python-3.9", "3.9.18"),
    ("the first that has the program", {"/home/me/.pyenv/versions/2.7.18/bin/python2": ""}, "2.7.18:3.9.18", "3.9.18"),
)  # fmt: skip
def test_what_a_shim_follows(
    pyenv: Tree, about: str, files: dict[str, str | bytes], selected: str | None, version: str
) -> None:
    pyenv.lay(files)
    assert chosen(pyenv, **({"PYENV_VERSION": selected} if selected else {})) == version


@cases("program, selected, expected",
    ("python3", "3.13.9", {"prefix": None, "problem": "pyenv selects 3.13.9 (PYENV_VERSION), which is not installed"}),
    ("python2", "3.9.18", {"problem": "pyenv selects 3.9.18 (PYENV_VERSION), which holds no python2"}),
    ("python3", "system", {"system": True, "problem": f"the pyenv shim {SHIMS}/python3 selects no version"}),
)  # fmt: skip
def test_a_version_that_pyenv_does_not_have(pyenv: Tree, program: str, selected: str, expected: Expected) -> None:
    pyenv.program(f"{SHIMS}/python2", SHIM)
    assert fields(found(pyenv, f"{SHIMS}/{program}", PYENV_VERSION=selected), expected) == expected


def test_without_any_choice_the_system_decides(pyenv: Tree) -> None:
    pyenv.at("/home/me/.pyenv/version").unlink()
    assert found(pyenv, f"{SHIMS}/python3").system


def test_a_version_cannot_lead_out_of_the_versions_folder(pyenv: Tree) -> None:
    place = found(pyenv, f"{SHIMS}/python3", PYENV_VERSION="../../../../usr")
    assert place.prefix is None
    assert "not installed" in (place.problem or "")


# --- Every way to name an environment -------------------------------------------------------------------------------
Damage = Callable[[Tree], object]

VENV = "/srv/app/.venv"
CONFIGURATION = f"{VENV}/pyvenv.cfg"
SITE = f"{VENV}/lib/python3.11/site-packages"

BY_OPTION = {
    "folder": VENV, "trailing slash": f"{VENV}/", "python": f"{VENV}/bin/python", "python3": f"{VENV}/bin/python3",
    "launcher": f"{VENV}/bin/tool", "link to the folder": "/links/venv", "link to python": "/links/python",
    "link to python3": "/links/python3", "through a link": "/links/venv/bin/python", "relative": ".venv",
    "relative, dot and slash": "./.venv/", "relative, up": "../app/.venv", "relative program": ".venv/bin/python3",
    "name": "python3", "other name": "python",
}  # fmt: skip
BY_VARIABLE = {
    "VIRTUAL_ENV": {"VIRTUAL_ENV": VENV}, "VIRTUAL_ENV, a link": {"VIRTUAL_ENV": "/links/venv"},
    "CONDA_PREFIX": {"CONDA_PREFIX": VENV, "CONDA_DEFAULT_ENV": "mine"},
    "UV_PROJECT_ENVIRONMENT": {"UV_PROJECT_ENVIRONMENT": VENV}, "PATH": {"PATH": f"{VENV}/bin:/usr/bin"},
}  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {
    **{
        how: {"python": [text], "cwd": "/srv/app", "variables": {"PATH": f"{VENV}/bin:/usr/bin"}}
        for how, text in BY_OPTION.items()
    },
    **{how: {"variables": {"PATH": "/usr/bin", **variables}} for how, variables in BY_VARIABLE.items()},
    "./.venv": {"cwd": "/srv/app", "variables": {"PATH": "/usr/bin"}},
}
BY_THE_SHELL = ("name", "other name", "PATH")
"""Ways that name no place: a shell goes on to the next folder where nothing is left in this one."""


def without(*paths: str) -> Damage:
    def damage(tree_names: Tree) -> None:
        for place in map(tree_names.at, paths):
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()

    return damage


def instead(path: str, put: Damage) -> Damage:
    def damage(tree_names: Tree) -> None:
        without(path)(tree_names)
        put(tree_names)

    return damage


CLOSED = "its pyvenv.cfg is closed"
GONE = {"it is gone", "it is a file", "it is an empty folder"}
RECOGNIZED = {"whole", "its pyvenv.cfg is empty", "its pyvenv.cfg is binary", "it has no home", "its home is gone"}
"""Python starts in it, by the link to its base (tried with CPython 3.11)."""
DAMAGES: dict[str, Damage] = {
    "whole": lambda _tree: None,
    "its pyvenv.cfg is empty": lambda tree_names: tree_names.file(CONFIGURATION),
    "its pyvenv.cfg is binary": lambda tree_names: tree_names.file(CONFIGURATION, b"\x00\xff\n" * 50),
    "it has no home": lambda tree_names: tree_names.file(CONFIGURATION, "version = 3.11.7\n"),
    "its home is gone": lambda tree_names: tree_names.file(CONFIGURATION, "home = /nowhere/bin\nversion = 3.11.7\n"),
    "its pyvenv.cfg is gone": without(CONFIGURATION),
    "its pyvenv.cfg is a folder": instead(CONFIGURATION, lambda tree_names: tree_names.at(CONFIGURATION).mkdir()),
    "its pyvenv.cfg is a pipe": instead(CONFIGURATION, lambda tree_names: os.mkfifo(tree_names.at(CONFIGURATION))),
    "its pyvenv.cfg is a device": instead(CONFIGURATION,
        lambda tree_names: tree_names.link(CONFIGURATION, "/dev/null")),
    "its pyvenv.cfg is a circle": instead(CONFIGURATION,
        lambda tree_names: tree_names.link(CONFIGURATION, "pyvenv.cfg")),
    "its pyvenv.cfg dangles": instead(CONFIGURATION, lambda tree_names: tree_names.link(CONFIGURATION, "nowhere")),
    CLOSED: lambda tree_names: tree_names.at(CONFIGURATION).chmod(0),
    "its base is gone": instead(f"{VENV}/bin/python3",
        lambda tree_names: tree_names.link(f"{VENV}/bin/python3", "/nowhere/python3.11")),
    "its python is a circle": instead(f"{VENV}/bin/python3",
        lambda tree_names: tree_names.link(f"{VENV}/bin/python3", "python3")),
    "its python is gone": without(f"{VENV}/bin/python", f"{VENV}/bin/python3"),
    "its bin is gone": without(f"{VENV}/bin"),
    "its lib is gone": without(f"{VENV}/lib"),
    "its packages are gone": without(SITE),
    "its packages are a pipe": instead(SITE, lambda tree_names: os.mkfifo(tree_names.at(SITE))),
    "its pyvenv.cfg and python are gone": without(CONFIGURATION, f"{VENV}/bin/python", f"{VENV}/bin/python3"),
    "its pyvenv.cfg and lib are gone": without(CONFIGURATION, f"{VENV}/lib"),
    "it is gone": without(VENV),
    "it is a file": instead(VENV, lambda tree_names: tree_names.file(VENV)),
    "it is an empty folder": instead(VENV, lambda tree_names: tree_names.at(VENV).mkdir()),
}  # fmt: skip


@pytest.fixture
def tree_names(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    base = made.base("/usr", "3.11.7")
    made.link("/usr/bin/python", "python3")
    made.torch("/usr/lib/python3.11/site-packages", "torch-2.5.1")
    made.torch(made.venv(VENV, base))
    made.file(f"{VENV}/bin/activate")
    made.program(f"{VENV}/bin/tool", f"#!{VENV}/bin/python3\nimport sys\n")
    for name, target in (("venv", VENV), ("python", f"{VENV}/bin/python"), ("python3", f"{VENV}/bin/python3")):
        made.link(f"/links/{name}", target)
    for place in (tmp_path, *list(tmp_path.parents)[:-2]):
        place.chmod(place.stat().st_mode | 0o055)
    return made


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_named_is_judged_or_nothing_passes(damage: str, tree_names: Tree, run_probe: RunProbe) -> None:
    if damage == CLOSED and os.geteuid() == 0:
        user: Any = as_nobody
    else:
        user = nullcontext
    DAMAGES[damage](tree_names)
    for how, way in WAYS.items():
        REFUSED.clear()
        view = tree_names.view(**way)
        with user():
            snapshot, _ = run_probe("environments", view)
            report = judge(snapshot, Request(scopes=frozenset({"env"}), tried=True))
        judged = judged_in(report)
        beside_the_point = judged == "/usr" and how in BY_THE_SHELL and (damage in GONE or "python are" in damage)
        absent = judged == "/usr" and how == "./.venv" and damage in {"it is gone", "it is an empty folder"}
        linked = how in ("link to python", "link to python3")
        if damage in RECOGNIZED and not linked:
            assert (judged, report.verdict) == (VENV, "warn"), how  # what torch requires is not installed
        elif not (beside_the_point or absent):
            assert judged != "/usr", how
            assert report.verdict in ({"fail"} if damage == "its pyvenv.cfg is gone" else {"unknown", "fail"}), how


def judged_in(report: Report) -> str:
    assert report.snapshot
    assert report.snapshot.environments
    first = report.snapshot.environments.items[0]
    assert first.judged
    return first.prefix or first.key


CONDA = "/opt/conda/envs/x"
OF_CONDA: dict[str, Damage] = {
    "its lib is gone": without(f"{CONDA}/lib"),
    "its standard library is gone": without(f"{CONDA}/lib/python3.11/os.py"),
    "its packages are gone": without(f"{CONDA}/lib/python3.11/site-packages"),
    "its records and lib are gone": without(f"{CONDA}/conda-meta", f"{CONDA}/lib"),
    "its records and standard library are gone": without(f"{CONDA}/conda-meta", f"{CONDA}/lib/python3.11/os.py"),
}


@pytest.mark.parametrize("damage", OF_CONDA)
def test_an_environment_inside_another_installation(damage: str, tree_names: Tree, run_probe: RunProbe) -> None:
    """Python searches the folders above it for a standard library, and finds that of conda's base."""
    for prefix in ("/opt/conda", CONDA):
        tree_names.base(prefix)
        tree_names.torch(f"{prefix}/lib/python3.11/site-packages")
        tree_names.file(f"{prefix}/conda-meta/python-3.11.7-h1.json", "{}")
    OF_CONDA[damage](tree_names)
    active = {"CONDA_PREFIX": CONDA, "CONDA_DEFAULT_ENV": "x", "PATH": f"{CONDA}/bin:/opt/conda/bin:/usr/bin"}
    ways: list[dict[str, Any]] = [{"python": [path]} for path in (CONDA, f"{CONDA}/bin/python3")]
    for way in (*ways, {"variables": active}, {"variables": {"PATH": active["PATH"]}}):
        REFUSED.clear()
        snapshot, _ = run_probe("environments", tree_names.view(**way))
        report = judge(snapshot, Request(scopes=frozenset({"env"}), tried=True))
        assert judged_in(report) == CONDA, way
        assert report.verdict in ("unknown", "fail"), way
