"""GPUs and what is around them: ``lspci``, GPUs of other makers, the Fabric Manager, and copies between GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from envcheck.importers.formats.nvidia_smi.fields import MOST_GPUS
from envcheck.importers.importer import Rank, importer
from envcheck.importers.paste import SOURCE, Paste
from envcheck.model.snapshot import Fabric, Gpu, Kernel, Listing, Snapshot, Told

_DEVICE = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (\S.{3,200})$", re.IGNORECASE)
_PCI_GPU = re.compile(
    r"(?:VGA compatible controller|3D controller|Display controller)(?: \[[0-9a-f]{4}\])?: NVIDIA Corporation\b"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\[((?:GeForce|Tesla|Quadro|TITAN|NVS|GRID|RTX|[A-Z][0-9]{1,3}[A-Z]?\b)[^\]\n]{0,80})\]")
_PLAIN = re.compile(r"\s(?P<name>(?:GeForce|Tesla|Quadro|TITAN|A[0-9]+|H[0-9]+)\b[^\[(\n]{0,60})")
_IDS = re.compile(r"\[(10de:[0-9a-f]{4})\]", re.IGNORECASE)
_IN_USE = re.compile(r"Kernel driver in use: ([a-z0-9_-]{2,30})")
_SEARCH = re.compile(r".{0,80}[$#>%] ?(?:sudo )?lspci\b[^|]{0,30}\| ?grep\b.{0,20}\bnvidia\b.{0,3}$", re.IGNORECASE)
_PROMPT = re.compile(r".{0,80}?[$#>%] ?[a-z]\w")
_LONGEST_PCI_LINE = 300
_MOST_LINES_OF_A_DEVICE = 40


def _lists_pci(paste: Paste) -> bool:
    if "NVIDIA Corporation" in paste.text:
        return next(_pci_gpus(paste), None) is not None
    # The next command stands below a search for NVIDIA, which printed nothing.
    return "lspci" in paste.text and any(
        _SEARCH.match(line[:_LONGEST_PCI_LINE]) and _PROMPT.match(below[:_LONGEST_PCI_LINE])
        for line, below in pairwise(paste.lines)
        if "lspci" in line
    )


@importer("lspci", Rank.OUTPUT, recognise=_lists_pci)
def read_lspci(paste: Paste) -> Snapshot:
    found = tuple(gpu for gpu, _ in zip(_pci_gpus(paste), range(MOST_GPUS), strict=False))
    drivers = {gpu.kernel_driver for gpu in found}
    kernel = Kernel(source=SOURCE, nouveau_loaded=True) if "nouveau" in drivers else None
    return Snapshot(gpus=Listing(items=found, complete=not found), kernel=kernel)


def _pci_gpus(paste: Paste) -> Iterator[Gpu]:
    for place, line in enumerate(paste.lines):
        device = _DEVICE.match(line.strip()[:_LONGEST_PCI_LINE])
        found = _PCI_GPU.search(device[2]) if device else None
        if device and found:
            below = paste.lines[place + 1 : place + _MOST_LINES_OF_A_DEVICE]
            own = takewhile(lambda text: not _DEVICE.match(text.strip()[:_LONGEST_PCI_LINE]), below)
            driver = next((used[1] for text in own if (used := _IN_USE.search(text[:_LONGEST_PCI_LINE]))), None)
            yield _pci_gpu(device[1], found["rest"], driver)


def _pci_gpu(place: str, rest: str, driver: str | None) -> Gpu:
    place = place.lower() if place.count(":") > 1 else f"0000:{place.lower()}"
    named = _NAMED.search(rest) or _PLAIN.search(rest)
    ids = _IDS.search(rest)
    return Gpu(
        source=SOURCE,
        pci_bus_id=place,
        name=named[1].strip() if named and "/" not in named[1] else None,  # slashes divide models that share a chip
        pci_device_id=ids[1].lower() if ids else None,
        kernel_driver=driver,
    )


_OTHER_GPU = re.compile(
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


@importer("GPUs of other makers", Rank.PROSE)
def read_other_gpus(paste: Paste) -> Snapshot:
    """GPUs of other makers in any text: a machine that has these alone has no use for builds with CUDA. That a text
    names one says nothing about others; the rule that judges it asks whether the text shows an NVIDIA GPU.
    """
    if _NVIDIA.search(paste.text[:_LONGEST_TEXT]):
        return Snapshot()
    of_tpu = "TPU" in paste.text or "[tpu]" in paste.text
    if of_tpu and any(_TPU.search(line[:_LONGEST_LINE]) for line in paste.statements):
        return Snapshot(told=Told(source=SOURCE, on_tpu=True))
    for line in paste.statements:
        found = _OTHER_GPU.search(line[:_LONGEST_LINE])
        if found and not _ASIDE.search(line[: found.start()]):
            return Snapshot(told=Told(source=SOURCE, other_gpu=found[0].strip()))
    mac = _mac(paste)
    if mac is None or _NO_MAC_ALONE.search(paste.text[:_LONGEST_TEXT]):
        return Snapshot()
    return Snapshot(told=Told(source=SOURCE, other_gpu=mac))


def _mac(paste: Paste) -> str | None:
    """The Mac that a text is about."""
    if not any(map(paste.text.lower().__contains__, _SIGNS_OF_MAC)):
        return None
    for line in paste.statements:
        found = _MAC.search(line[:_LONGEST_LINE])
        if found and not _MAC_ASIDE.search(line[: found.start()]):
            return f"a Mac ({found[0].strip()})"
    return None


_UNIT = re.compile(r"nvidia-fabricmanager(?:\.service)?\b", re.IGNORECASE)
_STATE = re.compile(r"\bActive: (?P<state>active \(running\)|inactive|failed)\b", re.IGNORECASE)
_NEAR = 5
"""Lines from the name of a unit on among which its state stands."""


@importer("systemd service", Rank.OUTPUT)
def read_service(paste: Paste) -> Snapshot:
    """What ``systemctl status`` says of the Fabric Manager: a unit's name, and its state some lines below."""
    states = [
        found["state"].lower().startswith("active")
        for place, line in enumerate(paste.lines)
        if "abricmanager" in line and _UNIT.search(line)
        for near in paste.lines[place : place + _NEAR]
        if (found := _STATE.search(near))
    ]
    return Snapshot(fabric=Fabric(source=SOURCE, manager_running=states[-1])) if states else Snapshot()


_TITLE = re.compile(r"(Uni|Bi)directional P2P=(Disabled|Enabled) Bandwidth\b.*\(GB/s\)")
_HEADER = re.compile(r"D\\D(?:\s+[0-9]{1,3}){1,64}$")
_ROW = re.compile(r"([0-9]{1,3})((?:\s+[0-9]{1,6}\.[0-9]{1,4}){1,64})$")
_LONGEST_TABLE_LINE = 1_000

_Table = dict[tuple[int, int], float]
"""GB/s by the two GPUs."""


@importer("p2pBandwidthLatencyTest", Rank.OUTPUT)
def read_peer_copies(paste: Paste) -> Snapshot:
    """The pair of GPUs that loses most by direct copies, or gains least."""
    staged: dict[str, _Table] = {}
    direct: dict[str, _Table] = {}
    for way, switch, table in _tables(paste.lines):
        (direct if switch == "Enabled" else staged).setdefault(way, table)
    pairs = [
        (table[pair], without)
        for way, table in direct.items()
        for pair, without in staged.get(way, {}).items()
        if pair in table and pair[0] != pair[1] and without > 0
    ]
    if not pairs:
        return Snapshot()
    worst = min(pairs, key=lambda pair: pair[0] / pair[1])
    return Snapshot(told=Told(source=SOURCE, direct_copies=worst[0], staged_copies=worst[1]))


def _tables(lines: Sequence[str]) -> Iterator[tuple[str, str, _Table]]:
    """The title's two words and the figures of each table."""
    for place, line in enumerate(lines):
        title = _TITLE.search(line[:_LONGEST_TABLE_LINE]) if "P2P=" in line else None
        if title is None:
            continue
        table: _Table = {}
        for below in lines[place + 1 :]:
            text = below[:_LONGEST_TABLE_LINE].strip()
            row = _ROW.search(text)
            if row:
                table |= {(int(row[1]), other): float(value) for other, value in enumerate(row[2].split())}
            elif not _HEADER.search(text):
                break
        yield title[1], title[2], table
