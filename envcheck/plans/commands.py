"""What one command of a build installs: with pip, uv, conda or the system's packages, and from a project's files.

Rows of the matrix name the programs that install packages (``[[installer]]``), and what a system's package manager
brings: CUDA and cuDNN.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise, takewhile

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.model.snapshot import Planned
from envcheck.plans.instructions import Layout
from envcheck.plans.readers import environment_yml, pipfile_lock, poetry_lock, pyproject, uv_lock
from envcheck.plans.readers.requirements import INSTALLING, SHARES_BUILDS, of_arguments, options_of, sorted_words
from envcheck.plans.requirement import PackageIndexes, item, unread
from envcheck.plans.sheet import Reader, Sheet
from envcheck.plans.shell import Command

_PIP = re.compile(r"pip[0-9.]{0,6}")
_PYTHON = re.compile(r"python[0-9.]{0,6}")
_CONDA = re.compile(r"conda|mamba|micromamba")
_SCRIPT = re.compile(r"[^$*]{1,400}\.(?:sh|bash)")
_STARTS_SCRIPTS = re.compile(r"(?:ba|da|z|k|a)?sh|source|\.")
_NAME = re.compile(r"(?:.*/|-[A-Za-z]{0,4}m(?=pip))?(?P<name>.+)", re.DOTALL)
"""A program behind its folder, or behind Python's ``-m`` without a blank."""
_UNSET = re.compile(r"\$(?:\w+|\{[^}]*\}|\(.*\))", re.DOTALL)
_PROJECT_TOOLS = {
    "uv": ("sync",), "pixi": ("install",),
    "poetry": ("install", "sync"), "pdm": ("install", "sync"), "pipenv": ("install", "sync"),
}  # fmt: skip
_ADDS_FROM_AN_INDEX: dict[str, tuple[str, ...]] = {
    "pipx": ("inject", "install"),
    **dict.fromkeys(("pdm", "poetry", "rye", "uv"), ("add",)),
}
"""Tools that take pip's arguments behind these words."""
_VERBS_OF_CONDA = frozenset({"install", "create", "update"})
_PRINTS = frozenset({"echo", "printf", ":"})
_MOST_TRIED = 64  # Words of a command that may be the program which installs, behind others that only start it
_FROM_ITS_INPUT = frozenset({"xargs", "parallel"})
_CHOOSES = frozenset({"--extra", "--extras", "-E", "--group", "--with"})  # that ask for an extra or a group
_WITHOUT_GROUPS = frozenset(
    {"--no-dev", "--no-default-groups", "--no-group", "--only", "--only-main", "--without", "--prod", "--production"}
)
"""Options of the same commands that leave out groups; what remains of them is not read."""
_CHOOSES_ALL = {"--all-extras": "extra", "--all-groups": "group"}
_FOLDERS = frozenset({"--project", "--directory", "-C"})
REMOVED = "it is uninstalled"
_UNREAD = "it names a program that installs packages, in a way that is not read"
_UNNAMED = "a variable that the file does not set names what is installed"


def installed(
    sheet: Sheet, line: int, command: Command, layout: Layout, *, at_start: bool = False
) -> Iterator[Planned]:
    """What one command installs; nothing for commands that install no packages. ``at_start``: a container runs it.

    A command of which nothing can be read, though it names a program that installs, may install anything.
    """
    words = command.words
    if words[0] in ("cd", "pushd"):
        layout.enter(words[1] if len(words) > 1 else "~")
        return
    if words[0].rpartition("/")[2] not in _PRINTS or command.kept:
        found = _of_words(sheet, line, command, layout, at_start=at_start)
        yield from found if found is not None else _unknown(sheet, line, words)
    if any(installs(sheet.matrix, document) for document in command.documents):
        yield unread(sheet, words[0][:80] or "a here-document", line, _UNREAD)


def _unknown(sheet: Sheet, line: int, words: list[str]) -> Iterator[Planned]:
    """A command that is not understood, if it may install packages."""
    if installs(sheet.matrix, " ".join(words)):
        yield unread(sheet, words[0][:80], line, _UNREAD)
    elif _UNSET.fullmatch(words[0]) or _is_named_by_a_variable(sheet, words):
        yield unread(sheet, words[0][:80], line, "a variable that the file does not set names the program")


def _is_named_by_a_variable(sheet: Sheet, words: list[str]) -> bool:
    """Whether a variable is part of what names the program, and one of the words behind it installs."""
    names = [*words[:1], *(word for before, word in pairwise(words) if before == "-m")]
    by_variable = any(_UNSET.search(name.rpartition("/")[2]) for name in names)
    return by_variable and any(word in row.verbs for row in sheet.matrix.installers for word in words)


def _of_words(sheet: Sheet, line: int, command: Command, layout: Layout, *, at_start: bool) -> Iterable[Planned] | None:
    """What the program that any of the words names installs; None where none of them is understood."""
    words = command.words
    if any(" " in word and installs(sheet.matrix, word) for word in words):
        return None  # a text for a program that is not known
    found: list[Planned] = []
    behind = 0
    for place, word in enumerate(words[:_MOST_TRIED]):
        rest = words[place + 1 :]
        if word.rpartition("/")[2] == "uv" and _verb(rest) == "run":
            # Before it runs anything, it installs the project, and packages that it names.
            behind = place + rest.index("run") + 2
            options = list(takewhile(lambda each: each.startswith("-"), words[behind:]))
            if any(each.startswith(("--with", "-w")) for each in options):
                found.append(unread(sheet, "uv run --with", line, _UNREAD))
            if not {"--no-sync", "--no-project"} & set(options) and "UV_NO_SYNC" not in command.variables:
                found += _of_lock(sheet, line, "uv run", options, layout)
        packages = of_system(sheet, line, words[place:])
        if packages is None:
            packages = _of_word(sheet, line, word, rest, command.variables, layout, runs=place == 0 and not at_start)
        if packages is not None:
            before = words[behind:place]
            takes_more = any(each.rpartition("/")[2] in _FROM_ITS_INPUT for each in before)
            is_open = takes_more or installs(sheet.matrix, " ".join(before)) or _is_named_by_a_variable(sheet, before)
            return [*found, *packages, *([unread(sheet, before[0][:80], line, _UNREAD)] if is_open else [])]
    return [*found, *(_unknown(sheet, line, words[behind:]) if words[behind:] else ())] if behind else None


def _of_word(
    sheet: Sheet, line: int, word: str, rest: list[str], variables: dict[str, str], layout: Layout, *, runs: bool
) -> Iterator[Planned] | None:
    """What the command that ``word`` begins installs; None where it begins none. ``runs``: a build begins with it."""
    named = _NAME.fullmatch(word)
    name = named["name"] if named else word
    verb = _verb(rest)
    # Whether a program that installs does something else by this word.
    apart = any(verb in row.apart and re.fullmatch(row.commands, name) for row in sheet.matrix.installers)
    if not apart and (asked := _asked_of_pip(name, rest)):
        index = PackageIndexes()
        meanings = options_of(sheet.matrix, "variable")
        for variable, meaning in meanings.items():
            if variable in variables:
                index.take(meaning, variables[variable])
        packages, options = sorted_words(asked[1:], sheet.matrix)
        if not packages and not any(meaning in INSTALLING for meaning, _ in options):
            return iter([unread(sheet, name, line, "it does not say what it installs")])
        shared = [SHARES_BUILDS for key, meaning in meanings.items() if meaning == "shares-builds" and key in variables]
        return of_arguments(sheet, [*asked[1:], *shared], line, index, partial(layout.find, sheet))
    of_pip = rest[1:] if name == "uv" and rest[:1] == ["pip"] else rest if _PIP.fullmatch(name) else []
    if _verb(of_pip) == "uninstall":
        names = (each for each in of_pip[of_pip.index("uninstall") + 1 :] if not each.startswith("-"))
        return (unread(sheet, each, line, REMOVED, name=canonicalize_name(each)) for each in names)
    if verb and verb in _PROJECT_TOOLS.get(name, ()):
        adds = name == "pipenv" and any(not each.startswith("-") for each in rest[rest.index(verb) + 1 :])
        return None if adds else _of_lock(sheet, line, f"{name} {verb}", rest, layout)
    if _CONDA.fullmatch(name) and verb != "run" and set(rest) & _VERBS_OF_CONDA:
        place = next(place for place, each in enumerate(rest) if each in _VERBS_OF_CONDA)
        return _of_conda(sheet, line, rest[place + 1 :], layout, of_a_file=rest[:place][-1:] == ["env"])
    if _PYTHON.fullmatch(name) and verb.endswith("setup.py") and set(rest) & {"install", "develop"}:
        return iter([unread(sheet, "setup.py", line, "it installs what the program states, which is not run")])
    script = verb if _STARTS_SCRIPTS.fullmatch(name) else word
    found = list(_of_script(sheet, line, script, layout, runs=runs))
    return iter(found) if found else None


def _verb(words: list[str]) -> str:
    return next((each for each in words if not each.startswith("-")), "")


def _asked_of_pip(name: str, rest: list[str]) -> list[str]:
    """The verb of pip, or of a tool that takes pip's arguments, and what follows it; empty for other commands."""
    verbs: tuple[str, ...] = ()
    if name == "pip-sync":
        rest, verbs = ["sync", *rest], ("sync",)
    elif _PIP.fullmatch(name) or (name == "uv" and rest[:1] == ["pip"]):
        verbs = ("install", "wheel", "sync")
    elif name == "uv" and rest[:2] == ["tool", "install"]:
        verbs = ("install",)
    elif rest[:1] and rest[0] in _ADDS_FROM_AN_INDEX.get(name, ()):
        verbs = (rest[0],)
    found = next((place for place, each in enumerate(rest[:_MOST_TRIED]) if each in verbs), None)
    if found is None:
        return []
    if rest[found] != "sync":
        return rest[found:]
    files = (part for each in rest[found + 1 :] for part in ([each] if each.startswith("-") else ["-r", each]))
    return ["sync", *files]


def _of_lock(sheet: Sheet, line: int, command: str, words: list[str], layout: Layout) -> Iterator[Planned]:
    """What a command such as ``uv sync`` installs: the project's lock file, or else its pyproject.toml."""
    extras, every = list[str](), frozenset(kind for option, kind in _CHOOSES_ALL.items() if option in words)
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
    which = f"{file} was not found; name it with a further --plan" if file else "this tool's are not read"
    problem = f"it installs from the project's files, of which {which}"
    if place is not None:
        groups = _WITHOUT_GROUPS.isdisjoint(word.partition("=")[0] for word in words)
        project = replace(sheet.beside(place, line), extras=tuple(filter(None, extras)), every=every, groups=groups)
        try:
            yield from (reader if lock else pyproject).read(project)
        except UsageError as error:
            problem = f"what it installs cannot be read ({error})"
        else:
            return
    elif lock is None and file in sheet.others:
        return
    yield unread(sheet, command, line, problem)


def _of_script(sheet: Sheet, line: int, path: str, layout: Layout, *, runs: bool) -> Iterator[Planned]:
    is_named_so = _SCRIPT.fullmatch(path) is not None
    place = layout.find(sheet, path)
    if place is None and is_named_so and layout.covers(path) and runs:
        yield unread(sheet, path[:80], line, "this script was not found, and what it installs is not known")
    if place is None or (not is_named_so and "." in path.rpartition("/")[2]):
        return
    try:
        if installs(sheet.matrix, sheet.beside(place, line).text):
            yield unread(sheet, place[:80], line, "this script installs packages, and scripts are not read")
    except UsageError:
        yield unread(sheet, place[:80], line, "this script cannot be read")


def _of_conda(sheet: Sheet, line: int, words: list[str], layout: Layout, *, of_a_file: bool) -> Iterator[Planned]:
    if of_a_file and not any(word.startswith(("-f", "--file")) for word in words):
        words = [*words, "--file", "environment.yml"]
    asked, channels, rest = list[str](), list[str](), iter(words)
    for word in rest:
        name, separator, value = word.partition("=")
        if name in ("-c", "--channel"):
            channels.append(value if separator else next(rest, ""))
        elif name in ("-n", "--name", "-p", "--prefix"):
            _ = separator or next(rest, None)
        elif name in ("-f", "--file"):
            path = value if separator else next(rest, "")
            place = layout.find(sheet, path)
            if place is not None and (of_a_file or environment_yml.FILES.fullmatch(place)):
                yield from environment_yml.read(sheet.beside(place, line))
            elif path.rpartition("/")[2] not in sheet.others:
                yield unread(sheet, "conda --file", line, "it installs from a file; name it with a further --plan")
        elif "$" in word:
            yield unread(sheet, "a variable", line, _UNNAMED)
        elif not word.startswith("-"):
            asked.append(word)
    yield from (environment_yml.of_conda(sheet, word, line, channels) for word in asked)


def installs(matrix: Matrix, text: str) -> bool:
    """Whether the text, in whatever language, names such a program and behind it one of its words."""
    for row in matrix.installers:
        named = _program(row.commands, row.apart).search(text)
        if named and _any_of(row.verbs).search(text, named.end()):
            return True
    return False


@cache
def _program(commands: str, apart: tuple[str, ...]) -> re.Pattern[str]:
    other = rf"(?!\W{{1,40}}(?:{'|'.join(map(re.escape, apart))})(?![\w-]))" if apart else ""
    return re.compile(rf"(?<![\w-])(?:-[A-Za-z]{{0,4}}m)?(?:{commands})(?![\w/-]){other}")


@cache
def _any_of(verbs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, verbs))})(?![\w./-])" if verbs else r"\w")


_MANAGER = re.compile(r"(?:.*/)?(?:apt|apt-get|aptitude|dnf|microdnf|tdnf|yum|zypper|apk)")
_VERBS = frozenset({"install", "in", "add"})
_UPSTREAM = re.compile(r"(?:[0-9]+:)?(?P<version>[0-9]{1,4}(?:\.[0-9]{1,9}){1,4})(?P<any>\.?\*)?(?:-.*|\*)?")
"""A version as package managers write it, without epoch and revision: ``8.9.7.29-1+cuda12.2``."""
_OF_RPM = re.compile(r"(?P<name>[a-z][\w-]*?)-(?P<version>[0-9]{1,4}\.[0-9.]{1,30}-\S{1,40})")
_LONGEST = 200


def of_system(sheet: Sheet, line: int, words: list[str]) -> Iterator[Planned] | None:
    """What a command of a package manager brings; None for other commands."""
    if not words or not _MANAGER.fullmatch(words[0]) or not _VERBS & {*words[1:]}:
        return None
    verb = next(place for place, word in enumerate(words) if place and word in _VERBS)
    packages = [word for word in words[verb + 1 :] if not word.startswith("-") and len(word) <= _LONGEST]
    return filter(None, (_brought(sheet, line, text) for text in packages))


def _brought(sheet: Sheet, line: int, text: str) -> Planned | None:
    """The component that a package brings, of the version that is pinned, or that its name has: ``cuda``, ``12.4``."""
    name, _, version = text.partition("=")
    of_rpm = _OF_RPM.fullmatch(text)
    pairs = [(name, version), *([(of_rpm["name"], of_rpm["version"])] if of_rpm else [])]
    patterns = [(row.component, pattern) for row in sheet.matrix.system_packages for pattern in row.packages]
    for package, pinned in ((whole.partition(":")[0], pin) for whole, pin in pairs):
        for component, pattern in patterns:
            if found := re.fullmatch(pattern, package):
                groups = found.groupdict()
                named = ".".join(filter(None, (groups.get("major"), groups.get("minor"))))
                planned = item(sheet, package, _bounds(pinned, named), line)
                return msgspec.structs.replace(planned, name=f"{component} by {package}", asked=text, brings=component)
    return None


def _bounds(pinned: str, named: str) -> SpecifierSet:
    """The versions that a pin admits, else those that begin as the package's name says."""
    found = _UPSTREAM.fullmatch(pinned)
    try:
        if found:
            return SpecifierSet(f"=={found['version']}{'.*' if found['any'] else ''}")
        return SpecifierSet(f"=={named}.*" if named else "")
    except InvalidSpecifier:
        return SpecifierSet("")
