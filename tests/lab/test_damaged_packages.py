"""Packages of a real environment, damaged after their installation: named, and whole again once the fix was followed.

numba stands for the frameworks: with NumPy and llvmlite it is the smallest that requires compiled packages.
"""

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import envcheck
from tests.every import cases

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels asked for are for x86_64"),
]

H100 = "gpu==H100,driver==580.65.06,os==linux"
SECONDS = 600


class Installed:
    """A virtual environment with numba and what it requires."""

    def __init__(self, folder: Path) -> None:
        self.prefix = folder / ".venv"
        subprocess.run([sys.executable, "-m", "venv", self.prefix], check=True)
        self.run(str(self.prefix / "bin/python"), "-m", "pip", "install", "-q", "numba==0.61.2", "numpy==2.1.3")

    @property
    def site(self) -> Path:
        (found,) = self.prefix.glob("lib/python3*/site-packages")
        return found

    def one(self, pattern: str) -> Path:
        return next(iter(sorted(self.site.glob(pattern))))

    def run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        if done.returncode != 0:
            pytest.skip(f"{' '.join(command[-3:])}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")

    def imports(self, name: str) -> bool:
        command = [str(self.prefix / "bin/python"), "-B", "-c", f"import {name}"]
        return subprocess.run(command, capture_output=True, check=False, timeout=SECONDS).returncode == 0

    def judged(self, *options: str) -> dict[str, Any]:
        words = ("check", "--json", "--scope", "env", "--python", str(self.prefix), "--assume", H100, *options)
        report: dict[str, Any] = json.loads(envcheck(*words, cwd=self.prefix.parent).out)
        (check,) = (each for each in report["checks"] if each["rule"] == "damaged-distribution")
        return {**check, "primary": report.get("primary")}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("damaged")
    yield Installed(folder)
    shutil.rmtree(folder, ignore_errors=True)


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def blank_header(path: Path) -> None:
    path.write_bytes(bytes(64) + path.read_bytes()[64:])


def change_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def add_a_line(path: Path) -> None:
    path.write_text(f"{path.read_text()}\n# edited\n")


def of_zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


UMATH = "numpy/_core/_multiarray_umath.*.so"


@cases("package, pattern, damage, status, options",
    ("numpy", "numpy", remove, "fail", ()), ("numpy", "numpy/__init__.py", remove, "fail", ()),
    ("numpy", "numpy/__init__.py", of_zeros, "fail", ("--verify",)), ("numpy", UMATH, remove, "fail", ()),
    ("numpy", UMATH, halve, "fail", ()), ("numpy", UMATH, blank_header, "fail", ()),
    ("numpy", UMATH, change_a_byte, "fail", ("--verify",)),
    ("numpy", "numpy/lib/_npyio_impl.py", add_a_line, "warn", ("--verify",)),
    ("numpy", "numpy/_core/multiarray.py", remove, "fail", ("--verify",)),
    ("llvmlite", "llvmlite/binding/libllvmlite.so", halve, "fail", ()),
    ("llvmlite", "llvmlite/binding", remove, "fail", ()),
)  # fmt: skip
def test_it_is_named_and_the_fix_makes_it_whole(
    installed: Installed,
    package: str,
    pattern: str,
    damage: Callable[[Path], None],
    status: str,
    options: tuple[str, ...],
) -> None:
    assert installed.judged("--verify")["status"] == "pass"
    versions = sorted(path.name for path in installed.site.glob("*.dist-info"))
    damage(installed.one(pattern))
    check = installed.judged(*options)
    assert check["status"] == status
    assert check["title"].startswith(f"{package} ")
    (fix,) = check["fixes"]
    installed.run(*fix["command"])
    assert installed.judged("--verify")["status"] == "pass"
    assert installed.imports("numba")
    assert sorted(path.name for path in installed.site.glob("*.dist-info")) == versions


def test_an_edited_version_file_is_a_remark_without_a_fix(installed: Installed) -> None:
    file = installed.one("numpy/version.py")
    before = file.read_text()
    add_a_line(file)
    check = installed.judged()
    assert (check["status"], check["fixes"]) == ("note", [])
    file.write_text(before)
