"""Who and where: the names that a report holds, and the pseudonyms that stand for them.

Users are found by the places where home folders lie, and replaced wherever they stand in a path.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from envcheck.model.checks import Report
from envcheck.redact.hosts import Addresses, Hosts
from envcheck.redact.walk import HIDDEN_GPU, HOST, IP, SERIAL, texts_in, whole_words
from envcheck.text.lazy import lazy_pattern

_NOBODY = frozenset(
    (
        *("root", "user", "users", "shared", "public", "common", "admin", "runner", "jenkins", "vagrant", "docker"),
        *("ubuntu", "debian", "centos", "fedora", "ec2-user", "conda", "python", "torch", "cuda", "nvidia"),
        *("data", "work", "src", "app", "home", "scratch", "projects", "envs", "local"),
    )
)
"""Names that identify no person, or mean something else in a path: replaced only where a home folder must lie."""

_STOP = r"/\\\s:;,'\"()<>|\[\]"
_HOME = lazy_pattern(
    rf"""(?P<place>
            /(?:home\d*|homes|people|scratch\d*|netscratch)/(?:(?:users|staff|students?|people|faculty)/)?
            (?:[A-Za-z0-9]/)?
          | [/\\]{{1,16}}[Uu]sers[/\\]{{1,16}} )
        (?P<name>(?<=sers[/\\])[^{_STOP}]+(?:\x20[^{_STOP}]+){{0,3}}(?=[/\\]) | [^{_STOP}]+)""",
    re.VERBOSE,
)
_PATH = lazy_pattern(r"(?<![\w.~-])/[^\s:;,'\"()<>|\[\]]+")
_CALLED = lazy_pattern(
    r"""(?:~|\buid=\d{1,10}\(|(?<![a-z])(?:user(?:_?name)?|logname|owner)["']?[ ]?[ =:][ ]?["']?)\Z""", re.IGNORECASE
)
"""What stands before the name of a user in what programs print."""
_LONGEST_CALL = 24
_TILDE = lazy_pattern(r"(?:(?<=^~)|(?<=[\s:=\"'(]~))(?P<name>(?!user\d*/|root/)[A-Za-z_][\w-]{0,31})(?=/)")
"""``~ada/x``; what pip leaves behind (``~orch``) has a slash before it, or none after."""
_MAY_NAME = lazy_pattern(r"[/\\@~]|uid=|user|logname|owner", re.IGNORECASE)
"""Every text that may name a user has one of these."""
_PSEUDONYM = lazy_pattern(r"user\d*\Z")
_PACKAGES = ("site-packages", "dist-packages", "lib", "pkgs")


class Users:
    """The users of one report and their pseudonyms: ``user``, ``user2`` …"""

    def __init__(self, report: Report, homes: Iterable[str] = ()) -> None:
        self._homes = tuple(home.rstrip("/") for home in homes if home.startswith("/") and home.count("/") > 1)
        owners = [home.rpartition("/")[2] for home in self._homes]
        judged = [found.key for found in report.environments if found.judged]
        first = [*owners, *(name for key in judged for name in _names(key))]
        named = {name for text in texts_in(report) if "/" in text or "\\" in text for name in _names(text)}
        ordered = list(dict.fromkeys([*first, *sorted(named)]))
        taken = {name for name in ordered if _PSEUDONYM.match(name)}
        known = {name: name for name in taken}
        number = 1
        for name in ordered:  # no pseudonym is a name that stands in the report
            while (pseudonym := "user" if number == 1 else f"user{number}") in taken:
                number += 1
            if name not in known:
                known[name] = pseudonym
                taken.add(pseudonym)
        self._known = known
        self._personal = {name: shown for name, shown in known.items() if name.lower() not in _NOBODY}
        words = (name for name in self._personal if not _PSEUDONYM.match(name))
        self._words = whole_words(words, r"(?<![\w.-])", r"(?![\w-])")

    def hide(self, text: str) -> str:
        """``text`` with every user's name in it replaced."""
        if _MAY_NAME.search(text) is None:
            return text
        for home in self._homes:
            if home in text and _HOME.match(home) is None:
                own = re.compile(rf"(?<![\w./~-]){re.escape(home)}(?![\w.-])")
                text = own.sub(f"/home/{self._known[home.rpartition('/')[2]]}", text)
        text = _TILDE.sub(lambda match: self._known.get(match["name"], "user"), _HOME.sub(self._at_home, text))
        if self._words.search(text) is None:
            return text
        return _PATH.sub(self._in_path, self._words.sub(self._named, text))

    def called(self, name: str) -> str:
        """The pseudonym of the user ``name``, who need not have a home folder."""
        return name if _PSEUDONYM.match(name) or name == "root" else self._known.get(name, "user")

    def _at_home(self, match: re.Match[str]) -> str:
        place = re.sub(r"/[A-Za-z0-9]/\Z", "/u/", match["place"])
        return place + self._known.get(match["name"], "user")

    def _named(self, match: re.Match[str]) -> str:
        """``ada@``, ``~ada``, ``USER=ada`` and the like; within paths ``_in_path`` decides."""
        before = match.string[max(0, match.start() - _LONGEST_CALL) : match.start()]
        called = _CALLED.search(before) is not None or match.string.startswith("@", match.end())
        return self._personal[match[0]] if called else match[0]

    def _in_path(self, match: re.Match[str]) -> str:
        if re.match(r"/(?:usr|opt|etc|lib\d*|bin|sbin|proc|sys|dev|boot|run)(?:/|$)", match[0]):
            return match[0]
        parts = match[0].split("/")
        ends = min((parts.index(name) for name in _PACKAGES if name in parts), default=len(parts))
        return "/".join([*(self._personal.get(part, part) for part in parts[:ends]), *parts[ends:]])


def _names(text: str) -> Iterator[str]:
    return (match["name"] for match in _HOME.finditer(text))


_UUID = lazy_pattern(r"(?<!\w)(GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){0,3}(?:-[0-9a-fA-F]{12})?(?![\w-])")
_SHORTEST_SERIAL = 6
_BARE_UUID = 36
_HOST_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHORTEST_HOST = 4


class Names:
    """The names in one report. ``hide`` takes a text, ``hide_value`` a variable and its value."""

    def __init__(self, report: Report, homes: Iterable[str] = ()) -> None:
        self._identities = dict(_identities(report))
        self._users = Users(report, homes)
        self._addresses = Addresses(report)
        platform = report.snapshot.platform if report.snapshot else None
        named = (name for name in (report.host, platform.host if platform else None) if name and name != HOST)
        hosts = list(dict.fromkeys(part for name in named for part in (name, name.partition(".")[0])))
        # A host can be replaced within texts where its name is distinctive: ``vm`` or ``torch`` may be just a word.
        long = (host for host in hosts if len(host) >= _SHORTEST_HOST and _HOST_NAME.fullmatch(host))
        distinctive = [host for host in long if not (host.isalpha() or host.isdigit())]
        self._exact = whole_words({*self._identities, *distinctive}, r"(?<![\w-])", r"(?![\w-])")
        self._others = Hosts(report, hosts)

    def hide(self, text: str) -> str:
        """``text`` with every name in it replaced."""
        text = self._exact.sub(lambda match: self._identities.get(match[0], HOST), text)
        if "GPU-" in text or "MIG-" in text:
            text = _UUID.sub(self._uuid, text)
        return self._addresses.hide(self._others.hide(self._users.hide(text)))

    def hide_value(self, name: str, value: str) -> str:
        """``value`` of the variable ``name``; of those that hold a host or a user, whatever it is."""
        of_hosts = name in ("MASTER_ADDR", "NCCL_COMM_ID", "HOSTNAME", "SLURMD_NODENAME")
        if of_hosts and value and not (self._addresses.found_in(value) or value.startswith(IP)):
            return "".join((HOST, *value.partition(":")[1:]))
        if name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "SLURM_JOB_USER") and value:
            return self._users.called(value)
        return self.hide(value)

    def _uuid(self, match: re.Match[str]) -> str:
        """A UUID that no record has, or the beginning of one, as CUDA_VISIBLE_DEVICES may hold it."""
        whole = next((known for known in self._identities if known.startswith(match[0])), None)
        return self._identities[whole] if whole else _pseudonym(match[0])


def _identities(report: Report) -> Iterator[tuple[str, str]]:
    """UUIDs and serial numbers with their pseudonyms."""
    for number, gpu in enumerate(report.gpus, 1):
        if gpu.uuid:
            yield gpu.uuid, _pseudonym(gpu.uuid)
            bare = gpu.uuid.removeprefix("GPU-")  # as DCGM and some logs write it
            if len(bare) == _BARE_UUID:
                yield bare, _pseudonym(gpu.uuid)
        for instance in (gpu.mig.instances if gpu.mig else None) or ():
            if instance.uuid:
                yield instance.uuid, _pseudonym(instance.uuid)
        if gpu.serial and len(gpu.serial) >= _SHORTEST_SERIAL:
            # Named after the UUID: serial numbers are so few that a hash of one could be undone by trying all.
            hidden = f"{SERIAL}{_pseudonym(gpu.uuid).rpartition('-')[2]}" if gpu.uuid else f"{SERIAL}{number}"
            yield gpu.serial, gpu.serial if gpu.serial.startswith(SERIAL) else hidden
    uuids = [found for measured in report.measurements for found in (measured.gpu, measured.peer)]
    for uuid in (*uuids, *(run.gpu for run in report.probes)):
        if uuid and uuid.startswith(("GPU-", "MIG-")):
            yield uuid, _pseudonym(uuid)


def _pseudonym(uuid: str) -> str:
    """``GPU-redacted-1b2c3d4e``: the same for the same UUID everywhere, and no way back, since UUIDs are random."""
    kind, _, rest = uuid.partition("-")
    if rest.startswith(HIDDEN_GPU):
        return uuid
    digest = hashlib.sha256(uuid.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{kind if kind in ('GPU', 'MIG') else 'GPU'}-{HIDDEN_GPU}{digest}"
