"""One test for many cases, where a test per case would cost more than it checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def every(cases: Iterable[Any] | Callable[[], Iterable[Any]]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Try a test with each case; one message names every case that fails and why.

    A case is the test's only argument, or a tuple of all its arguments. Without a case the test fails.
    A function that returns the cases is called by the test alone: each worker collects all modules, one runs the test.
    """
    given = cases if callable(cases) else list(cases)

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
        return over_all

    return decorate


def _label(argument: object) -> str:
    return str(getattr(argument, "id", None) or repr(argument)[:200])
