"""How far figures lie apart by chance: the statistics hold for few values and are not led by a single one."""

import random
import statistics

import pytest

from envcheck.knowledge.performance.spread import (
    LEAST_TOLERATED,
    TOLERATED,
    base_of,
    median,
    noise,
    speed_ratio,
    tolerated_among,
)
from tests.every import every
from tests.known import known


@every([1.0], [1.0, 2.0], [3.0, 1.0, 2.0], [5.0, 1.0, 9.0, 2.0], [1.0, 2.0, 3.0, 4.0, 100.0])
def test_the_median_is_that_of_the_standard_library(values: list[float]) -> None:
    assert median(values) == statistics.median(values)


@every([1.0, 2.0], [3.0, 1.0, 2.0], [5.0, 1.0, 9.0, 2.0], [1.0, 2.0, 3.0, 4.0, 100.0])
def test_noise_is_the_distance_of_the_quartiles(values: list[float]) -> None:
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    assert noise(values) == pytest.approx((high - low) / statistics.median(values))


def test_nothing_has_no_median_and_one_value_no_noise() -> None:
    with pytest.raises(ValueError, match="no value"):
        median([])
    assert noise([]) == noise([4.0]) == noise([0.0, 0.0]) == 0.0


def test_one_disturbed_sample_moves_the_noise_little() -> None:
    calm = [100.0, 100.2, 99.8, 100.1, 99.9, 100.0, 100.1]
    assert noise([*calm[:-1], 40.0]) < 0.005


def test_of_durations_less_is_faster() -> None:
    assert speed_ratio(50.0, 100.0, "B/s") == 0.5
    assert speed_ratio(200.0, 100.0, "s") == 0.5


def test_one_run_tolerates_a_twentieth_and_its_noise() -> None:
    base = known(base_of([(100.0, (96.0, 100.0, 104.0))]))
    assert (base.value, base.low, base.high, base.runs) == (100.0, 100.0, 100.0, 1)
    assert base.tolerated == pytest.approx(TOLERATED + 0.02)
    assert base.tolerated_for((90.0, 100.0, 110.0)) == pytest.approx(TOLERATED + 0.02 + 0.05)


def test_two_runs_tolerate_what_lies_between_them() -> None:
    base = known(base_of([(100.0, ()), (90.0, ())]))
    assert base.value == 95.0
    assert base.tolerated == pytest.approx(TOLERATED + 0.1)


def test_runs_that_agree_tolerate_less_than_one_run() -> None:
    base = known(base_of([(value, ()) for value in (100.0, 100.3, 99.9, 100.1, 100.0)]))
    assert base.tolerated == LEAST_TOLERATED < TOLERATED


def test_runs_that_vary_tolerate_more() -> None:
    base = known(base_of([(value, ()) for value in (100.0, 108.0, 94.0, 103.0, 97.0)]))
    assert base.tolerated == pytest.approx(3.5 * 0.06)


def test_one_bad_run_of_five_hides_nothing() -> None:
    calm = base_of([(value, ()) for value in (100.0, 100.3, 99.9, 100.1, 100.0)])
    disturbed = base_of([(value, ()) for value in (100.0, 100.3, 99.9, 100.1, 50.0)])
    assert calm is not None
    assert disturbed is not None
    assert disturbed.tolerated == calm.tolerated
    assert disturbed.value == pytest.approx(calm.value, rel=0.002)


def test_what_is_no_figure_is_no_base() -> None:
    assert base_of([]) is None
    assert base_of([(0.0, ()), (-1.0, ()), (float("inf"), ())]) is None


@every(3, 5, 8, 16)
def test_chance_alone_is_rarely_called_a_change(runs: int) -> None:
    """Runs of 1.5 % standard deviation, more than was seen on an H200; with three runs the quartiles are guesses."""
    chance = random.Random(17)
    flagged = 0
    for _ in range(2000):
        base = known(base_of([(chance.gauss(100.0, 1.5), ()) for _ in range(runs)]))
        flagged += chance.gauss(100.0, 1.5) < (1 - base.tolerated) * base.value
    assert flagged / 2000 < {3: 0.08, 5: 0.03}.get(runs, 0.01)


@every(3, 5, 8, 16)
def test_a_tenth_is_always_a_change_of_calm_runs(runs: int) -> None:
    """Runs of 0.3 %, as the products and copies of an H200 have."""
    chance = random.Random(17)
    for _ in range(500):
        base = known(base_of([(chance.gauss(100.0, 0.3), ()) for _ in range(runs)]))
        assert (1 - base.tolerated) * base.value > 90.0


def test_few_others_cannot_tell_how_far_gpus_lie_apart() -> None:
    assert tolerated_among([100.0, 70.0, 130.0], 0.1) == 0.1


def test_scattered_others_tolerate_more_and_one_outlier_among_them_does_not() -> None:
    assert tolerated_among([100.0, 112.0, 90.0, 106.0, 94.0, 100.0, 80.0], 0.1) == pytest.approx(3 * 1.4826 * 0.06)
    assert tolerated_among([100.0, 100.0, 101.0, 99.0, 100.0, 100.0, 50.0], 0.1) == 0.1
