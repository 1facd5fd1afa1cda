"""The page for people: golden files, its limits, and what must never reach a terminal."""

import html
import json
import os
import re
import unicodedata
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.importers import read_text
from envcheck.model.checks import Check, Evidence, Fix, Ignored, Location, Report, Source, Subject, Summary
from envcheck.model.components import parse_components
from envcheck.model.snapshot import (
    ApiResult,
    Driver,
    Environment,
    Listing,
    Measurement,
    Mig,
    MigInstance,
    Platform,
    ProbeRun,
    Snapshot,
)
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.report import Options, render
from envcheck.report.page.layout import LINES, ROOMS, fix_lines
from envcheck.report.page.pen import Pen
from envcheck.report.page.stack import stack_rows
from tests.every import cases
from tests.report.examples import (
    EXAMPLES,
    HOME,
    VENV,
    about,
    check,
    cpu_only,
    driver_too_old,
    gpu,
    healthy,
    report,
    torch_build,
)
from tests.report.examples import machine as build_machine

GOLDEN = Path(__file__).parent / "golden"
REWRITE = bool(os.environ.get("ENVCHECK_REWRITE_GOLDEN"))
"""Set it to write the golden files anew, then read the difference."""

PLAIN = Options(home=HOME)
SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


def columns(line: str) -> int:
    """Width by the terminal's rules, counted apart from the code under test."""
    marks = {"Mn", "Me"}
    wide = {"W", "F"}
    return sum(
        0 if unicodedata.category(char) in marks else 2 if unicodedata.east_asian_width(char) in wide else 1
        for char in line
    )


def commands(found: Report) -> list[str]:
    """Words that only a line with a whole command may hold."""
    return [fix.command[0] for told in found.checks for fix in told.fixes if fix.command]


def assert_page(text: str, found: Report, width: int = 80) -> None:
    lines = text.splitlines()
    assert len(lines) <= LINES
    wide = [line for line in lines if columns(line) > width]
    assert all(any(line.startswith(f"  {first}") for first in commands(found)) for line in wide), wide


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


def page(*checks: Check, snapshot: Snapshot | None = None, options: Options = PLAIN, **more: Any) -> str:
    """The page on these checks, the first of which is the cause if it is a failure."""
    primary = checks[0] if checks and checks[0].status == "fail" else None
    return render(report(checks, snapshot or build_machine((), None), primary=primary, **more), "text", options)


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


def test_a_long_command_is_printed_whole_and_alone() -> None:
    found = driver_too_old()
    command = found.checks[0].fixes[1].command
    assert f"  {' '.join(command)}" in render(found, "text", PLAIN).splitlines()


def test_a_command_of_absurd_length_is_named_and_never_cut() -> None:
    fix = Fix(text="Install it", command=("pip", "install", *(f"package-{number}" for number in range(400))))
    bad = check("cpu-only-build", "fail", "A build for CPUs", fixes=(fix,))
    text = page(bad, snapshot=build_machine((), torch_build()))
    assert "package-0" not in text
    assert "a command of 4,701 characters (-v prints it)" in text
    assert "package-399" in page(bad, options=Options(verbose=True))


def test_what_the_user_can_do_comes_first() -> None:
    text = render(driver_too_old(), "text", PLAIN)
    assert text.index("torch==2.6.0+cu118") < text.index("as root: Install driver")


@cases("about, fixes, lines",
    ("each of several ways is told in words, what only looks first",
     (Fix(text="Read the kernel log", command=("sudo", "dmesg"), who="root"),
      Fix(text="See whether the machine shows the card", command=("lspci", "-nn", "-d", "10de:")),
      Fix(text="Judge the Python environment alone", command=("envcheck", "check", "--scope", "env"))),
     ["  fix   See whether the machine shows the card:", "        lspci -nn -d 10de:",
      "  fix   Judge the Python environment alone:", "        envcheck check --scope env",
      "  fix   Read the kernel log:", "        sudo dmesg"]),
    ("steps that belong together are shown together and told from alternatives",
     (Fix(text="Remove both", command=("pip", "uninstall", "a", "b")),
      Fix(text="Install one", command=("pip", "install", "b"), continues=True),
      Fix(text="Keep them apart", command=("python", "-m", "venv", "c"))),
     ["  fix   step 1 of 2: Remove both:", "        pip uninstall a b", "  fix   step 2 of 2: Install one:",
      "        pip install b", "  fix   Keep them apart:", "        python -m venv c"]),
    ("a fix is a sentence before its command", (Fix(text="Install torch again", command=("pip", "install", "torch")),),
     ["  fix   Install torch again:", "        pip install torch"]),
)  # fmt: skip
def test_fixes(about: str, fixes: tuple[Fix, ...], lines: list[str]) -> None:
    assert page(check("no-nvidia-gpu", "fail", layer="gpu", fixes=fixes)).splitlines()[1 : 1 + len(lines)] == lines


def test_a_finding_on_several_gpus_is_told_once() -> None:
    gpus = tuple(gpu(number) for number in (0, 1, 2, 5))
    bad = [
        check(
            "row-remap-failed",
            "fail",
            f"GPU {found.index} (H200): row remapping has failed",
            layer="gpu",
            subject=about(found),
        )
        for found in gpus
    ]
    late = [check("ecc", "warn", "Uncorrected errors", layer="gpu", subject=about(found)) for found in gpus[1:]]
    text = page(*bad, *late, snapshot=build_machine(gpus, None))
    lines = text.splitlines()
    assert lines[0].startswith("FAIL  GPU 0 (H200): row remapping has failed (also GPU 1-2, 5)")
    assert lines[1].strip() == "[row-remap-failed]"
    assert any(line.startswith("WARN  Uncorrected errors (GPU 1-2, 5) ") for line in lines)
    assert text.count("[row-remap-failed]") == 1


SPLIT = gpu(0, mig=Mig(enabled=True, instances=(MigInstance(), MigInstance())), utilisation=None, processes=None)
REFUSING = Driver(installed=True, release="550.54.14", cuda_init=ApiResult(call="cuInit", code=-1))
BROKEN = Environment(
    key=VENV, why="VIRTUAL_ENV", judged=True, problem="its base interpreter /usr/bin/python3.9 is gone"
)


@cases("about, checks, snapshot, told",
    ("an action stands in for a missing fix", [check("gpu-needs-reset", "fail", layer="gpu", action="reset")], None,
     ["  fix   reset the GPU\n"]),
    ("MIG, use and what a framework says", [],
     build_machine((SPLIT,), torch_build("2.6.0", "12.4", gpu_available=False), driver=REFUSING),
     ["GPU         -     H200 (sm_90, 140 GiB), MIG with 2 instances\n",
      "Driver      -     550.54.14; libcuda cannot be loaded\n",
      "Frameworks  -     torch 2.6.0 (CUDA 12.4), does not reach the GPU\n"]),
    ("an environment that cannot be examined", [],
     msgspec.structs.replace(build_machine((), None), environments=Listing(items=(BROKEN,))),
     ["Python      ?     ~/p/.venv (VIRTUAL_ENV): its base interpreter"]),
    ("what is required",
     [check("requirement-not-met", "fail", layer="request", subject=Subject(key="gpus>=8")),
      check("requirement-not-met", layer="request", subject=Subject(key="torch>=2.4"))], None,
     ["Required    FAIL  not met: gpus>=8; met: torch>=2.4"]),
    ("the home folder is shortened only as a whole path",
     [check("a", "fail", message=f"{HOME} {HOME}/x /mnt{HOME}/x {HOME}ism {HOME}.old", title="T")], None,
     ["why   ~ ~/x /mnt/home/ada/x /home/adaism /home/ada.old"]),
    ("findings are never lost in a circle of causes",
     [check("first", "fail", explained_by="second@machine"), check("second", "fail", explained_by="first@machine"),
      check("orphan", "fail", explained_by="gone@machine")], None, ["[first]", "[second]", "[orphan]"]),
)  # fmt: skip
def test_what_a_page_tells(about: str, checks: list[Check], snapshot: Snapshot | None, told: list[str]) -> None:
    text = page(*checks, snapshot=snapshot)
    assert [line for line in told if line not in text] == []


def test_what_cannot_be_tried_is_not_offered() -> None:
    text = render(msgspec.structs.replace(healthy(), probes=(), headline="Everything fits"), "text", PLAIN)
    assert "Not tested" not in text
    assert text.splitlines()[0] == "PASS  Everything fits (static checks only)"
    assert "Not tested" not in render(EXAMPLES["assumed"](), "text", PLAIN)


@cases("assumed, what",
    ("gpu==H100,driver==580.65.06,os==linux", "machine; performance (--bench): likewise"),
    ("torch==2.5.1", "environment"),
)  # fmt: skip
def test_what_an_assumption_left_untried_is_told_with_the_reason(assumed: str, what: str) -> None:
    """By real runs: the pages go by the reason that the probes' rows have."""
    found = session.check(
        Request(assume=parse_components(assumed), deep=True, probes=("platform", "deep.torch", "bench.gemm"))
    )
    told = f"Not tested: framework import (--deep): not run, --assume describes another {what}"
    text = render(found, "text", PLAIN)
    assert " ".join(text.split()).partition("Not tested")[2].startswith(f"{told.removeprefix('Not tested')}.")
    assert told in html.unescape(render(found, "html", PLAIN))
    assert told in render(found, "markdown", PLAIN).replace("\\", "")
    rows = json.loads(render(found, "json", PLAIN))["probes"]
    assert {row["detail"] for row in rows if row["name"].startswith("deep.")} == {
        f"not assumed (--assume describes another {what.partition(';')[0]})"
    }


def test_a_check_of_an_environment_names_it() -> None:
    subject = Subject(kind="environment", key=VENV, environment=VENV)
    text = page(check("nvidia-wheel-conflict", "fail", layer="library", scope="env", subject=subject))
    assert "  seen  ~/p/.venv (VIRTUAL_ENV, Python 3.12)\n" in text
    assert "Python " not in text.replace("Python 3.12", "")


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


def test_status_is_told_by_words() -> None:
    text = render(EXAMPLES["warned"](), "text", Options(color=False))
    rows = [line for line in text.splitlines() if line[:12].strip() == "GPU" or line.startswith(" " * 12)]
    assert [row[12:18].strip() for row in rows[:2]] == ["WARN", "ok"]


def test_pass_says_that_it_is_on_paper() -> None:
    assert "look compatible (static checks only)" in render(healthy(), "text", PLAIN).splitlines()[0]
    reworded = msgspec.structs.replace(healthy(), headline="Everything fits")
    assert "(static checks only)" in render(reworded, "text", PLAIN).splitlines()[0]
    ran = msgspec.structs.replace(reworded, checks=(check("gpu-code-missing", decided_by="framework-ran"),))
    assert render(ran, "text", PLAIN).splitlines()[0] == "PASS  Everything fits"


def test_unknown_names_the_fact_and_the_probe() -> None:
    first = render(EXAMPLES["unknown-nvml"](), "text", PLAIN).splitlines()[0]
    assert first.startswith("UNKNOWN  Driver version unknown: probe nvml timed out")


@cases("text", "torch 2.5.1\n", "NVIDIA L4\n")
def test_an_unknown_headline_does_not_state_the_problem_that_nobody_looked_for(text: str) -> None:
    judged = session.judge(read_text(text), Request(), lambda _event: None)
    problems = [each.title for each in judged.checks if each.status == "skipped"]
    first = render(judged, "text", PLAIN).splitlines()[0]
    assert first.startswith("UNKNOWN  ")
    assert not any(problem in first for problem in problems)


def test_nobody_looked_is_not_none() -> None:
    empty = msgspec.structs.replace(build_machine((), None), gpus=None, toolkits=None, driver=None, environments=None)
    text = render(report([], empty, verdict="unknown", headline="no verdict"), "text", PLAIN)
    assert not {"none", "ok"} & set(text.split())
    whole = render(report([], empty, verdict="unknown", headline="no verdict"), "text", Options(verbose=True))
    rows = {line[:12].strip(): line[12:] for line in whole.splitlines()}
    assert {rows[label] for label in ("GPU", "Driver", "Toolkit", "Frameworks")} == {"-     not checked"}
    assert text.splitlines()[-1] == "no check ran"


def test_an_incomplete_list_is_not_none() -> None:
    open_lists = msgspec.structs.replace(build_machine((), None), gpus=Listing(), toolkits=Listing())
    assert page(snapshot=open_lists).count("none seen, but the list is not complete") == 2


def test_health_is_claimed_only_for_gpus_that_were_checked() -> None:
    found = healthy()
    unchecked = tuple(told for told in found.checks if told.subject.kind != "gpu")
    text = render(msgspec.structs.replace(found, checks=unchecked), "text", PLAIN)
    assert "no errors" in render(found, "text", PLAIN)
    assert "no errors" not in text


def test_dead_probes_are_told() -> None:
    runs = (
        ProbeRun(name="nvml", status="timed-out", seconds=10.4, detail="timed out: no answer"),
        ProbeRun(name="cuda", status="crashed", detail="crashed: SIGSEGV while loading libcuda.so.1"),
        ProbeRun(name="kernel", status="failed"),
        ProbeRun(name="bench", status="skipped", detail="not asked for"),
    )
    lines = render(msgspec.structs.replace(healthy(), probes=runs), "text", PLAIN).splitlines()
    assert "Probe nvml timed out after 10 s: no answer" in lines
    assert "Probe cuda crashed: SIGSEGV while loading libcuda.so.1" in lines
    assert "Probe kernel failed" in lines
    assert not any("bench timed" in line or line.startswith("Probe bench") for line in lines)


def test_another_environment_with_a_framework_is_named() -> None:
    text = render(EXAMPLES["no-gpu"](), "text", PLAIN)
    assert "not judged: torch 2.5.1 in /opt/conda (CONDA_PREFIX; --python judges it)" in " ".join(text.split())


def test_ignored_findings_are_not_told_as_findings() -> None:
    aside = check("power-throttled", "warn", "Power is capped", layer="gpu", ignored=Ignored(reason="by design"))
    assert "Power is capped" not in page(aside, verdict="pass")
    assert "ignored by policy: by design" in page(aside, verdict="pass", options=Options(verbose=True))


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


def test_the_tightest_page_has_every_step_of_the_first_way() -> None:
    step = Fix(text="Remove both, " * 20, command=("pip", "uninstall", "a", "b"))
    install = Fix(text="Install one", command=("pip", "install", "b"), continues=True)
    other = Fix(text="Keep them apart", command=("python", "-m", "venv", "c"))
    bad = check("onnxruntime-cpu-and-gpu", "fail", fixes=(step, install, other))
    lines = ["".join(span.text for span in line) for line in fix_lines(bad, Pen(PLAIN), ROOMS[-1])]
    said = [line.split("  ")[-1].strip() for line in lines]
    assert said == ["pip uninstall a b", "pip install b", "+1 more fix (-v)"]


def test_only_a_page_of_the_first_source_s_product_is_cited() -> None:
    """Else Docker's missing toolkit would cite a page on Jetson because its address is shorter."""
    long = Source(title="Docker", address="https://docs.nvidia.com/datacenter/cloud-native/" + "x" * 80)
    short = Source(title="Jetson", address="https://nvidia.github.io/container-wiki/toolkit/jetson.html")
    near = Source(title="Docker, an overview", address="https://docs.nvidia.com/datacenter/cloud-native/index.html")

    def cited(*sources: Source) -> str:
        found = check("container-toolkit-missing", "fail", layer="container", sources=sources)
        return next(line for line in page(found).splitlines() if line.startswith("  docs")).split(maxsplit=1)[1]

    assert cited(long, short) == "envcheck rule container-toolkit-missing"
    assert cited(long, short, near) == near.address
    assert cited(short, near) == short.address


@cases("container", None, "none", "docker")
def test_a_container_s_failure_stands_in_a_row_of_its_own(container: Any) -> None:
    """It once read "GPU FAIL not looked at"."""
    found = check("container-toolkit-missing", "fail", "The toolkit is missing", layer="container")
    system = Platform(container=container) if container else None
    machine = msgspec.structs.replace(build_machine((), None), gpus=None, platform=system)
    rows = {row.label: row for row in stack_rows(report([found], machine), gpus=8)}
    assert (rows["GPU"].status, rows["GPU"].text, rows["Container"].status) == ("skipped", "not checked", "fail")
    assert rows["Container"].text in ("docker", "The toolkit is missing")


PERSISTENCE = "persistence mode is not enabled on GPU 00000000:0F:00.0 (nvidia-smi)\n"


def test_what_a_text_names_stands_above_what_was_not_looked_at() -> None:
    judged = session.judge(read_text(PERSISTENCE), Request(), lambda _event: None)
    lines = render(judged, "text", PLAIN).splitlines()
    assert re.fullmatch(r"UNKNOWN  Persistence mode is off +\[persistence-mode-off\]", lines[0])
    assert lines[1] == "  why   no verdict: List of GPUs was not checked"
    assert "error line: persistence mode is not enabled" in lines[2]
    assert sum("Persistence mode is off" in line for line in lines) == 1


def test_a_probe_that_died_stands_above_what_a_text_names() -> None:
    judged = session.judge(read_text(PERSISTENCE), Request(), lambda _event: None)
    dead = ProbeRun(name="nvml", title="NVML", status="timed-out", seconds=10, fills=("gpus",))
    assert "Persistence" not in render(msgspec.structs.replace(judged, probes=(dead,)), "text", PLAIN).splitlines()[0]


@cases("verbose, rows", (False, 0), (True, 1))
def test_a_row_that_says_nothing_is_left_to_the_whole_page(*, verbose: bool, rows: int) -> None:
    judged = session.judge(read_text("CUDA out of memory\n"), Request(), lambda _event: None)
    text = render(judged, "text", Options(verbose=verbose))
    assert (len(re.findall(r"(?m)^Toolkit +- +not checked$", text)), text.count(" skipped\n")) == (rows, rows)


@cases("width", 40, 60, 80)
def test_an_address_is_whole_however_narrow_the_page(width: int) -> None:
    address = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html"
    for text in (f"Update the driver, as described: {address}", f"{address} says how", f"({address})"):
        bad = check("driver-too-old", "fail", "The driver is too old", fixes=(Fix(text=text),))
        text_of_page = page(bad, options=Options(width=width))
        assert address in text_of_page
        assert address[:30] not in text_of_page.replace(address, "")
