"""Error lines about libraries, packages and platforms: what they name beside what else a text tells."""

import time

import pytest

from envcheck.enrich.complete import complete
from envcheck.importers import read_text
from envcheck.knowledge.error_lines import named_beside, named_by
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import ObservedError, Snapshot
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import evaluate
from tests.every import cases, every_tabled
from tests.rules.machines import ALL, check_of
from tests.rules.messages.examples import by_problem


def cause_in(text: str) -> str | None:
    """The root cause in a pasted text."""
    knowledge = load_matrix()
    found = primary(evaluate(Facts(complete(read_text(text), knowledge), knowledge), all_rules(), ALL))
    return found.rule if found else None


@cases("file, version",
    ("libcudart.so.11.0", None), ("libcudart-d0da41ae.so.11.0", None), ("libnvrtc-672ee683.so.11.2", None),
    ("libcupti.so.2022.3.0", None), ("libcudnn.so.8.9.7", "8.9.7"), ("libcublas-3b81d170.so.11.10.3.66", "11.10.3.66"),
)  # fmt: skip
def test_only_a_full_number_in_a_pasted_path_is_a_release(file: str, version: str | None) -> None:
    found = read_text(f"/opt/lib/{file}").libraries
    assert found is not None
    assert [library.on_disk for library in found.items] == [version]


# --- packages ---
PACKAGES = {
    "torch-family-mismatch", "extension-built-for-other-torch", "extension-binary-missing", "cupy-multiple-packages",
    "jax-plugin-mismatch", "numpy-abi-mismatch", "glibc-too-old", "libstdcxx-too-old", "gpu-feature-unsupported",
}  # fmt: skip


@every_tabled
def test_what_others_print_too_names_nothing(line: str) -> None:
    found = named_beside(line, (line,))
    assert found is None or found.problem not in PACKAGES


def test_a_long_line_does_not_hang() -> None:
    started = time.process_time()
    for text in (
        "requires torch==2.5 but you have " * 400,
        "bf16 requires " * 900,
        "undefined symbol: " * 900,
        "fp8 " * 900,
    ):
        named_by(text)
    # Patterns that back-track over it take minutes.
    assert time.process_time() - started < 20


@cases("text",
    "torch==2.5.1\ntorchvision==0.20.1\ntorchaudio==2.5.1\nnumpy==2.1.2\ntriton==3.1.0",
    "jax==0.9.2\njaxlib==0.9.2\njax-cuda12-plugin==0.9.2\njax-cuda12-pjrt==0.9.2\nnumpy==2.1.2",
    "onnxruntime-gpu==1.23.2\nnumpy==2.1.2", "cupy-cuda12x==13.3.0\nnumpy==2.1.2",
    "flash-attn==2.6.3\nGPU: A100\ntorch==2.4.0", "tensorflow==2.15.0\nnumpy==1.26.4",
)  # fmt: skip
def test_a_sound_list_has_no_cause(text: str) -> None:
    assert cause_in(text) is None


# --- platforms ---
def test_a_graver_line_of_a_problem_outranks_a_remark_about_it() -> None:
    remark, fault = by_problem()["shared-memory-too-small"][-1], by_problem()["shared-memory-too-small"][0]
    both = tuple(ObservedError(source="pasted text", text=text, line=1) for text in (remark, fault))
    assert check_of("shared-memory-too-small", Snapshot(observed_errors=both[:1])).status == "note"
    found = check_of("shared-memory-too-small", Snapshot(observed_errors=both))
    assert (found.status, len(found.evidence)) == ("fail", 2)


ALONE_ONLY_A_SETTING = "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-"


SOUND = {
    "a Jetson that works": "Jetson AGX Orin, JetPack 6.1 (L4T 36.4.0)\ntorch 2.5.0\ntorch.cuda.is_available() True",
    "the last TensorFlow for Windows": "tensorflow 2.10.0\nWindows 11\nGPU: RTX 3060\nNum GPUs Available: 1",
    "TensorFlow inside WSL": "tensorflow 2.16.1\nWindows 11 WSL2\nGPU: RTX 3060",
    "lspci of one machine": f"00:01.0 PCI bridge: Intel\n\t{ALONE_ONLY_A_SETTING}",
    "a container with enough": "shm              8.0G   0     8.0G     0% /dev/shm\ntorch 2.5.1+cu124",
    "libcuda of a Linux machine": "libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1",
}


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_the_cause_where_nothing_is_wrong(name: str) -> None:
    assert cause_in(SOUND[name]) is None
