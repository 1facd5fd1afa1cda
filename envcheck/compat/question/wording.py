"""How versions and specifiers are told to people."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envcheck.compat.question.question import Question
from envcheck.compat.specifier import Version

_BRANCH = re.compile(r">=([0-9]+),<([0-9]+)")


def readable(name: str, spec: str) -> str:
    """A specifier in words: ``torch 2.5.1``, ``CUDA >=12.1, <13``, ``driver R470 or R535``."""
    return f"{name} {listed([_alternative(name, part.strip()) for part in spec.split('|')], 'or')}"


def unknown_release(question: Question, name: str, version: Version) -> str:
    """That the matrix does not know a release, as it was written."""
    written = question.labels[name] if len(question.versions[name]) == 1 else f"{name} {version}"
    return f"the matrix does not know {written}" + (
        "; it knows releases, not what precedes them" if version.pre else ""
    )


def listed(words: Sequence[str], last: str = "and") -> str:
    """``a, b and c``."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def _alternative(name: str, text: str) -> str:
    branch = _BRANCH.fullmatch(text)
    if name.startswith("driver") and branch and int(branch[2]) == int(branch[1]) + 1:
        return f"R{branch[1]}"
    plain = text.replace(".*", "")
    if plain.startswith("==") and "," not in plain:
        return plain.removeprefix("==")
    return plain.replace(",", ", ")
