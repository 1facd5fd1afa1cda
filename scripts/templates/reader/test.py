"""The reader of ``example_thing``, on a constructed environment."""

from pathlib import Path

from tests.probes.frameworks.framework_trees import SITE, Frameworks


def test_the_version_is_read_from_the_package(tmp_path: Path) -> None:
    tree = Frameworks(tmp_path)
    tree.package({"example_thing/__init__.py": "__version__ = '1.2.3'\n"}, "example-thing", "1.2.3")
    found = tree.only()
    assert (found.name, found.version, found.problem) == ("example-thing", "1.2.3", None)
    assert found.path == f"{SITE}/example_thing"


def test_metadata_without_the_package_is_a_problem(tmp_path: Path) -> None:
    tree = Frameworks(tmp_path)
    tree.package({}, "example-thing", "1.2.3")
    found = tree.only()
    assert found.version == "1.2.3"
    assert found.problem is not None


def test_an_environment_without_it_has_none(tmp_path: Path) -> None:
    assert Frameworks(tmp_path).found() == {}
