"""Python packages, as lists of pip and conda (freeze, tables, ``pip show``, collect_env's tagged lines) and installers
(pip, uv, poetry, conda, wheel names, ``environment.yml``, an index) name them.

Lists in a paste are seldom complete, so nothing is concluded from what they lack. A package that a later line installs
in another version replaces the earlier one; what a line removes is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from envcheck.compat.package_needs import normalised
from envcheck.enrich.stated import ARCHIVE
from envcheck.importers.importer import Rank, environment, importer, with_environment
from envcheck.importers.layouts import records
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.wording import wording
from envcheck.knowledge.load import load_matrix
from envcheck.model.snapshot import Distribution, Framework, Snapshot, Told
from envcheck.text.lazy import lazy_pattern

_HEADER = lazy_pattern(r"(?:Package\s+Version\b|#\s*Name\s+Version\b)")
_RULE = lazy_pattern(r"-{3,}[\s-]*$")

_NEAR = 2  # Lines below a name among which its version must stand


@importer("package list", Rank.OUTPUT)
def read_lists(paste: Paste) -> Snapshot:
    found: dict[tuple[str, str | None], Distribution] = {}
    for package in _packages(paste):
        found.setdefault((package.name, package.channel), package)
        if len(found) >= 5_000:
            break
    return with_environment(environment(distributions=tuple(found.values()))) if found else Snapshot()


def _packages(paste: Paste) -> Iterator[Distribution]:
    in_table = False
    shown, since = "", 0
    plan = any(wording("package-added").match(line.strip()) for line in paste.lines)
    for line in paste.lines:
        text = line.strip()
        if plan and text.startswith("- "):
            continue
        of_table = _RULE.match(text) or wording("package-in-row").match(text) or text.startswith("#")
        in_table = _HEADER.match(text) is not None or (in_table and bool(of_table))
        name = wording("package-shown").match(text) or wording("package-asked-for").search(text)
        version = wording("release-shown").match(text)
        since += 1
        if name:
            shown, since = name[1], 0
        elif version and shown and since <= _NEAR:
            yield _package(shown, version[1])
            shown = ""
        elif text:
            bare = text.lstrip("-+*• `").rstrip("`")
            if found := wording("package-frozen").match(bare):
                yield _package(found[2], found[3], tag=found[1])
            elif found := wording("package-exported").match(bare):
                yield _package(found[1], found[2], tag="conda", build=found[3])
            elif found := wording("package-tagged").match(bare):
                yield _package(found[2], found[3], tag=found[1], build=found[4], origin=found[5])
            elif found := wording("package-there").match(text):
                yield _package(found[1], found[2])
            elif "but you" in text and (found := wording("packages-in-conflict").match(text)):
                yield _package(found[1], found[2])
                yield _package(found[3], found[4])
            elif (found := wording("package-in-row").match(bare)) and (in_table or _is_believed(*found.group(1, 2, 3))):
                yield _package(found[1], found[2], build=found[3], origin=found[4])
            elif found := wording("wheel-of-nvidia").search(text):
                yield _package(found[1], found[2])
            elif "." in bare:
                # One that a line states, or a list of several; frameworks have readers of their own.
                parts = bare.split(", ")
                stated = list(filter(None, map(wording("package-stated").fullmatch, parts)))
                for each in stated if len(stated) > 1 or len(parts) == 1 else ():
                    spoken = any(re.fullmatch(row.pattern, each[1], re.IGNORECASE) for row in load_matrix().spoken)
                    if not spoken and _is_believed(each[1], each[2], None):
                        yield _package(each[1], each[2])
    for listed, release in records(paste.text):
        if wording("name-of-package").fullmatch(listed) and wording("release-of-package").fullmatch(release):
            yield _package(listed, release)


def _is_believed(name: str, version: str, third: str | None) -> bool:
    """Whether a row of two or more words outside a table describes a package and is not prose."""
    # Names such as TORCH_CUDA_ARCH_LIST are variables.
    known = wording("gpu-software").match(normalised(name)) or load_matrix().is_published(normalised(name))
    build = third is None or third[0] == "(" or wording("build-of-conda").match(third) is not None
    return bool(known) and not (name.isupper() and "_" in name) and "." in version and build


def _package(
    name: str, version: str, *, tag: str | None = None, build: str | None = None, origin: str | None = None
) -> Distribution:
    """One package; ``origin`` is conda's channel column, ``pypi`` for packages that pip installed."""
    by_pip = origin in ("pypi", "<pip>") or build in ("<pip>", "pypi_0")
    untagged = tag is None and build is not None and wording("build-of-conda").match(build) is not None
    conda = not by_pip and (tag == "conda" or untagged)
    normal = "torch" if normalised(name) == "pytorch" and not conda else normalised(name)
    return Distribution(
        source=SOURCE,
        name=normal,
        version=version,
        build=build if conda else None,
        channel="conda" if conda else "pip" if tag or by_pip else None,
    )


_NOT_THERE = lazy_pattern(r"\b(?:HTTP (?:error )?)?40[34]\b|\bnot found\b|does(?: not|n't) exist", re.IGNORECASE)
"""What a line says of a wheel that an index does not have."""
_COMMAND = lazy_pattern(r"\b(?:pip[0-9.]{0,4}|conda|mamba|uv(?: pip)?|poetry) (?:install|add|create)\b(.{1,1000})")
_LONGEST_LINE, _MOST, _INDEX_LIMIT = 4_000, 2_000, 1 << 20

_CHOSEN = lazy_pattern(r"(?<![\w-])(?:cudatoolkit|pytorch-cuda) ?={1,2} ?(?P<version>[0-9]{1,2}\.[0-9]{1,2})(?![\w.])")


class _Step(msgspec.Struct, frozen=True):
    name: str
    version: str
    build: str | None = None
    conda: bool = False
    gone: bool = False
    archive: bool = False  # Whether it is an archive of the project, of which a release has one for each kind of build


@importer("installer", Rank.MESSAGE)
def read_installers(paste: Paste) -> Snapshot:
    """What installers print and what files ask for: pip, uv, poetry, conda, wheels, ``environment.yml``, an index."""
    packages: dict[str, _Step] = {}
    steps = (
        step
        for line in paste.lines
        if wording("of-installer").search(line) and (of_line := _steps(line.strip()[:_LONGEST_LINE]))
        if not wording("cure").search(line[:_LONGEST_LINE])
        for step in of_line
    )
    for step in steps:
        name = normalised(step.name)
        if step.gone:
            if packages.get(name, step).version == step.version:
                packages.pop(name, None)
        elif name in packages or len(packages) < _MOST:
            packages[name] = step
    interpreter = packages.pop("python", None)
    python = interpreter.version if interpreter and interpreter.version.startswith(("2.", "3.")) else None
    distributions = tuple(
        Distribution(
            source=SOURCE,
            name="torch" if name == "pytorch" and not step.conda else name,
            version=step.version,
            build=step.build,
            channel=None if step.archive else "conda" if step.conda else "pip",
            read={"version": ARCHIVE} if step.archive else {},
        )
        for name, step in packages.items()
    )
    torch = _for_cpu(paste) or _of_index(paste, packages) or _of_conda_command(paste, packages)
    if torch is None and "torch" not in packages and _names_pypi(paste):
        torch = Framework(source=SOURCE, name="torch")
    if not (distributions or torch or python):
        return Snapshot()
    found = environment(python=python, distributions=distributions, frameworks=(torch,) if torch else ())
    plain = torch is not None and torch.cuda is None and torch.cpu_only is None
    facts = Told(source=SOURCE, torch_of_pypi=True) if plain else None
    return msgspec.structs.replace(with_environment(found), told=facts)


def _of_index(paste: Paste, packages: dict[str, _Step]) -> Framework | None:
    """The build of PyTorch that the one index named in the text serves."""
    tags = {found[found.lastindex or 0] for found in wording("index-of-torch").finditer(paste.text[:_INDEX_LIMIT])}
    torch = packages.get("torch")
    if len(tags) != 1 or (torch is not None and "+" in torch.version) or "+cpu" in paste.text[:_INDEX_LIMIT]:
        return None
    tag = tags.pop()
    cuda = None if tag == "cpu" else f"{tag[2:-1]}.{tag[-1]}"
    return Framework(source=SOURCE, name="torch", cuda=cuda, cpu_only=cuda is None)


def _of_conda_command(paste: Paste, packages: dict[str, _Step]) -> Framework | None:
    """The build of PyTorch that the commands of conda ask for by its CUDA, where they name no release."""
    if "pytorch" in packages or "torch" in packages:
        return None
    found = {
        chosen["version"]
        for line in paste.statements
        if "pytorch" in line
        and (command := _COMMAND.search(line[:_LONGEST_LINE]))
        and re.search(r"(?<![\w:/-])pytorch(?![\w=:/-])", command[1])
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
    listed = (wording("requirements-installed").search(line) for line in paste.statements if "install" in line)
    return named or ("torch" in paste.text and any(listed))


def _steps(text: str) -> list[_Step]:
    """What a line installs or removes, by the first form that it has."""
    found: list[_Step] = []
    if installed := re.search(r"Successfully installed (.{3,20000})", text):  # pip's last line
        items = (wording("package-of-pip").match(item.rstrip(",.")) for item in installed[1].split())
        found += [_Step(item[1], item[2]) for item in items if item]
    if removed := wording("package-removed").search(text):
        found.append(_Step(removed[1], removed[2], gone=True))
    if not found and (line := wording("package-of-uv").match(text)):
        found.append(_Step(line[2], line[3], gone=line[1] == "-"))
    elif not found and (line := wording("package-of-poetry").match(text)):
        found.append(_Step(line[2], line[3], gone=line[1] == "Removing"))
    if not found and ".whl" in text and not _NOT_THERE.search(text):
        wheels = wording("wheel").finditer(text.replace("%2B", "+").replace("%2b", "+"))
        found += [_Step(wheel[1], wheel[2]) for wheel in wheels]
    for archive in wording("archive-of-onnxruntime").finditer(text) if not found and "onnxruntime-" in text else ():
        version = archive["version"].removesuffix(".tgz").removesuffix(".zip")
        found.append(_Step(f"onnxruntime{archive['gpu'] or ''}", version, archive=True))
    if not found and (command := _COMMAND.search(text)):
        conda = "conda" in command[0] or "mamba" in command[0]
        found += [_Step(pinned[1], pinned[2], conda=conda) for pinned in wording("package-pinned").finditer(command[1])]
    if not found:
        of_file = wording("package-of-conda").match(text) if text.startswith("- ") and "==" not in text else None
        if row := wording("row-of-conda").match(text) or of_file:
            found.append(_Step(row[1], row[2], row[3], conda=True))
        elif "cpu" in text or "cuda" in text:
            files = wording("file-of-conda").finditer(text)
            found += [_Step(file["name"], file["version"], file["build"], conda=True) for file in files]
    return found
