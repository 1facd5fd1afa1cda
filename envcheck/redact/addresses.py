"""Network addresses: told from versions such as ``10.3.5.147``, which look alike, by where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.checks import Report
from envcheck.redact.walk import IP
from envcheck.snapshot import frameworks_in

_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_MAPPED = rf"::(?:ffff(?::0)?:)?{_IPV4}|::ffff(?::0)?:[0-9a-f]{{1,4}}:[0-9a-f]{{1,4}}|64:ff9b::{_IPV4}"
"""An IPv4 address as IPv6 writes it."""
_IPV6 = (
    rf"(?:(?:fe[89ab][0-9a-f]|f[cd][0-9a-f]{{2}}|[23][0-9a-f]{{3}})(?::{{1,2}}[0-9a-f]{{1,4}}){{1,7}}(?:::)?|{_MAPPED})"
)
_ZONE = r"(?:%(?:25)?[\w.-]{1,20})?"
_MAC = (
    r"(?:[0-9a-f]{2}:){5}(?:[0-9a-f]{2}:[0-9a-f]{2}:)?[0-9a-f]{2}"
    r"|(?=[\d-]{0,22}[a-f])(?:[0-9a-f]{2}-){5}(?:[0-9a-f]{2}-[0-9a-f]{2}-)?[0-9a-f]{2}"
    r"|(?=[\d.]{0,13}[a-f])[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}"  # with a letter: a date or a version has none
)
_MAC_WORD = (
    r"\b(?:mac|hw_?addr|hwaddress|ether|lladdr|permaddr|(?:\w{1,20}_)?guid)(?:[ _-]?addr(?:ess)?)?"
    r"[\"']?[\s:=]{1,3}[\"']?(?:0x)?"
)
"""What stands before one that is written without any sign between."""

_ALONE = rf"(?<![\w:.%]){_IPV6}(?![\w:]|\.\d){_ZONE}|(?<![\w:.-])(?:{_MAC})(?![\w:-]|\.\w)"
_BARE = rf"(?<![\w.=<>~-]){_IPV4}"
_END = r"(?![\w-]|\.\d)"

_LOOSE = re.compile(rf"{_BARE}{_END}|{_ALONE}", re.IGNORECASE)
"""An address in a text that is not about versions."""
_PLACED = re.compile(
    rf"(?:(?<=//)|(?<=@)|(?<=\bhost\s)|(?<=\bpeer\s)|(?<=\baddress\s)|(?<=\bto\s)){_IPV4}{_END}"
    rf"|{_BARE}(?=:\d{{2,5}}\b|/\d{{1,2}}\b)|{_ALONE}",
    re.IGNORECASE,
)
"""An address anywhere: it stands where only an address can, or has a shape that nothing else has."""
_VERSION = re.compile(rf"(?<![\d.]){_IPV4}(?![\d.])")
_EVERY_HOST = re.compile(r"127\.|0\.0\.0\.0|255\.255\.")
_BARE_MAC = re.compile(rf"(?P<before>{_MAC_WORD})(?P<mac>[0-9a-f]{{12}}|[0-9a-f]{{16}})(?![0-9a-z])", re.IGNORECASE)
_SIGN = re.compile(r"\d\.\d|:|[0-9a-fA-F]{2}-[0-9a-fA-F]{2}-|[0-9a-fA-F]{4}\.|mac|addr|ether|guid", re.IGNORECASE)


class Addresses:
    """The addresses in one report and their pseudonyms: ``ip-1`` …"""

    def __init__(self, report: Report) -> None:
        self._versions = set(_versions(report))
        self._known: dict[str, str] = {}
        for text in _free_texts(report):
            for match in _LOOSE.finditer(text):
                self._learn(match[0])
        self._words: re.Pattern[str] | None = None
        if self._known:
            ordered = sorted(self._known, key=len, reverse=True)
            self._words = re.compile(rf"(?<![\w.:])(?:{'|'.join(map(re.escape, ordered))})(?![\w.]*\w)")

    def hide(self, text: str) -> str:
        """``text`` with every address in it replaced."""
        if _SIGN.search(text) is None:
            return text
        if self._words is not None:
            text = self._words.sub(lambda match: self._known[match[0]], text)
        text = _BARE_MAC.sub(lambda match: match["before"] + self._learn(match["mac"]), text)
        return _PLACED.sub(lambda match: self._learn(match[0]), text)

    def found_in(self, text: str) -> bool:
        """Whether an address stands in ``text``."""
        return _LOOSE.search(text) is not None

    def _learn(self, address: str) -> str:
        if address in self._versions or _EVERY_HOST.match(address):
            return address
        return self._known.setdefault(address, f"{IP}{len(self._known) + 1}")


def _free_texts(report: Report) -> Iterator[str]:
    """Texts in which four numbers with dots are an address: variables, what programs printed, error lines."""
    snapshot = report.snapshot
    if snapshot is not None:
        values = snapshot.variables.values if snapshot.variables else {}
        yield from (value for name, value in values.items() if "VERSION" not in name)
        yield from (text for error in snapshot.observed_errors for text in (error.text, error.as_written))
    yield from (run.noise for run in report.probes)


def _versions(report: Report) -> Iterator[str]:
    """The versions with four numbers that are here."""
    snapshot = report.snapshot
    libraries = snapshot.libraries.items if snapshot and snapshot.libraries else ()
    environments = snapshot.environments.items if snapshot and snapshot.environments else ()
    for library in libraries:
        told = (library.declared, library.on_disk, library.loaded, library.owner, library.path)
        yield from (match for text in told if text for match in _VERSION.findall(text))
    for environment in environments:
        for distribution in environment.distributions or ():
            yield from _VERSION.findall(distribution.version)
        for framework in frameworks_in(environment):
            answers = framework.trial.answers.values() if framework.trial else ()
            loads = [load.version or "" for load in framework.loads or ()]
            for text in (framework.cudnn or "", framework.tensorrt or "", *answers, *loads):
                yield from _VERSION.findall(text)
