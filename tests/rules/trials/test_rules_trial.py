"""What trials come to: findings about imports and GPUs, what explains them, and what they confirm.

The errors are those of the real programs; the machines are put together by hand.
"""

from typing import Any

import pytest

from envcheck.enrich.complete import observed_loads
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Check, Report
from envcheck.model.snapshot import (
    Damaged,
    Distribution,
    Framework,
    Load,
    Loaded,
    ProbeRun,
    Shipped,
    Snapshot,
    Trial,
    TrialFile,
)
from envcheck.pipeline.request import Request
from envcheck.pipeline.verdict import conclude
from envcheck.report import exit_status, render
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.rules.facts.frameworks import gpus_proven
from tests.every import cases, tabled
from tests.known import Expected
from tests.rules.machines import (
    VENV,
    agreed,
    but,
    cause,
    check_of,
    checks_of,
    h200,
    judge,
    machine,
    not_loaded,
    torch,
    variables,
    venv,
    with_venv,
    without_gpu,
)

SITE = f"{VENV}/lib/python3.12/site-packages"
PROOF = "the driver says that the result lies in device memory"
NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device (in a matrix product)"
NO_DRIVER = (
    "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed"
)


def trial(**changes: Any) -> Trial:
    return but(Trial(source="trial", imported=True, import_seconds=2.0), **changes)


def ran(**changes: Any) -> Trial:
    return but(trial(ran_on_gpu=True, seconds=0.4, device="cuda:0", proof=PROOF, gpu=h200().pci_bus_id), **changes)


def tried(*frameworks: Framework, snapshot: Snapshot | None = None) -> Snapshot:
    return with_venv(snapshot or machine(), venv(*frameworks))


def of(rule: str, framework: str, snapshot: Snapshot) -> Check:
    (found,) = [check for check in checks_of(rule, snapshot) if check.subject.key == f"{VENV}:{framework}"]
    return found


def test_without_a_trial_the_questions_do_not_arise() -> None:
    rules = {check.rule for check in judge(machine())}
    assert not rules & {"framework-import-fails", "framework-cannot-use-gpu", "loaded-library-differs"}


def test_a_framework_that_ran_passes_by_proof() -> None:
    snapshot = tried(torch(trial=ran()))
    imports, runs = check_of("framework-import-fails", snapshot), check_of("framework-cannot-use-gpu", snapshot)
    assert (imports.status, imports.decided_by) == ("pass", "framework-ran")
    assert (runs.status, runs.decided_by) == ("pass", "framework-ran")
    assert runs.title == "torch 2.5.1+cu124 ran on GPU 0 (NVIDIA H200)"
    assert runs.evidence[0].value == f"cuda:0 in 0.4 s: {PROOF}"
    assert cause(snapshot) is None


@cases("error", "timed out after 150 s while importing torch", "killed by SIGKILL")
def test_an_end_from_outside_leaves_the_question_open(error: str) -> None:
    check = check_of("framework-import-fails", tried(torch(trial=trial(imported=None, error=error))))
    assert (check.status, check.message) == ("unknown", error)
    computing = tried(torch(trial=trial(ran_on_gpu=None, error=error)))
    assert check_of("framework-import-fails", computing).status == "pass"
    assert check_of("framework-cannot-use-gpu", computing).status == "unknown"


def test_what_was_not_put_to_work_is_skipped_with_the_reason() -> None:
    snapshot = tried(torch(trial=trial(skipped="there is no NVIDIA GPU here")), snapshot=without_gpu())
    check = check_of("framework-cannot-use-gpu", snapshot)
    assert (check.status, check.message) == ("skipped", "there is no NVIDIA GPU here")


def runtime(**changes: Any) -> Framework:
    found = Framework(
        source="wheel metadata", name="onnxruntime-gpu", version="1.22.0", cuda="12.4", cpu_only=False,
        providers=("CUDA", "CPU"),
    )  # fmt: skip
    return but(found, **changes)


IMPORTS, USES = "framework-import-fails", "framework-cannot-use-gpu"
UNDEFINED = "ImportError: /x/libfoo.so.1: undefined symbol: bar"
PRINTED = ("CuDNN library needs to have matching major version", "ImportError: x")
SEGFAULT = "crashed: SIGSEGV while computing a convolution"
NOT_INITIALIZED = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED (in a convolution)"
LEFT_OUT = (
    "CUDAExecutionProvider was left out and the CPU computes: libcublasLt.so.12: cannot open shared object file: "
    "No such file or directory (in a matrix product)"
)
NOT_IMPORTED, UNUSED = trial(imported=False, error="ImportError: x"), trial(ran_on_gpu=False, error="RuntimeError: x")


@cases("about, rule, frameworks, expected",
    ("an import that fails is told with its error", IMPORTS, [torch(trial=trial(imported=False, error=UNDEFINED))],
     {"status": "fail", "title": "torch 2.5.1+cu124 cannot be imported", "message": UNDEFINED, "evidence": (),
      "decided_by": "framework-ran"}),
    ("what was printed is evidence and said once", IMPORTS, [torch(trial=but(NOT_IMPORTED, warnings=PRINTED))],
     {"message": "ImportError: x", "what": ("printed",), "evidence": PRINTED[:1],
      "read": ("torch in this environment",)}),
    ("a crash on the GPU fails", USES, [torch(trial=trial(ran_on_gpu=False, error=SEGFAULT))],
     {"status": "fail", "title": "PyTorch cannot use the GPU", "message": SEGFAULT}),
    ("a later operation that fails is a failure too", USES, [torch(trial=ran(error=NOT_INITIALIZED))],
     {"status": "fail", "title": "…reaches the GPU but fails there…", "message": NOT_INITIALIZED}),
    ("a silent fallback to the CPU fails", USES, [runtime(trial=trial(ran_on_gpu=False, error=LEFT_OUT))],
     {"status": "fail", "message": "…libcublasLt.so.12…"}),
    ("a call that must come first is a note with that call", USES,
     [runtime(trial=ran(answers={"needs": "onnxruntime.preload_dlls()"}))],
     {"status": "note", "title": "onnxruntime-gpu 1.22.0 uses the GPU only after onnxruntime.preload_dlls()",
      "text": "…onnxruntime.preload_dlls()…"}),
    ("of what may be there for the CPU it is a note", USES,
     [Framework(source="file", name="numba", version="0.61.0", trial=UNUSED)], {"status": "note"}),
    ("an extension of a framework that cannot use the GPU is not told twice", USES,
     [torch(trial=UNUSED), Framework(source="file", name="xformers", extends="torch", cpu_only=False, trial=UNUSED)],
     {"status": "skipped", "message": "torch itself cannot use it"}),
    ("an extension of a framework that fails is not told twice", IMPORTS,
     [torch(trial=NOT_IMPORTED),
      Framework(source="file", name="flash-attn", version="2.7.4", extends="torch", trial=NOT_IMPORTED)],
     {"status": "skipped", "message": "torch itself cannot be imported"}),
)  # fmt: skip
def test_what_is_told_of_the_last_framework(
    about: str, rule: str, frameworks: list[Framework], expected: Expected
) -> None:
    assert agreed(of(rule, frameworks[-1].name, tried(*frameworks)), expected) == expected


def test_of_a_build_for_the_cpu_another_rule_speaks() -> None:
    cpu = torch("2.5.1+cpu", cuda=None, trial=trial(ran_on_gpu=False, error="AssertionError: Torch not compiled"))
    assert checks_of("framework-cannot-use-gpu", tried(cpu)) == ()
    assert cause(tried(cpu)) == "cpu-only-build"


def test_what_is_there_for_cuda_speaks_for_what_may_be_there_for_the_cpu() -> None:
    failing = trial(ran_on_gpu=False, error="CudaSupportError: no driver")
    numba = Framework(source="file", name="numba", version="0.68.1", trial=failing)
    target = Framework(source="file", name="numba-cuda", extends="numba", cpu_only=False, trial=failing)
    found = checks_of("framework-cannot-use-gpu", tried(numba, target))
    assert [(check.subject.key, check.status) for check in found] == [(f"{VENV}:numba-cuda", "fail")]
    beside = tried(torch(), numba, target)
    assert of("framework-cannot-use-gpu", "numba-cuda", beside).status == "warn", "others there use the GPU"


def test_the_page_cited_first_is_about_that_framework() -> None:
    failing = runtime(trial=trial(ran_on_gpu=False, error="x"))
    assert of("framework-cannot-use-gpu", "onnxruntime-gpu", tried(failing)).sources[0].title.startswith("ONNX Runtime")


def test_wanting_a_driver_where_no_gpu_is_is_no_fault() -> None:
    error = "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"
    failing = torch(trial=trial(imported=False, error=error))
    assert check_of("framework-import-fails", tried(failing, snapshot=without_gpu())).status == "skipped"
    assert check_of("framework-import-fails", tried(failing)).status == "fail"


def test_the_machines_own_fault_explains_it() -> None:
    snapshot = tried(torch(trial=trial(ran_on_gpu=False, error=NO_DRIVER)), snapshot=not_loaded())
    check = check_of("framework-cannot-use-gpu", snapshot)
    assert check.status == "fail"
    assert check.explained_by is not None
    assert check.explained_by.startswith("driver-not-loaded@")
    assert cause(snapshot) == "driver-not-loaded"


def test_an_error_confirms_the_rule_that_it_names_for_that_framework() -> None:
    snapshot = tried(torch(gpu_code=("sm_90",), trial=trial(ran_on_gpu=False, error=NO_IMAGE)))
    found = check_of("gpu-code-missing", snapshot)
    assert (found.status, found.decided_by, found.subject.key) == ("fail", "framework-ran", f"{VENV}:torch")
    assert (found.evidence[0].what, found.evidence[0].value) == ("error from torch", NO_IMAGE)
    assert check_of("framework-cannot-use-gpu", snapshot).explained_by == f"gpu-code-missing@{VENV}:torch"
    assert cause(snapshot) == "gpu-code-missing"


def test_the_cause_that_the_framework_names_goes_before_nearer_ones() -> None:
    failing = torch(
        "2.5.1+cu124",
        gpu_code=("sm_50",),
        trial=trial(ran_on_gpu=False, error="CUDA error: system not yet initialized"),
    )
    snapshot = tried(failing)
    assert check_of("gpu-code-missing", snapshot).status == "fail"
    assert (check_of("framework-cannot-use-gpu", snapshot).explained_by or "").startswith("fabric-manager-not-running@")


def test_what_one_framework_says_is_not_held_against_another() -> None:
    failing = torch(gpu_code=("sm_90",), trial=trial(ran_on_gpu=False, error=NO_IMAGE))
    other = Framework(source="wheel metadata", name="cupy-cuda12x", cuda="12.4", cpu_only=False, gpu_code=("sm_90",))
    snapshot = tried(failing, other)
    statuses = {check.subject.key: check.status for check in checks_of("gpu-code-missing", snapshot)}
    assert statuses[f"{VENV}:torch"] == "fail"
    assert statuses.get(f"{VENV}:cupy-cuda12x", "pass") == "pass"


def test_running_on_the_gpu_outranks_what_was_inferred() -> None:
    old = machine(driver__release="450.80.02", driver__cuda="11.0")
    unfit = torch(gpu_code=("sm_50",))
    assert {check_of(rule, tried(unfit, snapshot=old)).status for rule in ("driver-too-old", "gpu-code-missing")} == {
        "fail"
    }
    snapshot = tried(but(unfit, trial=ran()), snapshot=old)
    for rule in ("driver-too-old", "gpu-code-missing", "cpu-only-build"):
        check = check_of(rule, snapshot)
        assert (check.status, check.decided_by) == ("pass", "framework-ran"), rule
        assert PROOF in check.evidence[0].value


def test_running_settles_what_is_not_known() -> None:
    unknown = torch(cuda="12.4", version="99.0+cu124", gpu_code=None)
    assert check_of("gpu-code-missing", tried(unknown)).status != "pass"
    assert check_of("gpu-code-missing", tried(but(unknown, trial=ran()))).status == "pass"


def test_running_on_one_gpu_says_nothing_of_another_kind() -> None:
    mixed = machine(h200(0), h200(1), h200(2, name="NVIDIA T4", compute_capability="7.5"))
    check = check_of("gpu-code-missing", tried(torch(gpu_code=("sm_50",), trial=ran()), snapshot=mixed))
    assert check.status == "fail"
    assert "GPU 2 (NVIDIA T4)" in check.title


def test_lines_of_a_trial_that_went_well_prove_nothing() -> None:
    noisy = torch(trial=ran(warnings=("no kernel image is available for execution on the device", NO_DRIVER)))
    assert [check.id for check in judge(tried(noisy)) if check.status in ("fail", "warn")] == []


def test_a_frameworks_word_about_the_machine_counts_where_the_machine_knows_nothing() -> None:
    error = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"
    check = check_of("fabric-manager-not-running", tried(torch(trial=trial(ran_on_gpu=False, error=error))))
    assert (check.status, check.subject.kind) == ("fail", "machine")


LIBRARY = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
SYSTEM = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.14.0"


def loads(*paths: str) -> tuple[Load, ...]:
    return tuple(
        Load(
            source="elf",
            name="libcudnn.so.9",
            needed_by=f"{SITE}/torch/lib/libtorch_cuda.so",
            path=path,
            version="9.1.0",
        )
        for path in paths
    )


def in_map(path: str, version: str | None = "9.1.0") -> tuple[Loaded, ...]:
    driver = Loaded(source="memory map", path="/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14", family="cuda")
    return (driver, Loaded(source="memory map", path=path, family="cudnn", version=version))


def test_the_library_that_was_predicted_is_the_one_in_the_map() -> None:
    check = check_of("loaded-library-differs", tried(torch(loads=loads(LIBRARY), trial=ran(libraries=in_map(LIBRARY)))))
    assert (check.status, check.title) == ("pass", "torch 2.5.1+cu124 loaded 1 library from where its files predict")


def test_another_library_in_the_map_is_a_note_with_both_paths() -> None:
    snapshot = tried(torch(loads=loads(LIBRARY), trial=ran(libraries=in_map(SYSTEM, "9.14.0"))))
    check = check_of("loaded-library-differs", snapshot)
    assert (check.status, check.decided_by) == ("note", "framework-ran")
    assert [part.value for part in check.evidence] == [f"{SYSTEM} (9.14.0)", f"{LIBRARY} (9.1.0)"]
    assert cause(snapshot) is None


@cases("predicted_too", True, False)
def test_another_major_version_counts_only_in_place_of_the_predicted_one(*, predicted_too: bool) -> None:
    other = Loaded(source="memory map", path=LIBRARY.replace(".9", ".8"), family="cudnn", version="8.9.7")
    mapped = (other, *(in_map(LIBRARY) if predicted_too else ()))
    check = check_of("loaded-library-differs", tried(torch(loads=loads(LIBRARY), trial=ran(libraries=mapped))))
    assert check.status == ("pass" if predicted_too else "note")


def test_what_was_not_found_or_not_loaded_is_not_compared() -> None:
    unfound = tuple(but(load, path=None) for load in loads(LIBRARY))
    assert checks_of("loaded-library-differs", tried(torch(loads=unfound, trial=ran(libraries=in_map(LIBRARY))))) == ()
    nothing = tried(torch(loads=loads(LIBRARY), trial=ran(libraries=in_map(LIBRARY)[:1])))
    assert checks_of("loaded-library-differs", nothing) == ()


def test_a_library_that_was_loaded_although_none_was_found_is_told() -> None:
    framework = torch(loads=tuple(but(load, path=None) for load in loads(LIBRARY)), trial=ran(libraries=in_map(SYSTEM)))
    check = check_of("loaded-library-differs", observed_loads(tried(framework)))
    assert check.status == "note"
    assert [part.value for part in check.evidence] == [f"{SYSTEM} (9.1.0)", "libcudnn.so.9 is not found"]


def test_what_a_plugin_would_be_given_counts_for_its_framework() -> None:
    jax = Framework(source="file", name="jax", version="0.5.0", cuda="12", trial=ran(libraries=in_map(SYSTEM)))
    plugin = Framework(source="wheel metadata", name="jax-cuda12-plugin", extends="jax", loads=loads(LIBRARY))
    assert of("loaded-library-differs", "jax", tried(jax, plugin)).status == "note"


def test_facts_about_a_trial() -> None:
    framework = torch(trial=ran(libraries=in_map(LIBRARY)))
    facts = Facts(machine(h200(0), h200(1), h200(2, compute_capability="8.0")), load_matrix())
    assert framework.ran_on_gpu is True
    assert torch().ran_on_gpu is None
    assert framework.imported is True
    assert torch().imported is None
    assert [gpu.index for gpu in gpus_proven(framework, facts)] == [0, 1]
    assert not framework.failed
    assert not torch().failed
    assert torch(trial=trial(imported=False)).failed
    assert torch(trial=ran(error="x")).failed
    assert not torch(trial=trial(error="timed out")).failed


def file(path: str = f"{SITE}/numpy/__init__.py", **changes: Any) -> TrialFile:
    return but(TrialFile(source="trial", path=path, role="error", owner="numpy==2.4.0", state="differs"), **changes)


def stopped(*files: TrialFile, name: str = "torch", error: str = "SyntaxError: invalid syntax") -> Framework:
    failing = trial(imported=False, error=error, files=files)
    return (
        torch(trial=failing) if name == "torch" else Framework(source="file", name=name, version="1.0", trial=failing)
    )


def test_a_failed_trial_starts_with_the_damaged_file_that_it_names() -> None:
    found = tried(stopped(file(line=7, detail="it has 9 bytes, 7 were installed")))
    check = check_of("file-stops-framework", found)
    assert check.title == "numpy/__init__.py of numpy was changed after installation"
    assert check.message.startswith(f"{SITE}/numpy/__init__.py, line 7 (installed by numpy==2.4.0): it has 9 bytes")
    assert check.fixes[0].command[-4:] == ("install", "--force-reinstall", "--no-deps", "numpy==2.4.0")
    assert check_of("framework-import-fails", found).explained_by == check.id
    assert cause(found) == "file-stops-framework"


def test_one_file_that_stops_five_frameworks_is_told_once() -> None:
    names = ("torch", "jax", "cupy-cuda12x", "numba", "onnxruntime-gpu")
    gone = file(role="module", state="gone", detail="No such file or directory")
    found = tried(*(stopped(gone, name=name) for name in names))
    check = check_of("file-stops-framework", found)
    assert check.frameworks == ("torch", "jax", "onnxruntime-gpu", "cupy-cuda12x", "numba")
    assert {each.explained_by for each in checks_of("framework-import-fails", found)} == {check.id}
    assert check.title == "numpy/__init__.py of numpy is missing"
    assert cause(found) == "file-stops-framework"


def test_a_library_that_is_cut_off_is_not_taken_for_a_missing_one() -> None:
    path = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
    damaged = file(path, owner="nvidia-cudnn-cu12==9.1.0.70", detail="it is empty")
    found = tried(stopped(damaged, error=f"ImportError: {path}: file too short"))
    assert check_of("file-stops-framework", found).title == "libcudnn.so.9 of nvidia-cudnn-cu12 is damaged"
    assert cause(found) == "file-stops-framework"
    assert "cudnn-missing" not in {check.rule for check in judge(found) if check.status == "fail"}


def test_a_file_of_nobody_that_the_loader_refuses() -> None:
    path = "/usr/local/cuda/lib64/libcusparse.so.12"
    found = tried(stopped(file(path, owner=None, state=None), error=f"ImportError: {path}: invalid ELF header"))
    check = check_of("file-stops-framework", found)
    assert check.title == "libcusparse.so.12 is damaged"
    assert path in check.fixes[0].text


@cases("files",
    (file(state="as installed"),), (file(owner=None, state="gone"),),
    (file(role="frame", state="as installed"), file(role="frame", owner=None, state=None)),
    (file("libcudart.so.11.0", owner=None, state=None),), (),
)  # fmt: skip
def test_files_that_are_as_installed_are_no_cause(files: tuple[TrialFile, ...]) -> None:
    found = tried(stopped(*files))
    assert checks_of("file-stops-framework", found) == ()
    assert cause(found) == "framework-import-fails"


def test_a_module_that_nothing_brings_is_named_with_who_wants_it() -> None:
    frame = file(f"{SITE}/jax/core.py", role="frame", owner="jax==0.5.0", state="as installed")
    found = tried(stopped(file("ml_dtypes", role="module", owner=None, state=None), frame, name="jax", error="x"))
    check = check_of("file-stops-framework", found)
    assert check.title == "No installed package provides the module ml_dtypes"
    assert check.message.startswith("jax==0.5.0 imports ml_dtypes")


@tabled
def test_a_requirement_that_is_not_installed_is_what_lacks(
    module: str, requires: tuple[str, ...], title: str, asked: list[str]
) -> None:
    def wheel(name: str, *requires: str) -> Distribution:
        return Distribution(source="wheel metadata", name=name, version="1.0", channel="pip", requires=requires)

    frame = file(f"{SITE}/cupy/core.py", role="frame", owner="cupy==1.0", state="as installed")
    lacking = stopped(file(module, role="module", owner=None, state=None), frame, name="cupy", error="x")
    packages = (wheel("cupy", *requires), wheel("filelock"))
    environment = venv(lacking, distributions=packages, distributions_complete=True)
    check = check_of("file-stops-framework", with_venv(machine(), environment))
    assert check.title == title
    command = check.fixes[0].command
    assert list(command[command.index("install") + 1 :] if command else ()) == asked
    unread = with_venv(machine(), but(environment, distributions_complete=False))
    assert check_of("file-stops-framework", unread).title.startswith("No installed package provides")


def test_damage_that_another_finding_lists_is_told_there() -> None:
    listed = Damaged(source="file", path=f"{SITE}/numpy-2.4.0.dist-info", problem="files of numpy==2.4.0 are gone")
    environment = venv(stopped(file()), damaged=(listed,))
    found = with_venv(machine(), environment)
    assert check_of("file-stops-framework", found).explained_by == f"damaged-distribution@{VENV}"
    other = with_venv(machine(), but(environment, damaged=(but(listed, path=f"{SITE}/six.dist-info", problem="x"),)))
    assert check_of("file-stops-framework", other).explained_by is None


@tabled
def test_every_failed_import_says_what_to_look_at_next(error: str, step: str) -> None:
    check = check_of("framework-import-fails", tried(torch(trial=trial(imported=False, error=error))))
    assert step in " ".join((check.fixes[0].text, *check.fixes[0].command))
    assert not {"PYTHON", "MODULE", "import MODULE"} & set(check.fixes[0].command)


def test_a_crash_after_all_files_were_verified_says_where_to_look() -> None:
    failing = torch(trial=trial(imported=False, error="crashed: SIGSEGV while importing torch"))
    whole = Shipped(source="wheel metadata", files=9, bytes=9, complete=True)
    check = check_of("framework-import-fails", with_venv(machine(), venv(failing, verified=whole)))
    assert "faulthandler" in check.fixes[0].command
    assert not any("--verify" in fix.command for fix in check.fixes)


@tabled
def test_every_failure_on_the_gpu_says_what_to_look_at_next(error: str, step: str) -> None:
    check = check_of("framework-cannot-use-gpu", tried(torch(trial=trial(ran_on_gpu=False, error=error))))
    assert step in " ".join((check.fixes[0].text, *check.fixes[0].command))


@cases("error, step", ("timed out after 150 s while importing torch", "importtime"), ("killed by SIGKILL", "memory"))
def test_an_end_from_outside_says_what_to_look_at_next(error: str, step: str) -> None:
    check = check_of("framework-import-fails", tried(torch(trial=trial(imported=None, error=error))))
    assert step in " ".join((check.fixes[0].text, *check.fixes[0].command))


CASES: list[tuple[str, str, Snapshot, str]] = [
    ("file-stops-framework", "an edited file", tried(stopped(file())), "fail"),
    ("framework-import-fails", "a symbol of another release",
     tried(torch(trial=trial(imported=False, error="ImportError: /x/libfoo.so.1: undefined symbol: bar"))), "fail"),
    ("framework-cannot-use-gpu", "a crash in a convolution",
     tried(torch(trial=trial(ran_on_gpu=False, error="crashed: SIGSEGV while computing a convolution"))), "fail"),
    ("loaded-library-differs", "the system's cuDNN before the wheel's",
     tried(torch(loads=loads(LIBRARY), trial=ran(libraries=in_map(SYSTEM, "9.14.0")))), "note"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "case", "snapshot", "status"), CASES, ids=lambda value: str(value)[:40])
def test_cases(rule: str, case: str, snapshot: Snapshot, status: str) -> None:
    assert check_of(rule, snapshot).status == status, case


def trial_run(status: str, framework: str | None = "torch", **changes: Any) -> ProbeRun:
    run = ProbeRun(name="deep.torch", title="PyTorch, imported and run", status="timed-out", environment=VENV)
    return but(run, status=status, framework=framework, **changes)


def with_runs(snapshot: Snapshot, *runs: ProbeRun) -> Snapshot:
    return but(snapshot, runs=(*snapshot.runs, *runs))


def report_on(snapshot: Snapshot) -> Report:
    return conclude(snapshot, judge(snapshot), all_rules(), Request())


def test_what_waited_for_a_trial_that_hung_is_not_the_open_question() -> None:
    hung = trial_run("timed-out", seconds=25.0, detail="while importing torch")
    waiting = trial_run("timed-out", "jax", detail="not started: --timeout 25 s was reached")
    jax = Framework(source="x", name="jax", version="0.6.0", cuda="12.8")
    snapshot = with_runs(with_venv(machine(), venv(torch(), jax)), hung, waiting)
    found = {check.status: check.message for check in checks_of("framework-import-fails", snapshot)}
    assert found == {
        "unknown": "timed out after 25 s: while importing torch",
        "skipped": "not started: --timeout 25 s was reached",
    }


@cases(
    "run, why",
    (trial_run("timed-out", seconds=150.0, detail="while importing torch"), "timed out after 150 s: while importing"),
    (trial_run("timed-out", seconds=150.0, detail="timed out after 150 s while importing torch"),
     "timed out after 150"),
    (trial_run("failed", detail="it sent no fact"), "failed: it sent no fact"),
    (trial_run("crashed", detail="crashed: SIGSEGV"), "crashed: SIGSEGV"),
    (trial_run("skipped", detail="GPU 0 is busy (90 %); --force tries it anyway"), "GPU 0 is busy"),
)  # fmt: skip
def test_a_trial_that_brought_nothing_leaves_no_verdict(run: ProbeRun, why: str) -> None:
    snapshot = with_runs(tried(torch()), run)
    check = check_of("framework-import-fails", snapshot)
    assert check.status == "unknown"
    assert check.message.startswith(why)
    report = report_on(snapshot)
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert why in report.headline


@cases("end", trial(imported=None, error="killed by SIGKILL"), trial(error="timed out after 150 s"))
def test_an_unfinished_trial_outranks_a_warning(end: Trial) -> None:
    warned = machine(h200(persistence_mode=False), variables=variables(CUDA_LAUNCH_BLOCKING="1"))
    assert report_on(tried(torch(trial=ran()), snapshot=warned)).verdict == "warn"
    assert report_on(tried(torch(trial=end), snapshot=warned)).verdict == "unknown"


def test_a_trial_that_stops_half_way_is_no_pass() -> None:
    half = with_runs(tried(torch(trial=trial())), trial_run("failed", detail="it sent a wrong message"))
    assert check_of("framework-import-fails", half).status == "pass"
    assert check_of("framework-cannot-use-gpu", half).status == "unknown"
    assert report_on(half).verdict == "unknown"


def test_libraries_that_gave_no_answer_leave_no_verdict() -> None:
    run = trial_run("timed-out", None, name="deep.libraries", seconds=120.0)
    snapshot = with_runs(tried(torch(trial=ran())), run)
    assert check_of("trial-unfinished", snapshot).message == "timed out after 120 s"
    assert report_on(snapshot).verdict == "unknown"


@cases("run", trial_run("absent", None), trial_run("ok"), trial_run("skipped", environment=None))
def test_what_ended_or_was_not_asked_for_leaves_nothing_open(run: ProbeRun) -> None:
    snapshot = with_runs(tried(torch()), run)
    assert not checks_of("framework-import-fails", snapshot) + checks_of("trial-unfinished", snapshot)
    assert report_on(snapshot).verdict == "pass"


@cases("form", "text", "nagios", "markdown", "slurm-reason", "junit", "summary")
def test_no_format_shows_an_unfinished_trial_as_passed(form: str) -> None:
    report = report_on(with_runs(tried(torch()), trial_run("timed-out", seconds=150.0)))
    shown = render(report, form)
    assert exit_status(report, form) == 3
    assert "Not tested: framework import" not in shown
    assert "unknown" in shown.lower() or "no verdict" in shown
    assert form != "junit" or shown.count("<error message=") == 1
