from pathlib import Path

import msgspec
import pytest

from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import ASSUMPTION, PLAN, Report
from envcheck.model.components import parse_components
from envcheck.model.snapshot import (
    ContainerHost,
    Distribution,
    Driver,
    Environment,
    Fabric,
    Framework,
    Gpu,
    Kernel,
    Listing,
    Platform,
    Snapshot,
    VariablePath,
    Variables,
)
from envcheck.pipeline.assume import assume, assumes_machine
from envcheck.pipeline.session import Request, judge
from envcheck.plans import read_plans
from envcheck.report import Options, render
from envcheck.report.page.stack import stack_rows
from tests.every import cases, every, every_tabled, tabled
from tests.known import known

HERE = Snapshot(
    platform=Platform(source="file", os="linux", machine="x86_64", distribution="ubuntu"),
    kernel=Kernel(source="procfs"),
    driver=Driver(source="nvml", release="470.82.01", installed=True),
    gpus=Listing(items=(Gpu(source="nvml", uuid="GPU-a", name="Tesla K80"),), complete=True),
    fabric=Fabric(source="nvml", nvswitches=0),
    variables=Variables(source="environment", values={"CUDA_VISIBLE_DEVICES": ""}, complete=True),
    environments=Listing(
        items=(
            Environment(
                source="file",
                key="/venv",
                judged=True,
                python="3.12.3",
                distributions=(
                    Distribution(name="torch", version="2.5.1"),
                    Distribution(name="numpy", version="1.26.4"),
                ),
                distributions_complete=True,
                frameworks=Listing(
                    items=(Framework(source="file", name="torch", version="2.5.1", cuda="12.4"),), complete=True
                ),
            ),
        ),
        complete=True,
    ),
)


def assumed(text: str, here: Snapshot = HERE) -> Snapshot:
    return assume(here, parse_components(text))


def test_what_a_framework_reads_of_the_variables_comes_along_to_the_assumed_machine() -> None:
    values = {"CUDA_VISIBLE_DEVICES": "7", "XLA_FLAGS": "--xla_dump_to=/dumps"}
    paths = (VariablePath(path="/dumps", leads_to="nothing"), VariablePath(path="/of/another", leads_to="nothing"))
    here = msgspec.structs.replace(HERE, variables=Variables(source="process", values=values, paths=paths))
    kept = assume(here, parse_components("gpu==H100"), {"XLA_FLAGS"}).variables
    assert kept is not None
    assert (kept.values, kept.paths) == ({"XLA_FLAGS": "--xla_dump_to=/dumps"}, paths[:1])


def test_an_assumed_machine_drops_every_observation_of_this_one() -> None:
    snapshot = assumed("gpu==H100,driver==550.54.14,os==linux")
    assert snapshot.kernel is None
    assert snapshot.fabric is None
    assert snapshot.variables is not None
    assert (snapshot.variables.values, snapshot.variables.complete) == ({}, False)
    assert snapshot.driver == Driver(source="assumed", installed=True, release="550.54.14")
    assert snapshot.gpus is not None
    assert [(gpu.name, gpu.source, gpu.label) for gpu in snapshot.gpus.items] == [("H100", "assumed", "assumed-0")]
    assert snapshot.platform is not None
    assert snapshot.platform.source_of("os") == "assumed"
    assert (snapshot.platform.distribution, snapshot.environments) == ("ubuntu", HERE.environments)


@every("text", "html", "markdown")
def test_a_person_reads_numbers_and_no_labels(form: str) -> None:
    report = judge(HERE, Request(assume=parse_components("gpu==B200,gpus==8,driver==470.1")))
    assert report.primary_check == "gpu-unsupported-by-driver@assumed-0"
    page = render(report, form, Options(verbose=True))
    assert ("gpu-unsupported-by-driver@GPU 3" if form == "markdown" else "GPU 0-7 (assumed): B200") in page
    assert "assumed-" not in page


def test_the_runners_containers_say_nothing_of_the_assumed_machine() -> None:
    """A runner often is a container with little shared memory, or a host of some without NVIDIA's toolkit."""
    host = ContainerHost(engines=("/usr/bin/docker",), toolkit=())
    runner = Platform(source="file", os="linux", container="docker", shared_memory=64 << 20, container_host=host)
    here = msgspec.structs.replace(HERE, platform=runner)
    rules = {"shared-memory-too-small", "container-toolkit-missing"}
    assert rules & {check.rule for check in judge(here, Request()).checks}
    asked = Request(assume=parse_components("gpu==H100,gpus==8,driver==550.54.14"))
    assert not rules & {check.rule for check in judge(here, asked).checks}


def test_an_assumed_gpu_alone_leaves_the_driver_unknown() -> None:
    snapshot = assumed("gpu==sm_120")
    assert snapshot.driver is None
    assert known(snapshot.gpus).items[0].compute_capability == "12.0"


def test_several_gpus() -> None:
    snapshot = assumed("gpu==H100,gpus==8")
    assert len({gpu.key for gpu in known(snapshot.gpus).items}) == 8
    assert assumed("gpus==0").gpus == Listing(items=(), complete=True)


def test_an_assumed_distribution_replaces_the_one_observed() -> None:
    snapshot = assumed("torch==2.6.0+cu126")
    assert snapshot.gpus == HERE.gpus
    environment = known(snapshot.environments).items[0]
    assert known(environment.frameworks).items == (Framework(source="assumed", name="torch", version="2.6.0+cu126"),)
    assert {(found.name, found.version) for found in environment.distributions or ()} == {
        ("torch", "2.6.0+cu126"),
        ("numpy", "1.26.4"),
    }
    assert environment.python == "3.12.3"


def test_software_can_be_assumed_where_there_is_none() -> None:
    snapshot = assumed("torch==2.6.0,python==3.13", Snapshot())
    (environment,) = known(snapshot.environments).items
    assert (environment.judged, environment.python) == (True, "3.13")


@tabled
def test_what_cannot_be_assumed_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        assumed(text)


def test_which_assumptions_mean_another_machine() -> None:
    assert assumes_machine(parse_components("gpu==H100"))
    assert assumes_machine(parse_components("os==linux,driver==550"))
    assert not assumes_machine(parse_components("torch==2.5.1,os==linux"))


@cases("text", "gpu==H100,driver==NoSuchRelease", "torch==new", "python==abc")
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--assume .*: (write a driver release|'.*' is not a version)"):
        verdict_of(text)


def verdict_of(text: str) -> Report:
    return judge(Snapshot(), Request(assume=parse_components(text), scopes=frozenset({"node", "container"})))


@every_tabled
def test_what_was_stated_passes_only_where_it_is_known_to_fit(text: str, verdict: str) -> None:
    report = verdict_of(text)
    assert report.verdict == verdict
    if verdict == "unknown":
        rows = {row.label: row.status for row in stack_rows(report, 4)}
        assert "pass" not in (rows["GPU"], rows["Driver"])


@tabled
def test_what_a_container_is_given_is_judged_by_the_same_rules(stated: str, rule: str, status: str | None) -> None:
    report = verdict_of(f"gpu==H100,driver==580.95.05,{stated}")
    assert {check.rule: check.status for check in report.checks}.get(rule) == status


@cases("text, words", ("shm==much", "write a number or a size"), ("limit.memlok==64K", "no limit is called so"))
def test_what_nobody_can_give_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        assumed(text)


def test_the_page_says_which_statement_is_not_known() -> None:
    assert "this GPU is not in the matrix" in render(verdict_of("gpu==NoSuchGPU9999,driver==1.2.3"), "text")


def test_nothing_that_was_not_looked_at_reads_ok() -> None:
    looked_in_vain = Snapshot(driver=Driver(source="file", installed=False))
    for snapshot in (Snapshot(), looked_in_vain):
        report = judge(snapshot, Request())
        assert report.verdict in ("unknown", "fail")
        assert not [row for row in stack_rows(report, 4) if row.status == "pass"]
    assert "There is a GPU" not in render(judge(looked_in_vain, Request()), "text")


@cases("word", "gppu", "gpuss", "drivr", "drivers", "diver", "machin", "kernel-modul")
def test_a_misspelt_word_for_the_machine_is_no_package(word: str) -> None:
    with pytest.raises(UsageError, match="did you mean"):
        assume(Snapshot(), parse_components(f"{word}==1"))


@cases("name", "torch", "triton", "cupy-cuda12x", "gpytorch", "pynvml", "numpy", "ros", "mpi4py")
def test_a_package_may_be_assumed(name: str) -> None:
    assume(Snapshot(), parse_components(f"{name}==1"))


@cases("beside", "", ",driver==580.95.05", ",torch==2.5.1+cu124")
@cases("name, near", ("H1000", ": did you mean 'h100"), ("sm_93", ""), ("Zzyzx Turbo 9", ""), ("RTX 5909", ": did you"))
def test_a_gpu_that_the_matrix_does_not_know_is_named(name: str, near: str, beside: str) -> None:
    report = verdict_of(f"gpu=={name}{beside}")
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    (check,) = [check for check in report.checks if check.rule == ASSUMPTION]
    assert check.title.startswith(f"The assumed GPU {name} is not known{near}")
    assert "is not in the matrix" in report.headline


@cases("name", "H100", "sm_90", "sm_90a", "NVIDIA H200", "RTX 5090")
def test_a_gpu_that_the_matrix_knows_is_no_finding(name: str) -> None:
    assert not [check for check in verdict_of(f"gpu=={name}").checks if check.rule == ASSUMPTION]


MACHINES = ("gpu==H100,driver==550.54.14", "gpu==RTX 5090,driver==570.86.10", "gpu==V100,driver==470.82.01")
STATED = (
    *("onnxruntime-gpu==1.28.0", "tensorflow==2.19.0", "jax==0.4.30", "vllm==0.6.0", "cupy-cuda12x==13.3.0"),
    *("cupy-cuda11x==13.3.0", "paddlepaddle-gpu==2.6.1", "nvidia-cudnn-cu12==9.1.0.70", "torch==2.7.0", "foo==1.0"),
)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_assumed_is_judged_as_a_plan_of_the_same_words(tmp_path: Path, machine: str) -> None:
    matrix, python = load_matrix(), "os==linux,machine==x86_64,python==3.11"
    empty = Environment(
        source="file", key="/e", judged=True, python="3.11", distributions=(), frameworks=Listing(complete=True)
    )
    here = Snapshot(environments=Listing(items=(empty,), complete=True))
    plan = tmp_path / "requirements.txt"
    for words in STATED:
        plan.write_text(words)
        planned = read_plans([str(plan)], matrix, {"sys_platform": "linux", "python_version": "3.11"})
        at_hand = Snapshot(environments=Listing(items=(planned,)))
        wanted = judge(at_hand, Request(assume=parse_components(f"{machine},{python}"), planned=planned))
        found = judge(here, Request(assume=parse_components(f"{machine},{python},{words}")))
        assert (found.verdict, found.exit_code) == (wanted.verdict, wanted.exit_code), (words, found.headline)


@cases(
    "stated,rule,status",
    ("torch==2.8.0,sglang==0.5.8.post1", PLAN, "fail"),
    ("torch==2.9.1,sglang==0.5.8.post1", PLAN, "pass"),
    ("torch==1.9.0,python==3.11", "python-unsupported", "fail"),
    ("torch==2.4.0+cu118,flash-attn==2.8.2", PLAN, "unknown"),  # of which documents disagree for CUDA 11
)
def test_what_is_assumed_is_held_against_each_other_as_pip_does(stated: str, rule: str, status: str) -> None:
    report = judge(Snapshot(), Request(assume=parse_components(f"gpu==A100,driver==580.65.06,os==linux,{stated}")))
    assert status in [check.status for check in report.checks if check.rule == rule]
    assert (report.verdict == "fail") == (status == "fail")


@cases("stated, size", ("shm==4K", "4 KiB"), ("limit.memlock==64K", "64 KiB"), ("limit.memory==700M", "700 MiB"))
def test_what_is_given_is_told_in_its_unit(stated: str, size: str) -> None:
    report = verdict_of(f"gpu==H100,driver==580.95.05,{stated}")
    assert [check.title for check in report.checks if check.status == "warn" and size in check.title]
