"""Patterns that are compiled at their first use."""

import gc
import re
from importlib import import_module
from pkgutil import walk_packages

import envcheck
from envcheck.text.lazy import lazy_pattern


def test_a_lazy_pattern_is_what_re_compiles() -> None:
    text, flags = r"(?P<name>cu\w+) (\d+)", re.IGNORECASE
    lazy, compiled = lazy_pattern(text, flags), re.compile(text, flags)
    line = "cuda 12, CUDNN 9"
    assert [found.groups() for found in lazy.finditer(line)] == [found.groups() for found in compiled.finditer(line)]
    assert lazy.sub(r"\2 \1", line) == compiled.sub(r"\2 \1", line)
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (text, compiled.flags, compiled.groupindex)
    assert lazy.match("nothing") is None


def test_every_lazy_pattern_compiles() -> None:
    """A wrong one would break off in the middle of somebody's text."""
    for module in walk_packages(envcheck.__path__, "envcheck."):
        if module.name.startswith(("envcheck.importers", "envcheck.redact", "envcheck.knowledge", "envcheck.enrich")):
            import_module(module.name)
    kind = type(lazy_pattern(""))
    lazy = [each for each in gc.get_objects() if type(each) is kind]
    assert len(lazy) > 80
    for pattern in lazy:
        re.compile(pattern.text, pattern.given)  # type: ignore[attr-defined]
