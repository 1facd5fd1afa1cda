"""Find components, versions and GPU models in a line, however people and programs write them.

The names are those of the matrix's rows, and how people say them (``names.toml``). What a sentence says of another
machine, of a wish or of a requirement is no fact about this one: such mentions are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from envcheck.importers.prose.hedges import (
    ASKED_ABOUT,
    AWAY,
    PROGRAM,
    another,
    before_error,
    clauses,
    is_asked_for,
    is_list,
    own,
)
from envcheck.importers.prose.languages import words_for
from envcheck.knowledge.load import load_matrix
from envcheck.text.lazy import lazy_pattern

LONGEST = 1_000
"""Most characters of a line in which mentions are looked for."""

TORCH_CUDA = "torch.version.cuda"
"""The component of a mention that tells what PyTorch was built with."""

DRIVER_CUDA = "driver.cuda"
"""The component of a mention that tells the newest CUDA that the driver supports."""

_NO_SPEECH = frozenset(
    {"kernel-module-open", "torch-extension", "tensorrt-engine", "nvcc", "caffe", "l4t", "jetpack", "cuda-toolkit"}
)
"""Names in the matrix that stand for more than a version that people state, or that other readers know."""


_VERSION = (
    r"[0-9]{1,4}(?:\.[0-9]{1,5}){1,3}(?:\.?(?:a|b|rc|dev|post)[0-9]{1,10}){0,2}"
    r"(?:\+[A-Za-z0-9](?:[A-Za-z0-9._]{0,40}[A-Za-z0-9])?)?"
)


@cache
def _version_word() -> str:
    return rf"(?:version|ver|release|build|{words_for('version')})"


@cache
def _link() -> str:
    """What may stand between a name and its version."""
    return (
        r"(?:\[[A-Za-z0-9_, -]{1,40}\])?"
        r"(?:[`'\"*]{0,3}(?: (?:api|server|engine|package|library|wheel)){0,2}[-_. ]{0,3}"
        rf"{_version_word()}_{{0,2}}(?: or commit id)?|[`'\"*]{{0,3}} (?:package|wheel))?"
        r"(?: ?\((?:(?:gpu\?|cuda|pip|conda|installed)\)|[^()]{1,60}\) ?:))?"
        r"[\"'`*_]{0,4}\s{0,40}(?:[:=|@/-]{1,2}>?|→|\.{3,60}|is|at|✅|[は是为為는은])?\s{0,40}[\"'`*(\[]{0,4}"
        # What `tf.version.GIT_VERSION` prints before the version.
        r"(?:(?:v[0-9.]{3,12}(?:-rc[0-9]{1,2})?-[0-9]{1,6}-g[0-9a-f]{5,40}|unknown)['\"]?,? ['\"]?)?v?"
        r"(?:torch|tf|cuda|onnx\w{5,9} |ort )?"
    )


_OR_OTHER = r"\s?(?:or|and) (?:newer|later|higher|above|greater|older|lower|below|up)"
_AFTER = rf"(?![\w*]|-[A-Za-z]|\.[0-9]|\+(?:\s|$)|\s?- ?[0-9]|{_OR_OTHER})"


@cache
def _driver() -> re.Pattern[str]:
    named, version = words_for("driver"), _version_word()
    return re.compile(
        r"(?<![\w-])"
        r"(?:(?:nvidia|cuda|gpu|graphics|display|host|geforce|game ready|studio|studio/game ready)[ _-]{1,2})?"
        rf"(?:(?:win(?:dows)?|linux)[ _]?[0-9]{{0,2}} )?(?:drivers?|{named})(?:-[0-9]{{3}}(?:-open|-server)?)?"
        rf"(?:[ _.-]?{version})?(?:[._]full)?[\"'`*_]{{0,4}}\s{{0,40}}"
        r"(?:[:=|@-]{1,2}|\.{3,60}|is|at|[は是为為는은])?\s{0,40}[\"'`*(\[]{0,4}(?:nvidia (?:v: )?)?v?"
        r"(?P<version>[0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2,3})?)(?![\w]|\.[0-9]|\+)"
        r"|(?<![\w-])nvidia(?:-(?:driver|open|dkms|utils|smi))?(?:[ -]|: | (?:says|shows|reports|gives|prints) )"
        r"(?P<bare>[3-6][0-9]{2}\.[0-9]{2,3}(?:\.[0-9]{2,3})?)(?![\w]|\.[0-9])"
        r"|(?<![\w.])v?(?P<before>[3-6][0-9]{2}\.[0-9]{2,3}(?:\.[0-9]{2,3})?)"
        r" (?:(?:nvidia|cuda|gpu|graphics|game ready|studio|linux|windows|open) ){0,2}drivers?\b"
        r"|(?<![\w-])(?:(?:nvidia|geforce|gpu|graphics|cuda) (?:graphics )?)?"
        r"(?:drivers?(?: version| branch| series)?(?:[ :=]{1,3}| (?:is|was) )"
        rf"|(?:{named})(?: ?{version})?[ :=是为為は는은]{{1,3}})"
        r"R?(?P<branch>[3-6][0-9]{2})(?:\.?xx?)?(?!\w|\.[0-9]|-|%| ?(?:MB|MiB|GB|W)\b)"
        rf"(?!\+|{_OR_OTHER})"
        rf"|(?<![\w-])nvidia-driver-(?P<package>[3-6][0-9]{{2}})(?:-open|-server)?(?![\w.-]|=|{_OR_OTHER})"
        r"|(?<![\w.])(?:R(?P<of_branch>[3-6][0-9]{2})|(?P<this_branch>[3-6][0-9]{2})(?: nvidia)?) drivers?\b"
        r"|(?<![\w.])(?P<windows>[23][0-9]\.[0-9]\.1[0-9]\.[0-9]{4})(?![\w.])",
        # Letters of other scripts adjoin names and numbers without a blank: only ASCII makes words here.
        re.IGNORECASE | re.ASCII,
    )


_BRANCHES = ("branch", "package", "of_branch", "this_branch")
"""The groups of a driver's branch, where its release is not said."""


@cache
def _may_name_driver() -> re.Pattern[str]:
    return re.compile(rf"driver|nvidia|{words_for('driver')}|[23][0-9]\.[0-9]\.1[0-9]\.", re.IGNORECASE)


_TAG = lazy_pattern(r"[ (/,+_-]{1,3}(?:with |for |and |using |built with |compiled with )?cu(?P<tag>[0-9]{2,3})\b")
_BUILD = lazy_pattern(
    r"[\"'`)]{0,2}\s?(?:\(|\+|/|(?:with|for|using|on|built (?:with|for)|compiled (?:with|for)|\(built with)\s)\s?"
    r"(?:the )?cuda(?:[ -]?(?:toolkit|version|runtime))?[ :=]{0,3}(?P<cuda>[0-9]{1,2}\.[0-9]{1,2})(?![\w.])"
    r"|[ =]py[0-9.]{1,5}_cuda(?P<of_conda>[0-9]{1,2}\.[0-9]{1,2})(?:\.[0-9]{1,3})?_cudnn",
    re.IGNORECASE,
)
_OF_BUILD = lazy_pattern(
    r"(?<![\w./+-])(?:(?:py)?torch[ _.-]{1,3}(?:version[._])?cuda(?:[ _.-]version)?|cuda(?: version)? "
    r"(?:\((?:py)?torch\)|(?:used by|used to build|in|of) (?:py)?torch))[\"'`*]{0,3}"
    r"\s{0,40}(?:[:=|]{1,2}|\.{3,60}|->|is\b)?\s{0,40}[\"'`*]{0,3}"
    r"(?P<cuda>[0-9]{1,2}\.[0-9]{1,2})(?![\w.])",
    re.IGNORECASE,
)
"""The CUDA that PyTorch was built with, as a label of its own."""
_USED_FOR = lazy_pattern(r"\bused (?:to build|for building|to compile) $", re.IGNORECASE)
"""What stands before the name of something whose part's version follows: "ROCM used to build PyTorch: 5.7"."""
_LONGEST_USE = 20
_WORKS = lazy_pattern(r"[`'\"*)]{0,3} (?:works?|worked|is fine)(?: (?:fine|well|too))?(?=[,;.)\s]*$)", re.IGNORECASE)
"""What follows a version that works, in a sentence beside one that does not."""
_PAIR = lazy_pattern(
    r"\bcuda ?[/,&] ?cudnn(?: versions?)?(?: ?\([^()]{1,60}\))?[\"'`*]{0,3}\s{0,40}[:=|]\s{0,40}v?"
    r"(?P<cuda>[0-9]{1,2}\.[0-9]{1,2})(?:\.[0-9]{1,3})?"
    r"(?: ?[/,|&] ?v?(?P<cudnn>[0-9]{1,2}(?:\.[0-9]{1,3}){0,3}))?(?![\w.])",
    re.IGNORECASE,
)
"""Both in one line of a form; of a single version people mean CUDA's."""
_OF_SMI = lazy_pattern(
    r"\bnvidia-smi\b[`'\"*)]{0,3}"
    r"(?: (?:shows?|says|reports?|gives?|prints?|lists?|displays?|tells)(?: me)?)?[ :=(]{0,3}"
    r"(?:(?:the |a )?cuda(?: version)?)[ :=]{0,3}(?P<said>[0-9]{1,2}\.[0-9])(?![\w.]?[0-9])"
    r"|\bcuda(?: version)?[ :=]{1,3}(?P<beside>[0-9]{1,2}\.[0-9])"
    r" ?\(?(?:in|by|from|according to|per|as shown (?:in|by)|via)? ?(?:the )?[`'\"]?nvidia-smi\b"
    r"|\bcuda(?: version)? ?\((?:nvidia-smi|driver)\)[ :=]{1,3}(?P<labelled>[0-9]{1,2}\.[0-9])(?![\w.]?[0-9])"
    r"|\bdriver(?: version)?[ :=]{1,3}[3-6][0-9]{2}\.[0-9.]{2,8}[ ,;]{1,2}(?:\(|with |which supports "
    r"|supports |for )CUDA(?: version)?"
    r"[ :=]{1,3}(?P<of_driver>[0-9]{1,2}\.[0-9])(?![\w.]?[0-9])"
    r"|\bnvidia-smi\b.{0,40}\bdriver(?: version)?[ :=]{1,3}[3-6][0-9]{2}\.[0-9.]{2,8}[ ,;/]{1,3}(?:and )?CUDA"
    r"(?: version)?[ :=]{1,3}(?P<shown>[0-9]{1,2}\.[0-9])(?![\w.]?[0-9])"
    r"|\bdriver (?:only )?supports (?:up to )?cuda[ :=]{1,3}(?P<supported>[0-9]{1,2}\.[0-9])(?![\w.]?[0-9])",
    re.IGNORECASE | re.ASCII,
)
"""The newest CUDA that the driver supports, as nvidia-smi shows it."""
_FOR_CPU = lazy_pattern(
    r"(?: from [\w.-]{2,20})?[ (,/-]{1,3}(?:py[0-9.]{1,5}_cpu_|cpu_py|\(?cpu(?:[ -]only)?\)|"
    r"cpu(?:[ -]only)?(?: (?:build|version|wheel|variant))\b|cpu[ -]only\b)",
    re.IGNORECASE,
)
"""What says beside PyTorch's version that the build is for the CPU."""
_CAPABILITY = lazy_pattern(
    r"(?:compute[ _]?cap(?:ability)?|capability|\bcc|\barch)[\"'`*]{0,3}\s?(?:[:=|]{0,2}|of|is)\s?[\"'`*(]{0,3}(?:sm_)?"
    r"([1-9][0-9]?)(?:\.|, ?)([0-9])(?!\w|\.[0-9])",
    re.IGNORECASE,
)


_OF_PROJECT = lazy_pattern(r"[A-Za-z]{2}")
"""Words between a name and its version, as of "ort version: 1.20"."""
_OF_DRIVER = lazy_pattern(r"\bNVIDIA-SMI\b|\bDriver Version: [0-9.]{5,12} {2,}")
"""The head of nvidia-smi's table, whose CUDA is the newest that the driver supports."""


@cache
def _tells() -> re.Pattern[str]:
    """Every line with a mention contains one of these, in lower case."""
    return re.compile(
        r"torch|tensor|cuda|cudnn|driver|python|py[ 23]|jax|tf|nccl|numpy|numba|cupy|onnx|ort|paddle|flash|vllm|"
        r"xformers|ctranslate|nvcc|llama|sglang|transformers|deepspeed|bitsandbytes|triton|rapids|cudf|cuml|mxnet|cntk|caffe2|transformer|"
        rf"{words_for('driver')}|{words_for('graphics-card')}|"
        r"nvidia|rtx|gtx|geforce|tesla|quadro|titan|jetson|\borin\b|\bagx\b|\bdgx\b|mx[1-5]|gpu|capability|"
        r"[ahblkmptv][0-9]|gb[0-9]|\b[1-5]0[5-9]0|\b16[56]0",
        re.ASCII,
    )


_ABOUT = lazy_pattern(
    r"\b(?:the )?version of (?:the )?(?P<name>[\w.+ -]{2,24}?)(?P<link> ?(?:is|was|=|:)+ ?)", re.IGNORECASE
)
"""The order of words in "the version of torch is 2.0.1"."""
_CHANGED = lazy_pattern(
    r"(?:\b(?:after|since|when) (?:I |we )?)?\b(?:(?:up|down)graded|updated|switched|bumped"
    r"|(?<=after )(?:(?:up|down)grading|updating|switching)|(?<=since )(?:(?:up|down)grading|updating|switching)) "
    r"(?:my |the |our )?(?P<name>[A-Za-z][\w -]{1,24}?)(?: version)?(?: from v?[0-9][\w.+-]{0,24})? to "
    r"(?:(?P=name) |version )?v?(?P<version>[0-9][\w.+-]{0,24}\w)",
    re.IGNORECASE,
)
"""A change that was made: the newer version is the one that is here."""
_CHANGES = ("graded", "grading", "updat", "switch", "bumped")
"""One of these stands in each of them."""
_CURED = lazy_pattern(
    r"(?<!no longer )(?<!not )(?<!n't )(?<!stopped )(?<!nothing )(?<!never )"
    r"\b(?:works?|working|worked|fix\w*|solv\w*|help\w*|fine|gone|resolv\w*|by (?:up|down)grading|disappear\w*)\b",
    re.IGNORECASE,
)
"""What says that a change ended the problem: the version of the problem was another one."""
_DIGIT, _DOTTED = lazy_pattern(r"[0-9]"), lazy_pattern(r"[0-9]\.[0-9]")
_NAMES_A_GPU = lazy_pattern(r"[0-9]|titan|jetson|dgx|agx|orin", re.IGNORECASE)
_OF_GEFORCE = lazy_pattern(r"[1-5][0-9]{2}0")
"""What parts of a line need: one that names a component, any version, a GPU, or a GeForce by its number alone."""
_UNNUMBERED = lazy_pattern(r"titan|jetson|\bdgx\b")
"""The GPUs and machines whose names have no digit."""


class Mention(NamedTuple):
    """A component and its version, as a line says them."""

    component: str
    version: str
    labelled: bool
    """Whether the line is a list or a label, not a sentence."""
    cuda: str | None = None
    """The CUDA version of the build, where it is said beside."""
    exact: bool = False
    """Whether the package itself is named, not the project or its version."""
    cpu: bool = False
    """Whether it is said beside that the build is for the CPU."""


class NamedGpu(NamedTuple):
    """A GPU model that a line names."""

    model: str
    labelled: bool
    capability: str | None = None


class LineMentions(NamedTuple):
    """What a line mentions."""

    mentions: tuple[Mention, ...]
    gpus: tuple[NamedGpu, ...]
    capability: str | None
    """The compute capability of a GPU whose model the line does not name."""


def mentions_in(line: str) -> LineMentions:
    """Everything that a line mentions."""
    return LineMentions(tuple(mentions(line)), tuple(gpus(line)), capability_of_gpu(line))


def speaks_of_field(text: str) -> bool:
    """Whether a text has a word of this field at all."""
    return _field().search(text.lower()) is not None


@cache
def _field() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:cuda|nvidia|cudnn|nccl|cublas|tensorrt|(?:py)?torch|tensorflow|onnx ?runtime|gpus?|geforce|[rg]tx|vram|"
        r"nvcc|llama\.cpp|ollama|vllm|jetson|nvlink|nvswitch|infiniband|slurm|gres|sglang|triton|jax|cupy|numba|deepspeed|"
        r"comfyui|whisper|llms?|p2p|exit(?:ed)? (?:with )?code (?:132|134|135|137|139)|segfault(?:s|ed)?)\b|"
        rf"^[ \t]{{0,20}}killed[ \t]{{0,20}}$|显存|英伟达|{words_for('graphics-card')}",
        re.MULTILINE | re.ASCII,
    )


def may_mention(line: str) -> bool:
    """Whether it is worth looking for mentions in a line: versions have a digit, and so have most GPUs."""
    text = line[:LONGEST].lower()
    return (_DIGIT.search(text) or _UNNUMBERED.search(text)) is not None and _tells().search(text) is not None


@lru_cache(maxsize=1)  # asked for the versions of a line, then for its GPUs
def _of_a_person(line: str) -> str:
    """What a line says before the error that it quotes; empty where a program speaks."""
    text = before_error(line[:LONGEST])
    return "" if PROGRAM.search(text) else text


def mentions(line: str) -> Iterator[Mention]:
    """The components and versions that a line states of this machine."""
    text = _of_a_person(line)
    if "ersion of" in text:  # "the version of torch is 2.0.1", "updated torch from 2.0 to 2.1"
        text = _ABOUT.sub(r"\g<name> version\g<link>", text)
    if " to " in text and any(map(text.lower().__contains__, _CHANGES)) and not _CURED.search(text):
        text = _CHANGED.sub(r"; \g<name> \g<version>; ", text)
    listed = is_list(text)
    for part in clauses(text, listed=listed):
        if not _DIGIT.search(part) or (not listed and AWAY.match(part)):
            continue
        if _DOTTED.search(part):
            yield from _with_versions(part, listed=listed)
        for found in _driver().finditer(part) if _may_name_driver().search(part) else ():
            if not ((not listed and _is_hedged(part)) or is_asked_for(part, found.start())):
                branch = next(filter(None, map(found.__getitem__, _BRANCHES)), None)
                release = found["version"] or found["bare"] or found["before"] or branch
                if release is None:  # Windows shows 32.0.15.7216: the last five digits are 572.16
                    digits = found["windows"].replace(".", "")[-5:]
                    release = f"{digits[:3]}.{digits[3:]}"
                yield Mention("driver", release, listed or _is_labelled(found))


@lru_cache(maxsize=1)  # asked for each component of a part
def _is_hedged(part: str) -> bool:
    return another().search(part) is not None


def _with_versions(part: str, *, listed: bool) -> Iterator[Mention]:
    """The components whose versions have a dot, as all but those of a driver's branch."""
    if build := _OF_BUILD.search(part):
        yield Mention(TORCH_CUDA, build["cuda"], labelled=True)
    if pair := _PAIR.search(part):
        yield Mention("cuda", pair["cuda"], labelled=True)
        if pair["cudnn"]:
            yield Mention("cudnn", pair["cudnn"], labelled=True)
    rest = _PAIR.sub(" ", _OF_BUILD.sub(" ", part))
    if shown := _OF_SMI.search(rest) if "smi" in part or "river" in part else None:
        yield Mention(DRIVER_CUDA, next(filter(None, shown.groups())), labelled=True)
        rest = _OF_SMI.sub(" nvidia-smi ", rest)
    for found in _names().finditer(rest):
        labelled, component = listed or _is_labelled(found), _component(found["name"].lower())
        of_driver = component == "cuda" and _OF_DRIVER.search(rest) is not None
        of_part = _USED_FOR.search(rest, max(0, found.start() - _LONGEST_USE), found.start())
        works = not listed and _WORKS.match(rest, found.end())
        hedged = not labelled and _is_hedged(part)
        if hedged or of_driver or of_part or works or is_asked_for(rest, found.start()):
            continue
        cuda = _cuda_beside(rest, found) if component == "torch" else None
        cpu = component == "torch" and cuda is None and _FOR_CPU.match(rest[found.end() :]) is not None
        exact = found["name"] == component and not _OF_PROJECT.search(found["link"])
        yield Mention(component, found["version"], labelled, cuda, exact, cpu)


def gpus(line: str) -> Iterator[NamedGpu]:
    """The GPU models that a line says are here, in its order."""
    text = _of_a_person(line)
    listed = is_list(text)
    for part in clauses(text, listed=listed):
        found = [each for each in models(part) if not is_asked_for(part, each[0])]
        if not found or (
            not listed
            and another().search(ASKED_ABOUT.sub("", part.rstrip("?\uff1f ") if own().search(part) else part))
        ):
            continue
        capability = _CAPABILITY.search(part) if len({name for _, name in found}) == 1 else None
        for _, name in found:
            yield NamedGpu(name, listed, f"{capability[1]}.{capability[2]}" if capability else None)


def capability_of_gpu(line: str) -> str | None:
    """The compute capability that a line without a model states of a GPU."""
    text = line[:LONGEST]
    lowered = text.lower()
    if not any(map(lowered.__contains__, ("cap", "cc", "arch"))) or PROGRAM.search(text):
        return None
    for part in clauses(text, listed=is_list(text)):
        found = _CAPABILITY.search(part)
        if found and not another().search(part) and not is_asked_for(part, found.start()) and _OWN_GPU.search(part):
            return f"{found[1]}.{found[2]}"
    return None


_OWN_GPU = lazy_pattern(
    r"\b(?:my|our|have|has|with an?|this|the|GPU|card|device|deviceQuery)\b|^\W{0,6}compute|^\W{0,6}capability",
    re.IGNORECASE,
)


_LABELS = lazy_pattern(r"[:=|]")


def _is_labelled(found: re.Match[str]) -> bool:
    return _LABELS.search(found[0]) is not None


def _cuda_beside(part: str, found: re.Match[str]) -> str | None:
    """The CUDA version that is said of the build just mentioned."""
    rest = part[found.end() :]
    if tag := _TAG.match(rest):
        return f"{tag['tag'][:-1]}.{tag['tag'][-1]}"
    build = _BUILD.match(rest)
    return build["cuda"] or build["of_conda"] if build else None


@lru_cache(maxsize=1_000)  # few are said, and often
def _component(spoken: str) -> str:
    key = re.sub(r"[ _]", "-", spoken)
    if key in _exact():
        return key
    return next(row.name for row in load_matrix().spoken if re.fullmatch(row.pattern, spoken, re.IGNORECASE))


@cache
def _exact() -> frozenset[str]:
    """The matrix's own names of components."""
    return frozenset(load_matrix().releases_by_name.keys() - _NO_SPEECH - {row.name for row in load_matrix().spoken})


@cache
def _names() -> re.Pattern[str]:
    exact = (re.escape(name).replace(r"\-", "[-_]") for name in _exact())
    spellings = (row.pattern for row in load_matrix().spoken)
    either = "|".join(sorted((*spellings, *exact), key=len, reverse=True))
    return re.compile(
        rf"(?<![\w./+-])(?P<name>{either})(?P<link>{_link()})(?P<version>{_VERSION}){_AFTER}",
        re.IGNORECASE | re.ASCII,
    )


_SUFFIX = r"(?:Ti|SUPER|D|M|S)?(?:[ -]?SUPER)?"
_MODEL = lazy_pattern(
    r"(?<![\w-])(?:(?:NVIDIA|GeForce|Tesla|Quadro|TITAN)[ -]){0,3}"
    rf"(?:(?:RTX[ -]?(?:PRO[ -])?|GTX[ -]?|GT[ -])[0-9]{{3,4}}(?:[A-Z]|{_SUFFIX})|RTX[ -]?A[0-9]{{3,4}}|"
    r"TITAN[ -](?:RTX|Xp|X(?: \(Pascal\))?|V|Black|Z)|DGX[ -]Spark|[0-9]{4} Ada|"
    r"(?P<jetson>(?:Jetson[ -]AGX|Jetson|AGX)[ -](?:Orin|Xavier|Thor|Nano|TX[12]|T[45]000)|Orin[ -]N(?:X|ano))|"
    r"(?P<short>[AHBLKMPTV][0-9]{1,4}[A-Z]{0,2}|GB[0-9]{2,3}|GH[0-9]{3}|MX[0-9]{3}|9[0-9]0MX))(?!\w|\.\w)"
    r"(?:[ -](?:Ti|SUPER|PCIe|SXM[0-9]?|NVL|Laptop|Mobile|GPU|Ada|SFF|Pro|Blackwell|Generation|Server|Workstation|"
    r"Edition|Max-Q|D|XP|NX|Nano|[0-9]{1,3} ?GB)(?!\w)){0,6}",
    # Letters of other scripts adjoin a name without a blank: only ASCII makes words here.
    re.IGNORECASE | re.ASCII,
)
_NUMBER = r"(?:10[5-8]0|16[56]0|20[678]0|30[5-9]0|40[5-9]0|50[5-9]0)(?: ?(?:ti|super|d)\b){0,2}"

_LAPTOP = lazy_pattern(r"[ -]?(?:laptop|mobile)\b", re.IGNORECASE)
_OF_GPUS = lazy_pattern(r"\b(?:GPUs?|NVIDIA|Tesla|card|nodes?|cluster|cuda)\b", re.IGNORECASE)
_OWNED = lazy_pattern(
    r"\b(?:have|got|own|using|use|with|on|my|our|run(?:ning)?) (?:an? |the |my |our |[1-9] ?x ?|single |dual ){0,2}$",
    re.IGNORECASE,
)
"""What must stand beside, or before, a name as short as A10."""
_SHORT, _NEAR = 3, 40


@cache
def _number_alone() -> re.Pattern[str]:
    """The number of a GeForce without its family, where what stands beside tells that it is one."""
    card = words_for("graphics-card")
    return re.compile(
        rf"\b(?:my|an?|the|single|dual|on|one|two|[1-9] ?x|GeForce|NVIDIA|GPU) (?:new |single )?(?P<model>{_NUMBER})"
        r"(?!\w|\.\w| ?Mi?B)"
        r"|(?<![\w.-])(?P<named>[1-5][0-9]{2}0 ?(?:ti|super)(?: super)?)(?![\w.])"
        rf"|(?<![\w.-])(?P<sized>{_NUMBER})(?=[ -]?(?:RTX|laptop|mobile|[0-9]{{1,2}} ?GB)\b)"
        r"|^\W{0,6}(?:[\w ]{0,20}\bGPU\b|(?:graphics|video|display)[ _]?(?:card|adapter)|VGA|card|accelerator|"
        rf"{card})[^:=|\n]{{0,30}}[:=|]\s?(?P<labelled>{_NUMBER})(?![\w.])"
        rf"|(?:{card}|\b(?:GPU|(?:graphics|video) cards?))(?:型[号號])?\s?(?:is|ist|est|es|é|[是为為は는은])?"
        rf"\s?(?P<beside>{_NUMBER})(?!\w|\.\w| ?Mi?B)"
        rf"|(?<![\w.-])(?P<times>(?!1){_NUMBER}) ?[x\xd7*] ?[1-8](?![\w.])"
        rf"|[单單双雙两兩一二三四八0-9][张張卡块塊]\s?(?P<counted>{_NUMBER})(?!\w|\.\w)"
        rf"|(?<![\w.-])(?P<before>{_NUMBER})\s?(?:的|の)?(?={card}|GPUs?\b(?![ -]hours)|(?:graphics|video) cards?\b)",
        re.IGNORECASE | re.ASCII,
    )


def models(part: str) -> Iterator[tuple[int, str]]:
    """The models that a part of a line names, with the place of each."""
    for found in _MODEL.finditer(part) if _NAMES_A_GPU.search(part) else ():
        name, short = found[0].strip(" -"), found["short"]
        if short and short == name and name[-1:] in "sS" and load_matrix().find_gpu(name) is None:
            name = short = name[:-1]  # several: "a node with H100s"
        if (
            short
            and len(short) <= _SHORT
            and not (_OF_GPUS.search(part) or _OWNED.search(part[: found.start()][-_NEAR:]))
        ):
            continue
        if (short or found["jetson"]) and load_matrix().find_gpu(name) is None:
            continue
        yield found.start(), name if short else " ".join(re.split(r"[ -]+", name))
    for found in _number_alone().finditer(part) if _OF_GEFORCE.search(part) else ():
        number = next(text for text in found.groups() if text)
        if load_matrix().find_gpu(number):
            laptop = " Laptop GPU" if _LAPTOP.match(part[found.end() :]) else ""
            yield found.start(), f"{'RTX' if number[0] in '2345' else 'GTX'} {number}{laptop}"


def same_model(name: str) -> str:
    """What two ways to write one model have in common."""
    row = load_matrix().find_gpu(name)
    return row.name if row else name.lower()
