"""What Python answers when a framework is asked: prompts (``>>>``, ``In [1]:``), ``python -c``, and labelled answers.

Each question that is known has a pattern for its answer, so that several in one ``print`` are told apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile
from typing import Any, NamedTuple

import msgspec
from packaging.utils import canonicalize_name

from envcheck.importers.assemble import NAMED, OF_MODULE
from envcheck.importers.formats.availability import of_build
from envcheck.importers.importer import Rank, environment, importer, joined, with_environment
from envcheck.importers.paste import SOURCE, Paste
from envcheck.model.snapshot import Distribution, Driver, Environment, Framework, Gpu, Listing, Snapshot, frameworks_in
from envcheck.model.versions import CudnnVersion

_ADJOINED = re.compile(
    r"[`'\"]{0,2}\b(torch\.(?:version\.cuda|cuda\.is_available)(?:\(\))?)[`'\"]{0,2} [`'\"]{0,2}(True|False|None)\b"
)
"""A question and its answer with nothing between them, as in "torch.version.cuda None"."""
_LISTED = re.compile(
    r"get_arch_list(?:\(\))?[`'\")]{0,3}[\s:=-]{0,3}[a-z ]{0,24}[\s:=>→]{0,4}[`'\"]{0,2}(\[[^\[\]]{4,400}\])"
)
"""The list of GPU code in a sentence or behind a label; its commas are not those of the sentence."""
_PROMPT = re.compile(r"(?:>>>|In ?\[[0-9]{0,4}\]:|\.\.\.:)\s?(.{1,600})$")
_COMMAND = re.compile(r".{0,80}?\bpython[0-9.]{0,5}(?:\.exe)? (?:-[A-Za-z] )?-c ?[\"'](.{1,600})[\"']\s*$")
_OUT = re.compile(r"Out ?\[[0-9]{0,4}\]: ?")
_LABELLED = re.compile(
    r"[-*•\s`\"'(]{0,8}(.{1,80}?)[`\"']{0,2}\s{0,8}"
    r"(?:(?:still|always|also|only|just|now|keeps?|then|simply|but|and) ){0,3}"
    r"(?:=>|->|==|[:=→#]|returns?|returned|returning|gives?|gave|is|was|prints?|printed|shows?|showed|yields?|outputs?|"
    r"reports?|says|lists?|evaluates to|I get)"
    r"(?: (?:me|us|still|back|always|now|only|just))?\s{1,8}(?:prints )?[`\"']{0,2}(.{1,200}?)[`\"']{0,2}\.?\s*$"
)
_PRINT = re.compile(r"print\s?\((.*)\)\s*;?$")
_DEVICES = re.compile(r"(?:Out ?\[[0-9]{0,4}\]: ?)?\[PhysicalDevice\(name=.{1,2000}\]$")
_CALL = re.compile(
    r"\b(?:torch|tf|tensorflow|jax|ort|onnxruntime|cupy|paddle|numba|llama_cpp|cudnn)\.|\[PhysicalDevice\(|\(GPU\?\)|\bGPU:[0-9]|cuda:[0-9]|CUDA:[0-9]|\(cuda\)|\.__version__"
    r"|CPUExecutionProvider['\"]|\b[Cc]uda [Aa]vailable\b|\bCUDA available\b"
    r"|\bGPU available: False|\btorch[- ][0-9.]{3,12}(?:\+cu[0-9]+)? CPU\b"
)
"""Every question contains one of these."""
_TRANSFORMERS = re.compile(
    r"PyTorch version \(GPU\?\): ([0-9]{1,2}\.[0-9]{1,3}[0-9A-Za-z.+]{0,40}) \((True|False)\)", re.IGNORECASE
)
"""What transformers and its relatives print after they asked torch."""
_LOGS = (
    ("tensorflow", re.compile(r"Created (?:TensorFlow )?device .{0,80}\bGPU:[0-9]+ with [0-9]+ MB memory")),
    (
        "torch",
        re.compile(r"\bGPU available: True \(cuda\)|\btorch-[0-9.]+(?:\+cu[0-9]+)? CUDA:[0-9]|^Device: cuda:[0-9] "),
    ),
)
"""Lines with which frameworks, and what is built on them, say which device they took."""
_TOOK_CPU = re.compile(r"^GPU available: False\b|\bYOLO.{1,80}\btorch[- ][0-9.]{3,12}(?:\+cu[0-9]+)? CPU\b")
"""What Lightning and Ultralytics' programs print where PyTorch has no GPU, or was told to leave it."""
_ASKED_FOR_CPU = re.compile(r"\b(?:device|accelerator)\b[\s=:'\"]{1,4}cpu\b", re.IGNORECASE)
_MODULE = re.compile(r"([A-Za-z]\w{1,40})\.__version__")
_SHORT = {"np": "numpy"}
"""Modules by the names under which they are imported."""
_MOST_ANSWERS = 3
"""Lines below a question among which its answer is looked for."""

_VERSION = r"'?\"?([0-9]{1,2}\.[0-9]{1,3}[0-9A-Za-z.+]{0,40})'?\"?"
_TRUE = r"([Tt]rue|[Ff]alse)"
_LIST = r"(\[.*?\])(?=$|\s|,)"
_SPOKEN = {
    "cuda available": "torch.cuda.is_available()",
    "torch.cuda.is_available": "torch.cuda.is_available()",
    "torch version": "torch.__version__",
    "pytorch version": "torch.__version__",
}
"""How questions are labelled."""

_PLUGIN = re.compile(r"\bjax\[|pjrt|\bcuda_?-?1[0-9]|cuda-?plugin|backend", re.IGNORECASE)
_RELEASE_OF_JAX = re.compile(r"\bjax(?:lib)?\b\W{1,40}(?:version\W{1,4})?[0-9]+\.[0-9]", re.IGNORECASE)
_LONGEST_TEXT = 1 << 20
_CODE_LINE = re.compile(r"(?:import |from |#|[A-Za-z_][\w.]{0,60} ?= |`{3}|def |with |$)")
_LABEL_OF_OUTPUT = re.compile(
    r"(?:`{3}\w{0,10}|\W{0,4}(?:console |the )?(?:output|result|prints?|out|returns?|gives?|i get)\b.{0,20}|)$",
    re.IGNORECASE,
)
_MOST_QUESTIONS = 12
_CPU_CHOSEN = (
    ("jax", re.compile(r"\bjax_platform(?:s|_name)[\"'] ?, ?[\"']cpu\b")),
    ("tensorflow", re.compile(r"\bset_visible_devices\(\[\], ?(?:device_type ?= ?)?['\"]GPU['\"]")),
)
"""How code tells a framework to leave the GPU."""
_LOGGED_MEANWHILE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[IWE][0-9]{4}|WARNING|.*Warning|\s*warnings\.warn")
"""What may stand between a question and its answer: TensorFlow logs while it is asked."""
_LONGEST_NAME = 80
_TF = r"(?:tf|tensorflow)"


class _Question(NamedTuple):
    asked: re.Pattern[str]
    answer: str
    """A regular expression with one group."""
    meaning: Callable[[str], Snapshot | None]


@importer("Python session", Rank.OUTPUT)
def read(paste: Paste) -> Snapshot:
    found = joined(_answers(paste))
    if found.environments is None:
        return found
    text = paste.text[:_LONGEST_TEXT]
    on_purpose = {name for name, pattern in _CPU_CHOSEN if pattern.search(text)}
    # JAX that lists the CPU alone and complains of nothing, in a text without a word of a CUDA plug-in, has none;
    # unless the text names no release of JAX either: then it may have left out the plug-in's, too.
    no_plugin = _RELEASE_OF_JAX.search(text) and not _PLUGIN.search(text)
    environments: list[Environment] = []
    for each in found.environments.items:
        frameworks: list[Framework] = []
        for framework in frameworks_in(each):
            changes: dict[str, Any] = {}
            if framework.gpu_available is False and framework.name in on_purpose:
                changes["gpu_available"] = None
            elif framework.gpu_available is False and framework.name == "jax" and no_plugin:
                changes["cpu_only"] = True
            frameworks.append(msgspec.structs.replace(framework, **changes))
        listing = msgspec.structs.replace(each.frameworks, items=tuple(frameworks)) if each.frameworks else None
        environments.append(msgspec.structs.replace(each, frameworks=listing))
    listed = msgspec.structs.replace(found.environments, items=tuple(environments))
    return msgspec.structs.replace(found, environments=listed)


def _answers(paste: Paste) -> Iterator[Snapshot]:
    lines = paste.lines
    places = [place for place, line in enumerate(lines) if _CALL.search(line)]
    for place in places:
        text = lines[place].strip(" \t`")
        logged = _logged(text, paste)
        if logged is not None:
            yield logged
        elif asked := _PROMPT.match(text) or _COMMAND.match(text):
            below = lines[place + 1 : place + 1 + _MOST_ANSWERS]
            yield from _below(asked[1], below)
            yield from _nothing_printed(asked[1], below) if text.startswith(">>>") else ()
        elif listed := _LISTED.search(text):
            yield from filter(None, (_architectures(listed[1]),))
        else:
            for part in re.split(r"[;|]|, (?=\D)|\. ", text):
                if labelled := _LABELLED.match(part) or _ADJOINED.search(part):
                    yield from _beside(_SPOKEN.get(labelled[1].strip("`'\" ").lower(), labelled[1]), labelled[2])
    yield from _scripted(lines, places)


def _logged(text: str, paste: Paste) -> Snapshot | None:
    """What a line of a program's log says without having been asked."""
    if found := _TRANSFORMERS.search(text):
        return _framework("torch", version=found[1], gpu_available=found[2] == "True")
    if using_gpu := next((name for name, pattern in _LOGS if pattern.search(text)), None):
        return _framework(using_gpu, gpu_available=True)
    if _TOOK_CPU.search(text) and not _ASKED_FOR_CPU.search(paste.text[:_LONGEST_TEXT]):
        return _framework("torch", gpu_available=False)
    return _framework("tensorflow", gpu_available="GPU" in text) if _DEVICES.match(text) else None


def _scripted(lines: tuple[str, ...], places: Sequence[int]) -> Iterator[Snapshot]:
    """The answers below a script whose lines ask: as many lines as it prints, in its order."""
    asked: list[_Question] = []
    for number, place in enumerate(places):
        text = lines[place].strip()
        known = [] if _PROMPT.match(text) else _questions(text)
        alone = len(known) == 1 and (_PRINT.match(text) or _question(text))
        asked = [*asked, known[0]] if alone and len(asked) < _MOST_QUESTIONS else []
        end = places[number + 1] if number + 1 < len(places) else len(lines)
        below = [line.strip() for line in lines[place + 1 : min(end, place + 1 + _MOST_QUESTIONS + _MOST_ANSWERS)]]
        printed = list(dropwhile(_CODE_LINE.match, below))
        if asked and printed:
            answers = [text for line in printed if not _LABEL_OF_OUTPUT.match(text := line.removeprefix("# "))]
            pairs = zip(asked, answers, strict=False)
            matches = [(each, found) for each, answer in pairs if (found := re.fullmatch(each.answer, answer))]
            if len(matches) == len(asked):
                yield from filter(None, (question.meaning(found[1]) for question, found in matches))
            asked = []


def _below(code: str, lines: tuple[str, ...]) -> Iterator[Snapshot]:
    """The meanings of what is printed below a question."""
    questions = _questions(code)
    if not questions:
        return
    pattern = re.compile(r"\s*\(?" + r"[\s,;|]{1,4}".join(question.answer for question in questions) + r"\)?\s*$")
    for line in lines:
        text = _OUT.sub("", line.strip()).removeprefix("# ")
        if found := pattern.match(text):
            pairs = zip(questions, found.groups(), strict=True)
            yield from filter(None, (question.meaning(answer) for question, answer in pairs))
            return
        if text and (_PROMPT.match(line.strip()) or (len(questions) == 1 and not _LOGGED_MEANWHILE.match(text))):
            return


def _nothing_printed(code: str, lines: tuple[str, ...]) -> Iterator[Snapshot]:
    """The meaning of no answer: a prompt prints nothing where a value is None."""
    question = _question(code.strip())
    following = next((line for line in lines if line.strip()), "")
    if question and "None" in question.answer and following.lstrip().startswith(">>>"):
        yield from filter(None, [question.meaning("None")])


def _beside(code: str, answer: str) -> Iterator[Snapshot]:
    questions = _questions(code)
    if len(questions) != 1:
        return
    # A name has blanks: it ends with the answer, where that is nothing else.
    ends = (r"[\s,;.)]{0,3}$", r"(?:$|[\s,;.)])")
    found = next(filter(None, (re.match(f"{questions[0].answer}{end}", answer) for end in ends)), None)
    yield from filter(None, [questions[0].meaning(found[1]) if found else None])


def _questions(code: str) -> list[_Question]:
    """The questions of a line of code in their order; none where one of several is not known."""
    statement = code.rpartition(";")[2].strip() or code.strip()
    printed = _PRINT.match(statement)
    parts = _split(printed[1] if printed else statement)
    found = [_question(part) for part in parts if not re.fullmatch(r"\s*[\"'].*[\"']\s*", part)]
    known = [question for question in found if question]
    return known if len(known) == len(found) and len(known) == len(parts) else []


def _split(arguments: str) -> list[str]:
    """The arguments of a call, without looking into brackets."""
    parts, depth, last = [""], 0, 0
    for place, letter in enumerate(arguments):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts[-1] = arguments[last:place].strip()
            parts.append("")
            last = place + 1
    parts[-1] = arguments[last:].strip()
    return parts


def _question(code: str) -> _Question | None:
    known = next((question for question in _QUESTIONS if question.asked.fullmatch(code.strip())), None)
    module = _MODULE.fullmatch(code.strip())
    if known is None and module:
        name = canonicalize_name(_SHORT.get(module[1], module[1]))
        return _Question(_MODULE, _VERSION, lambda answer: _listed(name, answer))
    return known


# --- meanings -----------------------------------------------------------------------------------------------------


def _framework(name: str, **facts: object) -> Snapshot:
    return with_environment(environment(frameworks=(Framework(source=SOURCE, name=name, **facts),)))  # type: ignore[arg-type]


def _of_version(name: str) -> Callable[[str], Snapshot]:
    def meaning(answer: str) -> Snapshot:
        if name == "torch":
            return _framework(name, version=answer)
        return _listed(name, answer, (Framework(source=SOURCE, name=name, version=answer),))

    return meaning


def _listed(name: str, version: str, frameworks: tuple[Framework, ...] = ()) -> Snapshot:
    package = Distribution(source=SOURCE, name=name, version=version, read=OF_MODULE)
    return with_environment(environment(distributions=(package,), frameworks=frameworks))


def _torch_cuda(answer: str) -> Snapshot:
    """``torch.version.cuda`` is None for every build without CUDA."""
    return _framework("torch", cpu_only=True) if answer == "None" else _framework("torch", cuda=answer, cpu_only=False)


def _available(name: str) -> Callable[[str], Snapshot]:
    return lambda answer: _framework(name, gpu_available=answer.lower() == "true")


def _devices(name: str, gpu: str) -> Callable[[str], Snapshot]:
    return lambda answer: _framework(name, gpu_available=re.search(gpu, answer, re.IGNORECASE) is not None)


def _built_with_cuda(answer: str) -> Snapshot:
    return _framework("tensorflow", cpu_only=answer.lower() == "false")


def _name(answer: str) -> Snapshot | None:
    name = answer.strip("'\" ")
    gpu = Gpu(source=SOURCE, label=f"{NAMED}{name}", name=name)
    return Snapshot(gpus=Listing(items=(gpu,))) if 2 < len(name) <= _LONGEST_NAME else None


def _counted(answer: str) -> Snapshot:
    """The number of devices that CUDA shows the process; a program that sees none may have no CUDA at all."""
    if answer == "0":
        return _framework("torch", gpu_available=False)
    return Snapshot(driver=Driver(source=SOURCE, cuda_devices=int(answer)))


def _cudnn(answer: str) -> Snapshot | None:
    return _framework("torch", cudnn=str(CudnnVersion.decode(int(answer)))) if answer != "None" else None


def _capability(answer: str) -> Snapshot | None:
    found = re.match(r"\(([0-9]{1,2}), ?([0-9])\)", answer)
    if found is None:
        return None
    capability = f"{found[1]}.{found[2]}"
    return Snapshot(
        gpus=Listing(items=(Gpu(source=SOURCE, label=f"{NAMED}{capability}", compute_capability=capability),))
    )


def _architectures(answer: str) -> Snapshot | None:
    """The list of ``get_arch_list`` is empty where no GPU can be used, whatever the build holds."""
    code = tuple(re.findall(r"(?:sm|compute)_[0-9]{2,3}[af]?", answer))[:40]
    return _framework("torch", gpu_code=code, cpu_only=False) if code else None


_QUESTIONS: tuple[_Question, ...] = (
    _Question(re.compile(r"torch\.(?:__version__|version\.__version__)"), _VERSION, _of_version("torch")),
    _Question(re.compile(r"torch\.version\.cuda"), r"'?\"?([0-9]{1,2}\.[0-9]{1,2}|None)'?\"?", _torch_cuda),
    _Question(re.compile(r"torch\.cuda\.is_available\(\)"), _TRUE, _available("torch")),
    _Question(
        re.compile(r"torch\.cuda\.get_device_name\([^)]{0,80}(?:\(\))?\)"),
        r"('[^']{3,80}'|\"[^\"]{3,80}\"|[A-Z][\w -]{2,80}?)",
        _name,
    ),
    _Question(
        re.compile(r"torch\.cuda\.get_device_capability\([^)]{0,40}\)"), r"(\([0-9]{1,2}, ?[0-9]\))", _capability
    ),
    _Question(re.compile(r"torch\.cuda\.get_arch_list\(\)"), _LIST, _architectures),
    _Question(re.compile(r"torch\.cuda\.device_count\(\)"), r"([0-9]{1,4})", _counted),
    _Question(re.compile(r"(?:torch\.backends\.)?cudnn\.version\(\)"), r"([0-9]{4,6}|None)", _cudnn),
    _Question(re.compile(rf"{_TF}\.(?:__version__|version\.VERSION)"), _VERSION, _of_version("tensorflow")),
    _Question(re.compile(rf"{_TF}\.test\.is_built_with_(?:cuda|gpu_support)\(\)"), _TRUE, _built_with_cuda),
    _Question(re.compile(rf"{_TF}\.test\.is_gpu_available\([^)]{{0,80}}\)"), _TRUE, _available("tensorflow")),
    _Question(
        re.compile(rf"{_TF}\.test\.gpu_device_name\(\)"),
        r"('[^']{0,40}'|\"[^\"]{0,40}\")",
        _devices("tensorflow", r"gpu"),
    ),
    _Question(
        re.compile(rf"{_TF}\.config\.(?:experimental\.)?list_(?:physical|logical)_devices\(['\"]GPU['\"]\)"),
        _LIST,
        _devices("tensorflow", r"gpu"),
    ),
    _Question(re.compile(r"jax\.(?:__version__|version\.__version__)"), _VERSION, _of_version("jax")),
    _Question(
        re.compile(r"jax\.(?:local_)?devices(?:\(\)| \([0-9]{1,4} total, [0-9]{1,4} local\)?)"),
        _LIST,
        _devices("jax", r"cuda|gpu"),
    ),
    _Question(re.compile(r"jax\.default_backend\(\)"), r"'?([a-z]{3,6})'?", _devices("jax", r"gpu|cuda")),
    _Question(re.compile(r"(?:ort|onnxruntime)\.__version__"), _VERSION, _of_version("onnxruntime")),
    _Question(
        re.compile(r"(?:ort|onnxruntime)\.get_available_providers\(\)"),
        _LIST,
        of_build,
    ),
    _Question(re.compile(r"cupy\.__version__"), _VERSION, _of_version("cupy")),
    _Question(re.compile(r"cupy\.cuda\.is_available\(\)"), _TRUE, _available("cupy")),
    _Question(re.compile(r"numba\.cuda\.is_available\(\)"), _TRUE, _available("numba")),
    _Question(
        re.compile(r"paddle\.(?:device\.)?get_device\(\)"),
        r"'?(cpu|gpu:[0-9]{1,3})'?",
        _devices("paddlepaddle", r"gpu"),
    ),
    _Question(
        re.compile(r"paddle\.(?:device\.)?is_compiled_with_cuda\(\)"),
        _TRUE,
        lambda answer: _framework("paddlepaddle", cpu_only=answer.lower() == "false"),
    ),
    _Question(re.compile(r"paddle\.__version__"), _VERSION, _of_version("paddlepaddle-gpu")),
    _Question(
        re.compile(r"paddle\.version\.cudnn\(\)"),
        r"'?([0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,2})?)'?",
        lambda answer: _framework("paddlepaddle-gpu", cudnn=answer),
    ),
    _Question(
        re.compile(r"paddle\.version\.cuda\(\)"),
        r"'?([0-9]{1,2}\.[0-9]{1,2})'?",
        lambda answer: _framework("paddlepaddle-gpu", cuda=answer),
    ),
    _Question(
        re.compile(r"llama_cpp\.llama_supports_gpu_offload\(\)"),
        _TRUE,
        lambda answer: _framework("llama-cpp-python", cpu_only=answer.lower() == "false"),
    ),
)
