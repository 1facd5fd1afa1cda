"""Package lists, Python sessions, installers, ``lspci``, DKMS, container images and nvcc's output."""

import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.accuracy import SCOPES
from envcheck.enrich.complete import complete
from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.importers.paste import WHOLE, telling_places
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import Snapshot
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.evaluate import evaluate
from tests.every import every, every_tabled, tabled
from tests.importers.pasting import errors_in, gpus_in, word
from tests.thorough import examples


def test_an_empty_list_of_architectures_is_not_known_code() -> None:
    """``get_arch_list`` is empty where no GPU can be used."""
    try:
        found = read_text(">>> torch.cuda.get_arch_list()\n[]\n")
    except UsageError:
        return
    assert found.environments is None


def test_of_a_long_text_what_tells_something_is_read() -> None:
    filling = "".join(f"{word(n)} went by\n" for n in range(30_000))
    text = f"torch 2.5.1+cu124\n{filling}GPU 0: NVIDIA L4\nRuntimeError: CUDA error: boom\n{filling}the end\n"
    snapshot = read_text(text)
    assert [gpu.name for gpu in gpus_in(text)] == ["NVIDIA L4"]
    assert errors_in(snapshot) == ["RuntimeError: CUDA error: boom"]
    assert snapshot.observed_errors[0].line == 30_003
    assert not [run for run in snapshot.runs if run.name == "pasted text"]


def test_telling_lines_that_are_left_out_are_counted() -> None:
    lines = [f"error of {word(n)}" for n in range(WHOLE + 3_000)]
    places, omitted = telling_places(lines)
    assert len(places) + omitted == len(lines)
    assert omitted > 0
    told = [run.detail for run in read_text("\n".join(lines)).runs if run.name == "pasted text"]
    assert any("lines in the middle were not read" in detail for detail in told)


@every("{0} torch error {0} gpu", "torch 2.1.{1} with RTX {1} {0}", "INFO step {1}: gpu {1}", "{0}=={1}.0", "{0}")
def test_twenty_thousand_lines_are_read_soon(form: str) -> None:
    text = "\n".join(form.format(word(n), n) for n in range(20_000))
    started = time.process_time()
    try:
        found = read_text(text)
    except UsageError:
        found = Snapshot()
    assert isinstance(found, Snapshot)
    assert time.process_time() - started < SOON


SOON = 2.0
"""Seconds of processor time, five times what it takes on two cores."""
# --- any text -----------------------------------------------------------------------------------------------------
PIECES = (
    "torch", "2.5.1+cu124", "==", " ", ":", "|", "\n", "\t", "- ", ">>> ", "In [1]: ", "torch.__version__",
    "RTX 5090", "A10", "driver", "550.54.15", "CUDA", "12.4", "cuDNN 8",
    "nvidia-smi --query-gpu=name,driver_version", "name, driver_version", "NVIDIA L4, 550.1",
    "Successfully installed", "torch-2.5.1", ".whl", "sm_90", "FROM ", "pytorch/pytorch:2.5.1-cuda12.4",
    "Xid 79", "Kernel driver in use: ", "01:00.0 VGA compatible controller: NVIDIA Corporation",
    "nvidia/550.1, 6.8.0, x86_64: ", "installed", "print(", "torch.cuda.is_available()", ")", "True", "[", "]",
    "{", '"', "'", "(", ",", "from ", "requires ", "?", "RuntimeError: ",
    "During handling of the above exception", "9" * 30, ".", "%2B", "compute capability 8.6", "\u0000",
    "\ud83d\ude80",
)  # fmt: skip


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_text_raises_anything_but_a_refusal(text: str) -> None:
    try:
        found = read_text(text)
    except UsageError:
        return
    evaluate(Facts(complete(found, load_matrix()), load_matrix()), all_rules(), SCOPES)


@every_tabled
def test_prompts_and_kernels_tell_the_system(line: str, system: str | None, wsl: bool | None) -> None:  # noqa: FBT001
    platform = read_text(f"{line}\ntorch 2.5.1").platform
    assert (platform.os if platform else None, platform.wsl if platform else None) == (system, wsl)


# --- Package lists. Every text here was constructed -----------------------------------------------------------------
@tabled
def test_what_is_no_package(text: str) -> None:
    try:
        environments = read_text(f"{text}\n").environments
    except UsageError:
        return
    assert environments is None or all(env.distributions is None for env in environments.items)
