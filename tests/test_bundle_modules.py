"""The modules of a package are found by listing its folders, and by nothing that imports ``inspect``."""

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck import importers, rules
from envcheck.bundle import modules_below
from envcheck.plans import readers
from tests.every import cases


@cases("package", rules, importers, readers)
def test_all_modules_are_found(package: object) -> None:
    name, path = getattr(package, "__name__"), getattr(package, "__path__")  # noqa: B009 - a module, for the type checker
    assert modules_below(name, path) == sorted(each.name for each in pkgutil.walk_packages(path, f"{name}."))


def test_what_is_no_module_is_none(tmp_path: Path) -> None:
    for name in ("one.py", "__init__.py", "notes.txt", "data/table.toml", "inner/__init__.py", "inner/two.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert modules_below("package", [str(tmp_path)]) == ["package.inner", "package.inner.two", "package.one"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="typing lacks what msgspec asks for")
def test_a_check_imports_none_of_what_msgspec_can_do_without() -> None:
    code = (
        "import sys\nfrom envcheck.cli.main import main\nmain(['matrix', 'check', 'cuda==12.4', 'driver==550.54.14'])\n"
        "from envcheck.pipeline import judging\nfrom envcheck.pipeline.request import Request\n"
        "judging.get_ready(Request())\nimport envcheck.report.text\n"
        "print(sorted({'inspect', 'dataclasses', 'typing_extensions', 'pkgutil', 'logging'} & sys.modules.keys()))\n"
        "import typing_extensions"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
