"""What if: do these components fit, why not, and what to change; and which PyTorch builds fit this machine."""

from __future__ import annotations

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import DataTable, Input, Label, Static

from envcheck.checks import Report
from envcheck.compat.load import tables
from envcheck.compat.question import ask
from envcheck.components import parse_components
from envcheck.errors import EnvcheckError
from envcheck.report import Options
from envcheck.report.fit_text import render
from envcheck.rules.api import Facts

FIELDS = ("gpu", "driver", "cuda", "python", "package")
_PLACEHOLDERS = ("H100, sm_90 …", "550.54.14", "12.4", "3.12", "torch==2.5.1+cu124 …")
_RELEASES = 14
"""Newest PyTorch releases in the grid."""


class WhatIf(Vertical):
    """A form over ``matrix check``."""

    def __init__(self, options: Options) -> None:
        super().__init__(id="whatif-body")
        self._options = options
        self._touched = False

    def compose(self) -> ComposeResult:
        with Horizontal(id="whatif-form"):
            for field, placeholder in zip(FIELDS, _PLACEHOLDERS, strict=True):
                with Vertical(classes=f"field field-{field}"):
                    yield Label(field)
                    yield Input(placeholder=placeholder, id=f"ask-{field}", compact=True)
        with Horizontal(id="whatif-answer"):
            with VerticalScroll(id="whatif-page", can_focus=False):
                yield Static("", id="whatif-text")
            table: DataTable[Text] = DataTable(id="whatif-grid", cursor_type="cell", zebra_stripes=True)
            table.border_title = "PyTorch builds here"
            yield table

    def show(self, report: Report) -> None:
        """Take this machine for the question, unless somebody has begun to write another."""
        if self._touched or report.snapshot is None:
            return
        facts = Facts(report.snapshot, tables(report.overlays))
        gpu = next(iter(facts.usable_gpus), None)
        driver = report.snapshot.driver
        environment = facts.environment
        frameworks = environment.frameworks.items if environment and environment.frameworks else ()
        torch = next((found for found in frameworks if found.name == "torch" and found.version), None)
        known = {
            "gpu": gpu.name if gpu and gpu.name else "",
            "driver": driver.release if driver and driver.release else "",
            "python": ".".join((environment.python or "").split(".")[:2]) if environment else "",
            "package": f"torch=={torch.version}" if torch else "",
        }
        with self.prevent(Input.Changed):
            for field, value in known.items():
                self.query_one(f"#ask-{field}", Input).value = value or ""
        self.answer()
        self.fill_grid(self._stated("gpu"), self._stated("driver"))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._touched = True
        self.answer()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.fill_grid(self._stated("gpu"), self._stated("driver"))

    def on_data_table_cell_selected(self, event: DataTable.CellSelected) -> None:
        """Put the chosen build into the question."""
        event.stop()
        release, build = event.cell_key.row_key.value, event.cell_key.column_key.value
        if release and build and build != "release":
            self.query_one("#ask-package", Input).value = f"torch=={release}+{build}"

    def answer(self) -> None:
        """Put the question as it stands."""
        stated = [f"{field}=={value}" for field in FIELDS[:-1] if (value := self._stated(field))]
        package = self._stated("package")
        stated += [package] if package else []
        self.query_one("#whatif-text", Static).update(self._answer_to(stated))

    def _answer_to(self, stated: list[str]) -> Text:
        if not stated:
            return Text("Name some components: what fits together, and what to change where it does not.")
        try:
            components = tuple(component for text in stated for component in parse_components(text))
            answer = ask(tables(), components)
        except EnvcheckError as error:
            return Text(str(error))
        return Text(render(answer, Options(width=76, ascii=self._options.ascii)))

    def _stated(self, field: str) -> str:
        return self.query_one(f"#ask-{field}", Input).value.strip()

    @work(thread=True, exclusive=True, group="grid")
    def fill_grid(self, gpu: str, driver: str) -> None:
        """Releases of PyTorch x their CUDA builds, against this GPU and driver."""
        rows = tables().torch[-_RELEASES:][::-1]
        builds = sorted({_tag(build.cuda) for row in rows for build in row.builds if build.cuda}, reverse=True)
        fixed = [f"{name}=={value}" for name, value in (("gpu", gpu), ("driver", driver)) if value]
        cells = {
            (row.version, _tag(build.cuda)): _cell([*fixed, f"torch=={row.version}+{_tag(build.cuda)}"])
            for row in rows
            for build in row.builds
            if build.cuda and build.os == "linux" and build.machine == "x86_64"
        }
        self.app.call_from_thread(self._put_grid, [row.version for row in rows], builds, cells)

    def _put_grid(self, releases: list[str], builds: list[str], cells: dict[tuple[str, str], Text]) -> None:
        table: DataTable[Text] = self.query_one("#whatif-grid", DataTable)
        table.clear(columns=True)
        table.add_column("torch", key="release")
        for build in builds:
            table.add_column(build, key=build)
        for release in releases:
            table.add_row(Text(release), *(cells.get((release, build), Text("")) for build in builds), key=release)


def _tag(cuda: str) -> str:
    return f"cu{cuda.replace('.', '')}"


def _cell(stated: list[str]) -> Text:
    try:
        verdict = ask(tables(), tuple(one for text in stated for one in parse_components(text))).verdict
    except EnvcheckError:
        return Text("?")
    return {"compatible": Text("fits", "green"), "incompatible": Text("no", "red")}.get(verdict, Text("?", "magenta"))
