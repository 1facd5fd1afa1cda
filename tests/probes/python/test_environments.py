"""Which environment is judged, which others are named, and why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import Environment
from tests.every import cases
from tests.known import Expected, fields, known
from tests.probes.conftest import RunProbe
from tests.probes.environment_trees import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A machine with a system Python, and envcheck in a place of its own."""
    made = Tree(tmp_path)
    made.base("/usr", "3.11.2", site="dist-packages")
    made.venv("/opt/envcheck", "/usr/bin/python3.11", "3.11.2")
    return made


@pytest.fixture
def examined(tree: Tree, run_probe: RunProbe) -> Callable[..., tuple[Environment, ...]]:
    def run(**changes: Any) -> tuple[Environment, ...]:
        snapshot, done = run_probe("environments", tree.view(**changes))
        assert done["status"] == "ok"
        environments = known(snapshot.environments)
        assert environments.complete
        assert [item.judged for item in environments.items].count(True) == 1
        return environments.items

    return run


Examined = Callable[..., tuple[Environment, ...]]
MINE, CONDA = "/home/me/.venv", "/conda/envs/c"
NAMED = {"CONDA_PREFIX": CONDA, "CONDA_DEFAULT_ENV": "c"}
BASE = {"CONDA_PREFIX": "/conda", "CONDA_DEFAULT_ENV": "base", "PATH": "/usr/bin"}


@cases("about, made, asked, expected",
    ("--python judges the first and names the others", ["/a torch", "/b"],
     {"python": ["/a/bin/python", "/b"], "variables": {"VIRTUAL_ENV": "/b"}},
     {"key": ("/a", "/b"), "why": ("--python", "--python"), "judged": (True, False)}),
    ("an environment named twice is listed once", ["/a torch"], {"python": ["/a", "/a/bin/python3"]}, {"key": ("/a",)}),
    ("VIRTUAL_ENV comes before CONDA_PREFIX", ["/a torch", f"{CONDA} base"],
     {"variables": {"VIRTUAL_ENV": "/a", "CONDA_PREFIX": CONDA}}, {"key": ("/a",), "why": ("VIRTUAL_ENV",)}),
    ("a named conda environment comes before the folder", [f"{CONDA} base torch", f"{MINE} torch"],
     {"variables": NAMED}, {"key": (CONDA,), "why": ("CONDA_PREFIX",)}),
    ("conda's base comes before PATH", ["/conda base"], {"variables": BASE}, {"why": ("CONDA_PREFIX",)}),
    ("and after the folder", ["/conda base", MINE], {"variables": BASE}, {"why": ("./.venv",)}),
    ("PATH is searched outside the environment of envcheck", [],
     {"variables": {"PATH": "/opt/envcheck/bin:/nowhere::/usr/bin"}},
     {"key": ("/usr",), "why": ("PATH",), "executable": ("/usr/bin/python3",)}),
    ("that of envcheck counts on PATH when it holds a framework", ["/opt/envcheck torch"],
     {"variables": {"PATH": "/opt/envcheck/bin:/usr/bin"}},
     {"key": ("/opt/envcheck",), "why": ("PATH",), "judged": (True,)}),
    ("that of envcheck is the last resort", [], {}, {"key": ("/opt/envcheck",), "why": ("envcheck",)}),
    ("another is named when the judged one has no framework", ["/a", f"{MINE} torch", "/opt/envcheck torch"],
     {"variables": {"VIRTUAL_ENV": "/a", "PATH": "/usr/bin"}},
     {"key": ("/a", MINE), "judged": (True, False), "why": ("VIRTUAL_ENV", "./.venv"),
      "frameworks.items.version": ((), ("2.5.1+cu124",))}),
    ("another is named beside those asked for", ["/a", "/b torch"],
     {"python": ["/a"], "variables": {"VIRTUAL_ENV": "/b"}},
     {"key": ("/a", "/b"), "why": ("--python", "VIRTUAL_ENV"), "judged": (True, False)}),
    ("a name is looked up on PATH", [], {"python": ["python3.11"], "variables": {"PATH": "/opt/envcheck/bin:/usr/bin"}},
     {"key": ("/usr",), "executable": ("/usr/bin/python3.11",)}),
    ("a name that is nowhere", [], {"python": ["python9"], "variables": {"PATH": "/usr/bin"}},
     {"key": ("python9",), "problem": ("it is neither in the current folder nor on PATH",)}),
    *((f"a name that is a folder here: {name}", ["/home/me/env"], {"python": [name]}, {"key": ("/home/me/env",)})
      for name in ("env", "./env", "~/env")),
    ("another without a framework is not named", ["/a"], {"variables": {"VIRTUAL_ENV": "/a", "PATH": "/usr/bin"}},
     {"key": ("/a",)}),
)  # fmt: skip
def test_which_are_listed(
    tree: Tree, examined: Examined, about: str, made: list[str], asked: dict[str, Any], expected: Expected
) -> None:
    """``made`` are virtual environments, or base installations, each of which may hold a PyTorch."""
    for place, *what in map(str.split, made):
        site = f"{place}/lib/python3.11/site-packages"
        if "base" in what:
            tree.base(place)
        elif place != "/opt/envcheck":
            tree.venv(place, "/usr/bin/python3.11")
        if "torch" in what:
            tree.torch(site)
    assert fields(examined(**asked), expected) == expected


def test_a_folder_called_venv_that_is_none_is_passed_over(tree: Tree, examined: Examined) -> None:
    tree.file("/home/me/.venv/notes.txt")
    assert examined(variables={"PATH": "/usr/bin"})[0].why == "PATH"


def test_an_environment_that_is_gone_is_still_the_one_that_was_meant(examined: Examined) -> None:
    item = examined(variables={"VIRTUAL_ENV": "/gone", "PATH": "/usr/bin"})[0]
    assert (item.key, item.judged, item.problem) == ("/gone", True, "it does not exist")
    assert (item.distributions, item.frameworks) == (None, None)


def test_a_machine_without_any_python(tmp_path: Path, run_probe: RunProbe) -> None:
    snapshot, done = run_probe("environments", Tree(tmp_path).view(own_prefix=""))
    assert done == {"status": "absent", "detail": "no Python environment was found"}
    environments = known(snapshot.environments)
    assert (environments.items, environments.complete) == ((), True)
