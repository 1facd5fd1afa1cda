"""Error lines: each pattern with lines in the shape of public reports, and lines that name nothing."""

import re
import time
from pathlib import Path

from envcheck.importers import read_text
from envcheck.importers.formats.error_lines import is_error, read
from envcheck.importers.paste import Paste
from envcheck.knowledge.error_lines import LONGEST, error_lines, named_beside, named_by
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.patterns import needed_by
from envcheck.model.snapshot import Framework, ObservedError, Platform, Snapshot
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.text.lazy import has_needed
from tests.documents import lines_of
from tests.every import cases, every, every_tabled, tabled
from tests.rules.machines import (
    but,
    cause,
    check_of,
    checks_of,
    driver,
    error,
    judge,
    kernel,
    machine,
    open_fails,
    statuses,
    torch,
    venv,
    with_venv,
    without_gpu,
)
from tests.rules.messages.examples import by_problem, examples, pairs


@every(pairs)
def test_what_a_pattern_needs_is_in_each_line_that_it_matches(problem: str, line: str) -> None:
    """The quick test leaves out no pattern that would have matched."""
    for each in error_lines():
        if each.problem == problem and each.is_in(line):
            assert has_needed(needed_by(each.pattern), line.lower())


def names_of_results() -> list[str]:
    """What the driver and the runtime call their results, but for success."""
    from cuda.bindings import driver, runtime  # noqa: PLC0415  1 s

    return [each.name for each in (*driver.CUresult, *runtime.cudaError_t) if each.value]


@every(names_of_results)
def test_the_name_alone_of_each_result_of_cuda_names_a_problem(name: str) -> None:
    assert named_by(name) is not None


@tabled
def test_the_words_that_a_pattern_needs(pattern: str, words: list[set[str]]) -> None:
    assert list(map(set, needed_by(pattern))) == words


@every(
    "cuda " * 380,
    " " * 1_900,
    "flash_attn" + "_a" * 900,
    "No module named " + "a." * 900,
    "undefined symbol: " + "_ZN2at" * 300,
    "requires NCCL 2" + "1" * 900 + " requires " + "1." * 400,
    "Error: requires SM " * 95,
    "version requires GPU torch cannot load missing could not find CUDA error nvidia " * 23,
)
def test_a_line_takes_milliseconds_whatever_stands_in_it(piece: str) -> None:
    lines = [f"RuntimeError: {number} error {piece}{number}" for number in range(40)]
    named_by(lines[0])
    started = time.process_time()
    for line in lines:
        named_by(line)
    assert time.process_time() - started < 2.0


@every(examples)
def test_a_line_names_its_problem(problem: str, line: str, alone: object) -> None:
    named = named_beside(line, (line,))
    assert problem in [found.problem for found in (named, None if alone else named_by(line)) if found]


def test_every_pattern_has_an_example() -> None:
    lines = [line for _, line in pairs()]
    idle = [
        line.pattern
        for line in error_lines()
        if not any(
            line.is_in(text) and line in (named_by(text), named_beside(text, (text,)), named_beside(text, lines))
            for text in (*by_problem().get(line.problem, ()), *lines)  # its own first, which mostly decide
        )
    ]
    assert idle == []


@every(pairs)
def test_a_line_that_names_a_problem_is_kept_as_an_error_line(problem: str, line: str) -> None:
    assert [error.text for error in read(Paste.of(line)).observed_errors] == [line.strip()]
    beside = [error.text for error in read_text(f"Ubuntu 22.04\n{line}\n").observed_errors]
    assert [text for text in beside if text != "Ubuntu 22.04"] == [line.strip()]  # which some remedies ask for


REQUESTS = [
    "libcuda reported version is: 384.130.0", "print(torch.cuda.is_available())",
    "conda install pytorch pytorch-cuda=12.1 -c pytorch -c nvidia",
    "pip install torch --index-url https://download.pytorch.org/whl/cu126", "tf.config.list_physical_devices('GPU')",
    "./llama-cli -m model.gguf -ngl 35", "export XLA_FLAGS=--xla_gpu_cuda_data_dir=/opt/cuda-12.4",
    "torch 2.7.1+cpu, cuda available: False, device count: 0", "the loss is nan from the first step on",
    "I was getting bad outputs with it", "it takes very long to start", "10 it/s on this card, it should be 28 it/s",
]  # fmt: skip
"""Lines that name no problem, and are kept: some ask for CUDA."""


def test_each_word_of_a_failure_is_in_an_example() -> None:
    lines = [*(line for _, line in pairs()), *REQUESTS]
    lower = [line.lower() for line in lines]
    idle = [
        pattern
        for row in load_matrix().failures
        if row.where != "harmless"
        for pattern in row.patterns
        for found in [re.compile(rf"\b(?:{pattern})" if row.where == "word" else pattern)]
        if not any(map(found.search, lower if row.where in ("word", "anywhere") else lines))
    ]
    assert idle == []
    assert all(map(is_error, REQUESTS))


HARMLESS = lines_of((Path(__file__).with_name("data") / "harmless.txt").read_text(encoding="utf-8"))


@every(HARMLESS)
def test_a_harmless_line_names_nothing(line: str) -> None:
    assert named_by(line) is None
    assert named_beside(line, (line,)) is None


@every_tabled
def test_what_is_said_to_be_over_is_no_failure(line: str) -> None:
    assert not is_error(line)
    assert read(Paste.of(line)).observed_errors == ()


@every("nvidia-smi no longer shows the GPU after the update", "With --ipc=host the error disappeared: NCCL failure")
def test_what_ended_the_work_or_the_error_is_told(line: str) -> None:
    assert is_error(line)


def test_a_line_without_end_costs_no_time() -> None:
    for text in (
        "Xid (" * 200_000,
        "libcuda.so.1 " + "a " * 500_000,
        "Dynamic LLM libraries" + " runners" * 200_000,
        "Dynamic LLM libraries [" + "cpu" * 1000,
        "Dynamic LLM libraries " + "[cpu, " * 1000,
        "cuda error " * 1000,
        "or " * 1000 + "not compiled with ",
        "HW Power Brake" + " " * 1900,
    ):
        assert named_by(text) is None
    assert named_by(" " * LONGEST + "GPU is lost") is None


MILDER = {"host-memory-exhausted": "warn", "pcie-link-errors": "warn",
    "cupy-multiple-packages": "warn", "driver-older-than-toolkit": "note", "framework-leaves-speed": "note",
    "gpu-held-back": "warn", "jetpack-mismatch": "warn", "nvidia-wheel-conflict": "warn",
    "pcie-link-degraded": "warn", "persistence-mode-off": "note", "power-throttled": "warn", "process-confined": "warn",
    "program-at-fault": "warn", "requirement-broken": "warn", "row-remap-pending": "warn",
    "slow-collective": "warn", "slow-gpu-memory": "warn", "slow-host-link": "warn", "thermal-throttled": "warn",
    "variable-costs-speed": "warn", "wsl-libcuda-shadowed": "warn",
}  # fmt: skip
"""What a line proves that is no failure."""
WITHOUT_FIX = {"driver-older-than-toolkit", "framework-leaves-speed", "persistence-mode-off"}
JAX_PLUGIN = (
    "RuntimeWarning: JAX plugin jax_cuda12_plugin version 0.9.2 is installed, but it is not compatible with "
    "the installed jaxlib version 0.9.0.1, so it will not be used."
)
FURTHER = [
    ("extension-binary-missing", "ModuleNotFoundError: No module named 'flash_attn_2_cuda'"),
    ("jax-plugin-mismatch", JAX_PLUGIN),
]


def met() -> dict[str, str]:
    """A line for each problem."""
    plain = {
        "cpu-only-build": "AssertionError: Torch not compiled with CUDA enabled",
        "persistence-mode-off": "persistence mode is not enabled on GPU 00000000:0F:00.0 (nvidia-smi)",
    }
    alone = {example.problem for example in examples() if example.alone}
    return {problem: lines[0] for problem, lines in by_problem().items() if problem in alone} | plain


@every(lambda: [*met().items(), *FURTHER])
def test_a_met_line_becomes_the_finding_of_its_rule(problem: str, line: str) -> None:
    found = check_of(problem, error(line, line=7))
    rule = find_rule(problem)
    assert rule is not None
    assert (found.id, found.status) == (f"{problem}@machine", MILDER.get(problem, "fail"))
    assert bool(found.fixes) is (problem not in WITHOUT_FIX)
    titles = {row.title for row in load_matrix().remedies if problem in row.problems}
    assert found.title in {rule.title, *titles}
    assert found.decided_by in ("driver-answered", "framework-ran")
    assert (found.evidence[0].value, found.evidence[0].source) == (line.strip()[:160], "pasted text, line 7")
    cited = [load_matrix().cite(row) for row in load_matrix().remedies if problem in row.problems]
    assert found.sources in (rule.sources, *cited)


@every(lambda: [(problem, line) for problem, line in met().items() if problem not in MILDER])
def test_the_cause_of_a_met_line_is_its_rule(problem: str, line: str) -> None:
    snapshot = error(line)
    assert cause(snapshot) == problem
    assert open_fails(snapshot) == [problem]


def lines(*texts: str) -> Snapshot:
    return Snapshot(observed_errors=tuple(ObservedError(source="pasted text", text=text) for text in texts))


def test_the_most_exact_line_is_the_cause() -> None:
    assert cause(lines(met()["driver-not-loaded"], met()["secure-boot-blocks-module"])) == "secure-boot-blocks-module"
    assert cause(lines(met()["gpu-init-failed"], met()["gpu-unsupported-by-driver"])) == "gpu-unsupported-by-driver"


@every(
    ("ModuleNotFoundError: No module named 'torch'", "Getting requirements to build wheel did not run successfully."),
    ("error: Microsoft Visual C++ 14.0 or greater is required.", "error: building the CUDA extension failed"),
    ("State : In Progress", "Active: failed (Result: exit-code) since Tue"),
    ('msg="skipping CUDA device: compute capability not in compiled architectures" name="GeForce GTX 1060"',
     'msg="inference compute" id=0 library=cpu compute="" name=cpu'),
    ("RuntimeError: Network is unreachable", "ncclSystemError: System call (socket, malloc, munmap, etc) failed."),
    ("CUDA error: invalid device ordinal", "CUDA_VISIBLE_DEVICES=MIG-5a1b2c3d-0000-1111-2222-333344445555"),
    ("DLL load failed while importing onnxruntime_pybind11_state: The specified module could not be found.",
     "pip install onnxruntime"),
    ("the model does not use my GPU at all", "CMAKE_ARGS=-DGGML_CUDA=on pip install llama-cpp-python"),
    ("Ultralytics 8.3.1 Python-3.11.4 torch-2.4.1+cpu CPU (Intel Core i7)", "it cannot use the GPU"),
    ("NVML: Unable to retrieve NVLink information as all links are inActive", "GPU 2: NVIDIA B200 (UUID: GPU-1)"),
    ("NVIDIA L4, P0, 0x0000000000000040", "name, pstate, clocks_throttle_reasons.active"),
    ("Out of memory: Killed process 8123 (python3) total-vm:19892332kB", "NVIDIA Jetson AGX Orin Developer Kit"),
)  # fmt: skip
def test_a_line_that_needs_another_beside_it_says_nothing_alone(line: str, beside: str) -> None:
    named = named_beside(line, (line, beside))
    assert named is not None
    assert cause(lines(line)) != named.problem
    assert cause(lines(line, beside)) == cause(lines(beside, line)) == named.problem


@every_tabled
def test_what_healthy_machines_print_too_names_nothing(line: str, beside: str) -> None:
    assert named_beside(line, (line, beside)) is None


def test_memory_that_ran_out_outranks_a_warning_about_numpy() -> None:
    warning = "A module that was compiled using NumPy 1.x cannot be run in"
    assert cause(lines(warning)) == "numpy-abi-mismatch"
    assert statuses("numpy-abi-mismatch", lines(warning, "RuntimeError: CUDA error: out of memory")) == ()


@every_tabled
def test_the_refused_code_of_another_program_is_not_that_of_tensorflow(line: str) -> None:
    assert cause(lines(line)) != "gpu-code-missing"


@every_tabled
def test_the_fix_of_a_build_is_that_of_the_program_that_prints_the_line(line: str, name: str) -> None:
    told = fixes_of(lines(line))
    assert name in told
    assert ("torch==" in told) is (name == "torch")


def fixes_of(snapshot: Snapshot) -> str:
    (check,) = [check for check in judge(snapshot) if check.status == "fail"]
    return " ".join(word for fix in check.fixes for word in (fix.text, *fix.command))


@every_tabled
def test_no_build_is_named_where_neither_gpu_nor_driver_is_known(line: str, told: str) -> None:
    fixes = fixes_of(lines(line))
    assert told in fixes
    assert "torch==" not in fixes


def test_a_known_driver_tells_which_cuda_the_program_may_be_built_for() -> None:
    told = lines("what():  CUDA driver version is insufficient for CUDA runtime version")
    assert "for CUDA 11.4 or older, which the driver runs" in fixes_of(but(told, driver=driver("470.57.02")))


def test_lines_of_one_problem_make_one_finding() -> None:
    found = check_of("gpu-lost", lines(*by_problem()["gpu-lost"], met()["gpu-lost"]))
    assert len(found.evidence) == len(by_problem()["gpu-lost"])


def test_a_line_confirms_what_was_inferred_on_its_own_subject() -> None:
    old = with_venv(machine(), venv(torch("2.0.1+cu117", "11.7", gpu_code=("sm_80",))))
    inferred = check_of("gpu-code-missing", old)
    said = check_of("gpu-code-missing", but(old, observed_errors=error(met()["gpu-code-missing"]).observed_errors))
    assert (inferred.decided_by, said.decided_by) == ("declared", "framework-ran")
    assert (said.id, said.fixes, said.evidence[0].what) == (inferred.id, inferred.fixes, "error line")


def test_a_line_outranks_an_inferred_pass() -> None:
    snapshot = but(machine(), observed_errors=error(met()["gpu-code-missing"]).observed_errors)
    (found,) = checks_of("gpu-code-missing", snapshot)
    assert (found.id, found.status) == ("gpu-code-missing@machine", "fail")


def test_a_line_outside_the_scope_is_not_heeded() -> None:
    assert not [each for each in judge(error(met()["driver-too-old"]), frozenset({"node"})) if each.status == "fail"]


INSIDE_WSL = Platform(source="pasted text", os="linux", wsl=True)


@cases("problem", "no-gpu-visible", "driver-not-loaded")
def test_inside_wsl_a_line_that_has_other_causes_proves_nothing(problem: str) -> None:
    line = error(met()[problem], line=3)
    found = check_of(problem, but(line, platform=INSIDE_WSL))
    assert (found.status, found.id) == ("note", f"{problem}@machine")
    assert "inside WSL" in found.title
    assert found.sources
    assert found.evidence[0].source == "pasted text, line 3"
    assert cause(but(line, platform=INSIDE_WSL)) in (None, "wsl-libcuda-shadowed")
    assert cause(but(line, platform=but(INSIDE_WSL, wsl=None))) == problem


def test_inside_wsl_an_exact_line_proves_its_problem() -> None:
    both = lines(met()["no-gpu-visible"], met()["driver-library-mismatch"])
    assert cause(but(both, platform=INSIDE_WSL)) == "driver-library-mismatch"
    assert check_of("no-gpu-visible", but(both, platform=INSIDE_WSL)).status == "note"


def test_a_line_in_the_kernel_log_is_no_error_line() -> None:
    """The log may be older than the present state: the rules that read it look at both."""
    assert "driver-library-mismatch@machine" not in [
        each.id for each in judge(machine(kernel=kernel())) if each.status == "fail"
    ]


def test_no_finding_without_a_gpu_is_made_of_a_note() -> None:
    snapshot = but(without_gpu(), observed_errors=error(met()["driver-older-than-toolkit"]).observed_errors)
    assert cause(snapshot) == "no-nvidia-gpu"


def test_every_rule_whose_line_was_met_offers_a_way_out() -> None:
    without = {name for name, line in met().items() if not check_of(name, error(line)).fixes}
    assert {rule.name for rule in all_rules()} & without == WITHOUT_FIX


def test_a_line_about_a_framework_that_is_known_gets_the_build_that_fits() -> None:
    pasted = but(
        machine(driver=driver("570.86.10", cuda=None)), observed_errors=error(met()["cpu-only-build"]).observed_errors
    )
    found = check_of("cpu-only-build", with_venv(pasted, venv(Framework(name="torch", version="2.5.1"))))
    assert any("--index-url" in fix.command for fix in found.fixes)
