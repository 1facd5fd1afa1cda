"""The rules on environment variables, those that code sets at every start, and LD_LIBRARY_PATH."""

import json
from pathlib import Path
from typing import Any

from envcheck.collect.child import Noise
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.variables import effects, said_by, wrong
from envcheck.model.snapshot import Framework, Snapshot, StartupVariable, Trial, VariablePath, Variables
from envcheck.rules.facts.variables import title_listing
from probes.common.variable_names import matters
from tests.every import cases, every, every_tabled, tabled
from tests.rules.machines import (
    VENV,
    answered,
    bad,
    but,
    cause,
    check_of,
    checks_of,
    driver,
    eight,
    error,
    judge,
    machine,
    open_fails,
    said,
    torch,
    variables,
    venv,
    with_venv,
)

ROWS = {row.name: row for row in load_matrix().variables}


def test_the_probe_gathers_every_variable_that_the_matrix_knows() -> None:
    gathered = set(filter(matters, ROWS))
    assert set(ROWS) - gathered == set()


# --- values ---------------------------------------------------------------------------------------------------------


@every_tabled
def test_valid_values(name: str, value: str) -> None:
    assert wrong(ROWS[name], value, "2.11.0" if name.startswith("PYTORCH") else None) is None


@every_tabled
def test_invalid_values(name: str, value: str) -> None:
    assert wrong(ROWS[name], value, "2.11.0" if name.startswith("PYTORCH") else None)


def test_a_setting_of_a_later_release() -> None:
    row = ROWS["PYTORCH_CUDA_ALLOC_CONF"]
    assert "does not exist in 2.0.1" in (wrong(row, "expandable_segments:True", "2.0.1") or "")
    assert wrong(row, "a_setting_of_the_future:1", "2.99.0") is None
    assert wrong(row, "a_setting_of_the_future:1", None) is None


def test_long_values_are_bounded() -> None:
    assert wrong(ROWS["PYTORCH_CUDA_ALLOC_CONF"], "[" * 100_000 + "," * 100_000, "2.11.0")
    assert not effects(ROWS["XLA_FLAGS"], "--x" * 100_000, ("speed",))


# --- machines -------------------------------------------------------------------------------------------------------
def with_variables(snapshot: Snapshot, paths: dict[str, str] | None = None, /, **values: str) -> Snapshot:
    listed: dict[str, Any] = dict(paths or {})
    told = tuple(VariablePath(path=path, leads_to=kind) for path, kind in listed.items())
    return but(snapshot, variables=Variables(source="process", values=values, complete=True, paths=told))


def holding(name: str, version: str, trial: Trial | None = None) -> Snapshot:
    """A healthy machine whose environment has one framework built for CUDA."""
    found = Framework(source="wheel metadata", name=name, version=version, cpu_only=False, trial=trial)
    return with_venv(machine(), venv(found))


@every_tabled
def test_a_value_that_stops_a_framework_is_the_cause(name: str, version: str, variable: str, value: str) -> None:
    snapshot = with_variables(holding(name, version), **{variable: value})
    (check,) = checks_of("variable-stops-framework", snapshot)
    assert check.status == "fail"
    assert variable in check.title
    assert check.fixes[0].command == ("env", "-u", variable, "python")
    failed = Trial(source="trial", imported=True, ran_on_gpu=False, error="RuntimeError: something")
    tried = with_variables(holding(name, version, failed), **{variable: value})
    assert cause(tried) == "variable-stops-framework"
    assert check_of("framework-cannot-use-gpu", tried).explained_by == check.id


@tabled
def test_what_a_framework_says_names_the_variable(name: str, variable: str, value: str, error: str) -> None:
    failed = Trial(source="trial", imported=False, error=error)
    snapshot = with_variables(holding(name, "99.0", failed), **{variable: value})
    assert cause(snapshot) == "variable-stops-framework"
    check = check_of("variable-stops-framework", snapshot)
    assert error[:40] in " ".join(each.value for each in check.evidence)
    assert checks_of("variable-stops-framework", holding(name, "99.0", failed)) == ()


RECORDED = json.loads((Path(__file__).parents[1] / "recorded" / "variable-errors.json").read_text())
"""Framework, variable, value and the line that PyTorch 2.11.0 and JAX 0.11.2 then printed on an H200."""


@every(RECORDED)
def test_the_lines_that_frameworks_print_name_the_variable(name: str, variable: str, value: str, line: str) -> None:
    printed = Noise()
    printed.feed(f"{line}\n".encode())
    assert said_by(ROWS[variable], line)
    failed = Trial(
        source="trial", imported=True, ran_on_gpu=False, error="exited with status 1 while computing a matrix product",
        warnings=printed.take_telling(),
    )  # fmt: skip
    snapshot = with_variables(holding(name, {"torch": "2.11.0", "jax": "0.11.2"}[name], failed), **{variable: value})
    check = check_of("variable-stops-framework", snapshot)
    assert (cause(snapshot), check.status) == ("variable-stops-framework", "fail")
    assert line[:40] in " ".join(each.value for each in check.evidence)


def test_variables_of_frameworks_that_are_not_there_say_nothing() -> None:
    snapshot = with_variables(
        holding("torch", "2.11.0"), XLA_FLAGS="bogus", JAX_DEBUG_NANS="1", VLLM_TRACE_FUNCTION="1"
    )
    assert not [check for check in judge(snapshot) if check.rule.startswith("variable-")]


@cases("value", "pci_bus_id", "", "bogus")
@cases("visible", None, "0")
def test_a_variable_that_keeps_cuda_from_starting_comes_before_the_machine(value: str, visible: str | None) -> None:
    refused = answered("cuInit", 101, "CUDA_ERROR_INVALID_DEVICE")
    values = {"CUDA_DEVICE_ORDER": value, **({"CUDA_VISIBLE_DEVICES": visible} if visible else {})}
    snapshot = with_variables(machine(driver=driver(cuda_init=refused, cuda_devices=None)), **values)
    assert cause(snapshot) == "variable-stops-cuda"
    assert bad(with_variables(machine(), CUDA_DEVICE_ORDER=value)) == [], "the driver was seen to start"


@every_tabled
def test_paths_that_lead_nowhere(variable: str, value: str, there: str, status: str | None) -> None:
    snapshot = with_variables(holding("torch", "2.11.0"), {value: there}, **{variable: value})
    assert [check.status for check in checks_of("variable-leads-nowhere", snapshot)] == ([status] if status else [])


@every_tabled
def test_what_variables_cost(variable: str, value: str, rule: str, status: str | None) -> None:
    found_checks = checks_of(rule, with_variables(with_venv(eight(), venv(torch("2.11.0"))), **{variable: value}))
    assert [check.status for check in found_checks] == ([status] if status else [])


@tabled
def test_a_pasted_error_names_the_variable(line: str) -> None:
    assert cause(error(line)) == "variable-stops-framework"
    assert check_of("variable-stops-framework", error(line)).fixes


SAYS_CPU = (
    "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu."
)


def test_jax_with_its_part_for_cuda_is_no_build_for_the_cpu() -> None:
    """JAX prints the same line when its part for CUDA is there, and CUDA does not start."""
    failed = Trial(source="trial", imported=True, ran_on_gpu=False, error="no GPU", warnings=(SAYS_CPU,))
    refused = driver(cuda_init=answered("cuInit", 101, "CUDA_ERROR_INVALID_DEVICE"), cuda_devices=None)
    snapshot = with_variables(but(holding("jax", "0.8.1", failed), driver=refused), CUDA_VISIBLE_DEVICES="0,0")
    assert cause(snapshot) == "gpu-hidden"
    assert open_fails(snapshot) == ["gpu-hidden"]


def test_titles_of_many_variables_end_in_whole_words() -> None:
    many = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "CUDA_LAUNCH_BLOCKING": "1", "CUDA_CACHE_DISABLE": "1"}
    check = check_of("variable-costs-speed", with_variables(eight(), **many))
    assert len(check.title) <= 80
    assert check.title.endswith(" more can slow programs down")
    assert title_listing(["A" * 200], " is set") == "A" * 72 + "… is set"
    assert title_listing(["A=" + "1" * 100, "B=1"], " does") == "A=… and 1 more does"


# --- Variables that code sets at every start of Python --------------------------------------------------------------
PTH = f"{VENV}/lib/python3.12/site-packages/zz.pth"
NO_GPUS = "RuntimeError: No CUDA GPUs are available"


def setting(name: str = "CUDA_VISIBLE_DEVICES", value: str | None = "", **changes: Any) -> StartupVariable:
    return but(StartupVariable(source=f"file {PTH}", path=PTH, name=name, value=value), **changes)


def on(*variables: StartupVariable, error: str = "", **changes: Any) -> Snapshot:
    trial = Trial(source="trial", imported=True, ran_on_gpu=False if error else None, error=error or None)
    framework: Framework = torch(trial=trial) if error else torch()
    return but(with_venv(machine(), venv(framework, startup_variables=variables)), **changes)


STARTUP, RELATIVE = "startup-sets-variable", "loader-path-relative"
IS_CAUSE = {"status": "warn", "cause": STARTUP}
IS_NOTE = {"status": "note", "cause": "no-gpu-visible"}


@cases("value", "", "-1", "none")
def test_what_hides_every_gpu_is_the_cause_where_it_always_does_or_a_trial_failed(value: str) -> None:
    assert said(STARTUP, on(setting(value=value)), IS_CAUSE) == IS_CAUSE
    assert said(STARTUP, on(setting(value=value, always=True)), {"status": "fail"}) == {"status": "fail"}
    failing = on(setting(value=value), error=NO_GPUS)
    check = check_of(STARTUP, failing)
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


def failed(error: str) -> Trial:
    return Trial(source="trial", imported=True, ran_on_gpu=False, error=error)


def beside(error_line: str) -> Snapshot:
    """A variable for finding faults, beside a line of output."""
    blocking = with_variables(TORCH, CUDA_LAUNCH_BLOCKING="1")
    return but(blocking, observed_errors=error(error_line).observed_errors)


def leading(**values: str) -> Snapshot:
    return but(eight(), variables=variables(**values))


TORCH, JAX = holding("torch", "2.11.0"), holding("jax", "0.8.1")
NOT_STARTED = machine(driver=driver(cuda_init=answered("cuInit", 101, "CUDA_ERROR_INVALID_DEVICE"), cuda_devices=None))
RAN = Trial(source="trial", imported=True, ran_on_gpu=True, proof="pointer")
STOPS, SLOWS, NOWHERE = "variable-stops-framework", "variable-costs-speed", "variable-leads-nowhere"
REFUSED = on(setting("PYTORCH_CUDA_ALLOC_CONF", "no_such_option:1"), error="RuntimeError: Unrecognized option")


@cases("rule, about, there, expected",
    ("variable-stops-cuda", "an unknown order", with_variables(NOT_STARTED, CUDA_DEVICE_ORDER="x"), ("fail",)),
    (STOPS, "no setting", with_variables(TORCH, PYTORCH_CUDA_ALLOC_CONF="x"), ("fail",)),
    (NOWHERE, "no file", with_variables(TORCH, {"/x": "nothing"}, LD_PRELOAD="/x"), ("warn",)),
    (SLOWS, "blocking", with_variables(TORCH, CUDA_LAUNCH_BLOCKING="1"), ("warn",)),
    ("variable-changes-results", "TF32", with_variables(TORCH, NVIDIA_TF32_OVERRIDE="0"), ("warn",)),
    (STOPS, "it ran with it", with_variables(holding("torch", "2.11.0", RAN), PYTORCH_CUDA_ALLOC_CONF="bogus:1"), ()),
    (STOPS, "another error does not blame a valid value",
     with_variables(holding("jax", "0.8.1", failed("could not convert string to float: 'x'")),
                    XLA_PYTHON_CLIENT_MEM_FRACTION="0.5"), ()),
    (STOPS, "JAX on the CPU was not tried", with_variables(JAX, JAX_PLATFORMS="cpu"), {"status": "warn"}),
    (STOPS, "JAX on the CPU was tried",
     with_variables(holding("jax", "0.8.1", failed("no GPU among the devices")), JAX_PLATFORMS="cpu"),
     {"cause": STOPS}),
    (STOPS, "a log that this PyTorch lacks",
     with_variables(with_venv(machine(), venv(torch(unknown_flags=("+inductr",)))), TORCH_LOGS="dynamo,+inductr"),
     {"status": "fail", "message": "…does not know +inductr…"}),
    ("variable-changes-results", "no transport of Gloo", with_variables(TORCH, GLOO_DEVICE_TRANSPORT="IB"), ("warn",)),
    (STOPS, "a masked value", with_variables(TORCH, PYTORCH_CUDA_ALLOC_CONF="***"), ()),
    (STOPS, "a file of flags is gone", with_variables(JAX, {"/gone": "nothing"}, XLA_FLAGS="/gone"),
     {"message": "…there is nothing at /gone…"}),
    (STOPS, "XLA looks in other places than the folder that a flag names",
     with_variables(JAX, {"/gone": "nothing"}, XLA_FLAGS="--xla_gpu_cuda_data_dir=/gone"), ()),
    (STOPS, "words that others print too", error("ValueError: could not convert string to float: 'abc'"), ()),
    (NOWHERE, "no program",
     with_variables(holding("triton", "3.6.0"), {"/x/ptxas": "file"}, TRITON_PTXAS_PATH="/x/ptxas"),
     {"message": "…/x/ptxas is not a program…"}),
    (SLOWS, "what is about several GPUs", with_variables(TORCH, NCCL_P2P_DISABLE="1"), ()),
    (SLOWS, "beside an error it was set to find that", beside("RuntimeError: CUDA error: device-side assert triggered"),
     {"status": "note", "fixes": ()}),
    (SLOWS, "beside a line that is no error", beside("FAILED: 3 errors in the last run"), ("warn",)),
    (STARTUP, "one GPU", on(setting(value="0"), error=NO_GPUS), IS_NOTE),
    (STARTUP, "not read", on(setting(value=None), error=NO_GPUS), IS_NOTE),
    (STARTUP, "a slow one", on(setting("CUDA_LAUNCH_BLOCKING", "1"), error=NO_GPUS), IS_NOTE),
    (STARTUP, "a slow one, and nothing fails", on(setting("CUDA_LAUNCH_BLOCKING", "1")), IS_NOTE | {"cause": None}),
    (STARTUP, "the framework refuses the value", REFUSED, {"status": "fail", "cause": STARTUP}),
    (STARTUP, "no program sees a GPU", on(setting(), error=NO_GPUS, driver__cuda_devices=0), {"status": "warn"}),
    (STARTUP, "a module that a line runs", on(setting(module="/s/hider.py")),
     {"message": f"…{PTH} runs /s/hider.py, which sets CUDA_VISIBLE_DEVICES=''…", "text": "…/s/hider.py…"}),
    (STARTUP, "none", on(), ()),
    (STARTUP, "one that nobody knows", on(setting("UNHEARD_OF")), ()),
    *((RELATIVE, f"relative: {path}", leading(LD_LIBRARY_PATH=path), ("note",))
      for path in (":/a", "/a:", "/a::/b", "lib:/a", "/a;./b", "/a:~/lib", "/a:$HOME/lib", ":")),
    *((RELATIVE, f"absolute: {path}", leading(LD_LIBRARY_PATH=path), ())
      for path in ("/a", "/a:/b;/c", "$ORIGIN/../lib:/a", "${ORIGIN}/lib", "")),
    (RELATIVE, "not set", leading(), ()),
    (RELATIVE, "an empty entry is shown", leading(LD_LIBRARY_PATH="/a:"), {"evidence": ("(empty)",)}),
)  # fmt: skip
def test_what_rules_say(rule: str, about: str, there: Snapshot, expected: Any) -> None:
    assert said(rule, there, expected) == expected
