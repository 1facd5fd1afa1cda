"""What Python answers when a framework is asked: prompts (``>>>``, ``In [1]:``), ``python -c``, and labelled answers;
the lists of ONNX Runtime's execution providers; and what PyTorch warns of unasked.

Each question that is known has a pattern for its answer, so that several in one ``print`` are told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import dropwhile, takewhile

import msgspec

from envcheck.compat.package_needs import normalised
from envcheck.importers.assemble import OF_MODULE
from envcheck.importers.importer import Rank, environment, importer, joined, of_framework, with_environment
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.readings import PythonQuestion, answered, facts_in, question, read_lines
from envcheck.importers.wording import wording
from envcheck.knowledge.error_lines import matches_fragment
from envcheck.model.merge import merge
from envcheck.model.snapshot import Distribution, Framework, Snapshot, frameworks_in
from envcheck.text.lazy import lazy_pattern

_PROMPT = lazy_pattern(r"(?:>>>|In ?\[[0-9]{0,4}\]:|\.\.\.:)\s?(.{1,600})$")
_COMMAND = lazy_pattern(r".{0,80}?\bpython[0-9.]{0,5}(?:\.exe)? (?:-[A-Za-z] )?-c ?[\"'](.{1,600})[\"']\s*$")
_PRINT = lazy_pattern(r"print\s?\((.*)\)\s*;?$")
_TOOK_CPU = lazy_pattern(r"^GPU available: False\b|\bYOLO.{1,80}\btorch[- ][0-9.]{3,12}(?:\+cu[0-9]+)? CPU\b")
"""What Lightning and Ultralytics' programs print where PyTorch has no GPU, or was told to leave it."""
_ASKED_FOR_CPU = lazy_pattern(r"\b(?:device|accelerator)\b[\s=:'\"]{1,4}cpu\b", re.IGNORECASE)
_MODULE = lazy_pattern(r"([A-Za-z]\w{1,40})\.__version__")
_MOST_ANSWERS = 3  # Lines below a question among which its answer is looked for

_VERSION = r"'?\"?([0-9]{1,2}\.[0-9]{1,3}[0-9A-Za-z.+]{0,40})'?\"?"
_SPOKEN = {
    "cuda available": "torch.cuda.is_available()",
    "torch.cuda.is_available": "torch.cuda.is_available()",
    "torch version": "torch.__version__",
    "pytorch version": "torch.__version__",
}
"""How questions are labelled."""

_PLUGIN = lazy_pattern(r"\bjax\[|pjrt|\bcuda_?-?1[0-9]|cuda-?plugin|backend", re.IGNORECASE)
_RELEASE_OF_JAX = lazy_pattern(r"\bjax(?:lib)?\b\W{1,40}(?:version\W{1,4})?[0-9]+\.[0-9]", re.IGNORECASE)
_LONGEST_TEXT = 1 << 20
_CODE_LINE = lazy_pattern(r"(?:import |from |#|[A-Za-z_][\w.]{0,60} ?= |`{3}|def |with |$)")
_MOST_QUESTIONS = 12
_CPU_CHOSEN = (
    ("jax", lazy_pattern(r"\bjax_platform(?:s|_name)[\"'] ?, ?[\"']cpu\b")),
    ("tensorflow", lazy_pattern(r"\bset_visible_devices\(\[\], ?(?:device_type ?= ?)?['\"]GPU['\"]")),
)
"""How code tells a framework to leave the GPU."""
_LOGGED_MEANWHILE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[IWE][0-9]{4}|WARNING|.*Warning|\s*warnings\.warn")
"""What may stand between a question and its answer: TensorFlow logs while it is asked."""
_NAME = "Python session"


@importer(_NAME, Rank.OUTPUT)
def read(paste: Paste) -> Snapshot:
    found = joined(_answers(paste))
    if found.environments is None:
        return found
    text = paste.text[:_LONGEST_TEXT]
    on_purpose = {name for name, pattern in _CPU_CHOSEN if pattern.search(text)}
    # JAX that lists the CPU alone and complains of nothing, in a text without a word of a CUDA plug-in, has none;
    # unless the text names no release of JAX either: then it may have left out the plug-in's, too.
    no_plugin = _RELEASE_OF_JAX.search(text) and not _PLUGIN.search(text)

    def judged(framework: Framework) -> Framework:
        if framework.gpu_available is False and framework.name in on_purpose:
            return msgspec.structs.replace(framework, gpu_available=None)
        without = framework.gpu_available is False and framework.name == "jax" and no_plugin
        return msgspec.structs.replace(framework, cpu_only=True) if without else framework

    (own,) = found.environments.items
    frameworks = tuple(map(judged, frameworks_in(own)))
    listing = msgspec.structs.replace(own.frameworks, items=frameworks) if own.frameworks else None
    own = msgspec.structs.replace(own, frameworks=listing)
    return msgspec.structs.replace(found, environments=msgspec.structs.replace(found.environments, items=(own,)))


def _answers(paste: Paste) -> Iterator[Snapshot | None]:
    lines = paste.lines
    places = [place for place, line in enumerate(lines) if wording("question").search(line)]
    for place in places:
        text = lines[place].strip(" \t`")
        if logged := list(facts_in(_NAME, text)):
            yield from logged
        elif _TOOK_CPU.search(text) and not _ASKED_FOR_CPU.search(paste.text[:_LONGEST_TEXT]):
            yield of_framework("torch", gpu_available=False)
        elif asked := _PROMPT.match(text) or _COMMAND.match(text):
            below = lines[place + 1 : place + 1 + _MOST_ANSWERS]
            yield from _below(asked[1], below)
            yield from _nothing_printed(asked[1], below) if text.startswith(">>>") else ()
        elif listed := wording("code-listed").search(text):
            yield answered("torch.cuda.get_arch_list()", listed[1])
        else:
            for part in re.split(r"[;|]|, (?=\D)|\. ", text):
                if labelled := wording("answer-behind-label").match(part) or wording("answer-adjoined").search(part):
                    yield from _beside(_SPOKEN.get(labelled[1].strip("`'\" ").lower(), labelled[1]), labelled[2])
    # The answers below a script whose lines ask: as many lines as it prints, in its order.
    script: list[PythonQuestion] = []
    for number, place in enumerate(places):
        text = lines[place].strip()
        known = [] if _PROMPT.match(text) else _questions(text)
        alone = len(known) == 1 and (_PRINT.match(text) or _question(text))
        script = [*script, known[0]] if alone and len(script) < _MOST_QUESTIONS else []
        end = places[number + 1] if number + 1 < len(places) else len(lines)
        following = lines[place + 1 : min(end, place + 1 + _MOST_QUESTIONS + _MOST_ANSWERS)]
        printed = list(dropwhile(_CODE_LINE.match, map(str.strip, following)))
        if script and printed:
            bare = (line.removeprefix("# ") for line in printed)
            answers = [line for line in bare if not wording("label-of-output").match(line)]
            pairs = zip(script, answers, strict=False)
            matches = [(each, found) for each, answer in pairs if (found := re.fullmatch(each.answer, answer))]
            if len(matches) == len(script):
                yield from (each.meaning(found[1]) for each, found in matches)
            script = []


def _below(code: str, lines: tuple[str, ...]) -> Iterator[Snapshot | None]:
    """The meanings of what is printed below a question."""
    questions = _questions(code)
    if not questions:
        return
    pattern = re.compile(r"\s*\(?" + r"[\s,;|]{1,4}".join(each.answer for each in questions) + r"\)?\s*$")
    for line in lines:
        text = re.sub(r"Out ?\[[0-9]{0,4}\]: ?", "", line.strip()).removeprefix("# ")
        if found := pattern.match(text):
            pairs = zip(questions, found.groups(), strict=True)
            yield from (asked.meaning(answer) for asked, answer in pairs)
            return
        if text and (_PROMPT.match(line.strip()) or (len(questions) == 1 and not _LOGGED_MEANWHILE.match(text))):
            return


def _nothing_printed(code: str, lines: tuple[str, ...]) -> Iterator[Snapshot | None]:
    """The meaning of no answer: a prompt prints nothing where a value is None."""
    asked = _question(code)
    following = next((line for line in lines if line.strip()), "")
    if asked and "None" in asked.answer and following.lstrip().startswith(">>>"):
        yield asked.meaning("None")


def _beside(code: str, answer: str) -> Iterator[Snapshot | None]:
    questions = _questions(code)
    if len(questions) != 1:
        return
    # A name has blanks: it ends with the answer, where that is nothing else.
    ends = (r"[\s,;.)]{0,3}$", r"(?:$|[\s,;.)])")
    found = next(filter(None, (re.match(f"{questions[0].answer}{end}", answer) for end in ends)), None)
    yield questions[0].meaning(found[1]) if found else None


def _questions(code: str) -> list[PythonQuestion]:
    """The questions of a line of code in their order; none where one of several is not known."""
    statement = code.rpartition(";")[2].strip() or code.strip()
    printed = _PRINT.match(statement)
    # The arguments, without looking into brackets.
    arguments = printed[1] if printed else statement
    parts, depth, last = [""], 0, 0
    for place, letter in enumerate(arguments):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts[-1] = arguments[last:place].strip()
            parts.append("")
            last = place + 1
    parts[-1] = arguments[last:].strip()
    found = [_question(part) for part in parts if not re.fullmatch(r"\s*[\"'].*[\"']\s*", part)]
    known = [each for each in found if each]
    return known if len(known) == len(found) and len(known) == len(parts) else []


def _question(code: str) -> PythonQuestion | None:
    known = question(code)
    module = _MODULE.fullmatch(code.strip())
    return PythonQuestion(_MODULE, _VERSION, partial(_of_module, module[1])) if known is None and module else known


def _of_module(module: str, version: str) -> Snapshot:
    name = normalised({"np": "numpy"}.get(module, module))
    package = Distribution(source=SOURCE, name=name, version=version, read=OF_MODULE)
    return with_environment(environment(distributions=(package,)))


_PROVIDERS = re.compile(
    r"^(?P<before>.{0,80}?)(?P<list>\[(?:['\"][A-Za-z]{2,30}ExecutionProvider['\"],? ?){1,12}\])",
    re.IGNORECASE | re.MULTILINE,
)
"""The list as a program prints it, with or without a label."""
_ASKED_OF = re.compile(r"\bget_available_providers\b|\.(?P<session>get_providers)\b")
"""What is asked for a list of providers: the build, or a session, which lists those that it could start."""
_OF_SESSION = lazy_pattern(r"\bsess(?:ion)?\b|\bactive\b|\bin use\b|\bapplied\b", re.IGNORECASE)
"""What labels a list of a session's."""
_CHOSEN = lazy_pattern(r"providers ?=|set_providers|fall(?:ing|s)? ?back|error|when using|\busing\b|\($", re.IGNORECASE)
"""What stands before a list of the providers that somebody chose."""


@importer("execution providers", Rank.OUTPUT)
def read_providers(paste: Paste) -> Snapshot:
    """ONNX Runtime's execution providers: those of a build, and those that a session could start."""
    facts: list[Snapshot | None] = []
    lines = [line for line in paste.lines if "_providers" in line or "ExecutionProvider" in line]
    text = "\n".join(line.strip(" \t`") for line in lines[:200])
    on_purpose = re.search(r"providers ?= ?[\[(] ?['\"]CPUExecutionProvider['\"],? ?[\])]", text) is not None
    tried = matches_fragment("cuda-provider-not-created", text)
    for listed, of_session in _with_questions(list(_ASKED_OF.finditer(text)), list(_PROVIDERS.finditer(text))):
        if _CHOSEN.search(listed["before"]):
            continue
        on_cpu = {"CPU", "Azure"}.issuperset(re.findall(r"(\w{2,30})ExecutionProvider", listed["list"]))
        if not (of_session or _OF_SESSION.search(listed["before"]) or (on_cpu and tried)):
            facts.append(answered("onnxruntime.get_available_providers()", listed["list"]))
        elif on_cpu and not on_purpose:
            facts.append(of_framework("onnxruntime", gpu_available=False))
    for place, line in enumerate(paste.lines):
        pair = "\n".join(paste.lines[place : place + 2]) if ".get_device()" in line else ""
        if found := wording("device-of-onnxruntime").search(pair):
            facts.append(of_framework("onnxruntime", cpu_only=True if found["device"] == "CPU" else None))
    return joined(facts)


def _with_questions(
    asked: Sequence[re.Match[str]], lists: Sequence[re.Match[str]]
) -> Iterator[tuple[re.Match[str], bool]]:
    """Each list, and whether a session was asked for it: the last questions above a run of lists belong to it, in their
    order, since a script prints all answers below its code.
    """
    default = bool(asked) and all(found["session"] for found in asked)
    events = sorted([*asked, *lists], key=lambda found: found.end())
    while events:
        questions = [bool(found["session"]) for found in takewhile(lambda found: found.re is _ASKED_OF, events)]
        answers = list(takewhile(lambda found: found.re is _PROVIDERS, events[len(questions) :]))
        first = (questions or [default])[0]
        kinds = [first] * (len(answers) - len(questions)) + questions[max(0, len(questions) - len(answers)) :]
        yield from zip(answers, kinds, strict=False)
        events = events[len(questions) + len(answers) :]


_BUILT_FOR_CODE = lazy_pattern(r"- ([0-9]{1,2})\.([0-9]) which supports hardware CC\b")
"""A line of the list in which PyTorch 2.10 and newer tell the code of the build."""
_OF_TORCH, _MOST_CODE = "PyTorch's messages", 40


@importer(_OF_TORCH, Rank.MESSAGE)
def read_torch_messages(paste: Paste) -> Snapshot:
    """What PyTorch warns of: rows know its lines, but of a list of its code each line has one."""
    found = read_lines(_OF_TORCH, paste)
    listed = (_BUILT_FOR_CODE.search(line) for line in paste.statements if "supports hardware CC" in line)
    code = tuple(f"sm_{match[1]}{match[2]}" for match in listed if match)[:_MOST_CODE]
    return merge((found, of_framework("torch", gpu_code=code))) if code else found
