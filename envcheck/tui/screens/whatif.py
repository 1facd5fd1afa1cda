"""The matrix screen: whether components fit, what to change, and which builds fit this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Resize
from textual.suggester import SuggestFromList
from textual.widgets import DataTable, Input, Label, Static

from envcheck.errors import EnvcheckError
from envcheck.report import Options
from envcheck.text.clean import clean
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.sessions import Client

if TYPE_CHECKING:
    from envcheck.model.checks import Report
    from envcheck.report.page.pen import Style
    from envcheck.tui.worker.questions import Cell, Grid


_CELLS: dict[str, tuple[str, Style]] = {
    "fits": ("✓ fits", "pass"), "no": ("✗ no", "fail"), "?": ("? open", "unknown"), "": ("·", "dim"),
}  # fmt: skip
_ASCII_CELLS = {"✓ fits": "fits", "✗ no": "no", "·": "."}
_LEGEND = "✓ fits  ✗ does not  · no such build  ◀ this machine  enter: ask, twice: sources"
_ASCII_LEGEND = "fits  no does not  . no such build  < this machine  enter: ask, twice: sources"


class BuildTable(DataTable[Text]):
    """Filled row by row, while the rows are judged."""

    def __init__(self, client: Client, paint: Paint) -> None:
        super().__init__(id="whatif-grid", cursor_type="cell", fixed_columns=1, classes="framed")
        self.here = ""  # The build of this machine, as a component
        self.border_title = "which builds fit this machine"
        self._client, self._paint = client, paint
        self.grid: Grid | None = None
        self._judged: list[Sequence[Cell]] = []

    def repaint(self, paint: Paint) -> None:
        self._paint = paint
        if self.grid is not None:
            self._set_columns(self.grid)
            for number, cells in enumerate(self._judged):
                self._add(self.grid, number, cells)

    @work(exclusive=True, group="grid", exit_on_error=False)
    async def judge(self, package: str, fixed: Sequence[str], overlays: Sequence[str]) -> None:
        """Judge the builds of ``package``'s framework with the ``fixed`` components; go to it unless the user moved."""
        try:
            found = await self._client.ask("grid", package, overlays)
            grid: Grid = found or await self._client.ask("grid", "torch", overlays)
            first = await self._client.ask("row", grid.stated[0], fixed, overlays)  # the old rows stay until then
            self.grid, self._judged = grid, []
            self._set_columns(grid)
            for number in range(len(grid.rows)):
                cells = await self._client.ask("row", grid.stated[number], fixed, overlays) if number else first
                self._judged.append(cells)
                self._add(grid, number, cells)
                untouched = self.cursor_coordinate == (0, 0)
                if package and package in grid.stated[number] and untouched:
                    self.move_cursor(row=number, column=grid.stated[number].index(package) + 1)
        except EnvcheckError as error:
            self.notify(str(error), severity="error", markup=False)

    def stated_at(self, row: int, column: int) -> str:
        """The build in a cell, as a component; empty where there is none."""
        return self.grid.stated[row][column - 1] if self.grid is not None and column > 0 else ""

    def _set_columns(self, grid: Grid) -> None:
        self.clear(columns=True)
        # The table would find widths only after it has drawn the rows cut.
        self.add_column(grid.name, width=max(map(len, (grid.name, *grid.rows))))
        widest = max(self._cell(name, "").cell_len for name in _CELLS)
        for column in grid.columns:
            self.add_column(column, width=max(len(column), widest))

    def _add(self, grid: Grid, number: int, cells: Sequence[Cell]) -> None:
        self.add_row(Text(grid.rows[number]), *map(self._cell, cells, grid.stated[number]))

    def _cell(self, cell: str, stated: str) -> Text:
        shown, style = _CELLS.get(cell, ("", ""))
        shown = _ASCII_CELLS.get(shown, shown) if self._paint.ascii else shown
        if stated and stated == self.here:
            shown = shown.replace(" ", "") + ("<" if self._paint.ascii else "◀")
        return self._paint.text(shown, style)


FIELDS = ("gpu", "driver", "cuda", "python", "package")
_PLACEHOLDERS = ("any, or H100 …", "any, or 550 …", "any", "any", "any, or torch==2.5.1+cu124 …")
"""Shown in empty fields. A bare example would look like one of this machine's values in the other fields."""
_BESIDE = 130  # Minimum width to show the table beside the answer


class AnswerPane(VerticalScroll):
    """Lays out the answer again when its width changes."""

    def __init__(self, answer: Callable[[], object]) -> None:
        super().__init__(id="whatif-page", classes="framed", can_focus=False)
        self._answer, self._width = answer, 0

    def on_resize(self, event: Resize) -> None:
        if event.size.width != self._width:
            self._width = event.size.width
            self._answer()


class WhatIf(Vertical):
    """A form over ``matrix check``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "app.search", "edit"),
        Binding("i", "install", "what to install"),
    ]

    def __init__(self, options: Options, paint: Paint, client: Client) -> None:
        super().__init__(id="whatif-body")
        self._options, self._paint, self._client = options, paint, client
        self._touched = False
        self._overlays: tuple[str, ...] = ()
        self._report: Report | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="whatif-form"):
            for field, placeholder in zip(FIELDS, _PLACEHOLDERS, strict=True):
                with Vertical(classes=f"field field-{field}"):
                    yield Label(field)
                    shown = placeholder.replace("…", "...") if self._options.ascii else placeholder
                    yield Input(placeholder=shown, id=f"ask-{field}", compact=True)
        yield Static(_ASCII_LEGEND if self._options.ascii else _LEGEND, id="whatif-legend", markup=False)
        with Horizontal(id="whatif-answer"):
            yield BuildTable(self._client, self._paint)
            with AnswerPane(self.answer) as page:
                page.border_title = "answer"
                yield Static("", id="whatif-text")

    def on_resize(self) -> None:
        self.query_one("#whatif-answer").set_class(self.size.width < _BESIDE, "-below")

    def repaint(self, paint: Paint) -> None:
        self._paint = paint
        self.answer()
        self.query_one(BuildTable).repaint(paint)

    @work(exclusive=True, group="machine", exit_on_error=False)
    async def show(self, report: Report) -> None:
        """Ask about this machine, unless the user has edited a field."""
        self._overlays, self._report = report.overlays, report
        if self._touched or report.snapshot is None:
            return
        with suppress(EnvcheckError):  # then the fields stay as they are
            known = await self._client.ask("machine_fields", report)
            if not self._touched:
                with self.prevent(Input.Changed):
                    for field, value in known.items():
                        self.query_one(f"#ask-{field}", Input).value = clean(value, ascii_only=self._options.ascii)
                self.query_one(BuildTable).here = known.get("package", "")
                self.answer()
                self._judge_builds()
            for field, names in (await self._client.ask("suggested", self._overlays)).items():
                self.query_one(f"#ask-{field}", Input).suggester = SuggestFromList(names, case_sensitive=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._touched = True
        self.answer()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._judge_builds()
        self.query_one(BuildTable).focus()

    def on_data_table_cell_selected(self, event: DataTable.CellSelected) -> None:
        """Ask about the chosen build; of the one that was asked about, open the answer with its sources."""
        event.stop()
        stated = self.query_one(BuildTable).stated_at(*event.coordinate)
        if stated and self._value("package") == stated:
            self._open_answer(stated)
        elif stated:
            self.query_one("#ask-package", Input).value = stated

    @work(exclusive=True, group="sources", exit_on_error=False)
    async def _open_answer(self, title: str) -> None:
        from envcheck.tui.windows import WIDEST, TextWindow

        with suppress(EnvcheckError):  # the answer pane says why
            options = Options(width=WIDEST, ascii=self._options.ascii)
            page = self._paint.headed(await self._client.ask("fits", self._stated(), self._overlays, options))
            self.app.push_screen(TextWindow(title, lambda _columns: page))

    @work(exclusive=True, group="install", exit_on_error=False)
    async def action_install(self) -> None:
        """Show what ``envcheck plan`` chooses for the packages in the field, without their releases, on this machine
        or, once the form was edited, on that of the form.
        """
        from envcheck.tui.windows import WIDEST, TextWindow

        wishes = [word.partition("==")[0] for word in self._value("package").replace(",", " ").split()]
        if not wishes or self._report is None:
            self.notify("Name what to install in the field package: torch vllm", markup=False)
            return
        options = Options(width=min(WIDEST, self.app.size.width * 9 // 10) - 4, ascii=self._options.ascii)
        machine = self._fixed() if self._touched else []
        try:
            lines, command = await self._client.ask("to_install", self._report, machine, wishes, options)
        except EnvcheckError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        page = self._paint.headed(lines)
        self.app.push_screen(TextWindow(f"what to install: {' '.join(wishes)}", lambda _columns: page, command=command))

    def _stated(self) -> list[str]:
        """The question in the fields."""
        stated = [f"{field}=={value}" for field in FIELDS[:-1] if (value := self._value(field))]
        return [*stated, *filter(None, [self._value("package")])]

    def answer(self) -> None:
        self._find_answer(self._stated(), self.query_one("#whatif-page").size.width - 1)

    @work(exclusive=True, group="answer", exit_on_error=False)
    async def _find_answer(self, stated: list[str], width: int) -> None:
        text = Text("Enter components to see whether they fit together, and what to change if they do not.")
        if stated:
            options = Options(width=width, ascii=self._options.ascii, quiet=True)
            try:
                text = self._paint.headed(await self._client.ask("fits", stated, self._overlays, options))
            except EnvcheckError as error:
                text = self._paint.text(str(error), "warn")
        self.query_one("#whatif-text", Static).update(text)

    def _value(self, field: str) -> str:
        return self.query_one(f"#ask-{field}", Input).value.strip()

    def _judge_builds(self) -> None:
        self.query_one(BuildTable).judge(self._value("package"), self._fixed(), self._overlays)

    def _fixed(self) -> list[str]:
        """The machine in the fields."""
        return [f"{name}=={value}" for name in ("gpu", "driver", "python") if (value := self._value(name))]
