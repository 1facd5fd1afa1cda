"""The page for people: golden files, its limits, and what must never reach a terminal."""

import os
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.model.checks import Check, Evidence, Fix, Ignored, Location, Report, Summary
from envcheck.model.snapshot import Measurement, ProbeRun
from envcheck.report import Options, render
from envcheck.report.page.pen import LINES
from tests.every import cases
from tests.report.examples import EXAMPLES, HOME, PLAIN, check, cpu_only, healthy, page, report, torch_build
from tests.report.examples import machine as build_machine

GOLDEN = Path(__file__).parent / "golden"
REWRITE = bool(os.environ.get("ENVCHECK_REWRITE_GOLDEN"))
"""Set it to write the golden files anew, then read the difference."""
SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


def columns(line: str) -> int:
    """Width by the terminal's rules, counted apart from the code under test."""
    marks = {"Mn", "Me"}
    wide = {"W", "F"}
    return sum(
        0 if unicodedata.category(char) in marks else 2 if unicodedata.east_asian_width(char) in wide else 1
        for char in line
    )


def assert_page(text: str, found: Report, width: int = 80) -> None:
    lines = text.splitlines()
    assert len(lines) <= LINES
    wide = [line for line in lines if columns(line) > width]
    commands = tuple(f"  {fix.command[0]}" for told in found.checks for fix in told.fixes if fix.command)
    assert all(line.startswith(commands) for line in wide), wide  # only a line with a whole command may be


def assert_safe(text: str) -> None:
    assert text.endswith("\n")
    for char in text.replace("\n", ""):
        category = unicodedata.category(char)
        assert not category.startswith("C"), f"U+{ord(char):04X} ({category})"
        assert category not in ("Zl", "Zp"), f"U+{ord(char):04X}"


def golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if REWRITE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"ENVCHECK_REWRITE_GOLDEN=1 writes {path.name} anew"


@pytest.mark.parametrize("name", EXAMPLES)
def test_page_is_as_recorded(name: str) -> None:
    golden(name, render(EXAMPLES[name](), "text", PLAIN))


@cases("name", "healthy", "driver-too-old", "unknown-nvml", "warned")
def test_verbose_page_is_as_recorded(name: str) -> None:
    golden(f"{name}-verbose", render(EXAMPLES[name](), "text", Options(home=HOME, verbose=True)))


def test_no_golden_file_is_left_over() -> None:
    verbose = {"healthy", "driver-too-old", "unknown-nvml", "warned"}
    others = {path.stem for path in GOLDEN.glob("speed-*")}
    assert {path.stem for path in GOLDEN.iterdir()} - others == {*EXAMPLES, *(f"{name}-verbose" for name in verbose)}


@pytest.mark.parametrize("name", EXAMPLES)
@cases("width", 40, 80, 200)
def test_page_keeps_its_limits(name: str, width: int) -> None:
    found = EXAMPLES[name]()
    text = render(found, "text", Options(width=width))
    assert_safe(text)
    assert_page(text, found, min(width, 100))


@pytest.mark.parametrize("name", EXAMPLES)
@cases("verbose", False, True)
def test_ascii_page_has_ascii_only(name: str, *, verbose: bool) -> None:
    text = render(EXAMPLES[name](), "text", Options(ascii=True, verbose=verbose))
    assert text.isascii()
    assert_safe(text)


@cases("width", 40, 60, 80)
def test_an_address_is_whole_however_narrow_the_page(width: int) -> None:
    address = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html"
    for text in (f"Update the driver, as described: {address}", f"{address} says how", f"({address})"):
        bad = check("driver-too-old", "fail", "The driver is too old", fixes=(Fix(text=text),))
        text_of_page = page(bad, options=Options(width=width))
        assert address in text_of_page
        assert address[:30] not in text_of_page.replace(address, "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_colour_changes_nothing_but_colour(name: str) -> None:
    found = EXAMPLES[name]()
    for verbose in (False, True):
        plain = render(found, "text", Options(verbose=verbose))
        coloured = render(found, "text", Options(verbose=verbose, color=True))
        assert "\x1b" not in plain
        assert coloured != plain
        assert SEQUENCE.sub("", coloured) == plain


def test_verbose_page_of_hostile_names_is_safe() -> None:
    text = render(EXAMPLES["hostile"](), "text", Options(verbose=True))
    assert_safe(text)
    assert "\\x1b[2J" in text


def test_the_shape_of_a_broken_machine() -> None:
    lines = render(cpu_only(), "text", PLAIN).splitlines()
    assert re.fullmatch(r"FAIL  PyTorch cannot use the GPU: CPU-only build +\[cpu-only-build\]", lines[0])
    assert (len(lines[0]), lines[1]) == (80, "  seen  torch 2.5.1+cpu in ~/p/.venv (VIRTUAL_ENV, Python 3.12)")
    assert lines.pop(2).startswith("  fix   ")
    assert lines[2] == "        uv pip install --reinstall torch --torch-backend=cu124"
    assert lines.pop(3) == "  docs  https://docs.nvidia.com/cuda/"
    assert lines[3] == "GPU         ok    2 of 8 x H100 80GB (sm_90), idle, no errors"
    assert lines[4] == "Driver      ok    550.54.14, supports up to CUDA 12.4; cuInit ok"
    assert (lines[5], lines[6]) == ("Toolkit     -     none (wheels need none)", "Frameworks  FAIL  torch 2.5.1+cpu")
    assert lines[7] == "Not tested: framework import (--deep), performance (--bench).   1 fail, 35 pass"


def test_quiet_prints_the_verdict_and_its_cause() -> None:
    text = render(cpu_only(), "text", Options(quiet=True, home=HOME))
    assert text.splitlines()[0].startswith("FAIL  PyTorch cannot use the GPU")
    assert [line[2:6] for line in text.splitlines()[1:]] == ["seen", "fix ", "    ", "docs"]


def test_verbose_page_has_all_that_a_report_holds() -> None:
    weak = check(
        "library-shadowed", "warn", confidence="weak", decided_by="measured",
        location=Location(file="requirements.txt", line=3), ignored=Ignored(reason="known", until="2027-01-01"),
    )  # fmt: skip
    found = report(
        [weak], build_machine((), None), verdict="pass", overlays=("site.toml",),
        measurements=(
            Measurement(name="copy", gpu="0000:06:00.0", value=4.264e12, unit="B/s", method="copy_"),
            Measurement(name="read"),
        ),
        probes=(ProbeRun(name="nvml", status="skipped", detail="outside --scope env"),),
    )  # fmt: skip
    text = render(found, "text", Options(verbose=True))
    for line in (
        "  about requirements.txt:3",
        "  aside ignored by policy until 2027-01-01: known",
        "  by    measurement, weak confidence",
        "  copy on 0000:06:00.0: 4.264e+12 B/s (copy_)",
        "  read: not measured",
        "  nvml: skipped: outside --scope env",
        "  overlay of the matrix: site.toml",
    ):
        assert f"{line}\n" in text


any_text = st.text(max_size=300)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_text_anywhere_keeps_the_limits(data: st.DataObject) -> None:
    def draw() -> str:
        return data.draw(any_text)

    found = tuple(
        Check(
            id=f"{number}",
            rule=draw(),
            scope="node",
            layer=data.draw(st.sampled_from(["gpu", "driver", "framework", "container", "request"])),
            subject=check("x").subject,
            status=data.draw(st.sampled_from(["fail", "warn", "unknown", "note", "pass", "skipped"])),
            title=draw(),
            message=draw(),
            evidence=(Evidence(what=draw(), value=draw(), source=draw()),),
            fixes=(Fix(text=draw(), command=("do-it", draw()), who="root", risk=draw()),),
            explained_by=data.draw(st.sampled_from([None, "0", "1", "2"])),
        )
        for number in range(data.draw(st.integers(0, 6)))
    )
    whole = Report(
        tool=healthy().tool, created=draw(), duration_s=1.0, host=draw(), headline=draw(), exit_code=1,
        verdict=data.draw(st.sampled_from(["pass", "warn", "fail", "unknown"])),
        primary_check=data.draw(st.sampled_from([None, "0", "5"])), summary=Summary.of(found),
        grounds=healthy().grounds, checks=found, ask=(draw(), draw()), assumed={draw(): draw()},
        snapshot=build_machine((), torch_build(draw())),
    )  # fmt: skip
    text = render(whole, "text", Options())
    assert_safe(text)
    assert_page(text, whole)
    assert_safe(render(whole, "text", Options(verbose=True)))
