"""Read the fields of one ``<gpu>`` element, and keep which of them the GPU says it does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from envcheck.importers._paste import SOURCE
from envcheck.importers._smi_values import error_in, is_refusal
from envcheck.importers._xml import Element
from envcheck.snapshot import ApiResult

T = TypeVar("T")


class Fields:
    """Reads fields of one GPU, and keeps which of them it says it does not have and which calls failed."""

    def __init__(self, element: Element) -> None:
        self._element = element
        self._met: set[str] = set()
        self._refused: set[str] = set()
        self._read: set[str] = set()
        self.errors: dict[str, ApiResult] = {}

    def value(self, field: str, decode: Callable[[str], T | None], *paths: str) -> T | None:
        """The first of ``paths`` that holds a value; ``field`` is the Snapshot's name for it."""
        for path in paths:
            element = self._element.at(path)
            if element is None or element.children:
                continue
            text = element.text
            self._met.add(field)
            if is_refusal(text):
                self._refused.add(field)
            self._note_error(path, text)
            found = decode(text)
            if found is not None:
                self._read.add(field)
                return found
        return None

    def group(self, field: str, path: str) -> Element | None:
        """An element with children; one that is only "N/A" refuses the whole record ``field``."""
        element = self._element.at(path)
        if element is not None and not element.children and is_refusal(element.text):
            self._refused.add(field)
            return None
        return element

    def not_supported(self) -> tuple[str, ...]:
        """The refused fields; where a record's were all refused, the record."""
        refused = self._refused - self._read
        records = {field.partition(".")[0] for field in refused if "." in field}
        whole_records = {
            record
            for record in records
            if all(field in refused for field in self._met if field.startswith(f"{record}."))
        }
        single = {field for field in refused if field.partition(".")[0] not in whole_records}
        return tuple(sorted(single | whole_records))

    def _note_error(self, path: str, text: str) -> None:
        error = error_in(text)
        if error:
            code, name = error
            result = ApiResult(source=SOURCE, call=f"nvidia-smi {path}", code=code, name=name, text=word_of(text))
            self.errors.setdefault(name, result)


def word_of(text: str) -> str:
    """An error's own words, fit to be shown."""
    return " ".join(text.split())[:100]


def among(names: dict[str, str]) -> Callable[[str], str | None]:
    """Decode one of a few words, by its name in the Snapshot."""
    return lambda text: names.get(text.strip().lower())
