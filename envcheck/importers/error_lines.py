"""Lines about failures from any text, with their line numbers. Rules decide what they mean.

The pattern is wide on purpose: an extra line does no harm, a missing one hides a problem from all rules. Lines that
request CUDA are included: a missing GPU is then a failure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from envcheck.importers.kit.paste import SOURCE, Paste, left_out_run
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import ObservedError, ProbeRun, Snapshot

NAME = "error lines"
RANK = Rank.MESSAGE

MOST_LINES = 200
"""Most lines that are kept, from both ends: the fatal error comes last."""
_HALF = MOST_LINES // 2
LONGEST_LINE = 2_000
_ALIKE = 2
"""Lines kept from each end of a series that differs only in numbers."""
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")

_WORDS = (
    r"error",
    r"fail(?:ed|s|ure)?\b",
    r"(?:fatal|rejected|denied|mismatch\w*|insufficient\w*|incompatible|unsupported|unavailable|ignoring)\b",
    r"(?:cannot|can't|could ?n[o']t|couldn't|unable to|wasn'?t able|does(?: not|n't)|don't match)\b",
    r"no (?:such|longer|kernel image|space left|devices?|gpus?|module|mig devices)\b|no cuda[ -]\w",
    r"(?:without|compile with) (?:gpu|use_|cuda)|restricted\b|disagrees about\b",
    r"not (?:found|supported|available|compatible|loaded|ready|installed|detected|enabled|permitted|load|match)\b",
    r"not (?:be|in available|compiled|working|responding|recogni[sz]ed|visible|loading|being|a)\b|not yet\b",
    r"(?:timeout|out of memory|core dumped|segmentation fault|undefined symbol|bad return status|assert\w*)\b",
    r"(?:fallen off|is lost|will ignore|already bound|currently in use|minimum required|requires)\b",
    r"(?:too old|is older than|is newer|stale driver|supported by|supported through|only supports?)\b",
    r"but (?:source|loaded|linked|the installed)\b",
    r"(?:returned [1-9]|dynamic llm libraries|start this container)",
    r"neither af_inet|not (?:defined in file|set)\b|stub (?:version|library)\b|libraries are stubs\b",
    r"versions? .{1,80} but \b",
    r"(?:hangs?|hung|stuck|deadlock\w*|frozen|freezes|crash(?:es|ed)?)\b|file (?:exists|too short)\b",
    r"dev/shm",
    r"was(?: not|n't) build\b|multiple \w+ packages\b|no ffi handler\b|already exists\b|built for:",
    r"no device\b|invalid (?:literal|device)\b|unknown flags?\b",
    r"without (?:any )?mig\b|no (?:mig |gpu )?instances\b",
    r"found no nvidia\b|gpu is too old\b|probe routine\b|rivafb\b|outdated\b",
    r"no (?:usable|compatible) gpus?\b|above exception\b|failedscheduling|mps server",
    r"(?:wrong|invalid) (?:elf|argument)\b|aren't available|did not run|did you set|not enough memory|no ptx\b",
    r"is required but|is only supported|(?:pre-?)?depends: |unmet dependencies|(?:nothing provides|filtered out by)\b",
    r"not (?:built|configured)\b|unlicensed\b|no (?:compatible|supported)\b|version magic|unknown symbol",
    r"meta package\b",
    r"off (?:of )?the (?:pcie? )?bus\b|executable file|waiting for nvidia\b|unmatched\b|not discovered\b",
    r"(?:no|not) pre-installed\b|abi invalid\b|bad exit status|machine only has\b|invalid elf\b|not an elf\b",
    r"less than the minimum\b|gpu with pytorch\b|not active\b|inactive \(dead\)|not started\b|missing the\b",
    r"cpu(?:[ -]only)? (?:version|build|wheel|variant)s?\b|not been built\b|timed out\b|only supports nvidia\b",
    r"compiled with different\b|(?:is|are|was|were) missing\b",
)
"""Beginnings of words, in lower case."""
_ANYWHERE = (
    r"\(you have ",
    r"throttl|slowdown *: *active",
    r"shm[-_]size|shmem allocation|no runtime for|unknown (?:or invalid )?runtime|did you configure",
    r"libcuda reported version",
    r"nccl_p2p_disable=1|acsctl:\s*srcvalid|io_page_fault",
    r"fabric_manager_active\W{1,5}false|could not be allocated|outofmemory",
    r"blas ?= ?0\b|sxid|\(dkms apport\)|build_exclusive",
)
"""Parts of words, in lower case."""
_AS_WRITTEN = (
    r"[a-z]Error\b",
    r"Exception\b",
    r"Warning\b|\bWARN",
    r"\b(?:NVRM|Xid)\b",
    r"\b(?:CUDA_ERROR|CU[A-Z]{3,8}_STATUS|CUFFT|NVML_ERROR)_",
    r"\bcudaError|\bnccl[A-Z]\w{1,40}Error|ONNXRuntimeError",
    r"\bCUDA (?:error|failure|initialization)|\bsupports CUDA capabilities\b",
)
_ASKS_FOR_CUDA = (
    r"cuda\.is_available\(\)",
    r"\b(?:cudatoolkit|pytorch-cuda) ?=",
    r"download\.pytorch\.org/whl/(?:nightly/)?cu[0-9]",
    r"is_built_with_(?:cuda|gpu_support)\(\)|list_(?:physical|logical)_devices\(['\"]GPU",
    r"is_gpu_available|\bGPUs? (?:[Aa]vailable|is)\b",
    r"\bn_gpu_layers ?= ?-?[1-9]|(?:-ngl|--n-gpu-layers|--gpu-layers)[ =]-?[1-9]",
)
# The word boundary is matched once, not in every alternative, and case is not folded: four times as fast.
_TELLING_IN_LOWER_CASE = re.compile("|".join((rf"\b(?:{'|'.join(_WORDS)})", *_ANYWHERE)))
_TELLING_AS_WRITTEN = re.compile("|".join((*_AS_WRITTEN, *_ASKS_FOR_CUDA)))
_NOTHING_WRONG = re.compile(
    r"could not collect|no relevant packages|\b0 errors?\b|not affected$|errors? *: *(?:0|none|n/a)$|: *not active$|"
    r"^\W*no running processes found\W*$|not set>?$|^\W*ecc errors\W*$|failure occurred *: *no$",
    re.IGNORECASE,
)
_XML = re.compile(r"</?[a-z_]{1,80}[ >].*>$")


def recognise(paste: Paste) -> bool:
    return any(map(is_error, paste.statements))


def read(paste: Paste) -> Snapshot:
    """At most ``MOST_LINES`` error lines, identical ones once."""
    found: dict[str, int] = {}
    seen: set[str] = set()
    for place, line in enumerate(paste.lines):
        if line not in seen:
            seen.add(line)
            if is_error(line):
                found.setdefault(line.strip()[:LONGEST_LINE], paste.number(place))
    unlike = list(found) if len(found) <= MOST_LINES else _unlike(list(found))
    kept = unlike if len(unlike) <= MOST_LINES else unlike[:_HALF] + unlike[-_HALF:]
    return Snapshot(
        observed_errors=tuple(ObservedError(source=SOURCE, text=text, line=found[text]) for text in kept),
        runs=tuple(_rows_about_omitted(len(found), len(unlike), len(kept))),
    )


def _rows_about_omitted(found: int, unlike: int, kept: int) -> Iterator[ProbeRun]:
    """The rows about omitted lines: for similar lines a note, for others an open question."""
    if unlike < found:
        detail = f"{kept} of {found} lines that speak of a failure were kept"
        yield ProbeRun(name=NAME, status="ok", detail=detail)
    if kept < unlike:
        yield left_out_run(f"only the first and the last {_HALF} of {unlike} lines that speak of a failure were read")


def _unlike(lines: list[str]) -> list[str]:
    """The lines, with few of those that differ only in numbers, such as the warnings of a long run."""
    alike: dict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(lines):
        alike[_NUMBER.sub("#", line)].append(place)
    places = {place for of_one in alike.values() for place in (*of_one[:_ALIKE], *of_one[-_ALIKE:])}
    return [lines[place] for place in sorted(places)]


def is_error(line: str) -> bool:
    """Whether a line is about a failure; a line of XML never is, whatever its elements are called."""
    text = line.strip()[:LONGEST_LINE]
    telling = _TELLING_IN_LOWER_CASE.search(text.lower()) or _TELLING_AS_WRITTEN.search(text)
    return bool(telling) and not _NOTHING_WRONG.search(text) and not _XML.match(text)
