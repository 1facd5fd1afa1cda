"""Build steps of the wheel: the folders that lie beside the package, the compatibility matrix and what pages of rules
cite and show as JSON, and GPU code for machines without NVRTC. ``gpu-envcheck-matrix`` has the matrix alone.

A wheel that is built in the ordinary way holds no GPU code: envcheck then compiles its kernels with the NVRTC that it
finds. A release holds code too. Build it in an environment with two NVRTC wheels, the older one for GPUs up to 7.2:

    python3 -m venv build && build/bin/pip install build hatchling nvidia-cuda-nvrtc-cu12==12.9.* nvidia-cuda-nvrtc
    ENVCHECK_REQUIRE_PREPARED=1 build/bin/python -m build --wheel --no-isolation

With that variable the build fails, with the reason, if any of the code is missing. ``.ci/run`` compiles every kernel
for an old and a new architecture, ``.ci/lab`` for every one that it is claimed for, with each NVRTC. A new kernel or
option goes into ``probes/measuring/variants.py``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MOST_MAJORS = (5, 6, 7, 8, 9, 10, 11, 12)
"""A cubin runs on every later minor of its major."""
ENDINGS = {"cubin": "sm_{}.cubin", "ptx": "compute_{}.ptx"}
FOLDERS = ("probes", "docs/rules")
"""What lies beside the package in the tree, and in it in the wheel, which has rows only as they are compiled."""
DATA = {
    "docs/man/envcheck.1": "share/man/man1/envcheck.1",
    "docs/completions/envcheck": "share/bash-completion/completions/envcheck",
    "docs/completions/_envcheck": "share/zsh/site-functions/_envcheck",
    "docs/completions/envcheck.fish": "share/fish/vendor_completions.d/envcheck.fish",
}
"""What programs look for below the prefix of an installation."""
ROOT = Path(__file__).parent
REQUIRE = "ENVCHECK_REQUIRE_PREPARED"
"""Variable under which a wheel that lacks any of the prepared code is not built."""


class WheelSteps(BuildHookInterface[Any]):
    """Puts what is made into a wheel. An editable installation gets no copy of anything and reads the checkout, so that
    nothing in it is ever stale.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        self.scratch = tempfile.TemporaryDirectory(prefix="envcheck-build-")
        sys.path.insert(0, str(ROOT))
        try:
            if self.config.get("rows-alone"):
                build_data["force_include"].update(rows_alone(Path(self.scratch.name)))
                return
            matrix = compiled_matrix(Path(self.scratch.name), "envcheck/matrix")
            pages = compiled_pages(Path(self.root), Path(self.scratch.name))
            prepared = prepared_code(Path(self.scratch.name))
        finally:
            sys.path.remove(str(ROOT))
        if prepared.lacking:
            self.tell(prepared.lacking)
        folders = {str(Path(self.root, name)): f"envcheck/{name}" for name in FOLDERS}
        build_data["shared_data"].update({str(Path(self.root, file)): place for file, place in DATA.items()})
        build_data["force_include"].update({**folders, **matrix, **pages, **prepared.files})

    def tell(self, lacking: list[str]) -> None:
        """Say what prepared code the wheel lacks; end the build where it must not."""
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        text = f"GPU code for machines without NVRTC is lacking: {lacking[0]}{more}"
        if os.environ.get(REQUIRE):
            self.app.abort(f"{text}; {REQUIRE} is set")
        self.app.display_warning(text)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if hasattr(self, "scratch"):
            self.scratch.cleanup()


def compiled_matrix(scratch: Path, place: str) -> dict[str, str]:
    """The compiled rows and their day, as file -> place in the wheel."""
    from envcheck.bundle import COMPILED, DATE  # noqa: PLC0415 - not installed yet
    from envcheck.knowledge.compiling import compile_folder, write_compiled  # noqa: PLC0415 - not installed yet

    write_compiled(compile_folder(ROOT / "matrix"), scratch / COMPILED)
    day = scratch / DATE
    day.write_text(f"{edition(day.read_text(encoding='ascii').strip())}\n", encoding="ascii")
    return {str(scratch / name): f"{place}/{name}" for name in (COMPILED, DATE)}


def rows_alone(scratch: Path) -> dict[str, str]:
    """All that the wheel of ``gpu-envcheck-matrix`` holds, as file -> place in it."""
    from envcheck.knowledge.copies import FORMAT, ROWS_PACKAGE  # noqa: PLC0415 - not installed yet

    return compiled_matrix(scratch, f"{ROWS_PACKAGE}/{FORMAT}")


def version_of_rows() -> str:
    """Of ``gpu-envcheck-matrix``: the format of its rows, then the newest day on which a source was read, and the
    minutes since it began: 1.2026.11.29.870.
    """
    sys.path.insert(0, str(ROOT))
    try:
        from envcheck.knowledge.compiling import compile_folder  # noqa: PLC0415 - not installed yet
        from envcheck.knowledge.copies import FORMAT  # noqa: PLC0415 - not installed yet

        newest = max(source["read"] for source in compile_folder(ROOT / "matrix")["sources"].values())
    finally:
        sys.path.remove(str(ROOT))
    return ".".join(map(str, (FORMAT, *map(int, edition(newest).replace(".", "-").split("-")))))


def edition(day: str) -> str:
    """A day and, where the build knows when its commit was made, the minutes since then: of one day, what was committed
    later is newer, also as text.
    """
    began = datetime.fromisoformat(f"{day}T00:00+00:00").timestamp()
    minutes = (int(os.environ.get("SOURCE_DATE_EPOCH", "0")) - int(began)) // 60
    return f"{day}.{min(minutes, 9999):04}" if minutes > 0 else day


def compiled_pages(root: Path, scratch: Path) -> dict[str, str]:
    """What the pages of all rules cite, and the error lines that lead to them, as file -> place in the wheel."""
    from envcheck.rules.documentation import (  # noqa: PLC0415 - not installed yet
        FOLDER,
        LINES,
        SOURCES,
        write_compiled_pages,
    )

    write_compiled_pages(root / FOLDER, root / "matrix", scratch)
    return {str(scratch / file): f"envcheck/{FOLDER}/{file}" for file in (SOURCES, LINES)}


class Prepared(NamedTuple):
    """GPU code for machines without NVRTC."""

    files: dict[str, str]
    """File -> place in the wheel."""
    lacking: list[str]
    """What could not be made, and why."""


def prepared_code(scratch: Path) -> Prepared:
    """GPU code by the NVRTC libraries of the build environment.

    For each variant a cubin for the first minor of each major, and PTX for what is newer than all of these.
    """
    from probes.measuring.kernels import prepared_name  # noqa: PLC0415 - not installed yet
    from probes.measuring.variants import variants  # noqa: PLC0415

    compilers, reasons = nvrtc_libraries()
    if not compilers:
        return Prepared({}, ["; ".join(reasons) or "the build environment holds no NVRTC wheel"])
    found = Prepared({}, [])
    for variant in variants():
        name = prepared_name(variant.name, variant.options)
        for kind, number in wanted(variant.least):
            try:
                code = compiled(compilers, variant, kind, number)
            except LookupError as error:
                found.lacking.append(f"{name} as {kind} for {number}: {error}")
                continue
            file = scratch / f"{name}.{ENDINGS[kind].format(number)}"
            file.write_bytes(code)
            found.files[str(file)] = f"envcheck/probes/kernels/prepared/{file.name}"
    return found


def compiled(compilers: list[Any], variant: Any, kind: str, number: int) -> bytes:
    """Code by the first compiler that can make it; LookupError with the reasons where none can."""
    from probes.measuring.kernels import (  # noqa: PLC0415
        FOLDER,
        STANDARD,
        CompileError,
    )
    from probes.measuring.runtime import Unavailable  # noqa: PLC0415 - not installed yet

    source = Path(FOLDER, f"{variant.name}.cu").read_text(encoding="utf-8")
    architecture = {"cubin": "sm_{}", "ptx": "compute_{}"}[kind].format(number)
    reasons = []
    for compiler in compilers:
        if number not in compiler.architectures():
            continue
        make = getattr(compiler, kind)
        try:
            code: bytes = make(source, f"{variant.name}.cu", architecture, (STANDARD, *variant.options))
        except (CompileError, Unavailable) as error:
            reasons.append(f"NVRTC {compiler.version}: {str(error).splitlines()[0]}")
        else:
            return code.rstrip(b"\0") if kind == "ptx" else code
    raise LookupError("; ".join(reasons) or "no NVRTC of the build environment knows it")


def wanted(least: tuple[int, int]) -> list[tuple[str, int]]:
    """Kind and architecture of each piece of code that a variant is to have."""
    return [("ptx", numbers(least)[0]), *(("cubin", number) for number in numbers(least))]


def numbers(least: tuple[int, int]) -> list[int]:
    """The architectures that a variant is compiled for: 53, 60, 70 ..., from the first that can run it."""
    first = 10 * least[0] + least[1]
    return [first, *(10 * major for major in MOST_MAJORS if 10 * major > first)]


def nvrtc_libraries() -> tuple[list[Any], list[str]]:
    """The NVRTCs of the wheels that the building interpreter sees, and what is wrong with others.

    The oldest comes first: its code runs on older drivers.
    """
    from probes.measuring.kernels import Nvrtc  # noqa: PLC0415
    from probes.measuring.runtime import Unavailable  # noqa: PLC0415 - not installed yet

    files = {file for entry in sys.path for file in Path(entry or ".").glob("nvidia/*/lib/libnvrtc.so.*")}
    found, reasons = [], []
    for file in sorted(files):
        if "alt" in file.name:
            continue
        try:
            found.append(Nvrtc(str(file)))
        except Unavailable as error:
            reasons.append(str(error))
    return sorted(found, key=lambda each: tuple(map(int, each.version.split(".")))), reasons
