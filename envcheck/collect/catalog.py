"""The probes and their headers. A header is a literal: it is parsed, and its file is never imported here."""

from __future__ import annotations

import ast
import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from envcheck import bundle
from envcheck.errors import EnvcheckError
from envcheck.model.checks import Scope
from envcheck.model.snapshot import Snapshot
from envcheck.text.lazy import lazy_pattern

Text = Annotated[str, msgspec.Meta(min_length=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]

_USUAL: dict[str, dict[str, Any]] = {
    "": {"kind": "file", "uses": "files", "scopes": ["node", "container", "env"]},
    "bench": {"kind": "bench", "uses": "gpu", "per": "gpu", "scopes": ["node", "env"], "fills": ["measurements"]},
    "deep": {"kind": "deep", "uses": "gpu", "scopes": ["env"], "fills": ["environments.frameworks.trial"]},
}
"""What a header need not say, by the folder of its probe; folders that are not named here hold what probes share."""

_HEADER = lazy_pattern(r"^PROBE = \{.*?\}(?: *#[^\n]*)?$", re.DOTALL | re.MULTILINE)


class ProbeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A probe as its header declares it."""

    name: str  # The name of its file, after that of its folder: ``nvml``, ``deep.torch``
    title: Text
    kind: Literal["file", "driver", "verify", "deep", "bench"]
    early: bool = False  # Whether it must end before the first NVML or CUDA call; only file probes may be early
    seconds: Seconds  # Time allowed, in seconds
    seconds_per_gpu: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # Additional time for each NVIDIA GPU on the PCI bus
    uses: Literal["files", "driver", "gpu", "link", "all"]
    tries: tuple[Text, ...] = ()
    """For a probe that runs in an environment: the names of the ``Framework`` records that it tries, each in a separate
    child; without names it runs once for each environment.
    """
    per: Literal["gpu", "machine"] = "machine"  # Whether a bench probe gets a child for each GPU, or one for all
    deep: bool = False  # Whether a deep check runs a bench probe too, without timing: it shows that a library works
    runs_in: Literal["envcheck", "environment"] = "envcheck"
    """Whose interpreter runs a bench probe: envcheck's own, or that of the judged environment, whose packages it
    measures."""
    asked: Literal["", "frameworks"] = ""
    """The option without which a bench probe in the environment does not run, unless one of its quantities is named;
    empty: it runs with ``--full``."""
    scopes: Annotated[tuple[Scope, ...], msgspec.Meta(min_length=1)]  # The scopes that need its facts
    fills: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]  # Paths of the Snapshot that it fills


@cache
def all_probes() -> tuple[ProbeSpec, ...]:
    """The probes that envcheck ships."""
    return probes_in(bundle.folder("probes"))


def probes_in(place: Path) -> tuple[ProbeSpec, ...]:
    """The probes of a folder and of its folders ``bench`` and ``deep``, by name.

    Raises EnvcheckError, naming the file, for a header that is missing or malformed.
    """
    found = []
    for within in _USUAL:
        with suppress(FileNotFoundError):
            names = os.listdir(place / within)  # noqa: PTH208  most are not wanted, and a Path for each takes its time
            wanted = (place / within / name for name in names if name.endswith(".py") and name[0] != "_")
            found += [read_spec(file, within) for file in wanted]
    return tuple(sorted(found, key=lambda spec: spec.name))


def read_spec(file: Path, within: str = "") -> ProbeSpec:
    """The header of one probe, in the folder ``within`` of the probes; raise EnvcheckError if it is unusable."""
    name = f"{within}.{file.stem}" if within else file.stem
    try:
        header = _literal(file.read_text(encoding="utf-8"))
        usual = dict(_USUAL[within])
        if within == "bench" and "tries" in header:  # what is tried is in the environment
            usual["runs_in"] = "environment"
            if "asked" in header and "per" not in header:  # it begins with what a deep check does
                usual["fills"] = ["measurements", "environments.frameworks.trial"]
        spec = msgspec.convert({**usual, **header, "name": name}, ProbeSpec)
        unknown = [path for path in spec.fills if path.partition(".")[0] not in Snapshot.__struct_fields__]
        faults = (
            ("name" in header, "its name is the name of its file and cannot be set"),
            (not spec.name.rpartition(".")[2].isidentifier(), "the name of the file is not a Python identifier"),
            (bool(within) and spec.kind != within, f"the folder {within} holds probes of kind {within!r} only"),
            (spec.early and spec.kind != "file", "only a probe of kind 'file' can be early"),
            (
                bool(spec.tries) and spec.kind != "deep" and spec.runs_in != "environment",
                "only a probe that runs in an environment tries frameworks",
            ),
            *(
                (key in header and spec.kind != "bench", f"only a probe of kind 'bench' has the key {key!r}")
                for key in ("per", "runs_in", "deep", "asked")
            ),
            (
                bool(spec.asked) and spec.runs_in != "environment",
                "only a probe that runs in an environment is asked for",
            ),
            (bool(unknown), f"no section of the Snapshot holds {next(iter(unknown), '')!r}"),
        )
        problem = next((text for found, text in faults if found), None)
    except SyntaxError as error:
        problem = f"{error.msg} (line {error.lineno})"
    except (OSError, ValueError, TypeError, RecursionError) as error:
        problem = str(error)
    if problem:
        raise EnvcheckError(f"the probe {file} has no usable header PROBE: {problem}")
    return spec


def _literal(text: str) -> dict[str, Any]:
    usual, statements = _HEADER.search(text), list[ast.stmt]()
    with suppress(SyntaxError):
        statements = ast.parse(usual[0]).body if usual else []
    # To parse the whole file takes many times as long.
    for node in statements or ast.parse(text).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="PROBE")], value=ast.Dict() as value):
                try:
                    header: dict[Any, Any] = ast.literal_eval(value)
                except ValueError:
                    raise ValueError("it holds something that is not a literal") from None
                wrong = next((key for key in header if not isinstance(key, str)), None)
                if wrong is not None:
                    raise ValueError(f"the key {wrong!r} is not text")
                return header
    raise ValueError("there is no assignment of a dict display to PROBE")
