"""Build artefacts and fresh environments to install them into."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Built(NamedTuple):
    """The two artefacts, the tree that they were built from, and what the build printed."""

    wheel: Path
    sdist: Path
    tree: Path
    printed: str


def build(tree: Path, out: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Build from the tree with the requirements of this environment."""
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "-o", str(out), str(tree)]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)


def run(command: list[str], **options: object) -> str:
    """Run a command that must succeed, and return what it printed."""
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return str(result.stdout)


class Environment:
    """A fresh virtual environment, filled through uv."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv") or "uv"
        run([self.uv, "venv", "--quiet", "--python", sys.executable, str(place)])
        self.python = place / "bin" / "python"

    def install(self, *requirements: str) -> None:
        run([self.uv, "pip", "install", "--quiet", "--python", str(self.python), *requirements])

    def freeze(self) -> dict[str, str]:
        lines = run([self.uv, "pip", "freeze", "--python", str(self.python)]).splitlines()
        pairs = (line.partition("==") if "==" in line else line.partition(" @ ") for line in lines)
        return {name: version for name, _, version in pairs}
