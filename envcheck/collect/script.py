"""The collector as a script: one file of the standard library that runs the file and driver probes of this
installation; and its output, read by the same rules as what a probe's child sends. It is untrusted.
"""

from __future__ import annotations

import base64
import json
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from envcheck import __version__, bundle
from envcheck.collect.catalog import ProbeSpec, all_probes, probes_in
from envcheck.collect.protocol import Message, receive, run_of, without_halves
from envcheck.collect.runner import Attempt, Ended, Verdict, WrongMessageError
from envcheck.errors import UsageError
from envcheck.model.merge import merge
from envcheck.model.snapshot import Snapshot
from envcheck.text.clean import clean, clean_block
from envcheck.text.wrap import clip

_OTHERS = ("bench", "deep", "framework_bench", "kernels", "measuring", "trials")  # Folders of probes that only measure
_RUNNER = (
    "collect/bootstrap.py", "collect/child.py", "collect/runner.py", "collect/starting.py", "text/clean.py",
)  # fmt: skip
"""Files of envcheck that run probes."""
_FIELDS = ("name", "kind", "early", "seconds", "seconds_per_gpu", "scopes")
_LINE = 120


def collector() -> str:
    package = Path(__file__).parents[1]
    program = (package / "collect" / "collector.py").read_text(encoding="utf-8")
    folder = bundle.folder("probes")
    specs = [spec for spec in probes_in(folder) if spec.kind in ("file", "driver")]
    files = {f"envcheck/{name}": (package / name).read_text(encoding="utf-8") for name in _RUNNER}
    for name in ("", "collect/", "text/"):
        files[f"envcheck/{name}__init__.py"] = ""  # an envcheck that is installed there has other modules
    names = {spec.name for spec in specs}
    for file in sorted(folder.rglob("*.py")):  # the probes, and the folders that they import from
        place = file.relative_to(folder)
        at_top = place.stem in names or place.stem == "__init__"
        if at_top if len(place.parts) == 1 else place.parts[0] not in _OTHERS:
            files[f"probes/{place.as_posix()}"] = file.read_text(encoding="utf-8")
    # The binding of NVML is one file of the standard library (nvidia-ml-py), under a BSD licence.
    binding = find_spec("pynvml")
    if binding is not None and binding.origin and binding.origin.endswith("pynvml.py"):
        files["lib/pynvml.py"] = Path(binding.origin).read_text(encoding="utf-8")
    parts = {
        "version": __version__,
        "files": files,
        "probes": [{field: getattr(spec, field) for field in _FIELDS} for spec in specs],
    }
    content = json.dumps(parts, separators=(",", ":"), sort_keys=True).encode()
    packed = base64.b64encode(zlib.compress(content, 9)).decode()
    lines = "".join(f'    "{packed[begin : begin + _LINE]}"\n' for begin in range(0, len(packed), _LINE))
    head, mark, rest = program.partition('PARTS = ""\n')
    if not mark:
        raise AssertionError("the collector has no place for its parts")
    return f"{head}PARTS = (\n{lines})\n{rest}"


_MOST_RUNS = 200


class End(msgspec.Struct, frozen=True):
    """Why a probe did not end by itself."""

    status: Literal["failed", "crashed", "timed-out"]
    detail: str


class Run(msgspec.Struct, frozen=True):
    """A probe's messages, and its end."""

    probe: str
    messages: tuple[Message, ...] = ()
    end: End | None = None
    seconds: float = 0.0
    noise: str = ""
    remark: str = ""


class Collected(msgspec.Struct, frozen=True):
    """What the collector printed."""

    collected: str  # The version of envcheck that made the collector
    created: str
    duration_s: float
    host: str
    runs: tuple[Run, ...]
    python: str = ""


def read_collected(content: bytes) -> tuple[Collected, Snapshot]:
    """The collector's own words, and the facts; raise UsageError for anything else."""
    try:
        found = msgspec.json.decode(without_halves(content), type=Collected)
    except msgspec.ValidationError as error:
        raise UsageError(f"the collector's output has the wrong shape: {clip(clean(str(error)), 160)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError("the collector's output is cut off or damaged: it is not JSON") from None
    if len(found.runs) > _MOST_RUNS:
        raise UsageError(f"the collector's output has more than {_MOST_RUNS} probes")
    specs = {spec.name: spec for spec in all_probes()}
    return found, merge(_part(specs[run.probe], run) for run in found.runs if run.probe in specs)


def _part(spec: ProbeSpec, run: Run) -> Snapshot:
    attempt = Attempt(spec, spec.seconds)
    attempt.seconds = run.seconds
    for message in run.messages:
        attempt.seconds = attempt.seconds if message.seconds is None else message.seconds
        attempt.done = message.done or attempt.done
        try:
            receive(attempt, message)
        except WrongMessageError as error:
            attempt.problems.append(str(error))
    end = run.end or End("failed", "its end is not known")
    verdict = None if attempt.done else Verdict(end.status, clean(end.detail))
    ended = Ended(attempt, verdict, clean_block(run.noise).strip("\n"), clean(run.remark))
    return merge([*attempt.facts, Snapshot(runs=(run_of(ended),))])
