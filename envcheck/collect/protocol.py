"""Messages of a child: bounded and validated line by line before any other code sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from envcheck.model.snapshot import Snapshot
from envcheck.text.clean import one_line

LINE_LIMIT = 4 << 20
"""Most bytes of one line."""
TOTAL_LIMIT = 64 << 20
"""Most bytes from one child."""

_KEPT_FOR_ENVCHECK = ("runs", "disagreements")
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(?P<half>u[dD][89a-fA-F]\w\w)|.)", re.DOTALL)
_NO_FACT = msgspec.Raw(b"")


class WrongMessageError(Exception):
    """A child sent an unusable message; the text continues "it sent"."""


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A probe ended."""

    status: Literal["ok", "absent", "failed"]
    detail: str = ""
    trace: str = ""
    """Traceback of what it raised."""


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line: the name of a probe and one other field."""

    probe: str
    begin: bool = False
    fact: msgspec.Raw = _NO_FACT
    progress: str | None = None
    seconds: float | None = None
    """Time that the probe took."""
    done: Done | None = None


_MESSAGE = msgspec.json.Decoder(Message)
_FACT = msgspec.json.Decoder(Snapshot)
_ANYTHING = msgspec.json.Decoder()


class Lines:
    """Splits a child's messages into lines, and keeps no more of a line than its limit."""

    def __init__(self) -> None:
        self.total = 0
        self._rest = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that ``data`` completes; None stands for one that was too long."""
        self.total += len(data)
        *ends, rest = data.split(b"\n")
        lines: list[bytes | None] = []
        for end in ends:
            self._append(end)
            lines.append(None if self._too_long else bytes(self._rest))
            self._rest.clear()
            self._too_long = False
        self._append(rest)
        return lines

    def _append(self, data: bytes) -> None:
        if self._too_long or len(self._rest) + len(data) > LINE_LIMIT:
            self._too_long = True
            self._rest.clear()
        else:
            self._rest += data


def decode(line: bytes | None) -> Message:
    """The message in a line; raise WrongMessageError if there is none."""
    if line is None:
        raise WrongMessageError(f"a line longer than {LINE_LIMIT >> 20} MiB")
    with _errors_named("message"):
        return _MESSAGE.decode(without_halves(line))


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
    return _without_secrets(fact)


def _without_secrets(fact: Snapshot) -> Snapshot:
    """Mask secrets in variables; no other code sees them."""
    if fact.variables is None:
        return fact
    from envcheck.redact.secrets import masked_value  # noqa: PLC0415 - few facts are variables

    values = {name: masked_value(name, value) for name, value in fact.variables.values.items()}
    if values == fact.variables.values:
        return fact
    shown = "\n".join(values.values())
    paths = tuple(each for each in fact.variables.paths or () if each.path in shown)
    return msgspec.structs.replace(fact, variables=msgspec.structs.replace(fact.variables, values=values, paths=paths))


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
