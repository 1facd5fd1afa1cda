"""The pages of docs/fleet: their examples run, their manifests fit, and the schema is the one that is printed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from envcheck.cli.parser import parse
from envcheck.fleet import record
from envcheck.fleet.engines.engine import node_program
from envcheck.fleet.engines.kubernetes import manifest
from tests.cli.calling import ROOT, envcheck
from tests.every import cases
from tests.fleet.collective.test_between_nodes import SSH as TALKING_SSH
from tests.fleet.collective.test_between_nodes import STAND_IN
from tests.fleet.made import healthy
from tests.fleet.test_engines import KUBECTL, SINFO, SRUN, SSH, programs
from tests.fleet.test_fleet import fleet_of, write

PAGES = sorted((ROOT / "docs/fleet").glob("*.md"))
COMMAND = re.compile(
    r"^ {4,}(envcheck (?:fleet|bench|node) .*|(?:aws|cat|kubectl|rclone|tar) .* \| envcheck fleet .*)$", re.MULTILINE
)


def examples(name: str) -> list[str]:
    found = COMMAND.findall((ROOT / f"docs/fleet/{name}.md").read_text())
    assert found
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_the_pages_is_one_that_the_parser_takes(page: Path) -> None:
    for line in COMMAND.findall(page.read_text()):
        assert parse(shlex.split(line.rpartition("| ")[2])[1:], {}).verb in ("fleet", "fleet history", "bench", "node")


def test_the_examples_with_reports_run(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    write(tmp_path / "reports", healthy(4))
    for line in examples("reports"):
        piped: bytes | str = "".join(file.read_text() for file in sorted((tmp_path / "reports").iterdir()))
        if line.startswith("tar"):
            made = line.partition(" |")[0].split()
            piped = subprocess.run(made, cwd=tmp_path, capture_output=True, check=True).stdout
        argv = [part.strip("'") for part in shlex.split(line.rpartition("| ")[2])[1:]]
        told = envcheck(*argv, cwd=tmp_path, stdin=piped if "|" in line else "")
        assert told.status == 0, told.err


@cases("page, program, text", ("ssh", "ssh", SSH), ("slurm", "srun", SRUN), ("kubernetes", "kubectl", KUBECTL))
def test_the_first_example_of_an_engine_runs(tmp_path: Path, page: str, program: str, text: str) -> None:
    (tmp_path / "hosts.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "report").write_text(json.dumps(healthy(1)[0]))
    path = programs(tmp_path, **{program: text, "sinfo": SINFO})
    argv = shlex.split(examples(page)[0])[1:]
    if "--timeout" not in argv or page == "kubernetes":
        argv += ["--timeout", "4"]
    assert "Traceback" not in envcheck(*argv, cwd=tmp_path, PATH=path).err
    assert any(not node.problem for node in record.read((tmp_path / "fleet.jsonl").read_bytes()).nodes)


def test_the_logs_of_the_pods_are_reports(tmp_path: Path) -> None:
    """As the page has it: what kubectl prints of several pods, one after the other."""
    (line,) = [each for each in examples("kubernetes") if each.startswith("kubectl")]
    logs = "".join(json.dumps(report, indent=2) + "\n" for report in healthy(4))
    told = envcheck(*shlex.split(line.rpartition("| ")[2])[1:], "--format", "jsonl", cwd=tmp_path, stdin=logs)
    assert [node.problem for node in record.read(told.out.encode()).nodes] == [""] * 4


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
    found = [yaml.safe_load(file.read_text()) for file in sorted(folder.glob("*.yaml"))]
    return [each for each in found if each["kind"] not in ("Kustomization", "Namespace")]


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
@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed (Debian: kubernetes-client)")
@cases("version", "1.28", "1.37")
def test_manifests_fit_the_published_schemas(version: str) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")

    made = manifest("envcheck-fleet-1", "python:3.12-slim", ["a", "b"], node_program(None), 60)
    built = subprocess.run(
        ["kubectl", "kustomize", ROOT / "docs/fleet/kubernetes"], capture_output=True, check=True
    ).stdout
    kustomized = [*yaml.safe_load_all(built)]
    assert [each["kind"] for each in kustomized] == ["Namespace", "DaemonSet"]
    assert kustomized[1]["metadata"]["namespace"] == kustomized[0]["metadata"]["name"]
    for each in (*manifests(), *made["items"], *kustomized):
        kubernetes_validate.validate(each, version, strict=True)


def test_the_plugin_of_node_problem_detector_is_a_check() -> None:
    folder = ROOT / "docs/fleet/kubernetes"
    (rule,) = json.loads((folder / "node-problem-detector.json").read_text())["rules"]
    (line,) = re.findall(r"envcheck}\" (check .*)\)", (folder / Path(rule["path"]).name).read_text())
    assert parse(shlex.split(line), {}).format == "node-problem-detector"


# The scripts, with an envcheck that says this and that.

BROKEN_PYTHON = "Traceback (most recent call last):\n  File ...\nModuleNotFoundError: No module named 'envcheck'\n"
LOADER = "ERROR: ld.so: object 'libsite.so' from LD_PRELOAD cannot be preloaded: ignored.\n"


def script(
    folder: Path, text: str, status: int, out: str, err: str, gpu: str = "pci", **programs: str
) -> tuple[int, str, str]:
    """The exit status and stdout of a script of the pages, and what it told ``logger``, on a node with ``gpu``."""
    for vendor, kind in (
        ("0x8086", "0x030000"),
        ("0x10de", "0x040300"),
        *([("0x10de", "0x030200")] if gpu == "pci" else []),
    ):
        place = folder / "sys/bus/pci/devices" / f"{vendor}{kind}"
        place.mkdir(parents=True)
        (place / "vendor").write_text(f"{vendor}\n")
        (place / "class").write_text(f"{kind}\n")
    if gpu == "driver":
        (folder / "sys/module/nvidia").mkdir(parents=True)
    (folder / "out").write_text(out)
    (folder / "err").write_text(err)
    wait = "sleep 60; " if status == 124 else ""
    programs["envcheck"] = f"#!/bin/sh\ncat {folder}/err >&2; {wait}cat {folder}/out; exit {status}\n"
    programs["logger"] = f'#!/bin/sh\necho "$@" >> {folder}/logged\n'
    for name, program in programs.items():
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)
    own = {"PATH": f"{folder}:{os.environ['PATH']}", "ENVCHECK": str(folder / "envcheck"), "ENVCHECK_SECONDS": "1"}
    own["ENVCHECK_SYS"] = str(folder / "sys")
    (folder / "script").write_text(text)
    done = subprocess.run(["sh", folder / "script"], env=own, capture_output=True, text=True, check=False, timeout=30)
    logged = folder / "logged"
    return done.returncode, done.stdout, logged.read_text() if logged.exists() else ""


@cases("status, out, err, passed_on, logged",
    (0, "envcheck: ok\n", "", 0, ""), (1, "envcheck: gpu-lost gpu3\n", "", 1, "job 7: envcheck: gpu-lost gpu3"),
    (1, "envcheck: gpu-lost gpu3\n", LOADER, 1, "job 7: envcheck: gpu-lost gpu3"),
    (1, "", BROKEN_PYTHON, 0, "not checked (exit status 1): Traceback"),
    (2, "", "envcheck: no such option\n", 0, "not checked (exit status 2): envcheck: no such option"),
    (3, "envcheck: no verdict\n", "", 0, "not checked (exit status 3): envcheck: no verdict"),
    (4, "", "envcheck: internal error\n", 0, "not checked (exit status 4)"),
    (124, "", "", 0, "not checked (exit status 124): no answer within 1 s"),
    (127, "", "", 0, "not checked (exit status 127)"),
)  # fmt: skip
def test_the_prolog_passes_on(tmp_path: Path, status: int, out: str, err: str, passed_on: int, logged: str) -> None:
    text = "SLURM_JOB_ID=7\n" + (ROOT / "docs/fleet/slurm/prolog.sh").read_text()
    ended, _, told = script(tmp_path, text, status, out, err)
    assert ended == passed_on
    assert logged in told
    assert bool(logged) == bool(told)


IDLE = "NodeName=n1 OS=Linux 6.1 State=IDLE ThreadsPerCore=1 Partitions=gpu"


@cases("status, shown, drained",
    (1, IDLE, True),
    (1, "NodeName=DOWNTOWN1 OS=Linux State=MIXED ThreadsPerCore=1 Partitions=FAILOVER Comment=DRAIN me", True),
    (1, IDLE + " Reason=new fan [root@2026-11-25T21:36:49]", False), (1, IDLE.replace("IDLE", "IDLE+DRAIN"), False),
    (1, IDLE.replace("IDLE", "DOWN*"), False), (1, IDLE.replace("IDLE", "FAILING"), False), (1, "", False),
    (1, "slurm_load_node error: Unable to contact slurm controller", False), (0, IDLE, False), (3, IDLE, False),
)  # fmt: skip
def test_a_node_in_use_without_a_reason_is_drained(tmp_path: Path, status: int, shown: str, *, drained: bool) -> None:
    scontrol = f'#!/bin/sh\n[ "$1" = show ] && echo "{shown}" || echo "$@" >> {tmp_path}/asked\n'
    text = (ROOT / "docs/fleet/slurm/health.sh").read_text()
    said = script(
        tmp_path, f"SLURMD_NODENAME=n1\n{text}", status, "envcheck: gpu-lost gpu3\n", LOADER, scontrol=scontrol
    )
    assert said[0] == 0
    asked_for = "update NodeName=n1 State=DRAIN Reason=envcheck: gpu-lost gpu3\n"
    assert ((tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else "") == (asked_for if drained else "")


NO_GPU = "envcheck: no-nvidia-gpu\n"


@cases(
    "gpu, gres, jobs, ended, drained", ("", "(null)", "", 0, False), ("", "gpu:h100:8(S:0-1)", "0,1", 1, True),
    ("driver", "(null)", "", 1, True), ("pci", "(null)", "", 1, True),
)  # fmt: skip
def test_no_gpu_is_never_drained(tmp_path: Path, gpu: str, gres: str, jobs: str, ended: int, *, drained: bool) -> None:
    """Neither has the audio function of a card, nor the processor's graphics, an NVIDIA GPU."""
    shown = IDLE.replace(" State", f" Gres={gres} State") + " CfgTRES=cpu=4,gres/gpu=0"
    scontrol = f'#!/bin/sh\n[ "$1" = show ] && echo "{shown}" || echo "$@" >> {tmp_path}/health/asked\n'
    health, prolog = ((ROOT / f"docs/fleet/slurm/{name}.sh").read_text() for name in ("health", "prolog"))
    (tmp_path / "health").mkdir()
    (tmp_path / "prolog").mkdir()
    assert script(tmp_path / "health", health, 1, NO_GPU, "", gpu, scontrol=scontrol)[0] == 0
    assert (tmp_path / "health" / "asked").exists() is drained
    assert script(tmp_path / "prolog", f"SLURM_JOB_GPUS={jobs}\n{prolog}", 1, NO_GPU, "", gpu)[0] == ended


def test_the_plugin_says_that_a_node_has_no_gpu(tmp_path: Path) -> None:
    text = (ROOT / "docs/fleet/kubernetes/node-problem-detector.sh").read_text()
    assert script(tmp_path, text, 1, "no-nvidia-gpu\n", "", "")[:2] == (0, "no NVIDIA GPU belongs to this node\n")


@cases(
    "status, out, err, told", (0, "all is well\n", "", (0, "all is well\n")),
    (1, "gpu-lost: a GPU is gone\n", LOADER, (1, "gpu-lost: a GPU is gone\n")),
    (2, "no verdict\n", "", (2, "no verdict\n")), (1, "", BROKEN_PYTHON, (2, "envcheck did not start\n")),
)  # fmt: skip
def test_the_plugin_tells_a_problem_from_a_program_that_does_not_start(
    tmp_path: Path, status: int, out: str, err: str, told: tuple[int, str]
) -> None:
    text = (ROOT / "docs/fleet/kubernetes/node-problem-detector.sh").read_text()
    assert script(tmp_path, text, status, out, err)[:2] == told


@cases("status, out, err, ended",
    (0, "passed\n", "", 0), (1, "failed\n", "", 1), (3, "no verdict\n", "", 0), (1, "", BROKEN_PYTHON, 0),
)  # fmt: skip
def test_a_pod_waits_for_a_failure_alone(tmp_path: Path, status: int, out: str, err: str, ended: int) -> None:
    pod = yaml.safe_load((ROOT / "docs/fleet/kubernetes/init-container.yaml").read_text())
    (text,) = pod["spec"]["initContainers"][0]["args"]
    assert script(tmp_path, text.replace("/dev/termination-log", f"{tmp_path}/why"), status, out, err)[0] == ended
    assert (tmp_path / "why").read_text() == out


# The schema.


def test_every_line_of_a_fleet_fits_the_schema(tmp_path: Path) -> None:
    made = healthy(5)
    made[0]["snapshot"]["driver"]["release"] = "570.1"
    made[1]["measurements"][0]["value"] *= 0.5
    validator = jsonschema.Draft202012Validator(json.loads((ROOT / "docs/schema/fleet-1.0.json").read_text()))
    lines = list(record.write(fleet_of(write(tmp_path, made))))
    kinds = set()
    for line in lines:
        found = json.loads(line)
        validator.validate(found)
        kinds.add(found["record"])
    assert {"fleet", "difference", "slow", "spread", "group", "node", "facts"} <= kinds
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"record": "node"})


@cases("name", "fleet", "fleet-bench", "fleet-history")
def test_the_published_schema_is_the_printed_one_and_describes_every_property(tmp_path: Path, name: str) -> None:
    printed = json.loads(envcheck("schema", name, cwd=tmp_path).out)
    assert json.loads((ROOT / f"docs/schema/{name}-1.0.json").read_text()) == printed
    lacking = [
        f"{kind}.{key}"
        for kind, part in printed["$defs"].items()
        for key, value in part.get("properties", {}).items()
        if key != "record" and len(value.get("description", "")) < 5
    ]
    assert lacking == []


def test_no_python_that_is_named_imports_from_the_folder_where_it_starts() -> None:
    """``-I``: the folder may be somebody else's. The collector, and envcheck as a module."""
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "envcheck").rglob("*.py")]
    named = [
        found
        for text in texts
        for found in re.findall(
            r"\bpython3? (?:-\w+ )*(?:-(?= |$)|-m envcheck|\S*collect\.py)", text.read_text(), re.MULTILINE
        )
    ]
    assert len(named) >= 6
    assert [found for found in named if not found.startswith(("python3 -I ", "python -I "))] == []
    assert node_program(None).argv[:2] == ("python3", "-I")
    job = manifest("name", "image", ["n1"], node_program(None), 60)["items"][1]
    assert job["spec"]["template"]["spec"]["containers"][0]["command"][:2] == ["python3", "-I"]
