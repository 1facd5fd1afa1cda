"""Linux distributions: a release stands for its glibc, by which pip chooses among wheels."""

from __future__ import annotations

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.names import DISTRIBUTIONS
from envcheck.compat.tables import ReleaseRow
from tests.compat.asking import assert_does_not_fit, assert_fits, assert_nobody_can_tell, judged, shown, verdict
from tests.every import every

MATRIX = load_matrix()
ROWS = [row for name in sorted(DISTRIBUTIONS) for row in MATRIX.rows_of(name)]
PACKAGES = ("torch==2.8.0", "numpy==2.3.0", "jaxlib==0.7.2", "transformers==4.50.0", "rapids==25.12", "vllm==0.9.0")


@every(ROWS)
def test_a_distribution_is_asked_as_its_glibc_is(row: ReleaseRow) -> None:
    release, libc = row.versions.removeprefix("=="), row.bundles["glibc"]
    assert row.needs == {"glibc": f"=={libc}"}
    for package in PACKAGES:
        wanted = verdict(f"{package} glibc=={libc}")
        asked = (f"os=={row.name}{release} {package}", f"{row.name}=={release} {package}")
        for question in asked:
            assert verdict(question) in (wanted, "unknown" if wanted == "compatible" else wanted), question
        assert verdict(asked[0]) == wanted, asked[0]


@every(ROWS)
def test_a_distribution_has_no_other_glibc(row: ReleaseRow) -> None:
    release = row.versions.removeprefix("==")
    assert_fits(f"{row.name}=={release} glibc=={row.bundles['glibc']}")
    assert_does_not_fit(f"{row.name}=={release} glibc==2.4")


@pytest.mark.parametrize("written", ["rhel8.6", "RHEL-8", "rockylinux8", "almalinux_8", "centos-stream9", "debian 12"])
def test_how_a_release_is_written(written: str) -> None:
    assert_fits(f"os=={written.replace(' ', ',')} torch==2.8.0")


def test_the_distribution_in_an_image_decides() -> None:
    found = judged("nvcr==nvidia/cuda:11.2.2-base-ubuntu18.04 torch==2.8.0 os==ubuntu24.04")
    assert found.verdict == "incompatible", shown(found)
    assert "it comes with ubuntu 18.04" in found.reasons[0].message


@pytest.mark.parametrize("named", ["os==ubuntu19.10", "os==debian7", "os==sles15"])
def test_of_a_release_without_a_row_the_glibc_is_not_known(named: str) -> None:
    assert_nobody_can_tell(f"{named} torch==2.8.0")
    assert_fits(f"{named} torch==2.8.0 glibc==2.31")
