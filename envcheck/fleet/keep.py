"""Keep what nodes answered in a folder, as it comes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.examine import Answer
from envcheck.text.output import write_whole

_PLAIN = re.compile(r"[^\w.@-]+", re.ASCII)
_LONGEST = 120


def keeping(answers: Iterable[Answer], folder: str) -> Iterator[Answer]:
    """``answers``, each report of which is written to ``folder``; raise UsageError where that fails."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for answer in answers:
            if not answer.content or answer.problem:
                yield answer
                continue
            file = place / f"{file_name(answer.node)}.json"
            write_whole(file, answer.content)
            yield msgspec.structs.replace(answer, path=str(file))
    except OSError as error:
        raise UsageError(f"--save {folder}: {error.strerror or error}") from None


def file_name(node: str) -> str:
    """The name of a node as the name of a file, which leads to no other folder."""
    return _PLAIN.sub("_", node).lstrip(".")[:_LONGEST] or "_"
