"""What rows of releases mean, tried on rows made for these tests beside the real drivers, toolkits and GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.tables import ReleaseRow, SourceRow
from tests.every import every
from tests.knowledge.asking import answer, shown

HERE = SourceRow(title="constructed for this test", address="tests", read="2026-11-20")


def matrix(*rows: dict[str, Any]) -> Matrix:
    """The real matrix with ``rows`` in the place of its releases."""
    releases = tuple(msgspec.convert({"source": ["here"], **row}, ReleaseRow) for row in rows)
    real = load_matrix()
    return Matrix({**real.given, "release": releases, "sources": {**real.sources, "here": HERE}})


def verdicts(rows: Matrix, questions: Iterable[str]) -> dict[str, str]:
    return {question: answer(question, rows).verdict for question in questions}


def test_a_need_is_held_against_the_component_that_is_named() -> None:
    rows = matrix({"name": "widget", "versions": "==1.2.*", "needs": {"torch": "==2.5.1", "python": ">=3.9,<3.13"}})
    expected = {
        "widget==1.2.0 torch==2.5.1": "compatible", "widget==1.2.0 torch==2.5.1+cu118": "compatible",
        "widget==1.2.0 torch==2.5.0": "incompatible", "widget==1.2.0 torch==2.5": "compatible",
        "widget==1.2.0 python==3.12.4": "compatible", "widget==1.2.0 python==3.13": "incompatible",
        "widget==1.2 python==3.13": "incompatible", "widget==1.3.0 python==3.12": "unknown",
        "widget==1.2.0 nonsense==1": "unknown",
    }  # fmt: skip
    assert verdicts(rows, expected) == expected


def test_a_component_that_nothing_relates_leaves_the_answer_open() -> None:
    rows = matrix(
        {"name": "widget", "versions": "==1.0.*", "needs": {"python": ">=3.9"}},
        {"name": "gadget", "versions": "==1.0.*", "needs": {"numpy": "<2"}},
    )
    found = answer("widget==1.0 python==3.12 gadget==1.0", rows)
    assert found.verdict == "unknown"
    assert found.reasons[0].message == "nothing in the matrix relates gadget==1.0 to anything else here"
    assert answer("widget==1.0 python==3.12 os==linux machine==x86_64", rows).verdict == "compatible"


def test_what_a_build_was_made_with_is_held_against_driver_and_gpu() -> None:
    rows = matrix({"name": "widget", "versions": "==1.0.*", "cuda": "12.3", "targets": ["sm_80", "compute_90"]})
    expected = {
        "widget==1.0 driver==525.60.13": "compatible", "widget==1.0 driver==470": "incompatible",
        "widget==1.0 gpu==A100": "compatible", "widget==1.0 gpu==V100": "incompatible",
        # PTX alone: a driver that is not named is no constraint; one that is must speak CUDA 12.3
        "widget==1.0 gpu==H100": "compatible", "widget==1.0 gpu==H100 driver==545": "compatible",
        "widget==1.0 gpu==H100 driver==535": "incompatible", "widget==1.0 cuda==12.3": "compatible",
        "widget==1.0 cuda==12.6": "compatible", "widget==1.0 cuda==11.8": "unknown",
    }  # fmt: skip
    assert verdicts(rows, expected) == expected


def test_a_build_without_gpu_support_uses_none() -> None:
    rows = matrix({"name": "widget", "versions": "==1.0.*", "cuda": "", "needs": {"python": ">=3.9"}})
    expected = {
        "widget==1.0 gpu==H100": "incompatible",
        "widget==1.0 driver==550": "incompatible",
        "widget==1.0 python==3.12": "compatible",
    }
    assert verdicts(rows, expected) == expected


def test_documents_outrank_the_code_that_was_found() -> None:
    rows = matrix(
        {"name": "low", "versions": "==1.*", "cuda": "12.4", "targets": ["sm_80"], "capability_min": "7.0"},
        {"name": "both", "versions": "==1.*", "capability_min": "7.0", "capability_max": "9.0"},
        {"name": "some", "versions": "==1.*", "capabilities": ["8.0", "9.0"]},
    )
    expected = {
        "low==1.0.0 gpu==V100": "compatible",
        "low==1.0.0 gpu==P100": "incompatible",
        "low==1.0.0 gpu==H100": "incompatible",
        "both==1.0.0 gpu==H100": "compatible",
        "both==1.0.0 gpu==RTX,5090": "incompatible",
        "some==1.0.0 gpu==RTX,4090": "incompatible",
        "some==1.0.0 gpu==H100": "compatible",
    }
    assert verdicts(rows, expected) == expected


def test_a_least_capability_promises_nothing_for_gpus_newer_than_the_toolkit() -> None:
    rows = matrix({"name": "widget", "versions": "==1.*", "cuda": "11.8", "capability_min": "5.0"})
    assert answer("widget==1.0.0 gpu==RTX,5090", rows).verdict == "unknown"
    assert answer("widget==1.0.0 gpu==H100", rows).verdict == "compatible"


def test_a_toolkit_that_dropped_a_gpu_left_no_code_for_it() -> None:
    rows = matrix(
        {"name": "built", "versions": "==1.*", "cuda": "13.0"},
        {"name": "used", "versions": "==1.*", "needs": {"cuda": ">=13,<14"}},
    )
    assert answer("built==1.0.0 gpu==V100", rows).verdict == "incompatible"
    assert answer("used==1.0.0 gpu==V100", rows).verdict == "incompatible"
    assert answer("built==1.0.0 gpu==H100", rows).verdict == "unknown"


def test_what_a_library_may_be_used_with_is_held_against_the_driver() -> None:
    rows = matrix({"name": "widget", "versions": "==1.*", "needs": {"cuda": ">=11,<13"}})
    assert answer("widget==1.0.0 driver==450.80.02", rows).verdict == "compatible"
    assert answer("widget==1.0.0 driver==440", rows).verdict == "incompatible"
    assert answer("widget==1.0.0 driver==450.80.02 cuda==12.4", rows).verdict == "incompatible"


def test_driver_needs_are_of_one_system() -> None:
    rows = matrix(
        {"name": "widget", "versions": "==1.*", "needs": {"driver-linux": ">=525.60.13", "driver-windows": ">=528.33"}}
    )
    expected = {
        "widget==1.0.0 driver==528.02": "compatible",
        "widget==1.0.0 driver==528.02 os==windows": "incompatible",
        "widget==1.0.0 driver==528.33 os==wsl": "compatible",
        "widget==1.0.0 driver==525": "compatible",
    }
    assert verdicts(rows, expected) == expected


def test_systems() -> None:
    rows = matrix(
        {"name": "widget", "versions": "==1.*", "os": ["linux"], "machine": ["x86_64"], "needs": {"python": ">=3.9"}},
        {"name": "gadget", "versions": "==1.*", "os": ["linux"], "needs": {"python": ">=3.9"}},
        {"name": "gadget", "versions": "==1.*", "os": ["windows"], "needs": {"python": ">=3.11"}},
    )
    expected = {
        "widget==1.0.0 os==linux": "compatible",
        "widget==1.0.0 os==wsl": "compatible",
        "widget==1.0.0 os==windows": "incompatible",
        "widget==1.0.0 machine==aarch64": "incompatible",
        "gadget==1.0.0 python==3.10": "compatible",
        "gadget==1.0.0 python==3.10 os==windows": "incompatible",
        "gadget==1.0.0 python==3.10 os==macos": "incompatible",
    }
    assert verdicts(rows, expected) == expected


BUILDS = (
    {"name": "widget", "versions": "==1.0.*", "cuda": "11.8", "targets": ["sm_80"]},
    {"name": "widget", "versions": "==1.0.*", "build": "cu121", "cuda": "12.1", "targets": ["sm_80", "sm_90"]},
)


def test_a_plain_version_is_the_build_without_tag_unless_cuda_is_named() -> None:
    expected = {
        "widget==1.0.0 driver==470": "compatible", "widget==1.0.0 gpu==H100": "incompatible",
        "widget==1.0.0+cu121 gpu==H100": "compatible", "widget==1.0.0+cu121 driver==470": "incompatible",
        "widget==1.0.0 cuda==12.1": "compatible", "widget==1.0.0 cuda==11.8": "compatible",
        # a build that no row knows: its tag tells the CUDA, and nothing tells its code
        "widget==1.0.0+cu130 driver==470": "incompatible", "widget==1.0.0+cu130 gpu==V100": "unknown",
    }  # fmt: skip
    assert verdicts(matrix(*BUILDS), expected) == expected


def test_where_every_build_has_a_tag_any_is_meant() -> None:
    rows = matrix(
        {"name": "widget", "versions": "==1.*", "build": "cuda11", "cuda": "11.8"},
        {"name": "widget", "versions": "==1.*", "build": "cuda12", "cuda": "12.3"},
    )
    assert answer("widget==1.0.0 driver==470", rows).verdict == "compatible"
    assert answer("widget==1.0.0 driver==440", rows).verdict == "incompatible"
    assert answer("widget==1.0.0+cuda12 driver==470", rows).verdict == "incompatible"


def test_a_family_is_answered_when_its_releases_agree() -> None:
    rows = matrix(
        {"name": "widget", "versions": "==1.0.0", "needs": {"python": ">=3.8,<3.12"}},
        {"name": "widget", "versions": "==1.0.1", "needs": {"python": ">=3.8,<3.13"}},
    )
    assert answer("widget==1.0 python==3.11", rows).verdict == "compatible"
    assert answer("widget==1.0 python==3.13", rows).verdict == "incompatible"


def test_post_releases_are_told_apart_where_rows_do() -> None:
    rows = matrix(
        {"name": "widget", "versions": "==0.28", "needs": {"torch": "==2.4.1"}},
        {"name": "widget", "versions": "==0.28.post3", "needs": {"torch": "==2.5.1"}},
        {"name": "gadget", "versions": "==0.28", "needs": {"torch": "==2.4.1"}},
    )
    assert answer("widget==0.28.post3 torch==2.5.1", rows).verdict == "compatible"
    assert answer("gadget==0.28.post1 torch==2.4.1", rows).verdict == "compatible"


def test_every_row_that_covers_a_release_constrains_it() -> None:
    rows = matrix(
        {"name": "widget", "versions": ">=1,<2", "needs": {"python": ">=3.9"}},
        {"name": "widget", "versions": ">=1.5", "needs": {"gadget": "<2"}},
    )
    assert answer("widget==1.5.0 python==3.8", rows).verdict == "incompatible"
    assert answer("widget==1.5.0 python==3.9 gadget==2.0", rows).verdict == "incompatible"
    assert answer("widget==1.4.0 python==3.9 gadget==1.26", rows).verdict == "unknown"


def test_a_weak_source_decides_nothing() -> None:
    rows = matrix({"name": "widget", "versions": "==1.*", "needs": {"python": ">=3.9"}, "confidence": "weak"})
    found = answer("widget==1.0.0 python==3.8", rows)
    assert found.verdict == "unknown"
    assert found.reasons[0].message.startswith("only a weak source says so, which decides nothing: ")
    assert answer("widget==1.0.0 python==3.9", rows).verdict == "unknown"


def test_a_copy_of_its_own_does_no_harm_to_another() -> None:
    rows = matrix(
        {"name": "widget", "versions": "==1.*", "bundles": {"cudnn": "9.1.0.70"}},
        {"name": "jetpack", "versions": "==6.1", "bundles": {"cudnn": "9.3.0"}},
        {"name": "cudnn", "versions": ">=8", "needs": {"cuda": ">=11"}},
    )
    assert answer("widget==1.0.0 cudnn==9.1", rows).verdict == "compatible"
    assert answer("widget==1.0.0 cudnn==8.9", rows).verdict == "compatible"
    assert answer("jetpack==6.1 cudnn==9.3", rows).verdict == "compatible"
    assert answer("jetpack==6.1 cudnn==8.9", rows).verdict == "unknown"


def test_what_comes_with_jetpack_is_there_though_nobody_named_it() -> None:
    rows = matrix(
        {"name": "jetpack", "versions": "==6.1", "bundles": {"cuda": "12.6", "tensorrt": "10.3.0"}},
        {"name": "widget", "versions": "==1.*", "needs": {"tensorrt": ">=10,<11"}},
        {"name": "gadget", "versions": "==1.*", "needs": {"cuda": ">=11,<12"}},
    )
    assert answer("widget==1.0.0 jetpack==6.1", rows).verdict == "compatible"
    assert answer("gadget==1.0.0 jetpack==6.1", rows).verdict == "incompatible"
    assert "comes with jetpack 6.1" in answer("gadget==1.0.0 jetpack==6.1", rows).reasons[0].message


def test_pytorch_s_cuda_is_that_of_what_runs_within_it() -> None:
    rows = matrix(
        {"name": "inside", "versions": "==1.*", "needs": {"torch": ">=2", "cuda": ">=11.7,<12"}},
        {"name": "beside", "versions": "==1.*", "needs": {"cuda": ">=11.7,<12", "python": ">=3.9"}},
    )
    assert answer("inside==1.0.0 torch==2.5.1", rows).verdict == "incompatible"
    assert answer("inside==1.0.0 torch==2.5.1+cu118", rows).verdict == "compatible"
    assert answer("beside==1.0.0 torch==2.5.1 python==3.12", rows).verdict == "compatible"


def test_a_choice_of_packages_that_no_row_knows_says_nothing() -> None:
    rows = matrix({"name": "widget", "versions": "==1.*", "needs": {"gadget": "==7.*"}, "one_of": [["gadget"]]})
    found = answer("widget==1.0.0 gpu==H100", rows)
    assert found.verdict == "unknown"
    assert not any("gadget" in reason.message for reason in found.reasons)


def test_the_last_stack_of_a_project_that_ended_is_told() -> None:
    last = "Widget ended in 2019; its last stack is Widget 1.0 with CUDA 9."
    rows = matrix({"name": "widget", "versions": "==1.*", "needs": {"cuda": "==9.*"}, "superseded": last})
    assert answer("widget==1.0.0 cuda==12.4", rows).suggestions == ("cuda 9.2", last)


@every(
    ("driver==525.60.11 cuda==12.4", ("driver >= 525.60.13", "cuda 11.8")), ("driver==550 gpu==K80", ("driver R470",)),
    ("torch==2.5.1 gpu==RTX,5090", ("torch 2.8.0",)), ("torch==2.11.0 gpu==V100", ("torch 2.11.0+cu126",)),
    ("torch==2.5.1 python==3.8", ("torch 2.4.1", "python 3.9")),
    ("gpu==V100 kernel-module==open", ("the proprietary kernel module",)), ("nvcc==12.6 gpu==sm_120", ("nvcc 12.8",)),
    ("torch==2.5.1 driver==470 gpu==K80", ("torch 2.5.1+cu118",)),
    ("widget==1.0.0 python==3.12", ("widget 1.1", "python 3.11")), ("driver==550 cuda==12.4", ()),
)  # fmt: skip
def test_the_nearest_change_is_suggested_and_fits(question: str, suggestions: tuple[str, ...]) -> None:
    rows = matrix(
        {"name": "widget", "versions": "==1.0", "needs": {"python": ">=3.8,<3.12"}},
        {"name": "widget", "versions": "==1.1", "needs": {"python": ">=3.8,<3.13"}},
    )
    found = answer(question, rows)
    assert found.suggestions == suggestions, shown(found)


def test_versions_about_which_sources_disagree_are_left_open() -> None:
    rows = matrix(
        {"name": "widget", "versions": "==1.*", "needs": {"python": ">=3.8,<3.13"}, "disputed": {"python": "<3.10"}}
    )
    expected = {
        "widget==1.0 python==3.7": "incompatible",
        "widget==1.0 python==3.9": "unknown",
        "widget==1.0 python==3.10": "compatible",
        "widget==1.0 python==3.13": "incompatible",
    }
    assert verdicts(rows, expected) == expected


@every([row for row in load_matrix().releases if row.disputed])
def test_what_is_disputed_is_within_a_need_of_two_sources(row: ReleaseRow) -> None:
    assert row.disputed.keys() <= row.needs.keys() | {"capability"}
    assert len(row.source) > 1
    assert "capability" not in row.disputed or (row.capability_min and row.note)


def test_capabilities_about_which_sources_disagree_are_left_open() -> None:
    dispute = {"capability_min": "7.5", "disputed": {"capability": "<8.0"}, "note": "files lack code for it"}
    rows = matrix({"name": "widget", "versions": "==1.*", "targets": ["sm_80"], **dispute})
    expected = {
        "widget==1.0 gpu==7.0": "incompatible",
        "widget==1.0 gpu==T4": "unknown",
        "widget==1.0 gpu==A100": "compatible",
    }
    assert verdicts(rows, expected) == expected
