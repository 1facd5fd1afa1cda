"""Renderers: one file per format over one Report. A format's module is imported when it is asked for.

The format ``node-problem-detector`` is the module ``node_problem_detector``: a dash stands for each underscore.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from envcheck.errors import UsageError
from envcheck.text.inert import Syntax

if TYPE_CHECKING:
    from envcheck.model.checks import Report


class Format(NamedTuple):
    """What a renderer says of itself: a module ``NAME.py`` of this folder that holds ``FORMAT`` and ``render`` is the
    format NAME, wherever formats are chosen, listed or written.

    A module whose readers go by the exit status of the program, and by other numbers than envcheck's, also holds
    ``exit_status(report)``.
    """

    shows: str  # What a reader finds in it
    suffix: str  # How the name of a file in it ends, without the dot
    syntax: Syntax
    targets: bool = True  # Whether it can show several targets; it is refused for them otherwise
    edits: bool = False  # Whether it offers ``Options.edits``
    shared: bool = False  # Whether it is meant for others: names of users and machines are left out unless asked for


class Options(NamedTuple):
    """How a report is to be shown. Machine formats look at none of it."""

    width: int = 80  # Columns of the page
    color: bool = False
    verbose: bool = False  # Every check with all that is known of it, without any limit
    quiet: bool = False  # Only the verdict and its cause
    ascii: bool = False  # Print ASCII characters only
    home: str = ""  # Folder that is shown as ``~``; empty for none
    edits: str = ""  # The unified diff with which the judged plan fits, for a format that offers it as a fix
    redact: bool | None = None
    """Whether names and identifiers give way to pseudonyms; None: in the formats that are meant to be shared."""
    homes: tuple[str, ...] = ()  # Home folders whose owners are to be hidden by it


class _Formats(Mapping[str, Format]):
    """The formats by name, found by listing this folder. Only one that is looked up is imported."""

    def __getitem__(self, name: str) -> Format:
        stem = name.replace("-", "_")
        if "_" in name or not (stem.isidentifier() and _declares(_FOLDER / f"{stem}.py")):
            raise KeyError(name)
        found: Format = _module(name).FORMAT
        return found

    def __iter__(self) -> Iterator[str]:
        return (path.stem.replace("_", "-") for path in sorted(_FOLDER.glob("*.py")) if _declares(path))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _declares(module: Path) -> bool:
    try:
        return b"\nFORMAT = Format(" in module.read_bytes()
    except OSError:
        return False


def _module(form: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{form.replace('-', '_')}")


_FOLDER = Path(__file__).parent
FORMATS: Mapping[str, Format] = _Formats()


def render(report: Report, form: str, options: Options | None = None) -> str:
    """``report`` in one format, as ``Pages`` has it."""
    return Pages(report).render(form, options or Options())


class Pages:
    """A report in one format after another. What it shows is made fit for that once, however many formats show it."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._shown: dict[tuple[str, ...] | None, Report] = {}
        """By the home folders whose owners are hidden; None: only secrets are masked."""

    def render(self, form: str, options: Options) -> str:
        """The report in the format ``form``, ending in a newline; raise UsageError when there is no such format.

        Values that look secret are masked in every format.
        """
        from envcheck.redact import mask_secrets, redact

        if form not in FORMATS:
            raise UsageError(f"there is no format {form!r}; choose from {', '.join(FORMATS)}")
        refuse_targets(form, len(self._report.targets))
        module = _module(form)
        shared = FORMATS[form].shared if options.redact is None else options.redact
        homes = options.homes if shared else None
        if homes not in self._shown:
            self._shown[homes] = mask_secrets(self._report) if homes is None else redact(self._report, homes)
        text: str = module.render(self._shown[homes], options)
        return text


def refuse_targets(form: str, number: int) -> None:
    """Raise UsageError where the format ``form`` is about one machine, and the report is about ``number`` targets."""
    if number > 1 and not FORMATS[form].targets:
        shown = ", ".join(name for name, each in FORMATS.items() if each.targets)
        raise UsageError(f"{form} is about one machine, and there are {number} targets: give one, or use {shown}")


def exit_status(report: Report, form: str) -> int:
    """The exit status after ``report`` was printed in the format ``form``: the report's, or what its readers expect."""
    own = getattr(_module(form), "exit_status", None)
    return int(own(report) if own else report.exit_code)


def get_ready(form: str) -> None:
    """Import what rendering in the format ``form`` needs."""
    _module(form)
    importlib.import_module("envcheck.redact.secrets")
