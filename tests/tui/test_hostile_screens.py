"""Names that try to speak to the terminal show as text on every screen, and what must stand on them."""

import re
import unicodedata
from typing import Any

import msgspec
import pytest
from textual.coordinate import Coordinate
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Tree

from envcheck.text.clean import shell_line
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.screens.whatif import BuildTable
from envcheck.tui.worker import questions
from tests.every import cases
from tests.known import known
from tests.report import examples
from tests.rules.machines import but, h200, machine
from tests.tui.showing import (
    LARGE,
    MACHINES,
    SHOWN,
    SMALL,
    at_rest,
    judged,
    on,
    recorded,
    settled,
    show,
    shows,
    take,
    until,
    words,
)
from tests.tui.test_performance import copied

MARKUP = "[red]a[/red][@click=app.quit]b[/][/nothing]"
HOSTILE = f"{MARKUP}\x1b]0;owned\x07\x1b[2Jevil\u202egnp.exe"


def test_nothing_foreign_reaches_the_terminal() -> None:
    opened = ["enter", "escape", "c", "escape", "2", "enter", "escape", "l", "escape", "p", "escape"]
    keys = [*opened, "3", "4", "5", "right", "slash", "escape"]
    seen: dict[tuple[int, int], list[str]] = {LARGE: [], SMALL: []}

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        await take(*keys, most=0.4)(seen[LARGE])(app, pilot)
        await pilot.resize_terminal(*SMALL)
        await take("1", "enter", "escape", "2", "3", "4", "5", most=0.4)(seen[SMALL])(app, pilot)

    show(examples.hostile(length=500), steps, size=LARGE)
    for size, screens in seen.items():
        for screen in screens:
            assert not odd(screen), odd(screen)
            assert len(screen.splitlines()) == size[1]


def odd(screen: str) -> set[str]:
    """The characters that a terminal obeys or hides."""
    return {c for c in screen if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def test_markup_in_names_shows_as_it_is() -> None:
    report = judged(machine())
    first = msgspec.structs.replace(report.checks[0], title=MARKUP, rule=MARKUP, status="fail", message=MARKUP)
    report = msgspec.structs.replace(report, checks=(first, *report.checks[1:]), host=MARKUP)

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        assert words(app).count(MARKUP) >= 2  # the host, and the row of the finding
        await pilot.press("enter")
        await settled(pilot)
        assert MARKUP in words(app)
        app.tell(MARKUP)
        await settled(pilot, 0.2)

    show(report, steps, size=LARGE)


def test_long_and_right_to_left_names_take_one_row() -> None:
    report = judged(machine())
    first = msgspec.structs.replace(report.checks[0], title=("\u05e9\u05dc\u05d5\u05dd" * 2_500), status="fail")
    report = msgspec.structs.replace(report, checks=(first, *report.checks[1:]))

    async def steps(app: EnvcheckApp, _pilot: Pilot[Any]) -> None:
        rows = [line for line in words(app).splitlines() if line.startswith(" ✗ FAIL ")]
        assert len(rows) == 1
        assert rows[0].endswith("…")

    show(report, steps)


def test_a_hostile_gpu_and_folder_are_text_on_every_page() -> None:
    names = (HOSTILE, "x" * 10_000)
    gpus = [h200(number, name=name) for number, name in enumerate(names)]
    found = machine(*gpus)
    (environment,) = known(found.environments).items
    venvs = tuple(but(environment, key=f"/srv/{name}/.venv", prefix=f"/srv/{name}/.venv") for name in names)
    figures = tuple(copied(gpu, 0.9, variant=gpu.name) for gpu in gpus)
    hostile = but(found, environments__items=venvs, measurements=figures)
    seen: list[str] = []
    keys = ["enter", "escape", "2", "enter", "escape", "j", "enter", "escape", "p", "j", "escape", "3", "4", "5", "2"]
    show(judged(hostile), take(*keys, most=0.4)(seen))
    for screen in seen:
        assert not odd(screen), odd(screen)
        lines = screen.splitlines()
        assert len(lines) == SMALL[1]
        assert max(map(len, lines)) <= SMALL[0]
    shown = dict(zip(["", *keys], seen, strict=True))
    for key in ("3", "5"):
        assert "[red]a[/red]" in shown[key], key
    assert "xxxxxxxxxx" in shown["5"]


# --- What must stand on the screens, at any size and in any look; the third and fourth screen -----------------------
BROKEN = sorted(path.stem for path in (MACHINES / "constructed").glob("*.json"))


@pytest.mark.parametrize("name", BROKEN)
def test_verdict_cause_and_fix_are_on_the_first_screen_without_a_key(name: str) -> None:
    report = judged(recorded(f"constructed/{name}"))
    seen: list[str] = []
    show(report, take()(seen))
    cause = known(report.check(report.primary_check))
    assert "FAIL" in seen[0]
    assert cause.rule in seen[0] or cause.rule[:20] in seen[0]
    assert "fix" in seen[0] or not (cause.fixes or cause.action != "none")
    mends = [fix for fix in cause.fixes if fix.command]
    if mends:
        whole = re.sub(r"\s+", "", seen[0])
        assert any(re.sub(r"\s+", "", shell_line(fix.command)) in whole for fix in mends), seen[0]


@cases("name", "h200", "driver-too-old", "eight")
def test_both_looks_say_the_same_words_in_other_colours(name: str) -> None:
    texts, pictures = [], []

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        for _ in range(2):
            texts.append(words(app))
            pictures.append(app.export_screenshot())
            await pilot.press("t")
            await at_rest(pilot, 0.5)

    show(SHOWN[name](), steps)
    assert texts[0] == texts[1]
    assert "#0d1117" in pictures[0]
    assert "#0d1117" not in pictures[1]


def test_no_colour_where_the_user_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    pictures: list[str] = []

    async def steps(app: EnvcheckApp, _pilot: Pilot[Any]) -> None:
        pictures.append(app.export_screenshot())

    show(SHOWN["driver-too-old"](), steps)
    drawn = re.sub(r"#ff5f57|#febc2e|#28c840|#c5c8c6|#292929", "", pictures[0])  # the frame around the picture
    colours = {colour.lower() for colour in re.findall(r"#[0-9a-fA-F]{6}\b", drawn)}
    assert colours
    assert all(colour[1:3] == colour[3:5] == colour[5:7] for colour in colours), colours


def test_ascii_alone_where_that_is_wanted() -> None:
    seen: list[str] = []
    keys = (
        "enter", "escape", "2", "enter", "escape", "3", "4", "5", "question_mark", "escape", "l", "escape", "p",
        "escape", "e", "escape",
    )  # fmt: skip
    show(SHOWN["h200"](), take(*keys, "ctrl+p", most=0.5)(seen), ascii_only=True, size=LARGE)
    for screen in seen:
        assert screen.isascii(), [character for character in screen if not character.isascii()]


@cases("size", (110, 40), (20, 5))  # test_snapshots.py has three more
def test_every_size_can_be_shown(size: tuple[int, int]) -> None:
    seen: list[str] = []
    show(SHOWN["driver-too-old"](), take("2", "3", "4", "5", "1")(seen), size=size)
    for screen in seen:
        lines = screen.splitlines()
        assert len(lines) == size[1]
        assert max(map(len, lines)) <= size[0]


def test_resizing_lays_out_anew() -> None:
    texts: list[str] = []
    fresh: dict[tuple[int, int], list[str]] = {SMALL: [], LARGE: []}

    async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
        for size in (LARGE, SMALL, (200, 60), SMALL):
            await pilot.resize_terminal(*size)
            await at_rest(pilot, 0.5)
            texts.append(words(app))

    show(SHOWN["driver-too-old"](), steps)
    for size, seen in fresh.items():
        show(SHOWN["driver-too-old"](), take()(seen), size=size)
    assert texts[1] == texts[3] == fresh[SMALL][0]
    assert texts[0] == fresh[LARGE][0]
    assert len(texts[2].splitlines()) == 60


def test_a_finding_takes_one_row() -> None:
    report = judged(recorded("h200"))
    seen: list[str] = []
    show(report, take("enter")(seen))
    assert len([line for line in seen[1].splitlines() if re.match(r" [✗!?i✓] (FAIL|WARN|open|note|ok) ", line)]) >= 8


# --- The third and fourth screens -----------------------------------------------------------------------------------
def field(app: EnvcheckApp, name: str) -> Input:
    return app.query_one(f"#ask-{name}", Input)


@on("h200", size=SMALL)
async def test_the_fields_begin_with_this_machine(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await shows(pilot, "COMPATIBLE", "4")
    assert field(app, "gpu").value == "NVIDIA H200"
    assert field(app, "driver").value == "580.159.04"


@on("h200", size=LARGE)
async def test_another_driver_is_judged_as_it_is_written(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await shows(pilot, "COMPATIBLE", "4")
    field(app, "driver").value = "450.80.02"
    field(app, "package").value = "torch==2.6.0+cu126"
    await shows(pilot, "INCOMPATIBLE")
    assert "NO" in words(app)
    field(app, "driver").value = "not a version"
    await until(pilot, lambda: "INCOMPATIBLE" not in words(app))


@on("h200", size=LARGE)
async def test_a_cell_of_the_grid_becomes_the_question(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("4")
    table = app.query_one("#whatif-grid", DataTable)
    await until(pilot, lambda: table.row_count)
    stated = known(app.query_one(BuildTable).grid).stated
    row = next(number for number, line in enumerate(stated) if any(line))
    column = next(number for number, text in enumerate(stated[row]) if text)
    table.move_cursor(row=row, column=column + 1)
    await pilot.press("enter")
    await settled(pilot)
    assert field(app, "package").value == stated[row][column]


@on("h200", size=LARGE)
async def test_the_grid_marks_this_machine_and_builds_that_do_not_exist(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("4")
    table = app.query_one(BuildTable)
    await until(pilot, lambda: table.grid and table.row_count == len(table.grid.rows))
    grid = known(table.grid)
    cells = {
        stated: str(table.get_cell_at(Coordinate(row, column + 1)))
        for row, line in enumerate(grid.stated)
        for column, stated in enumerate(line)
    }
    assert [stated for stated, cell in cells.items() if cell.endswith("◀")] == ["torch==2.11.0+cu130"]
    assert cells[""] == "·"
    assert "no such build" in words(app)
    assert "https://" not in words(app)
    await pilot.press("enter")  # of the build that was asked about
    await shows(pilot, "https://")


@on("h200", size=LARGE)
async def test_a_field_that_was_asked_for_right_after_its_place_keeps_the_keys(
    app: EnvcheckApp, pilot: Pilot[Any]
) -> None:
    await pilot.press("4", "1")
    app.tabs.go_to("matrix")
    app.tabs.go_to("matrix", "#ask-package")
    await until(pilot, lambda: app.focused is field(app, "package"))
    await settled(pilot, 0.3)
    assert app.focused is field(app, "package")


def test_the_grid_says_in_words_what_fits() -> None:
    found = known(questions.grid("torch"))
    judged = [questions.row(line, ["gpu==H100", "driver==535.104.05"]) for line in found.stated]
    assert {"fits", "no"} <= {cell for cells in judged for cell in cells}
    assert all(
        bool(cell) == bool(text)
        for cells, line in zip(judged, found.stated, strict=True)
        for cell, text in zip(cells, line, strict=True)
    )


def test_the_grid_holds_the_release_that_is_asked_about_and_those_beside_it() -> None:
    newest, found = questions.grid("torch"), questions.grid("torch==2.4.0+cu121")
    assert newest is not None
    assert found is not None
    assert "2.4.0" not in newest.rows
    assert found.rows == (*newest.rows, *(row for row in found.rows if row not in newest.rows))
    place = found.rows.index("2.4.0")
    assert found.rows[place - 2 : place + 3] == ("2.5.0", "2.4.1", "2.4.0", "2.3.1", "2.3.0")


def test_a_driver_of_which_only_its_cuda_is_known_goes_by_its_branch() -> None:
    report = SHOWN["driver-too-old"]()
    assert known(known(report.snapshot).driver).release is None
    assert questions.machine_fields(msgspec.json.encode(report))["driver"] == "470"


def test_other_frameworks_have_a_grid_and_what_is_no_framework_has_none() -> None:
    assert "tensorflow" in questions.names()
    found = known(questions.grid("tensorflow"))
    fixed = ["gpu==H100", "driver==580.65.06"]
    assert any("fits" in questions.row(line, fixed) for line in found.stated)
    assert questions.grid("no-such-thing") is None


@on("h200", size=LARGE)
async def test_a_value_stands_with_its_source(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await shows(pilot, " release ", "5")
    (row,) = (line for line in words(app).splitlines() if " release " in line)
    assert row.strip(" │").split()[-3:] == ["release", "580.159.04", "nvml"]


@on("h200", size=LARGE)
async def test_facts_are_in_words_with_units_and_exact_on_enter(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await shows(pilot, "140.4 GiB", "slash", *"memory.total")
    (row,) = (line for line in words(app).splitlines() if "140.4 GiB" in line)
    assert "GPUs · GPU 0 · H200 · memory · total" in row
    await shows(pilot, "exactly 150754820096", "enter", "down", "enter")


@on("jetson", size=LARGE)
async def test_an_assumed_gpu_has_a_number(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await shows(pilot, "GPU 0", "5")
    assert "assumed-0" not in words(app)


@on("h200", size=LARGE)
async def test_a_node_is_grown_when_it_is_opened(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("5")
    await until(pilot, lambda: app.query("#facts-tree"))
    tree = app.query_one("#facts-tree", Tree)
    (probes,) = (node for node in tree.root.children if str(node.label).startswith("probes"))
    assert not probes.children
    probes.expand()
    await settled(pilot)
    assert len(probes.children) == len(app.report.probes)  # type: ignore[union-attr]


@on("h200", size=LARGE)
async def test_a_search_needs_all_words_and_says_how_many_it_found(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
    await pilot.press("slash")
    await until(pilot, lambda: isinstance(app.focused, Input))
    search = app.query_one("#facts-search", Input)
    for wanted, least, most in (("driver release", 1, 20), ("e", 500, 500), ("no such thing at all", 0, 0)):
        search.value = wanted
        await at_rest(pilot, 1.0)
        count = len(app.query_one("#facts-tree", Tree).root.children)
        assert least <= count <= most
        assert f"{count} found" in words(app)
