"""No finding is hidden by another: one line stands for several subjects only where all say the same."""

import html
import json
from typing import Any

import msgspec
import pytest

from envcheck.fleet.compare import _problems
from envcheck.fleet.examine import NodeAnswer, NodeFinding, examine
from envcheck.model.checks import Check, Evidence, Fix, Ignored, Report
from envcheck.report import render
from envcheck.report.page.findings import Outline, folded
from envcheck.tui.screens.pages import in_order, title_of
from tests.every import cases
from tests.report.examples import PLAIN, about, check, gpu, machine, report

GPUS = tuple(map(gpu, range(8)))
SHOWN = ("text", "html", "markdown", "github", "junit", "sarif", "gitlab", "summary")


def slow(number: int, share: str = "13 %", **more: Any) -> Check:
    told: dict[str, Any] = {
        "title": f"GPU {number} (NVIDIA H200): {share} slower than the others",
        "message": f"GPU {number} is behind.",
        "evidence": (Evidence(what="behind", value=share, source=f"bench of {GPUS[number].uuid}"),),
        "fixes": (Fix(text="Reset it", command=("nvidia-smi", "-r", "-i", str(number))),),
    }
    return check("gpu-straggler", "fail", layer="gpu", subject=about(GPUS[number]), **(told | more))


def of(*checks: Check, status: str = "fail") -> Report:
    told = tuple(msgspec.structs.replace(each, status=status) for each in checks)
    return report(told, machine(GPUS, None), primary=told[0] if status in ("fail", "warn") else None)


def shown(form: str, judged: Report, **options: Any) -> str:
    text = render(judged, form, PLAIN._replace(**options))
    return html.unescape(text).replace("%25", "%") if form != "text" else text


@cases("status", "fail", "warn", "note")
@pytest.mark.parametrize("form", SHOWN)
def test_each_title_is_shown(form: str, status: str) -> None:
    if form in ("summary", "github") and status == "note":
        return  # both leave notes out
    text = shown(form, of(slow(4), slow(6, "44 %"), status=status))
    assert "13 %" in text
    assert "GPU 6" in text
    assert "44 %" in text


@cases("other",
    {"title": "GPU 6 (NVIDIA H200): 44 % slower than the others"}, {"message": "GPU 6 is far behind."},
    {"evidence": (Evidence(what="behind", value="44 %"),)}, {"fixes": (Fix(text="Replace it"),)},
    {"fixes": (Fix(text="Reset it", command=("nvidia-smi", "-r", "-i", "5")),)},
)  # fmt: skip
def test_what_differs_in_anything_said_is_a_finding_of_its_own(other: dict[str, Any]) -> None:
    judged = of(slow(4), slow(6, **other))
    assert len(Outline(judged).findings) == 2
    assert len(in_order(Outline(judged), final=True)) == 2


def test_the_number_of_the_gpu_alone_is_no_difference() -> None:
    judged = of(*map(slow, (4, 6, 7)))
    (finding,) = Outline(judged).findings
    assert finding.title == "GPU 4 (NVIDIA H200): 13 % slower than the others (also GPU 6-7)"
    rows = [title_of(row) for row in in_order(Outline(judged), final=True)]
    assert rows == ["13 % slower than the others, GPU 4, 6-7"]
    for form in ("text", "html", "markdown", "github"):
        assert "also GPU 6-7" in shown(form, judged).replace("%2C", ",")


def test_another_number_that_is_the_index_by_chance_is_a_difference() -> None:
    assert len(folded([slow(number, evidence=(Evidence(what="errors", value=str(number)),)) for number in (4, 6)])) == 2


def test_every_fix_of_a_folded_finding_is_on_the_long_pages() -> None:
    judged = of(slow(4), slow(6))
    for text in (shown("html", judged), shown("text", judged, verbose=True)):
        assert "nvidia-smi -r -i 4" in text
        assert "nvidia-smi -r -i 6" in text


def test_a_fleet_tells_each_finding_of_a_node() -> None:
    told = NodeAnswer("node", content=render(of(slow(4), slow(6, "44 %")), "json").encode())
    (node,), _ = examine([told], lambda report, _: report)
    assert [finding.title.partition(": ")[2] for finding in node.findings] == [
        "13 % slower than the others",
        "44 % slower than the others",
    ]


def test_a_fleet_joins_nodes_that_say_the_same() -> None:
    def node(name: str, *titles: str) -> Any:
        told = tuple(NodeFinding("fail", "gpu-lost", title) for title in titles)
        return type("Node", (), {"name": name, "findings": told})()

    problems = _problems([node("a", "GPU 1 is lost"), node("b", "GPU 1 is lost", "GPU 2 is lost")])
    assert [(each.title, each.nodes) for each in problems] == [("GPU 1 is lost", ("a", "b")), ("GPU 2 is lost", ("b",))]


def test_the_reason_for_slurm_names_no_gpu_whose_failure_is_ignored() -> None:
    aside = slow(6, ignored=Ignored(reason="known"))
    assert shown("slurm-reason", of(slow(4), aside)) == "envcheck: gpu-straggler gpu4\n"


def test_json_has_both() -> None:
    assert len(json.loads(render(of(slow(4), slow(6, "44 %")), "json", PLAIN))["checks"]) == 2
