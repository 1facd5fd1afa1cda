"""Text that means harm, or means nothing: always a Snapshot or a UsageError, soon, and fit to be shown."""

import random
import time

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.errors import UsageError
from envcheck.importers import importers, list_names, read_text
from envcheck.importers.formats.error_lines import MOST_LINES
from envcheck.importers.paste import LINE_COUNT_LIMIT, LINE_LIMIT, TEXT_LIMIT, Paste
from envcheck.model.snapshot import Snapshot
from tests.every import cases, every
from tests.importers.pasting import errors_in, recorded, release_in, word
from tests.thorough import examples

SOON = 120.0
"""Seconds within which the longest text is read, with room for a slow machine."""
PROCESSOR_TIME = 6.0
"""Seconds of the processor's for one text; neighbours on the same core make each second longer."""

ENDS = "only the first and the last 4 MiB were read"


def read_or_refuse(text: str) -> Snapshot | None:
    try:
        return read_text(text)
    except UsageError as reason:
        told = str(reason)
    assert "\n" not in told, "a reason is one sentence"
    return None


def left_out(snapshot: Snapshot) -> list[str]:
    return [run.detail for run in snapshot.runs if run.name == "pasted text"]


# --- what is recognised -------------------------------------------------------------------------------------------
def test_the_importers_are_found_by_listing_the_most_trusted_first() -> None:
    assert {"torch collect_env", "nvidia-smi -q -x", "error lines"} <= set(list_names())
    assert [importer.rank for importer in importers()] == sorted(importer.rank for importer in importers())
    assert len(set(list_names())) == len(importers())


@cases("text", "", "  \n\n\t", "\ufeff")
def test_an_empty_text_is_refused_with_what_to_paste(text: str) -> None:
    with pytest.raises(UsageError, match=r"^the text is empty: paste what `python -m torch.utils.collect_env`"):
        read_text(text)


def test_a_text_of_nothing_known_is_refused_with_what_to_paste() -> None:
    with pytest.raises(UsageError, match=r"^nothing in the text was recognised: paste what"):
        read_text("hello\nthis is a poem\n")


def test_every_record_says_that_it_was_pasted() -> None:
    text = recorded("h200_collect_env.txt") + recorded("h200_smi.xml") + recorded("h200_smi.txt")
    sources: set[str] = set()

    def visit(value: object) -> None:
        if isinstance(value, dict):
            if "source" in value:
                sources.add(value["source"])
            for inner in value.values():
                visit(inner)
        elif isinstance(value, list):
            for inner in value:
                visit(inner)

    visit(msgspec.to_builtins(read_text(text)))
    assert sources == {"pasted text"}


# --- hostile ------------------------------------------------------------------------------------------------------
def test_a_hundred_megabytes_are_read_in_part_and_it_is_said() -> None:
    text = "RuntimeError: CUDA error: boom\n" + "x" * (100 * 1024 * 1024)
    started = time.monotonic()
    snapshot = read_text(text)
    assert time.monotonic() - started < SOON
    assert errors_in(snapshot) == ["RuntimeError: CUDA error: boom"]
    assert left_out(snapshot) == [f"{ENDS} and only the first {LINE_LIMIT} characters of line 2 were read"]


def test_of_a_text_beyond_the_limit_the_ends_are_read() -> None:
    filling = ("x" * 99 + "\n") * (TEXT_LIMIT // 200)
    text = f"Nvidia driver 535.104.12\n{filling}RuntimeError: in between\n{filling}RuntimeError: boom\n"
    snapshot = read_text(text)
    assert release_in(text) == "535.104.12"
    assert [(error.text, error.line) for error in snapshot.observed_errors] == [
        ("RuntimeError: boom", text.count("\n", 0, text.index("RuntimeError: boom")) + 1)
    ]
    assert snapshot.runs[-1].detail == ENDS


def test_of_many_long_lines_the_ends_are_read_and_it_is_said() -> None:
    others = "".join(f"ERROR {word(n)} {'cuda gpu ' * 200}{word(n)}\n" for n in range(2_000))
    snapshot = read_text(f"Nvidia driver 535.104.12\n{others}RuntimeError: boom\n")
    assert snapshot.driver is not None
    assert errors_in(snapshot)[-1] == "RuntimeError: boom"
    assert any(detail.endswith("lines in the middle were not read") for detail in left_out(snapshot))


def test_a_single_line_beyond_the_limit_is_cut() -> None:
    assert release_in("Nvidia driver 535.104.12\n" + "x" * 2 * TEXT_LIMIT) == "535.104.12"


def test_lines_between_the_ends_are_not_read_and_it_is_said() -> None:
    many = "\n" * LINE_COUNT_LIMIT
    snapshot = read_text(f"Nvidia driver 535.104.12\n{many}RuntimeError: in between\n{many}RuntimeError: boom\n")
    assert [(error.text, error.line) for error in snapshot.observed_errors] == [
        ("RuntimeError: boom", 2 * LINE_COUNT_LIMIT + 3)
    ]
    assert snapshot.runs[-1].detail == f"only the first and the last {LINE_COUNT_LIMIT // 2} lines were read"


def test_the_error_at_the_end_of_a_long_log_is_found() -> None:
    warnings = "".join(f"12:{n % 60:02} [WARN] step {n}: loss {n / 7} is not finite\n" for n in range(2_000))
    others = "".join(f"error: plug-in {name} is gone\n" for name in map(word, range(300)))
    last = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    snapshot = read_text(f"{warnings}NVRM: Xid (PCI:0000:3b:00): 79\n{others}{last}\n")
    found = errors_in(snapshot)
    assert (found[-1], len(found)) == (last, MOST_LINES)
    assert len([line for line in found if "loss" in line]) <= 4
    (run,) = [run for run in snapshot.runs if run.name == "error lines"]
    assert run.detail == f"{MOST_LINES} of 2302 lines that speak of a failure were kept"
    assert left_out(snapshot) == ["only the first and the last 100 of 306 lines that speak of a failure were read"]


def test_lines_that_differ_in_numbers_alone_are_no_loss() -> None:
    warnings = "".join(f"[WARN] step {n}: loss is not finite\n" for n in range(2_000))
    snapshot = read_text(f"{warnings}RuntimeError: boom\n")
    assert left_out(snapshot) == []
    assert [run.detail for run in snapshot.runs] == ["5 of 2001 lines that speak of a failure were kept"]


def test_terminal_codes_and_invisible_characters_are_gone() -> None:
    text = "\x1b[31mNvidia driver\x1b[0m 535.104.12\u202e\n\x1b]0;evil\x07RuntimeError: \x1b[2J\x9b31mboom\u200b\x00\n"
    assert release_in(text) == "535.104.12"
    assert errors_in(read_text(text)) == ["RuntimeError: boom"]


def test_lone_surrogates_do_not_reach_the_report() -> None:
    snapshot = read_text("RuntimeError: \ud800boom\n")
    assert msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot) == snapshot


@every(
    "with CUDA capability sm_90 " * 140, "GPU models and configuration: GPU 0: " * 100,
    "Is CUDA available: " + "cudnn" * 790, "\u0661.\u0662 " * 1_000, "(pid=1, " * 500, "**a" * 1_300,
    "nvidia driver " * 280, "Requirement already satisfied: a (" * 110, "[conda] a 1.0 " * 280,
    "| 0 X On | 00:00.0 | " * 190, "|" + " " * 3_900 + "x", "-- |" * 950 + "x", "# " + "torch version " * 280,
    "a, " * 1_300, "{" * 3_900, "PyTorch (" * 440, "╭" + "─ " * 1_900, "│" + " " * 3_900 + "x",
    '{"log":"' + '","stream":"stderr"' * 200, "\\n" * 1_900, '"\\\\' * 1_300, "'\"\\n" * 900,
    "2025-01-01 00:00:00" + " - a" * 900, "&lt;&amp;" * 400,
)  # fmt: skip
def test_a_long_text_of_the_worst_lines_is_read_soon(line: str) -> None:
    text = f"{line}\n" * (TEXT_LIMIT // 64 // (len(line) + 1))
    read_or_refuse(line)  # compiles the patterns
    started = time.process_time()
    read_or_refuse(text)
    assert time.process_time() - started < PROCESSOR_TIME / 6


@cases("line",
    "GPU{n} with CUDA capability sm_90 is not compatible", "GPU {n}: x{n}", "package{n}==1.{n}",
    "|  {n}  X On | 00000000:00:01.0 Off | 0 |", "error {n}", "CUDA_{n}=1", "\x1b[{n}mcuda error {n}\x1b]0;{n}",
)  # fmt: skip
def test_many_different_things_are_read_soon(line: str) -> None:
    text = "".join(line.replace("{n}", str(number)) + "\n" for number in range(10_000))
    started = time.monotonic()
    read_or_refuse(text)
    assert time.monotonic() - started < SOON / 6


@every(
    "\x1b]0;", "\x1b[", "\x1b[31m", "\x9b1m", "[", '{"a":', "> ", "**", "\n", "pid=(", "libcuda.so.1 ", "\\n",
    '"\\\\', "&lt;", "│ ", "`",
)  # fmt: skip
def test_one_line_of_a_megabyte_is_read_soon(piece: str) -> None:
    text = piece * (1024 * 1024 // len(piece))
    started = time.process_time()
    read_or_refuse(text)
    assert time.process_time() - started < PROCESSOR_TIME / 6


def test_thirty_thousand_different_failures_are_read_soon() -> None:
    number = random.Random(1).random
    text = "".join(f"ERROR torch {number()} failed with {number():a>20} in {number()}\n" for _ in range(30_000))
    started = time.process_time()
    read_or_refuse(text)
    assert time.process_time() - started < PROCESSOR_TIME


PIECES = [
    *recorded("h200_collect_env.txt").splitlines(), *recorded("h200_smi.txt").splitlines(),
    *recorded("h200_smi.xml").splitlines()[:140], "GPU 0: NVIDIA A100 (UUID: GPU-0e153505-8466-b46e-c83c-8251dbfbcacd)",
    "  MIG 3g.40gb     Device  0:",
    "X with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
    "The current PyTorch install supports CUDA capabilities sm_50 sm_90a compute_120.",
    "driver on your system is too old (found version 99999)",
    "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.",
    "[conda] pytorch 1.11.0 py3.8_cuda11.3_cudnn8.2.0_0 pytorch", "Name: torch", "Version: 9.9", "</gpu>",
    "</nvidia_smi_log>",
]  # fmt: skip


@settings(max_examples=examples(300), deadline=5_000, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(max_size=2_000), st.binary(max_size=2_000).map(lambda data: data.decode("utf-8", "replace"))))
def test_any_text_gives_a_snapshot_or_a_usage_error(text: str) -> None:
    read_or_refuse(text)


@settings(max_examples=examples(300), deadline=5_000, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=60)), max_size=60))
def test_any_mixture_of_real_lines_gives_what_json_can_carry(lines: list[str]) -> None:
    snapshot = read_or_refuse("\n".join(lines))
    if snapshot is not None:
        assert msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot) == snapshot


@settings(max_examples=examples(200), deadline=5_000, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_damaged_report_gives_a_snapshot_or_a_usage_error(data: st.DataObject) -> None:
    text = recorded(data.draw(st.sampled_from(["h200_collect_env.txt", "h200_smi.txt", "h200_smi.xml"])))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    read_or_refuse(text[:start] + data.draw(st.text(max_size=20)) + text[end:])


def test_cleaning_twice_changes_nothing_of_a_real_report() -> None:
    once = Paste.of(recorded("h200_collect_env.txt"))
    assert Paste.of(once.text) == once
