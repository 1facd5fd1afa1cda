"""One version, written in many ways; and what only looks like one of them stays as it is."""

from __future__ import annotations

from envcheck.compat.question.reading import spelled
from envcheck.components import Bound, Component
from tests.every import every


@every(
    [
        ("cuda", "cu124", "12.4"),
        ("cuda", "cu118", "11.8"),
        ("cuda", "V12.4.131", "12.4.131"),
        ("cuda", "12.4u1", "12.4"),
        ("nvcc", "12.4 Update 1", "12.4"),
        ("cuda", "12.x", "12"),
        ("cuda", "12.*", "12"),
        ("cuda", "latest", "latest"),
        ("driver", "R550", "550"),
        ("driver", "v550.54.14", "550.54.14"),
        ("driver", "550.54.14-0ubuntu1", "550.54.14"),
        ("driver", "550.54.14-1", "550.54.14"),
        ("driver", "550.x.x", "550"),
        ("driver", "550.54.14-open", "550.54.14-open"),
        ("l4t", "R36.4.3", "36.4.3"),
        ("python", "cp312", "3.12"),
        ("python", "py39", "3.9"),
        ("python", "3.12.*", "3.12"),
        ("python", "3.14t", "3.14t"),
        ("gpu", "8x H100", "H100"),
        ("gpu", "2xA100", "A100"),
        ("gpu", "4090", "4090"),
        ("gpu", "H100 80GB HBM3", "H100 80GB HBM3"),
        ("torch", "2.5.*", "2.5"),
        ("torch", "2.5.1+cu124", "2.5.1+cu124"),
        ("torch", "v2.5.1", "v2.5.1"),
        ("nccl", "2.27.3-1", "2.27.3-1"),
        ("msvc", "1940", "19.40"),
        ("msvc", "14.38.33130", "19.38"),
        ("msvc", "19.29", "19.29"),
    ]
)
def test_what_is_meant(name: str, written: str, meant: str) -> None:
    assert spelled(name, Component(name, (Bound("==", written),))).exact == meant


def test_bounds_stay_as_they_are() -> None:
    component = Component("driver", (Bound(">=", "R550"), Bound("<", "560")))
    assert spelled("driver", component) is component
