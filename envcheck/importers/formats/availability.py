"""Whether a framework finds a GPU: as sentences, comments and labels of programs say it, and by ONNX Runtime's
execution providers.

``torch.cuda.is_available()`` with its answer in the same line, in any words; what a line of code tests, and what
somebody expects or asks, is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, takewhile

from envcheck.importers.importer import Rank, each_line, environment, importer, joined, with_environment
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.prose.languages import whole_words_for
from envcheck.importers.readings import facts_in, question
from envcheck.knowledge.error_lines import matches_fragment
from envcheck.model.merge import merge
from envcheck.model.snapshot import Driver, Framework, Snapshot

_BETWEEN = (
    r"still|always|also|just|now|only|keeps?|it|return(?:s|ed|ing)?|gives?|gave|me|I|get|got|is|was|stays?|remains?|"
    r"prints?|printed|shows?|says|evaluates to|results? in|but|as"
)

_NO_CUDA = re.compile(rf"(?<![\w.])torch\.version\.cuda[`\"']{{0,2}}(?:[\s:=>#`'\"-]|\b(?:{_BETWEEN})\b){{1,12}}None\b")
"""What PyTorch answers where it was built without CUDA."""
_NUMBER = re.compile(
    r"(?<![\w.])(?:torch\.cuda\.)?device_count(?:\(\))?[`\"']{0,2}"
    rf"(?:[\s:=>#`'\"-]|\b(?:{_BETWEEN})\b){{1,12}}(?P<answer>[0-9]{{1,3}})(?![\w.])",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"\W{0,6}(?:is )?(?:(?:py)?torch[ .]?)?(?:cuda|gpu)(?: is)? ?available\W{0,12}"
    r"(?P<answer>true|false|yes|no)\b(?!.{0,20}\bMPS)|"
    r"\W{0,6}(?:py)?torch(?:'s)?[ .]cuda\W{0,8}(?P<other>true|false)\b|"
    r"CUDA {8,40}(?P<checked>None)$",  # as Ultralytics' checks print that PyTorch finds no GPU
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"\b(?:if|assert|while|elif|should|expect\w*|must|raise|unless|until|before|used to|would|previously|not torch)\b"
    r"|\?\s*$",
    re.IGNORECASE,
)
_SPOKEN = {"pytorch": "torch", "tf": "tensorflow", "keras": "tensorflow"}
_FRAMEWORK = r"(?:py)?torch|tensorflow|tf|keras|jax"
_CANNOT = (
    r"(?:(?:do(?:es)?|did|can|could|will|wo|would|is)(?: ?n[o']t|not)|cannot|never|fail(?:s|ed) to|"
    r"(?:is |was )?unable to|refuses to)"
)
_SEE = r"(?:see|find|detect|recogni[sz]e|use|access|seeing|finding|detecting|recogni[sz]ing|using|pick up)"
_SEES = (
    r"(?:sees|finds|found|detects|detected|lists|shows|gets|only (?:sees|finds|lists|uses|shows)|runs only on|"
    r"falls back to)"
)
_TOLD = re.compile(
    rf"\b(?P<name>{_FRAMEWORK})\b(?:[^.;?\n]|\.(?=[0-9])){{0,40}}?\b{_CANNOT}\b[^.;?\n]{{0,12}}?\b{_SEE}\b"
    r"[^.;?\n]{0,16}?\b(?:GPUs?|CUDA|graphics card)\b"
    rf"|\b(?P<other>{_FRAMEWORK})\b[^.;?\n]{{0,20}}?\b{_SEES}\b"
    r"[^.;?\n]{0,12}?(?:\bno (?:GPUs?|CUDA)\b|\b(?:the |my )?CPU\b)"
    r"|\b(?:GPUs?|CUDA)\b[^.;?\n]{0,20}?\b(?:is |are |was )?not "
    r"(?:visible|available|detected|recogni[sz]ed|found|used)\b"
    rf"[^.;?\n]{{0,12}}?\b(?:in|by|to|from|for|inside|with) (?P<third>{_FRAMEWORK})\b",
    re.IGNORECASE,
)
"""A sentence that says that a framework does not see the GPU."""
_HEDGED = re.compile(
    r"\b(?:if|when|whether|unless|would|should|expect\w*|used to|until|before|in case|which|that|not every|other)\b",
    re.IGNORECASE,
)
_CALL = re.compile(r"(?:torch\.)?cuda[._](?:is_available|device_count)\(\)(?P<printed>\))?[`\"']{0,2}$")
_OF_R = "[1] "
"""What R puts before an answer."""
_GOES_ON = re.compile(rf"(?:{_BETWEEN})\b|\[1\] (?:TRUE|FALSE)$", re.IGNORECASE)
_OF_TENSORFLOW = re.compile(r"name: \"/device:(?P<kind>CPU|GPU|XLA_GPU):[0-9]")
_LONGEST_LINE = 600


@cache
def _said() -> re.Pattern[str]:
    # Letters of other scripts adjoin the answer without a blank: only ASCII makes words here.
    return re.compile(
        r"(?<![\w.])(?:(?:torch\.)?cuda[._]is_available(?:\(\))?|is_available\(\))[`\"']{0,2}"
        rf"(?:[\s:=>#`'\"-]|\b(?:{_BETWEEN})\b|{whole_words_for('answers')}){{1,12}}"
        r"(?P<answer>true|false)\b",
        re.IGNORECASE | re.ASCII,
    )


_NAME = "CUDA's availability"


@importer(_NAME, Rank.PROSE)
def read_answers(paste: Paste) -> Snapshot:
    devices = {found["kind"] for line in paste.statements if (found := _OF_TENSORFLOW.search(line[:_LONGEST_LINE]))}
    listed = [_finds("tensorflow", found="GPU" in devices)] if devices else []
    return merge((each_line(paste, _read_line), joined(filter(None, map(_read_line, _broken(paste)))), *listed))


def _broken(paste: Paste) -> Iterator[str]:
    """Sentences that go on below a call that stands in a line of its own."""
    for line, below in pairwise(filter(str.strip, paste.lines)) if "cuda" in paste.text else ():
        text = line.strip()[-_LONGEST_LINE:]
        call = _CALL.search(text)
        if not call or not _GOES_ON.match(below.strip()) or (call["printed"] and below[0].isspace()):
            continue
        asked = call[0].rstrip(")") + ")" if call["printed"] else text
        yield f"{asked} {below.strip().removeprefix(_OF_R)[:_LONGEST_LINE]}"


def _read_line(line: str) -> Snapshot | None:
    text = line[:_LONGEST_LINE]
    if printed := next(facts_in(_NAME, text), None):
        return printed
    if (sentence := _TOLD.search(text)) and not _HEDGED.search(text[: sentence.end()].rpartition(". ")[2]):
        name = next(found for found in sentence.groups() if found).lower()
        return _finds(_SPOKEN.get(name, name), found=False)
    return _answer(text) if any(word in text for word in ("available", "AVAILABLE", "orch", "None")) else None


def _answer(text: str) -> Snapshot | None:
    """What PyTorch answered to a question in the same line; a question back is none."""
    asked = (_NO_CUDA.search(text), _said().search(text) or _LABEL.match(text), _NUMBER.search(text))
    match = next(filter(None, asked), None)
    if match is None or _NO_ANSWER.search(text[: match.end()]) or text.rstrip().endswith("?"):
        return None
    if match.re is _NO_CUDA:
        return with_environment(environment(frameworks=(Framework(source=SOURCE, name="torch", cpu_only=True),)))
    answer = next(each for each in match.groups() if each)
    if match.re is _NUMBER and int(answer):
        return Snapshot(driver=Driver(source=SOURCE, cuda_devices=int(answer)))
    return _finds("torch", found=answer.lower() in ("true", "yes"))


def _finds(name: str, *, found: bool) -> Snapshot:
    return with_environment(environment(frameworks=(Framework(source=SOURCE, name=name, gpu_available=found),)))


_PROVIDERS = re.compile(
    r"^(?P<before>.{0,80}?)(?P<list>\[(?:['\"][A-Za-z]{2,30}ExecutionProvider['\"],? ?){1,12}\])",
    re.IGNORECASE | re.MULTILINE,
)
"""The list as a program prints it, with or without a label."""
_ASKED_OF = re.compile(r"\bget_available_providers\b|\.(?P<session>get_providers)\b")
"""What is asked for a list of providers: the build, or a session, which lists those that it could start."""
_OF_SESSION = re.compile(r"\bsess(?:ion)?\b|\bactive\b|\bin use\b", re.IGNORECASE)
"""What labels a list of a session's."""
_CPU_CHOSEN = re.compile(r"providers ?= ?[\[(] ?['\"]CPUExecutionProvider['\"],? ?[\])]")
_CHOSEN = re.compile(r"providers ?=|set_providers|fall(?:ing|s)? ?back|error|when using|\busing\b|\($", re.IGNORECASE)
"""What stands before a list of the providers that somebody chose."""
_DEVICE = re.compile(
    r"\b(?:onnxruntime|ort|rt)\.get_device\(\)(?:\W|\breturns?\b|\bis\b|\bprints?\b){0,12}(?P<device>CPU|GPU)\b"
)
"""What a build computes on, by its own answer: ``CPU`` is that of a build without providers for GPUs."""
_FOR_CPU = {"CPU", "Azure"}
_NAME_OF_PROVIDER = re.compile(r"(\w{2,30})ExecutionProvider")
_MOST_LINES = 200


@importer("execution providers", Rank.OUTPUT)
def read_providers(paste: Paste) -> Snapshot:
    """ONNX Runtime's execution providers: those of a build, and those that a session could start."""
    facts = list(_lists(paste))
    for place, line in enumerate(paste.lines):
        if ".get_device()" in line and (found := _DEVICE.search("\n".join(paste.lines[place : place + 2]))):
            facts.append(_onnxruntime(cpu_only=True if found["device"] == "CPU" else None))
    return joined(facts)


def _lists(paste: Paste) -> Iterator[Snapshot]:
    lines = [line for line in paste.lines if "_providers" in line or "ExecutionProvider" in line]
    text = "\n".join(line.strip(" \t`") for line in lines[:_MOST_LINES])
    asked = list(_ASKED_OF.finditer(text))
    on_purpose, tried = _CPU_CHOSEN.search(text) is not None, matches_fragment("cuda-provider-not-created", text)
    for listed, of_session in _with_questions(asked, list(_PROVIDERS.finditer(text))):
        if _CHOSEN.search(listed["before"]):
            continue
        on_cpu = _FOR_CPU.issuperset(_NAME_OF_PROVIDER.findall(listed["list"]))
        if not (of_session or _OF_SESSION.search(listed["before"]) or (on_cpu and tried)):
            of_build = question("onnxruntime.get_available_providers()")
            yield from filter(None, [of_build.meaning(listed["list"]) if of_build else None])
        elif on_cpu and not on_purpose:
            yield _onnxruntime(gpu_available=False)


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


def _onnxruntime(**facts: object) -> Snapshot:
    framework = Framework(source=SOURCE, name="onnxruntime", **facts)  # type: ignore[arg-type]
    return with_environment(environment(frameworks=(framework,)))
