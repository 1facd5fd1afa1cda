"""Small file trees that stand for Python environments; everything in them is constructed, and nothing in them works."""

import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probes.common.tree import Tree as View

PROGRAM = b"\x7fELF" + bytes(60)  # Enough of an interpreter for one that is never started
Laid = Mapping[str, str | bytes | tuple[str, ...] | None]
_ALONE = "include-system-site-packages = false\n"
DATA = Path(__file__).parent / "data" / "torch"


class Tree:
    """A root folder to be filled; paths are absolute, as the examined machine sees them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def file(self, path: str, content: str | bytes = "", mode: int = 0o644) -> None:
        place = self.at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        place.chmod(mode)

    def program(self, path: str, content: str | bytes = PROGRAM) -> None:
        self.file(path, content, 0o755)

    def link(self, path: str, target: str) -> None:
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).symlink_to(target)

    def lay(self, files: Laid) -> None:
        """Files by path, in order, in the place of what lies there; None takes it away.

        ``-> /target`` is a link, a path that ends with ``/`` an empty folder; a script or an interpreter may be run. A
        tuple is a method with its arguments: ``{"/a": ("venv", "/usr/bin/python3")}``.
        """
        for path, content in files.items():
            place = self.at(path)
            if content is None and place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            elif content is None or place.is_symlink() or str(content).startswith("-> "):
                place.unlink(missing_ok=content is not None)
            if isinstance(content, tuple):
                getattr(self, content[0])(path, *content[1:])
            elif path.endswith("/"):
                self.at(path).mkdir(parents=True, exist_ok=True)
            elif isinstance(content, str) and content.startswith("-> "):
                self.link(path, content[3:])
            elif content is not None:
                self.file(path, content, 0o755 if content[:4] == PROGRAM[:4] or content[:2] == "#!" else 0o644)

    def base(self, prefix: str, version: str = "3.11.7", site: str = "site-packages") -> str:
        """An installed interpreter; returns the path of its program."""
        minor = ".".join(version.split(".")[:2])
        self.program(f"{prefix}/bin/python{minor}")
        self.link(f"{prefix}/bin/python3", f"python{minor}")
        self.file(f"{prefix}/lib/python{minor}/os.py")
        self.at(f"{prefix}/lib/python{minor}/{site}").mkdir()
        self.file(f"{prefix}/include/python{minor}/patchlevel.h", f'#define PY_VERSION  "{version}"\n')
        return f"{prefix}/bin/python{minor}"

    def venv(self, prefix: str, base: str, version: str = "3.11.7", settings: str = "") -> str:
        """A virtual environment of the interpreter ``base``; returns its ``site-packages``."""
        home = base.rpartition("/")[0]
        self.file(f"{prefix}/pyvenv.cfg", f"home = {home}\nversion = {version}\n{settings or _ALONE}")
        self.link(f"{prefix}/bin/python3", base)
        self.link(f"{prefix}/bin/python", "python3")
        minor = ".".join(version.split(".")[:2])
        site = f"{prefix}/lib/python{minor}/site-packages"
        self.at(site).mkdir(parents=True)
        return site

    def wheel(self, site: str, name: str, version: str, lines: str = "") -> str:
        """An installed distribution; returns its ``dist-info``."""
        path = f"{site}/{name}-{version}.dist-info"
        self.file(f"{path}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}\n")
        self.file(f"{path}/INSTALLER", "pip\n")
        return path

    def torch(self, site: str, wheel: str = "torch-2.5.1") -> None:
        """PyTorch as the wheel of that name in ``data/torch`` describes itself."""
        self.file(f"{site}/torch/__init__.py")
        self.file(f"{site}/torch/version.py", (DATA / f"{wheel}.version.txt").read_bytes())
        self.file(f"{site}/{wheel}.dist-info/METADATA", (DATA / f"{wheel}.metadata.txt").read_bytes())

    def view(self, **changes: Any) -> View:
        """What a probe gets of this tree, without variables; ``HOME`` and the current folder are ``/home/me``."""
        variables = {"HOME": "/home/me", **changes.pop("variables", {})}
        self.at("/home/me").mkdir(parents=True, exist_ok=True)
        own = {"root": str(self.root), "cwd": "/home/me", "own_prefix": "/opt/envcheck"}
        return View({**own, "variables": variables, **changes})


def elf_with_constants(constants: bytes) -> bytes:
    """A 64-bit little-endian ELF file with one section ``.rodata``."""
    names = b"\0.rodata\0.shstrtab\0"
    start = 64
    table = start + len(constants) + len(names)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 0, table, 0, 64, 56, 0, 64, 3, 2)
    sections = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 1, 1, 2, start, start, len(constants), 0, 0, 1, 0),
        struct.pack("<IIQQQQIIQQ", 9, 3, 0, 0, start + len(constants), len(names), 0, 0, 1, 0),
    ]
    return head + constants + names + b"".join(sections)
