"""Python packages, as lists of pip and conda (freeze, tables, ``pip show``, collect_env's tagged lines) and installers
(pip, uv, poetry, conda, wheel names, ``environment.yml``, an index) name them.

Lists in a paste are seldom complete, so nothing is concluded from what they lack. A package that a later line installs
in another version replaces the earlier one; what a line removes is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from envcheck.compat.package_needs import normalised
from envcheck.enrich.stated import ARCHIVE
from envcheck.importers.importer import Rank, environment, importer, with_environment
from envcheck.importers.layouts import records
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.wording import wording
from envcheck.model.snapshot import Distribution, Framework, Snapshot, Told
from envcheck.text.lazy import lazy_pattern

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,60}[A-Za-z0-9])?"
_VERSION = r"[0-9]{1,4}(?:\.[0-9A-Za-z]{1,20}){0,6}(?:[+!][0-9A-Za-z._-]{1,60})?"

_EXTRAS = r"(?:\[[A-Za-z0-9_, -]{1,60}\])?"
_FREEZE = lazy_pattern(rf"(?:\[(pip3?|conda)\]\s{{1,4}})?({_NAME}){_EXTRAS} ?== ?({_VERSION})(?:\s*[;#].*)?$")
_TAGGED_ROW = lazy_pattern(rf"\[(pip3?|conda)\]\s{{1,4}}({_NAME})\s+({_VERSION})(?:\s+(\S+)(?:\s+(\S+))?)?$")
_ROW = lazy_pattern(rf"({_NAME})\s+({_VERSION})(?:\s+(\S+)(?:\s+(\S+)(?:\s+(?:Cached|[0-9.]{{1,8}} ?[kMG]B))?)?)?$")
_EXPORTED = lazy_pattern(rf"({_NAME})=({_VERSION})=([0-9A-Za-z._]{{1,60}})$")
"""A line of ``conda list --export``."""
_SHOW_NAME = lazy_pattern(rf"[Nn]ame {{0,12}}[:=] \"?({_NAME})\"?$")
_SHOW_VERSION = lazy_pattern(rf"[Vv]ersion {{0,12}}[:=] \"?({_VERSION})\"?$")
_SHOW = lazy_pattern(rf"\bpip[0-9.]{{0,4}} show ({_NAME})\b(?! ?[\w-])")
_SATISFIED = lazy_pattern(rf"Requirement already satisfied: ({_NAME}).{{0,300}}\(({_VERSION})\)$")
_CONFLICT = lazy_pattern(
    rf".{{0,40}}?({_NAME}) ({_VERSION}) (?:requires|has requirement) .{{0,200}}"
    rf"but you(?:'ll)? have ({_NAME}) ({_VERSION})\b"
)
_ADDED = lazy_pattern(rf"[+~] {_NAME}==")
"""A line of uv's plan, in which a dash stands before what is removed."""
_HEADER = lazy_pattern(r"(?:Package\s+Version\b|#\s*Name\s+Version\b)")
_RULE = lazy_pattern(r"-{3,}[\s-]*$")
_CONDA_BUILD = lazy_pattern(
    r"(?:[A-Za-z0-9.]{1,60}_){1,8}[0-9A-Za-z]{1,20}$|h[0-9a-f]{5,8}$|[0-9]{1,4}$|cpu$|cuda$|<pip>$|mkl$"
)

_MOST_LISTED = 5_000
_NEAR = 2
"""Lines below a name among which its version must stand."""


@importer("package list", Rank.OUTPUT)
def read_lists(paste: Paste) -> Snapshot:
    found: dict[tuple[str, str | None], Distribution] = {}
    for package in _packages(paste):
        found.setdefault((package.name, package.channel), package)
        if len(found) >= _MOST_LISTED:
            break
    return with_environment(environment(distributions=tuple(found.values()))) if found else Snapshot()


def _packages(paste: Paste) -> Iterator[Distribution]:
    in_table = False
    shown, since = "", 0
    plan = any(_ADDED.match(line.strip()) for line in paste.lines)
    for line in paste.lines:
        text = line.strip()
        if plan and text.startswith("- "):
            continue
        of_table = _RULE.match(text) or _ROW.match(text) or text.startswith("#")
        in_table = _HEADER.match(text) is not None or (in_table and bool(of_table))
        name = _SHOW_NAME.match(text) or _SHOW.search(text)
        version = _SHOW_VERSION.match(text)
        since += 1
        if name:
            shown, since = name[1], 0
        elif version and shown and since <= _NEAR:
            yield _package(shown, version[1])
            shown = ""
        elif text:
            yield from _read_line(text, in_table=in_table)
    for listed, release in records(paste.text):
        if re.fullmatch(_NAME, listed) and re.fullmatch(_VERSION, release):
            yield _package(listed, release)


def _read_line(text: str, *, in_table: bool) -> Iterator[Distribution]:
    """The packages in one line."""
    bare = text.lstrip("-+*• `").rstrip("`")
    if found := _FREEZE.match(bare):
        yield _package(found[2], found[3], tag=found[1])
    elif found := _EXPORTED.match(bare):
        yield _package(found[1], found[2], tag="conda", build=found[3])
    elif found := _TAGGED_ROW.match(bare):
        yield _package(found[2], found[3], tag=found[1], build=found[4], origin=found[5])
    elif found := _SATISFIED.match(text):
        yield _package(found[1], found[2])
    elif "but you" in text and (found := _CONFLICT.match(text)):
        yield _package(found[1], found[2])
        yield _package(found[3], found[4])
    elif (found := _ROW.match(bare)) and _believed(found[1], found[2], found[3], in_table=in_table):
        yield _package(found[1], found[2], build=found[3], origin=found[4])
    elif found := wording("wheel-of-nvidia").search(text):
        yield _package(found[1], found[2])


def _believed(name: str, version: str, third: str | None, *, in_table: bool) -> bool:
    """Whether a row of two or more words describes a package and is not prose."""
    if in_table:
        return True
    # Names such as TORCH_CUDA_ARCH_LIST are variables.
    known = wording("gpu-software").match(normalised(name)) is not None and not (name.isupper() and "_" in name)
    return known and "." in version and (third is None or third[0] == "(" or bool(_CONDA_BUILD.match(third)))


def _package(
    name: str, version: str, *, tag: str | None = None, build: str | None = None, origin: str | None = None
) -> Distribution:
    """One package; ``origin`` is conda's channel column, ``pypi`` for packages that pip installed."""
    by_pip = origin in ("pypi", "<pip>") or build in ("<pip>", "pypi_0")
    conda = not by_pip and (tag == "conda" or (tag is None and bool(build) and bool(_CONDA_BUILD.match(build or ""))))
    normal = normalised(name)
    if normal == "pytorch" and not conda:
        normal = normalised("torch")
    return Distribution(
        source=SOURCE,
        name=normal,
        version=version,
        build=build if conda else None,
        channel="conda" if conda else "pip" if tag or by_pip else None,
    )


_INSTALLED = lazy_pattern(r"Successfully installed (.{3,20000})")
_ITEM = lazy_pattern(rf"({_NAME}?)-({_VERSION})$")
_UV = lazy_pattern(rf"([+~-]) ({_NAME})==({_VERSION})(?: \(.{{1,200}}\))?$")
_POETRY = lazy_pattern(
    rf"[-•*] (Installing|Updating|Downgrading|Removing) ({_NAME}) \((?:{_VERSION} -> )?({_VERSION})\)"
)
_WHEEL = lazy_pattern(
    rf"(?:^|[\s/'\"=(])([A-Za-z0-9_.]{{1,60}})-({_VERSION})(?:-[0-9][\w.]{{0,20}})?-(?:py[23]|cp[0-9]{{2,3}}|py2\.py3)[\w.]{{0,20}}-[\w.]{{1,20}}-"
    r"(any|win_amd64|[\w.]{0,80}(?:x86_64|aarch64|arm64))(?:\.whl)\b"
)
_ARCHIVE = lazy_pattern(
    r"\bonnxruntime-(?:linux|win|osx)-(?:x64|x86_64|aarch64|arm64)(?P<gpu>-gpu)?"
    rf"-(?P<version>{_VERSION})(?:\.tgz|\.zip|/|\b)"
)
"""What ONNX Runtime's project publishes for C and C++; ``-gpu_cuda12-`` would be another build than its own."""
_NOT_THERE = lazy_pattern(r"\b(?:HTTP (?:error )?)?40[34]\b|\bnot found\b|does(?: not|n't) exist", re.IGNORECASE)
"""What a line says of a wheel that an index does not have."""
_REMOVED = lazy_pattern(
    rf"(?:Successfully uninstalled|Uninstalling|Found existing installation:) ({_NAME})[- ]({_VERSION}):?\s*$"
)
_CONDA = lazy_pattern(rf"(?:- )?[\"']?({_NAME})={{1,2}}({_VERSION})(?:=(\S{{1,60}}?))?[\"']?(?:\s*#.*)?$")
_CONDA_ROW = lazy_pattern(rf"({_NAME})\s+({_VERSION})\s+(\S*(?:cuda|cudnn|cpu)\S*_[0-9]+)(?:\s+\S{{1,40}})?$")
_COMMAND = lazy_pattern(r"\b(?:pip[0-9.]{0,4}|conda|mamba|uv(?: pip)?|poetry) (?:install|add|create)\b(.{1,1000})")
_PINNED = lazy_pattern(
    rf"(?<![\w<>~!-])[\"']?({_NAME})(?:\[[A-Za-z0-9_, -]{{1,60}}\])?={{1,3}}({_VERSION})(?=[\"'\s\\;,]|$)"
)
_ANY = lazy_pattern(
    r"nstall|whl|onnxruntime-|[+~] [\w.-]+==|=[0-9]|_[0-9]|Updating|Downgrading|Removing|\b(?:create|add)\b|"
    r"-(?:cpu|cuda)"
)
"""Every line that is read here contains one of these."""
_LONGEST_LINE, _MOST, _INDEX_LIMIT = 4_000, 2_000, 1 << 20

_UNPINNED = lazy_pattern(r"(?<![\w:/-])pytorch(?![\w=:/-])")
_CHOSEN = lazy_pattern(r"(?<![\w-])(?:cudatoolkit|pytorch-cuda) ?={1,2} ?(?P<version>[0-9]{1,2}\.[0-9]{1,2})(?![\w.])")


class _Step(NamedTuple):
    name: str
    version: str
    build: str | None = None
    conda: bool = False
    gone: bool = False
    archive: bool = False
    """Whether it is an archive of the project, of which a release has one for each kind of build."""


def _names_a_package(paste: Paste) -> bool:
    marked = any(mark in paste.text for mark in ("download.pytorch.org", "TORCH_BACKEND", "torch-backend"))
    return (
        next(_all_steps(paste), None) is not None
        or (marked and wording("index-of-torch").search(paste.text) is not None)
        or _for_cpu(paste) is not None
        or _names_pypi(paste)
    )


@importer("installer", Rank.MESSAGE, recognise=_names_a_package)
def read_installers(paste: Paste) -> Snapshot:
    """What installers print and what files ask for: pip, uv, poetry, conda, wheels, ``environment.yml``, an index."""
    packages: dict[str, _Step] = {}
    for step in _all_steps(paste):
        name = normalised(step.name)
        if step.gone:
            if packages.get(name, step).version == step.version:
                packages.pop(name, None)
        elif name in packages or len(packages) < _MOST:
            packages[name] = step
    interpreter = packages.pop("python", None)
    python = interpreter.version if interpreter and interpreter.version.startswith(("2.", "3.")) else None
    distributions = tuple(_installed(name, step) for name, step in packages.items())
    torch = _for_cpu(paste) or _of_index(paste, packages) or _of_conda_command(paste, packages)
    if torch is None and "torch" not in packages and _names_pypi(paste):
        torch = Framework(source=SOURCE, name="torch")
    if not (distributions or torch or python):
        return Snapshot()
    found = environment(python=python, distributions=distributions, frameworks=(torch,) if torch else ())
    plain = torch is not None and torch.cuda is None and torch.cpu_only is None
    facts = Told(source=SOURCE, torch_of_pypi=True) if plain else None
    return msgspec.structs.replace(with_environment(found), told=facts)


def _installed(name: str, step: _Step) -> Distribution:
    normal = "torch" if name == "pytorch" and not step.conda else name
    if step.archive:
        return Distribution(source=SOURCE, name=normal, version=step.version, read={"version": ARCHIVE})
    return Distribution(
        source=SOURCE, name=normal, version=step.version, build=step.build, channel="conda" if step.conda else "pip"
    )


def _of_index(paste: Paste, packages: dict[str, _Step]) -> Framework | None:
    """The build of PyTorch that the one index named in the text serves."""
    tags = {found[found.lastindex or 0] for found in wording("index-of-torch").finditer(paste.text[:_INDEX_LIMIT])}
    torch = packages.get("torch")
    if len(tags) != 1 or (torch is not None and "+" in torch.version) or "+cpu" in paste.text[:_INDEX_LIMIT]:
        return None
    tag = tags.pop()
    if tag == "cpu":
        return Framework(source=SOURCE, name="torch", cpu_only=True)
    return Framework(source=SOURCE, name="torch", cuda=f"{tag[2:-1]}.{tag[-1]}", cpu_only=False)


def _of_conda_command(paste: Paste, packages: dict[str, _Step]) -> Framework | None:
    """The build of PyTorch that the commands of conda ask for by its CUDA, where they name no release."""
    if "pytorch" in packages or "torch" in packages:
        return None
    found = {
        chosen["version"]
        for line in paste.statements
        if "pytorch" in line
        and (command := _COMMAND.search(line[:_LONGEST_LINE]))
        and _UNPINNED.search(command[1])
        and (chosen := _CHOSEN.search(command[1]))
    }
    return Framework(source=SOURCE, name="torch", cuda=found.pop(), cpu_only=False) if len(found) == 1 else None


def _for_cpu(paste: Paste) -> Framework | None:
    """The framework without CUDA that a command installs."""
    found = (wording("package-for-cpu").search(line) for line in paste.statements if "cpu" in line)
    name = next((match["name"] for match in found if match), None)
    return Framework(source=SOURCE, name="torch" if name == "cpuonly" else name, cpu_only=True) if name else None


def _names_pypi(paste: Paste) -> bool:
    """Whether a command names PyTorch alone, or a project's list of requirements in a text about PyTorch."""
    named = any(wording("torch-installed").search(line) for line in paste.statements if "torch" in line)
    return named or (
        "torch" in paste.text
        and any(wording("requirements-installed").search(line) for line in paste.statements if "install" in line)
    )


def _all_steps(paste: Paste) -> Iterator[_Step]:
    for line in paste.lines:
        steps = _steps(line.strip()[:_LONGEST_LINE]) if _ANY.search(line) else []
        if steps and not wording("cure").search(line[:_LONGEST_LINE]):
            yield from steps


def _steps(text: str) -> list[_Step]:
    """What a line installs or removes, by the first form that it has."""
    found: list[_Step] = []
    if installed := _INSTALLED.search(text):  # pip's last line
        items = (_ITEM.match(item.rstrip(",.")) for item in installed[1].split())
        found += [_Step(item[1], item[2]) for item in items if item]
    if removed := _REMOVED.search(text):
        found.append(_Step(removed[1], removed[2], gone=True))
    if not found and (line := _UV.match(text)):
        found.append(_Step(line[2], line[3], gone=line[1] == "-"))
    elif not found and (line := _POETRY.match(text)):
        found.append(_Step(line[2], line[3], gone=line[1] == "Removing"))
    if not found and ".whl" in text and not _NOT_THERE.search(text):
        wheels = _WHEEL.finditer(text.replace("%2B", "+").replace("%2b", "+"))
        found += [_Step(wheel[1], wheel[2]) for wheel in wheels]
    for archive in _ARCHIVE.finditer(text) if not found and "onnxruntime-" in text else ():
        version = archive["version"].removesuffix(".tgz").removesuffix(".zip")
        found.append(_Step(f"onnxruntime{archive['gpu'] or ''}", version, archive=True))
    if not found and (command := _COMMAND.search(text)):
        conda = "conda" in command[0] or "mamba" in command[0]
        found += [_Step(pinned[1], pinned[2], conda=conda) for pinned in _PINNED.finditer(command[1])]
    if not found:
        of_file = _CONDA.match(text) if text.startswith("- ") and "==" not in text else None
        if row := _CONDA_ROW.match(text) or of_file:
            found.append(_Step(row[1], row[2], row[3], conda=True))
        elif "cpu" in text or "cuda" in text:
            files = wording("file-of-conda").finditer(text)
            found += [_Step(file["name"], file["version"], file["build"], conda=True) for file in files]
    return found
