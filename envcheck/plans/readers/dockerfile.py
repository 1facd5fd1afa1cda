"""Dockerfiles: the base image of the last stage and what its RUN lines install with pip, uv and conda.

``Dockerfile[NAME]`` is another stage, as ``docker build --target`` has it. Only the stages count that this one is built
from, or copies Python packages from. A shell is not interpreted: of
each command the words count, and one that contains a variable without a value stays open. So does every line that names
a program which installs packages, in a way that is not read.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import msgspec
from packaging.specifiers import SpecifierSet

from envcheck.compat.package_needs import release_for
from envcheck.compat.requirements import declared
from envcheck.errors import UsageError
from envcheck.knowledge.images import image_of
from envcheck.model.snapshot import Planned
from envcheck.plans.commands import REMOVED, installed, installs
from envcheck.plans.instructions import Instruction, Layout, instructions, listed
from envcheck.plans.requirement import item, unread
from envcheck.plans.settle import later
from envcheck.plans.sheet import Sheet
from envcheck.plans.shell import commands, filled, of_words

NAME = "Dockerfile"
MUSL = "musl"  # What an image holds whose C library is not glibc

FILES = re.compile(r"(?:Docker|Container)file(?:[._-].{1,80})?|.{1,80}(?:Docker|Container)file", re.IGNORECASE)
_FROM = re.compile(r"(?:--platform=\S{1,80}\s+)?(?P<image>\S{1,300})(?:\s+AS\s+(?P<name>[\w.-]{1,80}))?", re.IGNORECASE)
_MOST_STAGES = 200
_MOST = 2000  # Variables and copied files of a stage: each RUN line notes what is known of them
_MOST_WORK = 2 << 20
_OF_EACH = 200
"""Characters of all commands together, with their variables in place; a command or package counts for this many."""
_MOUNT = re.compile(r"--mount=(\S+)")
_PACKAGES = re.compile(
    r"(?:^|/)(?:\.?v?envs?|\.?virtualenvs?|[\w.-]*venv[\w.-]*|(?:site|dist)-packages|python3?[0-9.]*|\.local|(?:mini|ana)?conda3?"
    r"|miniforge3?|mambaforge|install|wheels?|dist|local|opt)(?:/|$)",
    re.IGNORECASE,
)
"""Folders in which Python packages are copied from stage to stage."""
_PROGRAMS = re.compile(r"(?:^|/)s?bin(?:/|$)")
_HOMES = re.compile(r"/usr(?:/lib)?|/root|/home(?:/[^/]+)?|/[*].*")
"""Folders that hold those of installers, which know them unnamed."""
_DOCKERS_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What BuildKit calls machines, in variables that it sets unasked."""

_TRUE = ("1", "true", "t", "yes")
_WHOLE = 2
"""Dots in the version that an image sets a variable to; of a shorter tag the variable tells more than the tag."""
_LEAST_PATHS = 2  # Paths of a COPY: where from, and where to


class _Run(NamedTuple):
    """A line that may install, and what is known where it stands."""

    order: Instruction
    variables: dict[str, str]
    layout: Layout
    shell: list[str]  # The words of SHELL, if there is such a line


@dataclass
class _Stage:
    """A stage: what it is built from, its RUN lines, and what it copies."""

    name: str
    image: str
    line: int
    runs: list[_Run] = field(default_factory=list)
    starts: dict[str, _Run] = field(default_factory=dict)  # The last CMD and ENTRYPOINT
    shell: list[str] = field(default_factory=list)
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
    target, spent = len(stages) - 1, [0]
    for name in sheet.extras[:1]:
        number = _numbered(stages, name, len(stages))
        if number is None or len(sheet.extras) > 1:
            raise sheet.error(
                None, f"it has no stage {', '.join(sheet.extras)!r}; name one of its stages, or its number"
            )
        target = number
    found = _installed(sheet, target, stages, {}, spent)
    begun = (part for run in _started(stages[target]) for part in _of_run(sheet, run, spent))
    begun = (part for part in begun if part.problem != REMOVED)
    return sheet.bounded([*found, *begun, *_demanded(sheet, stages, target)])


def _demanded(sheet: Sheet, stages: list[_Stage], target: int) -> Iterator[Planned]:
    """What a container asks of the driver before it starts, in the place of what its base image asks: bounds of CUDA,
    or nothing. Alternatives by brand, which NVIDIA's own images have, are left to the rows of these.
    """
    variables, lines = stages[target].variables, sheet.text.split("\n")
    for row in (each for each in sheet.matrix.virtual_packages if each.demanded_by):
        what, value = row.name.strip("_"), variables.get(row.demanded_by)
        clause = rf"{what}(?:[<>]=?|[=!]=)[0-9]{{1,4}}(?:\.[0-9]{{1,4}}){{0,3}}"
        waived = value == "" or variables.get(row.waived_by, "").lower() in _TRUE
        if not waived and not re.fullmatch(rf"{clause}(?:,{clause})*", value or ""):
            continue
        variable = row.waived_by if value is None else row.demanded_by
        places = (number for number, text in enumerate(lines, start=1) if variable in text)
        line = max(places, default=stages[target].line)
        bounds = SpecifierSet("" if waived else (value or "").replace(what, ""))
        setting, image = f"{variable}={variables[variable]}", stages[_chain(stages, target)[0]].image
        demand = item(sheet, what, bounds, line)
        yield msgspec.structs.replace(demand, name=row.name, asked=setting, version=None, image=image)


def _numbered(stages: list[_Stage], name: str, before: int) -> int | None:
    """The number of the stage before another that has this name or number."""
    earlier = reversed(list(enumerate(stages[:before])))
    return next((n for n, stage in earlier if name == str(n) or (stage.name and stage.name == name.lower())), None)


def _stages(sheet: Sheet) -> list[_Stage]:
    found: list[_Stage] = []
    machine = _DOCKERS_NAMES.get(sheet.markers.get("platform_machine", ""))
    outside = {"TARGETOS": "linux", "TARGETARCH": machine, "TARGETPLATFORM": f"linux/{machine}"} if machine else {}
    for order in instructions(sheet):
        if found and max(len(found[-1].variables), len(found[-1].layout.copies)) > _MOST:
            raise sheet.error(order.line, f"more than {_MOST:,} variables or copied files")
        if order.word == "FROM":
            base_line = _FROM.fullmatch(filled(order.flags + order.text, outside))
            if base_line is None:
                raise sheet.error(order.line, "this FROM line cannot be read")
            stage = _Stage((base_line["name"] or "").lower(), base_line["image"], order.line)
            base = _numbered([*found, stage], stage.image, len(found))
            if base is not None:
                stage.variables.update(found[base].variables)
                stage.layout, stage.shell = found[base].layout.copy(), found[base].shell
                stage.starts = dict(found[base].starts)
            elif (image := image_of(sheet.matrix, stage.image)) is not None and image.row is not None:
                versions = {name: image.holds.get(part, "") for name, part in image.row.variables.items()}
                stage.variables |= {name: text for name, text in versions.items() if text.count(".") == _WHOLE}
            found.append(stage)
        elif order.word in ("ARG", "ENV"):
            values = found[-1].variables if found else outside
            for name, value in _assigned(order.text, order.word):
                known = filled(value, values) if value is not None else outside.get(name)
                known = sheet.arguments.get(name, known) if order.word == "ARG" else known
                values.pop(name, None)
                if known is not None and "$" not in known:
                    values[name] = known
        elif found:
            _note(found[-1], order)
    return found


def _note(stage: _Stage, order: Instruction) -> None:
    """Note a line that may install, the folder, or what is copied."""
    run = _Run(order, dict(stage.variables), stage.layout.copy(), stage.shell)
    if order.word in ("RUN", "ONBUILD", "HEALTHCHECK", ""):
        stage.runs.append(run)
    elif order.word in ("CMD", "ENTRYPOINT"):
        if order.word == "ENTRYPOINT":
            stage.starts.clear()  # as of what the image has from its base
        stage.starts[order.word] = run
    elif order.word == "SHELL":
        stage.shell = order.listed or []
    elif order.word == "WORKDIR":
        stage.layout.enter(filled(order.text.strip("\"'"), stage.variables))
    elif order.word in ("COPY", "ADD"):
        _copy(stage, order.line, order.flags + filled(order.text, stage.variables))
        if order.documents:
            stage.runs.append(run)


def _started(stage: _Stage) -> Iterator[_Run]:
    """What a container of the stage runs; of two lists of words, the second one's are arguments of the first one's."""
    entry, command = stage.starts.get("ENTRYPOINT"), stage.starts.get("CMD")
    if entry and command and entry.order.listed is not None and command.order.listed is not None:
        words = [*entry.order.listed, *command.order.listed]
        yield command._replace(order=command.order._replace(text=json.dumps(words)))
    else:
        yield from filter(None, (entry, command))


def _copy(stage: _Stage, line: int, text: str) -> None:
    """Note what a COPY brings: packages of another stage, or files of the build context."""
    try:
        words = (listed(text) or []) if text.startswith("[") else shlex.split(text.partition("\n")[0])
    except ValueError:
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


def _installed(
    sheet: Sheet, last: int, stages: list[_Stage], known: dict[int, list[Planned]], spent: list[int]
) -> list[Planned]:
    """What a stage holds; ``known`` are the answers about others, since stages may copy from each other often.

    ``spent`` counts the characters of all commands.
    """
    if last in known:
        return known[last]
    chain = _chain(stages, last)
    first = stages[chain[0]]
    parts = [of_image(sheet, first.image, first.line)]
    for number in chain:
        stage = stages[number]
        for copy in stage.copies:
            line, source, _ = copy
            other = _numbered(stages, source, number)
            there = (
                _installed(sheet, other, stages, known, spent) if other is not None else of_image(sheet, source, line)
            )
            parts.append(_of_copy(sheet, copy, list(there), stages, other))
        parts += [_of_run(sheet, run, spent) for run in stage.runs]
    return known.setdefault(last, in_order(sheet, parts))


def of_commands(sheet: Sheet, texts: Iterable[tuple[int, str]]) -> list[Iterator[Planned]]:
    """What each of these lines of a shell installs, as RUN would have it."""
    spent = [0]
    runs = (_Run(Instruction(line, "RUN", "", text), {}, Layout(), []) for line, text in texts)
    return [_of_run(sheet, run, spent) for run in runs]


def in_order(sheet: Sheet, parts: Iterable[Iterable[Planned]]) -> list[Planned]:
    """What is there in the end, where each part of a build is installed upon those before it."""
    found: dict[str, Planned] = {}
    for part in parts:
        for together, command in groupby(part, lambda each: each.together):
            items = list(command)
            for each in items:
                key = each.name or f"{each.source} {each.asked}"
                if each.problem == REMOVED:
                    found.pop(key, None)
                    continue
                found[key] = later(found[key], each) if key in found else each
            if together is not None:
                found |= _replaced(sheet, found, items)
    return list(found.values())


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


def _chain(stages: list[_Stage], last: int) -> list[int]:
    """The numbers of the stages that one is built from, and its own."""
    chain = [last]
    while (base := _numbered(stages, stages[chain[0]].image, chain[0])) is not None:
        chain.insert(0, base)
    return chain


def _of_copy(
    sheet: Sheet, copy: tuple[int, str, list[str]], there: list[Planned], stages: list[_Stage], other: int | None
) -> Iterator[Planned]:
    """What the commands of another stage install, where folders of Python packages are copied from it, or the
    folder that it works in, where uv puts its environment. Open: a user's folder, or one that what installs names.
    """
    line, source, paths = copy
    brought = [each for each in there if each.image is None]
    folder = stages[other].layout.folder if other is not None else None
    inside = f"{folder}/" if folder not in (None, "/") else ""
    copied = [path.rstrip("/") for path in paths[:-1] if not _PROGRAMS.search(path)]
    if any(_PACKAGES.search(path) or inside.startswith(f"{path}/") for path in copied):
        yield from brought
    elif other is not None and any(each.name for each in brought):
        runs = [run for number in _chain(stages, other) for run in stages[number].runs]
        texts = [filled(run.order.text, run.variables) for run in runs if installs(sheet.matrix, run.order.text)]
        texts += stages[other].variables.values()
        names = [re.compile(rf"(?<!\w){re.escape(path.rpartition('/')[2])}(?!\w)") for path in copied]
        if any(map(_HOMES.fullmatch, copied)) or any(name.search(text) for name in names for text in texts):
            problem = "the stage that it copies from installs packages, which may be among the files"
            yield unread(sheet, f"COPY --from={source[:80]}", line, problem)


def of_image(sheet: Sheet, image: str, line: int) -> Iterator[Planned]:
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
        tag = f"+cu{''.join(known.holds['cuda'].split('.')[:2])}" if known.holds.get("cuda") else ""
        for name, version in known.holds.items():
            bounds = SpecifierSet(f"=={version}{tag if name == 'torch' and '+' not in version else ''}")
            yield msgspec.structs.replace(item(sheet, name, bounds, line), image=known.name)
        for name in known.row.beside_torch:
            pin = release_for(sheet.matrix, name, "torch", known.holds.get("torch", ""))
            if pin:
                yield msgspec.structs.replace(item(sheet, name, SpecifierSet(pin), line), image=known.name)
        if known.row.musl:
            yield msgspec.structs.replace(item(sheet, MUSL, SpecifierSet("==1"), line), image=known.name)


def _of_run(sheet: Sheet, run: _Run, spent: list[int]) -> Iterator[Planned]:
    """What a line installs; a line that is not read stays open where it names a program that installs."""
    order = run.order
    if order.word not in ("RUN", "CMD", "ENTRYPOINT"):
        trigger = order.text.split(maxsplit=1) if order.word == "ONBUILD" else []
        inner = [run._replace(order=order._replace(word="RUN", text=trigger[-1]))] if len(trigger) > 1 else []
        if not order.word:
            yield unread(sheet, "a line", order.line, "this is no instruction of a Dockerfile")
        elif installs(sheet.matrix, order.text) or any(True for each in inner for _ in _of_run(sheet, each, spent)):
            yield unread(sheet, order.word, order.line, "what this line installs is not read")
        return
    for options in _MOUNT.findall(order.flags):
        _mount(run.layout, dict(part.partition("=")[::2] for part in options.split(",")))
    words = order.listed if order.listed is not None else [*run.shell, order.text] if run.shell else None
    found = commands(order.text, run.variables) if words is None else of_words(words, run.variables)
    for number, command in enumerate(found):
        _spend(sheet, order.line, spent, _OF_EACH + sum(map(len, command.words)))
        if not command.words:
            if installs(sheet.matrix, order.text):
                yield unread(sheet, order.word, order.line, "a command that installs packages cannot be read")
            continue
        try:
            for each in installed(sheet, order.line, command, run.layout, at_start=order.word != "RUN"):
                _spend(sheet, order.line, spent, _OF_EACH)
                together = f"{sheet.file}:{order.line} {number}" if each.together else None
                yield msgspec.structs.replace(each, together=together)
        except UsageError as error:
            if not str(error).startswith(f"{sheet.file}:{order.line}: "):
                raise  # of a file that it includes
            yield unread(sheet, order.word, order.line, "a word of a command that installs packages cannot be read")


def _spend(sheet: Sheet, line: int, spent: list[int], work: int) -> None:
    spent[0] += work
    if spent[0] > _MOST_WORK:
        raise sheet.error(None, f"its commands are too long to be read, as of line {line}")


def _mount(layout: Layout, options: dict[str, str]) -> None:
    """Note the files of ``--mount=type=bind``, which is the default."""
    if options.get("type", "bind") != "bind":
        return
    target = next((options[name] for name in ("target", "dst", "destination") if name in options), "")
    if not target:
        return
    if "from" in options:
        layout.cover(target)
    else:
        layout.put([options.get("source") or options.get("src") or "."], target)
