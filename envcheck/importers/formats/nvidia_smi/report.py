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
_MOST_LINES = 20_000
_DEEPEST = 12


@importer(
    "nvidia-smi -q",
    Rank.OUTPUT,
    recognise=lambda paste: any(_GPU.match(line.strip()) or _SECTION.match(line.strip()) for line in paste.lines),
)
def read_text(paste: Paste) -> Snapshot:
    """The text of ``nvidia-smi -q``, whole or in sections (``-d``): labels, indented by their depth, and values."""
    return snapshot_of(_TextBuilder().built(_report(paste)))


def _report(paste: Paste) -> Iterator[str]:
    """The lines of the first report, with or without a banner; a second report is not read."""
    begun = False
    for line in paste.lines[:_MOST_LINES]:
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


class _TextBuilder:
    """Builds the tree line by line; a foreign line ends the current GPU."""

    def __init__(self) -> None:
        self._root = Element("nvidia_smi_log")
        self._met: set[str] = set()
        self._open: list[tuple[int, Element]] = []
        """The GPU's element and its open sections, each with its indentation."""

    def built(self, lines: Iterator[str]) -> Element:
        for line in lines:
            self._take(line)
        return self._root

    def _take(self, line: str) -> None:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if gpu := _GPU.match(text):
            self._begin_gpu(indent, gpu[1])
        elif text == _NAMELESS:
            self._begin_gpu(min(indent, -1), "")
        elif self._open and (found := _LABEL.match(text)):
            while len(self._open) > 1 and self._open[-1][0] >= indent:
                self._open.pop()
            parent = self._open[-1][1]  # the section that it is indented below; values have no children
            element = self._put(parent, element_path(parent.name, found[1]), found[2])
            if element is not parent and len(self._open) < _DEEPEST:
                self._open.append((indent, element))
        elif head := _HEAD.match(text):
            self._put(self._root, element_path("", head[1]), head[2])
        else:
            self._open = []

    def _begin_gpu(self, indent: int, bus_id: str) -> None:
        if bus_id in self._met:
            self._open = []
            return
        self._met.add(bus_id)
        gpu = self._added(self._root, "gpu")
        gpu.attributes["id"] = bus_id
        self._open = [(indent, gpu)]

    def _put(self, parent: Element, path: str, value: str | None) -> Element:
        """Add a section or a value, and return the element for deeper lines.

        In a path of two steps, a value starts a new section (one for each process), while a section shares it.
        """
        above, _, name = path.rpartition("/")
        if above:
            parent = (parent.at(above) if value is None else None) or self._added(parent, above)
        if value is None:
            return self._added(parent, name)
        self._added(parent, name).pieces.append(value)
        return parent

    @staticmethod
    def _added(parent: Element, name: str) -> Element:
        element = Element(name, whole=True)
        parent.children.append(element)
        return element
