"""Send a fleet report to an OpenTelemetry collector: each thing that stands out as a log record, numbers as gauges.

    pip install 'gpu-envcheck[fleet,otel]'
    export OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318
    envcheck fleet --reports reports -q -o jsonl:fleet.jsonl
    python -I send.py < fleet.jsonl

Where it goes, with which headers and certificates, the SDK's own variables (OTEL_…) say. The exit status is 1 where the
collector did not take it.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

SEVERITY = {"fail": SeverityNumber.ERROR, "warn": SeverityNumber.WARN, "unknown": SeverityNumber.WARN}


def found(line: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Node, status, what and a sentence, of each node that a line of the report is about."""
    kind = line["record"]
    if kind in ("vanished", "problem"):
        what, text = line.get("rule", "vanished"), line.get("title", "expected, and nothing came of it")
        yield from ((node, line["status"], what, text) for node in line["nodes"])
    elif kind == "difference":
        text = f"{line['value']}, not {line['common']}"
        yield from ((place["node"], "warn", f"{line['aspect']}: {line['what']}", text) for place in line["places"])
    elif kind == "decline":
        text = f"{', '.join(line['subjects'])}: {line['ratio']:.0%} of the speed before {line['since']}"
        yield line["node"], "warn", "became-slower", text
    elif kind == "node" and line["problem"]:
        yield line["name"], "unknown", "unanswered", line["problem"]


class Failures(logging.Handler):
    """What the exporters say went wrong."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


def main() -> None:
    """Send what is on stdin."""
    failures = Failures()
    logging.getLogger("opentelemetry").addHandler(failures)
    try:
        lines = [json.loads(line) for line in sys.stdin]
        head = lines[0]
        resource = Resource.create({"service.name": "envcheck", "service.version": head["tool"]["version"]})
    except (IndexError, KeyError, TypeError, ValueError):
        sys.exit("send.py: stdin is no fleet report; give it the lines of envcheck fleet -o jsonl:FILE")
    when = int(datetime.fromisoformat(head["created"].replace("Z", "+00:00")).timestamp() * 1e9)

    logs = LoggerProvider(resource=resource)
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    logger = logs.get_logger("envcheck.fleet")
    for line in lines:
        for node, status, what, text in found(line):
            about = {"host.name": node, "envcheck.rule": what, "envcheck.status": status}
            severity = SEVERITY.get(status, SeverityNumber.INFO)
            logger.emit(LogRecord(timestamp=when, severity_number=severity, body=text, attributes=about))
    logs.shutdown()

    metrics = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource)
    meter = metrics.get_meter("envcheck.fleet")
    nodes = meter.create_gauge("envcheck.fleet.nodes", "{node}", "Nodes by verdict")
    for verdict, count in head["verdicts"].items():
        nodes.set(count, {"verdict": verdict})
    share = meter.create_gauge("envcheck.fleet.speed", "1", "Speed as a share of the fleet's median, of what is slow")
    for line in lines:
        if line["record"] == "slow":
            about = {"host.name": line["node"], "gpu": line["subject"], "quantity": line["quantity"]["title"]}
            share.set(line["ratio"], about)
    metrics.shutdown()
    sys.exit(1 if failures.told else 0)


main()
