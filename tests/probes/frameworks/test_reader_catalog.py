"""A framework reader is one file: what it declares is found by listing the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import probes.frameworks
from probes.installations import catalog
from probes.installations.catalog import KINDS, kinds
from tests.probes.frameworks.framework_trees import Frameworks

READER = '''"""A framework of this test."""

IMPORTS = ("toy",)
DISTRIBUTIONS = ("toy-gpu",)
{order}

def read(site, names):
    return [{{"name": "toy", "version": "1.0", "path": f"{{site.folders[0]}}/toy", "source": "file " + names[0]}}]
'''


def test_a_reader_is_added_with_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Frameworks(tmp_path / "root")
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "toy_reader.py").write_text(READER.format(order=""))
    monkeypatch.setattr(probes.frameworks, "__path__", [*probes.frameworks.__path__, str(folder)])
    monkeypatch.setattr(catalog, "KINDS", (*KINDS, *kinds(str(folder))))
    assert tree.found() == {}
    tree.package({"toy/__init__.py": ""}, "toy-gpu", "1.0")
    assert tree.only().source == "file toy-gpu"


def test_those_that_others_build_on_come_first(tmp_path: Path) -> None:
    for name, order in (("a", ""), ("b", "ORDER = 1"), ("c", "ORDER = 0"), ("_helper", "")):
        (tmp_path / f"{name}.py").write_text(READER.format(order=order))
    assert [kind.module for kind in kinds(str(tmp_path))] == ["c", "b", "a"]
    assert KINDS[0].module == "torch"
    assert [kind.module for kind in KINDS if kind.order == KINDS[0].order] == ["torch"]


@pytest.mark.parametrize("missing", ["IMPORTS", "DISTRIBUTIONS"])
def test_a_reader_that_declares_nothing_is_named(tmp_path: Path, missing: str) -> None:
    (tmp_path / "toy.py").write_text(READER.format(order="").replace(missing, "SOMETHING"))
    with pytest.raises(ValueError, match=r"toy\.py declares no"):
        kinds(str(tmp_path))


def test_declarations_are_what_an_import_would_give() -> None:
    for kind in KINDS:
        module = __import__(f"probes.frameworks.{kind.module}", fromlist=["read"])
        assert (kind.imported, kind.distributions) == (module.IMPORTS, module.DISTRIBUTIONS)
        assert getattr(module, "ORDER", 2) == kind.order
