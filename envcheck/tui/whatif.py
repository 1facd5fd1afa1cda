"""The third screen. What if: do these components fit, why not, what to change; and which builds fit this machine."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.suggester import SuggestFromList
from textual.widgets import DataTable, Input, Label, Static

from envcheck.compat.load import tables
from envcheck.compat.question import ask
from envcheck.components import parse_components
from envcheck.errors import EnvcheckError
from envcheck.report import Options
from envcheck.report.fit_text import answer_lines
from envcheck.report.pen import Pen
from envcheck.rules.api import Facts
from envcheck.tui import grid
from envcheck.tui.paint import Paint

if TYPE_CHECKING:
    from envcheck.checks import Report
    from envcheck.report.pen import Style

FIELDS = ("gpu", "driver", "cuda", "python", "package")
_PLACEHOLDERS = ("H100, sm_90 …", "550.54.14", "12.4", "3.12", "torch==2.5.1+cu124 …")
_BESIDE = 116
"""Columns from which on the grid stands beside the answer."""
_CELL_STYLES: dict[str, Style] = {"fits": "pass", "no": "fail", "?": "unknown"}


class WhatIf(Vertical):
    """A form over ``matrix check``."""

    def __init__(self, options: Options, paint: Paint) -> None:
        super().__init__(id="whatif-body")
        self._options, self._paint = options, paint
        self._touched = False
        self._overlays: tuple[str, ...] = ()
        self._shown: grid.Grid | None = None
        self._asking = threading.Lock()

    def compose(self) -> ComposeResult:
        with Horizontal(id="whatif-form"):
            for field, placeholder in zip(FIELDS, _PLACEHOLDERS, strict=True):
                with Vertical(classes=f"field field-{field}"):
                    yield Label(field)
                    yield Input(placeholder=self._own(placeholder), id=f"ask-{field}", compact=True)
        with Horizontal(id="whatif-answer"):
            with VerticalScroll(id="whatif-page", can_focus=False):
                yield Static("", id="whatif-text")
            table: DataTable[Text] = DataTable(id="whatif-grid", cursor_type="cell", zebra_stripes=False)
            yield table

    def on_mount(self) -> None:
        known = tables()
        suggested = {
            "gpu": [row.name for row in known.gpus],
            "package": [*(f"torch=={row.version}" for row in known.torch[::-1]), *grid.names()],
        }
        for field, names in suggested.items():
            self.query_one(f"#ask-{field}", Input).suggester = SuggestFromList(names, case_sensitive=False)

    def on_resize(self) -> None:
        self.query_one("#whatif-answer").set_class(self.size.width < _BESIDE, "-below")
        self.call_after_refresh(self.answer)

    def repaint(self, paint: Paint) -> None:
        """Take other colours."""
        self._paint = paint
        self.answer()
        if self._shown is not None:
            self._put_grid(self._shown)

    def show(self, report: Report) -> None:
        """Take this machine for the question, unless somebody has begun to write another."""
        self._overlays = report.overlays
        if self._touched or report.snapshot is None:
            return
        with self.prevent(Input.Changed):
            for field, value in _known(report, tables(report.overlays)).items():
                self.query_one(f"#ask-{field}", Input).value = value
        self.answer()
        self._judge_grid()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._touched = True
        self.answer()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._judge_grid()
        self.query_one("#whatif-grid").focus()

    def on_data_table_cell_selected(self, event: DataTable.CellSelected) -> None:
        """Put the chosen build into the question."""
        event.stop()
        row, column = event.coordinate.row, event.coordinate.column - 1
        stated = self._shown.stated[row][column] if self._shown is not None and column >= 0 else ""
        if stated:
            self.query_one("#ask-package", Input).value = stated

    def answer(self) -> None:
        """Put the question as it stands."""
        stated = [f"{field}=={value}" for field in FIELDS[:-1] if (value := self._stated(field))]
        package = self._stated("package")
        self._find_answer([*stated, package] if package else stated, self.query_one("#whatif-page").size.width - 1)

    @work(thread=True, exclusive=True, group="answer")
    def _find_answer(self, stated: list[str], width: int) -> None:
        self.app.call_later(self._put_answer, self._answer_to(stated, width))

    def _put_answer(self, text: Text) -> None:
        if self.is_attached:
            self.query_one("#whatif-text", Static).update(text)

    def _answer_to(self, stated: list[str], width: int) -> Text:
        if not stated:
            return Text("Name some components: what fits together, and what to change where it does not.")
        try:
            components = tuple(component for text in stated for component in parse_components(text))
            with self._asking:
                answer = ask(tables(self._overlays), components)
        except EnvcheckError as error:
            return self._paint.text(str(error), "warn")
        pen = Pen(Options(width=width, ascii=self._options.ascii))
        return self._paint.lines(answer_lines(answer, pen, self._overlays))

    def _stated(self, field: str) -> str:
        return self.query_one(f"#ask-{field}", Input).value.strip()

    def _judge_grid(self) -> None:
        fixed = [f"{name}=={value}" for name in ("gpu", "driver", "python") if (value := self._stated(name))]
        name = self._stated("package").partition("==")[0].strip().lower()
        self._make_grid(name if name in grid.names(self._overlays) else "torch", fixed)

    @work(thread=True, exclusive=True, group="grid")
    def _make_grid(self, name: str, fixed: Sequence[str]) -> None:
        with self._asking:
            found = grid.grid(name, fixed, self._overlays)
        if found is not None:
            self.app.call_later(self._put_grid, found)

    def _put_grid(self, found: grid.Grid) -> None:
        if not self.is_attached:
            return
        self._shown = found
        table: DataTable[Text] = self.query_one("#whatif-grid", DataTable)
        table.clear(columns=True)
        # A width that the table finds by itself comes a moment after the rows, and cuts them until then.
        table.add_column(found.name, width=max(map(len, (found.name, *found.rows))))
        table.add_columns(*found.columns)
        for release, cells in zip(found.rows, found.cells, strict=True):
            table.add_row(Text(release), *(self._paint.text(cell, _CELL_STYLES.get(cell, "")) for cell in cells))
        self.call_after_refresh(self.answer)  # which has another width now

    def _own(self, words: str) -> str:
        return words.replace("…", "...") if self._options.ascii else words


def _known(report: Report, knowledge: object) -> dict[str, str]:
    """The machine of a report, as the fields take it."""
    if report.snapshot is None:
        return {}
    facts = Facts(report.snapshot, knowledge)  # type: ignore[arg-type]
    gpu = next(iter(facts.usable_gpus), None)
    driver, environment = report.snapshot.driver, facts.environment
    frameworks = environment.frameworks.items if environment and environment.frameworks else ()
    torch = next((found for found in frameworks if found.name == "torch" and found.version), None)
    python = environment.python if environment and environment.python else ""
    return {
        "gpu": (gpu.name or "") if gpu else "",
        "driver": (driver.release or "") if driver else "",
        "python": ".".join(python.split(".")[:2]),
        "package": f"torch=={torch.version}" if torch else "",
    }
