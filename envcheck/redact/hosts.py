"""Names of other machines, and addresses of networks and mail: known by where they stand, replaced wherever they stand.

Network addresses are told from versions such as ``10.3.5.147``, which look alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from envcheck.model.checks import Report
from envcheck.model.snapshot import frameworks_in, items_in
from envcheck.redact.walk import HOST, IP, texts_in, whole_words
from envcheck.text.lazy import lazy_pattern

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

_LOOSE = lazy_pattern(rf"{_BARE}{_END}|{_ALONE}", re.IGNORECASE)  # An address in a text that is not about versions
_PLACED = lazy_pattern(
    rf"(?:(?<=//)|(?<=@)|(?<=\bhost\s)|(?<=\bpeer\s)|(?<=\baddress\s)|(?<=\bto\s)){_IPV4}{_END}"
    rf"|{_BARE}(?=:\d{{2,5}}\b|/\d{{1,2}}\b)|{_ALONE}",
    re.IGNORECASE,
)
"""An address anywhere: it stands where only an address can, or has a shape that nothing else has."""
_VERSION = lazy_pattern(rf"(?<![\d.]){_IPV4}(?![\d.])")
_BARE_MAC = lazy_pattern(rf"(?P<before>{_MAC_WORD})(?P<mac>[0-9a-f]{{12}}|[0-9a-f]{{16}})(?![0-9a-z])", re.IGNORECASE)
_SIGN = lazy_pattern(r"\d\.\d|:|[0-9a-fA-F]{2}-[0-9a-fA-F]{2}-|[0-9a-fA-F]{4}\.|mac|addr|ether|guid", re.IGNORECASE)


class Addresses:
    """The addresses in one report and their pseudonyms: ``ip-1`` …"""

    def __init__(self, report: Report) -> None:
        self._versions = set(_versions(report))
        self._known: dict[str, str] = {}
        # Texts in which four numbers with dots are an address: variables, what programs printed, error lines.
        texts, snapshot = [run.noise for run in report.probes], report.snapshot
        if snapshot is not None:
            values = snapshot.variables.values if snapshot.variables else {}
            named = [value for name, value in values.items() if "VERSION" not in name]
            lines = [text for error in snapshot.observed_errors for text in (error.text, error.as_written)]
            texts[:0] = [*named, *lines]
        for match in (match for text in texts for match in _LOOSE.finditer(text)):
            self._learn(match[0])
        self._words = whole_words(self._known, r"(?<![\w.:])", r"(?![\w.]*\w)")

    def hide(self, text: str) -> str:
        """``text`` with every address in it replaced."""
        if _SIGN.search(text) is None:
            return text
        text = self._words.sub(lambda match: self._known[match[0]], text)
        text = _BARE_MAC.sub(lambda match: match["before"] + self._learn(match["mac"]), text)
        return _PLACED.sub(lambda match: self._learn(match[0]), text)

    def found_in(self, text: str) -> bool:
        """Whether an address stands in ``text``."""
        return _LOOSE.search(text) is not None

    def _learn(self, address: str) -> str:
        if address in self._versions or re.match(r"127\.|0\.0\.0\.0|255\.255\.", address):
            return address
        return self._known.setdefault(address, f"{IP}{len(self._known) + 1}")


def _versions(report: Report) -> Iterator[str]:
    """The versions with four numbers that are here."""
    texts: list[str | None] = []
    for library in items_in(report.snapshot.libraries) if report.snapshot else ():
        texts += (library.declared, library.on_disk, library.loaded, library.owner, library.path)
    for environment in report.environments:
        texts += (distribution.version for distribution in environment.distributions or ())
        for framework in frameworks_in(environment):
            texts += (framework.cudnn, framework.tensorrt, *(load.version for load in framework.loads or ()))
            texts += framework.trial.answers.values() if framework.trial else ()
    for text in texts:
        yield from _VERSION.findall(text or "")


_NAME = r"[A-Za-z](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*"
_STANDS = lazy_pattern(
    rf"""\b(?!file:)[A-Za-z][A-Za-z0-9+.-]{{1,20}}://(?:[^\s/@"'<>]{{0,300}}@)?(?P<url>{_NAME})(?=[:/?\#\s"'<>)\],;]|\.?$)
      | (?<![\w.:/-])(?P<nccl>{_NAME})(?=:\d{{1,8}}:\d{{1,8}}\s\[\d+\])      # NCCL: host:pid:tid [GPU]
      | \[(?!rank\d)(?P<mpi>{_NAME})(?=[:,]\d{{2,8}}\])                       # Open MPI: [host:pid]
      | ^[A-Z][a-z]{{2}}[ ]{{1,2}}\d{{1,2}}[ ]\d\d:\d\d:\d\d[ ](?P<syslog>{_NAME})(?=[ ][\w.()/-]+(?:\[\d+\])?:)
      | ^\d{{4}}-\d\d-\d\dT[\d:.,+Z-]{{8,24}}[ ](?P<journal>{_NAME})(?=[ ][\w.()/-]+(?:\[\d+\])?:)
      | \bhas\ the\ host\ '(?P<said>{_NAME})(?=')                              # network-name-unknown
      | \b(?:MASTER_ADDR|NCCL_COMM_ID|HOSTNAME|SLURMD_NODENAME|KUBERNETES_SERVICE_HOST)=["']?(?P<variable>{_NAME})
      | (?<![\w.@/+=-])(?P<user>[A-Za-z_][\w.+-]{{0,63}})@(?P<at>{_NAME})(?![\w@])""",
    re.VERBOSE | re.MULTILINE,
)
_PROMPT = lazy_pattern(r":[~/]|\s[^\s\]]{1,99}\][$#]|:\S{0,99}[$#]")
_CALLED = lazy_pattern(r"(?:\b(?:ssh|scp|sftp|rsync|mosh)\b[^\n|;&]{0,80}\s|^\[|^\([\w.-]{1,30}\)\s)\Z", re.MULTILINE)
"""What is around ``user@host`` where the host has no domain: a prompt, or a program that goes there."""
_NO_DOMAIN = frozenset(("so", "py", "c", "h", "cc", "cpp", "cu", "json", "toml", "md", "txt", "whl", "gz", "service"))
_PSEUDONYM = lazy_pattern(rf"{HOST}(?:-\d+)?|{re.escape(IP)}\d+|localhost(?:\.localdomain)?|\*+", re.IGNORECASE)
_SHORTEST = 4
_MAY_HOLD = ("the host '", "://", "@", "[", "=", ":")


class Hosts:
    """The other machines of one report and their pseudonyms: ``host-1`` …"""

    def __init__(self, report: Report, own: Iterable[str]) -> None:
        self._known = dict.fromkeys(own, HOST)
        self._public = _public(report)
        # The ids of checks name files of plans as they name a host: ``gpu-code-missing@uv.lock:torch``.
        planned = (item for environment in report.environments for item in environment.planned or ())
        self._files = frozenset(item.file for item in planned if "." in item.file)
        self._number = 0
        for text in texts_in(report):
            for match in _STANDS.finditer(text) if any(sign in text for sign in _MAY_HOLD) else ():
                if (name := _host(match, self._public, self._files)) is not None:
                    self._learn(name)
        distinct = (name for name in self._known if len(name) >= _SHORTEST and not name.isalpha())
        self._words = whole_words(distinct, r"(?<![\w./-])", r"(?![\w-]|\.\w)")

    def hide(self, text: str) -> str:
        """``text`` with every such name in it replaced."""
        if any(sign in text for sign in _MAY_HOLD):
            text = _STANDS.sub(self._stands, text)
        return self._words.sub(lambda match: self._known[match[0]], text)

    def _stands(self, match: re.Match[str]) -> str:
        host = _host(match, self._public, self._files)
        if host is None:
            return match[0]
        shown = match[0][: len(match[0]) - len(host)] + self._learn(host)
        user = match["user"]
        return shown if user is None or user in ("root", "git", "user") else "user" + shown[len(user) :]

    def _learn(self, name: str) -> str:
        if name not in self._known:
            self._number += 1
            self._known[name] = f"{HOST}-{self._number}"
        return self._known[name]


def _host(match: re.Match[str], public: frozenset[str], files: frozenset[str]) -> str | None:
    """The name of somebody's machine; None for a public one, and where something else stands there."""
    name = match["at"] or match[match.lastgroup or ""]
    if _PSEUDONYM.fullmatch(name) or name in files:
        return None
    ending = name.rpartition(".")[2] if "." in name else ""
    if match["at"] and not (ending.isalpha() and len(ending) > 1 and ending not in _NO_DOMAIN):
        around = _PROMPT.match(match.string, match.end()) or _CALLED.search(match.string[: match.start()][-120:])
        if not around:
            return None
    return None if _domain(name) in public and not match["user"] else name


def _domain(name: str) -> str:
    labels = name.lower().split(".")
    return ".".join(labels[-3 if len(labels[-1]) == 2 and len(labels) > 2 and len(labels[-2]) < 4 else -2 :])


def _public(report: Report) -> frozenset[str]:
    """Domains of the pages that the matrix and rules cite: where anybody's packages and documentation are from.

    An index that the matrix cites by its name alone has that name as its domain.
    """
    from envcheck.knowledge.load import load_matrix  # noqa: PLC0415 - judging brings it anyway

    addresses = [source.address for source in load_matrix().sources.values()]
    origins = {address.split()[0].lower() for address in addresses if "/" not in address}
    if not report.overlays:  # whose pages may be anybody's own
        addresses += [source.address for check in report.checks for source in check.sources]
    hosts = (address.partition("://")[2].partition("/")[0] for address in addresses)
    return frozenset([*(_domain(host) for host in hosts if host), *(f"{name}.org" for name in origins)])
