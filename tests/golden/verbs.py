"""What other verbs print, run as a user would."""

import re
import shlex
import tempfile
from pathlib import Path

import msgspec

from tests.cli.calling import envcheck
from tests.golden.corpus import index, joined
from tests.golden.reports import GROUPS

_SHOWN = (
    *("torch", "torch==2.5.1", "torch==2.7.1+cu128", "cuda", "cuda==12.4", "driver", "driver==565.57.01"),
    *("gpu==H200", "gpu=='RTX 5090'", "gpu==sm_75", "jetpack==6.1", "vllm==0.8.5", "flash-attn", "tensorflow==2.16"),
    *("jax", "cudnn==9", "nonsense"),
)
SHORT = (
    *(f"matrix show {name}" for name in _SHOWN), "matrix check torch==2.5.1+cu124 gpu=='RTX 5090' driver==550.54.14",
    "rule driver-too-old --format json", "rule driver-too-old --format markdown", "init --from h200x4.json -o -",
    "fleet --reports . --format text",
)  # fmt: skip
LONG = (
    "matrix show",
    "matrix show gpu==H200 --format json",
    "matrix check torch==2.5.1+cu124 gpu==H100 driver==550.54.14 --format json",
    *(f"completion {shell}" for shell in ("bash", "zsh", "fish")),
    "fleet --reports . --format jsonl",
    "fleet --reports . --format html",
)
_VARIES = re.compile(
    r'(?<=envcheck )[0-9.]+(?=, )|"tool":\{[^}]*\}|(?<="duration_s":)[0-9.e-]+|(?<="timing":)\[[^\]]*\]'
    r'|\b20[0-9-]{8}T[0-9:]{8}(?=["Z+])'
)
"""Versions, durations and times of a run."""


def printed() -> dict[str, str]:
    """What each command prints, with its exit status: short answers open, long ones compressed."""
    with tempfile.TemporaryDirectory() as place:
        for name, make in GROUPS["recorded"].items():
            report = msgspec.structs.replace(make(), host=name)
            (Path(place) / f"{name}.json").write_bytes(msgspec.json.encode(report))
        short, long = ({command: _run(command, Path(place)) for command in each} for each in (SHORT, LONG))
    return {"verbs.txt": f"{joined(short)}==> long <==\n{index(long)}", "verbs.xz": joined(long)}


def _run(command: str, place: Path) -> str:
    ran = envcheck(*shlex.split(command), cwd=place, HOME=str(place))
    return _VARIES.sub("*", f"{ran.out}{ran.err}").replace(str(place), "~") + f"exit status {ran.status}\n"
