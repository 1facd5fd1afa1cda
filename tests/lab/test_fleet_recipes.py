"""What hands a fleet to other systems: OpenTelemetry, NVSentinel, and a Debian package with the agent of a node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from envcheck.fleet import record
from tests.fleet.made import healthy
from tests.fleet.test_fleet import fleet_of, write
from tests.fleet.test_hooks import lost

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lines(tmp_path: Path) -> str:
    """A fleet of which one node lost a GPU, one has another driver, one is slow and one vanished."""
    made = healthy(5)
    lost(made[1])
    made[2]["snapshot"]["driver"]["release"] = "570.1"
    made[3]["measurements"][0]["value"] *= 0.7
    (tmp_path / "reports").mkdir()
    return "".join(record.write(fleet_of(write(tmp_path / "reports", made), expected=["gone"])))


@pytest.fixture
def taken() -> Iterator[tuple[str, dict[str, bytes]]]:
    """The address of a collector on this machine, and what it takes, by path."""
    bodies: dict[str, bytes] = {}

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    server.server_close()


def send(lines: str, address: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "recipes/opentelemetry/send.py")
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_TIMEOUT": "2"}
    command = [sys.executable, "-I", script]
    return subprocess.run(command, input=lines, env=variables, capture_output=True, text=True, check=False, timeout=120)


def test_a_collector_of_opentelemetry_gets_each_trouble_and_the_numbers(
    lines: str, taken: tuple[str, dict[str, bytes]]
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (  # noqa: PLC0415  may be missing
        ExportLogsServiceRequest,
    )
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415
        ExportMetricsServiceRequest,
    )

    address, bodies = taken
    done = send(lines, address)
    assert (done.returncode, done.stderr) == (0, "")
    logs = ExportLogsServiceRequest.FromString(bodies["/v1/logs"]).resource_logs[0].scope_logs[0].log_records
    told = {tuple(each.value.string_value for each in log.attributes[:2]) for log in logs}
    assert told == {("node00001", "gpu-lost"), ("node00002", "driver: release"), ("gone", "vanished")}
    found = ExportMetricsServiceRequest.FromString(bodies["/v1/metrics"]).resource_metrics[0].scope_metrics[0].metrics
    gauges = {metric.name: metric.gauge.data_points for metric in found}
    assert {each.attributes[0].value.string_value: each.as_int for each in gauges["envcheck.fleet.nodes"]}["fail"] == 1
    (slow,) = gauges["envcheck.fleet.speed"]
    assert slow.as_double == pytest.approx(0.7, abs=0.02)
    assert send(lines, "http://127.0.0.1:1").returncode == 1


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_nvsentinel_gets_an_event_for_each_node_with_a_verdict(lines: str) -> None:
    command = ["jq", "-s", "-f", str(ROOT / "recipes/nvsentinel/events.jq")]
    made = json.loads(subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout)
    events = {each["nodeName"]: each for each in made["events"]}
    assert [node for node, each in events.items() if not each["isHealthy"]] == ["node00001"]
    assert len(events) == 5
    assert (events["node00001"]["isFatal"], events["node00001"]["errorCode"]) == (True, ["gpu-lost"])
    # The names and types of NVSentinel's message (data-models/protobufs/health_event.proto).
    fields = {
        "version": int, "agent": str, "componentClass": str, "checkName": str, "isFatal": bool, "isHealthy": bool,
        "message": str, "recommendedAction": str, "errorCode": list, "generatedTimestamp": str, "nodeName": str,
        "processingStrategy": str,
    }  # fmt: skip
    for event in events.values():
        assert {name: type(value) for name, value in event.items()} == fields


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg is not installed")
def test_the_debian_package_brings_the_agent_of_a_node(tmp_path: Path) -> None:
    subprocess.run([ROOT / "recipes/deb/build", tmp_path], check=True, capture_output=True, timeout=600)
    (package,) = tmp_path.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", package, tmp_path / "root"], check=True)
    root = tmp_path / "root/usr"
    units = root / "lib/systemd/system"
    texts = [file.read_text() for file in (units / "envcheck-node.service", *root.glob("lib/gpu-envcheck/slurm/*.sh"))]
    assert len(texts) == 3
    for text in texts:
        assert "/opt/" not in text
        assert "/usr/bin/envcheck" in text
    (line,) = re.findall(r"^ExecStart=/usr/bin/envcheck (.*)$", texts[0], re.MULTILINE)
    moved = tmp_path / "envcheck"
    moved.write_text((root / "bin/envcheck").read_text().replace("/usr/lib/gpu-envcheck", f"{root}/lib/gpu-envcheck"))
    for words in (line.split(), ["node", "--max-age", "10m"]):
        command = [sys.executable, "-I", moved, *words, "--runtime-dir", tmp_path / "kept"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1, 3), done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout
