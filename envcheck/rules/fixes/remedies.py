"""Remedies of one kind of report: rows of ``matrix/remedies.toml``, with the words of the text in them.

A fix whose words the text does not have is not offered: nobody can run a command with a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from envcheck.compat.package_needs import admits, normalised, pinned_by, requirement_name
from envcheck.compat.wheels import is_published, published, wheels_of
from envcheck.knowledge.error_lines import fragment_in, matches_fragment, met_in, words_beside
from envcheck.knowledge.relations.gpu_code import code_runs_on, compiler_of
from envcheck.knowledge.relations.torch import tag_of
from envcheck.knowledge.specifier import parse_version
from envcheck.knowledge.tables.messages import RemedyFix
from envcheck.model.checks import Evidence, Fix, Source, ways
from envcheck.model.snapshot import frameworks_in, items_in
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts
from envcheck.rules.facts.frameworks import code_targets
from envcheck.rules.fixes.driver import family
from envcheck.rules.fixes.frameworks import family_of_build, torch_build
from envcheck.rules.fixes.install import How, install, uninstall
from envcheck.rules.fixes.reinstall import wheel_addresses
from envcheck.rules.messages.observed import ends_in
from envcheck.text.lazy import lazy_pattern

_WORD = lazy_pattern(r"(?![-.#=])[A-Za-z0-9_./+~:\\@#=-]{1,200}")
"""What may stand in a command: no blank, no sign of a shell, and nothing that is read as an option."""
_SETS = lazy_pattern(r"-u|[A-Z][A-Z0-9_]*(?:=.*)?")
_WHOLE = 300  # Characters of a text in which words are put


class Remedy(msgspec.Struct, frozen=True):
    """The fixes of a row, and what says that they help."""

    fixes: tuple[Fix, ...]
    sources: tuple[Source, ...]
    title: str
    message: str


def remedy_of(problem: str, evidence: Sequence[Evidence], facts: Facts) -> Remedy | None:
    """The first row that is for this problem, these lines and this machine."""
    rows = [row for row in facts.matrix.remedies if problem in row.problems]
    if not rows:
        return None
    texts = [*(error.text for error in facts.snapshot.observed_errors), *(each.value for each in evidence)]
    known = _words(facts)
    for row in rows:
        words = words_beside(row, texts)
        if words is None:
            continue
        plain = {name: re.escape(word) for name, word in words.items()}  # a word of the text is no pattern
        asked = ((known.get(name, ""), plain.get(fact, fact)) for name, fact in row.facts.items())
        if not all(any(re.fullmatch(bounds, word) for word in (own, own and f"{own}.0")) for own, bounds in asked):
            continue
        fixes: list[Fix] = []
        filled = False
        for each in row.fixes:
            if not (each.otherwise and filled):
                for_it = not each.when or met_in(each.when, (*texts, *map(" ".join, known.items())))
                found = _filled(each, {**known, **words}, facts) if for_it else ()
                fixes += found
                filled = bool(found)
        if fixes:
            return Remedy(tuple(fixes), facts.matrix.cite(row), row.title, row.message)
    return None


def suited(fixes: Sequence[Fix], facts: Facts) -> tuple[Fix, ...]:
    """Without the ways in words that only another system has; Windows sets variables by a command of its own."""
    if facts.os != "windows":
        return tuple(fixes)
    every = [tuple(map(_for_windows, way)) for way in ways(fixes)]
    words = [" ".join(word for fix in way for word in (fix.text, *fix.command)) for way in every]
    return tuple(
        fix
        for way, text in zip(every, words, strict=True)
        if not matches_fragment("words-of-linux", text)
        for fix in way
    )


def _for_windows(fix: Fix) -> Fix:
    if fix.command[:1] != ("env",):
        return fix
    first = next((place for place, word in enumerate(fix.command) if place and not _SETS.fullmatch(word)), 1)
    named = [word if "=" in word else f"{word}=" for word in fix.command[1:first] if word != "-u"]
    text = f"{fix.text}; before, in the same console: {' and '.join(f'set {word}' for word in named)}"
    return msgspec.structs.replace(fix, text=text, command=fix.command[first:])


def _words(facts: Facts) -> dict[str, str]:
    """What is known of the machine; of packages and frameworks, the version of each by its name."""
    environment, torch = facts.environment, facts.framework("torch")
    cuda = CudaVersion.parse(torch.cuda) if torch else None
    others = [CudaVersion.parse(each.cuda) for each in frameworks_in(environment)]
    capabilities = [capability for _, capability in facts.gpus_with_capability]
    code = torch and code_targets(torch)
    runs = [code_runs_on(facts.matrix, code, each, driver_cuda=None).ok for each in capabilities if code]
    toolkit = next((each for each in items_in(facts.snapshot.toolkits) if each.version), None)
    refused = (fragment_in("ptx-refused", error.text) for error in facts.snapshot.observed_errors)
    ptx = next((match[1] for match in refused if match), None)
    of_role = [(role, each) for each in frameworks_in(environment) if (role := facts.matrix.role_of(each.name))]
    found = {
        **{role.name: each.version for role, each in of_role},
        **{f"{role.name}_cuda": each.cuda for role, each in of_role},
        **{each.name: each.version for each in frameworks_in(environment)},
        **{each.name: each.version for each in facts.distributions},
        **facts.variables.values,
        "os": facts.driver_os,
        "machine": facts.platform.machine,
        "container": facts.platform.container,
        "manager": environment.manager,
        "family": family(facts),
        "python": facts.interpreter,
        "python_minor": ".".join((facts.python or "").split(".")[:2]),
        "torch": (torch.version or "").partition("+")[0] if torch else None,
        "torch_minor": ".".join(torch.version.split(".")[:2]) if torch and torch.version else None,
        "cuda": str(cuda) if cuda else None,
        "major": next((str(each.major) for each in (cuda, *others) if each), None),
        "tag": tag_of(str(cuda)) if cuda else None,
        "cpu_only": "yes" if torch and torch.cpu_only else None,
        "gpu": next((gpu.name for gpu in facts.usable_gpus if gpu.name), None),
        "capability": str(max(capabilities)) if capabilities else None,
        "torch_code": ("yes" if all(runs) else "no") if runs else None,
        "driver": facts.release_text,
        "driver_cuda": str(facts.supported_cuda or ""),
        "jetson": facts.platform.tegra_release or facts.platform.jetpack,
        "toolkit": toolkit.version if toolkit else None,
        "toolkit_home": toolkit.path if toolkit and toolkit.path.startswith("/") else None,
        "ptx_cuda": str(cuda) if (cuda := compiler_of(facts.matrix, ptx)) else None,
        "ends_in": ends_in(facts),
    }
    return {name: word for name, word in found.items() if word}


def _how_compiled(line: str, facts: Facts) -> tuple[str, ...] | None:
    """The options with which an installer compiles the release that is there, or the newest of those that ``line``
    admits; None where it has the same wheel again, or none.
    """
    name = requirement_name(line)
    own, listing = facts.installed(name), published(facts.matrix, name)
    admitted = (each for each in reversed(listing) if admits(line.removeprefix(name), str(each)) is not False)
    version = parse_version(own.version.partition("+")[0]) if own else next(admitted, None)
    rows = wheels_of(facts.matrix, name, version) if version else ()
    system = f"{facts.driver_os}-{facts.processor}".replace("wsl", "linux")
    if own and listing and not (version and is_published(facts.matrix, name, version)):
        return None  # it came from elsewhere
    if not any(system in row.pythons for row in rows):  # of what PyPI does not have, the source may be anywhere
        return ()
    return ("--no-binary", name) if any(row.archive for row in rows) else None


def _for_torch(line: str, torch: str, facts: Facts) -> str:
    """The requirement in the releases for this PyTorch, where rows name some and it has no other upper bound."""
    name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
    least = line[len(name) :]
    bounds = facts.bounds_for(normalised(name), "torch", torch) if re.fullmatch(r"(?:>=[\d.]+)?", least) else ""
    lowest = re.search(r"[\d.]+\w*", bounds)
    return f"{name}{bounds}" if lowest and admits(least, lowest[0]) is not False else line


def _filled(fix: RemedyFix, words: Mapping[str, str], facts: Facts) -> tuple[Fix, ...]:
    """The fix with its words; nothing where one of them is not known, or is none that a command may hold."""
    named = re.findall(r"\{(\w[\w-]*)\}", " ".join((fix.text, *fix.command, *fix.installs, *fix.removes, fix.index)))
    if not all(_WORD.fullmatch(words.get(name, "")) for name in named):
        return ()

    def fill(text: str) -> str:
        return re.sub(r"\{(\w[\w-]*)\}", lambda found: words[found[1]], text)

    def is_there(line: str) -> bool:
        """Whether the index has the release that a line pins, as far as rows list them."""
        pin, listing = parse_version(pinned_by(line) or ""), published(facts.matrix, requirement_name(line))
        return not (pin and listing) or is_published(facts.matrix, requirement_name(line), pin)

    text, removes = fill(fix.text)[:_WHOLE], tuple(map(fill, fix.removes))
    told = [requirement_name(fill(line)) for line in fix.installs if "{" in line.partition("=")[0]]
    if not all(map(facts.matrix.is_published, told)):
        return ()
    if fix.installs:
        torch = facts.framework("torch")
        wanted = [fill(line) if fix.index else fill(line).partition("+")[0] for line in fix.installs]
        if torch and torch.version:  # in the release for that PyTorch where rows name one
            wanted = [_for_torch(line, torch.version, facts) for line in wanted]
        name = requirement_name(wanted[0])
        if not (fix.index or all(map(is_there, wanted))) or ("--no-deps" in fix.build and wanted[0] == name):
            return ()  # the index does not have it, or its newest may be for another PyTorch
        again = fix.again and any(facts.installed(requirement_name(line)) for line in wanted)
        way = _how_compiled(wanted[0], facts) if fix.again and fix.build else ()
        if way is None and (again or wanted[0] == name):
            return ()
        anew = ("--force-reinstall",) if fix.again and not again else ()
        build = () if way is None else (*anew, *fix.build, *way)
        page = wheel_addresses(name, "", torch, facts)[0] if build and torch else ""
        how = How(fill(fix.index), page, build, variables=fix.variables, again=again, alone=fix.again, risk=fix.risk)
        if wanted[0].startswith("torch>="):  # the newest may be for a newer CUDA than the driver runs
            # Of the CUDA that the fix names, else of that of the PyTorch, for which the driver is new enough.
            own = words.get("cuda") if facts.supported_cuda is None or "{cuda}" in fix.text else None
            choice = torch_build(facts, None, int(own.partition(".")[0]) if own else None)
            unknown = facts.supported_cuda is None and not (own or facts.usable_gpus)
            if choice is None or unknown or not admits(wanted[0].removeprefix("torch"), choice.version):
                return ()
            family = facts.matrix.names_with("on-torch-index")
            beside = [each.name for each in facts.distributions if each.name in family]
            wanted, how = family_of_build(choice, beside, facts)
        found = install(facts, wanted, text, how, remove=removes)
        return (msgspec.structs.replace(found[0], continues=fix.then), *found[1:])
    if removes:
        return (uninstall(facts, removes, text),)
    return (Fix(text, command=tuple(map(fill, fix.command)), who=fix.who, risk=fix.risk, continues=fix.then),)
