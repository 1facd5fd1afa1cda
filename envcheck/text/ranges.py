"""Whole numbers in few words: ``0-3, 5``."""

from __future__ import annotations

from collections.abc import Iterable


def consecutive(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending numbers, those that follow each other together."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def ranges(numbers: Iterable[int]) -> list[str]:
    """``[0, 1, 2, 5]`` as ``["0-2", "5"]``."""
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in consecutive(numbers)]
