"""Single members of real wheels: pip says where a wheel is, and only the member's bytes move."""

import functools
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import requests

from envcheck.errors import UsageError
from envcheck.refresh.index import IndexFile, RemoteWheel

PLATFORMS = (
    "manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_24_x86_64", "manylinux2014_x86_64",
    "manylinux1_x86_64",
)  # fmt: skip
MOST = 256 << 20  # Bytes of one member, unpacked


def fetch(requirement: str, python: str, member: str, folder: Path) -> Path:
    """The first member whose name matches ``member``, of the wheel for Linux on x86_64 that pip would install.

    Skips the test, with the reason, where it cannot be allocated.
    """
    place = folder / f"{requirement}-{re.sub('[^A-Za-z0-9_.]', '', member)}"
    place.mkdir(parents=True)
    address = _address(requirement, python, folder)
    local = urlsplit(address)
    found = _from_file(Path(unquote(local.path)), member) if local.scheme == "file" else _from_index(address, member)
    if found is None:
        pytest.fail(f"{requirement} has no {member}")
    name, content = found
    file = place / Path(name).name
    file.write_bytes(content)
    return file


def _from_index(address: str, member: str) -> tuple[str, bytes] | None:
    wheel = RemoteWheel(IndexFile(address.rpartition("/")[2], address), requests.Session())
    names: list[str] = []

    def wanted(name: str) -> bool:
        names.extend(re.findall(f".*(?:{member}).*", name))
        return bool(names)

    try:
        content = wheel.read(wanted, MOST)
    except UsageError as error:
        pytest.skip(str(error))
    finally:
        wheel.close()
    return None if content is None else (names[0], content)


def _from_file(wheel: Path, member: str) -> tuple[str, bytes] | None:
    """Of a wheel in a folder that pip was told to look into."""
    with zipfile.ZipFile(wheel) as archive:
        name = next((name for name in archive.namelist() if re.search(member, name)), None)
        return None if name is None else (name, archive.read(name))


@functools.cache
def _address(requirement: str, python: str, folder: Path) -> str:
    options = ["--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:", "--report", "-"]
    tags = [word for tag in PLATFORMS for word in ("--platform", tag)]
    where = ["--python-version", python, "--target", str(folder), requirement]
    command = [sys.executable, "-m", "pip", "install", "-q", *options, *tags, *where]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        pytest.skip(f"{requirement}: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")
    return str(json.loads(done.stdout)["install"][0]["download_info"]["url"])
