"""What follows from a text: a cause, from facts, fragments and statements together, or nothing."""

# ruff: noqa: E501  lines as programs print them, in other scripts too

import re
from pathlib import Path

import pytest

from benchmarks.accuracy import judge
from envcheck.model.checks import Check, Fix
from envcheck.rules.engine.cause import primary
from tests.documents import subjects
from tests.every import cases


def cause_in(*lines: str) -> str | None:
    _, checks = judge("\n".join(lines))
    found = primary(checks)
    return found.rule if found else None


def alarms(checks: tuple[Check, ...]) -> list[str]:
    return [f"{check.rule}: {check.status}" for check in checks if check.status in ("warn", "fail")]


SUBJECTS = subjects((Path(__file__).with_name("data") / "causes.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_cause_in_a_text(subject: str) -> None:
    wrong = []
    for said, text in SUBJECTS[subject]:
        _, checks = judge(text)
        wrong += [f"{check.id} shows the same twice:\n{text}" for check in checks if repeats(check)]
        for line in said:
            expected, found = line.partition(" (")[0], follows(checks, line.partition(" (")[0])
            if found != expected:
                wrong.append(f"{line}, but found {found}:\n{text}")
    assert not wrong, "\n\n".join(wrong)


def repeats(check: Check) -> bool:
    return len({*check.evidence}) < len(check.evidence)


def says(check: Check, words: str) -> bool:
    """Whether a check has the words in quotes, in its texts and commands, and not those behind ``no``."""
    told = "\n".join((check.title, check.message, *(" ".join((fix.text, *fix.command)) for fix in check.fixes)))
    return all((word in told) is not bool(no) for no, word in re.findall(r' (no )?"([^"]+)"', words))


def follows(checks: tuple[Check, ...], expected: str) -> str:
    """What is expected of the checks, or what they say instead."""
    kind, _, rest = expected.partition(" ")
    if kind == "finds":
        head, _, words = rest.partition(' "')
        told = [check for check in checks if f"{check.rule} {check.status}" == head.removesuffix(" no")]
        absent = head.startswith("no ") and not any(check.rule == head[3:] for check in checks)
        return expected if absent or any(says(check, f'{head} "{words}') for check in told) else str(checks)
    if kind in ("quiet", "alarms"):
        return f"alarms {', '.join(alarmed)}" if (alarmed := alarms(checks)) else "quiet"
    found = primary(checks)
    cause = found.rule if found else "none"
    return expected if kind == "not" and cause != rest else cause


SMI = "| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |"


LOADED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023"


@cases(
    "listed",
    "ii  libnvidia-compute-535:amd64  535.154.05-0ubuntu0.22.04.1  amd64  NVIDIA libcompute package",
    "Upgrade: nvidia-utils-535:amd64 (535.129.03-0ubuntu1, 535.154.05-0ubuntu1)",
    "now `nvidia-driver-535:amd64 535.154.05-0ubuntu0.22.04.1` is installed",
    "nvidia-driver-libs-535.154.05-1.el9.x86_64",
    "local/nvidia-utils 535.154.05-1",
    "ii  nvidia-smi     535.154.05-1  amd64        NVIDIA System Management Interface",
)
def test_packages_of_another_release_than_the_loaded_module_differ_from_it(listed: str) -> None:
    assert cause_in(LOADED, listed) == "driver-library-mismatch"
    assert cause_in(LOADED, listed.replace("535.154.05", "535.129.03")) is None
    assert cause_in(SMI.replace("550.90.07", "535.129.03"), LOADED, listed) is None


def test_a_program_that_fills_the_memory_has_its_libraries() -> None:
    stated = ("tensorflow-gpu 2.0.0", "cuda 10.1 / cuDNN 7.6.5", "tf.config.list_physical_devices('GPU') returns []")
    assert cause_in(*stated) == "cuda-major-mismatch"
    full = "I tensorflow/stream_executor/cuda/cuda_driver.cc:830] failed to allocate 1.40G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    assert "cuda-major-mismatch" not in " ".join(alarms(judge("\n".join((*stated[:2], full)))[1]))


def fixes_in(rule: str, *lines: str) -> list[Fix]:
    _, checks = judge("\n".join(lines))
    return [fix for check in checks if check.rule == rule for fix in check.fixes]


def test_no_index_is_named_for_a_build_that_is_not_from_it() -> None:
    jetson = ("torch==1.12.0a0+2c916ef.nv22.3", "torchaudio==0.12.0", "OSError: unable to load torchaudio")
    assert [fix.command for fix in fixes_in("torch-family-mismatch", *jetson)] == [()]
    (fix,) = fixes_in("cpu-only-build", "Jetson Orin: torch 2.3.1 from pip, torch.cuda.is_available() returns False")
    assert "JetPack" in fix.text
    assert not fix.command
