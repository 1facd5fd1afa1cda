"""``nvidia-smi -q -x`` and ``nvidia-smi -q``: the full report, in every version of its format.

The text has the contents of the XML under other names, so both are read into the same tree. nvidia-smi prints "N/A" for
what the GPU does not support; such fields go to ``Gpu.not_supported``.
"""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.importers.formats.nvidia_smi.gpu import snapshot_of
from envcheck.importers.formats.nvidia_smi.tree import Element, element_path, parse
from envcheck.importers.importer import Rank, UnreadablePiece, importer
from envcheck.importers.paste import Paste
from envcheck.model.snapshot import Snapshot
from envcheck.text.lazy import lazy_pattern

_ROOT = "nvidia_smi_log"


@importer("nvidia-smi -q -x", Rank.OUTPUT, recognise=lambda paste: f"<{_ROOT}" in paste.text)
def read_xml(paste: Paste) -> Snapshot:
    root, problem = parse(paste.text, _ROOT)
    snapshot = snapshot_of(root) if root else Snapshot()
    if problem:
        raise UnreadablePiece(problem, snapshot)
    return snapshot


_BANNER = lazy_pattern(r"=+ ?NVSMI LOG ?=+$")
_GPU = lazy_pattern(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])$")
_SECTION = lazy_pattern(
    r"(?:Clocks (?:Event|Throttle) Reasons|Remapped Rows|ECC Errors|(?:GPU )?Power Readings|Fabric|MIG Mode"
    r"|GPU Link Info)$"
)
"""A section that is quoted without its GPU: that is one, as nobody quotes one of several without its name."""
_HEAD = lazy_pattern(r"(Driver Version|CUDA Version|KMD Version|CUDA UMD Version|Attached GPUs) +: (.{1,40})$")
_LABEL = lazy_pattern(r"([A-Z][A-Za-z0-9 ./()-]{0,60}?)(?: +: ?(.*))?$")
_NAMELESS = "GPU without its heading"


@importer(
    "nvidia-smi -q",
    Rank.OUTPUT,
    recognise=lambda paste: any(_GPU.match(line.strip()) or _SECTION.match(line.strip()) for line in paste.lines),
)
def read_text(paste: Paste) -> Snapshot:
    """The text of ``nvidia-smi -q``, whole or in sections (``-d``): labels, indented by their depth, and values."""
    # The labels and values as the tree that the XML is; a foreign line ends the current GPU.
    root = Element(_ROOT)
    seen: set[str] = set()
    sections: list[tuple[int, Element]] = []  # the GPU's element and its open sections, each with its indentation
    for line in _report(paste):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        gpu = _GPU.match(text)
        if gpu or text == _NAMELESS:
            bus_id = gpu[1] if gpu else ""
            sections = []
            if bus_id not in seen:
                seen.add(bus_id)
                element = _added(root, "gpu")
                element.attributes["id"] = bus_id
                sections = [(indent if gpu else min(indent, -1), element)]
        elif sections and (found := _LABEL.match(text)):
            while len(sections) > 1 and sections[-1][0] >= indent:
                sections.pop()
            parent = sections[-1][1]  # the section that it is indented below; values have no children
            element = _put(parent, element_path(parent.name, found[1]), found[2])
            if element is not parent and len(sections) < 12:
                sections.append((indent, element))
        elif head := _HEAD.match(text):
            _put(root, element_path("", head[1]), head[2])
        else:
            sections = []
    return snapshot_of(root)


def _report(paste: Paste) -> Iterator[str]:
    """The lines of the first report, with or without a banner; a second report is not read."""
    begun = False
    for line in paste.lines[:20_000]:
        if _BANNER.search(line):
            if begun:
                return
            begun = True
        elif line.strip():
            begun = begun or bool(_GPU.match(line.strip()))
            if not begun and _SECTION.match(line.strip()):
                begun = True
                yield f"{line[: len(line) - len(line.lstrip())][:-1]}{_NAMELESS}"
            yield line


def _put(parent: Element, path: str, value: str | None) -> Element:
    """Add a section or a value, and return the element for deeper lines.

    In a path of two steps, a value starts a new section (one for each process), while a section shares it.
    """
    above, _, name = path.rpartition("/")
    if above:
        parent = (parent.at(above) if value is None else None) or _added(parent, above)
    if value is None:
        return _added(parent, name)
    _added(parent, name).pieces.append(value)
    return parent


def _added(parent: Element, name: str) -> Element:
    element = Element(name, whole=True)
    parent.children.append(element)
    return element
