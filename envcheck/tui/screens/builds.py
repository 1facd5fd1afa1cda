"""The grid of the matrix: the releases of a framework by the CUDA that they were built with, and which fit here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.message import Message
from textual.widgets import DataTable

from envcheck.errors import EnvcheckError
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.client import Desk

if TYPE_CHECKING:
    from envcheck.report.page.pen import Style
    from envcheck.tui.worker.grid import Cell, Grid

_CELLS: dict[str, tuple[str, Style]] = {"fits": ("✓ fits", "pass"), "no": ("✗ no", "fail"), "?": ("? open", "unknown")}
_ASCII_CELLS = {"✓ fits": "fits", "✗ no": "no"}


class Builds(DataTable[Text]):
    """Filled row by row, as the rows are judged."""

    class Picked(Message):
        """Enter or a click on a build: what puts it into the question."""

        def __init__(self, stated: str) -> None:
            super().__init__()
            self.stated = stated

    def __init__(self, desk: Desk, paint: Paint) -> None:
        super().__init__(id="whatif-grid", cursor_type="cell", classes="framed")
        self.border_title = "which builds fit here"
        self._desk, self._paint = desk, paint
        self.grid: Grid | None = None
        self._judged: list[Sequence[Cell]] = []

    def repaint(self, paint: Paint) -> None:
        """Take other colours."""
        self._paint = paint
        if self.grid is not None:
            self._head(self.grid)
            for release, cells in zip(self.grid.rows, self._judged, strict=False):
                self._add(release, cells)

    @work(exclusive=True, group="grid", exit_on_error=False)
    async def judge(self, package: str, fixed: Sequence[str], overlays: Sequence[str]) -> None:
        """Hold the builds of ``package``'s framework against what is ``fixed``.

        The cursor goes to ``package``, unless somebody moved it meanwhile.
        """
        try:
            grid = await self._desk.grid(package, overlays)
            if grid is None:
                return
            first = await self._desk.row(grid.stated[0], fixed, overlays)  # what was there stays until there is news
            self.grid, self._judged = grid, []
            self._head(grid)
            for number, release in enumerate(grid.rows):
                cells = await self._desk.row(grid.stated[number], fixed, overlays) if number else first
                self._judged.append(cells)
                self._add(release, cells)
                untouched = self.cursor_coordinate == (0, 0)
                if package and package in grid.stated[number] and untouched:
                    self.move_cursor(row=number, column=grid.stated[number].index(package) + 1)
        except EnvcheckError as error:
            self.notify(str(error), severity="error", markup=False)

    def on_data_table_cell_selected(self, event: DataTable.CellSelected) -> None:
        """Tell which build was chosen."""
        event.stop()
        row, column = event.coordinate.row, event.coordinate.column - 1
        stated = self.grid.stated[row][column] if self.grid is not None and column >= 0 else ""
        if stated:
            self.post_message(self.Picked(stated))

    def _head(self, grid: Grid) -> None:
        self.clear(columns=True)
        # Widths that the table finds by itself come a moment after the rows, and cut them until then.
        self.add_column(grid.name, width=max(map(len, (grid.name, *grid.rows))))
        widest = max(self._cell(name).cell_len for name in _CELLS)
        for column in grid.columns:
            self.add_column(column, width=max(len(column), widest))

    def _add(self, release: str, cells: Sequence[Cell]) -> None:
        self.add_row(Text(release), *map(self._cell, cells))

    def _cell(self, cell: str) -> Text:
        shown, style = _CELLS.get(cell, ("", ""))
        return self._paint.text(_ASCII_CELLS.get(shown, shown) if self._paint.ascii else shown, style)
