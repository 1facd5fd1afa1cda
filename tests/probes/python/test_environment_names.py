"""Every way to name an environment, with every damage to it: what was named is judged, or there is no pass.

Beside it lies a base interpreter with the same framework, which must never be judged in its place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from envcheck.checks import Report
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.snapshot import Snapshot
from probes.kit.tree import REFUSED
from tests.probes.environment_trees import Tree
from tests.probes.other_user import as_nobody

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
Damage = Callable[[Tree], object]

VENV = "/srv/app/.venv"
CONFIGURATION = f"{VENV}/pyvenv.cfg"
SITE = f"{VENV}/lib/python3.11/site-packages"

BY_OPTION = {
    "folder": VENV,
    "trailing slash": f"{VENV}/",
    "python": f"{VENV}/bin/python",
    "python3": f"{VENV}/bin/python3",
    "launcher": f"{VENV}/bin/tool",
    "link to the folder": "/links/venv",
    "link to python": "/links/python",
    "link to python3": "/links/python3",
    "through a link": "/links/venv/bin/python",
    "relative": ".venv",
    "relative, dot and slash": "./.venv/",
    "relative, up": "../app/.venv",
    "relative program": ".venv/bin/python3",
    "name": "python3",
    "other name": "python",
}
BY_VARIABLE = {
    "VIRTUAL_ENV": {"VIRTUAL_ENV": VENV},
    "VIRTUAL_ENV, a link": {"VIRTUAL_ENV": "/links/venv"},
    "CONDA_PREFIX": {"CONDA_PREFIX": VENV, "CONDA_DEFAULT_ENV": "mine"},
    "UV_PROJECT_ENVIRONMENT": {"UV_PROJECT_ENVIRONMENT": VENV},
    "PATH": {"PATH": f"{VENV}/bin:/usr/bin"},
}
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
    def damage(tree: Tree) -> None:
        for place in map(tree.at, paths):
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()

    return damage


def instead(path: str, put: Damage) -> Damage:
    def damage(tree: Tree) -> None:
        without(path)(tree)
        put(tree)

    return damage


CLOSED = "its pyvenv.cfg is closed"
GONE = {"it is gone", "it is a file", "it is an empty folder"}
RECOGNIZED = {"whole", "its pyvenv.cfg is empty", "its pyvenv.cfg is binary", "it has no home", "its home is gone"}
"""Python starts in it, by the link to its base (tried with CPython 3.11)."""
DAMAGES: dict[str, Damage] = {
    "whole": lambda _tree: None,
    "its pyvenv.cfg is empty": lambda tree: tree.file(CONFIGURATION),
    "its pyvenv.cfg is binary": lambda tree: tree.file(CONFIGURATION, b"\x00\xff\n" * 50),
    "it has no home": lambda tree: tree.file(CONFIGURATION, "version = 3.11.7\n"),
    "its home is gone": lambda tree: tree.file(CONFIGURATION, "home = /nowhere/bin\nversion = 3.11.7\n"),
    "its pyvenv.cfg is gone": without(CONFIGURATION),
    "its pyvenv.cfg is a folder": instead(CONFIGURATION, lambda tree: tree.at(CONFIGURATION).mkdir()),
    "its pyvenv.cfg is a pipe": instead(CONFIGURATION, lambda tree: os.mkfifo(tree.at(CONFIGURATION))),
    "its pyvenv.cfg is a device": instead(CONFIGURATION, lambda tree: tree.link(CONFIGURATION, "/dev/null")),
    "its pyvenv.cfg is a circle": instead(CONFIGURATION, lambda tree: tree.link(CONFIGURATION, "pyvenv.cfg")),
    "its pyvenv.cfg dangles": instead(CONFIGURATION, lambda tree: tree.link(CONFIGURATION, "nowhere")),
    CLOSED: lambda tree: tree.at(CONFIGURATION).chmod(0),
    "its base is gone": instead(
        f"{VENV}/bin/python3", lambda tree: tree.link(f"{VENV}/bin/python3", "/nowhere/python3.11")
    ),
    "its python is a circle": instead(f"{VENV}/bin/python3", lambda tree: tree.link(f"{VENV}/bin/python3", "python3")),
    "its python is gone": without(f"{VENV}/bin/python", f"{VENV}/bin/python3"),
    "its bin is gone": without(f"{VENV}/bin"),
    "its lib is gone": without(f"{VENV}/lib"),
    "its packages are gone": without(SITE),
    "its packages are a pipe": instead(SITE, lambda tree: os.mkfifo(tree.at(SITE))),
    "its pyvenv.cfg and python are gone": without(CONFIGURATION, f"{VENV}/bin/python", f"{VENV}/bin/python3"),
    "its pyvenv.cfg and lib are gone": without(CONFIGURATION, f"{VENV}/lib"),
    "it is gone": without(VENV),
    "it is a file": instead(VENV, lambda tree: tree.file(VENV)),
    "it is an empty folder": instead(VENV, lambda tree: tree.at(VENV).mkdir()),
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
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
def test_what_was_named_is_judged_or_nothing_passes(damage: str, tree: Tree, run_probe: RunProbe) -> None:
    if damage == CLOSED and os.geteuid() == 0:
        user: Any = as_nobody
    else:
        user = nullcontext
    DAMAGES[damage](tree)
    for how, way in WAYS.items():
        REFUSED.clear()
        view = tree.view(**way)
        with user():
            snapshot, _ = run_probe("environments", view)
            report = judge(snapshot, Request(scopes=frozenset({"env"})))
        judged = judged_in(report)
        beside_the_point = judged == "/usr" and how in BY_THE_SHELL and (damage in GONE or "python are" in damage)
        absent = judged == "/usr" and how == "./.venv" and damage in {"it is gone", "it is an empty folder"}
        linked = how in ("link to python", "link to python3")
        if damage in RECOGNIZED and not linked:
            assert (judged, report.verdict) == (VENV, "warn"), how  # what torch requires is not installed
        elif not (beside_the_point or absent):
            assert judged != "/usr", how
            assert report.verdict in ("unknown", "fail"), how


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
def test_an_environment_inside_another_installation(damage: str, tree: Tree, run_probe: RunProbe) -> None:
    """Python searches the folders above it for a standard library, and finds that of conda's base."""
    for prefix in ("/opt/conda", CONDA):
        tree.base(prefix)
        tree.torch(f"{prefix}/lib/python3.11/site-packages")
        tree.file(f"{prefix}/conda-meta/python-3.11.7-h1.json", "{}")
    OF_CONDA[damage](tree)
    active = {"CONDA_PREFIX": CONDA, "CONDA_DEFAULT_ENV": "x", "PATH": f"{CONDA}/bin:/opt/conda/bin:/usr/bin"}
    ways: list[dict[str, Any]] = [{"python": [path]} for path in (CONDA, f"{CONDA}/bin/python3")]
    for way in (*ways, {"variables": active}, {"variables": {"PATH": active["PATH"]}}):
        REFUSED.clear()
        snapshot, _ = run_probe("environments", tree.view(**way))
        report = judge(snapshot, Request(scopes=frozenset({"env"})))
        assert judged_in(report) == CONDA, way
        assert report.verdict in ("unknown", "fail"), way
