"""Any text in any format is read or refused with a sentence, and is judged without an exception."""

import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.errors import UsageError
from tests.plans.reading import judge, plan
from tests.thorough import examples

_WORDS = {
    "Dockerfile": ["FROM ", "nvidia/cuda:12.4.1-base-x", "RUN ", "pip install ", "conda install ", "uv sync", "ARG A=1",
                   "$A"],
    "environment__yml": ["dependencies:", "\n  - ", "pip:", "torch=2.0", "&a ", "*a", "[", "{", "? ", "!!x "],
    "pixi__toml": ["[workspace]\n", "[dependencies]\n", "[pypi-dependencies]\n", "torch = ", "'==2.0.1'\n", "{path = ",
                   "x", "}", "[environments]\n", "default = ['x']\n", "[feature.x.target.unix]\n", "platforms = [3]\n"],
    "pixi__lock": ["environments:\n", "  default:\n", "    packages:\n", "      linux-64:\n", "      - conda: ",
                   "https://x/conda-forge/linux-64/pytorch-2.5.1-cuda126_py1_0.conda\n", "      - pypi: x\n",
                   "packages:\n"],
    "uv__lock": ["[[package]]\n", "name = ", '"torch"', "version = 1", "source = { virtual = '.' }",
                 "dependencies = [{", "}]"],
    "poetry__lock": ["[[package]]\n", "name = ", '"torch"\n', 'version = "2.0.1"\n', 'markers = "x"\n',
                     "optional = 1\n"],
    "Pipfile__lock": ['{"default": {', '"torch": {', '"version": "==2"', '"git": "x"', "}", ",", "1e999", '"_meta": 3'],
    "pylock__toml": ['lock-version = "1.0"\n', 'created-by = "x"\n', "[[packages]]\n", 'name = "torch"\n',
                     'version = "2"\n'],
    "pyproject__toml": ["[project]\n", "dependencies = ", "[", "]", '"torch>=2"', "'x'", ",",
                        'dynamic = ["dependencies"]\n'],
    "requirements__txt": ["torch==2.0.1", "-r ", "--hash=x", "; ", "python_version < '3.9'", "[x]", "@ ",
                          "https://x/y.whl"],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(_WORDS))
def test_any_text_is_read_or_refused(tmp_path: Path, name: str) -> None:
    pieces = st.one_of(st.sampled_from([*_WORDS[name], "\n", " ", "\\\n", '"', "#", "é"]), st.text(max_size=4))

    @settings(max_examples=examples(500), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(pieces, max_size=14).map("".join).filter(lambda text: "\ud800" not in text))
    def run(text: str) -> None:
        with suppress(UsageError, UnicodeEncodeError):
            report = judge(plan(tmp_path, **{name: text}), "gpu==A100,driver==515.105.01")
            assert len({check.id for check in report.checks}) == len(report.checks)
            assert all(check.location is None or check.location.file for check in report.checks)

    run()


def test_a_requirement_behind_many_blanks_is_read_soon(tmp_path: Path) -> None:
    text = f"numpy{' ' * 100_000}==1.26.4\n"
    started = time.process_time()
    plan(tmp_path, requirements__txt=text)
    assert time.process_time() - started < 5.0


def test_what_is_on_this_machine_is_left_out(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt="torch==2.0.1\n"), "gpu==A100,driver==515.105.01")
    assert report.snapshot is not None
    assert report.snapshot.toolkits is None
    assert report.snapshot.libraries is None
