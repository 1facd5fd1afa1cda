"""The answer of ``envcheck plan``: for people, and as what installers and images read."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec
from packaging.requirements import Requirement

from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.pipeline.planned.solution import ChosenRelease, Solution
from envcheck.report import Options, json
from envcheck.report.page.pen import Line, Pen, Style, StyledSpan
from envcheck.rules.fixes.frameworks import INDEX

_WORDS: dict[FitVerdict, tuple[str, Style]] = {
    "compatible": ("FITS", "pass"),
    "incompatible": ("NOTHING FITS", "fail"),
    "unknown": ("OPEN", "unknown"),
}
_NOTHING: dict[FitVerdict, str] = {
    "compatible": "the releases that are installed fit",
    "incompatible": "no change of the releases that were tried is enough",
    "unknown": "the releases that are installed fit; what is wrong is not their choice (envcheck check)",
}
"""Of an installed environment for which no other release is shown."""
_COPY_UV = "COPY --from=ghcr.io/astral-sh/uv:latest /uv /bin/uv"
_MOST_REASONS, _MOST_SOURCES = 6, 1


def render(found: Solution, form: str, options: Options) -> str:
    """``found`` in a format; where nothing fits, as text in a comment of those that installers read."""
    if form == "json":
        return json.render(found)
    if form == "text":
        pen = Pen(options)
        return pen.show(plan_lines(found, pen))
    if found.verdict != "compatible":
        pen = Pen(Options(width=100))
        return "".join(f"# {line}".rstrip() + "\n" for line in pen.show(plan_lines(found, pen)).splitlines())
    writers = {"requirements": _requirements, "pyproject": _pyproject, "dockerfile": _dockerfile}
    writers |= {"conda": _conda, "pixi": _pixi}
    return writers[form](found)


def pin_of(choice: ChosenRelease) -> str:
    """The requirement that pins it, where a release of it is known."""
    extras = f"[{','.join(choice.extras)}]" if choice.extras else ""
    return f"{choice.name}{extras}" + (f"=={choice.version}" if choice.version else "")


def commands(found: Solution, tool: Sequence[str]) -> list[str]:
    """What installs the set, in order: what is compiled needs PyTorch to be there."""
    wheels = [pin_of(each) for each in found.packages if not each.compiled]
    compiled = [pin_of(each) for each in found.packages if each.compiled]
    by_uv, files, bounds = tool[0] == "uv", list[str](), list[str]()
    index = [f"--torch-backend={found.tag}"] if by_uv else ["--extra-index-url", f"{INDEX}{found.tag}"]
    overrides = [each.requirement for each in found.overrides if by_uv]
    constraints = [each.requirement for each in found.constraints]
    for option, lines in (("--overrides", overrides), ("--constraint", constraints)):
        if lines:
            files.append(f"printf '%s\\n' {shlex.join(lines)} > {option[2:]}.txt")
            bounds += [option, f"{option[2:]}.txt"]
    steps = [[*tool, *wheels, *(index if found.tag else ()), *bounds]] if wheels else []
    steps += [[*tool, "--no-build-isolation", *compiled, *bounds]] if compiled else []
    steps += [[tool[0], *step] for each in found.overrides for step in each.pip if not by_uv]
    path = [f"export LD_LIBRARY_PATH=$({_folders(found, ':')})"] if found.opened_by_path else []
    return [*files, *map(shlex.join, steps), *path]


def _pip_can(found: Solution) -> bool:
    """Whether pip, which has no overrides, can do the same."""
    return all(each.pip for each in found.overrides)


def _overrides(found: Solution) -> list[str]:
    """As comments, what the overrides come to after pip has read a file."""
    steps = [shlex.join(("pip", *step)) for each in found.overrides for step in each.pip]
    only_uv = [f"# uv alone can do this: {each.requirement}" for each in found.overrides if not each.pip]
    return [*only_uv, *(f"# then: {step}" for step in steps)]


def _folders(found: Solution, between: str) -> str:
    """The command that prints the folders of libraries that are opened by their names alone."""
    modules = ", ".join(found.opened_by_path)
    program = f"import {modules}; print({between!r}.join(f'{{one.__path__[0]}}/lib' for one in [{modules}]))"
    return f'python -c "{program}"'


def plan_lines(found: Solution, pen: Pen) -> list[Line]:
    """The page: the set and the machine, what was given up, the commands, and what was seen."""
    word, style = _WORDS[found.verdict]
    repaired = "environment" in found.machine
    nothing = _NOTHING[found.verdict] if repaired else "the requirements exclude one another"
    sets = ", ".join(f"{each.name} {each.version}".rstrip() for each in found.packages) or nothing
    machine = ", ".join(f"{name} {value}" for name, value in found.machine.items())
    lines: list[Line] = pen.hang((StyledSpan(f"{word}  ", style),), sets)
    lines += pen.hang("for   ", machine)
    lines += pen.hang("as of ", f"{found.as_of}: newer releases are left out") if found.as_of else []
    for each in found.packages:
        if each.given_up:
            lines += pen.hang("why   ", f"{each.name} {each.version}".rstrip() + f": {each.given_up}")
    if found.verdict != "incompatible":
        for each in found.packages:
            if each.compiled:
                remark = f"{each.name} is compiled where it is installed"
                lines += pen.hang("note  ", f"{remark}, unless its project has this wheel:" if each.wheel else remark)
                lines += [(StyledSpan(f"      {each.wheel}"),)] if each.wheel else []
        lines += pen.hang("note  ", f"compiling needs {found.compiling}") if found.compiling else []
        bounds = [*(("over  ", each) for each in found.overrides), *(("keep  ", each) for each in found.constraints)]
        for label, one in bounds:
            lines += pen.hang(label, f"{one.requirement}, {one.reason}")
            lines += [(StyledSpan(f"      {source.address}", "dim"),) for source in one.sources[:_MOST_SOURCES]]
        by_pip = (("pip", ("pip", "install")),) if _pip_can(found) else ()
        tools = () if repaired else (("uv", ("uv", "pip", "install")), *by_pip)
        own = [("run", [*map(shlex.join, found.steps)])] if found.steps else []
        for label, steps in (*own, *((label, commands(found, tool)) for label, tool in tools)):
            lines += [(), (StyledSpan(label, "title"),)]
            lines += [(StyledSpan(f"  {step}", "command"),) for step in steps]
    lines += [()] if found.reasons else []
    for reason in found.reasons[:_MOST_REASONS]:
        lines += pen.hang("seen  ", reason.message)
        lines += [(StyledSpan(f"      {source.address}", "dim"),) for source in reason.sources[:_MOST_SOURCES]]
    if found.resolved:
        unsized = f" and {found.unsized} of unknown size" if found.unsized else ""
        size = f"{found.download / 1e9:.2f} GB to download{unsized}"
        remark = f"uv resolves it in {found.resolved_s:.1f} s to {len(found.resolved)} packages, {size}"
        lines += [(), *pen.hang("uv    ", remark)]
    if found.nearest:
        lines += [(), (StyledSpan("What would fit:", "title"),)]
        lines += [line for text in found.nearest for line in pen.hang("  ", text)]
    return lines


def _requirements(found: Solution) -> str:
    head = [f"--extra-index-url {INDEX}{found.tag}"] if found.tag else []
    if found.resolved and found.overrides:
        head.insert(0, "# install with --no-deps: it does not keep to what its packages require")
    then = [] if found.resolved else _overrides(found)
    # Also what is only kept within bounds: it is installed in any case.
    listed = found.resolved or [*map(pin_of, found.packages), *(each.requirement for each in found.constraints)]
    return "\n".join([*head, *listed, *then]) + "\n"


def _pyproject(found: Solution) -> str:
    listed = "".join(f'    "{pin_of(each)}",\n' for each in found.packages)
    text = f"dependencies = [\n{listed}]\n"
    tables = {
        "no-build-isolation-package": [each.name for each in found.packages if each.compiled],
        "override-dependencies": [each.requirement for each in found.overrides],
        "constraint-dependencies": [each.requirement for each in found.constraints],
    }
    if lines := [f"{key} = [{', '.join(map(_quoted, texts))}]" for key, texts in tables.items() if texts]:
        text += "\n".join(["\n[tool.uv]", *lines, ""])
    if found.tag:
        own = [each.name for each in found.packages if each.version.endswith(f"+{found.tag}")]
        sources = "".join(f'{name} = {{ index = "pytorch-{found.tag}" }}\n' for name in own)
        text += f'\n[[tool.uv.index]]\nname = "pytorch-{found.tag}"\nurl = "{INDEX}{found.tag}"\nexplicit = true\n'
        text += f"\n[tool.uv.sources]\n{sources}"
    return text


def _quoted(text: str) -> str:
    """As TOML writes it; uv and Python read single quotes in markers too."""
    return '"' + text.replace('"', "'") + '"'


def _dockerfile(found: Solution) -> str:
    tool = ("pip", "install", "--no-cache-dir") if _pip_can(found) else ("uv", "pip", "install", "--system")
    steps = [step for step in commands(found, tool) if not step.startswith("export ")]
    if found.opened_by_path:
        steps.append(_folders(found, "\n") + " > /etc/ld.so.conf.d/nvidia-wheels.conf && ldconfig")
    lines = [f"FROM {found.image}"] if found.image else []
    if any(each.compiled for each in found.packages) and found.python:  # an image of CUDA has no Python, or another one
        lines += [_COPY_UV, "ENV PATH=/opt/venv/bin:$PATH"]
        lines.append(f"RUN uv venv --seed --python {found.python} /opt/venv")
    elif tool[0] == "uv":
        lines.append(_COPY_UV)
    return "\n".join([*lines, *(f"RUN {step}" for step in steps)]) + "\n"


def _conda(found: Solution) -> str:
    alone = msgspec.structs.replace(found, overrides=(), constraints=())
    compiled = [f"# then: {step}" for step in commands(alone, ("pip", "install"))[1:]]
    wheels = [pin_of(each) for each in found.packages if not each.compiled]
    python = f"python={found.python}.*" if found.python else "python"
    listed = [*([f"--extra-index-url {INDEX}{found.tag}"] if found.tag else []), *wheels]
    lines = [
        *compiled,
        *_overrides(found),
        "name: gpu",
        "channels: [conda-forge]",
        "dependencies:",
        f"  - {python}",
        "  - pip",
        "  - pip:",
    ]
    return "\n".join([*lines, *(f"      - {each}" for each in listed)]) + "\n"


def _pixi(found: Solution) -> str:
    lines = ["[dependencies]", f'python = "{found.python}.*"', ""] if found.python else []
    lines.append("[pypi-dependencies]")
    for each in found.packages:
        version, _, tag = each.version.partition("+")
        extras = f", extras = {list(each.extras)}".replace("'", '"') if each.extras else ""
        index = f', index = "{INDEX}{tag}"' if tag else ""
        lines.append(f'{each.name} = {{ version = "=={version}"{extras}{index} }}')
    if compiled := [f'"{each.name}"' for each in found.packages if each.compiled]:
        lines += ["", "[pypi-options]", f"no-build-isolation = [{', '.join(compiled)}]"]
    asked_of_uv = [Requirement(each.requirement) for each in found.overrides]
    if pins := [each for each in asked_of_uv if not (each.marker or each.url)]:
        lines += ["", "[pypi-options.dependency-overrides]"]
        lines += [f'{each.name} = "{each.specifier or "*"}"' for each in pins]
    lines += [f"# pixi cannot say this override of uv's: {each}" for each in asked_of_uv if each.marker or each.url]
    return "\n".join(lines) + "\n"
