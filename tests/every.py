"""A test for each of many cases, or one for all, where a test per case would cost more than it checks."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


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
        over_all.cases = given  # type: ignore[attr-defined]  # where other tests take machines from
        return over_all

    return decorate


def _label(argument: object) -> str:
    return str(getattr(argument, "id", None) or repr(argument)[:200])
