"""A test for each of many cases, or one for all, where a test per case would cost more than it checks."""

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import pytest

_Test = TypeVar("_Test", bound=Callable[..., Any])


def cases(names: str, *rows: Any, **options: Any) -> pytest.MarkDecorator:
    """A test for each row, as pytest parametrizes: ``@cases("text, expected", ("a", 1), ("b", 2))``."""
    return pytest.mark.parametrize(names, rows, **options)


def every(*rows: Any) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Try a test with each case; one message names every case that fails and why.

    A case is the test's only argument, or a tuple of all its arguments. Without a case the test fails.
    A single argument holds all cases, or is a function that returns them: it is called by the test alone, since each
    worker collects all modules, and one runs the test.
    """
    found: Iterable[Any] | Callable[[], Iterable[Any]] = rows[0] if len(rows) == 1 else rows
    given = found if callable(found) else list(found)

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        names = list(inspect.signature(test).parameters)

        def over_all() -> None:
            tried = list(given() if callable(given) else given)
            failed: list[str] = []
            first: BaseException | None = None
            for case in tried:
                arguments = case if len(names) > 1 else (case,)
                try:
                    test(**dict(zip(names, arguments, strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever fails is reported
                    first = first or error
                    failed.append(f"{', '.join(map(_label, arguments))}: {error or type(error).__name__}")
            if failed or not tried:
                raise AssertionError("\n".join([f"{len(failed)} of {len(tried)} cases fail", *failed])) from first

        over_all.__name__, over_all.__doc__, over_all.__module__ = test.__name__, test.__doc__, test.__module__
        over_all.cases = given  # type: ignore[attr-defined]
        return over_all

    return decorate


def cases_of(test: Callable[[], None]) -> list[Any]:
    """What ``every`` or ``every_tabled`` tries a test with."""
    given: list[Any] = test.cases  # type: ignore[attr-defined]
    return given


def _label(argument: object) -> str:
    return str(getattr(argument, "id", None) or repr(argument)[:200])


def tabled(test: _Test) -> _Test:
    """A test for each row of its table.

    That stands below ``## NAME_OF_THE_TEST`` in a document of ``tables/`` beside the module, ``tables/wheels.txt`` of
    ``test_wheels.py``. Its first line names the arguments, and each further line is a case with its cells between
    ``|``; a line that begins with ``#`` is a remark. A cell of an argument that is a text holds this text, in quotes if
    it needs them, or ``-`` for None; any other cell holds a Python literal.
    """
    names, rows = _table(test)
    marked: _Test = pytest.mark.parametrize(names, rows)(test)
    return marked


def every_tabled(test: Callable[..., None]) -> Callable[[], None]:
    """Try a test with each row of its table (``tabled``); one message names every case that fails and why."""
    names, rows = _table(test)
    assert names == list(inspect.signature(test).parameters), f"{test.__name__} has other arguments than its table"
    return every(rows if len(names) > 1 else [row[0] for row in rows])(test)


def _table(test: Callable[..., Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The arguments that the table of a test names, and its rows."""
    module = Path(inspect.getfile(test))
    lines = tables(module.parent / "tables" / f"{module.stem.removeprefix('test_')}.txt")[test.__name__]
    names, *rows = (re.split(r" +\| +", line) for line in lines)
    assert rows, f"the table of {test.__name__} is empty"
    given = inspect.signature(test, eval_str=True).parameters
    kinds = [given[name].annotation for name in names]
    return names, [tuple(_value(*cell) for cell in zip(row, kinds, strict=True)) for row in rows]


@cache
def tables(document: Path) -> dict[str, list[str]]:
    """By the name of its test the lines of each table of a document, without remarks."""
    parts = re.split(r"^## (.+)\n", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [[line for line in part.split("\n") if line and not line.startswith("#")] for part in parts[2::2]]
    found = dict(zip(parts[1::2], lines, strict=True))
    assert len(found) == len(lines), f"two tables of {document.name} are of one test"
    return found


def _is_text(kind: Any) -> bool:
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return all(part in (str, NoneType) or get_origin(part) is Literal for part in parts)


def _value(cell: str, kind: Any) -> Any:
    if not _is_text(kind) or cell.startswith(("'", '"')):
        return ast.literal_eval(cell)
    return None if cell == "-" else cell
