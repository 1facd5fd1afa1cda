"""Readings: rows of the matrix (``readings.toml``) that say what single lines tell, each a pattern and the fields that
it fills. A row's text has ``{group}`` for what the pattern found; ``?group`` asks whether it found anything there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, pairwise
from typing import Any

import msgspec

from envcheck.importers.assemble import NAMED, OF_MODULE
from envcheck.importers.formats.nvidia_smi.fields import label
from envcheck.importers.importer import Importer, Rank, environment, joined, stated_cuda, stated_cudnn
from envcheck.importers.paste import SOURCE, Paste
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables.messages import ReadingRow
from envcheck.model.snapshot import Distribution, Framework, Library, Listing, Snapshot

_LONGEST, _MOST_ITEMS = 2_000, 40
_RECORDS = ("platform", "driver", "kernel", "variables")  # What a row fills by the names that the Snapshot has for it
_LIBRARIES: dict[str, Callable[[str], Library]] = {
    "cuda": stated_cuda,
    "cudnn": stated_cudnn,
    "loaded_cudnn": partial(stated_cudnn, loaded=True),
}

compiled = cache(re.compile)


def reading_importers(others: set[str]) -> list[Importer]:
    """The formats that rows alone know: all but ``others``."""
    ranks = {row.importer: row.rank for row in load_matrix().readings if row.importer not in others}
    return [Importer(name, Rank[rank.upper()], partial(read_lines, name), None) for name, rank in ranks.items()]


@cache
def rows_of(importer: str) -> tuple[ReadingRow, ...]:
    return tuple(row for row in load_matrix().readings if row.importer == importer and not row.asked)


@cache
def _alone(importer: str) -> tuple[ReadingRow, ...]:
    """The rows that need no line above."""
    return tuple(row for row in rows_of(importer) if not row.above)


def read_lines(importer: str, paste: Paste) -> Snapshot:
    """What the lines of a text tell by the rows of this format."""
    text = paste.lowered
    rows = [row for row in rows_of(importer) if any(map(text.__contains__, row.has)) and row.beside in text]
    alone, below = [row for row in rows if not row.above], [row for row in rows if row.above]
    of_lines = (_parts(alone, line) for line in paste.statements) if alone else ()
    of_pairs = (_parts(below, line, above) for above, line in pairwise(paste.lines)) if below else ()
    return joined(chain.from_iterable((*of_lines, *of_pairs)))


def facts_in(importer: str, line: str) -> Iterator[Snapshot]:
    """What a line tells by itself, one Snapshot for each row that knows it."""
    return _parts(_alone(importer), line)


def _parts(rows: Sequence[ReadingRow], line: str, above: str = "") -> Iterator[Snapshot]:
    text = line.strip()[:_LONGEST]
    lowered = text.lower()
    for row in rows:
        if (
            any(map(lowered.__contains__, row.has))
            and not (row.unless and compiled(row.unless).search(text))
            and compiled(row.above).search(above.strip()[:_LONGEST])
            and (found := next(filter(None, (compiled(pattern).search(text) for pattern in row.patterns)), None))
        ):
            yield filled(row, found.groupdict())


class PythonQuestion(msgspec.Struct, frozen=True):
    """What code asks, and what its answers mean."""

    asked: re.Pattern[str]
    answer: str  # A regular expression with one group
    meaning: Callable[[str], Snapshot | None]


@cache
def _questions() -> tuple[PythonQuestion, ...]:
    rows: dict[str, list[ReadingRow]] = {}
    for row in load_matrix().readings:
        if row.asked:
            rows.setdefault(row.asked, []).append(row)
    found: list[PythonQuestion] = []
    for asked, answers in rows.items():
        either = "|".join(pattern for row in answers for pattern in row.patterns)
        unnamed = re.sub(r"\(\?P<\w+>", "(?:", either)  # several questions may be asked in one line
        found.append(PythonQuestion(re.compile(asked), f"({unnamed})", partial(_meaning, answers)))
    return tuple(found)


def question(code: str) -> PythonQuestion | None:
    return next((each for each in _questions() if each.asked.fullmatch(code.strip())), None)


def answered(code: str, answer: str) -> Snapshot | None:
    asked = question(code)
    return asked.meaning(answer) if asked else None


def _meaning(rows: Sequence[ReadingRow], answer: str) -> Snapshot | None:
    found = ((row, compiled(pattern).fullmatch(answer)) for row in rows for pattern in row.patterns)
    return next((filled(row, match.groupdict()) for row, match in found if match), None)


def filled(row: ReadingRow, groups: Mapping[str, str | None]) -> Snapshot:
    """The records of a row with what its pattern found."""
    facts = {name: value for name, template in row.fills.items() if (value := _value(template, groups)) is not None}
    fields: dict[str, Any] = {name: _sourced(facts[name]) for name in _RECORDS if name in facts}
    if "module" in facts:
        fields["kernel"] = _sourced({"nvidia": _sourced(facts["module"])})
    if gpu := facts.get("gpu"):
        gpu = {name: _sourced(each) if isinstance(each, dict) else each for name, each in gpu.items()}
        named = f"{NAMED}{gpu.get('name') or gpu.get('compute_capability')}"
        fields["gpus"] = {"items": [_sourced({"label": label(int(gpu["index"])) if "index" in gpu else named, **gpu})]}
    if toolkit := facts.get("toolkit"):
        fields["toolkits"] = {"items": [_sourced({"path": "unknown folder", **toolkit})]}
    found = msgspec.convert(fields, Snapshot, strict=False)
    for name in _LIBRARIES.keys() & facts.keys():
        found = msgspec.structs.replace(found, libraries=Listing(items=(_LIBRARIES[name](facts[name]),)))
    frameworks = (_record(Framework, facts["framework"]),) if "framework" in facts else ()
    packages = (_record(Distribution, {"read": OF_MODULE, **facts["package"]}),) if "package" in facts else ()
    if frameworks or packages or facts.keys() & {"python", "executable", "manager"}:
        judged = environment(python=facts.get("python"), distributions=packages, frameworks=frameworks)
        judged = msgspec.structs.replace(judged, executable=facts.get("executable"), manager=facts.get("manager"))
        found = msgspec.structs.replace(found, environments=Listing(items=(judged,)))
    return found


def _sourced(fields: dict[str, Any]) -> dict[str, Any]:
    return {"source": SOURCE, **fields}


def _record(kind: type[Any], fields: dict[str, Any]) -> Any:
    return msgspec.convert(_sourced(fields), kind, strict=False)


def _value(template: Any, groups: Mapping[str, str | None]) -> Any:
    """A field's value; None where no group that it names was found, and for a record with no other fields."""
    if isinstance(template, str):
        if template.startswith("?"):
            return groups[template[1:]] is not None
        names = re.findall(r"\{([a-z]\w*)", template)
        if names and not any(map(groups.get, names)):
            return None
        return template.format_map({name: groups.get(name) or "" for name in names})
    if not isinstance(template, dict):
        return template
    if "each" in template:  # a list in one text: of which group, each item's pattern, and what it stands for
        items = compiled(template["each"]).finditer(groups[template["of"]] or "")
        return list(dict.fromkeys(item.expand(template["as"]) for item in items))[:_MOST_ITEMS] or None
    values = {name: _value(each, groups) for name, each in template.items()}
    known = {name: value for name, value in values.items() if value is not None}
    return None if len(known) < len(values) and all(known[name] == template[name] for name in known) else known
