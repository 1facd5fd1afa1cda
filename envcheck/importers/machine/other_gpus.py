"""GPUs of other makers in any text: a machine that has these alone has no use for builds with CUDA.

That a text names one says nothing about others; the rule that judges it asks whether the text shows an NVIDIA GPU.
"""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Snapshot, Told

NAME = "GPUs of other makers"
RANK = Rank.PROSE

_GPU = re.compile(
    r"\b(?:(?:AMD|ATI) )?Radeon(?:\(TM\)|™)?(?: (?:RX|Pro|HD|VII|R[579]|Vega)\b)?"
    r"(?: (?:[0-9]{1,4}[A-Z]{0,3}|XTX?|GRE|M|VII|Graphics)\b){0,3}"
    r"|\b[Rr][Xx] ?(?:[4-7][0-9]{2}0|[45][678]0|9[0-9]{3})(?: ?XTX?| ?M)?\b|\bVega ?(?:56|64|[0-9]{1,2})\b"
    r"|\b(?:AMD )?Instinct MI[0-9]{2,3}\w?|\bMI(?:50|60|100|210|250X?|300[AX]|325X)\b"
    r"|\bIntel(?:\(R\)|®| R| Corporation)?(?: integrated)? (?:Arc|UHD|HD|[Il]ri(?:s|sh)|Xe|[Gg]raphics)\b(?:\(R\))?"
    r"(?: (?:Graphics|Xe|Plus|Pro|[A-Z]?[0-9]{3,4}[A-Z]?)\b){0,3}"
    r"|\bArc A[357][0-9]0M?\b"
    r"|\b(?:Apple|Mac(?:Book| ?Mini| Studio)\b[\w ]{0,12}) M[1-5](?: (?:Pro|Max|Ultra))?\b"
    r"|\bgfx(?:9|10|11|12)[0-9]{1,2}[0-9a-f]?\b"
    r"|(?<=[Hh]ave )(?:only )?(?:an? )?(?:AMD|amd|Intel|intel|ATI) (?:GPU|gpu|(?:[Gg]raphics |[Vv]ideo )?card)\b"
    r"|\b(?:AMD|amd|Intel|intel|ATI) (?:GPU|gpu|(?:[Gg]raphics |[Vv]ideo )?card)"
    r"(?= (?:that )?(?:I|we) (?:am |are )?(?:us|hav))"
    r"|(?<=using )(?:AMD|amd|ATI) (?:hardware|GPUs?|gpus?|cards?)\b"
    r"|(?<=[Mm]y )(?:AMD|amd|Intel|intel|ATI) (?:GPU|gpu|(?:[Gg]raphics |[Vv]ideo )?card)\b"
    r"|\bMTT S[0-9]{2,4}\b|\bAscend ?(?:310|910)\w{0,3}\b|\bMLU[0-9]{3}\b|\bMetaX C[0-9]{3}\b",
    re.ASCII,
)
_MAC = re.compile(
    r"\b(?:mac ?os(?: ?x)?|os ?x|mac ?book(?: (?:pro|air))?|imac|mac(?: (?:mini|studio|pro))?)\b"
    r"(?![ -]?(?:address|\d*:))|\bapple[ -](?:silicon|seliicon|slicon|m[1-5])\b"
    r"|/private/var/folders/|/opt/homebrew/|/Users/[^/\s]{1,40}/(?:(?:mini|ana)conda|miniforge|\.pyenv|Library)",
    re.IGNORECASE | re.ASCII,
)
"""A Mac by name: since macOS 10.14 none has a GPU that CUDA can use."""
_SIGNS_OF_MAC = ("mac", "os x", "osx", "apple", "/private/var/", "/opt/homebrew/", "/users/")
"""One of these stands in each of them."""
_NO_MAC_ALONE = re.compile(
    r"linux|ubuntu|debian|centos|windows|colab|\bWSL|\bremote|\bcluster|\bservers?\b|\bcloud\b|\bEC2\b|/home/|\bssh\b"
    r"|\bdriver version\b|\b10\.(?:[5-9]|1[0-3])\b|high sierra|\bany platform\b",
    re.IGNORECASE,
)
"""Where a text is about several systems, or about a Mac of the years in which Macs had GPUs of NVIDIA."""
_ASIDE = re.compile(
    r"\b(?:supports?|supported|or|requires?|only|instead|not|no|unlike|if|e\.g\.|compared?|than)\b"
    r"(?!.{0,40}\b(?:I have|I use|we have|my)\b)[^.;]{0,40}$",
    re.IGNORECASE,
)
_MAC_ASIDE = re.compile(
    r"\b(?:supports?|supported|requires?|if|unlike|e\.g\.|than|or|for|use)\b[^.;,]{0,25}$", re.IGNORECASE
)
_NVIDIA = re.compile(r"\b(?:GeForce|RTX|GTX|Quadro|Tesla|TITAN|Jetson|nvidia-smi)\b|\bNVIDIA [A-Z]{0,4}[0-9]")
_TPU = re.compile(
    r"\b(?:on|with|use|using|uses|run\w*) (?:a |the |an? \w{2,10} |my |Google |Kaggle |Colab ){0,3}(?:Cloud )?TPUs?\b"
    r"|\bTPU ?(?:v[2-7]\w{0,2}(?:-[0-9]{1,4})?|VMs?|pods?|nodes?|runtime)\b|\bPJRT_DEVICE=TPU\b|\bjax\[tpu\]"
)
_LONGEST_LINE, _LONGEST_TEXT = 600, 1 << 20


def read(paste: Paste) -> Snapshot:
    if _NVIDIA.search(paste.text[:_LONGEST_TEXT]):
        return Snapshot()
    if _is_on_tpu(paste):
        return Snapshot(told=Told(source=SOURCE, on_tpu=True))
    name = _named(paste)
    return Snapshot(told=Told(source=SOURCE, other_gpu=name)) if name else Snapshot()


def _is_on_tpu(paste: Paste) -> bool:
    """Whether a text is about a program on a TPU."""
    if "TPU" not in paste.text and "[tpu]" not in paste.text:
        return False
    return any(_TPU.search(line[:_LONGEST_LINE]) for line in paste.statements)


def _named(paste: Paste) -> str | None:
    """The first GPU of another maker."""
    for line in paste.statements:
        found = _GPU.search(line[:_LONGEST_LINE])
        if found and not _ASIDE.search(line[: found.start()]):
            return found[0].strip()
    mac = _mac(paste)
    return mac if mac and not _NO_MAC_ALONE.search(paste.text[:_LONGEST_TEXT]) else None


def _mac(paste: Paste) -> str | None:
    """The Mac that a text is about."""
    if not any(map(paste.text.lower().__contains__, _SIGNS_OF_MAC)):
        return None
    for line in paste.statements:
        found = _MAC.search(line[:_LONGEST_LINE])
        if found and not _MAC_ASIDE.search(line[: found.start()]):
            return f"a Mac ({found[0].strip()})"
    return None
