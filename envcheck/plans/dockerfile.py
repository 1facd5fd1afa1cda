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

import msgspec
from packaging.specifiers import SpecifierSet

from envcheck.compat.images import image_of
from envcheck.errors import UsageError
from envcheck.plans.kit.index import Index
from envcheck.plans.kit.requirement import item, unread
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.shell import Command, commands, filled, of_words
from envcheck.plans.requirements import of_arguments
from envcheck.snapshot import Planned

NAME = "Dockerfile"

_FILE = re.compile(r"(?:Dockerfile|Containerfile)(?:\..{1,80})?|.{1,80}\.(?:Dockerfile|Containerfile)", re.IGNORECASE)
_FROM = re.compile(r"(?:--platform=\S{1,80}\s+)?(?P<image>\S{1,300})(?:\s+AS\s+(?P<name>[\w.-]{1,80}))?", re.IGNORECASE)
_HEREDOC = re.compile(r"<<-?[\"']?(\w{1,40})[\"']?")
_RUN_OPTIONS = re.compile(r"(?:--(?:mount|network|security)=\S{0,400}\s+)+")
_LONGEST_LINE = 100_000
_MOST_STAGES = 200
_ESCAPE = re.compile(r"#\s*escape\s*=\s*(?P<character>[\\`])\s*", re.IGNORECASE)
_PYTHON = re.compile(r"(?:.*/)?python[0-9.]{0,6}")
_PIP = re.compile(r"(?:.*/)?pip[0-9.]{0,6}")
_CONDA = re.compile(r"(?:.*/)?(?:conda|mamba|micromamba)")
_INSTALLS = re.compile(r"\b(?:pip[0-9.]{0,6}|conda|mamba|uv)\b.{0,200}\b(?:install|create|update|sync)\b", re.DOTALL)
_PACKAGES = re.compile(
    r"(?:^|/)(?:\.?v?envs?|\.?virtualenvs?|[\w.-]*venv[\w.-]*|(?:site|dist)-packages|python3?[0-9.]*|\.local|(?:mini|ana)?conda3?"
    r"|miniforge3?|mambaforge|install|wheels?|dist|local|opt)(?:/|$)",
    re.IGNORECASE,
)
"""Folders in which Python packages are copied from stage to stage."""
_INDEXES = {
    "PIP_INDEX_URL": "index",
    "PIP_EXTRA_INDEX_URL": "extra",
    "PIP_FIND_LINKS": "links",
    "UV_INDEX_URL": "index",
    "UV_DEFAULT_INDEX": "index",
    "UV_EXTRA_INDEX_URL": "extra",
    "UV_INDEX": "extra",
    "UV_FIND_LINKS": "links",
    "UV_TORCH_BACKEND": "backend",
}
"""Variables that say where pip and uv look, as the options of these names do."""


def recognise(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


@dataclass
class _Stage:
    """A stage: what it is built from, its RUN lines, and what it copies."""

    name: str
    image: str
    line: int
    runs: list[tuple[int, str]] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    copies: list[tuple[int, str, list[str]]] = field(default_factory=list)
    """Line, stage and paths of each ``COPY --from``."""
    places: dict[str, str] = field(default_factory=dict)
    """Files that are copied under another name, by their place in the image."""


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
    for line, word, rest in _instructions(sheet):
        if word == "FROM":
            told = _FROM.fullmatch(filled(rest, outside))
            if told is None:
                raise sheet.error(line, "this FROM line cannot be read")
            stage = _Stage((told["name"] or "").lower(), told["image"], line)
            base = _numbered([*found, stage], stage.image, len(found))
            if base is not None:
                stage.variables.update(found[base].variables)
            found.append(stage)
        elif word in ("ARG", "ENV"):
            values = found[-1].variables if found else outside
            for name, value in _assigned(rest, word):
                known = filled(value, {**outside, **values}) if value is not None else outside.get(name)
                if known is not None and "$" not in known:
                    values[name] = known
        elif word == "RUN" and found:
            found[-1].runs.append((line, rest))
        elif word in ("COPY", "ADD") and found:
            _copy(found[-1], line, filled(rest, found[-1].variables))
    return found


def _copy(stage: _Stage, line: int, text: str) -> None:
    """Note what a COPY brings: packages of another stage, or a file under another name."""
    try:
        words = json.loads(text) if text.startswith("[") else shlex.split(text.partition("\n")[0])
    except (ValueError, RecursionError):
        return
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        return
    options = [each for each in words if each.startswith("--")]
    paths = [each for each in words if not each.startswith("--")]
    source = next((each.partition("=")[2] for each in options if each.startswith("--from=")), None)
    if source is not None:
        stage.copies.append((line, source.lower(), paths))
    elif len(paths) == _ONE_FILE and not paths[1].endswith("/"):
        stage.places[paths[1].removeprefix("./")] = paths[0]


_ONE_FILE = 2
"""Paths of a COPY that copies one."""


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
            if other is not None:
                parts.append(_of_copy(sheet, line, source, paths, _installed(sheet, other, stages, known)))
        variables = dict(stage.variables)
        parts += [_of_run(sheet, line, text, variables, stage.places) for line, text in stage.runs]
    for part in parts:
        for each in part:
            found[each.name or f"{each.line} {each.asked}"] = each  # a later command replaces what is there
    return known.setdefault(last, list(found.values()))


def _of_copy(sheet: Sheet, line: int, source: str, paths: list[str], there: list[Planned]) -> Iterator[Planned]:
    """What the commands of another stage install, where folders of Python packages are copied from it."""
    installed = [each for each in there if each.image is None]
    if any(_PACKAGES.search(path) for path in paths):
        yield from installed
    elif installed:
        problem = "the stage that it copies from installs packages, and whether they are among the files is not known"
        yield unread(sheet, f"COPY --from={source[:80]}", line, problem)


def _of_image(sheet: Sheet, image: str, line: int) -> Iterator[Planned]:
    if "$" in image:
        yield unread(sheet, f"FROM {image[:80]}", line, "a variable without a default value names the image")
        return
    known = image_of(sheet.matrix, image)
    if known is None:
        return
    if known.row is None:
        yield unread(sheet, f"FROM {known.name}", line, "what this tag of the image holds is not known")
    else:
        yield from _held(sheet, known.holds, known.name, line)


def _held(sheet: Sheet, versions: dict[str, str], image: str, line: int) -> Iterator[Planned]:
    cuda = versions.get("cuda", "")
    for name, version in versions.items():
        tag = f"+cu{cuda.replace('.', '')}" if name == "torch" and cuda else ""
        held = item(sheet, name, SpecifierSet(f"=={version}{tag}"), line)
        yield msgspec.structs.replace(held, image=image)


def _of_run(sheet: Sheet, line: int, text: str, variables: dict[str, str], places: dict[str, str]) -> Iterator[Planned]:
    bare = _RUN_OPTIONS.sub("", text, count=1)
    listed = None
    if bare.startswith("["):
        try:
            listed = json.loads(bare)
        except (ValueError, RecursionError):
            listed = None
    if isinstance(listed, list) and all(isinstance(each, str) for each in listed):
        run = of_words(listed, variables)
    else:
        run = commands(bare, variables)
    for command in run:
        if not command.words:
            if _INSTALLS.search(bare):
                yield unread(sheet, "RUN", line, "a command that installs packages cannot be read")
            continue
        try:
            yield from list(_of_command(sheet, line, command, places))
        except UsageError as error:
            if not str(error).startswith(f"{sheet.file}:{line}:"):
                raise  # of a file that it includes
            yield unread(sheet, "RUN", line, "a word of a command that installs packages cannot be read")


def _of_command(sheet: Sheet, line: int, command: Command, places: dict[str, str]) -> Iterator[Planned]:
    """What one command installs; nothing for commands that install no Python packages."""
    words = command.words
    for place, word in enumerate(words):
        rest = words[place + 1 :]
        if (_PIP.fullmatch(word) or (word == "uv" and rest[:1] == ["pip"])) and "install" in rest:
            index = Index()
            for name, meaning in _INDEXES.items():
                if name in command.variables:
                    index.take(meaning, command.variables[name])
            asked = [_original(each, places) for each in rest[rest.index("install") + 1 :]]
            yield from of_arguments(sheet, asked, line, index)
            return
        if (word == "uv" and rest[:1] in (["sync"], ["add"])) or (word in _PROJECT_TOOLS and "install" in rest):
            problem = "it installs from the project's files; name its lock file with a further --plan"
            yield unread(sheet, f"{word} {rest[0]}", line, problem)
            return
        if _CONDA.fullmatch(word) and rest[:1] != ["run"] and set(rest) & {"install", "create", "update"}:
            verb = next(each for each in rest if each in ("install", "create", "update"))
            yield from _of_conda(sheet, line, [_original(each, places) for each in rest[rest.index(verb) + 1 :]])
            return


_FILE_NAME = re.compile(r"[^./]\.(?:txt|in|pip|ya?ml)$")
_PROJECT_TOOLS = frozenset({"poetry", "pdm", "pipenv", "pixi", "hatch"})


def _original(word: str, places: dict[str, str]) -> str:
    """The file beside the Dockerfile that is copied to this place under another name."""
    if not _FILE_NAME.search(word):
        return word
    return next((source for place, source in places.items() if word == place or place.endswith(f"/{word}")), word)


def _of_conda(sheet: Sheet, line: int, words: list[str]) -> Iterator[Planned]:
    from envcheck.plans import environment_yml  # noqa: PLC0415 - few images use it

    rest = iter(words)
    for word in rest:
        if word in ("-c", "--channel", "-n", "--name", "-p", "--prefix"):
            next(rest, None)
        elif word in ("-f", "--file"):
            path = next(rest, "").lstrip("/")
            name = path.rpartition("/")[2]
            there = next((each for each in (path, name) if sheet.has_beside(each)), None)
            if there is not None and environment_yml.recognise(name):
                yield from environment_yml.read(sheet.beside(there, line))
            else:
                yield unread(sheet, "conda --file", line, "it installs from a file; name it with a further --plan")
        elif "$" in word:
            yield unread(sheet, "a variable", line, "a variable that the file does not set names what is installed")
        elif not word.startswith("-"):
            yield environment_yml.of_conda(sheet, word, line)
