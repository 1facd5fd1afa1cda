"""Messages of a child, validated line by line before any other code sees them, and the row of a report that its end
makes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from envcheck.collect import child
from envcheck.collect.runner import Attempt, Ended, WrongMessageError
from envcheck.model.snapshot import ProbeRun, Snapshot
from envcheck.text.clean import clean_block, one_line

_KEPT_FOR_ENVCHECK = ("runs", "disagreements")
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(?P<half>u[dD][89a-fA-F]\w\w)|.)", re.DOTALL)
_NO_FACT = msgspec.Raw(b"")


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    status: Literal["ok", "absent", "failed"]
    detail: str = ""
    trace: str = ""  # Traceback of what it raised


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line: the name of a probe and one other field."""

    probe: str
    begin: bool = False
    fact: msgspec.Raw = _NO_FACT
    progress: str | None = None
    seconds: float | None = None  # Time that the probe took
    processor: float | None = None  # Processor time that it took
    done: Done | None = None


_MESSAGE = msgspec.json.Decoder(Message)
_FACT = msgspec.json.Decoder(Snapshot)
_ANYTHING = msgspec.json.Decoder()


def decode(line: bytes | None) -> Message:
    """The message in a line; raise WrongMessageError if there is none."""
    if line is None:
        raise WrongMessageError(f"a line longer than {child.LINE_LIMIT >> 20} MiB")
    with _errors_named("message"):
        return _MESSAGE.decode(without_halves(line))


def receive(attempt: Attempt, message: Message) -> None:
    """Add what a message tells to its probe; raise WrongMessageError for a fact that is none."""
    if message.processor is not None:
        attempt.processor = message.processor
    if message.progress is not None:
        attempt.progress = one_line(message.progress, 120)
    if message.fact:
        attempt.facts.append(decode_fact(message.fact))


def decode_fact(raw: msgspec.Raw) -> Snapshot:
    """The partial Snapshot in a fact; raise WrongMessageError if it is none or has unknown fields."""
    with _errors_named("fact"):
        fact = _FACT.decode(raw)
        stray = _stray_field(_ANYTHING.decode(raw), fact, "$")
    if stray:
        raise WrongMessageError(f"a fact of the wrong shape: the Snapshot has no `{one_line(stray)}`")
    for section in _KEPT_FOR_ENVCHECK:
        if getattr(fact, section):
            raise WrongMessageError(f"a fact of the wrong shape: `$.{section}` is not for probes")
    if fact.variables is None:
        return fact
    from envcheck.redact.secrets import masked_value  # noqa: PLC0415 - few facts are variables

    # No other code sees the secrets in variables.
    values = {name: masked_value(name, value) for name, value in fact.variables.values.items()}
    if values == fact.variables.values:
        return fact
    shown = "\n".join(values.values())
    paths = tuple(each for each in fact.variables.paths or () if each.path in shown)
    hidden = {each.path for each in fact.variables.paths or ()} - {each.path for each in paths}
    places = tuple(each for each in fact.variables.places or () if each.path not in hidden)
    variables = msgspec.structs.replace(fact.variables, values=values, paths=paths, places=places)
    return msgspec.structs.replace(fact, variables=variables)


@contextmanager
def _errors_named(what: str) -> Iterator[None]:
    try:
        yield
    except msgspec.ValidationError as error:
        raise WrongMessageError(f"a {what} of the wrong shape: {one_line(str(error))}") from None
    except UnicodeDecodeError:
        raise WrongMessageError(f"a {what} that is not UTF-8") from None
    except (msgspec.DecodeError, RecursionError) as error:
        reason = one_line(str(error)).removeprefix("JSON is malformed: ")
        raise WrongMessageError(f"a {what} that is not JSON: {reason}") from None


def without_halves(line: bytes) -> bytes:
    """``line`` with U+FFFD for lone surrogates, with which Python represents bytes that are not UTF-8."""
    if b"\\ud" not in line and b"\\uD" not in line:
        return line
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match["half"] else match[0], line)


def _stray_field(value: Any, decoded: Any, path: str) -> str | None:
    """Path of the first key in ``value`` that decoding it to ``decoded`` dropped."""
    if isinstance(decoded, msgspec.Struct):
        fields = decoded.__struct_fields__
        for key, part in value.items():
            if key not in fields:
                return f"{path}.{key}"
            # Most of the thousands of values are text or numbers.
            if type(part) in (dict, list) and (stray := _stray_field(part, getattr(decoded, key), f"{path}.{key}")):
                return stray
    elif isinstance(decoded, tuple):
        for index, (part, item) in enumerate(zip(value, decoded, strict=True)):
            if stray := _stray_field(part, item, f"{path}[{index}]"):
                return stray
    return None


def run_of(ended: Ended) -> ProbeRun:
    """The row of a report about a probe that ended."""
    attempt, noise, verdict, done = ended.attempt, ended.noise, ended.verdict, ended.attempt.done
    spec, problems, words = attempt.spec, attempt.problems, list[str]()
    if problems:
        words.append(f"it sent {problems[0]}{f' (and {len(problems) - 1} more)' if len(problems) > 1 else ''}")
    if verdict is not None:
        status = verdict.status
        words.insert(0, f"{verdict.detail} while {attempt.progress}" if attempt.progress else verdict.detail)
    elif done is not None:
        status = "failed" if problems else done.status
        words.append(done.detail)
        noise = "\n".join(filter(None, [noise, clean_block(done.trace).strip("\n")]))
    taken = time.monotonic() - attempt.started if attempt.seconds is None else attempt.seconds
    return ProbeRun(
        name=spec.name,
        title=spec.title,
        status=status,
        seconds=round(taken, 4),
        processor=None if attempt.processor is None else round(attempt.processor, 4),
        detail=one_line("; ".join(filter(None, [*words, ended.remark]))),
        cut_short=verdict is not None and verdict.cut_short,
        limit="" if verdict is None else verdict.limit,
        noise=noise,
        fills=spec.fills,
        environment=attempt.about.environment,
        framework=attempt.about.framework,
        gpu=attempt.about.gpu,
    )
