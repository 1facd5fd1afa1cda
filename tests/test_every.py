"""A test of many cases fails for any of them, and names them all."""

import re
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.every import every, every_tabled, tables


def test_every_case_that_fails_is_named_with_its_reason() -> None:
    tried = []

    @every([("a", 1), ("b", 0), ("c", 2), ("d", "x")])
    def division(name: str, number: int) -> None:
        tried.append(name)
        with pytest.raises(ZeroDivisionError):
            1 / number

    with pytest.raises(AssertionError) as caught:
        division()
    assert tried == ["a", "b", "c", "d"]
    told = str(caught.value).splitlines()
    assert told[0] == "3 of 4 cases fail"
    assert [line.partition(":")[0] for line in told[1:]] == ["'a', 1", "'c', 2", "'d', 'x'"]
    assert "unsupported operand" in told[3]


@pytest.mark.parametrize("cases", [[], list])
def test_no_case_is_a_failure(cases: Any) -> None:
    @every(cases)
    def nothing(case: object) -> None:
        raise AssertionError(case)

    with pytest.raises(AssertionError, match="0 of 0 cases"):
        nothing()


def test_costly_cases_are_made_by_the_test() -> None:
    made = []

    @every(lambda: made.append("once") or [1, 2])  # type: ignore[func-returns-value]
    def positive(number: int) -> None:
        assert number > 1

    assert made == []
    with pytest.raises(AssertionError, match="1 of 2 cases fail"):
        positive()
    assert made == ["once"]


@every_tabled
def test_a_cell_is_read_as_its_argument_is_annotated(
    text: str, perhaps: Literal["a"] | None, number: int, words: list[str], read: str
) -> None:
    assert repr((text, perhaps, number, words)) == read


def test_each_table_is_of_a_test() -> None:
    documents = sorted(Path(__file__).parent.rglob("tables/*.txt"))
    assert documents
    for document in documents:
        module = (document.parents[1] / f"test_{document.stem}.py").read_text(encoding="utf-8")
        tabled = re.findall(r"^@(?:every_)?tabled\n(?:[@ )].*\n)*(?:async )?def (\w+)", module, re.MULTILINE)
        assert tabled == list(tables(document)), document.name
