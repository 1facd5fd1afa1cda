"""The matrix screen: whether components fit, what to change, and which builds fit this machine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Resize
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, Label, Static

from envcheck.errors import EnvcheckError
from envcheck.report import Options
from envcheck.text.clean import clean
from envcheck.tui.screens.builds import BuildTable
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.client import Client

if TYPE_CHECKING:
    from envcheck.checks import Report

FIELDS = ("gpu", "driver", "cuda", "python", "package")
_PLACEHOLDERS = ("any, or H100 …", "any, or 550 …", "any", "any", "any, or torch==2.5.1+cu124 …")
"""Shown in empty fields. A bare example would look like one of this machine's values in the other fields."""
_BESIDE = 130
"""Least columns to show the table beside the answer."""


class Answer(VerticalScroll):
    """Posts a message when its width changes."""

    class WidthChanged(Message):
        """Lay out the answer again."""

    _width = 0

    def on_resize(self, event: Resize) -> None:
        if event.size.width != self._width:
            self._width = event.size.width
            self.post_message(self.WidthChanged())


class WhatIf(Vertical):
    """A form over ``matrix check``."""

    def __init__(self, options: Options, paint: Paint, client: Client) -> None:
        super().__init__(id="whatif-body")
        self._options, self._paint, self._client = options, paint, client
        self._touched = False
        self._overlays: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        with Horizontal(id="whatif-form"):
            for field, placeholder in zip(FIELDS, _PLACEHOLDERS, strict=True):
                with Vertical(classes=f"field field-{field}"):
                    yield Label(field)
                    shown = placeholder.replace("…", "...") if self._options.ascii else placeholder
                    yield Input(placeholder=shown, id=f"ask-{field}", compact=True)
        with Horizontal(id="whatif-answer"):
            with Answer(id="whatif-page", classes="framed", can_focus=False) as page:
                page.border_title = "answer"
                yield Static("", id="whatif-text")
            yield BuildTable(self._client, self._paint)

    def on_resize(self) -> None:
        self.query_one("#whatif-answer").set_class(self.size.width < _BESIDE, "-below")

    def on_answer_width_changed(self, event: Answer.WidthChanged) -> None:
        event.stop()
        self.answer()

    def repaint(self, paint: Paint) -> None:
        """Use other colours."""
        self._paint = paint
        self.answer()
        self.query_one(BuildTable).repaint(paint)

    @work(exclusive=True, group="machine", exit_on_error=False)
    async def show(self, report: Report) -> None:
        """Ask about this machine, unless the user has edited a field."""
        self._overlays = report.overlays
        if self._touched or report.snapshot is None:
            return
        with suppress(EnvcheckError):  # then the fields stay as they are
            known = await self._client.ask("machine_fields", report)
            if not self._touched:
                self._fill(known)
            for field, names in (await self._client.ask("suggested", self._overlays)).items():
                self.query_one(f"#ask-{field}", Input).suggester = SuggestFromList(names, case_sensitive=False)

    def _fill(self, known: Mapping[str, str]) -> None:
        with self.prevent(Input.Changed):
            for field, value in known.items():
                self.query_one(f"#ask-{field}", Input).value = clean(value, ascii_only=self._options.ascii)
        self.answer()
        self._judge_builds()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._touched = True
        self.answer()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._judge_builds()
        self.query_one(BuildTable).focus()

    def on_build_table_selected(self, event: BuildTable.Selected) -> None:
        """Ask about the chosen build."""
        event.stop()
        self.query_one("#ask-package", Input).value = event.stated

    def answer(self) -> None:
        """Answer the question in the fields."""
        stated = [f"{field}=={value}" for field in FIELDS[:-1] if (value := self._value(field))]
        package = self._value("package")
        self._find_answer([*stated, package] if package else stated, self.query_one("#whatif-page").size.width - 1)

    @work(exclusive=True, group="answer", exit_on_error=False)
    async def _find_answer(self, stated: list[str], width: int) -> None:
        self.query_one("#whatif-text", Static).update(await self._answer_to(stated, width))

    async def _answer_to(self, stated: list[str], width: int) -> Text:
        if not stated:
            return Text("Enter components to see whether they fit together, and what to change if they do not.")
        try:
            options = Options(width=width, ascii=self._options.ascii)
            lines = await self._client.ask("fits", stated, self._overlays, options)
        except EnvcheckError as error:
            return self._paint.text(str(error), "warn")
        return self._paint.headed(lines)

    def _value(self, field: str) -> str:
        return self.query_one(f"#ask-{field}", Input).value.strip()

    def _judge_builds(self) -> None:
        fixed = [f"{name}=={value}" for name in ("gpu", "driver", "python") if (value := self._value(name))]
        self.query_one(BuildTable).judge(self._value("package"), fixed, self._overlays)
