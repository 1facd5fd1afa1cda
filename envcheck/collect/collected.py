"""Read what the collector printed, by the same rules as what a probe's child sends. It is untrusted."""

from __future__ import annotations

from typing import Literal

import msgspec

from envcheck.collect.attempt import Attempt, Verdict
from envcheck.collect.catalog import ProbeSpec, all_probes
from envcheck.collect.protocol import Message, WrongMessageError, decode_fact, without_halves
from envcheck.errors import UsageError
from envcheck.model.merge import merge
from envcheck.model.snapshot import Snapshot
from envcheck.text.clean import clean, clean_block
from envcheck.text.wrap import clip

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


class Collected(msgspec.Struct, frozen=True):
    """What the collector printed."""

    collected: str
    """The version of envcheck that made the collector."""
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
    parts = [_part(specs[run.probe], run) for run in found.runs if run.probe in specs]
    return found, merge(parts)


def _part(spec: ProbeSpec, run: Run) -> Snapshot:
    attempt = Attempt(spec, spec.seconds)
    attempt.begin()
    done = None
    for message in run.messages:
        attempt.seconds = message.seconds if message.seconds is not None else attempt.seconds
        attempt.progress = message.progress or attempt.progress
        done = message.done or done
        if message.fact:
            try:
                attempt.facts.append(decode_fact(message.fact))
            except WrongMessageError as error:
                attempt.problems.append(str(error))
    attempt.seconds = run.seconds if attempt.seconds is None else attempt.seconds
    noise = clean_block(run.noise).strip("\n")
    if done is not None:
        row = attempt.ended_by_itself(done, noise, "")
    else:
        end = run.end or End("failed", "its end is not known")
        row = attempt.was_cut_off(Verdict(end.status, clean(end.detail)), noise, "")
    return merge([*attempt.facts, Snapshot(runs=(row,))])
