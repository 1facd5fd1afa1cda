"""Build steps of the wheel: the compatibility matrix as one JSON file, and GPU code for machines without NVRTC."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MOST_MAJORS = (5, 6, 7, 8, 9, 10, 11, 12)
"""A cubin runs on every later minor of its major."""


class WheelSteps(BuildHookInterface[Any]):
    """Puts what is made into a wheel; an editable installation reads the sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        self.scratch = tempfile.TemporaryDirectory(prefix="envcheck-build-")
        sys.path.insert(0, self.root)
        try:
            made = {
                **compiled_matrix(Path(self.root), Path(self.scratch.name)),
                **prepared_code(Path(self.scratch.name)),
            }
        finally:
            sys.path.remove(self.root)
        build_data["force_include"].update(made)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if hasattr(self, "scratch"):
            self.scratch.cleanup()


def compiled_matrix(root: Path, scratch: Path) -> dict[str, str]:
    """``envcheck/matrix/compiled.json``, as file -> place in the wheel."""
    from envcheck.compat.compiling import COMPILED, compile_folder  # noqa: PLC0415 - not installed yet

    document = compile_folder(root / "matrix")
    file = scratch / COMPILED
    file.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    return {str(file): f"envcheck/matrix/{COMPILED}"}


def prepared_code(scratch: Path) -> dict[str, str]:
    """GPU code by the NVRTC libraries of the build environment; nothing where it has none.

    For each variant a cubin for the first minor of each major, and PTX for what is newer than all of these.
    """
    from probes._gpu_kernels import FOLDER, STANDARD, prepared_name  # noqa: PLC0415 - not installed yet
    from probes._gpu_variants import variants  # noqa: PLC0415

    compilers = nvrtc_libraries()
    made: dict[str, str] = {}
    for variant in variants() if compilers else ():
        source = Path(FOLDER, f"{variant.name}.cu").read_text(encoding="utf-8")
        options = (STANDARD, *variant.options)
        for number in numbers(variant.least):
            compiler = next((each for each in compilers if number in each.architectures()), None)
            if compiler is None:
                continue
            outputs = {f"sm_{number}.cubin": compiler.cubin(source, f"{variant.name}.cu", f"sm_{number}", options)}
            if number == numbers(variant.least)[0]:
                ptx = compiler.ptx(source, f"{variant.name}.cu", f"compute_{number}", options)
                outputs[f"compute_{number}.ptx"] = ptx.rstrip(b"\0")
            for ending, code in outputs.items():
                file = scratch / f"{prepared_name(variant.name, variant.options)}.{ending}"
                file.write_bytes(code)
                made[str(file)] = f"envcheck/probes/kernels/prepared/{file.name}"
    return made


def numbers(least: tuple[int, int]) -> list[int]:
    """The architectures that a variant is compiled for: 53, 60, 70 ..., from the first that can run it."""
    first = 10 * least[0] + least[1]
    return [first, *(10 * major for major in MOST_MAJORS if 10 * major > first)]


def nvrtc_libraries() -> list[Any]:
    """The NVRTCs of the wheels that the building interpreter sees, the oldest first: its code runs on older drivers."""
    from probes._gpu_nvrtc import Nvrtc  # noqa: PLC0415 - not installed yet

    files = {file for entry in sys.path for file in Path(entry or ".").glob("nvidia/*/lib/libnvrtc.so.*")}
    found = [Nvrtc(str(file)) for file in sorted(files) if "alt" not in file.name]
    return sorted(found, key=lambda each: tuple(map(int, each.version.split("."))))
