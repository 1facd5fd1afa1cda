"""The rule about LD_LIBRARY_PATH."""

from __future__ import annotations

import pytest

from tests.every import every
from tests.rules.machines import but, check_of, eight, statuses, variables

RULE = "loader-path-relative"


@every([":/a", "/a:", "/a::/b", "lib:/a", "/a;./b", "/a:~/lib", "/a:$HOME/lib", ":"])
def test_it_tells_relative_entries(value: str) -> None:
    assert statuses(RULE, but(eight(), variables=variables(LD_LIBRARY_PATH=value))) == ("note",)


@pytest.mark.parametrize("value", ["/a", "/a:/b;/c", "$ORIGIN/../lib:/a", "${ORIGIN}/lib"])
def test_absolute_entries_are_no_question(value: str) -> None:
    assert statuses(RULE, but(eight(), variables=variables(LD_LIBRARY_PATH=value))) == ()


@pytest.mark.parametrize("values", [{}, {"LD_LIBRARY_PATH": ""}])
def test_unset_is_no_question(values: dict[str, str]) -> None:
    assert statuses(RULE, but(eight(), variables=variables(**values))) == ()


def test_an_empty_entry_is_shown_as_such() -> None:
    check = check_of(RULE, but(eight(), variables=variables(LD_LIBRARY_PATH="/a:")))
    assert [part.value for part in check.evidence] == ["(empty)"]
