"""An environment under construction: real wheels, then whatever breaks them. All of it lies below one folder."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.calling import envcheck
from tests.lab.laboratory.store import SECONDS, Store

H100 = "gpu==H100,driver==580.65.06,os==linux"
BAD = ("fail", "warn")


class Place:
    """A virtual environment of pip or uv, the variables of its shell, and folders beside it.

    Files are hard links into the store's cache: every change here writes another file in the place of the old one.
    """

    def __init__(self, folder: Path, store: Store, manager: str = "pip") -> None:
        self.folder = folder
        self.store = store
        self.manager = manager
        self.prefix = folder / ".venv"
        self.home = folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.variables: dict[str, str] = {}
        self.checks: list[dict[str, Any]] = []
        self.python = self.prefix / "bin" / "python"
        if manager == "uv":
            self.uv("venv", "--no-config", "-q", "--python", sys.executable, str(self.prefix))
        else:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.prefix], check=True)
            self.install("pip==25.3")

    # --- making -----------------------------------------------------------------------------------------------

    @property
    def site(self) -> Path:
        return next(self.prefix.glob("lib/python3*/site-packages"))

    def install(self, *requirements: str) -> None:
        """Put wheels into the environment, over what is there and without what they require."""
        self.store.need(*requirements)
        self.uv("pip", "install", "--python", str(self.prefix), *_OFFLINE, "--no-deps", "--reinstall", *requirements)
        if self.manager == "pip":
            for installer in self.site.glob("*.dist-info/INSTALLER"):
                _as_pip(installer)

    def beside(self, *requirements: str, name: str = "elsewhere") -> Path:
        """Wheels unpacked in a folder outside the environment, as ``pip install --target`` does it."""
        folder = self.folder / name
        self.store.need(*requirements)
        self.uv(
            "pip", "install", "--python", str(self.python), *_OFFLINE, "--no-deps", "--target", str(folder),
            *requirements,
        )  # fmt: skip
        return folder

    def pip(self, verb: str, *words: str) -> None:
        """What somebody types, with all that the command brings: ``pip VERB …``, or ``uv pip VERB …``."""
        if self.manager == "uv":
            self.uv("pip", verb, "--python", str(self.prefix), *words)
            return
        yes = ("--yes",) if verb == "uninstall" else ("-q", "--only-binary=:all:") if "-e" not in words else ("-q",)
        command = [str(self.python), "-m", "pip", verb, *yes, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, env=self.shell())
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"

    def uv(self, *words: str) -> None:
        command = [str(Path(sys.executable).parent / "uv"), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, env=self.shell())
        assert done.returncode == 0, f"uv {' '.join(words)}: {done.stderr}"

    # --- breaking ---------------------------------------------------------------------------------------------

    def file(self, pattern: str) -> Path:
        """The one file or folder of the environment that fits."""
        found = sorted(self.site.glob(pattern))
        assert len(found) == 1, f"{pattern}: {found}"
        return found[0]

    def remove(self, *patterns: str) -> None:
        for pattern in patterns:
            found = list(self.site.glob(pattern))
            assert found, pattern
            for each in found:
                shutil.rmtree(each) if each.is_dir() else each.unlink()

    def rewrite(self, pattern: str, content: bytes) -> Path:
        """Another file of that name; the permissions stay."""
        return rewrite(self.file(pattern), content)

    def truncate(self, pattern: str, part: float) -> Path:
        """What a copy that was broken off leaves."""
        content = self.file(pattern).read_bytes()
        return self.rewrite(pattern, content[: int(len(content) * part)])

    def overwrite(self, pattern: str, at: float, length: int = 4096) -> Path:
        """As many bytes as before, of which some are others."""
        content = bytearray(self.file(pattern).read_bytes())
        start = int(len(content) * at)
        content[start : start + length] = bytes(0xA5 for _ in content[start : start + length])
        return self.rewrite(pattern, bytes(content))

    def lead(self, variable: str, *folders: Path) -> None:
        """Put folders first into a variable that holds search paths."""
        self.variables[variable] = os.pathsep.join(filter(None, [*map(str, folders), self.variables.get(variable, "")]))

    # --- asking -----------------------------------------------------------------------------------------------

    def shell(self) -> dict[str, str]:
        """The variables of the shell in which the environment is used."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        tools = self.folder / "tools"
        if not tools.exists():
            tools.mkdir()
            (tools / "uv").symlink_to(Path(sys.executable).parent / "uv")
        kept["PATH"] = f"{tools}:{kept['PATH']}"
        return {**kept, "HOME": str(self.home), **self.store.variables(), **self.variables}

    def judge(self, assumed: str = H100, *options: str) -> dict[str, Any]:
        words = ["check", "--json", "--scope", "env", "--python", str(self.prefix)]
        if assumed:
            words += ["--assume", assumed]
        result = envcheck(*words, *options, cwd=self.folder, **{"HOME": str(self.home), **self.variables})
        assert result.out, result.err
        report: dict[str, Any] = json.loads(result.out)
        self.checks = report["checks"]
        return report

    def runs(self, code: str) -> str:
        """Why the environment's own interpreter does not run ``code``; empty where it does."""
        try:
            done = subprocess.run(
                [self.python, "-c", code], capture_output=True, text=True, check=False, timeout=120, env=self.shell(),
                cwd=self.folder,
            )  # fmt: skip
        except OSError as error:
            return str(error)
        said = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        return said if done.returncode else ""

    def unmet(self) -> set[str]:
        """What uv says of requirements that are not met."""
        command = [str(Path(sys.executable).parent / "uv"), "pip", "check", "--no-config", "--python", str(self.prefix)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=self.shell())
        return {line for line in done.stderr.splitlines() if line.startswith("The package ")}

    def found(self, rule: str) -> dict[str, Any]:
        """What fails or warns by that rule; of several the worst."""
        bad = [check for check in self.checks if check["rule"] == rule and check["status"] in BAD]
        assert bad, f"{rule} is not among {self.bad()}"
        return min(bad, key=lambda check: BAD.index(check["status"]))

    def bad(self) -> set[str]:
        return {check["rule"] for check in self.checks if check["status"] in BAD}


_OFFLINE = ("--offline", "--no-index", "--link-mode", "hardlink", "-q")


def rewrite(file: Path, content: bytes) -> Path:
    """Replace a file that may be linked to from elsewhere."""
    other = file.with_name(f"{file.name}.new")
    other.write_bytes(content)
    shutil.copymode(file, other)
    return other.rename(file)


def _as_pip(installer: Path) -> None:
    """Leave the records as pip writes them: uv only unpacks here, because it is faster."""
    if installer.read_text().strip() != "uv":
        return
    rewrite(installer, b"pip\n")
    record = installer.with_name("RECORD")
    lines = [line for line in record.read_text().splitlines() if not re.match(r"[^,]*\.dist-info/INSTALLER,", line)]
    digest = "zuuue4knoyJ-UwPPXg8fezS7VCrXJQrAP7zeNuwvFQg"
    rewrite(record, "\n".join([*lines, f"{installer.parent.name}/INSTALLER,sha256={digest},4", ""]).encode())
