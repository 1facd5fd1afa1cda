"""Which of the lines that a child prints name a problem. The lines are those of real programs."""

from __future__ import annotations

import pytest

from envcheck.collect.deaths import LONGEST_LINE, MOST_TELLING, Noise


def telling(*lines: str) -> tuple[str, ...]:
    noise = Noise()
    for line in lines:
        noise.feed(line.encode() + b"\n")
    return noise.take_telling()


@pytest.mark.parametrize(
    "line",
    [
        "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).",
        "An NVIDIA GPU may be present, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.",
        "Fatal Python error: Segmentation fault",
        "F1122 23:37:53.532257 10756 parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --xla_bogus=true",
        "F0000 00:00:1732318673.532257 10756 gpu_device.cc:12] Check broken: a == b",
        "terminate called after throwing an instance of 'std::length_e'",
        "E0000 00:00:17 cuda_dnn.cc:522] CuDNN library needs to have matching major version: incompatible",
    ],
)
def test_lines_that_name_a_problem(line: str) -> None:
    assert telling(line) == (line,)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Traceback (most recent call last):",
        "Warning:",
        "  warnings.warn(",
        "    raise AttributeError(f'module {name!r} has no attribute {attribute!r}')",
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
        "I0000 00:00:17 port.cc:153] oneDNN custom operations are on.",
        "[INFO] loading model",
    ],
)
def test_lines_that_do_not(line: str) -> None:
    assert telling(line) == ()


def test_each_line_once_in_order_and_few_of_them() -> None:
    assert telling("error b", "error a", "error b") == ("error b", "error a")
    assert len(telling(*(f"error {number}" for number in range(100)))) == MOST_TELLING


def test_what_ends_the_process_is_kept_after_many_others() -> None:
    fatal = "F1122 23:37:53.532257 10756 parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --xla_bogus=true"
    assert fatal in telling(*(f"error {number}" for number in range(100)), fatal)
    assert len(telling(*(f"F1122 23:37:53.5 {number}" for number in range(1000)))) < 2 * MOST_TELLING


def test_lines_are_harmless_and_of_bounded_length() -> None:
    (line,) = telling("error \x1b[2J" + "x" * 100_000)
    assert "\x1b" not in line
    assert len(line) <= LONGEST_LINE


def test_colours_are_left_out() -> None:
    assert telling("\x1b[1;31m2026 [E:onnxruntime] Failed to load\x1b[m") == ("2026 [E:onnxruntime] Failed to load",)


def test_a_line_in_pieces_and_one_without_an_end() -> None:
    noise = Noise()
    for piece in (b"could n", b"ot load\nnothing here\nfat", b"al"):
        noise.feed(piece)
    assert noise.take_telling() == ("could not load", "fatal")
    assert noise.take_telling() == ()


def test_an_endless_line_is_not_kept() -> None:
    noise = Noise()
    for _ in range(100):
        noise.feed(b"x" * 100_000)
    assert noise.take_telling() == ()
