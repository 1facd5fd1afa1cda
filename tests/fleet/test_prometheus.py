"""Alerts and a dashboard over the metrics of many nodes: what they ask for is what a node tells."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from envcheck.model.checks import Report
from envcheck.report import render
from tests.cli.calling import ROOT
from tests.fleet.made import healthy
from tests.test_machines import report_on

FOLDER = ROOT / "docs/fleet/prometheus"
RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "envcheck.rules.yaml").read_text())["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text())
_SELECTED = re.compile(r"(envcheck_\w+)(?:\{([^}]*)\})?")


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def told() -> dict[str, list[dict[str, str]]]:
    """The labels of every series of a healthy node and of one that fails, by metric."""
    measured = msgspec.json.decode(msgspec.json.encode(healthy(1)[0]), type=Report)
    text = render(measured, "prometheus") + render(report_on("constructed/fabric-manager"), "prometheus")
    found: dict[str, list[dict[str, str]]] = {}
    for name, labels in re.findall(r"^(envcheck_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        found.setdefault(name, []).append(dict(re.findall(r'(\w+)="([^"]*)"', labels)))
    return found


@pytest.mark.parametrize("expression", [*expressions()])
def test_every_series_that_is_asked_for_is_told(expression: str) -> None:
    known = told()
    asked = _SELECTED.findall(expression)
    assert asked
    for name, labels in asked:
        wanted = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        assert any(wanted.items() <= series.items() for series in known.get(name, ())), (name, wanted)
    for label in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        for each in set(re.split(r",\s*", label)) - {"instance"}:
            assert any(each in series for name, _ in asked for series in known[name]), each


def test_no_label_holds_the_uuid_of_another_gpu() -> None:
    """A link's other end is its number, so that its series stays when that GPU is replaced."""
    links = [
        series for each in told().values() for series in each if series.get("figure", "").startswith("peer-to-peer")
    ]
    assert {series["peer"] for series in links} == {"0", "1", "2", "3"}
    assert not [
        series for series in links if "GPU-" in "".join(value for name, value in series.items() if name != "uuid")
    ]


@pytest.mark.lab
@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (Debian: prometheus)")
def test_promtool_takes_every_expression_and_the_alerts_fire_when_they_should(tmp_path: Path) -> None:
    recorded = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(expressions())]
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    alerts = ROOT / "tests/fleet/alerts.yaml"
    for words in (("check", "rules", tmp_path / "panels.yaml"), ("test", "rules", alerts)):
        done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_says_what_is_wrong() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[mh]", rule["for"])
        assert rule["labels"]["severity"] in ("critical", "warning")
        for label in re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())):
            names = {name for name, _ in _SELECTED.findall(rule["expr"])}
            assert label == "instance" or any(label in series for name in names for series in told()[name])


def test_no_panel_covers_another_and_all_ask_the_chosen_source() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
        assert {each["datasource"]["uid"] for each in (panel, *panel["targets"])} == {"${source}"}
    assert [each["name"] for each in DASHBOARD["templating"]["list"]] == ["source"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
