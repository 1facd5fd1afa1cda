"""What a reader does not understand leaves no verdict: wherever it stands, and whatever else the plan installs."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from envcheck.errors import UsageError
from tests.every import cases
from tests.plans.reading import judge, plan, sample
from tests.thorough import examples

H100 = "gpu==H100,driver==580.65.06"

_REQUIREMENTS = """--extra-index-url https://download.pytorch.org/whl/cu124
# the model
torch==2.5.1 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
numpy==1.26.4  # pinned
tqdm>=4 ; python_version >= "3.9"
"""
_PROJECT = {
    "project": {
        "name": "app",
        "dependencies": ["torch==2.5.1", "numpy==1.26.4", "app[fast]"],
        "optional-dependencies": {"fast": ["tqdm>=4"]},
    },
    "dependency-groups": {"dev": ["pytest", {"include-group": "docs"}], "docs": ["sphinx"]},
    "tool": {"uv": {"dev-dependencies": ["ruff"]}, "hatch": {"envs": {"default": {"dependencies": ["coverage"]}}}},
}
_POETRY = {
    "tool": {
        "poetry": {
            "dependencies": {"python": "^3.10", "torch": "2.5.1", "numpy": {"version": "^1.26", "extras": ["x"]}},
            "group": {"dev": {"dependencies": {"pytest": "*"}}},
        }
    }
}
_UV_LOCK = {
    "version": 1,
    "package": [
        {
            "name": "app",
            "source": {"virtual": "."},
            "dependencies": [{"name": "torch"}],
            "dev-dependencies": {"dev": [{"name": "numpy", "marker": "os_name == 'posix'"}]},
        },
        {"name": "numpy", "version": "1.26.4", "source": {"registry": "https://pypi.org/simple"}},
        {"name": "torch", "version": "2.5.1", "source": {"registry": "https://pypi.org/simple"}},
    ],
}
_POETRY_LOCK = {
    "package": [
        {"name": "torch", "version": "2.5.1", "groups": ["main"], "optional": False},
        {"name": "numpy", "version": "1.26.4", "groups": ["main", "dev"], "markers": "os_name == 'posix'"},
    ]
}
_PYLOCK = {
    "lock-version": "1.0",
    "created-by": "test",
    "packages": [
        {"name": name, "version": version, "sdist": {"path": f"{name}-{version}.tar.gz", "hashes": {"md5": "a"}}}
        for name, version in (("torch", "2.5.1"), ("numpy", "1.26.4"))
    ],
}
_PIPFILE_LOCK = {
    "default": {
        "torch": {"version": "==2.5.1"},
        "numpy": {"version": "==1.26.4", "extras": ["x"], "markers": "os_name != ''"},
    }
}
_CONDA = {
    "name": "app",
    "channels": ["conda-forge"],
    "dependencies": ["python=3.11", "pip", {"pip": ["torch==2.5.1", "numpy==1.26.4"]}],
}

_JUNK: Any = st.one_of(
    st.integers(0, 9), st.booleans(), st.just([]), st.just({}), st.just({"a": 1}), st.just([["torch"]]), st.just("= ?")
)


def _toml(document: dict[str, Any]) -> str:
    """The document as TOML with a line for each key, each list of tables inline."""
    return "".join(f"{key} = {_inline(value)}\n" for key, value in document.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_inline(each)}' for key, each in value.items()) + "}"
    return f"[{', '.join(map(_inline, value))}]" if isinstance(value, list) else json.dumps(value)


Path_ = tuple[str | int, ...]

_WHERE: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], str], str]] = {
    "pyproject": (_PROJECT, _toml, "pyproject__toml"),
    "poetry": (_POETRY, _toml, "pyproject__toml"),
    "uv": (_UV_LOCK, _toml, "uv__lock"),
    "poetry.lock": (_POETRY_LOCK, _toml, "poetry__lock"),
    "pylock": (_PYLOCK, _toml, "pylock__toml"),
    "Pipfile": (_PIPFILE_LOCK, json.dumps, "Pipfile__lock"),
    "conda": (_CONDA, json.dumps, "environment__yml"),  # which YAML reads
}
"""A plan, how it is written, and the name of its file."""
_NODES = sample("unread_nodes.txt")
"""Where something else is put in each."""


def _nodes(kind: str) -> list[Path_]:
    lines = (line.removeprefix(f"{kind}: ") for line in _NODES.splitlines() if line.startswith(f"{kind}: "))
    nodes = (node.split("/") for line in lines for node in line.split(", "))
    return [tuple(int(step) if step.isdigit() else step for step in node) for node in nodes]


def _with(document: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    """The document with another value at the path."""
    found = deepcopy(document)
    place: Any = found
    for step in path[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    place[path[-1]] = value
    return found


def _status(folder: Path, **files: str) -> int:
    """The exit status; 2 where the plan is refused with a sentence."""
    try:
        return judge(plan(folder, **files), H100).exit_code
    except UsageError:
        return 2


def _is_another_type(document: dict[str, Any], path: Path_, junk: Any) -> bool:
    """Whether the junk is of another type than what stands there, or a text that no text there may be. A table that is
    new and empty asks for nothing.
    """
    place: Any = document
    for step in path:
        if isinstance(place, dict) and step not in place:
            return bool(junk != {})
        place = place[step]
    return not isinstance(junk, type(place)) or isinstance(junk, str)


@pytest.mark.parametrize("kind", _WHERE)
def test_plans_that_are_understood_pass(tmp_path: Path, kind: str) -> None:
    document, write, name = _WHERE[kind]
    assert _status(tmp_path, **{name: write(document)}) == 0


@pytest.mark.parametrize("kind", _WHERE)
def test_a_node_that_is_not_understood_leaves_no_verdict(tmp_path: Path, kind: str) -> None:
    document, write, name = _WHERE[kind]

    @settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(st.sampled_from(_nodes(kind)), _JUNK)
    def run(path: Path_, junk: Any) -> None:
        assume(_is_another_type(document, path, junk))
        assert _status(tmp_path, **{name: write(_with(document, path, junk))}) == 3

    run()


_TAILS = (
    " 1.0", " ==", " [x", " @", " ; no", " --pre", " -r b.txt", " --index-url https://x.example", "\t--hash=x",
    " \\ ",
)  # fmt: skip
_REFUSED = st.one_of(
    st.text(st.sampled_from("=<>!~@[];:,?*() $%\\'\"a1.-"), min_size=1, max_size=12).map("?".__add__),
    st.builds(str.__add__, st.sampled_from(("numpy", "numpy==1.26.4", "numpy[x]>=1")), st.sampled_from(_TAILS)),
    st.sampled_from(("-", "-r", "-r 'a", "--nonsense", "--pre numpy", "-e a -e b", "--pre --nonsense", "-x", "-c")),
    st.integers(2000, 20_000).map(lambda length: f"numpy{' ' * length}=={'1'}"),
    st.integers(3000, 90_000).map(lambda length: f"numpy=={'1' * length}"),
)


@settings(max_examples=examples(1000), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 6), _REFUSED, st.sampled_from(("\n", "\r\n", "\r")), st.sampled_from(("", "\ufeff")))
def test_a_line_that_pip_refuses_leaves_no_verdict(
    tmp_path: Path, place: int, junk: str, ending: str, mark: str
) -> None:
    lines = _REQUIREMENTS.splitlines()
    mutated = mark + ending.join([*lines[:place], junk, *lines[place:]]) + ending
    assert _status(tmp_path, requirements__txt=mutated) == 3


@cases("ending", "\n", "\r\n", "\r")
@cases("mark", "", "\ufeff")
def test_every_ending_of_lines_is_understood(tmp_path: Path, mark: str, ending: str) -> None:
    assert _status(tmp_path, requirements__txt=mark + ending.join(_REQUIREMENTS.splitlines()) + ending) == 0


@cases("line",
    "-r gpu.txt", "-rgpu.txt", "--requirement gpu.txt", "--requirement=gpu.txt", "--requirem gpu.txt",
    "--pre -r gpu.txt", "--no-index --requirement gpu.txt", "--pre --prefer-binary -rgpu.txt", "\t-r gpu.txt # why",
    "-r \\\ngpu.txt", "-r 'gpu.txt'", "# no \\\n-r gpu.txt", "# no\x0c-r gpu.txt", "numpy\\\n# no \\\n-r gpu.txt",
)  # fmt: skip
def test_every_way_to_include_a_file_is_followed(tmp_path: Path, line: str) -> None:
    found = plan(tmp_path, requirements__txt=f"tqdm\n{line}\n", _gpu__txt="torch==1.10.0\n")
    assert {each.name: each.version for each in found.planned or ()}["torch"] == "1.10.0"


@cases("words", "-r gpu.txt", "-qr gpu.txt", "-Urgpu.txt", "-q --requirements gpu.txt", "-Uc gpu.txt torch")
@cases("command", "pip install", "uv pip install --system")
def test_every_way_to_name_a_file_is_followed(tmp_path: Path, command: str, words: str) -> None:
    text = f"FROM ubuntu:22.04\nCOPY . .\nRUN {command} {words}\n"
    found = plan(tmp_path, Dockerfile=text, _gpu__txt="torch==1.10.0\n")
    assert {each.name: each.version for each in found.planned or ()}["torch"] == "1.10.0"


def test_what_pip_takes_for_a_comment_installs_nothing(tmp_path: Path) -> None:
    text = "numpy==1.26.4  # until a release of \\\ntorch==1.10.0\n"
    assert [each.name for each in plan(tmp_path, requirements__txt=text).planned or ()] == ["numpy"]


@cases("text", "a =\n", "torch==1.0 --pre\n", "-r\n")
def test_a_constraint_that_is_not_understood_leaves_no_verdict(tmp_path: Path, text: str) -> None:
    assert _status(tmp_path, requirements__txt="torch==2.5.1\n-c limits.txt\n", _limits__txt=text) == 3


def test_a_failure_that_is_certain_stays_one(tmp_path: Path) -> None:
    assert _status(tmp_path, requirements__txt="torch==1.10.0\n") == 1
    assert _status(tmp_path, requirements__txt="torch==1.10.0\n= ?\n") == 1
