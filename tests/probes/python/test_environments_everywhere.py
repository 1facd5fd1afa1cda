"""``--all-envs``: every environment in the known places, and the first stays the one that is judged."""

from typing import Any

import pytest

from envcheck.model.snapshot import Environment, Listing
from probes.files.installations import examined
from tests.known import known
from tests.probes.conftest import RunProbe
from tests.probes.environment_trees import PROGRAM, Tree

HOME = "/home/me"


def listed(tree: Tree, run_probe: RunProbe, **request: Any) -> Listing[Environment]:
    request = {"own_prefix": None, **request}
    snapshot, _ = run_probe("environments", tree.view(all_envs=True, **request), sourced=False)
    return known(snapshot.environments)


def test_environments_of_every_kind(tree: Tree, run_probe: RunProbe) -> None:
    base = tree.base("/usr")
    places = {
        f"{HOME}/.venv": "./.venv", f"{HOME}/project/venv": "--all-envs", f"{HOME}/project/.venv": "--all-envs",
        f"{HOME}/direct": "--all-envs", f"{HOME}/.virtualenvs/old": "--all-envs",
        f"{HOME}/.local/share/virtualenvs/p-abc": "--all-envs", "/opt/venv": "--all-envs",
        "/opt/torch/.venv-like/x": None, "/opt/torch/env": "--all-envs", "/app/.venv": "--all-envs",
        "/elsewhere/deep/venv": None,
    }  # fmt: skip
    for place in places:
        tree.venv(place, base)
    pixi = f"{HOME}/project/.pixi/envs/default"
    conda = ("/opt/conda", "/opt/conda/envs/ml", pixi, "/data/named", f"{HOME}/miniforge3/envs/jax")
    for prefix in conda:
        tree.base(prefix)
        tree.file(f"{prefix}/conda-meta/history")
    tree.file(f"{HOME}/.conda/environments.txt", "/data/named\n/data/gone\nrelative\n")
    for prefix in (f"{HOME}/.pyenv/versions/3.12.1", f"{HOME}/.local/share/uv/python/cpython-3.13.0-linux-x86_64-gnu"):
        tree.base(prefix, "3.12.1")
    tree.program("/usr/local/bin/python3.9", PROGRAM)
    tree.base("/usr/local", "3.9.18")
    found = {item.key: item for item in listed(tree, run_probe, variables={"PATH": "/usr/bin:/usr/local/bin"}).items}
    assert {key: item.why for key, item in found.items()} == {
        **{key: why for key, why in places.items() if why}, **dict.fromkeys(conda, "--all-envs"),
        f"{HOME}/.pyenv/versions/3.12.1": "--all-envs",
        f"{HOME}/.local/share/uv/python/cpython-3.13.0-linux-x86_64-gnu": "--all-envs", "/usr": "PATH",
        "/usr/local": "--all-envs",
    }  # fmt: skip
    assert [item.key for item in found.values() if item.judged] == [f"{HOME}/.venv"]
    assert found[pixi].manager == "conda"


def test_what_python_names_is_judged_and_the_rest_is_listed(tree: Tree, run_probe: RunProbe) -> None:
    base = tree.base("/usr")
    tree.venv(f"{HOME}/.venv", base)
    tree.venv("/srv/named", base)
    found = listed(tree, run_probe, python=["/srv/named"])
    assert [(item.key, item.judged) for item in found.items] == [
        ("/srv/named", True), (f"{HOME}/.venv", False), ("/usr", False),
    ]  # fmt: skip
    assert found.complete


def test_the_environment_of_envcheck_is_listed_though_it_was_passed_over(tree: Tree, run_probe: RunProbe) -> None:
    base = tree.base("/usr")
    tree.venv("/opt/tool/envcheck", base)
    tree.venv("/srv/other", base)
    variables = {"PATH": "/opt/tool/envcheck/bin:/srv/other/bin"}
    found = listed(tree, run_probe, own_prefix="/opt/tool/envcheck", variables=variables)
    assert [item.key for item in found.items if item.judged] == ["/srv/other"]
    assert "/opt/tool/envcheck" in {item.key for item in found.items}


def test_a_shim_that_selects_nothing_is_no_environment(tree: Tree, run_probe: RunProbe) -> None:
    tree.base("/usr")
    shim = '#!/usr/bin/env bash\nexport PYENV_ROOT="/py"\nexec "/py/libexec/pyenv" exec "$program" "$@"\n'
    tree.program("/py/shims/python3.10", shim)
    assert [item.key for item in listed(tree, run_probe, variables={"PATH": "/py/shims:/usr/bin"}).items] == ["/usr"]


def test_without_the_option_the_known_places_are_left_alone(tree: Tree, run_probe: RunProbe) -> None:
    base = tree.base("/usr")
    tree.venv(f"{HOME}/.venv", base)
    tree.venv("/opt/venv", base)
    snapshot, _ = run_probe("environments", tree.view(), sourced=False)
    assert [item.key for item in known(snapshot.environments).items] == [f"{HOME}/.venv"]


def test_out_of_time_the_list_is_not_complete(tree: Tree, run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tree.base("/usr")
    for number in range(5):
        tree.venv(f"{HOME}/p{number}/venv", base)
    assert listed(tree, run_probe).complete
    monkeypatch.setattr(examined, "_MOST", 2)
    found = listed(tree, run_probe)
    assert (len(found.items), found.complete) == (2, False)


def test_links_that_lead_in_circles_end(tree: Tree, run_probe: RunProbe) -> None:
    base = tree.base("/usr")
    tree.link(f"{HOME}/loop", ".")
    tree.link("/opt/loop", "/opt")
    tree.link(f"{HOME}/.conda/environments.txt", "environments.txt")
    tree.venv(f"{HOME}/.venv", base)
    assert {item.key for item in listed(tree, run_probe).items} == {f"{HOME}/.venv", "/usr"}


def test_both_probes_examine_once(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.venv(f"{HOME}/.venv", tree.base("/usr"))
    view = tree.view()
    first = examined.examined(view)
    monkeypatch.setattr(examined, "_examined", None)
    assert examined.examined(view) is first
    assert [record["key"] for record in first] == [f"{HOME}/.venv"]
    assert first.complete


def test_one_that_cannot_be_examined_leaves_the_list_incomplete(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.venv(f"{HOME}/.venv", tree.base("/usr"))
    monkeypatch.setattr(examined, "read_layout", None)
    found = examined.examined(tree.view())
    assert (list(found), found.complete) == ([], False)
