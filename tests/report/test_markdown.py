"""Markdown for an issue: what it says, how long it may be, and that no text becomes markup."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import pytest
from hypothesis import example, given, settings
from markdown_it import MarkdownIt  # comes with textual
from markdown_it.token import Token

from envcheck.checks import Report
from envcheck.report import Options, render
from envcheck.report.markdown import code, fence, prose
from envcheck.text.clean import clean
from tests.report.examples import EXAMPLES, check, machine, report
from tests.report.foreign import ATTACKS, attacks, carrying

OURS = {"<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>", "<!-- -->"}
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def markdown(found: Report) -> str:
    return render(found, "markdown", Options(redact=False))


def tokens(text: str) -> Iterator[Token]:
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


def assert_only_ours(text: str, links: set[str]) -> None:
    """No element that the renderer does not make itself."""
    for token in tokens(text):
        assert token.type not in ("image", "s_open", "em_open", "hr", "blockquote_open", "code_block"), token
        assert token.type != "heading_open" or token.tag == "h3"
        if token.type == "html_inline":
            assert token.content in OURS, token.content
        if token.type == "html_block":
            assert token.content.startswith(("<details><summary>", "</details>", "<sub>")), token.content
            assert "<" not in token.content.replace("<details><summary>", "").replace("</summary>", "").replace(
                "</details>", ""
            ).replace("<sub>", "").replace("</sub>", "").replace("<!-- -->", "")
        if token.type == "link_open":
            assert unquote(str(token.attrs["href"])) in {unquote(link) for link in links}, token.attrs


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_fits_into_an_issue(name: str) -> None:
    found = EXAMPLES[name]()
    text = markdown(found)
    assert len(text) < 60_000
    assert text.startswith("### ")
    assert text.count("\n### ") == 0
    assert_only_ours(text, {source.address for check in found.checks for source in check.sources})


def test_it_tells_cause_fix_stack_versions() -> None:
    text = render(EXAMPLES["driver-too-old"](), "markdown")
    assert text.startswith("### ❌ FAIL: The driver is too old for the CUDA 12.6 of torch\n")
    assert "Cause: `driver-too-old`" in text
    assert "```sh\napt-get install nvidia-driver-550\n```" in text
    assert "(risk: needs a reboot)" in text
    assert "| Frameworks | ❌ FAIL | torch 2.6.0+cu126 |" in text
    assert "- Driver: `470.256.02, CUDA 11.4`" in text
    assert "[CUDA Toolkit release notes](<https://docs.nvidia.com/cuda/>)" in text
    assert "/home/ada" not in text
    assert "~/p/.venv" in text
    assert "names and identifiers are replaced" in text


def test_a_command_is_told_with_its_whole_paths() -> None:
    """A shell expands no ``~`` within quotes."""
    text = render(EXAMPLES["driver-too-old"](), "markdown")
    assert "\n/home/user/p/.venv/bin/python -m pip install" in text


def test_what_was_not_judged_is_not_told_as_passed() -> None:
    text = markdown(report([check("driver-too-old", "unknown")], machine((), None), verdict="unknown"))
    assert text.startswith("### ❓ UNKNOWN")
    assert "Passed:" not in text
    assert "✅" not in text


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_becomes_markup(attack: str) -> None:
    for name in ("driver-too-old", "mixed-16", "unknown-nvml"):
        text = markdown(carrying(EXAMPLES[name](), attack))
        assert len(text) < 60_000
        assert all(character.isprintable() or character in "\n\N{VARIATION SELECTOR-16}" for character in text)
        assert_only_ours(text, set())


@settings(max_examples=40)
@given(attacks)
@example("&LT;")
def test_no_text_whatever_becomes_markup(attack: str) -> None:
    found = carrying(EXAMPLES["driver-too-old"](), attack)
    assert_only_ours(markdown(found), {source.address for check in found.checks for source in check.sources})


@settings(max_examples=200)
@given(attacks)
def test_prose_and_code_read_back_as_the_text(attack: str) -> None:
    shown = " ".join(clean(attack[:100].strip()).split())
    if not shown:
        return
    for written in (f"x {prose(attack[:100], 1000)}", f"x {code(attack[:100], 1000)}"):
        inside = [token for token in tokens(written) if token.type in ("text", "code_inline", "text_special")]
        read = " ".join("".join(token.content for token in inside).split())
        assert read.replace("\N{BROKEN BAR}", "|").removeprefix("x").strip() == shown.replace("\N{BROKEN BAR}", "|")


def test_mentions_and_references_are_broken() -> None:
    assert prose("@ada #12") == "@<!-- -->ada #<!-- -->12"


def test_a_command_is_whole_or_not_there() -> None:
    assert fence(("echo", "```"), 100) == "````sh\necho '```'\n````"
    assert fence(("x" * 200,), 100) == "(a command of 200 characters; the report has it whole)"
