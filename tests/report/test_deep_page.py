"""What the page and the headline say of frameworks that were tried."""

from typing import Any

import jsonschema
import msgspec

from envcheck.model.snapshot import Framework, ProbeRun, Snapshot, Trial
from envcheck.pipeline.session import Request, judge
from envcheck.report import Options, render
from envcheck.report.schema import schema
from tests.every import cases
from tests.rules.machines import VENV, but, h200, machine, torch, venv, with_venv

RAN = Trial(
    source="trial", imported=True, import_seconds=2.1, ran_on_gpu=True, seconds=0.42, device="cuda:0",
    gpu=h200().pci_bus_id, proof="the driver says that the result lies in device memory",
)  # fmt: skip


def tried(*frameworks: Framework) -> Snapshot:
    runs = (ProbeRun(name="deep.torch", status="ok", fills=("environments",), environment=VENV, framework="torch"),)
    return but(with_venv(machine(), venv(*frameworks)), runs=runs)


def headline(*frameworks: Framework) -> str:
    return judge(tried(*frameworks), Request()).headline


def cupy(trial: Trial | None) -> Framework:
    return Framework(
        source="file", name="cupy-cuda12x", version="13.0", cuda="12", cpu_only=False, gpu_code=("sm_90",), trial=trial
    )


NUMBA = Framework(source="file", name="numba", version="0.61.0")


@cases("frameworks, said",
    ((torch(),), "GPU, driver and frameworks look compatible"),
    ((torch(trial=RAN),), "GPU, driver and frameworks fit, and ran"),
    ((torch(trial=RAN), cupy(RAN)), "GPU, driver and frameworks fit, and ran"),
    ((torch(trial=RAN), NUMBA), "GPU, driver and frameworks fit, and ran"),
    ((torch(trial=RAN), but(NUMBA, trial=but(RAN, ran_on_gpu=False, error="x"))),
     "GPU, driver and frameworks fit; torch ran"),
    ((torch(trial=Trial(source="trial", imported=True, skipped="x")),), "GPU, driver and frameworks look compatible"),
)  # fmt: skip
def test_the_headline_says_how_far_it_was_tried(frameworks: tuple[Framework, ...], said: str) -> None:
    assert headline(*frameworks) == said


def test_the_row_says_where_it_ran() -> None:
    page = render(judge(tried(torch(trial=RAN)), Request()), "text", Options())
    assert page.startswith("PASS  GPU, driver and frameworks fit, and ran\n")
    assert "torch 2.5.1+cu124, ran on GPU 0 in 0.4 s" in page
    assert "import (--deep)" not in page


@cases(
    "changes, said", ({"ran_on_gpu": False, "error": "x"}, "cannot use the GPU"),
    ({"imported": False, "ran_on_gpu": None, "error": "x"}, "import fails"),
    ({"imported": None, "ran_on_gpu": None, "error": "timed out"}, "import did not finish"),
    ({"ran_on_gpu": None, "error": "timed out"}, "no result"), ({"ran_on_gpu": None, "skipped": "no GPU"}, "imported"),
)  # fmt: skip
def test_the_row_says_how_far_it_came(changes: dict[str, Any], said: str) -> None:
    page = render(judge(tried(torch(trial=but(RAN, **changes))), Request()), "text", Options())
    assert f"torch 2.5.1+cu124, {said}" in page


def test_a_probe_that_died_names_what_it_tried() -> None:
    died = ProbeRun(
        name="deep.extensions", status="crashed", detail="crashed: SIGSEGV while importing xformers",
        fills=("environments",), framework="xformers",
    )  # fmt: skip
    page = render(judge(but(tried(torch(trial=RAN)), runs=(died,)), Request()), "text", Options())
    assert "Probe deep.extensions (xformers) crashed: SIGSEGV while importing xformers" in page


def test_the_report_of_trials_fits_its_schema() -> None:
    report = judge(tried(torch(trial=RAN), cupy(but(RAN, ran_on_gpu=False, error="x"))), Request())
    data = msgspec.json.decode(render(report, "json", Options()))
    jsonschema.Draft202012Validator(schema("report")).validate(data)
    (environment,) = data["snapshot"]["environments"]["items"]
    assert environment["frameworks"]["items"][0]["trial"]["proof"] == RAN.proof
