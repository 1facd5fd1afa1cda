"""Tables of what a process is given: environment variables, cache folders, limits."""

import re
from typing import Literal

import msgspec

from envcheck.knowledge.tables import Row


class VariableOption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A setting within the value of a variable (``max_split_size_mb:128``)."""

    name: str
    pattern: str = ""  # A regular expression for the whole of what may stand behind the name; empty: anything
    versions: str = ""  # The releases of the reader that know it, as a specifier; empty: all


class VariableEffect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What certain values of a variable do to programs."""

    values: str  # A regular expression for the whole value
    on: Literal["speed", "precision", "correctness", "gpu", "memory", "output"]
    """``gpu``: whether the reader, a framework, uses the GPU at all; ``output``: what is printed or written."""
    status: Literal["note", "warn"] = "note"
    text: str  # What it does, as the rest of a sentence that begins with the variable and its value
    figures: tuple[str, ...] = ()  # Measured quantities that it can lower, a precision behind a slash: ``gemm/tf32``


class VariableRow(Row, frozen=True, kw_only=True):
    """An environment variable, and what reads it."""

    name: str
    reader: tuple[str, ...]
    """Frameworks that read it, as patterns (``cupy*``); ``cuda`` for every program that uses CUDA, ``nccl`` for those
    that use several GPUs by NCCL, ``loader`` and ``python`` for every program and every Python."""
    versions: str = ""  # The releases of the reader that it is about, as a specifier; empty: all
    meaning: str  # What it sets, as a sentence
    valid: str = ""  # The valid values, in words
    pattern: str = ""  # A regular expression for the whole of a valid value; empty: any
    open_values: bool = False  # Whether the reader may refuse a value that fits: only what it says decides then
    options: tuple[VariableOption, ...] = ()  # Where the value is a list of settings: all that are known
    assign: str = ":"
    """What stands between a setting and its value; settings are separated by commas, or blanks where this is ``=``."""
    known: str = ""  # The releases of the reader whose settings are all listed, as a specifier; others may have more
    leads_to: Literal["", "file", "folder", "program"] = ""  # What the value must lead to
    names: Literal["", "interface", "adapter", "device", "host"] = ""
    """What the value names on this machine: network interfaces, InfiniBand adapters, either of them, or a host."""
    several: bool = False  # Whether the value is a list of paths
    weight: Literal["note", "warn"] = "warn"  # How much it matters that it leads nowhere
    invalid: Literal["ignored", "start", "import", "first-use", "cpu"] = "ignored"
    """What an invalid value, or a path that leads nowhere, does: nothing; CUDA does not start; the reader cannot be
    imported; it fails at its first use of the GPU; or it falls back to the CPU."""
    codes: tuple[int, ...] = ()  # What cuInit answers then
    said: tuple[str, ...] = ()  # Regular expressions for what the reader says then: words that nothing else prints
    hinted: tuple[str, ...] = ()  # The same for words that other causes print too: they count only where it is set
    effects: tuple[VariableEffect, ...] = ()
    gpus: int = 1  # The least number of visible GPUs for which it matters
    change: str = ""  # What to do, as a sentence; empty: unset it

    @property
    def id(self) -> str:
        return "/".join(part for part in ("variable", self.name, "+".join(self.reader), self.versions) if part)


class CacheRow(Row, frozen=True, kw_only=True):
    """A folder that a program makes, and writes in, when it runs on the GPU."""

    id_of = "cache/{0.name}"
    name: str
    title: str  # What lies there, in words
    reader: tuple[str, ...]
    """The frameworks and distributions that write there, as patterns; ``cuda`` for every program that uses CUDA."""
    places: tuple[str, ...]
    """Where it is: the first whose variable is set. ``$NAME`` is a variable, ``$NAME --flag`` a flag in one,
    ``$TEMPORARY`` Python's temporary folder, ``~`` home, ``{user}`` the user's name; else a path."""
    existing: bool = False  # Whether a variable that leads to no folder is passed over
    off: dict[str, str] = {}  # Variables, each with the value by which the folder is not used
    runs: bool = False  # Whether code is loaded from it, which ``noexec`` forbids
    status: Literal["fail", "warn", "note"] = "warn"  # How bad it is; where a variable names it, a warning at least
    effect: str  # What happens where it cannot be written, as a sentence

    @property
    def variables(self) -> frozenset[str]:
        """The variables that decide where it is, and whether it is used."""
        named = {re.split("[/ ]", place[1:])[0] for place in self.places if place.startswith("$")}
        return frozenset(named - {"TEMPORARY"} | self.off.keys())


class LimitRow(Row, frozen=True, kw_only=True):
    """A limit of the operating system below which programs on the GPU fail."""

    id_of = "limit/{0.name}-{0.least}"
    name: str  # ``address-space``, ``locked-memory``, ``open-files``, ``processes`` …; ``memory`` is the group's
    title: str  # The limit, in words
    least: int  # A lower one is reported
    fatal: int = -1  # With this or less the usual frameworks do not start
    unit: Literal["", "bytes"] = ""  # Of the limit; empty where it counts
    beside: Literal["", "infiniband"] = ""  # The hardware without which it does not matter
    codes: tuple[int, ...] = ()  # What cuInit answers where the limit is too low
    status: Literal["warn", "note"] = "warn"  # How bad it is; where cuInit answers so, it is a failure
    effect: str  # What fails, as a sentence
    flag: str = ""  # How Docker and Podman raise it: ``--ulimit memlock=-1``
    shell: str = ""  # How a shell raises it, and limits.conf calls it: ``ulimit -l unlimited``, ``memlock``
