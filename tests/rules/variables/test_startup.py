"""Variables that code sets at every start of Python: named, and the cause where a framework failed for them."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.checks import Check
from envcheck.snapshot import Framework, Snapshot, StartupVariable, Trial
from tests.rules.machines import VENV, but, cause, check_of, checks_of, machine, torch, venv, with_venv

PTH = f"{VENV}/lib/python3.12/site-packages/zz.pth"
NO_GPUS = "RuntimeError: No CUDA GPUs are available"


def setting(name: str = "CUDA_VISIBLE_DEVICES", value: str | None = "", **changes: Any) -> StartupVariable:
    return but(StartupVariable(source=f"file {PTH}", path=PTH, name=name, value=value), **changes)


def on(*variables: StartupVariable, error: str = "", **changes: Any) -> Snapshot:
    trial = Trial(source="trial", imported=True, ran_on_gpu=False if error else None, error=error or None)
    framework: Framework = torch(trial=trial) if error else torch()
    return but(with_venv(machine(), venv(framework, startup_variables=variables)), **changes)


def found(snapshot: Snapshot) -> Check:
    return check_of("startup-sets-variable", snapshot)


@pytest.mark.parametrize("value", ["", "-1", "none"])
def test_what_hides_every_gpu_is_a_warning_and_the_cause_of_a_failed_trial(value: str) -> None:
    assert (found(on(setting(value=value))).status, cause(on(setting(value=value)))) == (
        "warn",
        "startup-sets-variable",
    )
    failing = on(setting(value=value), error=NO_GPUS)
    check = found(failing)
    assert check.status == "fail"
    assert check.title == f"zz.pth sets CUDA_VISIBLE_DEVICES={value!r} at every start of Python"
    assert PTH in check.fixes[0].text
    assert cause(failing) == "startup-sets-variable"
    explained = {
        each.explained_by
        for rule in ("framework-cannot-use-gpu", "no-gpu-visible")
        for each in checks_of(rule, failing)
    }
    assert explained == {check.id}


@pytest.mark.parametrize(
    ("variable", "error"),
    [
        (setting(value="0"), NO_GPUS),
        (setting(value=None), NO_GPUS),
        (setting("CUDA_LAUNCH_BLOCKING", "1"), NO_GPUS),
        (setting("CUDA_LAUNCH_BLOCKING", "1"), ""),
    ],
)
def test_other_values_are_a_note_and_explain_nothing(variable: StartupVariable, error: str) -> None:
    snapshot = on(variable, error=error)
    assert found(snapshot).status == "note"
    assert cause(snapshot) != "startup-sets-variable"


def test_a_value_that_the_framework_refuses_is_the_cause() -> None:
    snapshot = on(setting("PYTORCH_CUDA_ALLOC_CONF", "no_such_option:1"), error="RuntimeError: Unrecognized option")
    assert (found(snapshot).status, cause(snapshot)) == ("fail", "startup-sets-variable")


def test_a_machine_that_shows_no_gpu_to_any_program_has_another_reason() -> None:
    assert found(on(setting(), error=NO_GPUS, driver__cuda_devices=0)).status == "warn"


def test_a_module_that_a_line_runs_is_named() -> None:
    check = found(on(setting(module="/s/hider.py")))
    assert f"{PTH} runs /s/hider.py, which sets CUDA_VISIBLE_DEVICES=''" in check.message
    assert "/s/hider.py" in check.fixes[0].text


@pytest.mark.parametrize("variables", [(), (setting("UNHEARD_OF"),)])
def test_without_a_variable_that_is_known_the_question_does_not_arise(variables: tuple[StartupVariable, ...]) -> None:
    assert checks_of("startup-sets-variable", on(*variables)) == ()
