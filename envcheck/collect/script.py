"""Make the collector: one file of the standard library that runs the file and driver probes of this installation."""

from __future__ import annotations

import base64
import json
import zlib
from importlib.util import find_spec
from pathlib import Path

from envcheck import __version__, bundle
from envcheck.collect.catalog import all_probes

_KINDS = ("file", "driver")
_OTHERS = ("bench", "deep", "framework_bench", "kernels", "measuring", "trials")
"""Folders of probes that only measure or try."""
_FIELDS = ("name", "kind", "early", "seconds", "seconds_per_gpu", "scopes")
_LINE = 120


def collector() -> str:
    """The text of the collector."""
    program = (Path(__file__).parent / "collector.py").read_text(encoding="utf-8")
    parts = json.dumps(_parts(), separators=(",", ":"), sort_keys=True).encode()
    packed = base64.b64encode(zlib.compress(parts, 9)).decode()
    lines = "".join(f'    "{packed[begin : begin + _LINE]}"\n' for begin in range(0, len(packed), _LINE))
    head, mark, rest = program.partition('PARTS = ""\n')
    if not mark:
        raise AssertionError("the collector has no place for its parts")
    return f"{head}PARTS = (\n{lines})\n{rest}"


def _parts() -> dict[str, object]:
    folder = bundle.folder("probes")
    specs = [spec for spec in all_probes(folder) if spec.kind in _KINDS]
    files = _probe_files(folder, {spec.name for spec in specs})
    # The binding of NVML is one file of the standard library (nvidia-ml-py), under a BSD licence.
    binding = find_spec("pynvml")
    if binding is not None and binding.origin and binding.origin.endswith("pynvml.py"):
        files["lib/pynvml.py"] = Path(binding.origin).read_text(encoding="utf-8")
    return {
        "version": __version__,
        "bootstrap": (Path(__file__).parent / "bootstrap.py").read_text(encoding="utf-8"),
        "files": files,
        "probes": [{field: getattr(spec, field) for field in _FIELDS} for spec in specs],
    }


def _probe_files(folder: Path, names: set[str]) -> dict[str, str]:
    """The probes, and the folders that they import from."""
    found = {}
    for file in sorted(folder.rglob("*.py")):
        place = file.relative_to(folder)
        wanted = (
            place.stem in names or place.stem == "__init__" if len(place.parts) == 1 else place.parts[0] not in _OTHERS
        )
        if wanted:
            found[f"probes/{place.as_posix()}"] = file.read_text(encoding="utf-8")
    return found
