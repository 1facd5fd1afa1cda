"""What each key does."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, OptionList

from envcheck.report import render
from envcheck.report.saved import read_report
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.widgets.choices import choices
from envcheck.tui.windows import AskWindow, ChooseWindow, TextWindow
from tests.known import known
from tests.tui.showing import LARGE, SHOWN, SMALL, on, settled, show, shows, take, until, words


def pressed(name: str, *keys: str, size: tuple[int, int] = LARGE) -> list[str]:
    """What is on the screen after each key."""
    seen: list[str] = []
    show(SHOWN[name](), take(*keys, most=0.4)(seen), size=size)
    return seen


def test_j_k_and_arrows_move_and_the_details_follow() -> None:
    places: list[tuple[int | None, str]] = []

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        for key, detail in (
            ("j", "--no-build-isolation"),
            ("down", "framework  torch"),
            ("k", "--no-build-isolation"),
            ("up", "torch==2.4.0+cu118"),
        ):
            await pilot.press(key)
            await settled(pilot)
            listing = app.query_one("#findings", OptionList)
            selected = app.tabs.overview.selected
            places.append((listing.highlighted, selected.rule if selected else ""))
            assert detail in words(app)

    show(SHOWN["driver-too-old"](), steps, size=LARGE)
    assert [number for number, _ in places] == [1, 2, 1, 0]


def test_enter_opens_a_finding_with_its_rule_and_escape_closes_it() -> None:
    before, opened, below, end, closed = pressed("driver-too-old", "enter", "pagedown", "end", "escape")
    assert "envcheck rule driver-too-old" in opened + below
    assert "CUDA Toolkit release notes" in end
    assert "esc closes" in opened
    assert closed == before


@on("driver-too-old")
async def test_a_click_opens_a_finding(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.click("#findings", offset=(5, 1))
    await settled(pilot)
    assert isinstance(app.screen, TextWindow)


def test_passed_checks_are_one_row_that_opens_and_closes() -> None:
    folded, opened, closed = pressed("h200", "enter", "enter")
    assert "30 passed" in folded
    assert "power-throttled" not in folded
    assert "power-throttled" in opened
    assert closed == folded


def test_f_lists_the_findings_of_one_layer() -> None:
    whole, layers, chosen, of_drivers, _, again = pressed("driver-too-old", "f", "down", "enter", "f", "enter")
    assert "framework  1 FAIL, 3 ok" in layers
    assert chosen
    assert "findings: driver" in of_drivers
    assert "extension-built-for-other-torch" in whole
    assert "extension-built-for-other-torch" not in of_drivers
    assert "1 passed" in of_drivers
    assert again == whole


@on("driver-too-old")
async def test_the_finding_is_told_once_and_its_command_has_a_key_to_click(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    shown = words(app)
    assert shown.count("The driver is too old for torch 2.4.0+cu121") == 1
    row = next(number for number, line in enumerate(shown.splitlines()) if line.endswith("c copy"))
    await pilot.click(offset=(shown.splitlines()[row].index("c copy"), row))
    await until(pilot, lambda: app.clipboard)
    assert app.clipboard.startswith("python -m pip install torch==2.4.0+cu118")


def test_a_healthy_machine_says_what_can_be_tested_next_and_what_that_takes() -> None:
    (shown,) = pressed("h200")
    assert "Next: d test frameworks (10 to 30 s), b benchmark (about 10 s a GPU)" in shown


@on("h200")
async def test_a_click_on_a_tab_changes_to_it(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.click("#--content-tab-facts")
    await shows(pilot, "search: a name")


@on("driver-too-old", size=LARGE)
async def test_c_copies_the_command_and_shows_it_alone(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("c")
    await settled(pilot)
    assert app.clipboard
    assert app.clipboard in re.sub(r"[│\s]+", " ", words(app))


def test_c_says_so_where_no_command_mends_it() -> None:
    assert "No automatic fix for this finding" in pressed("no-gpu", "c")[-1]


@on("h200", size=LARGE)
async def test_a_saved_report_examines_nothing(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    for key in "dbBr":
        await shows(pilot, "live checks are unavailable", key)
        app.clear_notifications()
        await until(pilot, lambda: "live checks are unavailable" not in words(app))
    assert app.sessions.current is None


def test_x_says_so_where_nothing_runs() -> None:
    assert "No task is running" in pressed("h200", "x")[-1]


@on("h200", size=LARGE)
async def test_numbers_change_tabs(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    shown = {"1": "PASS", "2": "SM MHz", "3": "No measurements yet", "4": "COMPATIBLE", "5": "search: a name"}
    for key in "23415432132":
        told = shown[key]
        await shows(pilot, told, key)


def test_question_mark_lists_every_key_that_is_bound() -> None:
    shown = pressed("h200", "question_mark")[-1]
    for key in "jkcrdbBxlpeo=fF/tq":
        assert re.search(rf"(^|[ │]){re.escape(key)} ", shown, re.MULTILINE), key


def test_enter_opens_one_gpu_with_its_checks() -> None:
    _, table, one = pressed("four", "2", "enter")
    assert len(re.findall(r"^. [0-3] .* ok ", table, re.MULTILINE)) == 4
    assert "No power throttling" in one


def test_l_shows_how_the_gpus_are_joined_and_what_was_measured() -> None:
    shown = pressed("four", "l")[-1]
    assert len(re.findall(r"GPU [0-3]( +(NV18|X)){4}", shown)) == 4
    assert "b measures rates" in shown


def test_p_lists_the_environments() -> None:
    shown = pressed("no-gpu", "p")[-1]
    assert "/opt/conda" in shown
    assert "checked" in shown
    assert "scan for environments" in shown


@on("h200")
async def test_slash_searches_the_facts_and_escape_goes_back_to_the_tree(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("slash")
    await until(pilot, lambda: isinstance(app.focused, Input))
    await pilot.press(*"release")
    await until(pilot, lambda: "driver · release" in words(app) and "found" in words(app))
    await pilot.press("escape")
    await settled(pilot)
    assert known(app.focused).id == "facts-tree"


@on("h200", size=LARGE)
async def test_the_palette_offers_what_the_keys_do(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("ctrl+p")
    await until(pilot, lambda: isinstance(app.focused, Input))
    await shows(pilot, "Measure everything", *"measure")


def test_e_writes_what_is_chosen_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = (
        ("json", "json", '"checks"'), ("junit", "xml", "<testsuite"), ("private", "json", '"checks"'),
        ("svg", "svg", "<svg"),
    )  # fmt: skip
    report = msgspec.structs.replace(SHOWN["h200"](), host="secret-host")
    for form, _, _ in forms:
        (tmp_path / form).mkdir()

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        for form, _, _ in forms:
            monkeypatch.chdir(tmp_path / form)
            await pilot.press("e")
            await until(pilot, lambda: isinstance(app.screen, ChooseWindow))
            for _ in range(list(choices()).index(form)):
                await pilot.press("j")
            await shows(pilot, "Written:", "enter")
            assert "secret-host" in words(app)
            app.clear_notifications()
            await until(pilot, lambda: "Written:" not in words(app))

    show(report, steps, size=LARGE)
    for form, ending, holds in forms:
        (file,) = (tmp_path / form).iterdir()
        assert file.suffix == f".{ending}"
        text = file.read_text()
        assert holds in text
        assert "@font-face" not in text
        assert ("secret-host" in text) == (form == "private"), form


def test_a_picture_of_a_report_that_came_later_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = msgspec.structs.replace(SHOWN["h200"](), host="secret-host")

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        taken = app.export_screenshot

        def and_another_comes(**more: Any) -> str:
            app.show(report)
            return taken(**more)

        monkeypatch.setattr(app, "export_screenshot", and_another_comes)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, ChooseWindow))
        for _ in range(list(choices()).index("svg")):
            await pilot.press("j")
        await shows(pilot, "A new report arrived", "enter")
        assert app.report is report

    show(report, steps, size=LARGE)
    assert not list(tmp_path.iterdir())


def test_o_opens_a_saved_report_and_says_when_there_is_none(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(render(SHOWN["driver-too-old"](), "json"))

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press("o")
        await settled(pilot)
        await shows(pilot, "cannot read /nowhere", *"/nowhere", "enter")
        assert app.screen.query_one(Input).value == "/nowhere"
        app.screen.query_one(Input).value = str(file)
        await shows(pilot, "FAIL", "enter")

    show(SHOWN["h200"](), steps, size=LARGE)


def test_a_path_is_completed_and_recent_reports_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reports").mkdir()
    text = render(SHOWN["driver-too-old"](), "json")
    for name in ("reports/broken.json", "recent.json"):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        for typed, whole in (("rep", "reports/"), ("br", "reports/broken.json")):
            if typed == "rep":
                await pilot.press("o")
                await settled(pilot)
                assert "recent.json" in words(app)
            await shows(pilot, whole, *typed)
            await pilot.press("right")
            await settled(pilot)
            assert app.screen.query_one(Input).value == whole
        await shows(pilot, "FAIL", "enter")
        await pilot.press("o", "tab")
        await settled(pilot)
        listed = [str(option.prompt) for option in app.screen.query_one("#choices", OptionList).options]
        assert listed == ["reports/broken.json", "recent.json"]
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, AskWindow))

    show(SHOWN["h200"](), steps, size=LARGE)


@on("h200")
async def test_a_tiny_terminal_says_so_until_it_grows(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    for size, small in (((59, 24), True), ((80, 15), True), ((60, 16), False)):
        await pilot.resize_terminal(*size)
        await until(pilot, lambda small=small: ("Too small" in words(app)) == small)  # type: ignore[misc]
        assert ("PASS" in words(app)) != small


def test_the_footer_shows_the_keys_of_the_tab() -> None:
    overview, gpus, _, matrix, facts = (shown.splitlines()[-1] for shown in pressed("h200", "2", "3", "4", "5"))
    assert "c copy fix" not in overview
    assert "c copy fix" in pressed("driver-too-old")[-1].splitlines()[-1]
    assert "l links" in gpus
    assert "c copy fix" not in gpus
    assert "/ edit" in matrix
    assert "/ search" in facts
    assert all("q quit" in footer for footer in (overview, gpus, matrix, facts))


@on("h200")
async def test_a_click_on_the_footer_does_what_the_key_does(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    row = words(app).splitlines()[-1]
    for column in (row.index("? keys"), row.index("keys")):
        await pilot.click(offset=(column, SMALL[1] - 1))
        await until(pilot, lambda: isinstance(app.screen, TextWindow))
        await pilot.press("escape")
        await settled(pilot)


def test_equals_compares_with_a_saved_report(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(render(SHOWN["driver-too-old"](), "json"))

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press("equals_sign")
        await settled(pilot)
        app.screen.query_one(Input).value = str(file)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TextWindow))
        await shows(pilot, "2.4.0+cu121 → 2.11.0+cu130")

    show(SHOWN["h200"](), steps, size=LARGE)


def test_q_leaves_with_the_report() -> None:
    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await pilot.press("q")
        await until(pilot, lambda: app.return_value is not None)

    report = SHOWN["h200"]()
    assert show(report, steps).return_value is report
    assert read_report(render(report, "json").encode()).verdict == "pass"


@on("h200")
async def test_i_shows_what_to_install_and_c_copies_it(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("4")
    await until(pilot, lambda: app.query_one("#whatif-grid", DataTable).row_count > 1)
    await pilot.press("i")
    await until(pilot, lambda: isinstance(app.screen, TextWindow))
    shown = words(app)
    assert "FITS" in shown
    assert "NVIDIA H200" in shown
    await pilot.press("c")
    await until(pilot, lambda: app.clipboard)
    assert re.fullmatch(r"uv pip install torch==[\d.]+(\+cu\d+)?( --torch-backend=cu\d+)?", app.clipboard)


@on("no-gpu")
async def test_i_says_what_it_needs(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("4")
    await until(pilot, lambda: app.query("#whatif-grid"))
    await pilot.press("i")
    await until(pilot, lambda: app._notifications)
    assert [note.message for note in app._notifications] == ["Name what to install in the field package: torch vllm"]
