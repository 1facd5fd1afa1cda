"""Foreign text: made safe, measured, cut, and quoted for a shell."""

from __future__ import annotations

import shutil
import subprocess
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envcheck.text.clean import clean, clean_block, one_line, shell_line
from envcheck.text.wrap import clip, fill, fill_items, width

# Hypothesis leaves surrogates out of text() by itself; they come from file names that are no valid text.
any_text = st.text(st.characters(exclude_categories=()))
BASH = shutil.which("bash")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("H100 80GB", "H100 80GB"),
        ("Grüße, 漢字, עברית", "Grüße, 漢字, עברית"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("two\nlines\r\tand\x00", "two\\nlines\\r\\tand\\x00"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("\u202egnp.exe\u2066", "\\u202egnp.exe\\u2066"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
        ("wide\u3000space\xa0", "wide\\u3000space\\xa0"),
        ("e\u0301", "e\u0301"),
        ("e" + "\u0301" * 5, "e" + "\u0301" * 3 + "\\u0301\\u0301"),
        ("\u3164\ufe0f", "\\u3164\\ufe0f"),
    ],
)
def test_clean(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [("é…", "\\xe9..."), ("≥ 8 \N{MULTIPLICATION SIGN} 漢", ">= 8 x \\u6f22"), ("\x1b", "\\x1b")]
)
def test_clean_for_ascii(text: str, shown: str) -> None:
    assert clean(text, ascii_only=True) == shown


@given(any_text, st.booleans())
def test_clean_text_is_safe_and_stays(text: str, ascii_only: bool) -> None:  # noqa: FBT001 - hypothesis passes it
    safe = clean(text, ascii_only=ascii_only)
    assert not any(unicodedata.category(char).startswith(("C", "Zl", "Zp")) for char in safe)
    assert safe.isascii() or not ascii_only
    assert clean(safe, ascii_only=ascii_only) == safe
    safe.encode()


def test_width_counts_columns() -> None:
    assert (width("abc"), width("漢字"), width("e\u0301"), width("\N{FULLWIDTH LATIN SMALL LETTER W}")) == (3, 4, 1, 2)


@given(st.text(), st.integers(1, 40))
def test_clip_stays_within(text: str, columns: int) -> None:
    safe = clean(text)
    short = clip(safe, columns)
    assert width(short) <= columns
    assert short == safe or short.endswith("…")
    assert (short == safe) == (width(safe) <= columns)


@given(st.text(), st.integers(2, 40), st.integers(1, 5))
def test_fill_stays_within_and_loses_nothing_unsaid(text: str, columns: int, lines: int) -> None:
    safe = clean(text)
    whole = fill(safe, columns)
    assert all(0 < width(line) <= columns for line in whole)
    assert "".join(whole).replace(" ", "") == safe.replace(" ", "")
    short = fill(safe, columns, lines)
    assert len(short) <= lines
    assert short == whole or short[-1].endswith("…")


def test_fill_breaks_at_spaces() -> None:
    assert fill("one two three", 8) == ["one two", "three"]
    assert fill("abcdefghij k", 4) == ["abcd", "efgh", "ij k"]
    assert fill("", 8) == []


def test_fill_items_breaks_between_items() -> None:
    assert fill_items(["driver: 1", "CUDA: 2", "build: 3"], 20, 3) == ["driver: 1; CUDA: 2", "build: 3"]
    assert fill_items(["aaaa", "bbbb"], 5, 1) == ["aaaa…"]
    assert fill_items([], 20, 3) == []


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (("pip", "install", "torch>=2.4"), "pip install 'torch>=2.4'"),
        (("rm", "it's"), "rm 'it'\"'\"'s'"),
        (("cat", "a\x1bb'\\"), "cat $'a\\x1bb\\'\\\\'"),
        (("cat", "\udcff"), "cat $'\\xff'"),
        (("cat", "\ud800"), "cat $'\\xed\\xa0\\x80'"),
        (("cat", ""), "cat ''"),
        (("cat", "漢"), "cat 漢"),
    ],
)
def test_shell_line(argv: tuple[str, ...], line: str) -> None:
    assert shell_line(argv) == (line if argv != ("cat", "漢") else "cat '漢'")


@pytest.mark.skipif(BASH is None, reason="no bash here to read the line back")
@settings(max_examples=60)
@example("a\x1b[2J'\\$(id)`id`\n\u202e", False)
@example("\udcff\udc80 é", True)
@given(st.text(st.characters(exclude_categories=(), exclude_characters="\0")), st.booleans())
def test_bash_reads_the_line_back(argument: str, ascii_only: bool) -> None:  # noqa: FBT001 - hypothesis passes it
    line = shell_line(("printf", "%s", argument), ascii_only=ascii_only)
    assert clean(line, ascii_only=ascii_only) == line
    done = subprocess.run([str(BASH), "-c", line], capture_output=True, check=True)
    try:
        expected = argument.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        expected = b"".join(
            char.encode("utf-8", "surrogateescape" if 0xDC80 <= ord(char) <= 0xDCFF else "surrogatepass")
            for char in argument
        )
    assert done.stdout == expected


def test_one_line_is_bounded() -> None:
    assert one_line("a\n\tb  c") == "a b c"
    assert one_line("x" * 400) == "x" * 299 + "…"
    assert one_line("\x1b" * 400, 10) == "\\x1b\\x1b\\…"
    assert one_line("\udc80") == "\\udc80"


def test_a_block_keeps_its_lines_and_tabs() -> None:
    assert clean_block("a\tb\r\n\x1b[31mc\n\n\u202ed") == "a\tb\\r\n\\x1b[31mc\n\n\\u202ed"
