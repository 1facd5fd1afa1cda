"""Dockerfiles: the base image of the last stage and what its RUN lines install with pip, uv and conda.

Only the stages count that the last one is built from, or copies Python packages from. A shell is not interpreted: of
each command the words count, and one that contains a variable without a value stays open.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import msgspec
from packaging.specifiers import SpecifierSet

from envcheck.compat.images import image_of
from envcheck.compat.question.declared import declared
from envcheck.errors import UsageError
from envcheck.plans.image.commands import INSTALLS, installed
from envcheck.plans.image.layout import Layout
from envcheck.plans.kit.requirement import item, unread
from envcheck.plans.kit.settle import later
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.shell import Command, commands, filled, of_words
from envcheck.snapshot import Planned

NAME = "Dockerfile"
MUSL = "musl"
"""What an image holds whose C library is not glibc."""

_FILE = re.compile(
    r"(?:Dockerfile|Containerfile)(?:[._-].{1,80})?|.{1,80}\.(?:Dockerfile|Containerfile)", re.IGNORECASE
)
_FROM = re.compile(r"(?:--platform=\S{1,80}\s+)?(?P<image>\S{1,300})(?:\s+AS\s+(?P<name>[\w.-]{1,80}))?", re.IGNORECASE)
_HEREDOC = re.compile(r"<<-?[\"']?(\w{1,40})[\"']?")
_RUN_OPTIONS = re.compile(r"(?:--(?:mount|network|security)=\S{0,400}\s+)+")
_BIND = re.compile(r"--mount=(?P<options>\S{0,400}type=bind\S{0,400})")
_LONGEST_LINE = 100_000
_MOST_STAGES = 200
_MOST = 2000
"""Instructions, and variables and copied files of a stage: each RUN line notes what is known of them."""
_ESCAPE = re.compile(r"#\s*escape\s*=\s*(?P<character>[\\`])\s*", re.IGNORECASE)
_PACKAGES = re.compile(
    r"(?:^|/)(?:\.?v?envs?|\.?virtualenvs?|[\w.-]*venv[\w.-]*|(?:site|dist)-packages|python3?[0-9.]*|\.local|(?:mini|ana)?conda3?"
    r"|miniforge3?|mambaforge|install|wheels?|dist|local|opt)(?:/|$)",
    re.IGNORECASE,
)
"""Folders in which Python packages are copied from stage to stage."""

_LEAST_PATHS = 2
"""Paths of a COPY: where from, and where to."""


def recognise(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


class _Run(NamedTuple):
    """A RUN line, and what is known where it stands."""

    line: int
    text: str
    variables: dict[str, str]
    layout: Layout


@dataclass
class _Stage:
    """A stage: what it is built from, its RUN lines, and what it copies."""

    name: str
    image: str
    line: int
    runs: list[_Run] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    copies: list[tuple[int, str, list[str]]] = field(default_factory=list)
    """Line, stage and paths of each ``COPY --from``."""
    layout: Layout = field(default_factory=Layout)


def read(sheet: Sheet) -> list[Planned]:
    stages = _stages(sheet)
    if not stages:
        raise sheet.error(None, "it has no FROM line")
    if len(stages) > _MOST_STAGES:
        raise sheet.error(stages[_MOST_STAGES].line, f"more than {_MOST_STAGES} stages")
    return sheet.bounded(_installed(sheet, len(stages) - 1, stages, {}))


def _chain(stages: list[_Stage], last: int) -> list[int]:
    """The stages that one is built from, first to last, by their numbers."""
    chain = [last]
    while (base := _numbered(stages, stages[chain[-1]].image, chain[-1])) is not None:
        chain.append(base)
    return chain[::-1]


def _numbered(stages: list[_Stage], name: str, before: int) -> int | None:
    """The number of the stage before another that has this name or number."""
    return next((n for n in range(before - 1, -1, -1) if _is_stage(name, n, stages[n].name)), None)


def _is_stage(image: str, number: int, name: str) -> bool:
    return (bool(name) and image.lower() == name) or image == str(number)


def _stages(sheet: Sheet) -> list[_Stage]:
    found: list[_Stage] = []
    outside: dict[str, str] = {}
    for count, (line, word, rest) in enumerate(_instructions(sheet)):
        if count > _MOST or (found and max(len(found[-1].variables), len(found[-1].layout.copies)) > _MOST):
            raise sheet.error(line, f"more than {_MOST:,} instructions, variables or copied files")
        if word == "FROM":
            told = _FROM.fullmatch(filled(rest, outside))
            if told is None:
                raise sheet.error(line, "this FROM line cannot be read")
            stage = _Stage((told["name"] or "").lower(), told["image"], line)
            base = _numbered([*found, stage], stage.image, len(found))
            if base is not None:
                stage.variables.update(found[base].variables)
                stage.layout = found[base].layout.copy()
            found.append(stage)
        elif word in ("ARG", "ENV"):
            values = found[-1].variables if found else outside
            for name, value in _assigned(rest, word):
                known = filled(value, {**outside, **values}) if value is not None else outside.get(name)
                if known is not None and "$" not in known:
                    values[name] = known
        elif found:
            _note(found[-1], line, word, rest)
    return found


def _note(stage: _Stage, line: int, word: str, rest: str) -> None:
    """Note a RUN line, the folder, or what is copied."""
    if word == "RUN":
        stage.runs.append(_Run(line, rest, dict(stage.variables), stage.layout.copy()))
    elif word == "WORKDIR":
        stage.layout.enter(filled(rest.strip("\"'"), stage.variables))
    elif word in ("COPY", "ADD"):
        _copy(stage, line, filled(rest, stage.variables))


def _copy(stage: _Stage, line: int, text: str) -> None:
    """Note what a COPY brings: packages of another stage, or files of the build context."""
    try:
        words = json.loads(text) if text.startswith("[") else shlex.split(text.partition("\n")[0])
    except (ValueError, RecursionError):
        return
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        return
    options = [each for each in words if each.startswith("--")]
    paths = [each for each in words if not each.startswith("--")]
    if len(paths) < _LEAST_PATHS:
        return
    source = next((each.partition("=")[2] for each in options if each.startswith("--from=")), None)
    if source is None:
        stage.layout.put(paths[:-1], paths[-1])
    else:
        stage.copies.append((line, source.lower(), paths))
        stage.layout.cover(paths[-1])


def _instructions(sheet: Sheet) -> Iterator[tuple[int, str, str]]:
    """Line, keyword and text of each instruction, with its continued lines and its here-documents."""
    lines = iter(enumerate(sheet.text.split("\n"), start=1))
    escape = "\\"
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            directive = _ESCAPE.fullmatch(line.strip())
            escape = directive["character"] if directive else escape
            continue
        text, start = line, number
        while text.rstrip().endswith(escape):
            text = text.rstrip()[:-1]
            more = next(((_n, each) for _n, each in lines if not each.lstrip().startswith("#")), None)
            if more is None:
                break
            text += " " + more[1]
            if len(text) > _LONGEST_LINE:
                raise sheet.error(start, "an instruction of more than 100,000 characters")
        for end in _HEREDOC.findall(text):
            body: list[str] = []
            for _, each in lines:
                if each.strip() == end:
                    break
                body.append(each)
            text += "\n" + "\n".join(body)
        word, _, rest = text.strip().partition(" ")
        yield start, word.upper(), rest.strip()


def _assigned(text: str, word: str) -> Iterator[tuple[str, str | None]]:
    try:
        words = shlex.split(text)
    except ValueError:
        return
    if word == "ENV" and words and "=" not in words[0]:
        yield words[0], " ".join(words[1:])
        return
    for each in words:
        name, separator, value = each.partition("=")
        yield name, value if separator else None


def _installed(sheet: Sheet, last: int, stages: list[_Stage], known: dict[int, list[Planned]]) -> list[Planned]:
    """What a stage holds; ``known`` are the answers about others, since stages may copy from each other often."""
    if last in known:
        return known[last]
    found: dict[str, Planned] = {}
    chain = _chain(stages, last)
    first = stages[chain[0]]
    parts = [_of_image(sheet, first.image, first.line)]
    for number in chain:
        stage = stages[number]
        for line, source, paths in stage.copies:
            other = _numbered(stages, source, number)
            there = _installed(sheet, other, stages, known) if other is not None else _of_image(sheet, source, line)
            folder = stages[other].layout.folder if other is not None else None
            parts.append(_of_copy(sheet, line, source, paths, list(there), folder))
        parts += [_of_run(sheet, run) for run in stage.runs]
    for part in parts:
        for together, command in groupby(part, lambda each: each.together):
            items = list(command)
            for each in items:
                key = each.name or f"{each.source} {each.asked}"
                found[key] = later(found[key], each) if key in found else each
            if together is not None:
                found |= _replaced(sheet, found, items)
    return known.setdefault(last, list(found.values()))


def _replaced(sheet: Sheet, there: dict[str, Planned], items: list[Planned]) -> dict[str, Planned]:
    """What pip puts in place of packages that are there already and that the items of a command cannot do with."""
    asked = {each.name for each in items}
    found: dict[str, Planned] = {}
    for each in items:
        if each.version is None or each.refused is not None:
            continue
        needs = declared(sheet.matrix, each.name, each.version, sheet.markers, build=each.build, extras=each.extras)
        for name, text in needs.items():
            old, bounds = there.get(name), SpecifierSet(text)
            if old is None or old.version is None or old.conda is not None or name in asked:
                continue
            if not bounds.contains(old.version, prereleases=True):
                found[name] = item(sheet, name, bounds, each.line)
    return found


def _of_copy(
    sheet: Sheet, line: int, source: str, paths: list[str], there: list[Planned], folder: str | None
) -> Iterator[Planned]:
    """What the commands of another stage install, where folders of Python packages are copied from it, or the
    ``folder`` that it works in, where uv puts its environment.
    """
    brought = [each for each in there if each.image is None]
    if any(_PACKAGES.search(path) or _holds(path, folder) for path in paths[:-1]):
        yield from brought
    elif any(each.name for each in brought):
        problem = "the stage that it copies from installs packages, and whether they are among the files is not known"
        yield unread(sheet, f"COPY --from={source[:80]}", line, problem)


def _holds(path: str, folder: str | None) -> bool:
    return folder not in (None, "/") and f"{folder}/".startswith(path.rstrip("/") + "/")


def _of_image(sheet: Sheet, image: str, line: int) -> Iterator[Planned]:
    if "$" in image:
        yield unread(sheet, f"FROM {image[:80]}", line, "a variable without a default value names the image")
        return
    known = image_of(sheet.matrix, image)
    if known is None:
        problem = "the matrix does not know this image, so what it holds was not judged"
        yield unread(sheet, f"FROM {image[:200]}", line, problem)
    elif known.row is None:
        yield unread(sheet, f"FROM {known.name}", line, "what this tag of the image holds is not known")
    else:
        yield from _held(sheet, known.holds, known.name, line)
        if known.row.musl:
            yield msgspec.structs.replace(item(sheet, MUSL, SpecifierSet("==1"), line), image=known.name)


def _held(sheet: Sheet, versions: dict[str, str], image: str, line: int) -> Iterator[Planned]:
    cuda = versions.get("cuda", "")
    for name, version in versions.items():
        tag = f"+cu{cuda.replace('.', '')}" if name == "torch" and cuda else ""
        held = item(sheet, name, SpecifierSet(f"=={version}{tag}"), line)
        yield msgspec.structs.replace(held, image=image)


def _of_run(sheet: Sheet, run: _Run) -> Iterator[Planned]:
    options = _RUN_OPTIONS.match(run.text)
    bare = run.text[options.end() :] if options else run.text
    for mount in _BIND.finditer(options[0] if options else ""):
        _mount(run.layout, dict(part.partition("=")[::2] for part in mount["options"].split(",")))
    for number, command in enumerate(_commanded(bare, run.variables)):
        if not command.words:
            if INSTALLS.search(bare):
                yield unread(sheet, "RUN", run.line, "a command that installs packages cannot be read")
            continue
        try:
            for each in list(installed(sheet, run.line, command, run.layout)):
                together = f"{sheet.file}:{run.line} {number}" if each.together else None
                yield msgspec.structs.replace(each, together=together)
        except UsageError as error:
            if not str(error).startswith(f"{sheet.file}:{run.line}:"):
                raise  # of a file that it includes
            yield unread(sheet, "RUN", run.line, "a word of a command that installs packages cannot be read")


def _commanded(text: str, variables: dict[str, str]) -> Iterator[Command]:
    """The commands of a shell's text, or the one whose words are given as JSON."""
    listed = None
    if text.startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            listed = None
    if isinstance(listed, list) and all(isinstance(each, str) for each in listed):
        return of_words(listed, variables)
    return commands(text, variables)


def _mount(layout: Layout, options: dict[str, str]) -> None:
    """Note the files of ``--mount=type=bind``."""
    target = next((options[name] for name in ("target", "dst", "destination") if name in options), "")
    if not target:
        return
    if "from" in options:
        layout.cover(target)
    else:
        layout.put([options.get("source") or options.get("src") or "."], target)
