"""Who and where: the names that a report holds, and the pseudonyms that stand for them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from envcheck.checks import Report
from envcheck.redact.addresses import Addresses
from envcheck.redact.hosts import Hosts
from envcheck.redact.users import Users
from envcheck.redact.walk import HIDDEN_GPU, HOST, SERIAL
from envcheck.snapshot import Gpu

_UUID = re.compile(r"(?<!\w)(GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){0,3}(?:-[0-9a-fA-F]{12})?(?![\w-])")
_SHORTEST_SERIAL = 6
_BARE_UUID = 36
_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHORTEST_HOST = 4
_HOST_VARIABLES = ("MASTER_ADDR", "HOSTNAME", "SLURMD_NODENAME")
_USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "SLURM_JOB_USER")


class Names:
    """The names in one report. ``hide`` takes a text, ``hide_value`` a variable and its value."""

    def __init__(self, report: Report, homes: Iterable[str] = ()) -> None:
        self._identities = dict(_identities(report))
        self._users = Users(report, homes)
        self._addresses = Addresses(report)
        self._exact = _words([*self._identities, *filter(_distinctive, _hosts(report))])
        self._others = Hosts(report, _hosts(report))

    def hide(self, text: str) -> str:
        """``text`` with every name in it replaced."""
        if self._exact is not None:
            text = self._exact.sub(lambda match: self._identities.get(match[0], HOST), text)
        if "GPU-" in text or "MIG-" in text:
            text = _UUID.sub(self._uuid, text)
        return self._addresses.hide(self._others.hide(self._users.hide(text)))

    def hide_value(self, name: str, value: str) -> str:
        """``value`` of the variable ``name``; of those that hold a host or a user, whatever it is."""
        if name in _HOST_VARIABLES and value and not self._addresses.found_in(value):
            return HOST
        if name in _USER_VARIABLES and value:
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
            yield gpu.serial, _serial(gpu, number)
    told = [found for measured in report.measurements for found in (measured.gpu, measured.peer)]
    for uuid in (*told, *(run.gpu for run in report.probes)):
        if uuid and uuid.startswith(("GPU-", "MIG-")):
            yield uuid, _pseudonym(uuid)


def _pseudonym(uuid: str) -> str:
    """``GPU-redacted-1b2c3d4e``: the same for the same UUID everywhere, and no way back, since UUIDs are random."""
    kind, _, rest = uuid.partition("-")
    if rest.startswith(HIDDEN_GPU):
        return uuid
    digest = hashlib.sha256(uuid.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{kind if kind in ('GPU', 'MIG') else 'GPU'}-{HIDDEN_GPU}{digest}"


def _serial(gpu: Gpu, number: int) -> str:
    """Named after the UUID: serial numbers are so few that a hash of one could be undone by trying all."""
    if gpu.serial and gpu.serial.startswith(SERIAL):
        return gpu.serial
    return f"{SERIAL}{_pseudonym(gpu.uuid).rpartition('-')[2]}" if gpu.uuid else f"{SERIAL}{number}"


def _hosts(report: Report) -> Iterator[str]:
    platform = report.snapshot.platform if report.snapshot else None
    for name in (report.host, platform.host if platform else None):
        if name and name != HOST:
            yield name
            if "." in name:
                yield name.partition(".")[0]


def _distinctive(host: str) -> bool:
    """Whether the name of a host can be replaced within texts: ``vm`` or ``torch`` there may be just a word."""
    plain = _HOST_NAME.fullmatch(host) is not None and len(host) >= _SHORTEST_HOST
    return plain and not host.isalpha() and not host.isdigit()


def _words(names: Iterable[str]) -> re.Pattern[str] | None:
    ordered = sorted(set(names), key=lambda name: (-len(name), name))
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, ordered))})(?![\w-])") if ordered else None
