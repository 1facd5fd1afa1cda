"""Package lists of pip and conda: freeze, tables, ``pip show``, and tagged lines of collect_env.

Lists in a paste are seldom complete, so nothing is concluded from what they lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.utils import canonicalize_name

from envcheck.importers.kit.layouts import records
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, with_environment
from envcheck.snapshot import Distribution, Snapshot

NAME = "package list"
RANK = Rank.OUTPUT

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,60}[A-Za-z0-9])?"
_VERSION = r"[0-9]{1,4}(?:\.[0-9A-Za-z]{1,20}){0,6}(?:[+!][0-9A-Za-z._-]{1,60})?"

_EXTRAS = r"(?:\[[A-Za-z0-9_, -]{1,60}\])?"
_FREEZE = re.compile(rf"(?:\[(pip3?|conda)\]\s{{1,4}})?({_NAME}){_EXTRAS} ?== ?({_VERSION})(?:\s*[;#].*)?$")
_TAGGED_ROW = re.compile(rf"\[(pip3?|conda)\]\s{{1,4}}({_NAME})\s+({_VERSION})(?:\s+(\S+)(?:\s+(\S+))?)?$")
_ROW = re.compile(rf"({_NAME})\s+({_VERSION})(?:\s+(\S+)(?:\s+(\S+)(?:\s+(?:Cached|[0-9.]{{1,8}} ?[kMG]B))?)?)?$")
_EXPORTED = re.compile(rf"({_NAME})=({_VERSION})=([0-9A-Za-z._]{{1,60}})$")
"""A line of ``conda list --export``."""
_SHOW_NAME = re.compile(rf"[Nn]ame {{0,12}}[:=] \"?({_NAME})\"?$")
_SHOW_VERSION = re.compile(rf"[Vv]ersion {{0,12}}[:=] \"?({_VERSION})\"?$")
_SHOW = re.compile(rf"\bpip[0-9.]{{0,4}} show ({_NAME})\b(?! ?[\w-])")
_SATISFIED = re.compile(rf"Requirement already satisfied: ({_NAME}).{{0,300}}\(({_VERSION})\)$")
_CONFLICT = re.compile(
    rf".{{0,40}}?({_NAME}) ({_VERSION}) (?:requires|has requirement) .{{0,200}}"
    rf"but you(?:'ll)? have ({_NAME}) ({_VERSION})\b"
)
_WHEEL_SAID = re.compile(
    r"(?<![\w-])(?<!requires )(?<!needs )(?<!requirement )(nvidia-[a-z-]{2,24}-cu[0-9]{2}) "
    r"v?([0-9]{1,2}(?:\.[0-9]{1,4}){1,3})(?![\w.]*\w)"
)
"""One of NVIDIA's wheels with its version, in a sentence."""
_ADDED = re.compile(rf"[+~] {_NAME}==")
"""A line of uv's plan, in which a dash stands before what is removed."""
_HEADER = re.compile(r"(?:Package\s+Version\b|#\s*Name\s+Version\b)")
_RULE = re.compile(r"-{3,}[\s-]*$")
_CONDA_BUILD = re.compile(
    r"(?:[A-Za-z0-9.]{1,60}_){1,8}[0-9A-Za-z]{1,20}$|h[0-9a-f]{5,8}$|[0-9]{1,4}$|cpu$|cuda$|<pip>$|mkl$"
)

_GPU_SOFTWARE = re.compile(
    r"(?:py)?torch(?:vision|audio|text|data|ao|metrics)?$|(?:py)?torch-|pytorch-lightning$|tensorflow|jax|onnx|cupy|numpy$|"
    r"nvidia-|triton|vllm|xformers$|flash-attn|transformers$|bitsandbytes|deepspeed|paddlepaddle|mxnet|"
    r"faster-whisper$|ctranslate2$|cudatoolkit$|cpuonly$|exllama|minference$|"
    r"tensorrt-cu[0-9]{2}(?:-bindings|-libs)?$|(?:sglang|sgl-kernel|flashinfer-python|numba-cuda|cuda-python)$"
)
"""Packages whose row is accepted outside a table, where any two words may be adjacent."""
_MOST = 5_000
_NEAR = 2
"""Lines below a name among which its version must stand."""


def read(paste: Paste) -> Snapshot:
    found: dict[tuple[str, str | None], Distribution] = {}
    for package in _packages(paste):
        found.setdefault((package.name, package.channel), package)
        if len(found) >= _MOST:
            break
    return with_environment(environment(distributions=tuple(found.values()))) if found else Snapshot()


def _packages(paste: Paste) -> Iterator[Distribution]:
    in_table = False
    shown, since = "", 0
    plan = any(_ADDED.match(line.strip()) for line in paste.lines)
    for line in paste.lines:
        text = line.strip()
        if plan and text.startswith("- "):
            continue
        in_table = _still_in_table(text, in_table=in_table)
        name = _SHOW_NAME.match(text) or _SHOW.search(text)
        version = _SHOW_VERSION.match(text)
        since += 1
        if name:
            shown, since = name[1], 0
        elif version and shown and since <= _NEAR:
            yield _package(shown, version[1])
            shown = ""
        elif text:
            yield from _read_line(text, in_table=in_table)
    for listed, release in records(paste.text):
        if re.fullmatch(_NAME, listed) and re.fullmatch(_VERSION, release):
            yield _package(listed, release)


def _still_in_table(text: str, *, in_table: bool) -> bool:
    if _HEADER.match(text):
        return True
    return in_table and bool(_RULE.match(text) or _ROW.match(text) or text.startswith("#"))


def _read_line(text: str, *, in_table: bool) -> Iterator[Distribution]:
    """The packages in one line."""
    bare = text.lstrip("-+*• `").rstrip("`")
    if found := _FREEZE.match(bare):
        yield _package(found[2], found[3], tag=found[1])
    elif found := _EXPORTED.match(bare):
        yield _package(found[1], found[2], tag="conda", build=found[3])
    elif found := _TAGGED_ROW.match(bare):
        yield _package(found[2], found[3], tag=found[1], build=found[4], origin=found[5])
    elif found := _SATISFIED.match(text):
        yield _package(found[1], found[2])
    elif "but you" in text and (found := _CONFLICT.match(text)):
        yield _package(found[1], found[2])
        yield _package(found[3], found[4])
    elif (found := _ROW.match(bare)) and _believed(found[1], found[2], found[3], in_table=in_table):
        yield _package(found[1], found[2], build=found[3], origin=found[4])
    elif found := _WHEEL_SAID.search(text):
        yield _package(found[1], found[2])


def _believed(name: str, version: str, third: str | None, *, in_table: bool) -> bool:
    """Whether a row of two or more words describes a package and is not prose."""
    if in_table:
        return True
    # Names such as TORCH_CUDA_ARCH_LIST are variables.
    known = _GPU_SOFTWARE.match(canonicalize_name(name)) is not None and not (name.isupper() and "_" in name)
    return known and "." in version and (third is None or third[0] == "(" or bool(_CONDA_BUILD.match(third)))


def _package(
    name: str, version: str, *, tag: str | None = None, build: str | None = None, origin: str | None = None
) -> Distribution:
    """One package; ``origin`` is conda's channel column, ``pypi`` for packages that pip installed."""
    by_pip = origin in ("pypi", "<pip>") or build in ("<pip>", "pypi_0")
    conda = not by_pip and (tag == "conda" or (tag is None and bool(build) and bool(_CONDA_BUILD.match(build or ""))))
    normal = canonicalize_name(name)
    if normal == "pytorch" and not conda:
        normal = canonicalize_name("torch")
    return Distribution(
        source=SOURCE,
        name=normal,
        version=version,
        build=build if conda else None,
        channel="conda" if conda else "pip" if tag or by_pip else None,
    )
