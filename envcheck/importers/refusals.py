"""What a program found, in the line in which it says that it asks for more: a GPU's capability, the driver, PyTorch.

Such lines name two values. The one that was found stands behind a word such as "found", "got" or "detected".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from envcheck.importers.kit.assemble import NAMED
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, joined, with_environment
from envcheck.snapshot import Driver, Framework, Gpu, Listing, Snapshot

NAME = "refusals"
RANK = Rank.MESSAGE

_LONGEST_LINE = 1_000
_ASKED = re.compile(
    r"requir|\bneeds?\b|\bonly\b|minimum|min\.|at least|support(?:s|ed)\b|is older than|too old|>=", re.IGNORECASE
)
_FOUND = (
    r"\b(?:found|got|detected|current(?: device| GPU)?(?: is)?|attempting to run on|tensor is on|device reports"
    r"|(?:your|this) (?:GPU|device) has|device cuda:[0-9]{1,2} has)\b[ :=`]{1,3}"
)
_CAPABILITY = re.compile(
    _FOUND + r"(?:(?:an?|cuda|gpu|device|compute|capability|of|sm|has|is)(?: ?[:=] ?| )){0,6}[(`]?(?:sm_?)?"
    r"(?:(?P<major>[1-9][0-9]?)(?:\.|, ?)(?P<minor>[0-9])|(?P<both>[5-9][0-9]|1[0-2][0-9]))(?![\w.]*[0-9])",
    re.IGNORECASE | re.ASCII,
)
_OF_CAPABILITY = re.compile(r"capabilit|\bsm ?_?[0-9]|\bsm\b", re.IGNORECASE)
_GPU_WITH_CAPABILITY = re.compile(
    r"\b[Yy]our (?P<name>[A-Z][\w .-]{2,50}?) GPU has compute capability (?P<capability>[0-9]{1,2}\.[0-9])\b"
)
_DRIVER = re.compile(
    r"driver version (?:>=? ?)?[0-9.]{3,12},? but found (?P<release>[3-6][0-9]{2}\.[0-9.]{2,9})"
    r"|(?:installed CUDA driver version is|driver only supports CUDA) (?P<cuda>[0-9]{1,2}\.[0-9])(?![.\w]*[0-9])",
    re.IGNORECASE | re.ASCII,
)
_TORCH = re.compile(
    r"\b(?:py)?torch\b.{0,90}?\b(?:found|detected|current version(?: is)?)[ :=]{1,3}(?:torch[ =]{1,3})?"
    r"(?P<version>[12]\.[0-9]{1,2}(?:\.[0-9]{1,2})?(?:\+[a-z0-9]{2,12})?)(?![\w.]*[0-9])",
    re.IGNORECASE | re.ASCII,
)


def read(paste: Paste) -> Snapshot:
    return joined(_parts(paste))


def _parts(paste: Paste) -> Iterator[Snapshot]:
    for line in paste.statements:
        text = line[:_LONGEST_LINE]
        if _ASKED.search(text):
            yield from (part for reader in _READERS if (part := reader(text)))


def _capability(text: str) -> Snapshot | None:
    if named := _GPU_WITH_CAPABILITY.search(text):
        return _gpu(named["capability"], named["name"])
    asked = _OF_CAPABILITY.search(text)
    found = _CAPABILITY.search(text, asked.start()) if asked else None
    if found is None:
        return None
    return _gpu(f"{found['major'] or found['both'][:-1]}.{found['minor'] or found['both'][-1]}")


def _gpu(capability: str, name: str | None = None) -> Snapshot:
    gpu = Gpu(source=SOURCE, label=f"{NAMED}{name or capability}", name=name, compute_capability=capability)
    return Snapshot(gpus=Listing(items=(gpu,)))


def _driver(text: str) -> Snapshot | None:
    found = _DRIVER.search(text)
    return Snapshot(driver=Driver(source=SOURCE, release=found["release"], cuda=found["cuda"])) if found else None


def _torch(text: str) -> Snapshot | None:
    found = _TORCH.search(text)
    if found is None:
        return None
    torch = Framework(source=SOURCE, name="torch", version=found["version"])
    return with_environment(environment(frameworks=(torch,)))


_READERS: tuple[Callable[[str], Snapshot | None], ...] = (_capability, _driver, _torch)
