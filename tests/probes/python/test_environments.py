"""Which environment is judged, which others are named, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import Environment
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
        assert snapshot.environments is not None
        assert snapshot.environments.complete
        assert [item.judged for item in snapshot.environments.items].count(True) == 1
        return snapshot.environments.items

    return run


Examined = Callable[..., tuple[Environment, ...]]


def test_python_option_judges_the_first_and_names_the_others(tree: Tree, examined: Examined) -> None:
    tree.torch(tree.venv("/a", "/usr/bin/python3.11"))
    tree.venv("/b", "/usr/bin/python3.11")
    first, second = examined(python=["/a/bin/python", "/b"], variables={"VIRTUAL_ENV": "/b"})
    assert (first.key, first.why, first.judged) == ("/a", "--python", True)
    assert (second.key, second.why, second.judged) == ("/b", "--python", False)


def test_an_environment_named_twice_is_listed_once(tree: Tree, examined: Examined) -> None:
    tree.torch(tree.venv("/a", "/usr/bin/python3.11"))
    assert len(examined(python=["/a", "/a/bin/python3"])) == 1


def test_virtual_env_comes_before_conda_prefix(tree: Tree, examined: Examined) -> None:
    tree.torch(tree.venv("/a", "/usr/bin/python3.11"))
    tree.base("/conda/envs/c")
    items = examined(variables={"VIRTUAL_ENV": "/a", "CONDA_PREFIX": "/conda/envs/c"})
    assert [(item.key, item.why) for item in items] == [("/a", "VIRTUAL_ENV")]


def test_a_named_conda_environment_comes_before_the_folder(tree: Tree, examined: Examined) -> None:
    tree.torch(tree.base("/conda/envs/c").replace("/bin/python3.11", "/lib/python3.11/site-packages"))
    tree.torch(tree.venv("/home/me/.venv", "/usr/bin/python3.11"))
    (item,) = examined(variables={"CONDA_PREFIX": "/conda/envs/c", "CONDA_DEFAULT_ENV": "c"})
    assert (item.key, item.why) == ("/conda/envs/c", "CONDA_PREFIX")


def test_conda_base_comes_after_the_folder_and_before_path(tree: Tree, examined: Examined) -> None:
    tree.base("/conda")
    variables = {"CONDA_PREFIX": "/conda", "CONDA_DEFAULT_ENV": "base", "PATH": "/usr/bin"}
    assert examined(variables=variables)[0].why == "CONDA_PREFIX"
    tree.venv("/home/me/.venv", "/usr/bin/python3.11")
    assert examined(variables=variables)[0].why == "./.venv"


def test_a_folder_called_venv_that_is_none_is_passed_over(tree: Tree, examined: Examined) -> None:
    tree.file("/home/me/.venv/notes.txt")
    assert examined(variables={"PATH": "/usr/bin"})[0].why == "PATH"


def test_path_is_searched_outside_the_environment_of_envcheck(tree: Tree, examined: Examined) -> None:
    items = examined(variables={"PATH": "/opt/envcheck/bin:/nowhere::/usr/bin"})
    assert [(item.key, item.why, item.executable) for item in items] == [("/usr", "PATH", "/usr/bin/python3")]


def test_the_environment_of_envcheck_counts_on_path_when_it_holds_a_framework(tree: Tree, examined: Examined) -> None:
    tree.torch("/opt/envcheck/lib/python3.11/site-packages")
    items = examined(variables={"PATH": "/opt/envcheck/bin:/usr/bin"})
    assert [(item.key, item.why, item.judged) for item in items] == [("/opt/envcheck", "PATH", True)]


def test_the_environment_of_envcheck_is_the_last_resort(examined: Examined) -> None:
    assert [(item.key, item.why) for item in examined()] == [("/opt/envcheck", "envcheck")]


def test_another_environment_is_named_when_the_judged_one_has_no_framework(tree: Tree, examined: Examined) -> None:
    tree.venv("/a", "/usr/bin/python3.11")
    tree.torch(tree.venv("/home/me/.venv", "/usr/bin/python3.11"))
    tree.torch("/opt/envcheck/lib/python3.11/site-packages")
    judged, named = examined(variables={"VIRTUAL_ENV": "/a", "PATH": "/usr/bin"})
    assert (judged.key, judged.judged) == ("/a", True)
    assert (named.key, named.why, named.judged) == ("/home/me/.venv", "./.venv", False)
    assert named.frameworks
    assert named.frameworks.items[0].version == "2.5.1+cu124"


def test_another_environment_is_named_beside_those_asked_for(tree: Tree, examined: Examined) -> None:
    tree.venv("/a", "/usr/bin/python3.11")
    tree.torch(tree.venv("/b", "/usr/bin/python3.11"))
    items = examined(python=["/a"], variables={"VIRTUAL_ENV": "/b"})
    assert [(item.key, item.why, item.judged) for item in items] == [
        ("/a", "--python", True),
        ("/b", "VIRTUAL_ENV", False),
    ]


def test_an_environment_that_is_gone_is_still_the_one_that_was_meant(examined: Examined) -> None:
    item = examined(variables={"VIRTUAL_ENV": "/gone", "PATH": "/usr/bin"})[0]
    assert (item.key, item.judged, item.problem) == ("/gone", True, "it does not exist")
    assert item.distributions is None
    assert item.frameworks is None


def test_a_machine_without_any_python(tmp_path: Path, run_probe: RunProbe) -> None:
    snapshot, done = run_probe("environments", Tree(tmp_path).view(own_prefix=""))
    assert done == {"status": "absent", "detail": "no Python environment was found"}
    assert snapshot.environments is not None
    assert snapshot.environments.items == ()
    assert snapshot.environments.complete


def test_a_name_is_looked_up_on_path(tree: Tree, examined: Examined) -> None:
    (item,) = examined(python=["python3.11"], variables={"PATH": "/opt/envcheck/bin:/usr/bin"})
    assert (item.key, item.executable) == ("/usr", "/usr/bin/python3.11")


def test_a_name_that_is_nowhere(examined: Examined) -> None:
    (item,) = examined(python=["python9"], variables={"PATH": "/usr/bin"})
    assert (item.key, item.problem) == ("python9", "it is neither in the current folder nor on PATH")


def test_a_name_that_is_a_folder_here(tree: Tree, examined: Examined) -> None:
    tree.venv("/home/me/env", "/usr/bin/python3.11")
    assert examined(python=["env"])[0].key == "/home/me/env"
    assert examined(python=["./env"])[0].key == "/home/me/env"
    assert examined(python=["~/env"])[0].key == "/home/me/env"


def test_another_bare_framework_free_environment_is_not_named(tree: Tree, examined: Examined) -> None:
    tree.venv("/a", "/usr/bin/python3.11")
    assert [item.key for item in examined(variables={"VIRTUAL_ENV": "/a", "PATH": "/usr/bin"})] == ["/a"]
