"""What pip would install, held against pip itself: sets of packages that are put together at random."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envcheck.compat.package_needs import satisfies
from envcheck.model.snapshot import Distribution
from envcheck.rules.engine.resolve import resolve
from tests.rules.packages.packages_here import dist
from tests.thorough import examples

SETS = examples(200)
NAMES = ("zza", "zzb", "zzc", "zzd")
VERSIONS = ("1.0", "1.1", "1.1.post1", "2.0", "2.0.1", "2.1")
BOUNDS = (
    "", "==1.0", "==1.1", "==2.0", "<2", ">=2", ">=1.1", "~=1.0", "!=2.0.1", "==2.*", "<=1.1", ">=2.1",
    ">=2.0,<2.0.post1",
)  # fmt: skip
VENDORS = "2.1a0+nv24.12"
"""An installed version that no index has."""
ASK_PIP = """
import json, os, sys
from pip._internal.cli.main import main
import pip._internal.commands.install
for site, arguments in json.load(sys.stdin):
    if os.fork() == 0:
        sys.path.insert(0, site)
        os._exit(main(arguments))
    os.wait()
"""


class World(NamedTuple):
    """Packages of an index, those that are installed, and what is asked for."""

    releases: dict[str, dict[str, tuple[str, ...]]]
    installed: dict[str, tuple[str, tuple[str, ...]]]
    asked: tuple[str, ...]


def world(random: Random) -> World:
    def lines(most: int, *without: str) -> tuple[str, ...]:
        others = random.sample([name for name in NAMES if name not in without], random.randint(0, most))
        return tuple(f"{name}{random.choice(BOUNDS)}" for name in others)

    index = {
        name: {version: lines(2, name) for version in random.sample(VERSIONS, random.randint(2, len(VERSIONS)))}
        for name in NAMES
    }
    installed = {}
    for name in random.sample(NAMES, random.randint(0, 3)):
        version = random.choice([*index[name], VENDORS])
        installed[name] = version, index[name][version] if version in index[name] else lines(2, name)
    asked = tuple(f"{random.choice(NAMES)}{random.choice(BOUNDS)}" for _ in range(random.randint(1, 3)))
    return World(index, installed, asked)


def metadata(name: str, version: str, requires: Sequence[str]) -> str:
    lines = (
        "Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {x}" for x in requires),
    )  # fmt: skip
    return "\n".join((*lines, ""))


def lay_out(found: World, place: Path) -> tuple[Path, Path]:
    """The wheels of the index, and a folder with what is installed."""
    wheels, site = place / "wheels", place / "site"
    wheels.mkdir(parents=True)
    for name, releases in found.releases.items():
        for version, requires in releases.items():
            with zipfile.ZipFile(wheels / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
                info = f"{name}-{version}.dist-info"
                wheel.writestr(f"{info}/METADATA", metadata(name, version, requires))
                wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                wheel.writestr(f"{info}/RECORD", "")
    for name, (version, requires) in found.installed.items():
        listed = site / f"{name}-{version}.dist-info"
        listed.mkdir(parents=True)
        (listed / "METADATA").write_text(metadata(name, version, requires), encoding="utf-8")
    return wheels, site


def installed_by_pip(worlds: Sequence[World], place: Path) -> Iterator[dict[str, str] | None]:
    """What pip would install in each; None where it refuses."""
    runs = []
    for number, found in enumerate(worlds):
        wheels, site = lay_out(found, place / str(number))
        report = place / str(number) / "report.json"
        options = ["--dry-run", "--quiet", "--no-index", "--find-links", str(wheels), "--report", str(report)]
        runs.append((str(site), ["install", "--disable-pip-version-check", *options, *found.asked]))
    subprocess.run(
        [sys.executable, "-c", ASK_PIP], input=json.dumps(runs),
        env={**os.environ, "PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_CONFIG_FILE": os.devnull}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    for number in range(len(worlds)):
        report = place / str(number) / "report.json"
        if not report.exists():
            yield None
            continue
        listed = json.loads(report.read_text(encoding="utf-8"))["install"]
        yield {each["metadata"]["name"]: each["metadata"]["version"] for each in listed}


def installed_by_us(found: World) -> tuple[dict[str, str] | None, bool]:
    """The same by our resolver, and whether it went back on a choice: then pip may have gone back on another one."""
    second_choices: list[Distribution] = []
    there = {name: dist(name, version, requires=requires) for name, (version, requires) in found.installed.items()}

    def candidates(name: str, bounds: str) -> Iterator[Distribution]:
        kept = [there[name]] if name in there and satisfies(bounds, there[name].version) else []
        others = sorted(SpecifierSet(bounds).filter(found.releases[name]), key=Version, reverse=True)
        new = [dist(name, each, requires=found.releases[name][each]) for each in others]
        for place, each in enumerate((*kept, *new)):
            second_choices.extend([each] if place else [])
            yield each

    def requires(chosen: Distribution, _extras: Sequence[str]) -> Iterable[Requirement]:
        return map(Requirement, chosen.requires or ())

    chosen = resolve(map(Requirement, found.asked), candidates, requires)
    if chosen.conflict:
        return None, False
    new = {name: each.version for name, each in chosen.chosen.items() if there.get(name) is not each}
    return new, bool(second_choices)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="pip is asked in forks of one process")
def test_what_pip_would_install(tmp_path: Path) -> None:
    pytest.importorskip("pip")
    worlds = [world(Random(seed)) for seed in range(SETS)]
    by_pip = list(installed_by_pip(worlds, tmp_path))
    assert sum(each is None for each in by_pip) > SETS / 20
    assert sum(bool(each) for each in by_pip) > SETS / 5
    by_us = list(map(installed_by_us, worlds))
    assert sum(went_back for _, went_back in by_us) < SETS / 3
    for each, pip, (own, went_back) in zip(worlds, by_pip, by_us, strict=True):
        assert (pip is None) is (own is None), each
        assert pip == own or went_back, each


def test_a_choice_that_is_excluded_later_is_narrowed_and_what_came_for_it_goes() -> None:
    releases = {
        "a": [dist("a", "2", requires=("c",)), dist("a", "1")],
        "b": [dist("b", "1", requires=("a<2",))],
        "c": [dist("c", "1", requires=("b<1",)), dist("c", "0")],
    }

    def candidates(name: str, bounds: str) -> Iterator[Distribution]:
        return (each for each in releases[name] if not bounds or satisfies(bounds, each.version))

    found = resolve(map(Requirement, ("a", "b")), candidates, lambda each, _: map(Requirement, each.requires or ()))
    assert {name: each.version for name, each in found.chosen.items()} == {"a": "1", "b": "1"}


def test_an_extra_that_is_asked_for_later_is_followed() -> None:
    followed = []

    def requires(each: Distribution, extras: Sequence[str]) -> list[Requirement]:
        followed.append((each.name, tuple(extras)))
        return [Requirement("a[gpu]")] if each.name == "b" else []

    found = resolve(map(Requirement, ("a", "b")), lambda name, _: [dist(name, "1")], requires)
    assert found.extras["a"] == ("gpu",)
    assert followed[-1] == ("a", ("gpu",))


def test_what_came_for_several_that_go_goes_once() -> None:
    """``b`` and ``c`` came for ``a``, and ``d`` for all three; an older ``a`` needs none of them."""
    releases = {
        "a": [dist("a", "2", requires=("b", "c", "d")), dist("a", "1")],
        "b": [dist("b", "1", requires=("c", "d"))],
        "c": [dist("c", "1", requires=("b", "d"))],
        "d": [dist("d", "1")],
        "e": [dist("e", "1", requires=("a<2",))],
    }

    def candidates(name: str, bounds: str) -> Iterator[Distribution]:
        return (each for each in releases[name] if not bounds or satisfies(bounds, each.version))

    for asked in (("a", "e"), ("a", "b", "e")):
        found = resolve(map(Requirement, asked), candidates, lambda each, _: map(Requirement, each.requires or ()))
        there = {name: each.version for name, each in found.chosen.items()}
        assert there["a"] == "1"
        assert set(there) >= set(asked)
        assert ("b" in there) is ("b" in asked)
