"""What children print is noise: kept in part, harmless, and searched for the lines that name a problem."""

import resource
import time
from typing import Any

from envcheck.collect.child import LONGEST_LINE, MOST_TELLING, TAIL, Noise
from envcheck.model.events import Progress
from tests.every import cases


@cases("descriptor", 1, 2)
@cases("kind", "file", "driver")
def test_megabytes_are_read_and_only_their_tail_is_kept(probes: Any, kind: str, descriptor: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    probes.add_healthy("later")
    probes.add(
        "a_loud",
        f"""
        import os
        def collect(tree, out):
            for _ in range(64):
                data = b"x" * (1 << 20)
                while data:
                    data = data[os.write({descriptor}, data):]
            os.write({descriptor}, b"the end")
            out.fact({{"variables": {{"values": {{"loud": "sent"}}}}}})
        """,
        kind=kind,
    )
    run = probes.run()["a_loud"]
    assert (run.status, run.detail, run.noise) == ("ok", "", "x" * (TAIL - len("the end")) + "the end")
    assert probes.facts("a_loud") == {"loud": "sent"}
    probes.assert_healthy("later")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 24 * 1024, f"{grown} KiB more for 64 MiB of noise"


def test_noise_is_made_harmless(probes: Any) -> None:
    probes.add(
        "rude",
        r"""
        import os
        def collect(tree, out):
            os.write(1, b"\x1b]0;title\x07 \xff\xfe \x9b31m tab\there\r\nnext \xe2\x80\xae back\n")
            out.progress("\x1b[2Jwiped\nline")
            raise ValueError("\x1b[31mred\x1b[0m\nsecond")
        """,
    )
    run = probes.run()["rude"]
    first = (
        "\\x1b]0;title\\x07 \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}31m tab\there"
    )
    assert run.noise.startswith(f"{first}\\r\nnext \\u202e back\nTraceback")
    assert run.detail == "ValueError: \\x1b[31mred\\x1b[0m second"
    assert [event.text for event in probes.events if type(event).__name__ == "Progress"] == ["\\x1b[2Jwiped line"]


def test_each_probe_of_a_shared_child_keeps_its_own_noise(probes: Any) -> None:
    for name in ("a", "b", "c"):
        probes.add(name, "def collect(tree, out):\n    print('printed by', NAME)\n")
    probes.add("d", "def collect(tree, out):\n    print('by d', flush=True); import os; os._exit(1)\n")
    probes.add("e", "print('at import of e')\ndef collect(tree, out):\n    pass\n")
    runs = probes.run()
    assert [runs[name].noise for name in "abcde"] == [
        "printed by a", "printed by b", "printed by c", "by d", "at import of e",
    ]  # fmt: skip


def test_noise_is_there_when_the_parent_comes_late(probes: Any) -> None:
    """Words and noise then come in at once, and the end must not be heard before what was printed ahead of it."""
    body = "def collect(tree, out):\n    out.progress('x')\n    print('printed by', NAME)\n"
    for name in ("a", "b"):
        probes.add(name, body)

    def be_late(event: object) -> None:
        if isinstance(event, Progress):
            time.sleep(0.1)

    assert [run.noise for run in probes.run(on_event=be_late).values()] == ["printed by a", "printed by b"]


def test_probe_that_closed_its_output_is_heard(probes: Any) -> None:
    probes.add("mute", "import os\ndef collect(tree, out):\n    os.close(1); os.close(2); print('unheard')\n")
    probes.add_healthy("next")
    assert probes.run()["mute"].status == "ok"
    probes.assert_healthy("next")


@cases("size", 1, 7, TAIL, 100_000)
def test_tail_is_the_same_however_it_is_read(size: int) -> None:
    stream = b"first" + b"y" * 10_000 + b"last"
    noise = Noise()
    for start in range(0, len(stream), size):
        noise.feed(stream[start : start + size])
    assert noise.take() == "y" * (TAIL - len("last")) + "last"
    assert noise.take() == ""


# --- Which of the lines that a child prints name a problem. The lines are those of real programs --------------------
def telling(*lines: str) -> tuple[str, ...]:
    noise = Noise()
    for line in lines:
        noise.feed(line.encode() + b"\n")
    return noise.take_telling()


NAMING = (
    "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).",
    "An NVIDIA GPU may be present, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.",
    "Fatal Python error: Segmentation fault",
    "F1122 23:37:53.532257 10756 parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --xla_bogus=true",
    "F0000 00:00:1732318673.532257 10756 gpu_device.cc:12] Check broken: a == b",
    "terminate called after throwing an instance of 'std::length_e'",
    "E0000 00:00:17 cuda_dnn.cc:522] CuDNN library needs to have matching major version: incompatible",
)  # fmt: skip
OTHERS = (
    "", "Traceback (most recent call last):", "Warning:", "  warnings.warn(",
    "    raise AttributeError(f'module {name!r} has no attribute {attribute!r}')",
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "I0000 00:00:17 port.cc:153] oneDNN custom operations are on.", "[INFO] loading model",
)  # fmt: skip
COLOURED = "\x1b[1;31m2026 [E:onnxruntime] Failed to load\x1b[m"


@cases("line, told",
    *((line, (line,)) for line in NAMING), *((line, ()) for line in OTHERS),
    (COLOURED, ("2026 [E:onnxruntime] Failed to load",)),
)  # fmt: skip
def test_lines_that_name_a_problem(line: str, told: tuple[str, ...]) -> None:
    assert telling(line) == told


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
