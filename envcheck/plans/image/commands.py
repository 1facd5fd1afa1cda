"""What one command of a build installs: with pip, uv, conda or the system's packages, and from a project's files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from envcheck.errors import UsageError
from envcheck.plans import environment_yml, pipfile_lock, poetry_lock, pyproject, uv_lock
from envcheck.plans.image.layout import Layout
from envcheck.plans.image.system_packages import of_system
from envcheck.plans.kit.index import Index
from envcheck.plans.kit.requirement import unread
from envcheck.plans.kit.sheet import Reader, Sheet
from envcheck.plans.kit.shell import Command
from envcheck.plans.requirements import of_arguments
from envcheck.snapshot import Planned

_PIP = re.compile(r"(?:.*/)?pip[0-9.]{0,6}")
_PYTHON = re.compile(r"(?:.*/)?python[0-9.]{0,6}")
_CONDA = re.compile(r"(?:.*/)?(?:conda|mamba|micromamba)")
_SCRIPT = re.compile(r"[^$*]{1,400}\.(?:sh|bash)")
_PROJECT_TOOLS = {
    "uv": ("sync",),
    "poetry": ("install", "sync"),
    "pdm": ("install", "sync"),
    "pipenv": ("install", "sync"),
    "pixi": ("install",),
}
_VERBS_OF_CONDA = frozenset({"install", "create", "update"})
INSTALLS = re.compile(
    r"\b(?:pip[0-9.]{0,6}|conda|mamba|uv|poetry)\b.{0,200}\b(?:install|create|update|sync)\b", re.DOTALL
)
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
_CHOOSES = {"--extra": "extra", "--extras": "extra", "-E": "extra", "--group": "group", "--with": "group"}
"""Options of ``uv sync`` and ``poetry install`` that ask for an extra or a group too."""
_WITHOUT_GROUPS = frozenset(
    {"--no-dev", "--no-default-groups", "--no-group", "--only", "--only-main", "--without", "--prod", "--production"}
)
"""Options of the same commands that leave out groups; what remains of them is not read."""
_CHOOSES_ALL = frozenset({"--all-extras", "--all-groups"})
_FOLDERS = frozenset({"--project", "--directory", "-C"})
_UNNAMED = "a variable that the file does not set names what is installed"


def installed(sheet: Sheet, line: int, command: Command, layout: Layout) -> Iterator[Planned]:
    """What one command installs; nothing for commands that install no packages."""
    words = command.words
    if words[0] in ("cd", "pushd"):
        layout.enter(words[1] if len(words) > 1 else "~")
        return
    if (packages := of_system(sheet, line, words)) is not None:
        yield from packages
        return
    for place, word in enumerate(words):
        found = _of_word(sheet, line, word, words[place + 1 :], command.variables, layout)
        if found is not None:
            yield from found
            return


def _of_word(
    sheet: Sheet, line: int, word: str, rest: list[str], variables: dict[str, str], layout: Layout
) -> Iterator[Planned] | None:
    """What the command that ``word`` begins installs; None where it begins none."""
    verb = next((each for each in rest if not each.startswith("-")), "")
    if asked := _asked_of_pip(word, rest):
        index = Index()
        for name, meaning in _INDEXES.items():
            if name in variables:
                index.take(meaning, variables[name])
        return of_arguments(sheet, asked[1:], line, index, partial(layout.find, sheet))
    if verb and verb in _PROJECT_TOOLS.get(word, ()):
        return _of_lock(sheet, line, f"{word} {verb}", rest, layout)
    if _CONDA.fullmatch(word) and verb != "run" and set(rest) & _VERBS_OF_CONDA:
        place = next(place for place, each in enumerate(rest) if each in _VERBS_OF_CONDA)
        return _of_conda(sheet, line, rest[place + 1 :], layout)
    if _PYTHON.fullmatch(word) and verb.endswith("setup.py") and set(rest) & {"install", "develop"}:
        return iter([unread(sheet, "setup.py", line, "it installs what the program states, which is not run")])
    return _of_script(sheet, line, word, layout) if _SCRIPT.fullmatch(word) else None


def _asked_of_pip(word: str, rest: list[str]) -> list[str]:
    """The verb of pip, or of a tool that takes pip's arguments, and what follows it; empty for other commands."""
    if _PIP.fullmatch(word) or (word == "uv" and rest[:1] == ["pip"]):
        verbs: tuple[str, ...] = ("install", "wheel", "sync")
    elif word == "pip-sync":
        rest, verbs = ["sync", *rest], ("sync",)
    elif word in ("uv", "poetry"):
        verbs = ("add",) if rest[:1] == ["add"] else ()
        verbs = ("install",) if word == "uv" and rest[:2] == ["tool", "install"] else verbs
    else:
        verbs = ("install",) if word == "pipx" else ()
    found = next((place for place, each in enumerate(rest) if each in verbs), None)
    if found is None:
        return []
    if rest[found] != "sync":
        return rest[found:]
    return ["sync", *(part for each in rest[found + 1 :] for part in ([each] if each[0] == "-" else ["-r", each]))]


def _of_lock(sheet: Sheet, line: int, command: str, words: list[str], layout: Layout) -> Iterator[Planned]:
    """What a command such as ``uv sync`` installs: the project's lock file, or else its pyproject.toml."""
    extras: list[str] = []
    inside, rest = layout.copy(), iter(words)
    for word in rest:
        name, separator, value = word.partition("=")
        if name in _CHOOSES:
            extras += re.split(r"[\s,]+", value if separator else next(rest, ""))
        elif name in _FOLDERS:
            inside.enter(value if separator else next(rest, ""))
    readers: dict[str, tuple[str, Reader]] = {
        "uv": ("uv.lock", uv_lock),
        "poetry": ("poetry.lock", poetry_lock),
        "pipenv": (pipfile_lock.NAME, pipfile_lock),
    }
    file, reader = readers.get(command.partition(" ")[0], ("", pyproject))
    lock = inside.find(sheet, file) if file else None
    place = lock or (inside.find(sheet, pyproject.NAME) if file and reader is not pipfile_lock else None)
    problem = "it installs from the project's files, of which this tool's are not read"
    if file:
        problem = f"it installs from the project's files, of which {file} was not found; name it with a further --plan"
    if _CHOOSES_ALL & set(words):
        problem = "it installs all extras or groups; name them with a further --plan, as in uv.lock[NAME,NAME]"
    elif place is not None:
        groups = _WITHOUT_GROUPS.isdisjoint(word.partition("=")[0] for word in words)
        project = replace(sheet.beside(place, line), extras=tuple(filter(None, extras)), groups=groups)
        try:
            yield from (reader if lock else pyproject).read(project)
        except UsageError as error:
            problem = f"what it installs cannot be read ({error})"
        else:
            return
    elif lock is None and file in sheet.others:
        return
    yield unread(sheet, command, line, problem)


def _of_script(sheet: Sheet, line: int, path: str, layout: Layout) -> Iterator[Planned]:
    place = layout.find(sheet, path)
    if place is not None and INSTALLS.search(sheet.beside(place, line).text):
        yield unread(sheet, place[:80], line, "this script installs packages, and scripts are not read")


def _of_conda(sheet: Sheet, line: int, words: list[str], layout: Layout) -> Iterator[Planned]:
    rest = iter(words)
    for word in rest:
        name, separator, value = word.partition("=")
        if name in ("-c", "--channel", "-n", "--name", "-p", "--prefix"):
            _ = separator or next(rest, None)
        elif name in ("-f", "--file"):
            path = value if separator else next(rest, "")
            place = layout.find(sheet, path)
            if place is not None and environment_yml.recognise(place):
                yield from environment_yml.read(sheet.beside(place, line))
            elif path.rpartition("/")[2] not in sheet.others:
                yield unread(sheet, "conda --file", line, "it installs from a file; name it with a further --plan")
        elif "$" in word:
            yield unread(sheet, "a variable", line, _UNNAMED)
        elif not word.startswith("-"):
            yield environment_yml.of_conda(sheet, word, line)
