"""Dockerfiles: the base image of the last stage and what its RUN lines install with pip, uv and conda.

Only the stages that the last one is built from count. A shell is not interpreted: of each command the words count, and
one that contains a variable without a value stays open.
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
from envcheck.plans.kit.requirement import item, unread
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.requirements import of_arguments
from envcheck.snapshot import Planned

NAME = "Dockerfile"

_FILE = re.compile(r"(?:Dockerfile|Containerfile)(?:\..{1,80})?|.{1,80}\.(?:Dockerfile|Containerfile)", re.IGNORECASE)
_FROM = re.compile(r"(?:--platform=\S{1,80}\s+)?(?P<image>\S{1,300})(?:\s+AS\s+(?P<name>[\w.-]{1,80}))?", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w{1,80})(?::?-(?P<default>[^}$]{0,200}))?\}|(?P<bare>\w{1,80}))")
_HEREDOC = re.compile(r"<<-?[\"']?(\w{1,40})[\"']?")
_RUN_OPTIONS = re.compile(r"(?:--(?:mount|network|security)=\S{0,400}\s+)+")
_SEPARATORS = re.compile(r"\s*(?:&&|\|\||;|\||\n)\s*")
_LONGEST_LINE = 100_000
_PYTHON = re.compile(r"(?:.*/)?python[0-9.]{0,6}")
_PIP = re.compile(r"(?:.*/)?pip[0-9.]{0,6}")
_CONDA = re.compile(r"(?:.*/)?(?:conda|mamba|micromamba)")


def recognise(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


@dataclass
class _Stage:
    """A stage: what it is built from, and its RUN lines."""

    image: str
    line: int
    runs: list[tuple[int, str]] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)


def read(sheet: Sheet) -> list[Planned]:
    stages = _stages(sheet)
    if not stages:
        raise sheet.error(None, "it has no FROM line")
    chain = [stages[-1][1]]
    known = stages[:-1]
    while True:
        place = next((n for n in range(len(known) - 1, -1, -1) if _is_stage(chain[-1].image, n, known[n][0])), None)
        if place is None:
            break
        chain.append(known[place][1])
        known = known[:place]
    return sheet.bounded(_installed(sheet, chain[::-1]))


def _is_stage(image: str, number: int, name: str) -> bool:
    return (bool(name) and image.lower() == name) or image == str(number)


def _stages(sheet: Sheet) -> list[tuple[str, _Stage]]:
    found: list[tuple[str, _Stage]] = []
    outside: dict[str, str] = {}
    for line, word, rest in _instructions(sheet):
        if word == "FROM":
            told = _FROM.fullmatch(_filled(rest, outside))
            if told is None:
                raise sheet.error(line, "this FROM line cannot be read")
            found.append(((told["name"] or "").lower(), _Stage(told["image"], line)))
        elif word in ("ARG", "ENV"):
            values = found[-1][1].variables if found else outside
            for name, value in _assigned(rest, word):
                filled = _filled(value, {**outside, **values}) if value is not None else outside.get(name)
                if filled is not None and "$" not in filled:
                    values[name] = filled
        elif word == "RUN" and found:
            found[-1][1].runs.append((line, _filled(rest, found[-1][1].variables)))
    return found


def _instructions(sheet: Sheet) -> Iterator[tuple[int, str, str]]:
    """Line, keyword and text of each instruction, with its continued lines and its here-documents."""
    lines = iter(enumerate(sheet.text.split("\n"), start=1))
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        text, start = line, number
        while text.rstrip().endswith("\\"):
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


def _filled(text: str, values: dict[str, str]) -> str:
    """The text with the variables whose values are known in place."""

    def value(found: re.Match[str]) -> str:
        name = found["braced"] or found["bare"]
        return values.get(name) or found["default"] or found[0]

    return _VARIABLE.sub(value, text)[:_LONGEST_LINE]


def _installed(sheet: Sheet, chain: list[_Stage]) -> Iterator[Planned]:
    found: dict[str, Planned] = {}
    parts = [_of_image(sheet, chain[0].image, chain[0].line)]
    parts += [_of_run(sheet, line, text) for stage in chain for line, text in stage.runs]
    for part in parts:
        for each in part:
            found[each.name or f"{each.line} {each.asked}"] = each  # a later command replaces what is there
    yield from found.values()


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


def _of_run(sheet: Sheet, line: int, text: str) -> Iterator[Planned]:
    bare = _RUN_OPTIONS.sub("", text, count=1)
    if bare.startswith("["):
        try:
            listed = json.loads(bare)
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list) and all(isinstance(each, str) for each in listed):
            yield from _of_command(sheet, line, listed)
            return
    for command in _SEPARATORS.split(bare):
        if "install" not in command and " sync" not in command and " add" not in command:
            continue
        try:
            words = shlex.split(command)
        except ValueError:
            if re.search(r"\b(?:pip|conda|mamba)\d?\b", command):
                yield unread(sheet, "RUN", line, "a command that installs packages cannot be read")
            continue
        yield from _of_command(sheet, line, words)


def _of_command(sheet: Sheet, line: int, words: list[str]) -> Iterator[Planned]:
    """What one command installs; nothing for commands that install no Python packages."""
    while words and (words[0] in ("sudo", "exec", "env", "time") or re.fullmatch(r"\w+=.*", words[0])):
        words = words[1:]
    if words[:1] == ["uv"]:
        words = words[1:]
        if words[:1] in (["sync"], ["add"]):
            yield unread(
                sheet, f"uv {words[0]}", line, "it installs from the project's lock file; name it with a further --plan"
            )
            return
    if len(words) > 2 and _PYTHON.fullmatch(words[0]) and words[1:3] == ["-m", "pip"]:
        words = words[2:]
    if words[:1] and words[0] == "poetry" and "install" in words:
        yield unread(sheet, "poetry install", line, "it installs from poetry.lock; name it with a further --plan")
    elif len(words) > 1 and _PIP.fullmatch(words[0]) and "install" in words:
        yield from of_arguments(sheet, words[words.index("install") + 1 :], line)
    elif len(words) > 1 and _CONDA.fullmatch(words[0]) and "install" in words:
        yield from _of_conda(sheet, line, words[words.index("install") + 1 :])


def _of_conda(sheet: Sheet, line: int, words: list[str]) -> Iterator[Planned]:
    from envcheck.plans.environment_yml import of_conda  # noqa: PLC0415 - few images use it

    rest = iter(words)
    for word in rest:
        if word in ("-c", "--channel", "-n", "--name", "-p", "--prefix"):
            next(rest, None)
        elif word in ("-f", "--file"):
            next(rest, None)
            yield unread(sheet, "conda --file", line, "it installs from a file; name it with a further --plan")
        elif "$" in word:
            yield unread(sheet, "a variable", line, "a variable that the file does not set names what is installed")
        elif not word.startswith("-"):
            yield of_conda(sheet, word, line)
