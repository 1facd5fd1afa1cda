"""Shared work is done once, and never taken for that of other arguments."""

from envcheck.rules.facts.measurements import kept_by_identity


def test_the_same_arguments_are_asked_once_and_others_again() -> None:
    asked: list[list[int]] = []

    @kept_by_identity
    def total(numbers: list[int], more: list[int]) -> int:
        asked.append(numbers)
        return sum(numbers) + sum(more)

    one, other = [1, 2], [1, 2]
    assert [total(one, other), total(one, other)] == [6, 6]
    assert len(asked) == 1
    assert total(other, one) == 6  # equal, and not the same
    assert len(asked) == 2
    assert total([5], one) == 8
    assert total([6], one) == 9  # the memory of the list before may be taken again
    assert len(asked) == 4


def test_an_error_is_not_kept() -> None:
    @kept_by_identity
    def first(numbers: list[int]) -> int:
        return numbers[0]

    numbers: list[int] = []
    for _ in range(2):
        try:
            first(numbers)
        except IndexError:
            continue
        raise AssertionError
    numbers.append(3)
    assert first(numbers) == 3
