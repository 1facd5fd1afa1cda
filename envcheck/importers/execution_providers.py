"""ONNX Runtime's execution providers: those of a build, and those that a session could start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from envcheck.compat.error_lines import matches_fragment
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, joined, with_environment
from envcheck.snapshot import Framework, Snapshot

NAME = "execution providers"
RANK = Rank.OUTPUT

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
_MOST_PROVIDERS = 20
_MOST_LINES = 200


def read(paste: Paste) -> Snapshot:
    return joined((*_lists(paste), *_devices(paste)))


def _devices(paste: Paste) -> Iterator[Snapshot]:
    for place, line in enumerate(paste.lines):
        if ".get_device()" in line and (found := _DEVICE.search("\n".join(paste.lines[place : place + 2]))):
            yield _onnxruntime(cpu_only=True if found["device"] == "CPU" else None)


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
            yield of_build(listed["list"])
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


def of_build(answer: str) -> Snapshot:
    """The providers that ONNX Runtime was built with; that CUDA's is among them proves no GPU."""
    names = tuple(_NAME_OF_PROVIDER.findall(answer))[:_MOST_PROVIDERS]
    return _onnxruntime(providers=names or None, cpu_only=True if set(names) <= _FOR_CPU else None)


def _onnxruntime(**facts: object) -> Snapshot:
    framework = Framework(source=SOURCE, name="onnxruntime", **facts)  # type: ignore[arg-type]
    return with_environment(environment(frameworks=(framework,)))
