"""PyPI's unrelated ``envcheck`` in the same environment: gpu-envcheck answers, or a sentence says why it cannot."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.packaging.installing import Built, Environment

FILES = {
    "envcheck/__init__.py": "",
    "envcheck/envcheck.py": "def main():\n    print('compares .env files')\n",
    "envcheck-0.0.9.dist-info/METADATA": "Metadata-Version: 2.1\nName: envcheck\nVersion: 0.0.9\n",
    "envcheck-0.0.9.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "envcheck-0.0.9.dist-info/entry_points.txt": "[console_scripts]\nenvcheck = envcheck.envcheck:main\n",
}
"""The files of the wheel of envcheck 0.0.9, with as much in them as matters here."""


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The other distribution's wheel."""
    place = tmp_path_factory.mktemp("other") / "envcheck-0.0.9-py3-none-any.whl"
    record = "".join(f"{name},,\n" for name in (*FILES, "envcheck-0.0.9.dist-info/RECORD"))
    with zipfile.ZipFile(place, "w") as wheel:
        for name, content in {**FILES, "envcheck-0.0.9.dist-info/RECORD": record}.items():
            wheel.writestr(name, content)
    return place


def answer(environment: Environment, *command: str) -> tuple[int, str, str]:
    program = [str(environment.place / "bin" / command[0]), *command[1:]]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(program, cwd=environment.place, env=kept, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_installed_last_gpu_envcheck_answers_by_both_names(built: Built, other: Path, fresh: Environment) -> None:
    fresh.install(str(other))
    fresh.install(str(built.wheel))
    for script in ("envcheck", "gpu-envcheck"):
        assert "(matrix read " in answer(fresh, script, "--version")[1]


def test_installed_first_gpu_envcheck_says_what_happened(built: Built, other: Path, fresh: Environment) -> None:
    commands = (("gpu-envcheck", "--version"), ("python", "-m", "envcheck", "--version"))
    fresh.install(str(built.wheel))
    fresh.install(str(other))
    before = [answer(fresh, *command) for command in commands]
    for status, out, err in before:
        assert (status, out, err.count("\n")) == (4, "", 1)
        assert "another distribution replaced or removed " in err
        assert "Run: pip uninstall envcheck; pip install --force-reinstall --no-deps gpu-envcheck" in err
    subprocess.run([fresh.uv, "pip", "uninstall", "-q", "--python", str(fresh.python), "envcheck"], check=True)
    assert [answer(fresh, *command) for command in commands] == before
    fresh.install("--reinstall", "--no-deps", str(built.wheel))
    assert all("(matrix read " in answer(fresh, *command)[1] for command in commands)
