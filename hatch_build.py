"""Compile the compatibility matrix into the wheel, beside its TOML files."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileMatrix(BuildHookInterface[Any]):
    """Writes ``envcheck/matrix/compiled.json`` into a wheel; an editable installation reads the TOML files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from envcheck.compat.compiling import COMPILED, compile_folder  # noqa: PLC0415 - not installed yet
        finally:
            sys.path.remove(self.root)
        self.scratch = tempfile.TemporaryDirectory(prefix="envcheck-matrix-")
        compiled = Path(self.scratch.name) / COMPILED
        document = compile_folder(Path(self.root) / "matrix")
        compiled.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
        build_data["force_include"][str(compiled)] = f"envcheck/matrix/{COMPILED}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if hasattr(self, "scratch"):
            self.scratch.cleanup()
