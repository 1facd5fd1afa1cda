"""The corpus on disk: text that is read in review lies open, bulky documents lie compressed beside their hashes."""

import hashlib
import lzma
import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
_HEADING = re.compile(r"^==> (.*) <==\n", re.MULTILINE)
_MOST_LINES = 200  # Lines of differences that are shown; there may be thousands


def joined(documents: Mapping[str, str]) -> str:
    """Documents in one text, each below its name."""
    return "".join(f"==> {name} <==\n{text.rstrip()}\n" for name, text in documents.items())


def parted(text: str) -> dict[str, str]:
    """The documents of a text, by name; what stands before the first heading has no name."""
    first, *rest = _HEADING.split(text)
    return {"": first, **dict(zip(rest[::2], rest[1::2], strict=True))}


def digest(text: str) -> str:
    """A hash for an index."""
    return hashlib.sha256(text.rstrip().encode()).hexdigest()[:8]


def index(documents: Mapping[str, str]) -> str:
    """A line for each document: its hash and its name."""
    return "".join(f"{digest(text)}  {name}\n" for name, text in documents.items())


def read(name: str) -> str:
    """A file of the corpus; empty where there is none."""
    file = CORPUS / name
    if not file.exists():
        return ""
    return (lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()).decode()


def write(name: str, text: str) -> None:
    """Write a file of the corpus. An archive of the same text is left as it is: releases of xz pack differently."""
    file = CORPUS / name
    if read(name) != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(lzma.compress(text.encode(), preset=9) if file.suffix == ".xz" else text.encode())


def differences(files: Mapping[str, str]) -> str:
    """How ``files`` differ from the corpus: a unified diff of each document, and no more lines than can be read."""
    lines = [line for name, text in files.items() for line in _differences(name, read(name), text)]
    more = [f"… {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([*lines[:_MOST_LINES], *more])


def _differences(name: str, recorded: str, found: str) -> Iterator[str]:
    if recorded == found:
        return
    old, new = parted(recorded), parted(found)
    for part in dict.fromkeys([*old, *new]):
        before, after = old.get(part, ""), new.get(part, "")
        if before != after:
            where = f"{name}: {part}" if part else name
            lines = unified_diff(before.splitlines(), after.splitlines(), where, where, n=2, lineterm="")
            yield from (line if len(line) <= 400 else f"{line[:400]}…" for line in lines)
