"""The checks that every probe's tests rest on find what they are meant to find."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from msgspec import inspect as shape

from envcheck.snapshot import Snapshot


@pytest.fixture(scope="module")
def border() -> ModuleType:
    spec = importlib.util.spec_from_file_location("probe_border", Path(__file__).with_name("conftest.py"))
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_unknown_keys_are_named_at_every_depth(border: ModuleType) -> None:
    fact = {
        "kernel": {"nvidia": {"laoded": True}, "device_nodes": [{"path": "/dev/nvidia0", "major": 195}]},
        "gpus": {"items": [{"pcie": {"gen": 5}}], "compelte": True},
        "plattform": {},
    }
    assert border.unknown_keys(fact, shape.type_info(Snapshot)) == [
        ".plattform",
        ".kernel.nvidia.laoded",
        ".kernel.device_nodes[0].major",
        ".gpus.compelte",
        ".gpus.items[0].pcie.gen",
    ]


def test_known_keys_and_free_dictionaries_are_left_alone(border: ModuleType) -> None:
    fact = {"variables": {"values": {"ANY_NAME": "1"}, "complete": True, "read": {"values": "process"}}}
    assert border.unknown_keys(fact, shape.type_info(Snapshot)) == []


def test_records_without_source_are_named(border: ModuleType) -> None:
    fact = {
        "kernel": {"source": "file", "nvidia": {"loaded": True}},
        "gpus": {"items": [{"source": "sysfs", "pcie": {"generation": 5}}], "complete": True},
    }
    assert border.unsourced(fact, shape.type_info(Snapshot)) == [".kernel.nvidia", ".gpus.items[0].pcie"]
