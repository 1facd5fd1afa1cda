"""Let uv resolve requirements: the one thing that asks an index, and only where the user said so."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import msgspec

from envcheck.errors import NoVerdictError, UsageError
from envcheck.text.clean import brief
from envcheck.text.toml import TomlError, loads


class Resolved(msgspec.Struct, frozen=True):
    """What uv would install."""

    pins: list[str]
    size: int  # Bytes to download, of the files whose size an index tells
    unsized: int  # Packages of which none does


def resolve(
    requirements: str, options: Sequence[str], seconds: float, files: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Resolved:
    """What ``uv pip compile`` makes of requirements; raise UsageError without uv, NoVerdictError without an answer.

    ``files`` are options that name a file of such lines.
    """
    program = shutil.which("uv")
    if program is None:
        raise UsageError("--resolve: there is no uv on PATH; install it (pip install uv), or leave --resolve out")
    command = [program, "pip", "compile", "-", "--quiet", "--no-header", "--format", "pylock.toml", *options]
    with TemporaryDirectory() as folder:
        for option, lines in files.items():
            if lines:
                (Path(folder) / option).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
                command += [f"--{option}", str(Path(folder) / option)]
        try:
            done = subprocess.run(
                command, input=requirements, capture_output=True, text=True, timeout=seconds, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoVerdictError(f"--resolve: {brief(str(error))}") from None
        if done.returncode:
            message = " ".join(done.stderr.split())
            raise NoVerdictError(f"--resolve: uv finds no set: {brief(message)}")
        try:
            packages = loads(done.stdout).get("packages", [])
            listed = [[*each.get("wheels", []), *filter(None, [each.get("sdist")])] for each in packages]
            sizes = [next((file["size"] for file in own if "size" in file), None) for own in listed]
            pins = [f"{each['name']}=={each['version']}" for each in packages if "version" in each]
        except (TomlError, AttributeError, KeyError, TypeError) as error:
            raise NoVerdictError(f"--resolve: uv's answer is no pylock.toml: {brief(str(error))}") from None
        return Resolved(pins, sum(filter(None, sizes)), sizes.count(None))
