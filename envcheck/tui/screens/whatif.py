"""The third screen. What if: do these components fit, why not, what to change; and which builds fit this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from envcheck.tui.screens.builds import Builds
from envcheck.tui.widgets.paint import Paint
from envcheck.tui.worker.client import Desk

if TYPE_CHECKING:
    from envcheck.checks import Report

FIELDS = ("gpu", "driver", "cuda", "python", "package")
_PLACEHOLDERS = ("H100, sm_90 …", "550.54.14", "12.4", "3.12", "torch==2.5.1+cu124 …")
_BESIDE = 130
"""Columns from which on the grid stands beside the answer."""


class Answer(VerticalScroll):
    """Where the answer stands; it says when there is another width for it."""

    class Widened(Message):
        """Or narrowed."""

    _width = 0

    def on_resize(self, event: Resize) -> None:
        if event.size.width != self._width:
            self._width = event.size.width
            self.post_message(self.Widened())


class WhatIf(Vertical):
    """A form over ``matrix check``."""

    def __init__(self, options: Options, paint: Paint, desk: Desk) -> None:
        super().__init__(id="whatif-body")
        self._options, self._paint, self._desk = options, paint, desk
        self._touched = False
        self._overlays: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        with Horizontal(id="whatif-form"):
            for field, placeholder in zip(FIELDS, _PLACEHOLDERS, strict=True):
                with Vertical(classes=f"field field-{field}"):
                    yield Label(field)
                    yield Input(placeholder=self._own(placeholder), id=f"ask-{field}", compact=True)
        with Horizontal(id="whatif-answer"):
            with Answer(id="whatif-page", classes="framed", can_focus=False) as page:
                page.border_title = "answer"
                yield Static("", id="whatif-text")
            yield Builds(self._desk, self._paint)

    def on_resize(self) -> None:
        self.query_one("#whatif-answer").set_class(self.size.width < _BESIDE, "-below")

    def on_answer_widened(self, event: Answer.Widened) -> None:
        event.stop()
        self.answer()

    def repaint(self, paint: Paint) -> None:
        """Take other colours."""
        self._paint = paint
        self.answer()
        self.query_one(Builds).repaint(paint)

    @work(exclusive=True, group="machine", exit_on_error=False)
    async def show(self, report: Report) -> None:
        """Take this machine for the question, unless somebody has begun to write another."""
        self._overlays = report.overlays
        if self._touched or report.snapshot is None:
            return
        with suppress(EnvcheckError):  # then the fields stay as they are
            known = await self._desk.known_of(report)
            if not self._touched:
                self._fill(known)
            self._suggest(await self._desk.suggested(self._overlays))

    def _fill(self, known: Mapping[str, str]) -> None:
        with self.prevent(Input.Changed):
            for field, value in known.items():
                self.query_one(f"#ask-{field}", Input).value = clean(value, ascii_only=self._options.ascii)
        self.answer()
        self._judge_builds()

    def _suggest(self, names: Mapping[str, Sequence[str]]) -> None:
        for field, known in names.items():
            self.query_one(f"#ask-{field}", Input).suggester = SuggestFromList(known, case_sensitive=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._touched = True
        self.answer()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._judge_builds()
        self.query_one(Builds).focus()

    def on_builds_picked(self, event: Builds.Picked) -> None:
        """Put the chosen build into the question."""
        event.stop()
        self.query_one("#ask-package", Input).value = event.stated

    def answer(self) -> None:
        """Put the question as it stands."""
        stated = [f"{field}=={value}" for field in FIELDS[:-1] if (value := self._stated(field))]
        package = self._stated("package")
        self._find_answer([*stated, package] if package else stated, self.query_one("#whatif-page").size.width - 1)

    @work(exclusive=True, group="answer", exit_on_error=False)
    async def _find_answer(self, stated: list[str], width: int) -> None:
        self.query_one("#whatif-text", Static).update(await self._answer_to(stated, width))

    async def _answer_to(self, stated: list[str], width: int) -> Text:
        if not stated:
            return Text("Name some components: what fits together, and what to change where it does not.")
        try:
            lines = await self._desk.fits(stated, self._overlays, Options(width=width, ascii=self._options.ascii))
        except EnvcheckError as error:
            return self._paint.text(str(error), "warn")
        return self._paint.headed(lines)

    def _stated(self, field: str) -> str:
        return self.query_one(f"#ask-{field}", Input).value.strip()

    def _judge_builds(self) -> None:
        fixed = [f"{name}=={value}" for name in ("gpu", "driver", "python") if (value := self._stated(name))]
        self.query_one(Builds).judge(self._stated("package"), fixed, self._overlays)

    def _own(self, words: str) -> str:
        return words.replace("…", "...") if self._options.ascii else words
