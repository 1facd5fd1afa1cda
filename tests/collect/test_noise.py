"""What probes print is noise: kept in part, harmless, with the probe that printed it, and never in the way."""

from __future__ import annotations

import resource
import time
from typing import Any

import pytest

from envcheck.collect.deaths import TAIL, Noise
from envcheck.events import Progress


@pytest.mark.parametrize("descriptor", [1, 2])
@pytest.mark.parametrize("kind", ["file", "driver"])
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
        "printed by a",
        "printed by b",
        "printed by c",
        "by d",
        "at import of e",
    ]


def test_noise_is_there_when_the_parent_comes_late(probes: Any) -> None:
    """Words and noise then come in at once, and the end must not be heard before what was printed ahead of it."""
    body = "def collect(tree, out):\n    out.progress('x')\n    print('printed by', NAME)\n"
    for name in ("a", "b"):
        probes.add(name, body)

    def be_late(event: object) -> None:
        if isinstance(event, Progress):
            time.sleep(0.1)

    runs = probes.run(on_event=be_late)
    assert [run.noise for run in runs.values()] == ["printed by a", "printed by b"]


def test_probe_that_closed_its_output_is_heard(probes: Any) -> None:
    probes.add("mute", "import os\ndef collect(tree, out):\n    os.close(1); os.close(2); print('unheard')\n")
    probes.add_healthy("next")
    assert probes.run()["mute"].status == "ok"
    probes.assert_healthy("next")


@pytest.mark.parametrize("size", [1, 7, TAIL, 100_000])
def test_tail_is_the_same_however_it_is_read(size: int) -> None:
    stream = b"first" + b"y" * 10_000 + b"last"
    noise = Noise()
    for start in range(0, len(stream), size):
        noise.feed(stream[start : start + size])
    assert noise.take() == "y" * (TAIL - len("last")) + "last"
    assert noise.take() == ""
