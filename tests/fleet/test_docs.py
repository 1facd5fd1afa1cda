"""The pages of docs/fleet: their examples run, their manifests fit, and the schema is the one that is printed."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from envcheck.cli.options import parse
from envcheck.fleet import saved
from envcheck.fleet.engines.asking import asked
from envcheck.fleet.engines.kubernetes import manifest
from tests.cli.calling import ROOT, envcheck
from tests.fleet.collective.test_between_nodes import SSH as TALKING_SSH
from tests.fleet.collective.test_between_nodes import STAND_IN
from tests.fleet.made import healthy
from tests.fleet.test_engines import KUBECTL, SINFO, SRUN, SSH, programs
from tests.fleet.test_fleet import fleet_of, write

PAGES = sorted((ROOT / "docs/fleet").glob("*.md"))
COMMAND = re.compile(r"^ {4}(envcheck (?:fleet|bench) .*|cat .* \| envcheck fleet .*)$", re.MULTILINE)


def examples(name: str) -> list[str]:
    found = COMMAND.findall((ROOT / f"docs/fleet/{name}.md").read_text())
    assert found
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_the_pages_is_one_that_the_parser_takes(page: Path) -> None:
    for line in COMMAND.findall(page.read_text()):
        argv = shlex.split(line.rpartition("| ")[2])
        assert parse(argv[1:], {}).verb in ("fleet", "bench")


def test_the_examples_with_reports_run(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    write(tmp_path / "reports", healthy(4))
    for line in examples("reports"):
        piped = "".join(file.read_text() for file in sorted((tmp_path / "reports").iterdir()))
        argv = [part.strip("'") for part in shlex.split(line.rpartition("| ")[2])[1:]]
        told = envcheck(*argv, cwd=tmp_path, stdin=piped if "|" in line else "")
        assert told.status == 0, told.err


@pytest.mark.parametrize(
    ("page", "program", "text"), [("ssh", "ssh", SSH), ("slurm", "srun", SRUN), ("kubernetes", "kubectl", KUBECTL)]
)
def test_the_first_example_of_an_engine_runs(tmp_path: Path, page: str, program: str, text: str) -> None:
    (tmp_path / "hosts.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "report").write_text(json.dumps(healthy(1)[0]))
    path = programs(tmp_path, **{program: text, "sinfo": SINFO})
    argv = shlex.split(examples(page)[0])[1:]
    if "--timeout" not in argv or page == "kubernetes":
        argv += ["--timeout", "4"]
    told = envcheck(*argv, cwd=tmp_path, PATH=path)
    assert "Traceback" not in told.err
    found = saved.read((tmp_path / "fleet.jsonl").read_bytes())
    assert any(not node.problem for node in found.nodes)


@pytest.mark.parametrize("line", examples("bench")[:2])
def test_the_examples_of_measuring_together_run(tmp_path: Path, line: str) -> None:
    (tmp_path / "hosts.txt").write_text("n1\nn2\nn3\n")
    envcheck_there = f"#!/bin/sh\nexec {sys.executable} {STAND_IN} {tmp_path}/plan\n"
    (tmp_path / "plan").write_text('{"n2": {"speed": 0.5}}')
    srun = "#!/bin/sh\nfor word; do case $word in --nodelist=*) SLURMD_NODENAME=${word#*=};; esac; done\n"
    srun += "export SLURMD_NODENAME\nexec envcheck\n"
    sinfo = "#!/bin/sh\nprintf 'n%s|idle|none\\n' 1 2 3\n"
    path = programs(tmp_path, ssh=TALKING_SSH, srun=srun, sinfo=sinfo, scancel="#!/bin/sh\n", envcheck=envcheck_there)
    told = envcheck(*shlex.split(line)[1:], cwd=tmp_path, PATH=path)
    assert told.err == ""
    assert "n2 with n1: 25.0 GB/s, 50%; two healthy nodes reach 50.0 GB/s" in told.out


def manifests() -> list[Any]:
    folder = ROOT / "docs/fleet/kubernetes"
    return [yaml.safe_load(file.read_text()) for file in sorted(folder.glob("*.yaml"))]


@pytest.mark.parametrize("manifest", manifests(), ids=lambda manifest: manifest["kind"])
def test_manifests_run_as_nobody_on_a_read_only_root(manifest: dict[str, Any]) -> None:
    pod = manifest["spec"] if manifest["kind"] == "Pod" else manifest["spec"]["template"]["spec"]
    ours = [each for each in (*pod.get("initContainers", ()), *pod["containers"]) if "envcheck" in each["image"]]
    assert ours
    for container in ours:
        allowed = container["securityContext"]
        assert (allowed["runAsNonRoot"], allowed["readOnlyRootFilesystem"]) == (True, True)
        assert allowed["capabilities"] == {"drop": ["ALL"]}
        for line in re.findall(r"envcheck (check .*?)(?:>|$)", container["args"][0], re.MULTILINE):
            assert parse(shlex.split(line), {}).verb == "check"


@pytest.mark.lab
@pytest.mark.parametrize("version", ["1.28", "1.37"])
def test_manifests_fit_the_published_schemas(version: str) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")

    made = manifest("envcheck-fleet-1", "python:3.12-slim", ["a", "b"], asked(None), 60)
    for each in (*manifests(), *made["items"]):
        kubernetes_validate.validate(each, version, strict=True)


def test_the_plugin_of_node_problem_detector_is_a_check() -> None:
    found = json.loads((ROOT / "docs/fleet/kubernetes/node-problem-detector.json").read_text())
    assert parse(found["rules"][0]["args"], {}).format == "node-problem-detector"


# The schema.


def test_every_line_of_a_fleet_fits_the_schema(tmp_path: Path) -> None:
    made = healthy(5)
    made[0]["snapshot"]["driver"]["release"] = "570.1"
    made[1]["measurements"][0]["value"] *= 0.5
    validator = jsonschema.Draft202012Validator(saved.schema())
    lines = list(saved.write(fleet_of(write(tmp_path, made))))
    kinds = set()
    for line in lines:
        record = json.loads(line)
        validator.validate(record)
        kinds.add(record["record"])
    assert {"fleet", "difference", "slow", "spread", "group", "node", "facts"} <= kinds
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"record": "node"})


def test_the_published_schema_is_the_one_that_is_printed() -> None:
    file = ROOT / "docs/schema/fleet-1.0.json"
    assert json.loads(file.read_text()) == json.loads(msgspec.json.encode(saved.schema()))


def test_every_property_of_the_schema_is_described() -> None:
    lacking = [
        f"{kind}.{key}"
        for kind, part in saved.schema()["$defs"].items()
        for key, value in part.get("properties", {}).items()
        if key != "record" and len(value.get("description", "")) < 5
    ]
    assert lacking == []
