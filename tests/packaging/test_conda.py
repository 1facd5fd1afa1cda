"""The conda recipe says of the package what ``pyproject.toml`` says. It is not built here: that needs conda's index."""

from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

from envcheck import __version__
from envcheck.cli.parser import parse
from envcheck.text.toml import loads

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))


def requirements(texts: list[str]) -> set[str]:
    """``msgspec>=0.18.6``, without what stands for which Python it counts."""
    return {f"{each.name}{each.specifier}" for each in map(Requirement, texts)}


def test_it_needs_what_the_package_needs() -> None:
    needed = requirements(PROJECT["project"]["dependencies"]) | {f"python{PROJECT['project']['requires-python']}"}
    assert requirements(RECIPE["requirements"]["run"]) == needed
    built = requirements(PROJECT["build-system"]["requires"]) | {"pip"}
    assert requirements([each for each in RECIPE["requirements"]["host"] if not each.startswith("python ")]) == built


def test_it_has_the_version_the_programs_and_the_summary() -> None:
    assert RECIPE["context"]["version"] == __version__
    programs = [f"{name} = {target}" for name, target in PROJECT["project"]["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == programs
    assert RECIPE["about"]["summary"] == PROJECT["project"]["description"]


def test_its_tests_are_commands_of_envcheck() -> None:
    (script,) = (test["script"] for test in RECIPE["tests"] if "script" in test)
    assert len(script) == 2
    parse(script[1].split()[1:], {})
