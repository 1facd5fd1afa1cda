"""The importer ``example_thing``."""

import pytest

from envcheck.errors import UsageError
from envcheck.importers import list_names, read_text
from tests.importers.pasting import release_in


def test_the_importer_is_listed() -> None:
    assert "example-thing" in list_names()


def test_the_driver_is_read() -> None:
    text = "some log line\nexample-thing: driver 550.54.14\n"
    assert release_in(text) == "550.54.14"
    assert [run.name for run in read_text(text).runs] == ["example-thing"]


def test_a_line_without_a_release_says_nothing() -> None:
    with pytest.raises(UsageError):
        read_text("example-thing: driver unknown\n")
