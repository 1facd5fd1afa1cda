"""HTML and Markdown: well-formed, bounded, nothing foreign becomes markup, and they say what the report says."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import example, given, settings
from markdown_it import MarkdownIt  # comes with textual
from markdown_it.token import Token

from envcheck.model.checks import Check, Figure, Fix, Report, Source, Status
from envcheck.model.snapshot import Conditions, Measurement, Span, Verification
from envcheck.report import Options, render
from envcheck.report.document import code, cut, fence, html, link, prose, tag
from envcheck.report.page.stack import stack_rows
from envcheck.text.clean import clean
from tests.every import cases
from tests.known import known
from tests.report.examples import EXAMPLES, about, check, gpu, healthy, machine, report, torch_build
from tests.report.foreign import ATTACKS, attacks, carrying
from tests.test_machines import report_on

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "section", "article", "div", "header", "footer"),
    *("h1", "h2", "h3", "p", "span", "b", "i", "code", "pre", "a", "ul", "li", "dl", "dt", "dd", "table", "tr", "td"),
    *("details", "summary", "svg", "rect"),
}
ATTRIBUTES = {
    *("charset", "http-equiv", "content", "name", "lang", "class", "href", "rel", "title", "role", "aria-hidden"),
    *("viewbox", "preserveaspectratio", "x", "y", "width", "height"),
}


class Page(HTMLParser):
    """What a browser would see; fails on anything that the page is not meant to hold."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self.seen: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        self.seen.append(tag)
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            if name == "href":
                self.links.append(known(value))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def page(found: Report, *, redact: bool = False) -> tuple[str, Page]:
    written = render(found, "html", Options(redact=redact))
    return written, Page(written)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_a_page(name: str) -> None:
    found = EXAMPLES[name]()
    written, parsed = page(found)
    assert written.startswith("<!DOCTYPE html>\n<html")
    assert written.count("<h1>") == 1
    assert clean(found.checks[0].title)[:200] in parsed.text
    assert len(written) < 1_500_000


def test_nothing_is_loaded_or_run() -> None:
    written, parsed = page(EXAMPLES["driver-too-old"]())
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(parsed.seen)
    assert "default-src &#x27;none&#x27;" in written
    assert not re.search(r"url\(|@import|\ssrc=|\son\w+=", written)


def test_the_page_tells_cause_fix_and_stack_with_words_and_signs() -> None:
    _, parsed = page(EXAMPLES["driver-too-old"]())
    for told in ("FAIL", "✕", "driver release: 470.256.02", "apt-get install nvidia-driver-550", "needs a reboot"):
        assert told in parsed.text
    floors = [word for word in parsed.words if word in ("Frameworks", "Python", "Toolkit", "Driver", "GPU")]
    assert floors[:5] == ["GPU", "Driver", "Toolkit", "Python", "Frameworks"]


def test_the_layers_stand_in_the_order_of_the_text_page() -> None:
    base = healthy().snapshot
    assert base is not None
    inside = msgspec.structs.replace(base, platform=msgspec.structs.replace(known(base.platform), container="docker"))
    report = msgspec.structs.replace(healthy(), snapshot=inside)
    _, parsed = page(report)
    labels = [row.label for row in stack_rows(report, 8)]
    assert "Container" in labels
    assert [word for word in parsed.words if word in labels][: len(labels)] == labels


def test_what_was_not_checked_is_not_shown_as_passed() -> None:
    _, parsed = page(report([check("driver-too-old", "unknown")], machine((), None), verdict="unknown"))
    assert "UNKNOWN" in parsed.text
    assert "✓" not in parsed.text


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_leaves_its_place(attack: str) -> None:
    """Page itself fails on any tag, attribute, comment or declaration that is not the renderer's own."""
    for name in ("driver-too-old", "unknown-nvml", "mixed-16"):
        written, parsed = page(carrying(EXAMPLES[name](), attack))
        assert all(character.isprintable() or character == "\n" for character in written)
        assert clean(attack)[:100] in parsed.text
        assert "javascript" not in "".join(parsed.links)


@settings(max_examples=40)
@given(attacks)
def test_no_text_whatever_leaves_its_place(attack: str) -> None:
    written, parsed = page(carrying(EXAMPLES["driver-too-old"](), attack))
    assert len(parsed.seen) >= len(page(EXAMPLES["driver-too-old"]())[1].seen) - 2
    assert written.isprintable() or set(filter(lambda char: not char.isprintable(), written)) <= {"\n"}


@cases("address", "javascript:alert(1)", "http://x", "https://x\u202e", "https://x\ny", "", "//x")
def test_only_plain_https_addresses_become_links(address: str) -> None:
    assert "<a" not in html(link("title", address))
    assert html(link("title", "https://x/?a=1&b=2")) == (
        '<a href="https://x/?a=1&amp;b=2" rel="noreferrer noopener">title</a>'
    )
    bad = check("driver-too-old", "fail", sources=(Source(title="docs", address=address),))
    assert page(report([bad], machine((), None), primary=bad))[1].links == []


def test_text_is_escaped_unless_a_tag_made_it() -> None:
    assert html(tag("p", "<b>", tag("i", "&"))) == "<p>&lt;b&gt;<i>&amp;</i></p>"
    assert html(tag("p", title='"')) == '<p title="&quot;"></p>'
    assert html(cut("x" * 30, 10)) == "x" * 10 + " … (20 more characters)"


def test_a_command_is_whole_or_not_there() -> None:
    for length, whole in ((3000, True), (9000, False)):
        bad = check("gpu-lost", "fail", fixes=(Fix(text="Mend it", command=("mend", "x" * length)),))
        _, parsed = page(report([bad], machine((), None), primary=bad))
        assert (f"mend {'x' * length}" in parsed.text) == whole
        assert ("mend x" in parsed.text) == whole


def measured() -> Report:
    """Constructed: a good figure, a low one, one without a band, one that failed, one that is wrong."""
    found = gpu(0, sm_count=132, pci_device_id="10de:2335")
    clocks = Conditions(samples=9, sm_clock=Span(low=1.98e9, median=1.98e9, high=1.98e9), power_limit=700.0, ecc=True)

    def figure(name: str, value: float | None, unit: str = "B/s", **more: object) -> Measurement:
        fields = {"gpu": found.uuid, "samples": (value,) * 3 if value else (), "method": "kernel", "conditions": clocks}
        return Measurement(**({"name": name, "value": value, "unit": unit} | fields | more))  # type: ignore[arg-type]

    figures = (
        figure("device-memory-copy", 4.3e12), figure("device-memory-read", 1.0e12), figure("l2-read", 9.1e12),
        figure("atomics", None, missing="it was <interrupted>"),
        figure("device-memory-write", 4.6e12, verification=Verification(right=False, checked=9, how="every word")),
    )  # fmt: skip

    def judged(status: Status, name: str, share: float) -> Check:
        one = check("slow-gpu-memory", status, layer="gpu", subject=about(found))
        held = Figure(name=name, value=1.0, unit="B/s", share=share, expected_low=0.84, expected_high=0.95)
        subject = msgspec.structs.replace(one.subject, key=f"{found.key}:{name}")
        return msgspec.structs.replace(one, subject=subject, figure=held)

    low = judged("warn", "device-memory-read", 0.21)
    others = [judged("pass", "device-memory-copy", 0.9), judged("fail", "device-memory-write", 0.96)]
    return report([low, *others], machine((found,), torch_build()), primary=low, measurements=figures)


@cases("redact", False, True)
def test_figures_are_bars_judged_by_the_report(redact: bool) -> None:  # noqa: FBT001
    written, parsed = page(measured(), redact=redact)
    assert written.count("<svg") == 3
    assert written.count('class="bar pass"') == 1
    assert written.count('class="bar warn"') == 1
    assert written.count('class="bar fail"') == 1
    for told in ("4.30 TB/s", "90% ✓", "LOW", "WRONG RESULT", "9.10 TB/s", "it was <interrupted>"):
        assert told in parsed.text
    assert "limit 700 W, ECC on" in parsed.text


def test_without_measurements_there_are_no_bars() -> None:
    written, parsed = page(healthy())
    assert "<svg" not in written
    assert "Performance" not in parsed.text


def test_a_recorded_machine() -> None:
    found = report_on("h200")
    written, parsed = page(found, redact=True)
    assert "H200" in parsed.text
    uuids = [gpu.uuid for gpu in found.snapshot.gpus.items] if found.snapshot and found.snapshot.gpus else []
    assert uuids
    assert not [uuid for uuid in uuids if uuid and uuid in written]


def test_names_are_replaced_unless_asked_for() -> None:
    named = EXAMPLES["driver-too-old"]()
    assert "/home/ada" not in render(named, "html")
    assert "/home/ada/p/.venv" in render(named, "html", Options(redact=False))


# --- Markdown for an issue: what it says, how long it may be, and that no text becomes markup -----------------------
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
    assert "- rule: `envcheck rule driver-too-old`" in text
    assert "```sh\napt-get install nvidia-driver-550\n```" in text
    assert "(risk: needs a reboot)" in text
    assert "| Frameworks | ❌ FAIL | torch 2.6.0+cu126 |" in text
    assert "| Driver | `470.256.02, CUDA 11.4` |" in text
    assert "[CUDA Toolkit release notes](https://docs.nvidia.com/cuda/)" in text
    assert "/home/ada" not in text
    assert "~/p/.venv" in text
    assert "names of users and machines, and identifiers, are replaced" in text


@cases("address, shown", ("https://docs.nvidia.com/guide/", True), ("https://docs.nvidia.com.example.org/", False))
def test_an_address_of_a_fix_is_plain_where_the_check_cites_its_host(address: str, shown: bool) -> None:  # noqa: FBT001
    page = Source(title="Guide", address="https://docs.nvidia.com/", read="2026-11-20")
    fix = Fix(text=f"Install it as described: {address}.")
    bad = check("driver-too-old", "fail", "Too old", fixes=(fix,), sources=(page,))
    assert (f"described: {address}." in markdown(report([bad], machine((), None), primary=bad))) == shown


def test_a_command_is_told_with_its_whole_paths() -> None:
    """A shell expands no ``~`` within quotes."""
    assert "\n/home/user/p/.venv/bin/python -m pip install" in render(EXAMPLES["driver-too-old"](), "markdown")


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


def test_a_command_is_whole_or_not_there_markdown() -> None:
    assert fence(("echo", "```"), 100) == "````sh\necho '```'\n````"
    assert fence(("x" * 200,), 100) == "(a command of 200 characters; the report has it whole)"
