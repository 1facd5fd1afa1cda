"""Flags in XLA_FLAGS that the XLA of a framework does not have, by the names that its libraries hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.installations.parts import unknown_flags
from probes.kit.tree import Tree

XLA = b"\0xla_dump_to\0xla_gpu_autotune_level\0" + bytes(9 << 20) + b"\0xla_gpu_ftz\0"
"""The last name lies behind the first part that is read at once."""


def asked(folder: Path, value: str, content: bytes = XLA) -> list[str] | None:
    (folder / "xla.so").write_bytes(content)
    return unknown_flags(Tree({"variables": {"XLA_FLAGS": value}}), [str(folder / "xla.so")])


@pytest.mark.parametrize(
    ("value", "unknown"),
    [
        ("--xla_gpu_autotune_level=0 --xla_gpu_ftz", []),
        ("--xla_gpu_ftz=true --xla_gpu_enable_fast_everything=true", ["--xla_gpu_enable_fast_everything"]),
        ("--xla_gpu_autotune_levels=0", ["--xla_gpu_autotune_levels"]),
        ("", None),
        ("flags.txt", None),
    ],
)
def test_a_flag_is_unknown_where_no_library_holds_its_name(
    tmp_path: Path, value: str, unknown: list[str] | None
) -> None:
    assert asked(tmp_path, value) == unknown


def test_a_name_across_two_reads_is_found(tmp_path: Path) -> None:
    name = b"xla_gpu_split_between_reads"
    assert asked(tmp_path, f"--{name.decode()}=1", b"xla_dump_to" + bytes((8 << 20) - 20) + name) == []


def test_nothing_is_said_of_a_library_without_xla(tmp_path: Path) -> None:
    assert asked(tmp_path, "--xla_gpu_ftz", b"libm") is None


def test_nothing_is_said_where_a_library_cannot_be_read(tmp_path: Path) -> None:
    tree = Tree({"variables": {"XLA_FLAGS": "--xla_gpu_ftz"}})
    assert unknown_flags(tree, [str(tmp_path / "gone.so")]) is None
