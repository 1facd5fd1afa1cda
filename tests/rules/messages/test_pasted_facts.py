"""What rules make of a text: events by number, stated libraries, chained errors, and a text that tells little."""

from benchmarks.accuracy import judge as judge_text
from envcheck.errors import ExitCode
from envcheck.importers import read_text
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Check
from envcheck.model.snapshot import frameworks_in
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.rules.catalog import find_rule
from envcheck.rules.engine.cause import primary
from tests.every import cases, every
from tests.known import known
from tests.rules.machines import cause, check_of, kernel, log, machine, statuses, xid


def cause_in(text: str) -> str | None:
    found = primary(judge_text(text)[1])
    return found.rule if found else None


def told(rule: str, text: str) -> Check | None:
    return next((check for check in judge_text(text)[1] if check.rule == rule), None)


# --- events by number ---------------------------------------------------------------------------------------------
def test_the_catalogue_is_whole_and_names_rules_that_exist() -> None:
    rows = load_matrix().xids
    assert [row.number for row in rows] == sorted({row.number for row in rows})
    assert len(rows) == 172
    assert {row.problem for row in rows if find_rule(row.problem) is None} == set()


@every(
    (48, "uncorrected-ecc"), (63, "row-remap-pending"), (64, "row-remap-failed"), (74, "nvlink-down"),
    (79, "gpu-lost"), (94, "uncorrected-ecc"), (119, "gpu-firmware-timeout"), (149, "nvlink-down"),
    (31, "gpu-error-logged"), (62, "gpu-error-logged"),
)  # fmt: skip
def test_the_rule_of_an_event_in_a_text(number: int, rule: str) -> None:
    text = f"NVRM: Xid (PCI:0000:3b:00): {number}, pid=1234, name=python\n"
    assert cause_in(text) == rule
    assert all(len({*check.evidence}) == len(check.evidence) for check in judge_text(text)[1])  # it is shown once


@cases("number, status", (31, "warn"), (62, "fail"), (45, "note"), (106, "note"))
def test_an_event_weighs_what_nvidia_asks_to_do(number: int, status: str) -> None:
    snapshot = machine(kernel=kernel(log=log(xid(number, "an event"))))
    assert statuses("gpu-error-logged", snapshot) == (status,)
    assert str(number) in check_of("gpu-error-logged", snapshot).message


def test_no_event_is_no_finding() -> None:
    assert statuses("gpu-error-logged", machine()) == ()


# --- a libcuda from a folder named compat -------------------------------------------------------------------------
REFUSED = "CUDA failure 803: system has unsupported display driver / cuda driver combination\n"


@every(
    (REFUSED + "export LD_LIBRARY_PATH=/usr/local/cuda-12.6/compat:/usr/local/lib\n", "named compat"),
    (REFUSED + "$ echo $LD_LIBRARY_PATH\n/usr/local/cuda/compat/lib.real:/usr/lib64\n", "named compat"),
    (REFUSED + "In the image LD_LIBRARY_PATH is set to /usr/local/cuda/compat/lib\n", "named compat"),
    (REFUSED + "\tlibcuda.so.1 (libc6,x86-64) => /usr/local/cuda/compat/libcuda.so.1\n", "named compat"),
    (REFUSED + "export LD_LIBRARY_PATH=/usr/local/cuda/lib64:/opt/compatible\n", "Restart"),
    ("Failed to initialize NVML: Driver/library version mismatch\nLD_LIBRARY_PATH=/usr/local/cuda/compat\n", "Restart"),
)
def test_a_compat_library_that_cuda_refuses_is_taken_off_the_path(text: str, step: str) -> None:
    check = known(told("driver-library-mismatch", text))
    assert [step in fix.text for fix in check.fixes] == [True]


# --- verdicts of other tools --------------------------------------------------------------------------------------
H100 = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0d9a31c2-0000-0000-0000-000000000002)\nDriver Version: 550.90.07\n"


@every(
    "|                           | Fail - GPU: 0                                  |",
    "| memtest                   | Fail                                           |",
    '"status" : "Fail",',
    "|                           | GPU3: Fail                                     |",
    "PaddlePaddle is installed successfully ONLY for single GPU! Let's start deep learning with PaddlePaddle now.",
)
def test_a_failure_that_a_tool_gives_no_reason_for_leaves_no_verdict(line: str) -> None:
    report = session.judge(read_text(H100 + line), Request())
    assert (report.verdict, cause_in(H100 + line)) == ("unknown", None)
    (check,) = [each for each in report.checks if each.rule == "text-tells-too-little"]
    assert check.evidence[0].value == line.strip()


@every(
    "My training freezes now and then, and goes on.",
    "With two GPUs an epoch takes longer than with one.",
    "The program never returns after the checkpoint is loaded.",
    "GPU utilization drops to 0% between batches.",
    "Inference is 3x slower than on the old machine.",
    "it hangs at the first backward pass",
)
def test_a_slow_or_hanging_program_is_not_told_to_be_sound(line: str) -> None:
    report = session.judge(read_text(f"{H100}torch 2.4.0+cu121\n{line}\n"), Request())
    (check,) = [each for each in report.checks if each.rule == "text-tells-too-little"]
    assert (report.verdict, check.evidence[0].value) == ("unknown", line)
    assert ("does not show why" in check.message, bool(check.fixes[0].command)) == (True, True)


@every(
    "| Targeted Power            | Pass - All                                     |",
    "Using a slow image processor as `use_fast` is unset",
    "Gpu Utilization : 0 %",
    "HW Slowdown : Not Active",
    "\tGPU 0: OK",
    "# Out of bounds values : 0 OK",
    "100.0%  proc'd: 2670 (4410 Gflop/s)   errors: 0   temps: 55 C",
    "PaddlePaddle is installed successfully! Let's start deep learning with PaddlePaddle now.",
    "| NVIDIA-SMI 450.57       Driver Version: 450.57       CUDA Version: ERR!     |",
)
def test_a_tool_that_finds_nothing_wrong_alarms_nobody(line: str) -> None:
    _, checks = judge_text(H100 + line)
    assert [check.id for check in checks if check.status in ("fail", "warn")] == []
    assert session.judge(read_text(H100 + line), Request()).verdict == "pass"


# --- what several processes, or a library, say of their releases ---------------------------------------------------
TRUNCATED = "n1:7:9 [0] bootstrap.cc:91 NCCL WARN Message truncated : received 96 bytes instead of 48\n"


def of_nccl(*releases: str) -> str:
    return "".join(f"n{place}:7:7 [0] NCCL INFO NCCL version {each}+cuda12.4\n" for place, each in enumerate(releases))


def test_processes_with_different_releases_of_nccl_do_not_understand_one_another() -> None:
    check = known(told("nccl-version-mismatch", of_nccl("2.21.5", "2.26.2") + TRUNCATED))
    assert check.status == "fail"
    assert check.title.endswith("2.21.5 and 2.26.2")
    assert cause_in(of_nccl("2.21.5", "2.21.5") + TRUNCATED) == "nodes-not-connected"


@every(
    ">>> torch.backends.cudnn.version()\n91002\n",
    "torch.backends.cudnn.version(): 91002\n",
    "cudnn.version() = 91002\n",
)
def test_the_cudnn_that_pytorch_answers_is_no_longer_inferred(line: str) -> None:
    snapshot, _ = judge_text(f"torch 2.11.0+cu128\n{line}")
    assert snapshot is not None
    assert [each.cudnn for each in frameworks_in(snapshot.judged_environment)] == ["9.10.2"]


def test_inside_wsl_windows_is_restarted_and_not_the_machine() -> None:
    blocked = "Failed to initialize NVML: GPU access blocked by the operating system\n"
    check = known(told("gpu-init-failed", f"$ uname -r\n6.6.87.2-microsoft-standard-WSL2\n{blocked}"))
    assert ["wsl --update" in fix.text for fix in check.fixes] == [True]


@cases("text, rule, command",
    ("OSError: libcusparse.so.11: cannot open shared object file: No such file or directory\ntorch 2.1.2+cu118\n",
     "cuda-library-missing", "cuda-toolkit[cusparse]==11.8.*"),
    ("ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory\n",
     "cuda-library-missing", "cuda-toolkit[nvrtc]==12.*"),
    ("vllm==0.5.0\ntorch==2.1.2\nImportError: /v/site-packages/vllm/_C.abi3.so: undefined symbol: _ZN5torch7Library\n",
     "extension-built-for-other-torch", "torch==2.3.0"),
    ("torch 2.5.1\ntriton 3.4.0\nImportError: cannot import name 'triton_key' from 'triton.compiler.compiler'\n",
     "torch-family-mismatch", "triton==3.1.0"),
)  # fmt: skip
def test_what_the_text_lacks_is_named_with_its_version(text: str, rule: str, command: str) -> None:
    assert command in known(told(rule, text)).fixes[0].command


def test_a_library_of_two_cudas_is_not_guessed() -> None:
    line = "ImportError: libcusparse.so.12: cannot open shared object file: No such file or directory\n"
    assert not any("pip" in fix.command for fix in known(told("cuda-library-missing", line)).fixes)


def test_a_release_with_builds_for_two_cudas_has_neither() -> None:
    snapshot, _ = judge_text("jax==0.4.25\njaxlib==0.4.25\n")
    assert snapshot is not None
    assert [each.cuda for each in frameworks_in(snapshot.judged_environment)] == [None, None]


# --- a text that tells little -------------------------------------------------------------------------------------
def test_words_of_the_field_alone_end_without_a_verdict_and_with_what_to_paste() -> None:
    report = session.judge(read_text("my cuda does not want what I want\n"), Request())
    assert (report.verdict, report.exit_code) == ("unknown", ExitCode.UNKNOWN)
    (check,) = [each for each in report.checks if each.rule == "text-tells-too-little"]
    assert "nvidia-smi" in check.message


def test_an_unknown_error_ends_with_what_was_understood() -> None:
    text = "torch 2.5.1+cu124, RTX 4090, driver 550.54.15\nRuntimeError: CUDA error: the flux is missing\n"
    report = session.judge(read_text(text), Request())
    assert report.verdict == "unknown"
    (check,) = [each for each in report.checks if each.rule == "text-tells-too-little"]
    assert "Understood: GPU RTX 4090, driver 550.54.15, torch 2.5.1+cu124" in check.message
    assert check.evidence[0].value == "RuntimeError: CUDA error: the flux is missing"


IT = "torch 2.5.1+cu124, RTX 4090, driver 560.94\n"


@cases(
    "text",
    "I get 10-11 it/s with SDXL, it should be 28 it/s.", "It only reaches 3.5 tokens/s.", "A100推理为啥很慢呢",
    "54 tok/s with one card, instead of 20 t/s with two", "the volatile GPU-Util is always 0",
    "The GPU-Util always jumps from 89% to 0%", "Inference is taking too much time.", "GPU usage never exceeds 70%",
    "We get 8 GB/s from host to device where the old server had 24 GB/s", "a performance decline since the update",
)  # fmt: skip
def test_slow_in_other_words_is_no_pass(text: str) -> None:
    assert "slow or hangs" in known(told("text-tells-too-little", f"{IT}{text}\n")).message


@cases("build, found", ("cu121", "wsl-libcuda-shadowed"), ("cu130", "driver-too-old"))
def test_inside_wsl_a_driver_that_is_said_to_be_too_old_and_is_not(build: str, found: str) -> None:
    """The error contradicts a driver that supports the framework's CUDA: another libcuda answered."""
    text = (
        "Linux 5.15.153.1-microsoft-standard-WSL2\n"
        "| NVIDIA-SMI 560.35.02              Driver Version: 560.94         CUDA Version: 12.6     |\n"
        f"PyTorch version: 2.9.1+{build}\n"
        "RuntimeError: CUDA driver version is insufficient for CUDA runtime version"
    )
    assert cause(read_text(text)) == found
