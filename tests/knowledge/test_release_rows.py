"""What rows of releases mean, tried on rows made for these tests beside the real drivers, toolkits and GPUs."""

from typing import Any

import msgspec

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.tables import SourceRow
from envcheck.knowledge.tables.software import ReleaseRow
from tests.every import cases, every
from tests.knowledge.asking import answer, shown

HERE = SourceRow(title="constructed for this test", address="tests", read="2026-11-20")


def row(name: str = "widget", versions: str = "==1.*", **more: object) -> ReleaseRow:
    return msgspec.convert({"name": name, "versions": versions, "source": ["here"], **more}, ReleaseRow)


def matrix(*rows: ReleaseRow) -> Matrix:
    """The real matrix with ``rows`` in the place of its releases."""
    real = load_matrix()
    return Matrix({**real.given, "release": rows, "sources": {**real.sources, "here": HERE}})


DISPUTE: dict[str, Any] = {
    "capability_min": "7.5", "disputed": {"capability": "<8.0"}, "note": "files lack code for it",
}  # fmt: skip


@cases("about, rows, expected",
    ("a need is held against the component that is named",
     [row(versions="==1.2.*", needs={"torch": "==2.5.1", "python": ">=3.9,<3.13"})],
     {"widget==1.2.0 torch==2.5.1": "compatible", "widget==1.2.0 torch==2.5.1+cu118": "compatible",
      "widget==1.2.0 torch==2.5.0": "incompatible", "widget==1.2.0 torch==2.5": "compatible",
      "widget==1.2.0 python==3.12.4": "compatible", "widget==1.2.0 python==3.13": "incompatible",
      "widget==1.2 python==3.13": "incompatible", "widget==1.3.0 python==3.12": "unknown",
      "widget==1.2.0 nonsense==1": "unknown"}),
    ("what a build was made with is held against driver and GPU",
     [row(versions="==1.0.*", cuda="12.3", targets=["sm_80", "compute_90"])],
     {"widget==1.0 driver==525.60.13": "compatible", "widget==1.0 driver==470": "incompatible",
      "widget==1.0 gpu==A100": "compatible", "widget==1.0 gpu==V100": "incompatible",
      # PTX alone: a driver that is not named is no constraint; one that is must speak CUDA 12.3
      "widget==1.0 gpu==H100": "compatible", "widget==1.0 gpu==H100 driver==545": "compatible",
      "widget==1.0 gpu==H100 driver==535": "incompatible", "widget==1.0 cuda==12.3": "compatible",
      "widget==1.0 cuda==12.6": "compatible", "widget==1.0 cuda==11.8": "unknown"}),
    ("a build without GPU support uses none", [row(versions="==1.0.*", cuda="", needs={"python": ">=3.9"})],
     {"widget==1.0 gpu==H100": "incompatible", "widget==1.0 driver==550": "incompatible",
      "widget==1.0 python==3.12": "compatible"}),
    ("documents outrank the code that was found",
     [row("low", cuda="12.4", targets=["sm_80"], capability_min="7.0"),
      row("both", capability_min="7.0", capability_max="9.0"), row("some", capabilities=["8.0", "9.0"])],
     {"low==1.0.0 gpu==V100": "compatible", "low==1.0.0 gpu==P100": "incompatible",
      "low==1.0.0 gpu==H100": "incompatible", "both==1.0.0 gpu==H100": "compatible",
      "both==1.0.0 gpu==RTX,5090": "incompatible", "some==1.0.0 gpu==RTX,4090": "incompatible",
      "some==1.0.0 gpu==H100": "compatible"}),
    ("a least capability promises nothing for GPUs newer than the toolkit", [row(cuda="11.8", capability_min="5.0")],
     {"widget==1.0.0 gpu==RTX,5090": "unknown", "widget==1.0.0 gpu==H100": "compatible"}),
    ("a toolkit that dropped a GPU left no code for it",
     [row("built", cuda="13.0"), row("used", needs={"cuda": ">=13,<14"})],
     {"built==1.0.0 gpu==V100": "incompatible", "used==1.0.0 gpu==V100": "incompatible",
      "built==1.0.0 gpu==H100": "unknown"}),
    ("what a library may be used with is held against the driver", [row(needs={"cuda": ">=11,<13"})],
     {"widget==1.0.0 driver==450.80.02": "compatible", "widget==1.0.0 driver==440": "incompatible",
      "widget==1.0.0 driver==450.80.02 cuda==12.4": "incompatible"}),
    ("needs of a driver are of one system", [row(needs={"driver-linux": ">=525.60.13", "driver-windows": ">=528.33"})],
     {"widget==1.0.0 driver==528.02": "compatible", "widget==1.0.0 driver==528.02 os==windows": "incompatible",
      "widget==1.0.0 driver==528.33 os==wsl": "compatible", "widget==1.0.0 driver==525": "compatible"}),
    ("systems",
     [row(os=["linux"], machine=["x86_64"], needs={"python": ">=3.9"}),
      row("gadget", os=["linux"], needs={"python": ">=3.9"}),
      row("gadget", os=["windows"], needs={"python": ">=3.11"})],
     {"widget==1.0.0 os==linux": "compatible", "widget==1.0.0 os==wsl": "compatible",
      "widget==1.0.0 os==windows": "incompatible", "widget==1.0.0 machine==aarch64": "incompatible",
      "gadget==1.0.0 python==3.10": "compatible", "gadget==1.0.0 python==3.10 os==windows": "incompatible",
      "gadget==1.0.0 python==3.10 os==macos": "incompatible"}),
    ("a plain version is the build without tag unless CUDA is named",
     [row(versions="==1.0.*", cuda="11.8", targets=["sm_80"]),
      row(versions="==1.0.*", build="cu121", cuda="12.1", targets=["sm_80", "sm_90"])],
     {"widget==1.0.0 driver==470": "compatible", "widget==1.0.0 gpu==H100": "incompatible",
      "widget==1.0.0+cu121 gpu==H100": "compatible", "widget==1.0.0+cu121 driver==470": "incompatible",
      "widget==1.0.0 cuda==12.1": "compatible", "widget==1.0.0 cuda==11.8": "compatible",
      # a build that no row knows: its tag tells the CUDA, which compiles for some GPUs alone
      "widget==1.0.0+cu130 driver==470": "incompatible", "widget==1.0.0+cu130 gpu==V100": "incompatible",
      "widget==1.0.0+cu130 gpu==H100": "unknown"}),
    ("where every build has a tag any is meant", [row(build="cuda11", cuda="11.8"), row(build="cuda12", cuda="12.3")],
     {"widget==1.0.0 driver==470": "compatible", "widget==1.0.0 driver==440": "incompatible",
      "widget==1.0.0+cuda12 driver==470": "incompatible"}),
    ("a family is answered when its releases agree",
     [row(versions="==1.0.0", needs={"python": ">=3.8,<3.12"}),
      row(versions="==1.0.1", needs={"python": ">=3.8,<3.13"})],
     {"widget==1.0 python==3.11": "compatible", "widget==1.0 python==3.13": "incompatible"}),
    ("post-releases are told apart where rows do",
     [row(versions="==0.28", needs={"torch": "==2.4.1"}), row(versions="==0.28.post3", needs={"torch": "==2.5.1"}),
      row("gadget", "==0.28", needs={"torch": "==2.4.1"})],
     {"widget==0.28.post3 torch==2.5.1": "compatible", "gadget==0.28.post1 torch==2.4.1": "compatible"}),
    ("every row that covers a release constrains it",
     [row(versions=">=1,<2", needs={"python": ">=3.9"}), row(versions=">=1.5", needs={"gadget": "<2"})],
     {"widget==1.5.0 python==3.8": "incompatible", "widget==1.5.0 python==3.9 gadget==2.0": "incompatible",
      "widget==1.4.0 python==3.9 gadget==1.26": "unknown"}),
    ("a copy of its own does no harm to another",
     [row(bundles={"cudnn": "9.1.0.70"}), row("jetpack", "==6.1", bundles={"cudnn": "9.3.0"}),
      row("cudnn", ">=8", needs={"cuda": ">=11"})],
     {"widget==1.0.0 cudnn==9.1": "compatible", "widget==1.0.0 cudnn==8.9": "compatible",
      "jetpack==6.1 cudnn==9.3": "compatible", "jetpack==6.1 cudnn==8.9": "unknown"}),
    ("PyTorch's CUDA is that of what runs within it",
     [row("inside", needs={"torch": ">=2", "cuda": ">=11.7,<12"}),
      row("beside", needs={"cuda": ">=11.7,<12", "python": ">=3.9"})],
     {"inside==1.0.0 torch==2.5.1": "incompatible", "inside==1.0.0 torch==2.5.1+cu118": "compatible",
      "beside==1.0.0 torch==2.5.1 python==3.12": "compatible"}),
    ("versions about which sources disagree are left open",
     [row(needs={"python": ">=3.8,<3.13"}, disputed={"python": "<3.10"})],
     {"widget==1.0 python==3.7": "incompatible", "widget==1.0 python==3.9": "unknown",
      "widget==1.0 python==3.10": "compatible", "widget==1.0 python==3.13": "incompatible"}),
    ("capabilities about which sources disagree are left open", [row(targets=["sm_80"], **DISPUTE)],
     {"widget==1.0 gpu==7.0": "incompatible", "widget==1.0 gpu==T4": "unknown", "widget==1.0 gpu==A100": "compatible"}),
)  # fmt: skip
def test_what_rows_mean(about: str, rows: list[ReleaseRow], expected: dict[str, str]) -> None:
    assert {question: answer(question, matrix(*rows)).verdict for question in expected} == expected


def test_a_component_that_nothing_relates_leaves_the_answer_open() -> None:
    rows = matrix(row(needs={"python": ">=3.9"}), row("gadget", needs={"numpy": "<2"}))
    found = answer("widget==1.0 python==3.12 gadget==1.0", rows)
    assert found.verdict == "unknown"
    assert found.reasons[0].message == "nothing in the matrix relates gadget==1.0 to anything else here"
    assert answer("widget==1.0 python==3.12 os==linux machine==x86_64", rows).verdict == "compatible"


def test_a_weak_source_decides_nothing() -> None:
    rows = matrix(row(needs={"python": ">=3.9"}, confidence="weak"))
    found = answer("widget==1.0.0 python==3.8", rows)
    assert found.verdict == "unknown"
    assert found.reasons[0].message.startswith("only a weak source says so, which decides nothing: ")
    assert answer("widget==1.0.0 python==3.9", rows).verdict == "unknown"


def test_what_comes_with_jetpack_is_there_though_nobody_named_it() -> None:
    jetpack = row("jetpack", "==6.1", bundles={"cuda": "12.6", "tensorrt": "10.3.0"})
    rows = matrix(jetpack, row(needs={"tensorrt": ">=10,<11"}), row("gadget", needs={"cuda": ">=11,<12"}))
    assert answer("widget==1.0.0 jetpack==6.1", rows).verdict == "compatible"
    assert answer("gadget==1.0.0 jetpack==6.1", rows).verdict == "incompatible"
    assert "comes with jetpack 6.1" in answer("gadget==1.0.0 jetpack==6.1", rows).reasons[0].message


def test_a_choice_of_packages_that_no_row_knows_says_nothing() -> None:
    found = answer("widget==1.0.0 gpu==H100", matrix(row(needs={"gadget": "==7.*"}, one_of=[["gadget"]])))
    assert found.verdict == "unknown"
    assert not any("gadget" in reason.message for reason in found.reasons)


def test_the_last_stack_of_a_project_that_ended_is_told() -> None:
    last = "Widget ended in 2019; its last stack is Widget 1.0 with CUDA 9."
    rows = matrix(row(needs={"cuda": "==9.*"}, superseded=last))
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
    older, newer = {"python": ">=3.8,<3.12"}, {"python": ">=3.8,<3.13"}
    found = answer(question, matrix(row(versions="==1.0", needs=older), row(versions="==1.1", needs=newer)))
    assert found.suggestions == suggestions, shown(found)


@every([row for row in load_matrix().releases if row.disputed])
def test_what_is_disputed_is_within_a_need_of_two_sources(row: ReleaseRow) -> None:
    assert row.disputed.keys() <= row.needs.keys() | {"capability"}
    assert len(row.source) > 1
    assert "capability" not in row.disputed or (row.capability_min and row.note)
