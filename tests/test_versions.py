"""Versions and components as people write them, and numbers longer than Python converts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.model.components import Bound, parse_components
from envcheck.model.versions import (
    CodeTarget,
    ComputeCapability,
    CondaBuild,
    CudaVersion,
    CudnnVersion,
    DriverRelease,
    PtxVersion,
)
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from tests.every import cases, every, tabled
from tests.plans.reading import plan


@tabled
def test_driver_release(text: str, expected: tuple[int, int, int]) -> None:
    assert DriverRelease.parse(text) == expected


@every(None, "", "N/A", "550.54.14.1", "550-54", "v550", "550.", "9" * 40, "5\u0665\u0660.54")
def test_what_is_no_driver_release(text: str | None) -> None:
    assert DriverRelease.parse(text) is None


def test_driver_release_is_shown_as_nvidia_writes_it() -> None:
    assert str(DriverRelease(580, 159, 4)) == "580.159.04"
    assert str(DriverRelease(418, 39)) == "418.39"
    assert DriverRelease.parse(str(DriverRelease(535, 54, 3))) == DriverRelease(535, 54, 3)


def test_driver_releases_compare_by_number_not_by_text() -> None:
    assert DriverRelease(550, 127, 5) > DriverRelease(550, 54, 14)


def test_cuda_version() -> None:
    assert CudaVersion.parse("12.4.131") == (12, 4)
    assert CudaVersion.parse("12") == (12, 0)
    assert CudaVersion.parse("none") is None
    assert CudaVersion.decode(12040) == (12, 4)
    assert CudaVersion.decode(9010) == (9, 1)
    assert CudaVersion.from_tag("cu124") == (12, 4)
    assert CudaVersion.from_tag("cu92") == (9, 2)
    assert CudaVersion.from_tag("cpu") is None


def test_cudnn_is_decoded_by_the_scheme_of_its_major() -> None:
    assert str(CudnnVersion.decode(8902)) == "8.9.2"
    assert str(CudnnVersion.decode(91002)) == "9.10.2"
    assert str(CudnnVersion.decode(90100)) == "9.1.0"
    assert str(CudnnVersion.decode(7605)) == "7.6.5"
    assert CudnnVersion.parse("9.1.0.70") == (9, 1, 0)


@cases("text", "9.0", "sm_90", "sm90", "compute_90", "90", "sm_90a")
def test_compute_capability(text: str) -> None:
    assert ComputeCapability.parse(text) == (9, 0)


def test_compute_capability_of_two_digits_and_none() -> None:
    assert ComputeCapability.parse("12.0") == ComputeCapability.parse("sm_120") == (12, 0)
    assert ComputeCapability.parse("12.0").sm == "sm_120"  # type: ignore[union-attr]
    for text in (None, "", "9", "sm_", "sm_9", "hopper", "1.2.3"):
        assert ComputeCapability.parse(text) is None


def test_code_target() -> None:
    target = CodeTarget.parse("sm_90a")
    assert target == CodeTarget(ComputeCapability(9, 0), ptx=False, suffix="a")
    assert str(target) == "sm_90a"
    assert CodeTarget.parse("compute_120") == CodeTarget(ComputeCapability(12, 0), ptx=True)
    assert CodeTarget.parse("90") is None


def test_ptx_version() -> None:
    assert PtxVersion.parse("8.4") == (8, 4)
    assert PtxVersion.parse("8") is None


@given(st.text(max_size=30))
def test_no_text_breaks_a_parser(text: str) -> None:
    for kind in (DriverRelease, CudaVersion, CudnnVersion, ComputeCapability, CodeTarget, PtxVersion):
        parsed = kind.parse(text)
        assert parsed is None or str(parsed)


@tabled
def test_build_strings_of_conda(text: str, cuda: str | None, cudnn: str | None, *, cpu: bool) -> None:
    build = CondaBuild.parse(text)
    assert (str(build.cuda) if build.cuda else None, build.cudnn, build.cpu) == (cuda, cudnn, cpu)


def read(text: str) -> list[tuple[str, list[str]]]:
    return [(component.name, [str(bound) for bound in component.bounds]) for component in parse_components(text)]


@tabled
def test_reads(text: str, expected: list[tuple[str, list[str]]]) -> None:
    assert read(text) == expected


@every("", "  ", "torch", "==2", "torch==", 'torch==2 3"', "torch=2", "torch===", ",torch==1", "a==1,,b==2", "8gpus==1")
def test_refuses_in_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="write NAME==VERSION"):
        parse_components(text)


def test_exact_is_only_for_a_single_equality() -> None:
    assert parse_components("torch==2.5")[0].exact == "2.5"
    assert parse_components("torch>=2.5")[0].exact is None
    assert parse_components("torch==2.5,!=2.6")[0].exact is None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        components = parse_components(text)
    except UsageError:
        return
    assert components
    assert all(isinstance(bound, Bound) and bound.value for component in components for bound in component.bounds)


# --- Numbers in pasted text and in plans ----------------------------------------------------------------------------
LONG = "9" * 5000
LOCK = (
    'version = 1\n[[package]]\nname = "torch"\nversion = "{}"\nsource = {{ registry = "https://x.example/simple" }}\n'
)


def test_a_version_of_cudnn_that_is_no_number() -> None:
    text = "Loaded runtime CuDNN library: 8.0.5 but source was compiled with: \u00b2.  CuDNN library needs to match\n"
    assert judge(read_text(text), Request()).verdict in ("fail", "unknown")


def test_a_version_in_a_lock_file(tmp_path: Path) -> None:
    (found,) = plan(tmp_path, uv__lock=LOCK.format(LONG)).planned or ()
    assert (found.name, found.problem) == ("", "a version cannot be read")
