"""Debian's packages of NVIDIA's real user-space driver libraries, unpacked beside the system.

Nothing is installed: packages are fetched with the machine's own apt, from its own mirror and under its own keys, with
lists, caches and sources in a folder of the test, and only unpacked.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = {"535": ("libcuda1", "libnvidia-ml1"), "470": ("libnvidia-tesla-470-cuda1", "libnvidia-tesla-470-ml1")}
SOURCES = Path("/etc/apt")
SECONDS = 300


def driver_libraries(release: str, into: Path) -> Path:
    """The folder with ``libcuda.so.1`` and ``libnvidia-ml.so.1`` of driver ``release``, unpacked below ``into``.

    ``release`` is a key of ``PACKAGES``. Skips the test, with the reason, where the packages cannot be allocated.
    """
    if platform.machine() != "x86_64" or not all(map(shutil.which, ("apt-get", "apt-cache", "dpkg"))):
        pytest.skip("Debian's driver packages: needs apt and dpkg on x86_64")
    into.mkdir(parents=True, exist_ok=True)
    options = _private_apt(into)
    _apt(into, "apt-get", *options, "update")
    for package in PACKAGES[release]:
        _require(into, options, package, release)
    _apt(into, "apt-get", *options, "download", *PACKAGES[release])
    for archive in into.glob("*.deb"):
        subprocess.run(["dpkg", "-x", archive, into / "root"], check=True, timeout=SECONDS)
    (library,) = (into / "root").rglob("libcuda.so.1")
    assert (library.parent / "libnvidia-ml.so.1").exists()
    return library.parent


def _require(folder: Path, options: list[str], package: str, release: str) -> None:
    policy = _apt(folder, "apt-cache", *options, "policy", package)
    candidates = [line.split()[1] for line in policy.splitlines() if line.strip().startswith("Candidate:")]
    if not any(candidate.startswith(f"{release}.") for candidate in candidates):
        pytest.skip(f"{package} {release}: this Debian has {' '.join(candidates) or 'no such package'}")


def _apt(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        pytest.skip(f"{command[0]} {command[-1]}: {last}")
    return done.stdout


def _private_apt(folder: Path) -> list[str]:
    """Options under which apt reads and writes below ``folder`` alone, with the machine's mirror plus non-free."""
    parts, lists, cache = folder / "sources", folder / "lists", folder / "cache"
    for place in (parts, lists / "partial", cache / "archives/partial"):
        place.mkdir(parents=True, exist_ok=True)
    source = next(_debian_sources(), None)
    if source is None:
        pytest.skip("apt's configuration names no Debian mirror for this release")
    (parts / "driver.sources").write_text("".join(f"{name}: {value}\n" for name, value in source.items()))
    settings = {
        "Dir::Etc::sourcelist": os.devnull,
        "Dir::Etc::sourceparts": parts,
        "Dir::State::Lists": lists,
        "Dir::Cache": cache,
        "Acquire::Retries": 2,
        "Acquire::Languages": "none",
        "APT::Update::Error-Mode": "any",
        **({"APT::Sandbox::User": "root"} if os.geteuid() == 0 else {}),
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _debian_sources() -> Iterator[dict[str, str]]:
    """Stanzas for the part non-free of this Debian release, one for every mirror that has its part main."""
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    for stanza in (*_deb822(), *_one_line()):
        if suite in stanza["Suites"].split() and "main" in stanza["Components"].split():
            yield {**stanza, "Suites": suite, "Components": "non-free"}


def _deb822() -> Iterator[dict[str, str]]:
    for file in sorted((SOURCES / "sources.list.d").glob("*.sources")):
        for paragraph in file.read_text().split("\n\n"):
            stanza: dict[str, str] = {}
            name = ""
            for line in paragraph.splitlines():
                if line.startswith("#"):
                    continue
                if line[:1].isspace():
                    stanza[name] += f"\n{line}"
                elif ":" in line:
                    name, _, value = line.partition(":")
                    stanza[name] = value.strip()
            if {"Types", "URIs", "Suites", "Components"} <= set(stanza):
                yield {**stanza, "Types": "deb"}


ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>[^#]+)")


def _one_line() -> Iterator[dict[str, str]]:
    for file in (SOURCES / "sources.list", *sorted((SOURCES / "sources.list.d").glob("*.list"))):
        lines = file.read_text().splitlines() if file.exists() else []
        for match in filter(None, map(ONE_LINE.match, lines)):
            keys = re.search(r"signed-by=(\S+)", match["options"] or "")
            yield {
                "Types": "deb",
                "URIs": match["uri"],
                "Suites": match["suite"],
                "Components": match["components"].strip(),
                **({"Signed-By": keys[1]} if keys else {}),
            }
