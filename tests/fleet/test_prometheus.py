"""Alerts and a dashboard over the metrics of many nodes: what they ask for is what a node tells."""

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import msgspec
import pytest
import yaml

from envcheck.fleet import record
from envcheck.fleet.pages import prometheus
from envcheck.model.checks import Report
from envcheck.report import Options, render
from tests.cli.calling import ROOT
from tests.fleet.made import healthy
from tests.fleet.test_fleet import fleet_of, write
from tests.fleet.test_hooks import lost
from tests.test_machines import report_on

FOLDER = ROOT / "docs/fleet/prometheus"
RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "envcheck.rules.yaml").read_text())["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text())
_SELECTED = re.compile(r"(envcheck_\w+)(?:\{([^}]*)\})?")


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def of_a_fleet(folder: Path) -> str:
    """A fleet of which one node fails, one is slow, one has no verdict, one became slower and one vanished."""
    made = healthy(5)
    lost(made[1])
    for figure in made[2]["measurements"]:
        figure["value"] *= 0.7 if figure["unit"] == "FLOP/s" else 1
    made[3]["verdict"] = "unknown"
    fleet = fleet_of(write(folder, made), expected=["gone"])
    slower = record.Decline("node00004", ("GPU 0",), ("GEMM",), 0.93, "2026-11-12", 4)
    return prometheus.render(msgspec.structs.replace(fleet, declines=(slower,)), Options())


@cache
def told() -> dict[str, list[dict[str, str]]]:
    """The labels of every series of a healthy node and of one that fails, by metric."""
    measured = msgspec.json.decode(msgspec.json.encode(healthy(1)[0]), type=Report)
    text = render(measured, "prometheus") + render(report_on("constructed/fabric-manager"), "prometheus")
    with TemporaryDirectory() as folder:
        text += of_a_fleet(Path(folder))
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


def test_a_fleet_is_one_text_that_promtool_would_take(tmp_path: Path) -> None:
    text = of_a_fleet(tmp_path)
    series = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(set(series)) == len(series)
    assert 'envcheck_verdict{node="node00001",verdict="fail"} 1' in series
    assert 'envcheck_finding{node="node00001",rule="gpu-lost",status="fail"} 1' in series
    assert 'envcheck_fleet_nodes{verdict="unknown"} 1' in series
    assert 'envcheck_fleet_vanished{node="gone"} 1' in series
    assert not [line for line in series if "GPU-" in line]
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.lab
@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (Debian: prometheus)")
def test_promtool_takes_every_expression_and_the_alerts_fire_when_they_should(tmp_path: Path) -> None:
    recorded = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(expressions())]
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    alerts = ROOT / "tests/fleet/alerts.yaml"
    for words in (("check", "rules", tmp_path / "panels.yaml"), ("test", "rules", alerts)):
        done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """The interface of a Prometheus that scrapes two nodes and the file of a fleet, as the page configures it."""
    nodes = healthy(2)
    nodes[0]["measurements"][0]["value"] *= 0.7
    texts = [render(msgspec.convert(each, Report), "prometheus") for each in nodes]
    (tmp_path / "fleet").mkdir()
    texts.append(of_a_fleet(tmp_path / "fleet"))

    class Exporter(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(texts[int(self.path.strip("/"))].encode())

        def log_message(self, *_: object) -> None: ...

    exporter = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    Thread(target=exporter.serve_forever, daemon=True).start()
    configuration = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    (job,) = configuration["scrape_configs"]
    del job["file_sd_configs"]
    targets = [f"127.0.0.1:{exporter.server_port}"]
    configuration["scrape_configs"] = [
        {**job, "job_name": f"job{number}", "metrics_path": f"/{number}",
         "static_configs": [{"targets": targets, "labels": {"instance": f"machine{number}"}}]}
        for number in range(len(texts))
    ]  # fmt: skip
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
    shutil.copy(FOLDER / "envcheck.rules.yaml", tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"

    def ask(path: str, **words: str) -> Any:
        with urlopen(f"http://{address}/api/v1/{path}?{urlencode(words)}") as answer:
            return json.load(answer)["data"]

    command = ["prometheus", f"--config.file={tmp_path}/prometheus.yaml", f"--storage.tsdb.path={tmp_path}/data"]
    with subprocess.Popen([*command, f"--web.listen-address={address}"], stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                with suppress(OSError):
                    if all(each["lastEvaluation"] > "2" for each in ask("rules")["groups"][0]["rules"]):
                        found = ask("query", query="count(envcheck_info)")["result"]
                        if found and found[0]["value"][1] == "7":
                            break
                time.sleep(0.5)
            yield ask
        finally:
            process.terminate()
            exporter.shutdown()
            exporter.server_close()


@pytest.mark.lab
@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed (Debian: prometheus)")
def test_a_prometheus_answers_every_panel_and_alert(asked: Callable[..., Any]) -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            assert asked("query", query=target["expr"])["result"], target["expr"]
    raised = {rule["alert"] for rule in RULES if asked("query", query=rule["expr"])["result"]}
    # Of two nodes that fail none is "many", and nobody told anything a day ago.
    assert {rule["alert"] for rule in RULES} - raised == {"EnvcheckManyNodesFail", "EnvcheckNodeVanished"}
    (failing,) = asked("query", query='envcheck_verdict{verdict="fail"} == 1')["result"]
    assert failing["metric"]["instance"] == "node00001"
    rules = asked("rules")["groups"][0]["rules"]
    assert {rule["health"] for rule in rules} == {"ok"}


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
