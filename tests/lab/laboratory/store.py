"""Wheels from the package index, each fetched once for all environments of the laboratory."""

import fcntl
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename

from tests.lab.laboratory.slim import slim

SECONDS = 900
LARGE = 100 << 20  # Bytes of a wheel that is kept without its GPU code

SLIM = ("torch-", "nvidia_", "jax_cuda")
"""Wheels whose GPU code envcheck does not read: of ONNX Runtime and CuPy it does."""

FOLDER = "ENVCHECK_LAB_WHEELS"  # Variable that names a folder to keep the wheels in from one run to the next


class Store:
    """A folder of wheels, and uv's cache of them: on the file system of the environments, which link to the files."""

    def __init__(self, folder: Path) -> None:
        self.wheels = folder / "wheels"
        self.cache = folder / "cache"
        self.wheels.mkdir(parents=True, exist_ok=True)

    def need(self, *requirements: str) -> None:
        """Fetch what is not here. Skips the test, with the reason, where it cannot be allocated."""
        with self._alone():
            for requirement in requirements:
                if not self._here(requirement):
                    self._fetch(requirement)

    def _here(self, requirement: str) -> bool:
        name, _, version = requirement.partition("==")
        return any(
            (canonicalize_name(name), version.partition("+")[0])
            == (found, own.base_version + (f".post{own.post}" if own.post else ""))
            for found, own, *_ in map(parse_wheel_filename, (file.name for file in self.wheels.glob("*.whl")))
        )

    def _fetch(self, requirement: str) -> None:
        with tempfile.TemporaryDirectory(dir=self.wheels.parent) as folder:
            options = ("-q", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check")
            command = [sys.executable, "-m", "pip", "download", *options, "--dest", folder, requirement]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
            if done.returncode != 0:
                pytest.skip(f"{requirement}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
            (wheel,) = Path(folder).glob("*.whl")
            if wheel.stat().st_size > LARGE and wheel.name.startswith(SLIM):
                slim(wheel, self.wheels)
            else:
                wheel.rename(self.wheels / wheel.name)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process fetches at a time."""
        with (self.wheels.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def variables(self) -> dict[str, str]:
        """What leads pip and uv to these wheels first, and to the index for all others."""
        places = [str(self.wheels), *os.environ.get("PIP_FIND_LINKS", "").split()]
        kept = {name: value for name, value in os.environ.items() if re.match("(PIP|UV|SSL)_", name)}
        return {
            **kept,
            "PIP_FIND_LINKS": " ".join(places),
            "PIP_CACHE_DIR": str(self.cache / "pip"),
            "PIP_NO_COMPILE": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_FIND_LINKS": ",".join(places),
            "UV_CACHE_DIR": str(self.cache / "uv"),
            "UV_NO_PROGRESS": "1",
        }
