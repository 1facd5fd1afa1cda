"""The wheel, installed where everybody may read it, run by accounts and on roots that lack what programs expect."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.installing import run

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user or remount"),
]

ROOT = Path(__file__).resolve().parents[2]
SYSTEM_PYTHON = Path("/usr/bin/python3")
NOBODY_AT_ALL = 4_000_000


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """A virtual environment of the system's Python with the wheel in it, readable by everybody."""
    if not SYSTEM_PYTHON.exists():
        pytest.skip(f"{SYSTEM_PYTHON} is not there")
    place = Path(tempfile.mkdtemp(prefix="envcheck-lab-"))
    place.chmod(0o755)
    uv = Path(sys.executable).parent / "uv"
    run([str(uv), "venv", "-q", "--python", str(SYSTEM_PYTHON), str(place / "venv")])
    run([str(uv), "pip", "install", "-q", "--python", str(place / "venv"), "--link-mode", "copy", str(ROOT)])
    yield place
    shutil.rmtree(place)


def check(command: list[str], **options: Any) -> dict[str, Any]:
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert result.returncode in (0, 1, 3), result.stderr
    assert result.stderr == ""
    report: dict[str, Any] = json.loads(result.stdout)
    unasked = {probe["name"] for probe in report["probes"] if probe["status"] == "skipped"}
    assert all(name.startswith(("deep.", "bench.", "verify")) for name in unasked)
    statuses = {probe["status"] for probe in report["probes"] if probe["name"] not in unasked}
    assert statuses
    assert statuses <= {"ok", "absent"}
    return report


def test_a_user_without_a_passwd_entry_and_without_home(installed: Path) -> None:
    program = str(installed / "venv" / "bin" / "envcheck")
    report = check([program, "check", "--json"], user=NOBODY_AT_ALL, cwd="/", env={"PATH": "/usr/bin:/bin"})
    assert report["snapshot"]["platform"]["uid"] == NOBODY_AT_ALL


def test_on_a_read_only_root(installed: Path) -> None:
    program = installed / "venv" / "bin" / "envcheck"
    read_only = "mount --make-rprivate / && mount -o remount,ro,bind / && ! touch /probe 2>/dev/null"
    script = f"{read_only} && exec {program} check --json"
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody make a mount namespace")
    assert check(["unshare", "-m", "sh", "-c", script], cwd="/")["verdict"] in ("pass", "warn", "fail", "unknown")
