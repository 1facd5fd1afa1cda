"""Foreign text: made safe, measured and cut, and nothing printed commands a build server."""

import json
import re
import shutil
import subprocess
import unicodedata
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from envcheck.cli.main import main
from envcheck.model.checks import Report
from envcheck.model.events import ProbesPlanned, ProbeStarted, Progress
from envcheck.redact.walk import Rewriting, rewritten
from envcheck.report import FORMATS, Options, render
from envcheck.report.progress import ProbeProgress
from envcheck.text.clean import clean, clean_block, one_line, shell_line
from envcheck.text.inert import Syntax, inert
from envcheck.text.wrap import clip, fill, fill_items, width
from tests.every import cases, tabled
from tests.thorough import examples
from tests.tui.showing import judged, recorded

# Hypothesis leaves surrogates out of text() by itself; they come from file names that are no valid text.
any_text = st.text(st.characters(exclude_categories=()))
BASH = shutil.which("bash")


@tabled
def test_clean(text: str, shown: str) -> None:
    assert clean(text) == shown


@cases("text, shown", ("é…", "\\xe9..."), ("≥ 8 \N{MULTIPLICATION SIGN} 漢", ">= 8 x \\u6f22"), ("\x1b", "\\x1b"))
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


@tabled
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


# --- Nothing that is printed commands a build server ----------------------------------------------------------------
_COMMANDS = (
    *("::error file=a::text", "::add-mask::x", "::stop-commands::x", " \t::group::x", ":::", "\u3000::debug::x"),
    *("##[group]x", "x ##[error]y", "###[x", "##vso[task.setvariable variable=a]b", "##VSO[task.complete]"),
    *("##teamcity[buildStop]", "section_start:1:a\r\x1b[0K", "section_end:1:a"),
)
_BREAKS = (
    "", " ", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x00", "\x85", "\u2028", "\u2029", "\x1b[0m", "\u200b", "\xad", "a",
)  # fmt: skip
_hostile = st.lists(st.sampled_from(_COMMANDS + _BREAKS), min_size=1, max_size=6).map("".join)


ANNOTATION = r"::(error|warning|notice) (file=[^:,]+,(line=\d+,)?)?title=[^:,]+::"


def commands(text: str) -> list[str]:
    """What a build server could take for a command."""
    plain = re.sub(r"\x1b\[[\d;]*[mK]", "", text)
    lines = [line for line in plain.splitlines() if line.lstrip().startswith("::")]
    return lines + re.findall(r"##(?:\[|vso\[|teamcity\[)|section_(?:start|end):\d", plain, re.IGNORECASE)


@given(_hostile, st.sampled_from(["text", "markdown", "json", "markup"]))
@example("a\n::error::", "text")
def test_a_command_never_gets_through(text: str, syntax: Syntax) -> None:
    once = inert(text, syntax)
    assert commands(once) == []
    assert inert(once, syntax) == once


@given(_hostile)
def test_json_and_markup_still_say_the_same(text: str) -> None:
    encoded = json.dumps({"key": text, text: [text]})
    assert json.loads(inert(encoded, "json")) == json.loads(encoded)
    clean = "".join(character for character in text if character.isprintable())
    assert ET.fromstring(inert(f"<a>{clean}</a>", "markup")).text == (clean or None)


@tabled
def test_annotations_stay_and_no_other_command(text: str, stays: bool) -> None:  # noqa: FBT001
    once = inert(text, "workflow")
    assert (once == text) == stays
    assert inert(once, "workflow") == once
    assert stays or "::b" not in once or not commands(once) or re.match(ANNOTATION, once)


@cases("text", "", "a::b", "std::string", "# one", "## two", "http://[::1]:80/", "section_started")
def test_what_commands_nothing_stays(text: str) -> None:
    assert inert(text) == text


def _hostile_report(text: str) -> Report:
    how = Rewriting(lambda old: text + old[:5] if len(old) > 3 else old, lambda _, value: text + value)
    return rewritten(judged(recorded("h200")), how)


@settings(max_examples=examples(3), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=_hostile)
@example(text="\n".join(_COMMANDS))
def test_no_format_of_a_report(text: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(msgspec.json.encode(_hostile_report(text)))
    files = {form: tmp_path / f"out.{form}" for form in FORMATS}
    targets = [f"-o={form}:{file}" for form, file in files.items()]
    main(["check", "--from", str(tmp_path / "report.json"), *targets, "--verbose", "--ascii", "--color=always"])
    for form, file in files.items():
        own = ANNOTATION if form == "github" else ""
        assert [line for line in commands(file.read_text()) if not own or not re.match(own, line)] == [], form
    told = files["github"].read_text().splitlines()
    assert told
    assert all(re.match(ANNOTATION, line) for line in told)
    assert all(commands(line.partition("title=")[2]) == [] for line in told)


@settings(max_examples=examples(3), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=_hostile, word=_hostile)
@example(text="\n".join(_COMMANDS), word="::error::x")
@example(text="x", word="##[error]")
def test_no_verb(text: str, word: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    paste = tmp_path / "paste.txt"
    lines = (text, f"ImportError: {text}: undefined symbol", f"CUDA_{word}={text}", f"RuntimeError: CUDA error: {text}")
    paste.write_text("\n".join(lines))
    report = tmp_path / "report.json"
    report.write_bytes(msgspec.json.encode(_hostile_report(text)))
    asked = [
        ["explain", str(paste)], ["explain", str(paste), "--json"], ["explain", str(paste), "-v"],
        ["diff", str(report), str(paste)], ["matrix", "check", f"torch=={word}", "cuda==12.4"],
        ["matrix", "check", word, text], ["matrix", "check", f"{word}==1", "driver==535", "--json"],
        ["matrix", "show", word], ["matrix", "show", word, "--json"], ["schema", word], ["rule", word],
        ["check", f"--{word}"], ["check", "--from", word], ["check", "--only", word], ["check", "--require", word],
        ["check", "--assume", f"gpu=={word}"], ["check", "-o", f"{word}:{text}"], [word],
        ["matrix", "check", "torch==2.5.1", "cuda==12.4", "--matrix", word], ["serve", "--host", word],
    ]  # fmt: skip
    for argv in asked:
        main([argument.replace("\0", "") for argument in argv])
        told = capfd.readouterr()
        assert commands(told.out) == [], argv
        assert commands(told.err) == [], argv


@given(_hostile)
def test_no_progress(text: str) -> None:
    line = ProbeProgress(lambda: 0.0)
    line.add(ProbesPlanned((("nvml", "NVML"),)))
    line.add(ProbeStarted(text, text))
    line.add(Progress(text, text))
    assert commands(line.line(200)) == []


def test_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> int:
        raise ValueError("first\n::error::second ##[group]third")

    monkeypatch.setattr("envcheck.cli.main._run", broken)
    monkeypatch.setenv("ENVCHECK_DEBUG", "1")
    assert main(["schema", "report"]) == 4
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert commands(told) == []


def test_a_page_of_html_begins_as_one() -> None:
    assert render(judged(recorded("h200")), "html", Options()).startswith("<")
