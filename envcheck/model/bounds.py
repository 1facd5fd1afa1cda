"""Whether a GPU or its capability is what a bound asks for, and the sentence that says what was required and found."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envcheck.model.components import COMPARE, Bound, Component
from envcheck.text.lazy import lazy_pattern

_CAPABILITY = lazy_pattern(r"sm_([0-9]{1,2})([0-9])[af]?")
_BYTES = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_OTHER_MODEL = frozenset({"ti", "super", "laptop", "mobile", "max", "ada", "pro", "blackwell", "d"})
"""Words that make another model of a name: an RTX 3060 is no RTX 3060 Ti, while an H100 80GB HBM3 is an H100."""

OF_THE_MACHINE = frozenset({"gpu", "gpus", "gpu-memory", "driver", "cuda"})  # Components that no environment has


def parse_capability(text: str) -> tuple[int, int] | None:
    found = _CAPABILITY.fullmatch(text.lower()) or re.fullmatch(r"([0-9]{1,3})\.([0-9])", text)
    return (int(found[1]), int(found[2])) if found else None


def parse_size(text: str) -> int | None:
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([KMGT]i?)B", text)
    return int(float(found[1]) * _BYTES[found[2]]) if found else None


def names_capability(bound: Bound) -> bool:
    """Whether a bound on ``gpu`` is about the compute capability (``sm_90``), and not about the model."""
    return _CAPABILITY.fullmatch(bound.value.lower()) is not None


def capability_holds(bound: Bound, capability: str | None) -> bool:
    """Whether a compute capability (``9.0``) is within a bound such as ``>=sm_90``; an unknown one never is."""
    found, wanted = parse_capability(capability or ""), parse_capability(bound.value)
    compare = COMPARE.get(bound.operator)
    return compare is not None and found is not None and wanted is not None and compare(found, wanted)


def same_words(wanted: str, name: str) -> bool:
    """Whether all words of ``wanted`` are in ``name``, and no word of it makes another model."""
    asked, shown = (frozenset(text.lower().replace("-", " ").split()) for text in (wanted, name))
    return asked <= shown and not (shown - asked) & _OTHER_MODEL


def sentence(component: Component, found: Iterable[str] | None) -> str:
    """What is required and what was found; None: not known."""
    if found is None:
        what = "what this machine has" if component.name in OF_THE_MACHINE else "the installed version"
        return f"{component} is required, but {what} is not known"
    return f"{component} is required; found {', '.join(dict.fromkeys(found)) or 'none'}"
