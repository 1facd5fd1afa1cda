"""The GPUs, the performance screen, and the place Fleet."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from envcheck.cli.parser import parse
from envcheck.cli.verbs import tui as application
from envcheck.collect.plan import BenchRequest
from envcheck.fleet import record
from envcheck.fleet.record import Fleet
from envcheck.model.checks import Report
from envcheck.model.snapshot import (
    Collective,
    CollectivePoint,
    Conditions,
    Gpu,
    Listing,
    Measurement,
    Snapshot,
    Span,
    Verification,
)
from envcheck.pipeline.request import Request
from envcheck.report import Options, render
from envcheck.report.page.pen import Line, Pen, StyledSpan
from envcheck.report.speed import FigureTable
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.screens.fleet import FleetPage, read_fleet
from envcheck.tui.screens.gpus import graph, link_lines
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.widgets.plot import collective_lines, heat_lines, past_lines, roofline_lines
from envcheck.tui.worker.telemetry import Telemetry
from tests.every import cases
from tests.fleet.made import healthy
from tests.fleet.test_fleet import fleet_of, write
from tests.known import known
from tests.rules.machines import h200, machine
from tests.tui.showing import LARGE, SMALL, Replay, judged, recorded, settled, show, shows, take, until, words

H200_UUID = recorded("h200").gpus.items[0].uuid  # type: ignore[union-attr]


def copied(gpu: Gpu, share: float, **more: Any) -> Measurement:
    """A copy within device memory at a share of what an H200's memory does by its data sheet."""
    value = share * 4.8e12
    return Measurement(
        name="device-memory-copy", gpu=gpu.uuid, value=value, unit="B/s", samples=(value, value), method="kernel",
        conditions=Conditions(sm_clock=Span(low=1.98e9, median=1.98e9, high=1.98e9)), **more,
    )  # fmt: skip


def measured(*shares: float, **more: Any) -> Report:
    gpus = [h200(number) for number in range(len(shares))]
    figures = tuple(copied(gpu, share, **more) for gpu, share in zip(gpus, shares, strict=True))
    return judged(msgspec.structs.replace(machine(*gpus), measurements=figures))


def lines(report: Report, columns: int = 100) -> list[str]:
    pen = Pen(Options(width=columns, ascii=True))
    return pen.show(FigureTable(report, pen, bars=True).lines()).splitlines()


def test_a_figure_is_a_bar_with_the_edge_of_the_band_and_its_share() -> None:
    row = next(line for line in lines(measured(0.9)) if "Device memory copy" in line)
    assert "4.32 TB/s" in row
    assert "90%" in row
    bar = row[row.index("=") :].split()[0]
    assert bar.count("|") == 1
    assert 0.8 < (bar.count("=") + 1) / len(bar[: bar.index("%")] if "%" in bar else bar) <= 1.0


def test_a_low_figure_says_so_in_a_word() -> None:
    report = measured(0.4)
    status = next(check.status for check in report.checks if check.rule.startswith("slow-"))
    assert status in ("warn", "fail")
    assert any(status.upper() in line and "40%" in line for line in lines(report))


def drawn(lines: Iterable[Line]) -> list[str]:
    return ["".join(span.text for span in line) for line in lines]


def test_a_table_of_gpus_and_figures_marks_the_outlier_and_names_the_threshold() -> None:
    shown = drawn(heat_lines(measured(0.9, 0.5, 0.91), Pen(Options(width=80))))
    assert shown[0].split()[-3:] == ["0", "1", "2"]
    assert re.findall("[0-9]+%[! ]", shown[1]) == ["90% ", "50%!", "91% "]
    assert "begins at 84%" in shown[2]
    assert not heat_lines(measured(0.9), Pen(Options()))


def test_one_gpu_has_a_roofline_with_its_products_below_the_roofs() -> None:
    pen = Pen(Options(width=80, ascii=True))
    shown = drawn(roofline_lines(judged(recorded("h100-tried-and-measured")), pen))
    assert sum(line.replace(" of ", "").count("o") for line in shown[1:11]) == 3
    roofs = [line.rpartition("  ")[2].rpartition(". ")[2] for line in shown[1:11] if "%" in line]
    assert roofs == ["FP8 72% of 2.14 PFLOP/s", "BF16 77% of 1.07 PFLOP/s", "FP32 77% of 66.9 TFLOP/s"]
    assert shown[1].startswith("2.14 PFLOP/s") or "2.14 PFLOP/s" in shown[1]
    assert not roofline_lines(measured(0.9), pen)


def test_bus_bandwidth_is_a_curve_by_message_size() -> None:
    points = tuple(CollectivePoint(size=1 << size, bandwidth=1e9 * (size - 9)) for size in range(10, 31, 5))
    collective = Collective(ranks=2, processes=1, points=points)
    found = Measurement(name="nccl-all-reduce", value=21e9, unit="B/s", collective=collective)
    report = judged(msgspec.structs.replace(machine(h200(0), h200(1)), measurements=(found,)))
    shown = drawn(collective_lines(report, Pen(Options(width=70))))
    assert "bus bandwidth by message size" in shown[0]
    assert "21.0 GB/s" in shown[1]
    assert "1.00 GB/s" in shown[10]
    assert max(map(len, shown)) <= 70
    heights = [next(row for row, line in enumerate(shown[1:11]) if line[column].strip()) for column in (14, 40, 69)]
    assert heights == sorted(heights, reverse=True)


def test_b_without_a_gpu_says_why_nothing_was_measured() -> None:
    replay = Replay(Snapshot(gpus=Listing(items=(), complete=True)))

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.report)
        await pilot.press("b")
        await until(pilot, lambda: words(app).count("There is no NVIDIA GPU to measure.") == 2)  # told, and on the page
        assert len(replay.requests) == 1

    show(None, steps, gather=replay, size=LARGE)


def test_a_wrong_result_says_so() -> None:
    wrong = Verification(right=False, checked=10, how="every byte", wrong=1)
    assert any(" WRONG " in line for line in lines(measured(0.9, verification=wrong)))


def test_gpus_are_compared() -> None:
    text = lines(measured(0.9, 0.81))
    place = next(number for number, line in enumerate(text) if line.startswith("Across GPUs"))
    assert "10%  GPU 1: 3.89 of 4.32 TB/s" in text[place + 1]


def test_a_figure_stands_beside_its_baseline() -> None:
    figure = copied(h200(), 0.9)
    earlier = msgspec.structs.replace(figure, value=0.92 * 4.8e12)
    snapshot = msgspec.structs.replace(machine(h200()), measurements=(figure,))
    assert any("98% of base" in line for line in lines(judged(snapshot, Request(baseline=(earlier,)))))


@cases("columns", 60, 79, 120, 199)
def test_no_row_is_wider_than_the_screen(columns: int) -> None:
    assert max(map(len, lines(measured(0.9, variant="x" * 300, detail="y" * 300), columns))) <= max(columns, 100)


def test_why_something_is_not_judged_is_short() -> None:
    report = measured(0.9)
    odd = Measurement(name="gemm", precision="int4", gpu=h200().uuid, value=2e12, unit="OP/s", method="cuBLASLt")
    snapshot = msgspec.structs.replace(report.snapshot, measurements=(odd,))  # type: ignore[type-var]
    (row,) = (line for line in lines(judged(snapshot), 79) if "INT4" in line)  # type: ignore[arg-type]
    assert "no band is known for it" in row


def test_the_fields_choose_gpus_and_figures() -> None:
    replay = Replay(recorded("h200x4"))

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.report)
        await pilot.press("3")
        await until(pilot, lambda: app.query("#speed-gpus"))
        app.query_one("#speed-gpus", Input).value = "0, 2"
        app.query_one("#speed-only", Input).value = "gemm"
        await pilot.press("B")
        await until(pilot, lambda: len(replay.requests) == 2)
        await until(pilot, lambda: app.sessions.current is None)
        app.query_one("#speed-gpus", Input).value = ""
        app.query_one("#speed-only", Input).value = "frameworks"
        await pilot.press("b")
        await until(pilot, lambda: len(replay.requests) == 3)
        await until(pilot, lambda: app.sessions.current is None)
        app.query_one("#speed-gpus", Input).value = "first"
        await shows(pilot, "is not a GPU number", "b")
        app.query_one("#speed-gpus", Input).value = ""
        app.query_one("#speed-only", Input).value = "gem"
        await shows(pilot, "there is no quantity 'gem'", "b")

    show(None, steps, gather=replay, size=LARGE)
    assert replay.requests[1].bench == BenchRequest(full=True, gpus=(0, 2), only=("gemm",))
    assert replay.requests[2].bench == BenchRequest(frameworks=True)


def test_progress_of_a_measurement_is_told() -> None:
    replay = Replay(recorded("h200"))

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.report)
        replay.go_on.clear()
        await pilot.press("b")
        await until(pilot, lambda: "Measuring: 1 of 2 probes" in words(app) and "(x cancels)" in words(app))
        assert "GPU 1 of 1" in words(app)
        await pilot.press("x")
        await until(pilot, lambda: app.sessions.current is None)
        assert "(x cancels)" not in words(app).partition("GPUs ")[2].partition("Cancelled")[0]

    show(None, steps, gather=replay, size=LARGE)


def test_earlier_runs_are_a_line_that_ends_now() -> None:
    figure = copied(h200(), 0.6)
    earlier = [msgspec.structs.replace(figure, value=share * 4.8e12) for share in (0.9, 0.92, 0.91, 0.5, 0.93)]
    report = judged(msgspec.structs.replace(machine(h200()), measurements=(figure,)), Request(baseline=tuple(earlier)))
    pen = Pen(Options(width=60, ascii=True))
    shown = drawn(past_lines(report, pen))
    assert shown[0] == "speed in 5 earlier runs and now, of their median (100%)"
    assert (shown[1].split("|")[0].strip(), shown[10].split("|")[0].strip()) == ("110%", "55%")
    assert shown[11].split() == ["5", "back", "now"]
    assert {row.index("o") for row in shown[1:11] if "o" in row} == {59}
    assert shown[12].startswith("GPU 0 (NVIDIA H200): Device memory copy: 34% slower")
    assert not past_lines(measured(0.9), pen)


def answering() -> SimpleNamespace:
    """An NVML of the recorded H200 and of another GPU, which does not tell its power."""
    counts = iter(range(0, 1 << 40, 1 << 30))

    def power(handle: int) -> int:
        if handle:
            raise RuntimeError("not supported")
        return 412_300

    def fields(handle: int, wanted: list[tuple[int, int]]) -> list[SimpleNamespace]:
        count = next(counts)
        return [SimpleNamespace(nvmlReturn=handle, value=SimpleNamespace(ullVal=count)) for _ in wanted]

    return SimpleNamespace(
        NVML_CLOCK_SM=1, NVML_TEMPERATURE_GPU=0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED=1, NVML_VOLATILE_ECC=0,
        NVML_FI_DEV_PCIE_COUNT_TX_BYTES=197, NVML_FI_DEV_PCIE_COUNT_RX_BYTES=198,
        NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX=138, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX=139, nvmlMemory_v2=2,
        nvmlClocksThrottleReasonHwThermalSlowdown=64, nvmlInit=lambda: None, nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 2, nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetUUID=lambda handle: "another" if handle else H200_UUID, nvmlDeviceGetPowerUsage=power,
        nvmlDeviceGetMemoryInfo=lambda handle, version: SimpleNamespace(used=70 << 30),
        nvmlDeviceGetClockInfo=lambda handle, kind: 1755, nvmlDeviceGetTemperature=lambda handle, kind: 56,
        nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=97),
        nvmlDeviceGetTotalEccErrors=lambda handle, kind, counter: 3, nvmlDeviceGetFieldValues=fields,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 64 if handle == 0 else 0,
    )  # fmt: skip


def test_gpus_are_watched_while_their_tab_is_open() -> None:
    telemetry = Telemetry(answering)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.report)
        assert telemetry._thread is None
        await shows(pilot, "1755", "2")
        (row,) = (line for line in words(app).splitlines() if "1755" in line and "H200" in line)
        for told in ("FAIL", "56C", "412W", "70/140G", "97%", "5x16", " 3 "):  # memory errors now: not ok any more
            assert told in row
        assert "throttled: temperature (hardware)" in row
        await until(pilot, lambda: "NVLink" in words(app) and "GB/s" in words(app))
        await shows(pilot, "No thermal throttling", "enter")
        await pilot.press("escape", "1")
        await settled(pilot)
        assert telemetry._thread is None
        assert not telemetry.traces  # a report that is opened now shows its own values

    show(None, steps, gather=Replay(recorded("h200")), telemetry=lambda: telemetry, size=(200, 50))


@cases("size", (60, 40), (80, 24), (200, 50))
def test_eight_gpus_fit_and_the_bad_one_stands_out(size: tuple[int, int]) -> None:
    report = measured(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.9)
    seen: list[str] = []
    show(report, take("2", "3")(seen), size=size)
    *_, gpus, performance = seen
    assert len(re.findall(r"^.? ?([0-7])  .*", gpus, re.MULTILINE)) == 8
    bad = [line.strip("│ ") for line in gpus.splitlines() if "✗ FAIL" in line]
    assert [line[:2] for line in bad] == ["6 ", "✗ "]
    assert bad[1].startswith("✗ FAIL Device memory copy: only 2.40 TB/s, GPU 6")
    assert re.search(r" ECC\b", gpus)
    (heat,) = re.findall(r"^.*90%.*50%!.*90%.*$", performance, re.MULTILINE)
    assert "…" not in heat.partition("90%")[2]


def test_what_is_longer_than_its_column_goes_on_as_far_in_as_it_began() -> None:
    paint = Paint(dark=True, ascii_only=True)
    address = StyledSpan("        https://example.com/a/long/address", "dim")
    rows = paint.lines([(StyledSpan("short"),), (address,)], 30).split()
    assert [row.plain for row in rows] == ["short", "        https://example.com/a/", "        long/address"]
    assert all(span.style == paint.colour("dim") for row in rows for span in row.spans)
    assert len(paint.lines([(address,)]).split()) == 1


def test_links_show_measured_rates_and_mark_a_slow_pair() -> None:
    gpus = [h200(number, numa_node=number // 2) for number in range(3)]
    rates = {(0, 1): 400e9, (1, 0): 400e9, (0, 2): 150e9}
    figures = tuple(
        Measurement(name="peer-to-peer", gpu=gpus[a].uuid, peer=gpus[b].uuid, value=rate, unit="B/s")
        for (a, b), rate in rates.items()
    )
    lines = link_lines(judged(msgspec.structs.replace(machine(*gpus), measurements=figures)))
    told = drawn(lines)
    assert told[1].split() == ["GPU", "0", "X", "NV18", "NV18", "0"]
    assert told[3].split()[-1] == "1"
    assert told[6].split()[-2:] == ["400", "150"]
    assert [span.text.strip() for line in lines for span in line if span.style == "warn"] == ["150"]


def test_a_saved_report_asks_no_gpu() -> None:
    def never() -> Any:
        raise AssertionError("it was asked")

    telemetry = Telemetry(never)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press("2")
        await settled(pilot, 0.2)

    show(judged(recorded("h200")), steps, telemetry=lambda: telemetry)
    assert not telemetry.problem


def test_no_nvml_is_no_trouble() -> None:
    def missing() -> Any:
        raise ImportError("no pynvml")

    telemetry = Telemetry(missing)
    telemetry.start()
    known(telemetry._thread).join(5)
    assert "no pynvml" in telemetry.problem
    assert telemetry.traces == ()


def test_a_graph_goes_from_the_lowest_mark_to_the_top() -> None:
    assert graph([0, 0.5, 1, None], 5, 1, ascii_only=False) == [" ▁▄█ "]
    assert graph([0.0, 0.5, 1.0], 3, 1, ascii_only=True) == ["_:#"]
    assert graph([0.25, 0.75], 2, 2, ascii_only=False) == [" ▄", "▄█"]
    assert graph([], 3, 1, ascii_only=False) == ["   "]


# --- The place Fleet: its nodes, the search, the summary, and the report of a node ----------------------------------
@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    made = healthy(5)
    made[3]["snapshot"]["driver"]["release"] = "570.1"
    write(tmp_path, made)
    (tmp_path / "broken.json").write_text("{")
    return fleet_of(tmp_path)


@cases("size", SMALL, LARGE)
def test_the_nodes_stand_in_order_with_the_worst_first(fleet: Fleet, size: tuple[int, int]) -> None:
    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await shows(pilot, "node00003")
        seen = words(app)
        assert seen.index("broken") < seen.index("node00003") < seen.index("node00000")
        assert "1 difference" in seen
        assert "1 node did not answer" in seen

    show(None, steps, size=size, fleet=fleet)


def test_search_summary_and_the_report_of_a_node(fleet: Fleet) -> None:
    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await shows(pilot, "570.1, not 580.159.04", "s")
        await pilot.press("escape", "slash", *"node00003")
        await until(pilot, lambda: "node00000" not in words(app))
        await pilot.press("enter", "enter")
        await until(pilot, lambda: app.report is not None and app.report.host == "node00003")
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, FleetPage))

    show(None, steps, size=LARGE, fleet=fleet)


def test_reports_are_found_beside_a_fleet_report_that_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, moved = tmp_path / "first", tmp_path / "moved"
    (first / "reports").mkdir(parents=True)
    write(first / "reports", healthy(4))
    monkeypatch.chdir(first)
    (first / "fleet.jsonl").write_text("".join(record.write(fleet_of(Path("reports")))))
    monkeypatch.chdir(tmp_path)
    first.rename(moved)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await pilot.press("enter")
        await until(pilot, lambda: app.report is not None and app.report.host == "node00000")

    show(None, steps, size=LARGE, fleet=read_fleet(str(moved / "fleet.jsonl")))


def test_a_node_without_a_report_says_why(fleet: Fleet) -> None:
    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert isinstance(app.screen, FleetPage)
        assert app.report is None

    show(None, steps, size=LARGE, fleet=fleet)


def test_hostile_names_and_ascii(tmp_path: Path) -> None:
    made = healthy(4)
    made[0]["host"] = "\x1b[31mred [bold]x[/bold] \u202egpj"
    made[0]["headline"] = "[link=x]y"
    for number, report in enumerate(made):
        (tmp_path / f"{number}.json").write_text(json.dumps(report))

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: isinstance(app.screen, FleetPage))
        await shows(pilot, "red [bold]x[/bold]")
        assert "\x1b" not in words(app)
        assert words(app).isascii()

    show(None, steps, size=LARGE, ascii_only=True, fleet=fleet_of(tmp_path))


def test_a_saved_report_is_held_against_a_baseline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown: list[Report] = []

    class Recorder:
        problem = ""

        def __init__(self, *_: object, saved: Report, **__: object) -> None:
            shown.append(saved)

        def run(self) -> None: ...

        def end_session(self) -> None: ...

    monkeypatch.setattr("envcheck.tui.app.EnvcheckApp", Recorder)
    monkeypatch.setenv("TEXTUAL_DRIVER", "none")
    file = str(tmp_path / "report.json")
    copied = Measurement(name="device-memory-copy", gpu=h200().uuid, value=4.2e12, unit="B/s")
    report = judged(msgspec.structs.replace(machine(h200()), measurements=(copied,)))
    Path(file).write_text(render(report, "json"))
    for more in ([], ["--baseline", file]):
        application.run(parse(["tui", "--from", file, *more], {}))
    compared = [{check.rule for check in report.checks} & {"slower-than-baseline"} for report in shown]
    assert compared == [set(), {"slower-than-baseline"}]
