"""The table of the matrix screen: the releases of a framework by CUDA build, and which of them fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.message import Message
from textual.widgets import DataTable

from envcheck.errors import EnvcheckError
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.client import Client

if TYPE_CHECKING:
    from envcheck.report.page.pen import Style
    from envcheck.tui.worker.grid import Cell, Grid

_CELLS: dict[str, tuple[str, Style]] = {"fits": ("✓ fits", "pass"), "no": ("✗ no", "fail"), "?": ("? open", "unknown")}
_ASCII_CELLS = {"✓ fits": "fits", "✗ no": "no"}


class BuildTable(DataTable[Text]):
    """Filled row by row, while the rows are judged."""

    class Selected(Message):
        """Enter or a click on a build, as a component."""

        def __init__(self, stated: str) -> None:
            super().__init__()
            self.stated = stated

    def __init__(self, client: Client, paint: Paint) -> None:
        super().__init__(id="whatif-grid", cursor_type="cell", classes="framed")
        self.border_title = "which builds fit this machine"
        self._client, self._paint = client, paint
        self.grid: Grid | None = None
        self._judged: list[Sequence[Cell]] = []

    def repaint(self, paint: Paint) -> None:
        """Use other colours."""
        self._paint = paint
        if self.grid is not None:
            self._set_columns(self.grid)
            for release, cells in zip(self.grid.rows, self._judged, strict=False):
                self._add_release(release, cells)

    @work(exclusive=True, group="grid", exit_on_error=False)
    async def judge(self, package: str, fixed: Sequence[str], overlays: Sequence[str]) -> None:
        """Judge the builds of ``package``'s framework together with the ``fixed`` components.

        The cursor goes to ``package``, unless the user has moved it.
        """
        try:
            grid: Grid | None = await self._client.ask("grid", package, overlays)
            if grid is None:
                return
            first = await self._client.ask("row", grid.stated[0], fixed, overlays)  # the old rows stay until then
            self.grid, self._judged = grid, []
            self._set_columns(grid)
            for number, release in enumerate(grid.rows):
                cells = await self._client.ask("row", grid.stated[number], fixed, overlays) if number else first
                self._judged.append(cells)
                self._add_release(release, cells)
                untouched = self.cursor_coordinate == (0, 0)
                if package and package in grid.stated[number] and untouched:
                    self.move_cursor(row=number, column=grid.stated[number].index(package) + 1)
        except EnvcheckError as error:
            self.notify(str(error), severity="error", markup=False)

    def on_data_table_cell_selected(self, event: DataTable.CellSelected) -> None:
        """Post the build under the cursor."""
        event.stop()
        row, column = event.coordinate.row, event.coordinate.column - 1
        stated = self.grid.stated[row][column] if self.grid is not None and column >= 0 else ""
        if stated:
            self.post_message(self.Selected(stated))

    def _set_columns(self, grid: Grid) -> None:
        self.clear(columns=True)
        # The table would find widths only after it has drawn the rows cut.
        self.add_column(grid.name, width=max(map(len, (grid.name, *grid.rows))))
        widest = max(self._cell(name).cell_len for name in _CELLS)
        for column in grid.columns:
            self.add_column(column, width=max(len(column), widest))

    def _add_release(self, release: str, cells: Sequence[Cell]) -> None:
        self.add_row(Text(release), *map(self._cell, cells))

    def _cell(self, cell: str) -> Text:
        shown, style = _CELLS.get(cell, ("", ""))
        return self._paint.text(_ASCII_CELLS.get(shown, shown) if self._paint.ascii else shown, style)
